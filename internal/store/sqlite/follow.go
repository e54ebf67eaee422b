package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/writ-project/writ/audit"
	"golang.org/x/mod/sumdb/tlog"
)

// followed is the log as far as this process has proven it: its head was signed by
// the log's key, and the records up to it are counted.
type followed struct {
	tree  audit.Tree
	root  audit.Hash
	heads map[string]audit.Head
}

// catchUp brings what is known to what the database and the journal hold: the
// records between are hashed and counted, so a head continues what was known and
// is the head of these records. While this process appends, what is known is all there is: nobody else
// may, and what it appends is not read again by who reads beside it. Whoever calls it holds s.mu, and with locked the
// journal.
func (s *Store) catchUp(ctx context.Context, locked bool) (err error) {
	if s.holding && !locked {
		return nil
	}
	first := s.known.heads == nil
	n := news{renewed: first}
	if s.journal == nil { // it may be there by now
		if s.journal, err = openJournal(s.path, true); err != nil {
			return err
		}
	}
	if s.journal != nil {
		defer func() {
			if err != nil {
				s.journal.position = position{} // what was read and is not known is read again
			}
		}()
		n, err = s.journal.catchUp()
	}
	if err == nil && (first || n.renewed) {
		err = s.follow(ctx, s.read)
	}
	if err == nil && len(n.frames) > 0 {
		err = s.takeAll(ctx, &n, first, locked)
	}
	if err == nil && s.known.tree.Size() < n.synced {
		if err = n.missing(); err == errRolledBack && first && s.opt.Accept {
			s.accepts(err)
			err = nil
		}
	}
	if err == nil && n.torn && locked {
		err = s.journal.Truncate(s.journal.end)
	}
	return err
}

// takeAll goes on by frames of the journal, all of them or none. Each goes on from what is
// known, its root is that of its records, and the log's key vouches for it. Where an
// operator accepts that some are missing, those before the gap are taken.
func (s *Store) takeAll(ctx context.Context, n *news, first, locked bool) error {
	frames, err := s.beyond(ctx, n.frames)
	if err != nil {
		return err
	}
	was := s.accepted
	if frames, err = s.vouched(frames, n.from, first, locked); err != nil {
		return err
	}
	if i := s.gap(frames); i < len(frames) && first && s.opt.Accept {
		s.accepted = was
		s.accepts(errRolledBack)
		if frames, err = s.vouched(frames[:i], n.from, first, locked); err != nil { // by what stands before it
			return err
		}
	}
	if len(frames) == 0 {
		return nil // what follow knows stands
	}
	tree, heads := s.known.tree, map[string]audit.Head{}
	for i := range frames {
		f := &frames[i]
		if begins := f.size - int64(len(f.items)); begins > tree.Size() {
			return errRolledBack
		} else if begins < tree.Size() {
			return errDamaged
		}
		for k := range f.items {
			it := &f.items[k]
			rec, err := audit.ParseRecord(it.Leaf)
			if err != nil || s.count(heads, rec, it.Index) != nil {
				return errDamaged
			}
			it.Session, it.N, it.Hashes = rec.Session, rec.N, tree.Append(it.Leaf)
		}
		if tree.Root() != f.root {
			return errDamaged
		}
	}
	for i := range frames {
		s.extend(&frames[i])
	}
	s.known.tree, s.known.root = tree, tree.Root()
	maps.Copy(s.known.heads, heads)
	return nil
}

