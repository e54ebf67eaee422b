package provenance

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// What one question about an anchor may look at. Beyond it nothing is anchored.
const (
	longestName = 256     // bytes of a value the user typed
	maxRuns     = 1 << 16 // stretches of the user's words
	maxVisits   = 1 << 16 // facts
)

// Anchored answers R9: did the user name the record a vouched value stands in?
// The record is the innermost object around the value that is an array element,
// else the root. A line of a text, an object key and an element of a list of
// plain values are each a record of their own. It is named if a direct scalar of
// it is a value the user typed whole, of 4 characters or more and not of small
// space, and no other record of the query's collection seen in this session
// holds that value. A scalar that is worth less than system names a record only
// in a listing the server makes of its own (Authoritative) under no argument
// that the model chose, or the twin is just unseen; what is the model's own
// names none. A scalar that is a member of another collection names that one. A
// record with two members of the collection relates them, and is neither's. Of a
// path its last element names it, if it has an extension.
//
// Where the turn says all, every or each, a scalar worth system names all the
// records that hold it.
func (l *Ledger) Anchored(q Query) (Quote, bool) {
	if q.Collection == "" {
		return Quote{}, false
	}
	a := anchoring{l: l, q: &q, runs: maxRuns, visits: maxVisits, marks: map[Type]uint32{}}
	for i := len(l.turns) - 1; i >= 0; i-- {
		t := &l.turns[i]
		if s, ok := a.in(t.own.text); ok {
			return Quote{t.Evidence, s.start, s.end}, true
		}
	}
	return Quote{}, false
}

// anchoring is the state of one question.
type anchoring struct {
	l            *Ledger
	q            *Query
	runs, visits int
	marks        map[Type]uint32 // of the value asked for
}

// in looks for a name in one turn's own words.
func (a *anchoring) in(text string) (span, bool) {
	plural := saysAll(text)
	var ends []int
	for i := range text {
		if i > 0 && endsAt(text, i) {
			ends = append(ends, i)
		}
	}
	ends = append(ends, len(text))
	first := 0
	for i, c := range text {
		if blank(c) || !beginsAt(text, i) {
			continue
		}
		for first < len(ends) && ends[first] <= i {
			first++
		}
		most := min(len(text), i+longestName)
		if n := strings.IndexByte(text[i:most], 0); n >= 0 {
			most = i + n
		}
		for _, e := range ends[first:] {
			if e > most {
				break
			}
			if a.runs--; a.runs < 0 {
				return span{}, false
			}
			if a.names(text[i:e], plural) {
				return span{i, e}, true
			}
		}
	}
	return span{}, false
}

// saysAll reports whether a text speaks of several things at once.
func saysAll(text string) bool {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !isAlnum(r) }) {
		switch strings.ToLower(w) {
		case "all", "every", "each":
			return true
		}
	}
	return false
}

// names reports whether a stretch of the user's words names the record asked
// for.
func (a *anchoring) names(word string, plural bool) bool {
	l := a.l
	var one, two, three [1]uint32
	whole := l.store.under(l.digest("", string(rune(strictjson.String))+word), &one)
	if d, ok := decimal(word); ok {
		if k, ok := l.keyOf(Untyped, []byte(d)); ok {
			whole = slices.Concat(whole, l.store.under(k, &two))
		}
	}
	var last []uint32
	if strings.ContainsRune(strings.Trim(word, "."), '.') {
		last = l.store.under(l.digest(baseDomain, word), &three)
	}
	if len(whole) == 0 && len(last) == 0 || !isName(word) {
		return false
	}
	found, system, twin := false, false, false
	for _, i := range whole {
		anchor, other := a.holds(i)
		found = found || anchor
		system = system || anchor && l.store.at(i).label >= writ.System
		twin = twin || other
	}
	for _, i := range last {
		f := l.store.at(i)
		switch m := &l.store.metas[f.meta]; {
		case m.collection != a.q.Collection || m.typ != Path:
		case !a.same(f):
			twin = true
		case f.label >= writ.System && m.named:
			found, system = true, true
		}
	}
	return found && a.visits >= 0 && (!twin || plural && system)
}

