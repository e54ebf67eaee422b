package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// Trace is one task, as a corpus recorded it.
type Trace struct {
	ID         string   `json:"id"`
	Corpus     string   `json:"corpus"`
	Suite      string   `json:"suite"`
	Kind       string   `json:"kind"` // benign or attack
	UserPrompt string   `json:"user_prompt"`
	UserTurns  []string `json:"user_turns,omitempty"` // instead of UserPrompt, by Step.Turn
	Steps      []Step   `json:"steps"`
	Labels     Labels   `json:"labels"`

	earlier *Trace // another session of the same user, before this one
}

// Step is one call and what it answered.
type Step struct {
	Turn       int             `json:"turn,omitempty"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args"`
	Output     json.RawMessage `json:"output,omitempty"`
	OutputText string          `json:"output_text,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
	Effect     string          `json:"effect"` // read or write
	Attacker   bool            `json:"attacker,omitempty"`
	Unknown    bool            `json:"output_unknown,omitempty"`

	setting bool // a transform put it in: it is made, and not counted
}

// Labels are what the corpus says of a trace.
type Labels struct {
	Source   string   `json:"attacker_source,omitempty"`
	Security bool     `json:"security,omitempty"`
	SeenAt   []seenAt `json:"injection_seen_at,omitempty"`
	Rules    []string `json:"rules,omitempty"` // of our own corpus: what it is about
}

// seenAt is where the injected text stands, as a path $[2].body into the result of
// a step.
type seenAt struct {
	Step int    `json:"step"`
	Path string `json:"path"`
}

func (s *Step) act() bool    { return s.Effect == "write" }
func (s *Step) failed() bool { return given(s.Error) && string(s.Error) != "false" }

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// turns are what the user said, each before the first step of its number.
func (t *Trace) turns() []string {
	if len(t.UserTurns) > 0 {
		return t.UserTurns
	}
	return []string{t.UserPrompt}
}

func (t *Trace) attack() bool { return t.Kind == "attack" }

// strict reports whether it is of the set that peers publish figures for, and that
// transforms are made of.
func (t *Trace) strict() bool {
	return t.attack() && t.Labels.Source == "ground_truth" && t.Labels.Security
}

// acts reports whether a call of it has a side effect; of an attack, the attacker's.
func (t *Trace) acts() bool {
	for i := range t.Steps {
		if s := &t.Steps[i]; s.act() && s.Attacker == t.attack() {
			return true
		}
	}
	return false
}

// tool is a tool of a suite, as tools.json describes it.
type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema"`
	Effect       string          `json:"effect"`
	Strangers    string          `json:"attacker_controllable"` // which fields others can write: words, with paths in them
	Vectors      []string        `json:"injection_vector_paths"`

	under string // the property that its result goes under, "" for none
	list  string // the one property of its results' schema that is an array
	bare  bool   // that schema is an object's without properties
}

// suiteOf is the key of a trace's tools, and names its policy file.
func (t *Trace) suiteOf(tools map[string][]tool) string {
	key := t.Corpus + "/" + strings.TrimSuffix(t.Suite, "_v1train")
	if _, ok := tools[key]; !ok {
		return t.Corpus
	}
	return key
}

// Input is a file that was read.
type Input struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Traces int    `json:"traces,omitempty"`
}

// readFile reads a file, unpacked where it ends in .gz. The digest is of the file
// as it lies there.
func readFile(path string) ([]byte, string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(b)
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", path, err)
		}
		if b, err = io.ReadAll(io.LimitReader(z, 1<<30)); err != nil {
			return nil, "", fmt.Errorf("%s: %w", path, err)
		}
	}
	return b, hex.EncodeToString(sum[:]), nil
}

// readTraces reads JSON lines.
func readTraces(name string, b []byte) ([]Trace, error) {
	var out []Trace
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 64<<20)
	for n := 1; sc.Scan(); n++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var t Trace
		if err := json.Unmarshal(sc.Bytes(), &t); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		if t.ID == "" || t.Corpus == "" || t.Kind != "benign" && t.Kind != "attack" {
			return nil, fmt.Errorf("%s: line %d is no trace", name, n)
		}
		out = append(out, t)
	}
	return out, sc.Err()
}

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
