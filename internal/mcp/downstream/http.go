package downstream

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// Loopback is the principal of a request when Options.Principal is nil.
const Loopback = "loopback"

// Options configures NewHTTP. The zero value serves loopback.
type Options struct {
	// Principal authenticates a request; false is answered 401. If nil every
	// request is Loopback. It must not keep the request.
	Principal func(*http.Request) (string, bool)
	// MaxOpen, MaxStreams and MaxConns bound, for each principal, open
	// requests, listening streams, and legacy connections that are remembered
	// (D03, D05); 256, 128 and 1000 if 0. Of the first two a session has a quarter.
	MaxOpen, MaxStreams, MaxConns int
	// MaxBodies bounds the bodies that are being read, of all clients; 64 if 0.
	MaxBodies int
	// KeepAlive is the time between comments on a silent stream; 25 s if 0.
	KeepAlive time.Duration
	// Patience bounds the wait for a person's answer; 10 minutes if 0.
	Patience time.Duration
	// Resume is how long an answer waits for a client that went away; 5 minutes
	// if 0.
	Resume time.Duration
	// Refused, unless nil, is told of each message that was refused or dropped.
	Refused Hook
}

func (o *Options) fill() {
	if o.Principal == nil {
		o.Principal = func(*http.Request) (string, bool) { return Loopback, true }
	}
	o.MaxOpen = cmp.Or(o.MaxOpen, 256)
	o.MaxStreams = cmp.Or(o.MaxStreams, 128)
	o.MaxConns = cmp.Or(o.MaxConns, 1000)
	o.MaxBodies = cmp.Or(o.MaxBodies, 64)
	o.KeepAlive = cmp.Or(o.KeepAlive, 25*time.Second)
	o.Patience = cmp.Or(o.Patience, 10*time.Minute)
	o.Resume = cmp.Or(o.Resume, 5*time.Minute)
}

// HTTP is the Streamable HTTP side, for both wires: MCP at /mcp, and at
// /mcp/s/<secret> in the session of that secret.
//
// A legacy client opens a session with initialize and carries it in
// Mcp-Session-Id. At a session's endpoint (or with Writ-Session) initialize
// opens only a connection, whose Mcp-Session-Id names its version and
// capabilities; requests without one are served too, by the version header. A
// second GET on one connection replaces the first. An answer whose client went
// away can be fetched with Last-Event-ID for Options.Resume, once an event of
// it was seen; the GET stream itself is not replayed.
type HTTP struct {
	router Router
	o      Options
	key    []byte // of event ids
	ctx    context.Context
	stop   context.CancelFunc
	done   chan struct{} // closed: no new work, streams end
	work   sync.WaitGroup
	bodies bodies

	kept atomic.Int64 // streams that wait for a client to come back

	mu        sync.Mutex // guards the rest
	closing   bool
	conns     map[string]*conn
	requests  *quota       // running requests, with or without their client, and answers being written
	streams   *quota       // listening streams, and those that fetch the rest of an answer
	listeners []*listening // the oldest first
}

// NewHTTP returns the handler. Shutdown ends it.
func NewHTTP(r Router, o Options) *HTTP {
	o.fill()
	h := &HTTP{
		router: r, o: o, key: make([]byte, 32), done: make(chan struct{}),
		conns:    map[string]*conn{},
		requests: newQuota(o.MaxOpen, noRequests, noRequestsHere), streams: newQuota(o.MaxStreams, noStreams, noStreamsHere),
	}
	rand.Read(h.key)
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// NewServer returns a server for h with bounds on connections, header fields and
// slow clients (D01): on the reading of a request with its body, and on each piece of an
// answer. Streams may be long, so there is no bound on a whole answer. After a request whose
// body came in chunks its connection ends, whichever handler answered (W12).
func NewServer(h http.Handler) *http.Server {
	return newServer(h, newSockets(maxSockets, spareSockets), unhurried)
}

func newServer(h http.Handler, bound *sockets, p pace) *http.Server {
	srv := &http.Server{
		Handler:           p.of(h),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12},
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 100},
		ErrorLog:          log.New(io.Discard, "", 0), // its lines quote clients

		DisableGeneralOptionsHandler: true,
	}
	bound.watch(srv)
	return srv
}

// Shutdown refuses new requests, ends listening streams, and waits for open
// requests until ctx is done; then it cancels them. Call it beside
// http.Server.Shutdown, which waits for the streams to end.
func (h *HTTP) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	if !h.closing {
		h.closing = true
		close(h.done)
	}
	h.mu.Unlock()
	idle := make(chan struct{})
	go func() { h.work.Wait(); close(idle) }()
	defer h.stop()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Guard puts the checks of host, origin and header fields before another
