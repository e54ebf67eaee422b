package words

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
)

// common.txt has a language in each line: its name and its function words.
//
//go:embed common.txt
var common string

// A language is what a text is written in, an index into languages.
type language uint8

var languages = [...]struct {
	name string
	stem func(*snowballstem.Env) bool
}{
	{"english", english.Stem}, // where nothing says otherwise
	{"danish", danish.Stem},
	{"dutch", dutch.Stem},
	{"french", french.Stem},
	{"german", german.Stem},
	{"italian", italian.Stem},
	{"norwegian", norwegian.Stem},
	{"portuguese", portuguese.Stem},
	{"russian", russian.Stem},
	{"spanish", spanish.Stem},
	{"swedish", swedish.Stem},
}

// function says of which languages a word is a function word: a bit each.
var function = sync.OnceValue(func() map[string]uint16 {
	out := map[string]uint16{}
	for line := range strings.Lines(common) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if l := named(name); l >= 0 {
			for _, w := range Of(rest) {
				out[w] |= 1 << l
			}
		}
	}
	return out
})

// named is the language of that name, -1 for none.
func named(name string) int {
	for l := range languages {
		if languages[l].name == name {
			return l
		}
	}
	return -1
}

// languageOf is the language whose function words a text has the most of, the
// first of equals; with none of any, Cyrillic is Russian and the rest English.
func languageOf(words []string) language {
	var votes [len(languages)]int
	cyrillic := false
	for _, w := range words {
		of := function()[w]
		for l := range votes {
			votes[l] += int(of >> l & 1)
		}
		first, _ := utf8.DecodeRuneInString(w)
		cyrillic = cyrillic || unicode.Is(unicode.Cyrillic, first)
	}
	most := slices.Max(votes[:])
	if most == 0 && cyrillic {
		return language(named("russian"))
	}
	return language(slices.Index(votes[:], most))
}

// stem is what the forms of a word have in common, by the Snowball algorithm of
// the language.
func (l language) stem(word string) string {
	env := snowballstem.NewEnv(word)
	languages[l].stem(env)
	if s := env.Current(); s != "" {
		return s
	}
	return word
}
