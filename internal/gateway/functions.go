package gateway

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// Run makes an allowed call in place of a server: a function of the program the
// gateway is part of. It gets a copy of the judged arguments, {} for none, and
// returns the JSON object that is the result's structuredContent.
type Run func(ctx context.Context, arguments []byte) ([]byte, error)

// Call takes a call of a tool of Options.Tools through the door, in an open
// session. run is called at most once, and only if the call is allowed and its
// decision is on record as the door demands. An error of it, and what is not an
// object, is recorded as the tool's error; where it ends by a panic, or after
// ctx, the outcome is recorded as unknown.
func (g *Gateway) Call(ctx context.Context, session downstream.Session, principal string, call gate.Call, run Run) downstream.Reply {
	rs := g.rules.current(ctx)
	if rs == nil {
		return failure(rpc.CodeInternal, "the gateway is not ready: no catalogue")
	}
	r := &downstream.Request{Method: "tools/call", Era: downstream.Modern, Principal: principal, Session: session}
	return (&judgedCall{g: g, rs: rs, r: r, call: call, run: run}).answer(ctx)
}

func (c *judgedCall) runHere(ctx context.Context, d *decision) upstream.Response {
	if ctx.Err() != nil {
		return upstream.Response{End: upstream.NotSent, Err: rpc.Errorf(rpc.CodeInternal, "the call was cancelled before it was made")}
	}
	unknown := upstream.Response{End: upstream.Unknown, Err: rpc.Errorf(rpc.CodeInternal, "the function did not return: the outcome is unknown")}
	returned := false
	defer func() {
		if !returned { // it panics, or ends its goroutine, and goes on doing so
			c.conclude(unknown)
		}
	}()
	arguments := d.Arguments
	if !arguments.Exists() {
		arguments = noMembers
	}
	content, err := c.run(ctx, slices.Clone(arguments.Raw()))
	returned = true
	content = slices.Clone(content) // the function may go on writing to its own
	text := "the function did not return a JSON object"
	switch {
	case err != nil && ctx.Err() != nil:
		return unknown
	case err != nil:
		if text = strings.ToValidUTF8(err.Error(), "\uFFFD"); len(text) > maxErrorText {
			text = strings.ToValidUTF8(text[:maxErrorText], "")
		}
	case strictjson.Check(content, strictjson.Result) == nil && strictjson.KindOf(content) == strictjson.Object:
		return upstream.Response{End: upstream.Answered, Result: strictjson.Of(strictjson.Set([]byte(`{"content":[]}`), "structuredContent", content))}
	}
	block := strictjson.Set([]byte(`{"type":"text"}`), "text", strictjson.Quote(text))
	return upstream.Response{End: upstream.Answered, Result: strictjson.Of(slices.Concat([]byte(`{"content":[`), block, []byte(`],"isError":true}`)))}
}

const maxErrorText = 4096 // bytes of a function's error that are recorded

func (g *Gateway) hasTools(server string) bool {
	return slices.ContainsFunc(g.rules.tools, func(d gate.Definition) bool { return d.Server == server })
}

// thisProcess is what R34 needs to know of the server of such tools: their paths
// are this machine's, and relative ones begin where the process is now or at a
// directory that a function has of its own.
func thisProcess() *server {
	s := &server{here: true, elsewhere: true, env: environment(upstream.Config{})}
	if dir, err := os.Getwd(); err == nil {
		s.bases = []string{dir}
	}
	return s
}
