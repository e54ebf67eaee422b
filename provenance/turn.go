package provenance

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// A user's turn vouches with runs of whole tokens of its own text (R6). What a
// token is, is decided here; what in a turn is not the user's own, by split.
// Both read nothing but the bytes: in doubt a run is no token and a passage is
// not the user's.

// ErrTurn is returned for a turn that is no text: empty, not UTF-8 or longer
// than MaxTurn.
var ErrTurn = errors.New("a turn is UTF-8 text within its bound")

// The bounds of the text users type in one session.
const (
	MaxTurn  = 128 << 10 // bytes of one turn
	maxTurns = 4 << 20   // bytes of all
	turnCost = 48        // estimated memory of one byte of text
)

// Turn is what the user typed, as the host delivered it on the user's channel.
type Turn struct {
	Evidence uint32
	Text     string    // the exact bytes
	Time     time.Time // as recorded, in the zone of who typed
}

// PendingTurn is a turn that was read but is not yet part of the ledger.
type PendingTurn struct {
	turn
}

// Tokens returns how many tokens of the turn are the user's own.
func (p *PendingTurn) Tokens() int { return p.own.tokens }

type turn struct {
	Turn
	own    reading // with everything else blotted out
	quoted reading // what is not his own
	said   said
	acts   uint64 // that were made before it
}

// PrepareTurn reads a turn and changes nothing. It returns ErrTurn or ErrFull
// for one that cannot be taken in.
func (l *Ledger) PrepareTurn(t Turn) (*PendingTurn, error) {
	if !isTurn(t.Text) {
		return nil, ErrTurn
	}
	if l.typed+len(t.Text) > maxTurns || l.Bytes()+int64(len(t.Text))*turnCost > l.caps.Bytes {
		return nil, ErrFull
	}
	t.Text = strings.Clone(t.Text)
	own, quoted := split(t.Text)
	p := &PendingTurn{turn: turn{Turn: t, own: read(own), quoted: read(quoted)}}
	p.own.parts = p.own.saidParts()
	p.said = p.say()
	return p, nil
}

