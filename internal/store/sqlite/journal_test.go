package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// journaled returns the files of a store that was cut off: three records of s_a are
// in the database, and frames of one record each, so many, in the journal, synced or
// not.
func journaled(t *testing.T, frames int, synced bool) (files map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
	if err := s.fold(context.Background(), ending{}); err != nil {
		t.Fatal(err)
	}
	do := s.Append
	if !synced {
		do = s.AppendUnsynced
	}
	for n := range uint64(frames) {
		if n == 2 && !synced { // what comes after is not signed
			if err := s.signNow(context.Background()); err != nil {
				t.Fatal(err)
			}
			s.signing.Store(true)
		}
		if _, err := do(context.Background(), "s_a", 3+n, storetest.Entries(t, "s_a", 4+n, 1)); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	end := s.journal.end // behind it are zeros
	s.mu.Unlock()
	files = map[string][]byte{}
	for _, name := range []string{FileName, FileName + "-wal", JournalName} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == JournalName {
			b = b[:end]
		}
		files[name] = b
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return files
}

// with lays out those files with another journal.
func with(t *testing.T, files map[string][]byte, journal []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	os.Chmod(dir, 0o700)
	for name, b := range files {
		if name == JournalName {
			b = journal
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ends are where the frames of a journal end.
func ends(t *testing.T, b []byte) (at []int) {
	t.Helper()
	for i := headerSize; i < len(b) && b[i] != 0; {
		i += frameHeader + int(binary.BigEndian.Uint32(b[i+4:]))
		at = append(at, i)
	}
	return at
}

// TestTornJournal: a journal that nobody synced and that was cut off anywhere, or whose
// end is zeros or a frame of an earlier time, has the whole frames before, and goes on.
// Who only reads it finds the same.
func TestTornJournal(t *testing.T) {
	files := journaled(t, 4, false)
	b := files[JournalName]
	frames := ends(t, b)
	// How many records a journal of n bytes leaves, and to how many who has the public key
	// alone may hold: more are not signed yet.
	whole := func(n int) (records, signed uint64) {
		records, signed = 3, 3
		start := headerSize
		for _, end := range frames {
			f, err := readPayload(b[start+frameHeader : end])
			if err != nil {
				t.Fatal(err)
			}
			if start = end; end > n {
				break
			}
			if records += uint64(len(f.items)); len(f.note) > 0 {
				signed = records
			}
		}
		return records, signed
	}
	older := journaled(t, 1, true)[JournalName][headerSize:]
	cases := map[int][]byte{}
	for n := headerSize; n <= len(b); n += size(41, 1) {
		cases[n] = nil
	}
	for _, n := range frames {
		cases[n], cases[n-5] = older, make([]byte, 5000)
	}
	cases[frames[0]+9] = append(make([]byte, frames[1]-frames[0]-9), b[frames[1]:]...) // one was not written, and those behind it were
	_, vk := storetest.Key()
	for n, end := range cases {
		records, signed := whole(n)
		dir := with(t, files, append(bytes.Clone(b[:n]), end...))
		r, err := OpenReadOnly(dir, Options{Verifier: vk})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []uint64{must(r.Head(context.Background(), "s_a")), uint64(storetest.Verify(t, r).Records)} {
			if got != signed {
				t.Errorf("cut at %d: %d records are read, want %d", n, got, signed)
			}
		}
		r.Close()
		s := openWith(t, dir, storetest.Every)
		if got := must(s.Head(context.Background(), "s_a")); got != records {
			t.Errorf("cut at %d: %d records, want %d", n, got, records)
		}
		storetest.Append(t, s, "s_a", records, storetest.Entries(t, "s_a", records+1, 1)...)
		if rep := storetest.Verify(t, s); uint64(rep.Records) != records+1 {
			t.Errorf("cut at %d: %+v", n, rep)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func must(n uint64, err error) uint64 {
	if err != nil {
		panic(err)
	}
	return n
}

// TestDamagedJournal: a byte of a journal that was synced is changed, or its end is
// missing. Nothing is cut off: the log is refused, and says why.
func TestDamagedJournal(t *testing.T) {
	files := journaled(t, 3, true)
	b := files[JournalName]
	var cases [][]byte
	for n := 0; n < len(b); n += size(13, 1) {
		if n >= registerPlace && n < beginning || n >= beginning+12 && n < headerSize {
			continue // it says nothing of the frames
		}
		bad := bytes.Clone(b)
		bad[n] ^= 0x20
		cases = append(cases, bad)
	}
	for n := headerSize; n < len(b); n += size(97, 1) {
		cases = append(cases, b[:n])
	}
	for _, bad := range cases {
		dir := with(t, files, bad)
		sk, vk := storetest.Key()
		var oe *OpenError
		want, fault := Damaged, audit.LogUnreadable
		if at := append(ends(t, b), headerSize); slices.Contains(at, len(bad)) && len(bad) < len(b) {
			want, fault = RolledBack, audit.LogTruncated // it ends with a frame
		}
		if s, err := Open(dir, Options{Signer: sk, Verifier: vk}); !errors.As(err, &oe) || oe.Reason != want {
			if err == nil {
				s.Close()
			}
			t.Fatalf("%d bytes, %x: opened: %v", len(bad), bad[:headerSize], err)
		}
		if now, err := os.ReadFile(filepath.Join(dir, JournalName)); err != nil || !bytes.Equal(now, bad) {
			t.Errorf("the journal was changed: %v", err)
		}
		r, err := OpenReadOnly(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if p := storetest.Check(t, r).Problem; p == nil || p.Fault != fault {
			t.Errorf("verify finds %v", p)
		}
		r.Close()
	}
}

// TestShortened: the journal is cut under an open store, which writes nothing behind
// the gap; what it knows it folds.
func TestShortened(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
	if err := os.Truncate(filepath.Join(dir, JournalName), int64(headerSize)+50); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendUnsynced(context.Background(), "s_a", 3, storetest.Entries(t, "s_a", 4, 1)); !errors.Is(err, audit.ErrAltered) {
		t.Errorf("append: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s = openWith(t, dir, storetest.Every)
	defer s.Close()
	if rep := storetest.Verify(t, s); rep.Records != 3 {
		t.Errorf("%+v", rep)
	}
}

// TestForgedJournal: who can write to the journal and has not the key appends nothing,
// and hides nothing but what is newest.
func TestForgedJournal(t *testing.T) {
	files := journaled(t, 3, true)
	b := files[JournalName]
	frames := ends(t, b)
	at := func(n int) position {
		j := position{generation: [8]byte(b[beginning:]), end: int64(n)}
		if n > headerSize {
			start := headerSize
			for _, e := range frames {
				if e == n {
					j.sum = binary.BigEndian.Uint32(b[start+12:])
				}
				start = e
			}
		}
		return j
	}
	other, _ := storetest.KeyNamed("writ.test/another")
	forge := func(where int, id string, n uint64, index int64, tree audit.Tree, signed, coded bool) []byte {
		e := storetest.Entry(t, id, n)
		f := &frame{items: []audit.Item{{Index: index, Leaf: e.Leaf(), Values: e.Values()}}}
		tree.Append(e.Leaf())
		f.size, f.root = index+1, tree.Root()
		if signed {
			f.note, _ = audit.SignCheckpoint(f.size, f.root, other)
		}
		var c coder
		if coded {
			c = coder("another key")
		}
		out, err := at(where).frameOf(f, c)
		if err != nil {
			t.Fatal(err)
		}
		return append(bytes.Clone(b[:where]), out...)
	}
	var tree audit.Tree
	for n := range uint64(6) {
		tree.Append(leafOf(t, n+1))
	}
	// A genuine frame, or its head alone, behind what is forged.
	behind := func(forged []byte, nth int, whole bool) []byte {
		start := headerSize
		if nth > 0 {
			start = frames[nth-1]
		}
		genuine, err := readPayload(b[start+frameHeader : frames[nth]])
		if err != nil || len(genuine.note) == 0 {
			t.Fatal(err)
		}
		if !whole {
			genuine.items = nil
		}
		at := position{generation: [8]byte(b[beginning:]), sum: binary.BigEndian.Uint32(forged[lastFrame(forged)+12:])}
		out, err := at.frameOf(&genuine, nil)
		if err != nil {
			t.Fatal(err)
		}
		return append(forged, out...)
	}
	var four audit.Tree
	for n := range uint64(4) {
		four.Append(leafOf(t, n+1))
	}
	for name, c := range map[string]struct {
		journal []byte
		reason  Reason
	}{
		"a record more, and a genuine head behind it":     {behind(forge(len(b), "s_a", 7, 6, tree, false, false), 2, false), Damaged},
		"another record, and the genuine head behind it":  {behind(forge(frames[0], "s_other", 1, 4, four, false, false), 1, false), Damaged},
		"another record, and the genuine frame behind it": {behind(forge(frames[0], "s_other", 1, 4, four, false, false), 1, true), Damaged},
		"a record more, without a signature":              {forge(len(b), "s_a", 7, 6, tree, false, false), Unsigned},
		"a record more, by another key's code":            {forge(len(b), "s_a", 7, 6, tree, false, true), WrongKey},
		"a record more, by another key":                   {forge(len(b), "s_a", 7, 6, tree, true, false), WrongKey},
		"a gap":                                           {forge(len(b), "s_a", 8, 7, tree, true, false), WrongKey},
	} {
		t.Run(name, func(t *testing.T) {
			sk, vk := storetest.Key()
			s, err := Open(with(t, files, c.journal), Options{Signer: sk, Verifier: vk})
			var oe *OpenError
			if !errors.As(err, &oe) || oe.Reason != c.reason {
				if err == nil {
					s.Close()
				}
				t.Errorf("opened: %v, want %q", err, c.reason)
			}
		})
	}
}

// lastFrame is where the last frame of a journal begins.
func lastFrame(b []byte) (at int) {
	for i := headerSize; i < len(b); i += frameHeader + int(binary.BigEndian.Uint32(b[i+4:])) {
		at = i
	}
	return at
}

func leafOf(t *testing.T, n uint64) []byte {
	e := storetest.Entry(t, "s_a", n)
	return e.Leaf()
}

// TestFoldBeside: one process folds again and again while another appends and a third
// reads, and none misses a record.
func TestFoldBeside(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	one, two := openWith(t, dir, storetest.Every), openWith(t, dir, storetest.Every)
	defer one.Close()
	defer two.Close()
	_, vk := storetest.Key()
	storetest.Append(t, one, "s_a", 0, storetest.Entries(t, "s_a", 1, 1)...)
	r, err := OpenReadOnly(dir, Options{Verifier: vk})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
				if err := two.fold(ctx, ending{}); err != nil {
					ended <- err
					return
				}
			}
		}
	}()
	for n := uint64(1); n < uint64(size(300, 5000)); n++ {
		do := one.AppendUnsynced
		if n%5 == 0 {
			do = one.Append
		}
		if _, err := do(ctx, "s_a", n, storetest.Entries(t, "s_a", n+1, 1)); err != nil {
			t.Fatal(err)
		}
		all := []*Store{two}
		if n%5 == 0 {
			all = append(all, r) // which has no key: it sees what is signed
		}
		for _, s := range all {
			if got, err := s.Head(ctx, "s_a"); err != nil || got != n+1 {
				t.Fatalf("head %d, want %d: %v", got, n+1, err)
			}
		}
		if n%20 == 0 {
			if got := storetest.Collect(t, r.Read(ctx, "s_a", n)); len(got) != 2 {
				t.Fatalf("%d records from %d on", len(got), n)
			}
			if rep := storetest.Verify(t, r); uint64(rep.Records) != n+1 {
				t.Fatalf("%d records verified of %d", rep.Records, n+1)
			}
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// between is a file that does something once a write ended, before who wrote goes on: who signs does too, beside the test.
type between struct {
	medium
	then atomic.Pointer[func()]
}

func (b *between) WriteAt(p []byte, at int64) (n int, err error) {
	n, err = b.medium.WriteAt(p, at)
	if string(p[:min(4, len(p))]) == frameMagic {
		if then := b.then.Swap(nil); then != nil {
			(*then)()
		}
	}
	return n, err
}

// TestFoldedAtOnce: another process folds a frame before its writer counts it as written,
// and what the writer reads meanwhile and after is there once.
func TestFoldedAtOnce(t *testing.T) {
	for name, do := range map[string]func(*Store) appender{
		"synced":   func(s *Store) appender { return s.Append },
		"unsynced": func(s *Store) appender { return s.AppendUnsynced },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx := context.Background()
			one, two := openWith(t, dir, storetest.Every), openWith(t, dir, storetest.Every)
			defer one.Close()
			defer two.Close()
			storetest.Append(t, one, "s_a", 0, storetest.Entries(t, "s_a", 1, 1)...)
			m := &between{medium: one.journal.medium}
			one.journal.medium = m
			for n := uint64(1); n < 6; n++ {
				then := func() {
					if _, err := two.Head(ctx, "s_a"); err != nil {
						t.Error(err)
					}
					if err := two.move(ctx, ending{}, false); err != nil {
						t.Error(err)
					}
					if got := len(storetest.Collect(t, one.Read(ctx, "s_a", 1))); uint64(got) < n || uint64(got) > n+1 {
						t.Errorf("%d records are read while that after %d is written", got, n)
					}
				}
				m.then.Store(&then)
				if err := appendOne(do(one), "s_a", n); err != nil {
					t.Fatal(err)
				}
				if got := storetest.Collect(t, one.Read(ctx, "s_a", 1)); uint64(len(got)) != n+1 {
					t.Errorf("%d records are read, want %d", len(got), n+1)
				}
			}
		})
	}
}

// halfRead is a file of which the header is found half written for so many reads.
type halfRead struct {
	medium
	times int
}

func (h *halfRead) ReadAt(b []byte, at int64) (n int, err error) {
	n, err = h.medium.ReadAt(b, at)
	if at == 0 && n == headerSize && h.times > 0 {
		h.times--
		copy(b[beginning:beginning+4], "half")
	}
	return n, err
}

// TestHalfHeader: who reads a journal's header while another process writes it reads it again,
// and what stays so is damaged.
func TestHalfHeader(t *testing.T) {
	s := openWith(t, t.TempDir(), storetest.Every)
	defer s.Close()
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 1)...)
	h := &halfRead{medium: s.journal.medium, times: 2}
	s.journal.medium = h
	if n, err := s.Head(t.Context(), "s_a"); n != 1 || err != nil || h.times > 0 {
		t.Errorf("head %d: %v", n, err)
	}
	h.times = 3
	if _, err := s.Head(t.Context(), "s_a"); !errors.Is(err, audit.ErrAltered) {
		t.Errorf("a header that stays half written: %v", err)
	}
}

// TestBomb is L09 for the journal: a payload takes hardly more memory than it is long, whatever
// it says of itself, and what audit never seals is no record.
func TestBomb(t *testing.T) {
	const long = 4 << 20
	number := func(n uint64) []byte { return binary.AppendUvarint(nil, n) }
	zeros := make([]byte, long)
	e := storetest.Entry(t, "s_a", 1)
	leaf, root := appendBytes(nil, e.Leaf()), make([]byte, 34) // behind the root no code and no head
	value := func(b []byte) []byte {
		return appendBytes(append(appendBytes(nil, []byte("v")), zeros[:audit.SaltSize]...), b)
	}
	for name, c := range map[string]struct {
		payload [][]byte // behind the index of the first record
		good    bool
	}{
		"a record":                       {[][]byte{number(1), leaf, number(0), root}, true},
		"no record says how many":        {[][]byte{number(1 << 62)}, false},
		"empty records":                  {[][]byte{number(long / 2), zeros, root}, false},
		"empty records, as many as fit":  {[][]byte{number(long / uint64(leastLeaf)), zeros, root}, false},
		"records of one byte":            {[][]byte{number(long / 3), bytes.Repeat([]byte{1, 'x', 0}, long/3), root}, false},
		"no value says how many":         {[][]byte{number(1), leaf, number(1 << 62)}, false},
		"empty values":                   {[][]byte{number(1), leaf, number(long / 18), zeros, root}, false},
		"more values than it commits to": {[][]byte{number(1), leaf, number(4), bytes.Repeat(value(nil), 4), root}, false},
		"a value without a name":         {[][]byte{number(1), leaf, number(1), value(nil)[2:], root}, false},
		"a value":                        {[][]byte{number(1), leaf, number(1), value(zeros), root}, true},
		"a value that is too long":       {[][]byte{number(1), leaf, number(1), value(make([]byte, audit.MaxValue+1)), root}, false},
		"a leaf that is too long":        {[][]byte{number(1), appendBytes(nil, make([]byte, audit.MaxLeaf+1)), number(0), root}, false},
		"a leaf as long as one may be":   {[][]byte{number(1), appendBytes(nil, make([]byte, audit.MaxLeaf)), number(0), root}, true},
	} {
		payload := append(number(0), bytes.Join(c.payload, nil)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f, err := readPayload(payload)
		runtime.ReadMemStats(&after)
		if (err == nil) != c.good || c.good && len(f.items) != 1 {
			t.Errorf("%s: %d records: %v", name, len(f.items), err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(2*len(payload))+1<<20 {
			t.Errorf("%s: %d bytes take %d", name, len(payload), took)
		}
	}
}

// farOff is a file of which only what stands from a place on is there.
type farOff struct {
	medium
	place int64
	b     []byte
}

func (m *farOff) ReadAt(b []byte, at int64) (int, error) {
	return bytes.NewReader(m.b).ReadAt(b, at-m.place)
}

// TestLongestJournal (L09): what stands behind where a journal may end is neither written nor
// read.
func TestLongestJournal(t *testing.T) {
	e := storetest.Entry(t, "s_a", 1)
	at := position{end: mostJournal - 1000}
	f := frame{items: []audit.Item{{Leaf: e.Leaf(), Values: e.Values()}}, mark: mark{size: 1}}
	b, err := at.frameOf(&f, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []int64{mostJournal, mostJournal + 1} {
		at.end = end - int64(len(b))
		m := &farOff{place: at.end, b: b}
		j := &journal{medium: m, position: at}
		var n news
		if err := j.read(&n); (err == nil && len(n.frames) == 1) != (end == mostJournal) {
			t.Errorf("it ends at %d: %d frames: %v", end, len(n.frames), err)
		}
		if end > mostJournal {
			if hard, err := j.put(b, at, false); hard || !errors.Is(err, errFull) {
				t.Errorf("written: %v", err)
			}
		}
	}
}

// FuzzJournal: whatever a journal holds, reading it ends without a panic, and what it
// gives are the frames of the beginning.
func FuzzJournal(f *testing.F) {
	at := position{generation: [8]byte{1}, end: int64(headerSize)}
	var all []byte
	for n := range uint64(3) {
		e := storetest.Entry(panicking{}, "s_a", n+1)
		fr := &frame{items: []audit.Item{{Index: int64(n), Leaf: e.Leaf(), Values: e.Values()}}, mark: mark{size: int64(n) + 1}}
		b, err := at.frameOf(fr, coder("key"))
		if err != nil {
			f.Fatal(err)
		}
		all, at = append(all, b...), fr.behind
	}
	f.Add(all)
	f.Add(all[:len(all)-7])
	f.Fuzz(func(t *testing.T, b []byte) {
		at := position{generation: [8]byte{1}}
		for len(b) > 0 {
			p, sum, ok := at.frameAt(b, at.sum)
			if !ok {
				return
			}
			fr, err := readPayload(p)
			if err != nil {
				return
			}
			again, err := at.frameOf(&fr, nil)
			if err != nil || len(again) > len(b) {
				t.Fatalf("%v: %d bytes, %d were read", err, len(again), len(b))
			}
			at.sum = sum
			b = b[frameHeader+len(p):]
		}
	})
}

// TestOlderDatabase: an older copy of the database beside the journal is noticed without
// a second place, and goes on once an operator accepted it, which is recorded.
func TestOlderDatabase(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
	s.Close()
	older, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	s = openWith(t, dir, storetest.Every)
	storetest.Append(t, s, "s_a", 3, storetest.Entries(t, "s_a", 4, 3)...)
	s.Close()
	if err := os.WriteFile(filepath.Join(dir, FileName), older, 0o600); err != nil {
		t.Fatal(err)
	}
	sk, vk := storetest.Key()
	o := Options{Signer: sk, Verifier: vk}
	var oe *OpenError
	if _, err := Open(dir, o); !errors.As(err, &oe) || oe.Reason != RolledBack {
		t.Fatalf("opened: %v", err)
	}
	for _, o.Accept = range []bool{true, true, false} { // once is enough
		s, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		if a, l := must(s.Head(context.Background(), "s_a")), must(s.Head(context.Background(), ownLog)); a != 3 || l != 1 {
			t.Errorf("%d records, %d of what was accepted", a, l)
		}
		storetest.Verify(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// acceptances are what the log says that operators accepted.
func acceptances(t *testing.T, s *Store) (all []string) {
	t.Helper()
	for _, it := range storetest.Collect(t, s.Read(context.Background(), ownLog, 1)) {
		rec, err := audit.ParseRecord(it.Leaf)
		var data struct{ Accepted string }
		if err == nil {
			err = json.Unmarshal(rec.Data, &data)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data.Accepted)
	}
	return all
}

// TestAcceptedGap: where an operator accepts that records are missing, what stands before the gap is
// taken for what vouches for it there, and a head behind it vouches for nothing. Both
// are recorded.
func TestAcceptedGap(t *testing.T) {
	files := journaled(t, 3, true) // of six records the last three are in the journal
	b := files[JournalName]
	frames := ends(t, b)
	var tree audit.Tree
	for n := range uint64(4) {
		tree.Append(leafOf(t, n+1))
	}
	genuine, err := readPayload(b[frames[1]+frameHeader : frames[2]])
	if err != nil {
		t.Fatal(err)
	}
	forged := func(index int64, c coder) *frame {
		e := storetest.Entry(t, "s_forged", 1)
		tree := tree
		tree.Append(e.Leaf())
		f := &frame{items: []audit.Item{{Index: index, Leaf: e.Leaf(), Values: e.Values()}}, mark: mark{size: index + 1, root: tree.Root()}}
		if c != nil {
			f.code = c // by frameOf
		}
		return f
	}
	sk, vk := storetest.Key()
	own, err := newCoder(sk)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		behind []*frame // behind the fourth record
		want   []string // nil where it is refused
		forged uint64   // how many records of that session are taken
	}{
		"a genuine frame":                        {[]*frame{&genuine}, []string{"rollback"}, 0},
		"a record, and a genuine head":           {[]*frame{forged(4, nil), {mark: genuine.mark}}, []string{"rollback", "unsigned"}, 1},
		"a record with its code, and a head":     {[]*frame{forged(4, own), {mark: genuine.mark}}, []string{"rollback"}, 1},
		"a record with another code, and a head": {[]*frame{forged(4, coder("another")), {mark: genuine.mark}}, nil, 0},
		"a record behind the gap":                {[]*frame{forged(5, nil)}, []string{"rollback"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			at := position{generation: [8]byte(b[beginning:]), end: int64(frames[0]), sum: binary.BigEndian.Uint32(b[headerSize+12:])}
			journal := bytes.Clone(b[:frames[0]])
			for _, f := range c.behind {
				f := *f
				out, err := at.frameOf(&f, coder(f.code))
				if err != nil {
					t.Fatal(err)
				}
				journal, at = append(journal, out...), f.behind
			}
			dir := with(t, files, journal)
			var oe *OpenError
			if _, err := Open(dir, Options{Signer: sk, Verifier: vk}); !errors.As(err, &oe) {
				t.Fatalf("opened: %v", err)
			}
			s, err := Open(dir, Options{Signer: sk, Verifier: vk, Accept: true})
			if c.want == nil {
				if !errors.As(err, &oe) || oe.Reason != WrongKey {
					t.Errorf("opened: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx := context.Background()
			if a, f := must(s.Head(ctx, "s_a")), must(s.Head(ctx, "s_forged")); a != 4 || f != c.forged {
				t.Errorf("%d records, %d forged", a, f)
			}
			if got := acceptances(t, s); !slices.Equal(got, c.want) {
				t.Errorf("accepted %q, want %q", got, c.want)
			}
			storetest.Verify(t, s)
		})
	}
}

// TestOtherDatabase: a database that went on otherwise than its journal did, as a process of an
// earlier version would have it, is refused, and neither is written to.
func TestOtherDatabase(t *testing.T) {
	files := journaled(t, 2, true)
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	storetest.Append(t, s, "s_b", 0, storetest.Entries(t, "s_b", 1, 9)...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, JournalName), files[JournalName], 0o600); err != nil {
		t.Fatal(err)
	}
	sk, vk := storetest.Key()
	var oe *OpenError
	if _, err := Open(dir, Options{Signer: sk, Verifier: vk}); !errors.As(err, &oe) || oe.Reason != Damaged {
		t.Errorf("opened: %v", err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, JournalName)); err != nil || !bytes.Equal(now, files[JournalName]) {
		t.Errorf("the journal was changed: %v", err)
	}
}

// TestActsBeside: two processes with a second place act and read in turns, and neither
// waits for itself.
func TestActsBeside(t *testing.T) {
	dir, place := t.TempDir(), filepath.Join(t.TempDir(), "heads")
	one, two := openBeside(t, dir, place, false), openBeside(t, dir, place, false)
	defer one.Close()
	defer two.Close()
	ctx := context.Background()
	for n := uint64(0); n < 40; n += 2 {
		storetest.Append(t, two, "s_2", n/2, storetest.Entries(t, "s_2", n/2+1, 1)...)
		if _, err := one.AppendUnsynced(ctx, "s_1", n, storetest.Entries(t, "s_1", n+1, 1)); err != nil {
			t.Fatal(err)
		}
		storetest.Append(t, one, "s_1", n+1, storetest.Entries(t, "s_1", n+2, 1)...)
	}
}

// TestSyncedUnsigned: a sync that makes durable what is not signed yet takes nothing from who
// has the public key alone.
func TestSyncedUnsigned(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	defer s.Close()
	_, vk := storetest.Key()
	ctx := context.Background()
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 1)...)
	s.signing.Store(true) // nobody signs what comes
	if _, err := s.AppendUnsynced(ctx, "s_b", 0, storetest.Entries(t, "s_b", 1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.sync(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Verifier: vk}, {}} {
		var oe *OpenError
		if _, err := Open(dir, o); !errors.As(err, &oe) || oe.Reason != Unsigned {
			t.Errorf("to write, without the key: %v", err)
		}
		r, err := OpenReadOnly(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if n, err := r.Head(ctx, "s_a"); n != 1 || err != nil {
			t.Errorf("%d: %v", n, err)
		}
		if rep := storetest.Verify(t, r); rep.Records != 1 {
			t.Errorf("%+v", rep)
		}
	}
}

// TestGone: a journal that is removed or replaced under an open store ends all its writing at the next
// record that is synced, head that is signed or fold, which moves nothing.
func TestGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed there")
	}
	for name, change := range map[string]func(path string) error{
		"removed":    os.Remove,
		"moved away": func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			b, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".new", b, 0o600), os.Rename(path+".new", path))
		},
	} {
		for what, do := range map[string]func(context.Context, *Store) error{
			"synced": func(_ context.Context, s *Store) error { return appendOne(s.Append, "s_a", 4) },
			"signed": func(ctx context.Context, s *Store) error {
				return errors.Join(appendOne(s.AppendUnsynced, "s_a", 4), s.signNow(ctx))
			},
			"folded": func(ctx context.Context, s *Store) error { return s.fold(ctx, ending{}) },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				dir := t.TempDir()
				ctx := context.Background()
				s := openWith(t, dir, storetest.Every)
				storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
				if err := s.fold(ctx, ending{}); err != nil {
					t.Fatal(err)
				}
				storetest.Append(t, s, "s_a", 3, storetest.Entries(t, "s_a", 4, 1)...)
				if err := change(filepath.Join(dir, JournalName)); err != nil {
					t.Fatal(err)
				}
				s.signing.Store(true) // by this test
				if err := do(ctx, s); !errors.Is(err, audit.ErrAltered) {
					t.Errorf("%v", err)
				}
				select {
				case <-s.Broken():
				default:
					t.Fatal("it goes on")
				}
				beside := openWith(t, dir, storetest.Every)
				defer beside.Close()
				had := must(beside.Head(ctx, "s_a")) // where it was replaced by a copy, the fourth too
				storetest.Append(t, beside, "s_a", had, storetest.Entries(t, "s_a", had+1, 1)...)
				if _, err := s.PutBlob(ctx, []byte("x")); err == nil {
					t.Error("it writes to the database")
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				s.write.Close() // as the end of the process would
				if rep := storetest.Verify(t, beside); uint64(rep.Records) != had+1 || had != 3 && name != "replaced" {
					t.Errorf("%+v", rep)
				}
			})
		}
	}
}

// TestSignedByFold: a head that a fold signs counts once it is in the database, and not where that
// fails: a sync meanwhile tells of nothing that not everybody can see.
func TestSignedByFold(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	sk, vk := storetest.Key()
	two := openWith(t, dir, storetest.Every)
	defer two.Close()
	one, err := Open(dir, Options{Signer: sk, Verifier: vk, BusyTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	two.signing.Store(true) // nobody signs what comes
	if _, err := two.AppendUnsynced(ctx, "s_a", 0, storetest.Entries(t, "s_a", 1, 1)); err != nil {
		t.Fatal(err)
	}
	visible := func(want uint64) {
		t.Helper()
		for _, o := range []Options{{Verifier: vk}, {}} {
			r, err := OpenReadOnly(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := r.Head(ctx, "s_a"); n != want || err != nil {
				t.Errorf("%d records, want %d: %v", n, want, err)
			}
			if rep := storetest.Verify(t, r); uint64(rep.Records) != want {
				t.Errorf("%d records verified, want %d", rep.Records, want)
			}
			r.Close()
		}
	}
	execConn := func(query string) {
		t.Helper()
		if _, err := two.conn.ExecContext(ctx, query); err != nil {
			t.Fatal(err)
		}
	}
	execConn("BEGIN IMMEDIATE")
	if err := one.fold(ctx, ending{}); err == nil {
		t.Error("it folds into a database that another writes to")
	}
	if err := one.sync(); err != nil {
		t.Error(err)
	}
	visible(0)
	execConn("ROLLBACK")
	if err := one.fold(ctx, ending{}); err != nil {
		t.Error(err)
	}
	visible(1)
}

// TestHeaderGone: nothing is written to a journal whose header is gone, and what is known is
// in the database in the end.
func TestHeaderGone(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, dir, storetest.Every)
	storetest.Append(t, s, "s_a", 0, storetest.Entries(t, "s_a", 1, 3)...)
	if err := os.Truncate(filepath.Join(dir, JournalName), 20); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Append(context.Background(), "s_a", 3, storetest.Entries(t, "s_a", 4, 1)); !errors.Is(err, audit.ErrAltered) {
			t.Errorf("append: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s = openWith(t, dir, storetest.Every)
	defer s.Close()
	if rep := storetest.Verify(t, s); rep.Records != 3 {
		t.Errorf("%+v", rep)
	}
}