// handler of the same server, such as a console or a health page (S01).
func (h *HTTP) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bad := guard(r); bad != nil {
			h.refuse(w, nil, nil, bad)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopback are the names that a Host header may have (S01).
var loopback = []string{"localhost", "127.0.0.1", "[::1]"}

func guard(r *http.Request) *refused {
	switch {
	case !strings.HasPrefix(r.RequestURI, "/") || r.Method == http.MethodConnect:
		return noTarget
	case !hostAllowed(r.Host, loopback):
		return noHost
	}
	if bad := checkHeaders(r.Header); bad != nil {
		return bad
	}
	if !originAllowed(r, r.TLS != nil) {
		return noOrigin
	}
	return nil
}

// ServeHTTP serves /mcp and /mcp/s/<secret>; any other path is 404.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{h: h, w: w, r: r}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if bad := x.serve(); bad != nil {
		h.refuse(w, x.session, x.id, bad)
	}
}

// refuse answers with a JSON-RPC error as the body, whatever was refused.
func (h *HTTP) refuse(w http.ResponseWriter, s Session, id []byte, bad *refused) {
	h.o.Refused.told(bad, s)
	if bad.allow != "" {
		w.Header().Set("Allow", bad.allow)
	}
	if bad.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if bad.status == 429 || bad.status == 503 {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, bad.status, rpc.ErrorResponse(id, bad.err))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}

// exchange is one HTTP exchange on its way through the checks.
type exchange struct {
	h *HTTP
	w http.ResponseWriter
	r *http.Request

	principal string
	given     Session // by endpoint or Writ-Session
	secret    string  // its, or the one of Mcp-Session-Id
	session   Session // resolved; for the report
	carried   bool
	version   string // of the header
	id        []byte // of the JSON-RPC request, for the error
	json, sse bool   // accepted answers
}

func (x *exchange) serve() *refused {
	h, r := x.h, x.r
	if !admitted(r) {
		x.w.Header().Set("Connection", "close")
		return noSockets
	}
	if bad := guard(r); bad != nil {
		return bad
	}
	endpoint, ok := route(r.URL.EscapedPath())
	if !ok {
		return noPath
	}
	if x.principal, ok = h.o.Principal(r); !ok {
		return noPrincipal
	}
	select {
	case <-h.done:
		return noClosing
	default:
	}
	if bad := x.carriers(endpoint); bad != nil {
		return bad
	}
	x.version = r.Header.Get(headerVersion)
	_, stated := r.Header[headerVersion]
	x.json, x.sse = accepts(r.Header)
	switch r.Method {
	case http.MethodPost:
		return x.post(stated)
	case http.MethodGet, http.MethodDelete:
		switch {
		case x.version == Version20260728:
			return noAllowed("POST")
		case stated && !isLegacy(x.version):
			return noVersion(x.version)
		case r.Method == http.MethodGet:
			return x.get()
		}
		return x.delete()
	}
	return noAllowed("GET, POST, DELETE")
}

// route returns the secret of a session's endpoint, "" for /mcp itself.
func route(path string) (secret string, ok bool) {
	if path == "/mcp" {
		return "", true
	}
	secret, ok = strings.CutPrefix(path, "/mcp/s/")
	return secret, ok && plainSecret(secret)
}

// plainSecret is the form of what a Router mints; anything else cannot be one.
func plainSecret(s string) bool { return s != "" && plain(s, 256, ".-_~") }

// carriers finds the session an endpoint or Writ-Session names. Both may, if
// they agree.
func (x *exchange) carriers(endpoint string) *refused {
	x.secret = endpoint
	if v, ok := x.r.Header[HeaderSession]; ok {
		if endpoint != "" && subtle.ConstantTimeCompare([]byte(v[0]), []byte(endpoint)) != 1 || !plainSecret(v[0]) {
			return noSession
		}
		x.secret = v[0]
	}
	if x.secret == "" {
		return nil
	}
	s, no := x.findSession(x.secret)
	if no != nil {
		return no
	}
	x.given, x.session, x.carried = s, s, true
	return nil
}

