package gateway

import (
	"bytes"
	"context"
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
func (g *Gateway) Describe(ctx context.Context, version string) (capabilities, serverInfo []byte, instructions string) {
	wait, cancel := context.WithTimeout(ctx, describeWait)
	g.current(wait)
	cancel()
	capabilities = []byte(`{"tools":{"listChanged":true}}`)
	have := map[string]bool{"resources": len(g.insideTemplates()) > 0}
	for _, name := range g.order {
		s := g.servers[name]
		s.mu.Lock()
		caps, known := s.info.Capabilities, s.known
		s.mu.Unlock()
		for _, c := range []string{"resources", "prompts", "completions", "logging"} {
			have[c] = have[c] || !known || hasCapability(caps, c)
		}
	}
	if have["resources"] {
		capabilities = strictjson.Set(capabilities, "resources", []byte(`{"subscribe":true,"listChanged":true}`))
	}
	if have["prompts"] {
		capabilities = strictjson.Set(capabilities, "prompts", []byte(`{"listChanged":true}`))
	}
	if have["completions"] {
		capabilities = strictjson.Set(capabilities, "completions", []byte(`{}`))
	}
	if have["logging"] {
		capabilities = strictjson.Set(capabilities, "logging", []byte(`{}`))
	}
	info := mustJSON(struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}{"writ", "Writ", g.version})
	return capabilities, info, "Calls with a side effect run only if every argument stands in an earlier result of this session. " +
		"A refusal says which argument is unfounded and which tool would supply it."
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
	if strictjson.KindOf(result) != strictjson.Object {
		return result
	}
	add := func(name, value string) {
		if strictjson.Get(result, name) == nil {
			result = strictjson.Set(result, name, []byte(value))
		}
	}
	add("resultType", `"complete"`)
	switch method {
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list", "resources/read":
		if !asksInput(result) {
			add("ttlMs", "0")
			add("cacheScope", `"private"`)
		}
	}
	return result
}

func (g *Gateway) handle(ctx context.Context, r *downstream.Request) downstream.Reply {
	v := g.current(ctx)
	if v == nil {
		return failure(rpc.CodeInternal, "the gateway is not ready: no catalogue")
	}
	switch r.Method {
	case "tools/list":
		return g.listTools(r, v)
	case "tools/call":
		return g.callTool(ctx, r, v)
	case "resources/list":
		return g.list(ctx, r, v, policy.ListResources, "resources")
	case "resources/templates/list":
		return g.list(ctx, r, v, policy.ListTemplates, "resourceTemplates")
	case "prompts/list":
		return g.list(ctx, r, v, policy.ListPrompts, "prompts")
	case "resources/read":
		return g.resource(ctx, r, v, policy.ReadResource)
	case "resources/subscribe":
		reply := g.resource(ctx, r, v, policy.SubscribeResource)
		if uri := textMember(r.Params, "uri"); reply.Err == nil {
			g.subscribed(r, uri)
			if _, own := g.insideResource(uri); own {
				reply.Result = []byte("{}") // that it may be read is asked by reading it
			}
		}
		return reply
	case "resources/unsubscribe":
		return g.unsubscribe(ctx, r, v)
	case "prompts/get":
		return g.prompt(ctx, r, v)
	case "completion/complete":
		return g.complete(ctx, r, v)
	case "logging/setLevel":
		return g.setLevel(ctx, r)
	}
	return failure(rpc.CodeMethodNotFound, "unknown method")
}

// Notified is told of the client's notifications (downstream.Router). None of
// them concerns a server: roots are not passed on.
func (g *Gateway) Notified(context.Context, *downstream.Request) {}

func failure(code int, text string) downstream.Reply {
	return downstream.Reply{Err: rpc.Errorf(code, "%s", text)}
}

// listReply makes a list result of raw items, complete in one page.
func listReply(key string, items [][]byte) downstream.Reply {
	b := append(append([]byte(`{`), strictjson.Quote(key)...), `:[`...)
	b = append(append(b, bytes.Join(items, []byte(","))...), `]}`...)
	return downstream.Reply{Result: b}
}

