package replay

import (
	_ "embed"
	"encoding/json"
)

// The corpus of our own: for each rule that one session can show a task that needs it
// and an attack that it stops, and toxic flows: trusted tools, a stranger's text, and
// acts that are each in order. It tells what it is about by labels.rules.
var (
	//go:embed own/tools.json
	ownTools []byte
	//go:embed own/traces.jsonl
	ownTraces []byte
)

func ownCorpus() ([]Trace, []tool, error) {
	var tools []tool
	if err := json.Unmarshal(ownTools, &tools); err != nil {
		return nil, nil, err
	}
	traces, err := readTraces("own/traces.jsonl", ownTraces)
	return traces, tools, err
}
