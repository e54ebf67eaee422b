package upstream

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

const (
	inboxSize   = 256 // messages of one request waiting for its caller
	maxAsks     = 16  // open requests of the server inside one of ours
	maxVersions = 64
)

// A link moves messages of one live connection.
type link interface {
	// exchange sends k and waits until it ends. When ctx ends first it tells
	// the server and says whether anything had been sent.
	exchange(ctx context.Context, k *call) Response
	// tell sends a notification or a response; best effort, does not block.
	tell(msg []byte)
	// say sends a message and returns when the server may act on it.
	say(ctx context.Context, msg []byte) error
	// listen starts what receives messages of no request of ours, if the
	// transport has that. It is called once, when the handshake is over.
	listen()
	close()
}

// conn is one connection, from handshake to loss. The Server replaces it.
type conn struct {
	s       *Server
	link    link
	modern  atomic.Bool // the wire; set by the handshake
	version string
	ctx     context.Context // ends when the connection does
	cancel  context.CancelFunc

	mu    sync.Mutex
	calls map[string]*call              // by the exact id literal
	asks  map[string]context.CancelFunc // the server's open requests, by IDKey
	subs  map[string]context.CancelFunc // 2026-07-28: resource subscriptions by URI
	lost  map[string]givenUp            // by id
	err   error
	dead  chan struct{}
	wg    sync.WaitGroup
}

func newConn(s *Server) *conn {
	ctx, cancel := context.WithCancel(s.ctx)
	return &conn{
		s: s, ctx: ctx, cancel: cancel,
		calls: make(map[string]*call), asks: make(map[string]context.CancelFunc),
		subs: make(map[string]context.CancelFunc), lost: make(map[string]givenUp),
		dead: make(chan struct{}),
	}
}

// die ends the connection for the first reason given.
func (c *conn) die(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
	}
	c.mu.Unlock()
	if first {
		close(c.dead)
		c.cancel()
	}
}

// close ends the connection and waits for all it started.
func (c *conn) close() {
	c.die(ErrClosed)
	c.link.close()
	c.wg.Wait()
}

func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// call is one request of ours on its way.
type call struct {
	id      []byte // the exact literal, also our progress token
	method  string
	name    string // what Mcp-Name carries, "" for none
	msg     []byte // the whole message
	headers [][2]string
	request Request
	quiet   bool // never cancelled by a notification (initialize, the probe)

	inbox *rpc.Queue[item] // what waits for its caller
	once  sync.Once
	done  chan struct{}
	reply Response

	serve  func(item)    // takes what comes before the answer; nil where the inbox is emptied otherwise
	pump   sync.Once     // begins to, or says that nothing more will be
	over   chan struct{} // closed: no more of it; nil where nothing came
	pumped chan struct{} // closed: the last was served
}

// serving has what comes in the inbox served from now on. Most calls are answered and
// nothing else, so it is begun with the first that comes.
func (k *call) serving() {
	if k.serve == nil {
		return
	}
	k.pump.Do(func() {
		k.over, k.pumped = make(chan struct{}), make(chan struct{})
		go func() {
			defer close(k.pumped)
			for {
				select {
				case <-k.inbox.Ready:
					if it, ok := k.inbox.Pop(); ok {
						k.serve(it)
					}
				case <-k.over:
					return
				}
			}
		}()
	})
}

// served ends that. What came before the answer is delivered before it.
func (k *call) served() {
	k.pump.Do(func() {})
	if k.over != nil {
		close(k.over)
		<-k.pumped
	}
	for {
		it, ok := k.inbox.Pop()
		if !ok {
			return
		}
		if it.id == nil {
			k.serve(it)
		}
	}
}

// item is a notification for the caller, or a request when id is set.
type item struct {
	id     []byte
	method string
	params []byte
}

// finish sets the answer; only the first counts.
func (k *call) finish(r Response) (first bool) {
	k.once.Do(func() {
		k.reply, first = r, true
		close(k.done)
	})
	return first
}

