package calendar

import (
	"cmp"
	"embed"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/numeral"
)

// The grammar is data: a file for each language, and one for what every language
// writes alike. A language is added by adding its file.
//
// "@month a b | c" gives the months their names, the first two of the first; so
// do the other lines with @, each in a fixed order. A name may be written of
// several words that stand glued, like "twenty-first". "@n" are numbers in words, of
// a language of which numeral has none: of its own rules alone, for "once" is eleven, and
// "due" two, where the next word is of that language.
//
// "group: pattern ; pattern = action key=number" is a rule. A pattern is of
// words, {values} and [what may be left out]; a|b is a choice of words; _ joins
// what stands without a space between; an action of meaning.go says what it
// means, and the numbers are values that the words do not tell. Of all rules
// that match at a word the longest counts; none matches across lines. A pattern may
// begin with {behind}, which holds right behind a word of "@behind", a weekday or a month:
// there "15h" is a time rather than a length; it may end with {then}, which holds right
// before a word of "@then". "@idiom" are numbers of days by which
// people count weeks.
//
//go:embed names
var files embed.FS

type language struct {
	names map[string][]name            // by set
	first map[string]map[string][]name // by set and first word
}

type name struct {
	words []string
	value int
}

type rule struct {
	*language
	group, action string
	elements      []element
	given         []value
}

type element struct {
	words []string // one of them, or
	value string   // one of the values
	glued bool
}

type value struct {
	name string
	n    int
}

// grammar is the rules of each group; those of "" are all.
type grammar struct {
	languages []*language
	groups    map[string]*index
	starts    map[string]bool // the first words of names
}

// index files each rule of a group by how it begins: with a word, a name of a language, or
// another of its values.
type index struct {
	words  map[string][]*rule
	names  map[string][]*opening
	values []*opening
}

type opening struct {
	*language
	value string
	rules []*rule
}

// rules are read when a user first says something.
var rules = sync.OnceValue(load)

func load() *grammar {
	g := &grammar{groups: map[string]*index{}, starts: map[string]bool{}}
	tables, _ := files.ReadDir("names")
	for _, table := range tables {
		text, _ := files.ReadFile("names/" + table.Name())
		l := &language{map[string][]name{}, map[string]map[string][]name{}}
		g.languages = append(g.languages, l)
		for line := range strings.Lines(string(text)) {
			head, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case head == "" || head == "#":
			case head[0] == '@':
				g.name(l, head[1:], rest)
			default:
				g.rule(l, strings.TrimSuffix(head, ":"), rest)
			}
		}
	}
	return g
}

// name files the names of a set.
func (g *grammar) name(l *language, set, list string) {
	first := map[string][]name{}
	l.first[set] = first
	for i, names := range strings.Split(list, "|") {
		for s := range strings.FieldsSeq(names) {
			n := name{folded(s), i + 1}
			l.names[set], first[n.words[0]] = append(l.names[set], n), append(first[n.words[0]], n)
			g.starts[n.words[0]] = true
		}
	}
}

// rule files a rule of a group.
func (g *grammar) rule(l *language, group, text string) {
	patterns, meaning, _ := strings.Cut(text, " = ")
	words := strings.Fields(meaning)
	r := rule{language: l, group: group, action: words[0]}
	for _, w := range words[1:] {
		key, n, _ := strings.Cut(w, "=")
		number, _ := strconv.Atoi(n)
		r.given = append(r.given, value{key, number})
	}
	for p := range strings.SplitSeq(patterns, ";") {
		g.expand(r, strings.Fields(p), nil)
	}
}

// expand files a rule once for each way to leave out what may be.
func (g *grammar) expand(r rule, pattern []string, done []element) {
	for i, p := range pattern {
		inner, optional := strings.CutPrefix(p, "[")
		if optional {
			g.expand(r, pattern[i+1:], slices.Clone(done))
			p = strings.TrimSuffix(inner, "]")
		}
		for j, piece := range strings.Split(p, "_") {
			e := element{glued: j > 0}
			if v, ok := strings.CutPrefix(piece, "{"); ok {
				e.value = strings.TrimSuffix(v, "}")
			} else {
				for w := range strings.SplitSeq(piece, "|") {
					e.words = append(e.words, strings.Join(folded(w), ""))
				}
			}
			done = append(done, e)
		}
	}
	r.elements = done
	for _, group := range distinct([]string{"", r.group, cmp.Or(wider[r.group], r.group)}) {
		if g.groups[group] == nil {
			g.groups[group] = &index{words: map[string][]*rule{}, names: map[string][]*opening{}}
		}
		g.groups[group].file(&r)
	}
}

