package sqlite

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// TestAltered is F01 to F09: somebody with a SQLite shell and without the key
// changes one table of a log of three sessions, s_0 to s_2, with 100 records
// each, before the store is opened or under it. What is altered is not handed
// out: reading s_0 ends where it begins, and the other sessions are whole. A
// case that gives no number changes no answer. Where hashes are altered or gone
// too, what they proved is not handed out either, in whatever session.
func TestAltered(t *testing.T) {
	const of50 = "(SELECT idx FROM leaves WHERE session = 's_0' AND n = 50)"
	for name, c := range map[string]struct {
		sql   string
		n     uint64      // the first record that s_0 does not give
		fault audit.Fault // "" where hashes are altered too
	}{
		"F01 value":                   {"UPDATE vals SET bytes = x'7b7d' WHERE idx = " + of50, 50, audit.ValueMismatch},
		"F01 salt":                    {"UPDATE vals SET salt = zeroblob(16) WHERE idx = " + of50, 50, audit.ValueMismatch},
		"F01 value renamed":           {"UPDATE vals SET name = 'x' WHERE idx = " + of50, 50, audit.ValueUnknown},
		"F01 value added":             {"INSERT INTO vals VALUES (" + of50 + ", 'x', zeroblob(16), x'')", 50, audit.ValueUnknown},
		"F02 record":                  {"UPDATE leaves SET leaf = CAST(replace(CAST(leaf AS TEXT), 'accepted', 'rejected') AS BLOB) WHERE idx = " + of50, 50, audit.LeafHash},
		"F02 first record":            {"UPDATE leaves SET leaf = CAST(replace(CAST(leaf AS TEXT), '2026', '2025') AS BLOB) WHERE session = 's_0' AND n = 1", 1, audit.LeafHash},
		"F02 record and its own hash": {"UPDATE leaves SET leaf = x'7b7d', hashes = zeroblob(32) WHERE idx = " + of50, 50, ""},
		"F02 two records swapped": {`UPDATE leaves SET n = 1000 WHERE session = 's_0' AND n = 50;
			UPDATE leaves SET n = 50 WHERE session = 's_0' AND n = 52; UPDATE leaves SET n = 52 WHERE n = 1000`, 50, audit.LeafIndex},
		"F02 another session's record":     {"DELETE FROM leaves WHERE session = 's_0' AND n = 50; UPDATE leaves SET session = 's_0' WHERE session = 's_x'", 50, ""},
		"F03 record gone":                  {"DELETE FROM leaves WHERE session = 's_0' AND n = 50", 50, ""},
		"F03 newest record gone":           {"DELETE FROM leaves WHERE session = 's_0' AND n = 100", 100, ""},
		"F03 newest record filed away":     {"UPDATE leaves SET session = 's_x', n = 1 WHERE session = 's_0' AND n = 100", 100, audit.SessionNumber},
		"F03 whole session filed away":     {"UPDATE leaves SET session = 's_x' WHERE session = 's_0'", 1, audit.SessionNumber},
		"F03 record invented":              {"INSERT INTO leaves SELECT 1000, session, 101, CAST(replace(CAST(leaf AS TEXT), '\"n\":99,', '\"n\":101,') AS BLOB), hashes FROM leaves WHERE session = 's_0' AND n = 99", 101, audit.SessionNumber},
		"F04 hash of a subtree":            {"UPDATE leaves SET hashes = zeroblob(length(hashes)) WHERE idx = (SELECT max(idx) FROM leaves WHERE session <> 's_0')", 0, ""},
		"F05 kept checkpoints":             {"DELETE FROM checkpoints", 0, ""},
		"F05 signed heads":                 {"UPDATE heads SET body = x'00'", 0, ""},
		"F05 signed heads gone":            {"DELETE FROM heads", 0, ""},
		"F05 how many checkpoints":         {"UPDATE head SET signed = 1", 0, ""},
		"F06 a blob, which its name tells": {"UPDATE blobs SET bytes = x'00'", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, running := range []bool{false, true} {
				dir := filled(t)
				var s *Store
				if running {
					s = openWith(t, dir, storetest.Every)
				}
				db := raw(t, dir)
				execSQL(t, db, "PRAGMA foreign_keys = 0")
				execSQL(t, db, c.sql)
				if !running {
					if err := db.Close(); err != nil {
						t.Fatal(err)
					}
					s = openWith(t, dir, storetest.Every)
				}
				defer s.Close()
				for _, id := range []string{"s_0", "s_1", "s_2"} {
					got, err := uint64(1), error(nil)
					for it, e := range s.Read(context.Background(), id, 1) {
						if e != nil {
							err = e
							break
						}
						if want := storetest.Entry(t, id, got); string(it.Leaf) != string(want.Leaf()) || len(it.Values) != len(want.Values()) {
							t.Fatalf("%s: record %d is not what was written", id, got)
						}
						got++
					}
					var a *audit.AlteredError
					if c.fault == "" && c.n != 0 {
						if !errors.As(err, &a) && (id == "s_0" || got != 101) || got > c.n && id == "s_0" {
							t.Errorf("%s, running %v: ends at %d: %v", id, running, got, err)
						}
						continue
					}
					if id != "s_0" || c.n == 0 {
						if err != nil || got != 101 {
							t.Errorf("%s, running %v: ends at %d: %v", id, running, got, err)
						}
						continue
					}
					if !errors.As(err, &a) || !errors.Is(err, audit.ErrAltered) || a.Session != id || a.N != c.n || a.Fault != c.fault || got > c.n {
						t.Errorf("running %v: after %d: %v, want %d %s", running, got, err, c.n, c.fault)
					}
					if _, err := s.Value(context.Background(), id, c.n, "arguments"); !errors.Is(err, audit.ErrAltered) && c.n <= 100 {
						t.Errorf("its value: %v", err)
					}
				}
				// The log goes on, and what is appended stands behind the true end.
				for _, id := range []string{"s_1", "s_0"} {
					if _, err := s.Append(context.Background(), id, 100, storetest.Entries(t, id, 101, 1)); err != nil && c.n <= 100 {
						t.Errorf("%s cannot be written on: %v", id, err)
					}
				}
				if _, err := s.Blob(context.Background(), audit.Sum([]byte("a policy"))); (err == nil) == (name == "F06 a blob, which its name tells") {
					t.Errorf("the blob: %v", err)
				}
			}
		})
	}
}

