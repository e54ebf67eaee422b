package text

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/runenames"
	"pgregory.net/rapid"
)

// every calls f for each code point that a string can hold.
func every(f func(rune)) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r < 0xD800 || r > 0xDFFF {
			f(r)
		}
	}
}

// level is the lowest at which r is hidden.
func level(r rune) Level {
	for l := Ignorable; l <= Unprinted; l++ {
		if Hidden(r, l) {
			return l
		}
	}
	return Unprinted + 1
}

// TestLevels goes over all code points: each level holds the ones before it,
// and all of them what Unicode says of properties of its own.
func TestLevels(t *testing.T) {
	every(func(r rune) {
		l := level(r)
		for k := l; k <= Unprinted; k++ {
			if !Hidden(r, k) {
				t.Fatalf("%U is hidden at %d and not at %d", r, l, k)
			}
		}
		// https://www.unicode.org/reports/tr44/: what Default_Ignorable_Code_Point is made of.
		ignorable := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector) &&
			!unicode.In(r, unicode.White_Space, unicode.Prepended_Concatenation_Mark) && (r < 0xFFF9 || r > 0xFFFB) && (r < 0x13430 || r > 0x13440)
		fine := true
		switch {
		case ignorable:
			fine = l == Ignorable
		case unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point):
			fine = l == Unseen
		case unicode.Is(unicode.Co, r):
			fine = l == Unclear
		case r == ' ':
			fine = l > Unprinted
		case unicode.Is(unicode.White_Space, r):
			fine = l == Unprinted
		}
		if !fine || !unicode.IsPrint(r) && l > Unprinted {
			t.Errorf("%U %s is hidden from level %d", r, runenames.Name(r), l)
		}
	})
	for r, want := range map[rune]Level{
		0x200B: Ignorable, 0x202E: Ignorable, 0x00AD: Ignorable, 0x034F: Ignorable, 0x180E: Ignorable, 0x3164: Ignorable, 0xFE0F: Ignorable,
		0x200D: Ignorable, 0x115F: Ignorable, 0x1160: Ignorable, 0xFFA0: Ignorable, 0xE0041: Ignorable, 0xE01EF: Ignorable, 0xFEFF: Ignorable,
		0x2800: Unseen, 0x2028: Unseen, 0x0085: Unseen, 0x001B: Unseen, 0xFFFF: Unseen, 0x1D159: Unseen, 0x13441: Unseen, 0x16FE4: Unseen,
		0xE000: Unclear, 0x0378: Unclear, 0x00A0: Unprinted, 0x3000: Unprinted,
		'a': Unprinted + 1, 'é': Unprinted + 1, 0x0301: Unprinted + 1, '中': Unprinted + 1, 0x1F600: Unprinted + 1, 0x2801: Unprinted + 1, unicode.ReplacementChar: Unprinted + 1,
	} {
		if got := level(r); got != want {
			t.Errorf("%U is hidden from level %d, want %d", r, got, want)
		}
	}
	if !HidesIn("a\nb\u2800", Unclear, "\n") || HidesIn("a\nb", Unclear, "\n") || HidesIn("", Unprinted, "") {
		t.Error("HidesIn")
	}
}

// TestBlankByName holds the table of blank glyphs against Unicode's names: what
// is called blank, a filler, empty or the like is hidden, or one of those that
// show a mark.
func TestBlankByName(t *testing.T) {
	shown := map[rune]bool{}
	for _, r := range "\u060D\u066B\u066C\u06EA\u06EB\u10FB\u1361\u1368\u2205\u2396\u29B0\u29B1\u29B2\u29B3\u29B4\u2422\u2D70\u2D7F\u2E31\u3037" +
		"\u303F\uA837\uA8F9\uFFFC\U00010100\U00010101\U0001091F\U00010AF6\U0001107F\U000111C8\U0001123A\U0001144E\U0001145B\U000115C4\U000115C5" +
		"\U00011945\U00011A47\U00011A99\U00011C43\U00011C44\U00011C45\U00011F42\U00011F48\U0001DA7F\U0001DA80\U0001ECAC\U0001F5C5\U0001F5C6" +
		"\U0001F5C7\U0001F5CB\U0001F5CC\U0001F5CD\U0001FAB9" {
		shown[r] = true
	}
	every(func(r rune) {
		name := runenames.Name(r)
		if shown[r] || strings.HasPrefix(name, "SYMBOL FOR ") {
			return
		}
		for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == ' ' || r == '-' }) {
			switch word {
			case "BLANK", "FILLER", "NULL", "EMPTY", "SPACE", "INVISIBLE", "PLACEHOLDER", "SEPARATOR", "JOINER", "SUBJOINER", "CONJOINER", "INHERENT":
				if level(r) > Unseen && !unicode.Is(unicode.White_Space, r) {
					t.Errorf("%U %s is not hidden, and not among those that show a mark", r, name)
				}
			}
		}
	})
}

