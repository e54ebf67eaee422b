package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"

	"github.com/writ-project/writ/internal/store/words"
	"github.com/writ-project/writ/memory"
)

// edit is what one change does to the tables of a namespace.
type edit struct {
	ns      namespace // as it will be
	removed bool
	delta   map[string]int64 // by how much the number of texts with a word grew; nil if nobody wants to know

	all                                []*sql.Stmt
	find, del, delWords, add, addWords *sql.Stmt
}

func (x *Index) edit(ctx context.Context, ns namespace) (_ *edit, err error) {
	e := &edit{ns: ns}
	if x.counts.wanted(ns) {
		e.delta = map[string]int64{}
	}
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&e.find, "SELECT seq, kind, sum, text FROM docs_%d WHERE id = ?"},
		{&e.del, "DELETE FROM docs_%d WHERE seq = ?"},
		{&e.delWords, "INSERT INTO words_%[1]d (words_%[1]d, rowid, words) VALUES ('delete', ?, ?)"},
		{&e.add, "INSERT INTO docs_%d (id, kind, words, sum, text) VALUES (?, ?, ?, ?, ?)"},
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
	res, err := e.add.ExecContext(ctx, d.ID, d.Kind, len(ws), checksum(d), notNull([]byte(d.Text)))
	if err != nil {
		return err
	}
	seq, err := res.LastInsertId()
	if err != nil {
		return err
	}
	e.count(ws, 1)
	_, err = e.addWords.ExecContext(ctx, seq, strings.Join(ws, " "))
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
	e.count(ws, -1)
	_, err = e.delWords.ExecContext(ctx, seq, strings.Join(ws, " "))
	return false, err
}

// count notes that a text of these words came or went.
func (e *edit) count(ws []string, by int64) {
	e.ns.texts += by
	e.ns.words += by * int64(len(ws))
	if e.delta == nil {
		return
	}
	seen := make(map[string]bool, len(ws))
	for _, w := range ws {
		if !seen[w] {
			seen[w] = true
			e.delta[w] += by
		}
	}
}

// checksum tells a text from one that the disk changed; whoever changes one on
// purpose changes the sum too.
func checksum(d memory.Doc) int64 {
	sum := crc32.Update(0, castagnoli, []byte(d.ID+"\x00"+d.Kind+"\x00"))
	return int64(crc32.Update(sum, castagnoli, []byte(d.Text)))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// counts remembers in how many texts common words stand, because to count them
// takes milliseconds. It is right for one record of a namespace and follows the
// changes this process makes; those of others make it start anew.
type counts struct {
	common int64 // texts from which on a word is worth remembering

	mu sync.Mutex
	of map[int64]*count // by number of the namespace
}

type count struct {
	at    int64
	texts map[string]int64
}

// maxCounts is how many words of a namespace are remembered, and of how many
// namespaces.
const maxCounts = 2000

func (c *counts) get(ns namespace, word string) (n int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.of[ns.number]; k != nil && k.at == ns.at {
		n, ok = k.texts[word]
	}
	return n, ok
}

func (c *counts) set(ns namespace, word string, n int64) {
	if n < c.common {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.of[ns.number]
	switch {
	case k != nil && k.at > ns.at: // of a reader that began long ago
		return
	case k == nil || k.at < ns.at:
		if c.of == nil || len(c.of) >= maxCounts {
			c.of = map[int64]*count{}
		}
		k = &count{ns.at, map[string]int64{}}
		c.of[ns.number] = k
	}
	if len(k.texts) < maxCounts {
		k.texts[word] = n
	}
}

// wanted reports whether something is remembered that a change would change.
func (c *counts) wanted(ns namespace) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.of[ns.number]
	return k != nil && k.at == ns.at
}

// advance follows a change that was committed, from ns to the record at.
func (c *counts) advance(ns namespace, at int64, delta map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.of[ns.number]
	if k == nil || k.at != ns.at {
		return
	}
	if delta == nil { // it was remembered only while the change was made
		delete(c.of, ns.number)
		return
	}
	k.at = at
	for w := range k.texts {
		k.texts[w] += delta[w]
	}
}
