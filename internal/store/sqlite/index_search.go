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

// best weighs all texts in which words stand, and returns the best ones.
func (c *common) best(found []places, kinds []string, limit int) (hits []memory.Hit) {
	if len(found) == 0 {
		return nil
	}
	// The rarest first, as everywhere: the order in which the parts of a score
	// are added decides its last bit.
	slices.SortFunc(found, func(a, b places) int {
		return cmp.Or(cmp.Compare(len(a.in), len(b.in)), cmp.Compare(a.word, b.word))
	})
	c.weigh()
	for _, p := range found {
		idf := words.IDF(int64(len(p.in)), c.texts)
		for _, at := range p.in {
			c.scores[at.slot] += words.Score(idf, float64(at.times), c.norms[at.slot])
		}
	}
	every := &bests{c: c, limit: limit}
	of := make([]*bests, len(c.kinds)) // by kind; nil for one that is not asked for
	for i, kind := range c.kinds {
		if len(kinds) == 0 {
			of[i] = every
		} else if slices.Contains(kinds, kind) {
			of[i] = &bests{c: c, limit: limit}
		}
	}
	for slot, score := range c.scores {
		if score > 0 {
			if b := of[c.kind[slot]]; b != nil {
				b.take(scored{score, uint32(slot)})
			}
		}
	}
	all := slices.DeleteFunc(append(of, every), func(b *bests) bool { return b == nil })
	n := 0
	for _, b := range all {
		n += len(b.texts)
	}
	hits = make([]memory.Hit, 0, n)
	for _, b := range all {
		for _, s := range b.texts {
			hits = append(hits, memory.Hit{ID: c.docs[s.slot].id, Kind: c.kinds[c.kind[s.slot]], BM25: s.score})
		}
		b.texts = nil
	}
	slices.SortFunc(hits, func(a, b memory.Hit) int {
		return cmp.Or(cmp.Compare(b.BM25, a.BM25), cmp.Compare(a.ID, b.ID))
	})
	return hits
}

// weigh makes room for the scores of a search, and the norms of the texts anew
// if any came or went.
func (c *common) weigh() {
	if len(c.norms) == 0 {
		mean := float64(c.words) / float64(c.texts)
		c.norms = slices.Grow(c.norms, len(c.docs))[:len(c.docs)]
		for i := range c.docs {
			c.norms[i] = words.Norm(float64(c.docs[i].words), mean)
		}
	}
	c.scores = slices.Grow(c.scores[:0], len(c.docs))[:len(c.docs)]
	clear(c.scores)
}

type scored struct {
	score float64
	slot  uint32
}

// bests are the best texts of those it was given, best first.
type bests struct {
	c     *common
	limit int
	texts []scored
}

func (b *bests) take(s scored) {
	n := len(b.texts)
	if n == 0 {
		b.texts = make([]scored, 0, min(b.limit, 1000)+1)
	}
	if n == b.limit && b.order(b.texts[n-1], s) < 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(b.texts, s, b.order)
	if b.texts = slices.Insert(b.texts, i, s); n == b.limit {
		b.texts = b.texts[:n]
	}
}

// order puts the higher score first, then goes by id.
func (b *bests) order(x, y scored) int {
	if c := cmp.Compare(y.score, x.score); c != 0 {
		return c
	}
	return cmp.Compare(b.c.docs[x.slot].id, b.c.docs[y.slot].id)
}
