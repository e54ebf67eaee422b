package provenance

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// # How a phrase is written (R21, R9)
//
// A phrase of a contract is words, each of which may be one of several: "(mark|set) it as?
// (done|closed)" is eight phrases, for a word or a group with a question mark may be left out.
// "<close>" stands for all the words of that meaning in the lexicon, in every language it
// has: so two contracts mean the same by it, and a word that one user missed is added in one
// place, for all of them.

// wording is such a phrase: one term behind the other.
type wording []term

// term is a word, or one of several wordings.
type term struct {
	word     string
	gerunds  []string // of a word with which a phrase begins
	one      []wording
	optional bool
}

// lexicon is what <names> stand for.
//
//go:embed lexicon.txt
var lexicon string

var meanings = sync.OnceValue(func() map[string]term {
	all := map[string]term{}
	for entry := range strings.SplitSeq(strings.ReplaceAll(comments(lexicon), "\n ", " "), "\n") {
		if name, is, ok := strings.Cut(entry, "="); ok {
			p := phraseParser{rest: is, named: all}
			all[strings.TrimSpace(name)] = term{one: p.several()}
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
	case len(p.words) == 0 || slices.ContainsFunc(p.words, func(t term) bool { return !t.optional }):
		return ""
	}
	return "all of it may be left out"
}

// PlainPhrase is one of those that a phrase stands for: the first word of each, and nothing that may
// be left out.
func PlainPhrase(phrase string) string {
	return strings.Join(parsed(strings.TrimSuffix(phrase, ".")).words.plain(), " ")
}

func (w wording) plain() (words []string) {
	for _, t := range w {
		switch {
		case t.optional:
		case t.one != nil:
			words = append(words, t.one[0].plain()...)
		default:
			words = append(words, t.word)
		}
	}
	return words
}

// parsedPhrase is a phrase that was read, and whether one that it stands for is an order of what is put
// somewhere or has a copy elsewhere, or of what a sentence behind it tells.
type parsedPhrase struct {
	words                  wording
	fault                  string
	puts, exchanges, tells bool
}

var phrasesParsed sync.Map // of parsedPhrase, by the phrase

func parsed(phrase string) parsedPhrase {
	if p, ok := phrasesParsed.Load(phrase); ok {
		return p.(parsedPhrase)
	}
	p := phraseParser{rest: phrase, named: meanings()}
	out := parsedPhrase{words: p.sequence()}
	if out.fault = p.fault; out.fault == "" && p.rest != "" {
		out.fault = "a " + p.rest[:1] + " without its other half"
	}
	for _, w := range out.words.ends(true) {
		out.puts, out.exchanges = out.puts || putting[lower(w)], out.exchanges || exchanging[lower(w)]
	}
	out.tells = slices.Contains(out.words.ends(false), "that") && len(out.words) > 1
	phrasesParsed.Store(phrase, out)
	return out
}

// ends are the words with which what a phrase stands for begins, or ends.
func (w wording) ends(first bool) (words []string) {
	for n := range w {
		t := w[n]
		if !first {
			t = w[len(w)-1-n]
		}
		if t.word != "" {
			words = append(words, t.word)
		}
		for _, o := range t.one {
			words = append(words, o.ends(first)...)
		}
		if !t.optional {
			break
		}
	}
	return words
}

// phraseParser reads a phrase.
type phraseParser struct {
	rest  string
	named map[string]term
	depth int
	fault string
}

// several reads wordings with a stroke between them.
func (p *phraseParser) several() (out []wording) {
	for {
		out = append(out, p.sequence())
		if len(out[len(out)-1]) == 0 {
			p.fail("one of several is empty")
		}
		if !strings.HasPrefix(p.rest, "|") {
			return out
		}
		p.rest = p.rest[1:]
	}
}

func (p *phraseParser) sequence() (out wording) {
	for p.fault == "" {
		p.rest = strings.TrimLeft(p.rest, " \t")
		if p.rest == "" || p.rest[0] == '|' || p.rest[0] == ')' {
			return out
		}
		t := p.term()
		if strings.HasPrefix(p.rest, "?") {
			t.optional, p.rest = true, p.rest[1:]
		}
		out = append(out, t)
	}
	return out
}

// mostNested bounds how deep groups stand in one another.
const mostNested = 4

func (p *phraseParser) term() (t term) {
	switch p.rest[0] {
	case '(':
		if p.depth++; p.depth > mostNested {
			p.fail("groups stand too deep in one another")
			return t
		}
		p.rest = p.rest[1:]
		t.one = p.several()
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
			p.fail(fmt.Sprintf("<%.40s> is no name of the lexicon", strings.Map(printable, name)))
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
		t.word, p.rest = p.rest[:n], p.rest[n:]
		t.gerunds = gerunds(t.word)
	}
	return t
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '.'
}

func (p *phraseParser) fail(why string) {
	if p.fault == "" {
		p.fault = why
	}
}

// follow calls found for each place where a text ends what it says of a phrase from i on, with the
// words of it, until it reports true. The articles of a phrase need not be said, and what stands
// between two of its words may be set in marks.
func (w wording) follow(text string, i int, found func(words []string, end int) bool) bool {
	s := saying{text: text, found: found}
	return s.next(i, &left{w, nil})
}

// saying is how far a text says a phrase.
type saying struct {
	text  string
	words []string
	found func(words []string, end int) bool
}

// left is what of a phrase is still to be said.
type left struct {
	words wording
	then  *left
}

// next goes on behind a word that ended there.
func (s *saying) next(end int, rest *left) bool {
	for rest != nil && len(rest.words) == 0 {
		rest = rest.then
	}
	if rest == nil {
		return len(s.words) > 0 && s.found(s.words, end)
	}
	t, behind := rest.words[0], &left{rest.words[1:], rest.then}
	for _, w := range t.one {
		if s.next(end, &left{w, behind}) {
			return true
		}
	}
	return t.word != "" && s.says(end, &t, behind) || (t.optional || definite[lower(t.word)] && !behind.none()) && s.next(end, behind)
}

func (l *left) none() bool { return l == nil || len(l.words) == 0 && l.then.none() }

// says goes on with a word, behind what leaves a phrase as it is.
func (s *saying) says(end int, t *term, behind *left) bool {
	if len(s.words) == 0 {
		n := spells(s.text[end:], t.word)
		for _, w := range t.gerunds {
			n = max(n, spells(s.text[end:], w))
		}
		return n > 0 && s.said(end+n, t.word, behind)
	}
	at := end + markAt(s.text[end:])
	if at >= len(s.text) || !isBlank(s.text[at]) {
		return false
	}
	at = s.skip(at)
	for f := (filling{}); ; {
		n := spells(s.text[at:], t.word)
		if mark := markAt(s.text[at:]); n == 0 && mark > 0 {
			if n = spells(s.text[at+mark:], t.word); n > 0 {
				n += mark
			}
		}
		if n > 0 && s.said(at+n, t.word, behind) {
			return true
		}
		size := f.next(s.text[at:])
		if size == 0 {
			return false
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
