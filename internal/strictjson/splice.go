package strictjson

import "bytes"

// Set returns the object raw with the member name set to value: in place where
// the member stands, else as the last member. Every other byte stays as it
// was. raw must be a checked object and value a checked value.
func Set(raw []byte, name string, value []byte) []byte {
	var m member
	some := false
	for i, ok := nextMember(raw, space(raw, 0)+1, &m); ok && i >= 0; i, ok = nextMember(raw, i, &m) {
		if m.is(name) {
			return join(raw[:m.start], value, raw[m.end:])
		}
		some = true
	}
	end := bytes.LastIndexByte(raw, '}')
	out := make([]byte, 0, len(raw)+len(name)+len(value)+4)
	out = append(out, raw[:end]...)
	if some {
		out = append(out, ',')
	}
	out = append(append(append(out, Quote(name)...), ':'), value...)
	return append(out, raw[end:]...)
}

// Delete returns the object raw without the member name; every byte of the
// other members stays as it was.
func Delete(raw []byte, name string) []byte {
	ms, _ := Members(raw)
	for i, m := range ms {
		if m.Name != name {
			continue
		}
		// From the end of the value before (or the brace) to the end of this
		// value (or, for the first member, to the start of the next name).
		end := m.Offset + len(m.Value)
		if i > 0 {
			prev := ms[i-1].Offset + len(ms[i-1].Value)
			return join(raw[:prev], nil, raw[end:])
		}
		open := bytes.IndexByte(raw, '{') + 1
		if len(ms) > 1 {
			end += bytes.IndexByte(raw[end:], ',') + 1
		}
		return join(raw[:open], nil, raw[end:])
	}
	return raw
}

func join(a, b, c []byte) []byte {
	out := make([]byte, 0, len(a)+len(b)+len(c))
	return append(append(append(out, a...), b...), c...)
}
