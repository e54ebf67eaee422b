package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/store/words"
	"github.com/writ-project/writ/memory"
)

// Index is a memory.Index in one SQLite file, memory-index.db, beside the log.
// The file is a projection: deleted while no process has it open, it is made
// again from the log and nothing is lost. A power cut may take the last changes
// from it; At tells.
//
// Each namespace has tables of its own, so what FTS5 counts for one depends on
// no other (M02). FTS5 is given words, not text: package words takes texts and
// queries apart, so FTS5 meets no syntax that somebody else chose (M06). The
// text of a Doc may be any bytes; namespaces, ids and kinds are UTF-8 without
// NUL and are compared bytewise (M07). Whoever searches holds in memory where
// the common words stand, some hundred bytes a text.
//
// What is dropped or replaced is overwritten in the file and, as soon as no
// reader holds an older state, gone from the write-ahead log (M09).
type Index struct {
	path string
	read *sql.DB // query_only
	pool *sql.DB // one connection, conn
	conn *sql.Conn
	turn chan struct{} // holds one token; who has it may use conn
	due  bool          // the write-ahead log holds what was dropped; guarded by turn

	common commons

	once   sync.Once
	closed error
}

var _ memory.Index = (*Index)(nil)

// Close ends the use of the index. What goes on in it may fail.
func (x *Index) Close() error {
	x.once.Do(func() {
		<-x.turn
		if x.due {
			x.truncate()
		}
		x.closed = errors.Join(x.read.Close(), x.conn.Close(), x.pool.Close())
		x.turn <- struct{}{} // who comes now is told that it is closed
	})
	return x.closed
}

// At implements memory.Index.
func (x *Index) At(ctx context.Context, namespace string) (at uint64, err error) {
	err = x.reading(ctx, func(tx *sql.Tx) error {
		ns, err := find(ctx, tx, namespace)
		at = uint64(ns.at)
		return err
	})
	return at, err
}

// Update implements memory.Index.
func (x *Index) Update(ctx context.Context, c memory.Change) error {
	if err := words.Check(c); err != nil {
		return err
	}
	return x.writing(ctx, func() (removed bool, err error) {
		ns, err := find(ctx, x.conn, c.Namespace)
		if err != nil {
			return false, err
		}
		if uint64(ns.at) != c.From {
			return false, memory.ErrBehind
		}
		if ns.number == 0 {
			if ns, err = x.add(ctx, c.Namespace); err != nil {
				return false, err
			}
		}
		e, err := x.edit(ctx, ns)
		if err != nil {
			return false, err
		}
		defer e.close()
		for _, id := range c.Drop {
			if _, err := e.remove(ctx, id, nil); err != nil {
				return false, err
			}
		}
		for _, d := range c.Put {
			if err := e.put(ctx, d); err != nil {
				return false, err
			}
		}
		if _, err := x.conn.ExecContext(ctx, fmt.Sprintf("DELETE FROM gone_%d WHERE n <= ?", ns.number), e.ns.gone-x.common.journal); err != nil {
			return false, err
		}
		_, err = x.conn.ExecContext(ctx, "UPDATE namespaces SET at = ?, texts = ?, words = ?, last = ?, gone = ? WHERE number = ?",
			int64(c.To), e.ns.texts, e.ns.words, e.ns.last, e.ns.gone, ns.number)
		return e.removed, err
	})
}

// Reset implements memory.Index.
func (x *Index) Reset(ctx context.Context, namespace string) error {
	defer x.common.forget(namespace)
	return x.writing(ctx, func() (bool, error) {
		ns, err := find(ctx, x.conn, namespace)
		if err != nil || ns.number == 0 {
			return false, err
		}
		for _, t := range []string{"places", "words", "gone", "docs"} {
			if _, err := x.conn.ExecContext(ctx, fmt.Sprintf("DROP TABLE %s_%d", t, ns.number)); err != nil {
				return false, err
			}
		}
		_, err = x.conn.ExecContext(ctx, "DELETE FROM namespaces WHERE number = ?", ns.number)
		return true, err
	})
}

// Docs implements memory.Index. It reads one state of the index, whatever is
// changed meanwhile.
func (x *Index) Docs(ctx context.Context, namespace string) iter.Seq2[memory.Doc, error] {
	return func(yield func(memory.Doc, error) bool) {
		goOn := true
		err := x.reading(ctx, func(tx *sql.Tx) error {
			ns, err := find(ctx, tx, namespace)
			if err != nil || ns.number == 0 {
				return err
			}
			rs, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT id, kind, sum, text FROM docs_%d ORDER BY id", ns.number))
			if err != nil {
				return err
			}
			defer rs.Close()
			for rs.Next() {
				var d memory.Doc
				var sum int64
				var text sql.RawBytes
				if err := rs.Scan(&d.ID, &d.Kind, &sum, &text); err != nil {
					return err
				}
				d.Text = string(text)
				if sum != checksum(d) {
					return errIndexDamaged
				}
				if goOn = yield(d, nil); !goOn {
					return nil
				}
			}
			return rs.Err()
		})
		if err != nil && goOn {
			yield(memory.Doc{}, err)
		}
	}
}

