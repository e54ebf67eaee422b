package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/strictjson"
)

const (
	askPolicy = `
pins: optional
collections: { item: { closed: true } }
tools:
  toy/list_items: { effect: read, outputs: [{ at: /items/*/id, label: system, collection: item, authoritative: true }] }
  toy/delete_item: { effect: write, args: { /id: { role: selector, collection: item, from: [output] } } }
  toy/ask: { effect: read }
`
	askTools = `{"tools":[{"name":"list_items","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},` +
		`{"name":"delete_item","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}},` +
		`{"name":"ask","inputSchema":{"type":"object","properties":{"n":{"type":"number"}}}}]}`
	question = `{"message":"which?","n":9007199254740993,"requestedSchema":{"type":"object","properties":{}}}`
)

// TestRetryBytes: between a client and a server of 2026-07-28 the question, the
// state and the answers pass byte for byte, and nothing else is kept of them.
func TestRetryBytes(t *testing.T) {
	for _, http := range []bool{false, true} {
		ctx := testContext(t)
		up := newScripted(t, "toy", true)
		up.list("tools/list", askTools)
		r := newRig(t, onSQLite(t), policy(t, askPolicy), up.config(http))
		w := r.connect(ctx, 3)
		asks := `{"resultType":"input_required","inputRequests":{"q\u0031":{"method":"elicitation/create","params":` + question + `}},"requestState":"opaque\u0020state"}`
		up.reply(`"result":` + asks)
		a := w.call(ctx, "ask", `{"n":1.50}`)
		// The client holds the state sealed; the server gets its own back.
		sealed := get(a.result, "requestState")
		if strings.Contains(string(sealed), "opaque") {
			t.Errorf("the state is not sealed: %s", sealed)
		}
		if err := intact(strictjson.Set(a.result, "requestState", get([]byte(asks), "requestState")), []byte(asks), true); err != nil {
			t.Errorf("%v: %s %s", err, a.result, a.err)
		}
		up.take()
		up.reply(`"result":{"content":[]}`)
		retry := `{"name":"ask","arguments":{"n":1.50},"inputResponses":{"q1":{"action":"accept","content":{"id":9007199254740993}}},"requestState":"opaque\u0020state"}`
		resealed := func(args, state string) string {
			return `{"name":"ask","arguments":` + args + `,"inputResponses":{"q1":{"action":"accept","content":{"id":9007199254740993}}},"requestState":` + state + `}`
		}
		// S08: a state that was changed, is of another call or session, or was
		// never given calls nothing.
		flipped := []byte(string(sealed))
		flipped[len(flipped)/2] ^= 1
		other := r.connect(ctx, 3)
		for what, bad := range map[string]answer{
			"flipped":            w.request(ctx, "tools/call", resealed(`{"n":1.50}`, string(flipped))),
			"other arguments":    w.request(ctx, "tools/call", resealed(`{"n":1.5}`, string(sealed))),
			"never given":        w.request(ctx, "tools/call", resealed(`{"n":1.50}`, `"eve@evil.example"`)),
			"of another session": other.request(ctx, "tools/call", resealed(`{"n":1.50}`, string(sealed))),
		} {
			if text(bad.err, "code") != "-32602" {
				t.Errorf("S08: %s: %s %s", what, bad.result, bad.err)
			}
		}
		passed(t, w.request(ctx, "tools/call", resealed(`{"n":1.50}`, string(sealed))))
		if a := w.request(ctx, "tools/call", resealed(`{"n":1.50}`, string(sealed))); text(a.err, "code") != "-32602" {
			t.Errorf("S08: used twice: %s %s", a.result, a.err)
		}
		got := up.take()
		if len(got) != 1 {
			t.Fatalf("%d requests", len(got))
		}
		for _, m := range []string{"arguments", "inputResponses", "requestState"} {
			if want := get([]byte(retry), m); string(get(got[0].params, m)) != string(want) {
				t.Errorf("%s arrived as %s, want %s", m, get(got[0].params, m), want)
			}
		}
		for _, bad := range []string{
			`{"name":"ask","inputResponses":[]}`, `{"name":"ask","inputResponses":null}`, `{"name":"ask","requestState":7}`,
			`{"name":"ask","inputresponses":{}}`, `{"name":"ask","RequestState":"x"}`, `{"name":"ask","Arguments":{}}`, // W03
		} {
			if a := w.request(ctx, "tools/call", bad); text(a.err, "code") != "-32602" {
				t.Errorf("%s: %s %s", bad, a.result, a.err)
			}
		}
		if got := up.take(); len(got) != 0 {
			t.Errorf("the server was sent %s", got[0].params)
		}
	}
}

