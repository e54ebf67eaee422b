package upstream

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/strictjson"
)

// readAll reads a stream of events to its end.
func readAll(r io.Reader, limit int) (data []string, overs int, lastID string) {
	es := newEvents(r, limit)
	for {
		d, over, err := es.next()
		if err != nil {
			return data, overs, es.lastID
		}
		if over {
			overs++
			continue
		}
		data = append(data, string(d))
	}
}

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		in     string
		want   string // joined by |
		overs  int
		lastID string
	}{
		"one":             {"data: a\n\n", "a", 0, ""},
		"lines":           {"data: a\ndata:b\ndata\n\n", "a\nb\n", 0, ""},
		"crlf":            {"data: a\r\n\r\ndata: b\r\n\r\n", "a|b", 0, ""},
		"W13 cr":          {"data: a\r\rdata: b\r\r", "a|b", 0, ""},
		"comment":         {": x\n\n:\n\ndata: a\n\n", "a", 0, ""},
		"other event":     {"event: ping\ndata: x\n\ndata: a\n\n", "a", 0, ""},
		"message event":   {"event: message\ndata: a\n\n", "a", 0, ""},
		"id":              {"id: 7\ndata: a\n\n", "a", 0, "7"},
		"id alone":        {"id: 7\n\n", "", 0, "7"},
		"id with NUL":     {"id: 7\x00\ndata: a\n\n", "a", 0, ""},
		"broken off":      {"data: a\n\nid: 9\ndata: b\n", "a", 0, ""},
		"bom":             {"\xef\xbb\xbfdata: a\n\n", "a", 0, ""},
		"no space":        {"data:  a\n\n", " a", 0, ""},
		"U07 over":        {"data: " + strings.Repeat("x", 100) + "\n\ndata: a\n\n", "a", 1, ""},
		"U07 over by sum": {strings.Repeat("data: x\n", 20) + "\ndata: a\n\n", "a", 1, ""},
	} {
		for kind, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.in), "bytewise": iotest.OneByteReader(strings.NewReader(c.in)),
		} {
			data, overs, lastID := readAll(r, 50)
			if got := strings.Join(data, "|"); got != c.want || overs != c.overs || lastID != c.lastID {
				t.Errorf("%s, %s: %q, %d over, id %q", name, kind, got, overs, lastID)
			}
		}
	}
}

// FuzzEvents: any stream is read to its end within the bound, and how it is cut
// into reads changes nothing.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\nid: 1\nevent: x\rdata\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d1, o1, i1 := readAll(bytes.NewReader(b), 64)
		d2, o2, i2 := readAll(iotest.OneByteReader(bytes.NewReader(b)), 64)
		if strings.Join(d1, "|") != strings.Join(d2, "|") || o1 != o2 || i1 != i2 {
			t.Fatalf("%q %d %q, bytewise %q %d %q", d1, o1, i1, d2, o2, i2)
		}
		for _, d := range d1 {
			if len(d) > 64 {
				t.Fatalf("%d bytes", len(d))
			}
		}
	})
}