// beyond leaves out the frames of which all is known. The last of them has to be of this
// log: else another wrote to the database what the journal does not know of.
func (s *Store) beyond(ctx context.Context, frames []frame) ([]frame, error) {
	size := s.known.tree.Size()
	i := 0
	for i < len(frames) && (frames[i].size < size || frames[i].size == size && (len(frames[i].items) > 0 || frames[i].root != s.known.root)) {
		i++
	}
	if i == 0 {
		return frames, nil
	}
	last := &frames[i-1]
	root := s.known.root
	if last.size < size {
		tree, err := audit.LoadTree(last.size, tail(s.tail).stored(storedHash(func(leaf int64) *sql.Row { return s.read.QueryRowContext(ctx, hashesOf, leaf) })))
		if err != nil {
			return nil, err
		}
		root = tree.Root()
	}
	if last.root != root {
		return nil, errDamaged
	}
	return frames[i:], nil
}

// vouched are the frames, from a position on, that the log's key vouches for: by the signed head behind
// them, which is of that very log, or with the signer's key by their codes. Who has no signer
// comes back for what is not signed yet, and writes nothing behind it.
func (s *Store) vouched(frames []frame, from position, first, locked bool) ([]frame, error) {
	signed := lastSigned(frames)
	if signed > 0 {
		if err := s.signed(&frames[signed-1].mark, first); err != nil {
			return nil, err
		}
		from = frames[signed-1].behind
	}
	for i := signed; i < len(frames); i++ {
		switch f := &frames[i]; {
		case len(f.code) == 0:
			if err := s.signed(&f.mark, first); err != nil {
				return nil, err
			}
		case s.coder == nil && locked:
			return nil, errUnsigned
		case s.coder == nil:
			s.journal.position = from
			frames = frames[:signed]
		case !s.coder.vouches(f):
			return nil, errWrongKey
		}
	}
	return frames, nil
}

// gap is how many frames there are before records that are missing.
func (s *Store) gap(frames []frame) int {
	size := s.known.tree.Size()
	for i := range frames {
		if frames[i].size-int64(len(frames[i].items)) > size {
			return i
		}
		size = frames[i].size
	}
	return len(frames)
}

// lastSigned is how many frames there are up to the last one with a signed head.
func lastSigned(frames []frame) int {
	n := len(frames)
	for n > 0 && len(frames[n-1].note) == 0 {
		n--
	}
	return n
}

// extend goes behind a frame.
func (s *Store) extend(f *frame) {
	if n := len(s.marks); len(f.items) > 0 {
		s.tail, s.marks = append(s.tail, f.items...), append(s.marks, f.mark)
	} else if n > 0 {
		s.marks[n-1] = f.mark
	}
}

// count counts a record that comes next in the log.
func (s *Store) count(heads map[string]audit.Head, rec *audit.Record, index int64) error {
	h, ok := heads[rec.Session]
	if !ok {
		h = s.known.heads[rec.Session]
	}
	if rec.N != h.N+1 {
		return errDamaged
	}
	heads[rec.Session] = audit.Head{Session: rec.Session, N: rec.N, Index: index}
	return nil
}

// signed is an error if the log's key did not sign a head, and has to.
func (s *Store) signed(m *mark, first bool) error {
	if s.opt.Verifier == nil || m.size == 0 {
		return nil
	}
	if len(m.note) == 0 {
		if first && s.opt.Accept {
			s.accepts(errUnsigned)
			return nil
		}
		return errUnsigned
	}
	if c, err := audit.OpenCheckpoint(m.note, s.opt.Verifier); err != nil {
		return errWrongKey
	} else if c.Size != m.size || c.Root != m.root {
		return errDamaged
	}
	return nil
}

// follow goes on to the head that q reads in the database. An older head than the
// one it had before is that of a log which was put in this one's place.
func (s *Store) follow(ctx context.Context, q querier) error {
	var m mark
	var err error
	if m.size, m.root, _, m.note, err = s.readHead(ctx, q); err != nil {
		return err
	}
	return s.followTo(ctx, q, m)
}

