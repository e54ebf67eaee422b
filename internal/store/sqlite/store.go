package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/writ-project/writ/audit"
)

// Store is an audit.Store and audit.Sessions: a journal and a SQLite file.
type Store struct {
	path    string
	opt     Options
	version int         // of the schema
	idle    fs.FileInfo // of the file, where it was opened to read and nobody used it
	passed  bool        // a Passage was read
	raw     bool        // what is read is not proven
	notice  string
	place   *second // once the store is open; nil for none

	accepted []error // why the log would have been refused, had the operator not taken it as it is
	read     *sql.DB // query_only
	write    *sql.DB // one connection, conn; nil if there is none
	conn     *sql.Conn
	leaf     *sql.Stmt   // writes a record; on conn
	value    *sql.Stmt   // writes a value; on conn
	secret   *sql.Stmt   // finds a session; on read
	journal  *journal    // nil where there is none to read
	coder    coder       // nil without a signer
	signing  atomic.Bool // somebody is about to sign

	queueing sync.Mutex
	unsynced line
	synced   line           // apart, so that what comes during a sync shares one frame, one signature and the next sync
	ended    bool           // nothing new begins
	running  sync.WaitGroup // what began

	folding  sync.Mutex // one moves the journal into the database
	changing sync.Mutex // one transaction of the database
	writing  sync.Mutex // of the journal; whoever has it takes the lock on the file

	mu      sync.Mutex // see follow.go
	known   followed
	tail    []audit.Item // the records that the journal holds and the database did not when it was last looked at
	marks   []mark       // the commits of tail
	folded  mark         // the log as the database was last seen to hold it
	counted int64        // of how many records the heads were signed last
	holding bool         // an append of this process has the journal locked and caught up

	sessions heldSessions

	once   sync.Once
	closed error

	breaking sync.Mutex
	failure  error // set when the disk failed: nothing is written any more
	broken   chan struct{}
}

var (
	_ audit.Store    = (*Store)(nil)
	_ audit.Sessions = (*Store)(nil)
)

// foldAt is at what size of the journal it is folded into the database.
const foldAt = 4 << 20

