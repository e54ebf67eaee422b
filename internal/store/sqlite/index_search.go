package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/writ-project/writ/internal/store/words"
	"github.com/writ-project/writ/memory"
)

// Search implements memory.Index. The query's first words.MaxQuery distinct
// words count. The scores are those of FTS5's bm25(), over every text that
// holds one of the words.
//
// FTS5 takes about two microseconds to weigh a text, which is too much where
// most texts hold a word like "the" of the query. So it is asked only where
// rare words stand; where common ones do is held in memory (see common). No
// text is passed over for that.
func (x *Index) Search(ctx context.Context, namespace, query string, kinds []string, limit int) (hits []memory.Hit, err error) {
	ws := words.Query(query)
	if len(ws) == 0 || limit <= 0 {
		return nil, ctx.Err()
	}
	c := x.common.in(namespace)
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	defer c.leave()
	err = x.reading(ctx, func(tx *sql.Tx) error {
		ns, err := find(ctx, tx, namespace)
		if err != nil || ns.number == 0 {
			return err
		}
		if err := c.follow(ctx, tx, ns); err != nil {
			return err
		}
		var found []places
		for _, w := range ws {
			p := places{word: w}
			if p.in, err = c.places(ctx, tx, w); err != nil {
				return err
			}
			if len(p.in) > 0 {
				found = append(found, p)
			}
		}
		hits = c.best(found, kinds, limit)
		return nil
	})
	return hits, err
}

// places are where a word stands.
type places struct {
	word string
	in   []place
}

// best weighs all texts in which words stand, and returns the best of the kinds.
func (c *common) best(found []places, kinds []string, limit int) (hits []memory.Hit) {
	if len(found) == 0 {
		return nil
	}
	// The rarest first, as everywhere: the order in which the parts of a score
	// are added decides its last bit.
	slices.SortFunc(found, func(a, b places) int {
		return cmp.Or(cmp.Compare(len(a.in), len(b.in)), cmp.Compare(a.word, b.word))
	})
	mean := float64(c.words) / float64(c.texts)
	c.scores = slices.Grow(c.scores[:0], len(c.docs))[:len(c.docs)]
	clear(c.scores)
	for _, p := range found {
		idf := words.IDF(int64(len(p.in)), c.texts)
		for _, at := range p.in {
			c.scores[at.slot] += words.Score(idf, float64(at.times), float64(c.docs[at.slot].words), mean)
		}
	}
	least := 0.0
	for slot, score := range c.scores {
		if score == 0 || score < least {
			continue
		}
		d := &c.docs[slot]
		if len(kinds) > 0 && !slices.Contains(kinds, d.kind) {
			continue
		}
		h := memory.Hit{ID: d.id, Kind: d.kind, BM25: score}
		if len(hits) == limit && better(hits[limit-1], h) < 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(hits, h, better)
		if hits = slices.Insert(hits, i, h); len(hits) > limit {
			hits = hits[:limit]
		}
		if len(hits) == limit {
			least = hits[limit-1].BM25
		}
	}
	return hits
}

// better orders hits: the higher score first, then by id.
func better(a, b memory.Hit) int {
	return cmp.Or(cmp.Compare(b.BM25, a.BM25), cmp.Compare(a.ID, b.ID))
}