// followTo is follow, to a head that was read.
func (s *Store) followTo(ctx context.Context, q querier, m mark) error {
	first := s.known.heads == nil
	if first {
		if err := s.fromHeads(ctx, q); err != nil {
			return err
		}
		s.folded = mark{s.known.tree.Size(), s.known.root, nil}
	}
	if first || m.size > s.known.tree.Size() {
		if err := s.signed(&m, first); err != nil {
			return err
		}
	}
	if m.size <= s.known.tree.Size() {
		return s.isFolded(m)
	}
	tree := s.known.tree
	heads := map[string]audit.Head{}
	rs, err := q.QueryContext(ctx, "SELECT idx, "+boundedLeaf+" FROM leaves l WHERE idx >= ? AND idx < ? ORDER BY idx", tree.Size(), m.size)
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		var index int64
		var leaf []byte
		if err := rs.Scan(&index, &leaf); err != nil {
			return err
		}
		rec, err := audit.ParseRecord(leaf)
		if err != nil || index != tree.Size() || s.count(heads, rec, index) != nil {
			return errDamaged
		}
		tree.Append(leaf)
	}
	if err := rs.Err(); err != nil {
		return err
	}
	if tree.Size() != m.size || tree.Root() != m.root {
		return errDamaged
	}
	s.known.tree, s.known.root = tree, m.root
	maps.Copy(s.known.heads, heads)
	s.tail, s.marks, s.folded = nil, nil, m
	return nil
}

// isFolded goes on to a head of the database that is known, and lets go of what
// the journal held up to it.
func (s *Store) isFolded(m mark) error {
	if m.size < s.folded.size {
		return errRolledBack
	}
	i := slices.IndexFunc(s.marks, func(o mark) bool { return o.size == m.size })
	switch {
	case m.size == s.folded.size:
		if m.root != s.folded.root {
			return errDamaged
		}
	case i < 0 || s.marks[i].root != m.root:
		return errDamaged
	default:
		s.tail = slices.Clone(s.tail[m.size-s.tail[0].Index:])
		s.marks = slices.Clone(s.marks[i+1:])
		s.folded = m
	}
	return nil
}

// readHead reads the head; signed is the size of the newest checkpoint kept.
func (s *Store) readHead(ctx context.Context, q querier) (size int64, root audit.Hash, signed int64, note []byte, err error) {
	var r []byte
	err = q.QueryRowContext(ctx, "SELECT "+headColumns[s.version]+" FROM head WHERE id = 1").Scan(&size, &r, &signed, &note)
	if err == nil && (len(r) != len(root) || size < 0 || len(note) > audit.MaxCheckpoint) {
		err = errDamaged
	}
	copy(root[:], r)
	return size, root, signed, note, err
}

// fromHeads sets what is known from the heads that were signed last, or to nothing:
// then every record is counted.
func (s *Store) fromHeads(ctx context.Context, q querier) error {
	empty := audit.Tree{}
	s.known = followed{root: empty.Root(), heads: map[string]audit.Head{}}
	if s.opt.Verifier == nil || s.version < 2 {
		return nil
	}
	var body, note []byte
	if err := q.QueryRowContext(ctx, "SELECT iif(length(body) <= 1 << 28, body, x''), "+boundedNote+" FROM heads WHERE id = 1").Scan(&body, &note); errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	if tree, heads, err := audit.OpenHeads(body, note, s.opt.Verifier); err == nil {
		s.known = followed{tree, tree.Root(), heads}
		s.counted = tree.Size()
	}
	return nil
}

const hashesOf = "SELECT hashes FROM leaves WHERE idx = ?"

// storedHash reads one hash of the tree. Nothing it says is proven.
func storedHash(hashes func(leaf int64) *sql.Row) func(audit.Node) (audit.Hash, error) {
	return func(n audit.Node) (h audit.Hash, err error) {
		var b []byte
		if err := hashes(n.Leaf).Scan(&b); errors.Is(err, sql.ErrNoRows) {
			return h, errDamaged
		} else if err != nil {
			return h, err
		}
		if len(b)%len(h) != 0 || n.Level < 0 || (n.Level+1)*len(h) > len(b) {
			return h, errDamaged
		}
		copy(h[:], b[n.Level*len(h):])
		return h, nil
	}
}

