package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// mortal is the journal's file of a process that ends when it has changed it so many times,
// in the middle of the next.
type mortal struct {
	medium
	left int
}

var errEnded = errors.New("the process ended")

func (m *mortal) ends() error {
	if m.left--; m.left < 0 {
		return errEnded
	}
	return nil
}

func (m *mortal) WriteAt(b []byte, at int64) (int, error) {
	err := m.ends()
	if err != nil && m.left == -1 && at >= int64(headerSize) { // a header is written whole or not
		m.medium.WriteAt(b[:len(b)/2], at)
	}
	if err != nil {
		return 0, err
	}
	return m.medium.WriteAt(b, at)
}

func (m *mortal) Truncate(size int64) error {
	if err := m.ends(); err != nil {
		return err
	}
	return m.medium.Truncate(size)
}

func (m *mortal) Sync() error {
	if err := m.ends(); err != nil {
		return err
	}
	return m.medium.Sync()
}

// TestEraseEnds: a process ends anywhere in an erasure. Others that run, whether they know what was in
// the journal or not, have all of it and go on, and so does who opens the log when they were
// killed, or closed.
func TestEraseEnds(t *testing.T) {
	ctx := context.Background()
	sk, vk := storetest.Key()
	for steps, ended := 0, true; ended; steps++ {
		for _, durable := range []bool{false, true} {
			dir := t.TempDir()
			idle, knows, eraser := openWith(t, dir, storetest.Every), openWith(t, dir, storetest.Every), openWith(t, dir, storetest.Every)
			storetest.Append(t, eraser, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
			if n := must(knows.Head(ctx, "s_a")); n != 3 {
				t.Fatalf("%d records", n)
			}
			eraser.journal.medium = &mortal{eraser.journal.medium, steps}
			err := eraser.Erase(ctx, "s_a", 1)
			if ended = err != nil; ended && !errors.Is(err, errEnded) {
				t.Fatal(err)
			}
			for i, s := range []*Store{idle, knows} {
				do := s.AppendUnsynced
				if durable {
					do = s.Append
				}
				id := []string{"s_idle", "s_knows"}[i]
				if first, err := do(ctx, id, 0, storetest.Entries(t, id, 1, 1)); err != nil || first != int64(3+i) {
					t.Errorf("ended after %d, durable %v: %s appends at %d: %v", steps, durable, id, first, err)
				}
				if n, err := s.Head(ctx, "s_a"); n != 3 || err != nil {
					t.Errorf("ended after %d, durable %v: %s finds %d records: %v", steps, durable, id, n, err)
				}
			}
			killed := t.TempDir()
			copyFiles(t, dir, killed)
			for _, s := range []*Store{idle, knows} {
				if err := s.Close(); err != nil {
					t.Errorf("ended after %d, durable %v: %v", steps, durable, err)
				}
			}
			if ended {
				eraser.write.Close() // as the end of the process would
			} else if err := eraser.Close(); err != nil {
				t.Error(err)
			}
			for _, dir := range []string{killed, dir} {
				os.Remove(filepath.Join(dir, FileName+"-shm"))
				os.Chmod(dir, 0o700)
				s, err := Open(dir, Options{Signer: sk, Verifier: vk})
				if err != nil {
					t.Errorf("ended after %d, durable %v: %v", steps, durable, err)
					continue
				}
				if rep := storetest.Verify(t, s); rep.Records != 5 {
					t.Errorf("ended after %d, durable %v: %d records of 5", steps, durable, rep.Records)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if steps > 100 {
			t.Fatal("it changes the journal more often than this test can tell")
		}
	}
}

// TestForkStays: a process whose journal somebody emptied went on from what it knew, which is not
// what the database has. Neither is moved over the other, and the journal keeps what only
// it has.
func TestForkStays(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	idle, other := openWith(t, dir, storetest.Every), openWith(t, dir, storetest.Every)
	storetest.Append(t, other, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
	if err := other.move(ctx, ending{}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := other.journal.WriteAt(make([]byte, other.journal.end-int64(headerSize)), int64(headerSize)); err != nil {
		t.Fatal(err)
	}
	storetest.Append(t, idle, "s_new", 0, storetest.Entries(t, "s_new", 1, 1)...)
	before, err := os.ReadFile(filepath.Join(dir, JournalName))
	if err != nil {
		t.Fatal(err)
	}
	if err := idle.Close(); !errors.Is(err, audit.ErrAltered) {
		t.Errorf("closed: %v", err)
	}
	idle.write.Close() // as the end of the process would
	other.fail(errEnded)
	other.Close()
	other.write.Close()
	if now, err := os.ReadFile(filepath.Join(dir, JournalName)); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the journal was changed: %v", err)
	}
}

// TestEraseBesideReader: while somebody reads, what is erased stands in the write-ahead log
// on the disk; that is said, and the same erasure later takes it away.
func TestEraseBesideReader(t *testing.T) {
	dir := t.TempDir()
	sk, vk := storetest.Key()
	s, err := Open(dir, Options{Signer: sk, Verifier: vk, BusyTimeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v := audit.Value{Name: "arguments", Bytes: []byte("planted-token")}
	storetest.Append(t, s, "s_a", 0, storetest.Seal(t, audit.Record{Kind: audit.KindOpen, Session: "s_a", N: 1, Time: storetest.Epoch}, v))
	if _, err := s.Checkpoint(t.Context()); err != nil { // which folds
		t.Fatal(err)
	}
	reader, err := s.read.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.QueryRow("SELECT count(*) FROM vals").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Erase(t.Context(), "s_a", 1); !errors.Is(err, errRead) {
		t.Errorf("beside a reader: %v", err)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.Erase(t.Context(), "s_a", 1); err != nil {
		t.Errorf("and once more: %v", err)
	}
	for _, name := range []string{FileName + "-wal", JournalName} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || bytes.Contains(b, v.Bytes) {
			t.Errorf("%s holds the token: %v", name, err)
		}
	}
	storetest.Append(t, s, "s_a", 1, storetest.Entry(t, "s_a", 2))
}
