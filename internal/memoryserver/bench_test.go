package memoryserver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/memory"
)

// stocked is a keeper on SQLite that holds n observations.
func stocked(b *testing.B, n int) *Keeper {
	b.Helper()
	dir := b.TempDir()
	signer, verifier := storetest.Key()
	st, err := sqlite.Open(dir, sqlite.Options{Signer: signer, Verifier: verifier})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	k, err := Open(b.Context(), Options{Store: st, Namespace: "default", Policy: policy(b), Mode: memory.Hardened, Clock: ticking()})
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				c, p := said(fmt.Sprintf("agent-%d", i%97), fmt.Sprintf("o%d", i), sentence(i, 12))
				if o, err := k.Propose(b.Context(), c, p); err != nil || o.Status != writ.Accepted {
					b.Errorf("%v %+v", err, o)
					return
				}
			}
		})
	}
	all.Wait()
	return k
}

// peopled is a keeper as stocked makes it, with 50 entities and a claim on
// every tenth observation. One claim in five is about the first entity.
func peopled(b *testing.B, n int) *Keeper {
	b.Helper()
	k := stocked(b, n)
	propose := func(i int, tool string, payload any) string {
		raw, err := json.Marshal(payload)
		if err != nil {
			b.Fatal(err)
		}
		c := memory.Context{Principal: fmt.Sprintf("agent-%d", i%97), Session: "s_test", Task: fmt.Sprintf("t%d", i/20)}
		o, err := k.Propose(b.Context(), c, writ.Proposal{ToolName: tool, Payload: raw})
		made := slices.IndexFunc(o.Effects, func(e memory.Effect) bool { return strings.HasSuffix(e.Effect, ".created") })
		if err != nil || made < 0 {
			b.Fatalf("%v %+v %+v", err, o, o.Rejection)
		}
		return o.Effects[made].ID
	}
	var entities []string
	for i := 1; i <= 50; i++ {
		entities = append(entities, propose(i, memory.ToolEntity, map[string]any{"name": fmt.Sprintf("person %d", i), "entity_type": "person",
			"observation_ids": []string{fmt.Sprintf("o%d", i)}}))
	}
	for i := 10; i <= n; i += 10 {
		about := entities[(i/10)%50]
		if i%50 == 0 {
			about = entities[0]
		}
		propose(i, memory.ToolPropose, map[string]any{"text": sentence(int64(i+1_000_000), 8), "about": []string{about},
			"observation_ids": []string{fmt.Sprintf("o%d", i)}})
	}
	return k
}

// sentence is the i-th text of the benchmarks: words as often as words are, by
// Zipf's law, out of 20,000.
func sentence(i int64, words int) string {
	r := rand.New(rand.NewPCG(uint64(i), 7))
	z := rand.NewZipf(r, 1.1, 2.7, 19_999)
	out := make([]string, words)
	for k := range out {
		out[k] = fmt.Sprintf("w%x", z.Uint64())
	}
	return strings.Join(out, " ")
}

func percentile(took []time.Duration, p float64) float64 {
	slices.Sort(took)
	return float64(took[int(float64(len(took)-1)*p)].Microseconds()) / 1000
}

// BenchmarkPropose times one durable decision after another, with n
// observations there: the target is a p95 under 5 ms at 10^5, and no growth.
func BenchmarkPropose(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k := stocked(b, n)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				c, p := said(fmt.Sprintf("agent-%d", i%97), fmt.Sprintf("b%d", i), fmt.Sprintf("value %d", i))
				start := time.Now()
				if o, err := k.Propose(b.Context(), c, p); err != nil || o.Status != writ.Accepted {
					b.Fatalf("%v %+v", err, o)
				}
				took = append(took, time.Since(start))
			}
			b.ReportMetric(percentile(took, 0.95), "p95-ms")
		})
	}
}

// BenchmarkProposeTogether is many writers at once, one after the other.
func BenchmarkProposeTogether(b *testing.B) {
	k := stocked(b, 1_000)
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := n.Add(1)
			c, p := said(fmt.Sprintf("agent-%d", i%97), fmt.Sprintf("b%d", i), fmt.Sprintf("value %d", i))
			if o, err := k.Propose(b.Context(), c, p); err != nil || o.Status != writ.Accepted {
				b.Errorf("%v %+v", err, o)
				return
			}
		}
	})
}

// BenchmarkSearch times a recall, ranked, over n
// observations and a tenth as many claims: the target is a p95 under 15 ms at
// 10^5. The questions are the first five words of a text, words that stand in
// most texts and no other, and the name of an entity that a fifth of all claims
// are about. The first search takes the texts apart and is not counted.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		k := sync.OnceValue(func() *Keeper { return peopled(b, n) })
		for _, c := range []struct {
			name  string
			query func(i int) string
		}{
			{"a text", func(i int) string { return sentence(int64(i)%int64(n)+1, 5) }},
			{"common words", func(i int) string { return []string{"w0 w1 w2 w3", "w1 w4", "w0"}[i%3] }},
			{"an entity", func(i int) string { return fmt.Sprintf("person 1 w%x", i%500) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				k := k()
				ask := func(i int) (res memory.Answers) {
					err := k.Read(b.Context(), func(st *memory.State, now time.Time) {
						r := memory.Reader{State: st, Principal: "agent-1", Now: now}
						res = r.Recall(memory.Ask{Query: c.query(i), All: true})
					})
					if err != nil {
						b.Fatal(err)
					}
					return res
				}
				ask(0)
				var took []time.Duration
				for i := 0; b.Loop(); i++ {
					start := time.Now()
					res := ask(i)
					took = append(took, time.Since(start))
					if len(res.Items) == 0 {
						b.Fatalf("%q: %+v", c.query(i), res)
					}
				}
				b.ReportMetric(percentile(took, 0.50), "p50-ms")
				b.ReportMetric(percentile(took, 0.95), "p95-ms")
			})
		}
	}
}
