package gateway_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
)

const (
	altered    = `POLICY_VIOLATION policy.altered ""`
	wasWritten = "as it was"
)

// TestAlteredState is F01 to F09 at the door: while no gateway runs, one table
// of the state directory is changed by somebody without the key. What was
// altered founds no act: the session it belongs to is refused with a reason, in
// the log and in the list of sessions, and another goes on.
func TestAlteredState(t *testing.T) {
	for name, c := range map[string]struct {
		sql  string // $ID is the session
		want string // how the act is answered; "" for a session that is not found
	}{
		"F01 the bytes of a result":       {"UPDATE vals SET bytes = CAST(replace(CAST(bytes AS TEXT), 'item-18', 'item-99') AS BLOB) WHERE name = 'result' AND idx IN (SELECT idx FROM leaves WHERE session = '$ID')", altered},
		"F01 a decision's arguments":      {"UPDATE vals SET bytes = CAST(substr(CAST(bytes AS TEXT), 1, instr(CAST(bytes AS TEXT), char(10))) || '{\"a\":1}' AS BLOB) WHERE name = 'call' AND idx IN (SELECT idx FROM leaves WHERE session = '$ID')", altered},
		"F01 what a decision rested on":   {"UPDATE vals SET bytes = CAST(replace(CAST(bytes AS TEXT), '}' || char(10), ',\"shadow\":true}' || char(10)) AS BLOB) WHERE name = 'call' AND idx IN (SELECT idx FROM leaves WHERE session = '$ID')", altered},
		"F01 the ledger's key":            {"UPDATE vals SET bytes = zeroblob(32) WHERE name = 'key' AND idx IN (SELECT idx FROM leaves WHERE session = '$ID')", altered},
		"F01 a result is gone":            {"DELETE FROM vals WHERE name = 'result' AND idx IN (SELECT idx FROM leaves WHERE session = '$ID')", altered},
		"F02 a decision's record":         {"UPDATE leaves SET leaf = CAST(replace(CAST(leaf AS TEXT), '\"status\":\"accepted\"', '\"status\":\"rejected\"') AS BLOB) WHERE session = '$ID'", altered},
		"F02 whose session it is":         {"UPDATE leaves SET leaf = CAST(replace(CAST(leaf AS TEXT), 'loopback', 'somebody') AS BLOB) WHERE session = '$ID' AND n = 1; UPDATE sessions SET principal = 'somebody' WHERE id = '$ID'", ""},
		"F03 the newest record is away":   {"UPDATE leaves SET session = 's_away' WHERE session = '$ID' AND n = (SELECT max(n) FROM leaves WHERE session = '$ID')", altered},
		"F06 the policy":                  {"UPDATE blobs SET bytes = CAST(replace(CAST(bytes AS TEXT), 'closed: true', 'closed: false') AS BLOB)", wasWritten},
		"F06 the policy is gone":          {"DELETE FROM blobs", wasWritten},
		"F08 registered for another":      {"UPDATE sessions SET principal = 'somebody' WHERE id = '$ID'", ""},
		"F08 not registered":              {"DELETE FROM sessions WHERE id = '$ID'", ""},
		"F08 registered under a new hash": {"UPDATE sessions SET secret = zeroblob(32) WHERE id = '$ID'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			dir := t.TempDir()
			signer, verifier := storetest.Key()
			y := newToy()
			r := &rig{tb: t}
			open := func() {
				st, err := sqlite.Open(dir, sqlite.Options{Signer: signer, Verifier: verifier})
				if err != nil {
					t.Fatal(err)
				}
				r.store, r.opts.Store = st, st
				r.start()
			}
			shut := func() {
				r.stop()
				if err := r.store.Close(); err != nil {
					t.Fatal(err)
				}
			}
			r.opts = gateway.Options{Policy: policy(t, toyPolicy), Version: "test"}
			r.opts.Servers = append(r.opts.Servers, y.config(t, false, true))
			open()
			secret, id, err := createSession(ctx, r.gw, downstream.Loopback)
			if err != nil {
				t.Fatal(err)
			}
			other := r.mint()
			for _, s := range []string{secret, other} {
				passed(t, overHTTP(ctx, r, true, web{session: s}).call(ctx, "list_items", `{}`))
			}
			shut()
			editSQL(t, dir, strings.ReplaceAll(c.sql, "$ID", id))
			for range 2 { // found at each start
				open()
				w := overHTTP(ctx, r, true, web{session: secret})
				if c.want == wasWritten { // the gateway writes its policy again, under the name that is its hash
					refusal(t, w.call(ctx, "delete_item", `{"id":"item-99"}`), unseen)
					passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
					verify(t, r.store)
					shut()
					return
				}
				for _, item := range []string{"item-17", "item-18", "item-99"} {
					if a := w.call(ctx, "delete_item", `{"id":"`+item+`"}`); refusedFor(a) != c.want || c.want == "" && a.err == nil {
						t.Errorf("%s: %s %s", item, a.result, a.err)
					}
				}
				if c.want == altered {
					if !strings.Contains(r.log.String(), "altered on disk") || !strings.Contains(r.log.String(), id) {
						t.Errorf("the log says %s", r.log)
					}
					if is, err := gateway.Altered(ctx, r.store, id); err != nil || !is {
						t.Errorf("the list of sessions does not show it: %v", err)
					}
					if n, err := r.store.Head(ctx, id); err != nil || n > 4 { // three, and that it is closed
						t.Errorf("%d records: %v", n, err)
					}
				}
				if len(y.gone()) != 0 {
					t.Errorf("deleted %q", y.gone())
				}
				shut()
			}
			open()
			defer shut()
			passed(t, overHTTP(ctx, r, true, web{session: other}).call(ctx, "delete_item", `{"id":"item-17"}`))
		})
	}
}

