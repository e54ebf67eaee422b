package upstream_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// seen is one request a server received.
type seen struct {
	method string // HTTP
	header http.Header
	body   []byte
}

// handWritten is a 2026-07-28 server over HTTP; answer gives the result of all
// but server/discover.
func handWritten(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, method, id string)) (url string, got func() []seen) {
	var mu sync.Mutex
	var all []seen
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		all = append(all, seen{r.Method, r.Header.Clone(), body})
		mu.Unlock()
		if err := strictjson.Check(body, strictjson.Request); err != nil {
			w.WriteHeader(400)
			return
		}
		method, _ := strictjson.Text(strictjson.Get(body, "method"))
		id := string(strictjson.Get(body, "id"))
		w.Header().Set("Content-Type", "application/json")
		if method == "server/discover" {
			io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"supportedVersions":["2099-01-01","2026-07-28"],"capabilities":{"tools":{}}}}`)
			return
		}
		answer(w, r, method, id)
	}))
	t.Cleanup(ts.Close)
	return ts.URL, func() []seen {
		mu.Lock()
		defer mu.Unlock()
		return append([]seen(nil), all...)
	}
}

// TestModernRequest: the exact request on 2026-07-28: the judged bytes, our
// _meta in front, the headers that must equal the body.
func TestModernRequest(t *testing.T) {
	url, got := handWritten(t, func(w http.ResponseWriter, _ *http.Request, _, id string) {
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"resultType":"complete"}}`)
	})
	s := start(t, upstream.Config{Name: "m", URL: url, Version: "9", ClientCapabilities: []byte(`{"elicitation":{}}`)}, newRecord(), nil)
	args := `{"where": "n\u00f8rd","n":9007199254740993,"deep":{"on":true},"z":1.50}`
	r := callTool("caf\u00e9", args)
	r.Params = strictjson.Of([]byte(" {\n\"name\" : \"caf\u00e9\",\"arguments\":" + args + ",\"requestState\":\"\\u0041\"}"))
	r.ToolSchema = strictjson.Of([]byte(`{"type":"object","properties":{"where":{"type":"string","x-mcp-header":"Region"},
		"deep":{"type":"object","properties":{"on":{"type":"boolean","x-mcp-header":"On"}}},"gone":{"type":"string","x-mcp-header":"Gone"}}}`))
	r.ProgressToken = []byte(`"tok"`)
	r.Meta = []strictjson.Member{
		{Name: "traceparent", Value: []byte(`"00-1"`)},
		{Name: "traceparent", Value: []byte(`"again"`)},
		{Name: "progressToken", Value: []byte(`"forged"`)},
		{Name: "io.modelcontextprotocol/protocolVersion", Value: []byte(`"1999-01-01"`)},
		{Name: "io.modelcontextprotocol/logLevel", Value: []byte(`"info"`)},
	}
	if out := call(t.Context(), s, r); out.End != ok || string(out.Result.Raw()) != `{"resultType":"complete"}` {
		t.Fatalf("%s %v", out.End, out.Err)
	}
	all := got()
	q := all[len(all)-1]
	id := string(strictjson.Get(q.body, "id"))
	want := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"writ","version":"9"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},` +
		`"progressToken":` + id + `,"traceparent":"00-1","io.modelcontextprotocol/logLevel":"info"},` +
		"\"name\" : \"caf\u00e9\",\"arguments\":" + args + ",\"requestState\":\"\\u0041\"}}"
	if string(q.body) != want {
		t.Errorf("body\n got %s\nwant %s", q.body, want)
	}
	for k, v := range map[string]string{
		"Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method":           "tools/call",
		"Mcp-Name":             "=?base64?Y2Fmw6k=?=",
		"Mcp-Param-Region":     "=?base64?bsO4cmQ=?=",
		"Mcp-Param-On":         "true",
		"Mcp-Param-Gone":       "",
		"Mcp-Session-Id":       "",
		"Content-Type":         "application/json",
		"Accept":               "application/json, text/event-stream",
		"Accept-Encoding":      "",
	} {
		if g := q.header.Get(k); g != v {
			t.Errorf("%s: got %q want %q", k, g, v)
		}
	}
}

// TestModernCancel: on 2026-07-28 over HTTP the end of the stream is the
// cancellation; no notification is sent.
func TestModernCancel(t *testing.T) {
	begun, over := make(chan struct{}), make(chan struct{})
	url, got := handWritten(t, func(w http.ResponseWriter, r *http.Request, _, _ string) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
		close(over)
	})
	s := start(t, upstream.Config{Name: "m", URL: url}, newRecord(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if out := call(ctx, s, callTool("t", `{}`)); out.End != upstream.Unknown {
		t.Errorf("%s", out.End)
	}
	<-over
	s.Close()
	for _, q := range got() {
		if strings.Contains(string(q.body), "notifications/") || q.method != http.MethodPost {
			t.Errorf("%s %s", q.method, q.body)
		}
	}
}

// TestModernAsk (T16): on 2026-07-28 a server has no requests of its own; one
// is refused, and the call goes on.
func TestModernAsk(t *testing.T) {
	url, got := handWritten(t, func(w http.ResponseWriter, _ *http.Request, method, id string) {
		if method != "tools/call" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`+"\n\n")
		io.WriteString(w, `data: {"jsonrpc":"2.0","id":`+id+`,"result":{}}`+"\n\n")
	})
	r := newRecord()
	s := start(t, upstream.Config{Name: "m", URL: url, ClientCapabilities: []byte(`{"elicitation":{}}`)}, r, nil)
	if out := call(t.Context(), s, callTool("t", `{}`)); out.End != ok {
		t.Errorf("%s %v", out.End, out.Err)
	}
	r.until(t, "undeclared_ask", func() bool { return r.events[upstream.UndeclaredAsk] == 1 })
	_ = got
}