func (k *call) answered() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// open registers a call under a fresh random id (attack P22).
func (c *conn) open(r Request, quiet bool, serve func(item)) *call {
	k := &call{
		method: r.Method, request: r, quiet: quiet, serve: serve,
		inbox: rpc.NewQueue[item](inboxSize), done: make(chan struct{}),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k.id == nil || c.calls[string(k.id)] != nil {
		k.id = rpc.NewID()
	}
	c.calls[string(k.id)] = k
	return k
}

// mayLeave is asked by a link right before a call's bytes leave, by nobody
// else: from the reading of a list_changed on, no judged request leaves that
// rests on the lists before it (N10).
func (c *conn) mayLeave(k *call) bool {
	return k.request.Decision == nil || c.s.listed(&k.request)
}

func (c *conn) forget(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, string(k.id))
}

func (c *conn) lookup(id []byte) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[string(id)]
}

// do sends one request and serves its caller until it ends.
func (c *conn) do(ctx context.Context, r Request, quiet bool) Response {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	limit := newPausable(c.s.clock, c.s.limits.Call, func() { cancel(context.DeadlineExceeded) })
	defer limit.stop()

	var asks *questions // made for the first one; one goroutine serves at a time
	defer func() {
		if asks != nil {
			asks.cancel()
			asks.open.Wait()
		}
	}()
	serve := func(it item) {
		switch {
		case it.id == nil:
			if r.OnNotify != nil {
				r.OnNotify(it.method, it.params)
			}
		default:
			if asks == nil {
				asks = &questions{slots: make(chan struct{}, maxAsks)}
				asks.ctx, asks.cancel = context.WithCancel(ctx)
			}
			select {
			case asks.slots <- struct{}{}:
			default:
				c.link.tell(rpc.ErrorResponse(it.id, rpc.Errorf(rpc.CodeInternal, "too many requests at once")))
				return
			}
			limit.pause()
			asks.open.Go(func() {
				defer limit.resume()
				defer func() { <-asks.slots }()
				c.answer(asks.ctx, it, r)
			})
		}
	}
	k := c.open(r, quiet, serve)
	defer c.forget(k)
	if err := c.compose(k); err != nil {
		return notSent("%s", err)
	}
	out := c.link.exchange(ctx, k)
	k.served()
	return c.settle(k, out)
}

// questions are the server's open requests inside one of ours.
type questions struct {
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}
	open   sync.WaitGroup
}

// maxLost bounds the calls of one connection that were given up and not
// answered since.
const maxLost = 1000

// givenUp is a call that ended without an answer; the server may still work at it.
type givenUp struct {
	owner string
	asks  bool // its caller took questions of the server
}

// late takes a response to no open call. The first one to a call that was given
// up is only late, any other is nobody's (P22).
func (c *conn) late(id []byte) {
	c.mu.Lock()
	_, known := c.lost[string(id)]
	delete(c.lost, string(id))
	c.mu.Unlock()
	if !known {
		c.s.courier.event(StrayResponse)
	}
}

// settle looks at how a call ended. A result of a type nobody knows is none:
// what it says was done is not known (N19).
func (c *conn) settle(k *call, out Response) Response {
	if out.End == Answered && out.Err == nil && !k.knownType(out.Result) {
		c.s.courier.event(UnknownType)
		return unknown("the server's answer is of a type that is not known here")
	}
	if asks := k.request.OnRequest != nil; out.End == Unknown {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case len(c.lost) < maxLost:
			c.lost[string(k.id)] = givenUp{k.request.Owner, asks}
		case asks:
			c.lost[""] = givenUp{"", true} // anybody's
		}
	}
	return out
}

// knownType reports a result that is complete, or one that asks for input where
// that can be.
func (k *call) knownType(result strictjson.Value) bool {
	v := result.Get("resultType")
	if !v.Exists() {
		return true
	}
	t, _ := v.Text()
	return t == "complete" || t == "input_required" && k.request.Decision != nil
}

