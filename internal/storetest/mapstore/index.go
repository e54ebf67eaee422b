package mapstore

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/writ-project/writ/internal/store/words"
	"github.com/writ-project/writ/memory"
)

// Index is a memory.Index in memory. It looks at every text for every search:
// what an index answers, in the plainest words.
type Index struct {
	mu    sync.Mutex
	names map[string]*texts
}

type texts struct {
	at   uint64
	docs map[string]text
}

type text struct {
	memory.Doc
	freq   map[string]float64 // how often a word stands in it
	length float64            // in words
}

var _ memory.Index = (*Index)(nil)

// NewIndex returns an empty index.
func NewIndex() *Index { return &Index{names: map[string]*texts{}} }

// in takes the lock and returns the namespace, an empty one if it is unknown.
func (x *Index) in(ctx context.Context, namespace string) (*texts, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x.mu.Lock()
	if t := x.names[namespace]; t != nil {
		return t, nil
	}
	return &texts{docs: map[string]text{}}, nil
}

// At implements memory.Index.
func (x *Index) At(ctx context.Context, namespace string) (uint64, error) {
	t, err := x.in(ctx, namespace)
	if err != nil {
		return 0, err
	}
	defer x.mu.Unlock()
	return t.at, nil
}

// Update implements memory.Index.
func (x *Index) Update(ctx context.Context, c memory.Change) error {
	if err := words.Check(c); err != nil {
		return err
	}
	t, err := x.in(ctx, c.Namespace)
	if err != nil {
		return err
	}
	defer x.mu.Unlock()
	if t.at != c.From {
		return memory.ErrBehind
	}
	for _, id := range c.Drop {
		delete(t.docs, id)
	}
	for _, d := range c.Put {
		ws := words.Of(d.Text)
		n := text{Doc: d, freq: map[string]float64{}, length: float64(len(ws))}
		for _, w := range ws {
			n.freq[w]++
		}
		t.docs[d.ID] = n
	}
	t.at = c.To
	x.names[c.Namespace] = t
	return nil
}

// Search implements memory.Index.
func (x *Index) Search(ctx context.Context, namespace, query string, kinds []string, limit int) ([]memory.Hit, error) {
	t, err := x.in(ctx, namespace)
	if err != nil {
		return nil, err
	}
	defer x.mu.Unlock()
	type counted struct {
		word  string
		texts int64
	}
	var ws []counted
	for _, w := range words.Query(query) {
		c := counted{word: w}
		for _, d := range t.docs {
			if d.freq[w] > 0 {
				c.texts++
			}
		}
		ws = append(ws, c)
	}
	// The order in which the scores of words are added is part of the result.
	slices.SortFunc(ws, func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.texts, b.texts), cmp.Compare(a.word, b.word))
	})
	total := 0.0
	for _, d := range t.docs {
		total += d.length
	}
	mean := total / float64(len(t.docs))
	var hits []memory.Hit
	for _, d := range t.docs {
		if len(kinds) > 0 && !slices.Contains(kinds, d.Kind) {
			continue
		}
		h := memory.Hit{ID: d.ID, Kind: d.Kind}
		for _, w := range ws {
			if f := d.freq[w.word]; f > 0 {
				h.BM25 += words.Score(words.IDF(w.texts, int64(len(t.docs))), f, words.Norm(d.length, mean))
			}
		}
		if h.BM25 > 0 {
			hits = append(hits, h)
		}
	}
	slices.SortFunc(hits, func(a, b memory.Hit) int {
		return cmp.Or(cmp.Compare(b.BM25, a.BM25), cmp.Compare(a.ID, b.ID))
	})
	left := map[string]int{} // by kind, or of all
	return slices.DeleteFunc(hits, func(h memory.Hit) bool {
		kind := h.Kind
		if len(kinds) == 0 {
			kind = ""
		}
		left[kind]++
		return left[kind] > limit
	}), nil
}

// Docs implements memory.Index. It yields the texts of the moment it began.
func (x *Index) Docs(ctx context.Context, namespace string) iter.Seq2[memory.Doc, error] {
	return func(yield func(memory.Doc, error) bool) {
		t, err := x.in(ctx, namespace)
		if err != nil {
			yield(memory.Doc{}, err)
			return
		}
		docs := maps.Clone(t.docs)
		x.mu.Unlock()
		for _, id := range slices.Sorted(maps.Keys(docs)) {
			if err := ctx.Err(); err != nil {
				yield(memory.Doc{}, err)
				return
			}
			if !yield(docs[id].Doc, nil) {
				return
			}
		}
	}
}

// Reset implements memory.Index.
func (x *Index) Reset(ctx context.Context, namespace string) error {
	if _, err := x.in(ctx, namespace); err != nil {
		return err
	}
	defer x.mu.Unlock()
	delete(x.names, namespace)
	return nil
}
