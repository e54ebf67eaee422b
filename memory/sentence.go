package memory

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/quote"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/internal/words"
)

// What a sentence says is read from its words alone, and where they leave a doubt
// it says nothing: it is kept as it stands, and answers no question.

// sentences takes the words of an observation apart.
func (w *witness) sentences() {
	raw := w.ob.Raw
	ends := w.ob.Whole || w.ob.Between || w.ob.Evidence == ""
	ps := quote.Pieces(raw)
	for i, p := range ps {
		w.units = append(w.units, unit{text: p.Of(raw), at: p.From, from: p.From, to: p.To, whole: ends || i > 0 && i < len(ps)-1})
	}
	for i := range w.units {
		u := &w.units[i]
		if i > 0 && !quote.Ended(w.units[i-1].text) { // it goes on with the line before
			u.from = max(w.units[i-1].from, u.at-maxContext)
			for u.from < u.at && !utf8.RuneStart(raw[u.from]) {
				u.from++
			}
		}
		for j := i + 1; j < len(w.units) && u.to-u.at < maxContext && !quote.Ended(w.units[j-1].text); j++ {
			if r, _ := utf8.DecodeRuneInString(w.units[j].text); !unicode.IsLower(r) {
				break
			}
			u.to = w.units[j].at + len(w.units[j].text)
		}
	}
}

// maxSpoken bounds what is taken for a sentence that says something, in bytes.
const maxSpoken = 2000

// maxContext is how much of the lines that a sentence continues is looked at, in
// bytes.
const maxContext = 600

// parts are the stretches of a sentence between full stops, and where each begins
// in the observation. No rule for the ends of sentences knows every short form, so
// a stop ends one here but behind a title, behind the number of a day and inside of
// what is named.
func (u *unit) parts(named []string) (out []unit) {
	shadow := []byte(u.text)
	for _, n := range named {
		if !strings.ContainsAny(n, ".!?…") {
			continue
		}
		for at := 0; ; {
			i := strings.Index(u.text[at:], n)
			if i < 0 {
				break
			}
			for j := range len(n) {
				shadow[at+i+j] = 'x'
			}
			at += i + len(n)
		}
	}
	at := 0
	for _, m := range stop().FindAllIndex(shadow, -1) {
		if title().Match(shadow[:m[0]+1]) || quote.InDate(u.text[:m[0]+1], u.text[m[1]:]) {
			continue
		}
		out = append(out, unit{text: u.text[at:m[1]], at: u.at + at, whole: u.whole})
		at = m[1]
	}
	return append(out, unit{text: u.text[at:], at: u.at + at, whole: u.whole})
}

var (
	stop  = text.Pattern(`[.!?…][\p{Pe}\p{Pf}\pS"'*_]*\s+`)
	title = text.Pattern(`(?i)(^|[^\pL])(dr|mr|mrs|ms|prof|mme|sra|herr|frau|señor|señora)\.$`)
)

// A span of a text, by its bytes.
type span struct{ from, to int }

func (a span) meets(b span) bool { return a.from < b.to && b.from < a.to }

// quotedIn are the stretches of a text that somebody else may have said: from the
// first mark of quotation to the last one, all of it where marks are left over,
// and lines that mail programs mark. What is struck out is among them. A mark does
// not count beside a value that is all that is quoted.
func quotedIn(s, value string) (out []span) {
	for _, m := range mailed().FindAllStringIndex(s, -1) {
		out = append(out, span{m[0], m[1]})
	}
	if value != "" && strings.Contains(s, value) {
		whole := regexp.MustCompile(`["“”„‟«»‹›「」『』＂'‘’‚‛` + "`" + `´]` + regexp.QuoteMeta(value) + `[.,]?["“”„‟«»‹›「」『』＂'‘’‛` + "`" + `´]`)
		s = whole.ReplaceAllStringFunc(s, func(q string) string { return strings.Repeat(" ", len(q)) })
	}
	if !strings.ContainsAny(s, "\"“”„‟＂«»‹›「」『』〝〞~'‘’‚‛`´＇") {
		return out
	}
	var at [6][]mark
	for i, r := range s {
		class := slices.IndexFunc(marks, func(c string) bool { return strings.ContainsRune(c, r) })
		if class < 0 {
			continue
		}
		opened := slices.ContainsFunc(at[class], func(m mark) bool { return m.opens })
		if m, ok := markAt(s, i, r, class, opened); ok {
			at[class] = append(at[class], m)
		}
	}
	for class, ms := range at {
		if len(ms) == 0 {
			continue
		}
		q := span{ms[0].from, ms[len(ms)-1].to}
		odd := len(ms)%2 > 0
		if class == single {
			odd = len(ms) == 1
		}
		if odd || ms[0].closes {
			q.from = 0
		}
		if odd || ms[len(ms)-1].opens {
			q.to = len(s)
		}
		out = append(out, q)
	}
	return out
}

