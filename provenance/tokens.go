package provenance

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"golang.org/x/text/unicode/norm"
)

// span is a run of bytes.
type span struct{ start, end int }

// reading is a text and its tokens.
type reading struct {
	text   string
	starts map[string][]int // where a token may begin, by its first bytes
	end    []bool           // where one may end
	hash   map[int]bool     // of the starts, those after a #: only with a word before it
	typed  map[string][]span
	parts  []partSaid // of the user's own words
	tokens int
}

// headLength is how many bytes of a token its start is filed under.
const headLength = 3

// read finds the tokens of a text.
func read(text string) reading {
	r := reading{text: text, starts: map[string][]int{}, end: make([]bool, len(text)+1), hash: map[int]bool{}, typed: map[string][]span{}}
	for i := range len(text) + 1 {
		r.end[i] = i > 0 && endsAt(text, i)
	}
	word := 0 // the end of the word that i is in
	for i, c := range text {
		if blank(c) {
			continue
		}
		if i >= word {
			if word = strings.IndexFunc(text[i:], blank) + i; word < i {
				word = len(text)
			}
		}
		switch {
		case beginsAt(text, i):
			r.tokens++
		case i > 0 && text[i-1] == '#' && beginsAt(text, i-1):
			r.hash[i] = true
		default:
			continue
		}
		for n := 1; n <= headLength && i+n <= len(text); n++ {
			if n == headLength || r.end[i+n] {
				r.starts[text[i:i+n]] = append(r.starts[text[i:i+n]], i)
			}
		}
		r.spell(i, min(word, i+longWord))
	}
	return r
}

