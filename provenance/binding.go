package provenance

import (
	"path"
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
// innermost array element or member of a table around it, else the root of its result. Of a value at
// which more was seen than is kept, the earliest and the newest places count.
type Records struct {
	l   *Ledger
	of  string   // the collection of the value
	all []uint32 // containers
	// joined are the members of by that stand directly in one of them.
	by     string
	joined map[member]bool
}

// member tells one member of a collection from another.
type member struct {
	typ  Type
	mark uint32
}

// Records returns the records that a vouched value names, and with a collection, by,
// also those that its members name which stand directly in one of these: what is of
// the product of an order's item, of the customer of an order. The issuer wrote the
// key into both records, at system or better, so nobody else joins two of them; and
// only a record's own key joins, none of another record that lies in it, or an order
// would be of every product it lists. Who can make a record appear can make it appear
// with a key of his choice: of an open collection it is no narrower than its source is.
func (l *Ledger) Records(q Query, by string) Records {
	r := Records{l: l, of: q.Collection, by: by, joined: map[member]bool{}}
	s, visits := &l.store, maxVisits
	for _, i := range l.named(q) {
		n, ok := s.record(s.at(i))
		if !ok || slices.Contains(r.all, n) {
			continue
		}
		if r.all = append(r.all, n); by == "" {
			continue
		}
		s.inside(i, n, &visits, func(at uint32) bool {
			if f := s.at(at); s.names(f, by, n) && f.label >= writ.System {
				r.joined[member{s.metas[f.meta].typ, f.mark}] = true
			}
			return false
		})
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
	s, visits := &r.l.store, maxVisits
	for _, i := range r.l.named(q) {
		for _, in := range r.all {
			if s.within(s.at(i).node, in) && !r.another(i, in, &visits) {
				return s.fact(i), true
			}
		}
		if len(r.joined) > 0 && r.joins(i, &visits) {
			return s.fact(i), true
		}
	}
	return f, false
}

// Times returns in how many places of one of the records a value stands as Hold asks, the
// most of any result: who ordered two of a thing can send two back.
func (r Records) Times(q Query) (most int) {
	s, visits := &r.l.store, maxVisits
	all := r.l.named(q)
	for _, in := range r.all {
		times := map[uint32]int{} // by evidence
		for _, i := range all {
			if f := s.at(i); s.within(f.node, in) && !s.metas[f.meta].key && !r.another(i, in, &visits) {
				times[f.evidence]++
				most = max(most, times[f.evidence])
			}
		}
	}
	return most
}

// another reports whether between a fact and the record around it stands a record
// that a member of the same collection names. Too much to look at counts as one.
func (r Records) another(i, in uint32, visits *int) bool {
	s := &r.l.store
	for n := s.at(i).node; n != in && n != 0; n = s.nodes[n].parent {
		if !several(s.nodes[n].token) || r.of == "" {
			continue
		}
		if found, all := s.inside(i, n, visits, func(at uint32) bool { return s.names(s.at(at), r.of, n) }); found || !all {
			return true
		}
	}
	return false
}

// joins reports whether the innermost record around a fact that a member of the
// joining collection names is named by one of those that joined.
func (r Records) joins(i uint32, visits *int) bool {
	s := &r.l.store
	for n := s.at(i).node; n != 0; n = s.nodes[n].parent {
		if !several(s.nodes[n].token) && s.nodes[n].parent != 0 {
			continue
		}
		named, mine := false, false
		_, all := s.inside(i, n, visits, func(at uint32) bool {
			if f := s.at(at); s.names(f, r.by, n) {
				named, mine = true, f.label >= writ.System && r.joined[member{s.metas[f.meta].typ, f.mark}]
			}
			return mine
		})
		if named || !all {
			return mine
		}
	}
	return false
}

// names reports whether a fact is a member of a collection that stands directly in a
// record.
func (s *store) names(f *fact, collection string, rec uint32) bool {
	m := &s.metas[f.meta]
	n, is := s.record(f)
	return m.collection == collection && m.named && is && n == rec
}

// inside calls look with the facts of one result in a container around one of them,
// until it returns true; all is false where there were too many to look at.
func (s *store) inside(i, in uint32, visits *int, look func(at uint32) bool) (found, all bool) {
	s.around(i, func(at uint32) bool {
		if found {
			return false
		}
		f := s.at(at)
		if *visits--; *visits < 0 || f.evidence != s.at(i).evidence || !s.within(f.node, in) {
			return false
		}
		found = look(at)
		return !found
	})
	return found, found || *visits >= 0
}

// around calls look with a fact and those behind it until it returns false, and then with those
// before it, the nearest first.
func (s *store) around(i uint32, look func(at uint32) bool) {
	for at := i; at < s.n && look(at); at++ {
	}
	for at := i; at > 0 && look(at-1); at-- {
	}
}

// named returns where a value stands that is worth enough to vouch, at a source that
// the query accepts.
func (l *Ledger) named(q Query) []uint32 {
	return slices.DeleteFunc(l.candidates(q), func(i uint32) bool {
		f := l.store.at(i)
		return !l.worth(&q, f) || !l.accepts(&q, f) || !l.agrees(&q, i)
	})
}

// agrees reports whether what shows a fact says the same as the call of what Query.Agrees
// names: by that name, at system or better, its record, or what was asked for its result. What
// neither says anything of is of no other.
func (l *Ledger) agrees(q *Query, i uint32) bool {
	s, visits := &l.store, maxVisits
	n, isRecord := s.record(s.at(i))
	for _, said := range q.Agrees {
		told, same := false, false
		is := l.Standing(said.Name, said.Value)
		for _, asked := range l.asked[s.at(i).evidence] {
			told = told || strings.HasPrefix(asked, said.Name+"\x00")
			same = same || asked == is
		}
		if isRecord && !same {
			var shown []uint32
			if said.Value.Exists() {
				shown = l.candidates(Query{Value: said.Value})
			}
			_, all := s.inside(i, n, &visits, func(at uint32) bool {
				if f := s.at(at); f.flags&stranger == 0 && s.called(f, said.Name, n) { // what lowered it takes nothing from what it says against
					told, same = true, f.label >= writ.System && slices.Contains(shown, at)
				}
				return same
			})
			told = told || !all
		}
		if told && !same {
			return false
		}
	}
	return true
}

// AskedWith reports whether what a result was asked for with says all of that.
func (l *Ledger) AskedWith(evidence uint32, said []Said) bool {
	return !slices.ContainsFunc(said, func(s Said) bool {
		return !s.Value.Exists() || !slices.Contains(l.asked[evidence], l.Standing(s.Name, s.Value))
	})
}

// called reports whether a fact stands directly in a record, under a name.
func (s *store) called(f *fact, name string, rec uint32) bool {
	outer, _, inner, hasInner := s.pointer(f)
	if hasInner {
		outer = inner
	}
	n, is := s.record(f)
	return is && n == rec && !s.metas[f.meta].key && len(outer) > 0 && outer[len(outer)-1] == name
}

// askedOf are the arguments of a call, as agrees looks for them. What is no single value is
// said as well, and is that of no call: of a list of places a result is of any.
func (l *Ledger) askedOf(args strictjson.Value) (out []string) {
	for name, v := range args.Members() {
		out = append(out, l.Standing(name, v))
	}
	return out
}

// askedCost is what they take.
func askedCost(asked []string) (n int64) {
	for _, a := range asked {
		n += int64(len(a)) + 2*insideCost
	}
	return n
}

// Own reports whether the session itself made what a value names (R13): it stands
// where a contract says that an act newly made it, worth system or better (R5), the
// query's source accepts that, and no fact held the value before.
func (l *Ledger) Own(q Query) (Fact, bool) {
	return l.newly(q, func(f *fact) bool { return f.label >= writ.System })
}

// Invented is Own for what the session made under a name that the agent made up (R36) or
// that a person allowed for that act, which is worth no more for that.
func (l *Ledger) Invented(q Query) (Fact, bool) {
	return l.newly(q, func(f *fact) bool { return f.flags&invented != 0 })
}

// newly returns where an act said first of a value that it newly made what that names.
func (l *Ledger) newly(q Query, is func(*fact) bool) (Fact, bool) {
	all := l.candidates(q)
	if len(all) == 0 {
		return Fact{}, false
	}
	f := l.store.at(all[0])
	if !l.store.metas[f.meta].creates || !is(f) || len(l.inside[all[0]]) > 0 || !l.accepts(&q, f) {
		return Fact{}, false
	}
	return l.store.fact(all[0]), true
}

// Inside is Invented for what an act made in what other arguments said (Arg.In): where the
// call has the same there. That the act did not fail says that nobody had made it before.
func (l *Ledger) Inside(q Query, server string, standing func(pointer string) string) (Fact, bool) {
	for _, i := range l.candidates(q) {
		in := l.inside[i]
		f := l.store.at(i)
		if len(in) == 0 || l.store.metas[f.meta].server != server || !l.accepts(&q, f) {
			continue
		}
		if !slices.ContainsFunc(in, func(at string) bool {
			pointer, _, _ := strings.Cut(at, "\x00")
			return standing(pointer) != at
		}) {
			return l.store.fact(i), true
		}
	}
	return Fact{}, false
}

// Standing spells what stands at a pointer into the arguments of a call, and that nothing
// does.
func (l *Ledger) Standing(pointer string, v strictjson.Value) string {
	if !v.Exists() {
		return pointer + "\x00"
	}
	return pointer + "\x00" + l.Digest(Untyped, v)
}

// Where returns where a value stands, at most n places: the best label first, then
// the earliest.
func (l *Ledger) Where(q Query, n int) []Fact {
	all := l.restore(l.candidates(q))
	return all[:min(n, len(all))]
}

// Fresh answers `derived: fresh` (R36): does a path give a new name in a directory
// that was listed whole in this session, where the name was not, nor did an act of this
// session send it? The name is words of letters, digits and ._-, with a blank between two
// of them, of which none begins with one of the marks, and ends in one of the extensions;
// it has none where that is "". Where Writ alone looked since, the user's latest turn has a
// word of it. It returns what the ledger is to be asked of the directory,
// which has to be vouched for.
func (l *Ledger) Fresh(q Query, extensions []string) (dir Query, ok bool) {
	whole, isText := q.Value.Text()
	parent, name, ok := splitPath(whole)
	if !isText || !ok || !newName(q, whole, name, extensions) || !l.Enumerated(q.Value) || l.listedAs(whole) ||
		l.looked[l.digest(dirDomain, parent)] && !l.spokeOf(name) {
		return q, false
	}
	for _, k := range append(l.keysOf(Path, q.Value), l.keysOf(Untyped, strictjson.StringOf(name))...) {
		if l.made[k] {
			return q, false
		}
	}
	q.Value, q.Type = strictjson.StringOf(parent), Path
	return q, true
}

// Begun reports whether a text is a name that the agent may make up where no list shows
// what is there (R36): one word as in Fresh, or two with a / between, that begins in one of
// some ways. It says nothing beside that a reader or a program acts on (R14).
func Begun(v strictjson.Value, begins []string) bool {
	name, isText := v.Text()
	if !isText || visible(name) != "" || utf8.RuneCountInString(name) > maxFreshName || len(Atoms(name)) > 0 ||
		!slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(name, b) && name != b }) {
		return false
	}
	return !slices.ContainsFunc(strings.SplitN(name, "/", 2), func(word string) bool {
		return !freshName().MatchString(word) || strings.Contains(word, " ")
	})
}

