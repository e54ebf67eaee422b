package sqlite

import (
	"cmp"
	"context"
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
	err = x.reading(ctx, func(tx querier) error {
		ns, err := find(ctx, tx, namespace)
		if err != nil || ns.number == 0 {
			return err
		}
		s := &search{tx: tx, ns: ns, kinds: kinds, limit: limit}
		if err := s.count(ctx, ws); err != nil {
			return err
		}
		hits, err = s.run(ctx)
		return err
	})
	return hits, err
}

// search is one search in one read transaction.
type search struct {
	tx    querier
	ns    namespace
	kinds []string
	limit int
	words []counted // that some text holds, the rarest first
}

type counted struct {
	word  string
	texts int64 // that hold it
	most  float64
}

// count looks up in how many texts each word stands. FTS5 adds the scores of
// words in their order, so theirs is fixed.
func (s *search) count(ctx context.Context, ws []string) error {
	for _, w := range ws {
		c := counted{word: w}
		q := fmt.Sprintf("SELECT count(*) FROM words_%[1]d WHERE words_%[1]d MATCH ?", s.ns.number)
		if err := s.tx.QueryRowContext(ctx, q, anyOf([]counted{c})).Scan(&c.texts); err != nil {
			return err
		}
		if c.texts > 0 {
			c.most = words.Most(words.IDF(c.texts, s.ns.size))
			s.words = append(s.words, c)
		}
	}
	slices.SortFunc(s.words, func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.texts, b.texts), cmp.Compare(a.word, b.word))
	})
	return nil
}

// run finds the best texts without weighing each that holds some word of the
// query. FTS5 needs about two microseconds for a text, which is too much where
// most texts hold a word like "the".
//
// It divides the words into rare and common ones. If limit texts already score
// more by rare words than all the common ones can add to any text, the answer
// holds only texts with a rare word: those without a common word, which score
// what they score by rare ones, and those with both. Of both kinds the best are
// asked for; a text that is too far back in a list is so in the answer.
func (s *search) run(ctx context.Context) ([]memory.Hit, error) {
	if n := s.split(); n < len(s.words) {
		rare, common := s.words[:n], s.words[n:]
		first, err := s.best(ctx, anyOf(rare))
		if err != nil {
			return nil, err
		}
		if len(first) == s.limit && first[s.limit-1].BM25 > most(common) {
			both, err := s.best(ctx, "("+anyOf(rare)+") AND ("+anyOf(common)+")")
			if err != nil {
				return nil, err
			}
			return s.merge(first, both), nil
		}
	}
	if len(s.words) == 0 {
		return nil, nil
	}
	return s.best(ctx, anyOf(s.words))
}

// split guesses how many words are rare enough to answer with: as few as hold
// limit texts and can outweigh the others.
func (s *search) split() int {
	var texts int64
	for i, w := range s.words {
		// A text of average length in which a word stands once has the word's
		// weight, that is Most/(K1+1), as its score.
		if texts >= int64(s.limit) && most(s.words[i:]) < s.words[0].most/(words.K1+1) {
			return i
		}
		texts += w.texts
	}
	return len(s.words)
}

// most is what words can add to the score of a text at most.
func most(ws []counted) (sum float64) {
	for _, w := range ws {
		sum += w.most
	}
	return sum
}

// merge unites the best by rare words with the best of those that hold common
// ones too, whose scores are the greater and the right ones.
func (s *search) merge(first, both []memory.Hit) []memory.Hit {
	have := map[string]bool{}
	for _, h := range both {
		have[h.ID] = true
	}
	for _, h := range first {
		if !have[h.ID] {
			both = append(both, h)
		}
	}
	slices.SortFunc(both, func(a, b memory.Hit) int {
		return cmp.Or(cmp.Compare(b.BM25, a.BM25), cmp.Compare(a.ID, b.ID))
	})
	return both[:min(len(both), s.limit)]
}

// anyOf is an FTS5 expression for texts that hold one of the words. Words have
// no character but letters, marks and digits; quoted, none is an operator.
func anyOf(ws []counted) string {
	var b strings.Builder
	for i, w := range ws {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteString(`"` + w.word + `"`)
	}
	return b.String()
}

// best asks FTS5 for the best texts of an expression.
func (s *search) best(ctx context.Context, match string) (hits []memory.Hit, err error) {
	args := []any{match}
	where := ""
	if len(s.kinds) > 0 {
		where = " AND d.kind IN (?" + strings.Repeat(", ?", len(s.kinds)-1) + ")"
		for _, k := range s.kinds {
			args = append(args, k)
		}
	}
	q := fmt.Sprintf(`SELECT d.id, d.kind, -bm25(words_%[1]d) AS score
		FROM words_%[1]d JOIN docs_%[1]d AS d ON d.seq = words_%[1]d.rowid
		WHERE words_%[1]d MATCH ?%[2]s ORDER BY score DESC, d.id LIMIT ?`, s.ns.number, where)
	rs, err := s.tx.QueryContext(ctx, q, append(args, s.limit)...)
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

// joined is a text as FTS5 gets it.
func joined(text string) string { return strings.Join(words.Of(text), " ") }
