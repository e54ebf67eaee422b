package gateway_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
)

// unerasing is a store that is killed before it erases.
type unerasing struct{ gateway.Store }

func (unerasing) Erase(context.Context, string, ...uint64) error { return errors.New("killed") }

// replayed makes a session of its records again.
func replayed(t *testing.T, st gateway.Store, id string) (*gateway.Replayer, error) {
	t.Helper()
	r := gateway.NewRulesets(st).Replayer()
	for it, err := range st.Read(t.Context(), id, 1) {
		if err != nil {
			return r, err
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Step(t.Context(), rec, &it); err != nil {
			return r, err
		}
	}
	return r, nil
}

// TestRedact: an ended session is redacted, once, whoever was killed meanwhile; nothing
// opens it again, and it verifies.
func TestRedact(t *testing.T) {
	ctx := testContext(t)
	st := onSQLite(t)
	r, _ := toyRig(t, st)
	secret, id, err := createSession(ctx, r.gw, downstream.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	w := overHTTP(ctx, r, true, web{session: secret})
	passed(t, w.call(ctx, "list_items", `{}`))
	passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
	overHTTP(ctx, r, true, web{}).call(ctx, "list_items", `{}`) // of no session

	now := time.Now()
	if _, err := gateway.Redact(ctx, st, nil, id, "test", now); !errors.Is(err, gateway.ErrOpen) {
		t.Errorf("an open session: %v", err)
	}
	for _, other := range []string{"s_places-default", "s_nobodys", "", "../log.key"} {
		if _, err := gateway.Redact(ctx, st, nil, other, "test", now); !errors.Is(err, audit.ErrNotFound) {
			t.Errorf("%q: %v", other, err)
		}
	}
	ended := func(now time.Time) (ids []string) {
		for e, err := range gateway.EndedSessions(ctx, st, now) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, e.Session)
		}
		return ids
	}
	if ids := ended(now); len(ids) != 0 {
		t.Errorf("ended: %q", ids)
	}
	if ids := ended(now.Add(25 * time.Hour)); len(ids) != 2 {
		t.Errorf("ended a day later: %q, not the session and the stream of requests without one", ids)
	}
	if err := gateway.EndSession(ctx, st, id, now); err != nil {
		t.Fatal(err)
	}
	whole, _ := st.Head(ctx, id)
	if _, err := gateway.Redact(ctx, unerasing{st}, nil, id, "test", now); err == nil {
		t.Fatal("it was not killed")
	}
	if again, err := replayed(t, st, id); err != nil || again.Unfinished != 1 || again.Replayed != 2 || again.Redacted != 0 {
		t.Errorf("cut off: %+v, %v", again, err)
	}
	if e, err := gateway.EndedSession(ctx, st, id, now); err != nil || !e.Redacted || !e.Left {
		t.Errorf("cut off: %+v, %v", e, err)
	}
	n, err := gateway.Redact(ctx, st, nil, id, "test", now)
	if err != nil || n != whole+1 {
		t.Fatalf("it ends at record %d behind %d: %v", n, whole, err)
	}
	if again, err := replayed(t, st, id); err != nil || again.Unfinished != 0 || again.Replayed != 0 || again.Redacted != 2 {
		t.Errorf("redacted: %+v, %v", again, err)
	}
	if err := gateway.EndSession(ctx, st, id, now); err != nil {
		t.Error(err)
	}
	if head, _ := st.Head(ctx, id); head != n {
		t.Errorf("something stands behind its last record: %d", head)
	}
	for range 2 {
		if _, err := r.gw.FindSession(ctx, downstream.Loopback, secret); !errors.Is(err, downstream.ErrNoSession) {
			t.Errorf("it is found: %v", err)
		}
		if _, err := r.gw.SessionNamed(ctx, id); !errors.Is(err, downstream.ErrNoSession) {
			t.Errorf("it is found by its id: %v", err)
		}
		r.restart()
	}
	// What outlived its time is closed first; the stream goes on as another.
	for _, id := range ended(now.Add(25 * time.Hour)) {
		if _, err := gateway.Redact(ctx, st, nil, id, "test", now.Add(25*time.Hour)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	overHTTP(ctx, r, true, web{}).call(ctx, "list_items", `{}`)
}

// TestRedactedByNobody: values that go without a record of the log's key are found
// missing, in part or all, and what was altered cannot be redacted away.
func TestRedactedByNobody(t *testing.T) {
	for name, query := range map[string]string{
		"all of them":            "DELETE FROM vals",
		"the key":                "DELETE FROM vals WHERE name = 'key'",
		"what a result was":      "DELETE FROM vals WHERE name = 'result'",
		"with a record by a row": "DELETE FROM vals; INSERT INTO leaves (idx, session, n, leaf, hashes) SELECT idx+1, session, n+1, CAST(replace(CAST(leaf AS TEXT), '\"kind\":\"close\"', '\"kind\":\"redact\"') AS BLOB), hashes FROM leaves ORDER BY idx DESC LIMIT 1",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := testContext(t), t.TempDir()
			signer, verifier := storetest.Key()
			open := func() *sqlite.Store {
				st, err := sqlite.Open(dir, sqlite.Options{Signer: signer, Verifier: verifier})
				if err != nil {
					t.Fatal(err)
				}
				return st
			}
			st := open()
			r, _ := toyRig(t, st)
			secret, id, err := createSession(ctx, r.gw, downstream.Loopback)
			if err != nil {
				t.Fatal(err)
			}
			passed(t, overHTTP(ctx, r, true, web{session: secret}).call(ctx, "list_items", `{}`))
			r.stop()
			if err := gateway.EndSession(ctx, st, id, time.Now()); err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			editSQL(t, dir, query)
			st = open()
			defer st.Close()
			if _, err := replayed(t, st, id); !errors.Is(err, audit.ErrAltered) {
				t.Errorf("nothing is missing: %v", err)
			}
		})
	}
	ctx := testContext(t)
	st := onSQLite(t)
	e := storetest.Seal(t, audit.Record{Kind: audit.KindOpen, Session: "s_a", N: 1, Time: storetest.Epoch, Data: []byte(`{}`)})
	shut := storetest.Seal(t, audit.Record{Kind: audit.KindClose, Session: "s_a", N: 2, Time: storetest.Epoch, Data: []byte(`{"n":1,"why":"altered"}`)})
	storetest.Append(t, st, "s_a", 0, e, shut)
	if _, err := gateway.Redact(ctx, st, nil, "s_a", "test", time.Now()); !errors.Is(err, gateway.ErrAlteredSession) {
		t.Errorf("what was altered: %v", err)
	}
}