// isTurn reports whether a text can be a turn: 0 is what blots out.
func isTurn(text string) bool {
	return text != "" && len(text) <= MaxTurn && utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// OwnText returns a turn with every byte that is not the user's own replaced by 0, so
// that places stay what they were (R6); of a text that is no turn nothing is his own.
func OwnText(text string) string {
	if !isTurn(text) {
		return strings.Repeat("\x00", len(text))
	}
	own, _ := split(text)
	return own
}

// OwnWords returns the stretches of a turn that are the user's own, each as
// long as it goes, in their order: the text that Typed reads, by the same
// reader (R6). What stands in one of them he said himself, every byte of it;
// what reaches over the end of one, or stands only between them, he quoted. A
// text that is no turn has none.
func OwnWords(text string) []string {
	if !isTurn(text) {
		return nil
	}
	return strings.FieldsFunc(OwnText(text), func(r rune) bool { return r == 0 })
}

// CommitTurn folds a turn in. A pending turn is committed once.
func (l *Ledger) CommitTurn(p *PendingTurn) error {
	if l.typed+len(p.Text) > maxTurns || l.Bytes()+int64(len(p.Text))*turnCost > l.caps.Bytes {
		return ErrFull
	}
	l.events++
	l.typed += len(p.Text)
	l.store.bytes += int64(len(p.Text)) * turnCost
	agrees := Assents(p.own.text)
	if !agrees {
		l.lastOrder = p.Evidence
	}
	if len(l.turns) > 0 && !l.since && !l.denied && agrees {
		l.agreed = append(l.agreed[max(0, len(l.agreed)+1-mostAgreed):], p.turn)
		return nil
	}
	p.acts = l.acts
	l.turns = append(l.turns, p.turn)
	if l.since {
		clear(l.ranks) // what was the largest may be so no more (R9)
	}
	l.since, l.denied, l.ordered = false, false, ""
	for k := range l.looked { // what he speaks of now is looked at anew
		delete(l.dirs, k)
	}
	clear(l.looked)
	l.parts = nil
	for _, said := range p.own.parts {
		if word := p.own.text[said.at.start:said.at.end]; isName(word) && !strings.Contains(word, "\x00") && !p.own.closes(said.at) {
			l.parts = append(l.parts, parted{partSaid: said})
		}
	}
	l.index()
	l.begin()
	return nil
}

// Deny remembers that a person said no to a call: what the user agrees to from then on may
// be to leave it.
func (l *Ledger) Deny() { l.denied = true }

// LapseTurns makes every turn so far vouch for nothing any more. The numbers
// and the memory they took stay taken.
func (l *Ledger) LapseTurns() {
	l.events++
	l.turns, l.agreed, l.parts, l.lastOrder = nil, nil, nil, 0
	clear(l.moments)
	clear(l.hours)
	clear(l.begun)
}

// Turns returns how many turns vouch.
func (l *Ledger) Turns() int { return len(l.turns) }

// TypedAbove returns where the user typed a path below a directory of that name, of two letters
// or more: "save it under picnic/todo" is below picnic.
func (l *Ledger) TypedAbove(v strictjson.Value) (Quote, bool) {
	name, _ := v.Text()
	if name == "" || CheckText(v) != "" {
		return Quote{}, false
	}
	name += "/"
	for i := range l.holdingTurns(name, "") {
		own := &l.turns[i].own
		for _, at := range own.starts[head(name)] {
			if !strings.HasPrefix(own.text[at:], name) || !wordAt(own.text, at) {
				continue
			}
			if below, _ := utf8.DecodeRuneInString(own.text[at+len(name):]); isAlnum(below) {
				return Quote{l.turns[i].Evidence, at, at + len(name) - 1}, true
			}
		}
	}
	return Quote{}, false
}

// LatestOrder returns the evidence of the user's latest turn that did not lapse and says more
// than that he agrees, 0 for none.
func (l *Ledger) LatestOrder() (evidence uint32) { return l.lastOrder }

// Quote is where a value stands in a turn: the bytes [Start, End) of its text.
type Quote struct {
	Evidence   uint32
	Start, End int
}

func (t *turn) quote(at span) Quote { return Quote{t.Evidence, at.start, at.end} }

// audience are words that name nobody in particular. They never name a target
// or a selector.
var audience = map[string]bool{
	"all": true, "any": true, "anyone": true, "anybody": true, "each": true, "every": true, "everyone": true,
	"everybody": true, "everything": true, "public": true, "world": true, "here": true, "channel": true, "me": true,
}

// Typed answers `from: [user]`: where the user typed the value whole, in the
// latest turn that has it. The text is read by the query's type (R17): an
// address in any spelling of its domain, a number in any spelling of its value.
// Without a type, and for everything else, the value must stand byte for byte.
//
// A value of small space counts only in typed context: directly after one of
// the query's Words or the name of its collection and white space, as in
// "file 13" or "issue #13" (R8); booleans, null and empty values never do. Where the words are an
// order ("merge PR") no number counts otherwise, however long, nor one that goes on ("merge 3 PRs"). Each of
// a list does ("issues 41 and 42").
// With Authority, audience words and what has neither letter nor digit never
// match. With Account "@kim" is kim, and kim is "@kim" where the user set that apart; an @ before
// a value of small space ("@150") makes no account of it. With Small "anna kern" is Anna Kern, where orders are asked for if no other is known in other letters. With Tag a word behind a # is what it is without one, where the user set that apart:
// "with the hashtag 'Travel'". A link is typed without its scheme too (Schemeless). What else the operator says that users call the value
// (Called) is found as the value is: who has read that list gains nothing by it, for it
// is the user who has to say the name, and the name is of that member alone. The reason is unseen, label (it stands only where the text is
// not the user's own) or small_space.
func (l *Ledger) Typed(q Query) (Quote, writ.Reason) {
	at, reason := l.typedAs(q)
	if reason == "" {
		return at, ""
	}
	if text, _ := q.Value.Text(); q.Tag && hashtag().MatchString(text) {
		q.Value, q.Named = strictjson.StringOf(text[1:]), true
		if tag, why := l.typedAs(q); why == "" {
			return tag, ""
		}
	}
	for _, as := range l.others(q) {
		if said, why := l.typedAs(as); why == "" {
			return said, ""
		}
	}
	for _, name := range q.Called {
		q.Value, q.longer = strictjson.StringOf(name.Text), name.Longer
		if q.Type != Name {
			q.Type = Untyped
		}
		switch said, why := l.typedAs(q); {
		case why == "":
			return said, ""
		case reason == writ.ProvenanceUnseen:
			reason = why
		}
	}
	return at, reason
}

// others are what a value is typed as too: an account with or without its @, a name in small
// letters, a title with a small one at its begin, a link without its scheme.
func (l *Ledger) others(q Query) (out []Query) {
	as := func(v strictjson.Value) Query {
		other := q
		other.Value = v
		return other
	}
	text, _ := q.Value.Text()
	if q.Account && (q.Type == Untyped || q.Type == Name || q.Type == ID) && !SmallSpace(q.Type, q.Value) && handle().MatchString(text) {
		if name, at := strings.CutPrefix(text, "@"); at {
			out = append(out, as(strictjson.StringOf(name)))
			out[0].Named = true
		} else {
			out = append(out, as(strictjson.StringOf("@"+text)))
			out[0].isAccount = SayOrders(q.Words)
		}
	}
	if small, is := inSmall(q.Value); q.Small && is && len(l.candidates(as(small))) == 0 && !(len(q.Orders) > 0 && l.twin(q)) {
		out = append(out, as(small))
	}
	if small, is := asTyped(q.Value); q.Title && is {
		out = append(out, as(small))
	}
	if q.One {
		for _, one := range OneOf(text) {
			out = append(out, as(strictjson.StringOf(one)))
			out[len(out)-1].isOne = true
		}
	}
	if q.Type == URL {
		if typed, t, is := Schemeless(q.Value); is {
			q.Type = t
			out = append(out, as(typed))
		}
	}
	return out
}

// twin reports whether another member is known that is a name in other letters, or its capitals are: what he wrote in
// small letters may be that.
func (l *Ledger) twin(q Query) bool {
	text, _ := q.Value.Text()
	name, _ := inAnyCase(text)
	own, all := l.candidates(q), l.store.under(l.digest(casedDomain, name))
	q.Value = strictjson.StringOf(strings.ToUpper(text))
	return len(l.candidates(q)) > 0 || l.store.crowded(all) || slices.ContainsFunc(all, func(i uint32) bool {
		return l.store.metas[l.store.at(i).meta].collection == q.Collection && !slices.Contains(own, i)
	})
}

// inSmall is a name in small letters: words of letters, each with a capital at its beginning
// alone. It is not ok of anything else.
func inSmall(v strictjson.Value) (small strictjson.Value, ok bool) {
	name, _ := v.Text()
	if !capitalised().MatchString(name) {
		return v, false
	}
	return strictjson.StringOf(strings.ToLower(name)), true
}

// asTyped is a title of several words with its first letter small, "buy a lamp". It is not ok of
// one that begins otherwise, "PR review" and "iOS build" too.
func asTyped(v strictjson.Value) (small strictjson.Value, ok bool) {
	title, _ := v.Text()
	if !titleForm().MatchString(title) {
		return v, false
	}
	first, n := utf8.DecodeRuneInString(title)
	return strictjson.StringOf(string(unicode.ToLower(first)) + title[n:]), true
}

var titleForm = text.Pattern(`^[A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]* [^\s\x00]`)

var capitalised = text.Pattern(`^[A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]+(?: [A-ZÀ-ÖØ-Þ][a-zà-öø-ÿ]+)*$`)

var handle = text.Pattern(`^@?[\pL\pN_][\pL\pN_-]+[\pL\pN_]$`)

var hashtag = text.Pattern(`^#\pL[\pL\pN_]{2,}$`)

func (l *Ledger) typedAs(q Query) (Quote, writ.Reason) {
	v, typed, ok := spoken(q)
	if !ok {
		return Quote{}, writ.ProvenanceUnseen
	}
	words := q.words()
	ordered := SayOrders(q.Words) && (q.Within || isInteger(q.Value))
	isSmall := q.Enum || SmallSpace(q.Type, q.Value) || ordered || q.isAccount
	named := q.Named && v != "" && anyWord(q.Type, v)
	reason := writ.ProvenanceUnseen
	for i := range l.holdingTurns(v, typed) {
		t := &l.turns[i]
		if ordered && !l.ordersStand(i, q.Words) {
			reason = writ.ProvenanceSmall
			continue
		}
		q.isOrdered = l.orderedIn(i, &q)
		s, found, bare := t.own.find(&q, v, typed, words, named, isSmall)
		switch {
		case found:
			return t.quote(s), ""
		case bare:
			reason = writ.ProvenanceSmall
		case reason == writ.ProvenanceUnseen:
			q.isOrdered = nil
			if _, found, bare := t.quoted.find(&q, v, typed, words, named, isSmall); found || bare {
				reason = writ.ProvenanceLabel
			}
		}
	}
	for _, t := range slices.Backward(l.agreed) {
		if len(q.Orders) > 0 {
			break // who only agrees orders nothing new
		}
		q.isOrdered = q.runs(&t.own)
		if s, found, _ := t.own.find(&q, v, typed, words, named, isSmall); found {
			return t.quote(s), ""
		}
	}
	return Quote{}, reason
}

// orderedIn says of a stretch of a turn whether it is what is ordered there, nil where that is not asked.
func (l *Ledger) orderedIn(i int, q *Query) func(span) bool {
	runs := q.runs(&l.turns[i].own)
	if len(q.Orders) == 0 {
		return runs
	}
	stand := sync.OnceValue(func() bool { return l.ordersStand(i, q.Orders) })
	return func(at span) bool { return (runs == nil || runs(at)) && stand() && l.orderedAt(i, at, q) }
}

// runs says of a stretch of a turn whether it is to be run, or said to be a secret, nil where that
// is not asked.
func (q *Query) runs(r *reading) func(span) bool {
	if q.Secret {
		return r.saysSecret(q.words())
	}
	if !q.Ordered {
		return nil
	}
	return func(at span) bool { return Orders(r.text, at.start, at.end) }
}

// words are those that say before a value what it is.
func (q *Query) words() []string {
	if q.Collection == "" {
		return q.Words
	}
	return append(slices.Clone(q.Words), q.Collection)
}

// TypedBeside answers for a value of small space, or one too common to be told, that
// the user typed it as a part of one thing whose first part stands at beside: in the
// same line and not far from it, with no bracket between them, as the pieces of an
// address do (R15). The place says what it is, as a word before it does (R8), and says
// it once: what is taken, the stretches that are other parts, is no part of its own, or
// the "FL" that is a state would be a city too.
func (l *Ledger) TypedBeside(q Query, beside Quote, taken []Quote) (Quote, bool) {
	v, typed, ok := spoken(q)
	i := l.turnAt(beside.Evidence)
	if !ok || i < 0 {
		return Quote{}, false
	}
	t := &l.turns[i]
	from, to := max(0, beside.Start-besideBytes), min(len(t.own.text), beside.End+besideBytes)
	if n := strings.LastIndexAny(t.own.text[from:beside.Start], setsApart); n >= 0 {
		from += n + 1
	}
	if n := strings.IndexAny(t.own.text[beside.End:to], setsApart); n >= 0 {
		to = beside.End + n
	}
	for s := range t.own.holding(v, typed) {
		if wordAt(t.own.text, s.start) && s.start >= from && s.end <= to && !(q.Authority && t.own.closes(s)) && (s.end <= beside.Start || s.start >= beside.End) &&
			!slices.ContainsFunc(taken, func(o Quote) bool { return o.Evidence == t.Evidence && o.Start < s.end && s.start < o.End }) {
			return t.quote(s), true
		}
	}
	return Quote{}, false
}

const (
	besideBytes = 200        // how far the pieces of one thing stand apart
	setsApart   = "\n()[]{}" // what stands between things
)

// holdingTurns yields the turns that may hold a value, the latest first: those that
// have a token of its typed form, or one that begins as it does.
func (l *Ledger) holdingTurns(text, typed string) iter.Seq[int] {
	return func(yield func(int) bool) {
		var a, b []int
		if len(text) >= longHead {
			a = l.begun["\x01"+text[:longHead]]
		} else if text != "" {
			a = l.begun["\x00"+head(text)]
		}
		if typed != "" {
			b = l.begun[typed]
		}
		last := func(of []int) int {
			if len(of) == 0 {
				return -1
			}
			return of[len(of)-1]
		}
		for len(a)+len(b) > 0 {
			at := max(last(a), last(b))
			if last(a) == at {
				a = a[:len(a)-1]
			}
			if last(b) == at {
				b = b[:len(b)-1]
			}
			if !yield(at) {
				return
			}
		}
	}
}

// longHead is how much of a longer value's beginning tells turns apart.
const longHead = 8

// begin files the newest turn under what its tokens begin with and what they are.
func (l *Ledger) begin() {
	at := len(l.turns) - 1
	file := func(k string) {
		if all := l.begun[k]; len(all) == 0 || all[len(all)-1] != at {
			l.begun[k] = append(all, at)
		}
	}
	for _, r := range []*reading{&l.turns[at].own, &l.turns[at].quoted} {
		for head, starts := range r.starts {
			file("\x00" + head)
			for _, i := range starts {
				if i+longHead <= len(r.text) {
					file("\x01" + r.text[i:i+longHead])
				}
			}
		}
		for form := range r.typed {
			file(form)
		}
	}
}

// spoken returns the two forms a value can be found in: its bytes ("" for
// none), and its form under a type ("" for none).
func spoken(q Query) (text, typed string, ok bool) {
	t := q.Type
	switch q.Value.Kind() {
	case strictjson.String:
		text, _ = q.Value.Text()
	case strictjson.Number:
		if t == Untyped {
			t = Decimal
		}
		if c, _, why := Canonical(t, q.Value); t == ID && why == "" {
			text = c
		}
	default:
		return "", "", false
	}
	if t != Untyped {
		c, _, why := Canonical(t, q.Value)
		if why != "" {
			return "", "", false
		}
		typed = string(t) + "\x00" + c
	}
	if strings.Contains(text, "\x00") || text == "" && typed == "" {
		return "", "", false
	}
	if q.Authority && text != "" {
		name := strings.TrimFunc(fold(text), func(r rune) bool { return !isAlnum(r) }) // "@here", "<!all>"
		if audience[name] || !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			return "", "", false
		}
	}
	return text, typed, true
}

