package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	writpolicy "github.com/writ-project/writ/policy"
)

const (
	saysYes = `{"action":"accept","content":{"answer":"yes"}}`
	pending = "POLICY_VIOLATION approval.pending \"/id\""
	noWay   = "POLICY_VIOLATION approval.refused \"/id\""
)

// askedRig is a gateway over a tool that needs a person, who is behind the client
// whose principal is kim, for as long as it is registered.
func askedRig(t *testing.T) (r *rig, up *scripted, registered *atomic.Bool) {
	t.Helper()
	up = newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r = newRig(t, onSQLite(t), policy(t, turnPolicy), up.config(true))
	registered = new(atomic.Bool)
	registered.Store(true)
	r.opts.Approvals = approval.New(time.Now)
	r.opts.AnswersFor = func(principal string) (string, writ.Label, bool) {
		return "client kim", writ.User, principal == "kim" && registered.Load()
	}
	r.restart()
	return r, up, registered
}

// as opens a client of kind k that is of a principal, in a session of its own.
func (r *rig) as(ctx context.Context, k int, principal string) *wire {
	r.tb.Helper()
	if !kinds[k].http {
		return overLines(ctx, r, kinds[k].modern, downstream.StdioOptions{Principal: principal})
	}
	o := web{bearer: principal}
	if kinds[k].modern {
		secret, _, err := createSession(ctx, r.gw, principal)
		if err != nil {
			r.tb.Fatal(err)
		}
		o.session = secret
	}
	return overHTTP(ctx, r, kinds[k].modern, o)
}

// listen has a client answer what it is asked, and counts the questions.
func listen(w *wire, answer func() string) *atomic.Int64 {
	var n atomic.Int64
	w.ask = func(method string, params []byte) string {
		n.Add(1)
		if message := text(params, "message"); method != "elicitation/create" || !strings.Contains(message, "delete_item") || !strings.Contains(message, "arguments") {
			w.tb.Errorf("asked %s %s", method, params)
		}
		return answer()
	}
	return &n
}

// answersOf lists the answers on record.
func answersOf(t *testing.T, r *rig) (out string) {
	t.Helper()
	eachRecord(t, r.store, func(rec *audit.Record, _ *audit.Item) {
		if rec.Kind == gateway.KindApproval {
			word := map[string]string{"true": "yes", "false": "no"}[text(rec.Data, "yes")]
			out += word + " by " + text(rec.Data, "by") + " as " + text(rec.Data, "label") + "; "
		}
	})
	return out
}

// TestElicited: on the legacy wire the client of a person is asked while its call is
// held; what he says is on record as his, and what is no answer leaves the question
// open.
func TestElicited(t *testing.T) {
	for k, kind := range kinds {
		if kind.modern {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			ctx := testContext(t)
			r, up, registered := askedRig(t)
			for i, c := range []struct{ says, want string }{
				{saysYes, ""},
				{`{"action":"accept","content":{"answer":"no"}}`, noWay},
				{`{"action":"decline"}`, noWay},
				{`{"action":"cancel"}`, pending},
				{`{"action":"accept"}`, pending},
				{`{"action":"accept","content":{"answer":"Yes"}}`, pending},
				{`{"action":"accept","content":{"answer":true}}`, pending},
				{`{"action":"accept","content":{"answer":"yes","note":"x"}}`, pending},
				{`{"action":"Accept","content":{"answer":"yes"}}`, pending},
				{`{"answer":"yes"}`, pending},
				{`{}`, pending},
			} {
				w := r.as(ctx, k, "kim") // a session each: guesses are counted (R24)
				n := listen(w, func() string { return c.says })
				args := fmt.Sprintf(`{"id":"item-%d"}`, 4711+i)
				if c.want == "" {
					up.reply(`"result":{"content":[]}`)
					passed(t, w.call(ctx, "delete_item", args))
					// A yes is good once.
					w.ask = func(string, []byte) string { return `{"action":"cancel"}` }
					refusal(t, w.call(ctx, "delete_item", args), pending)
				} else {
					refusal(t, w.call(ctx, "delete_item", args), c.want)
				}
				if n.Load() != 1 {
					t.Errorf("%s: asked %d times", c.says, n.Load())
				}
			}

			// A client that is no person's any more when its answer comes.
			w2 := r.as(ctx, k, "kim")
			listen(w2, func() string { registered.Store(false); return saysYes })
			refusal(t, w2.call(ctx, "delete_item", `{"id":"item-1"}`), pending)
			n := listen(w2, func() string { return saysYes })
			refusal(t, w2.call(ctx, "delete_item", `{"id":"item-2"}`), unseen)
			registered.Store(true)
			// What cannot be shown whole is not asked there.
			refusal(t, w2.call(ctx, "delete_item", `{"id":"`+strings.Repeat("a", 9000)+`"}`), pending)
			if n.Load() != 0 {
				t.Errorf("asked %d times", n.Load())
			}
			if got := up.take(); len(got) != 1 {
				t.Errorf("%d calls reached the server", len(got))
			}
			// A yes and two noes, each by whom it was.
			if got := answersOf(t, r); got != "yes by client kim as user; no by client kim as user; no by client kim as user; " {
				t.Errorf("on record: %s", got)
			}
		})
	}
}

