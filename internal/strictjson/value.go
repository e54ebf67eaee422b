package strictjson

import (
	"iter"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is one JSON value within a text that was read once. It knows where
// everything in it begins and ends, so that nobody looks for it again, and Raw
// are the very bytes that were read. It never changes, and neither may the bytes.
//
// The zero Value is what is not there: it has no kind, no bytes, no members. A
// Value that Parse refused has its bytes and nothing else.
type Value struct {
	doc *table
	at  uint32 // its node
}

// table is what the values of one text share.
type table struct {
	text   []byte
	shared string // text again, for what is read as strings; "" if that is too long
	plain  string // of a text that is one string, what it says, if that is known
	nodes  []node
	strict bool   // Parse accepted it,
	limits Limits // within these
}

// node is one value or member name. The nodes of a text stand in its order:
// behind an object each name and its value, behind an array its elements.
type node struct {
	start, end uint32 // of the literal
	next       uint32 // the node behind this one and all that is in it
}

const (
	escaped   = 1 << 31 // of node.next: the string holds an escape
	none      = 1<<31 - 1
	maxShared = 64 << 10 // the longest text that is kept twice
	maxText   = math.MaxUint32
)

// long, short and tiny are tables with room for the nodes of a text that has few, or very few.
type (
	long struct {
		table
		few [24]node
	}
	short struct {
		table
		few [14]node
	}
	tiny struct {
		table
		few [6]node
	}
)

// Parse reads the one JSON value that b is. An error, always an *Error, is the
// first reason why b is not acceptable within l; then the Value holds the bytes
// and has no kind. b must not be changed any more.
func Parse(b []byte, l Limits) (Value, error) {
	n, err := check(b, l)
	if err != nil {
		return Value{doc: &table{text: b}}, err
	}
	v := read(b, n)
	v.doc.strict, v.doc.limits = true, l
	if len(b) <= maxShared {
		v.doc.shared = string(b)
	}
	return v, nil
}

// Of returns raw as a Value that nobody has checked; nil is the zero Value. It
// is for bytes that were checked before, or that this program wrote. What looks
// into it finds something that means nothing where they are no JSON, so Within
// comes first for all that others wrote.
func Of(raw []byte) Value {
	if raw == nil {
		return Value{}
	}
	d := scratch.Get().(*table)
	d.text, d.nodes = raw, d.nodes[:0]
	if len(raw) > maxText || !d.fill() {
		d.nodes = d.nodes[:0]
	}
	doc := tableOf(raw, len(d.nodes))
	doc.nodes = append(doc.nodes, d.nodes...)
	if d.text = nil; cap(d.nodes) <= maxScratch {
		scratch.Put(d)
	}
	return Value{doc: doc}
}

// scratch are tables that are filled before it is known how many nodes there are.
var scratch = sync.Pool{New: func() any { return &table{nodes: make([]node, 0, 64)} }}

// maxScratch is how many nodes of such a table are kept.
const maxScratch = 4096

// read makes the table of checked text that has n nodes.
func read(b []byte, n int) Value {
	doc := tableOf(b, n)
	if len(b) > maxText || !doc.fill() {
		doc.nodes = nil
	}
	return Value{doc: doc}
}

// tableOf is a table with room for so many nodes.
func tableOf(b []byte, n int) (doc *table) {
	switch t, s, l := (*tiny)(nil), (*short)(nil), (*long)(nil); {
	case n <= len(t.few):
		t = &tiny{}
		doc, t.nodes = &t.table, t.few[:0]
	case n <= len(s.few):
		s = &short{}
		doc, s.nodes = &s.table, s.few[:0]
	case n <= len(l.few):
		l = &long{}
		doc, l.nodes = &l.table, l.few[:0]
	default:
		doc = &table{nodes: make([]node, 0, n)}
	}
	doc.text = b
	return doc
}

// StringOf returns the string s as a Value, written as Quote writes it.
func StringOf(s string) Value {
	d := &struct {
		table
		one [1]node
	}{}
	d.text, d.nodes = Quote(s), d.one[:0]
	if d.fill(); utf8.ValidString(s) {
		d.plain = s
	}
	return Value{doc: &d.table}
}

// Plain returns the value, a string that holds escapes as StringOf what it says:
// for who reads its text more than once.
func (v Value) Plain() Value {
	if v.Kind() != String || v.doc.plain != "" || v.doc.nodes[v.at].next&escaped == 0 && v.doc.shared != "" {
		return v
	}
	if s, ok := v.Text(); ok {
		return StringOf(s)
	}
	return v
}

// fill makes the table. It keeps no stack: the next of a container that is open
// is the container around it. It is false for what is no JSON.
func (d *table) fill() bool {
	b, open, i := d.text, uint32(none), space(d.text, 0)
	for {
		if i >= len(b) {
			return false
		}
		start, end, flag := i, 0, uint32(0)
		switch b[i] {
		case '{', '[':
			d.nodes = append(d.nodes, node{start: uint32(i), next: open})
			open = uint32(len(d.nodes) - 1)
			if i = space(b, i+1); i >= len(b) {
				return false
			}
			if b[i] != b[start]+2 {
				if b[start] == '{' {
					if i = d.name(i); i < 0 {
						return false
					}
				}
				continue
			}
		case '"':
			var esc bool
			if end, esc = skipString(b, i); esc {
				flag = escaped
			}
		default:
			end = skipPlain(b, i)
		}
		if end < 0 || kindAt(b[start]) == 0 {
			return false
		}
		if end > 0 {
			d.nodes = append(d.nodes, node{uint32(start), uint32(end), uint32(len(d.nodes)+1) | flag})
			i = end
		}
		// Behind a value: what ends here is closed.
		for {
			if open == none {
				return true
			}
			if i = space(b, i); i >= len(b) {
				return false
			}
			o := &d.nodes[open]
			if b[i] == b[o.start]+2 { // ']' is '[' + 2, and '}' is '{' + 2
				i++
				open, o.end, o.next = o.next, uint32(i), uint32(len(d.nodes))
				continue
			}
			if b[i] != ',' {
				return false
			}
			if i = space(b, i+1); b[o.start] == '{' {
				if i = d.name(i); i < 0 {
					return false
				}
			}
			break
		}
	}
}

// name notes the member name at text[i] and returns where its value starts.
func (d *table) name(i int) int {
	b := d.text
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	end, esc := skipString(b, i)
	if end < 0 {
		return -1
	}
	n := node{uint32(i), uint32(end), uint32(len(d.nodes) + 1)}
	if esc {
		n.next |= escaped
	}
	d.nodes = append(d.nodes, n)
	if i = space(b, end); i >= len(b) || b[i] != ':' {
		return -1
	}
	return space(b, i+1)
}

// Exists reports whether there is a value, or bytes that are none.
func (v Value) Exists() bool { return v.doc != nil }

// Raw returns the bytes, nil where nothing is. Of a whole text they are all of
// it, with the white space around the value.
func (v Value) Raw() []byte {
	if v.doc != nil && v.at == 0 {
		return v.doc.text
	}
	return v.Literal()
}

// Literal returns the bytes of the value alone, nil where no value is.
func (v Value) Literal() []byte {
	if v.Kind() == 0 {
		return nil
	}
	n := &v.doc.nodes[v.at]
	return v.doc.text[n.start:n.end:n.end]
}

// Span returns where the value alone stands in the text that it is of, both 0 where no
// value is.
func (v Value) Span() (from, to int) {
	if v.Kind() == 0 {
		return 0, 0
	}
	n := &v.doc.nodes[v.at]
	return int(n.start), int(n.end)
}

// Kind returns the kind, 0 where no value is.
func (v Value) Kind() Kind {
	if v.doc == nil || len(v.doc.nodes) == 0 {
		return 0
	}
	return kindAt(v.doc.text[v.doc.nodes[v.at].start])
}

// Within reports, as Check of its bytes does, why the value is not acceptable
// within l, or nil. What Parse accepted within as much is not looked at again.
func (v Value) Within(l Limits) error {
	if v.Kind() != 0 && v.doc.strict && (l.Bytes <= 0 || len(v.Raw()) <= l.Bytes) {
		// What keeps to the limits of its text keeps to them in any part.
		if had := v.doc.limits; tight(had.Depth, l.Depth) && tight(had.Leaves, l.Leaves) && tight(had.Number, l.Number) {
			return nil
		}
	}
	return Check(v.Raw(), l)
}

func tight(had, bound int) bool { return bound <= 0 || had > 0 && had <= bound }

// Text returns the decoded value of a string; ok is false for any other value.
func (v Value) Text() (s string, ok bool) {
	if v.Kind() != String {
		return "", false
	}
	return v.doc.decoded(v.at)
}

// decoded is the text of the string or name at a node.
func (d *table) decoded(at uint32) (string, bool) {
	n := &d.nodes[at]
	switch {
	case d.plain != "":
		return d.plain, true
	case n.next&escaped != 0:
		b, err := jsontext.AppendUnquote(nil, d.text[n.start:n.end])
		return string(b), err == nil
	case d.shared != "":
		return d.shared[n.start+1 : n.end-1], true
	}
	return string(d.text[n.start+1 : n.end-1]), true
}

// named reports whether the name at a node is that one.
func (d *table) named(at uint32, name string) bool {
	n := &d.nodes[at]
	if n.next&escaped == 0 {
		return string(d.text[n.start+1:n.end-1]) == name
	}
	text, ok := d.decoded(at)
	return ok && text == name
}

// inside returns the nodes from the first in an object or array to the one
// behind it; they are equal where nothing is in it.
func (v Value) inside(k Kind) (from, to uint32) {
	if v.Kind() != k {
		return 0, 0
	}
	return v.at + 1, v.doc.behind(v.at)
}

// behind is the node behind that one and all that is in it.
func (d *table) behind(at uint32) uint32 { return d.nodes[at].next &^ escaped }

// Members yields the members of an object in their order: each decoded name
// with its value. Of anything else there are none.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		from, to := v.inside(Object)
		for at := from; at < to; at = v.doc.behind(at + 1) {
			name, _ := v.doc.decoded(at)
			if !yield(name, Value{v.doc, at + 1}) {
				return
			}
		}
	}
}

