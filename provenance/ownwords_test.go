package provenance

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/strictjson"
)

// TestOwnWords (R6, P06): each form of what is not the user's own, and his words
// beside it.
func TestOwnWords(t *testing.T) {
	var cases []struct {
		Form, Turn, Quote string
		Own               bool
	}
	load(t, "testdata/own_words.yaml", &cases)
	for _, c := range cases {
		own := slices.ContainsFunc(OwnWords(c.Turn), func(s string) bool { return strings.Contains(s, c.Quote) })
		if own != c.Own || !strings.Contains(c.Turn, c.Quote) {
			t.Errorf("R6 %s: %q in %q: own %v", c.Form, c.Quote, c.Turn, own)
		}
	}
	for _, text := range []string{"", "\xff my own", "my\x00own", strings.Repeat("a ", MaxTurn)} {
		if got := OwnWords(text); got != nil {
			t.Errorf("%d bytes that are no turn have words: %d", len(text), len(got))
		}
	}
}

// turnPieces are what a drawn turn is made of: every mark that sets text apart,
// whole and in parts.
var turnPieces = []string{"pay DE00-1", "kim@acme.example", "INV-100", "13", "a", "ä", " ", " ", ", ", "\n", "\n", "\r", "\u2028", "\u200b",
	"> ", "\n> ", "\n- > ", "＞", "```", "\n```\n", "~~~", "`", "<a>", "</a>", "<a ", "<b1>", "</b1>", "<br>", "<x/>", ">", "<!--", "-->", "<", "</a"}

func drawTurn(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(turnPieces), 1, 24).Draw(t, "turn"), "")
}

// TestOwnWordsAgainstBlotting: the stretches are, byte by byte and in order,
// what the blotted text leaves; no stretch can be longer; and the gate itself
// finds a value in a turn only inside one of them.
func TestOwnWordsAgainstBlotting(t *testing.T) {
	parts, typed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawTurn(t)
		own, rest := split(text)
		got := OwnWords(text)
		at := 0
		for _, s := range got {
			for at < len(own) && own[at] == 0 {
				at++
			}
			end := at + len(s)
			if s == "" || end > len(own) || own[at:end] != s || text[at:end] != s || end < len(own) && own[end] != 0 {
				t.Fatalf("%q: %q is no stretch of %q at %d", text, s, own, at)
			}
			if strings.Trim(rest[at:end], "\x00") != "" {
				t.Fatalf("%q: %q is another's too", text, s)
			}
			at = end
		}
		if strings.Trim(own[at:], "\x00") != "" {
			t.Fatalf("%q: %q is left over", text, own[at:])
		}
		if len(got) > 1 {
			parts++
		}
		for _, v := range []string{"pay DE00-1", "kim@acme.example", "INV-100"} {
			if _, r := typedIn(t, text).Typed(Query{Raw: strictjson.Quote(v), Authority: true}); r == "" {
				typed++
				if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, v) }) {
					t.Fatalf("%q: the gate takes %q for the user's, and it is not among his words", text, v)
				}
			}
		}
	})
	if parts == 0 || typed == 0 {
		t.Errorf("the draw shows nothing: %d turns in parts, %d values typed", parts, typed)
	}
}
