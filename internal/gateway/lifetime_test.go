package gateway_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// TestLifetimes: a session ends after a day without use and thirty days in all,
// in memory and after a restart, and an expired one is as unknown as any (S05).
// A clock set back (M08) revives none and makes no decision underivable.
func TestLifetimes(t *testing.T) {
	ctx := testContext(t)
	y := newToy()
	c := &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	r := &rig{tb: t, store: onSQLite(t)}
	r.opts = gateway.Options{Store: r.store, Policy: policy(t, toyPolicy), Version: "test", Clock: c.Now}
	r.opts.Servers = append(r.opts.Servers, y.config(t, true, true))
	r.start()
	t.Cleanup(func() { r.stop() })

	used, idle := r.mint(), r.mint()
	w := overHTTP(ctx, r, true, web{session: used})
	passed(t, w.call(ctx, "list_items", `{}`))
	for day := range 29 {
		c.advance(23 * time.Hour)
		passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
		if day == 3 {
			r.restart()
		}
	}
	if _, err := r.gw.FindSession(ctx, downstream.Loopback, idle); err != downstream.ErrNoSession {
		t.Error("a session nobody used for weeks is open")
	}
	c.advance(-28 * 24 * time.Hour)
	passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
	c.advance(28 * 24 * time.Hour)
	for range 3 {
		c.advance(22 * time.Hour)
		r.gw.FindSession(ctx, downstream.Loopback, used)
	}
	if a := w.call(ctx, "delete_item", `{"id":"item-17"}`); a.err == nil {
		t.Errorf("a session of more than thirty days is open: %s", a.result)
	}
	r.restart()
	if _, err := r.gw.FindSession(ctx, downstream.Loopback, used); err != downstream.ErrNoSession {
		t.Error("a restart revived a session")
	}
}

// TestShadow: under shadow mode everything passes, is marked, and is recorded
// as what it would have been; what it let pass vouches for nothing when the
// gateway enforces again, and an enforcing session goes on enforcing.
func TestShadow(t *testing.T) {
	ctx := testContext(t)
	r, y := toyRig(t, onSQLite(t))
	enforced := overHTTP(ctx, r, true, web{session: r.mint()})
	refusal(t, enforced.call(ctx, "delete_item", `{"id":"item-17"}`), unseen)

	r.stop()
	r.opts.Shadow = true
	r.start()
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	a := w.call(ctx, "delete_item", `{"id":"item-17"}`)
	passed(t, a)
	if got := text(outcomeMeta(a, gateway.MetaShadow), "rejection", "reason"); got != "provenance.unseen" {
		t.Errorf("marked %q: %s", got, a.result)
	}
	passed(t, w.call(ctx, "list_items", `{}`))
	a = w.call(ctx, "delete_item", `{"id":"item-17"}`)
	passed(t, a)
	if got := text(outcomeMeta(a, gateway.MetaShadow), "status"); got != "accepted" {
		t.Errorf("marked %q: %s", got, a.result)
	}
	refusal(t, enforced.call(ctx, "delete_item", `{"id":"item-18"}`), unseen)

	r.stop()
	r.opts.Shadow = false
	r.start()
	if a := w.call(ctx, "delete_item", `{"id":"item-17"}`); refusedFor(a) == "" {
		t.Errorf("what shadow mode saw vouches: %s %s", a.result, a.err)
	}
	if n := len(y.gone()); n != 2 {
		t.Errorf("%d acts", n)
	}
	accepted := 0
	eachRecord(t, r.store, func(rec *audit.Record, _ *audit.Item) {
		if rec.Kind == audit.KindDecision && text(rec.Data, "tool") == "delete_item" && text(rec.Data, "status") == "accepted" && text(rec.Data, "shadow") != "true" {
			accepted++
		}
	})
	if accepted != 0 {
		t.Errorf("%d acts of shadow mode are on record as accepted", accepted)
	}
}

