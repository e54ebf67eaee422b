package provenance

import (
	"strings"
	"unicode"
)

// What a user gives a value to says what it is (R6): "ID=card_1".

// assigned reports whether a word and the sign that gives it a value end at i. A link's
// parameter is none: there more than a word stands before the sign. Of several in a row,
// with nothing but blanks between them, none is: so a program writes a line of its log,
// in which a stranger chose some of the values.
func assigned(text string, i int) bool {
	word, is := strings.CutSuffix(text[:i], "=")
	if !is {
		return false
	}
	from := len(strings.TrimRightFunc(word, func(r rune) bool { return unicode.IsLetter(r) || r == '_' }))
	return from < len(word) && len(word)-from <= longestKey && wordAt(word, from) && !pairBefore(text[:from]) && !pairBehind(text[i:])
}

// pairBefore reports whether a text ends in a pair and blanks: key=value, or key="some words".
func pairBefore(text string) bool {
	s := strings.TrimRight(text, " \t")
	if len(s) == len(text) || s == "" {
		return false
	}
	if open, quoted := strings.CutSuffix(s, `"`); quoted {
		if at := strings.LastIndexAny(open, "\"\n"); at > 0 && open[at] == '"' && open[at-1] == '=' {
			return true
		}
	}
	return beginsPair(s[strings.LastIndexFunc(s, blank)+1:])
}

// pairBehind reports whether blanks and a pair follow the value that a text begins with.
func pairBehind(text string) bool {
	follows := func(s string) bool {
		next := strings.TrimLeft(s, " \t")
		return len(next) < len(s) && beginsPair(next)
	}
	if words, quoted := strings.CutPrefix(text, `"`); quoted {
		if at := strings.IndexAny(words, "\"\n"); at >= 0 && words[at] == '"' && follows(words[at+1:]) {
			return true
		}
	}
	at := strings.IndexFunc(text, blank)
	return at >= 0 && follows(text[at:])
}

// beginsPair reports whether a text begins with a key and its sign.
func beginsPair(s string) bool {
	at := strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_.-", r)
	})
	return at > 0 && s[at] == '='
}

const longestKey = 64
