package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"
	"unsafe"
)

// Encode writes what v points to as bytes, from which Decode makes it again in a
// process of this very program: all fields, exported or not, so that none is forgotten.
// What is shared by pointer, map, slice or text is shared afterwards too, but for parts
// of one another. A field with the tag `snapshot:"-"` and locks are left out; a
// function, a channel or an interface anywhere else is an error. Nobody may change v
// meanwhile.
func Encode(w io.Writer, v any) error {
	e := encoder{w: w, seen: map[shared]uint64{}}
	if err := e.value(reflect.ValueOf(v).Elem()); err != nil {
		return err
	}
	return e.write(nil)
}

// Decode makes in what v points to what Encode was given. It trusts the bytes: they were
// under a MAC. What was left out stays as it is in v.
func Decode(b []byte, v any) (err error) {
	defer func() {
		if recover() != nil {
			err = errGraph
		}
	}()
	d := decoder{b: b}
	d.value(reflect.ValueOf(v).Elem())
	if len(d.b) > 0 {
		return errGraph
	}
	return nil
}

var errGraph = errors.New("snapshot: what was stored cannot be read")

// What can be shared is written once, behind isNew, and then, behind isKnown, as a number.
const (
	isNil = iota
	isNew
	isKnown
)

type shared struct {
	at     unsafe.Pointer
	length int
	of     reflect.Type
}

type encoder struct {
	w    io.Writer
	b    []byte // what is not written yet
	seen map[shared]uint64
}

// mostHeld is how many bytes are put together before they are written.
const mostHeld = 64 << 10

// write writes what is put together, and then some bytes.
func (e *encoder) write(more []byte) error {
	_, err := e.w.Write(e.b)
	if e.b = e.b[:0]; err == nil && len(more) > 0 {
		_, err = e.w.Write(more)
	}
	return err
}

func (e *encoder) value(v reflect.Value) error {
	t := v.Type()
	switch {
	case isPlain(t):
		e.b = append(e.b, bytesOf(v)...)
		return nil
	case t == timeType:
		return e.time(v.Interface().(time.Time))
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if isKept(t, i) {
				if err := e.value(field(v, i)); err != nil {
					return err
				}
			}
		}
		return nil
	case reflect.Array:
		return e.elements(v)
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.String:
		return e.shared(v)
	}
	return fmt.Errorf("snapshot: a %s cannot be kept", t)
}

func (e *encoder) elements(v reflect.Value) error {
	for i := range v.Len() {
		if err := e.value(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) shared(v reflect.Value) error {
	t, at := v.Type(), v.UnsafePointer()
	if at == nil && t.Kind() != reflect.String {
		e.b = append(e.b, isNil)
		return nil
	}
	length := 0
	if t.Kind() != reflect.Pointer {
		length = v.Len()
	}
	if length > 0 || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		s := shared{at, length, t}
		if n, ok := e.seen[s]; ok {
			e.b = binary.AppendUvarint(append(e.b, isKnown), n)
			return nil
		}
		e.seen[s] = uint64(len(e.seen))
	}
	e.b = append(e.b, isNew)
	if t.Kind() == reflect.Pointer {
		return e.value(v.Elem())
	}
	e.b = binary.AppendUvarint(e.b, uint64(length))
	switch t.Kind() {
	case reflect.String:
		e.b = append(e.b, v.String()...)
	case reflect.Map:
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		plain := isPlain(t.Key()) && isPlain(t.Elem())
		k, x := bytesOf(key), bytesOf(value)
		for i := v.MapRange(); i.Next(); {
			key.SetIterKey(i)
			value.SetIterValue(i)
			if plain {
				e.b = append(append(e.b, k...), x...)
			} else if err := errors.Join(e.value(key), e.value(value)); err != nil {
				return err
			}
		}
	case reflect.Slice:
		if length > 0 && isPlain(t.Elem()) {
			b := unsafe.Slice((*byte)(at), uintptr(length)*t.Elem().Size())
			if len(e.b)+len(b) > mostHeld {
				return e.write(b)
			}
			e.b = append(e.b, b...)
			return nil
		}
		return e.elements(v)
	}
	return nil
}

// time writes a time of UTC, or of a fixed zone without a name.
func (e *encoder) time(t time.Time) error {
	_, offset := t.Zone()
	if l := t.Location(); l != time.UTC && l.String() != "" {
		return errors.New("snapshot: a time of a zone that changes cannot be kept")
	}
	e.b = binary.AppendVarint(e.b, t.Unix())
	e.b = binary.AppendVarint(e.b, int64(t.Nanosecond()))
	e.b = binary.AppendVarint(e.b, int64(offset))
	return nil
}

type decoder struct {
	b     []byte
	known []reflect.Value
}

// take returns the next n bytes; it panics where there are not so many.
func (d *decoder) take(n uint64) []byte {
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) uint() uint64 {
	n, used := binary.Uvarint(d.b)
	_ = d.take(uint64(used))[0]
	return n
}

func (d *decoder) int() int64 {
	n, used := binary.Varint(d.b)
	_ = d.take(uint64(used))[0]
	return n
}

func (d *decoder) value(v reflect.Value) {
	t := v.Type()
	switch {
	case isPlain(t):
		copy(bytesOf(v), d.take(uint64(t.Size())))
		return
	case t == timeType:
		at := time.Unix(d.int(), d.int()).UTC()
		if offset := d.int(); offset != 0 {
			at = at.In(time.FixedZone("", int(offset)))
		}
		v.Set(reflect.ValueOf(at))
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if isKept(t, i) {
				d.value(field(v, i))
			}
		}
	case reflect.Array:
		d.elements(v)
	default:
		d.shared(v)
	}
}