// spell files the typed readings of the tokens that begin at i, in a word that
// ends at end.
func (r *reading) spell(i, end int) {
	word := r.text[i:end]
	if c, _ := utf8.DecodeRuneInString(word); isMark(c) {
		return // nothing of a type begins so
	}
	tries := 0
	for n := 1; n <= len(word) && tries < 16; n++ {
		if !r.end[i+n] {
			continue
		}
		tries++
		w := word[:n]
		for _, t := range formsOf(w) {
			r.file(t, i, i+n)
		}
		if !norm.NFC.IsNormalString(w) {
			r.file(ID, i, i+n)
		}
	}
	// Written in groups, the words that follow belong to it.
	if ibanStart().MatchString(word) {
		r.groups(IBAN, i, " 0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	} else if word[0] == '+' {
		r.groups(Phone, i, "0123456789 -.()")
	}
}

// file files a stretch under its form, if it is of a type.
func (r *reading) file(t Type, from, to int) {
	if c, _, why := Canonical(t, strictjson.StringOf(r.text[from:to])); why == "" {
		k := string(t) + "\x00" + c
		r.typed[k] = append(r.typed[k], span{from, to})
	}
}

// formsOf are the types of which a word may be.
func formsOf(w string) []Type {
	switch {
	case strings.Contains(w, "://"):
		return []Type{URL}
	case strings.Contains(w, "@"):
		return []Type{Email}
	case w[0] == '/':
		return []Type{Path}
	case startsDigit(w) || w[0] == '-':
		return []Type{Integer, Decimal, Time, Host}
	case strings.Contains(w, "."):
		return []Type{Host}
	}
	return nil
}

// groups files what begins at i and is made of some characters, up to each end of a token.
func (r *reading) groups(t Type, i int, of string) {
	for n := 1; i+n <= len(r.text) && n < 48; n++ {
		rest := r.text[i+n:]
		stops := strings.HasPrefix(rest, ". ")
		if n > 8 && r.end[i+n] {
			// Of a number in groups a part is another number.
			if t != Phone || stops || !strings.Contains(r.text[i:i+n], " ") || !startsDigit(strings.TrimLeft(rest, " -.()")) {
				r.file(t, i, i+n)
			}
			if stops {
				return
			}
		}
		if rest != "" && !strings.Contains(of, rest[:1]) {
			return
		}
	}
}

func startsDigit(s string) bool { return s != "" && isNumeral(s[0]) }

// longWord bounds how much of a word without white space is read by its type.
const longWord = 2048

var ibanStart = text.Pattern(`^[A-Za-z]{2}[0-9]{2}`)

// find looks for a value: its bytes between two ends of tokens, or a token of
// that typed form. bare says that it stands there, but of small space and
// without a word before it. What says whom or what an act is for does not end in the
// stop that ends the sentence. What has to be ordered, or is of small space, is looked at mostSaid times.
func (r *reading) find(q *Query, text, typed string, words []string, named, small bool) (s span, found, bare bool) {
	looks := 0
	counts := func(at span) bool {
		if looks++; looks > mostSaid && (q.isOrdered != nil || small || q.Within) || q.isOrdered != nil && !q.isOrdered(at) {
			return false
		}
		if q.Authority && (r.closes(at) || r.cuts(at) || r.partial(at, words)) || slices.ContainsFunc(q.longer, func(name string) bool { return r.within(at, name) }) {
			return false
		}
		if _, said := r.calledAt(at.start, words, true); !said && (r.hash[at.start] || small || !wordAt(r.text, at.start)) || !r.aims(q, at, words, small) {
			bare = bare || small && !r.hash[at.start]
			return false
		}
		return !named || r.apart(at, words) || NounOf(r.text, at.start, at.end, words) || q.Proper && r.properName(at)
	}
	for at := range r.holding(text, typed) {
		if counts(at) {
			return at, true, false
		}
	}
	return s, false, bare
}

// holding yields where a value stands: its bytes between two ends of tokens, then the tokens of
// its typed form.
func (r *reading) holding(text, typed string) iter.Seq[span] {
	return func(yield func(span) bool) {
		if text != "" {
			for _, i := range r.starts[head(text)] {
				if e := i + len(text); strings.HasPrefix(r.text[i:], text) && r.end[e] && !yield(span{i, e}) {
					return
				}
			}
		}
		for _, at := range r.typed[typed] { // none of no form
			if !yield(at) {
				return
			}
		}
	}
}

// head is what the start of a token is filed under.
func head(text string) string { return text[:min(len(text), headLength)] }

// within reports whether a stretch is a part of a longer name that stands there.
func (r *reading) within(at span, name string) bool {
	word := r.text[at.start:at.end]
	for n := 0; n+len(word) <= len(name); n++ {
		from := at.start - n
		if to := from + len(name); strings.EqualFold(name[n:n+len(word)], word) && from >= 0 && to <= len(r.text) && strings.EqualFold(r.text[from:to], name) {
			return true
		}
	}
	return false
}

// cuts reports whether a stretch is the first words of a path that stands in quotation marks
// for the blanks in it: "/srv/my" is another directory than "/srv/my files".
func (r *reading) cuts(at span) bool {
	mark, _ := utf8.DecodeLastRuneInString(r.text[:at.start])
	line, _, _ := strings.Cut(r.text[at.end:], "\n")
	return strings.ContainsRune(quotes, mark) && pathBegins().MatchString(r.text[at.start:at.end]) && strings.HasPrefix(line, " ") && strings.ContainsAny(line, quotes)
}

var pathBegins = text.Pattern(`^(?:[/\\~]|\.\.?[/\\]|[A-Za-z]:[/\\])`)

// Numbered is the sign that says of the number behind it what it is, where a contract has it
// among an argument's words: "#31".
const Numbered = "#"

// called reports whether one of the words stands directly before i.
func (r *reading) called(i int, words []string) bool {
	_, ok := r.calledAt(i, words, false)
	return ok
}

// calledAt is called, and where that word begins. Where one of them is several words they say
// what is ordered, and count where that is meant: not in "don't merge PR 7". One of two parts,
// "scale … to", says so of itself alone.
// A number that says which one may be one of a list ("issues 41 and 42"), and is no number of things (NumberOf):
// amounts are none of these.
func (r *reading) calledAt(i int, words []string, which bool) (at int, ok bool) {
	start, number := i, startsDigit(r.text[i:])
	if OrdersIt(r.text, start, words) || OrdersInside(r.text, start, words) {
		return start, true
	}
	if r.hash[i] {
		i--
		if slices.Contains(words, Numbered) {
			return i, true
		}
	}
	if q, n := utf8.DecodeLastRuneInString(r.text[:i]); isMark(q) && beginsAt(r.text, i-n) {
		i -= n // "ID '13'"
	}
	before := strings.TrimRight(r.text[:i], " \t")
	if assigned(r.text, i) {
		before = r.text[:i-1] // "ID=13"
	} else if len(before) == i {
		return 0, false
	}
	before = strings.TrimSuffix(before, ":") // "branch: main"
	whole := before
	which = which && number
	if which {
		near := max(0, len(before)-longestList)
		before = before[:near] + withoutOthers(before[near:])
	}
	if len(before) < len(whole) && !ListEnds(whole[len(before):], r.text, start) {
		return 0, false // "issue 5 and 2 others"
	}
	order, led, at, end := SayOrders(words), whole, 0, 0
	if number {
		at, end = PlaceBefore(before + r.text[len(whole):start])
	} else {
		led = ToName(r.text[:start])
	}
	for _, w := range words {
		if at, ok := turnedTo(whole, led, r.text, w, number); ok {
			return at, true
		}
		if w == "" || w == Numbered {
			continue
		}
		at, end, is := endsIn(before, w, at, end)
		if !is && order {
			at, end, is = endsIn(led, w, 0, 0)
		}
		if is && wordAt(r.text, at) && (!order || Means(r.text, at, end)) && (!which || order || NumberOf(r.text, at, end, start)) {
			return at, true
		}
	}
	return 0, false
}

// endsIn returns where a word stands at the end of a text, with a place at its bytes [from, to) between its parts or behind it.
func endsIn(text, word string, from, to int) (start, end int, is bool) {
	start = len(text) - len(word)
	if start >= 0 && strings.EqualFold(text[start:], word) {
		return start, len(text), true
	}
	if from == to || to > len(text) {
		return 0, 0, false
	}
	_, noun, _ := strings.Cut(text[to:], " ")
	joined := strings.TrimRight(strings.TrimRight(text[:from], " \t")+" "+noun, " ")
	start = len(joined) - len(word)
	return start, len(text), start >= 0 && strings.EqualFold(joined[start:], word)
}

// NumberOf reports whether a number that begins at start may be one that the word before it, the bytes [at, end) of a
// text, says it is of: behind a verb where that is an order which is meant, and behind it and what cites one where no
// more follows. "Close 2 issues" and "see 37 failures" are of none.
func NumberOf(text string, at, end, start int) bool {
	word := lower(text[at:end])
	cites := word == "see" || strings.HasSuffix(word, " of")
	verb := timeless()[word] && !cites
	return !verb && !cites || (!verb || Means(text, at, end)) && NumberEnds(text, start, []string{word})
}

// ListEnds reports whether numbers, and those that a text goes on with, are a list of which nothing is said that counts:
// "41, 42 and 43", and not "41, 42", which may be anything.
func ListEnds(before, text string, start int) bool {
	return joint().MatchString(before+" "+numbers().FindString(listIn(text[start:]))) && NumberEnds(text, start, nil)
}

var joint = text.Pattern(`(?i)[ \t](?:and|und|y|et|e|&|\+)[ \t]`)

// longestList is how far the numbers of a list are looked for: every number of a turn can be one of one.
const longestList = 200

// listIn is what of a text a list that it begins with is looked for in.
func listIn(text string) string { return text[:min(len(text), longestList)] }

// withoutOthers is what stands before the other numbers of a list, and a word for two of them. Most numbers have none.
func withoutOthers(before string) string {
	word := before[strings.LastIndexAny(before, " \t")+1:]
	if !strings.HasSuffix(word, ",") && !adding[lower(word)] {
		return before
	}
	return otherNumbers().ReplaceAllString(before, "")
}

var adding = wordSet("both and und y et e & +")

// otherNumbers are those of a list before its last one, and what says that there are two.
var otherNumbers = text.Pattern(`(?i)(?:[ \t]+both)?(?:[ \t]+#?[0-9]+(?:,|,?[ \t]+(?:and|und|y|et|e|&|\+)))*$`)

// behindNumbers is the word behind those that a text begins with.
func behindNumbers(text string) string {
	word, _, _ := strings.Cut(strings.TrimLeft(numbers().ReplaceAllString(listIn(text), ""), " \t"), " ")
	return word
}

// SayOrders reports whether words before a value say what is ordered: one of them is several,
// "merge pr", which do not end in what leads to a name, "duplicate of".
func SayOrders(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return strings.Contains(w, " ") && !strings.Contains(w, " … ") && !strings.HasSuffix(w, " of")
	})
}

