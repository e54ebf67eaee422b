package provenance

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// # Records named by what they have the most of (R9)
//
// "Delete the largest file" names one record of a list as its id does, if the list is
// whole, the server guarantees what it is told by, and no other record has as much. The
// contract says what users call it, so that it is said of these records and of no
// others; the words are meant, unquoted, not denied and not narrowed by what stands behind
// them (Outright), in the user's latest turn, and the list is the last of its kind that the
// session saw: before it acted in that turn, and after what it did before.
// For he said it of what there was: the largest of what is left is another one, and so
// could every record be, one after the other.
//
// Whoever has read this and can make a record appear can make his own the largest, and
// have that destroyed. It says nothing of what is to receive something (R28).

// ranked is a record of a list that has the most, or the least, of something.
type ranked struct {
	mark    uint32 // of the member of the collection that names it
	typ     Type
	phrases []string
}

// rankOf is what a rank says of a leaf: by which leaf its record is told, -1 for none,
// and whether it is the one.
type rankOf struct {
	by int
	is bool
}

// rankKey is a kind of list.
type rankKey struct{ server, tool, collection string }

// ranks finds, for each rank of a rule, the one record of those that its leaves name,
// and the leaf by which each is told.
func (x *extraction) ranks() {
	of := map[*OutputRule][]*Leaf{}
	for i := range x.out.Leaves {
		if l := &x.out.Leaves[i]; l.Rule != nil && len(l.Rule.Ranks) > 0 {
			of[l.Rule] = append(of[l.Rule], l)
		}
	}
	for rule, leaves := range of {
		for n, r := range rule.Ranks {
			told := x.told(r)
			best := x.most(leaves, r, told)
			for _, l := range leaves {
				by := -1
				if l.record != nil && best != nil {
					if at, ok := told[l.record.at]; ok {
						by = at
					}
				}
				l.ranks = append(l.ranks[:n:n], rankOf{by, l == best})
			}
		}
	}
}

// told are the leaves by which records are told, by where those stand.
func (x *extraction) told(r Rank) map[*step]int {
	told := map[*step]int{}
	for i := range x.out.Leaves {
		if l := &x.out.Leaves[i]; l.Rule != nil && !l.Key {
			if top := l.above(r.By); top != nil {
				told[top] = i
			}
		}
	}
	return told
}

// most returns the one leaf whose record has the most of something, or the least; nil
// where some record is not told apart from the others.
func (x *extraction) most(leaves []*Leaf, r Rank, told map[*step]int) (best *Leaf) {
	var first strictjson.Value
	alone := true
	seen := map[*record]bool{}
	for _, l := range leaves {
		if l.record == nil || seen[l.record] {
			return nil
		}
		seen[l.record] = true
		at, ok := told[l.record.at]
		if !ok {
			return nil
		}
		v := x.out.Leaves[at].Value
		c, comparable := 1, true
		if best == nil {
			_, comparable = order(v, v)
		} else if c, comparable = order(v, first); r.Least {
			c = -c
		}
		switch {
		case !comparable:
			return nil
		case c > 0:
			best, first, alone = l, v, true
		case c == 0:
			alone = false
		}
	}
	if !alone {
		return nil
	}
	return best
}

// clockForm is how RFC 3339 writes times, without zone and to the second.
const clockForm = "2006-01-02T15:04:05"

// order compares two numbers, or two times without zone.
func order(a, b strictjson.Value) (c int, ok bool) {
	if x, isText := a.Text(); isText {
		y, both := b.Text()
		for _, at := range []string{x, y} {
			_, err := time.Parse(clockForm, at)
			both = both && err == nil && len(at) == len(clockForm)
		}
		return cmp.Compare(x, y), both
	}
	x, ok1 := decimal(string(a.Raw()))
	y, ok2 := decimal(string(b.Raw()))
	if a.Kind() != strictjson.Number || b.Kind() != strictjson.Number || !ok1 || !ok2 {
		return 0, false
	}
	p, _ := new(big.Rat).SetString(x)
	q, _ := new(big.Rat).SetString(y)
	return p.Cmp(q), true
}

// rank keeps what the last whole list of its kind says of its records. What they are
// told by is the server's own at that moment, for all of them: no act of a model's made
// one the largest (R4, R38).
func (l *Ledger) rank(o *Observation, facts []judged) {
	if l.stale(o) {
		return
	}
	fresh := map[rankKey]bool{}
	type rankIn struct {
		rule *OutputRule
		n    int
	}
	bad := map[rankIn]bool{}
	var all []*Leaf
	for i := range o.Leaves {
		leaf := &o.Leaves[i]
		if leaf.Rule == nil || len(leaf.Rule.Ranks) == 0 || facts[i].flags&listed == 0 || facts[i].label < writ.System {
			continue
		}
		all = append(all, leaf)
		if at := (rankKey{o.Server, o.Tool, leaf.Rule.Collection}); !fresh[at] {
			fresh[at] = true
			delete(l.ranks, at)
		}
		for n, r := range leaf.ranks {
			if r.by < 0 || facts[r.by].label < writ.System {
				bad[rankIn{leaf.Rule, n}] = true
			}
		}
	}
	for _, leaf := range all {
		at := rankKey{o.Server, o.Tool, leaf.Rule.Collection}
		k, typed := l.keyOf(leaf.Type, leaf.Value)
		for n, r := range leaf.ranks {
			if r.is && typed && !bad[rankIn{leaf.Rule, n}] {
				l.ranks[at] = append(l.ranks[at], ranked{k.mark(), leaf.Type, leaf.Rule.Ranks[n].Phrases})
			}
		}
	}
}

