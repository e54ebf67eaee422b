// Package measure is what the evaluations have alike: how work is shared out, how shares are
// counted, and JSON as plain values.
package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// Each calls f with 0 to n-1, several at a time, until ctx is done or one fails, and returns
// the first error or that of ctx. progress, unless nil, is told how many are done, by one
// goroutine at a time.
func Each(ctx context.Context, n int, progress func(done, of int), f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := f(ctx, i); err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				if done++; progress != nil {
					progress(done, n)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// Quotient is a/b to six places, 0 where there is nothing to divide by.
func Quotient(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return Round(float64(a)/float64(b), 6)
}

// Round is x to so many places.
func Round(x float64, places int) float64 {
	scale := math.Pow10(places)
	return math.Round(float64(x*scale)) / scale
}

// Wilson is the interval of a share, of which there is a whole: the 95 % one where z is about
// 1.96. Each product is rounded before it is added: no machine fuses them.
func Wilson(k, n int, z float64) (low, high float64) {
	z2 := float64(z * z)
	size := float64(n)
	p := float64(k) / size
	mid := p + float64(z2/float64(2*size))
	spread := math.Sqrt(float64(z2 * float64(float64(float64(p*float64(1-p))/size)+float64(z2/float64(4*float64(size*size))))))
	all := 1 + float64(z2/size)
	return max(0, float64(mid-spread)/all), min(1, float64(mid+spread)/all)
}

// JSON is a report as its file has it.
func JSON(report any, indent string) ([]byte, error) {
	b, err := json.MarshalIndent(report, "", indent)
	return append(b, '\n'), err
}

// Decode reads JSON with its numbers as they are written, nil where it is none.
func Decode(raw []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// Walk calls f with each scalar leaf and its path, keys in order. What f returns
// takes the leaf's place.
func Walk(v any, path []string, f func(path []string, leaf any) any) any {
	path = slices.Clip(path)
	switch x := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			x[k] = Walk(x[k], append(path, k), f)
		}
		return x
	case []any:
		for i := range x {
			x[i] = Walk(x[i], append(path, strconv.Itoa(i)), f)
		}
		return x
	}
	return f(path, v)
}

// Leaves calls f with each scalar leaf of JSON.
func Leaves(raw []byte, f func(path []string, leaf any)) {
	Walk(Decode(raw), nil, func(path []string, leaf any) any { f(path, leaf); return leaf })
}
