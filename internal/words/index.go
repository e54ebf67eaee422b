package words

import (
	"bytes"
	"cmp"
	"math"
	"slices"
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
//
// Which texts hold a stem stands in lists of bytes (list.go). New texts have lists
// of their own, which are now and then folded into the others.
type Index struct {
	kinds []string
	docs  []doc
	ids   []byte   // of docs, one behind the other
	byID  []uint32 // places in docs by id, but for fresh
	fresh []uint32 // likewise, of the docs since the last fold

	packed Pack             // the folded lists, by their stems
	open   map[string]*list // the lists since the last fold, by stem

	forms  map[form]*list      // of open, by the word itself: what spares a stem
	spoken [len(languages)]int // texts of each language
	gone   int                 // docs that are found no more, and still in lists
	length int64               // of all texts, in words

	sums []float64 `snapshot:"-"` // of a search, all zero
}

// form is a word in a language.
type form struct {
	in   language
	word string
}

type doc struct {
	end    uint32 // of its id in ids
	length uint32
	kind   uint8
	in     language
	gone   bool
}

// Put makes a text one to be found, in place of the one of that id, which is found
// no more and leaves the lists by the next search or drop. A kind is one of a few.
func (x *Index) Put(id, kind, text string) {
	place := uint32(len(x.docs))
	if at := x.find(id); at != nil {
		x.bury(*at)
		*at = place
	} else {
		i, _ := x.search(x.fresh, []byte(id))
		x.fresh = slices.Insert(x.fresh, i, place)
	}
	k := slices.Index(x.kinds, kind)
	if k < 0 {
		k, x.kinds = len(x.kinds), append(x.kinds, kind)
	}
	words := Of(text)
	in := languageOf(words)
	x.ids = append(x.ids, id...)
	x.docs = append(x.docs, doc{uint32(len(x.ids)), uint32(len(words)), uint8(k), in, false})
	var lists []*list
	for _, w := range words {
		l := x.list(form{in, w})
		if l.freq == 0 {
			lists = append(lists, l)
		}
		l.freq++
	}
	for _, l := range lists {
		l.add(post{place, l.freq})
		l.freq = 0
	}
	x.spoken[in]++
	x.length += int64(len(words))
	if len(x.docs)-len(x.byID) >= maxOpen {
		x.fold()
	}
}

// list is the open list of a word, made where there is none.
func (x *Index) list(w form) *list {
	l := x.forms[w]
	if l == nil {
		if x.open == nil {
			x.open, x.forms = map[string]*list{}, map[form]*list{}
		}
		stem := key(w.in, w.word)
		if l = x.open[string(stem)]; l == nil {
			l = &list{}
			x.open[string(stem)] = l
		}
		x.forms[w] = l
	}
	return l
}

// Drop takes the texts of some ids away, and their words where no other text
// holds them. It goes over all lists, once: who drops many drops them together.
func (x *Index) Drop(ids ...string) {
	for _, id := range ids {
		if at := x.find(id); at != nil {
			x.bury(*at)
		}
	}
	if x.gone > 0 {
		x.fold()
	}
}

// bury takes a text out of what is counted. Its lists still name it.
func (x *Index) bury(place uint32) {
	if d := &x.docs[place]; !d.gone {
		d.gone = true
		x.gone++
		x.spoken[d.in]--
		x.length -= int64(d.length)
	}
}

// Len is how many texts can be found.
func (x *Index) Len() int { return len(x.docs) - x.gone }

func (x *Index) id(place uint32) []byte {
	start := uint32(0)
	if place > 0 {
		start = x.docs[place-1].end
	}
	return x.ids[start:x.docs[place].end]
}

// search is where an id is or would be among places.
func (x *Index) search(places []uint32, id []byte) (int, bool) {
	return slices.BinarySearchFunc(places, id, func(p uint32, id []byte) int { return bytes.Compare(x.id(p), id) })
}

// find is where the place of an id stands, nil if nowhere.
func (x *Index) find(id string) *uint32 {
	for _, places := range [][]uint32{x.fresh, x.byID} {
		if i, ok := x.search(places, []byte(id)); ok {
			return &places[i]
		}
	}
	return nil
}

// Search returns the best texts, best first, equal ones by id: at most limit of
// each of the kinds, of all kinds together where none is given.
//
// The query is words and nothing else: what looks like an operator, a wildcard
// or a quote is text (M06). A query without a word finds nothing; of a long one
// the first MaxQuery words count, each once. A text is found if it holds one of
// the words in any of its forms, or, of a word that none holds, a kin of it; a function word of the text's language finds
// only where the rest of the query finds nothing of the kinds. The score is BM25 with
// Lucene's weight of a rare word, over all texts of whatever kind.
func (x *Index) Search(query string, kinds []string, limit int) []Hit {
	hits, _ := Search(query, kinds, limit, x)
	return hits[0]
}

// Search is Index.Search in several indexes, what each finds by itself. How rare a word
// is, and how long a text, says each of its own texts; only where none finds anything
// do function words find, which small says.
func Search(query string, kinds []string, limit int, in ...*Index) (hits [][]Hit, small bool) {
	words, found := Query(query), false
	for _, small = range []bool{false, true} {
		hits = nil
		for _, x := range in {
			h := x.hits(words, kinds, limit, small)
			hits, found = append(hits, h), found || len(h) > 0
		}
		if found {
			break
		}
	}
	return hits, small && found
}

func (x *Index) hits(words, kinds []string, limit int, all bool) []Hit {
	if x.gone > 0 {
		x.fold()
	}
	if limit <= 0 || len(x.docs) == 0 {
		return nil
	}
	return x.best(x.asked(words, all), kinds, limit)
}

// wanted is a word of a query: the lists of its stems, one of a language.
type wanted struct {
	first []byte // of the stems
	lists []list
	texts int
}

// add has the lists of a stem looked through too.
func (q *wanted) add(stem []byte, lists []list) {
	if len(lists) > 0 && q.first == nil {
		q.first = stem
	}
	for _, l := range lists {
		q.texts += int(l.texts)
	}
	q.lists = append(q.lists, lists...)
}

// asked is what is looked for by the words of a query, what fewer texts hold
// first: parts of a score are added in one order, whatever that of the words is.
func (x *Index) asked(words []string, all bool) (out []wanted) {
	seen := map[string]bool{}
	for _, w := range words {
		of := function()[w]
		var q wanted
		for l, n := range x.spoken {
			if n == 0 || of>>l&1 == 1 && !all {
				continue
			}
			stem := key(language(l), w)
			if seen[string(stem)] {
				continue
			}
			seen[string(stem)] = true
			q.add(stem, x.lists(stem))
		}
		if q.texts == 0 && of == 0 {
			x.kin(w, &q, seen)
		}
		if q.texts > 0 {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b wanted) int { return cmp.Or(cmp.Compare(a.texts, b.texts), bytes.Compare(a.first, b.first)) })
	return out
}

// kin looks for a word that no text holds by stems that differ from its own in an
// ending: allergies and allergic have no stem in common.
func (x *Index) kin(word string, q *wanted, seen map[string]bool) {
	for l, n := range x.spoken {
		own := string(key(language(l), word))
		start, ok := beginning(own)
		if n == 0 || !ok {
			continue
		}
		for _, stem := range x.stems(start) {
			if lists := x.lists([]byte(stem)); !seen[stem] && related(own, stem) && len(lists) > 0 {
				seen[stem] = true
				q.add([]byte(stem), lists)
			}
		}
	}
	q.texts = min(q.texts, x.Len()) // one text may hold several
}

// Kin are alike in kinLetters, and each has at most kinEnding more.
const kinLetters, kinEnding = 5, 3

// beginning is the language and first letters of a stem, ok is false where it has
// fewer.
func beginning(stem string) (string, bool) {
	n := 0
	for i := range stem[1:] {
		if n++; n > kinLetters {
			return stem[:1+i], true
		}
	}
	return stem, n == kinLetters
}

func related(a, b string) bool {
	x, y := []rune(a), []rune(b)
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n > kinLetters && max(len(x), len(y))-n <= kinEnding // the language is one
}

// scored is a doc that a search found.
type scored struct {
	score float64
	place uint32
}

func (x *Index) best(asked []wanted, kinds []string, limit int) []Hit {
	sums := x.sums
	if x.sums = nil; len(sums) < len(x.docs) {
		sums = make([]float64, cap(x.docs))
	}
	found := x.score(sums, asked)
	shelfOf := make([]int, len(x.kinds))
	for k, kind := range x.kinds {
		if len(kinds) > 0 {
			shelfOf[k] = slices.Index(kinds, kind)
		}
	}
	shelves := make([][]scored, max(1, len(kinds)))
	for _, place := range found {
		s := scored{sums[place], place}
		sums[place] = 0
		of := shelfOf[x.docs[place].kind]
		if of < 0 {
			continue
		}
		// Behind the best so far others gather, and go now and then.
		shelf := shelves[of]
		if len(shelf) >= limit && x.compare(s, shelf[limit-1]) > 0 {
			continue
		}
		if shelf = append(shelf, s); len(shelf) == limit || len(shelf) >= 2*limit {
			slices.SortFunc(shelf, x.compare)
			shelf = shelf[:limit]
		}
		shelves[of] = shelf
	}
	x.sums = sums // all zero again
	var all []scored
	for _, shelf := range shelves {
		slices.SortFunc(shelf, x.compare)
		all = append(all, shelf[:min(len(shelf), limit)]...)
	}
	slices.SortFunc(all, x.compare)
	var out []Hit
	for _, s := range all {
		out = append(out, Hit{string(x.id(s.place)), x.kinds[x.docs[s.place].kind], s.score})
	}
	return out
}

// compare orders what is found: the better first, of equals by id.
func (x *Index) compare(a, b scored) int {
	if c := cmp.Compare(b.score, a.score); c != 0 {
		return c
	}
	return bytes.Compare(x.id(a.place), x.id(b.place))
}

// score adds up the scores of the docs that hold what is asked, by place, and
// returns the places.
func (x *Index) score(sums []float64, asked []wanted) []uint32 {
	most := 0
	for _, q := range asked {
		most += q.texts
	}
	found := make([]uint32, 0, min(most, len(x.docs)))
	mean := float64(x.length) / float64(len(x.docs))
	part := func(p post, length uint32) float64 {
		f := float64(p.freq)
		// The conversions keep a machine that multiplies and adds at once from it.
		norm := float64(k1 * (1 - b + float64(b*float64(length)/mean)))
		return f / (f + norm)
	}
	var once [256]float64 // parts of what a text holds once, by the text's length
	for n := range once {
		once[n] = part(post{freq: 1}, uint32(n))
	}
	buf := make([]post, 256)
	for _, q := range asked {
		weight := math.Log(1 + (float64(len(x.docs)-q.texts)+0.5)/(float64(q.texts)+0.5))
		for _, l := range q.lists {
			for posts := range l.posts(buf) {
				for _, p := range posts {
					if sums[p.place] == 0 {
						found = append(found, p.place)
					}
					length := x.docs[p.place].length
					if p.freq == 1 && length < uint32(len(once)) {
						sums[p.place] += float64(weight * once[length])
					} else {
						sums[p.place] += float64(weight * part(p, length))
					}
				}
			}
		}
	}
	return found
}
