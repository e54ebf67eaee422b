package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

// model is a log in slices that tests can damage at will.
type model struct {
	tb    testing.TB
	sk    note.Signer
	vk    note.Verifier
	tree  Tree
	size  int64 // what head says
	root  Hash
	items []Item
	notes [][]byte
	blobs []Blob
	fail  error
	heads map[string]uint64
}

func newModel(tb testing.TB) *model {
	sk, vk := testKey(tb, "writ.test/log", 1)
	return &model{tb: tb, sk: sk, vk: vk, root: (&Tree{}).Root(), heads: map[string]uint64{}}
}

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// add appends the next record of a session, whatever it is.
func (m *model) add(session string, kind Kind, data string, vs ...Value) *Item {
	m.heads[session]++
	return m.put(Record{Kind: kind, Session: session, N: m.heads[session], Time: epoch, Data: []byte(data)}, vs...)
}

func (m *model) put(r Record, vs ...Value) *Item {
	m.tb.Helper()
	e, err := Seal(r, vs...)
	if err != nil {
		m.tb.Fatal(err)
	}
	m.items = append(m.items, Item{Index: m.tree.Size(), Session: r.Session, N: r.N, Leaf: slices.Clone(e.Leaf()), Values: e.Values()})
	it := &m.items[len(m.items)-1]
	it.Hashes = m.tree.Append(it.Leaf)
	m.size, m.root = m.tree.Size(), m.tree.Root()
	return it
}

func (m *model) sign() {
	n, err := SignCheckpoint(m.tree.Size(), m.tree.Root(), m.sk)
	if err != nil {
		m.tb.Fatal(err)
	}
	m.notes = append(m.notes, n)
}

func (m *model) checkpoint() Checkpoint {
	return Checkpoint{m.vk.Name(), m.tree.Size(), m.tree.Root()}
}

// fill makes sessions of each records, in turn, signed every 16 records.
func (m *model) fill(sessions, each int) {
	for i := range each {
		for s := range sessions {
			id := fmt.Sprintf("s_%d", s)
			v := Value{Name: "arguments", Salt: [SaltSize]byte{byte(i), byte(s)}, Bytes: fmt.Appendf(nil, "value %d of %s", i, id)}
			switch {
			case i == 0:
				m.add(id, KindOpen, `{"principal":"local:1000"}`)
			case i == each-1 && i%2 == 1:
				m.add(id, KindClose, `{}`)
			case i%2 == 1:
				m.add(id, KindDecision, `{"status":"accepted","tool":"files/list"}`, v)
			default:
				v.Name = "result"
				m.add(id, KindResult, fmt.Sprintf(`{"decision":%d,"status":"ok"}`, i), v)
			}
			if m.tree.Size()%16 == 0 {
				m.sign()
			}
		}
	}
	m.sign()
}

// rebuild hashes the items anew, as one who holds the file could.
func (m *model) rebuild() {
	m.tree = Tree{}
	for i := range m.items {
		m.items[i].Index = int64(i)
		m.items[i].Hashes = m.tree.Append(m.items[i].Leaf)
	}
	m.size, m.root = m.tree.Size(), m.tree.Root()
}

func (m *model) Size() int64  { return m.size }
func (m *model) Root() Hash   { return m.root }
func (m *model) Close() error { return nil }
func (m *model) Scan(_ context.Context, from int64) iter.Seq2[Item, error] {
	return seq(m.items[from:], m.fail)
}
func (m *model) Checkpoints(context.Context) iter.Seq2[[]byte, error] { return seq(m.notes, nil) }
func (m *model) Blobs(context.Context) iter.Seq2[Blob, error]         { return seq(m.blobs, nil) }
func (m *model) ReadHashes(is []int64) (out []Hash, err error) {
	for _, i := range is {
		n := StoredNode(i)
		if n.Leaf >= int64(len(m.items)) {
			return nil, ErrNotFound
		}
		out = append(out, m.items[n.Leaf].Hashes[n.Level])
	}
	return out, nil
}

func seq[T any](ts []T, fail error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, t := range ts {
			if !yield(t, nil) {
				return
			}
		}
		if fail != nil {
			var zero T
			yield(zero, fail)
		}
	}
}

func (m *model) verify(o VerifyOptions) *Report {
	m.tb.Helper()
	o.Verifier = m.vk
	r, err := Verify(context.Background(), m, o)
	if err != nil {
		m.tb.Fatal(err)
	}
	return r
}

