//go:build linux

package sqlite

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// change is one change of a file as a system call made it: bytes at a place, or its
// size where there are none.
type change struct {
	bytes []byte
	at    int64
}

// disk is what a file system has been told of some files, and what of it a power cut
// must leave.
type disk struct {
	safe    map[string][]byte   // by name: what was synced
	pending map[string][]change // what came since, of which a cut leaves any part
}

func apply(b []byte, c change) []byte {
	if c.bytes == nil {
		if c.at <= int64(len(b)) {
			return b[:c.at]
		}
		return append(b, make([]byte, c.at-int64(len(b)))...)
	}
	if end := c.at + int64(len(c.bytes)); end > int64(len(b)) {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	copy(b[c.at:], c.bytes)
	return b
}

// synced makes durable what was pending of a file when the sync began.
func (d *disk) synced(name string, pending int) {
	b := slices.Clone(d.safe[name])
	for _, c := range d.pending[name][:pending] {
		b = apply(b, c)
	}
	d.safe[name], d.pending[name] = b, d.pending[name][pending:]
}

// cut is what a power cut may leave: of each file what was synced, and any of what came
// after, in its order, some of it torn.
func (d *disk) cut(r *rand.Rand) map[string][]byte {
	left := map[string][]byte{}
	likely := r.IntN(5) // from nothing to all
	for _, name := range slices.Sorted(maps.Keys(d.safe)) {
		b := slices.Clone(d.safe[name])
		for _, c := range d.pending[name] {
			switch {
			case r.IntN(4) >= likely:
				continue
			case c.bytes != nil && r.IntN(8) == 0: // a sector is written whole or not
				if whole := (c.at+r.Int64N(int64(len(c.bytes))+1))/512*512 - c.at; whole > 0 {
					c.bytes = c.bytes[:whole]
				}
			}
			b = apply(b, c)
		}
		left[name] = b
	}
	return left
}

// step is one system call of a trace that ended well.
type step struct {
	call, name string // of the file
	change
	pending map[string]int // of a sync: how much was pending when it began
	told    uint64         // of a write to standard output: how many records are acknowledged
}

var (
	traced   = regexp.MustCompile(`^(\d+) +(\w+)\((\d+)(?:<([^>]*)>)?(.*)$`)
	resumed  = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)$`)
	literals = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"`)
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// steps reads a trace. What one thread began while another worked stands where it ended.
func steps(t *testing.T, trace, dir string) (out []step) {
	t.Helper()
	begun := map[string]string{}
	pending := map[string]int{}          // of each file: how many changes there were
	since := map[string]map[string]int{} // by thread: that, when its sync began
	for line := range strings.Lines(trace) {
		line = strings.TrimSpace(line)
		if head, ok := strings.CutSuffix(line, "<unfinished ...>"); ok {
			pid, _, _ := strings.Cut(line, " ")
			begun[pid] = strings.TrimSpace(head)
			since[pid] = maps.Clone(pending)
			continue
		}
		at := maps.Clone(pending)
		if m := resumed.FindStringSubmatch(line); m != nil {
			line, at = begun[m[1]]+m[3], since[m[1]]
			delete(begun, m[1])
		}
		m := traced.FindStringSubmatch(line)
		if m == nil || strings.Contains(line, " = -1 ") || strings.HasSuffix(line, "= ?") {
			continue
		}
		path := string(unhex(t, m[4]))
		s := step{call: m[2], name: filepath.Base(path)}
		end := strings.LastIndex(m[5], ") ")
		if end < 0 {
			t.Fatalf("not read: %.300s", line)
		}
		args := m[5][:end]
		switch {
		case m[3] == "1" && s.call == "write":
			lit := literals.FindStringSubmatch(args)
			if n, err := strconv.ParseUint(strings.TrimSpace(string(unhex(t, lit[1]))), 10, 64); err == nil {
				out = append(out, step{call: "told", told: n})
			}
			continue
		case filepath.Dir(path) != dir || strings.HasSuffix(path, "-shm"):
			continue
		}
		last := args[strings.LastIndex(args, " ")+1:]
		switch s.call {
		case "pwrite64":
			lit := literals.FindStringSubmatch(args)
			if lit == nil {
				t.Fatalf("not read: %.300s", line)
			}
			s.bytes = unhex(t, lit[1])
			s.at, _ = strconv.ParseInt(last, 0, 64)
			pending[s.name]++
		case "ftruncate":
			s.at, _ = strconv.ParseInt(last, 0, 64)
			pending[s.name]++
		case "fsync", "fdatasync":
			s.pending = at
		default:
			t.Fatalf("nobody expects %.300s", line)
		}
		out = append(out, s)
	}
	return out
}