// isName reports whether a text is long enough, and no word for everybody.
func isName(word string) bool {
	raw := strictjson.Quote(word)
	_, _, ok := spoken(Query{Raw: raw, Authority: true})
	return ok && utf8.RuneCountInString(word) >= part && !SmallSpace(Untyped, raw) &&
		!strings.ContainsFunc(word, unicode.IsControl)
}

// holds says of a fact whether it names the record asked for, and whether some
// other record of the collection holds it.
func (a *anchoring) holds(i uint32) (anchor, other bool) {
	s := &a.l.store
	f := s.at(i)
	m := &s.metas[f.meta]
	if m.collection == a.q.Collection && !a.same(f) {
		return false, true
	}
	rec, ok := s.record(f)
	if !ok {
		return false, false
	}
	mine, complete := false, false
	look := func(at uint32) bool {
		g := s.at(at)
		if a.visits--; a.visits < 0 || g.evidence != f.evidence {
			return false
		}
		in, ok := s.record(g)
		if !ok || in != rec {
			return s.within(g.node, rec) // of another record, in this one or after it
		}
		if n := &s.metas[g.meta]; n.collection == a.q.Collection && n.named {
			if !a.same(g) {
				other = true
			} else if g.label >= writ.System {
				mine, complete = true, complete || g.flags&listed != 0
			}
		}
		return true
	}
	for at := i; at < s.n && look(at); at++ {
	}
	for at := i; at > 0 && look(at-1); at-- {
	}
	worth := f.label >= writ.System || f.label >= writ.External && complete
	anchor = mine && !other && worth && f.node == rec && (m.collection == "" || m.collection == a.q.Collection) && !m.key
	return anchor, other
}

// same reports whether a fact is of the very value asked for.
func (a *anchoring) same(f *fact) bool {
	t := a.l.store.metas[f.meta].typ
	mark, ok := a.marks[t]
	if !ok {
		k, _ := a.l.keyOf(t, a.q.Raw)
		mark = k.mark()
		a.marks[t] = mark
	}
	return mark == f.mark
}

// mark tells keys apart in less room.
func (k key) mark() uint32 { return binary.LittleEndian.Uint32(k[12:]) }

// record returns the container of the record a fact stands in (R9); ok is false
// for one that is a record of its own.
func (s *store) record(f *fact) (n uint32, ok bool) {
	if s.metas[f.meta].key || f.flags&alone != 0 || f.token&tokenKind != 0 {
		return 0, false
	}
	for n = f.node; n != 0; n = s.nodes[n].parent {
		if s.nodes[n].token&tokenKind != 0 || s.nodes[n].parent == 0 {
			return n, true
		}
	}
	return 0, false
}

// within reports whether a container is another or stands in it.
func (s *store) within(n, in uint32) bool {
	for ; n != 0; n = s.nodes[n].parent {
		if n == in {
			return true
		}
	}
	return false
}

// standing returns what a leaf is told apart by later, beside its label: that a
// server listed it of its own (R9), and that an act may have chosen it from an
// open collection (R28).
func (l *Ledger) standing(o *Observation, c *call, leaf *Leaf) (f flags) {
	if leaf.alone {
		f |= alone
	}
	if leaf.Rule == nil {
		return f
	}
	if leaf.Rule.Authoritative && !o.Act && !c.chosen {
		f |= listed
	}
	if l.opened[leaf.Rule.Collection] && !l.member(leaf, opened) {
		f |= opened
	}
	return f
}

// Opened says that an act chose from an open collection and answers with members
// of this one: what is listed of it from now on, and was not known before, is
// perhaps what a stranger offered (R28).
func (l *Ledger) Opened(collection string) {
	l.opened[collection] = true
	l.taints.changed++
}
