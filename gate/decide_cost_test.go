package gate_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// TestDecideCostsWhatTheCallCosts: a decision is as dear as its arguments are many,
// however much was said in the session before.
func TestDecideCostsWhatTheCallCosts(t *testing.T) {
	p, c := newWorld(t, `pins: optional
tools:
  x/act:
    effect: write
    no_args: allow
    args: { /text/*: { role: content }, /at/*: { role: time } }
`, `{"x":[{"name":"act","inputSchema":{"type":"object","properties":{"text":{"type":"array"},"at":{"type":"array"}}}}]}`)
	at := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	decide := func(turns int, arg, form string) time.Duration {
		s := gate.NewSession("s_x", [32]byte{1}, provenance.Caps{})
		for i := range turns {
			s.Commit(s.Turn(uint32(i+1), fmt.Appendf(nil, "%d please move the meeting with Kim from Monday at 3pm to Friday, and pay $50 for dinner", i), at))
		}
		var texts []string
		for i := range 2000 {
			texts = append(texts, fmt.Sprintf(form, i))
		}
		raw, _ := json.Marshal(map[string]any{arg: texts})
		args, err := strictjson.Parse(raw, strictjson.Request)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Time: at, Call: gate.Call{Server: "x", Tool: "act", Arguments: args}})
		return time.Since(begin)
	}
	for arg, form := range map[string]string{"text": "meeting x%d", "at": "2026-11-22 10:00:%02d"} {
		one, many := decide(1, arg, form), decide(1000, arg, form)
		if many > 5*one {
			t.Errorf("2000 of %s: %v after one turn, %v after a thousand", arg, one, many)
		}
	}
}