func (x *index) file(r *rule) {
	for _, w := range r.elements[0].words {
		x.words[w] = append(x.words[w], r)
	}
	v := r.elements[0].value
	if v == "" {
		return
	}
	first := r.first[v]
	if v == "n" || v == "behind" { // which are more than their names
		first = nil
	}
	filed := x.values
	for w := range first {
		filed = x.names[w]
	}
	if i := slices.IndexFunc(filed, func(o *opening) bool { return o.value == v && o.language == r.language }); i >= 0 {
		filed[i].rules = append(filed[i].rules, r)
		return
	}
	o := &opening{r.language, v, []*rule{r}}
	if first == nil {
		x.values = append(x.values, o)
	}
	for w := range first {
		x.names[w] = append(x.names[w], o)
	}
}

func folded(s string) (out []string) {
	for _, w := range numeral.Words(s) {
		out = append(out, w.Fold)
	}
	return out
}

// parser reads one text.
type parser struct {
	*grammar
	text      string
	words     []numeral.Word
	now       civil
	zone      *time.Location
	cardinals []struct{ n, end int }
	memo      map[string][]memo // of each group, for each word
}

// wider are groups that hold another: of a day with its weekday or without, of
// a clock or a bare hour.
var wider = map[string]string{"date": "dated", "weekdate": "dated", "clock": "when"}

// memo is what longest said.
type memo struct {
	asked bool
	says  *node
}

func newParser(words string, at time.Time) *parser {
	p := &parser{grammar: rules(), text: words, words: numeral.Words(words), now: civilOf(at), zone: at.Location(), memo: map[string][]memo{}}
	p.cardinals = make([]struct{ n, end int }, len(p.words))
	return p
}

// longest returns what the longest rule of a group says at a word, or nil. The
// group "" is all of them, at the edges of a phrase.
func (p *parser) longest(group string, i int) *node {
	said := p.memo[group]
	if said == nil {
		said = make([]memo, len(p.words))
		p.memo[group] = said
	}
	if said[i].asked {
		return said[i].says
	}
	said[i].asked = true // no rule begins with its own group
	var best *node
	end := i // of the best
	p.begins(group, i, func(r *rule, begin found) {
		if n := p.says(r, group, i, end, begin); n != nil {
			best, end = n, n.to
		}
	})
	if group == "when" {
		if h, to := p.number(i, 24); to > end {
			best = &node{kind: Clock, from: i, to: to, clocks: hours(h, 0), hour: true}
		}
	}
	said[i].says = best
	return best
}

// begins calls with the rules of a group whose first element stands at a word, and with that.
func (p *parser) begins(group string, i int, with func(*rule, found)) {
	w, x := p.words[i], p.groups[group]
	for _, r := range x.words[w.Fold] {
		with(r, found{end: i + 1})
	}
	isNumber, _ := p.cardinal(i)
	if w.Class != numeral.Digits && isNumber == 0 && !p.starts[w.Fold] && len(p.groups[""].words[w.Fold]) == 0 {
		return
	}
	p.openings(x.names[w.Fold], i, with)
	p.openings(x.values, i, with)
}

func (p *parser) openings(all []*opening, i int, with func(*rule, found)) {
	for _, o := range all {
		if begin, ok := p.element(element{value: o.value}, o.language, found{end: i}); ok {
			for _, r := range o.rules {
				with(r, begin)
			}
		}
	}
}

// says is what a rule of a group says of the words from i on, if it goes on behind least.
func (p *parser) says(r *rule, group string, i, least int, begin found) *node {
	f, ok := p.match(r, begin)
	if !ok || f.end < least || f.end == least && r.elements[0].value != "behind" {
		return nil
	}
	end := f.end
	if group == "" && timed[r.group] && (r.group != "instant" || p.inLine(end).Gap == numeral.Space) {
		end = p.pastZone(end)
	}
	if group == "" && !p.words[end-1].Closes {
		return nil
	}
	n := p.mean(r, append(f.values, r.given...), f.nodes)
	if n == nil {
		return nil
	}
	if group == "" && (end > f.end || timed[r.group] && p.zoneBefore(i)) && (n.kind == Clock || n.kind == Instant) {
		n = &node{} // of the clocks of others
	}
	n.from, n.to, n.by = i, end, r.language
	return n
}

