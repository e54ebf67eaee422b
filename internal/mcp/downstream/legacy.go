package downstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// conn is what is remembered of one legacy client over HTTP between its
// exchanges. It holds no secret: it is found by its session's public id, or at
// an endpoint by an id of its own.
type conn struct {
	key       string // of HTTP.conns; "" for a client that is not remembered
	principal string
	session   Session
	hello     hello
	table     *table

	mu       sync.Mutex
	used     time.Time
	replaced chan struct{} // ends the GET stream
	streams  map[[16]byte]*stream
	timers   map[[16]byte]*waiting
	waited   uint64 // how many have waited
	closed   bool
}

func newConn(key, principal string, s Session, h hello, limit int) *conn {
	return &conn{
		key: key, principal: principal, session: s, hello: h, table: newTable(limit), used: time.Now(),
		streams: map[[16]byte]*stream{}, timers: map[[16]byte]*waiting{},
	}
}

func (c *conn) stateless() bool { return c.key == "" }

// find returns the connection an exchange belongs to. Unknown, closed, foreign
// and contradicting are answered the same way (S05).
func (x *exchange) find() (*conn, *refused) {
	h := x.h
	v, stated := x.r.Header[headerSession]
	switch {
	case !stated && !x.carried:
		return nil, noSessionSent
	case !stated:
		return newConn("", x.principal, x.given, hello{version: x.legacyVersion()}, h.o.MaxOpen), nil
	case !plainSecret(v[0]):
		return nil, noSession
	}
	if x.carried { // the id of a connection at this endpoint
		h.mu.Lock()
		c := h.conns["c "+v[0]]
		h.mu.Unlock()
		if c == nil || c.principal != x.principal || c.session != x.given {
			return nil, noSession
		}
		c.touch()
		return c, nil
	}
	s, no := x.findSession(v[0])
	if no != nil {
		return nil, no
	}
	x.secret, x.session = v[0], s
	h.mu.Lock()
	c := h.conns["s "+s.PublicID()]
	h.mu.Unlock()
	if c == nil {
		// The session outlived the process that greeted the client, or is served
		// by another replica: nothing is known of the client's capabilities.
		return h.remember(newConn("s "+s.PublicID(), x.principal, s, hello{version: x.legacyVersion()}, h.o.MaxOpen))
	}
	if c.principal != x.principal || c.session != s {
		return nil, noSession
	}
	c.touch()
	return c, nil
}

// findSession finds an open session of the exchange's principal. That it cannot
// be read is no answer to whether there is one: a client that took it for a no
// would begin anew and lose what it has (N24).
func (x *exchange) findSession(secret string) (Session, *refused) {
	s, err := x.h.router.FindSession(x.r.Context(), x.principal, secret)
	switch {
	case errors.Is(err, ErrNoSession):
		return nil, noSession
	case err != nil || s == nil:
		return nil, noState
	}
	return s, nil
}

func (x *exchange) legacyVersion() string {
	if isLegacy(x.version) {
		return x.version
	}
	return Version20250326 // what a missing header means since 2025-06-18
}

// remember registers a connection, or returns the one that was faster.
func (h *HTTP) remember(c *conn) (*conn, *refused) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.conns[c.key]; old != nil {
		return old, nil
	}
	coldest, ok := h.room(c.principal)
	if !ok {
		return nil, noConns
	}
	if coldest != nil {
		delete(h.conns, coldest.key)
		coldest.close()
	}
	h.conns[c.key] = c
	return c, nil
}

// room reports whether a principal may have one more connection, and which of its
// idle ones has to be forgotten for it: the one that was used longest ago. Its
// session is not touched, and its client may go on in it. h.mu is held.
func (h *HTTP) room(principal string) (coldest *conn, ok bool) {
	n := 0
	var least time.Time
	for _, c := range h.conns {
		if c.principal != principal {
			continue
		}
		n++
		if used, idle := c.rest(); idle && (coldest == nil || used.Before(least)) {
			coldest, least = c, used
		}
	}
	if n < h.o.MaxConns {
		return nil, true
	}
	return coldest, coldest != nil
}

func (c *conn) touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = time.Now()
}

// rest says when the connection was last used, and whether it is idle: nothing is
// open on it, and no answer waits for its client.
func (c *conn) rest() (used time.Time, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, c.replaced == nil && len(c.streams) == 0 && c.table.size() == 0
}

// listening makes the caller the connection's one GET stream; replaced is
// closed when another one takes over or the connection ends.
func (c *conn) listening() (replaced <-chan struct{}, leave func()) {
	mine := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replaced != nil {
		close(c.replaced)
	}
	if c.replaced = mine; c.closed {
		c.replaced = nil
		close(mine)
	}
	return mine, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.replaced == mine {
			c.replaced = nil
		}
	}
}

