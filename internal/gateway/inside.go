package gateway

import (
	"context"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/gateway/rpc"
	"github.com/writ-project/writ/internal/gateway/upstream"
	"github.com/writ-project/writ/provenance"
)

// Inside is the server within this process, gate.OwnServer: the governed
// memory. It is reached through the door like every other server, after a
// decision that is on record.
type Inside interface {
	// Definitions are the tools it has, as tools/list shows them. They do not
	// change while the gateway runs.
	Definitions() [][]byte
	// Call runs a tool. The arguments are the judged bytes. An error says that
	// the outcome is unknown; what the memory refuses is an answer.
	Call(ctx context.Context, by Caller, tool string, arguments []byte) (Answer, error)
}

// Caller is what a tool of Inside is told of a call by the channel, never by
// the payload.
type Caller struct {
	Session   string // public id
	Principal string // whom the session is bound to
	Decision  uint64 // number of the decision that allowed the call
	Time      time.Time
	// Capture is Gateway.Capture in that session, Sightings Gateway.Sightings.
	Capture   func(ctx context.Context, number uint32, text string) (Captured, bool, error)
	Sightings func(ctx context.Context, limit int) ([]Sighting, error)
}

// Answer is the answer of a tool of Inside.
type Answer struct {
	Result []byte // the result object of a tools/call
	// Recalled are its leaves that stand verbatim in captured observations.
	Recalled []provenance.Recalled
}

// callInside runs a tool of Writ's own server.
func (a *act) callInside(ctx context.Context, d *gate.Decision) upstream.Response {
	answer, err := a.g.inside.Call(ctx, Caller{
		Session: a.s.id, Principal: a.r.Principal, Decision: a.n, Time: a.in.Time,
		Capture: func(ctx context.Context, number uint32, text string) (Captured, bool, error) {
			return a.g.Capture(ctx, a.s.id, number, text)
		},
		Sightings: func(ctx context.Context, limit int) ([]Sighting, error) {
			return a.g.Sightings(ctx, a.s.id, limit)
		},
	}, d.Call.Tool, d.Arguments)
	if err != nil {
		a.g.log.Error("the memory failed", "error", err)
		return upstream.Response{Err: rpc.Errorf(rpc.CodeInternal, "the memory failed: the outcome is unknown")}
	}
	a.mu.Lock()
	a.recalled = answer.Recalled
	a.mu.Unlock()
	return upstream.Response{End: upstream.Answered, Result: answer.Result}
}
