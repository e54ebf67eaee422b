package words

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"
)

// maxOpen is how many texts are put before they are folded in.
const maxOpen = 4096

// post is that a text holds a stem, and how often.
type post struct {
	place, freq uint32
}

// list is the texts that hold a stem, by place. Of each data has, as varints,
// twice how far it is from the one before, and one more where the stem is in it
// more than once: then follows how often.
type list struct {
	data        []byte
	texts, last uint32
	freq        uint32 // in the text that is being put
}

// key is the stem of a word, behind its language.
func key(in language, word string) []byte { return append([]byte{byte(in)}, in.stem(word)...) }

// add puts a text behind the others.
func (l *list) add(p post) {
	v := uint64(p.place-l.last) << 1
	if p.freq > 1 {
		l.data = binary.AppendUvarint(binary.AppendUvarint(l.data, v|1), uint64(p.freq))
	} else {
		l.data = binary.AppendUvarint(l.data, v)
	}
	l.last, l.texts = p.place, l.texts+1
}

// take puts the texts of another list behind the others, but for those that are
// gone: all behind one are a place nearer.
func (l *list) take(o list, gone []uint32, buf []post) {
	nearer := uint32(0)
	for posts := range o.posts(buf) {
		for _, p := range posts {
			for len(gone) > 0 && gone[0] < p.place {
				gone, nearer = gone[1:], nearer+1
			}
			if len(gone) == 0 || gone[0] != p.place {
				l.add(post{p.place - nearer, p.freq})
			}
		}
	}
}

// posts yields what is in a list, some at a time, in buf.
func (l list) posts(buf []post) iter.Seq[[]post] {
	return func(yield func([]post) bool) {
		for place := uint32(0); len(l.data) > 0; place = buf[len(buf)-1].place {
			buf, l.data = decode(buf, l.data, place)
			if !yield(buf) {
				return
			}
		}
	}
}

// decode reads as many as fit into buf of what follows a place.
func decode(buf []post, data []byte, place uint32) ([]post, []byte) {
	at := 0
	for i := range buf {
		if at == len(data) {
			return buf[:i], nil
		}
		v, freq := uint64(data[at]), uint64(1)
		if at++; v >= 0x80 {
			n := 0
			v, n = binary.Uvarint(data[at-1:])
			at += n - 1
		}
		if v&1 == 1 {
			n := 0
			freq, n = binary.Uvarint(data[at:])
			at += n
		}
		place += uint32(v >> 1)
		buf[i] = post{place, uint32(freq)}
	}
	return buf, data[at:]
}

// lists are those of a stem.
func (x *Index) lists(stem []byte) (out []list) {
	if i, ok := x.packed.Find(string(stem)); ok {
		_, has := x.packed.Entry(i) // how many texts, the last of them, and data
		r := Reader{B: has}
		l := list{texts: uint32(r.Uint()), last: uint32(r.Uint())}
		l.data = r.B
		out = append(out, l)
	}
	if l := x.open[string(stem)]; l != nil {
		out = append(out, *l)
	}
	return out
}

// stems are the stems that begin so, in their order.
func (x *Index) stems(start string) (out []string) {
	for i, _ := x.packed.Find(start); i < x.packed.Len(); i++ {
		has, _ := x.packed.Entry(i)
		if !strings.HasPrefix(string(has), start) {
			break
		}
		out = append(out, string(has))
	}
	for stem := range x.open {
		if strings.HasPrefix(stem, start) {
			out = append(out, stem)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fold makes one of all lists. Of the texts that are gone nothing is left.
func (x *Index) fold() {
	ids := make([]uint32, 0, len(x.docs))
	for _, p := range x.fresh {
		i, _ := x.search(x.byID, x.id(p))
		ids, x.byID = append(append(ids, x.byID[:i]...), p), x.byID[i:]
	}
	x.byID, x.fresh = append(ids, x.byID...), x.fresh[:0]
	gone := x.close()
	stems := slices.Collect(maps.Keys(x.open)) // those whose lists are others now
	for i := 0; len(gone) > 0 && i < x.packed.Len(); i++ {
		stem, _ := x.packed.Entry(i)
		stems = append(stems, string(stem))
	}
	slices.Sort(stems)
	var both list
	buf := make([]post, 32)
	x.packed = x.packed.With(slices.Compact(stems), func(b []byte, stem string) ([]byte, bool) {
		both = list{data: both.data[:0]}
		for _, l := range x.lists([]byte(stem)) {
			both.take(l, gone, buf)
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(both.texts)), uint64(both.last))
		return append(b, both.data...), both.texts > 0
	})
	clear(x.open)
	clear(x.forms)
}

// close takes the docs that are gone out of all but the lists, and returns where
// they were.
func (x *Index) close() (gone []uint32) {
	if x.gone == 0 {
		return nil
	}
	docs, ids, moved := make([]doc, 0, len(x.docs)), make([]byte, 0, len(x.ids)), make([]uint32, len(x.docs))
	for p, d := range x.docs {
		moved[p] = uint32(len(docs))
		if d.gone {
			gone = append(gone, uint32(p))
			continue
		}
		ids = append(ids, x.id(uint32(p))...)
		d.end = uint32(len(ids))
		docs = append(docs, d)
	}
	byID := x.byID[:0]
	for _, p := range x.byID {
		if !x.docs[p].gone {
			byID = append(byID, moved[p])
		}
	}
	x.docs, x.ids, x.byID, x.gone = docs, ids, byID, 0
	return gone
}

// Clone is a copy of the index as it is now, which shares nothing that is changed. The
// same texts, put in the same order into an empty index, have the same clone,
// whatever was dropped in between, if their kinds came in the same order.
func (x *Index) Clone() Index {
	if x.gone > 0 || len(x.docs) > len(x.byID) {
		x.fold()
	}
	c := *x
	c.kinds, c.docs, c.ids, c.byID = slices.Clone(x.kinds), slices.Clone(x.docs), slices.Clone(x.ids), slices.Clone(x.byID)
	c.fresh, c.open, c.forms, c.sums = nil, nil, nil, nil
	return c
}
