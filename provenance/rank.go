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
