package downstream

import (
	"context"
	"net/http"
	"time"
)

// pump writes notifications until the client goes away (false), or replaced or over
// is closed, the session ends or the gateway stops (true).
func (x *exchange) pump(out *sse, q queue, replaced, over <-chan struct{}, f Filter, subscription []byte) bool {
	tick := time.NewTicker(x.h.o.KeepAlive)
	defer tick.Stop()
	for {
		select {
		case <-q.Ready:
			if n, ok := q.Pop(); ok && f.Admits(n.method, n.params) && out.event("", n.message(subscription)) != nil {
				return false
			}
		case <-tick.C:
			if x.secret != "" {
				if s, no := x.findSession(x.secret); no == noSession || no == nil && s != x.session {
					return true
				}
			}
			if out.comment() != nil {
				return false
			}
		case <-x.r.Context().Done():
			return false
		case <-replaced:
			return true
		case <-over:
			return true
		case <-x.h.done:
			return true
		}
	}
}

// get is the legacy stream of notifications, or the rest of an answer.
func (x *exchange) get() *refused {
	h := x.h
	if !x.sse {
		return noStreamType
	}
	c, bad := x.find()
	if bad != nil {
		return bad
	}
	if id, ok := x.r.Header[headerLastID]; ok {
		return x.resume(c, id[0])
	}
	over, leave, bad := h.listen(holderOf(x.principal, c.session))
	if bad != nil {
		return bad
	}
	defer leave()
	replaced, ended := c.listening()
	defer ended()
	f := Filter{All: true}
	q := newQueue(notesWaiting)
	l := Listener{Principal: x.principal, Session: c.session, Era: Legacy, Version: c.hello.version, Filter: f}
	_, unsubscribe := h.router.Subscribe(x.r.Context(), l, q.deliver(f, h.o.Refused.full(x.session)))
	defer unsubscribe()
	out, err := startSSE(x.w)
	if err != nil {
		return nil
	}
	x.pump(out, q, replaced, over, f, nil)
	return nil
}

// resume sends what is left of an answer to the connection it belongs to.
func (x *exchange) resume(c *conn, last string) *refused {
	id, number, ok := parseEventID(x.h.key, c.key, last)
	if !ok || c.stateless() {
		return noReplay
	}
	s := c.stream(id)
	if s == nil {
		return noReplay
	}
	defer c.settle(s, x.h)
	who := holderOf(x.principal, c.session)
	if no := x.h.enter(x.h.streams, who, 1); no != nil {
		return no
	}
	defer x.h.leave(x.h.streams, who, 1)
	reader, ok := s.attach(number + 1)
	if !ok {
		return noReplay
	}
	x.drain(s, c, reader, true)
	return nil
}

// delete ends a session, or at an endpoint a connection of it.
func (x *exchange) delete() *refused {
	h := x.h
	if x.carried && !x.anyHeader(headerSession) {
		return noAllowed("GET, POST") // an endpoint's session is not its clients' to end
	}
	c, bad := x.find()
	if bad != nil {
		return bad
	}
	h.mu.Lock()
	delete(h.conns, c.key)
	h.mu.Unlock()
	c.close()
	if !x.carried && h.router.CloseSession(context.WithoutCancel(x.r.Context()), c.session) != nil {
		return noState
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}
