package downstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/strictjson"
)

// httpClient is a small MCP client over HTTP that sees the raw answers.
type httpClient struct {
	t       *testing.T
	base    string
	session string
	tr      *http.Transport
}

func newHTTPClient(t *testing.T, addr string) *httpClient {
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &httpClient{t: t, base: "http://" + addr + "/mcp", tr: tr}
}

func (c *httpClient) do(ctx context.Context, method, body string, header ...string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, c.base, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set(headerSession, c.session)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := c.tr.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { a.Body.Close() })
	return a
}

func (c *httpClient) post(body string, header ...string) *http.Response {
	c.t.Helper()
	return c.do(c.t.Context(), "POST", body, header...)
}

func (c *httpClient) greet(caps string) {
	c.t.Helper()
	a := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + caps + `}}`)
	io.Copy(io.Discard, a.Body)
	if c.session = a.Header.Get(headerSession); c.session == "" {
		c.t.Fatal("no session")
	}
}

func (c *httpClient) modern(ctx context.Context, id, method, params string) *http.Response {
	c.t.Helper()
	h := []string{headerVersion, Version20260728, headerMethod, method}
	if n, ok := strictjson.Text(strictjson.Get([]byte("{"+params+`"_":0}`), "name")); ok {
		h = append(h, headerName, n)
	}
	return c.do(ctx, "POST", modernLine(id, method, params), h...)
}

type event struct{ id, data string }

// events reads an event stream one event at a time; comments are skipped.
type events struct{ r *bufio.Reader }

func (e events) next() (event, error) {
	var x event
	for {
		l, err := e.r.ReadString('\n')
		if err != nil {
			return x, err
		}
		l = strings.TrimSuffix(l, "\n")
		switch {
		case l == "" && x.data != "":
			return x, nil
		case strings.HasPrefix(l, "id: "):
			x.id = l[4:]
		case strings.HasPrefix(l, "data: "):
			x.data += l[6:]
		}
	}
}