// asksLegacy makes a scripted server of the legacy wire ask inside each call of
// ask, and returns what it was answered.
func asksLegacy(up *scripted) (answers func() []string) {
	var mu sync.Mutex
	var got []string
	up.during = func(r received, tell func(string)) {
		if text(r.params, "name") != "ask" && text(r.params, "name") != "delete_item" {
			return
		}
		msg := up.ask(`"elicitation/create"`, question, tell)
		mu.Lock()
		got = append(got, msg)
		mu.Unlock()
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := got
		got = nil
		return out
	}
}

// TestSuspended: a call to a server of 2025-11-25 that asks is suspended for a
// client of 2026-07-28 until its retry brings the answer. The state that names
// it is bound to the session, the tool and the arguments, and good once (S08);
// answers nobody asked for reach nobody (S09).
func TestSuspended(t *testing.T) {
	for _, http := range []bool{false, true} {
		ctx := testContext(t)
		up := newScripted(t, "toy", false)
		up.list("tools/list", askTools)
		answers := asksLegacy(up)
		r := newRig(t, onSQLite(t), policy(t, askPolicy), up.config(http))
		w, other := r.connect(ctx, 3), r.connect(ctx, 2)

		up.reply(`"result":{"content":[{"type":"text","text":"done"}]}`)
		a := w.call(ctx, "ask", `{"n":1}`)
		if text(a.result, "resultType") != "input_required" {
			t.Fatalf("not asked: %s %s", a.result, a.err)
		}
		asked, _ := strictjson.Members(get(a.result, "inputRequests"))
		if len(asked) != 1 || text(asked[0].Value, "method") != "elicitation/create" || string(get(asked[0].Value, "params")) != question {
			t.Fatalf("the question changed: %s", a.result)
		}
		state := get(a.result, "requestState")
		retry := func(w *wire, args, responses string) answer {
			return w.request(ctx, "tools/call", `{"name":"ask","arguments":`+args+`,"inputResponses":`+responses+`,"requestState":`+string(state)+`}`)
		}
		reply := `{"` + asked[0].Name + `":{"action":"accept","content":{"id":"item-666"}}}`
		for name, a := range map[string]answer{
			"another session": retry(other, `{"n":1}`, reply),
			"other arguments": retry(w, `{"n":2}`, reply),
			"other spelling":  retry(w, `{"n":1.0}`, reply),
		} {
			if text(a.err, "code") != "-32602" {
				t.Errorf("with %s: %s %s", name, a.result, a.err)
			}
		}
		if got := answers(); len(got) != 0 {
			t.Fatalf("the server was answered %q", got)
		}
		passed(t, retry(w, `{"n":1}`, reply))
		if got := answers(); len(got) != 1 || got[0] != `{"action":"accept","content":{"id":"item-666"}}` {
			t.Errorf("the server was answered %q", got)
		}
		if got := up.take(); len(got) != 1 {
			t.Errorf("%d calls reached the server", len(got))
		}
		// Once: the same again is no retry of anything.
		if a := retry(w, `{"n":1}`, reply); text(a.err, "code") != "-32602" {
			t.Errorf("a second time: %s %s", a.result, a.err)
		}
		if got := up.take(); len(got) != 0 {
			t.Errorf("a replayed retry reached the server: %s", got[0].params)
		}
	}
}

// TestClosedWhileSuspended: the end of the gateway ends a call that waits for
// an answer, and its outcome stays unknown.
func TestClosedWhileSuspended(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", false)
	up.list("tools/list", askTools)
	answers := asksLegacy(up)
	r := newRig(t, onSQLite(t), policy(t, askPolicy), up.config(false))
	w := r.connect(ctx, 3)
	if a := w.call(ctx, "ask", `{}`); text(a.result, "resultType") != "input_required" {
		t.Fatalf("not asked: %s %s", a.result, a.err)
	}
	r.stop()
	up.hangUp()
	for _, got := range answers() {
		if strings.Contains(got, "action") {
			t.Errorf("the server was answered %q", got)
		}
	}
}

// TestAnswerJudged (R31): inside an act, an answer that nothing vouches for
// reaches the server as a cancelled question, on the legacy wire; it never
// becomes evidence (P19).
func TestAnswerJudged(t *testing.T) {
	for _, http := range []bool{false, true} {
		ctx := testContext(t)
		up := newScripted(t, "toy", false)
		up.list("tools/list", askTools)
		answers := asksLegacy(up)
		r := newRig(t, onSQLite(t), policy(t, askPolicy), up.config(http))
		w := r.connect(ctx, 1)
		said := ""
		w.ask = func(method string, params []byte) string {
			if string(params) != question {
				t.Errorf("asked %s", params)
			}
			return said
		}
		up.reply(itemList)
		passed(t, w.call(ctx, "list_items", `{}`))
		for _, said = range []string{
			`{"action":"accept","content":{"id":"item-666"}}`, `{"action":"accept","content":{"id":"item-17"}}`,
			`{"action":"accept"}`, `[]`, `"x"`,
		} {
			up.reply(`"result":{"content":[]}`)
			w.call(ctx, "delete_item", `{"id":"item-17"}`)
			for _, got := range answers() {
				if got != `{"action":"cancel"}` {
					t.Errorf("said %s, the server heard %s", said, got)
				}
			}
		}
		said = `{"action":"accept","content":{"id":"item-666"}}`
		up.reply(`"result":{"content":[]}`)
		passed(t, w.call(ctx, "ask", `{}`))
		if got := answers(); len(got) != 1 || got[0] != said {
			t.Errorf("a read's answer arrived as %q", got)
		}
		refusal(t, w.call(ctx, "delete_item", `{"id":"item-666"}`), unseen)
	}
}

