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
