package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/writ-project/writ/audit"
	"golang.org/x/mod/sumdb/note"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// FileName is the database's name in the state directory.
const FileName = "audit.db"

// Options says how a store signs and waits. The zero Options signs nothing and
// checks no signature.
type Options struct {
	// Signer signs checkpoints, nil for none.
	Signer note.Signer
	// Verifier is the log's public key: Open refuses a file whose head is not
	// signed by it, or is not that of the log in the file. Without one nobody
	// knows who wrote what is read.
	Verifier note.Verifier
	// CheckpointEvery is after how many records a checkpoint is kept, beside
	// the one of the head; 0 means 1,000.
	CheckpointEvery int64
	// Elsewhere is a directory outside the state directory, "" for none, in
	// which the head of the log is kept too: Open refuses a state directory that
	// was rolled back or copied, and so does the next synced append where two
	// copies go on. It needs both keys.
	Elsewhere string
	// Accept goes on with a log that was rolled back or copied, or has records
	// its key did not sign, and records that: an operator looked at it.
	Accept bool
	// BusyTimeout is how long a write waits for other processes; 0 means 10 s.
	BusyTimeout time.Duration

	noSync bool  // for tests that are about answers, not about power cuts
	foldAt int64 // for tests that are about folding
}

// Reason says why a store cannot be opened.
type Reason string

// The reasons of an OpenError.
const (
	NotDirectory Reason = "the state directory is not a directory"
	Exposed      Reason = "others can write to the state"
	NotRegular   Reason = "the database is not a regular file"
	NotDatabase  Reason = "the file is not Writ's database"
	Newer        Reason = "the database was written by a newer version of Writ"
	Damaged      Reason = "the database is damaged"
	WrongKey     Reason = "the log was not signed by this key"
	RolledBack   Reason = "the log is not the one its newest checkpoint signed"
	Copied       Reason = "the state directory is a copy of another that is there still"
	Unsigned     Reason = "records are in the log that its key did not sign"
	Unwritable   Reason = "the database cannot be written"
	Unreadable   Reason = "the database cannot be read"
	Locked       Reason = "another process holds the database"
)

// OpenError is why a store cannot be opened, and what the operator can do.
type OpenError struct {
	Path   string
	Reason Reason
	Hint   string
	Err    error // may be nil
}

func (e *OpenError) Error() string {
	s := fmt.Sprintf("%q: %s", e.Path, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *OpenError) Unwrap() error { return e.Err }

var hints = map[Reason]string{
	NotDirectory: "name a directory with --state",
	Exposed:      "take the write permission of group and others away (chmod go-w), and make sure nobody changed what is there",
	NotRegular:   "remove what stands at that path, if it is not yours to keep",
	NotDatabase:  "move the file away, or name another state directory; Writ does not overwrite it",
	Newer:        "use that version of Writ, or another state directory",
	Damaged:      "keep the file as it is, and restore a copy into another state directory",
	WrongKey:     "restore the key that belongs to this state directory",
	RolledBack:   "find out who changed or restored the state directory; if it was you, go on with --accept-rollback, which is recorded",
	Copied:       "use the other one, or move this one away; to go on with this one, --accept-rollback, which is recorded",
	Unsigned:     "find out who wrote to the file (writ audit verify says where it begins); to go on with it, --accept-rollback, which is recorded",
	Unwritable:   "make the state directory and its files writable for this user, and see that the disk is not full",
	Unreadable:   "name the state directory with --state, and see that its files are readable for this user",
	Locked:       "end the other process, or wait for it",
}

func openError(path string, r Reason, err error) *OpenError {
	return &OpenError{Path: path, Reason: r, Hint: hints[r], Err: err}
}

// Open opens the store in the state directory dir, and makes both if they are
// not there. What it cannot trust it refuses with an *OpenError.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, FileName)
	if err := checkFiles(path); err != nil {
		return nil, err
	}
	o.foldAt = cmp.Or(o.foldAt, foldAt)
	if o.CheckpointEvery <= 0 {
		o.CheckpointEvery = 1000
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 10 * time.Second
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := forget(path, o.BusyTimeout); err != nil {
			return nil, classify(path, err)
		}
		if err := create(dir, path, o, migrate); err != nil {
			return nil, classify(path, err)
		}
	} else if err != nil {
		return nil, openError(path, Unwritable, bare(err))
	}
	for _, end := range []string{"", "-wal", "-shm"} { // of earlier versions: it may hold a text that was erased since
		if err := os.Remove(filepath.Join(dir, "memory-index.db"+end)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, openError(dir, Unwritable, bare(err))
		}
	}
	s, err := openFile(path, o)
	if err != nil {
		return nil, classify(path, err)
	}
	ctx := context.Background()
	if err = s.openPlace(ctx); err == nil && len(s.accepted) > 0 {
		err = s.accept(ctx)
	}
	if err == nil {
		err = s.tellOpened(ctx)
	}
	if err != nil {
		s.place.close()
		s.place = nil
		s.Close()
		return nil, classify(path, err)
	}
	return s, nil
}

