package provenance

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestWordings: a person adds to testdata/wordings.txt.
func TestWordings(t *testing.T) {
	data, err := os.ReadFile("testdata/wordings.txt")
	if err != nil {
		t.Fatal(err)
	}
	phrase, n := "", 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch mark, rest, _ := strings.Cut(line, " "); {
		case line == "" || mark == "#":
		case mark == "!":
			if why := PhraseFault(phrase); why != rest {
				t.Errorf("%s: %q, not %q", phrase, why, rest)
			}
			n++
		case mark == "+" || mark == "-":
			if why := PhraseFault(phrase); why != "" {
				t.Errorf("%s: %s", phrase, why)
			}
			if got := WordingOf(phrase).follow(rest, 0, func(_ []string, end int) bool { return end == len(rest) }); got != (mark == "+") {
				t.Errorf("%s: %q is said: %v", phrase, rest, got)
			}
			n++
		default:
			phrase = line
		}
	}
	if n < 20 {
		t.Errorf("%d lines were read", n)
	}
}

// TestLexicon: each meaning can be said, and its plain forms say it.
func TestLexicon(t *testing.T) {
	for name := range meanings() {
		phrase := "<" + name + ">"
		if why := PhraseFault(phrase); why != "" {
			t.Errorf("%s: %s", phrase, why)
		}
		for _, plain := range PlainPhrases(phrase, 100) {
			if !WordingOf(phrase).follow(plain, 0, func(_ []string, end int) bool { return end == len(plain) }) {
				t.Errorf("%s: %q does not say it", phrase, plain)
			}
		}
	}
}

// FuzzWording: whatever is written as a phrase is read or has its fault, and what it plainly
// stands for says it.
func FuzzWording(f *testing.F) {
	for _, s := range []string{"lock the doors", "(a|b c)? d", "<close> it?", "((a|b) c|<it>) e", "a (", ">", "?"} {
		f.Add(s, "a the b")
	}
	f.Fuzz(func(t *testing.T, phrase, text string) {
		if why := PhraseFault(phrase); why != "" || !utf8.ValidString(phrase) {
			return
		}
		WordingOf(phrase).follow(text, 0, func([]string, int) bool { return false })
		for _, plain := range PlainPhrases(phrase, 3) {
			if words := strings.Fields(plain); len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.ContainsFunc(w, isMark) }) &&
				!WordingOf(phrase).follow(plain, 0, func(_ []string, end int) bool { return end == len(plain) }) {
				t.Errorf("%q: %q does not say it", phrase, plain)
			}
		}
	})
}

// TestWordingBound: what a phrase costs that may leave out much, in a text that says much, is bounded.
func TestWordingBound(t *testing.T) {
	phrase := strings.Repeat("a? ", 60) + "b"
	if WordingOf(phrase).follow(strings.Repeat("a ", 60)+"c", 0, func([]string, int) bool { return true }) {
		t.Error("it is said")
	}
}
