package memory

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-project/writ/internal/quote"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/internal/words"
)

// A belief is a quote: what a claim says must stand in one sentence, or in one
// record, of one observation. Code can tell what stands there; it reads no
// grammar. What a sentence denies or asks is not said, as far as its words tell.

// maxLooked bounds, in bytes, what one proposal has looked through for it. What
// is beyond is not found.
const maxLooked = 32 << 20

// A unit is one sentence, or one record: an object of JSON with its lists of
// plain values and those of its objects that are no things of their own.
type unit struct {
	text     string // of a sentence
	at       int    // where in the observation it begins
	from, to int    // with the lines it continues, and those it goes on in
	leaves   []leaf // of a record
	held     bool   // of a record what may say which thing it is was withheld
	whole    bool   // neither end of the text cuts a word or a number
	heard    *heard
}

type leaf struct {
	names []string // of its members, from the record down
	text  string
	list  int // which list of the record it stands in, 0 for none

	number bool // of JSON
}

// A witness is an observation taken apart.
type witness struct {
	left    *int // of maxLooked
	ob      *Observation
	units   []unit
	records bool
	quoted  []span // in it, where no value is all that is quoted
}

// newWitness takes an observation apart, in NFC as values and names are: what
// stands at an offset of one form of it stands there in all.
func newWitness(of *Observation, left *int) *witness {
	ob := copied(of)
	ob.Raw = norm.NFC.String(of.Raw)
	w := &witness{left: left, ob: ob}
	b := []byte(ob.Raw)
	if k := strictjson.KindOf(b); (k == strictjson.Object || k == strictjson.Array) && strictjson.Check(b, valueLimits) == nil {
		w.records = true
		w.take(b)
		return w
	}
	w.sentences()
	w.quoted = quotedIn(ob.Raw, "")
	return w
}

// take takes the records out of a JSON value.
func (w *witness) take(value []byte) {
	switch strictjson.KindOf(value) {
	case strictjson.Array:
		es, _ := strictjson.Elements(value)
		for _, e := range es {
			w.take(e)
		}
	case strictjson.Object:
		u, lists := unit{whole: true}, 0
		w.record(&u, value, nil, &lists)
		w.units = append(w.units, u)
	}
}

// record gathers one record, and makes others of what in it is a thing of its own.
func (w *witness) record(u *unit, object []byte, path []string, lists *int) {
	ms, _ := strictjson.Members(object)
	for _, m := range ms {
		names := append(path[:len(path):len(path)], m.Name)
		switch strictjson.KindOf(m.Value) {
		case strictjson.Object:
			if itself(m.Value) {
				w.take(m.Value)
			} else {
				w.record(u, m.Value, names, lists)
			}
		case strictjson.Array:
			es, _ := strictjson.Elements(m.Value)
			*lists++
			for _, e := range es {
				if k := strictjson.KindOf(e); k == strictjson.Object || k == strictjson.Array {
					w.take(e)
				} else {
					u.leaves = append(u.leaves, leaf{names, norm.NFC.String(quote.LeafText(e)), *lists, k == strictjson.Number})
				}
			}
		case strictjson.Null: // says nothing
		default:
			if t := norm.NFC.String(quote.LeafText(m.Value)); t == LeftOut {
				u.held = u.held || MayName(m.Name)
			} else {
				u.leaves = append(u.leaves, leaf{names, t, 0, strictjson.KindOf(m.Value) == strictjson.Number})
			}
		}
	}
}

// itself reports whether an object is a thing of its own and no part of the one
// it stands in: it has a name or an id.
func itself(object []byte) bool {
	ms, _ := strictjson.Members(object)
	return slices.ContainsFunc(ms, func(m strictjson.Member) bool { return endsIn(m.Name, identifying) })
}

// identifying end the names of members that say which thing a record is, and
// naming those that say so in words.
var (
	identifying = []string{"id", "name", "title", "email", "login", "user", "username", "uuid", "key"}
	naming      = []string{"name", "title"}
)

func endsIn(name string, words []string) bool {
	ws := text.NameWords(name)
	return len(ws) > 0 && slices.Contains(words, strings.ToLower(ws[len(ws)-1]))
}

// named are the leaves in which a record that has a name or title says which
// thing it is, and not whose; ok is false if it has none.
func (u *unit) named() (out []leaf, ok bool) {
	for _, l := range u.leaves {
		last := l.names[len(l.names)-1]
		ok = ok || endsIn(last, naming)
		if endsIn(last, identifying) && !endsIn(last, []string{"user"}) {
			out = append(out, l)
		}
	}
	return out, ok
}

