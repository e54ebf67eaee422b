package sqlite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// TestElsewhere is F12 to F15: a state directory that was put back, copied or
// emptied is refused by its key's head in a second place, until an operator
// accepts it, which is recorded; one that was moved is not. Each case changes
// the directory of a log of six records, which was told of, and says why it is
// refused then, "" if it is not.
func TestElsewhere(t *testing.T) {
	type dirs struct{ state, older, place, key string }
	for name, c := range map[string]struct {
		change func(t *testing.T, d *dirs)
		reason Reason
	}{
		"nothing":                  {func(t *testing.T, d *dirs) {}, ""},
		"F12 an older copy":        {func(t *testing.T, d *dirs) { copyFiles(t, d.older, d.state) }, RolledBack},
		"F12 the database removed": {func(t *testing.T, d *dirs) { remove(t, d.state) }, RolledBack},
		"F12 an older copy that went on without it": {func(t *testing.T, d *dirs) {
			copyFiles(t, d.older, d.state)
			s := openWith(t, d.state, storetest.Every)
			storetest.Append(t, s, "s_other", 0, storetest.Entries(t, "s_other", 1, 9)...)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}, RolledBack},
		"F12 the database and its key removed": {func(t *testing.T, d *dirs) {
			remove(t, d.state)
			d.key = "writ.test/another"
		}, ""},
		"F13 a copy beside it": {func(t *testing.T, d *dirs) {
			to := t.TempDir()
			copyFiles(t, d.state, to)
			d.state = to
		}, Copied},
		"F13 an older copy beside it": {func(t *testing.T, d *dirs) { d.state = d.older }, RolledBack},
		"moved": {func(t *testing.T, d *dirs) {
			to := t.TempDir()
			copyFiles(t, d.state, to)
			remove(t, d.state)
			d.state = to
		}, ""},
		"moved, and a new log in its old place": {func(t *testing.T, d *dirs) {
			to := t.TempDir()
			copyFiles(t, d.state, to)
			remove(t, d.state)
			sk, vk := storetest.KeyNamed("writ.test/another")
			s, err := Open(d.state, Options{Signer: sk, Verifier: vk})
			if err != nil {
				t.Fatal(err)
			}
			storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 1)...)
			s.Close()
			d.state = to
		}, ""},
		"by another name": {func(t *testing.T, d *dirs) {
			to := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(d.state, to); err != nil {
				t.Skip("no symbolic links here")
			}
			d.state = to
		}, ""},
		"the second place emptied": {func(t *testing.T, d *dirs) { os.RemoveAll(d.place) }, ""},
		"F14 the second place says something else": {func(t *testing.T, d *dirs) {
			fs, err := os.ReadDir(d.place)
			if err != nil || len(fs) != 1 {
				t.Fatalf("%v %v", fs, err)
			}
			if err := os.WriteFile(filepath.Join(d.place, fs[0].Name()), []byte(`{"dir":"/","head":"x"}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}, RolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			d := &dirs{t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "heads [a"), "writ.test/log"} // no pattern
			s := openBeside(t, d.state, d.place, false)
			storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
			s.Close()
			copyFiles(t, d.state, d.older)
			s = openBeside(t, d.state, d.place, false)
			storetest.Append(t, s, "s_a", 3, storetest.Entries(t, "s_a", 4, 3)...)
			s.Close()
			c.change(t, d)
			for _, dir := range []string{d.state, d.older, d.place} {
				os.Chmod(dir, 0o700)
			}
			sk, vk := storetest.KeyNamed(d.key)
			o := Options{Signer: sk, Verifier: vk, Elsewhere: d.place}
			s, err := Open(d.state, o)
			if c.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				replaced := d.key != "writ.test/log"
				if n, err := s.Head(context.Background(), ownLog); (n == 1) != replaced || err != nil || (s.Notice() != "") != replaced {
					t.Errorf("%d records, notice %q: %v", n, s.Notice(), err)
				}
				storetest.Append(t, s, "s_b", 0, storetest.Entries(t, "s_b", 1, 1)...)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if s, err = Open(d.state, o); err != nil || s.Notice() != "" {
					t.Fatalf("again: %v", err)
				}
				s.Close()
				return
			}
			var oe *OpenError
			if !errors.As(err, &oe) || oe.Reason != c.reason || !strings.Contains(oe.Hint, "--accept-rollback") {
				t.Fatalf("opened: %v", err)
			}
			for _, o.Accept = range []bool{true, false} { // once is enough
				if s, err = Open(d.state, o); err != nil {
					t.Fatal(err)
				}
				if n, err := s.Head(context.Background(), ownLog); n != 1 || err != nil {
					t.Errorf("%d records of what was accepted: %v", n, err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			r, err := OpenReadOnly(d.state, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			storetest.Verify(t, r)
		})
	}
}

// TestReadsAreTold: what nobody waited for the disk for is in the second place once the log was
// closed, folded or opened again, so that an older copy is refused; before that it is not told.
func TestReadsAreTold(t *testing.T) {
	ctx := context.Background()
	reads := func(t *testing.T, s *Store, n uint64) {
		t.Helper()
		if _, err := s.AppendUnsynced(ctx, "s_a", n-1, storetest.Entries(t, "s_a", n, 3)); err != nil {
			t.Fatal(err)
		}
	}
	for name, end := range map[string]func(t *testing.T, s *Store){
		"closed":     func(t *testing.T, s *Store) {},
		"folded":     func(t *testing.T, s *Store) { failIf(t, s.fold(ctx, ending{})) },
		"checkpoint": func(t *testing.T, s *Store) { _, err := s.Checkpoint(ctx); failIf(t, err) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, older, place := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "heads")
			_, vk := storetest.Key()
			told := func(want int64) {
				t.Helper()
				if c, _ := KnownElsewhere(place, vk); c.Size != want {
					t.Errorf("told of %d records, want %d", c.Size, want)
				}
			}
			s := openBeside(t, dir, place, false)
			reads(t, s, 1)
			failIf(t, s.Close())
			told(3)
			copyFiles(t, dir, older)
			s = openBeside(t, dir, place, false)
			reads(t, s, 4)
			failIf(t, s.signNow(ctx))
			told(3) // it may not be on the disk
			end(t, s)
			if name == "closed" {
				failIf(t, s.Close())
			}
			told(6)
			failIf(t, s.Close())
			copyFiles(t, older, dir)
			sk, _ := storetest.Key()
			var oe *OpenError
			if _, err := Open(dir, Options{Signer: sk, Verifier: vk, Elsewhere: place}); !errors.As(err, &oe) || oe.Reason != RolledBack {
				t.Errorf("a copy was put back: %v", err)
			}
			told(6) // and who was refused told nothing
		})
	}
	t.Run("opened", func(t *testing.T) {
		dir, copied, place := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "heads")
		_, vk := storetest.Key()
		s := openBeside(t, dir, place, false)
		defer s.Close()
		reads(t, s, 1)
		copyFiles(t, dir, copied) // as a killed process leaves it
		other := filepath.Join(t.TempDir(), "heads")
		two := openBeside(t, copied, other, false)
		defer two.Close()
		if c, _ := KnownElsewhere(other, vk); c.Size != 3 {
			t.Errorf("told of %d records", c.Size)
		}
	})
}

func failIf(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAcceptedBoth: a log that was put back and then written to without its key is recorded as
// both.
func TestAcceptedBoth(t *testing.T) {
	dir, older, place := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "heads")
	s := openBeside(t, dir, place, false)
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
	s.Close()
	copyFiles(t, dir, older)
	s = openBeside(t, dir, place, false)
	storetest.Append(t, s, "s_a", 3, storetest.Entries(t, "s_a", 4, 3)...)
	s.Close()
	copyFiles(t, older, dir)
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Append(t, s, "s_b", 0, storetest.Entries(t, "s_b", 1, 1)...)
	s.Close()
	s = openBeside(t, dir, place, true)
	defer s.Close()
	if got := acceptances(t, s); !slices.Equal(got, []string{"unsigned", "rollback"}) {
		t.Errorf("accepted %q", got)
	}
	storetest.Verify(t, s)
}

// TestForked is F15: two copies of a state directory both go on. The one that
// does not hold the newest head stops at its next synced append.
func TestForked(t *testing.T) {
	a, b, place := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "heads")
	s := openBeside(t, a, place, false)
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
	s.Close()
	copyFiles(t, a, b)
	s = openBeside(t, a, place, false)
	defer s.Close()
	two := openBeside(t, b, place, true)
	defer two.Close()
	if _, err := s.Append(context.Background(), "s_a", 3, storetest.Entries(t, "s_a", 4, 1)); !errors.Is(err, audit.ErrAltered) {
		t.Errorf("the first goes on: %v", err)
	}
	storetest.Append(t, two, "s_a", 3, storetest.Entries(t, "s_a", 4, 1)...)
}

// TestTwoBeside: processes of one state directory do not take each other for
// copies.
func TestTwoBeside(t *testing.T) {
	dir, place := t.TempDir(), filepath.Join(t.TempDir(), "heads")
	one := openBeside(t, dir, place, false)
	defer one.Close()
	two := openBeside(t, dir, place, false)
	defer two.Close()
	for n := range uint64(20) {
		storetest.Append(t, one, "s_1", n, storetest.Entries(t, "s_1", n+1, 1)...)
		storetest.Append(t, two, "s_2", n, storetest.Entries(t, "s_2", n+1, 1)...)
	}
	openBeside(t, dir, place, false).Close()
}

// TestHalfTold: what another process has written half of is no other log's head.
func TestHalfTold(t *testing.T) {
	dir, place := t.TempDir(), filepath.Join(t.TempDir(), "heads")
	s := openBeside(t, dir, place, false)
	defer s.Close()
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 1)...)
	path := placeOf(place, s.opt.Verifier)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err = lockFile(other, time.Minute); err == nil {
				_, half := other.WriteAt(bytes.Repeat([]byte("A"), len(whole)/2), 0)
				_, again := other.WriteAt(whole, 0)
				unlockFile(other)
				err = errors.Join(half, again)
			}
		}
		ended <- err
	}()
	for n := range uint64(200) {
		if err := appendOne(s.Append, "s_a", n+1); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestToldLate: who tells the file of a head when another process has told it of more takes
// nothing of that back.
func TestToldLate(t *testing.T) {
	dir, place := t.TempDir(), filepath.Join(t.TempDir(), "heads")
	one := openBeside(t, dir, place, false)
	defer one.Close()
	two := openBeside(t, dir, place, false)
	defer two.Close()
	storetest.Append(t, one, "s_a", 0, storetest.Entries(t, "s_a", 1, 1)...)
	one.mu.Lock()
	late := one.marks[len(one.marks)-1].note
	one.mu.Unlock()
	if err := appendOne(two.Append, "s_a", 1); err != nil {
		t.Fatal(err)
	}
	one.place.told = nil // its first telling is still under way
	one.tell(late)
	if known, ok := KnownElsewhere(place, one.opt.Verifier); !ok || known.Size != 2 {
		t.Errorf("the file was told of %d records (%t), want 2", known.Size, ok)
	}
}

func openBeside(t *testing.T, dir, place string, accept bool) *Store {
	t.Helper()
	os.Chmod(dir, 0o700)
	sk, vk := storetest.Key()
	s, err := Open(dir, Options{Signer: sk, Verifier: vk, Elsewhere: place, Accept: accept})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	remove(t, to)
	es, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t *testing.T, dir string) {
	t.Helper()
	for _, f := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(dir, FileName+f)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}
