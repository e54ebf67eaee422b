package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/writ-project/writ/audit"
)

// ending is what a fold does beside moving records.
type ending struct {
	count bool // it signs how many records each session has, if that was longer ago than now
	keep  bool // it keeps the checkpoint of the head
	wipe  bool // nothing of what was in the journal may be left on the disk
}

// foldSoon folds the journal behind the back of who filled it.
func (s *Store) foldSoon() {
	if !s.folding.TryLock() {
		return
	}
	end, err := s.begin(context.Background())
	if err != nil {
		s.folding.Unlock()
		return
	}
	go func() {
		defer end()
		defer s.folding.Unlock()
		// What could not be folded is in the journal still. It grows until it can
		// be, or the disk is full, which appends say.
		s.foldAll(context.Background(), ending{})
	}()
}

// fold moves all that the journal holds into the database, and the journal begins
// anew.
func (s *Store) fold(ctx context.Context, e ending) error {
	s.folding.Lock()
	defer s.folding.Unlock()
	return s.foldAll(ctx, e)
}

// foldAll moves most of it while others append, and the rest while nobody does.
func (s *Store) foldAll(ctx context.Context, e ending) error {
	if err := s.inPlace(); err != nil { // before it writes what others do not learn of
		return err
	}
	if err := s.move(ctx, ending{}, false); err != nil {
		return err
	}
	return s.lockedAtEnd(ctx, func() error {
		if err := s.move(ctx, e, true); err != nil {
			return err
		}
		if err := s.beginAnew(e); err != nil {
			return s.fails("begin the journal anew", err, true)
		}
		s.tellFolded(ctx)
		return nil
	})
}

// beginAnew makes the journal begin anew, once all that it holds is in the database. The
// caller has it locked.
func (s *Store) beginAnew(e ending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fi, err := s.journal.Stat()
	if s.folded.size != s.known.tree.Size() {
		err = errDamaged // what is not in the database stays where it is
	}
	if err == nil && fi.Size() != int64(headerSize) {
		err = s.journal.begin(s.known.tree.Size(), e.wipe)
	}
	if err == nil && e.wipe {
		err = s.journal.Sync()
	}
	return err
}

// move commits to the database, synced, what the journal is known to hold. all
// says that nothing more can come meanwhile.
func (s *Store) move(ctx context.Context, e ending, all bool) error {
	due := func() bool { // the caller holds s.mu
		size := s.known.tree.Size()
		return all && s.opt.Signer != nil && size > s.counted &&
			(e.count || size-s.counted >= max(s.opt.CheckpointEvery, int64(len(s.known.heads))))
	}
	s.mu.Lock()
	idle := len(s.marks) == 0 && !e.keep && !due()
	s.mu.Unlock()
	if idle {
		return nil
	}
	return s.change(ctx, func() (done func(), err error) {
		var now mark
		var signed int64
		if now.size, now.root, signed, now.note, err = s.readHead(ctx, s.conn); err != nil {
			return nil, err
		}
		var tail tail
		var marks []mark
		var tree audit.Tree
		var heads map[string]audit.Head
		s.mu.Lock()
		if err = s.followTo(ctx, s.conn, now); err == nil { // another process may have moved all this, and more
			tail, marks = s.tail, slices.Concat([]mark{now}, s.marks)
			if last := &marks[len(marks)-1]; all && len(marks) > 1 && len(last.note) == 0 {
				err = s.sign(last) // not for s.marks: nobody sees it before it is committed
			}
			for s.opt.Signer != nil && len(marks) > 1 && len(marks[len(marks)-1].note) == 0 {
				marks = marks[:len(marks)-1] // a head is signed
			}
			if now = marks[len(marks)-1]; len(tail) > 0 {
				tail = tail[:max(now.size-tail[0].Index, 0)]
			}
			if tree = s.known.tree; due() {
				heads = maps.Clone(s.known.heads)
			}
		}
		s.mu.Unlock()
		if err == nil {
			err = s.insert(ctx, tail)
		}
		for i := range marks {
			if m := &marks[i]; err == nil && (m.size-signed >= s.opt.CheckpointEvery || e.keep && m.size == now.size && m.size > signed) && s.signed(m, false) == nil && len(m.note) > 0 {
				_, err = s.conn.ExecContext(ctx, "INSERT INTO checkpoints (size, note) VALUES (?, ?)", m.size, m.note)
				signed = m.size
			}
		}
		if err == nil && heads != nil {
			err = s.signHeads(ctx, &tree, heads)
		}
		if err == nil {
			_, err = s.conn.ExecContext(ctx, "UPDATE head SET size = ?, root = ?, signed = ?, note = ? WHERE id = 1", now.size, now.root[:], signed, notNull(now.note))
		}
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if heads != nil {
				s.counted = now.size
			}
			s.isFolded(now) // it is one of the marks
		}, err
	})
}

// signHeads signs how many records each session has, at the end of a process and
// now and then: who opens the log counts those that came after.
func (s *Store) signHeads(ctx context.Context, tree *audit.Tree, heads map[string]audit.Head) error {
	body, note, err := audit.SignHeads(tree, heads, s.opt.Signer)
	if err != nil {
		return err
	}
	_, err = s.conn.ExecContext(ctx, "INSERT INTO heads (id, body, note) VALUES (1, ?, ?) ON CONFLICT DO UPDATE SET body = excluded.body, note = excluded.note", body, note)
	return err
}

