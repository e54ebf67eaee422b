package gateway

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// A client has tools of its own, which it runs itself. It asks before it does, and
// tells what came of it: the same door in two parts, with no server between them. The
// decision is on record before the answer, as that on a server's call is before the
// bytes leave. What comes back is taken once, for a call that was judged.

// A HostCall is a call of a client's own tool.
type HostCall struct {
	ID string // the client's own name of it
	gate.Call
	// Names are texts in its argument "command" that may name files; Dir is where they,
	// and other relative paths, begin, and Elsewhere says that some begin at others.
	Names     []string
	Dir       string
	Elsewhere bool
	// Conversation is the client's name of the one it makes the call in, "" for none.
	Conversation string
}

// A Verdict is what a client is told of a call before it makes it.
type Verdict struct {
	Allowed bool
	// Asks says that a person may let the call pass where the client asks him. That is
	// his to say there: his yes vouches for nothing here.
	Asks      bool
	Record    string // the decision's
	Rejection *writ.Rejection
}

var (
	// ErrNotHeld says that no such call was judged, or that its result is there already.
	ErrNotHeld = errors.New("no call of that name waits for its result")
	// ErrOtherCall says that a call of that name was judged, and is another.
	ErrOtherCall = errors.New("a call of that name was judged, and it was another")
)

// KindAnyway is the kind of a record of what came of a refused call that a client's
// person let pass where the client asked him.
const KindAnyway audit.Kind = "anyway"

type anywayData struct {
	Decision uint64 `json:"decision"` // n of the refusal
	Status   string `json:"status"`
}

// Bounds of what waits for a result; the oldest is given up for another.
const (
	maxHeld      = 1000     // calls
	maxHeldBytes = 64 << 20 // of their arguments
)

// held are the calls of clients' own tools that wait for what came of them.
type held struct {
	mu    sync.Mutex
	calls map[heldName]*heldCall
	order []heldName
	bytes int // of their arguments
}

type heldName struct{ session, id string }

type heldCall struct {
	*judgedCall
	of      HostCall
	verdict Verdict
	ready   chan struct{} // closed when the verdict is there
	err     error
}

// Before judges a call of a client's own tool. waits says that the client asks nobody:
// then it is put to a person here, as a call of any other client is. Asked once more of
// the same call, it says the same.
func (g *Gateway) Before(ctx context.Context, s downstream.Session, principal string, call HostCall, waits bool) (Verdict, error) {
	rs := g.rules.current(ctx)
	if rs == nil {
		return Verdict{}, errNotRecorded
	}
	r := &downstream.Request{Method: "tools/call", Era: downstream.Modern, Principal: principal, Session: s}
	c := &heldCall{judgedCall: &judgedCall{g: g, rs: rs, r: r, call: call.Call, host: &call}, of: call, ready: make(chan struct{})}
	if !waits {
		c.puts = maxPuts // the client asks
	}
	name := heldName{s.PublicID(), call.ID}
	if there := g.held.add(name, c); there != nil {
		select {
		case <-there.ready:
		case <-ctx.Done():
			return Verdict{}, ctx.Err()
		}
		if !there.same(&call) {
			return Verdict{}, ErrOtherCall
		}
		return there.verdict, there.err
	}
	defer close(c.ready)
	c.verdict, c.err = c.before(ctx, waits)
	if c.err != nil || !c.verdict.Allowed && !c.verdict.Asks {
		g.held.take(name, c)
	}
	return c.verdict, c.err
}

// before judges the call and has the decision on record, that of a read too.
func (c *heldCall) before(ctx context.Context, waits bool) (v Verdict, err error) {
	for try := 0; ; try++ {
		if _, err = c.decide(ctx, c.call); err != nil {
			return v, err
		}
		if c.halted != nil {
			return Verdict{Rejection: c.halted}, nil
		}
		d := c.newest()
		if err = d.record.wait(); err == nil {
			v = Verdict{Allowed: d.Allowed(), Record: c.name(d), Rejection: d.Outcome.Rejection}
			v.Asks = !v.Allowed && !waits && asksHost(d)
			return v, nil
		}
		if try == 3 || !errors.Is(err, audit.ErrConflict) {
			return v, err
		}
	}
}