// TestFold: forms against Go's own table of case, over all code points, and
// what they do not join.
func TestFold(t *testing.T) {
	forms := []Form{Canonical, Compatible, Careless}
	joined := [3]map[string]string{{}, {}, {}}
	every(func(r rune) {
		if unicode.In(r, unicode.C, unicode.Han, unicode.Hangul) {
			return // of one form each, and many
		}
		s := string(r)
		for _, f := range forms {
			got := Fold(s, f)
			if again := Fold(got, f); again != got {
				t.Errorf("%U: form %d of its form %q is %q", r, f, got, again)
			}
			if k := unicode.SimpleFold(r); Fold(string(k), f) != got {
				t.Errorf("%U and %U are two in form %d", r, k, f)
			}
			if f > Canonical {
				if was, ok := joined[f][Fold(s, f-1)]; ok && was != got {
					t.Errorf("%U: form %d joins what form %d does not", r, f-1, f)
				}
				joined[f][Fold(s, f-1)] = got
			}
		}
	})
	for _, c := range []struct {
		a, b string
		one  Form // the first that joins them
	}{
		{"Kim", "KIM", Canonical}, {"é", "E\u0301", Canonical}, {"straße", "STRASSE", Canonical}, {"ὀδυσσεύς", "ὈΔΥΣΣΕΎΣ", Canonical},
		{"ᾳ\u0301", "\u1FB4", Canonical}, {"Ꭰ", "ꭰ", Canonical},
		{"kim", "ｋｉｍ", Compatible}, {"ﬁle", "file", Canonical}, {"x²", "x2", Compatible}, {"ſ", "s", Canonical}, {"K", "k", Canonical},
		{"İzmir", "izmir", Careless}, {"ırmak", "irmak", Careless}, {"IRMAK", "ırmak", Careless},
		{"Kim", "Kím", Careless + 1}, {"pаypal", "paypal", Careless + 1}, {"kim", "k\u200bim", Careless + 1}, {"kim", "k im", Careless + 1},
	} {
		for _, f := range forms {
			if one := Fold(c.a, f) == Fold(c.b, f); one != (f >= c.one) {
				t.Errorf("%q and %q in form %d: one %v", c.a, c.b, f, one)
			}
		}
	}
}

// TestWhole reads testdata/whole.txt.
func TestWhole(t *testing.T) {
	b, err := os.ReadFile("testdata/whole.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, line := range strings.Split(string(b), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, " | ")
		text, err1 := strconv.Unquote(`"` + fields[0] + `"`)
		piece, err2 := strconv.Unquote(`"` + fields[1] + `"`)
		at := strings.Index(text, piece)
		if len(fields) != 3 || err1 != nil || err2 != nil || at < 0 {
			t.Fatalf("line %d: not a text and a piece of it: %s", i+1, line)
		}
		prev, next := steps(text)
		quote := (at == 0 || Apart(at, prev, next)) && (at+len(piece) == len(text) || Apart(at+len(piece), prev, next))
		got := map[[2]bool]string{{true, true}: "both", {true, false}: "quote", {false, true}: "value", {false, false}: "none"}[[2]bool{quote, Stands(text, piece, true)}]
		if n++; got != fields[2] {
			t.Errorf("line %d: %s: %s", i+1, line, got)
		}
	}
	if n < 60 {
		t.Errorf("only %d cases", n)
	}
	for text, want := range map[string]bool{"12": false, " 12": false, "12 ": false, " 12 ": true} {
		if Stands(text, "12", false) != want {
			t.Errorf("12 stands in %q, of which the ends are cut off: not %v", text, want)
		}
	}
	for n, want := range map[int]bool{maxIgnored - 1: true, maxIgnored: false} {
		if got := Stands("a"+strings.Repeat("\u00ad", n)+" b", "b", true); got != want {
			t.Errorf("a value near %d soft hyphens: %v", n, got)
		}
	}
}