// noCursor refuses a cursor: every list is one page, so none was ever given.
func noCursor(r *downstream.Request) bool { return strictjson.Get(r.Params, "cursor") == nil }

func (g *Gateway) listTools(r *downstream.Request, v *ruleset) downstream.Reply {
	if !noCursor(r) {
		return failure(rpc.CodeInvalidParams, "unknown cursor")
	}
	var items [][]byte
	for _, t := range v.catalogue.Listed(g.shadow) {
		raw := t.Raw
		if t.Public != t.Name {
			raw = strictjson.Set(raw, "name", strictjson.Quote(t.Public))
		}
		items = append(items, raw)
	}
	return listReply("tools", items)
}

// callTool routes a tools/call to the door.
func (g *Gateway) callTool(ctx context.Context, r *downstream.Request, v *ruleset) downstream.Reply {
	name, ok := strictjson.Text(strictjson.Get(r.Params, "name"))
	if !ok {
		return failure(rpc.CodeInvalidParams, "params.name is a string")
	}
	if near := nearMember(r.Params, "name", "arguments", "_meta", "inputResponses", "requestState"); near {
		return failure(rpc.CodeInvalidParams, "a member of params looks like another one")
	}
	call := gate.Call{Tool: name, Arguments: strictjson.Get(r.Params, "arguments")}
	if t, _ := v.catalogue.Resolve(name, g.shadow); t == nil && g.Settled(ctx) == nil {
		// It may be of a server that was slow to start.
		v = g.current(ctx)
	} else if t != nil {
		v, _ = g.listed(ctx, t.Server)
	}
	if t, listed := v.catalogue.Resolve(name, g.shadow); t != nil {
		call.Server, call.Tool = t.Server, t.Name
		if !listed {
			return g.hidden(ctx, r, v, call)
		}
		if r.HTTP && r.Era == downstream.Modern {
			if err := downstream.CheckParamHeaders(strictjson.Get(t.Raw, "inputSchema"), call.Arguments, r.ParamHeaders); err != nil {
				return downstream.Reply{Err: err}
			}
		}
	}
	return g.pass(ctx, r, v, call)
}

// hidden answers a call to a tool that is not listed as if there were none of
// that name; the record says what was asked for and why it is closed.
func (g *Gateway) hidden(ctx context.Context, r *downstream.Request, v *ruleset, call gate.Call) downstream.Reply {
	call = g.redacted(call)
	a := &judgedCall{g: g, v: v, r: r, in: gate.Input{Call: call}}
	if a.judge(ctx, call) {
		// The door does not act on a tool that nobody was shown.
		g.log.Error("a tool that is not listed was allowed", "server", call.Server)
	}
	if err := a.decisionRecorded(); err != nil {
		return g.notRecorded(r, call.Method, err)
	}
	return refusal(call.Method, gate.UnknownTool(), "", false)
}

// pass takes a request through the door, with what a multi-round-trip retry
// carries beside the arguments.
func (g *Gateway) pass(ctx context.Context, r *downstream.Request, v *ruleset, call gate.Call) downstream.Reply {
	if call.Method != policy.CallTool {
		v, _ = g.listed(ctx, call.Server)
	}
	var extra []strictjson.Member
	if r.Era == downstream.Modern {
		if answers := strictjson.Get(r.Params, "inputResponses"); answers != nil {
			if strictjson.KindOf(answers) != strictjson.Object {
				return failure(rpc.CodeInvalidParams, "inputResponses is an object")
			}
			call.Answers = answers
			extra = append(extra, strictjson.Member{Name: "inputResponses", Value: answers})
		}
		if reply, ok := g.resume(ctx, r, call); ok {
			return reply
		}
		if state := strictjson.Get(r.Params, "requestState"); state != nil {
			given, ok := g.givenState(r, call, state)
			if !ok {
				return failure(rpc.CodeInvalidParams, "requestState is not one that this call was given")
			}
			extra = append(extra, strictjson.Member{Name: "requestState", Value: given})
		}
		if len(extra) > 0 && g.legacyServer(ctx, call.Server) {
			// Such a server asks within a call, and that call is not waiting.
			return failure(rpc.CodeInvalidParams, "no call of this session waits for that answer")
		}
	}
	return g.through(ctx, r, v, call, extra)
}