type mark struct {
	span
	opens, closes bool
}

// marks are those of quotation by what goes together, and last those that may be
// apostrophes.
var marks = []string{"\"“”„‟＂〝〞", "«»", "「」『』", "‹›", "~", "'‘’‚‛`´ʼ＇"}

const single = 5

// markAt is the mark at an offset, not ok where it is an apostrophe or goes with the one
// before it. opened says that one of its class opens before it.
func markAt(s string, i int, r rune, class int, opened bool) (m mark, ok bool) {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	end := i + utf8.RuneLen(r)
	after, _ := utf8.DecodeRuneInString(s[end:])
	m = mark{span: span{i, end}, opens: !closing(before), closes: closing(before) && !text.Alphanumeric(after)}
	switch {
	case before == r && class != 2, r == '~' && after != '~': // of a run the first
		return m, false
	case class == 2: // 「 and 」 have one side
		m.opens = strings.ContainsRune("「『", r)
		m.closes = !m.opens
	case class == single:
		return m, !(text.Alphanumeric(before) && text.Alphanumeric(after) || // an apostrophe
			m.opens && elided().MatchString(s[end:]) ||
			m.closes && unicode.IsLetter(before) && !opened) // of a possessive, or of what is left out
	}
	return m, true
}

// closing reports whether a mark behind r can close what it marks.
func closing(r rune) bool {
	return r != utf8.RuneError && !unicode.IsSpace(r) && !unicode.Is(unicode.Ps, r) && !unicode.Is(unicode.Pd, r) && !strings.ContainsRune(":=/*_", r)
}

var (
	mailed = text.Pattern(`(?m)^[ \t]*>.*(\n|$)`)
	elided = text.Pattern(`(?i)^(n|em|tis|twas|til|cause|bout|[0-9]0s)([^\pL\pN]|$)`)
)

// said is a sentence that may answer a question: the part of it that holds all
// that must be there, and what is around that.
type said struct {
	part   unit
	around string // the sentence with the lines it continues, and those it goes on in
	value  string
	at     int      // where in around the value stands
	begins int      // where in around the sentence does
	named  []string // the subject
}

// placed is where a value stands in a text, between what is no letter and no
// number, -1 for nowhere.
func placed(s, value string) int {
	for _, f := range []func(string) string{func(s string) string { return s }, spelled} {
		s, value := f(s), f(value)
		for at := 0; ; {
			i := strings.Index(s[at:], value)
			if i < 0 {
				break
			}
			i += at
			before, _ := utf8.DecodeLastRuneInString(s[:i])
			after, _ := utf8.DecodeRuneInString(s[i+len(value):])
			if (!text.Alphanumeric(before) || text.Spaceless(before)) && (!text.Alphanumeric(after) || text.Spaceless(after) || unicode.IsNumber(rune(value[len(value)-1]))) {
				return i
			}
			at = i + max(1, len(value))
		}
	}
	return -1
}

// affirmed reports whether nothing in a sentence and around it denies what it
// says, doubts it, tells it of somebody else or asks: but for what is asked for,
// and for a denial that a but turns before the value.
func (t *said) affirmed(asked []string) bool {
	before, after := t.around[:t.at], t.around[t.at+len(t.value):]
	if m := request().FindStringIndex(t.around[t.begins:]); m != nil && t.begins+m[1] <= t.at {
		before = t.around[t.begins+m[1] : t.at]
		after = strings.TrimRightFunc(after, func(r rune) bool { return !text.Alphanumeric(r) })
	}
	before, after = addresses().ReplaceAllString(before, " "), addresses().ReplaceAllString(after, " ")
	if questions().MatchString(before+" "+after) || unsaid().MatchString(t.around) {
		return false
	}
	if t.part.text != "" && t.inverted() {
		return false
	}
	for w := range strings.FieldsSeq(t.value) { // a value that denies says nothing either
		r, _ := utf8.DecodeRuneInString(w)
		if name := unicode.IsUpper(r) && !strings.HasPrefix(strings.TrimLeft(t.part.text, "\"“ "), w); !name && len(words.Of(w)) == 1 && denies(w, asked) >= 0 {
			return false
		}
	}
	before, after = t.without(answered().ReplaceAllString(before, "$1")), t.without(after)
	if denies(after, asked) >= 0 && !t.rival(after) {
		return false
	}
	last := denies(before, asked)
	return last < 0 || slices.ContainsFunc(clauseStart().FindAllStringIndex(before, -1), func(m []int) bool {
		return m[1] > last && slices.Contains(turning, strings.ToLower(letters().FindString(before[m[1]:])))
	})
}