func (e events) must(t *testing.T) event {
	t.Helper()
	x, err := e.next()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func stream0(a *http.Response) events { return events{bufio.NewReader(a.Body)} }

func body(a *http.Response) string {
	b, _ := io.ReadAll(a.Body)
	return string(b)
}

func TestHTTPAsksInTheStreamOfItsPost(t *testing.T) {
	f := newFake()
	addr := serveHTTP(t, f, Options{})
	c := newHTTPClient(t, addr)
	c.greet(`{"elicitation":{}}`)
	other := newHTTPClient(t, addr)
	other.greet(`{"elicitation":{}}`)
	a := c.post(callLine("1", "ask"))
	s := stream0(a)
	q := s.must(t).data
	id := string(strictjson.Get([]byte(q), "id"))
	answer := `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept"}}`
	// S16, P22: the same answer from another session is nobody's.
	if r := other.post(answer); r.StatusCode != 202 {
		t.Errorf("foreign answer: %d", r.StatusCode)
	}
	if r := f.takeRefused(); len(r) != 1 || r[0].Why != WhyUnasked {
		t.Errorf("refused %v", r)
	}
	if r := c.post(answer); r.StatusCode != 202 {
		t.Errorf("answer: %d", r.StatusCode)
	}
	want(t, s.must(t).data, `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"answer":{"action":"accept"}}}}`)
	if _, err := s.next(); err != io.EOF {
		t.Errorf("the stream goes on: %v", err)
	}
}

func TestHTTPNotAskedWithoutCapability(t *testing.T) {
	c := newHTTPClient(t, serveHTTP(t, newFake(), Options{}))
	c.greet(`{}`)
	want(t, body(c.post(callLine("1", "ask"))), `{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"the client cannot be asked this: it did not declare the capability"}}`)
}

// TestModernDisconnectCancels: on the new wire a client that goes away cancels.
func TestModernDisconnectCancels(t *testing.T) {
	f := newFake()
	c := newHTTPClient(t, serveHTTP(t, f, Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	a := c.modern(ctx, "1", "tools/call", `"name":"stream",`)
	stream0(a).must(t)
	<-f.started
	cancel()
	if err := <-f.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended by %v", err)
	}
}

// TestLegacyDisconnectGoesOn: on the old wire a call goes on to its outcome,
// and the client can come back for it. S06: nobody else can.
func TestLegacyDisconnectGoesOn(t *testing.T) {
	f := newFake()
	addr, h := serveHandler(t, f, Options{})
	c := newHTTPClient(t, addr)
	c.greet(`{}`)
	ctx, cancel := context.WithCancel(t.Context())
	e := stream0(c.do(ctx, "POST", callLine("1", "stream"))).must(t)
	if e.id == "" {
		t.Fatal("no event id")
	}
	<-f.started
	cancel()

	thief := newHTTPClient(t, addr)
	thief.greet(`{}`)
	if a := thief.do(t.Context(), "GET", "", headerLastID, e.id); a.StatusCode != 400 {
		t.Errorf("S06: a foreign event id is answered %d %s", a.StatusCode, body(a))
	}
	for i := range e.id { // S06: no byte of an id can be changed
		if i%5 != 0 {
			continue
		}
		forged := []byte(e.id)
		forged[i] ^= 1
		if a := c.do(t.Context(), "GET", "", headerLastID, string(forged)); a.StatusCode != 400 {
			t.Errorf("S06: a forged event id is answered %d", a.StatusCode)
		}
	}

	a := c.do(t.Context(), "GET", "", headerLastID, e.id)
	if a.StatusCode != 200 {
		t.Fatalf("resume: %d %s", a.StatusCode, body(a))
	}
	close(f.release)
	if err := <-f.ended; err != nil {
		t.Errorf("the call was ended by %v", err)
	}
	s := stream0(a)
	want(t, s.must(t).data, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"released"}]}}`)
	if _, err := s.next(); err != io.EOF {
		t.Errorf("the stream goes on: %v", err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := h.kept.Load(); n > 1 {
		t.Errorf("one answer is kept %d times", n)
	}
}

// TestPanicEnds: net/http recovers a panic of who serves a request, which has to end the process.
func TestPanicEnds(t *testing.T) {
	const child = "WRIT_TEST_PANICS"
	if os.Getenv(child) != "" {
		func() {
			defer func() { recover() }()
			unrecovered(func() { panic("judged by nobody") })
		}()
		fmt.Println("it went on")
		os.Exit(0)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPanicEnds$")
	cmd.Env = append(os.Environ(), child+"=1")
	if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("judged by nobody")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestResumeAfterTheEnd: the outcome waits for its client.
func TestResumeAfterTheEnd(t *testing.T) {
	f := newFake()
	c := newHTTPClient(t, serveHTTP(t, f, Options{}))
	c.greet(`{}`)
	ctx, cancel := context.WithCancel(t.Context())
	e := stream0(c.do(ctx, "POST", callLine("1", "stream"))).must(t)
	<-f.started
	cancel()
	close(f.release)
	<-f.ended
	want(t, stream0(c.do(t.Context(), "GET", "", headerLastID, e.id)).must(t).data,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"released"}]}}`)
}

func TestHTTPCancelled(t *testing.T) {
	f := newFake()
	c := newHTTPClient(t, serveHTTP(t, f, Options{}))
	c.greet(`{}`)
	var all sync.WaitGroup
	all.Go(func() {
		a := c.post(callLine(`"x"`, "wait"))
		if b := body(a); a.StatusCode != 200 || strings.Contains(b, "data:") {
			t.Errorf("a cancelled request is answered %d %s", a.StatusCode, b)
		}
	})
	<-f.started
	// W07: an id in use
	want(t, body(c.post(callLine(`"x"`, "echo"))), `{"jsonrpc":"2.0","id":"x","error":{"code":-32600,"message":"this request id is still in use"}}`)
	c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
	if err := <-f.ended; !errors.Is(err, errCancelled) {
		t.Errorf("ended by %v", err)
	}
	all.Wait()
}

