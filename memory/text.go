package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-project/writ/internal/text"
)

// normName is the form in which names are equal: NFKC, case folded, everything
// but letters, marks and digits one space, trimmed. It joins spellings of one
// name and nothing more: B0b is not Bob, and neither is a Cyrillic look-alike.
func normName(s string) string {
	return strings.Join(strings.FieldsFunc(text.Fold(s, text.Compatible), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}), " ")
}

// tidy is a text in NFC, without control and other unseen characters, trimmed. Line
// breaks, tabs and blank glyphs become one space each.
func tidy(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || text.Blank(r) && !text.Hidden(r, text.Ignorable):
			return ' '
		case text.Hidden(r, text.Unseen):
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(norm.NFC.String(s))
}

// trigrams returns the distinct runs of three runes of a normalised name with
// a space around it, sorted.
func trigrams(name string) []string {
	rs := []rune(" " + name + " ")
	var out []string
	for i := 0; i+3 <= len(rs); i++ {
		out = append(out, string(rs[i:i+3]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// jaccard is |a∩b| / |a∪b| of two sorted sets, in percent, rounded down.
func jaccard(a, b []string) Percent {
	both := 0
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); ok {
			both++
		}
	}
	if all := len(a) + len(b) - both; all > 0 {
		return Percent(both * 100 / all)
	}
	return 0
}

// runes counts code points.
func runes(s string) int { return utf8.RuneCountInString(s) }