// post reads the body whole, then gives the message to its wire.
func (x *exchange) post(stated bool) *refused {
	h, r := x.h, x.r
	switch {
	case !jsonContent(r.Header):
		return noContentType
	case len(r.Header["Content-Encoding"]) > 0:
		return noEncoding
	case !x.json && !x.sse:
		return noAccept
	case r.Header.Get(headerLastID) != "":
		return noReplay
	case r.ContentLength > int64(strictjson.Request.Bytes):
		x.w.Header().Set("Connection", "close")
		return noTooLarge
	}
	if !h.join() {
		return noClosing
	}
	defer h.work.Done()
	sent := h.bodies.begin(http.NewResponseController(x.w), h.o.MaxBodies)
	body, err := io.ReadAll(http.MaxBytesReader(x.w, r.Body, int64(strictjson.Request.Bytes)))
	late := h.bodies.end(sent)
	var large *http.MaxBytesError
	switch {
	case err != nil && late:
		x.w.Header().Set("Connection", "close")
		return noBodies
	case errors.As(err, &large):
		return noTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.w.Header().Set("Connection", "close")
		return noSlowBody
	case err != nil:
		return noBody
	case len(body) == 0:
		return noEmptyBody
	}
	switch {
	case x.version == Version20260728:
		return x.modern(body)
	case stated && !isLegacy(x.version):
		m, bad := rpc.Parse(body, strictjson.Request)
		if x.id = m.ID; bad != nil {
			return noMessage(bad)
		}
		return noVersion(x.version)
	}
	return x.legacy(body)
}

// accepted is the answer to notifications and responses.
func (x *exchange) accepted() *refused {
	x.w.WriteHeader(http.StatusAccepted)
	return nil
}

// report tells of something that is not answered with an error.
func (x *exchange) report(r *refused) {
	x.h.o.Refused.told(r, x.session)
}

// join has Shutdown wait for an exchange, until h.work.Done; it is false once no
// exchange begins any more.
func (h *HTTP) join() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closing {
		h.work.Add(1)
	}
	return !h.closing
}

// run serves a request, and copies its stream to the client until that ends or the client goes away:
// another goroutine does, from the first message on that is not the last, which most requests have none of.
// The caller has entered HTTP.requests for who with n.
func (x *exchange) run(ctx context.Context, s *stream, c *conn, who holder, n int, work func(context.Context)) {
	defer x.h.leave(x.h.requests, who, n)
	reader, _ := s.attach(-1) // of a stream that nobody knows yet
	var copied chan struct{}
	s.beginsWith(func() {
		copied = make(chan struct{})
		go func() {
			defer close(copied)
			x.drain(s, c, reader, false)
		}()
	})
	here := context.AfterFunc(x.r.Context(), func() { s.detach(reader) })
	unrecovered(func() { work(ctx) })
	switch stays := here(); {
	case copied != nil:
		<-copied
	case stays:
		x.drain(s, c, reader, false)
	}
}

// unrecovered has a panic of f end the process, as it does in a goroutine of its own: net/http would recover
// it and go on.
func unrecovered(f func()) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			go func() { panic(fmt.Sprintf("%v\n\n%s", p, stack)) }()
			select {}
		}
	}()
	f()
}

// drain empties a stream into the exchange.
func (x *exchange) drain(s *stream, c *conn, reader int, started bool) {
	defer s.detach(reader)
	var out *sse
	var tick <-chan time.Time // from the first event on: nothing keeps a single answer alive
	start := func() (err error) {
		if out == nil {
			out, err = startSSE(x.w)
			tick = time.Tick(x.h.o.KeepAlive)
		}
		return err
	}
	if started && start() != nil {
		return
	}
	for {
		m, n, alone, status, wait := s.next(reader)
		switch {
		case m != nil && alone && out == nil && x.json:
			writeJSON(x.w, status, m)
			s.sent(reader, n, false)
			return
		case m != nil:
			id := ""
			if s.keep {
				id = eventID(x.h.key, c.key, s.id, n)
			}
			if start() != nil || out.event(id, m) != nil {
				return
			}
			s.sent(reader, n, id != "")
			continue
		case wait == nil:
			if out == nil {
				x.emptyEnd()
			}
			return
		}
		select {
		case <-wait:
		case <-x.r.Context().Done():
			return
		case <-tick:
			if out.comment() != nil {
				return
			}
		}
	}
}

// emptyEnd ends an exchange whose request was cancelled: no answer is due, and
// the client no longer waits for one.
func (x *exchange) emptyEnd() {
	if x.sse {
		startSSE(x.w)
		return
	}
	x.w.WriteHeader(http.StatusNoContent)
}

func (x *exchange) newStream(keep bool) *stream { return newStream(keep && x.sse, !x.sse) }

// anyHeader reports a field that is there, even empty.
func (x *exchange) anyHeader(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return len(x.r.Header[n]) > 0 })
}
