package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/upstream"
)

const (
	unlisted    = `INVALID_TOOL_NAME name.unlisted ""`
	unknownName = `INVALID_TOOL_NAME name.unknown ""`
	listChanged = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
)

// mute is a scripted server whose tools/list can be held back.
type mute struct {
	*scripted
	asked   chan struct{} // a list was asked for, and is held back
	answers chan struct{} // closed: lists are answered
}

// muted holds back each tools/list from now on, until speak.
func muted(up *scripted) *mute {
	m := &mute{scripted: up, asked: make(chan struct{}, 100), answers: make(chan struct{})}
	hook := func(method string) {
		if method != "tools/list" {
			return
		}
		select {
		case m.asked <- struct{}{}:
		default:
		}
		select {
		case <-m.answers:
		case <-up.gone:
		}
	}
	up.mu.Lock()
	up.listing = hook
	up.mu.Unlock()
	up.tb.Cleanup(m.speak)
	return m
}

func (m *mute) speak() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.answers:
	default:
		close(m.answers)
	}
}

// eachServer runs a test with a server of each wire and transport.
func eachServer(t *testing.T, test func(t *testing.T, modern, http bool)) {
	for v := range 4 {
		modern, http := v&1 == 1, v&2 == 2
		t.Run(pick(modern, "modern", "legacy")+"-"+pick(http, "http", "stdio"), func(t *testing.T) { test(t, modern, http) })
	}
}

// brief is a scripted server's configuration in which calls do not wait long
// for lists.
func brief(up *scripted, http bool) upstream.Config {
	c := up.config(http)
	c.Limits.Relist = 20 * time.Millisecond
	return c
}

// noneSent fails when a tools/call reached the server.
func noneSent(t *testing.T, up *scripted) {
	t.Helper()
	for _, g := range up.take() {
		if g.method == "tools/call" {
			t.Errorf("the server was sent %s", g.params)
		}
	}
}

// eventually makes a call until it passes.
func eventually(ctx context.Context, t *testing.T, w *wire, tool, args string) {
	t.Helper()
	a := w.call(ctx, tool, args)
	for refusedFor(a) == unlisted && ctx.Err() == nil {
		a = w.call(ctx, tool, args)
	}
	passed(t, a)
}

// TestChangedTool is N10 and N27: from the moment a server says that its lists
// changed, of whatever kind, nothing judged reaches it until it has listed them;
// one that never does so has closed its tools, with a reason. When it lists what
// it did before, they are open again.
func TestChangedTool(t *testing.T) {
	eachServer(t, func(t *testing.T, modern, http bool) {
		for _, kind := range []string{"tools", "prompts", "resources"} {
			ctx := testContext(t)
			up := newScripted(t, "toy", modern)
			up.list("tools/list", itemTools)
			up.list("prompts/list", `{"prompts":[]}`)
			up.list("resources/list", `{"resources":[]}`)
			up.list("resources/templates/list", `{"resourceTemplates":[]}`)
			r := newRig(t, onMaps(t), policy(t, itemPolicy), brief(up, http))
			w := r.connect(ctx, 1)
			up.awaitStream(ctx)
			up.reply(itemList)
			eventually(ctx, t, w, "list_items", `{}`)
			up.reply(`"result":{"content":[]}`)
			passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
			up.take()

			m := muted(up)
			up.tell(strings.Replace(listChanged, "tools", kind, 1))
			up.heard()
			for range 3 {
				a := w.call(ctx, "delete_item", `{"id":"item-17"}`)
				refusal(t, a, unlisted)
				checkRefusal(t, a)
				refusal(t, w.call(ctx, "list_items", `{}`), unlisted)
			}
			noneSent(t, up)
			if !strings.Contains(r.log.String(), "does not list them") {
				t.Error("the operator is told nothing")
			}
			m.speak()
			up.reply(`"result":{"content":[]}`)
			eventually(ctx, t, w, "delete_item", `{"id":"item-17"}`)
		}
	})
}