// # A path said in two words (R15)
//
// "Set n in config.toml in /srv/app": the user says a name and, right behind it, the
// directory it is in. Both are his words, whole, and the words between say nothing but
// that: of two names and two directories none goes with the other's.

// TypedWithin answers where the user typed the last element of a path, one with a letter
// behind a dot, and the directory that it is in.
func (l *Ledger) TypedWithin(q Query) (name, dir Quote, ok bool) {
	whole, isText := q.Value.Text()
	parent, base, cut := splitPath(whole)
	if !isText || !cut || q.Type != Path || q.Strict || !hasEnding(base) {
		return name, dir, false
	}
	of := q
	of.Value, of.Type = strictjson.StringOf(base), Untyped
	in := q
	in.Value = strictjson.StringOf(parent)
	if _, why := l.Typed(in); why != "" {
		return name, dir, false
	}
	text, _, ok := spoken(of)
	_, typed, also := spoken(in)
	if !ok || !also {
		return name, dir, false
	}
	for i := range l.holdingTurns(text, "") {
		r := &l.turns[i].own
		for s := range r.holding(text, "") {
			if !wordAt(r.text, s.start) || r.closes(s) || r.cuts(s) || r.partial(s, q.words()) {
				continue
			}
			for _, d := range r.typed[typed] {
				if d.start > s.end && !r.closes(d) && !r.cuts(d) && !r.partial(d, q.words()) && Within(r.text[:s.start], r.text[s.end:d.start], r.text[d.end:]) {
					return l.turns[i].quote(s), l.turns[i].quote(d), true
				}
			}
		}
	}
	return name, dir, false
}

// hasEnding reports whether a name has a letter behind a dot, as "1.2" does not.
func hasEnding(name string) bool {
	_, ending, _ := strings.Cut(strings.Trim(name, "."), ".")
	return strings.ContainsFunc(ending, unicode.IsLetter)
}

// Within reports whether what stands between a name and a directory says that the one is
// in the other, and nothing else. Of what is in quotation marks each is all of it: of
// "my config.toml" the second word is another name.
func Within(before, between, after string) bool {
	return len(between) <= 64 && beneath().MatchString(between) && endsMarked(before) == beginsMarked(between) && endsMarked(between) == beginsMarked(after)
}

func endsMarked(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(quotes, r)
}

func beginsMarked(s string) bool { return strings.ContainsRune(quotes, firstRune(s)) }

var beneath = text.Pattern("(?i)^[\"'`’”“»«]?[ \\t]+(?:in|into|inside|under|within|to|at|unter|nach|dans)(?:[ \\t]+(?:the|my|our|this|that|der|dem|den|das|le|la))?" +
	"(?:[ \\t]+(?:directory|folder|dir|path|verzeichnis|ordner|pfad|dossier|répertoire))?[ \\t]+[\"'`‘“„«»]?$")
