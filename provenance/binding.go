package provenance

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// Records are the records that hold a value which names them (R37): of each place
// at system or better where the value stands and the query's source accepts it, the
// innermost array element around it, else the root of its result. Of a value at
// which more was seen than is kept, the earliest and the newest places count.
type Records struct {
	l   *Ledger
	of  string   // the collection of the value
	all []uint32 // containers
}

// Records returns the records that a vouched value names.
func (l *Ledger) Records(q Query) Records {
	r := Records{l: l, of: q.Collection}
	for _, i := range l.named(q) {
		f := l.store.at(i)
		if n, ok := l.store.around(f); ok && !slices.Contains(r.all, n) {
			r.all = append(r.all, n)
		}
	}
	return r
}

// Hold reports whether a value stands in one of the records, at system or better
// and where the query's source accepts it, and where: anywhere inside it but in a
// record within it that another member of the same collection names.
func (r Records) Hold(q Query) (f Fact, ok bool) {
	if len(r.all) == 0 {
		return f, false
	}
	for _, i := range r.l.named(q) {
		for _, in := range r.all {
			if r.l.store.within(r.l.store.at(i).node, in) && !r.another(i, in) {
				return r.l.store.fact(i), true
			}
		}
	}
	return f, false
}

// another reports whether between a fact and the record around it stands a record
// that a member of the same collection names. Too much to look at counts as one.
func (r Records) another(i, in uint32) bool {
	s := &r.l.store
	for n := s.at(i).node; n != in && n != 0; n = s.nodes[n].parent {
		if s.nodes[n].token&tokenKind == 0 || r.of == "" {
			continue
		}
		visits := maxVisits
		look := func(at uint32) (found, more bool) {
			f := s.at(at)
			if visits--; visits < 0 {
				return true, false
			}
			if f.evidence != s.at(i).evidence {
				return false, false
			}
			m := &s.metas[f.meta]
			rec, is := s.record(f)
			return m.collection == r.of && m.named && is && rec == n, s.within(f.node, n)
		}
		for at := i; at < s.n; at++ {
			found, more := look(at)
			if found {
				return true
			}
			if !more {
				break
			}
		}
		for at := i; at > 0; at-- {
			found, more := look(at - 1)
			if found {
				return true
			}
			if !more {
				break
			}
		}
	}
	return false
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
	whole, isText := q.Value.Text()
	parent, name, ok := splitPath(whole)
	if !isText || !ok || q.Strict || visible(whole) != "" || !freshName.MatchString(name) ||
		!slices.ContainsFunc(extensions, func(e string) bool { return strings.HasSuffix(name, e) && name != e }) ||
		!l.Enumerated(q.Value) || l.listedAs(whole) || device.MatchString(name) {
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

// listedAs reports whether a path was listed, in whatever letters' case: most file
// systems of desktops know no difference.
func (l *Ledger) listedAs(path string) bool {
	var one [1]uint32
	return len(l.store.under(l.digest(foldDomain, text.Fold(path, text.Careless)), &one)) > 0
}

// device are names that are none of a file's on Windows, whatever their extension.
var device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)(\.|$)`)

var freshName = regexp.MustCompile(`^[\pL\pN][\pL\pN\pM._-]{0,127}$`)

// Said reports whether the user's latest turn holds a phrase in his own words, as
// whole words in any letters' case, unquoted, and with nothing before it in its
// sentence that denies, asks whether, or tells what somebody said (R21).
func (l *Ledger) Said(phrase string) bool { return l.says(phrase, Means) }

// Means reports whether what stands before a phrase lets it be meant: see Said.
func Means(before string) bool {
	sentence := before[strings.LastIndexAny(before, ".!?\n")+1:]
	if r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(before, " \t")); isMark(r) && !strings.ContainsRune(brackets, r) {
		return false
	}
	return !slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(sentence), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }), func(w string) bool {
		return denying[w] || strings.HasSuffix(w, "n't") || strings.HasSuffix(w, "n’t")
	})
}

// denying are words after which a phrase is denied, doubted or reported, in the
// languages that are known here: in another one nothing is known of them.
var denying = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`not no never nor neither none nobody nothing without cannot dont doesnt wont avoid refuse forbid stop unless whether wrote writes
		said says told tells asks asked nicht kein keine keinen nie niemals niemand ohne weder ob schrieb schreibt sagt sagte fragt fragte`) {
		m[w] = true
	}
	return m
}()

// Spoke reports whether the user's latest turn holds a word in his own words, as it
// is written, in any letters' case.
func (l *Ledger) Spoke(word string) bool { return l.says(word, func(string) bool { return true }) }

func (l *Ledger) says(phrase string, after func(before string) bool) bool {
	if len(l.turns) == 0 || phrase == "" {
		return false
	}
	t := &l.turns[len(l.turns)-1]
	for i := range t.own.begins() {
		if e := i + len(phrase); e <= len(t.own.text) && t.own.end[e] && strings.EqualFold(t.own.text[i:e], phrase) && after(t.own.text[:i]) {
			return true
		}
	}
	return false
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
