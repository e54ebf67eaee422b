package memory

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/writ-project/writ/internal/words"
)

// The rows of a table are written as their type has them, field by field; a string
// that a field's tag calls a word is one of a list that all rows share. Only what
// stands in events is called so: a word outlives its erased rows.

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

// The heads of a string: an id by the kind of its prefix, a word, or the length
// of what follows.
var packedIDs = []string{"obs", "ent", "slot", "prop", "edge", "test", "epi", "dec"}

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
var errPack = errors.New("memory: a row cannot be read")

// decoder reads what encode wrote.
type decoder struct {
	*lexicon
	words.Reader
}

func (d *decoder) string(word bool) string {
	k := d.Uint()
	switch {
	case word && k < uint64(len(d.words)):
		return d.words[k]
	case word:
		d.Short = true
		return ""
	case k < uint64(len(packedIDs)) && !d.Short:
		n := d.Uint()
		return mintID(packedIDs[k], n, int(d.Uint()))
	}
	return string(d.Take(k - uint64(len(packedIDs))))
}

func (d *decoder) value(v reflect.Value, word bool) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(d.string(word))
	case reflect.Bool:
		v.SetBool(d.Uint() == 1)
	case reflect.Int, reflect.Int64:
		v.SetInt(d.Int())
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(d.Uint())
	case reflect.Pointer:
		if d.Uint() == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem(), word)
		}
	case reflect.Slice:
		n := d.Uint()
		if n == 0 {
			return
		}
		if n--; n > uint64(len(d.B)) {
			d.Short = true
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
