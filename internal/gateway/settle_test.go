package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestSettle (P04, P28): what a person says, at another process of the store, of an act
// whose outcome is unknown. The gateway that made it goes by that, and nobody says it of
// anything else.
func TestSettle(t *testing.T) {
	gateway.KeepAlways(t)
	ctx := testContext(t)
	st := &brokenStore{Store: onSQLite(t)}
	o := gateway.Options{Store: st, Policy: policy(t, strings.Replace(itemPolicy, "{ effect: write,", "{ effect: write, idempotent: false,", 1))}
	for _, raw := range elements([]byte(itemTools), "tools") {
		o.Tools = append(o.Tools, gate.Definition{Server: "toy", Raw: raw})
	}
	var err error
	if o.Snapshots, err = snapshot.Open(t.TempDir(), []byte("key")); err != nil {
		t.Fatal(err)
	}
	start := func(o gateway.Options) *gateway.Gateway {
		g, err := gateway.New(o)
		if err == nil {
			err = g.Start(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		return g
	}
	g := start(o)
	elsewhere := start(gateway.Options{Store: st, Policy: policy(t, "tools: {}\n")})
	_, id, err := createSession(ctx, g, downstream.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	session, err := g.SessionNamed(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	newest := func() (n uint64) {
		eachRecord(t, st, func(rec *audit.Record, _ *audit.Item) {
			if rec.Session == id && rec.Kind == audit.KindDecision {
				n = rec.N
			}
		})
		return n
	}
	call := func(tool, args, result string, meanwhile func(context.CancelFunc)) (a answer, n uint64) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		reply := g.Call(ctx, session, downstream.Loopback, gate.Call{Server: "toy", Tool: tool, Arguments: strictjson.Of([]byte(args))}, func(ctx context.Context, _ []byte) ([]byte, error) {
			meanwhile(cancel)
			return []byte(result), ctx.Err()
		})
		if a.result = reply.Result; reply.Err != nil {
			a.err = reply.Err.Encode()
		}
		return a, newest()
	}
	list := func() uint64 {
		a, n := call("list_items", `{}`, `{"items":[{"id":"item-17"},{"id":"item-18"}]}`, func(context.CancelFunc) {})
		passed(t, a)
		return n
	}
	item := "item-17"
	act := func(meanwhile func(context.CancelFunc)) (answer, uint64) {
		return call("delete_item", `{"id":"`+item+`"}`, `{}`, meanwhile)
	}
	lose := func(cancel context.CancelFunc) { cancel() }
	unsettled := func() []uint64 {
		u := gateway.Unsettled{}
		eachRecord(t, st, func(rec *audit.Record, _ *audit.Item) { u.Step(rec) })
		return slices.Sorted(maps.Keys(u[id]))
	}
	refuses := func(g *gateway.Gateway, n uint64, happened bool, why string) {
		t.Helper()
		var not *gateway.NotSettledError
		if err := g.Settle(ctx, id, n, happened, "ann"); !errors.As(err, &not) || !strings.Contains(not.Why, why) {
			t.Errorf("%d is settled: %v, want %q", n, err, why)
		}
	}
	settles := func(n uint64, happened bool) {
		t.Helper()
		if err := elsewhere.Settle(ctx, id, n, happened, "ann"); err != nil {
			t.Errorf("%d: %v", n, err)
		}
	}
	const repeated = `POLICY_VIOLATION policy.repeated ""`
	told := func(a answer, want string) {
		t.Helper()
		refusal(t, a, repeated)
		if out := string(outcomeOf(a)); !strings.Contains(out, want) {
			t.Errorf("%s does not say %q", out, want)
		}
	}

	read := list()
	var during uint64
	a, lost := act(func(cancel context.CancelFunc) {
		during = newest()
		refuses(g, during, false, gateway.WhyUnderWay)
		if !g.UnderWay(id, during) || elsewhere.UnderWay(id, during) {
			t.Error("it is not known where it is under way")
		}
		cancel()
	})
	if a.err == nil || during != lost || g.UnderWay(id, lost) {
		t.Errorf("the outcome is known: %s", a.result)
	}
	a, again := act(lose)
	told(a, "writ audit settle")
	if got := unsettled(); !slices.Equal(got, []uint64{lost}) {
		t.Errorf("unsettled: %d", got)
	}
	refuses(elsewhere, read, true, "was a read")
	refuses(elsewhere, again, false, "was refused")
	refuses(elsewhere, lost+1, false, "of kind result")
	refuses(elsewhere, 1, false, "of kind open")
	refuses(elsewhere, 4000, false, "no such record")
	settles(lost, false)
	refuses(elsewhere, lost, false, "said already: it did not happen")
	refuses(g, lost, true, "said already: it did not happen")

	// Once more, and that one is answered.
	a, done := act(func(context.CancelFunc) {})
	passed(t, a)
	a, _ = act(lose)
	refusal(t, a, repeated)
	refuses(elsewhere, done, false, "the call ended ok")
	if got := unsettled(); got != nil {
		t.Errorf("unsettled: %d", got)
	}

	// What happened stays done, after a restart of all of it too.
	list()
	_, lost = act(lose)
	settles(lost, true)
	a, _ = act(lose)
	told(a, "a person confirmed that it happened")
	if _, err := g.Kept(ctx); err != nil {
		t.Error(err)
	}
	g.Close()
	g = start(o)
	if session, err = g.SessionNamed(ctx, id); err != nil {
		t.Fatal(err)
	}
	a, _ = act(lose)
	told(a, "a person confirmed that it happened")

	// A read does not tell. Of another act no result is on record, and nobody waits for one.
	list()
	a, _ = act(lose)
	told(a, "a person confirmed that it happened")
	item = "item-18"
	a, lost = act(func(context.CancelFunc) {
		st.failWhen(func(_ string, es []audit.Entry) bool { return kindOf(t, es[0]) == audit.KindResult })
	})
	st.failWhen(nil)
	if a.err == nil {
		t.Errorf("its result could not be recorded: %s", a.result)
	}
	a, _ = act(lose)
	told(a, "writ audit settle")
	settles(lost, false)
	a, _ = act(func(context.CancelFunc) {})
	passed(t, a)

	if _, err := g.Kept(ctx); err != nil {
		t.Error(err)
	}
	list() // while one snapshot is written no other is begun
	if n, err := g.Kept(ctx); n == 0 || err != nil {
		t.Errorf("%d sessions go on from a snapshot: %v", n, err)
	}
	if err := g.CloseSession(ctx, session); err != nil {
		t.Fatal(err)
	}
	refuses(elsewhere, lost, true, "session is over")
}

// TestSettleAnswered (P28): an act during which its client answered the server is one act: its
// result is on record, and nothing of it is to be settled, before and after a restart.
func TestSettleAnswered(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", false)
	up.list("tools/list", askTools)
	asksLegacy(up)
	r := newRig(t, onSQLite(t), policy(t, askPolicy), up.config(true))
	r.opts.Approvals = approval.New(time.Now)
	r.restart()
	w := r.connect(ctx, 0)
	w.ask = func(string, []byte) string { return `{"action":"accept","content":{"id":"item-666"}}` }
	up.reply(itemList)
	passed(t, w.call(ctx, "list_items", `{}`))
	defer r.opts.Approvals.There()()
	go func() {
		qs, change := r.opts.Approvals.Open()
		for ; len(qs) == 0; qs, change = r.opts.Approvals.Open() {
			<-change
		}
		r.opts.Approvals.Answer(qs[0].ID, approval.Answer{Yes: true, By: "kim", Label: writ.User})
	}()
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
	u, first, id := gateway.Unsettled{}, uint64(0), ""
	eachRecord(t, r.store, func(rec *audit.Record, _ *audit.Item) {
		u.Step(rec)
		if rec.Kind == audit.KindDecision && first == 0 && bytes.Contains(rec.Data, []byte(`"delete_item"`)) {
			first, id = rec.N, rec.Session
		}
	})
	if first == 0 || len(u[id]) != 0 {
		t.Fatalf("decision %d; to be settled: %v", first, u)
	}
	for range 2 {
		var none *gateway.NotSettledError
		if r.gw.UnderWay(id, first) || !errors.As(r.gw.Settle(ctx, id, first, false, "ann"), &none) || !strings.Contains(none.Why, "went on by decision") {
			t.Errorf("the first decision is under way, or is settled: %v", none)
		}
		r.restart()
	}
}

// TestSettleGivenUp (P28): a call of a client's own that is given up, for too many wait, is not
// under way any more.
func TestSettleGivenUp(t *testing.T) {
	ctx := testContext(t)
	h := newHosted(t, onSQLite(t))
	h.before("r", "Read", `{"file_path":"/proj/a.go"}`, "pass")
	if _, err := h.after("r", "Read", `{"file_path":"/proj/a.go"}`, "/proj/a.go"); err != nil {
		t.Fatal(err)
	}
	h.before("b0", "Edit", edit, "pass")
	u := gateway.Unsettled{}
	eachRecord(t, h.store, func(rec *audit.Record, _ *audit.Item) { u.Step(rec) })
	id, n := "", uint64(0)
	for s, acts := range u {
		for act := range acts {
			id, n = s, act
		}
	}
	if n == 0 || !h.gw.UnderWay(id, n) {
		t.Fatalf("%v: it is not under way", u)
	}
	for i := range 1002 {
		h.before(fmt.Sprint("c", i), "Bash", `{"command":"ls"}`, "pass")
	}
	if h.gw.UnderWay(id, n) {
		t.Error("it is under way")
	}
	if err := h.gw.Settle(ctx, id, n, false, "ann"); err != nil {
		t.Error(err)
	}
}