// bears reports whether an observation bears a claim out: in one sentence or one
// record stand the subject, by its first name, or the subject is who speaks and
// speaks of himself; the value; and the words of the predicate, of a record in
// the name of the member that holds the value. Nothing in the sentence, and in the
// lines it continues, denies, supposes, asks or tells of others; and where
// something says whose the value is, it is the subject's.
func (d *draftEvent) bears(w *witness, pr *Proposition) bool { return len(d.bearing(w, pr)) > 0 }

// A bearer is what of an observation bears a claim out.
type bearer struct {
	unit int
	text string // of a sentence
	at   int    // where in the observation that begins
}

// bearing is what of an observation bears a claim out.
func (d *draftEvent) bearing(w *witness, pr *Proposition) (out []bearer) {
	value, ok := d.valueOf(pr)
	subject := d.entities.get(d.resolve(pr.Subject))
	if !ok || subject == nil || subject.Gone || w.ob.Status != Ingested {
		return nil
	}
	if *w.left -= 2 * len(w.ob.Raw); *w.left < 0 {
		return nil
	}
	quals, ok := stated(pr.Quals)
	if !ok {
		return nil
	}
	asked := d.asked(pr.Predicate)
	quoted := w.quoted
	if len(quoted) > 0 {
		quoted = quotedIn(w.ob.Raw, value)
	}
	for i := range w.units {
		u := &w.units[i]
		switch {
		case pr.Predicate == noteForm:
			// More than what stands there, or a part of it, is another note.
			same := value == w.ob.Raw || u.leaves == nil && strings.Contains(value, u.text) && strings.Contains(w.ob.Raw, value)
			if same && d.names(u, w.ob, subject, nil) && u.hasEach(quals) {
				out = append(out, bearer{i, u.text, u.at})
			}
		case u.leaves != nil:
			if d.names(u, w.ob, subject, nil) && u.hasEach(quals) && slices.ContainsFunc(asked, func(a asking) bool { return u.answers(a, value) }) {
				out = append(out, bearer{i, "", 0})
			}
		case len(u.text) > maxSpoken, slices.ContainsFunc(quoted, span{u.at, u.at + len(u.text)}.meets), !u.has(value), empty(value):
		default:
			if *w.left -= 32 * (u.to - u.from); *w.left < 0 {
				return nil
			}
			for _, p := range u.parts(append(d.firstNames(subject), value)) {
				if p.hasEach(quals) && slices.ContainsFunc(asked, func(a asking) bool { return d.says(w.ob, u, &p, subject, a, value) }) {
					out = append(out, bearer{i, p.text, p.at})
				}
			}
		}
	}
	return out
}

// says reports whether a part of a sentence gives a value as what is asked of a
// subject.
func (d *draftEvent) says(ob *Observation, u, part *unit, subject *Entity, a asking, value string) bool {
	i := placed(part.text, value)
	if i < 0 || len(a.must) == 0 || sentence(value, a.must) || !part.has(value) || !part.asks(a, i) || !d.names(part, ob, subject, a.words) {
		return false
	}
	whole := ob.Raw[u.from:u.to]
	at := part.at - u.from + i
	if at+len(value) > len(whole) || cropped(part.text[:i], value, part.text[i+len(value):], a, subject) || ranged(whole[:at], value, whole[at+len(value):]) || !d.belongs(whole[u.at-u.from:at], ob, subject, a) {
		return false
	}
	t := &said{part: *part, around: whole, value: whole[at : at+len(value)], at: at, begins: u.at - u.from}
	if !himself(ob, subject) {
		t.named = d.firstNames(subject)
	}
	return t.affirmed(a.must)
}

// cropped reports whether a value is a part of a name: the President of a Vice
// President.
func cropped(before, value, after string, a asking, subject *Entity) bool {
	if r, _ := utf8.DecodeRuneInString(value); !unicode.IsUpper(r) || strings.ContainsFunc(value, unicode.IsNumber) {
		return false
	}
	prev, next := nameBefore.FindStringSubmatch(before), nameAfter.FindStringSubmatch(after)
	mine := func(w string) bool {
		return title.MatchString(w+".") || matches(words.Of(w), a.words...) || slices.Contains(grammar().self, words.Of(w)[0]) || names(subject.Names[0].Text, w, true)
	}
	return prev != nil && prev[1] != "" && !mine(prev[2]) || next != nil && !mine(next[1])
}

var (
	nameBefore = regexp.MustCompile(`(\S\s+|^)(\p{Lu}[\pL\pM]*)\s$`)
	nameAfter  = regexp.MustCompile(`^\s(\p{Lu}[\pL\pM]+)`)
)