// ranking reports whether the user's latest turn calls a record of a collection by what
// it has the most of, and where.
func (l *Ledger) ranking(q Query) (Quote, bool) {
	kinds := slices.SortedFunc(maps.Keys(l.ranks), func(a, b rankKey) int {
		return cmp.Or(strings.Compare(a.server, b.server), strings.Compare(a.tool, b.tool), strings.Compare(a.collection, b.collection))
	})
	for _, at := range kinds {
		for _, r := range l.ranks[at] {
			k, ok := l.keyOf(r.typ, q.Value)
			if at.collection != q.Collection || !ok || k.mark() != r.mark {
				continue
			}
			for _, p := range r.phrases {
				if s, said := l.quote(p, Outright); said {
					return s, true
				}
			}
		}
	}
	return Quote{}, false
}

// # Members named by how they begin or end (R9, R28)
//
// "The channel starting with Ext", "the card ending in 4321": the user's latest turn says
// a part of what a thing is called, right behind the word for such things (`words`, or the
// collection's name) and in a sentence that lets it be meant (Refers). It names the one
// member that begins or ends so, of lists that are whole, that the server makes of its own,
// and that were seen after he said it and before an act: of two that do, neither.
//
// Whoever has read this and can make a member appear can have his begin so as well, and
// then none is named. Where the user's own is not there his is the one that is called so,
// as it would be had the user said the whole name.

// partSaid is a place where the user says how what he means begins or ends.
type partSaid struct {
	noun int // where the word for it ends
	at   span
	ends bool
}

// parted is what the latest turn says so, and which members do.
type parted struct {
	partSaid
	found []partOf
}

type partOf struct {
	collection string
	typ        Type
	mark       uint32
	exact      bool // in these very letters
}

var partly = text.Pattern(`(?i)(?:[ \t](?:that|which|whose[ \t](?:name|title|number|id)))?[ \t](?:(?:start(?:s|ing)?|begin(?:s|ning)?)[ \t]with|(end(?:s|ing)?)[ \t](?:with|in))[ \t]` + "([" + quotes + "]?)")

// saidParts finds what a text says so.
func (r *reading) saidParts() (out []partSaid) {
	for _, m := range partly().FindAllStringSubmatchIndex(r.text, 16) {
		from, most := m[1], min(len(r.text), m[1]+longestName)
		if m[4] < m[5] {
			for n, c := range r.text[from:most] {
				if n > 0 && strings.ContainsRune(quotes, c) && r.end[from+n] {
					out = append(out, partSaid{m[0] + 1, span{from, from + n}, m[2] >= 0})
					break
				}
			}
			continue
		}
		for end := from + 1; end <= most; end++ {
			if r.end[end] {
				out = append(out, partSaid{m[0] + 1, span{from, end}, m[2] >= 0})
				break
			}
		}
	}
	return out
}

// partial reports whether a stretch reaches into what the user said as a part of the name
// of what one of the words is for.
func (r *reading) partial(s span, words []string) bool {
	return slices.ContainsFunc(r.parts, func(p partSaid) bool {
		return s.start < p.at.end && p.at.start < s.end && r.called(p.noun, words)
	})
}

// part keeps which members of a whole list begin or end as the latest turn says.
func (l *Ledger) part(o *Observation, facts []judged) {
	if l.stale(o) || len(l.parts) == 0 {
		return
	}
	said := l.turns[len(l.turns)-1].own.text
	for i := range o.Leaves {
		leaf := &o.Leaves[i]
		text, isText := leaf.Value.Text()
		if leaf.Rule == nil || leaf.Key || !isText || leaf.Rule.Collection == "" || facts[i].flags&listed == 0 || facts[i].label < writ.System {
			continue
		}
		for n := range l.parts {
			p := &l.parts[n]
			is, exact := p.ofName(text, said[p.at.start:p.at.end])
			if k, ok := l.keyOf(leaf.Type, leaf.Value); is && ok {
				p.add(partOf{leaf.Rule.Collection, leaf.Type, k.mark(), exact})
			}
		}
	}
}

// ofName reports whether a name begins or ends with a word as was said, and in these very letters.
func (p *partSaid) ofName(name, word string) (is, exact bool) {
	has := strings.HasPrefix
	if p.ends {
		has = strings.HasSuffix
	}
	exact = has(name, word)
	return exact || has(fold(name), fold(word)), exact
}

// add keeps a member that begins or ends so. Of two of a collection neither is meant, however
// many more there are.
func (p *parted) add(of partOf) {
	n := 0
	for _, o := range p.found {
		if o.collection == of.collection {
			n++
		}
	}
	if n < 2 && !slices.Contains(p.found, of) {
		p.found = append(p.found, of)
	}
}

// byPart reports whether the user's latest turn says how a member of a collection begins
// or ends, and no other one does.
func (l *Ledger) byPart(q Query) (Quote, bool) {
	for i := range l.parts {
		p := &l.parts[i]
		found := slices.DeleteFunc(slices.Clone(p.found), func(of partOf) bool { return of.collection != q.Collection })
		own := &l.turns[len(l.turns)-1].own
		noun, ok := own.calledAt(p.noun, q.words(), false)
		if len(found) != 1 || !found[0].exact || !ok || !Refers(own.text, noun, p.at.end) {
			continue
		}
		if k, ok := l.keyOf(found[0].typ, q.Value); ok && k.mark() == found[0].mark {
			return Quote{l.turns[len(l.turns)-1].Evidence, p.at.start, p.at.end}, true
		}
	}
	return Quote{}, false
}