// TestPowerCuts replays what the system calls of a process told the disk up to any moment,
// leaves what a power cut there may leave, and opens that: it opens, verifies, and
// has every record whose durable append was acknowledged. The control, of a disk that
// ignores syncs, must lose some.
func TestPowerCuts(t *testing.T) {
	dir := t.TempDir()
	trace := filepath.Join(t.TempDir(), "trace")
	if err := exec.Command("strace", "-f", "-o", trace, "true").Run(); err != nil {
		t.Skip("strace cannot be run here")
	}
	os.Chmod(dir, 0o700)
	s := openWith(t, dir, storetest.Every)
	storetest.Append(t, s, "s_p", 0, storetest.Entries(t, "s_p", 1, 1)...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	first := disk{map[string][]byte{}, map[string][]change{}}
	for _, name := range []string{FileName, JournalName} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		first.safe[name] = b
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("strace", "-f", "-y", "-xx", "-s", "4194304", "-e", "trace=pwrite64,write,ftruncate,fsync,fdatasync", "-o", trace, exe)
	cmd.Env = append(os.Environ(), childVar+"=power|"+dir+"|s_p|120")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	all := steps(t, string(b), dir)
	syncs, folds := 0, 0
	for _, s := range all {
		if s.pending != nil {
			syncs++
		}
		if s.call == "ftruncate" && s.name == JournalName {
			folds++
		}
	}
	if len(all) < 300 || syncs < 50 || folds < 5 {
		t.Fatalf("a trace of %d system calls, %d syncs and %d folds", len(all), syncs, folds)
	}
	for _, ignored := range []bool{false, true} {
		r := rand.New(rand.NewPCG(7, 7))
		lost := 0
		for range size(100, 1000) {
			d := disk{maps.Clone(first.safe), map[string][]change{}}
			told, gone := uint64(1), map[string]int{}
			for _, s := range all[:r.IntN(len(all)+1)] {
				switch {
				case s.call == "told":
					told = s.told
				case s.pending == nil:
					d.pending[s.name] = append(d.pending[s.name], s.change)
					if _, ok := d.safe[s.name]; !ok {
						d.safe[s.name] = nil
					}
				case !ignored:
					if n := s.pending[s.name] - gone[s.name]; n > 0 {
						d.synced(s.name, n)
						gone[s.name] += n
					}
				}
			}
			if err := survived(t, d.cut(r), told); err != nil {
				if lost++; !ignored {
					t.Error(err)
				}
			}
		}
		if ignored && lost == 0 {
			t.Error("a disk that ignores syncs lost nothing: the test sees nothing")
		}
	}
}

// survived says what is wrong with what a power cut left, nil for nothing.
func survived(t *testing.T, files map[string][]byte, told uint64) error {
	t.Helper()
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sk, vk := storetest.Key()
	s, err := Open(dir, Options{Signer: sk, Verifier: vk, noSync: true})
	if err != nil {
		return fmt.Errorf("it does not open: %w", err)
	}
	defer s.Close()
	n, err := s.Head(context.Background(), "s_p")
	if err == nil && n < told {
		err = fmt.Errorf("%d records of %d acknowledged", n, told)
	}
	if rep := storetest.Check(t, s); rep.Problem != nil {
		err = errors.Join(err, rep.Problem)
	} else if uint64(rep.Records) != n {
		err = errors.Join(err, fmt.Errorf("%d records, %d of the session", rep.Records, n))
	}
	return err
}

// watched is a journal's file that notes what it is told, from the first change on, and what
// was on the disk before it.
type watched struct {
	medium
	t     *testing.T
	dir   string
	first disk
	steps []step
}

func (w *watched) told(s step) {
	if w.steps == nil {
		w.first = disk{map[string][]byte{}, map[string][]change{}}
		for _, name := range []string{FileName, FileName + "-wal", JournalName} {
			b, err := os.ReadFile(filepath.Join(w.dir, name))
			if err != nil {
				w.t.Fatal(err)
			}
			w.first.safe[name] = b
		}
	}
	w.steps = append(w.steps, s)
}

func (w *watched) WriteAt(b []byte, at int64) (int, error) {
	w.told(step{call: "write", change: change{slices.Clone(b), at}})
	return w.medium.WriteAt(b, at)
}

func (w *watched) Truncate(size int64) error {
	w.told(step{call: "truncate", change: change{nil, size}})
	return w.medium.Truncate(size)
}

func (w *watched) Sync() error {
	w.told(step{call: "sync"})
	return w.medium.Sync()
}

// TestEraseCuts: a power cut anywhere in an erasure leaves no zeros under a generation that
// had frames there, and a log that is whole.
func TestEraseCuts(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	v := storetest.Value("s_p", 1, "arguments", strings.Repeat("planted-token ", 50_000))
	storetest.Append(t, s, "s_p", 0, storetest.Seal(t, audit.Record{Kind: audit.KindOpen, Session: "s_p", N: 1, Time: storetest.Epoch}, v))
	storetest.Append(t, s, "s_p", 1, storetest.Entries(t, "s_p", 2, 2)...)
	w := &watched{medium: s.journal.medium, t: t, dir: dir}
	s.journal.medium = w
	if err := s.Erase(context.Background(), "s_p", 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := w.first.safe[JournalName]
	frames := before[headerSize:ends(t, before)[1]]
	r := rand.New(rand.NewPCG(7, 7))
	again := 0 // how often frames were gone
	for n := range len(w.steps) + 1 {
		d := disk{maps.Clone(w.first.safe), map[string][]change{}}
		for _, s := range w.steps[:n] {
			if s.call == "sync" {
				d.synced(JournalName, len(d.pending[JournalName]))
			} else {
				d.pending[JournalName] = append(d.pending[JournalName], s.change)
			}
		}
		for range size(8, 80) {
			left := d.cut(r)
			j := left[JournalName]
			if len(j) < headerSize+len(frames) || !bytes.Equal(j[headerSize:headerSize+len(frames)], frames) {
				if again++; bytes.Equal(j[beginning:beginning+8], before[beginning:beginning+8]) {
					t.Errorf("cut after %d: frames are gone of a generation that stands", n)
				}
			}
			if err := survived(t, left, 3); err != nil {
				t.Errorf("cut after %d: %v", n, err)
			}
		}
	}
	if again == 0 {
		t.Error("nothing was wiped")
	}
}