// timed are the groups whose rules may say the time of a day.
var timed = map[string]bool{"clock": true, "range": true, "instant": true}

// pastZone returns the end of what stands at a word and says the zone of a time before it, or that
// word: "UTC+2", "+0200", "(CET)", "in EST", "Europe/Berlin", "New York time".
func (p *parser) pastZone(i int) int {
	first, next := p.inLine(i), p.inLine(i+1)
	end := i
	switch digits := next.Class == numeral.Digits; {
	case first.Fold == "+" && digits, first.Fold == "-" && digits && first.Gap == numeral.Space && len(next.Fold) == 4:
		end = i + 2
	case (first.Fold == "(" || first.Fold == "[") && next.Class == numeral.Letters:
		if end = p.pastZone(i + 1); end > i+1 && end < len(p.words) {
			return end + 1
		}
		return i
	case (first.Fold == "," || first.Fold == "-" || first.Fold == "in") && next.Class == numeral.Letters:
		if end = p.pastZone(i + 1); end > i+1 {
			return end
		}
		return i
	case next.Fold == "/" && regions[first.Fold]:
		end = i + 3
	default:
		end = p.zoneAt(i)
	}
	if end == i {
		return p.placed(i)
	}
	for end < len(p.words) && p.words[end].Gap == numeral.Glued && !p.words[end-1].Closes {
		end++ // "UTC+02:00"
	}
	return min(end, len(p.words))
}

// zoneAt is the end of a zone's name at a word, or that word.
func (p *parser) zoneAt(i int) (end int) {
	end = i
	if w := p.inLine(i); w.Fold == "" || verbs[w.Fold] && !p.isUpper(w) {
		return i
	}
	for _, l := range rules().languages {
		if _, to := p.named(l, "zone", i); to > end {
			end = to
		}
	}
	return end
}

func (p *parser) isUpper(w numeral.Word) bool {
	raw := p.text[w.Start:w.End]
	return strings.ToUpper(raw) == raw
}

// zoneBefore reports whether the name of a zone stands right before a word, in capitals: "UTC
// 15:00", "EST: 3pm".
func (p *parser) zoneBefore(i int) bool {
	if p.inLine(i-1).Fold == ":" {
		i--
	}
	return p.inLine(i).Fold != "" && len(p.inLine(i-1).Fold) > 2 && p.isUpper(p.words[i-1]) && p.zoneAt(i-1) == i
}

// placed is pastZone, of up to three words that say whose time it is: one, names, or what zones
// are called. "3pm I have time" says nobody's.
func (p *parser) placed(i int) int {
	names := true
	for k := i; k < i+4; k++ {
		w := p.inLine(k)
		before := ""
		if k > i {
			before = p.words[k-1].Fold
		}
		switch {
		case w.Fold == "" || w.Class != numeral.Letters || k > i && w.Gap != numeral.Space || k == i && (noZone[w.Fold] || linking()["link"][w.Fold] || linking()["list"][w.Fold]):
			return i
		case w.Fold == "ortszeit", w.Fold == "tijd" && (strings.HasSuffix(before, "se") || before == "lokale" || before == "plaatselijke"), w.Fold == "zeit" && strings.HasSuffix(before, "er"), w.Fold == "time" && (k == i+1 || k > i && names || kinds[before]):
			return k + 1
		}
		first, _ := utf8.DecodeRuneInString(p.text[w.Start:])
		names = names && unicode.IsUpper(first)
	}
	return i
}

// inLine is a word that stands in the line of the one before it, or none.
func (p *parser) inLine(i int) numeral.Word {
	if i < 0 || i >= len(p.words) || i > 0 && p.words[i].Gap == numeral.Line {
		return numeral.Word{}
	}
	return p.words[i]
}