// givenState returns the state the server gave, as JSON, of the sealed one the
// client was given.
func (g *Gateway) givenState(r *downstream.Request, call gate.Call, sealed []byte) ([]byte, bool) {
	text, ok := strictjson.Text(sealed)
	if !ok {
		return nil, false
	}
	s, err := g.sessionOf(r)
	if err != nil {
		return nil, false
	}
	return g.unseal(s, call, text)
}

// nearMember reports a member whose name folds to one of known without being
// it (attack W03).
func nearMember(params []byte, known ...string) bool {
	ms, _ := strictjson.Members(params)
	for _, m := range ms {
		for _, k := range known {
			if m.Name != k && strings.EqualFold(m.Name, k) {
				return true
			}
		}
	}
	return false
}

// list asks every server that has such a list, as a read of this session, so
// that what is listed becomes known to it (R32).
func (g *Gateway) list(ctx context.Context, r *downstream.Request, v *ruleset, method policy.Method, key string) downstream.Reply {
	if !noCursor(r) {
		return failure(rpc.CodeInvalidParams, "unknown cursor")
	}
	var items [][]byte
	for _, name := range g.order {
		s := g.servers[name]
		s.mu.Lock()
		caps := s.info.Capabilities
		s.mu.Unlock()
		if !hasCapability(caps, listCapability(string(method))) {
			continue
		}
		reply := g.through(ctx, r, v, gate.Call{Server: name, Method: method}, nil)
		if reply.Err != nil {
			if reply.Err.Code == rpc.CodeMethodNotFound {
				continue
			}
			return reply
		}
		es, _ := strictjson.Elements(strictjson.Get(reply.Result, key))
		if method == policy.ListPrompts {
			es = slices.Clone(es)
			for i, e := range es {
				es[i] = v.publicPrompt(name, e)
			}
		}
		items = append(items, es...)
	}
	if method == policy.ListTemplates {
		items = append(items, g.insideTemplates()...) // part of the program, like its tools
	}
	return listReply(key, items)
}

func listCapability(method string) string {
	for _, l := range lists {
		if l.method == method {
			return l.capability
		}
	}
	return ""
}

func listKey(method string) string {
	for _, l := range lists {
		if l.method == method {
			return l.key
		}
	}
	return ""
}

// publicPrompt returns the prompt's definition under its public name.
func (v *ruleset) publicPrompt(server string, raw []byte) []byte {
	name := textMember(raw, "name")
	if v.prompts[name] == (route{server, name}) {
		return raw
	}
	return strictjson.Set(raw, "name", strictjson.Quote(server+"__"+name))
}

// fetchList is the read of one server's whole list.
func (s *server) fetchList(ctx context.Context, method string) upstream.Response {
	l, err := s.conn.List(ctx, method, listKey(method))
	if err != nil {
		return upstream.Response{End: upstream.Answered, Err: rpc.Errorf(rpc.CodeInternal, "the server's list cannot be had")}
	}
	b := append(append([]byte(`{`), strictjson.Quote(listKey(method))...), `:[`...)
	b = append(append(b, bytes.Join(l.Items, []byte(","))...), `]}`...)
	return upstream.Response{End: upstream.Answered, Result: b}
}

// resource routes a request about one resource: to the server that listed it,
// to the one whose template it fits, else to the only server that has any.
func (g *Gateway) resource(ctx context.Context, r *downstream.Request, v *ruleset, method policy.Method) downstream.Reply {
	uri, ok := strictjson.Text(strictjson.Get(r.Params, "uri"))
	if !ok {
		return failure(rpc.CodeInvalidParams, "params.uri is a string")
	}
	if call, own := g.insideResource(uri); own {
		return g.readInside(ctx, r, v, uri, call)
	}
	name := g.resourceServer(v, uri)
	if name == "" {
		return failure(rpc.CodeInvalidParams, "no server has such a resource")
	}
	return g.pass(ctx, r, v, gate.Call{Server: name, Method: method, Arguments: only(r.Params, "uri")})
}