// inverted reports whether a sentence begins as a question does, with a mark at its
// end or without.
func (t *said) inverted() bool {
	ws := words.Of(plain(t.part.text))
	for len(ws) > 0 && in("opening", ws[0]) {
		ws = ws[1:]
	}
	return len(ws) > 0 && in("asks", ws[0]) && !request().MatchString(t.part.text) && !slices.ContainsFunc(append(t.named, t.value), func(n string) bool {
		in := words.Of(n)
		return len(in) > 0 && in[0] == ws[0]
	})
}

// without is a text without the value and without whom it is about: a name denies
// nothing.
func (t *said) without(s string) string {
	for _, n := range append([]string{t.value}, t.named...) {
		if n != "" {
			s = strings.ReplaceAll(s, n, " ")
		}
	}
	return plain(s)
}

// rival reports whether all that is denied behind a value is another one: DE11,
// not DE97.
func (t *said) rival(after string) bool {
	m := denied().FindStringSubmatch(after)
	if m == nil {
		return false
	}
	for w := range strings.FieldsSeq(m[1]) {
		r, _ := utf8.DecodeRuneInString(w)
		of, _ := utf8.DecodeRuneInString(t.value)
		if !unicode.IsUpper(r) && !unicode.IsNumber(r) || unicode.IsLower(of) {
			return false
		}
	}
	return strings.ContainsFunc(m[1], unicode.IsNumber) == strings.ContainsFunc(t.value, unicode.IsNumber)
}

var (
	questions = text.Pattern(`[?？؟՞⁇⁈⁉‽¿]`)
	addresses = text.Pattern(`\S+(?:://|@)\S+[\pL\pN/]`)
	// Boxes that nobody has ticked, what says that it is not meant, asks behind it, wishes,
	// takes out, or tells that it is no more.
	unsaid = text.Pattern(`(?i)\[\s*\]|☐|(^|\s)/s(\W|$)|<(del|s|strike)>|,\s*(right|correct|huh|eh|yes|no|oder|nicht wahr|gell|verdad|vero|toch|hein|né)\W*$|` +
		`(^|\W)(in case [^o]|i['’]?d (love|like|prefer) to (live|move|work|have|own|drive|get|buy|study) |(all|(any|every)(thing|one|body)) but |(apart|aside) from |other than |(quit|lost|sold|cancelled|canceled|outgrew|got rid of|gave up) (my|our|his|her|their)\W)`)
	answered    = text.Pattern(`(?im)(^|[.!?]\s+)(?:(?:no|nein|non|nej|nei|nee|não|нет)[.,!]\s+)+`)
	clauseStart = text.Pattern(`^\s*|[,;:]\s+|\s+[-\x{2013}\x{2014}]\s+`)
	denied      = text.Pattern(`^\s*,?\s*(?:` + ands + `\s+)?(?:not|nicht|pas|no|non|não|niet|inte|ikke|не)\s+(\S+(?:\s\S+){0,2}?)[.!]?\s*$`)
	turning     = []string{"but", "rather", "instead", "sondern", "aber", "mais", "sino", "pero", "ma", "bensì", "mas", "maar", "men", "utan", "а", "но"}
)

// denies is where in a text the last word stands that denies something, doubts it
// or tells it of somebody else, -1 for nowhere. Those that are asked for do not.
func denies(s string, asked []string) int {
	last, was := -1, ""
	if !slices.ContainsFunc(words.Of(s), func(w string) bool { return in("doubts", w) }) {
		return last
	}
	for _, m := range letters().FindAllStringIndex(s, -1) {
		for _, w := range words.Of(s[m[0]:m[1]]) {
			switch {
			case in("deny", w) && !slices.Contains(asked, w),
				was != "" && matches(asked, w) && !matches(asked, was): // my old account, of an account
				last = m[0]
			}
			if was = ""; in("was", w) {
				was = w
			}
		}
	}
	return last
}

// plain is a text with its apostrophes as one character, and what is written with
// one as words of their own: isn't is is not, and j'ai je ai.
func plain(s string) string {
	s = apostrophes.Replace(strings.Map(func(r rune) rune {
		if text.Hidden(r, text.Ignorable) {
			return -1
		}
		return r
	}, s))
	if strings.IndexByte(s, '\'') < 0 {
		return s
	}
	s = nots().ReplaceAllString(s, "$1 not")
	return elisions().ReplaceAllString(s, "$1${2}e ")
}

var (
	apostrophes = strings.NewReplacer("´", "'", "`", "'", "ʼ", "'", "＇", "'", "’", "'", "‘", "'", "ʹ", "'", "′", "'", "‛", "'")
	nots        = text.Pattern(`(?i)([\pL])n't\b`)
	elisions    = text.Pattern(`(?i)(^|[^\pL])([jn])'`)
)
