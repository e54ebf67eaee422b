package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Names of the values records commit to.
const (
	valueKey       = "key"       // open: the ledger key, 32 bytes
	valueInput     = "input"     // decision: what it rested on beside the arguments
	valueArguments = "arguments" // decision: the exact bytes that were judged
	valueAnswers   = "answers"   // decision: the answers given inside the call
	valueDecision  = "decision"  // decision: gate.Decision.Record
	valueResult    = "result"    // result: the exact bytes of the result member
)

// Engine names the version of the rules a decision was made by. It changes
// with every change that could change a decision.
const Engine = gate.Engine

// decisionData is the data of a decision's record: what may be read when every
// value was erased. Names are those of the catalogue, never a caller's. Here and in
// resultData the members stand in their canonical order: nothing has to sort them.
type decisionData struct {
	Catalogue string `json:"catalogue"` // SHA-256 of the catalogue blob
	Code      string `json:"code,omitempty"`
	// Continues is the number of the decision whose place this one takes: of the same call,
	// before its client answered the server.
	Continues uint64   `json:"continues,omitempty"`
	Effect    []string `json:"effect"`
	Engine    string   `json:"engine"`
	Method    string   `json:"method"`
	Policy    string   `json:"policy"` // SHA-256 of the policy blob
	Reason    string   `json:"reason,omitempty"`
	Server    string   `json:"server,omitempty"`
	Shadow    bool     `json:"shadow,omitempty"`
	Status    string   `json:"status"`
	Tool      string   `json:"tool,omitempty"`
}

// resultData is the data of a result's record.
type resultData struct {
	Admissible bool `json:"admissible"`
	// Clean says of an answer of the governed memory that it exposes the session to nobody.
	Clean    bool   `json:"clean,omitempty"`
	Decision uint64 `json:"decision"`           // n of the decision that allowed it
	Evidence uint32 `json:"evidence,omitempty"` // its ev number; 0 when it can never be evidence
	// Places says which lowered places counted (R38), nil where there was none.
	Places *placesAt `json:"places,omitempty"`
	// Recalled says which leaves of such an answer stand in what the memory captured
	// (R35).
	Recalled []provenance.Recalled `json:"recalled,omitempty"`
	Status   string                `json:"status"`
	Why      string                `json:"why,omitempty"`
}

// inputValue is the value "input" of a decision.
type inputValue struct {
	Server  string `json:"server"`
	Tool    string `json:"tool"`
	Method  string `json:"method"`
	Shadow  bool   `json:"shadow,omitempty"`
	Asked   string `json:"asked,omitempty"` // how far it was put to a person
	Session bool   `json:"session"`
	Own     string `json:"own,omitempty"` // SHA-256 of the blob of ownValue, in its place
	ownValue
	Elsewhere  bool                `json:"elsewhere,omitempty"`
	Resolved   map[string][]string `json:"resolved,omitempty"`
	Unresolved []string            `json:"unresolved,omitempty"`
}

// ownValue is what a call is held against for R34.
type ownValue struct {
	OwnPaths []string `json:"own_paths,omitempty"`
	Programs []string `json:"programs,omitempty"`
	Bases    []string `json:"bases,omitempty"`
}

// ownBlobs puts on record what the calls of each server of a fleet are held against: it is
// the same for all of them.
func ownBlobs(ctx context.Context, st Store, f *fleet) (map[*gate.OwnPlaces]string, error) {
	out := make(map[*gate.OwnPlaces]string, len(f.own))
	for name, own := range f.own {
		d, err := st.PutBlob(ctx, mustJSON(ownValue{f.ownPaths, f.programs, f.servers[name].bases}))
		if err != nil {
			return nil, err
		}
		out[own] = d.String()
	}
	return out, nil
}