func TestHeaderValue(t *testing.T) {
	for in, want := range map[string]string{
		"us-east1":         "us-east1",
		"a b":              "a b",
		" a":               "=?base64?IGE=?=",
		"a\n":              "=?base64?YQo=?=",
		"é":                "=?base64?w6k=?=",
		"=?base64?YQ==?=":  "=?base64?PT9iYXNlNjQ/WVE9PT89?=",
		"\x7f":             "=?base64?fw==?=",
		"a\r\nInjected: x": "=?base64?YQ0KSW5qZWN0ZWQ6IHg=?=",
	} {
		if got := headerValue(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// fakeLink keeps what is told.
type fakeLink struct {
	link
	told [][]byte
}

func (l *fakeLink) tell(msg []byte) { l.told = append(l.told, msg) }

func testConn(modern bool) *conn {
	s := New(Config{Name: "x"}, Callbacks{}, nil)
	s.ctx = nil
	c := &conn{s: s, calls: map[string]*call{}, asks: nil, dead: make(chan struct{}), version: modernVersion}
	c.link = &fakeLink{}
	c.modern.Store(modern)
	return c
}

// TestComposeKeepsBytes (P20): whatever the params, their members stand in the
// message as the same bytes in the same order, after our _meta.
func TestComposeKeepsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n\t", "\r\n"})
		value := rapid.SampledFrom([]string{`1`, `1.50`, `9007199254740993`, `"\u0041"`, `"é"`, `{}`, `[ 1 , {"a":null}]`, `{"b":1,"a":2}`, `-0.0`, `1e2`})
		var b strings.Builder
		b.WriteString(space.Draw(t, "lead") + "{" + space.Draw(t, "s"))
		n := rapid.IntRange(0, 4).Draw(t, "n")
		for i := range n {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(space.Draw(t, "s") + `"k` + string(rune('a'+i)) + `"` + space.Draw(t, "s") + ":" + value.Draw(t, "v"))
		}
		b.WriteString(space.Draw(t, "s") + "}" + space.Draw(t, "end"))
		params := b.String()

		c := testConn(rapid.Bool().Draw(t, "modern"))
		r := Request{Method: "tools/call", Params: strictjson.Of([]byte(params))}
		if rapid.Bool().Draw(t, "token") {
			r.ProgressToken = []byte("1")
		}
		k := c.open(r, false, nil)
		if err := c.compose(k); err != nil {
			t.Fatal(err)
		}
		if err := strictjson.Check(k.msg, strictjson.Request); err != nil {
			t.Fatalf("%v: %s", err, k.msg)
		}
		before, _ := strictjson.Members([]byte(params))
		after, _ := strictjson.Members(strictjson.Get(k.msg, "params"))
		if len(after) > 0 && after[0].Name == "_meta" {
			after = after[1:]
		} else if c.modern.Load() || r.ProgressToken != nil {
			t.Fatalf("no _meta: %s", k.msg)
		}
		if len(before) != len(after) {
			t.Fatalf("%s became %s", params, k.msg)
		}
		for i := range before {
			if before[i].Name != after[i].Name || !bytes.Equal(before[i].Value, after[i].Value) {
				t.Fatalf("%s became %s", params, k.msg)
			}
		}
		if bytes.IndexByte(oneLine(k.msg), '\n') != len(k.msg) {
			t.Fatal("more than one line")
		}
	})
}

// FuzzReceive (P22): whatever a server writes, an answer is accepted at most
// once, only for the exact id, and only as the bytes of its result.
func FuzzReceive(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":ID,"result":{"a":1}}`, `{"jsonrpc":"2.0","id":"ID","result":{}}`,
		`{"jsonrpc":"2.0","id":ID.0,"result":{}}`, `{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":1}}`,
		`[{"jsonrpc":"2.0","id":ID,"result":{}}]`, "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := testConn(false)
		k := c.open(Request{Method: "tools/call"}, false, nil)
		other := c.open(Request{Method: "tools/call"}, false, nil)
		raw := bytes.ReplaceAll(b, []byte("ID"), k.id)
		c.receive(raw, nil, true)
		select {
		case <-other.done:
			t.Fatal("an answer to somebody else")
		default:
		}
		select {
		case <-k.done:
		default:
			return
		}
		if k.reply.End == Answered && k.reply.Err == nil {
			if !bytes.Equal(k.reply.Result.Raw(), strictjson.Get(raw, "result")) || !bytes.Equal(strictjson.Get(raw, "id"), k.id) {
				t.Fatalf("%s for %s", k.reply.Result.Raw(), raw)
			}
		}
		first := k.reply
		c.receive(raw, nil, true)
		if k.reply.End != first.End || !bytes.Equal(k.reply.Result.Raw(), first.Result.Raw()) {
			t.Fatal("a second answer counted")
		}
	})
}
