package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// wire is a client on the level of bytes: it shows what an SDK would hide. It
// speaks either wire over either transport.
type wire struct {
	tb     testing.TB
	modern bool
	caps   string // client capabilities
	post   func(ctx context.Context, id, method string, params []byte, msg []byte) (answer []byte)
	ask    func(method string, params []byte) string // answers a question of the gateway
	tell   func(msg []byte)                          // sends what has no answer
	close  func()

	mu      sync.Mutex
	next    int
	notes   []note
	changed chan struct{} // closed and replaced at each note
}

type note struct {
	method string
	params []byte
}

// answer is what a request was answered with; one of the members is nil.
type answer struct{ result, err []byte }

func newWire(tb testing.TB, modern bool) *wire {
	return &wire{tb: tb, modern: modern, caps: `{"elicitation":{"form":{},"url":{}},"sampling":{}}`, changed: make(chan struct{})}
}

func (w *wire) noted(method string, params []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, note{method, bytes.Clone(params)})
	close(w.changed)
	w.changed = make(chan struct{})
}

// await returns the first notification of the method, waiting for it.
func (w *wire) await(ctx context.Context, method string) note {
	w.tb.Helper()
	for {
		w.mu.Lock()
		changed := w.changed
		for _, n := range w.notes {
			if n.method == method {
				w.mu.Unlock()
				return n
			}
		}
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			w.tb.Fatalf("no %s came", method)
		}
	}
}

func (w *wire) heard(method string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.notes {
		if x.method == method {
			n++
		}
	}
	return n
}

// compose gives a request an id and, on the modern wire, its _meta.
func (w *wire) compose(method string, params []byte) (id string, with, msg []byte) {
	w.mu.Lock()
	w.next++
	id = strconv.Itoa(w.next)
	w.mu.Unlock()
	if w.modern {
		if params == nil {
			params = []byte("{}")
		}
		meta := strictjson.Get(params, "_meta")
		if meta == nil {
			meta = []byte("{}")
		}
		meta = strictjson.Set(meta, "io.modelcontextprotocol/protocolVersion", []byte(`"2026-07-28"`))
		meta = strictjson.Set(meta, "io.modelcontextprotocol/clientCapabilities", []byte(w.caps))
		meta = strictjson.Set(meta, "io.modelcontextprotocol/clientInfo", []byte(`{"name":"wire","version":"1"}`))
		params = strictjson.Set(params, "_meta", meta)
	}
	b := []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":` + string(strictjson.Quote(method)))
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return id, params, append(b, '}')
}

// request sends a request and waits for its answer.
func (w *wire) request(ctx context.Context, method, params string) answer {
	w.tb.Helper()
	var p []byte
	if params != "" {
		p = []byte(params)
	}
	id, p, msg := w.compose(method, p)
	raw := w.post(ctx, id, method, p, msg)
	a := answer{strictjson.Get(raw, "result"), strictjson.Get(raw, "error")}
	if (a.result == nil) == (a.err == nil) {
		w.tb.Errorf("%s: no answer: %s", method, raw)
	}
	return a
}

// call calls a tool; arguments "" leaves the member out.
func (w *wire) call(ctx context.Context, tool, arguments string) answer {
	w.tb.Helper()
	return w.request(ctx, "tools/call", callParams(tool, arguments))
}

func callParams(tool, arguments string) string {
	p := `{"name":` + string(strictjson.Quote(tool))
	if arguments != "" {
		p += `,"arguments":` + arguments
	}
	return p + "}"
}