func TestVerifyGood(t *testing.T) {
	m := newModel(t)
	if r := m.verify(VerifyOptions{}); r.Problem != nil || r.Size != 0 {
		t.Errorf("an empty log: %+v", r)
	}
	m.fill(3, 20)
	known := []Checkpoint{m.checkpoint()}
	m.add("s_0", KindEvent, `{"after":"close"}`)
	m.add("s_x", KindOpen, `{}`)
	m.add("s_x", KindDecision, `{"status":"rejected"}`)
	m.add("s_x", KindDecision, `{"shadow":true,"status":"rejected"}`)
	m.add("s_x", KindDecision, `{"status":"transformed"}`)
	m.add("s_x", KindResult, `{"decision":3,"status":"unknown"}`)
	m.add("s_x", KindResult, `{"decision":3,"status":"error"}`)
	m.add("s_x", "later.kind", `{"anything":[1.5]}`)
	m.add("s_x", KindClose, `{}`)
	m.add("s_x", KindResult, `{"decision":4,"status":"unknown"}`)
	m.add("s_x", KindDecision, `{"status":"rejected"}`)
	m.sign()
	m.items[5].Values = nil // erased
	m.blobs = []Blob{{Sum([]byte("policy")), []byte("policy")}}
	var seen []int64
	r := m.verify(VerifyOptions{Known: known, Replay: func(r *Record, it *Item) error {
		if r.N != it.N || r.Session != it.Session {
			return errors.New("another record")
		}
		seen = append(seen, it.Index)
		return nil
	}})
	want := Report{Records: 71, Sessions: 4, Decisions: 31, Accepted: 28, Rejected: 3, Shadowed: 1, Results: 30, Undone: 1,
		Values: 53, Erased: 1, Blobs: 1, Checkpoints: 5, Signed: 71, Size: 71, Root: m.tree.Root()}
	if *r != want {
		t.Errorf("\n got %+v\nwant %+v", *r, want)
	}
	if len(seen) != 71 || !slices.IsSorted(seen) {
		t.Errorf("replayed %v", seen)
	}
	if _, err := Verify(context.Background(), m, VerifyOptions{}); err == nil {
		t.Error("verified without a key")
	}
}

