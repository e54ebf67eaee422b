package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"

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
	version int         // of the schema
	idle    fs.FileInfo // of the file, where it was opened to read and nobody used it
	raw     bool        // what is read is not proven
	notice  string
	place   *second // of the writer, once the store is open; nil for none

	unsigned bool      // the log was taken as it is, without a signature
	read     *sql.DB   // query_only
	write    *sql.DB   // one connection, the writer's; nil if there is none
	secret   *sql.Stmt // finds a session; on read
	jobs     chan *job
	closing  chan struct{}
	broken   chan struct{} // closed when failure is set
	ended    chan struct{}
	once     sync.Once
	closed   error

	mu      sync.Mutex // see follow
	known   followed
	counted int64 // of how many records the heads were signed last

	// owned by the writer
	conn     *sql.Conn
	stmts    stmts
	syncing  bool  // the connection syncs at each commit (synchronous=FULL)
	behind   bool  // this process committed records that no commit has synced
	appended bool  // this process appended
	failure  error // set when the disk failed: nothing is written any more
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
	begin, commit, head, setHead, leaf, value *sql.Stmt
}

func (s *stmts) all() []*sql.Stmt {
	return []*sql.Stmt{s.begin, s.commit, s.head, s.setHead, s.leaf, s.value}
}

func openFile(path string, o Options) (_ *Store, err error) {
	s := &Store{
		path: path, opt: o,
		write:   sql.OpenDB(connector(path, o, false)),
		read:    sql.OpenDB(connector(path, o, true)),
		jobs:    make(chan *job),
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
	s.version = len(migrations)
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
		{&s.stmts.head, "SELECT " + headColumns[s.version] + " FROM head WHERE id = 1"},
		{&s.stmts.setHead, "UPDATE head SET size = ?, root = ?, signed = ?, note = ? WHERE id = 1"},
		{&s.stmts.leaf, "INSERT INTO leaves (idx, session, n, leaf, hashes) VALUES (?, ?, ?, ?, ?)"},
		{&s.stmts.value, "INSERT INTO vals (idx, name, salt, bytes) VALUES (?, ?, ?, ?)"},
	} {
		if *p.to, err = s.conn.PrepareContext(ctx, p.sql); err != nil {
			return nil, err
		}
	}
	if v, _, err := s.at(ctx, ""); err != nil {
		return nil, err
	} else if err := v.newest(ctx); err != nil {
		v.tx.Rollback()
		return nil, err
	} else if err := v.tx.Rollback(); err != nil {
		return nil, err
	}
	if s.secret, err = s.read.PrepareContext(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE secret = ?"); err != nil {
		return nil, err
	}
	s.syncing = true // as the connector opens it
	go s.loop()
	if s.unsigned {
		if err := s.accept(ctx, errUnsigned); err != nil {
			s.Close()
			return nil, err
		}
	}
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
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	return errors.Join(errs...)
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
	if s.write == nil {
		return errReadOnly
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

var errReadOnly = errors.New("sqlite: the log was opened to be read")

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

const maxGroup = 256 // jobs that share one commit

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
	if sync {
		if err := s.compare(ctx); err != nil {
			return s.failed("compare with what is known elsewhere", err)
		}
	}
	if err := s.setSyncing(ctx, sync); err != nil {
		return s.failed("set how to sync", err)
	}
	if _, err := s.stmts.begin.Exec(); err != nil {
		return s.failed("begin", err)
	}
	w := &writing{s: s, ctx: ctx, sync: sync, heads: map[string]audit.Head{}}
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
	w.publish()
	if w.dirty { // then head changed, so there was a page to write and to sync
		if s.behind = !sync; sync {
			s.tell(w.note)
		}
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

// Close implements audit.Store.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		<-s.ended
		var err error
		if s.failure == nil && (s.behind || s.appended && s.opt.Signer != nil) {
			err = s.transact([]*job{{run: func(w *writing) error {
				w.count = s.opt.Signer != nil
				return w.touch()
			}}})
		}
		s.place.close()
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
