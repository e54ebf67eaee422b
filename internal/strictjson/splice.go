package strictjson

import "bytes"

// With returns the bytes of an object with some members set: in place where one
// of that name stands, else as the last ones, in the order given. Every other
// byte stays as it was. The names differ, and the values are checked. It is nil
// for what is no object.
func (v Value) With(members ...Member) []byte {
	if v.Kind() != Object {
		return nil
	}
	raw, size := v.Raw(), 0
	for _, m := range members {
		size += len(m.Name) + len(m.Value) + 6
	}
	out, done, base := make([]byte, 0, len(raw)+size), 0, 0
	if v.at > 0 {
		base = int(v.doc.nodes[v.at].start) // places in raw count from here
	}
	from, to := v.inside(Object)
	for at := from; at < to; at = v.doc.behind(at + 1) {
		for _, m := range members {
			if v.doc.named(at, m.Name) {
				n := &v.doc.nodes[at+1]
				out = append(append(out, raw[done:int(n.start)-base]...), m.Value...)
				done = int(n.end) - base
			}
		}
	}
	end := bytes.LastIndexByte(raw, '}')
	out = append(out, raw[done:end]...)
	some := from < to
	for _, m := range members {
		if !v.Get(m.Name).Exists() {
			if some {
				out = append(out, ',')
			}
			out, some = append(append(AppendQuote(out, m.Name), ':'), m.Value...), true
		}
	}
	return append(out, raw[end:]...)
}

// Make returns the object of these members, in the order given, as a Value. The
// names differ, and the values are checked.
func Make(members ...Member) Value { return Of(Of([]byte("{}")).With(members...)) }

// Set returns the object raw with the member name set to value, as Value.With
// does. raw must be a checked object and value a checked value.
func Set(raw []byte, name string, value []byte) []byte {
	return Of(raw).With(Member{Name: name, Value: value})
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
			return join(raw[:prev], raw[end:])
		}
		open := bytes.IndexByte(raw, '{') + 1
		if len(ms) > 1 {
			end += bytes.IndexByte(raw[end:], ',') + 1
		}
		return join(raw[:open], raw[end:])
	}
	return raw
}

func join(a, b []byte) []byte {
	return append(append(make([]byte, 0, len(a)+len(b)), a...), b...)
}
