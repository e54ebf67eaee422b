package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/writ-project/writ/audit"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Store is an audit.Store and audit.Sessions in one SQLite file.
//
// One goroutine, the writer, owns everything below it; others hand it jobs.
// It ends when closing is closed, after the jobs it took.
type Store struct {
	path    string
	opt     Options
	read    *sql.DB   // query_only
	write   *sql.DB   // one connection, the writer's
	secret  *sql.Stmt // finds a session; on read
	jobs    chan *job
	closing chan struct{}
	ended   chan struct{}
	broken  chan struct{} // closed when failure is set
	once    sync.Once
	closed  error

	// owned by the writer
	conn    *sql.Conn
	stmts   stmts
	tree    audit.Tree // right only while its size and root are those of head
	root    audit.Hash
	heads   map[string]uint64 // of some sessions, as of tree
	signAt  time.Time         // when the newest checkpoint of this process was signed
	syncing bool              // the connection syncs at each commit (synchronous=FULL)
	behind  bool              // this process committed records that no commit has synced
	due     bool              // a checkpoint is due that the last commit could not sign
	failure error             // set when the disk failed: nothing is written any more
}

var (
	_ audit.Store    = (*Store)(nil)
	_ audit.Sessions = (*Store)(nil)
)

// job is one write. The writer sets err, and first for appends, and closes
// done.
type job struct {
	session  string
	expected uint64
	entries  []audit.Entry
	unsynced bool                 // the commit need not be synced for this job
	run      func(*writing) error // instead of an append

	first int64
	err   error
	done  chan struct{}
}

type stmts struct {
	begin, commit, head, setHead, max, leaf, value, hashes *sql.Stmt
}

func (s *stmts) all() []*sql.Stmt {
	return []*sql.Stmt{s.begin, s.commit, s.head, s.setHead, s.max, s.leaf, s.value, s.hashes}
}

func openFile(path string, o Options) (_ *Store, err error) {
	s := &Store{
		path: path, opt: o,
		write:   sql.OpenDB(connector(path, o, false)),
		read:    sql.OpenDB(connector(path, o, true)),
		jobs:    make(chan *job),
		heads:   map[string]uint64{},
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		broken:  make(chan struct{}),
	}
	s.write.SetMaxOpenConns(1)
	s.read.SetMaxIdleConns(4)
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if err := migrate(s.write); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if s.conn, err = s.write.Conn(ctx); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&s.stmts.begin, "BEGIN IMMEDIATE"},
		{&s.stmts.commit, "COMMIT"},
		{&s.stmts.head, "SELECT size, root, signed FROM head WHERE id = 1"},
		{&s.stmts.setHead, "UPDATE head SET size = ?, root = ?, signed = ? WHERE id = 1"},
		{&s.stmts.max, "SELECT coalesce(max(n), 0) FROM leaves WHERE session = ?"},
		{&s.stmts.leaf, "INSERT INTO leaves (idx, session, n, leaf, hashes) VALUES (?, ?, ?, ?, ?)"},
		{&s.stmts.value, "INSERT INTO vals (idx, name, salt, bytes) VALUES (?, ?, ?, ?)"},
		{&s.stmts.hashes, "SELECT hashes FROM leaves WHERE idx = ?"},
	} {
		if *p.to, err = s.conn.PrepareContext(ctx, p.sql); err != nil {
			return nil, err
		}
	}
	if err := s.checkHead(ctx); err != nil {
		return nil, err
	}
	if s.secret, err = s.read.PrepareContext(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE secret = ?"); err != nil {
		return nil, err
	}
	if o.Now != nil {
		s.signAt = o.Now()
	}
	s.tree, s.root = audit.Tree{}, (&audit.Tree{}).Root()
	s.syncing = true // as the connector opens it
	go s.loop()
	return s, nil
}

