package downstream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/strictjson"
)

// These are the bounds that keep one client from shutting out the others: who has to make
// room for whom, who never has to, and what the one who is refused is told (D01, D03, D05).

// TestD01WhoseConnectionIsClosed: the connection that waited longest for a request is closed
// for a new one, then the one whose request is incomplete; one that is served never is.
func TestD01WhoseConnectionIsClosed(t *testing.T) {
	const idle, serving, fresh = http.StateIdle, http.StateActive, http.StateNew
	for name, c := range map[string]struct {
		now  []http.ConnState // of the connections there are, in the order in which they came to it
		gone int              // which one the next closes
	}{
		"room":                  {[]http.ConnState{idle, idle}, -1},
		"idle, the oldest":      {[]http.ConnState{serving, idle, idle}, 1},
		"idle before the older": {[]http.ConnState{fresh, fresh, idle}, 2},
		"incomplete":            {[]http.ConnState{serving, fresh, fresh}, 1},
		"the new one":           {[]http.ConnState{serving, serving, serving}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSockets(3, 1)
			var ours, theirs []net.Conn
			add := func() {
				a, b := net.Pipe()
				t.Cleanup(func() { a.Close(); b.Close() })
				ours, theirs = append(ours, a), append(theirs, b)
				s.changed(a, fresh)
			}
			for i, now := range c.now {
				add()
				if now != fresh {
					s.changed(ours[i], serving)
				}
				if now == idle {
					s.changed(ours[i], idle)
				}
			}
			add()
			if c.gone >= 0 {
				if _, err := theirs[c.gone].Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("it is not closed: %v", err)
				}
			}
			for i, conn := range ours {
				if gone := s.all[conn].gone; gone != (i == c.gone) {
					t.Errorf("connection %d: gone is %v", i, gone)
				}
				s.changed(conn, http.StateClosed)
			}
			if s.open != 0 || s.serving != 0 || len(s.all) != 0 {
				t.Errorf("%d, %d and %d are left", s.open, s.serving, len(s.all))
			}
		})
	}
}

// TestD01NewestWaitsLeast: a connection of which the server has told the context and not yet the
// state is none that has waited longest, whatever it is told of another one meanwhile.
func TestD01NewestWaitsLeast(t *testing.T) {
	s := newSockets(2, 1)
	srv := &http.Server{}
	s.watch(srv)
	var all []net.Conn
	for range 3 {
		a, b := net.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		srv.ConnContext(t.Context(), a)
		all = append(all, a)
		if len(all) < 3 {
			srv.ConnState(a, http.StateNew)
		}
	}
	srv.ConnState(all[1], http.StateNew)
	for i, conn := range all {
		if gone := s.all[conn].gone; gone != (i == 0) {
			t.Errorf("connection %d: gone is %v", i, gone)
		}
	}
}

// TestD01NoRoomForConnections: a request that came on a connection as that was closed is
// not acted on; the last connections are for telling that there is no room.
func TestD01NoRoomForConnections(t *testing.T) {
	s := newSockets(3, 1)
	srv := &http.Server{}
	s.watch(srv)
	var contexts []context.Context
	for range 3 {
		a, b := net.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		contexts = append(contexts, srv.ConnContext(t.Context(), a))
		srv.ConnState(a, http.StateNew)
		srv.ConnState(a, http.StateActive)
	}
	f := newFake()
	h := NewHTTP(f, Options{})
	defer h.Shutdown(t.Context())
	initialize := func(ctx context.Context) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`))
		r.RequestURI = "/mcp"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	w := initialize(contexts[2])
	want(t, w.Body.String(), `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"too many connections have a request under way; try again later"}}`)
	if w.Code != 503 || w.Header().Get("Retry-After") == "" || w.Header().Get("Connection") != "close" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	s.max = 4
	if w := initialize(contexts[0]); w.Code != 200 {
		t.Errorf("with room: %d %s", w.Code, w.Body)
	}
	contexts[0].Value(socketKey{}).(*socket).gone = true
	if w := initialize(contexts[0]); w.Code != 503 || f.opened != 1 {
		t.Errorf("a request of a closed connection: %d, %d sessions", w.Code, f.opened)
	}
}

// TestD01HeldConnections: whoever opens connections and holds them does not keep out who
// comes after.
func TestD01HeldConnections(t *testing.T) {
	for name, held := range map[string]string{
		"idle":             "",
		"idle after one":   "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"half a header":    "POST /mcp HTTP/1.1\r\nHost: loc",
		"half of a second": "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /mcp HTT",
		"a body elsewhere": "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHTTP(newFake(), Options{})
			bound := newSockets(8, 1)
			s := &httptest.Server{Config: newServer(h, bound, unhurried)}
			var err error
			if s.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			s.Start()
			t.Cleanup(func() { h.Shutdown(t.Context()); s.Close() })
			addr := s.Listener.Addr().String()
			for i := range 16 {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := io.WriteString(c, held); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(held, "GET") {
					if a, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || a.StatusCode != 404 {
						t.Fatalf("connection %d: %v %v", i, a, err)
					}
				}
			}
			c := newHTTPClient(t, addr)
			c.greet(`{}`)
			want(t, body(c.post(callLine("1", "echo"))), `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":null}}`)
			bound.mu.Lock()
			defer bound.mu.Unlock()
			if bound.open > bound.max {
				t.Errorf("%d connections are open", bound.open)
			}
		})
	}
}

