package downstream

import (
	"context"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// modern serves one POST of 2026-07-28. Its context ends with the client's
// connection, which is how that wire cancels.
func (x *exchange) modern(body []byte) *refused {
	h := x.h
	m, bad := rpc.Parse(body, strictjson.Request)
	x.id = m.ID
	switch {
	case bad != nil:
		return noMessage(bad)
	case x.anyHeader(headerSession):
		return noEra(Version20260728)
	case m.IsResponse():
		return noAnswer
	}
	if bad := checkMirror(x.r.Header, m.Method, m.Params); bad != nil {
		return bad
	}
	if m.IsNotification() {
		if !isNote(m.Method) {
			return noNoteKnown
		}
		return x.accepted()
	}
	if isNote(m.Method) {
		return noNoteID
	}
	mt, no := readMeta(m.Params)
	if no != nil {
		return no
	}
	if m.Method == methodInitialize && !mt.stated {
		return noEra(Version20260728)
	}
	if mt.stated && mt.version != "" && mt.version != x.version {
		return noVersionEqual
	}
	if no := mt.checkModern(); no != nil {
		return no
	}
	if goneInModern(m.Method) {
		return noMethodKnown
	}
	if m.Method == methodListen {
		return x.listen(m)
	}
	req := newRequest(m, mt, nil, x.principal, x.given)
	req.HTTP = true
	if req.ParamHeaders, no = paramHeaders(x.r.Header); no != nil {
		return no
	}
	who := holderOf(x.principal, x.given)
	if no := h.enter(h.requests, who, 1); no != nil {
		return no
	}
	s := x.newStream(false)
	ctx, cancel := h.until(x.r.Context())
	defer cancel()
	x.run(ctx, s, nil, who, 1, func(ctx context.Context) {
		var a Reply
		if m.Method == methodDiscover {
			a.Result = answerDiscover(ctx, h.router)
		} else {
			a = handle(ctx, h.router, req, nil, s.send, h.o.Patience)
		}
		s.finish(answer(m.ID, a), statusOf(a.Err))
	})
	return nil
}

// until returns a context that ends with either.
func (h *HTTP) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	off := context.AfterFunc(h.ctx, cancel)
	return ctx, func() { off(); cancel() }
}

// listen is subscriptions/listen: an event stream, acknowledged first, open
// until the client goes away, the session ends or we do.
func (x *exchange) listen(m rpc.Message) *refused {
	h := x.h
	if !x.sse {
		return noStreamType
	}
	want, bad := readFilter(m.Params)
	if bad != nil {
		return bad
	}
	over, leave, bad := h.listen(holderOf(x.principal, x.given))
	if bad != nil {
		return bad
	}
	defer leave()
	l := Listener{Principal: x.principal, Session: x.given, Era: Modern, Version: Version20260728, Filter: want}
	q := newQueue(notesWaiting)
	granted, unsubscribe := h.router.Subscribe(x.r.Context(), l, q.deliver(want, h.o.Refused.full(x.session)))
	defer unsubscribe()
	granted = granted.within(want)
	out, err := startSSE(x.w)
	if err != nil || out.event("", acknowledgement(m.ID, granted)) != nil {
		return nil
	}
	if granted.empty() || x.pump(out, q, nil, over, granted, m.ID) {
		out.event("", rpc.Response(m.ID, listenEnd(m.ID)))
	}
	return nil
}
