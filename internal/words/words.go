// Package words finds texts by their words: it takes texts and queries apart,
// and holds an index of them in memory. The form of its lists, a Pack, is that of
// the memory's rows too.
//
// It trusts nothing: any string is a text. A word holds letters, marks and
// digits only, of ASCII only a-z and 0-9. The function words in common.txt are of
// the languages a text is stemmed in.
package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-project/writ/internal/text"
)

const (
	// MaxWord is how many bytes of a word count. A longer one is cut before the
	// character that goes beyond.
	MaxWord = 64
	// MaxQuery is how many distinct words of a query count, the first ones.
	MaxQuery = 32
	// MaxQueryBytes is how much of a query is read.
	MaxQueryBytes = 16 << 10
)

// Of returns the words of a text in their order.
//
// A word is a run of letters, marks and digits. Words are equal whatever their
// case, compatible spelling (NFKC) and diacritics are; characters that nobody
// sees are as if they were not there. In scripts that set no space between
// words each letter is a word. All else, NUL and bytes that are not UTF-8
// included, stands between words.
func Of(of string) []string {
	var out []string
	s := splitter{f: func(w []byte) { out = append(out, string(w)) }}
	if text.ASCII(of) {
		s.ascii(of)
	} else {
		s.unicode(fold(of))
	}
	s.end()
	return out
}

// Query returns the distinct words of a query in their order, at most MaxQuery.
func Query(query string) []string {
	if len(query) > MaxQueryBytes {
		n := MaxQueryBytes
		for n > MaxQueryBytes-utf8.UTFMax && !utf8.RuneStart(query[n]) {
			n--
		}
		query = query[:n]
	}
	var out []string
	for _, w := range Of(query) {
		if len(out) < MaxQuery && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// fold sets diacritics apart from what they stand on.
func fold(s string) string {
	return norm.NFKD.String(text.Fold(strings.ToValidUTF8(s, "\uFFFD"), text.Careless))
}

type splitter struct {
	f     func([]byte)
	word  []byte
	wide  bool // the word has other than ASCII
	alone bool // the word takes no more letters
}

func (s *splitter) end() {
	if len(s.word) > 0 {
		w := s.word
		if s.wide {
			w = norm.NFC.Bytes(w)
		}
		if len(w) > MaxWord {
			n := MaxWord
			for !utf8.RuneStart(w[n]) {
				n--
			}
			w = w[:n]
		}
		s.f(w)
	}
	s.word, s.wide, s.alone = s.word[:0], false, false
}

func (s *splitter) ascii(text string) {
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			s.word = append(s.word, c)
		case 'A' <= c && c <= 'Z':
			s.word = append(s.word, c+'a'-'A')
		default:
			s.end()
		}
	}
}

func (s *splitter) unicode(folded string) {
	for _, r := range folded {
		switch {
		case r < utf8.RuneSelf:
			if s.alone {
				s.end()
			}
			s.ascii(string(r))
		case text.Hidden(r, text.Ignorable):
		case unicode.IsMark(r):
			// A mark of no script is a diacritic, but for the two that make
			// one kana of another.
			if len(s.word) > 0 && (!unicode.Is(unicode.Inherited, r) || r == '\u3099' || r == '\u309A') {
				s.add(r)
			}
		case text.Spaceless(r) && unicode.IsLetter(r):
			s.end()
			s.add(r)
			s.alone = true
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			if s.alone {
				s.end()
			}
			s.add(r)
		default:
			s.end()
		}
	}
}

func (s *splitter) add(r rune) {
	s.word = utf8.AppendRune(s.word, r)
	s.wide = true
}

// Content returns the words of a text in their order that are no function words
// of its language, each cut to what its forms have in common there; all of them
// where every word is one.
func Content(text string) []string {
	ws := Of(text)
	in := languageOf(ws)
	var all, out []string
	for _, w := range ws {
		s := in.stem(w)
		all = append(all, s)
		if function()[w]>>in&1 == 0 {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// Forms is what the words of a text can be found by: each as it is written, and
// what its forms have in common in the text's language and in English.
type Forms struct {
	in  language
	has map[string]bool
}

// FormsOf returns the forms of a text.
func FormsOf(text string) Forms {
	ws := Of(text)
	f := Forms{languageOf(ws), map[string]bool{}}
	for _, w := range ws {
		f.has[w], f.has[f.in.stem(w)] = true, true
		if f.in != 0 {
			f.has[language(0).stem(w)] = true
		}
	}
	return f
}

// Has reports whether a word, as Of returns it, is in the text in any form.
func (f Forms) Has(word string) bool {
	return f.has[word] || f.has[f.in.stem(word)] || f.in != 0 && f.has[language(0).stem(word)]
}

// Stem is what the forms of a word, as Of returns it, have in common in English.
func Stem(word string) string { return language(0).stem(word) }