// TestElicitedByOthers: whoever is not registered is asked nothing, on no wire, and
// what he answers all the same counts for nothing (P19, K06).
func TestElicitedByOthers(t *testing.T) {
	for k, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			ctx := testContext(t)
			r, up, _ := askedRig(t)
			for _, principal := range []string{downstream.Loopback, "eve"} {
				w := r.as(ctx, k, principal)
				n := listen(w, func() string { return saysYes })
				a := w.call(ctx, "delete_item", `{"id":"item-4711"}`)
				refusal(t, a, unseen)
				if kind.modern {
					a = w.request(ctx, "tools/call", `{"name":"delete_item","arguments":{"id":"item-4711"},"inputResponses":{"approval":`+saysYes+`}}`)
					if a.err == nil && !strings.Contains(refusedFor(a), "PROVENANCE") {
						t.Errorf("an answer to nothing: %s %s", a.result, a.err)
					}
				}
				if n.Load() != 0 {
					t.Errorf("%s was asked", principal)
				}
			}
			if kind.modern {
				w := r.as(ctx, k, "kim")
				w.caps = `{"sampling":{}}`
				refusal(t, w.call(ctx, "delete_item", `{"id":"item-4711"}`), unseen)
				w.caps = `{"elicitation":{"url":{}}}`
				refusal(t, w.call(ctx, "delete_item", `{"id":"item-4711"}`), unseen)
			}
			if got := up.take(); len(got) != 0 {
				t.Errorf("the server was sent %s", got[0].params)
			}
			if qs, _ := r.opts.Approvals.Open(); len(qs) != 0 {
				t.Errorf("open: %+v", qs)
			}
		})
	}
}

