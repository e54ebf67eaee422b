package strictyaml

import (
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// A Place is where a value stands. A struct that embeds it learns its own node
// when it is decoded, and is a Given value; it is the zero Place when its key
// is absent.
type Place struct{ Node *Node }

func (p *Place) set(n *Node) { p.Node = n }

// Given reports whether the file has the value.
func (p Place) Given() bool { return p.Node != nil }

// At returns the node of a key's value in this mapping, or the mapping itself
// where the key is absent: the place to note a fault of that key at. The place
// must be Given.
func (p Place) At(key string) *Node {
	if n := p.Node.Get(key); n != nil {
		return n
	}
	return p.Node
}

// Values that know where they stand. A field of a plain Go type serves where
// the place does not matter and absent means zero.
type (
	// String is text.
	String struct {
		Place
		S string
	}
	// Truth is true or false, in these spellings alone.
	Truth struct {
		Place
		Is bool
	}
	// Whole is a whole number between 0 and 1,000,000. Valid tells 0 from what
	// is absent or wrong.
	Whole struct {
		Place
		N     int
		Valid bool
	}
	// Words is one text or a list of them.
	Words struct {
		Place
		Items []String
	}
	// Constants is a list of values of any kind, as JSON.
	Constants struct {
		Place
		Items [][]byte
	}
	// Anything is a value the caller reads himself.
	Anything struct{ Place }
	// Entry is one key of a Map and its value.
	Entry[T any] struct {
		Key   *Node
		Value T
	}
	// Map is a mapping whose keys the file chooses, in the order of the file.
	Map[T any] struct {
		Place
		Entries []Entry[T]
	}
	// Seq is a list of values of one type.
	Seq[T any] struct {
		Place
		Items []T
	}
)

// Readable is a type that reads its own node, and notes what is wrong with it.
// It is not asked to read what was refused already.
type Readable interface {
	ReadYAML(r *Reader, n *Node)
}

// ReadYAML implements Readable.
func (t *String) ReadYAML(r *Reader, n *Node) { t.S = r.text(n) }

// ReadYAML implements Readable.
func (f *Truth) ReadYAML(r *Reader, n *Node) { f.Is = r.truth(n) }

// ReadYAML implements Readable.
func (w *Whole) ReadYAML(r *Reader, n *Node) {
	v, err := strconv.Atoi(n.Value)
	if !n.Plain || err != nil || strconv.Itoa(v) != n.Value || v < 0 || v > 1_000_000 {
		r.Fault(n, "a whole number is expected here", "")
		return
	}
	w.N, w.Valid = v, true
}

// ReadYAML implements Readable.
func (w *Words) ReadYAML(r *Reader, n *Node) {
	in := []*Node{n}
	if n.Kind == List {
		in = n.Items
	}
	w.Items = make([]String, len(in))
	for i, c := range in {
		r.Decode(c, &w.Items[i])
	}
}

// ReadYAML implements Readable.
func (c *Constants) ReadYAML(r *Reader, n *Node) {
	if n.Kind != List {
		r.Fault(n, "a list of constants is expected here", "write [a, b]")
		return
	}
	for _, e := range n.Items {
		if b, ok := r.JSON(e); ok {
			c.Items = append(c.Items, b)
		}
	}
}

// ReadYAML implements Readable.
func (*Anything) ReadYAML(*Reader, *Node) {}

// ReadYAML implements Readable.
func (m *Map[T]) ReadYAML(r *Reader, n *Node) {
	if !r.mapping(n) {
		return
	}
	m.Entries = make([]Entry[T], len(n.Items)/2)
	for i := range m.Entries {
		m.Entries[i].Key = n.Items[2*i]
		r.Decode(n.Items[2*i+1], &m.Entries[i].Value)
	}
}

// ReadYAML implements Readable.
func (l *Seq[T]) ReadYAML(r *Reader, n *Node) {
	if !r.list(n) {
		return
	}
	l.Items = make([]T, len(n.Items))
	for i, c := range n.Items {
		r.Decode(c, &l.Items[i])
	}
}

func (r *Reader) text(n *Node) string {
	if n.Kind != Text {
		r.Fault(n, "text is expected here", "put quotes around it if it is meant as text")
		return ""
	}
	return n.Value
}

func (r *Reader) truth(n *Node) bool {
	if !n.Plain || n.Value != "true" && n.Value != "false" {
		r.Fault(n, "true or false is expected here", "")
		return false
	}
	return n.Value == "true"
}

func (r *Reader) mapping(n *Node) bool {
	r.FaultIf(n.Kind != Mapping, n, "a mapping is expected here", "")
	return n.Kind == Mapping
}

func (r *Reader) list(n *Node) bool {
	r.FaultIf(n.Kind != List, n, "a list is expected here", "write [a, b], or - a on lines of their own")
	return n.Kind == List
}

// Decode reads a node into what the pointer points to: a Readable; a struct, by
// the yaml tags of its fields; or a string, bool, time.Duration, slice or
// map[string]string. A key no field is tagged with is a fault, with the nearest
// one as a hint; case counts. Any other type is a mistake of the program and
// panics.
func (r *Reader) Decode(n *Node, into any) {
	if p, ok := into.(interface{ set(*Node) }); ok {
		p.set(n)
	}
	if n.Kind == Refused {
		return
	}
	switch v := into.(type) {
	case Readable:
		v.ReadYAML(r, n)
	case *string:
		*v = r.text(n)
	case *bool:
		*v = r.truth(n)
	case *time.Duration:
		d, err := time.ParseDuration(n.Value)
		if n.Kind != Text || err != nil {
			r.Fault(n, "a length of time is expected here", "write 500ms, 60s or 5m")
			return
		}
		*v = d
	case *map[string]string:
		if !r.mapping(n) {
			return
		}
		*v = make(map[string]string, len(n.Items)/2)
		for i := 0; i+1 < len(n.Items); i += 2 {
			s := ""
			r.Decode(n.Items[i+1], &s)
			(*v)[n.Items[i].Value] = s
		}
	default:
		switch e := reflect.ValueOf(into).Elem(); e.Kind() {
		case reflect.Slice:
			if !r.list(n) {
				return
			}
			e.Set(reflect.MakeSlice(e.Type(), len(n.Items), len(n.Items)))
			for i, c := range n.Items {
				r.Decode(c, e.Index(i).Addr().Interface())
			}
		case reflect.Struct:
			r.fields(n, into, e)
		default:
			panic(fmt.Sprintf("strictyaml: no rule to read a %s", e.Type()))
		}
	}
}

// Read parses a file and decodes it, and reports whether it has no fault. empty is as in
// Parse.
func (r *Reader) Read(b []byte, empty string, into any) bool {
	if root := r.Parse(b, empty); root != nil {
		r.Decode(root, into)
	}
	return r.Count() == 0
}

// fields reads a mapping into a struct.
func (r *Reader) fields(n *Node, into any, v reflect.Value) {
	if !r.mapping(n) {
		return
	}
	fields := map[string]int{}
	var known []string
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("yaml"); tag != "" {
			fields[tag] = i
			known = append(known, tag)
		}
	}
	for i := 0; i+1 < len(n.Items); i += 2 {
		k := n.Items[i]
		if f, ok := fields[k.Value]; ok {
			r.Decode(n.Items[i+1], v.Field(f).Addr().Interface())
		} else {
			r.Fault(k, "unknown key "+Word(k.Value), Nearest(k.Value, known))
		}
	}
}

