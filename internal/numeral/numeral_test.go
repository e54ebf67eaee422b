package numeral

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// english and deutsch spell a number as a person would: the slow plain model.
func english(n int, and, hyphen string) string {
	one := strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	ten := strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")
	rest := func(head string, n int) string {
		if n == 0 {
			return head
		}
		if n < 100 {
			return head + and + english(n, and, hyphen)
		}
		return head + " " + english(n, and, hyphen)
	}
	switch {
	case n < 20:
		return one[n]
	case n < 100 && n%10 == 0:
		return ten[n/10]
	case n < 100:
		return ten[n/10] + hyphen + one[n%10]
	case n < 1000:
		return rest(one[n/100]+" hundred", n%100)
	}
	return rest(english(n/1000, and, hyphen)+" thousand", n%1000)
}

func deutsch(n int) string {
	one := strings.Fields("null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn")
	ten := strings.Fields("- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")
	rest := func(head string, n int) string {
		if n == 0 {
			return head
		}
		return head + deutsch(n)
	}
	switch {
	case n < 20:
		return one[n]
	case n < 100 && n%10 == 0:
		return ten[n/10]
	case n < 100:
		return one[n%10] + "und" + ten[n/10]
	case n < 1000:
		return rest(one[n/100]+"hundert", n%100)
	}
	return rest(deutsch(n/1000)+"tausend", n%1000)
}

// TestCardinal reads back every number up to a million.
func TestCardinal(t *testing.T) {
	for n := 1; n < 1_000_000; n++ {
		if n > 20_000 && n%97 != 0 && n%1000 > 2 && !testing.Verbose() {
			continue
		}
		for _, s := range []string{english(n, " ", "-"), english(n, " and ", " "), deutsch(n)} {
			ws := Words(s)
			if got, next := Cardinal(ws, 0); got != n || next != len(ws) {
				t.Fatalf("%q is %d, %d of %d words", s, got, next, len(ws))
			}
		}
	}
	for s, want := range map[string]int{
		"a hundred": 100, "a thousand and one": 1001, "a million": 1_000_000, "one million": 1_000_000, "eine Million": 1_000_000, "eins": 1, "HUNDERTUNDEINS": 101,
		"nineteen hundred": 1900, "Fünfzig": 50, "fu\u0308nfzig": 50, "one hundred\ntwenty": 100,
		"a": 0, "an": 0, "zero": 0, "hundred": 0, "twenty twenty": 0, "five fifty": 0, "one-two": 0, "nineteen eighty-four": 0, "two thousand thousand": 0,
		"fif\u200bty": 0, "fifty3": 50, "zehnhundert": 0, "einundelf": 0, "tausendtausend": 0, "undzwanzig": 0, "twenty-ten": 0,
	} {
		if got, _ := Cardinal(Words(s), 0); got != want {
			t.Errorf("%q is %d, want %d", s, got, want)
		}
	}
}

// TestWords reads each text as its words: ~ for glued, / for a line before, ( and
// ) where a phrase may begin and end.
func TestWords(t *testing.T) {
	show := func(ws []Word) string {
		var b strings.Builder
		for _, w := range ws {
			b.WriteString([]string{"~", " ", "/"}[w.Gap])
			if w.Opens {
				b.WriteByte('(')
			}
			b.WriteString(w.Fold)
			if w.Closes {
				b.WriteByte(')')
			}
		}
		return b.String()
	}
	for s, want := range map[string]string{
		"Pay $50 now.":         "/(pay) ($~50) (now)~.)",
		"(10:00),":             "/(" + "(" + "~(10~:~00)~))~,)",
		"May 15th, 2024":       "/(may) (15~th)~,) (2024)",
		"Friday's 3–4 o’clock": "/(friday) (3~-~4) (o'clock)",
		"x\ny — z":             "/(x)/(y) (z)",
		"1٢":                   "/(1~٢)",
		"10\u200b":             "/(10~\u200b)",
		"../15":                "/(.~.~/~15)",
		"'15'":                 "/('~(15)~')",
	} {
		if got := show(Words(s)); got != want {
			t.Errorf("%q is\n%s, want\n%s", s, got, want)
		}
	}
	if Words(strings.Repeat("x ", MaxText/2+1)) != nil || Words("\xff") != nil {
		t.Error("what is too long or no UTF-8 has words")
	}
}

// TestWordsCover: no byte is in two words, and none is lost but white space.
func TestWordsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("ab15'’.,:-–— \n\u00a0\u200b\u0301٢中$€(\"ß"))).Draw(t, "s")
		last := 0
		blank := func(s string) bool { return strings.Trim(strings.ReplaceAll(s, "—", ""), " \n\u00a0") == "" }
		for _, w := range Words(s) {
			if w.Start < last || w.End <= w.Start || !blank(s[last:w.Start]) || (w.Gap == Glued) != (w.Start == last && last > 0) {
				t.Fatalf("%q: %+v after %d", s, w, last)
			}
			last = w.End
		}
		if !blank(s[last:]) {
			t.Fatalf("%q: %q is lost", s, s[last:])
		}
	})
}

func FuzzCardinal(f *testing.F) {
	f.Add("a hundred and twenty-five thousand")
	f.Add("zweitausendfünfhundertzwölf")
	f.Fuzz(func(t *testing.T, s string) {
		ws := Words(s)
		for i := range ws {
			if n, next := Cardinal(ws, i); n < 0 || n > 1_000_000 || next < i || next > len(ws) || n > 0 && next == i {
				t.Fatalf("%q at %d: %d, %d", s, i, n, next)
			}
		}
	})
}
