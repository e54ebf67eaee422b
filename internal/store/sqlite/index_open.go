package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/writ-project/writ/internal/store/words"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// IndexFileName is the index's name in the state directory.
const IndexFileName = "memory-index.db"

// ErrRemake says that the file of the index cannot be used, and that nothing is
// lost by deleting it: RemoveIndex, OpenIndex, and it is made again from the
// log.
var ErrRemake = errors.New("the memory index cannot be used; delete it and it is made again from the log")

var errIndexDamaged = errors.New("the index is damaged")

// OldWords is a reason not to open an index.
const OldWords Reason = "the index was made with another version of its words"

// indexID marks the file as Writ's index ("WRIX").
const indexID = 0x57524958

// indexVersion is the version of its tables. There is no migration: those of an
// older one are dropped when it is opened, and the index holds nothing then. A
// process of that older version which still has it open leaves what this one
// takes for damage.
const indexVersion = 2

const indexSchema = `
CREATE TABLE made (words TEXT NOT NULL, numbers INTEGER NOT NULL) STRICT;
CREATE TABLE namespaces (
	name   TEXT PRIMARY KEY,
	number INTEGER NOT NULL UNIQUE,
	at     INTEGER NOT NULL,
	texts  INTEGER NOT NULL,
	words  INTEGER NOT NULL,
	last   INTEGER NOT NULL,
	gone   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`

// OpenIndex opens the index in the state directory dir, and makes both if they
// are not there. What it cannot trust it refuses with an *OpenError, which
// is ErrRemake if the file is not an index, is damaged, or is one of another
// version.
func OpenIndex(dir string) (*Index, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, IndexFileName)
	if err := checkFiles(path); err != nil {
		return nil, indexError(path, err)
	}
	// A log without its file would be taken for that of the new one. Who makes
	// the file at this moment makes it before its log, so look in the reverse
	// order.
	_, walErr := os.Lstat(path + "-wal")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if walErr == nil {
			return nil, indexError(path, &OpenError{Reason: Damaged, Err: errors.New("of it only the write-ahead log is left")})
		}
		if err := create(dir, path, Options{BusyTimeout: indexWait, noSync: true}, makeIndex); err != nil {
			return nil, indexError(path, err)
		}
	} else if err != nil {
		return nil, openError(path, Unwritable, bare(err))
	}
	x, err := openIndex(path)
	if err != nil {
		return nil, indexError(path, err)
	}
	return x, nil
}

// RemoveIndex deletes the index of the state directory dir, if there is one. No
// process may have it open.
func RemoveIndex(dir string) error {
	path := filepath.Join(dir, IndexFileName)
	// The write-ahead log goes first: left alone, it would be taken for the log
	// of the next file.
	for _, p := range []string{path + "-wal", path + "-shm", path} {
		switch fi, err := os.Lstat(p); {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return openError(p, Unwritable, bare(err))
		case fi.IsDir():
			return openError(p, NotRegular, nil)
		}
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return openError(p, Unwritable, bare(err))
		}
	}
	return nil
}

// makeIndex makes the tables of an empty index.
func makeIndex(db *sql.DB) error {
	_, err := db.Exec(indexSchema+"INSERT INTO made VALUES (?, 0)", words.Version)
	if err == nil {
		_, err = db.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", indexID, indexVersion))
	}
	return err
}

