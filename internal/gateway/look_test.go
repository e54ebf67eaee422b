package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/strictjson"
)

const (
	filePolicy = `
pins: optional
collections: { file: { closed: true } }
tools:
  toy/names:
    effect: read
    outputs: [{ in: text, extract: lines, pattern: '^(.+)$', join: /in, label: system, type: path, collection: file, authoritative: true }]
  toy/write: { effect: write, args: { /path: { role: target, type: path, collection: file, from: [user, output, derived: fresh], extensions: [.md] } } }
`
	fileTools = `{"tools":[{"name":"names","inputSchema":{"type":"object","properties":{"in":{"type":"string"}},"required":["in"]}},` +
		`{"name":"write","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]}`
	fileNames = `"result":{"content":[{"type":"text","text":"old.md\nsub"}]}`
)

// TestLooks (R36): an act under a new name passes where nobody listed the directory, for
// the gateway lists it by itself, on record; the client is shown none of it, and what was
// there stays refused. A list that fails, or does not come, changes nothing.
func TestLooks(t *testing.T) {
	eachServer(t, func(t *testing.T, modern, http bool) {
		ctx := testContext(t)
		up := newScripted(t, "toy", modern)
		up.list("tools/list", fileTools)
		r := newRig(t, onSQLite(t), policy(t, filePolicy), brief(up, http))
		secret := r.mint()
		w := overHTTP(ctx, r, true, web{session: secret})
		s, err := r.gw.FindSession(ctx, "loopback", secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.gw.Turn(ctx, s, "write a new page, and an old one"); err != nil {
			t.Fatal(err)
		}
		up.awaitStream(ctx)
		sent := func(want ...string) {
			t.Helper()
			got := up.take()
			for i, g := range got {
				if i >= len(want) || text(g.params, "name")+" "+string(get(g.params, "arguments")) != want[i] {
					t.Errorf("the server was sent %s", g.params)
				}
			}
			if len(got) != len(want) {
				t.Errorf("the server was sent %d calls, want %d", len(got), len(want))
			}
		}
		up.reply(fileNames)
		up.reply(`"result":{"content":[{"type":"text","text":"written"}]}`)
		a := w.call(ctx, "write", `{"path":"/srv/new page.md"}`)
		passed(t, a)
		if strings.Contains(string(a.result), "old.md") {
			t.Errorf("the client was shown %s", a.result)
		}
		sent(`names {"in":"/srv"}`, `write {"path":"/srv/new page.md"}`)
		if n := count(t, r.store, audit.KindDecision); n != 2 {
			t.Errorf("%d decisions", n)
		}
		looks := 0
		rules := gateway.NewRulesets(r.store)
		eachRecord(t, r.store, func(rec *audit.Record, it *audit.Item) {
			if rec.Kind == audit.KindDecision {
				d, err := rules.Decision(ctx, rec, it)
				if err != nil || d.Look != (d.Tool == "names") {
					t.Errorf("%+v %v", d, err)
				} else if d.Look {
					looks++
				}
			}
		})
		if looks != 1 {
			t.Errorf("%d looks are on record", looks)
		}
		// What was there, and once it is known nothing is read again; not after a restart.
		refusal(t, w.call(ctx, "write", `{"path":"/srv/old.md"}`), unseenPath)
		r.restart()
		w = overHTTP(ctx, r, true, web{session: secret})
		refusal(t, w.call(ctx, "write", `{"path":"/srv/old.md"}`), unseenPath)
		sent()
		// A list that fails.
		up.reply(`"error":{"code":-32603,"message":"no such directory"}`)
		refusal(t, w.call(ctx, "write", `{"path":"/gone/new page.md"}`), unseenPath)
		sent(`names {"in":"/gone"}`)
		// One that does not come is not waited for long.
		t.Cleanup(up.leave)
		up.during = func(received, func(string)) { <-up.gone }
		refusal(t, w.call(ctx, "write", `{"path":"/slow/new page.md"}`), unseenPath)
		sent(`names {"in":"/slow"}`)
	})
}

// TestLooksAtOnce (R36): of acts under one new name that come at once one passes, though each
// is looked for; and the client's own list of the directory that comes meanwhile counts as its own.
func TestLooksAtOnce(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", fileTools)
	r := newRig(t, onSQLite(t), policy(t, filePolicy), up.config(true))
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	if _, err := r.gw.Turn(ctx, s, "write a new page"); err != nil {
		t.Fatal(err)
	}
	for range 9 { // lists and acts get the same answer: whichever comes first
		up.reply(fileNames)
	}
	together := make(chan struct{})
	looks := make(chan bool, 9)
	up.during = func(of received, _ func(string)) {
		if text(of.params, "name") == "names" {
			if looks <- true; len(looks) == 3 {
				close(together)
			}
			<-together
		}
	}
	answers := make(chan answer, 3)
	for _, call := range [][2]string{{"write", `{"path":"/srv/new page.md"}`}, {"write", `{"path":"/srv/new page.md"}`}, {"names", `{"in":"/srv"}`}} {
		go func() { answers <- w.call(ctx, call[0], call[1]) }()
	}
	refused := 0
	for range 3 {
		if a := <-answers; strings.Contains(string(a.result), `"isError":true`) {
			refusal(t, a, unseenPath)
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d of two acts under one name were refused", refused)
	}
	passed(t, w.call(ctx, "write", `{"path":"/srv/old.md"}`)) // the client was shown it
}

// TestLooksAreNotCaptured (R35): what Writ read for itself is nothing that the memory could
// be told the session saw, after a restart either; the agent's own list of it is.
func TestLooksAreNotCaptured(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", fileTools)
	r := newRig(t, onSQLite(t), policy(t, filePolicy), up.config(true))
	r.opts.Inside = &capturer{capture: func(ctx context.Context, by gateway.Caller, _ []byte) string {
		_, ok, err := by.Capture(ctx, 0, "old.md")
		seen, err2 := by.Sightings(ctx, 9)
		out := fmt.Sprint(ok, err, err2)
		for _, s := range seen {
			out += " " + s.Tool
		}
		return out
	}}
	r.restart()
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	if _, err := r.gw.Turn(ctx, s, "write a new page"); err != nil {
		t.Fatal(err)
	}
	want := func(want string) {
		t.Helper()
		a := w.call(ctx, "record_observation", `{"payload":{}}`)
		if got := text(strictjson.Get(a.result, "structuredContent"), "said"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	up.reply(fileNames)
	up.reply(`"result":{"content":[{"type":"text","text":"written"}]}`)
	passed(t, w.call(ctx, "write", `{"path":"/srv/new page.md"}`))
	want("false <nil> <nil> write ")
	r.restart()
	w = overHTTP(ctx, r, true, web{session: secret})
	want("false <nil> <nil> write ")
	up.reply(fileNames)
	passed(t, w.call(ctx, "names", `{"in":"/srv"}`))
	want("true <nil> <nil> names write ")
}

const unseenPath = `MISSING_PROVENANCE provenance.unseen "/path"`
