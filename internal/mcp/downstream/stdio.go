package downstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// StdioOptions configures ServeStdio. The zero value is usable.
type StdioOptions struct {
	// Principal is who runs this process; "local" if empty.
	Principal string
	// Session is the session to use, for a process that joins one. If nil, one
	// is opened at the first request and closed at the end.
	Session Session
	// MaxLine bounds a line in bytes; 16 MiB if 0. A message is bound besides as
	// strictjson.Request is.
	MaxLine int
	// MaxOpen bounds open requests, and our open questions; 256 if 0. More are
	// refused with an error, none waits unseen.
	MaxOpen int
	// Grace is how long open requests may go on after the end; 5 s if 0.
	Grace time.Duration
	// Patience bounds the wait for a person's answer; 10 minutes if 0.
	Patience time.Duration
	Refused  Hook // unless nil
}

func (o *StdioOptions) fill() {
	o.Principal = cmp.Or(o.Principal, "local")
	o.MaxLine = cmp.Or(o.MaxLine, 16<<20)
	o.MaxOpen = cmp.Or(o.MaxOpen, 256)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.Patience = cmp.Or(o.Patience, 10*time.Minute)
}

// notesWaiting bounds the notifications that wait for a slow client.
const notesWaiting = 256

// ServeStdio speaks MCP over a pair of streams, one JSON message in each line,
// until in ends, out breaks or ctx is done. The first request fixes the era; a
// later one of the other era is refused. Bad lines are answered and the
// connection goes on. At the end of in, or when ctx is done, open requests may finish
// within Grace; the result is an error if out broke or ctx was done.
//
// A read of in that blocks when ctx is done keeps one goroutine until in is
// closed; in is closed if it is an io.Closer.
func ServeStdio(ctx context.Context, r Router, in io.Reader, out io.Writer, o StdioOptions) error {
	o.fill()
	ending := ctx
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	c := &stdioConn{
		router:     r,
		o:          o,
		ctx:        ctx,
		stop:       stop,
		to:         out,
		lines:      rpc.NewLines(in, o.MaxLine),
		inputEnded: make(chan struct{}),
		writing:    make(chan struct{}, 1),
		out:        make(chan []byte, 16),
		quit:       make(chan struct{}),
		dead:       make(chan struct{}),
		table:      newTable(o.MaxOpen),
		session:    o.Session,
		limits:     strictjson.Request,
	}
	c.limits.Bytes = o.MaxLine
	c.alone = replies{c.reply, c.answer}
	return c.serve(in, ending)
}

// errOutput is the end of a connection whose client no longer reads.
var errOutput = errors.New("the output is closed")

// errEnded is the end of a connection whose input ended.
var errEnded = errors.New("the input ended")

type stdioConn struct {
	router     Router
	o          StdioOptions
	ctx        context.Context
	stop       context.CancelCauseFunc
	alone      replies       // to a message that is a line of its own
	writing    chan struct{} // holds one while somebody writes to out
	to         io.Writer
	out        chan []byte   // to the writer
	queued     atomic.Int64  // messages given to the writer that are not written yet
	quit       chan struct{} // closed: write what waits, then end
	dead       chan struct{} // closed: nothing is written any more
	once       sync.Once     // closes dead
	table      *table
	open       sync.WaitGroup // requests
	hands      workers        // that read, and serve requests
	lines      *rpc.Lines     // of who reads
	limits     strictjson.Limits
	inputEnded chan struct{}  // closed when it has
	side       sync.WaitGroup // listeners

	// The rest is of who reads and handles a line; requests get copies.
	handling    sync.Mutex
	ended       bool     // no line is handled any more
	work        []func() // requests of the line that are to be served
	fixed       bool     // era is fixed
	era         Era
	greeted     bool // initialize was answered
	hello       hello
	session     Session
	owned       bool
	unsubscribe func()
}

// read handles each line of the input until it ends. Who has read a request serves it, and
// another goes on reading: so no request waits until somebody wakes up for it.
func (c *stdioConn) read() {
	for {
		b, err := c.lines.Next()
		if err != nil && !errors.Is(err, rpc.ErrLineTooLong) && !errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		work, ok := c.handled(b, err)
		if !ok {
			break
		}
		if len(work) > 0 {
			c.hands.do(c.read)
			for _, w := range work[1:] {
				c.hands.do(w)
			}
			work[0]()
			return
		}
	}
	close(c.inputEnded)
}

// handled handles a line and returns the requests in it that are to be served. It is not ok
// once the connection has ended.
func (c *stdioConn) handled(line []byte, err error) (work []func(), ok bool) {
	c.handling.Lock()
	defer c.handling.Unlock()
	if c.ended {
		return nil, false
	}
	c.line(line, err)
	work, c.work = c.work, nil
	return work, true
}

