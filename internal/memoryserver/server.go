package memoryserver

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// Profile says which tools are published: each costs an agent context.
type Profile string

// The profiles. The zero Profile is Full.
const (
	Full     Profile = "full"
	Minimal  Profile = "minimal" // record, propose, support, contradict, search and explain
	ReadOnly Profile = "read_only"
)

// minimal are the proposals of profile Minimal.
var minimal = map[string]bool{
	memory.ToolRecordObservation: true, memory.ToolPropose: true, memory.ToolAttachSupport: true, memory.ToolAttachContra: true,
}

// Server answers the tools of one namespace. It implements gateway.Inside.
type Server struct {
	keeper  *Keeper
	profile Profile
}

// NewServer returns the server of a keeper's namespace.
func NewServer(k *Keeper, p Profile) *Server { return &Server{k, p} }

// Definitions implements gateway.Inside.
func (s *Server) Definitions() [][]byte {
	var out [][]byte
	for _, t := range memory.Tools() {
		if s.publishes(t.Name) {
			out = append(out, definition(t, `{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,"readOnlyHint":false}`))
		}
	}
	for _, t := range readTools {
		if s.reads(t.Name) != nil {
			t.OutputSchema = readOutput
			if s.profile == ReadOnly { // it works on no task
				t.InputSchema = bytes.Replace(t.InputSchema, []byte(","+loadProperty), nil, 1)
			}
			out = append(out, definition(t.ToolSpec, `{"openWorldHint":false,"readOnlyHint":true}`))
		}
	}
	return out
}

func (s *Server) publishes(proposal string) bool {
	return s.profile != ReadOnly && (s.profile != Minimal || minimal[proposal])
}

func definition(t memory.ToolSpec, annotations string) []byte {
	d := strictjson.Set([]byte("{}"), "name", strictjson.Quote(t.Name))
	d = strictjson.Set(d, "description", strictjson.Quote(t.Description))
	d = strictjson.Set(d, "inputSchema", t.InputSchema)
	d = strictjson.Set(d, "outputSchema", t.OutputSchema)
	return strictjson.Set(d, "annotations", []byte(annotations))
}

// Redact implements gateway.Inside.
func (s *Server) Redact(value []byte) []byte { return s.keeper.o.Intake.Redact(value) }

// Call implements gateway.Inside. What the memory refuses is an answer.
func (s *Server) Call(ctx context.Context, by gateway.Caller, tool string, arguments []byte) (gateway.Answer, error) {
	if arguments == nil {
		arguments = []byte("{}")
	}
	if no := bindTask(&by); no != nil {
		return answer(writ.Outcome{Status: writ.Rejected, Rejection: no}, true)
	}
	if t := s.reads(tool); t != nil {
		return s.read(ctx, t, by, arguments)
	}
	p := writ.Proposal{ToolName: tool, Payload: arguments}
	c := memory.Context{Principal: by.Principal, Session: by.Session, Task: taskOf(by), Redacted: by.Redacted}
	var err error
	if c.Captured, err = captured(ctx, by, p); err != nil {
		return gateway.Answer{}, err
	}
	outcome, err := s.keeper.Propose(ctx, c, p)
	if err != nil {
		return gateway.Answer{}, err
	}
	return answer(outcome, outcome.Status == writ.Rejected)
}

// captured looks for what a proposal's observation stands in: in the evidence
// it names, or else in the newest that holds it.
func captured(ctx context.Context, by gateway.Caller, p writ.Proposal) ([]memory.Captured, error) {
	cite, ok := memory.Cites(p)
	if !ok {
		return nil, nil
	}
	number := uint32(0)
	if cite.Ref != "" {
		if number, ok = evidenceNumber(by.Session, cite.Ref); !ok {
			return nil, nil // it names something else, a page or a message
		}
	}
	got, ok, err := by.Capture(ctx, number, cite.Raw)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, nil
	}
	source, class := "user:"+by.Principal, memory.TrustClass("")
	switch {
	case got.Server != "":
		source = got.Server + "/" + got.Tool
	case got.Label != writ.User: // it stands in a turn and is not his: of unknown origin
		source, class = "pasted:"+by.Principal, memory.ClassDocument
	}
	full := got.Evidence.String()
	_, short, _ := strings.Cut(full, "/")
	return []memory.Captured{{Ref: short, Evidence: full, Label: got.Label, Source: source, Class: class, Verbatim: true,
		Between: true, Whole: got.Whole, Type: string(got.Type), Collection: got.Collection}}, nil
}

// evidenceNumber reads ev12 or s_…/ev12 of the caller's own session.
func evidenceNumber(session, ref string) (uint32, bool) {
	if !strings.Contains(ref, "/") {
		ref = session + "/" + ref
	}
	id, err := writ.ParseEvidenceID(ref)
	if err != nil || id.Session != session {
		return 0, false
	}
	return id.Number, true
}

// answer is a result that says the same as structured content and as text.
func answer(content any, isError bool) (gateway.Answer, error) {
	b, err := json.Marshal(content)
	if err != nil {
		return gateway.Answer{}, err
	}
	block := strictjson.Set([]byte(`{"type":"text"}`), "text", strictjson.Quote(string(b)))
	result := strictjson.Set([]byte("{}"), "content", append(append([]byte{'['}, block...), ']'))
	result = strictjson.Set(result, "structuredContent", b)
	if isError { // in the form of every refusal of Writ
		result = strictjson.Set(result, "isError", []byte("true"))
		result = strictjson.Set(result, "_meta", strictjson.Set([]byte("{}"), gateway.MetaOutcome, b))
	}
	return gateway.Answer{Result: result}, nil
}
