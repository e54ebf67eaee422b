package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// The model reads every level anew with the JSON library's decoder, which is
// slow and knows nothing of this package's scanner.

func modelMembers(raw []byte) (ms []Member) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	dec.ReadToken()
	for dec.PeekKind() == '"' {
		tok, _ := dec.ReadToken()
		name := tok.String()
		v, err := dec.ReadValue()
		if err != nil {
			panic(err)
		}
		end := dec.InputOffset()
		ms = append(ms, Member{name, v.Clone(), int(end) - len(v)})
	}
	return ms
}

func modelElements(raw []byte) (es [][]byte) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	dec.ReadToken()
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			panic(err)
		}
		es = append(es, v.Clone())
	}
	return es
}

func modelWalk(raw []byte, path []string, out *[]string) {
	raw = bytes.TrimSpace(raw)
	n := 0
	switch KindOf(raw) {
	case Object:
		for _, m := range modelMembers(raw) {
			*out = append(*out, fmt.Sprintf("%q:%q", path, m.Name))
			modelWalk(m.Value, append(path[:len(path):len(path)], m.Name), out)
			n++
		}
	case Array:
		for i, e := range modelElements(raw) {
			modelWalk(e, append(path[:len(path):len(path)], fmt.Sprint(i)), out)
			n++
		}
	}
	if n == 0 {
		*out = append(*out, fmt.Sprintf("%q=%s", path, raw))
	}
}

func walked(raw []byte) (out []string) {
	Walk(raw, func(p []string, b []byte) bool {
		out = append(out, fmt.Sprintf("%q=%s", p, b))
		return true
	}, func(p []string, name string) bool {
		out = append(out, fmt.Sprintf("%q:%q", p, name))
		return true
	})
	return out
}

// agree fails unless the scanner reads b, which Check accepted, as the model
// does.
func agree(tb rapid.TB, b []byte) {
	tb.Helper()
	var want []string
	modelWalk(b, nil, &want)
	if got := walked(b); strings.Join(got, "\n") != strings.Join(want, "\n") {
		tb.Fatalf("%q is walked as\n%q, want\n%q", b, got, want)
	}
	ms, ok := Members(b)
	if ok != (KindOf(b) == Object) {
		tb.Fatalf("%q: members %v", b, ok)
	}
	if ok {
		want := modelMembers(b)
		if len(ms) != len(want) {
			tb.Fatalf("%q: %d members, want %d", b, len(ms), len(want))
		}
		for i, m := range ms {
			if m.Name != want[i].Name || !bytes.Equal(m.Value, want[i].Value) || m.Offset != want[i].Offset ||
				!bytes.Equal(m.Value, b[m.Offset:m.Offset+len(m.Value)]) || !bytes.Equal(Get(b, m.Name), m.Value) {
				tb.Fatalf("%q: member %d is %+v, want %+v", b, i, m, want[i])
			}
		}
	}
	es, ok := Elements(b)
	if ok != (KindOf(b) == Array) {
		tb.Fatalf("%q: elements %v", b, ok)
	}
	if ok {
		if want := modelElements(b); fmt.Sprintf("%s", es) != fmt.Sprintf("%s", want) {
			tb.Fatalf("%q: elements %s, want %s", b, es, want)
		}
	}
	if KindOf(b) == String {
		want, err := jsontext.AppendUnquote(nil, bytes.TrimSpace(b))
		if got, ok := Text(b); !ok || err != nil || got != string(want) {
			tb.Fatalf("%q is the text %q, want %q", b, got, want)
		}
	}
}

// sameFault fails unless the quick Check answers what the one token by token
// does.
func sameFault(tb rapid.TB, b []byte, l Limits) error {
	tb.Helper()
	got, want := Check(b, l), firstFault(b, l)
	if l.Bytes > 0 && len(b) > l.Bytes {
		if got == nil {
			tb.Fatalf("%q is too long and accepted", b)
		}
		return got
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		tb.Fatalf("%q: %v, want %v", b, got, want)
	}
	return got
}