func (g *Gateway) resourceServer(v *ruleset, uri string) string {
	if name := v.resources[uri]; name != "" {
		return name
	}
	// Which server is asked is no question of trust: the gate judges the URI
	// against that server's own templates.
	best, longest := "", 0
	for _, t := range v.templates {
		prefix, _, _ := strings.Cut(t.name, "{")
		if len(prefix) > longest && strings.HasPrefix(uri, prefix) {
			best, longest = t.server, len(prefix)
		}
	}
	if best != "" {
		return best
	}
	return g.onlyWith("resources")
}

// onlyWith returns the one server with that capability, "" when none or several.
func (g *Gateway) onlyWith(capability string) string {
	found := ""
	for _, name := range g.order {
		s := g.servers[name]
		s.mu.Lock()
		has := hasCapability(s.info.Capabilities, capability)
		s.mu.Unlock()
		if has && found != "" {
			return ""
		}
		if has {
			found = name
		}
	}
	return found
}

// only returns an object of the named members of params, byte for byte.
func only(params []byte, names ...string) []byte {
	out := []byte("{}")
	for _, n := range names {
		if v := strictjson.Get(params, n); v != nil {
			out = strictjson.Set(out, n, v)
		}
	}
	return out
}

func (g *Gateway) prompt(ctx context.Context, r *downstream.Request, v *ruleset) downstream.Reply {
	name, ok := strictjson.Text(strictjson.Get(r.Params, "name"))
	if !ok {
		return failure(rpc.CodeInvalidParams, "params.name is a string")
	}
	to, ok := v.prompts[name]
	if !ok {
		return failure(rpc.CodeInvalidParams, "unknown prompt")
	}
	args := strictjson.Set(only(r.Params, "arguments"), "name", strictjson.Quote(to.name))
	return g.pass(ctx, r, v, gate.Call{Server: to.server, Tool: to.name, Method: policy.GetPrompt, Arguments: args})
}

func (g *Gateway) complete(ctx context.Context, r *downstream.Request, v *ruleset) downstream.Reply {
	ref := strictjson.Get(r.Params, "ref")
	args := only(r.Params, "ref", "argument", "context")
	var name string
	switch textMember(ref, "type") {
	case "ref/prompt":
		to, ok := v.prompts[textMember(ref, "name")]
		if !ok {
			return downstream.Reply{Result: []byte(`{"completion":{"values":[]}}`)}
		}
		name = to.server
		args = strictjson.Set(args, "ref", strictjson.Set(ref, "name", strictjson.Quote(to.name)))
	case "ref/resource":
		for _, t := range v.templates {
			if t.name == textMember(ref, "uri") {
				name = t.server
			}
		}
		if name == "" {
			name = g.resourceServer(v, textMember(ref, "uri"))
		}
	default:
		return failure(rpc.CodeInvalidParams, "params.ref is a prompt or a resource")
	}
	if name == "" {
		return downstream.Reply{Result: []byte(`{"completion":{"values":[]}}`)}
	}
	return g.pass(ctx, r, v, gate.Call{Server: name, Method: policy.Complete, Arguments: args})
}

var logLevels = map[string]bool{"debug": true, "info": true, "notice": true, "warning": true,
	"error": true, "critical": true, "alert": true, "emergency": true}

func (g *Gateway) setLevel(ctx context.Context, r *downstream.Request) downstream.Reply {
	if !logLevels[textMember(r.Params, "level")] {
		return failure(rpc.CodeInvalidParams, "params.level is one of the levels of RFC 5424")
	}
	for _, name := range g.order {
		s := g.servers[name]
		s.mu.Lock()
		has := hasCapability(s.info.Capabilities, "logging") && s.info.Era == upstream.Legacy
		s.mu.Unlock()
		if has {
			if resp := s.conn.Do(ctx, upstream.Request{Method: r.Method, Params: only(r.Params, "level")}); resp.Err != nil {
				return downstream.Reply{Err: resp.Err}
			}
		}
	}
	return downstream.Reply{Result: []byte("{}")}
}
