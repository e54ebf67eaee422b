package words

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
)

// The constants of BM25, those of Lucene.
const (
	k1 = 1.2
	b  = 0.75
)

// Hit is one text that holds at least one of the words asked for.
type Hit struct {
	ID    string
	Kind  string
	Score float64 // higher is better, positive
}

// Index finds texts by their words. It is held in memory and is used by one
// goroutine at a time. Its zero value is empty.
type Index struct {
	docs   []doc
	at     map[string]uint32 // place in docs, by id
	terms  map[form]*term
	forms  map[form]*term // by the word itself: what spares a stem
	kinds  []string
	spoken [len(languages)]int // texts of each language
	count  int
	length int64 // of all texts, in words

	sums sync.Pool // of a search, *[]float64
}

// form is a word, or what is left of it, in a language.
type form struct {
	in   language
	word string
}

// term is what a stem is found by: the texts that hold it, in their places.
type term struct {
	stem  form
	posts []post
}

type post struct {
	doc  uint32
	freq uint32
}

type doc struct {
	id     string // "" where the text is gone
	kind   uint8
	in     language
	length int32
	terms  []*term
}

// Put makes a text one to be found, in place of the one of that id. A kind is
// one of a few.
func (x *Index) Put(id, kind, text string) {
	x.Drop(id)
	if x.at == nil {
		x.at, x.terms, x.forms = map[string]uint32{}, map[form]*term{}, map[form]*term{}
	}
	k := slices.Index(x.kinds, kind)
	if k < 0 {
		k, x.kinds = len(x.kinds), append(x.kinds, kind)
	}
	words := Of(text)
	d := doc{id: id, kind: uint8(k), in: languageOf(words), length: int32(len(words))}
	place := uint32(len(x.docs))
	for _, w := range words {
		t := x.term(form{d.in, w})
		if last := len(t.posts) - 1; last >= 0 && t.posts[last].doc == place {
			t.posts[last].freq++
			continue
		}
		t.posts = append(t.posts, post{place, 1})
		d.terms = append(d.terms, t)
	}
	d.terms = slices.Clip(d.terms)
	x.docs, x.at[id] = append(x.docs, d), place
	x.spoken[d.in]++
	x.count++
	x.length += int64(len(words))
}

// term is the term of a word, made where there is none.
func (x *Index) term(w form) *term {
	if t := x.forms[w]; t != nil {
		return t
	}
	key := form{w.in, w.in.stem(w.word)}
	t := x.terms[key]
	if t == nil {
		t = &term{stem: key}
		x.terms[key] = t
	}
	x.forms[w] = t
	return t
}

// Drop takes the text of an id away, and its words where no other text holds
// them.
func (x *Index) Drop(id string) {
	place, ok := x.at[id]
	if !ok {
		return
	}
	d := &x.docs[place]
	for _, t := range d.terms {
		if i, ok := slices.BinarySearchFunc(t.posts, place, func(p post, at uint32) int { return cmp.Compare(p.doc, at) }); ok {
			t.posts = slices.Delete(t.posts, i, i+1)
		}
		if len(t.posts) == 0 {
			delete(x.terms, t.stem)
		}
	}
	clear(x.forms)
	delete(x.at, id)
	x.spoken[d.in]--
	x.count--
	x.length -= int64(d.length)
	*d = doc{}
}

// Len is how many texts can be found.
func (x *Index) Len() int { return x.count }

// Search returns the best texts, best first, equal ones by id: at most limit of
// each of the kinds, of all kinds together where none is given.
//
// The query is words and nothing else: what looks like an operator, a wildcard
// or a quote is text (M06). A query without a word finds nothing; of a long one
// the first MaxQuery words count, each once. A text is found if it holds one of
// the words in any of its forms; a function word of the text's language finds
// only where the rest of the query finds nothing of the kinds. The score is BM25 with
// Lucene's weight of a rare word, over all texts of whatever kind.
func (x *Index) Search(query string, kinds []string, limit int) []Hit {
	words := Query(query)
	hits := x.search(words, kinds, limit, false)
	if len(hits) == 0 {
		hits = x.search(words, kinds, limit, true)
	}
	return hits
}

// wanted is a word of a query: the terms that hold it, one of a language.
type wanted struct {
	terms []*term
	texts int
}

func (x *Index) search(words, kinds []string, limit int, all bool) []Hit {
	if limit <= 0 || x.count == 0 {
		return nil
	}
	var asked []wanted
	seen := map[*term]bool{}
	for _, w := range words {
		of := function()[w]
		var q wanted
		for l, n := range x.spoken {
			if n == 0 || of>>l&1 == 1 && !all {
				continue
			}
			in := language(l)
			if t := x.terms[form{in, in.stem(w)}]; t != nil && !seen[t] {
				seen[t] = true
				q.terms, q.texts = append(q.terms, t), q.texts+len(t.posts)
			}
		}
		if q.texts > 0 {
			asked = append(asked, q)
		}
	}
	// Parts are added in one order, whatever the order of the words.
	slices.SortFunc(asked, func(a, b wanted) int {
		return cmp.Or(cmp.Compare(a.texts, b.texts), cmp.Compare(a.terms[0].stem.in, b.terms[0].stem.in), strings.Compare(a.terms[0].stem.word, b.terms[0].stem.word))
	})
	sums, _ := x.sums.Get().(*[]float64)
	if sums == nil {
		sums = new([]float64)
	}
	defer x.sums.Put(sums)
	*sums = slices.Grow((*sums)[:0], len(x.docs))[:len(x.docs)]
	clear(*sums)
	var found []uint32
	mean := float64(x.length) / float64(x.count)
	for _, q := range asked {
		weight := math.Log(1 + (float64(x.count-q.texts)+0.5)/(float64(q.texts)+0.5))
		for _, t := range q.terms {
			for _, p := range t.posts {
				if (*sums)[p.doc] == 0 {
					found = append(found, p.doc)
				}
				f := float64(p.freq)
				// The conversions keep a machine that multiplies and adds at once from it.
				norm := float64(k1 * (1 - b + float64(b*float64(x.docs[p.doc].length)/mean)))
				(*sums)[p.doc] += float64(weight * (f / (f + norm)))
			}
		}
	}
	best := make([][]Hit, max(1, len(kinds)))
	order := func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID)) }
	for _, place := range found {
		d := &x.docs[place]
		shelf := 0
		if len(kinds) > 0 {
			if shelf = slices.Index(kinds, x.kinds[d.kind]); shelf < 0 {
				continue
			}
		}
		best[shelf] = append(best[shelf], Hit{d.id, x.kinds[d.kind], (*sums)[place]})
		if len(best[shelf]) >= 1000+2*limit {
			slices.SortFunc(best[shelf], order)
			best[shelf] = best[shelf][:limit]
		}
	}
	var out []Hit
	for _, hits := range best {
		slices.SortFunc(hits, order)
		out = append(out, hits[:min(limit, len(hits))]...)
	}
	slices.SortFunc(out, order)
	return out
}
