package words

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plain is what an index holds, and the slow way to find it.
type plain map[string][2]string // kind and text, by id

func (p plain) search(query string, kinds []string, limit int) (out []Hit) {
	stems := func(text string) (in language, words, stems []string) {
		words = Of(text)
		in = languageOf(words)
		for _, w := range words {
			stems = append(stems, in.stem(w))
		}
		return in, words, stems
	}
	length := 0
	for _, d := range p {
		length += len(Of(d[1]))
	}
	for _, all := range []bool{false, true} {
		out = nil
		for id, d := range p {
			in, words, has := stems(d[1])
			score := 0.0
			var done []string
			for _, w := range Query(query) {
				s := in.stem(w)
				if function()[w]>>in&1 == 1 && !all || !slices.Contains(has, s) || slices.Contains(done, s) {
					continue
				}
				done = append(done, s)
				// The texts that this word is looked for in, in any language, and that
				// no word before it was.
				n := 0
				for _, other := range p {
					l, _, its := stems(other[1])
					first := func(of string) bool { return l.stem(of) == l.stem(w) && (all || function()[of]>>l&1 == 0) }
					if first(w) && slices.Contains(its, l.stem(w)) && w == Query(query)[slices.IndexFunc(Query(query), first)] {
						n++
					}
				}
				f := 0.0
				for _, h := range has {
					if h == s {
						f++
					}
				}
				mean := float64(length) / float64(len(p))
				score += math.Log(1+(float64(len(p)-n)+0.5)/(float64(n)+0.5)) * f / (f + k1*(1-b+b*float64(len(words))/mean))
			}
			if score > 0 && (len(kinds) == 0 || slices.Contains(kinds, d[0])) {
				out = append(out, Hit{id, d[0], score})
			}
		}
		if len(out) > 0 {
			break
		}
	}
	slices.SortFunc(out, func(a, b Hit) int {
		if math.Abs(a.Score-b.Score) > 1e-9 {
			return int(math.Copysign(1, b.Score-a.Score))
		}
		return strings.Compare(a.ID, b.ID)
	})
	if len(kinds) == 0 {
		return out[:min(limit, len(out))]
	}
	left := map[string]int{}
	return slices.DeleteFunc(out, func(h Hit) bool {
		left[h.Kind]++
		return left[h.Kind] > limit
	})
}

// TestIndex: whatever was put and dropped in between, an index finds what the
// slow way finds in what is left, with the same scores.
func TestIndex(t *testing.T) {
	vocabulary := strings.Fields("the is und der nicht und le pas что meeting meetings met Haus Häuser haus payé payer дом дома run running ran 42 ana@acme.example I my ich")
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 8).Draw(t, "words"), " ")
	})
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		p := plain{}
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			id := rapid.StringMatching("[a-h]").Draw(t, "id")
			if rapid.IntRange(0, 4).Draw(t, "drop") == 0 {
				x.Drop(id)
				delete(p, id)
				continue
			}
			kind, s := rapid.SampledFrom([]string{"observation", "proposition"}).Draw(t, "kind"), text.Draw(t, "text")
			x.Put(id, kind, s)
			p[id] = [2]string{kind, s}
		}
		kinds := rapid.SampledFrom([][]string{nil, {"observation"}, {"proposition", "observation"}, {"entity"}}).Draw(t, "kinds")
		query, limit := text.Draw(t, "query"), rapid.IntRange(0, 4).Draw(t, "limit")
		got, want := x.Search(query, kinds, limit), p.search(query, kinds, limit)
		if len(got) != len(want) || x.Len() != len(p) {
			t.Fatalf("%q in %v: %v, want %v", query, p, got, want)
		}
		for i := range got {
			if math.Abs(got[i].Score-want[i].Score) > 1e-9 {
				t.Fatalf("%q in %v: %v, want %v", query, p, got, want)
			}
		}
		if len(p) == 0 && len(x.terms)+len(x.forms) > 0 {
			t.Fatalf("words are left: %v", x.terms)
		}
	})
}

// TestCases: what is found, and in which order. A query is words: what a query
// language means by it does not matter (M06).
func TestCases(t *testing.T) {
	b, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Docs  []struct{ ID, Kind, Text string }
		Cases []struct {
			Name, Query string
			Kinds       []string
			Limit       int
			Want        []string
		}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		t.Fatal(err)
	}
	var x Index
	for _, d := range in.Docs {
		x.Put(d.ID, d.Kind, d.Text)
	}
	for _, c := range in.Cases {
		got := []string{}
		for _, h := range x.Search(c.Query, c.Kinds, cmp.Or(c.Limit, 10)) {
			got = append(got, h.ID)
		}
		if !slices.Equal(got, c.Want) {
			t.Errorf("%s: %q finds %v, want %v", c.Name, c.Query, got, c.Want)
		}
	}
}

// TestForms: what finds what.
func TestForms(t *testing.T) {
	texts := map[string]string{
		"dentist":  "My dentist is Dr. Weiss and she is in the old town.",
		"meetings": "The meetings with the suppliers were moved to Thursdays.",
		"rent":     "Die Miete für die Wohnung wird am Ersten überwiesen.",
		"houses":   "Wir haben die Häuser am Fluss besichtigt, und sie waren zu teuer.",
		"dog":      "On a adopté un chien et il dort dans la cuisine.",
		"mail":     "Write to ana@acme.example about it.",
		"москва":   "Мы живём в Москве с прошлого года.",
	}
	var x Index
	for id, text := range texts {
		x.Put(id, "observation", text)
	}
	for query, want := range map[string]string{
		"who is my dentist?": "dentist", "supplier meeting": "meetings", "Wohnung Mieten": "rent", "Haus": "houses", "haeuser": "", "les chiens": "dog",
		"ana@acme.example": "mail", "Москва": "москва", "the": "meetings", "what is": "dentist", "zebra": "", "\"; DROP TABLE": "",
	} {
		got := ""
		if hits := x.Search(query, nil, 1); len(hits) > 0 {
			got = hits[0].ID
		}
		if got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}

// FuzzStem: a stem of any word is a word, in every language.
func FuzzStem(f *testing.F) {
	for _, s := range []string{"running", "Häuser", "живём", "s", "ung", "\u0301", "東", "\xff", strings.Repeat("s", MaxWord)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, w := range Of(s) {
			for l := range languages {
				if language(l).stem(w) == "" {
					t.Errorf("%q has no stem in %s", w, languages[l].name)
				}
			}
		}
	})
}

func BenchmarkPut(b *testing.B) {
	words := strings.Fields(common)
	var x Index
	for i := 0; b.Loop(); i++ {
		at := i * 13 % (len(words) - 20)
		x.Put(string(rune('a'+i%26))+strings.Repeat("x", i/26%50), "observation", strings.Join(words[at:at+15], " "))
	}
}
