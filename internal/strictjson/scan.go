package strictjson

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions of this file find where values begin and end. They do so by
// the few bytes that carry structure, which is enough for bytes that Check
// accepted. On other bytes they end, within the slice, and what they say of
// the rest means nothing; that is why Check comes first.

// space skips white space from i on.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string that starts at b[i], and
// whether it holds an escape; -1 if it does not end.
func skipString(b []byte, i int) (end int, escaped bool) {
	i++
	quote := bytes.IndexByte(b[i:], '"')
	if quote < 0 {
		return -1, false
	}
	escape := bytes.IndexByte(b[i:i+quote], '\\')
	if escape < 0 {
		return i + quote + 1, false
	}
	for i += escape; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
		}
	}
	return -1, escaped
}

// skipPlain returns the index behind the number or the name literal at b[i].
func skipPlain(b []byte, i int) int {
	start := i
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r', ':', '"', '{', '[':
			if i == start {
				return -1
			}
			return i
		}
	}
	if i == start {
		return -1
	}
	return i
}

// skipValue returns the index behind the value at b[i], -1 if there is none.
// It keeps no stack: nesting costs nothing.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		i, _ = skipString(b, i)
		return i
	case '{', '[':
	default:
		return skipPlain(b, i)
	}
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i, _ = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// decode returns the text of the string literal lit.
func decode(lit []byte, escaped bool) (string, bool) {
	if !escaped {
		return string(lit[1 : len(lit)-1]), true
	}
	b, err := jsontext.AppendUnquote(nil, lit)
	return string(b), err == nil
}

// member is a member of an object before its name is decoded.
type member struct {
	name       []byte // the literal
	escaped    bool
	start, end int // of its value
}

// is reports whether the member has that name.
func (m *member) is(name string) bool {
	if !m.escaped {
		return string(m.name[1:len(m.name)-1]) == name
	}
	text, ok := decode(m.name, true)
	return ok && text == name
}

// nextMember reads the member at or after b[i], which is behind '{' or behind
// a value. next is where to go on: behind the value, and -1 at the end of the
// object or where there is none; ok is false only for the latter.
func nextMember(b []byte, i int, m *member) (next int, ok bool) {
	if i = space(b, i); i < len(b) && b[i] == ',' {
		i = space(b, i+1)
	} else if i < len(b) && b[i] == '}' {
		return -1, true
	}
	if i >= len(b) || b[i] != '"' {
		return -1, false
	}
	end, escaped := skipString(b, i)
	if end < 0 {
		return -1, false
	}
	m.name, m.escaped = b[i:end], escaped
	if i = space(b, end); i >= len(b) || b[i] != ':' {
		return -1, false
	}
	m.start = space(b, i+1)
	if m.end = skipValue(b, m.start); m.end < 0 {
		return -1, false
	}
	return m.end, true
}

// Members returns the members of a checked object in their order; ok is false
// if raw is not an object.
func Members(raw []byte) (ms []Member, ok bool) {
	if KindOf(raw) != Object {
		return nil, false
	}
	var m member
	for i, ok := nextMember(raw, space(raw, 0)+1, &m); ; i, ok = nextMember(raw, i, &m) {
		if !ok {
			return nil, false
		}
		if i < 0 {
			return ms, true
		}
		name, ok := decode(m.name, m.escaped)
		if !ok {
			return nil, false
		}
		if ms == nil {
			ms = make([]Member, 0, 4)
		}
		ms = append(ms, Member{name, raw[m.start:m.end:m.end], m.start})
	}
}

// Get returns the value of the member of that exact name, nil if raw is not an
// object or has no such member.
func Get(raw []byte, name string) []byte {
	if KindOf(raw) != Object {
		return nil
	}
	var m member
	for i, ok := nextMember(raw, space(raw, 0)+1, &m); ok && i >= 0; i, ok = nextMember(raw, i, &m) {
		if m.is(name) {
			return raw[m.start:m.end:m.end]
		}
	}
	return nil
}

