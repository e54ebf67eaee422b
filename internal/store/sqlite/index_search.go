package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/store/words"
	"github.com/writ-project/writ/memory"
)

// Search implements memory.Index. The query's first words.MaxQuery distinct
// words count. The scores are those of FTS5's bm25().
func (x *Index) Search(ctx context.Context, namespace, query string, kinds []string, limit int) (hits []memory.Hit, err error) {
	ws := words.Query(query)
	if len(ws) == 0 || limit <= 0 {
		return nil, ctx.Err()
	}
	err = x.reading(ctx, func(tx *sql.Tx) error {
		ns, err := find(ctx, tx, namespace)
		if err != nil || ns.number == 0 {
			return err
		}
		s := &search{tx: tx, ns: ns, kinds: kinds, limit: limit, index: x}
		if err := s.count(ctx, &x.counts, ws); err != nil {
			return err
		}
		hits, err = s.run(ctx)
		return err
	})
	return hits, err
}

// search is one search in one read transaction.
//
// FTS5 needs about two microseconds to weigh a text, which is too much where
// most texts hold a word like "the" of the query. So the texts with its rarest
// words are weighed first, here. That gives a score that limit texts reach, and
// leaves the texts without those words; of them only those are asked for whose
// words can add up to that score. Where this leaves too many texts, FTS5
// weighs them all.
//
// Nothing is guessed: the answer is the one FTS5 would give. Both add the words
// in one order, the rarest first, so that even the last bit is the same.
type search struct {
	tx    *sql.Tx
	ns    namespace
	kinds []string
	limit int
	index *Index
	words []counted // that some text holds, the rarest first
}

type counted struct {
	word  string
	texts int64 // that hold it
	idf   float64
}

// count looks up in how many texts each word stands.
func (s *search) count(ctx context.Context, known *counts, ws []string) error {
	q := fmt.Sprintf("SELECT count(*) FROM words_%[1]d WHERE words_%[1]d MATCH ?", s.ns.number)
	for _, w := range ws {
		c := counted{word: w}
		var ok bool
		if c.texts, ok = known.get(s.ns, w); !ok {
			if err := s.tx.QueryRowContext(ctx, q, anyOf([]counted{c})).Scan(&c.texts); err != nil {
				return err
			}
			known.set(s.ns, w, c.texts)
		}
		if c.texts > 0 {
			c.idf = words.IDF(c.texts, s.ns.texts)
			s.words = append(s.words, c)
		}
	}
	slices.SortFunc(s.words, func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.texts, b.texts), cmp.Compare(a.word, b.word))
	})
	return nil
}

func (s *search) run(ctx context.Context) ([]memory.Hit, error) {
	if len(s.words) == 0 {
		return nil, nil
	}
	var texts int64
	for n := 1; n <= len(s.words); n++ {
		texts += s.words[n-1].texts
		switch {
		case texts > s.index.maxTexts:
			return s.common(ctx)
		case texts < int64(s.limit) && n < len(s.words):
			continue
		}
		if hits, found, err := s.from(ctx, anyOf(s.words[:n]), s.words[n:]); found || err != nil {
			return hits, err
		}
	}
	return s.common(ctx)
}

// common searches where even the rarest words are common: from the texts that
// hold several of them.
func (s *search) common(ctx context.Context) ([]memory.Hit, error) {
	for n := len(s.words); n > 1; n-- {
		if hits, found, err := s.from(ctx, allOf(s.words[:n]), s.words); found || err != nil {
			return hits, err
		}
	}
	return s.all(ctx)
}

// from weighs the texts of an expression, and of the others, in which only
// the given words stand, those that can be better. It finds nothing if that are
// too many, or the first too few.
func (s *search) from(ctx context.Context, match string, others []counted) (hits []memory.Hit, found bool, err error) {
	w := &weighing{s: s}
	if err := w.weigh(ctx, match); w.over || err != nil {
		return nil, false, err
	}
	if len(others) == 0 {
		return w.hits, true, nil
	}
	if len(w.hits) < s.limit {
		return nil, false, nil
	}
	expr, ok := reaching(others, w.hits[s.limit-1].BM25)
	if ok && expr != "" {
		err = w.weigh(ctx, "("+expr+") NOT ("+match+")")
	}
	return w.hits, ok && !w.over, err
}

// weighing collects the best of the texts it has weighed.
type weighing struct {
	s            *search
	hits         []memory.Hit
	texts, words int64
	over         bool // there are too many
}

