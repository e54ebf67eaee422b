package memory

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"sort"
	"sync"
)

// A pack holds the rows of a table as bytes, in the order of their keys: what is
// not looked at costs what it says and no more, and a pack that was stored is read
// as it stands. What a row holds is written as its type has it, field by field; a
// string that a field's tag calls a word is one of a list that all rows share.
// Only what stands in events is called so: a word outlives its erased rows.
type pack struct {
	data []byte   // key and row, one behind the other
	at   []uint32 // where each begins, in bytewise order of the keys
}

// lexicon numbers words.
type lexicon struct {
	words []string
	at    map[string]uint64
}

func (l *lexicon) number(w string) uint64 {
	n, ok := l.at[w]
	if !ok {
		if l.at == nil {
			l.at = map[string]uint64{}
		}
		n = uint64(len(l.words))
		l.words, l.at[w] = append(l.words, w), n
	}
	return n
}

// start is where an entry begins, or all of them end.
func (p *pack) start(i int) int {
	if i == len(p.at) {
		return len(p.data)
	}
	return int(p.at[i])
}

// entry is the key and row at a place.
func (p *pack) entry(i int) (key, row []byte) {
	b := p.data[p.start(i):p.start(i+1)]
	n, w := binary.Uvarint(b)
	return b[w : w+int(n)], b[w+int(n):]
}

// find is the place of a key, or that of the next one.
func (p *pack) find(key string) (int, bool) {
	return sort.Find(len(p.at), func(i int) int {
		k, _ := p.entry(i)
		switch { // compared without a copy
		case key < string(k):
			return -1
		case key == string(k):
			return 0
		}
		return 1
	})
}

// take takes the entries of another pack from one place up to another, behind all
// that are there.
func (p *pack) take(from *pack, i, j int) {
	by := len(p.data) - from.start(i)
	for _, at := range from.at[i:j] {
		p.at = append(p.at, uint32(int(at)+by))
	}
	p.data = append(p.data, from.data[from.start(i):from.start(j)]...)
}

// The heads of a string: an id by the kind of its prefix, a word, or the length
// of what follows.
var packedIDs = []string{"obs", "ent", "slot", "prop", "edge", "test", "epi", "dec"}

// encode appends a value.
func (l *lexicon) encode(b []byte, v reflect.Value, word bool) []byte {
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if word {
			return binary.AppendUvarint(b, l.number(s))
		}
		if prefix, n, i, ok := splitID(s); ok {
			if k := slices.Index(packedIDs, prefix); k >= 0 {
				return binary.AppendUvarint(binary.AppendUvarint(append(b, byte(k)), n), uint64(i))
			}
		}
		return append(binary.AppendUvarint(b, uint64(len(s)+len(packedIDs))), s...)
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return l.encode(append(b, 1), v.Elem(), word)
	case reflect.Slice:
		if v.IsNil() {
			return append(b, 0)
		}
		b = binary.AppendUvarint(b, uint64(v.Len()+1))
		for i := range v.Len() {
			b = l.encode(b, v.Index(i), word)
		}
		return b
	case reflect.Struct:
		words := wordsOf(v.Type())
		for i := range v.NumField() {
			b = l.encode(b, v.Field(i), words[i])
		}
		return b
	}
	panic("memory: a row holds what no row can: " + v.Type().String())
}

// wordsOf says which fields of a struct are words: by their tag, or because their
// type has a few values.
func wordsOf(t reflect.Type) []bool {
	if w, ok := tagged.Load(t); ok {
		return w.([]bool)
	}
	out := make([]bool, t.NumField())
	for i := range out {
		f := t.Field(i)
		out[i] = f.Type.Kind() == reflect.String && f.Type.PkgPath() != "" || f.Tag.Get("pack") == "word"
	}
	tagged.Store(t, out)
	return out
}

var tagged sync.Map

// errPack says that bytes are none that encode wrote.
var errPack = errors.New("memory: what was stored cannot be read")

// decoder reads what encode wrote.
type decoder struct {
	*lexicon
	b   []byte
	bad bool
}

func (d *decoder) uvarint() uint64 {
	n, w := binary.Uvarint(d.b)
	if w <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[w:]
	return n
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) string(word bool) string {
	k := d.uvarint()
	switch {
	case word && k < uint64(len(d.words)):
		return d.words[k]
	case word:
		d.bad = true
		return ""
	case k < uint64(len(packedIDs)) && !d.bad:
		n := d.uvarint()
		return mintID(packedIDs[k], n, int(d.uvarint()))
	}
	return string(d.take(k - uint64(len(packedIDs))))
}

func (d *decoder) value(v reflect.Value, word bool) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(d.string(word))
	case reflect.Bool:
		v.SetBool(d.uvarint() == 1)
	case reflect.Int, reflect.Int64:
		n, w := binary.Varint(d.b)
		if w <= 0 {
			d.bad, d.b = true, nil
			return
		}
		d.b = d.b[w:]
		v.SetInt(n)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(d.uvarint())
	case reflect.Pointer:
		if d.uvarint() == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem(), word)
		}
	case reflect.Slice:
		n := d.uvarint()
		if n == 0 {
			return
		}
		if n--; n > uint64(len(d.b)) {
			d.bad = true
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), int(n), int(n)))
		for i := range int(n) {
			d.value(v.Index(i), word)
		}
	case reflect.Struct:
		words := wordsOf(v.Type())
		for i := range v.NumField() {
			d.value(v.Field(i), words[i])
		}
	}
}