// TestVerifyFinds damages one log of 60 records in every way there is a fault
// for. The first bad record must be named.
func TestVerifyFinds(t *testing.T) {
	type end struct {
		fault Fault
		index int64
	}
	var opt VerifyOptions
	for name, c := range map[string]struct {
		damage func(m *model)
		want   end
	}{
		"L01 edited": {func(m *model) { m.items[7].Leaf[len(m.items[7].Leaf)-8] ^= 1 }, end{LeafMalformed, 7}},
		"L01 edited, still a record": {func(m *model) {
			m.items[9].Leaf = []byte(strings.Replace(string(m.items[9].Leaf), "files/list", "files/lisp", 1))
		}, end{LeafHash, 9}},
		"L01 edited and its own hash": {func(m *model) {
			m.items[10].Leaf = []byte(strings.Replace(string(m.items[10].Leaf), "files/list", "files/lisp", 1))
			m.items[10].Hashes[0] = tlog.RecordHash(m.items[10].Leaf)
		}, end{LeafHash, 11}},
		"L01 edited and all hashes": {func(m *model) {
			m.items[21].Leaf = []byte(strings.Replace(string(m.items[21].Leaf), "files/list", "files/lisp", 1))
			m.rebuild()
		}, end{CheckpointRoot, 16}},
		"L01 everything signed again by another key": {func(m *model) {
			m.sk, _ = testKey(t, "writ.test/log", 9)
			m.notes = nil
			m.sign()
		}, end{CheckpointInvalid, 0}},
		"L01 deleted":                 {func(m *model) { m.items = slices.Delete(m.items, 9, 10) }, end{LogGap, 9}},
		"L01 deleted and renumbered":  {func(m *model) { m.items = slices.Delete(m.items, 9, 10); m.rebuild() }, end{SessionNumber, 11}},
		"L01 inserted twice":          {func(m *model) { m.items = slices.Insert(m.items, 9, m.items[8]) }, end{LogGap, 9}},
		"L01 inserted and renumbered": {func(m *model) { m.items = slices.Insert(m.items, 9, m.items[8]); m.rebuild() }, end{SessionNumber, 9}},
		"L01 swapped":                 {func(m *model) { m.items[9], m.items[10] = m.items[10], m.items[9] }, end{LogGap, 9}},
		"L01 swapped and renumbered": {func(m *model) {
			m.items[17], m.items[18] = m.items[18], m.items[17]
			m.rebuild()
		}, end{CheckpointRoot, 16}},
		"L01 hash flipped":        {func(m *model) { m.items[7].Hashes[2][5] ^= 1 }, end{LeafHash, 7}},
		"L01 hash missing":        {func(m *model) { m.items[7].Hashes = m.items[7].Hashes[:2] }, end{LeafHash, 7}},
		"L01 no hashes":           {func(m *model) { m.items[0].Hashes = nil }, end{LeafHash, 0}},
		"L01 filed under another": {func(m *model) { m.items[7].Session = "s_9" }, end{LeafIndex, 7}},
		"L01 filed under number":  {func(m *model) { m.items[7].N++ }, end{LeafIndex, 7}},
		"L01 value changed":       {func(m *model) { m.items[7].Values[0].Bytes[0] ^= 1 }, end{ValueMismatch, 7}},
		"L01 salt changed":        {func(m *model) { m.items[7].Values[0].Salt[0] ^= 1 }, end{ValueMismatch, 7}},
		"L01 value never written": {func(m *model) { m.items[0].Values = []Value{{Name: "arguments"}} }, end{ValueUnknown, 0}},
		"L01 value twice":         {func(m *model) { v := m.items[7].Values; m.items[7].Values = append(v, v[0]) }, end{ValueUnknown, 7}},
		"L01 checkpoint flipped":  {func(m *model) { m.notes[1][0] ^= 1 }, end{CheckpointInvalid, 16}},
		"L01 checkpoints swapped": {func(m *model) { m.notes[0], m.notes[1] = m.notes[1], m.notes[0] }, end{CheckpointOrder, 32}},
		"L01 checkpoint of a lie": {func(m *model) { m.notes[2], _ = SignCheckpoint(48, Hash{}, m.sk) }, end{CheckpointRoot, 32}},
		"L01 blob changed":        {func(m *model) { m.blobs = []Blob{{Sum([]byte("a")), []byte("b")}} }, end{BlobMismatch, 60}},
		"L02 tail cut":            {func(m *model) { m.items = m.items[:59] }, end{LogTruncated, 59}},
		"L02 tail cut, head too":  {func(m *model) { m.items = m.items[:59]; m.rebuild() }, end{LogTruncated, 59}},
		"L02 tail and checkpoints": {func(m *model) {
			m.items = m.items[:50]
			m.rebuild()
			m.notes = m.notes[:3]
			opt.Known = []Checkpoint{full(t)}
		}, end{LogTruncated, 50}},
		"L02 all cut": {func(m *model) { m.items = nil }, end{LogTruncated, 0}},
		"L03 rolled back": {func(m *model) {
			m.items = m.items[:32]
			m.rebuild()
			m.notes = m.notes[:2]
			opt.Known = []Checkpoint{full(t)}
		}, end{LogTruncated, 32}},
		"L04 forked and signed": {func(m *model) {
			m.items, m.notes = m.items[:32], m.notes[:2]
			m.rebuild()
			for range 40 {
				m.heads["s_f"]++
				m.put(Record{Kind: "event", Session: "s_f", N: m.heads["s_f"], Time: epoch})
				m.items[32].Leaf = []byte(strings.Replace(string(m.items[32].Leaf), "event", "open", 1))
			}
			m.rebuild()
			m.sign()
			opt.Known = []Checkpoint{full(t)}
		}, end{CheckpointRoot, 32}},
		"L03 known checkpoint of another log": {func(m *model) {
			c := full(t)
			c.Origin = "writ.test/other"
			opt.Known = []Checkpoint{c}
		}, end{CheckpointRoot, 48}},
		"F10 records behind the last signature": {func(m *model) { m.add("s_x", KindOpen, `{}`) }, end{LogUnsigned, 60}},
		"F10 no checkpoint at all":              {func(m *model) { m.notes = nil }, end{LogUnsigned, 0}},
		"F10 tail rewritten, older checkpoints kept": {func(m *model) {
			m.items[59].Leaf = []byte(strings.Replace(string(m.items[59].Leaf), "close", "event", 1))
			m.rebuild()
			m.notes = m.notes[:3]
		}, end{LogUnsigned, 48}},
		"head claims less":    {func(m *model) { m.size = 50 }, end{LogHead, 50}},
		"head claims another": {func(m *model) { m.root[0] ^= 1 }, end{LogHead, 60}},
		"cannot be read on":   {func(m *model) { m.items, m.fail = m.items[:5], errors.New("disk") }, end{LogUnreadable, 5}},
		"L07 two records in a leaf": {func(m *model) {
			m.items[7].Leaf = append(append(m.items[7].Leaf, '\n'), m.items[10].Leaf...)
			m.rebuild()
		}, end{LeafMalformed, 7}},
		"session begins with a decision": {func(m *model) { m.add("s_n", KindDecision, `{"status":"accepted"}`) }, end{SessionOpen, 60}},
		"session opened twice":           {func(m *model) { m.add("s_0", KindOpen, `{}`) }, end{SessionOpen, 60}},
		"session begins late":            {func(m *model) { m.heads["s_n"] = 4; m.add("s_n", KindOpen, `{}`) }, end{SessionNumber, 60}},
		"number skipped":                 {func(m *model) { m.heads["s_0"]++; m.add("s_0", KindEvent, `{}`) }, end{SessionNumber, 60}},
		"number again":                   {func(m *model) { m.heads["s_0"]--; m.add("s_0", KindEvent, `{}`) }, end{SessionNumber, 60}},
		"decision without status":        {func(m *model) { m.add("s_0", KindDecision, `{}`) }, end{DecisionStatus, 60}},
		"decision of a new status":       {func(m *model) { m.add("s_0", KindDecision, `{"status":"maybe"}`) }, end{DecisionStatus, 60}},
		"decision status escaped":        {func(m *model) { m.add("s_0", KindDecision, `{"status":"accepted\n"}`) }, end{DecisionStatus, 60}},
		"decision status no string":      {func(m *model) { m.add("s_0", KindDecision, `{"status":true}`) }, end{DecisionStatus, 60}},
		"act after close":                {func(m *model) { m.add("s_0", KindDecision, `{"status":"accepted"}`) }, end{SessionClosed, 60}},
		"shadowed act after close":       {func(m *model) { m.add("s_0", KindDecision, `{"shadow":true,"status":"rejected"}`) }, end{SessionClosed, 60}},
		"L05 result without decision":    {func(m *model) { m.add("s_0", KindResult, `{"status":"ok"}`) }, end{ResultDecision, 60}},
		"L05 result without status":      {func(m *model) { m.add("s_0", KindResult, `{"decision":2}`) }, end{ResultDecision, 60}},
		"L05 result of the future":       {func(m *model) { m.add("s_0", KindResult, `{"decision":22,"status":"ok"}`) }, end{ResultDecision, 60}},
		"L05 result of itself":           {func(m *model) { m.add("s_0", KindResult, `{"decision":21,"status":"ok"}`) }, end{ResultDecision, 60}},
		"L05 result of an open":          {func(m *model) { m.add("s_0", KindResult, `{"decision":1,"status":"ok"}`) }, end{ResultDecision, 60}},
		"L05 second result":              {func(m *model) { m.add("s_0", KindResult, `{"decision":2,"status":"ok"}`) }, end{ResultDecision, 60}},
		"L05 result of a refusal":        {func(m *model) { refused(m); m.add("s_n", KindResult, `{"decision":2,"status":"ok"}`) }, end{ResultDecision, 62}},
		"L05 result of another session's": {func(m *model) {
			m.add("s_n", KindOpen, `{}`)
			m.add("s_n", KindResult, `{"decision":18,"status":"ok"}`)
		}, end{ResultDecision, 61}},
		"replay differs": {func(m *model) { opt.Replay = differs }, end{ReplayDiffers, 30}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t)
			m.fill(3, 20)
			opt = VerifyOptions{}
			c.damage(m)
			r := m.verify(opt)
			p := r.Problem
			if p == nil {
				t.Fatal("not found")
			}
			if p.Fault != c.want.fault || p.Index != c.want.index {
				t.Fatalf("found %v, want %s at %d", p, c.want.fault, c.want.index)
			}
			if p.Fault == CheckpointRoot && p.Until <= p.Index {
				t.Errorf("no range: %+v", p)
			}
			if p.Fault != CheckpointRoot && p.Fault != LogUnsigned && p.Fault != LogHead && r.Records > p.Index {
				t.Errorf("%d records counted before record %d", r.Records, p.Index)
			}
			if s := p.Error(); !strings.Contains(s, string(p.Fault)) || strings.ContainsAny(s, "\n\x1b") {
				t.Errorf("%q", s)
			}
		})
	}
}