// aims reports whether a stretch, where it is a number, is all that an order of such words is of, and
// is where the call is done.
func (r *reading) aims(q *Query, at span, words []string, small bool) bool {
	return (!small || !SayOrders(words) || NumberEnds(r.text, at.start, words)) && (len(q.Aim.Places) == 0 || q.Aim.Meets(r.text, at.start))
}

// NumberEnds reports whether what begins at a place of a text is no number, or one that is all that
// an order before it is of: "50" in "approve 50 in acme/parser", not in "approve 50 dollars". Of a
// thing is one with what it is before it, "PR 50 of parser"; "50 of the PRs" are some. A list ends as its
// last one does: "merge 2 and 3 PRs" orders none of these.
func NumberEnds(text string, start int, words []string) bool {
	if !startsDigit(text[start:]) && !withPlace().MatchString(text[start:valueEnd(text, start)]) || endsOrder(text[start:], false) {
		return true
	}
	before := strings.Fields(withoutOthers(strings.TrimRight(text[max(0, start-longestList):start], " \t")))
	verb := len(before) > 0 && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, before[len(before)-1]) })
	return !verb && (numberOf().MatchString(text[start:]) || being[bare(behindNumbers(text[start:]))] || OrdersIt(text, start, words))
}

var numberOf = text.Pattern(`(?i)^[0-9]+[ \t]+(?:of|von|aus|de|di)[ \t]`)

