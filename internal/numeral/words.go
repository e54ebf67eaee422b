// Package numeral cuts a run of a user's own words into words, and reads the
// whole numbers that are spelt out in them, in English and German. It is the
// ground of internal/calendar and internal/money.
//
// A phrase begins and ends where a value that a user typed may (R6): Opens and
// Closes say where. What nobody sees is a mark like any other, so that no phrase
// goes through it or ends at it.
package numeral

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/text"
)

// MaxText bounds the bytes that are read; a longer text has no words.
const MaxText = 128 << 10

// Class is what a word is made of.
type Class byte

const (
	Letters Class = iota // letters, numbers other than ASCII digits, and apostrophes between them
	Digits               // ASCII digits
	Mark                 // one character that is neither
)

// Gap is what stands before a word.
type Gap byte

const (
	Glued Gap = iota // nothing
	Space            // white space, or an em dash
	Line             // white space with the end of a line in it, or the text's begin
)

// Word is a piece of a text that nothing parts: the bytes [Start, End).
type Word struct {
	Start, End int
	Fold       string // in the form its spellings share, without a possessive 's; dashes are "-"
	Class      Class
	Gap        Gap
	Opens      bool // a phrase may begin here: nothing but quotes and brackets joins it to what stands before
	Closes     bool // a phrase may end here: nothing but stops, quotes and brackets joins it to what follows
}

// The marks that set a phrase apart.
const (
	quotes   = "\"'`´“”„‟‘’‚‛«»‹›()[]{}<>¿¡"
	stops    = ",.;:!?…"
	breaks   = "\n\r\v\f\u0085\u2028\u2029"
	dashes   = "\u2010\u2011\u2013\u2212"
	inWords  = "'\u2019" // between letters
	longWord = 96        // bytes of the longest that is folded; no word of any table is so long
)

// Words returns the words of a text, in their order.
func Words(s string) (out []Word) {
	if len(s) > MaxText || !utf8.ValidString(s) {
		return nil
	}
	gap := Line
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '—' || unicode.IsSpace(r) {
			gap = max(gap, Space)
			if strings.ContainsRune(breaks, r) {
				gap = Line
			}
			i += n
			continue
		}
		w := Word{Start: i, Class: Mark, Gap: gap}
		gap = Glued
		switch {
		case digit(r):
			w.Class = Digits
			for ; i < len(s) && digit(rune(s[i])); i++ {
			}
		case text.Alphanumeric(r):
			w.Class = Letters
			i = letters(s, i)
		default:
			i += n
		}
		w.End = i
		if w.Fold = s[w.Start:i]; strings.ContainsRune(dashes, r) {
			w.Fold = "-"
		} else if w.Class == Letters && len(w.Fold) <= longWord {
			w.Fold = strings.TrimSuffix(strings.ReplaceAll(text.Fold(w.Fold, text.Canonical), "\u2019", "'"), "'s")
		}
		out = append(out, w)
	}
	edges(out)
	return out
}

func digit(r rune) bool { return r >= '0' && r <= '9' }

// letters returns where the letters that begin at i end.
func letters(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		next, _ := utf8.DecodeRuneInString(s[i+n:])
		if digit(r) || !text.Alphanumeric(r) && !(strings.ContainsRune(inWords, r) && unicode.IsLetter(next)) {
			break
		}
		i += n
	}
	return i
}

// edges says of each word whether a phrase may begin and end there.
func edges(ws []Word) {
	for from := 0; from < len(ws); {
		to := from + 1
		for to < len(ws) && ws[to].Gap == Glued {
			to++
		}
		for i := from; i < to; i++ {
			if ws[i].Opens = true; ws[i].Class != Mark || !strings.Contains(quotes, ws[i].Fold) {
				break
			}
		}
		for i := to - 1; i >= from; i-- {
			if ws[i].Closes = true; ws[i].Class != Mark || !strings.Contains(quotes+stops, ws[i].Fold) {
				break
			}
		}
		from = to
	}
}