var (
	regions = map[string]bool{"africa": true, "america": true, "antarctica": true, "arctic": true, "asia": true, "atlantic": true, "australia": true, "etc": true, "europe": true, "indian": true, "pacific": true, "us": true}
	// verbs are zones that are words too, in small letters.
	verbs = map[string]bool{"ist": true, "et": true, "wet": true}
	// kinds are what a zone's name ends in before "time".
	kinds = map[string]bool{"standard": true, "daylight": true, "summer": true, "winter": true}
	// noZone are words before "time" that say of no other's, or that it is his own.
	noZone = map[string]bool{"my": true, "our": true, "meiner": true, "unserer": true, "next": true, "last": true, "every": true, "each": true, "one": true, "same": true, "any": true, "some": true,
		"no": true, "more": true, "full": true, "free": true, "have": true, "that": true, "is": true, "it": true, "i": true, "we": true}
)

// cardinal reads a number in words, once.
func (p *parser) cardinal(i int) (n, end int) {
	c := &p.cardinals[i]
	if c.end == 0 {
		if c.n, c.end = numeral.Cardinal(p.words, i); c.n == 0 {
			c.end = i
		}
	}
	return c.n, c.end
}

// found is what a pattern found so far.
type found struct {
	values values
	nodes  []*node
	end    int
}

// match reads the rest of a rule's pattern, whose first element was found.
func (p *parser) match(r *rule, f found) (found, bool) {
	for _, e := range r.elements[1:] {
		if e.value != "end" && (f.end >= len(p.words) || p.words[f.end].Gap == numeral.Line || e.glued && p.words[f.end].Gap != numeral.Glued) {
			return f, false
		}
		var ok bool
		if f, ok = p.element(e, r.language, f); !ok {
			return f, false
		}
	}
	return f, true
}

// element reads one element of a pattern.
func (p *parser) element(e element, l *language, f found) (found, bool) {
	switch e.value {
	case "":
		if !slices.Contains(e.words, p.words[f.end].Fold) {
			return f, false
		}
		f.end++
	case "end":
		return f, p.ends(l, f.end)
	case "then":
		_, to := p.named(l, "then", f.end)
		return f, to > f.end && p.words[f.end].Gap == numeral.Space
	case "behind":
		return f, p.isBehind(l, f.end)
	case "clock", "when", "date", "dated", "span", "range":
		n := p.longest(e.value, f.end)
		if n == nil {
			return f, false
		}
		f.nodes, f.end = append(f.nodes[:len(f.nodes):len(f.nodes)], n), n.to
	default:
		n, end := p.value(l, e.value, f.end)
		if end == f.end {
			return f, false
		}
		f.values, f.end = append(f.values[:len(f.values):len(f.values)], value{cmp.Or(readAs[e.value], e.value), n}), end
	}
	return f, true
}

// ends reports whether a number that ends before a word is of nothing that
// follows: people, percent, streets.
func (p *parser) ends(l *language, i int) bool {
	if i == len(p.words) || p.words[i].Gap == numeral.Line {
		return true
	}
	if w := p.words[i]; w.Class == numeral.Mark {
		return w.Gap == numeral.Glued && p.words[i-1].Closes
	}
	for _, set := range []string{"stop", "weekday"} {
		if _, end := p.named(l, set, i); end > i && p.words[i].Gap != numeral.Glued {
			return true
		}
	}
	return false
}

// isBehind reports whether a word stands right behind a day, or behind what a time stands behind.
func (p *parser) isBehind(l *language, i int) bool {
	if p.inLine(i).Gap != numeral.Space || i == 0 {
		return false
	}
	for _, set := range []string{"behind", "weekday", "month"} {
		if l.first[set][p.words[i-1].Fold] != nil {
			return true
		}
	}
	return false
}

// named reads one of the names of a set.
func (p *parser) named(l *language, set string, i int) (n, end int) {
	if end = i; i == len(p.words) {
		return 0, i
	}
	for _, name := range l.first[set][p.words[i].Fold] {
		to := i + len(name.words)
		if to <= end || to > len(p.words) {
			continue
		}
		fits := true
		for k := 1; k < len(name.words); k++ {
			fits = fits && p.words[i+k].Fold == name.words[k] && p.words[i+k].Gap == numeral.Glued
		}
		if fits {
			n, end = name.value, to
		}
	}
	return n, end
}

