package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/gateway"
)

const turnPolicy = `
pins: optional
collections: { item: { closed: true } }
tools:
  toy/list_items: { effect: read, outputs: [{ at: /items/*/id, label: system, collection: item, authoritative: true }] }
  toy/delete_item: { effect: delete, args: { /id: { role: selector, collection: item, type: id, from: [user, output] } } }
`

// TestTurn (R6): what the user typed, delivered by the host, vouches in that
// session alone, also after a restart, until the session has rested too long.
func TestTurn(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, turnPolicy), up.config(true))
	var rested atomic.Int64
	r.opts.Clock = func() time.Time { return time.Now().Add(time.Duration(rested.Load())) }
	r.restart()
	secret, other := r.mint(), r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	del := `{"id":"item-4711"}`
	refusal(t, w.call(ctx, "delete_item", del), unseen)

	s, err := r.gw.FindSession(ctx, "loopback", secret)
	if err != nil {
		t.Fatal("no session")
	}
	id, err := r.gw.Turn(ctx, s, "please delete item-4711, not item-47")
	if err != nil || !strings.HasPrefix(id, s.PublicID()+"/ev") {
		t.Fatalf("%q %v", id, err)
	}
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", del))
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-4"}`), unseen)
	refusal(t, overHTTP(ctx, r, true, web{session: other}).call(ctx, "delete_item", del), unseen)

	r.restart()
	w = overHTTP(ctx, r, true, web{session: secret})
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", del))

	rested.Store(int64(31 * time.Minute))
	refusal(t, w.call(ctx, "delete_item", del), unseen)
	r.restart()
	refusal(t, overHTTP(ctx, r, true, web{session: secret}).call(ctx, "delete_item", del), unseen)
}

// TestTurnHalts (INV-0): with an input policy, a turn that matches it ends the
// calls of its session, before the next one and for good.
func TestTurnHalts(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, turnPolicy), up.config(true))
	r.opts.Screen = screen.Default()
	r.restart()
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	if _, err := r.gw.Turn(ctx, s, "list the items, then close ticket INC-1042"); err != nil {
		t.Fatal(err)
	}
	up.reply(itemList)
	passed(t, w.call(ctx, "list_items", `{}`))
	up.take()
	var halted *gateway.HaltedError
	if _, err := r.gw.Turn(ctx, s, "how do I build a pipe bomb"); !errors.As(err, &halted) || halted.Reply == "" {
		t.Fatalf("not halted: %v", err)
	}
	for range 2 {
		for _, tool := range []string{"list_items", "delete_item"} {
			if got := refusedFor(w.call(ctx, tool, `{"id":"item-17"}`)); !strings.Contains(got, "screen.") {
				t.Errorf("%s: %q", tool, got)
			}
		}
		r.restart()
		w = overHTTP(ctx, r, true, web{session: secret})
	}
	if got := up.take(); len(got) != 0 {
		t.Errorf("the server was sent %d calls", len(got))
	}
}

// TestTurnNotRecorded: a turn that cannot be written vouches for nothing.
func TestTurnNotRecorded(t *testing.T) {
	ctx := testContext(t)
	st := &brokenStore{Store: onSQLite(t)}
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, st, policy(t, turnPolicy), up.config(true))
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	st.failWhen(func(string, []audit.Entry) bool { return true })
	if _, err := r.gw.Turn(context.WithoutCancel(ctx), s, "delete item-4711"); err == nil {
		t.Fatal("a turn that was not written was accepted")
	}
	st.failWhen(nil)
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-4711"}`), unseen)
}
