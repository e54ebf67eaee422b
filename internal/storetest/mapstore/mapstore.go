// Package mapstore keeps a log in memory: the plain model the durable stores
// are compared with, and the store of tests and of runs that keep nothing.
// Nothing survives the process, so its appends are durable in name only.
package mapstore

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/writ-project/writ/audit"
	"golang.org/x/mod/sumdb/note"
)

// Store is an audit.Store and audit.Sessions in memory.
type Store struct {
	signer note.Signer

	mu       sync.Mutex
	closed   bool
	items    []audit.Item
	tree     audit.Tree
	sessions map[string][]int64 // log indexes, by n-1
	blobs    map[audit.Digest][]byte
	notes    [][]byte
	signed   int64 // size of the newest checkpoint
	register []audit.Session
}

var (
	_ audit.Store    = (*Store)(nil)
	_ audit.Sessions = (*Store)(nil)
)

// New returns an empty store. signer may be nil: then nothing is signed.
func New(signer note.Signer) *Store {
	return &Store{signer: signer, sessions: map[string][]int64{}, blobs: map[audit.Digest][]byte{}}
}

// within does f under the lock, unless the context or the store has ended.
func within[T any](ctx context.Context, s *Store, f func() (T, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := ctx.Err()
	if err == nil && s.closed {
		err = audit.ErrClosed
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return f()
}

// Append implements audit.Store.
func (s *Store) Append(ctx context.Context, session string, expected uint64, entries []audit.Entry) (int64, error) {
	if err := audit.CheckAppend(session, expected, entries); err != nil {
		return 0, err
	}
	return within(ctx, s, func() (int64, error) {
		if uint64(len(s.sessions[session])) != expected {
			return 0, audit.ErrConflict
		}
		first := s.tree.Size()
		for i := range entries {
			e := &entries[i]
			s.sessions[session] = append(s.sessions[session], s.tree.Size())
			s.items = append(s.items, audit.Item{
				Index: s.tree.Size(), Session: session, N: e.N(),
				Leaf: bytes.Clone(e.Leaf()), Hashes: s.tree.Append(e.Leaf()), Values: cloneValues(e.Values()),
			})
		}
		return first, nil
	})
}

// AppendUnsynced implements audit.Store: here it is Append, as there is no disk
// to wait for.
func (s *Store) AppendUnsynced(ctx context.Context, session string, expected uint64, entries []audit.Entry) (int64, error) {
	return s.Append(ctx, session, expected, entries)
}

func cloneValues(vs []audit.Value) []audit.Value {
	vs = slices.Clone(vs)
	for i := range vs {
		vs[i].Bytes = append([]byte{}, vs[i].Bytes...)
	}
	return vs
}

func cloneItem(it audit.Item) audit.Item {
	it.Leaf, it.Hashes, it.Values = bytes.Clone(it.Leaf), slices.Clone(it.Hashes), cloneValues(it.Values)
	return it
}

// each yields what list returns under the lock, without holding it.
func each[T any](ctx context.Context, s *Store, list func() []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ts, err := within(ctx, s, func() ([]T, error) { return list(), nil })
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		all(ctx, ts, func(t T) T { return t })(yield)
	}
}

// Read implements audit.Store.
func (s *Store) Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error] {
	return each(ctx, s, func() (out []audit.Item) {
		for _, index := range s.sessions[session] {
			if it := s.items[index]; it.N >= from {
				it = cloneItem(it)
				it.Hashes = nil
				out = append(out, it)
			}
		}
		return out
	})
}

// Head implements audit.Store.
func (s *Store) Head(ctx context.Context, session string) (uint64, error) {
	return within(ctx, s, func() (uint64, error) { return uint64(len(s.sessions[session])), nil })
}

// Heads implements audit.Store.
func (s *Store) Heads(ctx context.Context) iter.Seq2[audit.Head, error] {
	return each(ctx, s, func() (out []audit.Head) {
		for _, id := range slices.Sorted(maps.Keys(s.sessions)) {
			l := s.sessions[id]
			out = append(out, audit.Head{Session: id, N: uint64(len(l)), Index: l[len(l)-1]})
		}
		return out
	})
}

// Value implements audit.Store.
func (s *Store) Value(ctx context.Context, session string, n uint64, name string) ([]byte, error) {
	return within(ctx, s, func() ([]byte, error) {
		if l := s.sessions[session]; n > 0 && n <= uint64(len(l)) {
			if b, ok := s.items[l[n-1]].Value(name); ok {
				return bytes.Clone(b), nil
			}
		}
		return nil, audit.ErrNotFound
	})
}

// Erase implements audit.Store.
func (s *Store) Erase(ctx context.Context, session string, ns ...uint64) error {
	_, err := within(ctx, s, func() (struct{}, error) {
		l := s.sessions[session]
		for _, n := range ns {
			if n > 0 && n <= uint64(len(l)) {
				s.items[l[n-1]].Values = nil
			}
		}
		return struct{}{}, nil
	})
	return err
}

// PutBlob implements audit.Store.
func (s *Store) PutBlob(ctx context.Context, b []byte) (audit.Digest, error) {
	return within(ctx, s, func() (audit.Digest, error) {
		d := audit.Sum(b)
		s.blobs[d] = append([]byte{}, b...)
		return d, nil
	})
}

// Blob implements audit.Store.
func (s *Store) Blob(ctx context.Context, name audit.Digest) ([]byte, error) {
	return within(ctx, s, func() ([]byte, error) {
		if b, ok := s.blobs[name]; ok {
			return bytes.Clone(b), nil
		}
		return nil, audit.ErrNotFound
	})
}