// view is the log at a proven head: one read transaction, and what the journal
// holds beyond it.
type view struct {
	s    *Store
	tx   *sql.Tx
	tree audit.Tree
	tail tail
}

// tail is what the journal holds beyond the database, with hashes.
type tail []audit.Item

// stored reads one hash of the tree, of a leaf in the tail or by db.
func (t tail) stored(db func(audit.Node) (audit.Hash, error)) func(audit.Node) (audit.Hash, error) {
	return func(n audit.Node) (h audit.Hash, err error) {
		if len(t) == 0 || n.Leaf < t[0].Index {
			return db(n)
		}
		i := n.Leaf - t[0].Index
		if i >= int64(len(t)) || n.Level < 0 || n.Level >= len(t[i].Hashes) {
			return h, errDamaged
		}
		return t[i].Hashes[n.Level], nil
	}
}

// items yields copies of those of the tail that are wanted.
func (t tail) items(wanted func(*audit.Item) bool) iter.Seq2[audit.Item, error] {
	return func(yield func(audit.Item, error) bool) {
		for i := range t {
			if it := &t[i]; wanted(it) && !yield(copied(it), nil) {
				return
			}
		}
	}
}

// copied is an item that may be changed.
func copied(it *audit.Item) audit.Item {
	c := *it
	c.Leaf, c.Hashes = bytes.Clone(it.Leaf), slices.Clone(it.Hashes)
	c.Values = slices.Clone(it.Values)
	for i := range c.Values {
		c.Values[i].Bytes = bytes.Clone(c.Values[i].Bytes)
	}
	return c
}

// at begins one, and returns how many records the session has in it.
func (s *Store) at(ctx context.Context, session string) (_ *view, head audit.Head, err error) {
	if s.isClosed() {
		return nil, head, audit.ErrClosed
	}
	if s.raw {
		return s.unproven(ctx, session)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx, false); err != nil {
		return nil, head, s.done(err)
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, head, s.done(err)
	}
	if err := s.follow(ctx, tx); err != nil {
		tx.Rollback()
		return nil, head, s.done(err)
	}
	return &view{s: s, tx: tx, tree: s.known.tree, tail: s.tail}, s.known.heads[session], nil
}

// unproven is at of a store that has no key.
func (s *Store) unproven(ctx context.Context, session string) (*view, audit.Head, error) {
	head := audit.Head{Session: session}
	v, err := s.snapshot(ctx, false)
	if err != nil {
		return nil, head, s.done(err)
	}
	err = v.tx.QueryRowContext(ctx, "SELECT coalesce(max(n), 0), coalesce(max(idx), 0) FROM leaves WHERE session = ?", session).Scan(&head.N, &head.Index)
	if err != nil {
		v.Close()
		return nil, head, s.done(err)
	}
	for i := range v.tail {
		if it := &v.tail[i]; it.Session == session {
			head.N, head.Index = it.N, it.Index
		}
	}
	return &view{s: s, tx: v.tx, tail: v.tail}, head, nil
}

// A batch of records is proven at once, which takes few hashes; it ends at this
// many records or bytes.
const (
	batchItems = 1024
	batchBytes = 8 << 20
)