// full is the checkpoint of the undamaged log, as somebody else kept it.
func full(tb testing.TB) Checkpoint {
	m := newModel(tb)
	m.fill(3, 20)
	return m.checkpoint()
}

func refused(m *model) {
	m.add("s_n", KindOpen, `{}`)
	m.add("s_n", KindDecision, `{"status":"rejected"}`)
}

func differs(_ *Record, it *Item) error {
	if it.Index == 30 {
		return errors.New("the decision was another")
	}
	return nil
}

// TestFlipEveryByte is L01 to the letter on a short log: every byte of every
// leaf, hash, salt, value and checkpoint, one at a time.
func TestFlipEveryByte(t *testing.T) {
	m := newModel(t)
	m.fill(2, 6)
	flip := func(b *byte, mask byte, index int64, what string) {
		*b ^= mask
		defer func() { *b ^= mask }()
		p := m.verify(VerifyOptions{}).Problem
		if p == nil || index >= 0 && p.Index != index {
			t.Errorf("%s: found %v, want record %d", what, p, index)
		}
	}
	for i := range m.items {
		it := &m.items[i]
		for j := range it.Leaf {
			flip(&it.Leaf[j], 1<<(j%8), int64(i), "leaf")
		}
		for h := range it.Hashes {
			for j := range it.Hashes[h] {
				flip(&it.Hashes[h][j], 0x80, int64(i), "hash")
			}
		}
		for v := range it.Values {
			for j := range it.Values[v].Salt {
				flip(&it.Values[v].Salt[j], 1, int64(i), "salt")
			}
			for j := range it.Values[v].Bytes {
				flip(&it.Values[v].Bytes[j], 0x20, int64(i), "value")
			}
		}
	}
	text := len(m.notes[0]) - 90 // the end of a note is base64 whose last bits do not count
	for j := range m.notes[0][:text] {
		flip(&m.notes[0][j], 4, -1, "checkpoint")
	}
}