// TestAnswerAsked (R31): an answer inside an act that nothing vouches for is put to who
// watches, whichever wires there are. His yes lets that answer through, in that call; after
// a no the server hears nothing of it.
func TestAnswerAsked(t *testing.T) {
	const said, del = `{"action":"accept","content":{"id":"item-666"}}`, `{"id":"item-17"}`
	for k, kind := range kinds {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprint(kind.name, " ", modern), func(t *testing.T) {
				ctx := testContext(t)
				up := newScripted(t, "toy", modern)
				up.list("tools/list", askTools)
				answers := func() []string { return nil }
				if !modern {
					answers = asksLegacy(up)
				}
				r := newRig(t, onSQLite(t), policy(t, askPolicy), up.config(true))
				r.opts.Approvals = approval.New(time.Now)
				r.restart()
				w := r.connect(ctx, k)
				w.ask = func(string, []byte) string { return said }
				up.reply(itemList)
				passed(t, w.call(ctx, "list_items", `{}`))
				up.take()
				defer r.opts.Approvals.There()()
				for _, yes := range []bool{true, true, false} {
					go func() {
						qs, change := r.opts.Approvals.Open()
						for ; len(qs) == 0; qs, change = r.opts.Approvals.Open() {
							<-change
						}
						if q := qs[0]; string(q.Arguments) != del || !strings.Contains(string(q.Answers), said) || len(q.Values) != 2 || q.Values[1].Reason != writ.PolicyAnswer || q.FromNowOn != nil {
							t.Errorf("asked %+v", q)
						}
						if _, err := r.opts.Approvals.Answer(qs[0].ID, approval.Answer{Yes: yes, By: "kim", Label: writ.User}); err != nil {
							t.Error(err)
						}
					}()
					if modern {
						up.reply(`"result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":` + question + `}},"requestState":"s"}`)
					}
					if modern && yes || !modern {
						up.reply(`"result":{"content":[]}`)
					}
					a := w.call(ctx, "delete_item", del)
					if kind.modern {
						asked, _ := strictjson.Members(get(a.result, "inputRequests"))
						if len(asked) != 1 {
							t.Fatalf("not asked: %s %s", a.result, a.err)
						}
						a = w.request(ctx, "tools/call", `{"name":"delete_item","arguments":`+del+`,"inputResponses":{"`+asked[0].Name+`":`+said+`},"requestState":`+string(get(a.result, "requestState"))+`}`)
					}
					got := up.take()
					switch heard := answers(); {
					case !modern:
						passed(t, a) // the act has begun: its question counts as cancelled after a no
						if want := map[bool]string{true: said, false: `{"action":"cancel"}`}[yes]; len(got) != 1 || len(heard) != 1 || heard[0] != want {
							t.Errorf("%v: %d calls, the server heard %q", yes, len(got), heard)
						}
					case yes:
						passed(t, a)
						if len(got) != 2 || string(get(get(got[1].params, "inputResponses"), "q")) != said {
							t.Errorf("%d calls reached the server: %s", len(got), got[len(got)-1].params)
						}
					default:
						refusal(t, a, "POLICY_VIOLATION approval.refused \"answers:/q/action\" \"answers:/q/content/id\"")
						if len(got) != 1 {
							t.Errorf("%d calls reached the server", len(got))
						}
					}
				}
			})
		}
	}
}

// ask sends a request of the server's own and waits for the answer: the result
// member, or the error.
func (s *scripted) ask(method, params string, tell func(string)) string {
	s.mu.Lock()
	s.nextID++
	id := "\"ask" + string(rune('a'+s.nextID%26)) + "\""
	c := make(chan string, 1)
	s.asks[id] = c
	s.mu.Unlock()
	tell(`{"jsonrpc":"2.0","id":` + id + `,"method":` + method + `,"params":` + params + `}`)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case got := <-c:
		return got
	case <-s.gone:
		return "gone"
	case <-ctx.Done():
		return "no answer"
	}
}
