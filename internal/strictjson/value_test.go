package strictjson

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// same fails unless everything in v is found where the model, which reads every
// level anew, finds it in raw.
func same(tb rapid.TB, v Value, raw []byte) {
	tb.Helper()
	lit := bytes.TrimSpace(raw)
	if !v.Exists() || !bytes.Equal(v.Raw(), raw) || !bytes.Equal(v.Literal(), lit) || v.Kind() != KindOf(raw) {
		tb.Fatalf("%q is %q, %q of kind %q", raw, v.Raw(), v.Literal(), v.Kind())
	}
	text, isText := v.Text()
	if want, ok := Text(lit); text != want || ok != isText {
		tb.Fatalf("%q is the text %q %v, want %q", raw, text, isText, want)
	}
	var ms []Member
	var es [][]byte
	switch KindOf(raw) {
	case Object:
		ms = modelMembers(raw)
	case Array:
		es = modelElements(raw)
	}
	if v.Len() != len(ms)+len(es) {
		tb.Fatalf("%q has %d values, want %d", raw, v.Len(), len(ms)+len(es))
	}
	i := 0
	for name, m := range v.Members() {
		if name != ms[i].Name || v.Get(name) != m || v.Find([]string{name}) != m {
			tb.Fatalf("%q: member %d is %q, want %q", raw, i, name, ms[i].Name)
		}
		same(tb, m, ms[i].Value)
		i++
	}
	for i, e := range v.Elements() {
		if v.At(fmt.Sprintf("/%d", i)) != e {
			tb.Fatalf("%q: element %d is not at its pointer", raw, i)
		}
		same(tb, e, es[i])
	}
}

// TestValue holds a Value against the model, and what its parts keep to against
// Check of their bytes.
func TestValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(document(t, 5))
		v, err := Parse(b, Limits{})
		if (err == nil) != (Check(b, Limits{}) == nil) {
			t.Fatalf("%q: %v", b, err)
		}
		if err != nil {
			if v.Kind() != 0 || v.Len() != 0 || v.Literal() != nil || !bytes.Equal(v.Raw(), b) || v.Within(Limits{}) == nil {
				t.Fatalf("%q was refused and is something", b)
			}
			return
		}
		same(t, v, b)
		same(t, Of(b), b)
		l := Limits{Bytes: 20, Depth: 3, Leaves: 6, Number: 5}
		v.Walk(func(path []string, leaf Value) bool {
			if v.Find(path) != leaf || v.At(Pointer(path)) != leaf {
				t.Fatalf("%q: the leaf at %q is another", b, path)
			}
			for n := range path {
				part := v.Find(path[:n])
				if got, want := part.Within(l), Check(part.Raw(), l); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%q: %v, want %v", part.Raw(), got, want)
				}
			}
			return true
		}, nil)
		if bound, err := Parse(b, small); err == nil {
			for name, m := range bound.Members() {
				if err := m.Within(small); err != nil {
					t.Fatalf("%q of %q: %v", name, b, err)
				}
			}
		}
		with(t, v)
	})
}

// with holds With against a model that writes every member anew.
func with(t *rapid.T, v Value) {
	if v.Kind() != Object {
		if v.With(Member{Name: "a", Value: []byte("1")}) != nil {
			t.Fatalf("%q took a member", v.Raw())
		}
		return
	}
	set := []Member{{Name: "a", Value: []byte(`[1]`)}, {Name: "]}", Value: []byte(`"x"`)}, {Name: "new", Value: []byte(`{}`)}}
	want := map[string]string{}
	for _, m := range modelMembers(v.Raw()) {
		want[m.Name] = string(m.Value)
	}
	for _, m := range set {
		want[m.Name] = string(m.Value)
	}
	out := v.With(set...)
	if err := Check(out, Limits{}); err != nil {
		t.Fatalf("%q with members is %q: %v", v.Raw(), out, err)
	}
	got := map[string]string{}
	for _, m := range modelMembers(out) {
		got[m.Name] = string(m.Value)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%q with members is %q", v.Raw(), out)
	}
	for _, m := range v.Members() {
		if m.Kind() == Object {
			with(t, m)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(` { "a\u0041" : [ "\\\"" , -1.5e+3 , { } ] , "b":[[],"x"] } `))
	f.Add([]byte(`[1,]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := Limits{Bytes: 1 << 16, Depth: 20, Leaves: 1000, Number: 64}
		v, err := Parse(b, l)
		if want := Check(b, l); fmt.Sprint(err) != fmt.Sprint(want) {
			t.Fatalf("%v, want %v", err, want)
		}
		if err == nil {
			same(t, v, b)
		}
	})
}

func TestStringOf(t *testing.T) {
	for _, s := range []string{"", "a", `"\`, "\n\x00", "é\u2028", "\xff"} {
		v := StringOf(s)
		same(t, v, Quote(s))
		for _, of := range []Value{v, Of(Quote(s)), Of([]byte(`["` + "\\u0061" + `"]`)).At("/0")} {
			text, _ := of.Text()
			if plain, _ := of.Plain().Text(); plain != text {
				t.Errorf("%q is %q decoded once", text, plain)
			}
		}
		if text, ok := v.Text(); !ok || text != strings.ToValidUTF8(s, "\uFFFD") {
			t.Errorf("%q reads back as %q", s, text)
		}
	}
	var v Value
	if v.Exists() || v.Raw() != nil || v.Kind() != 0 || v.Len() != 0 || v.Get("a").Exists() || v.At("").Exists() || v.Within(Limits{}) == nil {
		t.Error("the zero Value is something")
	}
}

// TestReadsOnce: a short text costs its table, and reading it nothing. What Check
// takes is left out: the library's buffers are pooled.
func TestReadsOnce(t *testing.T) {
	b := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read","arguments":{"path":"/srv/data/report.txt","n":[1,2]}}}`)
	if n := testing.AllocsPerRun(100, func() { Of(b) }); n > 1 {
		t.Errorf("reading a request takes %v allocations, want one", n)
	}
	v, _ := Parse(b, Request)
	if n := testing.AllocsPerRun(100, func() {
		args := v.Get("params").Get("arguments")
		seen := 0
		for name, m := range args.Members() {
			s, _ := m.Text()
			seen += len(name) + len(s) + len(m.Raw()) + m.Len()
		}
		for _, e := range args.Get("n").Elements() {
			seen += len(e.Raw())
		}
		if seen == 0 || args.Within(Request) != nil || v.At("/params/name").Kind() != String {
			t.Fatal("not read")
		}
	}); n > 2 { // the tokens of the one pointer
		t.Errorf("looking into it takes %v allocations", n)
	}
}

// TestCanonicalWithin: it is Check and then Canonical, also of what is no JSON.
func TestCanonicalWithin(t *testing.T) {
	for _, s := range []string{`{"a":1,"a":1}`, `{"a":1,"\u0061":1}`, "\"\xff\"", `"\ud800"`, `1e401`, `1e999`, `{} x`, ``, `[1,`} {
		if _, err := CanonicalWithin([]byte(s), Request); err == nil || err.Error() != Check([]byte(s), Request).Error() {
			t.Errorf("%q: %v", s, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(document(t, 5))
		got, err := CanonicalWithin(b, small)
		if want := Check(b, small); fmt.Sprint(err) != fmt.Sprint(want) {
			t.Fatalf("%q: %v, want %v", b, err, want)
		}
		if err == nil {
			if want, _ := Canonical(b); !bytes.Equal(got, want) {
				t.Fatalf("%q is %q, want %q", b, got, want)
			}
		}
	})
}
