package gateway

import (
	"context"
	"regexp"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// wireRequest is what a server is sent: the judged bytes, and nothing of the
// client's but what is listed here.
func (c *judgedCall) wireRequest(ctx context.Context, d *decision) upstream.Request {
	req := upstream.Request{
		Decision: &d.Decision,
		Meta:     passedMeta(c.r.Params), ProgressToken: c.r.ProgressToken,
		OnNotify: func(method string, params []byte) {
			// A client that is gone or slow loses progress, never the outcome.
			_ = c.r.Peer.Notify(ctx, method, params)
		},
		OnRequest:          c.askClient,
		Listed:             &c.lists,
		Owner:              c.s.id,
		ClientCapabilities: passedCapabilities(c.r.ClientCapabilities),
	}
	req.Method, req.Params = wireCall(&d.Decision, c.extra)
	if d.anonymous {
		req.Owner = c.name(d) // nobody else's
	}
	if c.r.LogLevel != nil {
		req.Meta = append(req.Meta, strictjson.Member{Name: "io.modelcontextprotocol/logLevel", Value: c.r.LogLevel})
	}
	if d.Tool != nil {
		req.ToolSchema = strictjson.Get(d.Tool.Raw, "inputSchema")
	}
	return req
}

// wireCall returns the method and the params a server is sent: the name, the
// judged argument bytes, and nothing of the client's but the listed members.
func wireCall(d *gate.Decision, extra []strictjson.Member) (method string, params []byte) {
	method, params = methodName(d.Call.Method), d.Arguments
	switch d.Call.Method {
	case policy.CallTool:
		params = strictjson.Set([]byte("{}"), "name", strictjson.Quote(d.Call.Tool))
		if d.Arguments != nil {
			params = strictjson.Set(params, "arguments", d.Arguments)
		}
	case policy.GetPrompt:
		params = strictjson.Set(params, "name", strictjson.Quote(d.Call.Tool))
	}
	for _, m := range extra {
		params = strictjson.Set(params, m.Name, m.Value)
	}
	return method, params
}

// traceParent is the W3C form of trace context: four numbers in hexadecimal.
// tracestate and baggage are free text that nobody judges, and stay here.
var traceParent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// passedMeta are the members of a request's _meta that reach a server (R32).
// The wire's own keys are written anew by package upstream.
func passedMeta(params []byte) []strictjson.Member {
	raw := strictjson.Get(strictjson.Get(params, "_meta"), "traceparent")
	if t, ok := strictjson.Text(raw); ok && traceParent.MatchString(t) {
		return []strictjson.Member{{Name: "traceparent", Value: strictjson.Quote(t)}}
	}
	return nil
}

// passedCapabilities are those of the client's capabilities whose requests are
// passed on (askCapability).
func passedCapabilities(client []byte) []byte {
	out := []byte("{}")
	for _, c := range []string{"elicitation", "sampling", "roots"} {
		if v := strictjson.Get(client, c); strictjson.KindOf(v) == strictjson.Object {
			out = strictjson.Set(out, c, v)
		}
	}
	return out
}