const halfBody = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 100\r\n\r\n{"

// TestD01HalfBodies: a body that does not come makes room for the next, is answered in
// words, and its connection ends; who sends his whole is served beside them.
func TestD01HalfBodies(t *testing.T) {
	addr := serveHTTP(t, newFake(), Options{MaxBodies: 2})
	var held []net.Conn
	for range 5 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, halfBody)
		held = append(held, c)
	}
	answers := make(chan string)
	for _, c := range held {
		go func() {
			b, _ := io.ReadAll(c) // to the end of the connection
			answers <- string(b)
		}()
	}
	refused := func() {
		if a := <-answers; !strings.HasPrefix(a, "HTTP/1.1 503 ") || !strings.Contains(a, "Retry-After: 1\r\n") ||
			!strings.HasSuffix(a, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"too many requests were being sent at once, and this one had been for longest; send it again, whole"}}`) {
			t.Errorf("a half body is answered %s", a)
		}
	}
	for range 3 {
		refused()
	}
	c := newHTTPClient(t, addr)
	c.greet(`{}`)
	refused()
	want(t, body(c.post(callLine("1", "echo"))), `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":null}}`)
	for _, c := range held {
		c.Close()
	}
	<-answers
}

// TestD01SlowBodyEnds: the connection of a body that did not come in time ends with its
// answer. What is left of the body is not waited for.
func TestD01SlowBodyEnds(t *testing.T) {
	addr, _ := servePaced(t, newFake(), Options{}, pace{sends: time.Millisecond, rest: time.Second, piece: hangs})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, halfBody)
	if b, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 408 ") {
		t.Errorf("%v %s", err, b)
	}
}

const (
	aboutSession  = "too many requests of this session are open; try again when one of them has ended"
	aboutSessions = "too many requests of all sessions together are open; try again later"
)

// TestD03OneSessionOfMany: a session has a quarter of what may be open, and the last quarter
// is left to sessions that have nothing open. Nothing that is open is ended for it.
func TestD03OneSessionOfMany(t *testing.T) {
	f := newFake()
	addr := serveHTTP(t, f, Options{MaxOpen: 8})
	clients := map[string]*httpClient{}
	done := make(chan string)
	open := 0
	for i, step := range []struct{ session, refused string }{
		{"a", ""}, {"a", ""}, {"a", aboutSession}, // its quarter
		{"b", ""}, {"b", ""}, {"c", ""}, {"c", ""}, {"c", aboutSession},
		{"d", ""}, {"d", aboutSessions}, {"a", aboutSession}, // the last quarter
		{"e", ""}, {"f", aboutSessions},
	} {
		c := clients[step.session]
		if c == nil {
			c = newHTTPClient(t, addr)
			c.greet(`{}`)
			clients[step.session] = c
		}
		line := callLine(fmt.Sprint(i), "wait")
		if step.refused == "" {
			go func() { done <- body(c.post(line)) }()
			<-f.started
			open++
			continue
		}
		a := c.post(line)
		want(t, body(a), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"%s"}}`, i, step.refused))
		if a.StatusCode != 429 || a.Header.Get("Retry-After") == "" {
			t.Errorf("step %d: %d %v", i, a.StatusCode, a.Header)
		}
	}
	close(f.release)
	for range open {
		if b := <-done; !strings.Contains(b, "released") {
			t.Errorf("a call under way was answered %s", b)
		}
	}
}

// TestD03BatchCounts: a batch counts as many as there are in it.
func TestD03BatchCounts(t *testing.T) {
	f := newFake()
	c := newHTTPClient(t, serveHTTP(t, f, Options{MaxOpen: 16}))
	a := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}`)
	c.session = a.Header.Get(headerSession)
	done := make(chan string)
	go func() { done <- body(c.post("[" + callLine("1", "wait") + "," + callLine("2", "wait") + "]")) }()
	<-f.started
	<-f.started
	lines := "[" + callLine("3", "echo") + "," + callLine("4", "echo") + "," + callLine("5", "echo") + "]"
	want(t, body(c.post(lines)), `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"`+aboutSession+`"}}`)
	close(f.release)
	<-done
	if b := body(c.post(lines)); !strings.Contains(b, `"id":5,"result"`) {
		t.Errorf("with room: %s", b)
	}
}

// slowWriter is a client that does not read.
type slowWriter struct {
	*httptest.ResponseRecorder
	writing, read chan struct{}
}