func (d *decoder) elements(v reflect.Value) {
	for i := range v.Len() {
		d.value(v.Index(i))
	}
}

func (d *decoder) shared(v reflect.Value) {
	t := v.Type()
	switch d.take(1)[0] {
	case isNil:
		v.SetZero()
		return
	case isKnown:
		v.Set(d.known[d.uint()])
		return
	}
	if t.Kind() == reflect.Pointer {
		if v.IsNil() { // else what was left out stays as it is there
			v.Set(reflect.New(t.Elem()))
		}
		d.known = append(d.known, reflect.ValueOf(v.Interface()))
		d.value(v.Elem())
		return
	}
	n := d.uint()
	switch t.Kind() {
	case reflect.String:
		v.SetString(string(d.take(n)))
	case reflect.Map:
		v.Set(reflect.MakeMapWithSize(t, int(min(n, uint64(len(d.b))))))
		d.known = append(d.known, reflect.ValueOf(v.Interface()))
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		for range n {
			key.SetZero()
			value.SetZero()
			d.value(key)
			d.value(value)
			v.SetMapIndex(key, value)
		}
		return
	case reflect.Slice:
		if isPlain(t.Elem()) {
			b := d.take(n * uint64(t.Elem().Size()))
			v.Set(reflect.MakeSlice(t, int(n), int(n)))
			if n > 0 {
				copy(unsafe.Slice((*byte)(v.UnsafePointer()), len(b)), b)
			}
			break
		}
		_ = d.b[:n] // each takes a byte or more
		v.Set(reflect.MakeSlice(t, int(n), int(n)))
		if n > 0 {
			d.known = append(d.known, reflect.ValueOf(v.Interface()))
			d.elements(v)
		}
		return
	}
	if n > 0 {
		d.known = append(d.known, reflect.ValueOf(v.Interface()))
	}
}

var timeType = reflect.TypeFor[time.Time]()

// field is a field of an addressable struct, exported or not.
func field(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// isKept reports whether a field is written: no lock, and none that is left out.
func isKept(t reflect.Type, i int) bool {
	f := t.Field(i)
	return f.Tag.Get("snapshot") != "-" && f.Type.PkgPath() != "sync"
}

var plainTypes sync.Map

// isPlain reports whether a value is its bytes: nothing in it leads elsewhere.
func isPlain(t reflect.Type) bool {
	if p, ok := plainTypes.Load(t); ok {
		return p.(bool)
	}
	p := false
	switch k := t.Kind(); {
	case k == reflect.Struct:
		p = true
		for i := range t.NumField() {
			p = p && isKept(t, i) && isPlain(t.Field(i).Type)
		}
	case k == reflect.Array:
		p = isPlain(t.Elem())
	default:
		p = k >= reflect.Bool && k <= reflect.Complex128 && k != reflect.Uintptr
	}
	plainTypes.Store(t, p)
	return p
}

// bytesOf are the bytes of an addressable plain value.
func bytesOf(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(v.Addr().UnsafePointer()), v.Type().Size())
}
