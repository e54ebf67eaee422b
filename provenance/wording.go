package provenance

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// # How a phrase is written (R21, R9)
//
// A phrase of a contract is words, each of which may be one of several: "(mark|set) it as?
// (done|closed)" is eight phrases, for a word or a group with a question mark may be left out.
// "<close>" stands for all the words of that meaning in the lexicon, in every language it
// has: so two contracts mean the same by it, and a word that one user missed is added in one
// place, for all of them.

// Wording is such a phrase: one term behind the other.
type Wording []Term

// Term is a word, or one of several wordings.
type Term struct {
	Word     string
	One      []Wording
	Optional bool // it may be left out

	gerunds []string // of a word with which a phrase begins
	article bool     // it need not be said before another word
}

// WordingOf is what a phrase is read as, without the full stop that it may end in. It is empty for one that has a PhraseFault.
func WordingOf(phrase string) Wording {
	p := parsed(strings.TrimSuffix(phrase, "."))
	if p.fault != "" {
		return nil
	}
	return p.words
}

// lexicon is what <names> stand for.
//
//go:embed lexicon.txt
var lexicon string

var meanings = sync.OnceValue(func() map[string]Term {
	all := map[string]Term{}
	for entry := range strings.SplitSeq(strings.ReplaceAll(comments(lexicon), "\n ", " "), "\n") {
		if name, is, ok := strings.Cut(entry, "="); ok {
			p := phraseParser{rest: is, named: all}
			all[strings.TrimSpace(name)] = Term{One: p.several()}
			if p.fault != "" || p.rest != "" {
				panic("lexicon.txt: " + name + ": " + p.fault + p.rest)
			}
		}
	}
	return all
})

// comments is a text without its lines that begin with #.
func comments(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, "#") }), "\n")
}

// PhraseFault says in one clause what is wrong with how a phrase is written, "" for nothing.
func PhraseFault(phrase string) string {
	p := parsed(strings.TrimSuffix(phrase, "."))
	switch {
	case p.fault != "":
		return p.fault
	case p.reaches && len(p.tail) > 0 || strings.Count(phrase, "…") > 1:
		return "it is of two parts at most, or reaches through its sentence"
	case len(p.words) == 0 || slices.ContainsFunc(p.words, func(t Term) bool { return !t.Optional }):
		return ""
	}
	return "all of it may be left out"
}

// Phrases are all that a phrase stands for, at most so many; of one of two parts, with " … " between them.
func Phrases(phrase string, most int) []string {
	p := parsed(phrase)
	all := p.words.phrases([]string{""}, most)
	if len(p.tail) == 0 {
		return all
	}
	for i := range all {
		all[i] += " …"
	}
	return p.tail.phrases(all, most)
}

// phrases are some with all behind each that a wording stands for.
func (w Wording) phrases(before []string, most int) []string {
	for _, t := range w {
		before = t.behind(before, most)
	}
	return before
}

// behind are some phrases with a term behind each.
func (t Term) behind(before []string, most int) (all []string) {
	if t.Optional {
		all = slices.Clone(before)
	}
	if t.Word != "" {
		for _, said := range before {
			all = append(all, strings.TrimLeft(said+" "+t.Word, " "))
		}
	}
	for _, w := range t.One {
		all = append(all, w.phrases(before, most)...)
	}
	return all[:min(most, len(all))]
}

// PlainPhrase is the first of those that a phrase stands for, without what may be left out.
func PlainPhrase(phrase string) string { return PlainPhrases(phrase, 1)[0] }

// PlainPhrases are at least one and at most so many of those that a phrase stands for, which begin otherwise.
func PlainPhrases(phrase string, most int) (plain []string) {
	w := WordingOf(phrase)
	for i, first := range w {
		for _, o := range first.One[:min(most, len(first.One))] {
			plain = append(plain, strings.Join(append(o.plain(), w[i+1:].plain()...), " "))
		}
		if !first.Optional {
			break
		}
	}
	if len(plain) == 0 {
		return []string{strings.Join(w.plain(), " ")}
	}
	return plain[:min(most, len(plain))]
}

func (w Wording) plain() (words []string) {
	for _, t := range w {
		switch {
		case t.Optional:
		case t.One != nil:
			words = append(words, t.One[0].plain()...)
		default:
			words = append(words, t.Word)
		}
	}
	return words
}

// parsedPhrase is a phrase that was read, and whether one that it stands for is an order of what is put
// somewhere or has a copy elsewhere, of what a sentence behind it tells, or of all that is named in the
// rest of its sentence; or, with a tail, of what that leads to, "rebase … onto".
type parsedPhrase struct {
	words, tail                     Wording
	fault                           string
	puts, exchanges, tells, reaches bool
	asks, there                     bool      // it is asksThere, or done on a site
	begins                          [2]uint64 // the letters of ASCII that it may begin with
}