// asksHost reports whether a client's person may let a refused call pass: where a person
// may here, and where a file that steers other programs is all that stands against it,
// which he has before his eyes.
func asksHost(d *decision) bool {
	if d.Ask() != nil {
		return true
	}
	for _, f := range d.Outcome.Rejection.Failures {
		if f.Reason != writ.FormDotFile {
			return false
		}
	}
	return true
}

// After takes what came of a call that was judged: a result object, that of an error
// too. It is the result of that call alone: where the client made another, it vouches
// for nothing.
func (g *Gateway) After(s downstream.Session, call HostCall, result []byte) (evidence string, err error) {
	c := g.held.take(heldName{s.PublicID(), call.ID}, nil)
	if c == nil {
		return "", ErrNotHeld
	}
	resp := upstream.Response{End: upstream.Answered}
	if resp.Result, err = strictjson.Parse(result, strictjson.Result); err != nil {
		resp = upstream.Response{End: upstream.TooLarge, Err: rpc.Errorf(rpc.CodeInternal, "the result cannot be recorded")}
	}
	if !c.same(&call) {
		resp = upstream.Response{End: upstream.Unknown, Err: rpc.Errorf(rpc.CodeInternal, "the client made another call")}
	}
	if !c.verdict.Allowed {
		return "", c.anyway(resp)
	}
	reply := c.conclude(resp)
	if reply.Err != nil && resp.Err == nil {
		return "", errNotRecorded
	}
	evidence, _ = strictjson.Text(strictjson.Get(strictjson.Get(strictjson.Get(reply.Result, "_meta"), MetaEvidence), "id"))
	return evidence, nil
}

// anyway records what came of a call that the client's person let pass. It is the
// result of no accepted call, so it is none: nothing of it is evidence.
func (c *heldCall) anyway(resp upstream.Response) error {
	d := c.newest()
	_, err := c.g.sessions.recordIn(context.Background(), c.s.id, func(s *session) (*receipt, error) {
		data := anywayData{Decision: d.record.n, Status: string(c.statusOf(d, resp))}
		var vs []value
		if resp.Result.Exists() {
			vs = append(vs, value{valueResult, resp.Result.Raw()})
		}
		return c.g.sessions.write(s, processEnd, KindAnyway, c.g.sessions.now(), data, vs...)
	})
	return err
}

// same reports whether a call is the one that was judged, byte for byte.
func (c *heldCall) same(call *HostCall) bool {
	return c.of.Server == call.Server && c.of.Tool == call.Tool && bytes.Equal(c.of.Arguments.Raw(), call.Arguments.Raw())
}

// add keeps a call, or returns the one of that name that is kept.
func (h *held) add(name heldName, c *heldCall) (there *heldCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if there = h.calls[name]; there != nil {
		return there
	}
	if h.calls == nil {
		h.calls = map[heldName]*heldCall{}
	}
	for size := len(c.of.Arguments.Raw()); len(h.order) > 0 && (len(h.order) >= maxHeld || h.bytes+size > maxHeldBytes); {
		given := h.calls[h.order[0]]
		h.drop(h.order[0])
		select {
		case <-given.ready:
			given.over(given.newest()) // no result of it is taken any more
		default:
		}
	}
	h.calls[name], h.order = c, append(h.order, name)
	h.bytes += len(c.of.Arguments.Raw())
	return nil
}

// drop gives up a call that is kept. The caller holds h.mu.
func (h *held) drop(name heldName) {
	h.bytes -= len(h.calls[name].of.Arguments.Raw())
	delete(h.calls, name)
	i := slices.Index(h.order, name)
	h.order = slices.Delete(h.order, i, i+1)
}

// take gives up the call of that name, or, where c is one, that very call.
func (h *held) take(name heldName, c *heldCall) *heldCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	there := h.calls[name]
	if there == nil || c != nil && there != c {
		return nil
	}
	if c == nil {
		select {
		case <-there.ready:
		default:
			return nil // it was not answered yet
		}
	}
	h.drop(name)
	return there
}