// isInteger reports whether a value is an integer, or its digits.
func isInteger(v strictjson.Value) bool {
	_, _, why := Canonical(Integer, v)
	return why == ""
}

// turnedTo reports whether a text that goes on in another ends in the second part of a word of
// two, "scale … to", led without what leads to a name, whose first begins an order that is meant, with what
// stands behind the value too, and where: no clause ends between them, nor do more than a few words stand there. Of a number
// none of these is one.
func turnedTo(before, led, text, word string, number bool) (at int, ok bool) {
	head, tail, is := strings.Cut(word, " … ")
	value := len(before)
	if end := len(led) - len(tail); is && end > 0 && strings.EqualFold(led[end:], tail) {
		before = led
	}
	end := len(before) - len(tail)
	if !is || end < 1 || !strings.EqualFold(before[end:], tail) || !isBlank(before[end-1]) {
		return 0, false
	}
	clause := lastClause(before[max(0, end-longestOrder):end])
	for i := len(clause) - 1; i >= 0; i-- {
		at = end - len(clause) + i
		if n := spells(clause[i:], head); n > 0 && wordAt(text, at) && isBlank(clause[i+n]) && standsWithin(clause[i+n:], number) && !LeadsAway(clause[i+n:], tail) &&
			Means(text, at, at+n) && Means(text, at, valueEnd(text, value)) && StandsAlone(text, value) {
			return at, true
		}
	}
	return 0, false
}

// ToName is a text without what may stand before a name and says no more of it, "put it into the file", "to me, I'm".
func ToName(before string) string {
	before = strings.TrimRight(before, " \t"+quotes)
	near := max(0, len(before)-longestToName)
	return strings.TrimRight(before[:len(before)-len(leadToName().FindString(before[near:]))], " \t")
}

const longestToName = 64

