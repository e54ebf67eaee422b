package claim

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
)

// sentences reads testdata/sentences.txt.
type sentence struct {
	line          string
	holds         bool
	source, quote string
	start         int
	text          string
	marks         string
}

func sentences(t testing.TB) (out []sentence) {
	t.Helper()
	b, err := os.ReadFile("testdata/sentences.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Split(line, "|")
		if len(parts) != 4 {
			t.Fatalf("%s: not four parts", line)
		}
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		c := sentence{line: line, holds: parts[0] == "true", marks: parts[3]}
		before, rest, ok1 := strings.Cut(parts[1], "[[")
		i := strings.LastIndex(rest, "]]")
		if !ok1 || i < 0 || !c.holds && parts[0] != "false" {
			t.Fatalf("%s: no quote, or neither true nor false", line)
		}
		plain := func(s string) string {
			if parts[1][0] == '{' {
				return s
			}
			out, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return out
		}
		c.quote = plain(rest[:i])
		c.source, c.start = plain(before)+c.quote+plain(rest[i+2:]), len(plain(before))
		if c.text, err = strconv.Unquote(`"` + strings.ReplaceAll(parts[2], `"`, `\"`) + `"`); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, c)
	}
	return out
}

func (c *sentence) item(t testing.TB) Item {
	t.Helper()
	s, stop := TextSource([]byte(c.source), SourceLimit)
	if c.source[0] == '{' {
		s, stop = NewSource([]byte(c.source), "", SourceLimit)
	}
	if stop != nil {
		t.Fatalf("%s: %v", c.line, stop)
	}
	// Of JSON the text is written as the source is.
	start := strings.Index(s.body, c.quote)
	if c.source[0] != '{' {
		start = c.start
	}
	if start < 0 || !s.boundary(start) || !s.boundary(start+len(c.quote)) {
		t.Fatalf("%s: the quote cannot be one", c.line)
	}
	item := Item{Text: c.text, Evidence: c.quote, Quote: s.quote(start, start+len(c.quote))}
	s.hold(&item)
	return item
}

func shownMarks(i Item) string {
	var out []string
	for _, w := range i.NotInQuote {
		out = append(out, "+"+strings.ReplaceAll(w, "\u200b", `\u200b`))
	}
	for _, w := range i.LeftOut {
		out = append(out, "-"+w)
	}
	return strings.Join(out, ", ")
}

// TestSentences (H01 to H05, H10): how sentences are marked over quotes that are
// verbatim, and how often rightly.
func TestSentences(t *testing.T) {
	var marked, total [2]int
	for _, c := range sentences(t) {
		item := c.item(t)
		got := shownMarks(item)
		if got != c.marks {
			t.Errorf("%s\n is marked %s", c.line, got)
		}
		k := 0
		if c.holds {
			k = 1
		}
		total[k]++
		if got != "" {
			marked[k]++
		}
	}
	t.Logf("marked: %d of %d false sentences, %d of %d true ones", marked[0], total[0], marked[1], total[1])
}

// TestVerbatimIsUnmarked: what says its quote word for word, and the quote is
// all there is, is not marked, whatever the words are.
func TestVerbatimIsUnmarked(t *testing.T) {
	var words []string
	for w := range phrases() {
		words = append(words, w)
	}
	slices.Sort(words)
	words = append(words, "Kim", "Berlin", "HR", "INC-1042", "12", "-12", "1,500", "5-10", "from 5 to 10", "$10", "20 %", "5 km", "3 May 2026",
		"2026-11-22T14:03:00Z", "14:03", "3 pm", "kim@staff.example", "https://a.example/b", "a_b", "closed", "unclosed", ".", ",", "\n", "\u200b", "1 204")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 12).Draw(t, "words"), " ")
		s, _ := TextSource([]byte(text), SourceLimit)
		item := Item{Text: text, Evidence: text, Quote: s.quote(0, len(text))}
		if s.hold(&item); shownMarks(item) != "" || item.Within != "" {
			t.Fatalf("%q is marked %s in %q", text, shownMarks(item), item.Within)
		}
	})
}

