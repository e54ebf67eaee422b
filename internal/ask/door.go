package ask

import (
	"context"
	"encoding/json"
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// gatewayDoor is a gateway of this process with one open session.
type gatewayDoor struct {
	g       *gateway.Gateway
	session downstream.Session
}

// NewDoor returns the door of a started gateway in one of its sessions.
func NewDoor(g *gateway.Gateway, s downstream.Session) Door {
	return &gatewayDoor{g, s}
}

// Allow is the operator's allowlist: the tools the policy has an open contract
// for, each in the definition it pins, and of those the ones in only, unless
// only is nil. A contract that is closed, or has no pin where pins are
// required, allows nothing.
func Allow(p *policy.Policy, only []string) []claim.Allowed {
	var out []claim.Allowed
	for key, c := range p.Contracts {
		switch {
		case c.Method != policy.CallTool, c.Closed, c.Pin == "" && !p.PinsOptional, only != nil && !slices.Contains(only, key):
			continue
		}
		out = append(out, claim.Allowed{Server: c.Server, Name: c.Tool, Pin: c.Pin})
	}
	return out
}

func (d *gatewayDoor) Session() string { return d.session.PublicID() }

// Request is a request of a program's own user in one of his sessions, by no client.
func Request(s downstream.Session, method string, params []byte) *downstream.Request {
	return &downstream.Request{
		Method: method, Params: strictjson.Of(params), ID: []byte("1"), Era: downstream.Modern, Version: downstream.Version20260728,
		Principal: downstream.Loopback, Session: s, ClientCapabilities: strictjson.Make(), Peer: gateway.NoPeer,
	}
}

// CallParams are the parameters of a call of the tool that clients call so.
func CallParams(tool string, arguments []byte) []byte {
	params := strictjson.Set([]byte("{}"), "name", strictjson.Quote(tool))
	return strictjson.Set(params, "arguments", arguments)
}

// Discover asks tools/list as any client does. Tools that are published but
// not open are listed beside the answer, so that a plan which names one is told
// what is wrong with it; the allowlist and the door keep them shut. It waits for
// every server to answer or to fail: there is no second look, so one that is
// slow must not be taken for one that has no tools.
func (d *gatewayDoor) Discover(ctx context.Context) (*Listing, error) {
	if err := d.g.Settled(ctx); err != nil {
		return nil, err
	}
	out := &Listing{}
	for name := range d.g.Failed() {
		out.Failed = append(out.Failed, name)
	}
	slices.Sort(out.Failed)
	reply := d.g.Handle(ctx, Request(d.session, "tools/list", nil))
	if reply.Err != nil {
		return nil, reply.Err
	}
	live := map[string]bool{}
	items, _ := strictjson.Elements(strictjson.Get(reply.Result, "tools"))
	for _, item := range items {
		live[textOf(item, "name")] = true
	}
	catalogue, _ := d.g.Catalogue()
	for _, t := range catalogue.Tools() {
		if t.Method != policy.CallTool || t.State == gate.Refused || t.State == gate.Open && !live[t.Public] {
			continue
		}
		l := Listed{Tool: claim.Tool{Server: t.Server, Name: t.Name, Pin: t.Pin}, Public: t.Public, Definition: t.Raw}
		if t.Reason != writ.SchemaUnusable {
			l.Validate = func(args []byte) []writ.Failure { return t.ValidateArguments(strictjson.Of(args)) }
		}
		if t.HasOutputSchema() {
			l.ValidateOutput = func(result []byte) bool { return t.ValidateOutput(strictjson.Of(result)) }
		}
		out.Tools = append(out.Tools, l)
		if !slices.Contains(out.Servers, t.Server) {
			out.Servers = append(out.Servers, t.Server)
		}
	}
	slices.Sort(out.Servers)
	return out, nil
}

func (d *gatewayDoor) Turn(ctx context.Context, text string) (string, error) {
	return d.g.Turn(ctx, d.session, text)
}

func (d *gatewayDoor) Call(ctx context.Context, tool Listed, args []byte) (*Reply, error) {
	return readReply(d.g.Handle(ctx, Request(d.session, "tools/call", CallParams(tool.Public, args)))), nil
}

// readReply tells the gateway's own words from a server's. A refusal of the
// gateway carries no evidence, and its errors are not a server's bytes; a
// server that imitates one changes neither.
func readReply(r downstream.Reply) *Reply {
	var o writ.Outcome
	if r.Err != nil {
		switch {
		case r.Err.Raw != nil:
			return &Reply{ServerError: r.Err.Message}
		case json.Unmarshal(r.Err.Data, &o) == nil && o.Status == writ.Rejected && o.Rejection != nil:
			return &Reply{Refused: &o}
		}
		return &Reply{Lost: r.Err.Message}
	}
	meta := strictjson.Get(r.Result, "_meta")
	out := &Reply{Decision: textOf(meta, gateway.MetaDecision)}
	mark := strictjson.Get(meta, gateway.MetaEvidence)
	if mark == nil {
		if json.Unmarshal(strictjson.Get(meta, gateway.MetaOutcome), &o) == nil && o.Status == writ.Rejected && o.Rejection != nil {
			out.Refused = &o
			return out
		}
		return &Reply{Lost: "the server's result cannot carry what the gateway says of it"}
	}
	var would writ.Outcome
	if json.Unmarshal(strictjson.Get(meta, gateway.MetaShadow), &would) == nil && would.Status == writ.Rejected {
		out.Shadow = would.Rejection
	}
	if t := textOf(r.Result, "resultType"); t != "" && t != "complete" {
		out.ServerError = "the server asks for input, which a single step cannot give"
		return out
	}
	out.Evidence, _ = writ.ParseEvidenceID(textOf(mark, "id"))
	out.Admissible = string(strictjson.Get(mark, "admissible")) == "true"
	return out
}

func (d *gatewayDoor) Recorded(ctx context.Context, evidence writ.EvidenceID) ([]byte, error) {
	return d.g.Recorded(ctx, d.session, evidence.Number)
}

func (d *gatewayDoor) RecordSummary(ctx context.Context, evidence writ.EvidenceID, pointer string, limit int, summary []byte) (claim.Summary, string, *claim.Stop, error) {
	return d.g.RecordSummary(ctx, d.session, evidence.Number, pointer, limit, summary)
}