var leadToName = text.Pattern(`(?i)(?:(?:[ \t]+[\pL\pN_.-]+/[\pL\pN_.-]+(?:['’]s)?)?(?:[ \t]+(?:the|our|my|an?|der|die|das|den|dem|eine?|le|la|une?|el|una?|il|lo|o|um|het|de|een))?(?:[ \t]+(?:new|neue|nouveau|nuevo|nuovo|novo|nieuwe?))?(?:[ \t]+(?:file|Datei|fichier|archivo|fichero|arquivo|bestand))?|` +
	`[ \t]+me(?:[ \t]*\(|[,;]?[ \t]+(?:i['’]?m|i[ \t]+am|my[ \t]+(?:user[ -]?name|login|handle|account)[ \t]+is)))$`)

// lastClause is the clause that a text ends in. What stands within a word ends none, as in "main.go".
func lastClause(text string) string {
	from := 0
	for i, r := range text {
		behind := i + utf8.RuneLen(r)
		next, _ := utf8.DecodeRuneInString(text[min(behind, len(text)):])
		if r == '\n' || r == 0 || isBreak(r) && (!strings.ContainsRune(stops, r) || blank(next)) {
			from = behind
		}
	}
	return text[from:]
}

// standsWithin reports whether some words may stand between the parts of such a word.
func standsWithin(text string, number bool) bool {
	words := strings.Fields(text)
	return len(words) <= mostBetween && !(number && slices.ContainsFunc(words, startsDigit)) && strings.Count(text, "(") == strings.Count(text, ")")
}

// StandsAlone reports whether the word behind a place in a text is a name by how it is written, or nothing stands behind
// it that says of what else it is: "to main", not "to the main page".
func StandsAlone(text string, at int) bool {
	end := valueEnd(text, at)
	rest := strings.TrimLeft(text[end:], " \t")
	next, _ := utf8.DecodeRuneInString(rest)
	if word, _, _ := strings.Cut(rest, " "); threads[bare(word)] && len(rest) < len(text[end:]) {
		return false // "from README.md issue"
	}
	return strings.ContainsAny(text[at:end], nameSigns+quotes) || !unicode.IsLower(next) || len(rest) == len(text[end:]) || NameEnds(text, end) || followsName(rest)
}

// followsName reports whether a sentence goes on with a text behind all that is named.
func followsName(rest string) bool {
	word, _, _ := strings.Cut(rest, " ")
	w := bare(word)
	return placing[w] || courteous[w] || goesWith[w] || reasons[w] || joining[w] || nameKinds[w]
}

// threads are words behind a name for what is written about it.
var threads = wordSet("issue issues pr prs ticket tickets comment comments label labels discussion thread")

// nameKinds are words behind a name that say what it is of, and those that lead to what it is in.
var nameKinds = wordSet("branch org organization organisation repo repository channel team project group account user of from for that which von des du de del di da do van")

// valueEnd is where the word ends that stands behind a place in a text, without what ends a clause.
func valueEnd(text string, at int) int {
	rest := strings.TrimLeft(text[at:], " \t"+quotes)
	at = len(text) - len(rest)
	if i := strings.IndexFunc(rest, blank); i >= 0 {
		rest = rest[:i]
	}
	return at + len(strings.TrimRight(rest, stops+quotes+brackets))
}

// counts reports whether one of the units stands directly behind i, where a number ends.
func (r *reading) counts(i int, units []string) bool {
	rest := strings.TrimLeft(r.text[i:], " \t")
	at := len(r.text) - len(rest)
	return at > i && slices.ContainsFunc(units, func(u string) bool {
		return len(u) <= len(rest) && strings.EqualFold(rest[:len(u)], u) && r.end[at+len(u)]
	})
}

// blank is white space, and what blots out text that is not read.
func blank(r rune) bool { return r == 0 || unicode.IsSpace(r) }

const (
	quotes   = "\"'`´“”„‟‘’‚‛«»‹›"
	brackets = "()[]{}<>"
	stops    = ",.;:!?"
)

func isMark(r rune) bool  { return strings.ContainsRune(quotes+brackets, r) }
func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

// beginsAt reports whether a token may begin at i: where a word may, or behind one that it
// is given to ("ID=13", "id='13'"). Such a one counts only where that word says what it is,
// as in "ID 13": a line of a log is full of others, and who wrote into it is not the user.
func beginsAt(text string, i int) bool {
	if wordAt(text, i) {
		return true
	}
	r, n := utf8.DecodeLastRuneInString(text[:i])
	return assigned(text, i) || isMark(r) && assigned(text, i-n)
}

