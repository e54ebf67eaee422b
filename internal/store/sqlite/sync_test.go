//go:build linux

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/storetest"
)

// syncPhases are what the traced child does, in this order. A sync is counted
// to the phase it happens in.
var syncPhases = []struct {
	name string
	do   func(*Store) error
	some bool // whether the journal or the database must be synced in it, else it must not
}{
	{"opening", func(s *Store) error { return appendOne(s.Append, "s_s", 0) }, true},
	{"unsynced appends", func(s *Store) error {
		for n := range uint64(20) {
			if err := appendOne(s.AppendUnsynced, "s_u", n); err != nil {
				return err
			}
		}
		return nil
	}, false},
	{"a synced append after them", func(s *Store) error { return appendOne(s.Append, "s_s", 1) }, true},
	{"one more synced append", func(s *Store) error { return appendOne(s.Append, "s_s", 2) }, true},
	{"an unsynced append again", func(s *Store) error { return appendOne(s.AppendUnsynced, "s_u", 20) }, false},
	{"two synced appends at once", func(s *Store) error {
		a := &job{session: "s_u", expected: 21, entries: storetest.Entries(panicking{}, "s_u", 22, 1), durable: true}
		b := &job{session: "s_s", expected: 3, entries: storetest.Entries(panicking{}, "s_s", 4, 1), durable: true}
		s.commit([]*job{a, b})
		s.syncAll([]*job{a, b})
		return errors.Join(a.err, b.err)
	}, true},
	{"an unsynced append once more", func(s *Store) error { return appendOne(s.AppendUnsynced, "s_u", 22) }, false},
	{"a synced append that conflicts", func(s *Store) error {
		if appendOne(s.Append, "s_s", 9) == nil {
			return fmt.Errorf("no conflict")
		}
		return nil
	}, false},
	{"a checkpoint", func(s *Store) error {
		_, err := s.Checkpoint(context.Background())
		return err
	}, true},
	{"the last unsynced append", func(s *Store) error { return appendOne(s.AppendUnsynced, "s_u", 23) }, false},
	{"closing", func(s *Store) error { return s.Close() }, true},
}

func syncsMain(s *Store) error {
	// Another connection, so that closing does not fold the log into the file.
	other, err := Open(filepath.Dir(s.path), Options{})
	if err != nil {
		return err
	}
	defer other.Close()
	for i, p := range syncPhases {
		fmt.Printf("phase %d\n", i)
		if err := p.do(s); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	fmt.Println("phase end")
	return nil
}

// TestSyncs watches the system calls: Append, and nothing else, waits for the
// disk, and what it waits for is the journal, in which the records of earlier
// unsynced appends stand. Whoever opens the files syncs their directory first: who made
// them may have been killed before he did.
func TestSyncs(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	trace := filepath.Join(t.TempDir(), "trace")
	if err := exec.Command("strace", "-f", "-o", trace, "true").Run(); err != nil {
		t.Skip("strace cannot be run here")
	}
	if err := openWith(t, dir, storetest.Every).Close(); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("strace", "-f", "-y", "-e", "trace=write,fsync,fdatasync,sync_file_range", "-o", trace, exe)
	cmd.Env = append(os.Environ(), childVar+"=syncs|"+dir+"|s_a|0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int, len(syncPhases))
	phase, ended, directories := -1, false, 0
	for line := range strings.Lines(string(b)) {
		if _, rest, ok := strings.Cut(line, `"phase `); ok {
			if strings.HasPrefix(rest, "end") {
				ended = true
				break
			}
			fmt.Sscan(rest, &phase)
			continue
		}
		if phase < 0 && strings.Contains(line, "sync(") && strings.Contains(line, "<"+dir+">") {
			directories++
		}
		if phase >= 0 && strings.Contains(line, "sync(") && (strings.Contains(line, JournalName+">") || strings.Contains(line, FileName+"-wal>")) {
			counts[phase]++
		}
	}
	if !ended {
		t.Fatalf("the trace is not complete:\n%s", b)
	}
	if directories != 2 {
		t.Errorf("opened twice, and the directory was synced %d times", directories)
	}
	for i, p := range syncPhases {
		if got := counts[i]; (got > 0) != p.some {
			t.Errorf("%s: synced %d times", p.name, got)
		}
	}
}