// Elements returns the elements of a checked array as sub-slices; ok is false
// if raw is not an array.
func Elements(raw []byte) (es [][]byte, ok bool) {
	if KindOf(raw) != Array {
		return nil, false
	}
	for i := space(raw, 0) + 1; ; {
		if i = space(raw, i); i < len(raw) && raw[i] == ']' {
			return es, true
		}
		if i < len(raw) && raw[i] == ',' {
			i = space(raw, i+1)
		}
		end := skipValue(raw, i)
		if end < 0 {
			return nil, false
		}
		es = append(es, raw[i:end:end])
		i = end
	}
}

// Walk calls leaf for every leaf of a checked value in document order: each
// string, number, boolean and null, and each empty array or object. The path
// holds the decoded reference tokens and is only valid during the call. key is
// called before each member with the path of its object and its name. Either
// function may be nil; a false answer stops the walk. Each byte is read once,
// however deep it lies.
func Walk(raw []byte, leaf func(path []string, raw []byte) bool, key func(path []string, name string) bool) {
	w := walker{b: raw, leaf: leaf, key: key}
	w.value(space(raw, 0))
}

type walker struct {
	b    []byte
	path []string
	leaf func([]string, []byte) bool
	key  func([]string, string) bool
}

// value walks the value at b[i] and returns the index behind it, -1 to stop.
func (w *walker) value(i int) int {
	if i >= len(w.b) {
		return -1
	}
	closing := byte('}')
	switch w.b[i] {
	case '[':
		closing = ']'
	case '{':
	default:
		return w.scalar(i, skipValue(w.b, i))
	}
	start := i
	i = space(w.b, i+1)
	if i < len(w.b) && w.b[i] == closing {
		return w.scalar(start, i+1)
	}
	depth := len(w.path)
	w.path = append(w.path, "")
	for n := 0; ; n++ {
		if closing == ']' {
			w.path[depth] = strconv.Itoa(n)
		} else if i = w.name(i, depth); i < 0 {
			return -1
		}
		if i = w.value(i); i < 0 {
			return -1
		}
		if i = space(w.b, i); i >= len(w.b) {
			return -1
		}
		switch w.b[i] {
		case closing:
			w.path = w.path[:depth]
			return i + 1
		case ',':
			i = space(w.b, i+1)
		default:
			return -1
		}
	}
}

// name reads a member's name and returns where its value starts.
func (w *walker) name(i, depth int) int {
	if i >= len(w.b) || w.b[i] != '"' {
		return -1
	}
	end, escaped := skipString(w.b, i)
	if end < 0 {
		return -1
	}
	name, ok := decode(w.b[i:end], escaped)
	if !ok || w.key != nil && !w.key(w.path[:depth], name) {
		return -1
	}
	w.path[depth] = name
	if i = space(w.b, end); i >= len(w.b) || w.b[i] != ':' {
		return -1
	}
	return space(w.b, i+1)
}

func (w *walker) scalar(start, end int) int {
	if end < 0 || w.leaf != nil && !w.leaf(w.path, w.b[start:end:end]) {
		return -1
	}
	return end
}

// within reports whether a value that is valid JSON keeps to the limits of
// depth, leaves and numbers.
func within(b []byte, l Limits) bool {
	depth, leaves := 0, 0
	empty := false // since the last bracket that opened, nothing stood
	for i := 0; i < len(b); {
		switch c := b[i]; c {
		case ' ', '\n', '\t', '\r', ',', ':':
			i++
			continue
		case '{', '[':
			if depth++; l.Depth > 0 && depth > l.Depth {
				return false
			}
			empty = true
			i++
			continue
		case '}', ']':
			if depth--; empty {
				leaves++
			}
			i++
		case '"':
			if i, _ = skipString(b, i); i < 0 {
				return false
			}
			// A name counts with its value; the white space before a colon
			// is the only thing to look past.
			if j := space(b, i); j >= len(b) || b[j] != ':' {
				leaves++
			}
		default:
			end := skipPlain(b, i)
			if end < 0 {
				return false
			}
			if c == '-' || c >= '0' && c <= '9' {
				if checkNumber(b[i:end], l.Number) != "" {
					return false
				}
			}
			leaves++
			i = end
		}
		empty = false
		if l.Leaves > 0 && leaves > l.Leaves {
			return false
		}
	}
	return true
}

// trim returns a value without the white space around it.
func trim(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }
