package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// openWith opens a store. t.TempDir is what the umask makes it, so it is taken from
// others first.
func openWith(tb testing.TB, dir string, every int64) *Store {
	tb.Helper()
	if err := os.Chmod(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	sk, vk := storetest.Key()
	s, err := Open(dir, Options{Signer: sk, Verifier: vk, CheckpointEvery: every})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// panicking is a testing.TB for what runs outside a test, such as a child process.
type panicking struct{ testing.TB }

func (panicking) Helper() {}

func (panicking) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

type appender func(context.Context, string, uint64, []audit.Entry) (int64, error)

func appendOne(do appender, session string, n uint64) error {
	_, err := do(context.Background(), session, n, storetest.Entries(panicking{}, session, n+1, 1))
	return err
}

// size is how much of something a test does: short, or long with WRIT_LONG=1.
func size(short, long int) int {
	if os.Getenv("WRIT_LONG") == "1" {
		return long
	}
	return short
}

// faulty is a journal's file that has room for so many bytes, and whose sync fails
// where it is told to.
type faulty struct {
	medium
	room int64
	sync error
}

func (f *faulty) WriteAt(b []byte, at int64) (n int, err error) {
	fits := min(max(f.room-at, 0), int64(len(b)))
	n, err = f.medium.WriteAt(b[:fits], at)
	if err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *faulty) Sync() error {
	if f.sync != nil {
		return f.sync
	}
	return f.medium.Sync()
}

// TestDiskFull is L06: an append that does not fit fails, alone and whole, and
// the store goes on when there is room again.
func TestDiskFull(t *testing.T) {
	s := openWith(t, t.TempDir(), storetest.Every)
	defer s.Close()
	ctx := context.Background()
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 5)...)
	f := &faulty{medium: s.journal.medium, room: s.journal.end + 4096}
	s.journal.medium = f
	big := storetest.Seal(t, audit.Record{Kind: audit.KindOpen, Session: "s_big", N: 1, Time: storetest.Epoch},
		storetest.Value("s_big", 1, "arguments", strings.Repeat("x", 1<<20)))
	if _, err := s.Append(ctx, "s_big", 0, []audit.Entry{big}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a full disk: %v", err)
	}
	// In one group, what fits is written and what does not is not.
	fits, not := &job{session: "s_b", entries: storetest.Entries(t, "s_b", 1, 1)}, &job{session: "s_big", entries: []audit.Entry{big}}
	after := &job{session: "s_a", expected: 5, entries: storetest.Entries(t, "s_a", 6, 1)}
	s.commit([]*job{fits, not, after})
	if fits.err != nil || not.err == nil || after.err != nil || after.first != fits.first+1 {
		t.Errorf("%v, %v, %v", fits.err, not.err, after.err)
	}
	if r := storetest.Verify(t, s); r.Records != 7 {
		t.Errorf("%d records", r.Records)
	}
	f.room = 1 << 40
	storetest.Append(t, s, "s_big", 0, big)
	if r := storetest.Verify(t, s); r.Records != 8 {
		t.Errorf("%d records", r.Records)
	}
}

// TestLockedOnce: where another process holds the journal, all who wait for one frame are told so at
// once, and none waits alone again.
func TestLockedOnce(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	sk, vk := storetest.Key()
	s, err := Open(dir, Options{Signer: sk, Verifier: vk, BusyTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other, err := openJournal(s.path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.lock(0); err != nil {
		t.Fatal(err)
	}
	group := make([]*job, 50)
	for i := range group {
		id := fmt.Sprintf("s_%d", i)
		group[i] = &job{session: id, entries: storetest.Entries(t, id, 1, 1)}
	}
	s.commit(group)
	var oe *OpenError
	if !errors.As(group[0].err, &oe) || oe.Reason != Locked {
		t.Fatalf("%v", group[0].err)
	}
	for _, j := range group {
		if j.err != group[0].err {
			t.Fatalf("%s waited for itself: %v", j.session, j.err)
		}
	}
	other.unlock()
	s.commit(group)
	for _, j := range group {
		if j.err != nil {
			t.Fatal(j.err)
		}
	}
}

// TestFullJournal: where the journal has no room, what it holds is folded, and then it has.
func TestFullJournal(t *testing.T) {
	s := openWith(t, t.TempDir(), storetest.Every)
	defer s.Close()
	ctx := context.Background()
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 500)...)
	s.journal.medium = &faulty{medium: s.journal.medium, room: s.journal.end}
	s.opt.foldAt = 1
	if _, err := s.Append(ctx, "s_a", 500, storetest.Entries(t, "s_a", 501, 1)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("it fits: %v", err)
	}
	s.running.Wait()
	storetest.Append(t, s, "s_a", 500, storetest.Entries(t, "s_a", 501, 1)...)
	if r := storetest.Verify(t, s); r.Records != 501 {
		t.Errorf("%d records", r.Records)
	}
}

// TestFullDatabase: where the journal can grow and the database cannot, records are
// taken, and are in the database once it can.
func TestFullDatabase(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	ctx := context.Background()
	pages := func(n string) {
		if err := s.conn.QueryRowContext(ctx, "PRAGMA max_page_count = "+n).Scan(new(int64)); err != nil {
			t.Fatal(err)
		}
	}
	pages("20")
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 500)...)
	if err := s.fold(ctx, ending{}); err == nil {
		t.Error("it fits")
	}
	if r := storetest.Verify(t, s); r.Records != 500 {
		t.Errorf("%d records", r.Records)
	}
	pages("1000000")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openWith(t, dir, storetest.Every)
	defer s.Close()
	if r := storetest.Verify(t, s); r.Records != 500 || s.folded.size != 500 {
		t.Errorf("%d records, %d in the database", r.Records, s.folded.size)
	}
}

