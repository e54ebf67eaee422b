package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// TestReadOnly: a log is read and verified where nothing can be written: closed
// properly, cut off with its write-ahead log, and with the file of shared memory
// of a process that was killed. Nothing is made or changed there.
func TestReadOnly(t *testing.T) {
	for name, files := range map[string][]string{
		"closed": {FileName}, "closed, with its journal": {FileName, JournalName}, "cut off": {FileName, FileName + "-wal", JournalName},
		"killed": {FileName, FileName + "-wal", FileName + "-shm", JournalName}} {
		t.Run(name, func(t *testing.T) {
			from, dir := t.TempDir(), t.TempDir()
			s := openWith(t, from, storetest.Every)
			storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 5)...)
			if strings.HasPrefix(name, "closed") {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range files {
				b, err := os.ReadFile(filepath.Join(from, f))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, f), b, 0o400); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			os.Chmod(dir, 0o500)
			defer os.Chmod(dir, 0o700)
			before := listing(t, dir)
			_, vk := storetest.Key()
			for _, o := range []Options{{}, {Verifier: vk}} {
				r, err := OpenReadOnly(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				if rep := storetest.Verify(t, r); rep.Records != 5 {
					t.Errorf("%d records", rep.Records)
				}
				if got := storetest.Collect(t, r.Read(context.Background(), "s_a", 1)); len(got) != 5 {
					t.Errorf("%d read", len(got))
				}
				if err := r.Integrity(context.Background()); err != nil {
					t.Error(err)
				}
				if r.Disturbed() {
					t.Error("nobody did anything")
				}
				if _, err := r.Append(context.Background(), "s_a", 5, storetest.Entries(t, "s_a", 6, 1)); err == nil {
					t.Error("it can be written")
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if after := listing(t, dir); after != before {
					t.Errorf("before:\n%safter:\n%s", before, after)
				}
			}
		})
	}
}

// TestDisturbed: who reads a log in nobody's use knows that it is in use again.
func TestDisturbed(t *testing.T) {
	dir := filled(t)
	r, err := OpenReadOnly(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := openWith(t, dir, storetest.Every)
	if !r.Disturbed() {
		t.Error("opened, and not seen")
	}
	storetest.Append(t, s, "s_0", 100, storetest.Entries(t, "s_0", 101, 1)...)
	s.Close()
	if !r.Disturbed() {
		t.Error("written, and not seen")
	}
}

// TestReadBeside: who reads sees what another process appends meanwhile.
func TestReadBeside(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	defer s.Close()
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 1)...)
	_, vk := storetest.Key()
	r, err := OpenReadOnly(dir, Options{Verifier: vk})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for n := uint64(1); n < 50; n++ {
		if got, err := r.Head(context.Background(), "s_a"); err != nil || got != n {
			t.Fatalf("head %d: %v", got, err)
		}
		storetest.Append(t, s, "s_a", n, storetest.Entries(t, "s_a", n+1, 1)...)
	}
}

// TestCloseBeside: closing makes durable what this process wrote, also where
// another appended after it.
func TestCloseBeside(t *testing.T) {
	dir := t.TempDir()
	one, two := openWith(t, dir, storetest.Every), openWith(t, dir, storetest.Every)
	defer two.Close()
	storetest.Append(t, one, "s_a", 0, storetest.Entries(t, "s_a", 1, 1)...)
	storetest.Append(t, two, "s_b", 0, storetest.Entries(t, "s_b", 1, 1)...)
	if err := one.Close(); err != nil {
		t.Error(err)
	}
}

// TestPreviousVersion: a log of version 1, which was signed now and then, is
// read as it is. Opened to write it is brought to this version, where its key
// signed all of it; where it did not, that is a fault and refused.
func TestPreviousVersion(t *testing.T) {
	for _, signed := range []bool{true, false} {
		dir := filled(t)
		db := raw(t, dir)
		execSQL(t, db, "INSERT OR IGNORE INTO checkpoints SELECT size, note FROM head; ALTER TABLE head DROP COLUMN note; DROP TABLE heads; PRAGMA user_version = 1")
		if !signed {
			execSQL(t, db, "DELETE FROM checkpoints WHERE size = 300; PRAGMA wal_checkpoint(TRUNCATE)")
		}
		db.Close()
		r, err := OpenReadOnly(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := storetest.Check(t, r).Problem
		r.Close()
		sk, vk := storetest.Key()
		s, err := Open(dir, Options{Signer: sk, Verifier: vk})
		if !signed {
			var oe *OpenError
			if p == nil || p.Fault != audit.LogUnsigned || p.Index != 280 || !errors.As(err, &oe) || oe.Reason != Unsigned {
				t.Errorf("%v, %v", p, err)
			}
			continue
		}
		if p != nil || err != nil {
			t.Fatalf("%v, %v", p, err)
		}
		storetest.Append(t, s, "s_0", 100, storetest.Entries(t, "s_0", 101, 1)...)
		if rep := storetest.Verify(t, s); rep.Records != 301 {
			t.Errorf("%+v", rep)
		}
		s.Close()
	}
}

func listing(t *testing.T, dir string) (all string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all += e.Name() + " " + audit.Sum(b).String() + "\n"
	}
	return all
}
