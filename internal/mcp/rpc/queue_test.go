package rpc

import (
	"strconv"
	"testing"
)

// TestQueue: items come out in order, none beyond the bound goes in, and Ready
// holds a token whenever something waits.
func TestQueue(t *testing.T) {
	const limit = 256
	b := NewQueue[string](limit)
	in, out := 0, 0
	for round := range 5 {
		for b.Push(strconv.Itoa(in), nil) {
			in++
		}
		if in-out != limit {
			t.Fatalf("%d wait, want %d", in-out, limit)
		}
		for range limit - 50*round {
			<-b.Ready
			it, ok := b.Pop()
			if !ok || it != strconv.Itoa(out) {
				t.Fatalf("%q, %v, want %d", it, ok, out)
			}
			out++
		}
	}
	for ; out < in; out++ {
		<-b.Ready
		b.Pop()
	}
	if _, ok := b.Pop(); ok {
		t.Error("an item came twice")
	}
}