// TestElicitedLater: on the wire of 2026-07-28 the client of a person is told what to
// ask him, and makes the call again with the answer. The state it carries is bound to
// session, tool and arguments, and good once (S08).
func TestElicitedLater(t *testing.T) {
	for k, kind := range kinds {
		if !kind.modern {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			ctx := testContext(t)
			r, up, registered := askedRig(t)
			w, other, eve := r.as(ctx, k, "kim"), r.as(ctx, k, "kim"), r.as(ctx, k, "eve")
			ask := func(args string) (state string) {
				t.Helper()
				a := w.call(ctx, "delete_item", args)
				in := get(a.result, "inputRequests", "approval")
				if text(a.result, "resultType") != "input_required" || text(in, "method") != "elicitation/create" ||
					!strings.Contains(text(in, "params", "message"), "no evidence holds it as a whole") || strings.Contains(string(get(a.result, "requestState")), "approval") {
					t.Fatalf("not asked: %s %s", a.result, a.err)
				}
				return string(get(a.result, "requestState"))
			}
			retry := func(w *wire, args, answer, state string) answer {
				return w.request(ctx, "tools/call", `{"name":"delete_item","arguments":`+args+`,"inputResponses":`+answer+`,"requestState":`+state+`}`)
			}
			yes := `{"approval":` + saysYes + `}`
			args := `{"id":"item-4711"}`
			state := ask(args)
			flipped := []byte(state)
			flipped[len(flipped)/2] ^= 1
			for what, a := range map[string]answer{
				"of another session":   retry(other, args, yes, state),
				"of another principal": retry(eve, args, yes, state),
				"of other arguments":   retry(w, `{"id":"item-4712"}`, yes, state),
				"spelt otherwise":      retry(w, `{"id": "item-4711"}`, yes, state),
				"flipped":              retry(w, args, yes, string(flipped)),
				"of another tool":      w.request(ctx, "tools/call", `{"name":"list_items","arguments":`+args+`,"inputResponses":`+yes+`,"requestState":`+state+`}`),
			} {
				if text(a.err, "code") != "-32602" {
					t.Errorf("%s: %s %s", what, a.result, a.err)
				}
			}
			if got := up.take(); len(got) != 0 {
				t.Fatalf("the server was sent %s", got[0].params)
			}
			up.reply(`"result":{"content":[]}`)
			passed(t, retry(w, args, yes, state))
			got := up.take()
			if len(got) != 1 || string(get(got[0].params, "arguments")) != args || get(got[0].params, "inputResponses") != nil || get(got[0].params, "requestState") != nil {
				t.Fatalf("the server was sent %s", got)
			}
			if a := retry(w, args, yes, state); text(a.err, "code") != "-32602" {
				t.Errorf("twice: %s %s", a.result, a.err)
			}

			w = r.as(ctx, k, "kim") // guesses are counted (R24)
			refusal(t, retry(w, `{"id":"a1"}`, `{"approval":{"action":"decline"}}`, ask(`{"id":"a1"}`)), noWay)
			// What is no answer leaves the question open, and is not asked again at once.
			refusal(t, retry(w, `{"id":"a2"}`, `{"approval":{"action":"cancel"}}`, ask(`{"id":"a2"}`)), pending)
			for _, bad := range []string{`{}`, `{"approval":"yes"}`, `{"approval":` + saysYes + `,"x":{}}`, `{"other":` + saysYes + `}`} {
				if a := retry(w, `{"id":"a3"}`, bad, ask(`{"id":"a3"}`)); text(a.err, "code") != "-32602" {
					t.Errorf("%s: %s %s", bad, a.result, a.err)
				}
			}
			w = r.as(ctx, k, "kim")
			// Somebody else was first: his answer counts.
			state = ask(`{"id":"a4"}`)
			qs, _ := r.opts.Approvals.Open()
			if _, err := r.opts.Approvals.Answer(qs[len(qs)-1].ID, approval.Answer{By: "lee", Label: writ.User}); err != nil {
				t.Fatal(err)
			}
			refusal(t, retry(w, `{"id":"a4"}`, yes, state), noWay)
			// A client that is no person's any more.
			state = ask(`{"id":"a5"}`)
			registered.Store(false)
			refusal(t, retry(w, `{"id":"a5"}`, yes, state), pending)
			registered.Store(true)
			// A restart forgets what was asked.
			state = ask(`{"id":"a6"}`)
			if got := up.take(); len(got) != 0 {
				t.Errorf("the server was sent %s", got[0].params)
			}
			if got := answersOf(t, r); got != "yes by client kim as user; no by client kim as user; no by lee as user; " {
				t.Errorf("on record: %s", got)
			}
			if kind.http {
				r.restart()
				if a := retry(w, `{"id":"a6"}`, yes, state); a.err == nil {
					t.Errorf("after a restart: %s", a.result)
				}
			}
		})
	}
}