func (c *stdioConn) serve(in io.Reader, ending context.Context) error {
	end := errEnded
	c.hands.do(c.read)
	go c.write()
	select {
	case <-c.inputEnded:
	case <-ending.Done():
		end = context.Cause(ending)
	case <-c.ctx.Done():
		end = context.Cause(c.ctx)
	}
	c.handling.Lock()
	c.ended = true
	c.handling.Unlock()
	if x, ok := in.(io.Closer); ok {
		x.Close()
	}
	c.table.hangUp()
	if c.ctx.Err() == nil {
		within(c.o.Grace, c.open.Wait)
	}
	c.stop(end) // ends listeners, and what outlived the grace
	if c.unsubscribe != nil {
		c.unsubscribe()
	}
	within(c.o.Grace, func() { c.open.Wait(); c.side.Wait() })
	close(c.quit)
	within(c.o.Grace, func() { <-c.dead })
	c.once.Do(func() { close(c.dead) })
	c.hands.end()
	if c.owned {
		c.router.CloseSession(context.WithoutCancel(c.ctx), c.session)
	}
	if end == errEnded {
		return nil
	}
	return end
}

// within runs f and waits for it, but no longer than d.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

func (c *stdioConn) write() {
	defer c.once.Do(func() { close(c.dead) })
	put := func(m []byte) bool {
		c.writing <- struct{}{}
		defer func() { <-c.writing }()
		defer c.queued.Add(-1)
		return c.put(m)
	}
	for {
		select {
		case m := <-c.out:
			if !put(m) {
				return
			}
		case <-c.quit:
			for len(c.out) > 0 && put(<-c.out) { // nobody else takes from it
			}
			return
		}
	}
}

// put writes a message. The caller holds writing.
func (c *stdioConn) put(m []byte) bool {
	_, err := c.to.Write(append(oneLine(m), '\n'))
	if err != nil {
		c.stop(errOutput)
	}
	return err == nil
}

// send queues a message; it waits while the client is slow.
func (c *stdioConn) send(ctx context.Context, message []byte) error {
	c.queued.Add(1)
	select {
	case c.out <- message:
		return nil
	default:
	}
	select {
	case c.out <- message:
		return nil
	case <-ctx.Done():
		c.queued.Add(-1)
		return ctx.Err()
	case <-c.dead:
		c.queued.Add(-1)
		return errOutput
	}
}

// answer writes the answer to a request, where nothing is to be written before it; else
// it is queued. Who served the request has nothing else to do, so he may wait for a slow
// client; who reads what a client says next may not.
func (c *stdioConn) answer(message []byte) {
	if message == nil {
		return
	}
	if c.queued.Load() == 0 {
		select {
		case c.writing <- struct{}{}:
			defer func() { <-c.writing }()
			select {
			case <-c.dead:
			default:
				c.put(message)
			}
			return
		default:
		}
	}
	c.reply(message)
}

func (c *stdioConn) report(r *refused) { c.o.Refused.told(r, c.session) }

// reply takes the answer to one message; nil is none.
type reply func(message []byte)

// replies are the two ways to answer a message, of which one is taken: by who reads
// what a client says, and by who has served it.
type replies struct{ reading, serving reply }

func (c *stdioConn) reply(message []byte) {
	if message != nil {
		c.send(c.ctx, message)
	}
}

func (c *stdioConn) line(line []byte, err error) {
	switch {
	case errors.Is(err, rpc.ErrLineTooLong):
		c.report(noTooLarge)
		c.reply(rpc.ErrorResponse(nil, noTooLarge.err))
		return
	case err != nil: // a half line is never acted on, even if it looks whole
		c.report(noHalfLine)
		return
	}
	text := bytes.TrimSpace(line)
	if len(text) == 0 {
		return
	}
	if text[0] == '[' && c.greeted && batches(c.hello.version) {
		batch, bad := splitBatch(text, c.limits)
		if bad != nil {
			c.report(bad)
			c.reply(rpc.ErrorResponse(nil, bad.err))
			return
		}
		done := gather(batch.Len(), c.reply)
		for i, e := range batch.Elements() {
			m, err := rpc.Read(e)
			one := done(i)
			c.message(m, err, replies{one, one})
		}
		return
	}
	m, bad := rpc.Parse(line, c.limits)
	c.message(m, bad, c.alone)
}

// message handles one message of a line, or why it is none; done is called
// exactly once.
func (c *stdioConn) message(m rpc.Message, err *rpc.Error, done replies) {
	switch {
	case err != nil:
		c.refuse(m.ID, noMessage(err), done)
	case m.IsResponse():
		if !c.table.answer(m) {
			c.report(noQuestion)
		}
		done.reading(nil)
	case m.IsNotification():
		c.notification(m)
		done.reading(nil)
	default:
		if bad := c.request(m, done); bad != nil {
			c.refuse(m.ID, bad, done)
		}
	}
}

func (c *stdioConn) refuse(id []byte, r *refused, done replies) {
	c.report(r)
	done.reading(rpc.ErrorResponse(id, r.err))
}

func (c *stdioConn) notification(m rpc.Message) {
	switch {
	case m.Method == noteCancelled:
		c.table.cancel(m.Params)
	case m.Method == noteInitialized:
		if c.greeted && c.unsubscribe == nil {
			c.subscribe()
		}
	case !isNote(m.Method):
		c.report(noNoteKnown)
	}
}