// Elements yields the elements of an array in their order. Of anything else
// there are none.
func (v Value) Elements() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		from, to := v.inside(Array)
		for i, at := 0, from; at < to; i, at = i+1, v.doc.behind(at) {
			if !yield(i, Value{v.doc, at}) {
				return
			}
		}
	}
}

// Len returns the number of members of an object or of elements of an array, 0
// for anything else.
func (v Value) Len() (n int) {
	for range v.Members() {
		n++
	}
	for range v.Elements() {
		n++
	}
	return n
}

// Get returns the value of the member of that exact name; of what is no object
// or has no such member, the zero Value.
func (v Value) Get(name string) Value {
	from, to := v.inside(Object)
	for at := from; at < to; at = v.doc.behind(at + 1) {
		if v.doc.named(at, name) {
			return Value{v.doc, at + 1}
		}
	}
	return Value{}
}

// Find returns the value at the end of a path of decoded reference tokens, the
// zero Value if there is none. An index is written as RFC 6901 writes it,
// without leading zeros.
func (v Value) Find(path []string) Value {
	for _, token := range path {
		if v.Kind() != Array {
			v = v.Get(token)
			continue
		}
		n, err := strconv.Atoi(token)
		if err != nil || n < 0 || strconv.Itoa(n) != token {
			return Value{}
		}
		at := Value{}
		for i, e := range v.Elements() {
			if i == n {
				at = e
				break
			}
		}
		v = at
	}
	return v
}