// insert writes records with their hashes and values.
func (s *Store) insert(ctx context.Context, items tail) error {
	var flat []byte
	for i := range items {
		it := &items[i]
		flat = flat[:0]
		for _, h := range it.Hashes {
			flat = append(flat, h[:]...)
		}
		if _, err := s.leaf.ExecContext(ctx, it.Index, it.Session, int64(it.N), it.Leaf, flat); err != nil {
			return err
		}
		for _, v := range it.Values {
			if _, err := s.value.ExecContext(ctx, it.Index, v.Name, v.Salt[:], notNull(v.Bytes)); err != nil {
				return err
			}
		}
	}
	return nil
}

// notNull keeps empty bytes from becoming NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// change runs f in one transaction of the database, which is synced, and done once
// it is committed.
func (s *Store) change(ctx context.Context, f func() (done func(), err error)) (err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.failed(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // what was begun is finished
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return s.fails("begin", err, false)
	}
	done, err := f()
	if err == nil {
		if _, err = s.conn.ExecContext(ctx, "COMMIT"); err == nil {
			done()
			return nil
		}
	}
	s.conn.ExecContext(ctx, "ROLLBACK")
	if errors.Is(err, audit.ErrNotFound) || errors.Is(err, audit.ErrExists) {
		return err
	}
	// What was put in this log's place is not written on.
	return s.fails("write to the database", err, errors.Is(err, audit.ErrAltered))
}

// one runs a statement that has to change a row, else its error is none; with none
// nil it need not.
func (s *Store) one(ctx context.Context, none error, query string, args ...any) error {
	return s.change(ctx, func() (func(), error) {
		res, err := s.conn.ExecContext(context.WithoutCancel(ctx), query, args...)
		if err == nil && none != nil {
			var n int64
			if n, err = res.RowsAffected(); err == nil && n == 0 {
				err = none
			}
		}
		return func() {}, err
	})
}

// Checkpoint implements audit.Store.
func (s *Store) Checkpoint(ctx context.Context) (msg []byte, err error) {
	end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := s.fold(ctx, ending{keep: true}); err != nil {
		return nil, err
	}
	err = s.read.QueryRowContext(ctx, "SELECT note FROM checkpoints ORDER BY size DESC LIMIT 1").Scan(&msg)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, audit.ErrNotFound
	}
	return msg, err
}

// Erase implements audit.Store. The pages are overwritten with zeros, and the write-ahead
// log is emptied.
func (s *Store) Erase(ctx context.Context, session string, ns ...uint64) error {
	if len(ns) == 0 {
		return nil
	}
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s.folding.Lock()
	defer s.folding.Unlock()
	if err := s.foldAll(ctx, ending{wipe: true}); err != nil {
		return err
	}
	err = s.change(ctx, func() (func(), error) {
		ctx := context.WithoutCancel(ctx)
		st, err := s.conn.PrepareContext(ctx, "DELETE FROM vals WHERE idx = (SELECT idx FROM leaves WHERE session = ? AND n = ?)")
		if err != nil {
			return nil, err
		}
		defer st.Close()
		for _, n := range ns {
			if n > 1<<62 { // no record has such a number
				continue
			}
			if _, err := st.ExecContext(ctx, session, int64(n)); err != nil {
				return nil, err
			}
		}
		return func() {}, nil
	})
	if err != nil {
		return err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.truncate(ctx)
}

// truncate moves the write-ahead log into the database and empties it. It waits for
// readers, as long as for a lock, and is an error if one is left: what was erased stays
// in the files until they are gone.
func (s *Store) truncate(ctx context.Context) error {
	var busy, pages, moved int
	if err := s.conn.QueryRowContext(context.WithoutCancel(ctx), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved); err != nil {
		return s.fails("empty the write-ahead log", err, false)
	}
	if busy != 0 {
		return errRead
	}
	return nil
}

var errRead = errors.New("sqlite: somebody reads the log all this time, and until he ends what was erased stands in " + FileName + "-wal: erase it once more")

// Shrink gives the room that erased values took back to the file system. Meanwhile
// it takes as much again.
func (s *Store) Shrink(ctx context.Context) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.failed(); err != nil {
		return err
	}
	if _, err := s.conn.ExecContext(ctx, "VACUUM"); err != nil {
		return s.fails("shrink the database", err, false)
	}
	return s.truncate(ctx)
}

// PutBlob implements audit.Store.
func (s *Store) PutBlob(ctx context.Context, b []byte) (audit.Digest, error) {
	d := audit.Sum(b)
	end, err := s.begin(ctx)
	if err != nil {
		return audit.Digest{}, err
	}
	defer end()
	if err := s.one(ctx, nil, "INSERT INTO blobs (name, bytes) VALUES (?, ?) ON CONFLICT DO UPDATE SET bytes = excluded.bytes WHERE bytes <> excluded.bytes", d[:], notNull(b)); err != nil {
		return audit.Digest{}, err
	}
	return d, nil
}
