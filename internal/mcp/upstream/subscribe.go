package upstream

import (
	"context"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

const maxSubscriptions = 100 // open resource subscriptions on one connection

// startListening opens subscriptions/listen for the list changes a 2026-07-28
// server offers. On the legacy wire they come unasked.
func (c *conn) startListening(capabilities []byte) {
	if !c.modern.Load() {
		return
	}
	var wanted []strictjson.Member
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if v := strictjson.Get(strictjson.Get(capabilities, kind), "listChanged"); string(v) == "true" {
			wanted = append(wanted, strictjson.Member{Name: kind + "ListChanged", Value: v})
		}
	}
	if wanted == nil {
		return
	}
	params := strictjson.Make(strictjson.Member{Name: "notifications", Value: strictjson.Make(wanted...).Raw()})
	c.wg.Go(func() {
		delay := c.s.limits.RestartMin
		for {
			acked := false
			out := c.listenOnce(c.ctx, Request{Params: params}, func() { acked = true; c.s.changes.Add(1) })
			if c.ctx.Err() != nil || out.End == Answered && out.Err != nil {
				return // closed, or the server does not want this
			}
			if acked {
				delay = c.s.limits.RestartMin
			}
			if !sleep(c.ctx, c.s.clock, delay) {
				return
			}
			c.s.unheard()
			delay = min(2*delay, c.s.limits.RestartMax)
		}
	})
}

// listenOnce holds one subscriptions/listen request open until it ends.
func (c *conn) listenOnce(ctx context.Context, r Request, acked func()) Response {
	r.Method = "subscriptions/listen"
	k := c.open(r, false, nil)
	defer c.forget(k)
	if err := c.compose(k); err != nil {
		return notSent("%s", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	res := make(chan Response, 1)
	go func() { res <- c.link.exchange(ctx, k) }()
	for {
		select {
		case <-k.inbox.Ready:
			if it, ok := k.inbox.Pop(); ok && it.method == "notifications/subscriptions/acknowledged" {
				acked()
			}
		case r := <-res:
			return c.settle(k, r)
		}
	}
}

// subscribe is resources/subscribe on 2026-07-28: a subscriptions/listen of its
// own, acknowledged or refused.
func (c *conn) subscribe(ctx context.Context, r Request) Response {
	named := r.Params.Get("uri")
	uri, ok := named.Text()
	if !ok {
		return notSent("resources/subscribe needs a uri")
	}
	sub, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	_, have := c.subs[uri]
	full := len(c.subs) >= maxSubscriptions
	if !have && !full {
		c.subs[uri] = cancel
	}
	c.mu.Unlock()
	if have || full {
		cancel()
		if have {
			return Response{End: Answered, Result: strictjson.Make()}
		}
		return notSent("too many open subscriptions")
	}
	params := append(append([]byte(`{"notifications":{"resourceSubscriptions":[`), named.Raw()...), "]}}"...)
	acked, ended := make(chan struct{}, 1), make(chan Response, 1)
	c.wg.Go(func() {
		out := c.listenOnce(sub, Request{Params: strictjson.Of(params), Decision: r.Decision, Listed: r.Listed}, func() { rpc.Wake(acked) })
		cancel()
		c.mu.Lock()
		delete(c.subs, uri)
		c.mu.Unlock()
		ended <- out
	})
	ctx, stop := timeout(ctx, c.s.clock, c.s.limits.Call)
	defer stop()
	select {
	case <-acked:
		return Response{End: Answered, Result: strictjson.Make()}
	case out := <-ended:
		if out.End == Answered && out.Err == nil {
			out = Response{End: Answered, Err: rpc.Errorf(rpc.CodeInternal, "the server ended the subscription")}
		}
		return out
	case <-ctx.Done():
		cancel()
		return unknown("the server did not acknowledge the subscription in time")
	}
}

func (c *conn) unsubscribe(r Request) Response {
	uri, _ := r.Params.Get("uri").Text()
	c.mu.Lock()
	cancel := c.subs[uri]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return Response{End: Answered, Result: strictjson.Make()}
}
