package snapshot

import (
	"bytes"
	"index/suffixarray"
	"io"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"
)

type leaf struct {
	number int32
	small  uint8
	is     bool
	of     [3]uint16
}

type tree struct {
	mu     sync.RWMutex
	out    func()  `snapshot:"-"`
	secret [4]byte `snapshot:"-"`
	leaf
	text   string
	texts  []string
	leaves []leaf
	blocks []*[2]leaf
	up     *tree
	under  map[string]*tree
	by     map[[2]string][]*tree
	set    map[leaf]struct{}
	at     time.Time
	empty  []string
	none   map[string]bool
	index  *suffixarray.Index
	any    [2][]int
}

// grown makes a tree that leads to itself in many ways.
func grown(r *rand.Rand) *tree {
	all := []*tree{}
	for i := range 1 + r.IntN(20) {
		n := &tree{leaf: leaf{int32(i), uint8(r.IntN(256)), r.IntN(2) == 0, [3]uint16{uint16(r.IntN(9))}}, text: string(rune('a' + r.IntN(26))),
			at: time.Unix(r.Int64N(1<<40), r.Int64N(1e9)).UTC(), under: map[string]*tree{}, by: map[[2]string][]*tree{}, empty: []string{}, none: map[string]bool{}}
		if r.IntN(2) == 0 {
			n.at = n.at.In(time.FixedZone("", 3600))
			n.index = suffixarray.New([]byte("banana"))
			n.set = map[leaf]struct{}{n.leaf: {}}
		}
		all = append(all, n)
		n.up = all[r.IntN(len(all))]
		n.leaves = append(n.leaves, n.leaf, n.up.leaf)
		n.blocks = append(n.up.blocks, &[2]leaf{n.leaf})
		n.texts = n.up.texts
		if len(n.texts) == 0 {
			n.texts = []string{"one", "two", ""}
		}
		for range r.IntN(4) {
			at := all[r.IntN(len(all))]
			n.under[at.text] = at
			n.by[[2]string{at.text, n.text}] = append(n.by[[2]string{at.text, n.text}], at)
		}
		n.any[1] = []int{i}
	}
	return all[len(all)-1]
}

// TestGraph: what is decoded is what was encoded, with what leads where, and what is left
// out stays.
func TestGraph(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		was := grown(r)
		was.up.mu.Lock()
		var out bytes.Buffer
		if err := Encode(&out, was); err != nil {
			t.Fatal(err)
		}
		b := out.Bytes()
		was.up.mu.Unlock()
		is := &tree{secret: [4]byte{1}, out: func() {}, text: "before", under: map[string]*tree{"before": nil}, none: map[string]bool{"before": true}}
		if err := Decode(b, is); err != nil {
			t.Fatal(err)
		}
		if is.secret != [4]byte{1} || is.out == nil {
			t.Error("what was left out was overwritten")
		}
		is.secret, is.out = was.secret, was.out
		if !reflect.DeepEqual(was, is) {
			t.Fatalf("%+v\n%+v", was, is)
		}
		if was.up.up == was.up && is.up.up != is.up {
			t.Error("what led to itself does not")
		}
		if len(is.blocks) > 1 && len(is.up.blocks) > 0 && (was.blocks[0] == was.up.blocks[0]) != (is.blocks[0] == is.up.blocks[0]) {
			t.Error("what was shared is not")
		}
		if !is.up.mu.TryLock() {
			t.Error("a lock came with it")
		}
		is.up.mu.Unlock()
		for range 20 {
			cut := &tree{}
			if Decode(b[:r.IntN(len(b))], cut) == nil {
				t.Error("what was cut off is read")
			}
			if Decode(append(bytes.Clone(b), 0), cut) == nil {
				t.Error("what goes on is read")
			}
		}
	}
}

// TestNoGraph: what cannot be kept is an error, wherever it stands.
func TestNoGraph(t *testing.T) {
	for _, v := range []any{
		&struct{ f func() }{func() {}}, &struct{ c chan int }{}, &struct{ e error }{}, &struct{ m map[string]any }{map[string]any{"": 1}},
		&struct{ t time.Time }{time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("named", 60))}, &struct{ p uintptr }{},
	} {
		if Encode(io.Discard, v) == nil {
			t.Errorf("%T is kept", v)
		}
	}
}
