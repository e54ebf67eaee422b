package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"

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

// follow brings what is known to the head that q reads, and returns its tree:
// the records between are hashed and counted, so the head continues what was
// known and is the head of these records. Whoever calls it holds s.mu, and held
// it when what q reads was fixed; so an older head than the known one is that of
// a log which was put in this one's place.
func (s *Store) follow(ctx context.Context, q querier) (tree audit.Tree, err error) {
	size, root, _, note, err := s.readHead(ctx, q)
	if err != nil {
		return tree, err
	}
	return s.followTo(ctx, q, size, root, note)
}

// followTo is follow to the head that was read.
func (s *Store) followTo(ctx context.Context, q querier, size int64, root audit.Hash, note []byte) (tree audit.Tree, err error) {
	first := s.known.heads == nil
	if first {
		if err := s.begin(ctx, q); err != nil {
			return tree, err
		}
	}
	if !first && size == s.known.tree.Size() && root == s.known.root {
		return s.known.tree, nil
	}
	if s.opt.Verifier != nil && size > 0 {
		if len(note) == 0 && first && s.opt.Accept {
			s.unsigned = true
		} else if len(note) == 0 {
			return tree, errUnsigned
		} else if c, err := audit.OpenCheckpoint(note, s.opt.Verifier); err != nil {
			return tree, errWrongKey
		} else if c.Size != size || c.Root != root {
			return tree, errDamaged
		}
	}
	tree = s.known.tree
	if size < tree.Size() {
		return tree, errRolledBack
	}
	heads := map[string]audit.Head{}
	rs, err := q.QueryContext(ctx, "SELECT idx, "+boundedLeaf+" FROM leaves l WHERE idx >= ? AND idx < ? ORDER BY idx", tree.Size(), size)
	if err != nil {
		return tree, err
	}
	defer rs.Close()
	for rs.Next() {
		var index int64
		var leaf []byte
		if err := rs.Scan(&index, &leaf); err != nil {
			return tree, err
		}
		rec, err := audit.ParseRecord(leaf)
		if err != nil || index != tree.Size() {
			return tree, errDamaged
		}
		h, ok := heads[rec.Session]
		if !ok {
			h = s.known.heads[rec.Session]
		}
		if rec.N != h.N+1 {
			return tree, errDamaged
		}
		heads[rec.Session] = audit.Head{Session: rec.Session, N: rec.N, Index: index}
		tree.Append(leaf)
	}
	if err := rs.Err(); err != nil {
		return tree, err
	}
	if tree.Size() != size || tree.Root() != root {
		return tree, errDamaged
	}
	s.known.tree, s.known.root = tree, root
	maps.Copy(s.known.heads, heads)
	return tree, nil
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

// begin sets what is known from the heads that were signed last, or to nothing:
// then every record is counted.
func (s *Store) begin(ctx context.Context, q querier) error {
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
		return hashAt(b, n.Level)
	}
}

// view is one read transaction at a proven head.
type view struct {
	s    *Store
	tx   *sql.Tx
	tree audit.Tree
}

// at begins one, and returns how many records the session has in it.
func (s *Store) at(ctx context.Context, session string) (*view, audit.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, audit.Head{}, s.done(err)
	}
	v := &view{s: s, tx: tx}
	head := audit.Head{Session: session}
	if s.raw {
		err = tx.QueryRowContext(ctx, "SELECT coalesce(max(n), 0), coalesce(max(idx), 0) FROM leaves WHERE session = ?", session).Scan(&head.N, &head.Index)
	} else if v.tree, err = s.follow(ctx, tx); err == nil {
		head = s.known.heads[session]
	}
	if err != nil {
		tx.Rollback()
		return nil, audit.Head{}, s.done(err)
	}
	return v, head, nil
}

// A batch of records is proven at once, which takes few hashes; it ends at this
// many records or bytes.
const (
	batchItems = 1024
	batchBytes = 8 << 20
)

// proven yields the items of one session as they come, numbered from n on, once
// they are proven. last is the newest record there must be.
func (v *view) proven(ctx context.Context, session string, n, last uint64, src iter.Seq2[audit.Item, error]) iter.Seq2[audit.Item, error] {
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
			if err == nil && (it.Session != session || it.N != n || n > last) {
				err = &audit.AlteredError{Session: session, N: n, Fault: audit.SessionNumber}
			}
			if err != nil {
				if flush() {
					yield(audit.Item{}, err)
				}
				return
			}
			n++
			batch = append(batch, it)
			size += len(it.Leaf)
			for i := range it.Values {
				size += len(it.Values[i].Bytes)
			}
			if (len(batch) >= batchItems || size >= batchBytes) && !flush() {
				return
			}
		}
		if flush() && n <= last {
			yield(audit.Item{}, &audit.AlteredError{Session: session, N: n, Fault: audit.SessionNumber})
		}
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
	stored := storedHash(func(leaf int64) *sql.Row { return hashes.QueryRowContext(ctx, leaf) })
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