// TestElicitedFromNowOn: a person's client offers him what may be kept as choices of its
// form, with the lines. What he chooses is in force before the call goes, which leaves no
// mark where the field is read; a choice that was not offered is no answer.
func TestElicitedFromNowOn(t *testing.T) {
	const rules = `
pins: optional
tools:
  toy/list_items: { effect: read, outputs: [{ at: /items/*/id, label: external }] }
  toy/delete_item: { effect: write, args: { /id: { role: target, from: [user] } } }
`
	chosen := func(word string) string {
		return `{"action":"accept","content":{"answer":"` + word + `"}}`
	}
	for k, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			ctx := testContext(t)
			r, up, _ := askedRig(t)
			r.opts.Policy = policy(t, rules)
			r.opts.Grow = func(ctx context.Context, lines []writpolicy.Grown, record func() error) error {
				p, ok := r.opts.Policy.With(lines)
				if err := record(); err != nil || !ok {
					t.Errorf("%v %v", err, lines)
				}
				r.opts.Policy = p
				_, err := r.gw.Reload(ctx, gateway.Setup{Policy: p, Servers: r.opts.Servers})
				return err
			}
			r.restart()
			says, asked := "", 0
			call := func(w *wire, id string) answer {
				args := `{"id":"` + id + `"}`
				w.ask = func(_ string, params []byte) string {
					asked++
					return says
				}
				a := w.call(ctx, "delete_item", args)
				if in := get(a.result, "inputRequests", "approval"); in != nil {
					asked++
					if m := text(in, "params", "message"); !strings.Contains(m, `"writes":"ours"`) || !strings.Contains(m, "only our own people can write toy/list_items#/items/*/id") {
						t.Errorf("asked %s", m)
					}
					a = w.request(ctx, "tools/call", `{"name":"delete_item","arguments":`+args+`,"inputResponses":{"approval":`+says+`},"requestState":`+string(get(a.result, "requestState"))+`}`)
				}
				return a
			}
			begin := func() *wire {
				w := r.as(ctx, k, "kim")
				up.reply(itemList)
				passed(t, w.call(ctx, "list_items", `{}`))
				up.take()
				return w
			}
			w := begin()
			says = chosen("from now on, what this source returns")
			refusal(t, call(w, "item-17"), pending)
			up.take()
			// Nor is one that the form left out because nobody could have read its line.
			long := "item-" + strings.Repeat("17", 500)
			up.answerWith(strings.ReplaceAll(itemList, "item-17", long))
			passed(t, w.call(ctx, "list_items", `{}`))
			up.take()
			says = chosen("from now on, this exact value alone")
			refusal(t, call(w, long), pending)
			if len(up.take()) != 0 || asked != 2 {
				t.Fatalf("what was not shown was chosen, asked %d times", asked)
			}
			says = chosen("from now on, and strangers cannot write there")
			pass := func(w *wire) {
				t.Helper()
				up.reply(`"result":{"content":[]}`)
				passed(t, call(w, "item-17"))
			}
			pass(w)
			if asked != 3 || len(up.take()) != 1 {
				t.Fatalf("asked %d times", asked)
			}
			pass(w)
			pass(begin())
			if asked != 3 {
				t.Errorf("asked %d times", asked)
			}
			kept := ""
			eachRecord(t, r.store, func(rec *audit.Record, _ *audit.Item) {
				if rec.Kind == gateway.KindGrown {
					kept += text(rec.Data, "keep") + " by " + text(rec.Data, "by") + " as " + text(rec.Data, "label") + "; "
				}
			})
			if kept != "ours by client kim as user; " || answersOf(t, r) != "" {
				t.Errorf("on record: %s %s", kept, answersOf(t, r))
			}
		})
	}
}

// TestElicitedBesideWatch: whoever answers first has answered; the question at the
// client is taken back.
func TestElicitedBesideWatch(t *testing.T) {
	ctx := testContext(t)
	r, up, _ := askedRig(t)
	w := r.as(ctx, 1, "kim")
	leave := r.opts.Approvals.There()
	defer leave()
	asked, answered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.ask = func(string, []byte) string {
		once.Do(func() { close(asked) })
		<-answered
		return `{"action":"decline"}`
	}
	go func() {
		<-asked
		qs, _ := r.opts.Approvals.Open()
		if _, err := r.opts.Approvals.Answer(qs[0].ID, approval.Answer{Yes: true, By: "lee", Label: writ.User}); err != nil {
			t.Error(err)
		}
		close(answered)
	}()
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", `{"id":"item-4711"}`))
}
