package gateway

import (
	"bytes"
	"context"
	"errors"
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// MetaTask is the member of a request's _meta by which a host tells the tasks of
// a session apart. It is the host's to set, like the session; no payload can.
const MetaTask = "io.github.writ-project/task"

// Inside is the server within this process, policy.OwnServer: the governed
// memory. It is reached through the door like every other server, after a
// decision that is on record.
type Inside interface {
	// Definitions are the tools it has, as tools/list shows them. They do not
	// change while the gateway runs.
	Definitions() [][]byte
	// Redact returns a JSON value without what must not be stored, the
	// same bytes where there is nothing of it. What is asked of Inside is
	// redacted before it is judged: nothing else goes on record.
	Redact(value []byte) []byte
	// Call runs a tool. The arguments are the judged bytes. An error says that
	// the outcome is unknown; what the memory refuses is an answer.
	Call(ctx context.Context, by Caller, tool string, arguments []byte) (Answer, error)
}

// Caller is what a tool of Inside is told of a call by the channel, never by
// the payload.
type Caller struct {
	Session   string // public id
	Principal string // whom the session is bound to
	Task      []byte // the JSON value of MetaTask, nil for none
	Redacted  bool   // the arguments are not what the client sent, but that redacted
	// Capture is Gateway.Capture in that session, Sightings Gateway.Sightings.
	// If the call was redacted, what was seen is compared as it would be.
	Capture   func(ctx context.Context, number uint32, text string) (Captured, bool, error)
	Sightings func(ctx context.Context, limit int) ([]Sighting, error)
	// Units shows what that session saw by sentences and records, the newest first;
	// all is false where something was passed over for its size. Exposed says whether
	// any of what it saw is others'.
	Units   func(ctx context.Context, visit func(*Unit)) (all bool, err error)
	Exposed func(ctx context.Context) (bool, error)
}

// Answer is the answer of a tool of Inside.
type Answer struct {
	Result []byte // the result object of a tools/call
	// Recalled are its leaves that stand verbatim in captured observations.
	Recalled []provenance.Recalled
	// Clean says that nothing in it is anybody's but the user's, a trusted tool's,
	// and the agent's own from before it read others. An answer that is not clean
	// exposes the session as a stranger's does.
	Clean bool
}

// redacted is a call of Inside, or of nothing there is, without what must not be
// stored. What is judged, recorded and carried out are then the same bytes.
func (g *Gateway) redacted(call gate.Call) gate.Call {
	if g.inside == nil || call.Method != policy.CallTool || call.Server != "" && call.Server != policy.OwnServer {
		return call
	}
	if call.Server == "" {
		call.Tool, _ = strictjson.Text(g.inside.Redact(strictjson.Quote(call.Tool)))
	}
	call.Arguments, _ = g.hidden(call.Arguments)
	call.Answers, _ = g.hidden(call.Answers)
	return call
}

// hidden is a value as Inside redacts it, and whether that is another.
func (g *Gateway) hidden(v strictjson.Value) (_ strictjson.Value, another bool) {
	if !v.Exists() {
		return v, false
	}
	b := g.inside.Redact(v.Raw())
	if bytes.Equal(b, v.Raw()) {
		return v, false
	}
	return strictjson.Of(b), true
}

func (c *judgedCall) callInside(ctx context.Context, d *decision) upstream.Response {
	of := looked{trusted: c.trusted}
	if _, another := c.g.hidden(c.r.Params.Get("arguments")); another {
		of.hide = c.g.inside.Redact
	}
	meta := c.r.Params.Get("_meta")
	task := meta.Get(MetaTask).Raw()
	if nearMember(meta, MetaTask) {
		task = []byte("null") // meant to be one, and none
	}
	answer, err := c.g.inside.Call(ctx, Caller{
		Session: c.s.id, Principal: c.r.Principal, Task: task, Redacted: of.hide != nil,
		Capture: func(ctx context.Context, number uint32, text string) (Captured, bool, error) {
			return c.g.sessions.capture(ctx, c.s.id, number, text, of)
		},
		Sightings: func(ctx context.Context, limit int) ([]Sighting, error) {
			return c.g.Sightings(ctx, c.s.id, limit)
		},
		Units: func(ctx context.Context, visit func(*Unit)) (bool, error) {
			return c.g.sessions.units(ctx, c.s.id, of, visit)
		},
		Exposed: func(ctx context.Context) (bool, error) { return c.g.sessions.Exposed(ctx, c.s.id) },
	}, d.Call.Tool, d.Arguments.Raw())
	if errors.Is(err, audit.ErrAltered) {
		c.g.events.log.Error("what a call of the memory rests on was altered on disk", "error", err)
		return upstream.Response{Err: rpc.Errorf(rpc.CodeInternal, "what the memory rests on was altered on disk: it is closed until a person has looked at it (writ audit verify)")}
	} else if err != nil {
		c.g.events.log.Error("the memory failed", "error", err)
		return upstream.Response{Err: rpc.Errorf(rpc.CodeInternal, "the memory failed: the outcome is unknown")}
	}
	c.inside = answer
	return upstream.Response{End: upstream.Answered, Result: strictjson.Of(answer.Result)}
}

// trusted reports whether the policy trusts a field of what a tool returns.
func (c *judgedCall) trusted(server, tool string) bool {
	t := c.rs.catalogue.Lookup(server, tool)
	return t != nil && t.Contract != nil && slices.ContainsFunc(t.Contract.Outputs, func(o provenance.OutputRule) bool { return o.Label >= writ.System })
}