// ranged reports whether a value is one end of a range, a bound, one of two that it
// may be, or what a change is from.
func ranged(before, value, after string) bool {
	number := strings.ContainsFunc(value, unicode.IsNumber)
	if number && (bound.MatchString(before) || dashed.MatchString(before) || dash.MatchString(after)) || either.MatchString(before) || orElse.MatchString(after) ||
		changed.MatchString(before) && into.MatchString(after) {
		return true
	}
	return slices.ContainsFunc(words.Of(before), func(w string) bool { return slices.Contains(grammar().between, w) }) && (rangeFrom.MatchString(before) && rangeAnd.MatchString(after) || rangeTo.MatchString(before))
}

var (
	rangeFrom = regexp.MustCompile(`(?i)(^|[^\pL])(` + strings.Join(grammar().between, "|") + `)\s+\S{0,4}$`)
	rangeAnd  = regexp.MustCompile(`(?i)^\s*\S{0,4}\s+(and|und|et|y|e|en|och|og|и)\s`)
	bound     = regexp.MustCompile(`(?i)(^|[^\pL])(than|under|over|below|above|at least|at most|up to|twice|half|double|maximum|minimum|mehr als|weniger als|unter|mindestens|höchstens|maximal|bis zu|plus de|moins de|au moins|au plus|más de|menos de|al menos|più di|meno di|almeno|mais de|pelo menos|meer dan|minder dan|minstens|hoogstens|mer än|mindre än|minst|högst|mere end|mindre end|mer enn|mindre enn|больше|меньше)\s+\S{0,4}$|[≤≥<>≈≠~]\s*$`)
	either    = regexp.MustCompile(`(?i)[^\pL](or|oder|ou|eller|или)\s+\S{0,4}$`)
	orElse    = regexp.MustCompile(`(?i)^\s*(or|oder|ou|eller|или)\s`)
	dashed    = regexp.MustCompile(`\pN\s*[\x{2013}\x{2014}-]\s*$`)
	dash      = regexp.MustCompile(`^\s*[\x{2013}\x{2014}-]\s*\pN`)
	changed   = regexp.MustCompile(`(?i)(^|[^\pL])(from|von|vom|du|desde|dal|från|fra|от|с)\s+\S{0,4}$`)
	into      = regexp.MustCompile(`(?i)^\s*(to|auf|zu|bis|vers|hasta|till|til|на|до)\s`)
	rangeTo   = regexp.MustCompile(`(?i)(^|[^\pL])(` + strings.Join(grammar().between, "|") + `)\s+[^.;]{1,40}\s(and|und|et|y|e|en|och|og|и)\s+\S{0,4}$`)
)

// hasEach reports whether all of some texts stand in a unit.
func (u *unit) hasEach(values []string) bool {
	return !slices.ContainsFunc(values, func(q string) bool { return !u.has(q) })
}

// valueOf is the value of a claim, as it must stand in what bears it out; ok is
// false where it has none that says anything.
func (s *State) valueOf(pr *Proposition) (value string, ok bool) {
	if pr.Gone || pr.Slot == "" && pr.Subject == "" {
		return "", false
	}
	if pr.Object != "" {
		en := s.entities.get(s.resolve(pr.Object))
		if en == nil || en.Gone || en.Names[0].Gone {
			return "", false
		}
		return norm.NFC.String(en.Names[0].Text), true
	}
	vs, ok := stated(pr.Literal)
	if !ok || len(vs) != 1 {
		return "", false
	}
	return vs[0], true
}

// stated are the leaves of a JSON value; ok is false where one of its texts is
// nothing but punctuation, and so says nothing.
func stated(value string) (out []string, ok bool) {
	ok = true
	if value == "" {
		return nil, true
	}
	strictjson.Walk([]byte(value), func(_ []string, leaf []byte) bool {
		t := norm.NFC.String(quote.LeafText(leaf))
		out = append(out, t)
		ok = ok && strings.ContainsFunc(t, func(r rune) bool { return text.Alphanumeric(r) || unicode.IsSymbol(r) })
		return true
	}, nil)
	return out, ok
}

// himself reports whether it is the subject who says an observation.
func himself(ob *Observation, subject *Entity) bool {
	return subject.Principal != "" && subject.Principal == ob.Principal && (ob.Class == ClassDirectUser || ob.Class == ClassUserAttested || ob.Class == ClassOperator)
}

// names reports whether a unit is about a subject. Of a sentence of the subject's
// own asked are the words of what is asked of it.
func (d *draftEvent) names(u *unit, ob *Observation, subject *Entity, asked []string) bool {
	if u.held {
		return u.keyed(d.firstNames(subject))
	}
	which, named := u.named()
	if himself(ob, subject) {
		return u.leaves != nil && !named || u.leaves == nil && ofSpeaker(u.text, asked)
	}
	if subject.Principal != "" && subject.Type == selfType {
		return false // what others say of him names him by another entity
	}
	if !named {
		which = u.leaves
	}
	return slices.ContainsFunc(d.firstNames(subject), func(n string) bool {
		if u.leaves == nil {
			return names(u.text, n, u.whole)
		}
		return slices.ContainsFunc(which, func(l leaf) bool { return names(l.text, n, true) })
	})
}