// Same reports whether two values that were decoded say the same, wherever it stands in
// its file. They hold no cycle.
func Same(a, b any) bool { return sameValue(reflect.ValueOf(a), reflect.ValueOf(b)) }

func sameValue(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return !a.IsValid() && !b.IsValid()
	}
	all := func(n int, of func(i int) (x, y reflect.Value)) bool {
		for i := range n {
			if !sameValue(of(i)) {
				return false
			}
		}
		return true
	}
	switch a.Kind() {
	case reflect.Struct:
		switch a.Type() {
		case reflect.TypeFor[Place]():
			return true
		case reflect.TypeFor[Node](): // a key
			return a.FieldByName("Value").Equal(b.FieldByName("Value"))
		}
		return all(a.NumField(), func(i int) (x, y reflect.Value) { return a.Field(i), b.Field(i) })
	case reflect.Pointer:
		return a.Equal(b) || sameValue(a.Elem(), b.Elem())
	case reflect.Interface:
		return sameValue(a.Elem(), b.Elem())
	case reflect.Slice, reflect.Array:
		return a.Len() == b.Len() && all(a.Len(), func(i int) (x, y reflect.Value) { return a.Index(i), b.Index(i) })
	case reflect.Map:
		keys := a.MapKeys()
		return a.Len() == b.Len() && all(len(keys), func(i int) (x, y reflect.Value) { return a.MapIndex(keys[i]), b.MapIndex(keys[i]) })
	}
	return a.Comparable() && a.Equal(b)
}
