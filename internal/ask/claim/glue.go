package claim

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// signs stand before a number and are part of it, beside all dashes (Pd).
	signs = "+\u2212\u207a\u207b\u208a\u208b\u02d7\u2796\ufe62\uff0b\u00b1\u2213"
	// hyphens join what stands on both sides to one word. A dash does not.
	hyphens = "-\u2010\u2011\ufe63\uff0d"
	// apostrophes stand inside a word, as in isn't.
	apostrophes = "'\u2019\u2018\u201b\u02b9\u2032\u00b4`\uff07\u05f3\u05f4\u00b7\u2027"
	// fractions begin the fraction of a number, also of one without a whole part.
	fractions = ".,\u066b\uff0e\uff0c"
	// groups stand between two digits of one number, as fractions do: between
	// its thousands, or as the bar of a fraction or the colon of a time.
	groups = "'\u2019\u00b7\u066c\u02d9\u2027\u2219\u22c5\u00a0\u202f\u2006\u2007\u2008\u2009\u200a/\u2044\u2215:"
	// maxUnseen bounds how many characters nobody sees are passed over at one
	// place. Where more stand together no quote begins or ends.
	maxUnseen = 64
)

// glued reports whether a word or a number holds together what stands before
// and behind an offset of the text. What nobody sees holds nothing apart: a
// soft hyphen inside a word leaves it one word.
func (s *Source) glued(offset int) bool {
	a, i, ok1 := s.seen(offset, s.prev)
	before, _, ok2 := s.seen(i, s.prev)
	b, i, ok3 := s.seen(offset, s.next)
	after, _, ok4 := s.seen(i, s.next)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return true
	}
	digit, in := unicode.IsNumber, strings.ContainsRune
	switch {
	case inWord(a) && inWord(b):
		return true
	case sign(a) && (digit(b) || in(fractions, b) && digit(after) || unicode.Is(unicode.Sc, b)):
		return true // -12, -.5, -$12; or what stands behind the hyphen of INC-1042
	case unicode.Is(unicode.Sc, a) && sign(before) && (digit(b) || in(fractions, b)):
		return true // -$12
	case digit(a) && (in("-\u2212\ufe63\uff0d", b) || sign(b) && digit(after)):
		return true // 1042-77; or a sign behind its number
	case inWord(before) && in(hyphens, a) && inWord(b), inWord(a) && in(hyphens, b) && inWord(after):
		return true
	case inWord(before) && in(apostrophes, a) && inWord(b), inWord(a) && in(apostrophes, b) && inWord(after):
		return true
	case digit(b) && in(fractions, a):
		return true // the fraction of what stands before, or of nothing: .5
	case digit(before) && in(groups, a) && digit(b), digit(a) && in(fractions+groups, b) && digit(after):
		return true
	}
	return unicode.Is(unicode.M, b) // a mark belongs to the character before
}

func sign(r rune) bool { return unicode.Is(unicode.Pd, r) || strings.ContainsRune(signs, r) }

func inWord(r rune) bool {
	return r != utf8.RuneError && unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Pc)
}

// unseen is what a reader is not shown: formatting, and control characters that
// are no white space.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point) || unicode.Is(unicode.Cc, r) && !unicode.IsSpace(r)
}

// seen steps from an offset to the first character a reader is shown, which is
// the error rune at the end of the text. It reports false where too many that
// nobody sees stand before it.
func (s *Source) seen(at int, step func(int) (rune, int)) (r rune, to int, ok bool) {
	for range maxUnseen {
		if r, to = step(at); !unseen(r) {
			return r, to, true
		}
		at = to
	}
	return 0, at, false
}

// prev returns the character that ends at an offset, and where it begins. What
// an escape stands for is no letter: it is given as a backslash.
func (s *Source) prev(at int) (rune, int) {
	if at > 0 && !s.plain && s.body[at-1] < utf8.RuneSelf {
		if r, ok := s.runAt(at); ok && r.atom && s.body[r.text] == '\\' {
			return '\\', r.text
		}
	}
	r, n := utf8.DecodeLastRuneInString(s.body[:at])
	return r, at - n
}

// next returns the character that begins at an offset, and where it ends.
func (s *Source) next(at int) (rune, int) {
	if !s.plain && at < len(s.body) && s.body[at] == '\\' {
		if strings.HasPrefix(s.body[at:], `\u`) {
			return '\\', at + 6
		}
		return '\\', at + 2
	}
	r, n := utf8.DecodeRuneInString(s.body[at:])
	return r, at + n
}
