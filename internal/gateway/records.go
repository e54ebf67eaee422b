package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Names of the values records commit to.
const (
	valueKey    = "key"    // open: the ledger key, 32 bytes
	valueCall   = "call"   // decision: the call, what it rested on and what was found
	valueResult = "result" // result: the exact bytes of the result member

	// Of decisions of before:
	valueArguments = "arguments" // the exact bytes that were judged
	valueAnswers   = "answers"   // the answers given inside the call
	valueDecision  = "decision"  // gate.Decision.Record
)

// Engine names the version of the rules a decision was made by. It changes
// with every change that could change a decision.
const Engine = gate.Engine

// resultData is the data of a result's record. The members stand in their canonical
// order: nothing has to sort them.
type resultData struct {
	Admissible bool `json:"admissible,omitempty"`
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

func readResult(data []byte) (d resultData, err error) {
	var r taken
	v := strictjson.Of(data)
	for name, v := range v.Members() {
		switch name {
		case "admissible":
			d.Admissible = string(v.Raw()) == "true"
		case "clean":
			d.Clean = string(v.Raw()) == "true"
		case "decision":
			d.Decision = r.number(v, 64)
		case "evidence":
			d.Evidence = uint32(r.number(v, 32))
		case "places":
			r.bad = json.Unmarshal(v.Raw(), &d.Places) != nil || r.bad
		case "recalled":
			r.bad = json.Unmarshal(v.Raw(), &d.Recalled) != nil || r.bad
		case "status":
			d.Status = r.text(v)
		case "why":
			d.Why = r.text(v)
		}
	}
	if r.bad || v.Kind() != strictjson.Object {
		return d, fmt.Errorf("result: %w", errShape)
	}
	return d, nil
}

// taken reads members of a record; bad is set where one is not of its kind.
type taken struct{ bad bool }

func (r *taken) text(v strictjson.Value) string {
	s, is := v.Text()
	r.bad = r.bad || !is
	return s
}

func (r *taken) texts(v strictjson.Value) (all []string) {
	for _, e := range v.Elements() {
		all = append(all, r.text(e))
	}
	return all
}

func (r *taken) number(v strictjson.Value, bits int) uint64 {
	n, err := strconv.ParseUint(string(v.Raw()), 10, bits)
	r.bad = r.bad || err != nil
	return n
}

// putTexts writes an array of texts.
func putTexts(m *strictjson.Writer, name string, all []string) {
	m.Name(name)
	m.B = append(m.B, '[')
	for i, s := range all {
		if i > 0 {
			m.B = append(m.B, ',')
		}
		m.B = strictjson.AppendQuote(m.B, s)
	}
	m.B = append(m.B, ']')
}

// writeDecision puts a decision behind the session's earlier records. The
// caller holds s.mu and tells the evidence of it.
func (ss *sessions) writeDecision(s *session, rs *ruleset, in *gate.Input, d *decision) (*receipt, error) {
	continues := uint64(0)
	if d.Allowed() {
		continues = d.continues
	}
	states := ""
	if s.own != rs.ownBlob {
		states = rs.ownBlob
	}
	data, call := putDecision(rs.rulesBlob, rs.own, states, in, &d.Decision, d.State(), continues)
	until := processEnd
	if d.Effect.Gated() {
		until = powerCut // an act, or a refusal that R24 counts
	}
	rec, err := ss.write(s, until, audit.KindDecision, d.at, data.append(make([]byte, 0, 320)), value{valueCall, call})
	if err == nil {
		s.own = rs.ownBlob
	}
	return rec, err
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
