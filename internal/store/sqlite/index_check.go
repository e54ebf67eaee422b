package sqlite

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/writ-project/writ/internal/store/words"
	"github.com/writ-project/writ/memory"
)

// Integrity runs SQLite's own check of the file and FTS5's, and compares what
// FTS5 holds with the texts, word by word. What it finds is ErrRemake. It reads
// everything.
func (x *Index) Integrity(ctx context.Context) error {
	if err := x.take(ctx); err != nil {
		return err
	}
	defer x.leave()
	if _, err := x.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return x.failed("begin", err)
	}
	defer x.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return x.failed("check", x.check(ctx))
}

func (x *Index) check(ctx context.Context) error {
	var m string
	if err := x.conn.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&m); err != nil {
		return err
	}
	if m != "ok" {
		return fmt.Errorf("%w: %q", errIndexDamaged, m)
	}
	rs, err := x.conn.QueryContext(ctx, "SELECT number, texts, words, last, gone FROM namespaces")
	if err != nil {
		return err
	}
	defer rs.Close()
	var all []namespace
	for rs.Next() {
		var ns namespace
		if err := rs.Scan(&ns.number, &ns.texts, &ns.words, &ns.last, &ns.gone); err != nil {
			return err
		}
		all = append(all, ns)
	}
	if err := rs.Err(); err != nil {
		return err
	}
	for _, ns := range all {
		if err := x.checkNamespace(ctx, ns); err != nil {
			return err
		}
	}
	return nil
}

var errOtherWords = fmt.Errorf("%w: its words are not those of its texts", errIndexDamaged)

// checkNamespace compares two sums over all words with their texts and places:
// one from the texts, one from FTS5.
func (x *Index) checkNamespace(ctx context.Context, ns namespace) error {
	seed := maphash.MakeSeed()
	type place struct {
		seq, offset int64
		word        string
	}
	var texts, held uint64
	got := namespace{number: ns.number, last: ns.last, gone: ns.gone}
	rs, err := x.conn.QueryContext(ctx, fmt.Sprintf("SELECT seq, id, kind, words, sum, text FROM docs_%d", ns.number))
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		var seq, n int64
		var sum int64
		var d memory.Doc
		var text []byte
		if err := rs.Scan(&seq, &d.ID, &d.Kind, &n, &sum, &text); err != nil {
			return err
		}
		d.Text = string(text)
		ws := words.Of(d.Text)
		if sum != checksum(d) || n != int64(len(ws)) || seq < 1 || seq > ns.last {
			return errIndexDamaged
		}
		got.texts++
		got.words += n
		for i, w := range ws {
			texts += maphash.Comparable(seed, place{seq, int64(i), w})
		}
	}
	if err := rs.Err(); err != nil {
		return err
	}
	if got != ns || ns.last-ns.gone != ns.texts {
		return errIndexDamaged
	}
	vs, err := x.conn.QueryContext(ctx, fmt.Sprintf("SELECT doc, offset, term FROM places_%d", ns.number))
	if err != nil {
		return err
	}
	defer vs.Close()
	for vs.Next() {
		var p place
		if err := vs.Scan(&p.seq, &p.offset, &p.word); err != nil {
			return err
		}
		held += maphash.Comparable(seed, p)
	}
	if err := vs.Err(); err != nil {
		return err
	}
	if texts != held {
		return errOtherWords
	}
	return nil
}