// TestStandsAgainstModel: every place is looked at, whatever is passed over.
func TestStandsAgainstModel(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		piece := func(name string, n int) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(strings.Split("a|b|5|.|,|:|-|—|'|_|+|/|$| |\u2003|\u200b|\u0301|中|文|。|\"|kg|T", "|")), 1, n).Draw(t, name), "")
		}
		text, value := piece("text", 12), piece("value", 3)
		if rapid.Bool().Draw(t, "held") { // by chance alone one run in forty has none that stands
			text += " " + value
		}
		want := false
		for i := range text {
			if strings.HasPrefix(text[i:], value) && begins(text, i, value) && ends(text, i+len(value), value) {
				want = true
				found++
			}
		}
		if got := Stands(text, value, true); got != want {
			t.Fatalf("%q in %q: %v, want %v", value, text, got, want)
		}
		if Stands(text, value, false) && !want {
			t.Fatal("what is cut off has more in it")
		}
	})
	if found == 0 {
		t.Error("nothing stood: the property says nothing")
	}
}

func TestDigit(t *testing.T) {
	every(func(r rune) {
		if d := Digit(r); (d >= 0) != unicode.Is(unicode.Nd, r) || d > 9 {
			t.Errorf("%U is the digit %d", r, d)
		} else if d >= 0 && !strings.Contains(runenames.Name(r), []string{"ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE"}[d]) {
			t.Errorf("%U %s is taken for %d", r, runenames.Name(r), d)
		}
	})
}

func ExampleHidden() {
	fmt.Println(Hidden('\u200d', Ignorable), Hidden('\u2800', Ignorable), Hidden('\u2800', Unseen), Hidden('é', Unprinted))
	// Output: true false true false
}

// TestRows: whatever is shown on a terminal, each row but the first
// begins with a bar, none is wider than the terminal, and nothing is lost.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.SampledFrom([]string{"", "the model asks: ", "- quote checked: "}).Draw(t, "label")
		words := OneLine(rapid.StringN(0, 200, -1).Draw(t, "text")+rapid.SampledFrom([]string{"", strings.Repeat(" ", 90) + "run r_a", "\nrun r_a"}).Draw(t, "end"), 1000)
		columns := rapid.IntRange(0, 100).Draw(t, "columns")
		got := strings.Split(Rows(label, words, columns), "\n")
		whole := got[0]
		for i, row := range got {
			wide := 0
			for _, r := range row {
				if wide++; r >= 0x80 {
					wide++
				}
			}
			if columns >= 20 && wide > columns {
				t.Fatalf("row %d is %d wide of %d: %q", i, wide, columns, row)
			}
			if i > 0 {
				rest, ok := strings.CutPrefix(row, "  | ")
				if !ok {
					t.Fatalf("row %d: %q", i, row)
				}
				whole += rest
			}
		}
		if whole != label+words {
			t.Fatalf("%q is not %q", whole, label+words)
		}
	})
}

// TestRowsEndBetweenWords: but for a word that is longer than a row.
func TestRowsEndBetweenWords(t *testing.T) {
	for text, want := range map[string]string{
		"one two three four":      "is one two \n  | three four",
		"one two thirteenth four": "is one two \n  | thirteenth \n  | four",
		"a_word_longer_than_rows": "is a_word_longe\n  | r_than_rows",
		"one twelve_three":        "is one twelve_t\n  | hree",
	} {
		if got := Rows("is ", text, 15); got != want {
			t.Errorf("%q is not %q", got, want)
		}
	}
}