// At returns the value an RFC 6901 pointer names, the zero Value if there is
// none.
func (v Value) At(pointer string) Value {
	path, err := ParsePointer(pointer)
	if err != nil {
		return Value{}
	}
	return v.Find(path)
}

// Walk calls leaf for every leaf in document order: each string, number,
// boolean and null, and each empty array or object. The path holds the decoded
// reference tokens and is only valid during the call. key is called before each
// member with the path of its object and its name. Either function may be nil;
// a false answer stops the walk.
func (v Value) Walk(leaf func(path []string, v Value) bool, key func(path []string, name string) bool) {
	if v.Kind() != 0 {
		(&walker{leaf: leaf, key: key}).walk(v)
	}
}

type walker struct {
	path []string
	leaf func([]string, Value) bool
	key  func([]string, string) bool
}

func (w *walker) walk(v Value) bool {
	depth, within := len(w.path), false
	for name, m := range v.Members() {
		if w.key != nil && !w.key(w.path, name) {
			return false
		}
		w.path, within = append(w.path, name), true
		if !w.walk(m) {
			return false
		}
		w.path = w.path[:depth]
	}
	for i, e := range v.Elements() {
		w.path, within = append(w.path, strconv.Itoa(i)), true
		if !w.walk(e) {
			return false
		}
		w.path = w.path[:depth]
	}
	return within || w.leaf == nil || w.leaf(w.path, v)
}
