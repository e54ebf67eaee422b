package gate_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// R19 against a list of what was issued and used: whatever is read, echoed or
// replayed in between, a code passes once and in its time.
func TestOneTimeValues(t *testing.T) {
	policy, catalogue := newWorld(t, `
pins: optional
collections: { code: { closed: true } }
tools:
  s/issue: { effect: read, outputs: [{ at: /codes/*, label: system, type: id, collection: code, one_shot: true, lifetime: 10s }] }
  s/list: { effect: read, args: { /q: { role: query } }, outputs: [{ at: /codes/*, label: system, type: id, collection: code, authoritative: true }] }
  s/use: { effect: write, args: { /codes/*: { role: selector, collection: code, type: id } }, outputs: [{ at: /codes/*, label: system, type: id, collection: code }] }
`, `{"s":[{"name":"issue","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},
{"name":"list","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}},"outputSchema":{"type":"object"}},
{"name":"use","inputSchema":{"type":"object","properties":{"codes":{"type":"array","items":{}}}},"outputSchema":{"type":"object"}}]}`)
	rapid.Check(t, func(t *rapid.T) {
		first, again := gate.NewSession("s_once", [32]byte{5}, provenance.Caps{}), gate.NewSession("s_once", [32]byte{5}, provenance.Caps{})
		now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
		issued, listed, spent := map[string]time.Time{}, map[string]bool{}, map[string]bool{}
		do := func(tool, args, result string) bool {
			allowed := false
			for i, s := range []*gate.Session{first, again} { // a session folded again decides the same
				d := gate.Decide(gate.Input{Policy: policy, Catalogue: catalogue, Session: s, Time: now, Call: gate.Call{Server: "s", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
				if i > 0 && d.Allowed() != allowed {
					t.Fatal("two sessions of one history differ")
				}
				allowed = d.Allowed()
				if s.Decided(&d); allowed {
					s.Commit(s.Observe(&d, gate.Result{Evidence: s.Next(), Time: now, Status: gate.OK, Value: strictjson.Of([]byte(result))}))
				} else if d.Outcome.Rejection.Code != writ.MissingProvenance {
					t.Fatalf("%+v", d.Outcome.Rejection)
				}
			}
			return allowed
		}
		for range rapid.IntRange(5, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "later")) * time.Second)
			id := fmt.Sprint("9001002", rapid.IntRange(10, 13).Draw(t, "code"))
			shows := fmt.Sprintf(`{"structuredContent":{"codes":["%s"]}}`, id)
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				do("issue", "{}", shows)
				if _, known := issued[id]; !known {
					issued[id] = now
				}
			case 1:
				asked := `{}`
				if _, once := issued[id]; once || listed[id] { // else it is the model's own (R4)
					asked = rapid.SampledFrom([]string{`{}`, `{"q":"` + id + `"}`}).Draw(t, "asked")
				}
				do("list", asked, shows)
				listed[id] = true
			default:
				spelled := rapid.SampledFrom([]string{`"` + id + `"`, id}).Draw(t, "spelled")
				at, once := issued[id]
				want := listed[id] || once
				if once {
					want = !spent[id] && now.Sub(at) < 10*time.Second
				}
				if got := do("use", `{"codes":[`+spelled+`]}`, shows); got != want {
					t.Fatalf("%s: %v, want %v", id, got, want)
				} else if got {
					spent[id], listed[id] = once, true
				}
			}
		}
	})
}
