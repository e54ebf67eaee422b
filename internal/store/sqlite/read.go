package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/writ-project/writ/audit"
)

// querier is a pool or one read transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// done turns the pool's own closing error into the contract's.
func (s *Store) done(err error) error {
	switch {
	case s.isClosed():
		return audit.ErrClosed
	case errors.Is(err, sql.ErrNoRows):
		return audit.ErrNotFound
	}
	return fmt.Errorf("sqlite: read: %w", err)
}

// rows yields one T for each row; it reads them in one statement, so they are
// of one moment.
func rows[T any](ctx context.Context, s *Store, q querier, scan func(*sql.Rows) (T, error), query string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		if s.isClosed() {
			yield(zero, audit.ErrClosed)
			return
		}
		rs, err := q.QueryContext(ctx, query, args...)
		if err != nil {
			yield(zero, s.done(err))
			return
		}
		defer rs.Close()
		for rs.Next() {
			t, err := scan(rs)
			if err != nil {
				yield(zero, s.done(err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
		if err := rs.Err(); err != nil {
			yield(zero, s.done(err))
		}
	}
}

// What is longer than anything audit seals is read as empty, which no record
// and no commitment is: whoever can write to the file cannot make a reader
// take a gigabyte into memory (L09).
var (
	boundedLeaf  = fmt.Sprintf("iif(length(leaf) <= %d, leaf, x'')", audit.MaxLeaf)
	boundedBytes = fmt.Sprintf("iif(length(bytes) <= %d, bytes, x'')", audit.MaxValue)
	boundedNote  = fmt.Sprintf("iif(length(note) <= %d, note, x'')", audit.MaxCheckpoint)
)

// leaf returns a function that reads a leaf, with its hashes if they are asked for. It
// refuses columns of a wrong size instead of guessing; everything else is Verify's.
func leaf(hashes bool) func(*sql.Rows) (audit.Item, error) {
	var session, leaf, flat sql.RawBytes
	var index, n int64
	into := []any{&index, &session, &n, &leaf, &flat}
	if !hashes {
		into = into[:4]
	}
	last := "" // records of a session often stand together
	return func(rs *sql.Rows) (it audit.Item, err error) {
		if err := rs.Scan(into...); err != nil {
			return it, err
		}
		if string(session) != last {
			last = string(session)
		}
		it.Index, it.Session, it.N, it.Leaf = index, last, uint64(n), bytes.Clone(leaf)
		if hashes {
			if len(flat) == 0 || len(flat)%32 != 0 {
				return it, errDamaged
			}
			it.Hashes = make([]audit.Hash, len(flat)/32)
			for i := range it.Hashes {
				copy(it.Hashes[i][:], flat[32*i:])
			}
		}
		return it, nil
	}
}

// valueOf is a value of the leaf at an index.
type valueOf struct {
	index int64
	audit.Value
}

// value returns a function that reads a valueOf as leaf reads a leaf.
func value() func(*sql.Rows) (valueOf, error) {
	var index int64
	var name, salt, val sql.RawBytes
	into := []any{&index, &name, &salt, &val}
	last := "" // most have one of few names
	return func(rs *sql.Rows) (v valueOf, err error) {
		if err := rs.Scan(into...); err != nil {
			return v, err
		}
		v.index = index
		if len(salt) != audit.SaltSize {
			return v, fmt.Errorf("%w: a salt of the wrong size", audit.ErrAltered)
		}
		if string(name) != last {
			last = string(name)
		}
		v.Value = audit.Value{Name: last, Salt: [audit.SaltSize]byte(salt), Bytes: append(make([]byte, 0, len(val)), val...)}
		return v, nil
	}
}

// joined gives the leaves of one statement the values of another, which has them in the
// order of the same leaves: both are read from end to end, and nothing is looked up. A value of no such leaf is passed over.
func joined(leaves iter.Seq2[audit.Item, error], values iter.Seq2[valueOf, error]) iter.Seq2[audit.Item, error] {
	return func(yield func(audit.Item, error) bool) {
		next, stop := iter.Pull2(values)
		defer stop()
		v, err, more := next()
		for it, bad := range leaves {
			for ; bad == nil && more && err == nil && v.index <= it.Index; v, err, more = next() {
				if v.index == it.Index {
					it.Values = append(it.Values, v.Value)
				}
			}
			if bad == nil && more {
				bad = err
			}
			if !yield(it, bad) || bad != nil {
				return
			}
		}
	}
}

// Read implements audit.Store.
func (s *Store) Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error] {
	from = max(from, 1)
	return s.provenOf(ctx, session, true, func(v *view, head audit.Head) (iter.Seq2[audit.Item, error], func(*audit.Item) error) {
		return s.records(ctx, v.tx, v.tail, session, from, math.MaxInt64), ofSession(session, from, head.N)
	})
}

var leavesOnly = "SELECT idx, session, n, " + boundedLeaf + " FROM leaves "

// Log yields the records of all sessions in the order of the log, proven as Read proves
// them and without their values: from an index on, or with a negative one so many of the
// newest.
func (s *Store) Log(ctx context.Context, from int64) iter.Seq2[audit.Item, error] {
	return s.provenOf(ctx, "", false, func(v *view, _ audit.Head) (iter.Seq2[audit.Item, error], func(*audit.Item) error) {
		if from < 0 {
			from = max(0, v.tree.Size()+from)
		}
		next := from
		due := func(it *audit.Item) error {
			if it == nil && next < v.tree.Size() || it != nil && it.Index != next {
				return errDamaged
			}
			next++
			return nil
		}
		return both(rows(ctx, s, v.tx, leaf(false), leavesOnly+"WHERE idx >= ? ORDER BY idx", from),
			v.tail.items(func(it *audit.Item) bool { return it.Index >= from }), false), due
	})
}

// Records is Read from the first, without the values.
func (s *Store) Records(ctx context.Context, session string) iter.Seq2[audit.Item, error] {
	return s.provenOf(ctx, session, false, func(v *view, head audit.Head) (iter.Seq2[audit.Item, error], func(*audit.Item) error) {
		return both(rows(ctx, s, v.tx, leaf(false), leavesOnly+"WHERE session = ? ORDER BY n", session),
			v.tail.items(func(it *audit.Item) bool { return it.Session == session }), false), ofSession(session, 1, head.N)
	})
}

// provenOf yields records of one moment, proven, with their values or without.
func (s *Store) provenOf(ctx context.Context, session string, values bool, of func(*view, audit.Head) (iter.Seq2[audit.Item, error], func(*audit.Item) error)) iter.Seq2[audit.Item, error] {
	return func(yield func(audit.Item, error) bool) {
		v, head, err := s.at(ctx, session)
		if err != nil {
			yield(audit.Item{}, err)
			return
		}
		defer v.tx.Rollback()
		src, due := of(v, head)
		for it, err := range v.proven(ctx, src, due) {
			if !values {
				it.Values = nil
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

// records yields what is stored as the records from … to of a session.
func (s *Store) records(ctx context.Context, q querier, t tail, session string, from, to uint64) iter.Seq2[audit.Item, error] {
	of := []any{session, int64(min(from, math.MaxInt64)), int64(to)}
	return both(joined(rows(ctx, s, q, leaf(false), leavesOnly+"WHERE session = ? AND n >= ? AND n <= ? ORDER BY n", of...),
		rows(ctx, s, q, value(), `SELECT v.idx, name, salt, `+boundedBytes+` FROM leaves l CROSS JOIN vals v ON v.idx = l.idx
		WHERE session = ? AND n >= ? AND n <= ? ORDER BY n, name`, of...)),
		t.items(func(it *audit.Item) bool { return it.Session == session && it.N >= from && it.N <= to }), false)
}

// both yields what the database holds and then what the journal does, with the
// hashes or without.
func both(stored, tail iter.Seq2[audit.Item, error], hashes bool) iter.Seq2[audit.Item, error] {
	return func(yield func(audit.Item, error) bool) {
		for it, err := range stored {
			if !yield(it, err) || err != nil {
				return
			}
		}
		for it, err := range tail {
			if !hashes {
				it.Hashes = nil
			}
			if !yield(it, err) || err != nil {
				return
			}
		}
	}
}

// Head implements audit.Store.
func (s *Store) Head(ctx context.Context, session string) (uint64, error) {
	if s.isClosed() {
		return 0, audit.ErrClosed
	}
	if s.raw {
		v, head, err := s.unproven(ctx, session)
		if err != nil {
			return 0, err
		}
		return head.N, v.tx.Rollback()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.catchUp(ctx, false); err != nil {
		return 0, s.done(err)
	}
	return s.known.heads[session].N, nil
}

// Heads implements audit.Store.
func (s *Store) Heads(ctx context.Context) iter.Seq2[audit.Head, error] {
	return func(yield func(audit.Head, error) bool) {
		err := errNotProven
		if !s.raw {
			_, err = s.Head(ctx, "")
		}
		if err != nil {
			yield(audit.Head{}, err)
			return
		}
		s.mu.Lock()
		heads := slices.Collect(maps.Values(s.known.heads))
		s.mu.Unlock()
		slices.SortFunc(heads, func(a, b audit.Head) int { return strings.Compare(a.Session, b.Session) })
		for _, h := range heads {
			if !yield(h, nil) {
				return
			}
		}
	}
}

var errNotProven = errors.New("sqlite: the log was opened without its key")

// Value implements audit.Store.
func (s *Store) Value(ctx context.Context, session string, n uint64, name string) ([]byte, error) {
	v, head, err := s.at(ctx, session)
	if err != nil {
		return nil, err
	}
	defer v.tx.Rollback()
	if n < 1 || n > head.N {
		return nil, audit.ErrNotFound
	}
	for it, err := range v.proven(ctx, s.records(ctx, v.tx, v.tail, session, n, n), ofSession(session, n, n)) {
		if err != nil {
			return nil, err
		}
		if b, ok := it.Value(name); ok {
			return b, nil
		}
	}
	return nil, audit.ErrNotFound
}

// Blob implements audit.Store.
func (s *Store) Blob(ctx context.Context, name audit.Digest) (b []byte, err error) {
	if err := s.read.QueryRowContext(ctx, "SELECT bytes FROM blobs WHERE name = ?", name[:]).Scan(&b); err != nil {
		return nil, s.done(err)
	}
	if audit.Sum(b) != name {
		return nil, fmt.Errorf("%w: a blob is not what its name says", audit.ErrAltered)
	}
	return b, nil
}

// Integrity runs SQLite's own check of the file: what no record shows, such as
// an index that lost an entry. It reads everything.
func (s *Store) Integrity(ctx context.Context) error {
	for m, err := range rows(ctx, s, s.read, func(rs *sql.Rows) (m string, err error) {
		err = rs.Scan(&m)
		return m, err
	}, "PRAGMA integrity_check(1)") {
		if err != nil {
			return err
		}
		if m != "ok" {
			return fmt.Errorf("sqlite: integrity check: %q", m)
		}
	}
	for _, err := range rows(ctx, s, s.read, func(rs *sql.Rows) (struct{}, error) {
		return struct{}{}, errors.New("a value belongs to no record")
	}, "PRAGMA foreign_key_check") {
		return err
	}
	return nil
}

// Snapshot implements audit.Store.
func (s *Store) Snapshot(ctx context.Context) (audit.Snapshot, error) {
	if s.isClosed() {
		return nil, audit.ErrClosed
	}
	if s.opt.Signer != nil && s.write != nil {
		if err := s.signNow(ctx); err != nil {
			return nil, s.done(err)
		}
	}
	v, err := s.snapshot(ctx, false)
	if err != nil {
		return nil, s.done(err)
	}
	return v, nil
}

// Passage is Snapshot for who reads a log that others use from end to end: it reads piece by piece, and
// looks at a piece while the database is let go of, so that its write-ahead log can be begun anew and what is
// erased goes. The records are those of one moment all the same. Values that were erased since are
// missing, so that what is wrong has to be looked for in a Snapshot: Disturbed says so.
func (s *Store) Passage(ctx context.Context) (audit.Snapshot, error) {
	snap, err := s.Snapshot(ctx)
	if err != nil || s.idle != nil { // nobody waits
		return snap, err
	}
	v := snap.(*snapshot)
	err = v.tx.QueryRowContext(ctx, "SELECT coalesce(max(size), 0) FROM checkpoints").Scan(&v.notes)
	if err = errors.Join(err, v.Close()); err != nil {
		return nil, s.done(err)
	}
	v.q, v.passes, s.passed = s.read, true, true
	return v, nil
}

// A piece of a Passage ends at this many records or bytes.
const (
	pieceItems = 256
	pieceBytes = 1 << 20
)

// snapshot is what the database held at a moment, and what the journal held beyond it. Nothing
// in it is proven. It is one read transaction, but as a Passage.
type snapshot struct {
	s      *Store
	tx     *sql.Tx
	q      querier // tx, or as a Passage the pool
	passes bool    // it is a Passage
	stored int64   // records of the database
	notes  int64   // size of its newest checkpoint
	last   mark
	tail   tail
	torn   error // why the journal could not be read on
}

// inPieces yields all items behind one, nil for all there are: of a Passage in pieces, each of which was
// read before the first of it is yielded.
func (v *snapshot) inPieces(behind func(*audit.Item) iter.Seq2[audit.Item, error]) iter.Seq2[audit.Item, error] {
	if !v.passes {
		return behind(nil)
	}
	return func(yield func(audit.Item, error) bool) {
		var last *audit.Item
		for more := true; more; {
			var piece []audit.Item
			var failed error
			bytes := 0
			more = false
			for it, err := range behind(last) {
				if failed = err; err != nil {
					break
				}
				piece = append(piece, it)
				bytes += len(it.Leaf)
				for i := range it.Values {
					bytes += len(it.Values[i].Bytes)
				}
				if more = len(piece) == pieceItems || bytes >= pieceBytes; more {
					break
				}
			}
			for i := range piece {
				if last = &piece[i]; !yield(piece[i], nil) {
					return
				}
			}
			if failed != nil {
				yield(audit.Item{}, failed)
				return
			}
		}
	}
}

// snapshot is Snapshot, with what is not signed yet or as who has no key sees it.
func (s *Store) snapshot(ctx context.Context, unsigned bool) (_ *snapshot, err error) {
	v := &snapshot{s: s, notes: math.MaxInt64}
	var n news
	s.mu.Lock()
	if s.journal == nil {
		s.journal, err = openJournal(s.path, true)
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if s.journal != nil { // before the database: what is gone from it by then is there
		n, v.torn = (&journal{medium: s.journal.medium}).catchUp()
		if i := lastSigned(n.frames); !unsigned && i < len(n.frames) && len(n.frames[i].code) > 0 {
			n.frames = n.frames[:i] // what is not signed yet is not there yet
		}
	}
	if v.tx, err = s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			v.tx.Rollback()
		}
	}()
	if v.last.size, v.last.root, _, v.last.note, err = s.readHead(ctx, v.tx); err != nil {
		return nil, err
	}
	v.q, v.stored = v.tx, v.last.size
	tree := audit.Tree{}
	for _, f := range n.frames {
		if f.size < v.last.size || f.size == v.last.size && len(f.items) > 0 {
			continue
		}
		if len(v.tail) == 0 {
			// A fault here is one of the hashes, which are compared with those
			// that are computed.
			tree, _ = audit.LoadTree(v.last.size, storedHash(func(leaf int64) *sql.Row { return v.tx.QueryRowContext(ctx, hashesOf, leaf) }))
		}
		for _, it := range f.items {
			if rec, err := audit.ParseRecord(it.Leaf); err == nil {
				it.Session, it.N = rec.Session, rec.N
			}
			it.Hashes = tree.Append(it.Leaf)
			v.tail = append(v.tail, it)
		}
		v.last = f.mark
	}
	if v.last.size < n.synced {
		if v.last.size = n.synced; n.torn && v.torn == nil {
			v.torn = n.missing()
		}
	}
	return v, nil
}

func (v *snapshot) Size() int64      { return v.last.size }
func (v *snapshot) Root() audit.Hash { return v.last.root }

func (v *snapshot) Close() error {
	if err := v.tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("sqlite: end of snapshot: %w", err)
	}
	return nil
}

func (v *snapshot) Scan(ctx context.Context, from int64) iter.Seq2[audit.Item, error] {
	all := v.inPieces(func(last *audit.Item) iter.Seq2[audit.Item, error] {
		if last != nil {
			from = last.Index + 1
		}
		// What no head covers is yielded, and found wrong; what a newer one does came later.
		return both(joined(rows(ctx, v.s, v.q, leaf(true), "SELECT idx, session, n, "+boundedLeaf+`, hashes FROM leaves
			WHERE idx >= ? AND (+idx < ? OR +idx >= (SELECT size FROM head)) ORDER BY idx`, from, v.stored),
			rows(ctx, v.s, v.q, value(), "SELECT idx, name, salt, "+boundedBytes+" FROM vals WHERE idx >= ? ORDER BY idx, name", from)),
			v.tail.items(func(it *audit.Item) bool { return it.Index >= from }), true)
	})
	return func(yield func(audit.Item, error) bool) {
		for it, err := range all {
			if !yield(it, err) || err != nil {
				return
			}
		}
		if v.torn != nil {
			yield(audit.Item{}, v.torn)
		}
	}
}

// Read yields the items of a session in order, from number from on, of the snapshot's moment.
func (v *snapshot) Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error] {
	return v.inPieces(func(last *audit.Item) iter.Seq2[audit.Item, error] {
		if last != nil {
			from = last.N + 1
		}
		return func(yield func(audit.Item, error) bool) {
			next := from
			for it, err := range v.s.records(ctx, v.q, v.tail, session, from, math.MaxInt64) {
				if v.passes && err == nil && (it.N < next || it.Index >= v.last.size) {
					continue // of the tail, and in the database by now, or newer
				}
				if next = it.N + 1; !yield(it, err) {
					return
				}
			}
		}
	})
}

func (v *snapshot) Checkpoints(ctx context.Context) iter.Seq2[[]byte, error] {
	kept := rows(ctx, v.s, v.q, func(rs *sql.Rows) (b []byte, err error) {
		err = rs.Scan(&b)
		return b, err
	}, "SELECT "+boundedNote+" FROM checkpoints WHERE size <= ? ORDER BY size", v.notes)
	return func(yield func([]byte, error) bool) {
		var last []byte
		for b, err := range kept {
			if last = b; !yield(b, err) || err != nil {
				return
			}
		}
		if len(v.last.note) > 0 && !bytes.Equal(v.last.note, last) {
			yield(v.last.note, nil)
		}
	}
}

func (v *snapshot) Blobs(ctx context.Context) iter.Seq2[audit.Blob, error] {
	return rows(ctx, v.s, v.q, func(rs *sql.Rows) (b audit.Blob, err error) {
		var name []byte
		err = rs.Scan(&name, &b.Bytes)
		if err == nil && len(name) != len(b.Name) {
			err = errors.New("a blob has a name of the wrong size")
		}
		copy(b.Name[:], name)
		return b, err
	}, "SELECT name, bytes FROM blobs ORDER BY name")
}

func (v *snapshot) ReadHashes(indexes []int64) ([]audit.Hash, error) {
	out := make([]audit.Hash, len(indexes))
	stored := v.tail.stored(storedHash(func(leaf int64) *sql.Row { return v.q.QueryRowContext(context.Background(), hashesOf, leaf) }))
	for i, x := range indexes {
		var err error
		if out[i], err = stored(audit.StoredNode(x)); err != nil {
			return nil, v.s.done(err)
		}
	}
	return out, nil
}