func (w *wire) initialize(ctx context.Context) {
	w.tb.Helper()
	if w.modern {
		return
	}
	a := w.request(ctx, "initialize", `{"protocolVersion":"2025-11-25","capabilities":`+w.caps+`,"clientInfo":{"name":"wire","version":"1"}}`)
	if v, _ := strictjson.Text(strictjson.Get(a.result, "protocolVersion")); v != "2025-11-25" {
		w.tb.Fatalf("initialize: %s %s", a.result, a.err)
	}
	w.tell([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

// incoming handles a message that is not the answer waited for.
func (w *wire) incoming(msg []byte, reply func([]byte)) {
	method, _ := strictjson.Text(strictjson.Get(msg, "method"))
	id, params := strictjson.Get(msg, "id"), strictjson.Get(msg, "params")
	switch {
	case method == "":
	case id == nil:
		w.noted(method, params)
	default:
		out := `"error":{"code":-32601,"message":"nobody"}`
		if w.ask != nil {
			out = `"result":` + w.ask(method, params)
		}
		reply([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,` + out + `}`))
	}
}

// overLines is a client over stdio: the gateway's stdio side runs in a
// goroutine. opts.Session may be set, else the process is the session.
func overLines(ctx context.Context, r *rig, modern bool, opts downstream.StdioOptions) *wire {
	r.tb.Helper()
	w := newWire(r.tb, modern)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served, read := make(chan error, 1), make(chan struct{})
	gw := r.gw
	go func() {
		err := downstream.ServeStdio(context.Background(), gw, inR, outW, opts)
		outW.Close()
		served <- err
	}()
	var mu sync.Mutex
	waiting := map[string]chan []byte{}
	send := func(msg []byte) {
		mu.Lock()
		defer mu.Unlock()
		inW.Write(append(msg, '\n')) // a closed pipe is seen as a missing answer
	}
	var asked sync.WaitGroup
	go func() {
		defer close(read)
		in := bufio.NewReader(outR)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			msg := bytes.TrimSuffix(line, []byte("\n"))
			mu.Lock()
			c := waiting[string(strictjson.Get(msg, "id"))]
			mu.Unlock()
			if c != nil && strictjson.Get(msg, "method") == nil {
				c <- msg
				continue
			}
			asked.Add(1)
			handle := func() { defer asked.Done(); w.incoming(msg, send) }
			if strictjson.Get(msg, "id") == nil {
				handle()
			} else {
				go handle()
			}
		}
	}()
	w.tell = send
	w.post = func(ctx context.Context, id, _ string, _, msg []byte) []byte {
		c := make(chan []byte, 1)
		mu.Lock()
		waiting[id] = c
		mu.Unlock()
		defer func() {
			mu.Lock()
			delete(waiting, id)
			mu.Unlock()
		}()
		send(msg)
		select {
		case raw := <-c:
			return raw
		case <-read:
			return nil
		case <-ctx.Done():
			mu.Lock()
			inW.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + "}}\n"))
			mu.Unlock()
			return nil
		}
	}
	var once sync.Once
	w.close = func() {
		once.Do(func() {
			inW.Close()
			if err := <-served; err != nil {
				r.tb.Errorf("ServeStdio: %v", err)
			}
			<-read
			asked.Wait()
		})
	}
	r.tb.Cleanup(w.close)
	w.initialize(ctx)
	return w
}

// web is how a client reaches the HTTP front.
type web struct {
	path    string // "/mcp" if empty
	session string // Writ-Session or Mcp-Session-Id, "" for none
	bearer  string // who the client is, "" for nobody
	header  http.Header
}

// overHTTP is a client over Streamable HTTP.
func overHTTP(ctx context.Context, r *rig, modern bool, o web) *wire {
	r.tb.Helper()
	w := newWire(r.tb, modern)
	tr := &http.Transport{}
	hc := &http.Client{Transport: tr}
	w.close = tr.CloseIdleConnections
	r.tb.Cleanup(tr.CloseIdleConnections)
	if o.path == "" {
		o.path = "/mcp"
	}
	var mu sync.Mutex
	legacyID := ""
	if !modern {
		legacyID = o.session
	}
	newRequest := func(ctx context.Context, method string, body []byte) *http.Request {
		req, err := http.NewRequestWithContext(ctx, method, r.front.URL+o.path, bytes.NewReader(body))
		if err != nil {
			r.tb.Fatal(err)
		}
		for k, v := range o.header {
			req.Header[k] = v
		}
		if o.bearer != "" {
			req.Header.Set("Authorization", "Bearer "+o.bearer)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		mu.Lock()
		defer mu.Unlock()
		if legacyID != "" {
			req.Header.Set("Mcp-Session-Id", legacyID)
		}
		return req
	}
	reply := func(msg []byte) {
		req := newRequest(ctx, "POST", msg)
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		if resp, err := hc.Do(req); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	w.tell = reply
	w.post = func(ctx context.Context, id, method string, params, msg []byte) []byte {
		req := newRequest(ctx, "POST", msg)
		if modern {
			req.Header.Set("MCP-Protocol-Version", "2026-07-28")
			req.Header.Set("Mcp-Method", method)
			if name := mirrored(method, params); name != "" {
				req.Header.Set("Mcp-Name", name)
			}
			if o.session != "" {
				req.Header.Set("Writ-Session", o.session)
			}
		} else if method != "initialize" {
			req.Header.Set("MCP-Protocol-Version", "2025-11-25")
		}
		resp, err := hc.Do(req)
		if err != nil {
			return nil
		}
		defer resp.Body.Close()
		if sid := resp.Header.Get("Mcp-Session-Id"); sid != "" && !modern {
			mu.Lock()
			legacyID = sid
			mu.Unlock()
		}
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			return w.events(resp.Body, id, reply)
		}
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode >= 400 && strictjson.Get(b, "error") == nil {
			w.tb.Errorf("status %d, body %q", resp.StatusCode, b)
		}
		return b
	}
	w.initialize(ctx)
	return w
}

// events reads a stream until the answer to id stands in it.
func (w *wire) events(body io.Reader, id string, reply func([]byte)) []byte {
	in := bufio.NewReader(body)
	var data []byte
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil
		}
		line = bytes.TrimRight(line, "\r\n")
		if d, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(d, []byte(" "))...)
			continue
		}
		if len(line) > 0 || data == nil {
			continue
		}
		msg := data
		data = nil
		if id != "" && string(strictjson.Get(msg, "id")) == id && strictjson.Get(msg, "method") == nil {
			return msg
		}
		w.incoming(msg, reply)
	}
}

// mirrored is the value of Mcp-Name.
func mirrored(method string, params []byte) string {
	member := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}[method]
	name, _ := strictjson.Text(strictjson.Get(params, member))
	return name
}

// kinds are the four ways a client can come.
var kinds = []struct {
	name         string
	modern, http bool
}{
	{"legacy-stdio", false, false}, {"legacy-http", false, true},
	{"modern-stdio", true, false}, {"modern-http", true, true},
}

// connect opens a client of kind k, in a session of its own.
func (r *rig) connect(ctx context.Context, k int) *wire {
	r.tb.Helper()
	switch {
	case !kinds[k].http:
		return overLines(ctx, r, kinds[k].modern, downstream.StdioOptions{})
	case kinds[k].modern:
		return overHTTP(ctx, r, true, web{session: r.mint()})
	}
	return overHTTP(ctx, r, false, web{})
}

// outcomeOf reads the outcome out of a refusal, of either form.
func outcomeOf(a answer) []byte {
	if a.err != nil {
		return strictjson.Get(a.err, "data")
	}
	return strictjson.Get(strictjson.Get(a.result, "_meta"), "io.github.writ-project/outcome")
}

// get follows members down.
func get(raw []byte, path ...string) []byte {
	for _, p := range path {
		raw = strictjson.Get(raw, p)
	}
	return raw
}

// text is get as a text: of a string its value, else the bytes.
func text(raw []byte, path ...string) string {
	raw = get(raw, path...)
	s, ok := strictjson.Text(raw)
	if !ok && raw != nil {
		return string(raw)
	}
	return s
}

// refusedFor reports reason and pointers of a refusal, "" when it is none.
func refusedFor(a answer) string {
	rej := strictjson.Get(outcomeOf(a), "rejection")
	if rej == nil {
		return ""
	}
	out := text(rej, "reason")
	es, _ := strictjson.Elements(strictjson.Get(rej, "failures"))
	for _, e := range es {
		out += " " + strconv.Quote(text(e, "pointer"))
	}
	return fmt.Sprintf("%s %s", text(rej, "code"), out)
}

// elements are the elements of an array member.
func elements(raw []byte, name string) [][]byte {
	es, _ := strictjson.Elements(strictjson.Get(raw, name))
	return es
}