// OpenReadOnly opens the log in the state directory dir to read it. It makes and
// changes no file, so the directory may be on read-only media; other processes
// may have it open and append. With a Verifier what it hands out is proven as
// Open's is. Without one nothing is: a damaged or forged log can be read, for
// Verify to judge. A log of an older version is read as it is.
func OpenReadOnly(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, FileName)
	if fi, err := os.Stat(dir); err == nil && !fi.IsDir() {
		return nil, openError(dir, NotDirectory, nil)
	}
	if _, err := os.Lstat(path); err != nil {
		return nil, openError(path, Unreadable, bare(err))
	}
	if err := checkFiles(path); err != nil {
		return nil, err
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 10 * time.Second
	}
	s, err := openReader(path, o)
	// Between a look at the files and their opening another process may have closed the log, and
	// taken its shared memory with it, or begun to build that: a look a little later tells.
	for wait := 100 * time.Microsecond; passing(err) && wait < 300*time.Millisecond; wait *= 2 {
		time.Sleep(wait)
		s, err = openReader(path, o)
	}
	if err != nil {
		return nil, classify(path, err)
	}
	return s, nil
}

// passing are the errors of a reader that came between what another process does at once.
func passing(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	code := se.Code() & 0xff
	return code == lib.SQLITE_CANTOPEN || code == lib.SQLITE_READONLY
}

// Version is the version of the format that the log is in, and the newest that this program
// writes. A log that was opened to write is in that.
func (s *Store) Version() (is, newest int) { return s.version, len(migrations) }

// Disturbed reports that what was read may be of two moments: by a Passage, or because another
// process opened the log since this one, which found it in nobody's use, opened it to read.
func (s *Store) Disturbed() bool {
	if s.passed {
		return true
	}
	fi, err := os.Stat(s.path)
	_, shm := os.Lstat(s.path + "-shm")
	return s.idle != nil && (err != nil || shm == nil || fi.Size() != s.idle.Size() || !fi.ModTime().Equal(s.idle.ModTime()))
}

func openReader(path string, o Options) (_ *Store, err error) {
	var idle fs.FileInfo
	if _, err := os.Lstat(path + "-shm"); errors.Is(err, fs.ErrNotExist) {
		idle, _ = os.Stat(path)
	}
	s := &Store{path: path, opt: o, raw: o.Verifier == nil, idle: idle, read: sql.OpenDB(reader(path, o))}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if s.version, err = versionOf(context.Background(), s.read, applicationID, len(migrations), false); err != nil {
		return nil, err
	}
	if s.journal, err = openJournal(path, true); err != nil {
		return nil, err
	}
	s.secret, err = s.read.Prepare(bySecret)
	return s, err
}