// TestOlderLog is F07: while a store is open, an older state of the database, which
// its key did sign, is put in its place. What is appended then goes on from what the
// store knew, in the journal; nothing more is handed out, and nothing is written into
// that database.
func TestOlderLog(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	defer s.Close()
	ctx := context.Background()
	folded := func() {
		t.Helper()
		if err := s.fold(ctx, ending{}); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Append(t, s, "s_0", 0, storetest.Entries(t, "s_0", 1, 3)...)
	folded()
	db := raw(t, dir)
	execSQL(t, db, "CREATE TABLE old AS SELECT * FROM head")
	storetest.Append(t, s, "s_0", 3, storetest.Entries(t, "s_0", 4, 3)...)
	folded()
	execSQL(t, db, "UPDATE head SET (size, root, note) = (SELECT size, root, note FROM old); DELETE FROM vals WHERE idx > 2; DELETE FROM leaves WHERE idx > 2")
	if _, err := s.Append(ctx, "s_0", 3, storetest.Entries(t, "s_0", 4, 1)); !errors.Is(err, audit.ErrConflict) {
		t.Errorf("append where the older log ends: %v", err)
	}
	storetest.Append(t, s, "s_0", 6, storetest.Entries(t, "s_0", 7, 1)...)
	for _, err := range s.Read(ctx, "s_0", 1) {
		if !errors.Is(err, audit.ErrAltered) {
			t.Errorf("read: %v", err)
		}
	}
	if err := s.fold(ctx, ending{}); !errors.Is(err, audit.ErrAltered) {
		t.Errorf("fold: %v", err)
	}
	if _, err := s.Append(ctx, "s_0", 7, storetest.Entries(t, "s_0", 8, 1)); !errors.Is(err, audit.ErrAltered) {
		t.Errorf("append: %v", err)
	}
}

// TestWithoutKey is F10: who has no key can append nothing that counts, and the
// key signs nothing that was appended without it.
func TestWithoutKey(t *testing.T) {
	dir := filled(t)
	os.Chmod(dir, 0o700)
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Append(t, s, "s_0", 100, storetest.Entries(t, "s_0", 101, 1)...)
	if p := storetest.Check(t, s).Problem; p == nil || p.Fault != audit.LogUnsigned || p.Index != 300 {
		t.Errorf("found %v", p)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sk, vk := storetest.Key()
	var oe *OpenError
	if _, err := Open(dir, Options{Signer: sk, Verifier: vk}); !errors.As(err, &oe) || oe.Reason != Unsigned {
		t.Errorf("opened: %v", err)
	}
}