// wordAt reports whether a word may begin at i: at the text's begin, after white space, or
// after a quote or bracket that is not itself inside a word.
func wordAt(text string, i int) bool {
	if i == 0 {
		return true
	}
	r, n := utf8.DecodeLastRuneInString(text[:i])
	if blank(r) {
		return true
	}
	if !isMark(r) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(text[:i-n])
	return i-n == 0 || blank(before) || isMark(before) || strings.ContainsRune(stops, before)
}

// endsAt reports whether a token may end at i: at the text's end, before white
// space, before a quote or bracket that is not itself inside a word, or before a
// stop, or several marks of a call or a question, that white space or the text's end
// follows. Several full stops are none: they may stand for the rest of a name.
func endsAt(text string, i int) bool {
	if i == len(text) {
		return true
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	if blank(r) {
		return true
	}
	if r == '!' || r == '?' {
		n = len(text[i:]) - len(strings.TrimLeft(text[i:], "!?")) // "main!!", "main?!"
	}
	after, _ := utf8.DecodeRuneInString(text[i+n:])
	last := i+n == len(text) || blank(after)
	if strings.ContainsRune(stops, r) {
		return last
	}
	return isMark(r) && (last || isMark(after) || strings.ContainsRune(stops, after) || PossessiveAt(text, i))
}

// PossessiveAt reports whether a place in a text is behind the name of a repository whose something is spoken of:
// "acme/parser's README". Of a person, or a file, it is another thing that is named.
func PossessiveAt(text string, i int) bool {
	rest := strings.TrimPrefix(strings.TrimPrefix(text[i:], "'"), "’")
	if len(rest) == len(text)-i || !strings.HasPrefix(rest, "s ") {
		return false
	}
	name := text[strings.LastIndexFunc(text[:i], blank)+1 : i]
	return strings.Count(name, "/") == 1 && !isFile(name) && !strings.ContainsAny(name[:1], "/~.")
}

// What a user gives a value to says what it is (R6): "ID=card_1".

// assigned reports whether a word and the sign that gives it a value end at i. A link's
// parameter is none: there more than a word stands before the sign. Of several in a row,
// with nothing but blanks between them, none is: so a program writes a line of its log,
// in which a stranger chose some of the values.
func assigned(text string, i int) bool {
	word, is := strings.CutSuffix(text[:i], "=")
	if !is {
		return false
	}
	from := len(strings.TrimRightFunc(word, func(r rune) bool { return unicode.IsLetter(r) || r == '_' }))
	return from < len(word) && len(word)-from <= longestKey && wordAt(word, from) && !pairBefore(text[:from]) && !pairBehind(text[i:])
}

// pairBefore reports whether a text ends in a pair and blanks: key=value, or key="some words".
func pairBefore(text string) bool {
	s := strings.TrimRight(text, " \t")
	if len(s) == len(text) || s == "" {
		return false
	}
	if open, quoted := strings.CutSuffix(s, `"`); quoted {
		if at := strings.LastIndexAny(open, "\"\n"); at > 0 && open[at] == '"' && open[at-1] == '=' {
			return true
		}
	}
	return beginsPair(s[strings.LastIndexFunc(s, blank)+1:])
}

// pairBehind reports whether blanks and a pair follow the value that a text begins with.
func pairBehind(text string) bool {
	follows := func(s string) bool {
		next := strings.TrimLeft(s, " \t")
		return len(next) < len(s) && beginsPair(next)
	}
	if words, quoted := strings.CutPrefix(text, `"`); quoted {
		if at := strings.IndexAny(words, "\"\n"); at >= 0 && words[at] == '"' && follows(words[at+1:]) {
			return true
		}
	}
	at := strings.IndexFunc(text, blank)
	return at >= 0 && follows(text[at:])
}

// beginsPair reports whether a text begins with a key and its sign.
func beginsPair(s string) bool {
	at := strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_.-", r)
	})
	return at > 0 && s[at] == '='
}

const longestKey = 64