// number reads a number in digits, or in words up to twelve.
func (p *parser) number(i, most int) (n, end int) {
	if w := p.words[i]; w.Class == numeral.Digits && len(w.Fold) <= 2 {
		if n, _ := strconv.Atoi(w.Fold); n <= most {
			return n, i + 1
		}
		return 0, i
	}
	if n, end = p.cardinal(i); n > 0 && n <= min(most, 12) {
		return n, end
	}
	return 0, i
}

// hour reads one, and how it is written.
func (p *parser) hour(i, digits int) (n, end int) {
	if n, end = p.number(i, 24); digits == 2 && (n < 10 || end < len(p.words) && p.words[end].Fold == ":") {
		n += asWritten
	}
	return n, end
}

// sums are what makes a number behind a day no year: "pay on May 5 2000 EUR".
var sums = map[string]bool{"€": true, "$": true, "£": true, "¥": true, "%": true, "eur": true, "euro": true, "euros": true, "usd": true, "dollar": true, "dollars": true, "gbp": true, "pounds": true, "chf": true, "franken": true, "percent": true, "prozent": true}

// readAs names the values that mean what another one does.
var readAs = map[string]string{"yy": "year", "an": "n", "own": "n", "ownh": "h", "short": "weekday", "abbr": "weekday", "shortmonth": "month"}

// value reads one of the values of a pattern; end is i where none stands.
func (p *parser) value(l *language, kind string, i int) (n, end int) {
	w := p.words[i]
	n, digits := 0, 0
	if w.Class == numeral.Digits {
		n, _ = strconv.Atoi(w.Fold)
		digits = len(w.Fold)
	}
	few := digits == 1 || digits == 2
	within := func(width bool, low, high int) (int, int) {
		if width && n >= low && n <= high {
			return n, i + 1
		}
		return 0, i
	}
	switch kind {
	case "year":
		return within(digits == 4 && !sums[p.inLine(i+1).Fold], 1900, 2199)
	case "yy":
		n += 2000
		return within(digits == 2, 2000, 2099)
	case "other": // a year that nobody means
		return within(digits == 4 && (n < 1900 || n > 2199), 0, 9999)
	case "hm":
		return within(digits == 4 && n%100 < 60, 0, 2400)
	case "an":
		n = 1
		return within(w.Fold == "a" || w.Fold == "an", 1, 1)
	case "m", "s", "om":
		return within(digits == 2, 0, 59)
	case "oh":
		return within(digits == 2, 0, 14)
	case "dd":
		return within(digits == 2, 1, 31)
	case "d", "a", "b":
		return within(few, 1, 31)
	case "mo":
		return within(few, 1, 12)
	}
	return p.worded(l, kind, i, digits)
}

// worded is value, of one that may be written in words.
func (p *parser) worded(l *language, kind string, i, digits int) (n, end int) {
	w := p.words[i]
	switch kind {
	case "h":
		if n, end := p.named(l, "n", i); end > i && n <= 24 {
			return n, end
		}
		return p.hour(i, digits)
	case "own", "ownh": // in a word of this language
		return p.named(l, "n", i)
	case "n":
		if n, end := p.named(l, "n", i); end > i {
			return n, end
		}
		if digits > 0 && digits <= 3 && w.Fold[0] != '0' {
			n, _ = strconv.Atoi(w.Fold)
			return n, i + 1
		}
		if n, end = p.cardinal(i); n <= 999 {
			return n, end
		}
		return 0, i
	case "nth":
		n, end = p.value(l, "d", i)
		if _, to := p.named(l, "suffix", end); to > end && end > i && p.words[end].Gap == numeral.Glued {
			return n, to
		}
		return 0, i
	case "day":
		return p.day(l, i)
	}
	return p.named(l, kind, i)
}

// day reads the number of a day, in whatever form.
func (p *parser) day(l *language, i int) (n, end int) {
	for _, kind := range []string{"nth", "d", "ordinal"} {
		if n, end = p.value(l, kind, i); end > i {
			return n, end
		}
	}
	if ten, to := p.cardinal(i); (ten == 20 || ten == 30) && to < len(p.words) && p.words[to].Gap == numeral.Space {
		if n, end = p.named(l, "ordinal", to); end > to && n < 10 {
			return ten + n, end // "twenty first"
		}
	}
	return 0, i
}
