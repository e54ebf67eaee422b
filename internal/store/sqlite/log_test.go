package sqlite

import (
	"errors"
	"fmt"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// TestLog: the log is read from an index on, or so many of the newest, from the database
// and the journal, and what is not there or another is found.
func TestLog(t *testing.T) {
	s := openWith(t, t.TempDir(), 1000)
	defer s.Close()
	for n := uint64(0); n < 40; n += 4 {
		for _, id := range []string{"s_a", "s_b"} {
			storetest.Append(t, s, id, n, storetest.Entries(t, id, n+1, 4)...)
		}
		if n == 20 {
			if _, err := s.Checkpoint(t.Context()); err != nil { // which folds
				t.Fatal(err)
			}
		}
	}
	const size = 80
	for from, first := range map[int64]int64{0: 0, 1: 1, 47: 47, 48: 48, 79: 79, 80: 80, 99: 80, -1: 79, -33: 47, -80: 0, -99: 0} {
		next := first
		for it, err := range s.Log(t.Context(), from) {
			if err != nil {
				t.Fatal(err)
			}
			rec, err := audit.ParseRecord(it.Leaf)
			if err != nil || it.Index != next || it.Session != rec.Session || it.N != rec.N || len(it.Values) > 0 {
				t.Fatalf("from %d: %+v", from, it)
			}
			next++
		}
		if next != size {
			t.Errorf("from %d it ends at %d", from, next)
		}
	}
	n := uint64(0)
	for it, err := range s.Records(t.Context(), "s_b") {
		if n++; err != nil || it.Session != "s_b" || it.N != n || len(it.Values) > 0 {
			t.Fatalf("%+v, %v", it, err)
		}
	}
	if n != 40 {
		t.Errorf("%d records", n)
	}
	for i, change := range []string{
		"UPDATE leaves SET leaf = CAST(replace(CAST(leaf AS TEXT), '2026', '2025') AS BLOB) WHERE idx = 30",
		"PRAGMA foreign_keys = 0; DELETE FROM leaves WHERE idx = 30",
		"UPDATE leaves SET session = 's_a' WHERE idx = 30",
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := t.TempDir()
			s := openWith(t, dir, 1000)
			storetest.Append(t, s, "s_b", 0, storetest.Entries(t, "s_b", 1, 40)...)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			db := raw(t, dir)
			execSQL(t, db, change)
			db.Close()
			s = openWith(t, dir, 1000)
			defer s.Close()
			var found error
			for _, err := range s.Log(t.Context(), -20) {
				found = err
			}
			if !errors.Is(found, audit.ErrAltered) {
				t.Errorf("%v", found)
			}
		})
	}
}