// TestWithin (H03): a quote is shown with its sentence and never with less than
// stands around it, and with little more.
func TestWithin(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	for _, c := range []struct{ name, source, quote, want string }{
		{"a sentence of several", "It was raining all day in Berlin. The ticket about the printer on the second floor is not closed by anybody today. It stays so.", "closed", "The ticket about the printer on the second floor is not closed by anybody today."},
		{"an abbreviation", "The form was not signed by Dr. Kim on behalf of the whole of the board of directors of it.", "Kim on behalf", "The form was not signed by Dr. Kim on behalf of the whole of the board of directors of it."},
		{"a line feed", "The ticket is not\nclosed.", "closed", "The ticket is not\nclosed."},
		{"a paragraph", "The ticket is not\n\nclosed.", "closed", "The ticket is not\n\nclosed."},
		{"a full stop between", "Never. Ever. Is it. Closed. That is so.", "Closed", "Never. Ever. Is it. Closed. That is so."},
		{"a string of JSON", `{"a":"not","note":"not\nclosed","b":1}`, "closed", `not\nclosed`},
		{"a member", `{"a":"not","note":"open","b":1}`, `"note":"open"`, ""},
		{"all there is", "The ticket is closed.", "The ticket is closed.", ""},
		{"a long one", long + "closed " + long, "closed", "…" + strings.Repeat("word ", 60) + "closed " + strings.TrimSpace(strings.Repeat("word ", 60)) + "…"},
	} {
		s, stop := TextSource([]byte(c.source), SourceLimit)
		if c.source[0] == '{' {
			s, stop = NewSource([]byte(c.source), "", SourceLimit)
		}
		if stop != nil {
			t.Fatal(stop)
		}
		i := strings.Index(s.body, c.quote)
		if got := s.shown(s.quote(i, i+len(c.quote))); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// FuzzHold: any sentence over any quote is marked the same way twice, and what
// is shown holds the quote.
func FuzzHold(f *testing.F) {
	for _, c := range sentences(f) {
		f.Add(c.source, c.start, c.start+len(c.quote), c.text)
	}
	f.Fuzz(func(t *testing.T, source string, start, end int, text string) {
		s, stop := TextSource([]byte(source), SourceLimit)
		if strings.HasPrefix(source, "{") {
			if s, stop = NewSource([]byte(source), "", SourceLimit); stop == nil {
				start, end = 0, len(s.body)
			}
		}
		if stop != nil || start < 0 || end <= start || end > len(s.body) || !s.boundary(start) || !s.boundary(end) {
			return
		}
		evidence := s.body[start:end]
		q, why := s.Find(evidence)
		if why != "" {
			if writ.CodeOf(why) != writ.MissingProvenance {
				t.Fatal(why)
			}
			return
		}
		a, b := Item{Text: text, Evidence: evidence, Quote: q}, Item{Text: text, Evidence: evidence, Quote: q}
		s.hold(&a)
		s.hold(&b)
		if shownMarks(a) != shownMarks(b) || a.Within != b.Within {
			t.Fatalf("%q and %q", shownMarks(a), shownMarks(b))
		}
		if a.Within != "" && !strings.Contains(a.Within, strings.TrimSpace(evidence)) || len(a.Within) > len(evidence)+2*mostShown+6 {
			t.Fatalf("%q is shown as %q", evidence, a.Within)
		}
		if len(a.NotInQuote) > 20 || len(a.LeftOut) > 20 {
			t.Fatal("more marks than are kept")
		}
	})
}

// BenchmarkHold marks the largest summary there is.
func BenchmarkHold(b *testing.B) {
	text := strings.Repeat("not 12 km Kim un-a_b ", textBytes/21)
	s, _ := TextSource([]byte(strings.Repeat(text, 10)), SourceLimit)
	q := s.quote(0, len(text))
	for b.Loop() {
		for range summaryItems {
			item := Item{Text: text, Evidence: text, Quote: q}
			s.hold(&item)
		}
	}
}
