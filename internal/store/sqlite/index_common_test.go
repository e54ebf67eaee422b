package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

// TestIndexFollows: what a handle holds in memory follows the changes of
// another handle, of whatever size, and a namespace that was made anew; each
// answer is the map's, to the last bit.
func TestIndexFollows(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(size(4, 60)) {
		r := rand.New(rand.NewPCG(seed, 6))
		dir := t.TempDir()
		model := mapstore.NewIndex()
		handles := []*Index{openIndexAt(t, dir), openIndexAt(t, dir), openIndexAt(t, dir)}
		for i, x := range handles {
			x.common.least, x.common.journal = []int{1, 3, 512}[i], []int64{2, 20, 10_000}[seed%3]
		}
		word := func() string { return fmt.Sprintf("w%d", int(r.ExpFloat64()*4)) }
		text := func() string {
			ws := make([]string, r.IntN(12))
			for i := range ws {
				ws[i] = word()
			}
			return strings.Join(ws, " ")
		}
		for range 120 {
			by := handles[r.IntN(2)]
			at, err := by.At(ctx, "n")
			if err != nil {
				t.Fatal(err)
			}
			if r.IntN(25) == 0 {
				for _, x := range []memory.Index{by, model} {
					if err := x.Reset(ctx, "n"); err != nil {
						t.Fatal(err)
					}
				}
				at = 0
			}
			c := memory.Change{Namespace: "n", From: at, To: at + 1}
			for _, i := range r.Perm(60)[:[]int{1, 3, 30}[r.IntN(3)]] {
				if id := fmt.Sprintf("d%d", i); r.IntN(3) == 0 {
					c.Drop = append(c.Drop, id)
				} else {
					c.Put = append(c.Put, memory.Doc{ID: id, Kind: fmt.Sprintf("k%d", r.IntN(2)), Text: text()})
				}
			}
			for _, x := range []memory.Index{by, model} {
				if err := x.Update(ctx, c); err != nil {
					t.Fatal(err)
				}
			}
			for i, x := range handles {
				if r.IntN(3) == 0 {
					continue // it is behind by more than one change then
				}
				q, limit := word()+" "+word()+" "+word(), 1+r.IntN(70)
				kinds := [][]string{nil, {"k1"}, {"k0", "k1"}}[r.IntN(3)]
				got, err := x.Search(ctx, "n", q, kinds, limit)
				want, err2 := model.Search(ctx, "n", q, kinds, limit)
				if err != nil || err2 != nil || !slices.Equal(got, want) {
					t.Fatalf("seed %d, handle %d: %q, %d of %v:\n%v %v\n%v %v", seed, i, q, limit, kinds, got, err, want, err2)
				}
			}
		}
		for _, x := range handles {
			if err := x.Integrity(ctx); err != nil {
				t.Error(err)
			}
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestIndexJournal: a journal that tells too little makes a handle read anew;
// one that lies is damage, and nothing of what was read then is kept.
func TestIndexJournal(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	x, y := openIndexAt(t, dir), openIndexAt(t, dir)
	defer x.Close()
	defer y.Close()
	x.common.least = 1
	var docs []memory.Doc
	for i := range 20 {
		docs = append(docs, memory.Doc{ID: fmt.Sprintf("d%02d", i), Kind: "k", Text: "fox"})
	}
	put(t, x, "n", nil, docs...)
	count := func() (int, error) {
		hits, err := x.Search(ctx, "n", "fox", nil, 100)
		return len(hits), err
	}
	if n, err := count(); n != 20 || err != nil {
		t.Fatal(n, err)
	}
	put(t, y, "n", []string{"d00", "d01"})
	execConn(t, y, "DELETE FROM gone_1 WHERE n = 1")
	if n, err := count(); n != 18 || err != nil {
		t.Errorf("too little told: %d, %v", n, err)
	}
	put(t, y, "n", []string{"d02"})
	execConn(t, y, "UPDATE gone_1 SET seq = 1 WHERE n = 3")
	if _, err := count(); !errors.Is(err, ErrRemake) {
		t.Errorf("a lie: %v", err)
	}
	// Read anew, the journal does not matter.
	if n, err := count(); n != 17 || err != nil {
		t.Errorf("after it: %d, %v", n, err)
	}
	// A word of a text that is not there.
	execConn(t, y, "INSERT INTO words_1 (rowid, words) VALUES (99, 'hare')")
	if _, err := x.Search(ctx, "n", "hare", nil, 5); !errors.Is(err, ErrRemake) {
		t.Errorf("a text that is not there: %v", err)
	}
}