// request starts a request; done is called unless it is refused.
func (c *stdioConn) request(m rpc.Message, done replies) *refused {
	if isNote(m.Method) {
		return noNoteID
	}
	mt, bad := readMeta(m.Params)
	if bad != nil {
		return bad
	}
	if mt.modern() {
		return c.modern(m, mt, done)
	}
	switch {
	case c.fixed && c.era == Modern && (mt.stated || m.Method == methodInitialize):
		return noEra(mt.version)
	case c.fixed && c.era == Modern:
		return noMeta
	case m.Method == methodInitialize:
		return c.initialize(m, done)
	case m.Method == methodPing:
		return c.start(m, done, func(context.Context) Reply { return Reply{Result: []byte("{}")} })
	case m.Method == methodDiscover || m.Method == methodListen:
		return noMethodKnown
	case !c.greeted:
		return noInit
	}
	return c.handle(m, mt, done)
}

// initialize is answered before the next line is read.
func (c *stdioConn) initialize(m rpc.Message, done replies) *refused {
	if c.greeted {
		return noReinit
	}
	h, bad := readHello(m.Params)
	if bad != nil {
		return bad
	}
	if bad := c.openSession(); bad != nil {
		return bad
	}
	c.fixed, c.era, c.greeted, c.hello = true, Legacy, true, h
	done.reading(rpc.Response(m.ID, answerHello(c.ctx, c.router, h.version)))
	return nil
}

func (c *stdioConn) modern(m rpc.Message, mt meta, done replies) *refused {
	if c.fixed && c.era == Legacy {
		return noEra(mt.version)
	}
	if bad := mt.checkModern(); bad != nil {
		return bad
	}
	switch {
	case goneInModern(m.Method):
		return noMethodKnown
	case m.Method == methodDiscover: // a question about versions: it does not fix the era
		return c.start(m, done, func(ctx context.Context) Reply { return Reply{Result: answerDiscover(ctx, c.router)} })
	}
	if bad := c.openSession(); bad != nil {
		return bad
	}
	c.fixed, c.era = true, Modern
	if m.Method == methodListen {
		return c.listen(m, done)
	}
	return c.handle(m, mt, done)
}

func (c *stdioConn) openSession() *refused {
	if c.session != nil {
		return nil
	}
	_, s, err := c.router.OpenSession(c.ctx, c.o.Principal, CarrierStdio)
	if err != nil || s == nil {
		return noOpen
	}
	c.session, c.owned = s, true
	return nil
}

func (c *stdioConn) handle(m rpc.Message, mt meta, done replies) *refused {
	greeted := &c.hello
	if c.era == Modern {
		greeted = nil
	}
	r := newRequest(m, mt, greeted, c.o.Principal, c.session)
	return c.start(m, done, func(ctx context.Context) Reply {
		return handle(ctx, c.router, r, c.table, c.send, c.o.Patience)
	})
}

// start has one request served by a goroutine of its own.
func (c *stdioConn) start(m rpc.Message, done replies, run func(context.Context) Reply) *refused {
	ctx, call, bad := c.table.begin(c.ctx, m.ID)
	if bad != nil {
		return bad
	}
	c.open.Add(1)
	c.work = append(c.work, func() {
		defer c.open.Done()
		a := answer(m.ID, run(ctx))
		if c.table.end(call) {
			a = nil // cancelled: no answer
		}
		done.serving(a)
	})
	return nil
}

func (c *stdioConn) subscribe() {
	q := newQueue(notesWaiting)
	l := Listener{Principal: c.o.Principal, Session: c.session, Era: Legacy, Version: c.hello.version, Filter: Filter{All: true}}
	_, c.unsubscribe = c.router.Subscribe(c.ctx, l, q.deliver(l.Filter, c.o.Refused.full(c.session)))
	c.side.Go(func() { c.pump(c.ctx, q, nil) })
}

func (c *stdioConn) pump(ctx context.Context, q queue, subscription []byte) {
	for {
		select {
		case <-q.Ready:
			if n, ok := q.Pop(); ok && c.send(ctx, n.message(subscription)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// listen is subscriptions/listen: acknowledged first, then open until the
// client cancels it or the connection ends.
func (c *stdioConn) listen(m rpc.Message, done replies) *refused {
	want, bad := readFilter(m.Params)
	if bad != nil {
		return bad
	}
	ctx, call, bad := c.table.begin(c.ctx, m.ID)
	if bad != nil {
		return bad
	}
	l := Listener{Principal: c.o.Principal, Session: c.session, Era: Modern, Version: Version20260728, Filter: want}
	q := newQueue(notesWaiting)
	deliver := q.deliver(want, c.o.Refused.full(c.session))
	c.side.Go(func() {
		granted, unsubscribe := c.router.Subscribe(ctx, l, deliver)
		defer unsubscribe()
		granted = granted.within(want)
		if c.send(ctx, acknowledgement(m.ID, granted)) == nil && !granted.empty() {
			c.pump(ctx, q, m.ID)
		}
		if c.table.end(call) {
			done.serving(nil)
			return
		}
		done.serving(rpc.Response(m.ID, listenEnd(m.ID)))
	})
	return nil
}