// release closes all connections. SQLite folds the write-ahead log into the
// file with the last one, but only if no statement is left open on it.
func (s *Store) release() error {
	var errs []error
	if s.secret != nil {
		errs = append(errs, s.secret.Close())
	}
	errs = append(errs, s.read.Close())
	for _, st := range s.stmts.all() {
		if st != nil {
			errs = append(errs, st.Close())
		}
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	return errors.Join(append(errs, s.write.Close())...)
}

// checkHead refuses a file whose end is not what its head row, its stored
// hashes and its newest checkpoint agree on. It reads a handful of rows; the
// whole log is for Verify.
func (s *Store) checkHead(ctx context.Context) error {
	v, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	sn := v.(*snapshot)
	var last int64
	if err := sn.tx.QueryRowContext(ctx, "SELECT coalesce(max(idx), -1) FROM leaves").Scan(&last); err != nil {
		return err
	}
	if last != sn.size-1 {
		return &OpenError{Reason: Damaged, Err: errors.New("records are missing at the end")}
	}
	if err := audit.Continues(v, audit.Checkpoint{Size: sn.size, Root: sn.root}); err != nil {
		return &OpenError{Reason: Damaged, Err: errors.New("the end of the log does not have the hash it should")}
	}
	if s.opt.Verifier == nil {
		return nil
	}
	var msg []byte
	err = sn.tx.QueryRowContext(ctx, "SELECT note FROM checkpoints ORDER BY size DESC LIMIT 1").Scan(&msg)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	c, err := audit.OpenCheckpoint(msg, s.opt.Verifier)
	if err != nil {
		return &OpenError{Reason: WrongKey}
	}
	if err := audit.Continues(v, c); err != nil {
		return &OpenError{Reason: RolledBack}
	}
	return nil
}

// submit hands a job to the writer and waits for its end. Once the writer has
// taken it, its end is awaited whatever the context does, so that the caller
// knows it.
func (s *Store) submit(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.done = make(chan struct{})
	select {
	case <-s.closing:
		return audit.ErrClosed
	default:
	}
	select {
	case s.jobs <- j:
		<-j.done
		return j.err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return audit.ErrClosed
	}
}

// Append implements audit.Store.
func (s *Store) Append(ctx context.Context, session string, expected uint64, entries []audit.Entry) (int64, error) {
	return s.append(ctx, &job{session: session, expected: expected, entries: entries})
}

// AppendUnsynced implements audit.Store: what it commits is in the write-ahead
// log, where every process reads it and the next commit that syncs, syncs it.
func (s *Store) AppendUnsynced(ctx context.Context, session string, expected uint64, entries []audit.Entry) (int64, error) {
	return s.append(ctx, &job{session: session, expected: expected, entries: entries, unsynced: true})
}

func (s *Store) append(ctx context.Context, j *job) (int64, error) {
	if err := audit.CheckAppend(j.session, j.expected, j.entries); err != nil {
		return 0, err
	}
	if err := s.submit(ctx, j); err != nil {
		return 0, err
	}
	return j.first, nil
}

const (
	maxGroup = 256  // jobs that share one commit
	maxHeads = 4096 // sessions whose number is remembered
)

func (s *Store) loop() {
	defer close(s.ended)
	group := make([]*job, 0, maxGroup)
	for {
		group = group[:0]
		select {
		case j := <-s.jobs:
			group = append(group, j)
		case <-s.closing:
			return
		}
	more:
		for len(group) < maxGroup {
			select {
			case j := <-s.jobs:
				group = append(group, j)
			default:
				break more
			}
		}
		s.commit(group)
		for _, j := range group {
			close(j.done)
		}
	}
}

// commit writes the jobs in one transaction and sets their errors. If the
// transaction fails, each is tried alone, so that one bad job fails alone.
func (s *Store) commit(group []*job) {
	s.commitAll(group)
	if s.due {
		// What is signed is synced with it. Should this fail, the checkpoint
		// stays due.
		s.transact([]*job{{run: func(w *writing) error {
			w.root = w.tree.Root()
			w.dirty = true
			return w.sign()
		}}})
	}
}

func (s *Store) commitAll(group []*job) {
	err := s.transact(group)
	if err == nil {
		return
	}
	if len(group) == 1 || s.failure != nil {
		for _, j := range group {
			j.err = err
		}
		return
	}
	for _, j := range group {
		if err := s.transact([]*job{j}); err != nil {
			j.err = err
		}
	}
}

// writing is one transaction of the writer.
type writing struct {
	s      *Store
	ctx    context.Context
	tree   audit.Tree
	root   audit.Hash
	signed int64
	sync   bool // the commit is synced
	dirty  bool
	erased bool // what the write-ahead log still holds must go
	known  bool // nobody else appended since this process did: s.heads are right
	heads  map[string]uint64
}

func (s *Store) transact(group []*job) (err error) {
	if s.failure != nil {
		return s.failure
	}
	ctx := context.Background()
	sync := false
	for _, j := range group {
		j.err, j.first = nil, 0
		sync = sync || !j.unsynced
	}
	if err := s.setSyncing(ctx, sync); err != nil {
		return s.failed("set how to sync", err)
	}
	if _, err := s.stmts.begin.Exec(); err != nil {
		return s.failed("begin", err)
	}
	w := &writing{s: s, ctx: ctx, sync: sync, heads: map[string]uint64{}}
	defer func() {
		if err != nil {
			s.conn.ExecContext(ctx, "ROLLBACK")
		}
	}()
	if err := w.load(); err != nil {
		return s.failed("read the head", err)
	}
	for _, j := range group {
		if j.run != nil {
			err = j.run(w)
		} else {
			err = w.append(j)
		}
		switch {
		case err == nil:
		case errors.Is(err, audit.ErrConflict), errors.Is(err, audit.ErrNotFound), errors.Is(err, audit.ErrExists):
			j.err, err = err, nil // known before anything was written
		default:
			return s.failed("write", err)
		}
	}
	if err := w.finish(); err != nil {
		return s.failed("write the head", err)
	}
	if _, err := s.stmts.commit.Exec(); err != nil {
		return s.failed("commit", err)
	}
	s.tree, s.root = w.tree, w.root
	if !w.known || len(s.heads) > maxHeads {
		clear(s.heads)
	}
	maps.Copy(s.heads, w.heads)
	if w.dirty { // then head changed, so there was a page to write and to sync
		s.behind = !sync
	}
	if w.erased {
		// A busy reader keeps the old pages until the next truncation; that
		// is no failure of what was committed.
		s.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	return nil
}

// setSyncing says whether the next commit is synced. SQLite takes the answer
// only between transactions. A commit that syncs (FULL) syncs the whole
// write-ahead log, so it makes durable every commit before it that did not
// (NORMAL), whichever process made it; moving pages from that log into the
// file syncs either way.
func (s *Store) setSyncing(ctx context.Context, sync bool) error {
	if sync == s.syncing || s.opt.noSync {
		return nil
	}
	level := "NORMAL"
	if sync {
		level = "FULL"
	}
	if _, err := s.conn.ExecContext(ctx, "PRAGMA synchronous = "+level); err != nil {
		return err
	}
	s.syncing = sync
	return nil
}

// failed names what failed. After an I/O error the store writes no more: what
// a disk that could not sync holds is known only after it is opened again.
func (s *Store) failed(what string, err error) error {
	var se *sqlite.Error
	hard := false
	if errors.As(err, &se) {
		switch se.Code() & 0xff {
		case lib.SQLITE_IOERR, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
			hard = true
		}
	}
	err = fmt.Errorf("sqlite: %s: %w", what, err)
	if hard {
		s.fail(err)
	}
	return err
}

// fail ends all writing, for the first reason given. It is the writer's.
func (s *Store) fail(err error) {
	if s.failure == nil {
		s.failure = err
		close(s.broken)
	}
}

// Broken is closed when the disk failed: nothing is written any more, and what
// the file holds is known only after it is opened anew, by another process.
func (s *Store) Broken() <-chan struct{} { return s.broken }

func (w *writing) load() error {
	var size int64
	var root []byte
	if err := w.s.stmts.head.QueryRow().Scan(&size, &root, &w.signed); err != nil {
		return err
	}
	if size == w.s.tree.Size() && bytes.Equal(root, w.s.root[:]) {
		w.tree, w.root, w.known = w.s.tree, w.s.root, true
		return nil
	}
	var err error
	w.tree, err = audit.LoadTree(size, func(n audit.Node) (h audit.Hash, err error) {
		var b []byte
		if err = w.s.stmts.hashes.QueryRow(n.Leaf).Scan(&b); err == nil {
			h, err = hashAt(b, n.Level)
		}
		return h, err
	})
	if err != nil {
		return err
	}
	if w.root = w.tree.Root(); !bytes.Equal(root, w.root[:]) {
		return errDamaged
	}
	return nil
}

var errDamaged = errors.New("the end of the log does not have the hash it should")

func hashAt(b []byte, level int) (h audit.Hash, err error) {
	if len(b)%len(h) != 0 || level < 0 || (level+1)*len(h) > len(b) {
		return h, errDamaged
	}
	copy(h[:], b[level*len(h):])
	return h, nil
}

func (w *writing) append(j *job) error {
	head, ok := w.heads[j.session]
	if !ok && w.known {
		head, ok = w.s.heads[j.session]
	}
	if !ok {
		if err := w.s.stmts.max.QueryRow(j.session).Scan(&head); err != nil {
			return err
		}
	}
	w.heads[j.session] = head
	if head != j.expected {
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
	w.heads[j.session] = head + uint64(len(j.entries))
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

func (w *writing) finish() error {
	s := w.s
	if !w.dirty {
		return nil
	}
	w.root = w.tree.Root()
	s.due = false
	due := w.tree.Size()-w.signed >= s.opt.CheckpointEvery
	if !due && s.opt.Now != nil && s.opt.CheckpointAfter > 0 {
		due = s.opt.Now().Sub(s.signAt) >= s.opt.CheckpointAfter
	}
	if due && !w.sync {
		s.due = s.opt.Signer != nil
	} else if due {
		if err := w.sign(); err != nil {
			return err
		}
	}
	_, err := s.stmts.setHead.Exec(w.tree.Size(), w.root[:], w.signed)
	return err
}

// sign adds a checkpoint of the log as this transaction leaves it.
func (w *writing) sign() error {
	s := w.s
	if s.opt.Signer == nil || w.tree.Size() == w.signed {
		return nil
	}
	n, err := audit.SignCheckpoint(w.tree.Size(), w.root, s.opt.Signer)
	if err != nil {
		return err
	}
	if _, err := s.conn.ExecContext(w.ctx, "INSERT INTO checkpoints (size, note) VALUES (?, ?)", w.tree.Size(), n); err != nil {
		return err
	}
	w.signed = w.tree.Size()
	if s.opt.Now != nil {
		s.signAt = s.opt.Now()
	}
	return nil
}

// Checkpoint implements audit.Store.
func (s *Store) Checkpoint(ctx context.Context) ([]byte, error) {
	var msg []byte
	err := s.submit(ctx, &job{run: func(w *writing) (err error) {
		msg, err = w.checkpoint()
		return err
	}})
	if err != nil {
		return nil, err
	}
	return msg, nil
}

func (w *writing) checkpoint() (msg []byte, err error) {
	before := w.signed
	w.root = w.tree.Root()
	if err := w.sign(); err != nil {
		return nil, err
	}
	if w.signed != before {
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

// Close implements audit.Store.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		<-s.ended
		var err error
		if s.opt.Signer != nil && s.failure == nil {
			j := &job{run: func(w *writing) error {
				_, err := w.checkpoint()
				return err
			}}
			if err = s.transact([]*job{j}); err == nil && !errors.Is(j.err, audit.ErrNotFound) {
				err = j.err
			}
		}
		if s.behind && s.failure == nil {
			err = errors.Join(err, s.transact([]*job{{run: (*writing).touch}}))
		}
		if s.failure != nil {
			// Closing the last connection would write on in the file. The end
			// of the process releases the rest.
			s.closed = s.read.Close()
			return
		}
		s.closed = errors.Join(err, s.release())
	})
	return s.closed
}