func openFile(path string, o Options) (_ *Store, err error) {
	coder, err := newCoder(o.Signer)
	if err != nil {
		return nil, err
	}
	s := &Store{
		path: path, opt: o, coder: coder,
		write:  sql.OpenDB(connector(path, o, false)),
		read:   sql.OpenDB(connector(path, o, true)),
		broken: make(chan struct{}),
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
		to **sql.Stmt
		on interface {
			PrepareContext(context.Context, string) (*sql.Stmt, error)
		}
		sql string
	}{
		{&s.leaf, s.conn, "INSERT INTO leaves (idx, session, n, leaf, hashes) VALUES (?, ?, ?, ?, ?)"},
		{&s.value, s.conn, "INSERT INTO vals (idx, name, salt, bytes) VALUES (?, ?, ?, ?)"},
		{&s.secret, s.read, bySecret},
	} {
		if *p.to, err = p.on.PrepareContext(ctx, p.sql); err != nil {
			return nil, err
		}
	}
	if s.journal, err = openJournal(path, false); err != nil {
		return nil, err
	}
	if err := syncDirectory(path); err != nil { // who made the files may have been killed before it was
		return nil, openError(filepath.Dir(path), Unwritable, bare(err))
	}
	if err := s.takeJournal(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// takeJournal folds what another process left in the journal. That may have ended because
// the disk could not sync: then what is read is in memory, nobody knows whether it is on the
// disk, and no later sync tells. So what was found to be the log is written again.
func (s *Store) takeJournal(ctx context.Context) error {
	if fi, err := s.journal.Stat(); err != nil {
		return err
	} else if fi.Size() < int64(headerSize) {
		if err := s.locked(true, func() error {
			if fi, err := s.journal.Stat(); err != nil || fi.Size() >= int64(headerSize) {
				return err
			}
			return errors.Join(s.journal.begin(0, false), s.journal.Sync())
		}); err != nil {
			return err
		}
	}
	v, _, err := s.at(ctx, "")
	if err != nil {
		return err
	}
	if err := errors.Join(v.newest(ctx), v.tx.Rollback()); err != nil {
		return err
	}
	if err := s.rewrite(ctx); err != nil {
		return err
	}
	fi, err := s.journal.Stat()
	if err == nil && fi.Size() > int64(headerSize) {
		err = s.fold(ctx, ending{})
	} else if err == nil {
		err = s.locked(true, s.journal.again)
	}
	if err == nil && slices.Contains(s.accepted, errRolledBack) {
		err = s.locked(true, func() error { return s.journal.begin(s.known.tree.Size(), false) })
	}
	return err
}

// rewrite moves the write-ahead log into the database, unless another process uses it: then
// it is that one's.
func (s *Store) rewrite(ctx context.Context) error {
	if wal, err := os.Stat(s.path + "-wal"); err != nil || wal.Size() == 0 {
		return nil
	}
	if _, err := s.conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return err
	}
	err := s.truncate(ctx)
	if errors.Is(err, errRead) || isBusy(err) {
		err = nil
	}
	_, back := s.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", s.opt.BusyTimeout.Milliseconds()))
	return errors.Join(err, back)
}

// isBusy reports that another process has what SQLite needs.
func isBusy(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == lib.SQLITE_BUSY
}

// forget makes a journal begin anew whose database was removed, unless another process
// made that meanwhile.
func forget(path string, patience time.Duration) error {
	j, err := openJournal(path, true)
	if j == nil || err != nil {
		return err
	}
	if err := j.Close(); err != nil {
		return err
	}
	if j, err = openJournal(path, false); err != nil {
		return err
	}
	defer j.Close()
	if err := j.lock(patience); err != nil {
		return err
	}
	defer j.unlock()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(j.begin(0, false), j.Sync())
}

// release closes all files. SQLite folds the write-ahead log into the file with
// the last connection, but only if no statement is left open on it.
func (s *Store) release() error {
	var errs []error
	for _, st := range []*sql.Stmt{s.leaf, s.value, s.secret} {
		if st != nil {
			errs = append(errs, st.Close())
		}
	}
	errs = append(errs, s.read.Close())
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	if s.journal != nil {
		errs = append(errs, s.journal.Close())
	}
	return errors.Join(errs...)
}

// begin says that something that writes begins; end is to be called when it has
// ended.
func (s *Store) begin(ctx context.Context) (end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.queueing.Lock()
	defer s.queueing.Unlock()
	if s.ended {
		return nil, audit.ErrClosed
	}
	if s.write == nil {
		return nil, errReadOnly
	}
	s.running.Add(1)
	return s.running.Done, nil
}

var errReadOnly = errors.New("sqlite: the log was opened to be read")

// isClosed reports whether Close was called.
func (s *Store) isClosed() bool {
	s.queueing.Lock()
	defer s.queueing.Unlock()
	return s.ended
}

// fails names what failed. After an I/O error the store writes no more: what a
// disk that could not sync holds is known only after it is opened again.
func (s *Store) fails(what string, err error, hard bool) error {
	var se *sqlite.Error
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

// fail ends all writing, for the first reason given.
func (s *Store) fail(err error) {
	s.breaking.Lock()
	defer s.breaking.Unlock()
	if s.failure == nil {
		s.failure = err
		close(s.broken)
	}
}

// failed is why nothing is written any more, or nil.
func (s *Store) failed() error {
	s.breaking.Lock()
	defer s.breaking.Unlock()
	return s.failure
}

// Broken is closed when the disk failed: nothing is written any more, and what
// the files hold is known only after they are opened anew, by another process.
func (s *Store) Broken() <-chan struct{} { return s.broken }

// Close implements audit.Store.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.queueing.Lock()
		s.ended = true
		s.queueing.Unlock()
		s.running.Wait()
		var err error
		if s.write != nil && s.failed() == nil {
			err = s.fold(context.Background(), ending{count: true})
		}
		s.place.close()
		if s.failed() != nil {
			// Closing the last connection would write on in the file. The end
			// of the process releases the rest.
			s.closed = errors.Join(err, s.read.Close())
			return
		}
		s.closed = errors.Join(err, s.release())
	})
	return s.closed
}