// weigh takes in all texts of an expression.
func (w *weighing) weigh(ctx context.Context, match string) error {
	s := w.s
	mean := float64(s.ns.words) / float64(s.ns.texts)
	freq := make([]float64, len(s.words))
	counts := make(map[string]*float64, len(s.words))
	for i := range s.words {
		counts[s.words[i].word] = &freq[i]
	}
	rs, err := s.query(ctx, "d.id, d.kind, d.words, d.sum, d.text", match, "LIMIT ?", s.index.maxTexts-w.texts+1)
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		var d memory.Doc
		var length int64
		var sum int64
		var text sql.RawBytes
		if err := rs.Scan(&d.ID, &d.Kind, &length, &sum, &text); err != nil {
			return err
		}
		w.texts++
		w.words += length
		if w.over = w.texts > s.index.maxTexts || w.words > s.index.maxWords; w.over {
			return nil
		}
		if d.Text = string(text); sum != checksum(d) {
			return errIndexDamaged
		}
		clear(freq)
		words.Count(d.Text, counts)
		h := memory.Hit{ID: d.ID, Kind: d.Kind}
		for i, c := range s.words {
			if freq[i] > 0 {
				h.BM25 += words.Score(c.idf, freq[i], float64(length), mean)
			}
		}
		if len(w.hits) == s.limit && better(w.hits[s.limit-1], h) < 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(w.hits, h, better)
		if w.hits = slices.Insert(w.hits, i, h); len(w.hits) > s.limit {
			w.hits = w.hits[:s.limit]
		}
	}
	return rs.Err()
}

// all leaves the weighing of all texts to FTS5.
func (s *search) all(ctx context.Context) (hits []memory.Hit, err error) {
	rs, err := s.query(ctx, fmt.Sprintf("d.id, d.kind, -bm25(words_%d) AS score", s.ns.number), anyOf(s.words),
		"ORDER BY score DESC, d.id LIMIT ?", s.limit)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	for rs.Next() {
		var h memory.Hit
		if err := rs.Scan(&h.ID, &h.Kind, &h.BM25); err != nil {
			return nil, err
		}
		hits = append(hits, h)
	}
	return hits, rs.Err()
}

// query selects from the texts of an expression that are of the kinds.
func (s *search) query(ctx context.Context, columns, match, end string, args ...any) (*sql.Rows, error) {
	where, all := "", []any{match}
	if len(s.kinds) > 0 {
		where = "AND d.kind IN (?" + strings.Repeat(", ?", len(s.kinds)-1) + ")"
		for _, k := range s.kinds {
			all = append(all, k)
		}
	}
	return s.tx.QueryContext(ctx, fmt.Sprintf(`SELECT %[2]s FROM words_%[1]d CROSS JOIN docs_%[1]d AS d ON d.seq = words_%[1]d.rowid
		WHERE words_%[1]d MATCH ? %[3]s %[4]s`, s.ns.number, columns, where, end), append(all, args...)...)
}

// better orders hits: the higher score first, then by id.
func better(a, b memory.Hit) int {
	return cmp.Or(cmp.Compare(b.BM25, a.BM25), cmp.Compare(a.ID, b.ID))
}

// reaching is an FTS5 expression for texts whose words of these can add up to a
// score; empty if none can, and not ok if it would be too long.
func reaching(ws []counted, score float64) (expr string, ok bool) {
	steps := 0
	// from is the expression for the words from the i-th on.
	var from func(i int, need float64) (expr string, any bool)
	from = func(i int, need float64) (string, bool) {
		if need < 1e-9 { // nothing, but for rounding
			return "", true
		}
		rest := 0.0
		for _, w := range ws[i:] {
			rest += words.Most(w.idf)
		}
		if steps++; rest < need-1e-9 || steps > maxSteps {
			return "", false
		}
		with, always := from(i+1, need-words.Most(ws[i].idf))
		without, _ := from(i+1, need)
		word := anyOf(ws[i : i+1])
		switch {
		case always && with == "":
		case with == without: // the word makes no difference
			return without, without != ""
		default:
			word = "(" + word + " AND (" + with + "))"
		}
		if without != "" {
			word += " OR " + without
		}
		return word, true
	}
	expr, _ = from(0, score)
	return expr, steps <= maxSteps && len(expr) <= maxExpr
}

const (
	maxSteps = 500
	maxExpr  = 4 << 10
)

// anyOf is an FTS5 expression for texts that hold one of the words. Words have
// no character but letters, marks and digits; quoted, none is an operator.
func anyOf(ws []counted) string { return quoted(ws, " OR ") }

// allOf is one for texts that hold all of the words.
func allOf(ws []counted) string { return quoted(ws, " AND ") }

func quoted(ws []counted, operator string) string {
	var b strings.Builder
	for i, w := range ws {
		if i > 0 {
			b.WriteString(operator)
		}
		b.WriteString(`"` + w.word + `"`)
	}
	return b.String()
}
