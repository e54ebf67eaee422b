// Package quote takes what was said apart into what can be kept as a whole, its
// sentences, and finds which of them says a fact that somebody words in his own
// way. It trusts nothing, and decides nothing about whether anything is true.
package quote

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/internal/words"
)

// MaxWide is how much is kept around a sentence, in bytes.
const MaxWide = 600

// Unit is one sentence, or one record: what is kept as a whole.
type Unit struct {
	// Text is the sentence, or the record as JSON.
	Text string
	// Wide is the sentence with those beside it, up to MaxWide bytes, and Offset
	// where that begins in its stretch. Of a record it is Text.
	Wide   string
	Offset int
	Record bool

	lower string // Text in small letters if it is ASCII, which is compared with many facts
}

func unit(said, wide string, offset int) Unit {
	u := Unit{Text: said, Wide: wide, Offset: offset}
	if text.ASCII(said) {
		u.lower = strings.ToLower(said)
	}
	return u
}

// RecordOf is a record, as JSON.
func RecordOf(record string) Unit {
	u := unit(record, record, 0)
	u.Record = true
	return u
}

// Of are the sentences of a stretch of words.
func Of(stretch string) (out []Unit) {
	ps := Pieces(stretch)
	for i, p := range ps {
		wide := beside(stretch, ps, i, i)
		out = append(out, unit(p.Of(stretch), wide.Of(stretch), wide.From))
	}
	return out
}

// Widened is a text that stands in a stretch of words with the rest of the
// sentences it stands in and those beside them, as far as MaxWide goes.
func Widened(stretch, words string) string {
	at := strings.Index(stretch, words)
	ps := Pieces(stretch)
	if at < 0 || len(ps) == 0 {
		return ""
	}
	lo, hi := len(ps)-1, 0
	for i := range ps {
		if ps[i].From < at+len(words) {
			hi = i
		}
		if j := len(ps) - 1 - i; ps[j].To > at {
			lo = j
		}
	}
	return beside(stretch, ps, min(lo, hi), hi).Of(stretch)
}

// beside is some sentences with those before and behind them, as far as MaxWide
// goes: first those that they go on with.
func beside(stretch string, ps []Piece, lo, hi int) Piece {
	for lo > 0 && !Ended(ps[lo-1].Of(stretch)) && ps[hi].To-ps[lo-1].From <= MaxWide {
		lo--
	}
	lo, hi = Grow(ps, lo, hi, MaxWide)
	return Piece{ps[lo].From, ps[hi].To}
}

// Enough words of a fact stand in what it is found in: this share of those that
// say something, in percent, and every one with a digit.
const enough = 75

// Fact is what somebody wants to be kept, and what it is about.
type Fact struct {
	Text string
	// Subject and Predicate are words of whom and of what it is about.
	Subject, Predicate []string
	// Speaks reports whether a word is of who speaks, Denies whether a text denies
	// or asks.
	Speaks, Denies func(string) bool

	content []string // stems that say something
	denies  bool
	exact   []string // words with a digit
	parts   []*Fact  // its sentences, if it has several
	among   int      // stretches that were looked through for all of them
	read    bool
}

// A fact of more sentences, and what is behind so many stretches that say the first, is
// found as it stands alone.
const mostParts, mostAmong = 12, 64

func (s *Fact) take() {
	if s.read {
		return
	}
	s.read, s.denies = true, s.Denies(s.Text)
	for _, w := range words.Content(s.Text) {
		if !s.Speaks(w) && w != "s" { // of a possessive
			s.content = append(s.content, w)
		}
	}
	for _, w := range words.Of(s.Text) {
		if strings.ContainsFunc(w, unicode.IsNumber) {
			s.exact = append(s.exact, w)
		}
	}
	if ss := Sentences(s.Text); len(ss) > 1 && len(ss) <= mostParts {
		for _, part := range ss {
			s.parts = append(s.parts, &Fact{Text: part, Speaks: s.Speaks, Denies: s.Denies})
		}
	}
}

