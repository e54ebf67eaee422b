package gateway

import (
	"context"
	"encoding/json"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// InsideResources is an Inside of which some answers can be read as resources.
// There is no second way to them: to read one is to call the tool that gives it,
// through the door, and the same is decided, recorded and evidence.
type InsideResources interface {
	// Templates are its resource templates, as resources/templates/list shows
	// them; nil for none. They do not change while the gateway runs.
	Templates() [][]byte
	// Resource is the call that reads a URI; ok is false where it is none of
	// Inside's.
	Resource(uri string) (tool string, arguments []byte, ok bool)
	// Watch has f called when what is read may have changed; it says of which
	// URIs. f does not block.
	Watch(f func(changed func(uri string) bool))
}

// insideResource is the call that reads a URI of Inside's. These go before any
// server's: nobody else says what the memory holds.
func (g *Gateway) insideResource(uri string) (call gate.Call, ok bool) {
	in, is := g.inside.(InsideResources)
	if !is {
		return call, false
	}
	call.Server = policy.OwnServer
	call.Tool, call.Arguments, ok = in.Resource(uri)
	return call, ok
}

func (g *Gateway) insideTemplates() [][]byte {
	if in, is := g.inside.(InsideResources); is {
		return in.Templates()
	}
	return nil
}

// readInside reads a resource of Inside's.
func (g *Gateway) readInside(ctx context.Context, r *downstream.Request, rules *ruleset, uri string, call gate.Call) downstream.Reply {
	reply := (&judgedCall{g: g, rules: rules, r: r, call: call}).answer(ctx)
	if reply.Err != nil {
		return reply
	}
	meta := strictjson.Get(reply.Result, "_meta")
	content := strictjson.Get(reply.Result, "structuredContent")
	if string(strictjson.Get(reply.Result, "isError")) == "true" || content == nil {
		// A read has no result that could carry a refusal.
		var o writ.Outcome
		outcome := strictjson.Get(meta, MetaOutcome)
		if json.Unmarshal(outcome, &o) != nil || o.Rejection == nil {
			return failure(rpc.CodeInternal, "the resource cannot be read")
		}
		return downstream.Reply{Err: &rpc.Error{Code: codeRefused, Message: "refused: " + string(o.Rejection.Reason), Data: outcome}}
	}
	item := strictjson.Set([]byte(`{"mimeType":"application/json"}`), "text", strictjson.Quote(string(content)))
	item = strictjson.Set(item, "uri", strictjson.Quote(uri))
	result := strictjson.Set([]byte("{}"), "contents", append(append([]byte{'['}, item...), ']'))
	if meta != nil {
		result = strictjson.Set(result, "_meta", meta)
	}
	return downstream.Reply{Result: result}
}
