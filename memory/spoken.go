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

// ofSpeaker reports whether a sentence is of who speaks.
func ofSpeaker(s string) bool {
	return slices.ContainsFunc(tokens(s, false, 0), func(t spoken) bool { return t.person != none })
}

// A spoken word is what stands between white space in a sentence, and whose it is.
type spoken struct {
	words  []string
	person person
	ends   bool // the clause
	value  bool // of what is asked for
	name   bool // written as one
}

// person is what a word says of who speaks.
type person int

const (
	none  person = iota
	first        // I
	other        // me
	owned        // my
)

// is reports whether a word is in a list of grammar.txt.
func (t spoken) is(list string) bool { return !t.value && len(t.words) == 1 && in(list, t.words[0]) }

func (t spoken) auxiliary() bool { return t.is("is") || t.is("asks") }

// verb is auxiliary, but for that of I, or am Montag.
func (t spoken) verb() bool { return t.auxiliary() && t.words[0] != "am" }

// says reports whether a word says what somebody is or does.
func (t spoken) says() bool { return !t.auxiliary() && !t.adverb() }

func (t spoken) definite() bool { return t.is("article") && !t.is("indefinite") }

func (t spoken) joins() bool { return t.is("stop") && joining().MatchString(t.words[0]) }

// adverb reports whether a word says how or when, and not what.
func (t spoken) adverb() bool {
	return t.is("no") || t.is("also") || t.is("adverb")
}

var joining = text.Pattern(`^` + joins + `$|^(?:but|aber|mais|pero|ma|maar|men|но)$`)

// ending are what ends a clause. A full stop that ends no part stands behind a title or
// a number.
const ending = ",;:!?…)"

// tokens are the words of a sentence, or of a part of it that so many stand before, the
// last of them a number. What is written in capitals alone is short for something, and
// behind a number stand units; i is a word of other languages but at the beginning.
func tokens(s string, number bool, before int) (out []spoken) {
	s = plain(s)
	capitals := strings.ToUpper(s) == s
	for i, f := range strings.Fields(s) {
		i += before
		if j := strings.IndexByte(f, '\''); j > 0 && strings.Trim(f[j:], "'sS.,;:!?") == "" || j > 0 && len(f)-j > 1 { // my phone's: is
			out = append(out, tokenOf(f[:j], i, capitals, number), tokenOf(f[j+1:], -1, capitals, false))
		} else {
			out = append(out, tokenOf(f, i, capitals, number))
		}
		number = endsInNumber(f)
		if r, _ := utf8.DecodeLastRuneInString(f); strings.ContainsRune(ending, r) || len(words.Of(f)) == 0 {
			for k := max(0, len(out)-2); k < len(out); k++ {
				out[k].ends = out[k].ends || k == len(out)-1 || len(out[k+1].words) == 0
			}
		}
	}
	return slices.DeleteFunc(out, func(t spoken) bool { return len(t.words) == 0 })
}

func endsInNumber(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimSpace(s))
	return unicode.IsNumber(r)
}

func tokenOf(f string, place int, capitals, number bool) spoken {
	t := spoken{words: words.Of(f)}
	w := letters().FindString(f)
	short := len(w) > 1 && strings.ToUpper(w) == w && !capitals
	r, _ := utf8.DecodeRuneInString(w)
	t.name = place != 0 && unicode.IsUpper(r) && !capitals
	if len(t.words) != 1 || short || number || w == "i" && place != 0 {
		return t
	}
	switch w := t.words[0]; {
	case in("subject", w):
		t.person = first
	case in("mine", w) && w != "mine" && w != "ours": // a friend of mine
		t.person = owned
	case in("self", w):
		t.person = other
	}
	t.name = t.name && t.person == none
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
	if i := strings.LastIndexByte(s, ','); i >= 0 && denied().MatchString(s[i:]) { // September 13, not 12
		s = s[:i]
	}
	return slices.ContainsFunc(words.Of(plain(s)), func(w string) bool { return in("no", w) })
}

// toldIn are the stretches of a turn in which I may be somebody else: behind a colon, to the end
// of the paragraph or, where it ends its line or a mail begins, of all; and behind a that, to the end of the
// sentence. What stands before it says otherwise where all its words are of a list: remember that.
func toldIn(s string) (out []span) {
	for from, colon := 0, false; ; {
		m := introduces().FindStringSubmatchIndex(s[from:])
		if m == nil {
			return out
		}
		label := s[from : from+m[2]]
		if ends := lineOrStop().FindAllStringIndex(label, -1); len(ends) > 0 {
			label = label[ends[len(ends)-1][1]:]
		} else if colon { // my number: 555, my email:
			label = label[strings.LastIndexAny(label, ",;")+1:]
		}
		from, colon = from+m[3], s[from+m[2]] == ':'
		if !slices.ContainsFunc(words.Of(plain(label)), func(w string) bool { return !in("intro", w) }) {
			continue
		}
		line, _, _ := strings.Cut(s[from:], "\n")
		to := len(s)
		switch end := lineOrStop().FindStringIndex(s[from:]); {
		case colon && (strings.TrimSpace(line) == "" || mailField().MatchString(label)):
		case colon:
			if end := paragraph().FindStringIndex(s[from:]); end != nil {
				to = from + end[0]
			}
		case end != nil:
			to = from + end[0]
		}
		out = append(out, span{from, to})
		from, colon = to, false
	}
}

var (
	introduces = text.Pattern(`(?i)(:|(?:^|[^\pL])(?:that|dass|daß|que|che|dat|att|что))(?:\s|$)`)
	lineOrStop = text.Pattern(`[.!?…]\s+|\n`)
	mailField  = text.Pattern(`(?i)^\W*(from|subject|von|betreff|de|objet|asunto|da|oggetto|assunto|van|onderwerp|från|ämne|fra|emne|от|тема)\s*$`)
	paragraph  = text.Pattern(`\n[ \t\r]*\n`)
)

var request = text.Pattern(`(?i)^\W*(?:(?:hey|hi|hello|please|and|so|ok|okay|oh|well)\W+)*(?:(?:can|could|would|will) you (?:please )?(?:remember|note|keep in mind|make a note|save|store|write down)(?: that)?|(?:i want you to|i['’]d like you to|you should) (?:remember|know|note)(?: that)?|do(?:n['’]?t| not) forget(?: that)?|(?:kannst|könntest) du dir (?:bitte )?merken|(?:peux|pourrais)-tu (?:noter|retenir) que|¿?(?:puedes|podrías) (?:recordar|anotar) que)\W`)

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
