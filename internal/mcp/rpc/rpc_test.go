package rpc

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/strictjson"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		code     int
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0},
		{"string id", `{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}`, 0},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 0},
		{"response", `{"jsonrpc":"2.0","id":1,"result":{}}`, 0},
		{"unknown members survive", `{"jsonrpc":"2.0","id":1,"method":"ping","x":1}`, 0},
		{"W01", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, CodeParse},
		{"W02", `{"jsonrpc":"2.0","id":1,"method":"a","meth\u006fd":"b"}`, CodeParse},
		{"W03 case", `{"jsonrpc":"2.0","id":1,"Method":"ping","method":"ping"}`, CodeInvalidRequest},
		{"W03 long s", `{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{}}`, CodeInvalidRequest},
		{"W04", `{"jsonrpc":"2.0","id":1,"method":"ping"} x`, CodeParse},
		{"W05", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", CodeParse},
		{"W06", "\xef\xbb\xbf{}", CodeParse},
		{"W07 fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, CodeInvalidRequest},
		{"W07 big", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, CodeInvalidRequest},
		{"W07 null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, CodeInvalidRequest},
		{"W07 true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, CodeInvalidRequest},
		{"W07 object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, CodeInvalidRequest},
		{"W07 long", `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", 257) + `","method":"ping"}`, CodeInvalidRequest},
		{"W08", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, CodeInvalidRequest},
		{"W09", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, CodeInvalidRequest},
		{"W15", strings.Repeat("[", 100000), CodeInvalidRequest},
		{"W16", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":1e999999999}}`, CodeInvalidRequest},
		{"version missing", `{"id":1,"method":"ping"}`, CodeInvalidRequest},
		{"version 1.0", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, CodeInvalidRequest},
		{"version number", `{"jsonrpc":2.0,"id":1,"method":"ping"}`, CodeInvalidRequest},
		{"method number", `{"jsonrpc":"2.0","id":1,"method":1}`, CodeInvalidRequest},
		{"method empty", `{"jsonrpc":"2.0","id":1,"method":""}`, CodeInvalidRequest},
		{"method long", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("a", 1<<20) + `"}`, CodeInvalidRequest},
		{"params array", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, CodeInvalidParams},
		{"params null", `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, CodeInvalidParams},
		{"params string", `{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}`, CodeInvalidParams},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, CodeInvalidRequest},
		{"nothing", `{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest},
		{"log line", `{"level":"info"}`, CodeInvalidRequest},
		{"string", `"x"`, CodeInvalidRequest},
	} {
		_, err := Parse([]byte(c.in), strictjson.Request)
		if got := code(err); got != c.code {
			t.Errorf("%s: got %d (%v), want %d", c.name, got, err, c.code)
		}
	}
}

func code(e *Error) int {
	if e == nil {
		return 0
	}
	return e.Code
}

func TestRawBytesSurvive(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":"\u0041","method":"tools/call","params":{"n":9007199254740993,"x":1.50}}`
	m, err := Parse([]byte(in), strictjson.Request)
	if err != nil {
		t.Fatal(err)
	}
	if string(m.Params.Raw()) != `{"n":9007199254740993,"x":1.50}` || string(m.ID) != `"\u0041"` {
		t.Errorf("params %s id %s", m.Params.Raw(), m.ID)
	}
	if got := string(Request(m.ID, m.Method, m.Params.Raw())); got != in {
		t.Errorf("got %s", got)
	}
	raw := []byte(`{"code":-1,"message":"m","data":{"z":1.0},"extra":true}`)
	if got := string(ErrorResponse([]byte("7"), ParseError(strictjson.Of(raw)))); got != `{"jsonrpc":"2.0","id":7,"error":`+string(raw)+`}` {
		t.Errorf("got %s", got)
	}
	if e := ParseError(strictjson.Of([]byte(`{"code":"x"}`))); e.Code != CodeInternal {
		t.Errorf("got %v", e)
	}
}

func TestLines(t *testing.T) {
	l := NewLines(strings.NewReader("a\r\n\nlong line here\nb\nhalf"), 5)
	var got []string
	for {
		b, err := l.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		s := string(b)
		if errors.Is(err, ErrLineTooLong) {
			s = "" // its edges
		}
		if err != nil {
			s += "!" + err.Error()
		}
		got = append(got, s)
	}
	if s := strings.Join(got, "|"); s != "a||!line too long|b|half!unexpected EOF" {
		t.Errorf("got %s", s)
	}
}

func TestLongLineEdges(t *testing.T) {
	in := `{"id":7,` + strings.Repeat("x", 200_000) + `,"end":1}`
	edges, err := NewLines(strings.NewReader(in+"\n"), 1000).Next()
	if !errors.Is(err, ErrLineTooLong) || len(edges) > 1024 ||
		!strings.HasPrefix(string(edges), `{"id":7,`) || !strings.Contains(string(edges), `,"end":1}`) {
		t.Errorf("%d bytes, %v", len(edges), err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b, strictjson.Limits{Bytes: 1 << 16, Depth: 50, Leaves: 1000, Number: 64})
		if err != nil {
			return
		}
		n := 0
		for _, is := range []bool{m.IsRequest(), m.IsNotification(), m.IsResponse()} {
			if is {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("a message is %d things at once", n)
		}
	})
}