// firstNames are the names that an entity, and what was merged into it, were made
// with.
func (s *State) firstNames(en *Entity) (out []string) {
	for _, id := range append([]string{en.ID}, s.ix.mergedFrom.of(en.ID)...) {
		if en := s.entities.get(id); en != nil && !en.Names[0].Gone {
			out = append(out, bare(en.Names[0].Text))
		}
	}
	return out
}

// belongs reports whether nothing in a sentence says that a value is another's:
// the possessive that stands nearest before it is the subject's own.
func (d *draftEvent) belongs(before string, ob *Observation, subject *Entity, a asking) bool {
	speaks := himself(ob, subject)
	before = fold(apostrophes.ReplaceAllString(before, "'"))
	all := possessive.FindAllStringSubmatchIndex(before, -1)
	for _, m := range slices.Backward(all) {
		owner := words.Of(before[m[2]:m[3]])
		switch {
		case len(owner) != 1:
		case m[4] < 0: // a word: his, my
			switch {
			case slices.Contains(grammar().other, owner[0]):
				return !speaks
			case slices.Contains(grammar().self, owner[0]) && speaks:
				return true
			}
		case slices.Contains(isAfter, owner[0]), slices.Contains(a.must, owner[0]):
		default:
			return !speaks && slices.ContainsFunc(d.firstNames(subject), func(n string) bool {
				return text.Stands(before[:m[3]], fold(n), true) && strings.HasSuffix(before[:m[3]], fold(n))
			})
		}
	}
	return true
}

// possessive finds words, and those with 's behind them.
var possessive = regexp.MustCompile(`([\pL\pM\pN.-]+)('s\b)?`)

// isAfter are words behind which 's is is.
var isAfter = []string{"it", "that", "this", "what", "there", "here", "who", "where", "how", "he", "she", "name", "let"}

// ofSpeaker reports whether a sentence says something of who speaks. Where it has
// a possessive of his, what he is or does is asked for behind a word for himself,
// or is what he possesses: my brother's city is not mine.
func ofSpeaker(s string, asked []string) bool {
	toks := tokens(s)
	subject, possessed, any := false, false, false
	for _, t := range toks {
		subject, possessed, any = subject || t.person == first, possessed || t.person == owned, any || t.person != none
	}
	if !possessed || asked == nil {
		return any
	}
	last := none
	for i, t := range toks {
		switch {
		case t.person == first:
			last = first
		case t.person == owned:
			last = owned
			is := i > 0 && copula(toks[i-1]) // this is my new phone
			if slices.ContainsFunc(phrase(toks[i+1:], is), func(w string) bool { return matches([]string{w}, asked...) }) {
				return true
			}
		case last == first && matches(t.words, asked...), last == none && subject && matches(t.words, asked...):
			return true
		}
	}
	return false
}

// phrase are the words of what somebody possesses, from behind the possessive on:
// up to what says what it is, or else the first of them.
func phrase(toks []spoken, all bool) (out []string) {
	for i, t := range toks {
		if copula(t) && i > 0 {
			return out
		}
		if t.person != none || len(t.words) == 1 && slices.Contains(grammar().stop, t.words[0]) {
			break
		}
		if out = append(out, t.words...); t.ends {
			break
		}
	}
	for i, w := range out {
		if !all && !slices.Contains(qualities, w) {
			return out[:i+1]
		}
	}
	return out
}

func copula(t spoken) bool { return len(t.words) == 1 && slices.Contains(grammar().is, t.words[0]) }

// qualities stand before what is possessed.
var qualities = words.Of("new current favourite favorite own next neue neuer neues neuen neuem nouveau nouvelle nuevo nueva nuovo nuova novo nova nieuwe ny nya nytt nye новый новая новое")

// A spoken word is what stands between white space in a sentence, and whose it is.
type spoken struct {
	words  []string
	person person
	ends   bool // the clause
}

// person is what a word says of who speaks.
type person int

const (
	none  person = iota
	first        // I
	other        // me
	owned        // my
)

