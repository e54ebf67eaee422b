package gate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// R12 against a list of all mails: a value passes if and only if the latest turn names
// one sender, and it stands alone, of its type, in all that he sent.
func TestSaidBy(t *testing.T) {
	policy, catalogue := newWorld(t, `
pins: optional
tools:
  s/list: { effect: read, outputs: [{ at: /mails/*/from, label: party, type: email }, { at: /mails/*/amount, label: external, type: decimal }, { at: /mails/*/more/*/amount, label: external, type: decimal }] }
  s/pay: { effect: transfer, args: { /amount: { role: amount, type: decimal, from: [said_by: s/list#/mails/*/from] } } }
`, `{"s":[{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},
{"name":"pay","inputSchema":{"type":"object","properties":{"amount":{"type":"number"}}}}]}`)
	senders := []string{"alice@acme.example", "bob@acme.example", "eve@evil.example"}
	type part struct {
		Amount int `json:"amount"`
	}
	type mail struct {
		From   string `json:"from"`
		Amount *int   `json:"amount,omitempty"`
		More   []part `json:"more,omitempty"`
	}
	rapid.Check(t, func(t *rapid.T) {
		s := gate.NewSession("s_said", [32]byte{5}, provenance.Caps{})
		at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
		decide := func(tool, args string) gate.Decision {
			d := gate.Decide(gate.Input{Policy: policy, Catalogue: catalogue, Session: s, Time: at, Call: gate.Call{Server: "s", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
			if tool == "list" {
				s.Decided(&d) // of the others nothing is kept: guesses are another rule's
			}
			return d
		}
		var all []mail
		for range rapid.IntRange(1, 3).Draw(t, "lists") {
			var mails []mail
			for range rapid.IntRange(0, 3).Draw(t, "mails") {
				m := mail{From: rapid.SampledFrom(senders).Draw(t, "from")}
				if rapid.Bool().Draw(t, "asks") {
					n := rapid.IntRange(1, 3).Draw(t, "amount")
					m.Amount = &n
				}
				if rapid.IntRange(0, 5).Draw(t, "more") == 0 {
					m.More = []part{{rapid.IntRange(1, 3).Draw(t, "part")}}
				}
				mails = append(mails, m)
			}
			all = append(all, mails...)
			b, _ := json.Marshal(map[string]any{"mails": mails})
			d := decide("list", `{}`)
			s.Commit(s.Observe(&d, gate.Result{Evidence: s.Next(), Time: at, Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":` + string(b) + `}`))}))
		}
		var named []string
		for range rapid.IntRange(1, 2).Draw(t, "turns") {
			named = rapid.SliceOfNDistinct(rapid.SampledFrom(senders), 0, 2, func(s string) string { return s }).Draw(t, "named")
			s.Commit(s.Turn(s.Next(), []byte("pay what they asked: "+strings.Join(named, " ")), at))
		}
		spoke, asked, direct := map[string]bool{}, map[int]bool{}, map[int]bool{}
		for _, m := range all {
			if !slices.Contains(named, m.From) {
				continue
			}
			if spoke[m.From] = true; m.Amount != nil {
				asked[*m.Amount], direct[*m.Amount] = true, true
			}
			for _, p := range m.More {
				asked[p.Amount] = true
			}
		}
		for n := 1; n <= 3; n++ {
			d := decide("pay", fmt.Sprintf(`{"amount":%d}`, n))
			if want := len(spoke) == 1 && len(asked) == 1 && direct[n]; d.Allowed() != want {
				t.Fatalf("%d: %v, want %v (%+v)", n, d.Allowed(), want, d.Outcome.Rejection)
			}
		}
	})
}
