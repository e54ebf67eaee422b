package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A Form says which spellings of a text are one. Each joins all that the ones
// before it join.
type Form int

const (
	// Canonical joins capitals and small letters, composed and decomposed ones
	// (Unicode's canonical caseless matching): where a text vouches, and for the
	// names of files.
	Canonical Form = iota
	// Compatible joins characters in other dress too, wide and raised ones
	// (NFKC): for names that must not be two.
	Compatible
	// Careless joins what a program may take for one in some language, the i with
	// and without a dot: where finding too much is the safe side, in searches and
	// to say where a value may come from. It never vouches.
	Careless
)

// Fold returns a text in the form that all its spellings share.
func Fold(s string, form Form) string {
	if ASCII(s) {
		return strings.ToLower(s)
	}
	n := norm.NFKC
	if form == Canonical {
		n = norm.NFC
		s = norm.NFD.String(s)
	} else {
		s = n.String(s)
	}
	if form == Careless {
		s = strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, s)
	}
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cherokee, r) { // x/text folds its capitals to small letters, and those to capitals
			return unicode.ToUpper(r)
		}
		return r
	}, cases.Fold().String(s))
	return n.String(s)
}

// ASCII reports whether a text is all ASCII.
func ASCII(s string) bool {
	for ; len(s) >= 8; s = s[8:] { // which is one load
		if (uint64(s[0])|uint64(s[1])<<8|uint64(s[2])<<16|uint64(s[3])<<24|uint64(s[4])<<32|uint64(s[5])<<40|uint64(s[6])<<48|uint64(s[7])<<56)&0x8080808080808080 != 0 {
			return false
		}
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