// tokens are the words of a sentence. What is written in capitals alone is short
// for something, and behind a number stand units; i is a word of other languages
// but at the beginning.
func tokens(s string) (out []spoken) {
	s = plain(s)
	capitals := strings.ToUpper(s) == s
	number := false
	for i, f := range strings.Fields(s) {
		if j := strings.IndexByte(f, '\''); j > 0 && strings.Trim(f[j:], "'sS.,;:!?") == "" || j > 0 && len(f)-j > 1 { // my phone's: is
			out = append(out, tokenOf(f[:j], i, capitals, number), tokenOf(f[j+1:], -1, capitals, false))
		} else {
			out = append(out, tokenOf(f, i, capitals, number))
		}
		r, _ := utf8.DecodeLastRuneInString(f)
		number = unicode.IsNumber(r)
		if len(out) > 0 {
			out[len(out)-1].ends = strings.ContainsRune(".,;:!?…)", r) || len(words.Of(f)) == 0
		}
	}
	return slices.DeleteFunc(out, func(t spoken) bool { return len(t.words) == 0 })
}

func tokenOf(f string, place int, capitals, number bool) spoken {
	t := spoken{words: words.Of(f)}
	w := letters.FindString(f)
	short := len(w) > 1 && strings.ToUpper(w) == w && !capitals
	if len(t.words) != 1 || short || number || w == "i" && place != 0 {
		return t
	}
	switch g := grammar(); {
	case slices.Contains(g.subject, t.words[0]):
		t.person = first
	case slices.Contains(g.mine, t.words[0]):
		t.person = owned
	case slices.Contains(g.self, t.words[0]):
		t.person = other
	}
	return t
}

var letters = regexp.MustCompile(`[\pL\pM]+`)

// asking is a question: the words of a predicate, or of one of its registered
// aliases. Those it must have are all but what says of what kind the value is,
// unless there is no other.
type asking struct{ words, must []string }

func (s *State) asked(predicate string) (out []asking) {
	names := []string{predicate}
	if p := s.predicates.get(predicateKey(predicate)); p != nil {
		names = append(names, p.Aliases...)
	}
	for _, n := range names {
		out = append(out, askingOf(n))
	}
	return out
}

func askingOf(name string) (a asking) {
	all := words.Of(strings.Join(text.NameWords(name), " "))
	for _, w := range all {
		if !slices.Contains(small, w) {
			a.words = append(a.words, w)
		}
	}
	if len(a.words) == 0 {
		a.words = all
	}
	for _, w := range a.words {
		if !slices.Contains(kinds, w) {
			a.must = append(a.must, w)
		}
	}
	if len(a.must) == 0 {
		a.must = a.words
	}
	return a
}

// kinds are words that say of a predicate what kind of value it has.
var kinds = []string{"number", "id", "name", "value", "code", "address", "date", "time", "details", "info", "text"}

// small are words of a predicate that make it no other.
var small = []string{"is", "has", "do", "does", "of", "the", "a", "an", "at", "as", "my", "current", "be"}

// sides are words of which one makes another question than the other does: whom a
// payment is to, and whom it is from.
var sides = [][]string{{"from", "to", "by", "for"}, {"before", "after", "until", "since"}, {"in", "out"}, {"on", "off"}, {"with", "without"}}

// times are those that tell what was from what is.
var times = []string{"old", "former", "previous", "prev", "past", "ex", "last", "next", "new", "earlier", "later"}

// noteForm is the predicate of a claim whose value is the sentence itself.
const noteForm = "note"

// answers reports whether a record has a value as the answer to what is asked: in
// the members that are called as that is; or else in the one that is called so but
// for a word that says of what kind its value is, if no other is; or else in one
// whose name has a word of it, where the record has the others.
func (u *unit) answers(a asking, value string) bool {
	says := func(l leaf) bool { return l.is(value) && l.says(value, a) }
	if !slices.ContainsFunc(u.leaves, says) {
		return false
	}
	fit, most, called := map[string]int{}, 0, ""
	for i := range u.leaves {
		name := strings.Join(u.leaves[i].names, "\x00")
		f, known := fit[name]
		if !known {
			f = u.fit(&u.leaves[i], a)
			fit[name] = f
		}
		switch {
		case f > most:
			most, called = f, name
		case f == most && name != called:
			called = ""
		}
	}
	return most > 0 && (most != kindFits || called != "") && slices.ContainsFunc(u.leaves, func(l leaf) bool {
		return fit[strings.Join(l.names, "\x00")] == most && says(l)
	})
}

// How well the name of a member fits what is asked.
const (
	wordFits = 1 + iota
	kindFits
	fits
)

// within are words of objects in which a record keeps what is its own; of another
// one (previous, manager) what stands in it is not, unless that is asked for.
var within = words.Of("data detail details contact contacts info information field fields attribute attributes property properties record profile address location body payload result value values current main primary general")