// reader connects without writing. Where the file of shared memory is, another
// process may have the database open, and its locks are heeded. Where it is
// not, none has, and SQLite is told to make neither locks nor files: that the
// file does not change or, where it was cut off with its write-ahead log, that
// nobody else reads that.
func reader(path string, o Options) *dsn {
	q := settings("ro", o)
	q.Set("_query_only", "1")
	wal, err := os.Lstat(path + "-wal")
	if _, shm := os.Lstat(path + "-shm"); shm == nil {
		q.Set("readonly_shm", "1")
	} else if err == nil && wal.Size() > 0 {
		q.Set("vfs", noLocks)
		q.Add("_pragma", "locking_mode(EXCLUSIVE)")
	} else {
		q.Set("immutable", "1")
		q.Add("_pragma", "cache_size(-100)") // KB: a page that is kept costs more than one that is read again
	}
	return named(path, q)
}

// checkDir makes the state directory for its owner alone, and refuses one
// that others can write to (C06).
func checkDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if errors.Is(err, errNotDir) {
			return openError(dir, NotDirectory, nil)
		}
		return openError(dir, Unwritable, bare(err))
	}
	fi, err := os.Stat(dir)
	switch {
	case err != nil:
		return openError(dir, Unwritable, bare(err))
	case !fi.IsDir():
		return openError(dir, NotDirectory, nil)
	case runtime.GOOS != "windows" && fi.Mode().Perm()&0o022 != 0:
		return openError(dir, Exposed, nil)
	}
	return nil
}

// checkFiles looks at the files without opening them: SQLite's locks on a file
// are lost when the process closes any other descriptor of it.
func checkFiles(path string) error {
	for _, p := range []string{path, path + "-wal", path + "-shm", filepath.Join(filepath.Dir(path), JournalName)} {
		fi, err := os.Lstat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return openError(p, Unwritable, bare(err))
		case !fi.Mode().IsRegular():
			return openError(p, NotRegular, nil)
		case runtime.GOOS != "windows" && fi.Mode().Perm()&0o022 != 0:
			return openError(p, Exposed, nil)
		case p == path && fi.Size() == 0:
			// Create never leaves an empty file, so this one was cut.
			return openError(p, Damaged, errors.New("it is empty"))
		case p == path && fi.Size() < 512:
			return openError(p, NotDatabase, nil) // SQLite would make it one
		}
	}
	return nil
}

// create makes a complete empty database beside path, by fill, and then gives it
// its name. Of several processes one succeeds and the others use its file; a
// crash leaves no half-made database.
func create(dir, path string, o Options, fill func(*sql.DB) error) error {
	f, err := os.CreateTemp(dir, ".new-*-"+filepath.Base(path))
	if err != nil {
		return openError(dir, Unwritable, bare(err))
	}
	tmp := f.Name()
	f.Close()
	defer func() {
		for _, p := range []string{tmp, tmp + "-wal", tmp + "-shm"} {
			os.Remove(p)
		}
	}()
	db := sql.OpenDB(connector(tmp, o, false))
	db.SetMaxOpenConns(1)
	err = fill(db)
	if err == nil { // closing does so too, and says nothing where it cannot
		_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := syncPath(tmp, os.O_RDWR); err != nil {
		return openError(path, Unwritable, bare(err))
	}
	if err := os.Link(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return openError(path, Unwritable, bare(err))
	}
	return nil
}

// syncDirectory makes the name of a file durable, where a directory can be synced.
func syncDirectory(file string) error {
	if err := syncPath(filepath.Dir(file), os.O_RDONLY); err != nil && runtime.GOOS != "windows" {
		return err
	}
	return nil
}

func syncPath(path string, flag int) error {
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// connector names the file to SQLite so that nothing in its path is read as
// an option.
func connector(path string, o Options, readOnly bool) *dsn {
	q := settings("rw", o)
	if readOnly {
		q.Set("_query_only", "1")
		q.Add("_pragma", "mmap_size(268435456)")
	} else {
		q.Set("_journal_mode", "WAL")
		q.Set("_synchronous", "FULL")
		if o.noSync {
			q.Set("_synchronous", "OFF")
		}
		q.Set("_foreign_keys", "1")
		q.Add("_pragma", "secure_delete(1)")
	}
	return named(path, q)
}

// settings are those of every connection.
func settings(mode string, o Options) url.Values {
	return url.Values{"mode": {mode}, "_busy_timeout": {fmt.Sprint(o.BusyTimeout.Milliseconds())},
		"_defensive": {"1"}, "_dqs": {"0"}, "_error_rc": {"1"}}
}

func named(path string, q url.Values) *dsn {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	u := url.URL{Scheme: "file", Path: p, RawQuery: q.Encode()}
	return &dsn{u.String()}
}

// migrate brings the database to this version's schema.
func migrate(db *sql.DB) error {
	ctx := context.Background()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return err
		}
		done, err := migrateOne(ctx, c)
		if err == nil {
			_, err = c.ExecContext(ctx, "COMMIT")
		}
		if err != nil {
			c.ExecContext(ctx, "ROLLBACK")
			return err
		}
		if done {
			return nil
		}
	}
}