// vouched is how much worse than another a unit may say a fact, in percent of its
// words, and be kept before it because somebody vouches for it; answering, because
// it says too whom and what the fact is about.
const (
	vouched   = 20
	answering = 10
)

// Weigh is Rank of what somebody may vouch for: the unit that weighs most is kept.
func (s *Fact) Weigh(u *Unit, isVouched bool) int {
	r := s.Rank(u)
	if r == 0 {
		return 0
	}
	if s.asked(u) {
		r += answering
	}
	if isVouched {
		r += vouched
	}
	return r
}

// Rank is how well a unit says the fact, 0 for not at all: as it stands before in
// other words. A fact of several sentences is said by one that has the words of all, or by
// one of those it stands among that says the first, if each of the others is said there.
func (s *Fact) Rank(u *Unit) int {
	s.take()
	r := s.rank(u)
	if r > 0 || u.Record || len(s.parts) == 0 || s.among == mostAmong {
		return r
	}
	if r = s.parts[0].Rank(u); r == 0 {
		return 0
	}
	s.among++
	among := Of(u.Wide)
	for _, part := range s.parts[1:] {
		best := 0
		for i := range among {
			best = max(best, part.Rank(&among[i]))
		}
		if r = min(r, best); r == 0 {
			break
		}
	}
	return r
}

func (s *Fact) rank(u *Unit) int {
	share := s.share(u)
	if share < enough || share <= 100 && s.Denies(u.Text) != s.denies {
		return 0 // or it says something else in the same words
	}
	return share
}

// share is how many of a hundred words of the fact a unit has, more where it has it as it stands.
func (s *Fact) share(u *Unit) int {
	switch {
	case u.Record && holdsLeaf(u.Text, s.Text):
		return 102 // whole, and not a value out of it
	case !u.Record && text.Stands(u.Text, s.Text, true):
		return 101
	case len(s.content) == 0 || !s.near(u):
		return 0
	}
	said := u.Text
	if u.Record {
		said = recordWords(u.Text)
	}
	if len(s.exact) > 0 {
		ws := words.Of(said)
		if slices.ContainsFunc(s.exact, func(w string) bool { return !slices.Contains(ws, w) }) {
			return 0
		}
	}
	has, n := words.FormsOf(said), 0
	for _, w := range s.content {
		if has.Has(w) {
			n++
		}
	}
	return n * 100 / len(s.content)
}

// asked reports whether a unit holds the words of whom and of what the fact is
// about.
func (s *Fact) asked(u *Unit) bool {
	if len(s.Predicate) == 0 {
		return false
	}
	has := words.FormsOf(u.Text)
	lacks := func(w string) bool { return !has.Has(w) }
	return !slices.ContainsFunc(s.Subject, lacks) && !slices.ContainsFunc(s.Predicate, lacks)
}

// near is a quick look at whether enough of the words can be in a text: those of
// ASCII by their beginnings.
func (s *Fact) near(u *Unit) bool {
	if u.lower == "" {
		return true
	}
	n := len(s.content)
	for _, w := range s.content {
		if text.ASCII(w) && !strings.Contains(u.lower, w[:min(3, len(w))]) {
			if n--; n*100/len(s.content) < enough {
				return false
			}
		}
	}
	return true
}

// maxPlain is how long a value of a record is, in bytes; a longer one is a text of
// its own, and kept by its sentences.
const maxPlain = 120

// holdsLeaf reports whether a text stands in a value of a record.
func holdsLeaf(record, value string) (found bool) {
	strictjson.Walk([]byte(record), func(_ []string, leaf []byte) bool {
		found = found || len(LeafText(leaf)) <= maxPlain && text.Stands(LeafText(leaf), value, true)
		return !found
	}, nil)
	return found
}

// recordWords are the names and values of a record as words.
func recordWords(record string) string {
	var b strings.Builder
	strictjson.Walk([]byte(record), func(path []string, leaf []byte) bool {
		b.WriteString(strings.Join(text.NameWords(strings.Join(path, " ")), " "))
		b.WriteByte(' ')
		b.WriteString(LeafText(leaf))
		b.WriteString("\n")
		return true
	}, nil)
	return b.String()
}