func (w slowWriter) Write(b []byte) (int, error) {
	close(w.writing)
	<-w.read
	return w.ResponseRecorder.Write(b)
}

// TestD01SlowReaderKeepsItsPlace: an answer that is being written counts as open.
func TestD01SlowReaderKeepsItsPlace(t *testing.T) {
	f := newFake()
	f.mint("secret", Loopback)
	h := NewHTTP(f, Options{MaxOpen: 4})
	defer h.Shutdown(t.Context())
	call := func(w http.ResponseWriter) {
		r := httptest.NewRequest("POST", "http://localhost/mcp/s/secret", strings.NewReader(callLine("1", "echo")))
		r.RequestURI = r.URL.Path
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json")
		h.ServeHTTP(w, r)
	}
	slow := slowWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	done := make(chan struct{})
	go func() { call(slow); close(done) }()
	<-slow.writing
	w := httptest.NewRecorder()
	if call(w); w.Code != 429 {
		t.Errorf("beside it: %d %s", w.Code, w.Body)
	}
	close(slow.read)
	<-done
	w = httptest.NewRecorder()
	if call(w); w.Code != 200 {
		t.Errorf("after it: %d %s", w.Code, w.Body)
	}
}

// TestD05StreamsGiveWay: a session that has no stream gets one, in place of the oldest of
// the session that has most; a session does not get more than its quarter.
func TestD05StreamsGiveWay(t *testing.T) {
	f := newFake()
	addr := serveHTTP(t, f, Options{MaxStreams: 8})
	for _, s := range []string{"a", "b", "c", "d", "e", "f"} {
		f.mint(s, Loopback)
	}
	listen := func(session string) (*http.Response, events) {
		c := newHTTPClient(t, addr)
		a := c.do(t.Context(), "POST", modernLine("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true},`),
			headerVersion, Version20260728, headerMethod, "subscriptions/listen", HeaderSession, session)
		s := stream0(a)
		if a.StatusCode == 200 {
			s.must(t) // acknowledged
		}
		return a, s
	}
	ends := func(s events) {
		t.Helper()
		want(t, s.must(t).data, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`)
	}
	streams := map[string][]events{}
	for _, s := range []string{"a", "b", "b", "c", "c", "d"} {
		_, e := listen(s)
		streams[s] = append(streams[s], e)
	}
	if a, _ := listen("b"); a.StatusCode != 429 || !strings.Contains(body(a), "too many streams of this session are open") {
		t.Errorf("a third stream of one session: %d", a.StatusCode)
	}
	if a, _ := listen("d"); a.StatusCode != 429 || a.Header.Get("Retry-After") == "" {
		t.Errorf("a second stream in the last quarter: %d", a.StatusCode)
	}
	listen("e")
	_, sixth := listen("f")
	f.mint("g", Loopback)
	f.mint("h", Loopback)
	listen("g")
	ends(streams["b"][0])
	listen("h")
	ends(streams["c"][0])
	f.tell("notifications/tools/list_changed", "") // the others go on
	for _, e := range []events{streams["a"][0], streams["b"][1], streams["c"][1], streams["d"][0], sixth} {
		if d := e.must(t).data; !strings.Contains(d, "list_changed") {
			t.Errorf("got %s", d)
		}
	}
}

// TestD03ColdSessionsGiveWay: of the legacy clients that are remembered, the one that was
// heard of longest ago is forgotten for a new one, unless something of it is open. Its
// session goes on.
func TestD03ColdSessionsGiveWay(t *testing.T) {
	f := newFake()
	addr := serveHTTP(t, f, Options{MaxConns: 3})
	greet := func() *httpClient {
		c := newHTTPClient(t, addr)
		c.greet(`{"elicitation":{}}`)
		return c
	}
	busy, used, cold := greet(), greet(), greet()
	done := make(chan string)
	go func() { done <- body(busy.post(callLine("1", "wait"))) }()
	<-f.started
	body(used.post(callLine("1", "echo")))
	greet() // in place of cold
	asks := func(c *httpClient) bool {
		a := c.post(callLine("2", "ask"))
		if a.Header.Get("Content-Type") == "application/json" {
			return false // an error, alone
		}
		s := stream0(a)
		q := []byte(s.must(t).data)
		c.post(`{"jsonrpc":"2.0","id":` + string(strictjson.Get(q, "id")) + `,"result":{"action":"accept"}}`)
		s.must(t)
		return true
	}
	if !asks(used) {
		t.Error("a client that was heard of later was forgotten")
	}
	if asks(cold) {
		t.Error("the client that was heard of longest ago is remembered")
	}
	if a := cold.post(callLine("1", "who")); a.StatusCode != 200 || !strings.Contains(body(a), "s_3") {
		t.Errorf("a forgotten client is answered %d", a.StatusCode)
	}
	close(f.release)
	if b := <-done; !strings.Contains(b, "released") {
		t.Errorf("the call under way was answered %s", b)
	}
}
