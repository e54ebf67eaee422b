package certificate

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/provenance"
)

// spoken is how a phrase is said: a machine that goes from one state to others by a word, or
// by none. An article of a phrase may be another one, and between its words stand such that
// say nothing of what is done.
type spoken struct {
	by   []map[string][]int // of each state, where a word leads
	free [][]int            // and where nothing does
	done int
}

var machines sync.Map // *spoken, by the phrase

// spokenOf is the machine of a phrase.
func spokenOf(phrase string) *spoken {
	if m, ok := machines.Load(phrase); ok {
		return m.(*spoken)
	}
	m := &spoken{}
	defer machines.Store(phrase, m)
	from := m.state()
	m.done = m.state()
	m.sequence(provenance.WordingOf(phrase), from, m.done, false)
	return m
}

func (m *spoken) state() int {
	m.by, m.free = append(m.by, map[string][]int{}), append(m.free, nil)
	return len(m.by) - 1
}

// sequence leads from one state to another by terms; more says that others stand behind.
func (m *spoken) sequence(terms provenance.Wording, from, to int, more bool) {
	for i, t := range terms {
		last := i == len(terms)-1
		next := to
		if !last {
			next = m.state()
		}
		behind := more || !last
		for _, w := range t.One {
			m.sequence(w, from, next, behind)
		}
		if t.Word != "" {
			m.by[from][t.Word] = append(m.by[from][t.Word], next)
		}
		if t.Optional || behind && article().MatchString(t.Word) {
			m.free[from] = append(m.free[from], next)
		}
		from = next
	}
}

// standing is where the machine stands, and behind how many words that end at a place.
type standing struct{ state, at, words int }

// ends are the places where a text ends what it says of the phrase from i on.
func (m *spoken) ends(text string, i int) (ends []int) {
	seen := map[standing]bool{}
	todo := []standing{{0, i, 0}}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		if s.state == m.done && s.words > 0 && !slices.Contains(ends, s.at) {
			ends = append(ends, s.at)
		}
		for _, to := range m.free[s.state] {
			todo = append(todo, standing{to, s.at, s.words})
		}
		if len(m.by[s.state]) == 0 {
			continue
		}
		for _, at := range s.nexts(text) {
			for word, to := range m.by[s.state] {
				if n := wordAt(text[at:], word, s.words == 0); n > 0 {
					for _, t := range to {
						todo = append(todo, standing{t, at + n, min(s.words+1, 2)})
					}
				}
			}
		}
	}
	return ends
}

// nexts are the places where the next word may stand: the first where the phrase begins,
// another one behind a blank, and behind up to eight that leave a phrase as it is.
func (s standing) nexts(text string) (all []int) {
	if s.words == 0 {
		return []int{s.at}
	}
	at := s.at
	if s.words > 1 {
		at += len(marked().FindString(text[at:]))
	}
	blanks := gap().FindString(text[at:])
	if blanks == "" {
		return nil
	}
	at += len(blanks)
	all = []int{at}
	if place := placed().FindString(text[at:]); place != "" {
		at += len(place)
		all = append(all, at)
	}
	for range 8 {
		idle := between().FindString(text[at:])
		if idle == "" {
			break
		}
		at += len(idle)
		all = append(all, at)
		if strings.EqualFold(strings.TrimRight(idle, " \t"), "all") {
			if of := ofAll().FindString(text[at:]); of != "" {
				at += len(of)
				all = append(all, at)
			}
		}
	}
	return all
}

// wordAt is how much of a text's begin is a word: the first as it is done too, locking, securing or
// stopping; another one behind a mark.
func wordAt(text, word string, first bool) int {
	n := leads(text, word)
	if !first {
		if n == 0 {
			mark := len(marked().FindString(text))
			if n = leads(text[mark:], word); n > 0 {
				n += mark
			}
		}
		return n
	}
	forms := []string{word + "ing"}
	switch end := word[len(word)-1]; {
	case len(word) == 1 || end >= utf8.RuneSelf:
	case end == 'e' || end == 'E':
		forms = append(forms, word[:len(word)-1]+"ing")
	default:
		forms = append(forms, word+word[len(word)-1:]+"ing")
	}
	for _, form := range forms {
		n = max(n, leads(text, form))
	}
	return n
}

// leads is the size of a text's begin that is a word in any letters' case, 0 where it is none.
func leads(text, word string) int {
	end := 0
	for range utf8.RuneCountInString(word) {
		_, n := utf8.DecodeRuneInString(text[end:])
		end += n
	}
	if !strings.EqualFold(text[:end], word) {
		return 0
	}
	return end
}

var (
	gap    = text.Pattern(`^[ \t]+`)
	marked = text.Pattern(`^` + quoteMark)
	// placed is a directory from the root in which something is to be done.
	placed  = text.Pattern(`^(?:in|at|of)[ \t]+(?:/[\pL\pN$~._#@%&=+-]+)*/[\pL\pN_-]+[ \t]+`)
	article = text.Pattern(`^` + articles + `$`)
	between = text.Pattern(`^(?:` + articles + `|` + asciiCases("please|bitte|now|jetzt|also|auch|mal|"+
		"just|kindly|quickly|kurz|gleich|schnell|immediately|promptly|simply|carefully|safely|securely|firmly|properly|fully|completely") +
		"|" + asciiCases("all") + ")[ \t]+")
	ofAll    = text.Pattern("^" + asciiCases("of") + "[ \t]+")
	articles = asciiCases("the|th(is|at|ese|ose)|my|our|an?|d(er|ie|as|en|em)|mein(en?)?|unser(en?)?")
)

// asciiCases matches words in letters of ASCII of either case.
func asciiCases(words string) string {
	return "(?:" + regexp.MustCompile(`[a-z]`).ReplaceAllStringFunc(words, func(c string) string { return "[" + c + strings.ToUpper(c) + "]" }) + ")"
}
