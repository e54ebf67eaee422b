package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/writ-project/writ/memory"
)

// speech makes texts as words are used: a few stand in most texts, as "the"
// does, and most in hardly any.
type speech struct {
	r *rand.Rand
	z *rand.Zipf
}

func newSpeech(seed uint64) *speech {
	r := rand.New(rand.NewPCG(seed, 1))
	return &speech{r, rand.NewZipf(r, 1.07, 2.7, 50_000)}
}

func (s *speech) word() string { return fmt.Sprintf("w%d", s.z.Uint64()) }

func (s *speech) text() string {
	ws := make([]string, 10+s.r.IntN(40))
	for i := range ws {
		ws[i] = s.word()
	}
	return strings.Join(ws, " ")
}

func (s *speech) docs(from, n int) []memory.Doc {
	out := make([]memory.Doc, n)
	for i := range out {
		out[i] = memory.Doc{ID: fmt.Sprintf("obs_%d", from+i), Kind: "observation", Text: s.text()}
		if i%5 == 4 {
			out[i].Kind = "entity"
		}
	}
	return out
}

// question has common words, as they come, and one to three that say what it
// is about: words that stand in few texts.
func (s *speech) question() string {
	var ws []string
	for range 2 + s.r.IntN(4) {
		ws = append(ws, s.word())
	}
	for range 1 + s.r.IntN(3) {
		ws = append(ws, fmt.Sprintf("w%d", 100+s.r.IntN(5000)))
	}
	return strings.Join(ws, " ")
}

// thirtyTwo are the commonest words, as many as a query has.
var thirtyTwo = func() (q string) {
	for i := range 32 {
		q += fmt.Sprintf("w%d ", i)
	}
	return q
}()

// spoken returns a function that makes an index of n texts, once, and opens it.
func spoken(b *testing.B, n int) func(*testing.B) *Index {
	dir := sync.OnceValue(func() string {
		dir := b.TempDir()
		x := openIndexAt(b, dir)
		s := newSpeech(1)
		for i := 0; i < n; i += 1000 {
			c := memory.Change{Namespace: "n", From: uint64(i), To: uint64(i + 1000), Put: s.docs(i, 1000)}
			if err := x.Update(context.Background(), c); err != nil {
				b.Fatal(err)
			}
		}
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
		return dir
	})
	return func(b *testing.B) *Index { return openIndexAt(b, dir()) }
}

// BenchmarkSearch measures searches for the ten best of an index of 10^3 to
// 10^5 texts: questions, and the worst there is, words that all stand in most
// texts.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		open := spoken(b, n)
		for _, c := range []struct {
			name  string
			query func(*speech) string
		}{
			{"questions", (*speech).question},
			{"any words", func(s *speech) string { return s.word() + " " + s.word() + " " + s.word() + " " + s.word() }},
			{"only common words", func(*speech) string { return "w0 w1 w2 w3" }},
			{"32 common words", func(*speech) string { return thirtyTwo }},
		} {
			b.Run(fmt.Sprintf("%s/texts=%d", c.name, n), func(b *testing.B) {
				x := open(b)
				defer x.Close()
				s := newSpeech(2)
				var took []time.Duration
				for b.Loop() {
					q := c.query(s)
					start := time.Now()
					hits, err := x.Search(context.Background(), "n", q, nil, 10)
					took = append(took, time.Since(start))
					if err != nil || len(hits) == 0 {
						b.Fatalf("%q: %d texts: %v", q, len(hits), err)
					}
				}
				slices.Sort(took)
				ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
				b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
				b.ReportMetric(ms(took[len(took)*95/100]), "p95-ms")
			})
		}
	}
}

// BenchmarkFirstSearch measures the first search of a process, which reads all
// texts, and what is held in memory of them afterwards.
func BenchmarkFirstSearch(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		open := spoken(b, n)
		b.Run(fmt.Sprintf("texts=%d", n), func(b *testing.B) {
			var held int
			for b.Loop() {
				x := open(b)
				if _, err := x.Search(context.Background(), "n", "w1 w200", nil, 10); err != nil {
					b.Fatal(err)
				}
				c := x.common.in("n")
				held = len(c.docs) * int(unsafe.Sizeof(known{})+24)
				for _, in := range c.held {
					held += cap(*in) * int(unsafe.Sizeof(place{}))
				}
				x.Close()
			}
			b.ReportMetric(float64(held)/(1<<20), "held-MiB")
		})
	}
}

// BenchmarkSearchWhileChanged measures searches of 10^5 texts between changes of
// one text each, which every search follows.
func BenchmarkSearchWhileChanged(b *testing.B) {
	const n = 100_000
	x := spoken(b, n)(b)
	defer x.Close()
	s := newSpeech(5)
	ctx := context.Background()
	if _, err := x.Search(ctx, "n", "w1", nil, 10); err != nil {
		b.Fatal(err)
	}
	at, err := x.At(ctx, "n")
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		c := memory.Change{Namespace: "n", From: at, To: at + 1, Put: s.docs(int(at), 1)}
		if at%2 == 0 {
			c.Put[0].ID = fmt.Sprintf("obs_%d", s.r.IntN(n))
		}
		if err := x.Update(ctx, c); err != nil {
			b.Fatal(err)
		}
		at++
		start := time.Now()
		if _, err := x.Search(ctx, "n", s.question(), nil, 10); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

// BenchmarkUpdate measures changes of one text each to an index of 10^3 to 10^5
// texts: new ones, and replaced ones, whose old words are overwritten.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		open := spoken(b, n)
		for _, how := range []string{"put", "replace"} {
			b.Run(fmt.Sprintf("%s/texts=%d", how, n), func(b *testing.B) {
				x := open(b)
				defer x.Close()
				s := newSpeech(3)
				at, err := x.At(context.Background(), "n")
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					c := memory.Change{Namespace: "n", From: at, To: at + 1, Put: s.docs(int(at), 1)}
					if how == "replace" {
						c.Put[0].ID = fmt.Sprintf("obs_%d", s.r.IntN(n))
					}
					if err := x.Update(context.Background(), c); err != nil {
						b.Fatal(err)
					}
					at++
				}
			})
		}
	}
}