func (u *unit) fit(l *leaf, a asking) (best int) {
	for _, w := range words.Of(strings.Join(text.NameWords(strings.Join(l.names[:len(l.names)-1], " ")), " ")) {
		if !slices.Contains(within, w) && !slices.Contains(a.words, w) && !matches(a.words, w) {
			return 0
		}
	}
	for _, names := range [][]string{l.names[len(l.names)-1:], l.names} {
		m := askingOf(strings.Join(names, " ")).words
		more := slices.DeleteFunc(slices.Clone(m), func(w string) bool { return matches(a.words, w) })
		less := slices.DeleteFunc(slices.Clone(a.words), func(w string) bool { return matches(m, w) })
		other := func(w string) bool { return !slices.Contains(kinds, w) }
		apart := func(w string) bool {
			return slices.Contains(times, w) || slices.ContainsFunc(sides, func(s []string) bool { return slices.Contains(s, w) })
		}
		switch own := askingOf(l.names[len(l.names)-1]).words; {
		case len(m) == 0 || len(less) == len(a.words):
		case len(more)+len(less) == 0:
			best = max(best, fits)
		case !slices.ContainsFunc(more, other) && !slices.ContainsFunc(less, other) && (len(more) == 0 || len(less) == 0):
			best = max(best, kindFits)
		case slices.ContainsFunc(more, apart), slices.ContainsFunc(less, apart),
			slices.ContainsFunc(own, func(w string) bool { return slices.Contains(kinds, w) && slices.Contains(more, w) }):
		case slices.ContainsFunc(l.names, func(n string) bool {
			must := askingOf(n).must
			return len(must) > 0 && matches(a.must, must[len(must)-1])
		}) && !slices.ContainsFunc(a.must, func(w string) bool { return !u.holds(w) }):
			best = max(best, wordFits)
		}
	}
	return best
}

// says reports whether a leaf is a value, or a text that says it.
func (l *leaf) says(value string, a asking) bool {
	if l.number || strings.TrimSpace(l.text) == strings.TrimSpace(value) {
		return true
	}
	at := placed(l.text, value)
	if at < 0 || len(quotedIn(l.text, value)) > 0 || beside.MatchString(l.text[:at]) && !strings.ContainsFunc(value, unicode.IsNumber) {
		return false
	}
	t := &said{part: unit{text: l.text}, around: l.text, value: l.text[at : at+len(value)], at: at}
	return t.affirmed(a.must)
}

// beside finds a word that stands right before something.
var beside = regexp.MustCompile(`[\pL\pM]\s+$`)

// asks reports whether a sentence, with a value at an offset, has the words of a
// question: of two sides the one that is asked for stands before the value, and
// what is asked for is no part of the name of something else.
func (u *unit) asks(a asking, at int) bool {
	if slices.ContainsFunc(a.must, func(w string) bool { return !u.holds(w) }) {
		return false
	}
	before := words.Of(u.text[:at])
	for _, s := range sides {
		for _, w := range a.must {
			if !slices.Contains(s, w) {
				continue
			}
			if !slices.Contains(words.Of(u.text), w) {
				return false
			}
			for _, b := range slices.Backward(before) {
				if slices.Contains(s, b) {
					if b != w {
						return false
					}
					break
				}
			}
		}
	}
	return !slices.ContainsFunc(a.must, func(w string) bool { return u.partOfAnother(w, a) })
}

// partOfAnother reports whether a word stands in a sentence only at the beginning
// of the name of something else: the email in my email password is.
// It is so in English; elsewhere one word says it, or what is said of a thing
// stands behind it.
func (u *unit) partOfAnother(w string, a asking) bool {
	toks := tokens(u.text)
	part := false
	for i, t := range toks {
		if !matches(t.words, w) {
			continue
		}
		other := false
		for j := i; ; j++ {
			if j > i {
				if len(toks[j].words) == 1 && slices.Contains([]string{"is", "are", "was", "were", "s"}, toks[j].words[0]) {
					break
				}
				if toks[j].person != none || len(toks[j].words) != 1 || toks[j].words[0] == "of" || slices.Contains(grammar().stop, toks[j].words[0]) {
					return false
				}
				n := toks[j].words[0]
				other = other || !matches(a.words, n) && !slices.Contains(kinds, n)
			}
			if toks[j].ends || j+1 == len(toks) {
				return false
			}
		}
		if !other {
			return false
		}
		part = true
	}
	return part
}

// sentence reports whether a value is no answer but a sentence with the question
// in it.
func sentence(value string, asked []string) bool {
	ws := words.Of(value)
	return len(ws) > 3 && !slices.ContainsFunc(asked, func(w string) bool { return !matches(ws, w) })
}

// A heard text is its words.
type heard struct {
	words []string
	forms words.Forms
}

