package upstream

import (
	"strconv"
	"testing"
)

// TestInbox: items come out in order, none beyond the bound goes in, and ready
// holds a token whenever something waits.
func TestInbox(t *testing.T) {
	b := newInbox()
	in, out := 0, 0
	for round := range 5 {
		for b.push(item{method: strconv.Itoa(in)}) {
			in++
		}
		if in-out != inboxSize {
			t.Fatalf("%d wait, want %d", in-out, inboxSize)
		}
		for range inboxSize - 50*round {
			<-b.ready
			it, ok := b.pop()
			if !ok || it.method != strconv.Itoa(out) {
				t.Fatalf("%+v, %v, want %d", it, ok, out)
			}
			out++
		}
	}
	for ; out < in; out++ {
		<-b.ready
		b.pop()
	}
	if _, ok := b.pop(); ok {
		t.Error("an item came twice")
	}
}
