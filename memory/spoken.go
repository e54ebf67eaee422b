package memory

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/internal/words"
)

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
		if t.person != none || len(t.words) == 1 && in("stop", t.words[0]) {
			break
		}
		if out = append(out, t.words...); t.ends {
			break
		}
	}
	for i, w := range out {
		if !all && !in("quality", w) {
			return out[:i+1]
		}
	}
	return out
}

func copula(t spoken) bool { return len(t.words) == 1 && in("is", t.words[0]) }

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
	w := letters().FindString(f)
	short := len(w) > 1 && strings.ToUpper(w) == w && !capitals
	if len(t.words) != 1 || short || number || w == "i" && place != 0 {
		return t
	}
	switch w := t.words[0]; {
	case in("subject", w):
		t.person = first
	case in("mine", w):
		t.person = owned
	case in("self", w):
		t.person = other
	}
	return t
}

var letters = text.Pattern(`[\pL\pM]+`)

// Denies reports whether a text has a word that denies, or asks: then it does not
// say the same as one that does neither.
func Denies(s string) bool {
	if m := request().FindStringIndex(s); m != nil {
		s = s[m[1]:]
	} else if i := strings.LastIndexFunc(s, text.Alphanumeric); questions().MatchString(s[max(0, i):]) {
		return true
	}
	return slices.ContainsFunc(words.Of(plain(s)), func(w string) bool { return in("no", w) })
}

var request = text.Pattern(`(?i)^\W*(?:(?:hey|hi|hello|please|and|so)\W+)*(?:(?:can|could|would|will) you (?:please )?(?:remember|note|keep in mind|make a note|save|store|write down)(?: that)?|(?:kannst|könntest) du dir (?:bitte )?merken|(?:peux|pourrais)-tu (?:noter|retenir) que|¿?(?:puedes|podrías) (?:recordar|anotar) que)\W`)

// grammar.txt says itself which lists it has.
//
//go:embed grammar.txt
var grammarText string

var grammar = sync.OnceValue(func() map[string]map[string]bool {
	lists := map[string]map[string]bool{}
	for line := range strings.Lines(grammarText) {
		names, of, _ := strings.Cut(line, " ")
		if names == "#" {
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			if lists[name] == nil {
				lists[name] = map[string]bool{}
			}
			for _, w := range words.Of(of) {
				lists[name][w] = true
			}
		}
	}
	return lists
})

// in reports whether a word is in a list of grammar.txt.
func in(list, word string) bool {
	words := grammar()[list]
	if words == nil {
		panic("memory: no list of words is called " + list) // the code's own word
	}
	return words[word]
}
