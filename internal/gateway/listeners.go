package gateway

import (
	"context"
	"slices"

	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// listener is one client stream that wants notifications.
type listener struct {
	l       downstream.Listener
	filter  downstream.Filter // what was granted
	deliver func(method string, params []byte)
}

// subscription is one resource a session wants updates of.
type subscription struct {
	session string // public id
	uri     string
}

// Subscribe registers a stream for notifications (downstream.Router). Resource
// updates are granted only where the gate lets the session subscribe (R32).
func (g *Gateway) Subscribe(ctx context.Context, l downstream.Listener, deliver func(method string, params []byte)) (downstream.Filter, func()) {
	e := &listener{l: l, filter: l.Filter, deliver: deliver}
	if len(l.Filter.URIs) > 0 {
		e.filter.URIs = nil
		if v := g.current(ctx); v != nil {
			for _, uri := range l.Filter.URIs {
				r := &downstream.Request{Method: "resources/subscribe", Era: l.Era, Version: l.Version, Principal: l.Principal,
					Session: l.Session, Params: strictjson.Set([]byte("{}"), "uri", strictjson.Quote(uri)), Peer: NoPeer}
				if g.resource(ctx, r, v, policy.SubscribeResource).Err == nil {
					e.filter.URIs = append(e.filter.URIs, uri)
				}
			}
		}
	}
	g.mu.Lock()
	g.listeners[e] = true
	g.mu.Unlock()
	return e.filter, func() {
		g.mu.Lock()
		delete(g.listeners, e)
		g.mu.Unlock()
	}
}

// NoPeer is the client of a call that can be neither asked nor notified.
var NoPeer downstream.Peer = deafPeer{}

// deafPeer is the client of a subscription that is judged on its own: there is
// no request it could be answered in.
type deafPeer struct{}

func (deafPeer) Notify(context.Context, string, []byte) error { return nil }
func (deafPeer) Request(context.Context, string, []byte) ([]byte, *rpc.Error) {
	return nil, rpc.Errorf(rpc.CodeMethodNotFound, "nobody can be asked here")
}

func (g *Gateway) broadcast(method string, params []byte, wants func(downstream.Filter) bool) {
	g.mu.Lock()
	var to []*listener
	for e := range g.listeners {
		if wants(e.filter) {
			to = append(to, e)
		}
	}
	g.mu.Unlock()
	for _, e := range to {
		e.deliver(method, params)
	}
}

// notified passes on what a server says outside of any request. None of it is
// ever evidence (attack P23).
//
// An update of a resource reaches who subscribed to it at that server, and of it
// nothing but the URI. A log message reaches the one session it can be about:
// the only one that ever called the server (owner).
func (g *Gateway) notified(s *server, method string, params []byte, owner string) {
	switch method {
	case "notifications/resources/updated":
		uri := textMember(params, "uri")
		g.mu.Lock()
		if _, own := g.insideResource(uri); own || g.ruleset == nil || g.resourceServer(g.ruleset, uri) != s.name {
			g.mu.Unlock()
			return
		}
		params = only(params, "uri")
		var to []*listener
		for e := range g.listeners {
			own, ok := e.l.Session.(handle)
			if slices.Contains(e.filter.URIs, uri) || e.filter.All && ok && g.subs[subscription{own.id, uri}] {
				to = append(to, e)
			}
		}
		g.mu.Unlock()
		for _, e := range to {
			e.deliver(method, params)
		}
	case "notifications/message":
		g.mu.Lock()
		var to []*listener
		for e := range g.listeners {
			if own, ok := e.l.Session.(handle); ok && owner != "" && own.id == owner && e.filter.All {
				to = append(to, e)
			}
		}
		g.mu.Unlock()
		for _, e := range to {
			e.deliver(method, params)
		}
	}
}

func (g *Gateway) subscribed(r *downstream.Request, uri string) {
	if h, ok := r.Session.(handle); ok {
		g.mu.Lock()
		g.subs[subscription{h.id, uri}] = true
		g.mu.Unlock()
	}
}

func (g *Gateway) unsubscribe(ctx context.Context, r *downstream.Request, v *ruleset) downstream.Reply {
	uri, ok := strictjson.Text(strictjson.Get(r.Params, "uri"))
	h, carried := r.Session.(handle)
	if !ok || !carried {
		return failure(rpc.CodeInvalidParams, "params.uri is a string")
	}
	g.mu.Lock()
	had := g.subs[subscription{h.id, uri}]
	delete(g.subs, subscription{h.id, uri})
	others := false
	for k := range g.subs {
		others = others || k.uri == uri
	}
	g.mu.Unlock()
	srv := g.servers[g.resourceServer(v, uri)]
	if _, own := g.insideResource(uri); own {
		srv = nil // nobody else was asked
	}
	if had && !others && srv != nil {
		if resp := srv.conn.Do(ctx, upstream.Request{Method: r.Method, Params: only(r.Params, "uri")}); resp.Err != nil {
			return downstream.Reply{Err: resp.Err}
		}
	}
	return downstream.Reply{Result: []byte("{}")}
}