// TestRedactOfUsed: a session over stdio, of which the register is told nothing while it is
// used, goes on for as long as it is.
func TestRedactOfUsed(t *testing.T) {
	ctx := testContext(t)
	y := newToy()
	c := &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	r := &rig{tb: t, store: onSQLite(t)}
	r.opts = gateway.Options{Store: r.store, Policy: policy(t, toyPolicy), Version: "test", Clock: c.Now}
	r.opts.Servers = append(r.opts.Servers, y.config(t, true, true))
	r.start()
	t.Cleanup(r.stop)
	w := overLines(ctx, r, true, downstream.StdioOptions{})
	id := ""
	for range 26 {
		passed(t, w.call(ctx, "list_items", `{}`))
		for h, err := range r.store.Heads(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			id = h.Session
		}
		if _, err := gateway.EndedSession(ctx, r.store, id, c.Now()); !errors.Is(err, gateway.ErrOpen) {
			t.Fatalf("a session that is used has ended: %v", err)
		}
		if _, err := r.gw.SessionNamed(ctx, id); err != nil {
			t.Fatalf("a session that is used is not found: %v", err)
		}
		c.advance(time.Hour)
	}
	c.advance(25 * time.Hour)
	if e, err := gateway.EndedSession(ctx, r.store, id, c.Now()); err != nil || c.Now().Sub(e.Last) < 25*time.Hour {
		t.Errorf("a day later it has not ended: %+v, %v", e, err)
	}
}
