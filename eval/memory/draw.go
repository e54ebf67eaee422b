package memory

import "strconv"

// draw is a small generator of its own, so that no other release of Go draws
// other cases: splitmix64, begun from the FNV-1a hash of a name.
type draw struct{ at uint64 }

// newDraw begins a generator from "seed|id".
func newDraw(seed uint64, id string) *draw {
	h := uint64(0xcbf29ce484222325)
	for _, b := range []byte(strconv.FormatUint(seed, 10) + "|" + id) {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return &draw{h}
}

func (d *draw) next() uint64 {
	d.at += 0x9e3779b97f4a7c15
	z := d.at
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// n is a number from 0 to n-1. The bias of a remainder of 64 bits is far below
// anything that is counted here.
func (d *draw) n(n int) int { return int(d.next() % uint64(n)) }

// in is true in so many of 100 draws.
func (d *draw) in(percent int) bool { return d.n(100) < percent }

func pick[T any](d *draw, from []T) T { return from[d.n(len(from))] }

// some are k different ones, in the order they were drawn.
func some[T any](d *draw, k int, from []T) []T {
	left := append([]T(nil), from...)
	var out []T
	for range min(k, len(left)) {
		i := d.n(len(left))
		out = append(out, left[i])
		left = append(left[:i], left[i+1:]...)
	}
	return out
}