func migrateOne(ctx context.Context, c *sql.Conn) (done bool, err error) {
	version, err := versionOf(ctx, c, applicationID, len(migrations), true)
	if err != nil || version == len(migrations) {
		return err == nil, err
	}
	if _, err := c.ExecContext(ctx, migrations[version]); err != nil {
		return false, err
	}
	if version == 0 {
		root := (&audit.Tree{}).Root()
		if _, err := c.ExecContext(ctx, "INSERT INTO head (id, size, root, signed) VALUES (1, 0, ?, 0)", root[:]); err != nil {
			return false, err
		}
	}
	_, err = c.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version+1))
	return false, err
}

// versionOf is the version of the tables in a database with that id, 0 for an
// empty one that is to become it.
func versionOf(ctx context.Context, q querier, id, newest int, orEmpty bool) (version int, err error) {
	var app, tables int
	err = q.QueryRowContext(ctx, "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), count(*) FROM sqlite_schema").
		Scan(&app, &version, &tables)
	switch {
	case err != nil:
		return 0, err
	case orEmpty && app == 0 && version == 0 && tables == 0:
		return 0, nil
	case app != id:
		return 0, &OpenError{Reason: NotDatabase}
	case version > newest:
		return 0, &OpenError{Reason: Newer}
	case version < 1:
		return 0, &OpenError{Reason: Damaged, Err: errors.New("its version is missing")}
	}
	return version, nil
}

// bare takes the path out of a file error: OpenError says it already, quoted.
func bare(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

// classify turns an error of SQLite into an OpenError of path.
func classify(path string, err error) error {
	var oe *OpenError
	if errors.As(err, &oe) {
		if oe.Path == "" {
			oe.Path = path
		}
		if oe.Hint == "" {
			oe.Hint = hints[oe.Reason]
		}
		return oe
	}
	for reason, is := range map[Reason]error{WrongKey: errWrongKey, RolledBack: errRolledBack, Copied: errCopied, Unsigned: errUnsigned} {
		if errors.Is(err, is) {
			return openError(path, reason, nil)
		}
	}
	var se *sqlite.Error
	if errors.As(err, new(syscall.Errno)) { // the journal's: the disk is full, or fails
		return openError(path, Unwritable, bare(err))
	} else if !errors.As(err, &se) {
		return openError(path, Damaged, err)
	}
	switch se.Code() & 0xff {
	case lib.SQLITE_NOTADB:
		return openError(path, NotDatabase, err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return openError(path, Locked, err)
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_FULL, lib.SQLITE_IOERR:
		return openError(path, Unwritable, err)
	}
	return openError(path, Damaged, err)
}