// document draws JSON text with every kind of value, escapes and white space,
// near the given limits on both sides.
func document(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r "})
	text := rapid.SampledFrom([]string{`""`, `"a"`, `"\\"`, `"\""`, `"\u0061"`, `"é{"`, `"]}"`, `":"`, `"\ud83d\ude00"`, `"a,b"`})
	var value func(depth int) string
	value = func(depth int) string {
		kind := rapid.IntRange(0, 7).Draw(t, "kind")
		if depth == 0 {
			kind %= 6
		}
		s := func() string { return space.Draw(t, "space") }
		switch kind {
		case 0:
			return text.Draw(t, "text")
		case 1:
			return rapid.SampledFrom([]string{"0", "-1.5", "1e5", "1E+400", "1e-401", "12345678901234567890"}).Draw(t, "number")
		case 2:
			return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "name")
		case 3:
			return "{" + s() + "}"
		case 4:
			return "[" + s() + "]"
		case 5:
			return `"` + strings.Repeat("x", rapid.IntRange(0, 3).Draw(t, "x")) + `"`
		}
		var parts []string
		for range rapid.IntRange(1, 4).Draw(t, "count") {
			v := s() + value(depth-1) + s()
			if kind == 6 {
				v = s() + text.Draw(t, "name") + s() + ":" + v
			}
			parts = append(parts, v)
		}
		if kind == 6 {
			return "{" + strings.Join(parts, ",") + "}"
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return space.Draw(t, "before") + value(depth) + space.Draw(t, "after")
}

var small = Limits{Bytes: 1 << 16, Depth: 4, Leaves: 12, Number: 16}

// TestModel holds the scanner against the model on documents, and on documents
// with one byte changed or taken away.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(document(t, 5))
		if sameFault(t, b, small) == nil {
			agree(t, b)
		}
		if len(b) > 0 {
			i := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			if rapid.Bool().Draw(t, "cut") {
				b = append(b[:i:i], b[i+1:]...)
			} else {
				b = bytes.Clone(b)
				b[i] = rapid.SampledFrom([]byte("{}[]\",:\\ 0e\x00\xff")).Draw(t, "byte")
			}
		}
		if sameFault(t, b, small) == nil {
			agree(t, b)
		}
	})
}

// TestUnchecked: bytes that Check would refuse are misuse; even so the scanner
// ends and stays inside.
func TestUnchecked(t *testing.T) {
	whole := []byte(` {"a\"b" : [1, {"c":"\u00`)
	for n := range len(whole) + 1 {
		for _, b := range [][]byte{whole[:n:n], append([]byte("{"), whole[:n]...), append([]byte("["), whole[:n]...)} {
			misuse(b)
		}
	}
	for _, s := range []string{`{,}`, `{"a"}`, `{"a":}`, `{"a":1 "b"}`, `[,]`, `[1 2]`, `[}`, `{]`, `{"a":[}`, `{"\`, `"`, `"\`, `{"a":"\x"}`, `{"\x":1}`} {
		misuse([]byte(s))
	}
}

func misuse(b []byte) {
	Of(b).With(Member{"a", []byte("1"), 0})
	Members(b)
	Elements(b)
	Get(b, "a")
	Text(b)
	Walk(b, func([]string, []byte) bool { return true }, nil)
	within(b, small)
}

func TestWalkStops(t *testing.T) {
	in := []byte(`{"a":[1,2],"b":{"c":3}}`)
	for stop := range 6 {
		seen := 0
		next := func() bool { seen++; return seen <= stop }
		Walk(in, func([]string, []byte) bool { return next() }, func([]string, string) bool { return next() })
		if want := min(stop+1, 6); seen != want {
			t.Errorf("stopped at %d after %d, want %d", stop, seen, want)
		}
	}
}

// nested is an array of n bytes in strings, depth levels down.
func nested(n, depth int) []byte {
	var b bytes.Buffer
	b.WriteString(strings.Repeat(`{"a":[`, depth/2))
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%s"`, strings.Repeat("x", 190))
	}
	b.WriteString(strings.Repeat("]}", depth/2))
	return b.Bytes()
}

// listing is what a server answers to a list of n rows.
func listing(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"content":[{"type":"text","text":"rows"}],"structuredContent":{"rows":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"item-%d","name":"Item No. %d","size":%d,"ok":true,"note":"a \"quoted\" note"}`, i, i, i*17)
	}
	b.WriteString(`]}}`)
	return b.Bytes()
}

// BenchmarkRead measures the functions on a small request, a listing and the
// largest, deepest result. The slow Check is there to be compared with.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name string
		doc  []byte
	}{
		{"request", []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"files_read_file","arguments":{"path":"/srv/data/report.txt"},"_meta":{"progressToken":7}}}`)},
		{"listing", listing(100)},
		{"deep", nested(16<<20-1<<10, 98)},
	} {
		run := func(name string, f func() error) {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(c.doc)))
				b.ReportAllocs()
				for b.Loop() {
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("Check", func() error { return Check(c.doc, Result) })
		run("CheckByTokens", func() error { return firstFault(c.doc, Result) })
		run("Walk", func() error {
			n := 0
			Walk(c.doc, func([]string, []byte) bool { n++; return true }, nil)
			if n == 0 {
				return errors.New("no leaf")
			}
			return nil
		})
		run("Members", func() error {
			if ms, ok := Members(c.doc); !ok || len(ms) == 0 {
				return io.ErrUnexpectedEOF
			}
			return nil
		})
	}
}