// TestRelistFails is N27 for a server that answers with an error: what it listed
// stays in sight and is closed, and open again as soon as it lists.
func TestRelistFails(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", false)
	up.list("tools/list", itemTools)
	r := newRig(t, onMaps(t), policy(t, itemPolicy), up.config(false))
	w := r.connect(ctx, 0)
	up.reply(itemList)
	passed(t, w.call(ctx, "list_items", `{}`))
	up.list("tools/list", `{"tools":"\u001b[31mnone"}`)
	up.during = func(_ received, tell func(string)) { tell(listChanged) }
	up.reply(itemList)
	a := w.call(ctx, "list_items", `{}`)
	if why := text(get(a.result, "_meta"), gateway.MetaEvidence, "why"); why != "changed" && why != "" {
		t.Errorf("evidence: %s", a.result)
	}
	up.during = nil
	up.list("tools/list", itemTools)
	up.reply(itemList)
	for a = w.call(ctx, "list_items", `{}`); a.err != nil || refusedFor(a) != ""; a = w.call(ctx, "list_items", `{}`) {
		if ctx.Err() != nil {
			t.Fatalf("closed for good: %s %s", a.result, a.err)
		}
		up.tell(listChanged)
	}
}

// TestDecidedBeforeChange is N12: a call that was decided before the server said
// that its lists changed, and would leave after, is held back. If the definition
// is another then, it does not happen; if it is the same, it does, once, on the
// decision that was made.
func TestDecidedBeforeChange(t *testing.T) {
	changed := strings.Replace(itemTools, `"id":{"type":"string"}`, `"id":{"type":"string"},"note":{"type":"string"}`, 1)
	eachServer(t, func(t *testing.T, modern, http bool) {
		for _, list := range []string{changed, itemTools} {
			ctx := testContext(t)
			up := newScripted(t, "toy", modern)
			up.list("tools/list", itemTools)
			st := &hookedStore{Store: onMaps(t)}
			r := newRig(t, st, policy(t, itemPolicy), up.config(http))
			w := r.connect(ctx, 0)
			up.awaitStream(ctx)
			up.reply(itemList)
			passed(t, w.call(ctx, "list_items", `{}`))
			up.take()
			m := muted(up)
			var once sync.Once
			st.hook(func(es []audit.Entry) {
				if slices.ContainsFunc(es, func(e audit.Entry) bool { return kindOf(t, e) == audit.KindDecision }) {
					once.Do(func() {
						up.list("tools/list", list)
						up.tell(listChanged)
						up.heard()
						m.speak()
					})
				}
			})
			up.reply(`"result":{"content":[]}`)
			a := w.call(ctx, "delete_item", `{"id":"item-17"}`)
			if list == changed {
				refusal(t, a, unlisted)
				noneSent(t, up)
				continue
			}
			passed(t, a)
			if got := up.take(); len(got) != 1 {
				t.Errorf("%d calls reached the server", len(got))
			}
			if n := count(t, st, audit.KindDecision); n != 2 {
				t.Errorf("%d decisions", n)
			}
		}
	})
}

// hookedStore runs a function inside each append that waits for the disk.
type hookedStore struct {
	gateway.Store
	mu sync.Mutex
	f  func([]audit.Entry)
}

func (s *hookedStore) hook(f func([]audit.Entry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f = f
}

func (s *hookedStore) Append(ctx context.Context, session string, expected uint64, es []audit.Entry) (int64, error) {
	first, err := s.Store.Append(ctx, session, expected, es)
	s.mu.Lock()
	f := s.f
	s.mu.Unlock()
	if err == nil && f != nil {
		f(es)
	}
	return first, err
}

// TestReadUnderChange is N11: a result that comes after its server said that its
// lists changed vouches if the definition is still the one the call was judged
// by, and for nothing if it is not, or if the server does not say.
func TestReadUnderChange(t *testing.T) {
	changed := strings.Replace(itemTools, `{"name":"list_items",`, `{"name":"list_items","description":"what strangers wrote",`, 1)
	eachServer(t, func(t *testing.T, modern, http bool) {
		for what, want := range map[string]string{"same": "", "changed": "changed", "mute": "changed"} {
			ctx := testContext(t)
			up := newScripted(t, "toy", modern)
			up.list("tools/list", itemTools)
			c := up.config(http)
			if what == "mute" {
				c = brief(up, http)
			}
			r := newRig(t, onSQLite(t), policy(t, itemPolicy), c)
			w := r.connect(ctx, 0)
			up.awaitStream(ctx)
			up.reply(itemList)
			eventually(ctx, t, w, "list_items", `{}`)
			m := muted(up)
			up.during = func(received, func(string)) {
				if what == "changed" {
					up.list("tools/list", changed)
				}
				for range 50 { // changes come in bursts
					up.tell(listChanged)
				}
				up.heard()
				if what != "mute" {
					m.speak()
				}
			}
			up.reply(strings.Replace(itemList, "item-17", "item-18", 1))
			a := w.call(ctx, "list_items", `{}`)
			passed(t, a)
			up.during = nil
			ev := get(get(a.result, "_meta"), gateway.MetaEvidence)
			if why := text(ev, "why"); why != want || text(ev, "admissible") != fmt.Sprint(want == "") {
				t.Errorf("%s: evidence %s", what, ev)
			}
			m.speak()
			if want != "" {
				a := w.call(ctx, "delete_item", `{"id":"item-18"}`)
				for refusedFor(a) == unlisted && ctx.Err() == nil {
					a = w.call(ctx, "delete_item", `{"id":"item-18"}`)
				}
				refusal(t, a, unseen)
				continue
			}
			up.reply(`"result":{"content":[]}`)
			passed(t, w.call(ctx, "delete_item", `{"id":"item-18"}`))
		}
	})
}

// TestRestartedServer is N13: a child that ends and comes back is closed until
// it has listed its tools again.
func TestRestartedServer(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", false)
	up.list("tools/list", itemTools)
	r := newRig(t, onMaps(t), policy(t, itemPolicy), brief(up, false))
	w := r.connect(ctx, 1)
	up.reply(itemList)
	passed(t, w.call(ctx, "list_items", `{}`))
	up.take()
	m := muted(up)
	up.mu.Lock()
	for c := range up.conns {
		c.Close()
	}
	up.mu.Unlock()
	<-m.asked // it is back
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-17"}`), unlisted)
	noneSent(t, up)
	up.list("tools/list", strings.Replace(itemTools, "delete_item", "delete_all", 1))
	m.speak()
	for a := w.call(ctx, "delete_item", `{"id":"item-17"}`); ; a = w.call(ctx, "delete_item", `{"id":"item-17"}`) {
		if refusedFor(a) == unknownName {
			break
		}
		if refusedFor(a) != unlisted || ctx.Err() != nil {
			t.Fatalf("got %s %s", a.result, a.err)
		}
	}
	noneSent(t, up)
}

// TestAnswerAfterChange is N26: an answer given inside a call whose server said
// meanwhile that its lists changed is held back like the call.
func TestAnswerAfterChange(t *testing.T) {
	for _, http := range []bool{false, true} {
		ctx := testContext(t)
		up := newScripted(t, "toy", false)
		up.list("tools/list", askTools)
		answers := asksLegacy(up)
		r := newRig(t, onMaps(t), policy(t, askPolicy), brief(up, http))
		w := r.connect(ctx, 1)
		up.awaitStream(ctx)
		up.reply(itemList)
		eventually(ctx, t, w, "list_items", `{}`)
		m := muted(up)
		change := func() {
			up.tell(listChanged)
			up.heard()
		}
		w.ask = func(string, []byte) string {
			change()
			return `{"action":"accept","content":{"id":"item-666"}}`
		}
		up.reply(`"result":{"content":[]}`)
		passed(t, w.call(ctx, "ask", `{}`))
		if got := answers(); len(got) != 1 || strings.Contains(got[0], "item-666") {
			t.Errorf("the server was answered %s", got)
		}
		m.speak()
	}
}

// TestLogsOfOthers is N14: a log message that came on no call's own stream
// reaches the one session that ever called the server, and nobody once there are
// several. The record counts it.
func TestLogsOfOthers(t *testing.T) {
	for _, http := range []bool{false, true} {
		ctx := testContext(t)
		up := newScripted(t, "toy", false)
		up.list("tools/list", itemTools)
		up.list("resources/list", `{"resources":[{"uri":"x:///r","name":"r"}]}`)
		up.list("resources/templates/list", `{"resourceTemplates":[]}`)
		r := newRig(t, onMaps(t), policy(t, itemPolicy), up.config(http))
		a, b := r.connect(ctx, 0), r.connect(ctx, 0)
		up.awaitStream(ctx)
		say := func(what string) {
			up.tell(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"` + what + `"}}`)
		}
		up.reply(itemList)
		eventually(ctx, t, a, "list_items", `{}`)
		say("of a alone")
		if n := a.await(ctx, "notifications/message"); !strings.Contains(string(n.params), "of a alone") {
			t.Errorf("a heard %s", n.params)
		}
		for _, w := range []*wire{a, b} {
			if l := w.request(ctx, "resources/list", ""); l.err != nil {
				t.Fatalf("resources/list: %s", l.err)
			}
			up.reply(`"result":{}`)
			if s := w.request(ctx, "resources/subscribe", `{"uri":"x:///r"}`); s.err != nil {
				t.Fatalf("subscribe: %s", s.err)
			}
		}
		say("of a or b")
		up.tell(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:///r"}}`)
		for _, w := range []*wire{a, b} {
			w.await(ctx, "notifications/resources/updated") // what was said before has come
		}
		if n := a.heard("notifications/message"); n != 1 {
			t.Errorf("a heard %d messages", n)
		}
		if n := b.heard("notifications/message"); n != 0 {
			t.Errorf("b heard %d messages", n)
		}
		r.stop()
		if !events(t, r.store)["stray_notice"] {
			t.Error("the record counts none")
		}
	}
}

