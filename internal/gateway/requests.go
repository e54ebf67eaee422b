package gateway

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// describeWait is how long the opening waits for the servers. A client gives up
// on a gateway that does not answer, and a server may take half a minute to
// start: the lists wait for it, the opening does not.
const describeWait = 500 * time.Millisecond

// Describe answers initialize and server/discover: the union of what the
// servers can do (downstream.Router). A server that has not answered yet may
// be able to do anything.
func (g *Gateway) Describe(ctx context.Context) (capabilities, serverInfo []byte, instructions string) {
	wait, cancel := context.WithTimeout(ctx, describeWait)
	g.rules.current(wait)
	cancel()
	capabilities = []byte(`{"tools":{"listChanged":true}}`)
	for _, c := range []struct{ name, promise string }{
		{"resources", `{"subscribe":true,"listChanged":true}`}, {"prompts", `{"listChanged":true}`}, {"completions", `{}`}, {"logging", `{}`},
	} {
		have := false
		g.rules.serving().each(func(s *server) {
			info, known := s.said()
			have = have || !known || hasCapability(strictjson.Of(info.Capabilities), c.name)
		})
		if have {
			capabilities = strictjson.Set(capabilities, c.name, []byte(c.promise))
		}
	}
	info := mustJSON(struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}{"writ", "Writ", g.version})
	instructions = "Calls with a side effect run only if every argument stands in an earlier result of this session. " +
		"A refusal says which argument is unfounded and which tool would supply it."
	for _, name := range slices.Sorted(maps.Keys(g.Failed())) { // in Writ's words: what it said itself is for the person
		instructions += " The server " + name + " is not there, and has no tools; tell the user, who sees why with: writ status."
	}
	return capabilities, info, instructions
}

// Handle answers one request (downstream.Router).
func (g *Gateway) Handle(ctx context.Context, r *downstream.Request) downstream.Reply {
	reply := g.handle(ctx, r)
	if reply.Err == nil && r.Era == downstream.Modern {
		reply.Result = modernResult(r.Method, reply.Result)
	}
	return reply
}

// modernResult adds the members that clients of 2026-07-28 require and servers
// of the legacy wire do not send. A member that is there stays as it is.
func modernResult(method string, result []byte) []byte {
	v := strictjson.Of(result)
	if v.Kind() != strictjson.Object {
		return result
	}
	var ms []strictjson.Member
	add := func(name, value string) {
		if !v.Get(name).Exists() {
			ms = append(ms, strictjson.Member{Name: name, Value: []byte(value)})
		}
	}
	add("resultType", `"complete"`)
	switch method {
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list", "resources/read":
		if !asksInput(v) {
			add("ttlMs", "0")
			add("cacheScope", `"private"`)
		}
	}
	return v.With(ms...)
}

func (g *Gateway) handle(ctx context.Context, r *downstream.Request) downstream.Reply {
	rs := g.rules.current(ctx)
	if rs == nil {
		return failure(rpc.CodeInternal, "the gateway is not ready: no catalogue")
	}
	if _, isList := listOf(r.Method); isList && r.Params.Get("cursor").Exists() {
		return failure(rpc.CodeInvalidParams, "unknown cursor") // every list is one page, so none was ever given
	}
	switch r.Method {
	case "tools/list":
		return g.listTools(rs)
	case "tools/call":
		return g.callTool(ctx, r, rs)
	case "resources/list", "resources/templates/list", "prompts/list":
		return g.list(ctx, r, rs)
	case "resources/read":
		return g.resource(ctx, r, rs, policy.ReadResource)
	case "resources/subscribe":
		return g.subscribe(ctx, r, rs)
	case "resources/unsubscribe":
		return g.unsubscribe(ctx, r, rs)
	case "prompts/get":
		return g.prompt(ctx, r, rs)
	case "completion/complete":
		return g.complete(ctx, r, rs)
	case "logging/setLevel":
		return g.setLevel(ctx, r, rs)
	}
	return failure(rpc.CodeMethodNotFound, "unknown method")
}

func (g *Gateway) listTools(rs *ruleset) downstream.Reply {
	var items [][]byte
	for _, t := range rs.catalogue.Listed(g.shadow) {
		raw := t.Raw
		if t.Public != t.Name {
			raw = strictjson.Set(raw, "name", strictjson.Quote(t.Public))
		}
		items = append(items, raw)
	}
	return downstream.Reply{Result: listResult("tools", items)}
}

func (g *Gateway) callTool(ctx context.Context, r *downstream.Request, rs *ruleset) downstream.Reply {
	name, ok := r.Params.Get("name").Text()
	if !ok {
		return failure(rpc.CodeInvalidParams, "params.name is a string")
	}
	if nearMember(r.Params, "name", "arguments", "_meta", "inputResponses", "requestState") {
		return failure(rpc.CodeInvalidParams, "a member of params looks like another one")
	}
	call := gate.Call{Tool: name, Arguments: r.Params.Get("arguments")}
	if t, _ := rs.catalogue.Resolve(name, g.shadow); t != nil {
		rs, _ = g.rules.listed(ctx, t.Server)
	} else if g.Settled(ctx) == nil {
		rs = g.rules.current(ctx) // it may be of a server that was slow to start
	}
	if t, listed := rs.catalogue.Resolve(name, g.shadow); t != nil {
		call.Server, call.Tool = t.Server, t.Name
		if !listed {
			return g.callHidden(ctx, r, rs, call)
		}
		if r.HTTP && r.Era == downstream.Modern {
			if err := downstream.CheckParamHeaders(t.InputSchema(), call.Arguments, r.ParamHeaders); err != nil {
				return downstream.Reply{Err: err}
			}
		}
	}
	return g.callAsked(ctx, r, rs, call)
}

// callHidden answers a call to a tool that is not listed as if there were none of
// that name; the record says what was asked for and why it is closed.
func (g *Gateway) callHidden(ctx context.Context, r *downstream.Request, rs *ruleset, call gate.Call) (reply downstream.Reply) {
	c, began := &judgedCall{g: g, rs: rs, r: r, call: g.redacted(call)}, time.Now()
	c.traced()
	defer func() { c.served(began, &reply) }()
	allowed, err := c.decide(ctx, c.call)
	if allowed {
		// The door does not act on a tool that nobody was shown.
		g.events.log.Error("a tool that is not listed was allowed", "server", call.Server)
	}
	if err != nil {
		return c.notRecorded(err)
	}
	if r := c.newest().Outcome.Rejection; r != nil {
		c.fault(string(r.Reason)) // the client is not told
	}
	return g.refusal(call.Method, gate.UnknownTool(), "")
}

// callAsked takes what a client asked for through the door, or goes on with the
// call it is the retry of.
func (g *Gateway) callAsked(ctx context.Context, r *downstream.Request, rs *ruleset, call gate.Call) downstream.Reply {
	if call.Method != policy.CallTool {
		rs, _ = g.rules.listed(ctx, call.Server)
	}
	c := &judgedCall{g: g, rs: rs, r: r, call: call}
	if reply, ended := c.takeRetry(ctx); ended {
		return reply
	}
	return c.answer(ctx)
}

// nearMember reports a member whose name folds to one of known without being
// it (attack W03).
func nearMember(params strictjson.Value, known ...string) bool {
	for name := range params.Members() {
		if slices.ContainsFunc(known, func(k string) bool { return name != k && strings.EqualFold(name, k) }) {
			return true
		}
	}
	return false
}

// list asks every server that has such a list, as a read of this session, so
// that what is listed becomes known to it (R32). One that cannot be listed now takes
// the lists of the others with it only where there are none.
func (g *Gateway) list(ctx context.Context, r *downstream.Request, rs *ruleset) downstream.Reply {
	of, _ := listOf(r.Method)
	replies := make([]downstream.Reply, len(rs.fleet.order))
	rs.fleet.atOnce(func(i int, s *server) {
		replies[i] = failure(rpc.CodeMethodNotFound, "it has no such list")
		if s.can(of.capability) {
			c := &judgedCall{g: g, rs: rs, r: r, call: gate.Call{Server: s.name, Method: policy.Method(r.Method)}}
			replies[i] = c.answer(ctx)
		}
	})
	var items [][]byte
	var failed *downstream.Reply
	listed := false
	for i, reply := range replies {
		if reply.Err != nil {
			if reply.Err.Code != rpc.CodeMethodNotFound {
				failed = &replies[i]
			}
			continue
		}
		listed = true
		es, _ := strictjson.Elements(strictjson.Get(reply.Result, of.key))
		for _, e := range es {
			if policy.Method(r.Method) == policy.ListPrompts {
				e = rs.publicPrompt(rs.fleet.order[i], e)
			}
			items = append(items, e)
		}
	}
	if failed != nil && !listed {
		return *failed
	}
	return downstream.Reply{Result: listResult(of.key, items)}
}

func (g *Gateway) resource(ctx context.Context, r *downstream.Request, rs *ruleset, method policy.Method) downstream.Reply {
	uri, ok := r.Params.Get("uri").Text()
	if !ok {
		return failure(rpc.CodeInvalidParams, "params.uri is a string")
	}
	name := rs.resourceServer(uri)
	if name == "" {
		return failure(rpc.CodeInvalidParams, "no server has such a resource")
	}
	return g.callAsked(ctx, r, rs, gate.Call{Server: name, Method: method, Arguments: strictjson.Make(only(r.Params, "uri")...)})
}

// only returns those of the named members that params has, byte for byte.
func only(params strictjson.Value, names ...string) (ms []strictjson.Member) {
	for _, name := range names {
		if v := params.Get(name); v.Exists() {
			ms = append(ms, strictjson.Member{Name: name, Value: v.Raw()})
		}
	}
	return ms
}

func (g *Gateway) prompt(ctx context.Context, r *downstream.Request, rs *ruleset) downstream.Reply {
	name, ok := r.Params.Get("name").Text()
	if !ok {
		return failure(rpc.CodeInvalidParams, "params.name is a string")
	}
	to, ok := rs.prompts[name]
	if !ok {
		return failure(rpc.CodeInvalidParams, "unknown prompt")
	}
	args := append(only(r.Params, "arguments"), strictjson.Member{Name: "name", Value: strictjson.Quote(to.name)})
	return g.callAsked(ctx, r, rs, gate.Call{Server: to.server, Tool: to.name, Method: policy.GetPrompt, Arguments: strictjson.Make(args...)})
}

func (g *Gateway) complete(ctx context.Context, r *downstream.Request, rs *ruleset) downstream.Reply {
	ref := r.Params.Get("ref")
	args := only(r.Params, "ref", "argument", "context")
	var name string
	switch textMember(ref, "type") {
	case "ref/prompt":
		to := rs.prompts[textMember(ref, "name")]
		name = to.server
		args[0].Value = ref.With(strictjson.Member{Name: "name", Value: strictjson.Quote(to.name)})
	case "ref/resource":
		for _, t := range rs.templates {
			if t.name == textMember(ref, "uri") {
				name = t.server
			}
		}
		if name == "" {
			name = rs.resourceServer(textMember(ref, "uri"))
		}
	default:
		return failure(rpc.CodeInvalidParams, "params.ref is a prompt or a resource")
	}
	if name == "" {
		return downstream.Reply{Result: []byte(`{"completion":{"values":[]}}`)}
	}
	return g.callAsked(ctx, r, rs, gate.Call{Server: name, Method: policy.Complete, Arguments: strictjson.Make(args...)})
}

var logLevels = map[string]bool{"debug": true, "info": true, "notice": true, "warning": true,
	"error": true, "critical": true, "alert": true, "emergency": true}

func (g *Gateway) setLevel(ctx context.Context, r *downstream.Request, rs *ruleset) downstream.Reply {
	if !logLevels[textMember(r.Params, "level")] {
		return failure(rpc.CodeInvalidParams, "params.level is one of the levels of RFC 5424")
	}
	errs := make([]*rpc.Error, len(rs.fleet.order))
	rs.fleet.atOnce(func(i int, s *server) {
		if s.can("logging") && s.legacy() {
			ctx, cancel := context.WithTimeout(ctx, s.patience)
			defer cancel()
			resp := s.conn.Do(ctx, upstream.Request{Method: r.Method, Params: strictjson.Make(only(r.Params, "level")...)})
			if resp.End == upstream.Answered { // else it is not there, and says nothing
				errs[i] = resp.Err
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return downstream.Reply{Err: err}
		}
	}
	return downstream.Reply{Result: []byte("{}")}
}

// legacyServer reports whether a server speaks the wire before 2026-07-28.
func (rs *ruleset) legacyServer(name string) bool {
	s := rs.fleet.servers[name]
	return s != nil && s.legacy()
}