// answer serves one request of the server.
func (c *conn) answer(ctx context.Context, it item, r Request) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	key := rpc.IDKey(it.id)
	c.mu.Lock()
	_, taken := c.asks[key]
	if !taken {
		c.asks[key] = cancel
	}
	c.mu.Unlock()
	if taken {
		c.link.tell(rpc.ErrorResponse(it.id, rpc.Errorf(rpc.CodeInvalidRequest, "this id is in use")))
		return
	}
	defer func() {
		c.mu.Lock()
		delete(c.asks, key)
		c.mu.Unlock()
	}()
	result, err := r.OnRequest(ctx, it.method, it.params)
	if err == nil && !c.s.listed(&r) {
		err = rpc.Errorf(rpc.CodeInternal, "the lists changed while the answer was waited for")
	}
	switch {
	case err != nil:
		c.link.tell(rpc.ErrorResponse(it.id, err))
	case result == nil:
		c.link.tell(rpc.ErrorResponse(it.id, rpc.Errorf(rpc.CodeInternal, "no answer")))
	default:
		c.link.tell(rpc.Response(it.id, result))
	}
}

// receive judges one message. from is the request whose own stream it came on,
// nil on a stream shared by all; shared says that answers may come there. It
// reports whether the bytes were a JSON-RPC message at all.
func (c *conn) receive(raw []byte, from *call, shared bool) bool {
	l := strictjson.Result
	l.Bytes = c.s.limits.Line
	m, fault := rpc.Parse(raw, l)
	if fault != nil {
		c.changesIn(raw, l, from)
		k := from
		if k == nil && shared {
			k = c.attribute(raw)
		}
		if k == nil {
			return false
		}
		c.s.courier.event(BadMessage)
		k.finish(unknown("the server's answer was not acceptable JSON-RPC: %s", fault.Message))
		return true
	}
	switch {
	case m.IsResponse():
		k := from
		if k == nil && shared {
			k = c.lookup(m.ID)
		}
		out := Response{End: Answered, Result: m.Result}
		if m.Error.Exists() {
			out.Err = rpc.ParseError(m.Error)
		}
		switch {
		case k == nil || !bytes.Equal(k.id, m.ID):
			c.late(m.ID)
		case k.finish(out):
			c.forget(k)
		case k.reply.End == Answered:
			c.s.courier.event(StrayResponse)
		}
	case m.IsNotification():
		c.notification(m, from)
	default:
		c.ask(m, from)
	}
	return true
}

// changesIn hears the list changes in a batch, of which nothing else is read.
func (c *conn) changesIn(batch []byte, l strictjson.Limits, from *call) {
	if !bytes.HasPrefix(bytes.TrimLeft(batch, " \t\r\n"), []byte("[")) {
		return
	}
	v, _ := strictjson.Parse(batch, l)
	for _, e := range v.Elements() {
		if m, fault := rpc.Read(e); fault == nil && m.IsNotification() && listKinds[m.Method] != "" {
			c.notification(m, from)
		}
	}
}

var idMember = text.Pattern(`"id"\s*:\s*([0-9]{15,16})\b`)

// attribute finds the open request whose id stands, once, in a message that
// cannot be read. Our ids cannot be guessed, so at worst a server fails its own
// calls. A line that does not begin an object, or that names several ids, is
// nobody's.
func (c *conn) attribute(raw []byte) *call {
	if !bytes.HasPrefix(raw, []byte("{")) {
		return nil
	}
	ms := idMember().FindAllSubmatch(raw, 2)
	if len(ms) != 1 {
		return nil
	}
	return c.lookup(ms[0][1])
}

// tooLong fails the request a discarded message belonged to, or all of them
// (attack U07). edges is what is left of the message.
func (c *conn) tooLong(edges []byte, from *call) {
	c.s.courier.event(LongLine)
	out := Response{End: TooLarge, Err: rpc.Errorf(rpc.CodeInternal, "the server's answer is larger than %d bytes", c.s.limits.Line)}
	k := from
	if k == nil {
		k = c.attribute(edges)
	}
	if k != nil {
		k.finish(out)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		k.finish(out)
	}
}

var listKinds = map[string]string{
	"notifications/tools/list_changed":     "tools",
	"notifications/prompts/list_changed":   "prompts",
	"notifications/resources/list_changed": "resources",
}