// NameOrdered answers for a name that Begun takes (R36): where the user's latest turn, or one
// behind it that only agrees, says one of some phrases as what Anew is, and no act since made
// something of another name, whoever gave that.
func (l *Ledger) NameOrdered(v strictjson.Value, phrases []string) (Quote, bool) {
	if name, _ := v.Text(); l.ordered != "" && l.ordered != name {
		return Quote{}, false
	}
	for _, p := range phrases {
		if at, ok := l.order(p, Anew); ok {
			return at, true
		}
	}
	return Quote{}, false
}

// Unlisted reports whether a path gives such a name in a directory of which no list was
// seen, and of which the user's latest turn has a word, and returns the directory.
func (l *Ledger) Unlisted(q Query, extensions []string) (dir string, ok bool) {
	whole, _ := q.Value.Text()
	dir, name, ok := splitPath(whole)
	return dir, ok && !l.Enumerated(q.Value) && newName(q, whole, name, extensions) && l.spokeOf(name)
}

// spokeOf reports whether the user's latest turn has the name of a file, or a word of it but
// for its extension that says what it is of: two letters do in no alphabet.
func (l *Ledger) spokeOf(name string) bool {
	return l.Spoke(name) || slices.ContainsFunc(text.NameWords(strings.TrimSuffix(name, path.Ext(name))), func(word string) bool {
		first, _ := utf8.DecodeRuneInString(word)
		return (utf8.RuneCountInString(word) >= 3 || unicode.Is(unicode.Han, first)) && l.Spoke(word)
	})
}

