package sqlite

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// BenchmarkAppend measures appends of one decision with its arguments, synced
// and not. One op is one append; appends/s is the figure of the targets.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		how     string
		clients int
	}{{"synced", 1}, {"synced", 64}, {"unsynced", 1}, {"unsynced", 64}} {
		b.Run(fmt.Sprintf("%s/clients=%d", c.how, c.clients), func(b *testing.B) {
			s := openWith(b, b.TempDir(), 1000)
			defer s.Close()
			do := s.Append
			if c.how == "unsynced" {
				do = s.AppendUnsynced
			}
			var client atomic.Int64
			// RunParallel starts GOMAXPROCS goroutines for each unit of
			// parallelism, so this is close to the number wanted.
			per := 1
			if c.clients > 1 {
				per = c.clients / max(1, runtime.GOMAXPROCS(0))
			}
			work := func(next func() bool) {
				id := fmt.Sprintf("s_%d", client.Add(1))
				for n := uint64(1); next(); n++ {
					if _, err := do(context.Background(), id, n-1, []audit.Entry{storetest.Entry(b, id, n)}); err != nil {
						b.Error(err)
						return
					}
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			if c.clients == 1 {
				work(b.Loop)
			} else {
				b.SetParallelism(per)
				b.RunParallel(func(pb *testing.PB) { work(pb.Next) })
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

// BenchmarkSessionBySecret measures what a gateway over HTTP asks for every
// request.
func BenchmarkSessionBySecret(b *testing.B) {
	s := openWith(b, b.TempDir(), 1000)
	defer s.Close()
	ctx := context.Background()
	d := audit.Sum([]byte("secret"))
	if err := s.AddSession(ctx, audit.Session{ID: "s_a", SecretDigest: d, Principal: "p", Created: storetest.Epoch}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.SessionBySecret(ctx, d); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerify measures Verify over a file, values included. One op is one
// log of size records.
func BenchmarkVerify(b *testing.B) {
	const size = 50_000
	s := openWith(b, b.TempDir(), 1000)
	defer s.Close()
	for n := uint64(0); n < size/10; n += 500 {
		for c := range 10 {
			id := fmt.Sprintf("s_%d", c)
			storetest.Append(b, s, id, n, storetest.Entries(b, id, n+1, 500)...)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if r := storetest.Verify(b, s); r.Records != size {
			b.Fatalf("%d records", r.Records)
		}
	}
	b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