const metaPrefix = "io.modelcontextprotocol/"

func (c *conn) notification(m rpc.Message, from *call) {
	if kind := listKinds[m.Method]; kind != "" {
		c.s.changes.Add(1)
		c.s.courier.listChanged(kind)
		return
	}
	switch m.Method {
	case "notifications/cancelled":
		c.mu.Lock()
		cancel := c.asks[rpc.IDKey(m.Params.Get("requestId").Raw())]
		c.mu.Unlock()
		if cancel != nil {
			cancel()
		}
		return
	case "notifications/progress":
		k := c.lookup(m.Params.Get("progressToken").Raw())
		if k == nil || k.request.ProgressToken == nil || from != nil && from != k {
			c.s.courier.event(StrayProgress)
			return
		}
		c.put(k, item{method: m.Method, params: m.Params.With(strictjson.Member{Name: "progressToken", Value: k.request.ProgressToken})})
		return
	case "notifications/subscriptions/acknowledged":
		k := from
		if k == nil {
			k = c.lookup(m.Params.Get("_meta").Get(metaPrefix + "subscriptionId").Raw())
		}
		if k != nil {
			c.put(k, item{method: m.Method, params: m.Params.Raw()})
		}
		return
	}
	if from != nil && from.method != "subscriptions/listen" {
		c.put(from, item{method: m.Method, params: m.Params.Raw()})
		return
	}
	owner := c.s.onlyOwner()
	if owner == "" && m.Method != "notifications/resources/updated" {
		c.s.courier.event(StrayNotice)
		return
	}
	c.s.courier.notify(notice{m.Method, m.Params.Raw(), owner})
}

// put hands an item to a call's caller. Progress may be lost when the caller
// is slow; a request of the server never is: it is refused.
func (c *conn) put(k *call, it item) {
	if k.inbox.Push(it, nil) {
		k.serving()
		return
	}
	c.s.courier.event(DroppedNotice)
	if it.id != nil {
		c.link.tell(rpc.ErrorResponse(it.id, rpc.Errorf(rpc.CodeInternal, "too many requests at once")))
	}
}

// ask routes a request of the server to the call it belongs to.
func (c *conn) ask(m rpc.Message, from *call) {
	if m.Method == "ping" && !c.modern.Load() {
		c.link.tell(rpc.Response(m.ID, []byte("{}")))
		return
	}
	need := rpc.AskCapability[m.Method]
	if c.modern.Load() || need == "" || strictjson.Get(c.s.cfg.ClientCapabilities, need) == nil {
		c.s.courier.event(UndeclaredAsk)
		c.link.tell(rpc.ErrorResponse(m.ID, rpc.Errorf(rpc.CodeMethodNotFound, "method not found")))
		return
	}
	k := from
	if k == nil {
		k = c.soleOwner()
	}
	if k == nil || k.request.OnRequest == nil {
		c.s.courier.event(UnroutableAsk)
		c.link.tell(rpc.ErrorResponse(m.ID, rpc.Errorf(rpc.CodeMethodNotFound, "no open request of a client that could answer this")))
		return
	}
	c.put(k, item{id: m.ID, method: m.Method, params: m.Params.Raw()})
}

// soleOwner returns a call that can take a request of the server when the
// transport does not say which: one of the only owner with an open call, or with
// one that was given up and that the server may still work at. With two owners a
// question could reach the wrong person, so there is none (N17). Of one owner's
// calls it is an act, if there is one: an answer is judged as its argument (N18).
func (c *conn) soleOwner() (found *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		if k.request.OnRequest == nil {
			continue
		}
		if found != nil && found.request.Owner != k.request.Owner {
			return nil
		}
		if d := k.request.Decision; found == nil || d != nil && d.Effect.Gated() {
			found = k
		}
	}
	for _, l := range c.lost {
		if l.asks && found != nil && found.request.Owner != l.owner {
			return nil
		}
	}
	return found
}

// ended says why a request got no answer.
func ended(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return "the server did not answer in time"
	}
	return "the request was cancelled"
}
