package provenance

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// Records are the records that hold a value which names them (R37): of each place
// at system or better where the value stands and the query's source accepts it, the
// innermost array element around it, else the root of its result. Of a value at
// which more was seen than is kept, the earliest and the newest places count.
type Records struct {
	l   *Ledger
	all []uint32 // containers
}

// Records returns the records that a vouched value names.
func (l *Ledger) Records(q Query) Records {
	r := Records{l: l}
	for _, i := range l.named(q) {
		f := l.store.at(i)
		if n, ok := l.store.around(f); ok && !slices.Contains(r.all, n) {
			r.all = append(r.all, n)
		}
	}
	return r
}

// Hold reports whether a value stands anywhere in one of the records, at system or
// better and where the query's source accepts it, and where.
func (r Records) Hold(q Query) (f Fact, ok bool) {
	for _, i := range r.l.named(q) {
		for _, in := range r.all {
			if r.l.store.within(r.l.store.at(i).node, in) {
				return r.l.store.fact(i), true
			}
		}
	}
	return f, false
}

// named returns where a value stands at system or better at a source that the
// query accepts.
func (l *Ledger) named(q Query) []uint32 {
	return slices.DeleteFunc(l.candidates(q), func(i uint32) bool {
		f := l.store.at(i)
		m := &l.store.metas[f.meta]
		return f.label < writ.System || !m.named || !l.accepts(&q, f, m)
	})
}

// around returns the container of the innermost array element around a fact, else
// of the root of its result; ok is false for a line, and for an element of a list
// that is no object, which is a record of its own.
func (s *store) around(f *fact) (n uint32, ok bool) {
	if !s.metas[f.meta].key {
		return s.record(f)
	}
	g := *f
	for n = g.node; n != 0; n = s.nodes[n].parent {
		if s.nodes[n].token&tokenKind != 0 || s.nodes[n].parent == 0 {
			return n, true
		}
	}
	return 0, false
}

// Own reports whether the session itself made what a value names (R13): it stands
// where a contract says that an act newly made it, worth system or better (R5), the
// query's source accepts that, and no fact held the value before.
func (l *Ledger) Own(q Query) (Fact, bool) {
	all := l.candidates(q)
	if len(all) == 0 {
		return Fact{}, false
	}
	f := l.store.at(all[0])
	m := &l.store.metas[f.meta]
	if !m.creates || f.label < writ.System || !l.accepts(&q, f, m) {
		return Fact{}, false
	}
	return l.store.fact(all[0]), true
}

// Where returns where a value stands, at most n places: the best label first, then
// the earliest.
func (l *Ledger) Where(q Query, n int) []Fact {
	all := l.restore(l.candidates(q))
	return all[:min(n, len(all))]
}

// Fresh answers `derived: fresh` (R36): does a path give a new name in a directory
// that is vouched for whole and was listed whole in this session, where the name was
// not, nor did an act of this session send it? The name is letters, digits and ._-,
// begins with none of the marks, and ends in one of the extensions. It answers with
// what vouches for the directory.
func (l *Ledger) Fresh(q Query, extensions []string) (dir Fact, ok bool) {
	text, isText := q.Value.Text()
	parent, name, ok := splitPath(text)
	if !isText || !ok || q.Strict || visible(text) != "" || !freshName.MatchString(name) ||
		!slices.ContainsFunc(extensions, func(e string) bool { return strings.HasSuffix(name, e) && name != e }) ||
		!l.Enumerated(q.Value) || len(l.candidates(Query{Value: q.Value, Type: Path})) > 0 {
		return Fact{}, false
	}
	for _, k := range append(l.keysOf(Path, q.Value), l.keysOf(Untyped, strictjson.StringOf(name))...) {
		if l.made[k] {
			return Fact{}, false
		}
	}
	d := q
	d.Value, d.Type = strictjson.StringOf(parent), Path
	if a := l.Find(d); len(a.Vouched) > 0 {
		return a.Vouched[0], true
	}
	return Fact{}, false
}

var freshName = regexp.MustCompile(`^[\pL\pN][\pL\pN\pM._-]{0,127}$`)

// Said reports whether the user's latest turn holds a phrase in his own words, as
// whole words in any letters' case, and where (R21).
func (l *Ledger) Said(phrase string) (Quote, bool) {
	if len(l.turns) == 0 || phrase == "" {
		return Quote{}, false
	}
	t := &l.turns[len(l.turns)-1]
	for _, i := range slices.Sorted(maps.Keys(t.own.begins())) {
		if e := i + len(phrase); e <= len(t.own.text) && t.own.end[e] && strings.EqualFold(t.own.text[i:e], phrase) {
			return Quote{t.Evidence, i, e}, true
		}
	}
	return Quote{}, false
}

// begins are the places where a token may begin.
func (r *reading) begins() map[int]bool {
	out := map[int]bool{}
	for _, at := range r.starts {
		for _, i := range at {
			out[i] = true
		}
	}
	return out
}
