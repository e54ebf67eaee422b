package strictjson

import "bytes"

// The functions of this file find where values begin and end, those over byte
// slices through the table of a Value. They do so by the few bytes that carry
// structure, which is enough for bytes that Check accepted. On other bytes they end, within the slice, and what they say of
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

// Members returns the members of a checked object in their order; ok is false
// if raw is not an object.
func Members(raw []byte) (ms []Member, ok bool) {
	v := Of(raw)
	if v.Kind() != Object {
		return nil, false
	}
	for name, m := range v.Members() {
		if ms == nil {
			ms = make([]Member, 0, 4)
		}
		ms = append(ms, Member{name, m.Raw(), int(m.doc.nodes[m.at].start)})
	}
	return ms, true
}

// Get returns the value of the member of that exact name, nil if raw is not an
// object or has no such member.
func Get(raw []byte, name string) []byte { return Of(raw).Get(name).Raw() }

// At returns the raw value an RFC 6901 pointer names in checked JSON, nil if
// there is none.
func At(raw []byte, pointer string) []byte {
	if len(raw) == 0 {
		return nil
	}
	return Of(raw).At(pointer).Raw()
}

// Elements returns the elements of a checked array as sub-slices; ok is false
// if raw is not an array.
func Elements(raw []byte) (es [][]byte, ok bool) {
	v := Of(raw)
	for _, e := range v.Elements() {
		es = append(es, e.Raw())
	}
	return es, v.Kind() == Array
}

// Walk is Value.Walk for checked bytes.
func Walk(raw []byte, leaf func(path []string, raw []byte) bool, key func(path []string, name string) bool) {
	Of(raw).Walk(func(path []string, v Value) bool { return leaf == nil || leaf(path, v.Literal()) }, key)
}

// within reports whether a value that is valid JSON keeps to the limits of
// depth, leaves and numbers, and how many values and member names stand in it.
func within(b []byte, l Limits) (nodes int, ok bool) {
	depth, leaves := 0, 0
	empty := false // since the last bracket that opened, nothing stood
	for i := 0; i < len(b); {
		switch c := b[i]; c {
		case ' ', '\n', '\t', '\r', ',', ':':
			i++
			continue
		case '{', '[':
			if depth++; l.Depth > 0 && depth > l.Depth {
				return nodes, false
			}
			nodes++
			empty = true
			i++
			continue
		case '}', ']':
			if depth--; empty {
				leaves++
			}
			i++
		case '"':
			nodes++
			if i, _ = skipString(b, i); i < 0 {
				return nodes, false
			}
			// A name counts with its value; the white space before a colon
			// is the only thing to look past.
			if j := space(b, i); j >= len(b) || b[j] != ':' {
				leaves++
			}
		default:
			end := skipPlain(b, i)
			if end < 0 {
				return nodes, false
			}
			if c == '-' || c >= '0' && c <= '9' {
				if checkNumber(b[i:end], l.Number) != "" {
					return nodes, false
				}
			}
			leaves++
			nodes++
			i = end
		}
		empty = false
		if l.Leaves > 0 && leaves > l.Leaves {
			return nodes, false
		}
	}
	return nodes, true
}

// trim returns a value without the white space around it.
func trim(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }
