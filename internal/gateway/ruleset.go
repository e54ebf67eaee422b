package gateway

import (
	"context"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/policy"
)

// A decision rests on the definitions a server listed. From the reading of its
// list_changed on they may be others, so the server's tools are closed until it
// has listed them again (R26): a call waits for that, because most changes come
// in bursts and change nothing that is called. Package upstream holds back what
// was judged before; a result that comes after vouches only if the definition
// stayed the same.

// listed returns the newest ruleset, and whether it holds all that the server said
// of its lists. It waits for the server to list them anew where that is needed.
func (g *Gateway) listed(ctx context.Context, name string) (v *ruleset, ok bool) {
	var late <-chan time.Time
	for {
		g.mu.Lock()
		v, changed := g.ruleset, g.replaced
		g.mu.Unlock()
		s := g.servers[name]
		if s == nil || v.at[name] == s.conn.Changes() {
			return v, true // Writ's own server never changes
		}
		s.listAgain()
		s.mu.Lock()
		vain := s.vain == v.at[name]
		s.mu.Unlock()
		if vain {
			return v, false
		}
		if late == nil {
			t := time.NewTimer(s.patience)
			defer t.Stop()
			late = t.C
		}
		select {
		case <-changed:
		case <-late:
			s.mu.Lock()
			s.vain = v.at[name]
			s.mu.Unlock()
			g.log.Warn("a server said that its lists changed and does not list them: its tools are closed until it does", "server", name)
			return v, false
		case <-ctx.Done():
			return v, false
		}
	}
}

// same reports whether the ruleset has the definition a decision was made on.
func (v *ruleset) same(d *gate.Decision) bool {
	name := d.Call.Tool
	if d.Call.Method != policy.CallTool {
		name = string(d.Call.Method)
	}
	t := v.catalogue.Lookup(d.Call.Server, name)
	if t == nil || d.Tool == nil {
		return t == d.Tool
	}
	return t.Pin == d.Tool.Pin && t.State == d.Tool.State
}

// stillListed waits until no change of the server's lists is pending, and
// reports whether the call's definition is the one it was judged by. The call
// then rests on the lists as they are, which v holds.
func (a *judgedCall) stillListed(ctx context.Context, d *gate.Decision) (v *ruleset, ok bool) {
	v, ok = a.g.listed(ctx, d.Call.Server)
	if d.Shadow { // every call passes
		if s := a.g.servers[d.Call.Server]; s != nil {
			a.lists.Store(s.conn.Changes())
		}
		return v, true
	}
	if ok = ok && v.same(d); ok {
		a.lists.Store(v.at[d.Call.Server])
	}
	return v, ok
}

// unmoved is stillListed for a call that was answered: it waits only if its
// server's lists changed meanwhile.
func (a *judgedCall) unmoved(d *gate.Decision) bool {
	s := a.g.servers[d.Call.Server]
	if s == nil || listKey(string(d.Call.Method)) != "" || s.conn.Changes() == a.lists.Load() {
		return true
	}
	_, ok := a.stillListed(context.Background(), d)
	return ok
}

// changedUnder is the end of a call that was not sent because its server said
// that its lists changed.
func changedUnder() upstream.Response {
	return upstream.Response{End: upstream.NotSent, Changed: true, Err: rpc.Errorf(rpc.CodeInternal, "the server's lists changed")}
}

// unlisted is the outcome of such a call.
func unlisted() writ.Outcome {
	return writ.Outcome{Status: writ.Rejected, Rejection: &writ.Rejection{
		Code: writ.CodeOf(writ.NameUnlisted), Reason: writ.NameUnlisted,
		Failures: []writ.Failure{{Reason: writ.NameUnlisted, Need: "its server said that its tools changed, and this one is not listed again as it was; " +
			"list the tools and call again; if that does not help the server does not list them, and an operator must restart it"}},
	}}
}