// newName reports whether a path ends in a name that an agent may make up (R36).
func newName(q Query, whole, name string, extensions []string) bool {
	return !q.Strict && visible(whole) == "" && utf8.RuneCountInString(name) <= maxFreshName && freshName().MatchString(name) && !device().MatchString(name) &&
		slices.ContainsFunc(extensions, func(e string) bool {
			return strings.HasSuffix(name, e) && name != e && (e != "" || !strings.Contains(name, "."))
		})
}

// listedAs reports whether a path was listed, in whatever letters' case: most file
// systems of desktops know no difference.
func (l *Ledger) listedAs(full string) bool {
	return len(l.store.under(l.digest(foldDomain, text.Fold(full, text.Careless)))) > 0
}

// device are names that are none of a file's on Windows, whatever their extension.
var device = text.Pattern(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$)(\.|$)`)

// freshName is a name that an agent may make up, but for its length. A blank stands
// between two words that could each be such a name: who splits it there finds no option,
// no "." and no "..".
var freshName = text.Pattern(`^[\pL\pN][\pL\pN\pM._-]*(?: [\pL\pN][\pL\pN\pM._-]*)*$`)

// maxFreshName bounds it, in characters. A count in the expression would be compiled as
// that many copies of its classes, at every start of the program.
const maxFreshName = 128

// Spoke reports whether the user's latest turn holds a word in his own words, as it
// is written, in any letters' case.
func (l *Ledger) Spoke(word string) bool {
	_, said := l.quote(word, func(string, int, int) bool { return true })
	return said
}

// Elsewhere reports whether the user's latest turn names a path that is not a place or in it.
func (l *Ledger) Elsewhere(place string) bool {
	if len(l.turns) == 0 {
		return false
	}
	for _, at := range pathNamed().FindAllStringSubmatch(l.turns[len(l.turns)-1].own.text, -1) {
		path := strings.TrimRight(at[1], "/"+stops)
		if !strings.HasPrefix(path+"/", strings.TrimRight(place, "/")+"/") {
			return true
		}
	}
	return false
}

// pathNamed is a path from a root: not "read/write", "origin/main" or a link.
var pathNamed = text.Pattern("(?:^|[\\x00\\t\\n\\v\\f\\r \\x{85}\\p{Z}\"'()\\[\\]{}<>`´“”„‟‘’‚‛«»‹›=,])((?:~|\\.{1,2})?/[^\\x00\\t\\n\\v\\f\\r \\x{85}\\p{Z}\"'()\\[\\]{}<>`´“”„‟‘’‚‛«»‹›]+)")

// quote returns where the user's latest turn first holds a phrase.
func (l *Ledger) quote(phrase string, meant func(text string, start, end int) bool) (Quote, bool) {
	if len(l.turns) == 0 || phrase == "" {
		return Quote{}, false
	}
	t := &l.turns[len(l.turns)-1]
	begins := t.own.begins()
	for i, left := 0, mostSaid; left > 0 && i+len(phrase) <= len(t.own.text); i++ {
		if e := i + len(phrase); begins[i] && t.own.end[e] && strings.EqualFold(t.own.text[i:e], phrase) {
			if meant(t.own.text, i, e) {
				return Quote{t.Evidence, i, e}, true
			}
			left--
		}
	}
	return Quote{}, false
}

// mostSaid bounds how often one phrase is looked at: who says it as often and never
// means it does not mean it.
const mostSaid = 64

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