// close ends the GET stream and our questions. Open requests go on to their
// outcome.
func (c *conn) close() {
	c.table.hangUp()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.replaced != nil {
		close(c.replaced)
		c.replaced = nil
	}
	for id := range c.streams {
		c.forget(id)
	}
}

// keptStreams bounds the answers one connection may still come back for,
// keptStreamsAll those of all.
const (
	keptStreams    = 16
	keptStreamsAll = 256
)

// hold keeps a stream so that it can be resumed.
func (c *conn) hold(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.streams) >= keptStreams+c.table.max {
		s.mu.Lock()
		s.keep = false
		s.mu.Unlock()
		return
	}
	c.streams[s.id] = s
}

// stream returns a held stream, to be settled again by the caller.
func (c *conn) stream(id [16]byte) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwait(id)
	return c.streams[id]
}

// settle lets a stream wait for its client to come back, for some time: that
// all of it was written does not mean that it arrived, but makes it likely, so
// such a stream waits a tenth. The oldest makes room.
func (c *conn) settle(s *stream, h *HTTP) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[s.id] != s {
		return
	}
	if len(c.timers) >= keptStreams {
		var oldest [16]byte
		least := ^uint64(0)
		for id, w := range c.timers {
			if w.number < least {
				oldest, least = id, w.number
			}
		}
		c.forget(oldest)
	}
	if s.over() || h.kept.Load() >= keptStreamsAll {
		c.forget(s.id)
		return
	}
	d := h.o.Resume
	if s.delivered() {
		d /= 10
	}
	c.unwait(s.id) // who resumed it may have been here before
	h.kept.Add(1)
	c.waited++
	c.timers[s.id] = &waiting{h: h, number: c.waited, timer: time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.timers[s.id] != nil {
			c.forget(s.id)
		}
	})}
}

// forget ends a stream for good. c.mu is held.
func (c *conn) forget(id [16]byte) {
	c.unwait(id)
	if s := c.streams[id]; s != nil {
		delete(c.streams, id)
		s.abandon()
	}
}

// waiting is the end of a stream's patience.
type waiting struct {
	h      *HTTP
	number uint64 // in the order of waiting
	timer  *time.Timer
}

// unwait stops a stream's waiting, if it waits. c.mu is held.
func (c *conn) unwait(id [16]byte) {
	if w := c.timers[id]; w != nil {
		w.timer.Stop()
		w.h.kept.Add(-1)
		delete(c.timers, id)
	}
}

// legacy serves one POST of a version before 2026-07-28.
func (x *exchange) legacy(body []byte) *refused {
	text := bytes.TrimSpace(body)
	if len(text) > 0 && text[0] == '[' {
		return x.batch(text)
	}
	m, bad := rpc.Parse(body, strictjson.Request)
	x.id = m.ID
	if bad != nil {
		return noMessage(bad)
	}
	var mt meta
	if m.IsRequest() {
		if isNote(m.Method) {
			return noNoteID
		}
		var no *refused
		if mt, no = readMeta(m.Params); no != nil {
			return no
		}
		switch {
		case mt.modern() && x.version == "":
			return noVersionHeader
		case mt.modern():
			return noVersionEqual
		case m.Method == methodInitialize && !x.anyHeader(headerSession):
			return x.initialize(m)
		}
	}
	c, no := x.find()
	if no != nil {
		return no
	}
	if !m.IsRequest() {
		if no := x.heard(c, m); no != nil {
			return no
		}
		return x.accepted()
	}
	who := holderOf(x.principal, c.session)
	if no := x.h.enter(x.h.requests, who, 1); no != nil {
		return no
	}
	s := x.newStream(!c.stateless())
	work, no := x.begin(c, m, mt, s, func(message []byte) { s.finish(message, http.StatusOK) })
	if no != nil {
		x.h.leave(x.h.requests, who, 1)
		return no
	}
	x.legacyRun(c, s, who, 1, work)
	return nil
}

// legacyRun runs work to its outcome, with or without the client.
func (x *exchange) legacyRun(c *conn, s *stream, who holder, n int, work func(context.Context)) {
	if s.keep {
		c.hold(s)
	}
	x.run(x.h.ctx, s, c, who, n, work)
	if s.keep {
		c.settle(s, x.h)
	}
}

// heard handles a notification or a response.
func (x *exchange) heard(c *conn, m rpc.Message) *refused {
	switch {
	case m.IsResponse():
		if !c.table.answer(m) {
			x.report(noQuestion)
		}
	case m.Method == noteCancelled:
		c.table.cancel(m.Params)
	case !isNote(m.Method):
		return noNoteKnown
	}
	return nil
}

