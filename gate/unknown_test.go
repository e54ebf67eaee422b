package gate

import (
	"encoding/json"
	"testing"
)

func TestUnknownToolIsWhatDecideSays(t *testing.T) {
	want, _ := json.Marshal(Decide(Input{Call: Call{Tool: "nothing"}}).Outcome)
	got, _ := json.Marshal(UnknownTool())
	if string(got) != string(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