// Checkpoint implements audit.Store.
func (s *Store) Checkpoint(ctx context.Context) ([]byte, error) {
	return within(ctx, s, func() ([]byte, error) {
		notes, err := s.checkpoints()
		if err != nil {
			return nil, err
		}
		if s.notes, s.signed = notes, s.tree.Size(); len(notes) == 0 {
			return nil, audit.ErrNotFound
		}
		return bytes.Clone(notes[len(notes)-1]), nil
	})
}

// checkpoints are those that were kept, and one of the log as it is.
func (s *Store) checkpoints() ([][]byte, error) {
	notes := slices.Clone(s.notes)
	if s.signer == nil || s.tree.Size() <= s.signed {
		return notes, nil
	}
	n, err := audit.SignCheckpoint(s.tree.Size(), s.tree.Root(), s.signer)
	return append(notes, n), err
}

// Snapshot implements audit.Store.
func (s *Store) Snapshot(ctx context.Context) (audit.Snapshot, error) {
	return within(ctx, s, func() (audit.Snapshot, error) {
		notes, err := s.checkpoints()
		if err != nil {
			return nil, err
		}
		v := &snapshot{tree: s.tree, notes: notes, items: slices.Clone(s.items)}
		for d, b := range s.blobs {
			v.blobs = append(v.blobs, audit.Blob{Name: d, Bytes: b})
		}
		slices.SortFunc(v.blobs, func(a, b audit.Blob) int { return bytes.Compare(a.Name[:], b.Name[:]) })
		return v, nil
	})
}

// Close implements audit.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

type snapshot struct {
	tree  audit.Tree
	items []audit.Item
	notes [][]byte
	blobs []audit.Blob
}

func (v *snapshot) Size() int64      { return v.tree.Size() }
func (v *snapshot) Root() audit.Hash { return v.tree.Root() }
func (v *snapshot) Close() error     { return nil }

func all[T any](ctx context.Context, ts []T, clone func(T) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, t := range ts {
			if err := ctx.Err(); err != nil {
				var zero T
				yield(zero, err)
				return
			}
			if !yield(clone(t), nil) {
				return
			}
		}
	}
}

func (v *snapshot) Scan(ctx context.Context, from int64) iter.Seq2[audit.Item, error] {
	return all(ctx, v.items[min(max(from, 0), int64(len(v.items))):], cloneItem)
}

func (v *snapshot) Checkpoints(ctx context.Context) iter.Seq2[[]byte, error] {
	return all(ctx, v.notes, bytes.Clone)
}

func (v *snapshot) Blobs(ctx context.Context) iter.Seq2[audit.Blob, error] {
	return all(ctx, v.blobs, func(b audit.Blob) audit.Blob {
		b.Bytes = bytes.Clone(b.Bytes)
		return b
	})
}

func (v *snapshot) ReadHashes(indexes []int64) ([]audit.Hash, error) {
	out := make([]audit.Hash, len(indexes))
	for i, x := range indexes {
		n := audit.StoredNode(x)
		if n.Leaf >= int64(len(v.items)) {
			return nil, audit.ErrNotFound
		}
		out[i] = v.items[n.Leaf].Hashes[n.Level]
	}
	return out, nil
}

// AddSession implements audit.Sessions.
func (s *Store) AddSession(ctx context.Context, x audit.Session) error {
	x, err := audit.CheckSession(x)
	if err != nil {
		return err
	}
	_, err = within(ctx, s, func() (bool, error) {
		if slices.ContainsFunc(s.register, func(o audit.Session) bool { return o.ID == x.ID || o.SecretDigest == x.SecretDigest }) {
			return false, audit.ErrExists
		}
		s.register = append(s.register, x)
		return true, nil
	})
	return err
}

// SessionBySecret implements audit.Sessions.
func (s *Store) SessionBySecret(ctx context.Context, secret audit.Digest) (audit.Session, error) {
	return s.session(ctx, func(x *audit.Session) bool { return x.SecretDigest == secret }, nil)
}

// SessionByID implements audit.Sessions.
func (s *Store) SessionByID(ctx context.Context, id string) (audit.Session, error) {
	return s.session(ctx, func(x *audit.Session) bool { return x.ID == id }, nil)
}

// session is a registered session, with what change, unless nil, does to it.
func (s *Store) session(ctx context.Context, is func(*audit.Session) bool, change func(*audit.Session)) (audit.Session, error) {
	return within(ctx, s, func() (audit.Session, error) {
		for i := range s.register {
			if x := &s.register[i]; is(x) {
				if change != nil {
					change(x)
				}
				return *x, nil
			}
		}
		return audit.Session{}, audit.ErrNotFound
	})
}

// TouchSession implements audit.Sessions.
func (s *Store) TouchSession(ctx context.Context, id string, at time.Time) error {
	return s.update(ctx, id, func(x *audit.Session) {
		if at = at.UTC().Truncate(time.Microsecond); at.After(x.LastUsed) {
			x.LastUsed = at
		}
	})
}

// CloseSession implements audit.Sessions.
func (s *Store) CloseSession(ctx context.Context, id string, at time.Time) error {
	return s.update(ctx, id, func(x *audit.Session) {
		if x.Closed.IsZero() {
			x.Closed = at.UTC().Truncate(time.Microsecond)
		}
	})
}

func (s *Store) update(ctx context.Context, id string, change func(*audit.Session)) error {
	_, err := s.session(ctx, func(x *audit.Session) bool { return x.ID == id }, change)
	return err
}

// ListSessions implements audit.Sessions.
func (s *Store) ListSessions(ctx context.Context) iter.Seq2[audit.Session, error] {
	return each(ctx, s, func() (out []audit.Session) {
		out = slices.Clone(s.register)
		slices.SortFunc(out, func(a, b audit.Session) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
		})
		return out
	})
}