// LeafText is what a leaf of JSON says: its text, or how it is written.
func LeafText(leaf []byte) string {
	if t, ok := strictjson.Text(leaf); ok {
		return t
	}
	return string(leaf)
}

// Value is what of a unit answers the question: of a record the member that the
// predicate names; of a sentence what is left between its ends without the
// subject, the predicate and what says nothing; the fact itself where it is a part
// of the sentence.
func (s *Fact) Value(u *Unit) string {
	if len(s.Predicate) == 0 {
		return u.Text
	}
	if u.Record {
		out := ""
		strictjson.Walk([]byte(u.Text), func(path []string, leaf []byte) bool {
			names := words.FormsOf(strings.Join(text.NameWords(strings.Join(path, " ")), " "))
			for _, w := range s.Predicate {
				if names.Has(w) && (out == "" || strings.Contains(s.Text, LeafText(leaf))) {
					out = LeafText(leaf)
				}
			}
			return true
		}, nil)
		if out != "" {
			return out
		}
		return s.Text
	}
	if asks := words.FormsOf(s.Text); !slices.ContainsFunc(s.Predicate, asks.Has) && text.Stands(u.Text, s.Text, true) { // the value alone
		return s.Text
	}
	if v := s.said(u.Text); v != "" && text.Stands(u.Text, v, true) {
		return s.named(u.Text, v)
	}
	return u.Text
}

// named is a value with the words of its name that whom or what is asked for has too:
// Room 12 for a meeting room, Marta Rossi for the deputy of Marta Weber. The fact has
// it so, and what is left of the sentence still says whom and what.
func (s *Fact) named(sentence, value string) string {
	asked := slices.Concat(s.Subject, s.Predicate)
	has := words.FormsOf(sentence)
	from := strings.Index(sentence, value)
	to := from + len(value)
	other := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	last := "" // what was taken
	takes := func(word string, lo, hi int) bool {
		is := words.FormsOf(word)
		first, _ := utf8.DecodeRuneInString(word)
		name := last != "" && !unicode.IsLower(first)
		rest := words.FormsOf(sentence[:lo] + " " + sentence[hi:])
		if word == "" || !name && !slices.ContainsFunc(asked, is.Has) || !text.Stands(s.Text, sentence[lo:hi], true) ||
			slices.ContainsFunc(asked, func(w string) bool { return has.Has(w) && !rest.Has(w) }) {
			return false
		}
		last, from, to = word, lo, hi
		return true
	}
	for left := true; left; {
		before := strings.TrimRight(sentence[:from], " ")
		word := before[strings.LastIndexFunc(before, other)+1:]
		left = strings.HasSuffix(sentence[:len(before)-len(word)], " ") || len(word) == len(before)
		left = left && takes(word, len(before)-len(word), to)
	}
	for right := true; right; {
		after := strings.TrimLeft(sentence[to:], " ")
		word := after[:len(after)-len(strings.TrimLeftFunc(after, func(r rune) bool { return !other(r) }))]
		right = takes(word, from, len(sentence)-len(after)+len(word))
	}
	return sentence[from:to]
}

// function reports whether a word is one that every sentence may have.
func function(word string) bool { return len(words.Content(word+" x")) < 2 }

// joining words stand inside of names, passing ones say when something is said, and a
// copula goes on with what stands before a comma.
var (
	copula  = strings.Fields("is are was were ist sind est sont es è é är er это")
	joining = strings.Fields("of the de la le du von van der den da do dos di y und and")
	passing = strings.Fields("now today again also too anymore currently here then")
)