// TestSyncFails (N25): where the disk cannot sync, whoever waits for it is told, and
// nothing is written any more.
func TestSyncFails(t *testing.T) {
	s := openWith(t, t.TempDir(), storetest.Every)
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 5)...)
	s.journal.medium = &faulty{medium: s.journal.medium, room: 1 << 40, sync: syscall.EIO}
	ctx := context.Background()
	if _, err := s.AppendUnsynced(ctx, "s_b", 0, storetest.Entries(t, "s_b", 1, 1)); err != nil {
		t.Errorf("it waits for nothing: %v", err)
	}
	if _, err := s.Append(ctx, "s_a", 5, storetest.Entries(t, "s_a", 6, 1)); !errors.Is(err, syscall.EIO) {
		t.Errorf("append: %v", err)
	}
	<-s.Broken()
	if _, err := s.AppendUnsynced(ctx, "s_b", 1, storetest.Entries(t, "s_b", 2, 1)); !errors.Is(err, syscall.EIO) {
		t.Errorf("append: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.write.Close() // as the end of the process would
}

// TestDiskFails (N25): after an I/O error nothing is written any more, by any
// job nor by closing, until the store is opened again, and who asked is told.
func TestDiskFails(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 5)...)
	files := func() (out string) {
		for _, name := range []string{FileName, FileName + "-wal", JournalName} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Error(err)
			}
			out += fmt.Sprintf("%x ", audit.Sum(b))
		}
		return out
	}
	before := files()
	select {
	case <-s.Broken():
		t.Error("it is said to be broken")
	default:
	}
	for range 2 {
		s.fail(errors.New("sqlite: commit: disk I/O error"))
	}
	<-s.Broken()
	ctx := context.Background()
	if _, err := s.Append(ctx, "s_a", 5, storetest.Entries(t, "s_a", 6, 1)); err == nil || errors.Is(err, audit.ErrConflict) {
		t.Errorf("append: %v", err)
	}
	if _, err := s.PutBlob(ctx, nil); err == nil {
		t.Error("a blob is stored")
	}
	if n, err := s.Head(ctx, "s_a"); n != 5 || err != nil {
		t.Errorf("reading goes on: %d, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if files() != before {
		t.Error("something was written after the disk failed")
	}
	s.write.Close() // as the end of the process would
}

// TestSigned: every commit leaves a head that is signed, and one in so many is
// kept.
func TestSigned(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, 10)
	for n := range uint64(25) {
		do := s.Append
		if n%2 == 1 {
			do = s.AppendUnsynced
		}
		if _, err := do(context.Background(), "s_a", n, storetest.Entries(t, "s_a", n+1, 1)); err != nil {
			t.Fatal(err)
		}
		if r := storetest.Verify(t, s); r.Signed != int64(n+1) || r.Checkpoints > 4 {
			t.Errorf("after %d: %+v", n+1, r)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openWith(t, dir, 10)
	defer s.Close()
	if r := storetest.Verify(t, s); r.Signed != 25 {
		t.Errorf("%+v", r)
	}
	if err := s.Integrity(context.Background()); err != nil {
		t.Error(err)
	}
}
