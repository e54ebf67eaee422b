package claim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestGroundCases (INV-5) reads testdata/ground: a record, and what of it can be
// quoted.
func TestGroundCases(t *testing.T) {
	files, _ := filepath.Glob("testdata/ground/*.txtar")
	total := 0
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		part := map[string]string{}
		for _, f := range ar.Files {
			part[f.Name] = string(f.Data)
		}
		limit := SourceLimit
		if l := strings.TrimSpace(part["limit"]); l != "" {
			if limit, err = strconv.Atoi(l); err != nil {
				t.Fatal(err)
			}
		}
		record := []byte(strings.TrimSuffix(part["record"], "\n"))
		source, stop := TextSource(record, limit)
		if p, ok := part["pointer"]; ok {
			source, stop = NewSource(record, strings.TrimSpace(p), limit)
		}
		if stop != nil {
			t.Fatalf("%s: %v", file, stop)
		}
		if want, ok := part["text"]; ok && source.Text() != strings.TrimSuffix(want, "\n") {
			t.Errorf("%s: the text is\n%s", file, source.Text())
		}
		for _, line := range strings.Split(part["cases"], "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			total++
			word, rest, _ := strings.Cut(line, " ")
			want := ""
			if word == "ok" {
				pointer, r, _ := strings.Cut(rest, " ")
				from, err := strconv.QuotedPrefix(r)
				if err != nil {
					t.Fatalf("%s: %s: %v", file, line, err)
				}
				want, rest = strings.TrimPrefix(pointer, "-")+" "+from, r[len(from):]
			} else {
				want = word
			}
			evidence, err := strconv.Unquote(strings.TrimSpace(rest))
			if err != nil {
				t.Fatalf("%s: %s: %v", file, line, err)
			}
			q, r := source.Find(evidence)
			got := string(r)
			if r == "" {
				got = q.Pointer + " " + strconv.Quote(string(record[q.From:q.To]))
				if from, _ := strconv.Unquote(strings.TrimPrefix(want, q.Pointer+" ")); string(record[q.From:q.To]) == from {
					got = want
				}
				if !again(source, evidence, q) || source.Text()[q.Start:q.End] != evidence {
					t.Errorf("%s: %s: %+v", file, line, q)
				}
				q.To++
				if again(source, evidence, q) {
					t.Errorf("%s: another range verifies", file)
				}
			} else if q != (Quote{}) || again(source, evidence, q) || writ.CodeOf(r) != writ.MissingProvenance {
				t.Errorf("%s: %s: %+v", file, line, q)
			}
			if got != want {
				t.Errorf("%s: %s\n is %s", filepath.Base(file), line, got)
			}
		}
	}
	if total < 60 {
		t.Errorf("only %d cases", total)
	}
}

func TestSourceFaults(t *testing.T) {
	for _, c := range []struct{ record, pointer string }{
		{`{"a":1,"a":2}`, ""}, {`x`, ""}, {``, ""}, {`{"a":"` + "\xff" + `"}`, ""},
		{`{"a":1}`, "a"}, {`{"a":1}`, "/b"}, {`{"a":1}`, "/a/b"}, {`[1]`, "/0"}, {`{"a":1}`, "/~2"},
	} {
		if s, stop := NewSource([]byte(c.record), c.pointer, 100); s != nil || reasonOf(t, stop, StageGrounding) != "ground.source" {
			t.Errorf("%q at %q: %v", c.record, c.pointer, stop)
		}
	}
	if s, stop := TextSource([]byte("a\xffb"), 100); s != nil || reasonOf(t, stop, StageGrounding) != "ground.source" {
		t.Errorf("%v", stop)
	}
	for _, limit := range []int{1<<63 - 1, 1 << 62, 100, 0, -1, -1 << 63} {
		s, stop := NewSource([]byte(`{"a":"bc"}`), "", limit)
		if stop != nil || s.Truncated() != (limit <= 0) || limit > 0 && s.Text() != `{"a":"bc"}` {
			t.Errorf("limit %d: %v %v", limit, s, stop)
		}
	}
	for _, s := range []*Source{nil, {}} {
		if _, r := s.Find("anything at all"); r != writ.GroundUnquoted {
			t.Errorf("an empty source: %s", r)
		}
	}
	if _, r := (&Source{}).Find(""); r == "" || (&Source{}).Text() != "" {
		t.Error("nothing is quoted of nothing")
	}
}

