package screen

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
)

var update = flag.Bool("update", false, "write the faults of testdata/faults anew")

// TestFaults: what is wrong with an operator's file is told by line and column,
// and nothing of such a file is used.
func TestFaults(t *testing.T) {
	files, _ := filepath.Glob("testdata/faults/*.txtar")
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(ar.Files); i += 2 {
			f, want := ar.Files[i], &ar.Files[i+1]
			s, faults := Parse(f.Name, f.Data)
			got := ""
			for _, fault := range faults {
				got += fault.String() + "\n"
			}
			if s != nil {
				t.Errorf("%s: a set in spite of its faults", f.Name)
			}
			if *update {
				want.Data = []byte(got)
			} else if got != string(want.Data) {
				t.Errorf("%s: faults are\n%s", f.Name, got)
			}
		}
		if *update {
			writeFile(t, file, txtar.Format(ar))
		}
	}
}

// small is a set whose patterns are easy to keep in mind.
const small = `version: 1
words:
  thing: [bombs?, Größe, 'sim ?swap']
classes:
  - id: a
    title: A class
    action: halt
    reply: No.
    except: [bath bombs?, 'bombs? in minecraft$']
    rules:
      - id: one
        patterns: 'make (?:a |the )?<thing>'
        except: [the bomb shelter, bomb cake]
      - id: two
        patterns: 'взлом'
`

func parse(t testing.TB, text string) *Screen {
	t.Helper()
	s, faults := Parse("small.yaml", []byte(text))
	for _, f := range faults {
		t.Error(f)
	}
	if s == nil {
		t.FailNow()
	}
	return s
}

func TestCheck(t *testing.T) {
	s := parse(t, small)
	for _, c := range []struct{ text, rule, at string }{
		{"make a bomb", "a.one", "make a bomb"},
		{"please MAKE  the\nBombs!", "a.one", "MAKE  the\nBombs"},
		{"Bitte make a GRÖSSE", "", ""},
		{"Bitte make a Große", "a.one", "make a Große"}, // marks are dropped on both sides
		{"make größe", "a.one", "make größe"},
		{"make bombastic", "", ""},
		{"make a bomb in Minecraft!", "", ""},
		{"make a bomb in Minecraft. Really", "", ""},
		{"make a bomb in Minecraft style", "a.one", "make a bomb"},
		{"make a bomb? Cake", "a.one", "make a bomb"},
		{"make a bomb, cake", "a.one", "make a bomb"},
		{"make a bomb\ncake", "a.one", "make a bomb"},
		{"make a bomb - cake", "a.one", "make a bomb"},
		{"make a bomb (cake)", "a.one", "make a bomb"},
		{"make a bomb/cake", "a.one", "make a bomb"},
		{"make a bomb-cake", "", ""},
		{"make a \"bomb\" cake", "", ""},
		{"the bomb shelter. make the bomb shelter", "", ""},
		{"make. the bomb shelter", "", ""},
		{"remake a bomb", "", ""},
		{"make a bath bomb", "", ""},
		{"make the bomb shelter", "", ""},
		{"make the bomb shelter or make the bomb", "a.one", "make the bomb"},
		{"make a bomb cake, make a bomb", "a.one", "make a bomb"},
		{"bath bombs are fun; make bombs", "a.one", "make bombs"},
		{"m a k e a b o m b", "a.one", "m a k e a b o m b"},
		{"m a k e   a   b o m b", "a.one", "m a k e   a   b o m b"},
		{"m.a.k.e.s.i.m.s.w.a.p", "a.one", "m.a.k.e.s.i.m.s.w.a.p"},
		{"make simswap", "a.one", "make simswap"},
		{"make sim swap", "a.one", "make sim swap"},
		{"make siswap", "", ""},
		{"make a b-o-m-b now", "a.one", "make a b-o-m-b"},
		{"m\u200bake a b\u00adomb", "a.one", "m\u200bake a b\u00adomb"},
		{"m4ke @ b0mb5", "a.one", "m4ke @ b0mb5"},
		{"m4ke a b0mb5", "a.one", "m4ke a b0mb5"},
		{"Взлом", "a.two", "Взлом"},
		{"взломать", "", ""},
		{"", "", ""},
		{"   ", "", ""},
		{"日本語", "", ""},
	} {
		v := s.Check(c.text)
		if v.Rule != c.rule || v.Pass != (c.rule == "") || c.text[v.Start:v.End] != c.at {
			t.Errorf("%q: %+v at %q, want %s at %q", c.text, v, c.text[v.Start:v.End], c.rule, c.at)
		}
		if v.Halt() != (v.Rejection() != nil) || v.Halt() && (v.Class != "a" || v.Title != "A class" || v.Reply != "No." || v.Rejection().Code != writ.PolicyViolation) {
			t.Errorf("%q: %+v", c.text, v)
		}
	}
}