// editSQL changes the state directory as anybody with a SQLite shell could.
func editSQL(t *testing.T, dir, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, sqlite.FileName)+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

// TestRegister is F08 and F09: what the register of sessions says opens nothing.
// A session of another principal, one that was closed and one that is too old
// stay so, whoever edits their rows, and a stranger's secret in the row of a
// session opens it to nobody.
func TestRegister(t *testing.T) {
	ctx := testContext(t)
	dir := t.TempDir()
	r, _ := toyRig(t, openSQLite(t, dir))
	c := &clock{now: r.now()}
	secret, id, err := createSession(ctx, r.gw, "alice")
	if err != nil {
		t.Fatal(err)
	}
	closed, closedID, err := createSession(ctx, r.gw, "alice")
	if err != nil {
		t.Fatal(err)
	}
	stranger, strangerID, err := createSession(ctx, r.gw, "mallory")
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.EndSession(ctx, r.store, closedID, c.now); err != nil {
		t.Fatal(err)
	}
	editSQL(t, dir, `UPDATE sessions SET closed = NULL;
		UPDATE sessions SET principal = 'mallory' WHERE id = '`+id+`';
		UPDATE sessions SET secret = zeroblob(32) WHERE id = '`+strangerID+`';`)
	r.stop()
	r.opts.Clock = c.Now
	r.start()
	find := func(what, who, secret string, want bool) {
		t.Helper()
		if err := r.store.TouchSession(ctx, closedID, c.now); err != nil { // else what is held in memory counts
			t.Error(err)
		}
		if _, err := r.gw.FindSession(ctx, who, secret); (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	find("F08 another principal in the row", "mallory", secret, false)
	find("F08 a closed session opened again", "alice", closed, false)
	editSQL(t, dir, `UPDATE sessions SET principal = 'alice', secret = unhex('`+digestOf(stranger)+`') WHERE id = '`+id+`'`)
	find("F08 a stranger's secret in the row", "alice", stranger, false)
	editSQL(t, dir, `UPDATE sessions SET secret = unhex('`+digestOf(secret)+`') WHERE id = '`+id+`'`)
	find("the row as it was", "alice", secret, true)
	c.advance(25 * 3600e9)
	editSQL(t, dir, `UPDATE sessions SET created = created + 90000000000, last_used = created + 90000000000`)
	find("F09 an idle session made young", "alice", secret, false)
}

func digestOf(secret string) string { return audit.Sum([]byte(secret)).String() }
