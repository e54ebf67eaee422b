package gateway

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// listeners are the client streams that want notifications, and the resources
// that sessions want updates of.
type listeners struct {
	mu   sync.Mutex
	open map[*listener]bool
	subs map[subscription]bool
}

type listener struct {
	session string            // public id, "" for none
	filter  downstream.Filter // what was granted
	deliver func(method string, params []byte)
}

// subscription is one resource a session wants updates of.
type subscription struct {
	session string // public id
	uri     string
}

// add tells a stream from now on, until remove is called.
func (ls *listeners) add(e *listener) (remove func()) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.open[e] = true
	return func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		delete(ls.open, e)
	}
}

// tell notifies the streams that want it. wants is called with ls.mu held.
func (ls *listeners) tell(method string, params []byte, wants func(*listener) bool) {
	ls.mu.Lock()
	var to []*listener
	for e := range ls.open {
		if wants(e) {
			to = append(to, e)
		}
	}
	ls.mu.Unlock()
	for _, e := range to {
		e.deliver(method, params)
	}
}

// listChanged tells that a list of that kind changed.
func (ls *listeners) listChanged(kind string) {
	method := "notifications/" + kind + "/list_changed"
	ls.tell(method, nil, func(e *listener) bool { return e.filter.Admits(method, nil) })
}

// updated tells who subscribed to a resource, and of it nothing but the URI.
func (ls *listeners) updated(uri string) {
	params := strictjson.Set([]byte("{}"), "uri", strictjson.Quote(uri))
	ls.tell("notifications/resources/updated", params, func(e *listener) bool {
		return slices.Contains(e.filter.URIs, uri) || e.filter.All && ls.subs[subscription{e.session, uri}]
	})
}

func (ls *listeners) subscribe(k subscription) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.subs[k] = true
}

// unsubscribe reports whether it was the last subscription of the resource.
func (ls *listeners) unsubscribe(k subscription) (last bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.subs[k] {
		return false
	}
	delete(ls.subs, k)
	for other := range ls.subs {
		if other.uri == k.uri {
			return false
		}
	}
	return true
}

func (ls *listeners) forget(session string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	maps.DeleteFunc(ls.subs, func(k subscription, _ bool) bool { return k.session == session })
}

// Subscribe registers a stream for notifications (downstream.Router). Resource
// updates are granted only where the gate lets the session subscribe (R32).
func (g *Gateway) Subscribe(ctx context.Context, l downstream.Listener, deliver func(method string, params []byte)) (downstream.Filter, func()) {
	e := &listener{filter: l.Filter, deliver: deliver}
	if h, ok := l.Session.(handle); ok {
		e.session = h.id
	}
	if len(l.Filter.URIs) > 0 {
		e.filter.URIs = nil
		if rs := g.rules.current(ctx); rs != nil {
			for _, uri := range l.Filter.URIs {
				r := &downstream.Request{Method: "resources/subscribe", Era: l.Era, Version: l.Version, Principal: l.Principal,
					Session: l.Session, Params: strictjson.Make(strictjson.Member{Name: "uri", Value: strictjson.Quote(uri)}), Peer: NoPeer}
				if g.resource(ctx, r, rs, policy.SubscribeResource).Err == nil {
					e.filter.URIs = append(e.filter.URIs, uri)
				}
			}
		}
	}
	return e.filter, g.listeners.add(e)
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

// notified passes on what a server says outside of any request. None of it is
// ever evidence (attack P23).
//
// An update of a resource reaches who subscribed to it at that server. A log
// message reaches the one session it can be about: the only one that ever called
// the server (owner).
func (g *Gateway) notified(s *server, method string, params []byte, owner string) {
	switch method {
	case "notifications/resources/updated":
		uri, rs := textMember(strictjson.Of(params), "uri"), g.rules.newest()
		if rs != nil && rs.fleet.servers[rs.resourceServer(uri)] == s {
			g.listeners.updated(uri)
		}
	case "notifications/message":
		g.listeners.tell(method, params, func(e *listener) bool { return owner != "" && e.session == owner && e.filter.All })
	}
}

// listChanged is told that a server's list of that kind changed.
func (g *Gateway) listChanged(s *server, kind string) {
	rpc.Wake(s.again)
	if kind != "tools" { // of these a new ruleset tells
		g.listeners.listChanged(kind)
	}
}

func (g *Gateway) subscribe(ctx context.Context, r *downstream.Request, rs *ruleset) downstream.Reply {
	reply := g.resource(ctx, r, rs, policy.SubscribeResource)
	if reply.Err != nil {
		return reply
	}
	uri := strings.Clone(textMember(r.Params, "uri")) // kept as long as the subscription
	if h, ok := r.Session.(handle); ok {
		g.listeners.subscribe(subscription{h.id, uri})
	}
	return reply
}

func (g *Gateway) unsubscribe(ctx context.Context, r *downstream.Request, rs *ruleset) downstream.Reply {
	uri, ok := r.Params.Get("uri").Text()
	h, carried := r.Session.(handle)
	if !ok || !carried {
		return failure(rpc.CodeInvalidParams, "params.uri is a string")
	}
	if g.listeners.unsubscribe(subscription{h.id, uri}) {
		if srv := rs.fleet.servers[rs.resourceServer(uri)]; srv != nil {
			if resp := srv.conn.Do(ctx, upstream.Request{Method: r.Method, Params: strictjson.Make(only(r.Params, "uri")...)}); resp.Err != nil {
				return downstream.Reply{Err: resp.Err}
			}
		}
	}
	return downstream.Reply{Result: []byte("{}")}
}