// TestGetStream: notifications of a session, one stream for each connection.
func TestGetStream(t *testing.T) {
	f := newFake()
	f.subbed = make(chan Listener, 2)
	c := newHTTPClient(t, serveHTTP(t, f, Options{}))
	c.greet(`{}`)
	first := stream0(c.do(t.Context(), "GET", ""))
	if l := <-f.subbed; !l.Filter.All || l.Session.PublicID() != "s_1" || l.Version != Version20251125 {
		t.Errorf("listener %+v", l)
	}
	f.tell("notifications/tools/list_changed", "")
	want(t, first.must(t).data, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	second := stream0(c.do(t.Context(), "GET", "")) // replaces the first
	<-f.subbed
	if _, err := first.next(); err != io.EOF {
		t.Errorf("the first stream goes on: %v", err)
	}
	f.tell("notifications/message", `{"level":"info","data":"a\nb"}`)
	want(t, second.must(t).data, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a\nb"}}`)
	if a := c.do(t.Context(), "DELETE", ""); a.StatusCode != 204 {
		t.Errorf("DELETE: %d", a.StatusCode)
	}
	if _, err := second.next(); err != io.EOF {
		t.Errorf("the stream outlives its session: %v", err)
	}
}

// TestKeepAliveEndsClosedSessions: a stream ends when its session does,
// wherever that was closed.
func TestKeepAliveEndsClosedSessions(t *testing.T) {
	f := newFake()
	f.subbed = make(chan Listener, 1)
	c := newHTTPClient(t, serveHTTP(t, f, Options{KeepAlive: time.Millisecond}))
	c.greet(`{}`)
	s := stream0(c.do(t.Context(), "GET", ""))
	l := <-f.subbed
	f.CloseSession(t.Context(), l.Session)
	if _, err := s.next(); err != io.EOF {
		t.Errorf("the stream outlives its session: %v", err)
	}
}

func TestModernListen(t *testing.T) {
	f := newFake()
	addr, h := serveHandler(t, f, Options{})
	c := newHTTPClient(t, addr)
	s := stream0(c.modern(t.Context(), "7", "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourcesListChanged":true},`))
	want(t, s.must(t).data, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"notifications":{"toolsListChanged":true}}}`)
	f.tell("notifications/prompts/list_changed", "")
	f.tell("notifications/resources/list_changed", "") // asked for, not granted
	f.tell("notifications/tools/list_changed", "")
	want(t, s.must(t).data, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`)
	if err := h.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	want(t, s.must(t).data, `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`)
	if a := c.modern(t.Context(), "8", "tools/list", ""); a.StatusCode != 503 {
		t.Errorf("after Shutdown: %d", a.StatusCode)
	}
}

// TestD03D05Caps: streams and sessions have a cap for each principal, and another
// principal is not touched by it.
func TestD03D05Caps(t *testing.T) {
	f := newFake()
	who := func(r *http.Request) (string, bool) { p := r.Header.Get("Authorization"); return p, p != "" }
	addr := serveHTTP(t, f, Options{MaxStreams: 2, MaxConns: 3, MaxOpen: 4, Principal: who})
	c := newHTTPClient(t, addr)
	init := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	done := make(chan string)
	for i := range 5 { // each with a call that is open
		a := c.post(init, "Authorization", "a")
		if ok := a.StatusCode == 200; ok != (i < 3) {
			t.Errorf("D03: initialize %d: %d", i, a.StatusCode)
		}
		if session := a.Header.Get(headerSession); session != "" {
			go func() {
				done <- body(c.post(callLine("1", "wait"), "Authorization", "a", headerSession, session))
			}()
			<-f.started
		}
	}
	if n := f.open(); n != 3 {
		t.Errorf("D03: %d sessions were minted", n)
	}
	close(f.release)
	for range 3 {
		<-done
	}
	listen := func(p string) *http.Response {
		return c.do(t.Context(), "POST", modernLine("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true},`),
			headerVersion, Version20260728, headerMethod, "subscriptions/listen", "Authorization", p)
	}
	for i := range 4 {
		a := listen("a")
		if ok := a.StatusCode == 200; ok != (i < 2) {
			t.Errorf("D05: listen %d: %d", i, a.StatusCode)
		}
		if a.StatusCode == 200 {
			stream0(a).must(t)
		}
	}
	if a := listen("b"); a.StatusCode != 200 {
		t.Errorf("another principal: %d", a.StatusCode)
	}
	if a := c.post(init, "Authorization", "b"); a.StatusCode != 200 {
		t.Errorf("another principal: %d", a.StatusCode)
	}
	if a := c.post(init); a.StatusCode != 401 {
		t.Errorf("nobody: %d", a.StatusCode)
	}
}

