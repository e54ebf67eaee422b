package gate_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// mAct is one payment of the reference model of R23: a list of all that were made, in
// which a decision looks for one to the same account that nothing was read after, or that
// no answer came of.
type mAct struct {
	to        string
	d         *gate.Decision
	after     uint32 // what was seen before it has a lower number
	open      bool   // it has no result yet
	heard     bool   // the server answered
	not, said bool   // a person said that it did not happen, or that it did
}

// TestRepeatModel compares Decide with the model over random sessions (P28, P04).
func TestRepeatModel(t *testing.T) {
	policy, catalogue := newWorld(t, `
pins: optional
collections: { account: { closed: true } }
tools:
  bank/accounts: { effect: read, outputs: [{ at: /a/*, label: system, collection: account }] }
  bank/pay: { effect: transfer, idempotent: false, args: { /to: { role: target, collection: account } } }
`, `{"bank":[{"name":"accounts","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},
{"name":"pay","inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}}]}`)
	accounts := []string{"acc-1001", "acc-1002"}
	again, not, said := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := gate.NewSession("s_model", [32]byte{9}, provenance.Caps{})
		at := time.Unix(0, 0)
		decide := func(tool, args string) *gate.Decision {
			at = at.Add(time.Second)
			d := gate.Decide(gate.Input{Policy: policy, Catalogue: catalogue, Session: s, Time: at,
				Call: gate.Call{Server: "bank", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
			s.Decided(&d)
			return &d
		}
		result := func(d *gate.Decision, status gate.Status, value string) {
			res := gate.Result{Evidence: s.Next(), Status: status, Time: at}
			if value != "" {
				res.Value = strictjson.Of([]byte(value))
			}
			s.Commit(s.Observe(d, res))
		}
		seen := map[string]uint32{} // the newest result each account stood in
		var acts []*mAct
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			to := rapid.SampledFrom(accounts).Draw(t, "to")
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				seen[to] = s.Next()
				result(decide("accounts", "{}"), gate.OK, `{"structuredContent":{"a":["`+to+`"]}}`)
			case 1, 2:
				var last *mAct
				for _, a := range acts {
					if a.to == to && !a.not && (last == nil || a.after >= last.after) {
						last = a
					}
				}
				reason, told := writ.Reason(""), ""
				switch {
				case seen[to] == 0:
					reason = writ.ProvenanceUnseen
				case last != nil && (seen[to] < last.after || !last.heard):
					if reason, again = writ.PolicyRepeated, again+1; last.said {
						told, said = "a person confirmed", said+1
					} else if !last.heard {
						told = "not on record"
					}
				}
				after := s.Next()
				d := decide("pay", `{"to":"`+to+`"}`)
				got, need := writ.Reason(""), ""
				if r := d.Outcome.Rejection; r != nil {
					got, need = r.Reason, r.Failures[0].Need
				}
				if got != reason || told != "" && !strings.Contains(need, told) || told == "" && strings.Contains(need, "person") {
					t.Fatalf("pay %s: got %q (%s), the model says %q (%s)", to, got, need, reason, told)
				}
				if reason == "" {
					acts = append(acts, &mAct{to: to, d: d, after: after, open: true})
				}
			case 3:
				if len(acts) == 0 {
					continue
				}
				a := rapid.SampledFrom(acts).Draw(t, "of")
				status := rapid.SampledFrom([]gate.Status{gate.OK, gate.Errored, gate.Unknown}).Draw(t, "status")
				value := `{"content":[]}`
				if status == gate.Unknown {
					value = ""
				}
				n := s.Next()
				result(a.d, status, value)
				if !a.open {
					continue // it has its result
				}
				a.open = false
				if status != gate.Unknown {
					a.heard, a.not, a.said = true, false, false
				}
				if !a.not {
					a.after = n + 1
				}
			case 4:
				if len(acts) == 0 {
					continue
				}
				a := rapid.SampledFrom(acts).Draw(t, "settled")
				happened := rapid.Bool().Draw(t, "happened")
				s.Settle(a.d, happened)
				if !a.heard && !a.not && !a.said {
					a.not, a.said = !happened, happened
					not++
				}
			}
		}
	})
	if again == 0 || not == 0 || said == 0 && !testing.Short() {
		t.Errorf("%d repeats, %d settled, %d told of: this shows nothing", again, not, said)
	}
}
