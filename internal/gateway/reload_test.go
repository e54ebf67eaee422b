package gateway_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/upstream"
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
	if _, err := r.gw.Reload(ctx, gateway.Setup{Policy: closed, Servers: r.opts.Servers}); err != nil {
		t.Fatal(err)
	}
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-1"}`), "INVALID_TOOL_NAME name.unknown \"\"")
	if _, err := r.gw.Reload(ctx, gateway.Setup{Policy: policy(t, turnPolicy), Servers: r.opts.Servers}); err != nil {
		t.Fatal(err)
	}
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	if _, err := r.gw.Turn(ctx, s, "delete item-1"); err != nil {
		t.Fatal(err)
	}
	up.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", `{"id":"item-1"}`))
}

const twoPolicy = itemPolicy + `
  box/list_boxes: { effect: read, optional: true, outputs: [{ at: /items/*/id, label: system, collection: item, authoritative: true }] }
`

// TestReloadServers: a server that is new starts, one to be started otherwise is
// started anew, one that is no more ends, each after the calls that run there; the
// others keep their process, and sessions their evidence. Where one of them does not
// answer nothing changes at all (C03).
func TestReloadServers(t *testing.T) {
	ctx := testContext(t)
	toy, box := newScripted(t, "toy", false), newScripted(t, "box", true)
	toy.list("tools/list", itemTools)
	box.list("tools/list", strings.NewReplacer("list_items", "list_boxes", "delete_item", "drop_box").Replace(itemTools))
	r := newRig(t, onSQLite(t), policy(t, twoPolicy), toy.config(false))
	was := r.opts.Servers[0]
	w := r.connect(ctx, 0)
	reload := func(servers ...upstream.Config) (string, error) {
		did, err := r.gw.Reload(ctx, gateway.Setup{Policy: policy(t, twoPolicy), Servers: servers})
		return fmt.Sprint(did.Started, did.Restarted, did.Ended), err
	}
	is := func(got string, err error, want string) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s %v, want %s", got, err, want)
		}
	}
	act := func() {
		t.Helper()
		toy.reply(`"result":{"content":[]}`)
		passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
	}
	toy.reply(itemList)
	passed(t, w.call(ctx, "list_items", `{}`))
	act()

	// One is new, the other is as it was.
	boxes := box.config(false)
	got, err := reload(was, boxes)
	is(got, err, "[box] [] []")
	w.await(ctx, "notifications/tools/list_changed")
	box.reply(itemList)
	passed(t, w.call(ctx, "list_boxes", `{}`))
	act()
	if len(toy.ended) != 0 || toy.listed("tools/list") != 1 {
		t.Errorf("a server that is as it was ended %d times and was listed %d times", len(toy.ended), toy.listed("tools/list"))
	}

	// What is broken changes nothing, whatever else there is.
	other := was
	other.Limits.Call = 20 * time.Second
	for what, broken := range map[string][]upstream.Config{
		"no such program":   {other, {Name: "box", Command: []string{"/nonexistent/program"}}},
		"ends at once":      {other, {Name: "box", Command: []string{"/bin/false"}}},
		"twice one name":    {was, boxes, boxes},
		"Writ's own name":   {was, {Name: "writ", Command: boxes.Command}},
		"nothing to run":    {was, {Name: "box"}},
		"nobody is at home": {{Name: "toy", URL: "http://127.0.0.1:1/mcp"}},
	} {
		if did, err := reload(broken...); err == nil {
			t.Errorf("%s: %s", what, did)
		}
		act()
		box.reply(itemList)
		passed(t, w.call(ctx, "list_boxes", `{}`))
	}
	<-toy.ended // one was tried beside a broken one
	<-toy.ended

	// A call that runs ends where it began, as evidence, and its server after it.
	begun, goOn := make(chan struct{}), make(chan struct{})
	toy.mu.Lock()
	toy.during = func(received, func(string)) {
		close(begun)
		<-goOn
		toy.answerWith(strings.Replace(itemList, "item-17", "item-18", 1))
	}
	toy.mu.Unlock()
	list := make(chan answer, 1)
	go func() { list <- w.call(ctx, "list_items", `{}`) }()
	<-begun
	toy.mu.Lock()
	toy.during = nil
	toy.mu.Unlock()
	got, err = reload(other, boxes)
	is(got, err, "[] [toy] []")
	act()
	if len(toy.ended) != 0 {
		t.Error("it ended under a call")
	}
	close(goOn)
	passed(t, <-list)
	<-toy.ended
	toy.reply(`"result":{"content":[]}`)
	passed(t, w.call(ctx, "delete_item", `{"id":"item-18"}`))

	// One is no more.
	got, err = reload(boxes)
	is(got, err, "[] [] [toy]")
	<-toy.ended
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-17"}`), `INVALID_TOOL_NAME name.unknown ""`)
	got, err = reload(was)
	is(got, err, "[toy] [] [box]")
	<-box.ended
	act()
}

// TestReloadUnderCalls: calls and reloads at the same time lose none but what is told (C02).
func TestReloadUnderCalls(t *testing.T) {
	ctx := testContext(t)
	toy := newScripted(t, "toy", true)
	toy.list("tools/list", itemTools)
	toy.during = func(received, func(string)) { toy.answerWith(itemList) }
	r := newRig(t, onMaps(t), policy(t, itemPolicy), toy.config(true))
	configs := []upstream.Config{r.opts.Servers[0], r.opts.Servers[0]}
	configs[1].Limits.Call = 20 * time.Second
	w := r.connect(ctx, 2)
	over := make(chan struct{})
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if a := w.call(ctx, "list_items", `{}`); a.err != nil && !strings.Contains(string(a.err), "name.unlisted") {
					t.Errorf("%s", a.err)
				}
			}
		})
	}
	for i := range 20 {
		if _, err := r.gw.Reload(ctx, gateway.Setup{Policy: policy(t, itemPolicy), Servers: configs[i%2 : i%2+1]}); err != nil {
			t.Error(err)
		}
	}
	close(over)
	calls.Wait()
}
