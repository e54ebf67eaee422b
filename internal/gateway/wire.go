package gateway

import (
	"context"

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
		req.ToolSchema = d.Tool.InputSchema()
	}
	return req
}

// wireCall returns the method and the params a server is sent: the name, the
// judged argument bytes, and nothing of the client's but the listed members.
func wireCall(d *gate.Decision, extra []strictjson.Member) (method string, params strictjson.Value) {
	method = methodName(d.Call.Method)
	name := strictjson.Member{Name: "name", Value: strictjson.Quote(d.Call.Tool)}
	switch d.Call.Method {
	case policy.CallTool:
		ms := append(make([]strictjson.Member, 0, 4), name)
		if d.Arguments.Exists() {
			ms = append(ms, strictjson.Member{Name: "arguments", Value: d.Arguments.Raw()})
		}
		return method, strictjson.Make(append(ms, extra...)...)
	case policy.GetPrompt:
		extra = append([]strictjson.Member{name}, extra...)
	}
	if len(extra) == 0 {
		return method, d.Arguments
	}
	return method, strictjson.Of(d.Arguments.With(extra...))
}

// passedMeta are the members of a request's _meta that reach a server (R32).
// The wire's own keys are written anew by package upstream.
func passedMeta(params strictjson.Value) []strictjson.Member {
	if t, _, ok := traceParent(params); ok {
		return []strictjson.Member{{Name: "traceparent", Value: strictjson.Quote(t)}}
	}
	return nil
}

// passedCapabilities are those of the client's capabilities whose requests are
// passed on (rpc.AskCapability).
func passedCapabilities(client strictjson.Value) []byte {
	var ms []strictjson.Member
	for _, c := range []string{"elicitation", "sampling", "roots"} {
		if v := client.Get(c); v.Kind() == strictjson.Object {
			ms = append(ms, strictjson.Member{Name: c, Value: v.Raw()})
		}
	}
	return noMembers.With(ms...)
}