// holds reports whether a unit has a word in any of its forms: a record also in
// the names of its members.
func (u *unit) holds(w string) bool {
	if u.heard == nil {
		t := plain(u.text)
		for _, l := range u.leaves {
			t += " " + strings.Join(text.NameWords(strings.Join(l.names, " ")), " ") + " " + l.text
		}
		u.heard = &heard{words.Of(t), words.FormsOf(t)}
	}
	return slices.ContainsFunc(u.heard.words, func(o string) bool { return alike(o, w, u.heard.forms.Has) })
}

// matches reports whether one of some words is a form of one of others.
func matches(of []string, others ...string) bool {
	return slices.ContainsFunc(of, func(o string) bool {
		return slices.ContainsFunc(others, func(w string) bool {
			return alike(o, w, func(w string) bool { return words.FormsOf(o).Has(w) })
		})
	})
}

// alike reports whether two words are forms of one: they differ in endings of which
// one says no other thing than the other. An employee is no employer, and an
// accountant no account, whatever a stemmer makes of them.
func alike(a, b string, stem func(string) bool) bool {
	if a == b {
		return true
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	x, y := a[n:], b[n:]
	if n >= 5 && (slices.Contains(kin, [2]string{x, y}) || slices.Contains(kin, [2]string{y, x})) {
		return true
	}
	return n >= 2 && slices.Contains(inflections, x) && slices.Contains(inflections, y) && stem(b)
}

// inflections end the forms of one word in the languages that are stemmed, and kin
// those of an adjective, a verb and their noun.
var (
	inflections = append(strings.Fields("s es e d ed ing n en ne nes ned nen t st te ten tet em et y ies ied ying i a o as os is ons ez ent é ée és ées m re er ar a ar ade at it ir x u у а ы и е ю я о ой ом ам ах ами ет ит ешь ишь ут ют ат ят л ла ли ть nning ning pped pping tted tting"), "")
	kin         = [][2]string{{"ic", "y"}, {"c", "es"}, {"ic", "es"}, {"ic", "ies"}, {"tic", ""}, {"ed", "age"}, {"y", "iage"}, {"bed", "ption"}, {"be", "ption"}, {"bes", "ption"}, {"bing", "ption"},
		{"bed", "ptions"}, {"ed", "ion"}, {"e", "ion"}, {"es", "ion"}, {"ing", "ion"}, {"", "ion"}, {"s", "ion"}, {"ed", "ance"}, {"ed", "ence"}, {"ing", "ence"}, {"ing", "ance"}, {"es", "ence"}, {"es", "ance"},
		{"d", "ment"}, {"ed", "ment"}, {"", "ment"}, {"s", "ment"}, {"t", "cy"}, {"sch", "e"}, {"sch", "en"}, {"que", "e"}, {"ques", "e"}, {"co", "a"}, {"ca", "a"}, {"co", "e"}, {"ca", "e"}}
)

// is reports whether a leaf is a value, or a text that has it in it.
func (l *leaf) is(value string) bool {
	return standsIn(l.text, value, true) || l.number && decimal.MatchString(value) && shortest(value) == shortest(l.text)
}

// has reports whether a value stands in a unit between other words.
func (u *unit) has(value string) bool {
	value = strings.TrimSpace(value)
	if value == "" {
		return false
	}
	if u.leaves != nil {
		return slices.ContainsFunc(u.leaves, func(l leaf) bool { return l.is(value) })
	}
	return standsIn(u.text, value, u.whole)
}

// names reports whether a text has a name in it, in capitals or not.
func names(s, name string, whole bool) bool {
	return text.Stands(nameForm(s), nameForm(bare(name)), whole)
}

func nameForm(s string) string { return text.Fold(s, text.Compatible) }

// bare is a name without the punctuation around it, which is no part of it.
func bare(name string) string {
	is := func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) }
	if out := strings.TrimRightFunc(strings.TrimLeftFunc(name, is), func(r rune) bool { return is(r) && r != '#' }); out != "" {
		return out
	}
	return name
}

// sameName reports whether what bears out the one name bears out the other.
func sameName(a, b string) bool { return nameForm(bare(a)) == nameForm(bare(b)) }

func fold(s string) string { return text.Fold(s, text.Canonical) }

// standsIn reports whether a value stands in a text, in the form in which values
// are equal.
func standsIn(s, value string, whole bool) bool {
	value = norm.NFC.String(value)
	return text.Stands(s, value, whole) || text.Stands(spelled(s), spelled(value), whole)
}