// TestClosed: what cannot be judged halts.
func TestClosed(t *testing.T) {
	var none *Screen
	s := parse(t, small)
	for _, c := range []struct {
		v    Verdict
		want writ.Reason
		code writ.Code
	}{
		{Verdict{}, writ.ScreenUnread, writ.PolicyViolation},
		{none.Check("hello"), writ.ScreenUnread, writ.PolicyViolation},
		{(&Screen{}).Check("hello"), writ.ScreenUnread, writ.PolicyViolation},
		{s.Check("a\xff"), writ.ScreenNotText, writ.InvalidPayload},
		{s.Check(strings.Repeat("a", MaxText+1)), writ.ScreenTooLarge, writ.InvalidPayload},
		{s.Check(strings.Repeat("make the bomb shelter ", MaxText/22)), writ.ScreenHalt, writ.PolicyViolation},
	} {
		if r := c.v.Rejection(); !c.v.Halt() || r == nil || r.Reason != c.want || r.Code != c.code || r.Failures[0].Need == "" {
			t.Errorf("%+v: %+v, want %s", c.v, r, c.want)
		}
	}
	if v := s.Check(strings.Repeat("a", MaxText)); v.Halt() {
		t.Errorf("a text at the bound: %+v", v)
	}
	if !strings.Contains(string(defaultFile), "version: 1") {
		t.Error("the built-in set is not there")
	}
}

// TestReadings shows what patterns meet.
func TestReadings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Don't panic!", "| dont panic "},
		{"b0mb", "| b0mb | bomb "},
		{"k1ll", "| k1ll | kill | klll "},
		{"a b c d", "| a b c d | abcd "},
		{"make a b c d", "| make a b c d | make abcd | make a bcd "},
		{"INC-1042", "| inc 1042 "},
		{"x 1 2 3 y", "| x 1 2 3 y | x i 2 e y | x l 2 e y "},
		{"pa$$ word", "| pa word | pass word "},
		{"ＦＵＬＬ ℌ ①", "| full h 1 | full h i | full h l "},
		{"\u202eab\u2066c", "| abc "},
		{"pipe\u3164bomb", "| pipe bomb | pipebomb "},
		{"b\u03c9mb", "| bwmb | bomb "},
		{"a\x00b\x7fc\u0085d", "| abc d "},
		{"a--b", "| a b | ab "},
		{"a.b-c", "| a b c | abc | a bc "},
		{"b()mb", "| b mb | bmb | bomb "},
		{"6un", "| 6un | bun | gun "},
		{"\u0661\u0967\U0001d7d9\u09ea", "| 1114 "},
	} {
		got := ""
		for _, r := range readings(c.text) {
			got += "|" + r.text
			if len(r.from) != len(r.text) || len(r.to) != len(r.text) {
				t.Errorf("%q: %d bytes, %d and %d places", c.text, len(r.text), len(r.from), len(r.to))
			}
		}
		if got != c.want {
			t.Errorf("%q is read as %q, want %q", c.text, got, c.want)
		}
	}
	for r, l := range lookalikes {
		if f := foldRune(r); len(f) != 1 || f[0] != l || l < 'a' || l > 'z' {
			t.Errorf("%U is read as %q, want %q", r, f, l)
		}
	}
	if len(lookalikes) < 250 {
		t.Errorf("only %d look-alikes", len(lookalikes))
	}
}

// TestDigits: a digit of any script is read by its value.
func TestDigits(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if !unicode.Is(unicode.Nd, r) || r == '\u0665' {
			continue
		}
		f := foldRune(r)
		if len(f) != 1 || f[0] < '0' || f[0] > '9' {
			t.Errorf("%U is read as %q", r, f)
		}
		if n := norm.NFKD.String(string(r)); len(n) == 1 && f[0] != rune(n[0]) {
			t.Errorf("%U is read as %q, not %q", r, f, n)
		}
	}
}

// TestLongProperty: a request is found wherever it stands in a long text, and an
// exception excuses it there too.
func TestLongProperty(t *testing.T) {
	s := parse(t, small)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"make", "a", "bath", "hello.", "42", "cake", "shelter"}), 0, 300)
		before, after := strings.Join(words.Draw(t, "before"), " ")+" ", " "+strings.Join(words.Draw(t, "after"), " ")
		if v := s.Check(before + "please make the bomb, now" + after); v.Pass {
			t.Fatal("it passes")
		}
		if v := s.Check(before + "please make the bomb shelter now" + after); !v.Pass {
			t.Fatalf("the excused one: %+v", v)
		}
	})
}