// TestS05SessionOfAnotherPrincipal: the id alone is not enough where there are
// principals.
func TestS05SessionOfAnotherPrincipal(t *testing.T) {
	f := newFake()
	who := func(r *http.Request) (string, bool) { return r.Header.Get("Authorization"), true }
	c := newHTTPClient(t, serveHTTP(t, f, Options{Principal: who}))
	a := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`, "Authorization", "a")
	c.session = a.Header.Get(headerSession)
	for _, m := range []string{"POST", "GET", "DELETE"} {
		if a := c.do(t.Context(), m, callLine("1", "who"), "Authorization", "b"); a.StatusCode != 404 {
			t.Errorf("%s with another's session: %d", m, a.StatusCode)
		}
	}
	r := f.takeRefused()
	if len(r) != 3 || r[0].Why != WhySession || r[0].Session != "" {
		t.Errorf("refused %+v", r)
	}
	want(t, body(c.post(callLine("1", "who"), "Authorization", "a")), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a s_1 2025-11-25 "}]}}`)
}

// TestS16NoCrossing: many clients with the same ids, each gets its own answers.
func TestS16NoCrossing(t *testing.T) {
	addr := serveHTTP(t, newFake(), Options{})
	var all sync.WaitGroup
	for i := range 20 {
		c := newHTTPClient(t, addr)
		c.greet(`{}`)
		all.Go(func() {
			for n := range 50 {
				token := fmt.Sprintf("%d-%d", i, n)
				a := c.post(`{"jsonrpc":"2.0","id":` + fmt.Sprint(n) + `,"method":"tools/call","params":{"name":"echo","arguments":{"t":"` + token + `"}}}`)
				if b := body(a); !strings.Contains(b, `{"t":"`+token+`"}`) || !strings.Contains(b, fmt.Sprintf(`"id":%d,`, n)) {
					t.Errorf("client %d call %d got %s", i, n, b)
				}
			}
		})
	}
	all.Wait()
}

// TestStreamBounds: a stream bounds what waits for its reader.
func TestStreamBounds(t *testing.T) {
	s := newStream(false, false)
	r, _ := s.attach(-1)
	for i := range streamWaiting {
		if err := s.send(t.Context(), []byte("m")); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	blocked, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.send(blocked, []byte("m")); !errors.Is(err, context.Canceled) {
		t.Errorf("a full stream takes more: %v", err)
	}
	_, n, _, _, _ := s.next(r)
	s.sent(r, n, true)
	if err := s.send(t.Context(), []byte("m")); err != nil {
		t.Error(err)
	}
	s.detach(r)
	if err := s.send(t.Context(), []byte("m")); !errors.Is(err, errOver) {
		t.Errorf("a stream nobody can resume takes more: %v", err)
	}
	if s.bytes != 0 || len(s.msgs) != 0 {
		t.Error("it keeps messages")
	}
}

func TestShutdownCancelsWhatDoesNotEnd(t *testing.T) {
	f := newFake()
	addr, h := serveHandler(t, f, Options{})
	c := newHTTPClient(t, addr)
	c.greet(`{}`)
	var all sync.WaitGroup
	all.Go(func() { body(c.post(callLine("1", "wait"))) })
	<-f.started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-f.ended; err == nil {
		t.Error("the call was not cancelled")
	}
	all.Wait()
}
