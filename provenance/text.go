package provenance

import (
	"slices"
	"unicode"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// CheckText returns form.invisible for a JSON string that holds a character
// nobody sees (text.Unseen). It
// returns "" for every value of another kind. An authority argument must pass it whether
// typed or not, or two names that look alike would be two names.
func CheckText(v strictjson.Value) writ.Reason {
	s, ok := v.Text()
	switch {
	case ok:
		return visible(s)
	case v.Kind() == 0 || v.Kind() == strictjson.String: // bytes that are no JSON
		return writ.FormNotCanonical
	}
	return ""
}

// Lines reports whether nothing is wrong with a value but that it goes on in another line
// or has a tab in it.
func Lines(v strictjson.Value) bool {
	s, ok := v.Text()
	return ok && utf8.ValidString(s) && text.HidesIn(s, text.Unseen, "") && !text.HidesIn(s, text.Unseen, "\n\t")
}

// visible is CheckText on decoded text.
func visible(s string) writ.Reason {
	switch {
	case text.HidesIn(s, text.Unseen, ""):
		return writ.FormInvisible
	case !utf8.ValidString(s):
		return writ.FormNotCanonical
	}
	return ""
}

// eastAsian holds the scripts that one text mixes as a matter of course
// (UTS #39, "highly restrictive"): each set may stand with Latin.
var eastAsian = [][]string{{"Han", "Hiragana", "Katakana", "Latin"}, {"Han", "Hangul", "Latin"}, {"Han", "Bopomofo", "Latin"}}

// mixedScript reports whether s draws letters from scripts that no one writing
// system mixes, as `pаypal` with a Cyrillic а does.
func mixedScript(s string) bool {
	seen := map[string]bool{}
	for _, r := range s {
		if n := script(r); n != "" {
			seen[n] = true
		}
	}
	if len(seen) < 2 {
		return false
	}
	return !slices.ContainsFunc(eastAsian, func(set []string) bool {
		for n := range seen {
			if !slices.Contains(set, n) {
				return false
			}
		}
		return true
	})
}

// script names the script of r, "" for one shared by many.
func script(r rune) string {
	if r < utf8.RuneSelf {
		if r|0x20 >= 'a' && r|0x20 <= 'z' {
			return "Latin"
		}
		return ""
	}
	if unicode.In(r, unicode.Common, unicode.Inherited) {
		return ""
	}
	for n, t := range unicode.Scripts {
		if n != "Common" && n != "Inherited" && unicode.Is(t, r) {
			return n
		}
	}
	return "unknown"
}
