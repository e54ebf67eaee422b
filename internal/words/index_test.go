package words

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plain is what an index holds, and the slow way to find it.
type plain []plainText

type plainText struct{ id, kind, text string }

func (p plain) without(id string) plain {
	return slices.DeleteFunc(slices.Clone(p), func(d plainText) bool { return d.id == id })
}

func (p plain) search(query string, kinds []string, limit int) (out []Hit) {
	var in []language
	var stems [][]string
	length := 0
	for i, d := range p {
		words := Of(d.text)
		in, stems = append(in, languageOf(words)), append(stems, nil)
		for _, w := range words {
			stems[i] = append(stems[i], in[i].stem(w))
		}
		length += len(words)
	}
	for _, all := range []bool{false, true} {
		// Each word of the query is looked for by a stem of each language, but a
		// stem only once.
		type part struct {
			stems []form
			texts int
		}
		var parts []part
		seen := map[form]bool{}
		for _, w := range Query(query) {
			var q part
			held := 0
			for l := range languages {
				f := form{language(l), language(l).stem(w)}
				before := held
				if function()[w]>>l&1 == 1 && !all || seen[f] {
					continue
				}
				for i := range p {
					if in[i] == f.in && slices.Contains(stems[i], f.word) {
						held++
					}
				}
				if n := held - before; n > 0 {
					seen[f] = true
					q.stems, q.texts = append(q.stems, f), q.texts+n
				}
			}
			for l := 0; l < len(languages) && (held == 0 && function()[w] == 0); l++ {
				own := []rune(language(l).stem(w))
				kin := map[string]int{}
				for i := range p {
					for _, s := range slices.Compact(slices.Sorted(slices.Values(stems[i]))) {
						r, n := []rune(s), 0
						for n < min(len(r), len(own)) && r[n] == own[n] {
							n++
						}
						if in[i] == language(l) && n >= 5 && max(len(r), len(own))-n <= 3 {
							kin[s]++
						}
					}
				}
				for _, s := range slices.Sorted(maps.Keys(kin)) {
					if f := (form{language(l), s}); !seen[f] {
						seen[f] = true
						q.stems, q.texts = append(q.stems, f), q.texts+kin[s]
					}
				}
			}
			if q.texts = min(q.texts, len(p)); q.texts > 0 {
				parts = append(parts, q)
			}
		}
		slices.SortFunc(parts, func(a, b part) int {
			return cmp.Or(cmp.Compare(a.texts, b.texts), cmp.Compare(a.stems[0].in, b.stems[0].in), strings.Compare(a.stems[0].word, b.stems[0].word))
		})
		for i, d := range p {
			score, mean := 0.0, float64(length)/float64(len(p))
			for _, q := range parts {
				weight := math.Log(1 + (float64(len(p)-q.texts)+0.5)/(float64(q.texts)+0.5))
				norm := float64(k1 * (1 - b + float64(b*float64(len(stems[i]))/mean)))
				for _, stem := range q.stems { // of kin a text may hold several
					f := 0.0
					for _, s := range stems[i] {
						if stem == (form{in[i], s}) {
							f++
						}
					}
					score += float64(weight * (f / (f + norm)))
				}
			}
			if score > 0 && (len(kinds) == 0 || slices.Contains(kinds, d.kind)) {
				out = append(out, Hit{d.id, d.kind, score})
			}
		}
		if len(out) > 0 {
			break
		}
	}
	slices.SortFunc(out, func(a, b Hit) int { return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ID, b.ID)) })
	if len(kinds) == 0 {
		return out[:min(limit, len(out))]
	}
	left := map[string]int{}
	return slices.DeleteFunc(out, func(h Hit) bool {
		left[h.Kind]++
		return left[h.Kind] > limit
	})
}

// whole is all that a copy of an index holds.
func whole(x *Index) string {
	c := x.Clone()
	return fmt.Sprintf("%+v", c)
}

// TestIndex: whatever was put, dropped, folded and copied in between, an
// index finds what the slow way finds in what is left, with the same scores, and
// is the index that was never told anything else.
func TestIndex(t *testing.T) {
	vocabulary := strings.Fields("the is und der nicht und le pas что meeting meetings met Haus Häuser haus allergic allergies allergy alley Allergien allergisch payé payer дом дома run running ran 42 ana@acme.example I my ich")
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 8).Draw(t, "words"), " ")
	})
	ids := rapid.SampledFrom([]string{"", "a", "obs_1", "obs_10", "obs_2", "prop_2", "prop_2_2", "ü\x00", "obs_12", "obs_100"})
	ask := func(t *rapid.T, x *Index, p plain) {
		kinds := rapid.SampledFrom([][]string{nil, {"observation"}, {"proposition", "observation"}, {"entity"}}).Draw(t, "kinds")
		query, limit := text.Draw(t, "query"), rapid.IntRange(0, 4).Draw(t, "limit")
		if got, want := x.Search(query, kinds, limit), p.search(query, kinds, limit); !slices.Equal(got, want) || x.Len() != len(p) {
			t.Fatalf("%q in %v: %v, want %v", query, p, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x, p := &Index{kinds: []string{"observation", "proposition"}}, plain{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0:
				gone := rapid.SliceOfN(ids, 0, 3).Draw(t, "ids")
				x.Drop(gone...)
				for _, id := range gone {
					p = p.without(id)
				}
				if x.gone > 0 {
					t.Fatal("what was dropped is still there")
				}
			case 1:
				x.fold()
			case 2:
				again := x.Clone()
				x.Drop("a", "obs_1") // which is nothing to its copy
				x = &again
			case 3:
				ask(t, x, p)
			default:
				d := plainText{ids.Draw(t, "id"), rapid.SampledFrom([]string{"observation", "proposition"}).Draw(t, "kind"), text.Draw(t, "text")}
				x.Put(d.id, d.kind, d.text)
				p = append(p.without(d.id), d)
			}
		}
		ask(t, x, p)
		fresh := Index{kinds: []string{"observation", "proposition"}}
		for _, d := range p {
			fresh.Put(d.id, d.kind, d.text)
		}
		if whole(x) != whole(&fresh) || len(x.open)+len(x.forms) > 0 {
			t.Fatalf("%v: something else is left", p)
		}
	})
}