// writeDecision puts a decision behind the session's earlier records. The
// caller holds s.mu and tells the evidence of it.
func (ss *sessions) writeDecision(s *session, rs *ruleset, in *gate.Input, d *decision) (*receipt, error) {
	data := decisionData{
		Method: methodName(in.Call.Method), Effect: d.Effect.Names(), Status: string(d.Outcome.Status),
		Shadow: d.Shadow, Policy: rs.policyBlob, Catalogue: rs.catalogueBlob, Engine: Engine,
	}
	if d.Tool != nil {
		data.Server, data.Tool = d.Tool.Server, d.Tool.Name
	}
	if r := d.Outcome.Rejection; r != nil {
		data.Code, data.Reason = string(r.Code), string(r.Reason)
	}
	if d.Allowed() {
		data.Continues = d.continues
	}
	input := inputValue{
		Server: in.Call.Server, Tool: in.Call.Tool, Method: string(in.Call.Method), Shadow: in.Shadow, Asked: string(in.Asked),
		Session: in.Session != nil, Elsewhere: in.Elsewhere, Resolved: in.Resolved, Unresolved: in.Unresolved,
	}
	if in.Own != nil && slices.Equal(in.Programs, rs.fleet.programs) {
		input.Own = rs.own[in.Own]
	}
	if input.Own == "" {
		input.ownValue = ownValue{in.OwnPaths, in.Programs, in.Bases}
	}
	vs := []value{{valueInput, mustJSON(input)}, {valueDecision, d.Record()}}
	if in.Call.Arguments.Exists() {
		vs = append(vs, value{valueArguments, in.Call.Arguments.Raw()})
	}
	if in.Call.Answers.Exists() {
		vs = append(vs, value{valueAnswers, in.Call.Answers.Raw()})
	}
	until := processEnd
	if d.Effect.Gated() {
		until = powerCut // an act, or a refusal that R24 counts
	}
	return ss.write(s, until, audit.KindDecision, d.at, data, vs...)
}

// writeResult puts the result of a decided call behind the session's earlier
// records. The caller holds s.mu and tells the evidence of it.
func (ss *sessions) writeResult(s *session, d *decision, res *gate.Result, obs gate.Observation, at *placesAt, clean bool, resp upstream.Response) (*receipt, error) {
	data := resultData{Decision: d.record.n, Status: string(res.Status), Evidence: res.Evidence, Admissible: obs.Admissible, Why: obs.Why,
		Recalled: res.Recalled, Clean: clean, Places: at}
	var vs []value
	if res.Value.Exists() {
		vs = append(vs, value{valueResult, res.Value.Raw()})
	} else if resp.Err != nil && resp.End == upstream.Answered {
		vs = append(vs, value{"error", resp.Err.Encode()})
	}
	return ss.write(s, processEnd, audit.KindResult, res.Time, data, vs...)
}

func methodName(m policy.Method) string {
	if m == policy.CallTool {
		return "tools/call"
	}
	return string(m)
}

// encodeDefinitions writes the definitions a catalogue was made from, byte for
// byte, as one JSON array: the catalogue's blob.
func encodeDefinitions(defs []gate.Definition) []byte {
	b := []byte{'['}
	for i, d := range defs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"server":`...), strictjson.Quote(d.Server)...)
		b = append(append(b, `,"kind":`...), strictjson.Quote(string(d.Kind))...)
		b = append(append(append(b, `,"raw":`...), d.Raw...), '}')
	}
	return append(b, ']')
}

func decodeDefinitions(b []byte) ([]gate.Definition, error) {
	bad := errors.New("the recorded catalogue is not well formed")
	v, err := strictjson.Parse(b, strictjson.Limits{Depth: 200})
	if err != nil || v.Kind() != strictjson.Array {
		return nil, bad
	}
	defs := make([]gate.Definition, 0, v.Len())
	for _, e := range v.Elements() {
		server, ok1 := e.Get("server").Text()
		kind, ok2 := e.Get("kind").Text()
		raw := e.Get("raw").Raw()
		if !ok1 || !ok2 || raw == nil {
			return nil, bad
		}
		defs = append(defs, gate.Definition{Server: server, Kind: gate.Kind(kind), Raw: raw})
	}
	return defs, nil
}
