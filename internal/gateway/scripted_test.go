package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// scripted is a server written on the level of bytes: it keeps what it was
// sent and answers with exactly what the test gave it.
type scripted struct {
	tb     testing.TB
	name   string
	modern bool

	mu      sync.Mutex
	lists   map[string]string // list method to result
	replies []string          // `"result":…` or `"error":…`, for what is no list
	got     []received
	asked   map[string]int // how often each list was asked for
	streams map[int]func(msg string)
	nextID  int
	conns   map[net.Conn]bool
	asks    map[string]chan string                    // answers waited for, by id
	gone    chan struct{}                             // closed when the test ends
	opened  chan struct{}                             // closed at the next stream, when somebody waits
	ended   chan struct{}                             // one for each child process that ended
	during  func(got received, tell func(msg string)) // runs before a reply
	listing func(method string)                       // runs before a list is answered
}

// received is one request that is no list and no handshake.
type received struct {
	method string
	params []byte // as they came
	header http.Header
}

func newScripted(tb testing.TB, name string, modern bool) *scripted {
	s := &scripted{tb: tb, name: name, modern: modern, lists: map[string]string{}, asked: map[string]int{}, streams: map[int]func(string){}, conns: map[net.Conn]bool{},
		asks: map[string]chan string{}, gone: make(chan struct{}), ended: make(chan struct{}, 1000)}
	tb.Cleanup(func() { s.leave() })
	return s
}

// leave ends whatever waits.
func (s *scripted) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gone:
	default:
		close(s.gone)
	}
}

// config starts the server over HTTP or stdio and returns how to reach it.
func (s *scripted) config(overHTTP bool) upstream.Config {
	c := upstream.Config{Name: s.name, Era: upstream.Legacy}
	if s.modern {
		c.Era = upstream.Modern
	}
	if overHTTP {
		ts := httptest.NewServer(s)
		s.tb.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
		c.URL = ts.URL + "/mcp"
	} else {
		c.Command, c.Env = overStdio(s.tb, s.lines)
	}
	return c
}

func (s *scripted) list(method, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[method] = result
}

func (s *scripted) reply(raw string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, raw)
}

// take returns and forgets what arrived.
func (s *scripted) take() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

func (s *scripted) listed(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[method]
}

// tell sends a notification on every stream that is open for such.
func (s *scripted) tell(msg string) {
	s.mu.Lock()
	var to []func(string)
	for _, f := range s.streams {
		to = append(to, f)
	}
	s.mu.Unlock()
	for _, f := range to {
		f(msg)
	}
}

func (s *scripted) stream(f func(string)) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID++
	id := s.nextID
	s.streams[id] = f
	if s.opened != nil {
		close(s.opened)
		s.opened = nil
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, id)
	}
}

func (s *scripted) capabilities() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	caps := `{"tools":{"listChanged":true},"logging":{}`
	if s.lists["resources/list"] != "" || s.lists["resources/templates/list"] != "" {
		caps += `,"resources":{"subscribe":true,"listChanged":true}`
	}
	if s.lists["prompts/list"] != "" {
		caps += `,"prompts":{"listChanged":true},"completions":{}`
	}
	return caps + "}"
}

// serve answers one message; tell sends others in its stream. "" is no answer.
func (s *scripted) serve(msg []byte, header http.Header, tell func(string)) string {
	id, method := string(strictjson.Get(msg, "id")), text(msg, "method")
	params := bytes.Clone(strictjson.Get(msg, "params"))
	if id != "" && method == "" {
		s.mu.Lock()
		if c := s.asks[id]; c != nil {
			delete(s.asks, id)
			c <- string(orBytes(strictjson.Get(msg, "result"), strictjson.Get(msg, "error")))
		}
		s.mu.Unlock()
	}
	if id == "" || method == "" {
		return ""
	}
	out := ""
	switch method {
	case "server/discover":
		out = `"error":{"code":-32601,"message":"Method not found"}`
		if s.modern {
			out = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + s.capabilities() +
				`,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"scripted","version":"1"}}}`
		}
	case "initialize":
		out = `"result":{"protocolVersion":"2025-11-25","capabilities":` + s.capabilities() + `,"serverInfo":{"name":"scripted","version":"1"}}`
	case "ping":
		out = `"result":{}`
	default:
		s.mu.Lock()
		list, ok := s.lists[method]
		if ok {
			s.asked[method]++
			listing := s.listing
			s.mu.Unlock()
			if listing != nil {
				listing(method)
				s.mu.Lock()
				list = s.lists[method]
				s.mu.Unlock()
			}
			out = `"result":` + list
			break
		}
		got := received{method: method, params: params, header: header}
		s.got = append(s.got, got)
		during := s.during
		s.mu.Unlock()
		if during != nil {
			during(got, tell)
		}
		s.mu.Lock()
		out = `"error":{"code":-32601,"message":"not scripted"}`
		if len(s.replies) > 0 {
			out, s.replies = s.replies[0], s.replies[1:]
		}
		s.mu.Unlock()
	}
	return `{"jsonrpc":"2.0","id":` + id + `,` + out + `}`
}

