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

// mSend is one call of the reference model of a retry with a key: all that were let pass
// are listed, and what became known of them, in the order in which that happened.
type mSend struct {
	args string
	d    *gate.Decision
	at   time.Time
	open bool // it has no result yet
	not  bool // a person said that it did not happen
	news uint32
	said bool // a person said that it happened
	got  bool // the server answered it, or another of the same bytes
}

// mNews is that a call was made, or that it happened.
type mNews struct{ of *mSend }

// TestRetryModel compares Decide with the model over random sessions: one act, a server
// that does it once for each key, and everything that can become known of a call (P28, P04, R23).
func TestRetryModel(t *testing.T) {
	policy, catalogue := newWorld(t, `
pins: optional
collections: { account: { closed: true } }
tools:
  desk/file: { effect: write, idempotency_key: /key, args: { /to: { role: target, collection: account }, /key: { role: content, content: local } } }
`, `{"desk":[{"name":"file","inputSchema":{"type":"object","properties":{"to":{"type":"string"},"key":{"type":"string"}}}}]}`)
	retries, superseded, happened, forgotten := 0, 0, 0, 0
	check := func(t *rapid.T) {
		s := gate.NewSession("s_model", [32]byte{9}, provenance.Caps{})
		at := time.Unix(0, 0)
		ordered := uint32(0) // the user's latest turn
		order := func() {
			ordered = s.Next()
			s.Commit(s.Turn(ordered, []byte("file it to acc-1001"), at))
		}
		order()
		var sends []*mSend
		var news []mNews
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			at = at.Add(time.Second)
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				order()
			case 1:
				at = at.Add(time.Duration(rapid.SampledFrom([]int{-1, 5, 12, 23}).Draw(t, "hours")) * time.Hour)
			case 2, 3, 4:
				args := fmt.Sprintf(`{"to":"acc-1001","key":%q}`, rapid.SampledFrom([]string{"k-1", "k-1", "k-2", ""}).Draw(t, "key"))
				may, last := true, (*mSend)(nil)
				for _, a := range sends {
					if !a.not && (last == nil || a.news >= last.news) {
						last = a
					}
				}
				if last != nil {
					may = ordered >= last.news
				}
				if !may && args != `{"to":"acc-1001","key":""}` {
					// Of a retry, three things are asked, each by itself.
					latest, unknown, held := "", true, true
					for _, n := range news {
						if !n.of.not {
							latest = n.of.args
						}
					}
					alike := 0
					for _, a := range sends {
						if a.args == args && !a.not {
							alike++
							unknown = unknown && !a.got && !a.said
							held = held && !at.Before(a.at) && at.Sub(a.at) <= 24*time.Hour
						}
					}
					switch {
					case alike == 0:
					case latest != args:
						superseded++
					case !unknown:
						happened++
					case !held:
						forgotten++
					default:
						may, retries = true, retries+1
					}
				}
				next := s.Next()
				d := gate.Decide(gate.Input{Policy: policy, Catalogue: catalogue, Session: s, Time: at,
					Call: gate.Call{Server: "desk", Tool: "file", Arguments: strictjson.Of([]byte(args))}})
				s.Decided(&d)
				reason := writ.Reason("")
				if r := d.Outcome.Rejection; r != nil {
					reason = r.Reason
				}
				if d.Allowed() != may || !may && reason != writ.PolicyRepeated {
					t.Fatalf("%s: got %q, the model says %t", args, reason, may)
				}
				if may {
					a := &mSend{args: args, d: &d, at: at, open: true, news: next}
					sends, news = append(sends, a), append(news, mNews{a})
				}
			case 5, 6:
				if len(sends) == 0 {
					continue
				}
				a := rapid.SampledFrom(sends).Draw(t, "of")
				res := gate.Result{Evidence: s.Next(), Status: gate.Unknown, Time: at}
				if rapid.Bool().Draw(t, "answered") {
					res.Status, res.Value = gate.OK, strictjson.Of([]byte(`{"content":[]}`))
				}
				s.Commit(s.Observe(a.d, res))
				if !a.open {
					continue // it has its result
				}
				a.open = false
				if res.Status == gate.Unknown {
					if !a.not && !a.got {
						a.news = res.Evidence + 1
					}
					continue
				}
				a.not, a.got, a.news = false, true, res.Evidence+1
				for _, b := range sends {
					if b.args == a.args && !b.not && a.args != `{"to":"acc-1001","key":""}` {
						b.got = true
					}
				}
				news = append(news, mNews{a})
			case 7:
				if len(sends) == 0 {
					continue
				}
				a := rapid.SampledFrom(sends).Draw(t, "settled")
				yes := rapid.Bool().Draw(t, "happened")
				s.Settle(a.d, yes)
				switch {
				case a.got || a.not || a.said:
				case !yes:
					a.not = true
				default:
					a.said = true
					for _, b := range sends {
						if b.args == a.args && !b.not && a.args != `{"to":"acc-1001","key":""}` {
							b.said = true
						}
					}
					news = append(news, mNews{a})
				}
			}
		}
	}
	// Few draws happen to meet all four: again until some did.
	for range 8 {
		if rapid.Check(t, check); retries > 0 && superseded > 0 && happened > 0 && forgotten > 0 {
			break
		}
	}
	if !testing.Short() && (retries == 0 || superseded == 0 || happened == 0 || forgotten == 0) {
		t.Errorf("%d retries, %d superseded, %d that happened, %d forgotten: this shows nothing", retries, superseded, happened, forgotten)
	}
	t.Logf("%d retries, %d superseded, %d that happened, %d forgotten", retries, superseded, happened, forgotten)
}