// TestOwnState (R34): an argument that leads into Writ's own state is refused
// as such, also by way of a symbolic link that only the door can follow, and in
// shadow mode.
func TestOwnState(t *testing.T) {
	ctx := testContext(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, files := filepath.Join(dir, "state"), filepath.Join(dir, "files")
	for _, d := range []string{state, files} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(state, filepath.Join(files, "link")); err != nil {
		t.Skip("no symbolic links here")
	}
	for _, shadow := range []bool{false, true} {
		up := newScripted(t, "toy", false)
		up.list("tools/list", `{"tools":[{"name":"put","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}},`+
			`{"name":"rm","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}},{"name":"ls","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]}`)
		r := &rig{tb: t, store: onMaps(t)}
		r.opts = gateway.Options{Store: r.store, Version: "test", Shadow: shadow, OwnPaths: []string{state}, Policy: policy(t, `
pins: optional
collections: { path: { closed: true } }
tools:
  toy/ls: { effect: read, outputs: [{ at: /paths/*, label: system, type: path, collection: path, authoritative: true }] }
  toy/rm: { effect: write, args: { /path: { role: selector, type: path, collection: path, from: [output] } } }
  toy/put: { effect: write, args: { /path: { role: target, type: path, collection: path, from: [output] } } }
`)}
		r.opts.Servers = append(r.opts.Servers, up.config(false))
		r.start()
		t.Cleanup(func() { r.stop() })
		w := r.connect(ctx, 1)
		seen := []string{filepath.Join(state, "audit.db"), state, dir, filepath.Join(files, "link", "audit.db"), filepath.Join(files, "link", "new", "file"), filepath.Join(files, "ok")}
		up.reply(`"result":{"content":[],"structuredContent":{"paths":["` + strings.Join(seen, `","`) + `"]}}`)
		passed(t, w.call(ctx, "ls", `{}`))
		up.take()
		for i, p := range seen[:5] {
			tool := "put"
			if i == 2 {
				tool = "rm" // the state goes with what holds it
			}
			a := w.call(ctx, tool, `{"path":"`+p+`"}`)
			if got := refusedFor(a); got != `DIRECT_CANONICAL_WRITE_FORBIDDEN direct.own_state "/path"` {
				t.Errorf("shadow %v, %s: got %q (%s %s)", shadow, p[len(dir):], got, a.result, a.err)
			}
		}
		if got := up.take(); len(got) != 0 {
			t.Errorf("the server was sent %s", got[0].params)
		}
		up.reply(`"result":{"content":[]}`)
		passed(t, w.call(ctx, "put", `{"path":"`+seen[5]+`"}`))
	}
}

// TestStdioEnd: the process is the session. At its end the session is closed,
// on record, and nothing it saw is found again.
func TestStdioEnd(t *testing.T) {
	ctx := testContext(t)
	r, _ := toyRig(t, onSQLite(t))
	for k := range kinds {
		if kinds[k].http {
			continue
		}
		before := count(t, r.store, audit.KindClose)
		w := r.connect(ctx, k)
		passed(t, w.call(ctx, "list_items", `{}`))
		w.close()
		if n := count(t, r.store, audit.KindClose) - before; n != 1 {
			t.Errorf("%s: %d sessions were closed", kinds[k].name, n)
		}
		refusal(t, r.connect(ctx, k).call(ctx, "delete_item", `{"id":"item-17"}`), unseen)
	}
	for s, err := range r.store.ListSessions(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Endpoint != string(downstream.CarrierStdio) {
			t.Errorf("a session by %s", s.Endpoint)
		}
	}
}

// TestEvidenceOfAllSessions: the memory that evidence takes is bounded over all
// sessions of a process (D04). One at rest is dropped for another and is still
// the same session; where that does not make room, a result is passed on and
// vouches for nothing, and the log says so.
func TestEvidenceOfAllSessions(t *testing.T) {
	ctx := testContext(t)
	y := newToy()
	r := &rig{tb: t, store: onSQLite(t)}
	r.opts = gateway.Options{Store: r.store, Policy: policy(t, toyPolicy), Version: "test", MaxHeld: 1}
	r.opts.Servers = append(r.opts.Servers, y.config(t, true, true))
	r.start()
	t.Cleanup(func() { r.stop() })

	one := overHTTP(ctx, r, true, web{session: r.mint()})
	two := overHTTP(ctx, r, true, web{session: r.mint()})
	passed(t, one.call(ctx, "list_items", `{}`)) // there was room before it
	passed(t, two.call(ctx, "list_items", `{}`)) // the first is dropped for it
	passed(t, one.call(ctx, "delete_item", `{"id":"item-17"}`))
	passed(t, one.call(ctx, "list_items", `{}`))
	var full []string
	eachRecord(t, r.store, func(rec *audit.Record, _ *audit.Item) {
		if strings.Contains(string(rec.Data), `"evidence_cap"`) {
			full = append(full, rec.Session)
		}
	})
	if len(full) == 0 {
		t.Error("no result was refused as evidence")
	}
	passed(t, two.call(ctx, "delete_item", `{"id":"item-18"}`))
}

// TestRoomOfASession: the log warns before a session's evidence is at its cap, and a
// refusal says that it was. What was taken in stays under a lower cap, and more room
// holds from then on: the log is made again as it was, under any.
func TestRoomOfASession(t *testing.T) {
	ctx := testContext(t)
	y := newToy()
	r := &rig{tb: t, store: onSQLite(t)}
	r.opts = gateway.Options{Store: r.store, Policy: policy(t, toyPolicy), Version: "test"}
	r.opts.Servers = append(r.opts.Servers, y.config(t, true, true))
	r.start()
	t.Cleanup(func() { r.stop() })
	secret := r.mint()
	passed(t, overHTTP(ctx, r, true, web{session: secret}).call(ctx, "list_items", `{}`))
	if log := r.log.String(); strings.Contains(log, "nearly at its cap") {
		t.Errorf("it warns of a session with room: %s", log)
	}
	if near := r.gw.Near(); len(near) != 0 {
		t.Errorf("nearly used up: %+v", near)
	}
	r.opts.Caps.Leaves = 1
	r.restart()
	one := overHTTP(ctx, r, true, web{session: secret})
	passed(t, one.call(ctx, "delete_item", `{"id":"item-17"}`))
	passed(t, one.call(ctx, "list_items", `{}`))
	refusal(t, one.call(ctx, "delete_item", `{"id":"item-99"}`), `MISSING_PROVENANCE provenance.full "/id"`)
	if log := r.log.String(); strings.Count(log, "nearly at its cap") != 1 {
		t.Errorf("it warns otherwise than once: %s", log)
	}
	if near := r.gw.Near(); len(near) != 1 || near[0].Session == "" || near[0].Percent < gateway.NearlyFull || !near[0].WasSaid() {
		t.Errorf("nearly used up: %+v", near)
	}
	r.opts.Caps.Leaves = 0
	r.restart()
	passed(t, overHTTP(ctx, r, true, web{session: secret}).call(ctx, "list_items", `{}`))
}
