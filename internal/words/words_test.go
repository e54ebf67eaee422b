package words

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// check is what stores rely on: a word is not empty, not too long, and of ASCII
// has lower case letters and digits only.
func check(t *testing.T, text string, ws []string) {
	t.Helper()
	for _, w := range ws {
		if w == "" || len(w) > MaxWord || !utf8.ValidString(w) {
			t.Fatalf("%q has the word %q", text, w)
		}
		for _, r := range w {
			if r < utf8.RuneSelf && !('a' <= r && r <= 'z' || '0' <= r && r <= '9') || !unicode.In(r, unicode.L, unicode.M, unicode.N) {
				t.Fatalf("%q has the word %q with %U", text, w, r)
			}
		}
	}
}

// TestEveryRune: between two words, within one and alone, each character there
// is makes words as they must be.
func TestEveryRune(t *testing.T) {
	last := rune(0x20000)
	if os.Getenv("WRIT_LONG") == "1" {
		last = unicode.MaxRune
	}
	for r := range last + 1 {
		text := fmt.Sprintf("a%cb %c", r, r)
		ws := Of(text)
		check(t, text, ws)
		if len(ws) == 0 || !strings.HasPrefix(ws[0], "a") {
			t.Fatalf("%q: %q", text, ws)
		}
		if got := Of(strings.Join(ws, " ")); !slices.Equal(got, ws) {
			t.Fatalf("%q: the words %q have the words %q", text, ws, got)
		}
		// A query of another case finds it.
		for _, u := range []rune{unicode.ToUpper(r), unicode.ToTitle(r), unicode.ToLower(r)} {
			if got := Of(fmt.Sprintf("A%cB %c", u, u)); !slices.Equal(got, ws) {
				t.Fatalf("%q: %q, as %q %q", text, ws, u, got)
			}
		}
	}
}

func FuzzOf(f *testing.F) {
	for _, s := range []string{"", "The fox", "\" OR 1=1 --", "NEAR(", "%*^-:", "a\x00b", "\xff\xc3", "e\u0301\u0323", "が ま\u3099", "I\u0307ß", "ﬁ\u00adx", "\U0001F600", strings.Repeat("\u0301", 100), strings.Repeat("ж", 100), "東京a京1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ws := Of(text)
		check(t, text, ws)
		if utf8.ValidString(text) && len(text) == utf8.RuneCountInString(text) {
			var long []string
			s := splitter{f: func(w []byte) { long = append(long, string(w)) }}
			s.unicode(fold(text))
			s.end()
			if !slices.Equal(long, ws) {
				t.Fatalf("%q: %q, the long way %q", text, ws, long)
			}
		}
		// Texts side by side have the words of both.
		if got, want := Of(text+" \x00 "+text), append(slices.Clone(ws), ws...); !slices.Equal(got, want) {
			t.Fatalf("%q twice: %q", text, got)
		}
		q := Query(text)
		if len(q) > MaxQuery {
			t.Fatalf("%d words", len(q))
		}
		if len(text) > MaxQueryBytes {
			return
		}
		var want []string
		for _, w := range ws {
			if !slices.Contains(want, w) && len(want) < MaxQuery {
				want = append(want, w)
			}
		}
		if !slices.Equal(q, want) {
			t.Fatalf("%q: query %q, want %q", text, q, want)
		}
	})
}
