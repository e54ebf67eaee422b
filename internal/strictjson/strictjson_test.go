package strictjson

import (
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	l := Limits{Bytes: 1000, Depth: 5, Leaves: 10, Number: 64}
	for _, c := range []struct {
		name, in string
		want     Fault
	}{
		{"object", `{"a":[1,"x",null,true,{}]}`, ""},
		{"spaces", " \t\r\n1 \n", ""},
		{"W01 duplicate keys", `{"a":1,"a":2}`, Syntax},
		{"W02 escaped duplicate", `{"name":1,"na\u006de":2}`, Syntax},
		{"W04 trailing object", `{} {}`, Syntax},
		{"W04 trailing junk", `{} x`, Syntax},
		{"W05 invalid byte", "\"\xff\"", Syntax},
		{"W05 overlong", "\"\xc0\xaf\"", Syntax},
		{"W05 lone surrogate", `"\ud800"`, Syntax},
		{"W06 byte order mark", "\xef\xbb\xbf{}", Syntax},
		{"W06 NUL", "{\x00}", Syntax},
		{"W15 depth", strings.Repeat("[", 6) + strings.Repeat("]", 6), Deep},
		{"W15 depth at the bound", strings.Repeat("[", 5) + strings.Repeat("]", 5), ""},
		{"W15 unclosed bomb", strings.Repeat("[", 900), Deep},
		{"W15 leaves", `[1,1,1,1,1,1,1,1,1,1,1]`, Size},
		{"W15 empty containers are leaves", `[{},{},{},{},{},{},{},{},{},{},{}]`, Size},
		{"W15 leaves at the bound", `[1,1,1,1,1,1,1,1,1,[]]`, ""},
		{"W15 bytes", `"` + strings.Repeat("x", 1000) + `"`, Size},
		{"W16 exponent", `{"n":1e999999999}`, Numeric},
		{"W16 digits", strings.Repeat("1", 65), Numeric},
		{"W16 at the bound", strings.Repeat("1", 64), ""},
		{"empty", ``, Syntax},
		{"half", `{"a":`, Syntax},
		{"single quotes", `{'a':1}`, Syntax},
		{"comment", `{/*x*/}`, Syntax},
		{"NaN", `NaN`, Syntax},
		{"leading zero", `01`, Syntax},
	} {
		err := Check([]byte(c.in), l)
		var e *Error
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.As(err, &e) || e.Fault != c.want):
			t.Errorf("%s: got %v, want fault %s", c.name, err, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	in := []byte(` {"a/b" : [ 1.50 , "\u0041" , {} ] , "~" : null} `)
	if err := Check(in, Request); err != nil {
		t.Fatal(err)
	}
	var got []string
	Walk(in, func(p []string, raw []byte) bool {
		got = append(got, Pointer(p)+"="+string(raw))
		return true
	}, func(p []string, name string) bool {
		got = append(got, Pointer(p)+":"+name)
		return true
	})
	want := `:a/b /a~1b/0=1.50 /a~1b/1="\u0041" /a~1b/2={} :~ /~0=null`
	if s := strings.Join(got, " "); s != want {
		t.Errorf("walk\n got %s\nwant %s", s, want)
	}
	if s, ok := Text([]byte(`"\u0041\n"`)); !ok || s != "A\n" {
		t.Errorf("Text: %q %v", s, ok)
	}
	if v := Get(in, "~"); string(v) != "null" {
		t.Errorf("Get: %s", v)
	}
	if s := string(Compact([]byte("{ \"a\" : 1.0 , \"b\":\"\\u0041\" }"))); s != `{"a":1.0,"b":"\u0041"}` {
		t.Errorf("Compact: %s", s)
	}
	if b, _ := Canonical([]byte(`{"b":9007199254740993,"a":1.0}`)); string(b) != `{"a":1,"b":9007199254740993}` {
		t.Errorf("Canonical: %s", b)
	}
	for _, p := range []string{"", "/a", "/a~1b/0", "/~0"} {
		ts, err := ParsePointer(p)
		if err != nil || Pointer(ts) != p {
			t.Errorf("pointer %q: %v %v", p, ts, err)
		}
	}
	for _, p := range []string{"a", "/~", "/~2"} {
		if _, err := ParsePointer(p); err == nil {
			t.Errorf("pointer %q accepted", p)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":null}]}`))
	f.Add([]byte(`[[[[]]]]`))
	f.Add([]byte(` { "a\u0041" : [ "\\\"" , -1.5e+3 , { } ] } `))
	f.Fuzz(func(t *testing.T, b []byte) {
		if sameFault(t, b, Limits{Bytes: 1 << 16, Depth: 20, Leaves: 1000, Number: 64}) != nil {
			misuse(b)
			return
		}
		agree(t, b)
		if len(walked(b)) == 0 {
			t.Fatal("an accepted value has no leaf")
		}
		if _, err := Canonical(b); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSplice(t *testing.T) {
	for _, c := range []struct{ in, name, value, set, del string }{
		{`{}`, "a", `1`, `{"a":1}`, `{}`},
		{`{ "b" : 1.0 }`, "a", `2`, `{ "b" : 1.0 ,"a":2}`, `{ "b" : 1.0 }`},
		{`{"a":1,"b":2}`, "a", `[3]`, `{"a":[3],"b":2}`, `{"b":2}`},
		{`{"b":2, "a" : 1 }`, "a", `null`, `{"b":2, "a" : null }`, `{"b":2 }`},
		{`{"a":1}`, "a", `0`, `{"a":0}`, `{}`},
		{` {"x":{"a":1},"\u0061": 1 ,"c":1}`, "a", `2`, ` {"x":{"a":1},"\u0061": 2 ,"c":1}`, ` {"x":{"a":1} ,"c":1}`},
	} {
		if got := string(Set([]byte(c.in), c.name, []byte(c.value))); got != c.set {
			t.Errorf("Set(%s): %s, want %s", c.in, got, c.set)
		}
		if got := string(Delete([]byte(c.in), c.name)); got != c.del {
			t.Errorf("Delete(%s): %s, want %s", c.in, got, c.del)
		}
	}
}