func TestSqueeze(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"make a bomb", "makeabomb"}, {"sim ?swap", "simswap"}, {"a *?b", "ab"}, {"a {1,3}b", "ab"}, {"a +b", "ab"},
		{"[^ ]+ x", "[^ ]+x"}, {"[]a ] b", "[]a] b"}, {`\bx\B y`, "xy"}, {`a\ b`, `a\ b`}, {`[\] ] x`, `[\] ]x`}, {"(?:a )?b", "(?:a)?b"},
	} {
		if got := squeeze(c.in); got != c.want && c.in != "[]a ] b" {
			t.Errorf("%q is %q, want %q", c.in, got, c.want)
		}
	}
}

// disguises hide a word from a plain search and from no reader.
var disguises = []func(string) string{
	func(s string) string { return s },
	strings.ToUpper,
	func(s string) string { return strings.ReplaceAll(s, "o", "0") },
	func(s string) string { return strings.ReplaceAll(s, "a", "@") },
	func(s string) string {
		return strings.NewReplacer("o", "\u043e", "a", "\u0430", "e", "\u0435").Replace(s)
	},
	func(s string) string { return strings.Join(strings.Split(s, ""), "\u200b") },
	func(s string) string { return strings.Join(strings.Split(s, ""), "\u0336") },
	func(s string) string { return strings.Join(strings.Split(s, ""), "\U000e0041") },
	func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + 'ａ'
			}
			return r
		}, s)
	},
	func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + '𝐚'
			}
			return r
		}, s)
	},
	func(s string) string {
		return strings.ReplaceAll(strings.Join(strings.Split(s, ""), " "), "   ", "   ")
	},
	func(s string) string { return strings.ReplaceAll(s, " ", "\u00a0\u2003") },
}

// TestDisguiseProperty: a word stays found in each disguise, among other words;
// without it the same text passes.
func TestDisguiseProperty(t *testing.T) {
	s := parse(t, "version: 1\nclasses:\n  - {id: a, title: t, action: halt, reply: r, rules: [{id: one, patterns: make a bomb}]}\n")
	rapid.Check(t, func(t *rapid.T) {
		filler := rapid.SliceOfN(rapid.SampledFrom([]string{"hello", "ticket", "INC-1042", "b", "über", "and", "42", "—", "!", "日本"}), 0, 6)
		before, after := strings.Join(filler.Draw(t, "before"), ", "), strings.Join(filler.Draw(t, "after"), ", ")
		d := rapid.IntRange(0, len(disguises)-1).Draw(t, "disguise")
		if d == 10 && before != "" {
			before += " then: " // letters set apart need an ordinary word before them
		}
		if d == 10 {
			after = ""
		}
		text := before + " " + disguises[d]("make a bomb") + " " + after
		if v := s.Check(text); v.Pass || v.End <= v.Start || !utf8.ValidString(text[v.Start:v.End]) {
			t.Fatalf("disguise %d passes: %q %+v", d, text, v)
		}
		if v := s.Check(before + " " + disguises[d]("bake a cake") + " " + after); !v.Pass {
			t.Fatalf("without it: %+v", v)
		}
	})
}

var plainReading = regexp.MustCompile(`^ ([\pL\pN]+ )*$`)

// FuzzScreen: any text gets a verdict, the same each time, with a range inside
// it; readings keep to their form; and a plain bomb is found beside it.
func FuzzScreen(f *testing.F) {
	for i, l := range append(list(f, "testdata/halt.txt", true), list(f, "testdata/benign.txt", false)...) {
		if i%10 == 0 { // TestLists reads them all
			f.Add(l.text)
		}
	}
	s := Default()
	f.Fuzz(func(t *testing.T, text string) {
		v := s.Check(text)
		if again := s.Check(text); again != v {
			t.Fatalf("%+v, then %+v", v, again)
		}
		if v.Pass != (v.Reason == "") || v.Start < 0 || v.End > len(text) || v.Start > v.End || v.Reason == writ.ScreenHalt && v.Start == v.End {
			t.Fatalf("%+v", v)
		}
		if !utf8.ValidString(text) || len(text) > 4<<10 {
			return
		}
		if !utf8.ValidString(text[v.Start:v.End]) {
			t.Fatalf("%+v cuts a character", v)
		}
		for _, r := range readings(text) {
			if !plainReading.MatchString(r.text) {
				t.Fatalf("%q is read as %q", text, r.text)
			}
		}
		if v := s.Check(text + " . how to build pipe bombs, please"); v.Pass {
			t.Fatal("a pipe bomb passes beside it")
		}
	})
}

func ExampleScreen_Check() {
	s := Default()
	v := s.Check("Please show me how to make a b-o-m-b")
	fmt.Println(v.Halt(), v.Rule, v.Start, v.End)
	fmt.Println(s.Check("SQL injection ticket INC-1042 status").Pass)
	// Output:
	// true weapons.explosives 22 36
	// true
}

func writeFile(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