func summaryOf(evidence ...string) []byte {
	s := Summary{}
	for i, e := range evidence {
		item := Item{Text: fmt.Sprint("item ", i), Evidence: e}
		switch i % 3 {
		case 0:
			s.Bullets = append(s.Bullets, item)
		case 1:
			s.Risks = append(s.Risks, item)
		default:
			s.Recommendations = append(s.Recommendations, item)
		}
	}
	return s.JSON()
}

// TestGround: one item that is not quoted blocks the whole summary, and each is
// named.
func TestGround(t *testing.T) {
	source, stop := NewSource([]byte(`{"status":"open","note":"the printer is broken"}`), "", 1000)
	if stop != nil {
		t.Fatal(stop)
	}
	s, stop := Ground(source, summaryOf("open", "printer is broken", "\"status\":\"open\"", "the printer"))
	if stop != nil || len(s.Bullets) != 2 || s.Risks[0].Quote.Pointer != "/note" || s.Recommendations[0].Quote.Pointer != "/status" {
		t.Fatalf("%+v %v", s, stop)
	}
	s, stop = Ground(source, summaryOf("open", "printer is fixed", "closed", "the print"))
	if stop == nil || len(s.Bullets)+len(s.Risks)+len(s.Recommendations) != 0 {
		t.Fatalf("%+v %v", s, stop)
	}
	got := ""
	for _, f := range stop.Rejection.Failures {
		got += f.Pointer + " " + string(f.Reason) + "\n"
	}
	if got != "/bullets/1/evidence ground.cropped\n/recommendations/0/evidence ground.unquoted\n/risks/0/evidence ground.unquoted\n" {
		t.Error(got)
	}
	if _, stop := Ground(source, []byte("{}")); reasonOf(t, stop, StageGrounding) != "summary.missing_key" {
		t.Error(stop)
	}
}

