package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
	"pgregory.net/rapid"
)

func openIndexAt(tb testing.TB, dir string) *Index {
	tb.Helper()
	if err := os.Chmod(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	x, err := OpenIndex(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func TestIndex(t *testing.T) {
	storetest.TestIndex(t, func(tb testing.TB, dir string) storetest.Index { return openIndexAt(tb, dir) }, true)
}

// tuned sets how a search goes about it, which must not show in the answer:
// which words are common, and what another reader can follow.
var tuned = map[string]func(*Index){
	"as it is":            func(*Index) {},
	"no word is common":   func(x *Index) { x.common.least = math.MaxInt },
	"some words are":      func(x *Index) { x.common.least = 3 },
	"all words are":       func(x *Index) { x.common.least = 1 },
	"a journal of little": func(x *Index) { x.common.least, x.common.journal = 4, 2 },
}

// TestIndexSameAsMap runs random operations on this index and on the plain model
// and demands the same answers, to the last bit of a score.
func TestIndexSameAsMap(t *testing.T) {
	defer atMost(size(15, 300))()
	for name, tune := range tuned {
		t.Run(name, func(t *testing.T) { sameAsMap(t, tune) })
	}
}

func sameAsMap(t *testing.T, tune func(*Index)) {
	ctx := context.Background()
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
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		openTuned := func() *Index {
			x := openIndexAt(t, dir)
			tune(x)
			return x
		}
		a, b := mapstore.NewIndex(), openTuned()
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
			"open again": func(rt *rapid.T) {
				if err := b.Close(); err != nil {
					rt.Fatal(err)
				}
				b = openTuned()
			},
			"": func(rt *rapid.T) {
				for _, ns := range []string{"n", "N", "m"} {
					na, ea := a.At(ctx, ns)
					nb, eb := b.At(ctx, ns)
					if same("at", ea, eb); na != nb {
						rt.Fatalf("%s at %d, %d", ns, na, nb)
					}
					if da, db := storetest.Collect(t, a.Docs(ctx, ns)), storetest.Collect(t, b.Docs(ctx, ns)); !slices.Equal(da, db) {
						rt.Fatalf("%s: %q\n%q", ns, da, db)
					}
				}
			},
		}
		rt.Repeat(actions)
	})
}

// TestIndexSpeech compares with the map where words are as common and as rare
// as in speech, between changes.
func TestIndexSpeech(t *testing.T) {
	ctx := context.Background()
	texts := size(300, 6000)
	for name, tune := range tuned {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			x := openIndexAt(t, dir)
			defer x.Close()
			tune(x)
			m := mapstore.NewIndex()
			s := newSpeech(7)
			for round := range uint64(4) {
				c := memory.Change{Namespace: "n", From: round, To: round + 1, Put: s.docs(int(round)*texts/3, texts)}
				if round > 0 {
					c.Drop = []string{"obs_1", "obs_3", fmt.Sprintf("obs_%d", round)}
					c.Drop = slices.Compact(slices.Sorted(slices.Values(c.Drop)))
				}
				by := x
				if round == 2 { // what x remembers is of another record then
					by = openIndexAt(t, dir)
				}
				for _, i := range []memory.Index{by, m} {
					if err := i.Update(ctx, c); err != nil {
						t.Fatal(err)
					}
				}
				if by != x {
					by.Close()
				}
				for range size(20, 300) {
					q, limit := s.question(), 1+s.r.IntN(30)
					kinds := [][]string{nil, {"observation"}, {"entity"}}[s.r.IntN(3)]
					got, err := x.Search(ctx, "n", q, kinds, limit)
					want, err2 := m.Search(ctx, "n", q, kinds, limit)
					if err != nil || err2 != nil {
						t.Fatal(err, err2)
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%q, %d of %v:\n%v\n%v", q, limit, kinds, got, want)
					}
				}
			}
		})
	}
}

// TestIndexAnotherNamespace: what is remembered of a namespace is not taken for
// that of one of the same name, at the same record, that took its place.
func TestIndexAnotherNamespace(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	x := openIndexAt(t, dir)
	defer x.Close()
	x.common.least = 1
	put(t, x, "n", nil, memory.Doc{ID: "a", Kind: "k", Text: "fox"}, memory.Doc{ID: "b", Kind: "k", Text: "hare"})
	if hits, err := x.Search(ctx, "n", "deer fox", nil, 5); err != nil || len(hits) != 1 {
		t.Fatal(hits, err)
	}
	y := openIndexAt(t, dir)
	defer y.Close()
	if err := y.Reset(ctx, "n"); err != nil {
		t.Fatal(err)
	}
	var docs []memory.Doc
	for i := range 9 {
		docs = append(docs, memory.Doc{ID: fmt.Sprint(i), Kind: "k", Text: "deer"})
	}
	docs = append(docs, memory.Doc{ID: "f", Kind: "k", Text: "fox fox"}, memory.Doc{ID: "g", Kind: "k", Text: "fox"})
	put(t, y, "n", nil, docs...)
	same := func() {
		t.Helper()
		got, err := x.Search(ctx, "n", "fox", nil, 5)
		want, err2 := y.Search(ctx, "n", "fox", nil, 5)
		if err != nil || err2 != nil || len(got) == 0 || !slices.Equal(got, want) {
			t.Errorf("%v, %v; %v, %v", got, want, err, err2)
		}
	}
	same()
	put(t, y, "n", nil, memory.Doc{ID: "g", Kind: "k", Text: "hare"})
	same()
	put(t, x, "n", nil, memory.Doc{ID: "h", Kind: "k", Text: "a fox"})
	same()
}
