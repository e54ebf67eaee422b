package gateway_test

import (
	"testing"
)

// TestReload: another policy is in force for the next call, in the sessions there
// are, and the log says of each decision by which it was made.
func TestReload(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, turnPolicy), up.config(true))
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	up.reply(itemList)
	passed(t, w.call(ctx, "list_items", `{}`))
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-1"}`), unseen)

	closed := policy(t, `
pins: optional
collections: { item: { closed: true } }
tools:
  toy/list_items: { effect: read, outputs: [{ at: /items/*/id, label: system, collection: item, authoritative: true }] }
  toy/delete_item: { effect: delete, closed: true, args: { /id: { role: selector, collection: item, type: id, from: [user, output] } } }
`)
	if err := r.gw.Reload(ctx, closed, nil); err != nil {
		t.Fatal(err)
	}
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-1"}`), "INVALID_TOOL_NAME name.unknown \"\"")
	if err := r.gw.Reload(ctx, policy(t, turnPolicy), nil); err != nil {
		t.Fatal(err)
	}
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	if _, err := r.gw.Turn(ctx, s, "delete item-1"); err != nil {
		t.Fatal(err)
	}
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", `{"id":"item-1"}`))
}