// namespace is a row of the registry; its number is 0 if there is none.
type namespace struct {
	number, at   int64
	texts, words int64 // how many it has
	last         int64 // the number of the text that was put last
	gone         int64 // how many texts were taken out
}

func find(ctx context.Context, q querier, name string) (ns namespace, err error) {
	if !utf8.ValidString(name) {
		return ns, nil // Update takes no such name
	}
	err = q.QueryRowContext(ctx, "SELECT number, at, texts, words, last, gone FROM namespaces WHERE name = ?", name).
		Scan(&ns.number, &ns.at, &ns.texts, &ns.words, &ns.last, &ns.gone)
	if errors.Is(err, sql.ErrNoRows) {
		return namespace{}, nil
	}
	if err == nil && (ns.number < 1 || ns.at < 0 || ns.texts < 0 || ns.words < 0 || ns.gone < 0 || ns.last-ns.gone != ns.texts) {
		err = errIndexDamaged
	}
	return ns, err
}

// add makes the tables of a namespace. No number is given twice, so that
// whoever knows something of a number and a record does not take it for that of
// another namespace.
func (x *Index) add(ctx context.Context, name string) (ns namespace, err error) {
	if err := x.conn.QueryRowContext(ctx, "UPDATE made SET numbers = numbers + 1 RETURNING numbers").Scan(&ns.number); err != nil {
		return ns, err
	}
	for _, q := range []string{
		`CREATE TABLE docs_%d (
			seq   INTEGER PRIMARY KEY,
			id    TEXT NOT NULL UNIQUE,
			kind  TEXT NOT NULL,
			words INTEGER NOT NULL,
			sum   INTEGER NOT NULL,
			text  BLOB NOT NULL
		) STRICT`,
		// The numbers of the texts that were taken out last.
		"CREATE TABLE gone_%d (n INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT",
		// The words are lower case letters and digits of ASCII and what is not
		// ASCII, with a space between: ascii makes of them what they are.
		"CREATE VIRTUAL TABLE words_%d USING fts5(words, content='', tokenize='ascii')",
		"INSERT INTO words_%[1]d (words_%[1]d, rank) VALUES ('secure-delete', 1)",
		"CREATE VIRTUAL TABLE places_%[1]d USING fts5vocab(words_%[1]d, instance)",
	} {
		if _, err := x.conn.ExecContext(ctx, fmt.Sprintf(q, ns.number)); err != nil {
			return ns, err
		}
	}
	_, err = x.conn.ExecContext(ctx, "INSERT INTO namespaces (name, number, at, texts, words, last, gone) VALUES (?, ?, 0, 0, 0, 0, 0)", name, ns.number)
	return ns, err
}

// reading runs f in one read transaction.
func (x *Index) reading(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := x.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return x.failed("read", err)
	}
	defer tx.Rollback()
	return x.failed("read", f(tx))
}

// writing runs f in one write transaction, and commits if it returns no error.
// f says whether it removed text.
func (x *Index) writing(ctx context.Context, f func() (removed bool, err error)) error {
	if err := x.take(ctx); err != nil {
		return err
	}
	defer x.leave()
	if _, err := x.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return x.failed("begin", err)
	}
	// The end of the transaction does not depend on the caller's patience.
	end := context.WithoutCancel(ctx)
	removed, err := f()
	if err == nil {
		_, err = x.conn.ExecContext(end, "COMMIT")
	}
	if err != nil {
		x.conn.ExecContext(end, "ROLLBACK")
		return x.failed("write", err)
	}
	if x.due = x.due || removed; x.due {
		x.truncate()
	}
	return nil
}

// take waits for the turn to use conn.
func (x *Index) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-x.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *Index) leave() { x.turn <- struct{}{} }

// truncate empties the write-ahead log. A reader of an older state is not
// waited for long: the next change tries again, and so does Close.
func (x *Index) truncate() {
	ctx := context.Background()
	var busy, log, moved int
	x.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", truncateWait.Milliseconds()))
	err := x.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	x.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", indexWait.Milliseconds()))
	x.due = err != nil || busy != 0
}

const (
	indexWait    = 10 * time.Second
	truncateWait = 10 * time.Millisecond
)