// TestInvalidHeaders (T10): tools whose x-mcp-header breaks the rules are left
// out of the list of a server over HTTP on 2026-07-28.
func TestInvalidHeaders(t *testing.T) {
	tool := func(name, schema string) string { return `{"name":"` + name + `","inputSchema":` + schema + `}` }
	prop := func(p string) string { return `{"type":"object","properties":{` + p + `}}` }
	bad := map[string]string{
		"crlf":        prop(`"a":{"type":"string","x-mcp-header":"A\r\nB"}`),
		"empty":       prop(`"a":{"type":"string","x-mcp-header":""}`),
		"not_text":    prop(`"a":{"type":"string","x-mcp-header":1}`),
		"duplicate":   prop(`"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}`),
		"on_number":   prop(`"a":{"type":"number","x-mcp-header":"X"}`),
		"on_object":   prop(`"a":{"type":"object","x-mcp-header":"X"}`),
		"no_type":     prop(`"a":{"x-mcp-header":"X"}`),
		"under_items": prop(`"a":{"type":"array","items":{"type":"string","x-mcp-header":"X"}}`),
		"under_anyOf": prop(`"a":{"anyOf":[{"type":"string","x-mcp-header":"X"}]}`),
		"in_defs":     `{"type":"object","$defs":{"d":{"type":"string","x-mcp-header":"X"}}}`,
		"at_root":     `{"type":"string","x-mcp-header":"X"}`,
	}
	good := map[string]string{
		"plain":   prop(`"a":{"type":"string","x-mcp-header":"X"}`),
		"nested":  prop(`"o":{"type":"object","properties":{"a":{"type":"integer","x-mcp-header":"X"}}}`),
		"a_name":  prop(`"x-mcp-header":{"type":"number"}`),
		"as_data": prop(`"a":{"type":"object","default":{"x-mcp-header":1}}`),
	}
	var list []string
	for n, s := range bad {
		list = append(list, tool("bad_"+n, s))
	}
	for n, s := range good {
		list = append(list, tool(n, s))
	}
	url, _ := handWritten(t, func(w http.ResponseWriter, _ *http.Request, _, id string) {
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"tools":[`+strings.Join(list, ",")+`]}}`)
	})
	r := newRecord()
	s := start(t, upstream.Config{Name: "m", URL: url}, r, nil)
	l, err := s.List(t.Context(), "tools/list", "tools")
	if err != nil || len(l) != len(good) {
		t.Errorf("%d tools, %v", len(l), err)
	}
	for _, it := range l {
		if n, _ := strictjson.Text(strictjson.Get(it, "name")); strings.HasPrefix(n, "bad_") {
			t.Errorf("%s is listed", n)
		}
	}
	r.until(t, "invalid_tool", func() bool { return r.events[upstream.InvalidTool] == len(bad) })
}

// TestLegacyLineBreaks: judged bytes with line breaks between tokens stay one
// line on stdio; only those bytes differ.
func TestLegacyLineBreaks(t *testing.T) {
	s := start(t, child(t, "plain"), newRecord(), nil)
	args := "{\n\"a\":\"\\n\"\n}"
	r := callTool("echo", args)
	r.Params = strictjson.Of([]byte("{\r\n\"name\":\"echo\",\n\"arguments\":" + args + "}"))
	out := call(t.Context(), s, r)
	if out.End != ok || !strings.Contains(string(out.Result.Raw()), `{ \"a\":\"\\n\" }`) {
		t.Errorf("%s %v %s", out.End, out.Err, out.Result.Raw())
	}
}