// TestMany is TestIndex where lists are long and are folded by themselves.
func TestMany(t *testing.T) {
	kinds := []string{"observation", "proposition"}
	x, fresh, p := Index{kinds: kinds}, Index{kinds: kinds}, plain{}
	var gone []string
	for i := range 2 * maxOpen {
		d := plainText{fmt.Sprintf("obs_%d", i*7%maxOpen), kinds[i%3%2], sentence(i, 4)}
		x.Put(d.id, d.kind, d.text)
		switch {
		case i < maxOpen: // put again
		case i%5 == 0:
			gone = append(gone, d.id)
		default:
			p = append(p, d)
		}
	}
	x.Drop(gone...)
	x.Drop(p[0].id)
	p = p[1:]
	for _, d := range p {
		fresh.Put(d.id, d.kind, d.text)
	}
	if whole(&x) != whole(&fresh) {
		t.Fatal("something else is left")
	}
	for _, query := range []string{"w0", "w0 w1 w2 w3 w7", "w1 w1f"} {
		if got, want := x.Search(query, kinds, 300), p.search(query, kinds, 300); !slices.Equal(got, want) {
			t.Errorf("%q: %d hits, want %d: %v", query, len(got), len(want), got)
		}
	}
}

// TestHeld: a word that was dropped with the only text of it is nowhere, in no
// form.
func TestHeld(t *testing.T) {
	var x Index
	x.Put("obs_1", "observation", "the passphrase is Xylophonists")
	x.Put("obs_2", "observation", "the passphrase is long")
	x.fold()
	x.Put("obs_3", "observation", "the zeppelins")
	for _, drop := range []string{"obs_1", "obs_3"} {
		x.Drop(drop)
	}
	held := fmt.Sprintf("%s %v %s", x.packed.data[:cap(x.packed.data)], x.forms, x.ids[:cap(x.ids)])
	for stem := range x.open {
		held += stem
	}
	for word, want := range map[string]bool{"xylo": false, "zeppel": false, "passphras": true, "long": true} {
		if strings.Contains(held, word) != want {
			t.Errorf("%q: %t, want %t", word, !want, want)
		}
	}
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

// sentence is the i-th text of the benchmarks: words as often as words are, by
// Zipf's law, out of 20,000.
func sentence(i, words int) string {
	r := rand.New(rand.NewPCG(uint64(i), 7))
	z := rand.NewZipf(r, 1.1, 2.7, 19_999)
	out := make([]string, words)
	for k := range out {
		out[k] = fmt.Sprintf("w%x", z.Uint64())
	}
	return strings.Join(out, " ")
}

// BenchmarkIndex is an index of 10^5 observations and as many claims: what it
// takes to make one, to hold it, to store and load it, to find something and to
// drop a text.
func BenchmarkIndex(b *testing.B) {
	const n = 200_000
	put := func(x *Index, i int) {
		if i%2 == 0 {
			x.Put(fmt.Sprintf("obs_%d", i+1), []string{"established", "reported", "own", "established", "exposed"}[i/2%5], sentence(i, 12))
		} else {
			x.Put(fmt.Sprintf("prop_%d", i), "claim", sentence(i-1, 9)+fmt.Sprintf(" person %d", i/20))
		}
	}
	kinds := []string{"established", "own", "reported", "exposed", "claim"}
	took := make([]time.Duration, 0, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := &Index{}
	timed := func(f func()) {
		start := time.Now()
		f()
		took = append(took, time.Since(start))
	}
	report := func(b *testing.B) {
		slices.Sort(took)
		for name, at := range map[string]float64{"p50-ms": 0.5, "p95-ms": 0.95, "max-ms": 1} {
			b.ReportMetric(float64(took[int(float64(len(took)-1)*at)].Microseconds())/1000, name)
		}
		b.ReportMetric(0, "ns/op")
		took = took[:0]
	}
	for i := range n {
		timed(func() { put(x, i) })
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Run("put", func(b *testing.B) {
		for b.Loop() {
		}
		report(b)
		b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/n, "bytes/text")
	})
	took = took[:0]
	for name, query := range map[string]func(i int) string{
		"a text":       func(i int) string { return sentence(i%n, 5) },
		"a long text":  func(i int) string { return sentence(i%n, 32) },
		"common words": func(i int) string { return []string{"w0 w1 w2 w3", "w1 w4", "w0"}[i%3] },
		"rare words":   func(i int) string { return fmt.Sprintf("w%x w%x", 5000+i%7919, 9000+i%1009) },
		"an entity":    func(i int) string { return fmt.Sprintf("person 1 w%x", i%500) },
	} {
		b.Run("search/"+name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				timed(func() { x.Search(query(i), kinds, 400) })
			}
			report(b)
		})
	}
	b.Run("clone", func(b *testing.B) {
		for b.Loop() {
			timed(func() { x.Clone() })
		}
		report(b)
	})
	b.Run("drop and put", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			at := i * 7919 * 2 % n
			timed(func() { x.Drop(fmt.Sprintf("obs_%d", at+1)) })
			put(x, at)
		}
		report(b)
	})
}
