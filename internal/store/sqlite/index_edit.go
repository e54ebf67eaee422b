package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/writ-project/writ/internal/store/words"
	"github.com/writ-project/writ/memory"
)

// edit is what one change does to the tables of a namespace.
type edit struct {
	ns      namespace // as it will be
	removed bool

	all                                      []*sql.Stmt
	find, del, delWords, note, add, addWords *sql.Stmt
}

func (x *Index) edit(ctx context.Context, ns namespace) (_ *edit, err error) {
	e := &edit{ns: ns}
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&e.find, "SELECT seq, kind, sum, text FROM docs_%d WHERE id = ?"},
		{&e.del, "DELETE FROM docs_%d WHERE seq = ?"},
		{&e.delWords, "INSERT INTO words_%[1]d (words_%[1]d, rowid, words) VALUES ('delete', ?, ?)"},
		{&e.note, "INSERT INTO gone_%d (n, seq) VALUES (?, ?)"},
		{&e.add, "INSERT INTO docs_%d (seq, id, kind, words, sum, text) VALUES (?, ?, ?, ?, ?, ?)"},
		{&e.addWords, "INSERT INTO words_%d (rowid, words) VALUES (?, ?)"},
	} {
		if *p.to, err = x.conn.PrepareContext(ctx, fmt.Sprintf(p.sql, ns.number)); err != nil {
			e.close()
			return nil, err
		}
		e.all = append(e.all, *p.to)
	}
	return e, nil
}

func (e *edit) close() {
	for _, s := range e.all {
		s.Close()
	}
}

// put gives an id its text.
func (e *edit) put(ctx context.Context, d memory.Doc) error {
	if same, err := e.remove(ctx, d.ID, &d); same || err != nil {
		return err
	}
	ws := words.Of(d.Text)
	e.ns.texts++
	e.ns.words += int64(len(ws))
	e.ns.last++
	if _, err := e.add.ExecContext(ctx, e.ns.last, d.ID, d.Kind, len(ws), checksum(d), notNull([]byte(d.Text))); err != nil {
		return err
	}
	_, err := e.addWords.ExecContext(ctx, e.ns.last, strings.Join(ws, " "))
	return err
}

// remove takes the text of an id out, unless there is none or it is already the
// one given.
func (e *edit) remove(ctx context.Context, id string, unless *memory.Doc) (same bool, err error) {
	var seq int64
	var sum int64
	var text []byte
	old := memory.Doc{ID: id}
	err = e.find.QueryRowContext(ctx, id).Scan(&seq, &old.Kind, &sum, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	// FTS5 is told the words that go, so they must be those that came.
	if old.Text = string(text); checksum(old) != sum {
		return false, errIndexDamaged
	}
	if unless != nil && *unless == old {
		return true, nil
	}
	e.removed = true
	if _, err := e.del.ExecContext(ctx, seq); err != nil {
		return false, err
	}
	ws := words.Of(old.Text)
	e.ns.texts--
	e.ns.words -= int64(len(ws))
	e.ns.gone++
	if _, err := e.note.ExecContext(ctx, e.ns.gone, seq); err != nil {
		return false, err
	}
	_, err = e.delWords.ExecContext(ctx, seq, strings.Join(ws, " "))
	return false, err
}

// checksum tells a text from one that the disk changed; whoever changes one on
// purpose changes the sum too.
func checksum(d memory.Doc) int64 {
	sum := crc32.Update(0, castagnoli, []byte(d.ID+"\x00"+d.Kind+"\x00"))
	return int64(crc32.Update(sum, castagnoli, []byte(d.Text)))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