// begin registers a request; the work it returns answers with done, once.
func (x *exchange) begin(c *conn, m rpc.Message, mt meta, s *stream, done reply) (func(context.Context), *refused) {
	h := x.h
	switch m.Method {
	case methodInitialize:
		return nil, noReinit
	case methodPing:
		return func(context.Context) { done(rpc.Response(m.ID, []byte("{}"))) }, nil
	case methodDiscover, methodListen:
		return func(context.Context) { done(rpc.ErrorResponse(m.ID, noMethodKnown.err)) }, nil
	}
	ctx, call, bad := c.table.begin(h.ctx, m.ID)
	if bad != nil {
		return nil, bad
	}
	req := newRequest(m, mt, &c.hello, x.principal, c.session)
	req.HTTP = true
	asks := c.table
	if c.stateless() {
		asks = nil
	}
	return func(context.Context) {
		a := answer(m.ID, handle(ctx, h.router, req, asks, s.send, h.o.Patience))
		if c.table.end(call) {
			a = nil
		}
		done(a)
	}, nil
}

// initialize opens a session, or at an endpoint a connection to its session.
func (x *exchange) initialize(m rpc.Message) *refused {
	h := x.h
	hi, bad := readHello(m.Params)
	if bad != nil {
		return bad
	}
	var id string
	var c *conn
	if x.carried {
		id = rand.Text()
		c = newConn("c "+id, x.principal, x.given, hi, h.o.MaxOpen)
	} else {
		if h.full(x.principal) {
			return noConns
		}
		secret, s, err := h.router.OpenSession(x.r.Context(), x.principal, CarrierHeader)
		if err != nil || s == nil || !plainSecret(secret) {
			return noOpen
		}
		id, x.session = secret, s
		c = newConn("s "+s.PublicID(), x.principal, s, hi, h.o.MaxOpen)
	}
	if _, bad := h.remember(c); bad != nil {
		if !x.carried {
			h.router.CloseSession(context.WithoutCancel(x.r.Context()), c.session)
		}
		return bad
	}
	x.w.Header().Set(headerSession, id)
	s := x.newStream(false)
	s.finish(rpc.Response(m.ID, answerHello(x.r.Context(), h.router, hi.version)), http.StatusOK)
	reader, _ := s.attach(-1) // of a stream that nobody knows
	x.drain(s, c, reader, false)
	return nil
}

// full reports that a principal has as many connections as it may, none of them
// idle, so that no session is minted for nothing.
func (h *HTTP) full(principal string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.room(principal)
	return !ok
}

// batch serves an array of messages, each judged singly, for clients of
// 2025-03-26 (W08).
func (x *exchange) batch(text []byte) *refused {
	if !x.anyHeader(headerSession) && !x.carried {
		return noBatch
	}
	c, bad := x.find()
	if bad != nil {
		return bad
	}
	if !batches(c.hello.version) {
		return noBatch
	}
	all, bad := splitBatch(text, strictjson.Request)
	if bad != nil {
		return bad
	}
	who, n := holderOf(x.principal, c.session), min(all.Len(), x.h.requests.share())
	if no := x.h.enter(x.h.requests, who, n); no != nil {
		return no
	}
	s := x.newStream(!c.stateless())
	done := gather(all.Len(), func(message []byte) { s.finish(message, http.StatusOK) })
	var works []func(context.Context)
	asked := false
	for i, e := range all.Elements() {
		m, err := rpc.Read(e)
		switch work, no := x.one(c, m, err, s, done(i)); {
		case no != nil:
			x.report(no)
			done(i)(rpc.ErrorResponse(m.ID, no.err))
			asked = true
		case work != nil:
			works = append(works, work)
			asked = true
		default:
			done(i)(nil)
		}
	}
	if !asked {
		x.h.leave(x.h.requests, who, n)
		return x.accepted()
	}
	x.legacyRun(c, s, who, n, func(ctx context.Context) {
		var all sync.WaitGroup
		for _, w := range works {
			all.Go(func() { w(ctx) })
		}
		all.Wait()
	})
	return nil
}

// one takes one message of a batch, or why it is none. The work of a request answers it with done.
func (x *exchange) one(c *conn, m rpc.Message, err *rpc.Error, s *stream, done reply) (work func(context.Context), no *refused) {
	switch {
	case err != nil:
		return nil, noMessage(err)
	case !m.IsRequest():
		return nil, x.heard(c, m)
	case isNote(m.Method):
		return nil, noNoteID
	}
	mt, no := readMeta(m.Params)
	switch {
	case no != nil:
		return nil, no
	case mt.modern():
		return nil, noVersionEqual
	}
	return x.begin(c, m, mt, s, done)
}
