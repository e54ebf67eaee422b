package storetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/writ-project/writ/memory"
	"pgregory.net/rapid"
)

// testIndexNamespaces is M02: in namespaces that share words and ids, no search
// of one finds, counts or is weighed by a text of another. Each answer is the
// one of an index that holds this namespace alone.
func testIndexNamespaces(t *testing.T, open IndexOpener) {
	r := rand.New(rand.NewPCG(2, 3))
	vocabulary := func(n int) string { return fmt.Sprintf("w%d", int(math.Sqrt(float64(r.IntN(n*n))))) }
	shared := open(t, t.TempDir())
	defer shared.Close()
	const namespaces, texts = 5, 40
	alone := map[string]Index{}
	text := map[string]string{} // by namespace and id
	for n := range namespaces {
		ns := fmt.Sprintf("tenant%d", n)
		alone[ns] = open(t, t.TempDir())
		defer alone[ns].Close()
		var docs []memory.Doc
		for i := range texts + 10*n {
			id := fmt.Sprintf("obs_%d", i) // of each namespace
			if i%2 == 0 {
				id = fmt.Sprintf("%s_%d", ns, i)
			}
			var ws []string
			for range 1 + r.IntN(12) {
				ws = append(ws, vocabulary(30))
			}
			d := doc(id, strings.Join(append(ws, fmt.Sprintf("only%d", n)), " "))
			docs, text[ns+" "+id] = append(docs, d), d.Text
		}
		for _, x := range []Index{shared, alone[ns]} {
			put(t, x, ns, docs...)
		}
	}
	// A namespace that is changed and forgotten all the time meanwhile.
	count := 2_000
	if long() {
		count = 1_000_000
	}
	ended := make(chan struct{})
	var noise, wg sync.WaitGroup
	noise.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			default:
			}
			var err error
			if i%50 == 49 {
				err = shared.Reset(ctx, "noise")
			} else {
				err = shared.Update(ctx, memory.Change{Namespace: "noise", From: uint64(i % 50), To: uint64(i%50) + 1,
					Put: []memory.Doc{doc(fmt.Sprintf("obs_%d", i%7), strings.Repeat("w1 w2 only0 ", 10))}})
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	workers := max(2, runtime.GOMAXPROCS(0))
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(5, uint64(w)))
			for range count / workers {
				ns := fmt.Sprintf("tenant%d", r.IntN(namespaces))
				var q []string
				for range 1 + r.IntN(4) {
					if r.IntN(4) == 0 {
						q = append(q, fmt.Sprintf("only%d", r.IntN(namespaces)))
					} else {
						q = append(q, fmt.Sprintf("w%d", r.IntN(30)))
					}
				}
				query, limit := strings.Join(q, " "), 1+r.IntN(20)
				got, err := shared.Search(ctx, ns, query, nil, limit)
				want, err2 := alone[ns].Search(ctx, ns, query, nil, limit)
				if err != nil || err2 != nil {
					t.Error(err, err2)
					return
				}
				if !slices.Equal(got, want) {
					t.Errorf("M02: %q in %s: %v, alone %v", query, ns, got, want)
					return
				}
				for _, h := range got {
					if words := text[ns+" "+h.ID]; !slices.ContainsFunc(q, func(w string) bool { return slices.Contains(strings.Fields(words), w) }) {
						t.Errorf("M02: %q in %s found %s, which it has not or which holds none of it", query, ns, h.ID)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	close(ended)
	noise.Wait()
}

// testIndexConcurrent: writers with handles of their own take turns, and no
// reader sees half a change.
func testIndexConcurrent(t *testing.T, open IndexOpener, persistent bool) {
	dir := t.TempDir()
	handles := []Index{open(t, dir)}
	if persistent {
		handles = append(handles, open(t, dir))
	} else {
		handles = append(handles, handles[0])
	}
	const writers, each = 4, 12
	pair := func(n uint64) []memory.Doc {
		return []memory.Doc{doc("left", fmt.Sprintf("pair v%d", n)), doc("right", fmt.Sprintf("pair v%d", n))}
	}
	put(t, handles[0], "n", pair(1)...)
	ended := make(chan struct{})
	var writing, reading sync.WaitGroup
	for w := range writers {
		x := handles[w%2]
		writing.Go(func() {
			for i := 0; i < each; {
				from, err := x.At(ctx, "n")
				if err == nil {
					err = x.Update(ctx, memory.Change{Namespace: "n", From: from, To: from + 1,
						Put: append(pair(from+1), doc(fmt.Sprintf("w%d_%d", w, i), "fox"))})
				}
				switch {
				case err == nil:
					i++
				case !errors.Is(err, memory.ErrBehind):
					t.Error(err)
					return
				}
			}
		})
	}
	for _, x := range handles {
		reading.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				hits, err := x.Search(ctx, "n", "pair", nil, 10)
				if err != nil || !slices.Equal(ids(hits), []string{"left", "right"}) {
					t.Errorf("found %v: %v", hits, err)
					return
				}
				var texts []string
				for d, err := range x.Docs(ctx, "n") {
					if err != nil {
						t.Error(err)
						return
					}
					if d.Text != "fox" {
						texts = append(texts, d.Text)
					}
				}
				if len(texts) != 2 || texts[0] != texts[1] {
					t.Errorf("half a change: %q", texts)
					return
				}
			}
		})
	}
	writing.Wait()
	close(ended)
	reading.Wait()
	if n := at(t, handles[0], "n"); n != 1+writers*each {
		t.Errorf("at %d", n)
	}
	for _, x := range handles {
		if n := len(search(t, x, "n", "fox", nil, 1000)); n != writers*each {
			t.Errorf("%d texts, want %d", n, writers*each)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

// DifferentialIndex runs random operations on a model and a subject and demands
// the same answers, to the last bit of a score. reopen closes the subject and opens it
// again in the same place.
func DifferentialIndex(t *testing.T, model func() memory.Index, subject func() (x Index, reopen func() Index)) {
	// Few letters, so that words meet; several cases, scripts and signs.
	word := rapid.OneOf(
		rapid.SampledFrom([]string{"the", "The", "fox", "FOX", "é", "e\u0301", "ß", "ss", "東", "京", "x-y", "x_y", "\x00", "\xff", "\"", "*", "OR", "\u200b", "ﬁ", "ま\u3099", "fo\u00adx", "1", "I\u0307"}),
		rapid.StringMatching(`[a-c]{1,2}`),
		rapid.StringN(0, 3, -1),
	)
	text := rapid.Custom(func(rt *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word, 0, 12).Draw(rt, "words"), rapid.SampledFrom([]string{" ", " ", " ", "", "\n"}).Draw(rt, "between"))
	})
	space := rapid.SampledFrom([]string{"n", "n", "N", "m"})
	id := rapid.Custom(func(rt *rapid.T) string { return fmt.Sprintf("%c", 'A'+rapid.IntRange(0, 40).Draw(rt, "id")) })
	kind := rapid.SampledFrom([]string{"observation", "entity", "Entity"})
	rapid.Check(t, func(rt *rapid.T) {
		a := model()
		b, reopen := subject()
		defer func() { b.Close() }()
		same := func(what string, ea, eb error) {
			if errors.Is(ea, memory.ErrBehind) && errors.Is(eb, memory.ErrBehind) {
				return
			}
			if ea != nil || eb != nil {
				rt.Fatalf("%s: %v, %v", what, ea, eb)
			}
		}
		search := func(rt *rapid.T) {
			ns, q, limit := space.Draw(rt, "namespace"), text.Draw(rt, "query"), rapid.IntRange(0, 12).Draw(rt, "limit")
			kinds := rapid.SliceOfN(kind, 0, 2).Draw(rt, "kinds")
			ha, ea := a.Search(ctx, ns, q, kinds, limit)
			hb, eb := b.Search(ctx, ns, q, kinds, limit)
			same("search", ea, eb)
			if !slices.Equal(ha, hb) {
				rt.Fatalf("%q: %v\n%v", q, ha, hb)
			}
		}
		update := func(rt *rapid.T) {
			ns := space.Draw(rt, "namespace")
			c := memory.Change{Namespace: ns}
			c.From, _ = a.At(ctx, ns)
			if rapid.IntRange(0, 9).Draw(rt, "wrong") == 0 {
				c.From = uint64(rapid.IntRange(0, 5).Draw(rt, "from"))
			}
			c.To = c.From + uint64(rapid.IntRange(1, 3).Draw(rt, "records"))
			for _, one := range rapid.SliceOfNDistinct(id, 0, 12, func(s string) string { return s }).Draw(rt, "ids") {
				if rapid.IntRange(0, 3).Draw(rt, "drop") == 0 {
					c.Drop = append(c.Drop, one)
				} else {
					c.Put = append(c.Put, memory.Doc{ID: one, Kind: kind.Draw(rt, "kind"), Text: text.Draw(rt, "text")})
				}
			}
			same("update", a.Update(ctx, c), b.Update(ctx, c))
		}
		actions := map[string]func(*rapid.T){
			"update": update, "update more": update,
			"search": search, "search more": search,
			"reset": func(rt *rapid.T) {
				ns := space.Draw(rt, "namespace")
				same("reset", a.Reset(ctx, ns), b.Reset(ctx, ns))
			},
			"": func(rt *rapid.T) {
				for _, ns := range []string{"n", "N", "m"} {
					na, ea := a.At(ctx, ns)
					nb, eb := b.At(ctx, ns)
					if same("at", ea, eb); na != nb {
						rt.Fatalf("%s at %d, %d", ns, na, nb)
					}
					if da, db := Collect(t, a.Docs(ctx, ns)), Collect(t, b.Docs(ctx, ns)); !slices.Equal(da, db) {
						rt.Fatalf("%s: %q\n%q", ns, da, db)
					}
				}
			},
		}
		if reopen != nil {
			actions["open again"] = func(rt *rapid.T) {
				if err := b.Close(); err != nil {
					rt.Fatal(err)
				}
				b = reopen()
			}
		}
		rt.Repeat(actions)
	})
}