func TestSummaryCases(t *testing.T) {
	want, texts := cases(t, "testdata/summaries.txt")
	for i, text := range texts {
		s, stop := ParseSummary([]byte(text))
		if got := reasonOf(t, stop, StageGrounding); got != want[i] {
			t.Errorf("%q: %s, want %s", text, got, want[i])
		}
		if stop != nil && (s.Bullets != nil || s.Risks != nil || s.Recommendations != nil) {
			t.Errorf("%q: a summary beside a stop", text)
		}
	}
	item := strings.Repeat(`{"text":"t","evidence":"e"},`, summaryItems)
	list := func(bullets, risks string) string {
		return `{"type":"summary","bullets":[` + bullets + `],"risks":[` + risks + `],"recommendations":[]}`
	}
	one := func(text, evidence string) string {
		return list(`{"text":"`+text+`","evidence":"`+evidence+`"}`, "")
	}
	for _, c := range []struct{ name, text, want string }{
		{"200 items", list(item[:len(item)-1], ""), "accept"},
		{"201 in two lists", list(item[:len(item)-1], `{"text":"t","evidence":"e"}`), "summary.value"},
		{"a text at the bound", one(strings.Repeat("t", textBytes), "e"), "accept"},
		{"a longer text", one(strings.Repeat("t", textBytes+1), "e"), "summary.value"},
		{"evidence at the bound", one("t", strings.Repeat("e", evidenceBytes)), "accept"},
		{"longer evidence", one("t", strings.Repeat("e", evidenceBytes+1)), "summary.value"},
		{"too long", list("", "") + strings.Repeat(" ", SummaryBytes), "summary.syntax"},
	} {
		_, stop := ParseSummary([]byte(c.text))
		if got := reasonOf(t, stop, StageGrounding); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestRepetitions: a source made of repetitions ends the search, and closed.
func TestRepetitions(t *testing.T) {
	source, _ := TextSource([]byte(strings.Repeat("a", 100_000)+" "+strings.Repeat("a", 100)), 1<<20)
	if _, r := source.Find(strings.Repeat("a", 100)); r != writ.GroundCropped {
		t.Errorf("%q", r)
	}
}

// genRecord writes a random value as JSON in a random spelling: white space and
// escapes where none are needed. plain is the same value spelt the one way.
func genRecord(t *rapid.T, depth int) (record, plain string) {
	space := func() string { return rapid.SampledFrom([]string{"", "", "\n", "\n\t"}).Draw(t, "space") }
	text := func() (string, string) {
		r, p := `"`, `"`
		for range rapid.IntRange(0, 8).Draw(t, "length") {
			c := rapid.SampledFrom([][2]string{{"a", "a"}, {"Word", "Word"}, {" ", " "}, {`\u0041`, "A"}, {"é", "é"}, {`\u00e9`, "é"},
				{`\n`, `\n`}, {`\u000a`, `\n`}, {`\"`, `\"`}, {`\/`, `/`}, {`/`, `/`}, {`\\`, `\\`}, {`\ud83d\ude00`, "😀"}, {"😀", "😀"},
				{"12", "12"}, {".", "."}, {"-", "-"}, {`\u0001`, `\u0001`}, {"\u0301", "\u0301"}, {`\u2028`, "\u2028"}, {",", ","},
				{"\u00ad", "\u00ad"}, {`\u200b`, "\u200b"}, {"'", "'"}, {"$", "$"}, {`\u00a0`, "\u00a0"}}).Draw(t, "piece")
			r, p = r+c[0], p+c[1]
		}
		return r + `"`, p + `"`
	}
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 3
	}
	switch kind {
	case 0, 1:
		return text()
	case 2:
		s := rapid.SampledFrom([]string{"0", "-12", "1250.50", "1e5", "true", "false", "null", "[]", "{}"}).Draw(t, "scalar")
		return strings.ReplaceAll(strings.ReplaceAll(s, "[]", "["+space()+"]"), "{}", "{"+space()+"}"), s
	case 3:
		record, plain = "[", "["
		for i := range rapid.IntRange(1, 3).Draw(t, "elements") {
			if i > 0 {
				record, plain = record+",", plain+","
			}
			r, p := genRecord(t, depth-1)
			record, plain = record+space()+r+space(), plain+p
		}
		return record + "]", plain + "]"
	}
	record, plain = "{", "{"
	for i := range rapid.IntRange(1, 3).Draw(t, "members") {
		if i > 0 {
			record, plain = record+",", plain+","
		}
		r, p := text()
		r, p = `"`+strconv.Itoa(i)+r[1:], `"`+strconv.Itoa(i)+p[1:]
		rv, pv := genRecord(t, depth-1)
		record, plain = record+space()+r+space()+":"+space()+rv+space(), plain+p+":"+pv
	}
	return record + "}", plain + "}"
}

// TestSourceProperty: the text is the value spelt the one way; whatever can be
// quoted maps to recorded bytes that spell the same; the map is monotone; a cut
// keeps to the limit and to a boundary.
func TestSourceProperty(t *testing.T) {
	quoted := 0
	rapid.Check(t, func(t *rapid.T) {
		value, plain := genRecord(t, 3)
		record := ` {"content" : [],"structuredContent": ` + value + `}`
		full, stop := NewSource([]byte(record), "/structuredContent", 1<<20)
		if stop != nil || full.Text() != plain || full.Truncated() {
			t.Fatalf("%s\n%s\n%v", full.Text(), plain, stop)
		}
		last := -1
		for at := 0; at <= len(plain); at++ {
			if !full.boundary(at) {
				continue
			}
			end := len(record)
			if at > 0 {
				end = full.place(at, true)
			}
			if at > 0 && end <= last || at < len(plain) && at > 0 && full.place(at, false) < end {
				t.Fatalf("offset %d of %s: %d after %d", at, plain, end, last)
			}
			if at > 0 {
				last = end
			}
		}
		start := rapid.IntRange(0, len(plain)).Draw(t, "start")
		end := rapid.IntRange(start, min(len(plain), start+40)).Draw(t, "end")
		evidence := plain[start:end]
		q, r := full.Find(evidence)
		if r == "" {
			quoted++
			if plain[q.Start:q.End] != evidence || spelt(t, record[q.From:q.To]) != evidence || !again(full, evidence, q) {
				t.Fatalf("%q is not %q", record[q.From:q.To], evidence)
			}
			// A mutant that stands nowhere is refused.
			mutant := evidence + "q"
			if _, r := full.Find(mutant); r == "" {
				t.Fatalf("%q is quoted", mutant)
			}
		} else if full.boundary(start) && full.boundary(end) && full.shows(start, end) && utf8.ValidString(evidence) {
			t.Fatalf("%q stands there: %s", evidence, r)
		}
		limit := rapid.IntRange(0, len(plain)+1).Draw(t, "limit")
		cut, stop := NewSource([]byte(record), "/structuredContent", limit)
		if stop != nil || len(cut.body) > limit && len(plain) > limit || !strings.HasPrefix(plain, cut.body) || !full.boundary(len(cut.body)) ||
			cut.Truncated() != (len(cut.body) < len(plain)) || cut.Truncated() != strings.HasSuffix(cut.Text(), Marker) || !utf8.ValidString(cut.body) {
			t.Fatalf("limit %d: %q of %q", limit, cut.Text(), plain)
		}
		if q, r := cut.Find(evidence); r == "" && !again(full, evidence, q) {
			t.Fatalf("%q can be quoted of the cut text only", evidence)
		}
	})
	if quoted == 0 {
		t.Error("nothing was ever quoted: the property says nothing")
	}
}

// spelt writes a piece of JSON the one way: it drops white space that the
// generator puts between tokens and decodes escapes that need not be. It is the slow plain model.
func spelt(t *rapid.T, piece string) string {
	out := ""
	for i := 0; i < len(piece); {
		if piece[i] != '\\' {
			out += piece[i : i+1]
			i++
			continue
		}
		n := 2
		if piece[i+1] == 'u' {
			n = 6
			if strings.HasPrefix(piece[i:], `\ud83d`) {
				n = 12
			}
		}
		s, ok := strictjson.Text([]byte(`"` + piece[i:i+n] + `"`))
		if !ok {
			t.Fatalf("%q ends inside an escape", piece)
		}
		q := string(strictjson.Quote(s))
		out += q[1 : len(q)-1]
		i += n
	}
	return strings.NewReplacer("\n", "", "\t", "").Replace(out)
}

// FuzzGround: whatever is accepted is a verbatim substring, and its range spells
// it.
func FuzzGround(f *testing.F) {
	b, err := os.ReadFile("testdata/ground/ticket.txtar")
	if err != nil {
		f.Fatal(err)
	}
	record := string(txtar.Parse(b).Files[1].Data)
	f.Add(record, string(summaryOf("open", "is broken", "INC-1042")), 1000)
	f.Add(record, string(summaryOf("\"paid\":true", "INC-10")), 100)
	f.Add("plain text of two\nlines, 12.50 EUR", string(summaryOf("12.50 EUR", "lines, 12")), 30)
	f.Fuzz(func(t *testing.T, record, summary string, limit int) {
		sources := []*Source{}
		if s, stop := NewSource([]byte(record), "", limit); stop == nil {
			sources = append(sources, s)
		}
		if s, stop := TextSource([]byte(record), limit); stop == nil {
			sources = append(sources, s)
		}
		for _, s := range sources {
			if len(s.body) > max(limit, 0) && s.Truncated() || !utf8.ValidString(s.body) {
				t.Fatalf("cut to %q", s.body)
			}
			sum, stop := Ground(s, []byte(summary))
			if stop != nil {
				if stop.Stage != StageGrounding || sum.Bullets != nil {
					t.Fatalf("%v", stop)
				}
				continue
			}
			for _, l := range sum.lists() {
				for _, item := range *l.items {
					q := item.Quote
					if !strings.Contains(s.body, item.Evidence) || s.body[q.Start:q.End] != item.Evidence ||
						q.From < 0 || q.To > len(record) || q.From >= q.To || !utf8.ValidString(record[q.From:q.To]) {
						t.Fatalf("%+v of %q", item, record)
					}
				}
			}
		}
	})
}

// FuzzParseSummary: what is accepted re-encodes to itself.
func FuzzParseSummary(f *testing.F) {
	_, texts := cases(f, "testdata/summaries.txt")
	for _, s := range texts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, stop := ParseSummary(b)
		if stop != nil {
			return
		}
		again, stop := ParseSummary(s.JSON())
		if stop != nil || string(again.JSON()) != string(s.JSON()) {
			t.Fatalf("%s does not re-encode: %v", b, stop)
		}
	})
}

// again reports whether a quote that was once given for this evidence is the one
// that is found now: what an audit does, with a source of the same recorded bytes.
func again(source *Source, evidence string, q Quote) bool {
	got, r := source.Find(evidence)
	return r == "" && got == q
}