// proven yields the items as they come, once they are proven. due is an error for one that is
// not the next, and, with nil, where the last was not the last there must be.
func (v *view) proven(ctx context.Context, src iter.Seq2[audit.Item, error], due func(*audit.Item) error) iter.Seq2[audit.Item, error] {
	return func(yield func(audit.Item, error) bool) {
		var batch []audit.Item
		size := 0
		flush := func() bool {
			if err := v.prove(ctx, batch); err != nil {
				yield(audit.Item{}, err)
				return false
			}
			for i := range batch {
				if !yield(batch[i], nil) {
					return false
				}
			}
			batch, size = batch[:0], 0
			return true
		}
		for it, err := range src {
			if err == nil {
				err = due(&it)
			}
			if err != nil {
				if flush() {
					yield(audit.Item{}, err)
				}
				return
			}
			batch = append(batch, it)
			size += len(it.Leaf)
			for i := range it.Values {
				size += len(it.Values[i].Bytes)
			}
			if (len(batch) >= batchItems || size >= batchBytes) && !flush() {
				return
			}
		}
		if flush() {
			if err := due(nil); err != nil {
				yield(audit.Item{}, err)
			}
		}
	}
}

// ofSession is due of the records of one session, numbered from n to last.
func ofSession(session string, n, last uint64) func(*audit.Item) error {
	return func(it *audit.Item) error {
		if it == nil && n <= last || it != nil && (it.Session != session || it.N != n || n > last) {
			return &audit.AlteredError{Session: session, N: n, Fault: audit.SessionNumber}
		}
		n++
		return nil
	}
}

// prove proves that the items are what the log holds. An *audit.AlteredError
// names the first that is not.
func (v *view) prove(ctx context.Context, items []audit.Item) error {
	if v.s.raw {
		return nil
	}
	leaves := make([]audit.Leaf, len(items))
	for i := range items {
		it := &items[i]
		leaves[i] = audit.Leaf{Index: it.Index, Hash: tlog.RecordHash(it.Leaf)}
		fault := audit.Fault("")
		if rec, err := audit.ParseRecord(it.Leaf); err != nil {
			fault = audit.LeafMalformed
		} else if rec.Session != it.Session || rec.N != it.N {
			fault = audit.LeafIndex
		} else if f, _ := audit.CheckValues(rec, it.Values); f != "" {
			fault = f
		}
		if fault != "" {
			if err := v.prove(ctx, items[:i]); err != nil {
				return err
			}
			return &audit.AlteredError{Session: it.Session, N: it.N, Fault: fault}
		}
	}
	hashes, err := v.tx.PrepareContext(ctx, hashesOf)
	if err != nil {
		return v.s.done(err)
	}
	defer hashes.Close()
	stored := v.tail.stored(storedHash(func(leaf int64) *sql.Row { return hashes.QueryRowContext(ctx, leaf) }))
	err = v.tree.Holds(leaves, stored)
	for i := 0; i < len(leaves) && errors.Is(err, audit.ErrAltered); i++ {
		if one := v.tree.Holds(leaves[i:i+1], stored); one != nil {
			if errors.Is(one, audit.ErrAltered) {
				one = &audit.AlteredError{Session: items[i].Session, N: items[i].N, Fault: audit.LeafHash}
			}
			return one
		}
	}
	return err
}

var (
	errDamaged    = fmt.Errorf("%w: the log does not have the hash it should", audit.ErrAltered)
	errUnsigned   = fmt.Errorf("%w: records are in the log that its key did not sign", audit.ErrAltered)
	errWrongKey   = fmt.Errorf("%w: its head is not signed by the log's key", audit.ErrAltered)
	errRolledBack = fmt.Errorf("%w: an older or another log was put in its place", audit.ErrAltered)
)

// newest refuses a log that does not go on from the newest checkpoint that was
// kept.
func (v *view) newest(ctx context.Context) error {
	var note []byte
	err := v.tx.QueryRowContext(ctx, "SELECT "+boundedNote+" FROM checkpoints ORDER BY size DESC LIMIT 1").Scan(&note)
	if errors.Is(err, sql.ErrNoRows) || err == nil && v.s.opt.Verifier == nil {
		return nil
	} else if err != nil {
		return err
	}
	c, err := audit.OpenCheckpoint(note, v.s.opt.Verifier)
	if err != nil {
		return errWrongKey
	}
	if c.Size > v.tree.Size() {
		return errRolledBack
	}
	return nil
}
