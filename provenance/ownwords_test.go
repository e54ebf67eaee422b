package provenance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// TestOwnWords (R6, P06, Q01–Q12): each form of what is not the user's own, and his words
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

// containers are what a user sets a passage apart with: whole has %s in the place
// of the passage, and each line of it, after a line feed, begins with line.
var containers = []struct{ whole, line string }{
	{"```\n%s\n```", ""}, {"look:\n````sh\n%s\n````", ""}, {"see ```%s``` there", ""}, {"~~~\n%s\n~~~", ""}, {"sum up \"\"\"%s\"\"\" now", ""},
	{"<mail>%s</mail>", ""}, {"see <mail from=\"x\">%s</mail> there", ""}, {"look:\n<pre>\n%s\n</pre>", ""}, {"&lt;mail&gt;%s&lt;/mail&gt;", ""},
	{"<img src=\"x\" alt=\"%s\">", ""}, {"see <input value='%s' disabled> there", ""}, {"see <mail a=\"%s\" b=\"x\"/> there", ""}, {"<a title=\"%s\">x</a>", ""},
	{"<!-- %s -->", ""}, {"see <![CDATA[%s]]> there", ""}, {"<?mail %s ?>", ""}, {"<!DOCTYPE x \"%s\">", ""}, {"see ![%s](x.png) there", ""}, {"![x](y \"%s\")", ""},
	{"[quote=x]%s[/quote]", ""}, {"[code]\n%s\n[/code]", ""},
	{"look:\n\n> %s\n", "> "}, {"1. look:\n   > %s\n", "   > "}, {"look:\n\n    %s\n", "    "}, {"look:\n\n\t%s\n", "\t"},
}

// passagePieces are what the writer of a passage draws on: words that are to
// vouch, and all that anything can begin or end with.
var passagePieces = []string{"evil", "evil", "evil", " ", " ", "\n", "\n", "\n\n", "\r", "\r\n", "\r\r", "\u2028", "\u0085", "\u00a0", "\u200b", "\t", "    ",
	"```", "````", "~~~", "`", "\"\"\"", "\"", "'", "\"/>", "\">", ">", "> ", "\n> ", "->", "<", "</", "<mail>", "</mail>", "</mail >", "<mail ", "</pre>", "</img>", "<a b=\"", "</a>", "<b>", "<br>",
	"<h1>", "<T>", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>", "<!D", "![", "](", ")", "]", "[quote]", "[/quote]", "[code]", "[/code]", "[x]: y\n",
	"- ", "\n- ", "\n1. ", "\n# ", "\n===\n", "\n---\n", "\n\n    ", "***", "&gt;", "&lt;/mail&gt;", "&#10;", "&#62;", "\\", "x"}

// drawPasted returns a turn of own words and containers with passages in them: no word
// "evil" in it is the user's.
func drawPasted(t *rapid.T) string {
	var b strings.Builder
	for range rapid.IntRange(1, 3).Draw(t, "blocks") {
		c := rapid.SampledFrom(containers).Draw(t, "container")
		passage := strings.Join(rapid.SliceOfN(rapid.SampledFrom(passagePieces), 1, 14).Draw(t, "passage"), "")
		fmt.Fprintf(&b, "kind words\n\n"+c.whole+"\n\n", strings.ReplaceAll(passage, "\n", "\n"+c.line))
	}
	return b.String() + "more words\n"
}

// TestPastedStaysPasted (R6, Q01–Q12): what stands in a block that the user
// closed is not his, whatever stands in it and around it.
func TestPastedStaysPasted(t *testing.T) {
	own := 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawPasted(t)
		words := strings.Join(OwnWords(text), "|")
		if strings.Contains(words, "evil") {
			t.Fatalf("%q: his own are %q", text, words)
		}
		if strings.Contains(words, "more words") {
			own++
		}
	})
	if own == 0 {
		t.Error("the draw never leaves the user a word after a block")
	}
}

// turnPieces are what a drawn turn is made of: every mark that sets text apart,
// whole and in parts.
var turnPieces = []string{"pay DE00-1", "kim@acme.example", "INV-100", "13", "a", "ä", " ", " ", ", ", "\n", "\n", "\r", "\u2028", "\u200b",
	"> ", "\n> ", "\n- > ", "＞", "```", "\n```\n", "~~~", "`", "<a>", "</a>", "<a ", "<b1>", "</b1>", "<br>", "<x/>", ">", "<!--", "-->", "<", "</a",
	"\n\n", "\n\n    ", "\n- ", "&gt;", "&lt;", "b=\"", "\"", "[quote]", "[/quote]", "![", "](", ")", "<?", "?>", "\n-----Original Message-----\n"}

func drawTurn(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(turnPieces), 1, 24).Draw(t, "turn"), "")
}

// FuzzPasted: of a passage in a closed block no byte that shows anything is the
// user's, and what stretches he has are in order and of his turn (R6).
func FuzzPasted(f *testing.F) {
	for i := range containers {
		f.Add(uint8(i), "evil\n\nevil")
		f.Add(uint8(i), "</mail>\"/>-->]]>?>``` \"\"\"[/quote]](x)\r\revil\n\nevil")
	}
	f.Fuzz(func(t *testing.T, which uint8, passage string) {
		c := containers[int(which)%len(containers)]
		before, after, _ := strings.Cut("kind words\n\n"+c.whole+"\n\nmore words", "%s")
		passage = strings.ReplaceAll(passage, "\n", "\n"+c.line)
		turn := before + passage + after
		if !isTurn(turn) {
			return
		}
		own, rest := split(turn)
		if len(own) != len(turn) || len(rest) != len(turn) {
			t.Fatal("places moved")
		}
		for i := range len(turn) {
			if (own[i] == 0) == (rest[i] == 0) || own[i]|rest[i] != turn[i] {
				t.Fatalf("byte %d of %q is both's or nobody's", i, turn)
			}
		}
		for _, r := range own[len(before) : len(before)+len(passage)] {
			if r != 0 && r != 0xFFFD && !unicode.IsSpace(r) && !text.Hidden(r, text.Unseen) {
				t.Fatalf("%q in %q is his own", passage, turn)
			}
		}
	})
}

// TestOwnWordsAgainstBlotting: the stretches are, byte by byte and in order,
// what the blotted text leaves; no stretch can be longer; and the gate itself
// finds a value in a turn only inside one of them.
func TestOwnWordsAgainstBlotting(t *testing.T) {
	parts, typed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawTurn(t)
		if rapid.Bool().Draw(t, "with blocks") {
			text = drawPasted(t) + text
		}
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
			if _, r := typedIn(t, text).Typed(Query{Value: strictjson.StringOf(v), Authority: true}); r == "" {
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