// asksThere is no order: it is a question about what is found on the site that its own sentence names.
const asksThere = "<ask> …"

// doesThere is what is done on a site by what is put there, where a turn says that one is meant: else it is of anything.
const doesThere = "<do there> …"

var phrasesParsed sync.Map // of parsedPhrase, by the phrase

func parsed(phrase string) parsedPhrase {
	if p, ok := phrasesParsed.Load(phrase); ok {
		return p.(parsedPhrase)
	}
	plain, reaches := strings.CutSuffix(phrase, " …")
	plain, tail, _ := strings.Cut(plain, " … ")
	p := phraseParser{rest: tail, named: meanings()}
	out := parsedPhrase{tail: p.sequence(), reaches: reaches, asks: phrase == asksThere, there: phrase == doesThere || tail == "for"}
	p.rest += plain
	out.words = p.sequence()
	if out.fault = p.fault; out.fault == "" && p.rest != "" {
		out.fault = "a " + p.rest[:1] + " without its other half"
	}
	for _, w := range out.words.ends(true) {
		out.puts, out.exchanges = out.puts || putting()[lower(w)] && !slices.Contains(out.words.ends(false), "from"), out.exchanges || exchanging[lower(w)]
	}
	out.words.first(func(word string) {
		c, _ := utf8.DecodeRuneInString(word)
		for r := unicode.SimpleFold(c); ; r = unicode.SimpleFold(r) {
			if r < utf8.RuneSelf {
				out.begins[r/64] |= 1 << (r % 64)
			}
			if r == c {
				return
			}
		}
	})
	out.tells = slices.Contains(out.words.ends(false), "that") && len(out.words) > 1
	phrasesParsed.Store(phrase, out)
	return out
}

// mayBegin reports whether a phrase may be said by a text: most places in one begin with another letter.
func (p *parsedPhrase) mayBegin(text string) bool {
	return text != "" && (text[0] >= utf8.RuneSelf || p.begins[text[0]/64]&(1<<(text[0]%64)) != 0)
}

// first calls add for the words that may be said first, and reports whether all of it may go unsaid.
func (w Wording) first(add func(word string)) bool {
	for _, t := range w {
		unsaid := t.Optional
		if t.Word != "" {
			add(t.Word)
			unsaid = unsaid || t.article
		}
		for _, o := range t.One {
			unsaid = o.first(add) || unsaid
		}
		if !unsaid {
			return false
		}
	}
	return true
}

// ends are the words with which what a phrase stands for begins, or ends.
func (w Wording) ends(first bool) (words []string) {
	for n := range w {
		t := w[n]
		if !first {
			t = w[len(w)-1-n]
		}
		if t.Word != "" {
			words = append(words, t.Word)
		}
		for _, o := range t.One {
			words = append(words, o.ends(first)...)
		}
		if !t.Optional {
			break
		}
	}
	return words
}

// phraseParser reads a phrase.
type phraseParser struct {
	rest  string
	named map[string]Term
	depth int
	fault string
}

// several reads wordings with a stroke between them.
func (p *phraseParser) several() (out []Wording) {
	for {
		out = append(out, p.sequence())
		if !slices.ContainsFunc(out[len(out)-1], func(t Term) bool { return !t.Optional }) {
			p.fail("one of several may be left out whole")
		}
		if !strings.HasPrefix(p.rest, "|") {
			return out
		}
		p.rest = p.rest[1:]
	}
}

func (p *phraseParser) sequence() (out Wording) {
	for p.fault == "" {
		p.rest = strings.TrimLeft(p.rest, " \t")
		if p.rest == "" || p.rest[0] == '|' || p.rest[0] == ')' {
			return out
		}
		t := p.term()
		if strings.HasPrefix(p.rest, "?") {
			t.Optional, p.rest = true, p.rest[1:]
		}
		out = append(out, t)
	}
	return out
}

// mostNested bounds how deep groups stand in one another.
const mostNested = 4

