package words

import (
	"encoding/binary"
	"sort"
)

// A Pack holds entries as bytes, in the bytewise order of their keys: what is not
// looked at costs what it says and no more, and a pack that was stored is read as
// it stands.
type Pack struct {
	data []byte   // the length of a key, the key and what it has, one entry behind the other
	at   []uint32 // where each begins
}

// Len is how many entries there are.
func (p *Pack) Len() int { return len(p.at) }

// start is where an entry begins, or all of them end.
func (p *Pack) start(i int) int {
	if i == len(p.at) {
		return len(p.data)
	}
	return int(p.at[i])
}

// Entry is the key at a place and what it has.
func (p *Pack) Entry(i int) (key, has []byte) {
	b := p.data[p.start(i):p.start(i+1)]
	n, w := binary.Uvarint(b)
	return b[w : w+int(n)], b[w+int(n):]
}

// Find is the place of a key, or that of the next one.
func (p *Pack) Find(key string) (int, bool) {
	return sort.Find(len(p.at), func(i int) int {
		k, _ := p.Entry(i)
		switch { // compared without a copy
		case key < string(k):
			return -1
		case key == string(k):
			return 0
		}
		return 1
	})
}

// With is the pack in which some keys, in their order, have what put appends; where it
// says that one has nothing, that is left out. All else is as it was.
func (p *Pack) With(keys []string, put func(b []byte, key string) (_ []byte, has bool)) Pack {
	next := Pack{make([]byte, 0, len(p.data)+len(p.data)/16), make([]uint32, 0, len(p.at)+len(keys))}
	done := 0 // of the entries there were
	upTo := func(i int) {
		by := len(next.data) - p.start(done)
		for _, at := range p.at[done:i] {
			next.at = append(next.at, uint32(int(at)+by))
		}
		next.data = append(next.data, p.data[p.start(done):p.start(i)]...)
		done = i
	}
	for _, key := range keys {
		i, there := p.Find(key)
		if upTo(i); there {
			done++
		}
		begin := len(next.data)
		b, has := put(append(binary.AppendUvarint(next.data, uint64(len(key))), key...), key)
		if next.data = b; has {
			next.at = append(next.at, uint32(begin))
		} else {
			clear(b[begin:]) // not even behind the end
			next.data = b[:begin]
		}
	}
	upTo(len(p.at))
	return next
}

// A Reader takes bytes apart. What would go beyond them is nothing, and Short.
type Reader struct {
	B     []byte
	Short bool
}

// Uint reads what binary.AppendUvarint wrote.
func (r *Reader) Uint() uint64 {
	v, n := binary.Uvarint(r.B)
	if n <= 0 {
		n, v, r.B, r.Short = 0, 0, nil, true
	}
	r.B = r.B[n:]
	return v
}

// Int reads what binary.AppendVarint wrote.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.B)
	if n <= 0 {
		n, v, r.B, r.Short = 0, 0, nil, true
	}
	r.B = r.B[n:]
	return v
}

// Take reads so many bytes. They are a part of B.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.B)) {
		n, r.B, r.Short = 0, nil, true
	}
	out := r.B[:n]
	r.B = r.B[n:]
	return out
}