// TestAnyDamage: no sequence of deletions, copies and moves of records passes
// with the checkpoints that were there.
func TestAnyDamage(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(t)
		m.fill(2, 12)
		before := slices.Clone(m.items)
		for range rapid.IntRange(1, 4).Draw(rt, "steps") {
			n := len(m.items)
			i, j := rapid.IntRange(0, n-1).Draw(rt, "i"), rapid.IntRange(0, n-1).Draw(rt, "j")
			switch rapid.SampledFrom([]string{"delete", "copy", "swap"}).Draw(rt, "how") {
			case "delete":
				m.items = slices.Delete(slices.Clone(m.items), i, i+1)
			case "copy":
				m.items = slices.Insert(slices.Clone(m.items), i, m.items[j])
			case "swap":
				m.items = slices.Clone(m.items)
				m.items[i], m.items[j] = m.items[j], m.items[i]
			}
		}
		same := slices.EqualFunc(m.items, before, func(a, b Item) bool { return string(a.Leaf) == string(b.Leaf) })
		if rapid.Bool().Draw(rt, "hash anew") {
			m.rebuild()
		}
		if r := m.verify(VerifyOptions{}); (r.Problem == nil) != same {
			rt.Fatalf("same %v: %v", same, r.Problem)
		}
	})
}

// endless is a log that is never held as a whole (L09).
type endless struct {
	*model
	n     int64
	given int64
}

func (e *endless) Scan(context.Context, int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var tree Tree
		for i := range e.n {
			kind := KindEvent
			if i == 0 {
				kind = KindOpen
			}
			entry, err := Seal(Record{Kind: kind, Session: "s_a", N: uint64(i) + 1, Time: epoch})
			if err != nil {
				yield(Item{}, err)
				return
			}
			if !yield(Item{Index: i, Session: "s_a", N: uint64(i) + 1, Leaf: entry.Leaf(), Hashes: tree.Append(entry.Leaf())}, nil) {
				return
			}
			e.given++
		}
		e.size, e.root = tree.Size(), tree.Root()
	}
}

// TestVerifyStreams: Verify reads at most a few batches ahead of what it has
// judged, and ends its reading when it stops early.
func TestVerifyStreams(t *testing.T) {
	e := &endless{model: newModel(t), n: 30_000}
	judged := int64(0)
	stop := errors.New("enough")
	r, err := Verify(context.Background(), e, VerifyOptions{Verifier: e.vk, Replay: func(_ *Record, it *Item) error {
		judged++
		if judged == 10_000 {
			return stop
		}
		return nil
	}})
	if err != nil || r.Problem == nil || r.Problem.Index != 9_999 || r.Problem.Fault != ReplayDiffers {
		t.Fatalf("%+v, %v", r, err)
	}
	if ahead := e.given - judged; ahead > (batches+4)*batchItems {
		t.Errorf("L09: %d records were read ahead", ahead)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	_, err = Verify(cancelled, e, VerifyOptions{Verifier: e.vk, Replay: func(*Record, *Item) error { cancel(); return nil }})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
