package gate

import (
	"encoding/json"
	"testing"

	"github.com/writ-project/writ/policy"
)

func TestUnknownToolIsWhatDecideSays(t *testing.T) {
	p := &policy.Policy{}
	c, _ := NewCatalogue(nil, p)
	want, _ := json.Marshal(Decide(Input{Policy: p, Catalogue: c, Call: Call{Tool: "nothing"}}).Outcome)
	got, _ := json.Marshal(UnknownTool())
	if string(got) != string(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
