package strictjson

import "bytes"

// Set returns the object raw with the member name set to value: in place where
// the member stands, else as the last member. Every other byte stays as it
// was. raw must be a checked object and value a checked value.
func Set(raw []byte, name string, value []byte) []byte {
	ms, _ := Members(raw)
	for _, m := range ms {
		if m.Name != name {
			continue
		}
		start := m.Offset
		return join(raw[:start], value, raw[start+len(m.Value):])
	}
	end := bytes.LastIndexByte(raw, '}')
	member := append(append(Quote(name), ':'), value...)
	if len(ms) > 0 {
		member = append([]byte{','}, member...)
	}
	return join(raw[:end], member, raw[end:])
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