func (p *phraseParser) term() (t Term) {
	switch p.rest[0] {
	case '(':
		if p.depth++; p.depth > mostNested {
			p.fail("groups stand too deep in one another")
			return t
		}
		p.rest = p.rest[1:]
		t.One = p.several()
		if !strings.HasPrefix(p.rest, ")") {
			p.fail("a group without its )")
			return t
		}
		p.rest = p.rest[1:]
		p.depth--
	case '<':
		name, rest, closed := strings.Cut(p.rest[1:], ">")
		known, ok := p.named[name]
		if !closed || !ok {
			p.fail(fmt.Sprintf("%+.40q is no name of the lexicon", name))
		}
		t, p.rest = known, rest
	default:
		n := strings.IndexAny(p.rest, " \t|()<>?")
		if n < 0 {
			n = len(p.rest)
		} else if n == 0 {
			p.fail("a " + p.rest[:1] + " where a word is due")
			return t
		}
		t.Word, p.rest = p.rest[:n], p.rest[n:]
		t.gerunds, t.article = gerunds(t.Word), definite[lower(t.Word)]
	}
	return t
}

func (p *phraseParser) fail(why string) {
	if p.fault == "" {
		p.fault = why
	}
}

// follow calls found for each place where a text ends what it says of a phrase from i on, with the
// words of it, until it reports true. The articles of a phrase need not be said, and what stands
// between two of its words may be set in marks.
func (w Wording) follow(text string, i int, found func(words []string, end int) bool) bool {
	var ends []int
	s := saying{text: text, found: func(words []string, end int) bool {
		if slices.Contains(ends, end) {
			return false
		}
		ends = append(ends, end)
		return found(words, end)
	}}
	return s.next(i, &left{w, nil})
}

// saying is how far a text says a phrase, and in how many steps that was read.
type saying struct {
	text  string
	words []string
	steps int
	nexts map[next][]int
	found func(words []string, end int) bool
}

// next is behind which word another one stands; marked that a mark may stand between.
type next struct {
	end    int
	marked bool
}

// mostSteps bounds what a phrase with much that may be left out costs: who says it in more says none.
const mostSteps = 1 << 16

// left is what of a phrase is still to be said.
type left struct {
	words Wording
	then  *left
}

// next goes on behind a word that ended there.
func (s *saying) next(end int, rest *left) bool {
	for rest != nil && len(rest.words) == 0 {
		rest = rest.then
	}
	if s.steps++; s.steps > mostSteps {
		return false
	}
	if rest == nil {
		return len(s.words) > 0 && s.found(s.words, end)
	}
	t, behind := &rest.words[0], &left{rest.words[1:], rest.then}
	for _, w := range t.One {
		if len(w) == 1 && w[0].Word != "" && !w[0].Optional && !w[0].article { // as most are
			s.steps++
			if s.says(end, &w[0], behind) {
				return true
			}
		} else if s.next(end, &left{w, behind}) {
			return true
		}
	}
	return t.Word != "" && s.says(end, t, behind) || (t.Optional || t.article && !behind.none()) && s.next(end, behind)
}

func (l *left) none() bool { return l == nil || len(l.words) == 0 && l.then.none() }

// says goes on with a word, behind what leaves a phrase as it is.
func (s *saying) says(end int, t *Term, behind *left) bool {
	if len(s.words) == 0 {
		n := spells(s.text[end:], t.Word)
		for _, w := range t.gerunds {
			n = max(n, spells(s.text[end:], w))
		}
		return n > 0 && s.said(end+n, t.Word, behind)
	}
	for _, at := range s.places(end) {
		n := spells(s.text[at:], t.Word)
		if mark := markAt(s.text[at:]); n == 0 && mark > 0 {
			if n = spells(s.text[at+mark:], t.Word); n > 0 {
				n += mark
			}
		}
		if n > 0 && s.said(at+n, t.Word, behind) {
			return true
		}
	}
	return false
}

// places are where the next word may stand behind one that ended there. They are found once for all
// words that may be the next.
func (s *saying) places(end int) (places []int) {
	key := next{end, len(s.words) > 1}
	if known, ok := s.nexts[key]; ok {
		return known
	}
	if s.nexts == nil {
		s.nexts = map[next][]int{}
	}
	defer func() { s.nexts[key] = places }()
	at := end
	if key.marked {
		at += markAt(s.text[end:])
	}
	if at >= len(s.text) || !isBlank(s.text[at]) {
		return nil
	}
	at = s.skip(at)
	for f := (filling{}); ; {
		places = append(places, at)
		size := f.next(s.text[at:])
		if size == 0 {
			return places
		}
		at = s.skip(at + size)
	}
}

func (s *saying) said(end int, word string, behind *left) bool {
	s.words = append(s.words, word)
	ok := s.next(end, behind)
	s.words = s.words[:len(s.words)-1]
	return ok
}

// skip is where the next word begins.
func (s *saying) skip(at int) int { return len(s.text) - len(strings.TrimLeft(s.text[at:], " \t")) }

// filling is what was read between two words of a phrase.
type filling struct {
	all    bool // "all" stands last
	placed bool // and where it is to be done first
	words  int
}