// lines serves one child process.
func (s *scripted) lines(c net.Conn) {
	var mu sync.Mutex
	write := func(msg string) {
		mu.Lock()
		defer mu.Unlock()
		io.WriteString(c, msg+"\n")
	}
	defer func() { s.ended <- struct{}{} }()
	defer s.stream(write)()
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	in := bufio.NewReaderSize(c, 1<<16)
	var open sync.WaitGroup
	defer open.Wait()
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		line = bytes.TrimSpace(line)
		if text(line, "method") == "subscriptions/listen" {
			write(acknowledged(line))
			continue
		}
		open.Add(1)
		go func() {
			defer open.Done()
			if out := s.serve(line, nil, write); out != "" {
				write(out)
			}
		}()
	}
}

func acknowledged(listen []byte) string {
	return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":` +
		string(strictjson.Get(strictjson.Get(listen, "params"), "notifications")) +
		`,"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(strictjson.Get(listen, "id")) + `}}}`
}

// ServeHTTP serves Streamable HTTP.
func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	listen := r.Method == "GET" || text(body, "method") == "subscriptions/listen"
	switch {
	case r.Method == "DELETE":
		w.WriteHeader(http.StatusOK)
	case listen:
		var mu sync.Mutex
		w.Header().Set("Content-Type", "text/event-stream")
		ended := false
		write := func(msg string) {
			mu.Lock()
			defer mu.Unlock()
			if !ended {
				fmt.Fprintf(w, "data: %s\n\n", msg)
				w.(http.Flusher).Flush()
			}
		}
		mu.Lock()
		w.(http.Flusher).Flush()
		mu.Unlock()
		leave := s.stream(func(msg string) {
			if r.Method == "POST" { // which listener a notification belongs to
				msg = string(strictjson.Set([]byte(msg), "params", strictjson.Set(orEmpty(strictjson.Get([]byte(msg), "params")), "_meta",
					[]byte(`{"io.modelcontextprotocol/subscriptionId":`+string(strictjson.Get(body, "id"))+`}`))))
			}
			write(msg)
		})
		if r.Method == "POST" {
			write(acknowledged(body))
		}
		<-r.Context().Done()
		leave()
		mu.Lock()
		ended = true
		mu.Unlock()
	default:
		var mu sync.Mutex
		streaming := false
		out := s.serve(body, r.Header.Clone(), func(msg string) {
			mu.Lock()
			defer mu.Unlock()
			if !streaming {
				streaming = true
				w.Header().Set("Content-Type", "text/event-stream")
			}
			fmt.Fprintf(w, "data: %s\n\n", msg)
			w.(http.Flusher).Flush()
		})
		switch {
		case out == "":
			w.WriteHeader(http.StatusAccepted)
		case streaming:
			fmt.Fprintf(w, "data: %s\n\n", out)
		default:
			w.Header().Set("Content-Type", "application/json")
			if text(body, "method") == "initialize" {
				w.Header().Set("Mcp-Session-Id", "scripted-1")
			}
			io.WriteString(w, out)
		}
	}
}

func orBytes(raw, other []byte) []byte {
	if raw == nil {
		return other
	}
	return raw
}

func orEmpty(raw []byte) []byte {
	if raw == nil {
		return []byte("{}")
	}
	return raw
}

// awaitStream waits until the gateway listens for notifications, and has counted
// that it began to.
func (s *scripted) awaitStream(ctx context.Context) {
	s.tb.Helper()
	for {
		s.mu.Lock()
		n := len(s.streams)
		if n == 0 && s.opened == nil {
			s.opened = make(chan struct{})
		}
		opened := s.opened
		s.mu.Unlock()
		if n > 0 {
			s.heard()
			return
		}
		select {
		case <-opened:
		case <-ctx.Done():
			s.tb.Fatal("the gateway does not listen")
		}
	}
}

// heard waits until the gateway has read what was told: it answers in order.
func (s *scripted) heard() {
	s.tb.Helper()
	if got := s.ask(`"ping"`, `{}`, s.tell); got == "no answer" {
		s.tb.Error("the gateway does not read what it is told")
	}
}

// hangUp ends every child process.
func (s *scripted) hangUp() {
	s.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
		delete(s.conns, c)
	}
}

// itemPolicy and itemTools are of a scripted server that lists and deletes.
const (
	itemPolicy = `
pins: optional
collections: { item: { closed: true } }
tools:
  toy/list_items: { effect: read, outputs: [{ at: /items/*/id, label: system, collection: item, authoritative: true }] }
  toy/delete_item: { effect: write, args: { /id: { role: selector, collection: item, from: [output] } } }
`
	itemTools = `{"tools":[{"name":"list_items","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},` +
		`{"name":"delete_item","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}]}`
	itemList = `"result":{"content":[],"structuredContent":{"items":[{"id":"item-17"}]}}`
)

// answerWith puts a reply in front of all others.
func (s *scripted) answerWith(raw string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append([]string{raw}, s.replies...)
}
