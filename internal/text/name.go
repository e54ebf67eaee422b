package text

import (
	"strings"
	"unicode"
)

// NameWords takes a name of a program apart, into words in small letters: at everything
// that is no letter, and before a capital that follows a small letter.
func NameWords(name string) (out []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
		}
		word = nil
	}
	last := rune(0)
	for _, r := range name {
		if !unicode.IsLetter(r) || unicode.IsUpper(r) && unicode.IsLower(last) {
			end()
		}
		if last = r; unicode.IsLetter(r) {
			word = append(word, r)
		}
	}
	end()
	return out
}