func openIndex(path string) (_ *Index, err error) {
	o := Options{BusyTimeout: indexWait}
	x := &Index{
		path: path,
		pool: sql.OpenDB(connector(path, o, false)),
		read: sql.OpenDB(connector(path, o, true)),
		turn: make(chan struct{}, 1),

		common: commons{least: 512, journal: 10_000},
	}
	x.pool.SetMaxOpenConns(1)
	x.read.SetMaxIdleConns(4)
	defer func() {
		if err != nil {
			if x.conn != nil {
				x.conn.Close()
			}
			x.read.Close()
			x.pool.Close()
		}
	}()
	ctx := context.Background()
	if x.conn, err = x.pool.Conn(ctx); err != nil {
		return nil, err
	}
	// A lost commit is made again from the log, so none waits for the disk.
	if _, err := x.conn.ExecContext(ctx, "PRAGMA synchronous = NORMAL"); err != nil {
		return nil, err
	}
	version, err := versionOf(ctx, x.conn, indexID, indexVersion, false)
	if err == nil && version < indexVersion {
		err = x.empty(ctx)
	}
	if err != nil {
		return nil, err
	}
	var made string
	if err := x.conn.QueryRowContext(ctx, "SELECT words FROM made").Scan(&made); err != nil {
		return nil, err
	}
	if made != words.Version {
		return nil, &OpenError{Reason: OldWords}
	}
	// Each namespace has its tables, or the file is damaged.
	var lost int
	if err := x.conn.QueryRowContext(ctx, `SELECT count(*) FROM namespaces n WHERE 4 <> (SELECT count(*) FROM sqlite_schema s
		WHERE s.name IN ('docs_' || n.number, 'gone_' || n.number, 'words_' || n.number, 'places_' || n.number))`).Scan(&lost); err != nil {
		return nil, err
	}
	if lost > 0 {
		return nil, &OpenError{Reason: Damaged, Err: errors.New("tables are missing")}
	}
	// A process that was killed may have left dropped text there.
	x.truncate()
	x.turn <- struct{}{}
	return x, nil
}

// empty puts the tables of this version in the place of all there are, unless
// another process has.
func (x *Index) empty(ctx context.Context) (err error) {
	if _, err := x.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			x.conn.ExecContext(ctx, "ROLLBACK")
		}
	}()
	var version, numbers int64
	if err := x.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version == indexVersion {
		_, err := x.conn.ExecContext(ctx, "COMMIT")
		return err
	}
	if err := x.conn.QueryRowContext(ctx, "SELECT numbers FROM made").Scan(&numbers); err != nil {
		return err
	}
	// Virtual tables take their own with them, so they go first.
	for _, what := range []string{"sql LIKE 'CREATE VIRTUAL%'", "true"} {
		for {
			var name string
			err := x.conn.QueryRowContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND "+what+" LIMIT 1").Scan(&name)
			if errors.Is(err, sql.ErrNoRows) {
				break
			}
			if err == nil {
				_, err = x.conn.ExecContext(ctx, `DROP TABLE "`+strings.ReplaceAll(name, `"`, `""`)+`"`)
			}
			if err != nil {
				return err
			}
		}
	}
	if _, err := x.conn.ExecContext(ctx, indexSchema+"INSERT INTO made VALUES (?, ?)", words.Version, numbers); err != nil {
		return err
	}
	_, err = x.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d; COMMIT", indexVersion))
	return err
}

// indexError is classify for the index: what a new file cures says so.
func indexError(path string, err error) error {
	err = classify(path, err)
	var oe *OpenError
	if !errors.As(err, &oe) {
		return err
	}
	switch oe.Reason {
	case NotDatabase, Newer, Damaged, OldWords:
		oe.Hint = "delete the file; it is made again from the log, and nothing is lost"
		oe.Err = errors.Join(ErrRemake, oe.Err)
	}
	return oe
}

// failed names what failed in an open index. Damage found in use is ErrRemake.
func (x *Index) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	// A column is not of its type: the tables are STRICT.
	if errors.Is(err, errIndexDamaged) || strings.HasPrefix(err.Error(), "sql: Scan error") {
		return fmt.Errorf("sqlite: index: %s: %w", what, errors.Join(ErrRemake, err))
	}
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return err
	}
	switch code := se.Code() & 0xff; {
	case code == lib.SQLITE_CORRUPT, code == lib.SQLITE_NOTADB,
		// A table of the file is not there, or not what it should be.
		code == lib.SQLITE_ERROR && strings.Contains(se.Error(), "no such table"):
		return fmt.Errorf("sqlite: index: %s: %w", what, errors.Join(ErrRemake, err))
	}
	return fmt.Errorf("sqlite: index: %s: %w", what, err)
}
