package downstream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// errCancelled is the cause of a call's context after the client cancelled it.
var errCancelled = errors.New("cancelled by the client")

// errOver is what a Peer reports when its request or its client is gone.
var errOver = errors.New("the request is over")

// table holds what is open on one connection: the client's requests, by their
// id, and ours to the client, by ids that we chose at random. Only answers to
// ids in it are heard (P22, S16).
type table struct {
	mu     sync.Mutex
	open   map[string]*call
	asked  map[string]chan rpc.Message
	max    int
	closed bool
}

// call is one open request of the client.
type call struct {
	key       string
	cancel    context.CancelCauseFunc
	cancelled bool // guarded by table.mu
}

func newTable(limit int) *table {
	return &table{open: map[string]*call{}, asked: map[string]chan rpc.Message{}, max: limit}
}

// begin registers a request, whose context ends with ctx or by cancel; an id that is
// open is refused and the first request goes on.
func (t *table) begin(ctx context.Context, id []byte) (context.Context, *call, *refused) {
	key := rpc.IDKey(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.open[key] != nil:
		return nil, nil, noIDInUse
	case len(t.open) >= t.max:
		return nil, nil, noRoom
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c := &call{key: key, cancel: cancel}
	t.open[key] = c
	return ctx, c, nil
}

// end forgets a request, ends its context and reports whether the client cancelled it, in
// which case no answer is sent.
func (t *table) end(c *call) (cancelled bool) {
	defer c.cancel(nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c.key)
	return c.cancelled
}

// cancel handles notifications/cancelled; an unknown id is ignored.
func (t *table) cancel(params strictjson.Value) {
	id := params.Get("requestId")
	if !rpc.ValidID(id) {
		return
	}
	t.mu.Lock()
	c := t.open[rpc.IDKey(id.Raw())]
	if c != nil {
		c.cancelled = true
	}
	t.mu.Unlock()
	if c != nil {
		c.cancel(errCancelled)
	}
}

func (t *table) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// ask registers a request to the client. The channel gets its answer, or is
// closed when none can come any more.
func (t *table) ask() (id []byte, answer <-chan rpc.Message, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.asked) >= t.max {
		return nil, nil, false
	}
	for id == nil || t.asked[string(id)] != nil {
		id = rpc.NewID()
	}
	ch := make(chan rpc.Message, 1)
	t.asked[string(id)] = ch
	return id, ch, true
}

func (t *table) forget(id []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.asked, string(id))
}

// answer gives a response to who asked; false means nobody did.
func (t *table) answer(m rpc.Message) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	ch := t.asked[string(m.ID)]
	if ch == nil {
		return false
	}
	delete(t.asked, string(m.ID))
	ch <- m
	return true
}

// hangUp fails all open questions: the client can no longer answer.
func (t *table) hangUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for id, ch := range t.asked {
		close(ch)
		delete(t.asked, id)
	}
}

func answer(id []byte, r Reply) []byte {
	switch {
	case r.Err != nil:
		return rpc.ErrorResponse(id, r.Err)
	case r.Result == nil:
		return rpc.ErrorResponse(id, rpc.Errorf(rpc.CodeInternal, "no result"))
	}
	return rpc.Response(id, r.Result)
}

// link is the Peer of one request.
type link struct {
	of       *Request
	table    *table // nil: the client cannot be asked
	send     func(ctx context.Context, message []byte) error
	over     chan struct{} // closed when Handle has returned
	patience time.Duration
}

// handle gives a request to the Router, with a link as its Peer.
func handle(ctx context.Context, to Router, r *Request, t *table, send func(context.Context, []byte) error, patience time.Duration) Reply {
	l := &link{r, t, send, make(chan struct{}), patience}
	defer close(l.over)
	r.Peer = l
	return to.Handle(ctx, r)
}

func (l *link) Notify(ctx context.Context, method string, params []byte) error {
	select {
	case <-l.over:
		return errOver
	default:
	}
	if l.of.Era == Modern && method == noteLog && l.of.LogLevel == nil {
		return nil // 2026-07-28 sends no log messages to a request that did not ask for them
	}
	return l.send(ctx, rpc.Notification(method, params))
}

func (l *link) Request(ctx context.Context, method string, params []byte) ([]byte, *rpc.Error) {
	if l.of.Era == Modern || l.table == nil || !MayAsk(l.of.Version, l.of.ClientCapabilities, method, params) {
		return nil, rpc.Errorf(rpc.CodeMissingCap, "the client cannot be asked this: it did not declare the capability")
	}
	id, answer, ok := l.table.ask()
	if !ok {
		return nil, rpc.Errorf(rpc.CodeInternal, "the client cannot be asked now")
	}
	defer l.table.forget(id)
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	if err := l.send(ctx, rpc.Request(id, method, params)); err != nil {
		return nil, rpc.Errorf(rpc.CodeInternal, "the client could not be reached")
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
		case m.Error.Exists():
			return nil, rpc.ParseError(m.Error)
		default:
			return m.Result.Raw(), nil
		}
	case <-l.over:
	case <-ctx.Done():
		stop, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		l.send(stop, rpc.Cancelled(id))
	}
	return nil, rpc.Errorf(rpc.CodeInternal, "the client did not answer")
}

// queue holds notifications for one listener. What is already waiting is not queued twice
// (T14), and what does not fit is dropped and told.
type queue struct{ *rpc.Queue[note] }

type note struct {
	method string
	params []byte
}

// message is what its listener gets: on 2026-07-28 with the id of its subscription, else nil.
func (n note) message(subscription []byte) []byte {
	if subscription == nil {
		return rpc.Notification(n.method, n.params)
	}
	return rpc.Notification(n.method, withMeta(n.params, metaSubscription, subscription))
}

// deliver fills the queue with what f admits, and calls full for what has no room.
func (q queue) deliver(f Filter, full func()) func(string, []byte) {
	return func(method string, params []byte) {
		if isNote(method) && f.Admits(method, params) && !q.push(method, params) {
			full()
		}
	}
}

func newQueue(limit int) queue { return queue{rpc.NewQueue[note](limit)} }

// push reports false when the queue was full.
func (q queue) push(method string, params []byte) bool {
	var same func(note) bool
	if strings.HasSuffix(method, "/list_changed") || strings.HasSuffix(method, "/updated") {
		same = func(n note) bool { return n.method == method && string(n.params) == string(params) }
	}
	return q.Push(note{method, params}, same)
}