// events are the reasons of the event records of a log.
func events(t *testing.T, st gateway.Store) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	eachRecord(t, st, func(rec *audit.Record, _ *audit.Item) {
		if rec.Kind == audit.KindEvent {
			out[text(rec.Data, "why")] = true
		}
	})
	return out
}

// TestUpdatesOfOthers is N15: an update of a resource comes from the server the
// resource is of, and brings nothing but its URI.
func TestUpdatesOfOthers(t *testing.T) {
	ctx := testContext(t)
	up, other := newScripted(t, "toy", false), newScripted(t, "other", false)
	up.list("tools/list", itemTools)
	up.list("resources/list", `{"resources":[{"uri":"x:///r","name":"r"}]}`)
	other.list("tools/list", `{"tools":[]}`)
	other.list("resources/list", `{"resources":[{"uri":"y:///o","name":"o"}]}`)
	for _, s := range []*scripted{up, other} {
		s.list("resources/templates/list", `{"resourceTemplates":[]}`)
	}
	r := newRig(t, onMaps(t), policy(t, itemPolicy), up.config(false), other.config(false))
	w := r.connect(ctx, 0)
	if l := w.request(ctx, "resources/list", ""); l.err != nil {
		t.Fatalf("resources/list: %s", l.err)
	}
	for s, uri := range map[*scripted]string{up: "x:///r", other: "y:///o"} {
		s.reply(`"result":{}`)
		if a := w.request(ctx, "resources/subscribe", `{"uri":"`+uri+`"}`); a.err != nil {
			t.Fatalf("subscribe: %s", a.err)
		}
	}
	for _, uri := range []string{"x:///r", "y:///o"} {
		other.tell(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `","title":"another session's","_meta":{"a":1}}}`)
	}
	if n := w.await(ctx, "notifications/resources/updated"); string(n.params) != `{"uri":"y:///o"}` {
		t.Errorf("the update came as %s", n.params)
	}
}

// TestShadowPasses: under shadow mode every call passes, also one to a server
// that does not list its tools again; what it returns vouches for nothing more
// than ever.
func TestShadowPasses(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", false)
	up.list("tools/list", itemTools)
	r := &rig{tb: t, store: onMaps(t)}
	r.opts = gateway.Options{Store: r.store, Policy: policy(t, itemPolicy), Version: "test", Shadow: true, Servers: []upstream.Config{brief(up, false)}}
	r.start()
	t.Cleanup(r.stop)
	w := r.connect(ctx, 1)
	muted(up)
	up.tell(listChanged)
	up.heard()
	for range 2 {
		up.reply(`"result":{"content":[]}`)
		passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
	}
	if got := up.take(); len(got) != 2 {
		t.Errorf("%d calls reached the server", len(got))
	}
}

// TestNobodysQuestion (N17): requests that carry no session are of nobody and of
// no other: a question that could be either's reaches neither.
func TestNobodysQuestion(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", false)
	up.list("tools/list", askTools)
	r := newRig(t, onMaps(t), policy(t, askPolicy), up.config(false))
	var here, asked sync.WaitGroup // both calls are open from before the first question to after the second
	here.Add(2)
	asked.Add(2)
	heard := make(chan string, 2)
	up.during = func(_ received, tell func(string)) {
		here.Done()
		here.Wait()
		heard <- up.ask(`"elicitation/create"`, question, tell)
		asked.Done()
		asked.Wait()
	}
	answers := make(chan answer, 2)
	for range 2 {
		up.reply(`"result":{"content":[]}`)
		w := overHTTP(ctx, r, true, web{})
		go func() { answers <- w.call(ctx, "ask", `{}`) }()
	}
	for range 2 {
		if got := <-heard; !strings.Contains(got, "no open request") {
			t.Errorf("the question was answered %s", got)
		}
		if a := <-answers; text(a.result, "resultType") == "input_required" {
			t.Errorf("a client was asked: %s", a.result)
		}
	}
}