// spelled is a text with the capitals that begin words of letters alone made
// small. One inside a word, and what has a digit or a sign in it, is as it is
// written: pay.pal is not pay-pal, and swordFish is a password of its own. What
// stands at an offset of it stands there in the text.
func spelled(s string) string {
	var b strings.Builder
	at := 0
	for _, m := range letters.FindAllStringIndex(s, -1) {
		w := s[m[0]:m[1]]
		r, n := utf8.DecodeRuneInString(w)
		small := strings.ToLower(w[:n])
		if len(small) != n || !unicode.IsUpper(r) || strings.ContainsFunc(w[n:], unicode.IsUpper) || joined(s, m[0], m[1]) {
			continue
		}
		b.WriteString(s[at:m[0]])
		b.WriteString(small)
		at = m[0] + n
	}
	b.WriteString(s[at:])
	return b.String()
}

// joined reports whether letters are a part of something longer.
func joined(s string, from, to int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:from])
	first, _ := utf8.DecodeLastRuneInString(s[:from-n])
	after, n := utf8.DecodeRuneInString(s[to:])
	last, _ := utf8.DecodeRuneInString(s[to+n:])
	part := func(r, beyond rune) bool {
		return unicode.IsNumber(r) || r < utf8.RuneSelf && strings.ContainsRune("-_@+/#&=%~\\", r) || strings.ContainsRune(".:", r) && text.Alphanumeric(beyond)
	}
	return part(before, first) || part(after, last)
}

var decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// shortest is a decimal number without zeros at the end of its fraction.
func shortest(number string) string {
	if decimal.MatchString(number) && strings.Contains(number, ".") {
		return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	}
	return number
}

// Denies reports whether a text has a word that denies, or asks: then it does not
// say the same as one that does neither.
func Denies(s string) bool {
	if m := request.FindStringIndex(s); m != nil {
		s = s[m[1]:]
	} else if i := strings.LastIndexFunc(s, text.Alphanumeric); questions.MatchString(s[max(0, i):]) {
		return true
	}
	return slices.ContainsFunc(words.Of(plain(s)), func(w string) bool { return slices.Contains(grammar().no, w) })
}

var request = regexp.MustCompile(`(?i)^\W*(?:(?:hey|hi|hello|please|and|so)\W+)*(?:(?:can|could|would|will) you (?:please )?(?:remember|note|keep in mind|make a note|save|store|write down)(?: that)?|(?:kannst|könntest) du dir (?:bitte )?merken|(?:peux|pourrais)-tu (?:noter|retenir) que|¿?(?:puedes|podrías) (?:recordar|anotar) que)\W`)

// grammar.txt has, of eleven languages, the words of who speaks, as a subject, as
// an object and as who possesses something; those of what is another's; those that
// deny, those that leave open whether something is so or tell of before, and those
// that report what somebody else says; those that say what something is and those
// that stand behind the name of a thing; those with which
// a question begins; those of a range, and of what is added;
// those that are no value by themselves; and those for the session's person.
//
//go:embed grammar.txt
var grammarText string

type grammarWords struct {
	subject, mine, self, other, no, deny, was, asks, is, stop, between, also, empty, user []string
	doubts                                                                                map[string]bool // those of deny and was
}

var grammar = sync.OnceValue(func() (g grammarWords) {
	kinds := map[string][]*[]string{"subject": {&g.subject, &g.self}, "object": {&g.self}, "mine": {&g.mine, &g.self}, "other": {&g.other},
		"deny": {&g.no, &g.deny}, "doubt": {&g.deny}, "tell": {&g.deny}, "was": {&g.was}, "asks": {&g.asks}, "is": {&g.is}, "stop": {&g.stop}, "between": {&g.between},
		"also": {&g.also}, "empty": {&g.empty}, "user": {&g.user}}
	for line := range strings.Lines(grammarText) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, to := range kinds[kind] {
			*to = append(*to, words.Of(rest)...)
		}
	}
	g.doubts = map[string]bool{}
	for _, w := range slices.Concat(g.deny, g.was) {
		g.doubts[w] = true
	}
	return g
})

// adds reports whether a clause says a value beside others: she also likes tea.
func (b *bearer) adds(pr *Proposition, value string) bool {
	asked := askingOf(pr.Predicate).words
	if pr.Predicate == noteForm {
		return false
	}
	for _, c := range clauseStart.Split(b.text, -1) {
		if standsIn(c, value, true) && (also.MatchString(c) || slices.ContainsFunc(words.Of(c), func(w string) bool {
			return slices.Contains(grammar().also, w) && !slices.Contains(asked, w)
		})) {
			return true
		}
	}
	return false
}

var also = regexp.MustCompile(`(?i)[^\pL](too\s*([.,;:!)]|$)|as well([^\pL]|$))`)

// empty reports whether a value says when, or please, and nothing else.
func empty(value string) bool {
	return !slices.ContainsFunc(words.Of(value), func(w string) bool { return !slices.Contains(grammar().empty, w) })
}