// said is the longest stretch of a sentence of the fact's own words that say
// something and are neither of the subject nor of the predicate, behind the
// predicate if there is one; one with a digit before one without.
func (s *Fact) said(sentence string) string {
	p := picking{sentence: sentence, from: -1}
	fact := words.FormsOf(s.Text)
	says := map[string]bool{}
	for _, w := range words.Content(sentence) {
		says[w] = true
	}
	named := slices.Concat(s.Subject, s.Predicate)
	at := 0
	for _, f := range strings.Fields(sentence) {
		i := at + strings.Index(sentence[at:], f)
		at = i + len(f)
		word := withMark(f)
		if ws := words.Of(word); len(ws) > 0 && !slices.ContainsFunc(ws, func(w string) bool { return w != "s" && !slices.ContainsFunc(named, words.FormsOf(w).Has) }) {
			p.name(i, slices.ContainsFunc(s.Predicate, words.FormsOf(word).Has)) // all of it is named already; printer-7 is more than printer
			continue
		}
		switch j := i + strings.Index(f, word); {
		case s.keeps(word, fact, says):
			if p.from < 0 {
				p.from = j
			}
			p.to = j + len(word)
		case !slices.Contains(joining, strings.ToLower(word)):
			p.end()
		}
		if strings.ContainsRune(",;:", rune(f[len(f)-1])) {
			p.end()
			if p.asked && p.best != "" && f[len(f)-1] != ':' && another(sentence[at:], named) {
				break
			}
		}
	}
	p.end()
	return cmp.Or(p.best, p.before)
}

// keeps reports whether a word of a sentence is one of the fact's own that says something:
// anna@berg.example is no Anna Berg.
func (s *Fact) keeps(word string, fact words.Forms, says map[string]bool) bool {
	ws := words.Of(word)
	return !s.Denies(word) && !slices.Contains(passing, strings.ToLower(word)) &&
		!(strings.Contains(word, "@") && slices.ContainsFunc(ws, func(w string) bool { return !fact.Has(w) })) && slices.ContainsFunc(ws, func(w string) bool {
		return fact.Has(w) && !s.Speaks(w) && (says[w] || slices.ContainsFunc(words.Content(word), func(c string) bool { return says[c] }))
	})
}

// picking picks the stretch of a sentence that answers: the one that is open, from an offset, the
// best behind the predicate, and the best before it.
type picking struct {
	sentence, best, before string
	from, to               int
	asked                  bool
}

// name takes in a word at an offset that whom or what is asked for has.
func (p *picking) name(at int, predicate bool) {
	if p.best != "" && p.from >= 0 && p.to == at-1 && !strings.ContainsFunc(p.sentence[p.from:p.to], named) {
		p.from = -1 // soy is my new allergy
	}
	p.end()
	if p.asked = p.asked || predicate; predicate && p.best != "" {
		p.before, p.best = p.best, ""
	}
}

func (p *picking) end() {
	if p.from >= 0 {
		v := p.sentence[p.from:p.to]
		if strings.HasPrefix(p.sentence[p.to:], ")") && strings.Count(v, "(") > strings.Count(v, ")") {
			v = p.sentence[p.from : p.to+1]
		}
		if better(v, p.best) {
			p.best = v
		}
	}
	p.from = -1
}

// named reports whether a character is of a name or a number.
func named(r rune) bool { return unicode.IsUpper(r) || unicode.IsNumber(r) }

// another reports whether what follows a comma is said of something else: it goes on with no verb,
// and names nothing of what is asked for.
func another(rest string, named []string) bool {
	ws := words.Of(rest)
	return len(ws) > 0 && !slices.Contains(copula, ws[0]) && !slices.ContainsFunc(named, words.FormsOf(rest).Has)
}

// better reports whether a stretch answers rather than another: one with a digit, or else the longer.
func better(v, than string) bool {
	digit, had := strings.ContainsFunc(v, unicode.IsNumber), strings.ContainsFunc(than, unicode.IsNumber)
	return digit && !had || len(v) >= len(than) && (digit || !had)
}

// withMark is a word without what stands around it, but for a mark that makes it another: O- is not O.
func withMark(field string) string {
	word := strings.TrimFunc(field, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsSymbol(r) && r != '+' && r != '/'
	})
	from := strings.Index(field, word)
	if end := from + len(word); word != "" && end < len(field) && strings.IndexByte("-#", field[end]) >= 0 {
		return field[from : end+1]
	}
	return word
}
