package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"maps"

	"github.com/writ-project/writ/audit"
)

// writing is one transaction of the writer.
type writing struct {
	s      *Store
	ctx    context.Context
	tree   audit.Tree
	root   audit.Hash
	note   []byte // the checkpoint of tree, once it is signed
	signed int64  // size of the newest checkpoint that is kept
	sync   bool   // the commit is synced
	dirty  bool
	erased bool                  // what the write-ahead log still holds must go
	heads  map[string]audit.Head // of sessions appended to
	count  bool                  // the heads of all sessions are to be signed
}

func (w *writing) load() (err error) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	var size int64
	var root []byte
	if err := s.stmts.head.QueryRowContext(w.ctx).Scan(&size, &root, &w.signed, &w.note); err != nil {
		return err
	}
	if len(root) != len(w.root) {
		return errDamaged
	}
	w.root = audit.Hash(root)
	w.tree, err = s.followTo(w.ctx, s.conn, size, w.root, w.note)
	return err
}

// publish makes known what was committed, unless a reader found it already.
func (w *writing) publish() {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.tree.Size() > s.known.tree.Size() {
		s.known.tree, s.known.root = w.tree, w.root
		maps.Copy(s.known.heads, w.heads)
		s.appended = true
	}
	if w.count {
		s.counted = w.tree.Size()
	}
}

// head returns how many records a session has as this transaction leaves it.
func (w *writing) head(session string) audit.Head {
	if h, ok := w.heads[session]; ok {
		return h
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.known.heads[session]
}

func hashAt(b []byte, level int) (h audit.Hash, err error) {
	if len(b)%len(h) != 0 || level < 0 || (level+1)*len(h) > len(b) {
		return h, errDamaged
	}
	copy(h[:], b[level*len(h):])
	return h, nil
}

func (w *writing) append(j *job) error {
	head := w.head(j.session)
	if head.N != j.expected {
		return audit.ErrConflict
	}
	j.first = w.tree.Size()
	for i := range j.entries {
		e := &j.entries[i]
		idx := w.tree.Size()
		hs := w.tree.Append(e.Leaf())
		flat := make([]byte, 0, len(hs)*32)
		for _, h := range hs {
			flat = append(flat, h[:]...)
		}
		if _, err := w.s.stmts.leaf.Exec(idx, j.session, int64(e.N()), e.Leaf(), flat); err != nil {
			return err
		}
		for _, v := range e.Values() {
			if _, err := w.s.stmts.value.Exec(idx, v.Name, v.Salt[:], notNull(v.Bytes)); err != nil {
				return err
			}
		}
	}
	w.heads[j.session] = audit.Head{Session: j.session, N: head.N + uint64(len(j.entries)), Index: w.tree.Size() - 1}
	w.dirty = true
	return nil
}

// notNull keeps empty bytes from becoming NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// finish writes the head, signed: no commit leaves a record that it does not
// cover.
func (w *writing) finish() error {
	s := w.s
	if !w.dirty {
		return nil
	}
	w.root = w.tree.Root()
	size := w.tree.Size()
	if err := w.sign(); err != nil {
		return err
	}
	// What is kept is handed out, so it must not be lost in a power cut.
	if w.sync && size-w.signed >= s.opt.CheckpointEvery {
		if err := w.keep(); err != nil {
			return err
		}
	}
	if err := w.signHeads(); err != nil {
		return err
	}
	_, err := s.stmts.setHead.Exec(size, w.root[:], w.signed, w.note)
	return err
}

// sign signs the log as the transaction leaves it so far.
func (w *writing) sign() (err error) {
	w.note = []byte{}
	if w.s.opt.Signer != nil && w.tree.Size() > 0 {
		w.note, err = audit.SignCheckpoint(w.tree.Size(), w.root, w.s.opt.Signer)
	}
	return err
}

// keep keeps the checkpoint that was just signed.
func (w *writing) keep() error {
	if len(w.note) == 0 {
		return nil
	}
	_, err := w.s.conn.ExecContext(w.ctx, "INSERT INTO checkpoints (size, note) VALUES (?, ?)", w.tree.Size(), w.note)
	w.signed = w.tree.Size()
	return err
}

// signHeads signs how many records each session has, at the end of a process
// and now and then: who opens the log counts those that came after.
func (w *writing) signHeads() error {
	s := w.s
	size := w.tree.Size()
	s.mu.Lock()
	due := s.opt.Signer != nil && (w.count || size-s.counted >= max(s.opt.CheckpointEvery, int64(len(s.known.heads))))
	var all map[string]audit.Head
	if due {
		all = maps.Clone(s.known.heads)
	}
	s.mu.Unlock()
	if w.count = due; !due {
		return nil
	}
	maps.Copy(all, w.heads)
	body, note, err := audit.SignHeads(&w.tree, all, s.opt.Signer)
	if err != nil {
		return err
	}
	_, err = s.conn.ExecContext(w.ctx, "INSERT INTO heads (id, body, note) VALUES (1, ?, ?) ON CONFLICT DO UPDATE SET body = excluded.body, note = excluded.note", body, note)
	return err
}

func (w *writing) checkpoint() (msg []byte, err error) {
	if w.tree.Size() > w.signed {
		w.root = w.tree.Root()
		if err = w.sign(); err == nil {
			err = w.keep()
		}
		if err != nil {
			return nil, err
		}
		w.dirty = true
	}
	err = w.s.conn.QueryRowContext(w.ctx, "SELECT note FROM checkpoints ORDER BY size DESC LIMIT 1").Scan(&msg)
	if errors.Is(err, sql.ErrNoRows) {
		err = audit.ErrNotFound
	}
	return msg, err
}

// touch changes the head, which finish writes back: a transaction that changes
// no page would not be synced.
func (w *writing) touch() error {
	w.dirty = true
	_, err := w.s.conn.ExecContext(w.ctx, "UPDATE head SET signed = signed + 1 WHERE id = 1")
	return err
}

// one runs a statement that has to change a row, else is its error.
func (w *writing) one(none error, query string, args ...any) error {
	res, err := w.s.conn.ExecContext(w.ctx, query, args...)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, none)
	}
	return nil
}
