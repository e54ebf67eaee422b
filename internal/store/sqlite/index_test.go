package sqlite

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
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

func TestIndexSameAsMap(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if old := checks.Value.String(); old == checks.DefValue {
		checks.Value.Set(fmt.Sprint(size(15, 300)))
		defer checks.Value.Set(old)
	}
	for name, tune := range tuned {
		t.Run(name, func(t *testing.T) {
			storetest.DifferentialIndex(t, func() memory.Index { return mapstore.NewIndex() },
				func() (storetest.Index, func() storetest.Index) {
					dir, err := os.MkdirTemp(t.TempDir(), "")
					if err != nil {
						t.Fatal(err)
					}
					reopen := func() storetest.Index {
						x := openIndexAt(t, dir)
						tune(x)
						return x
					}
					return reopen(), reopen
				})
		})
	}
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
