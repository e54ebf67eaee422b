package memoryserver

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/memory"
)

// Surface says which tools are published: each costs an agent context.
type Surface string

// The surfaces. The zero Surface is Full.
const (
	Everyday Surface = "everyday" // remember and recall
	Full     Surface = "full"     // those, the nine of the boundary and the reads
	ReadOnly Surface = "read_only"
)

// Server answers the tools of one namespace. It implements gateway.Inside.
type Server struct {
	keeper  *Keeper
	surface Surface
}

// NewServer returns the server of a keeper's namespace.
func NewServer(k *Keeper, p Surface) *Server { return &Server{k, p} }

// Keeper keeps the namespace.
func (s *Server) Keeper() *Keeper { return s.keeper }

// Definitions implements gateway.Inside.
func (s *Server) Definitions() [][]byte {
	var out [][]byte
	for _, t := range append([]memory.ToolSpec{memory.Remember()}, memory.Tools()...) {
		if s.publishes(t.Name) {
			out = append(out, definition(t, `{"destructiveHint":false,"openWorldHint":false,"readOnlyHint":false}`))
		}
	}
	for _, t := range readTools {
		if s.reads(t.Name) != nil {
			out = append(out, definition(t.ToolSpec, `{"openWorldHint":false,"readOnlyHint":true}`))
		}
	}
	return out
}

func (s *Server) publishes(proposal string) bool {
	return s.surface != ReadOnly && (s.surface != Everyday || proposal == memory.ToolRemember)
}

func definition(t memory.ToolSpec, annotations string) []byte {
	d := strictjson.Set([]byte("{}"), "name", strictjson.Quote(t.Name))
	d = strictjson.Set(d, "description", strictjson.Quote(t.Description))
	d = strictjson.Set(d, "inputSchema", t.InputSchema)
	return strictjson.Set(d, "annotations", []byte(annotations))
}

// Redact implements gateway.Inside.
func (s *Server) Redact(value []byte) []byte { return s.keeper.o.Intake.Redact(value) }

// Call implements gateway.Inside. What the memory refuses is an answer.
func (s *Server) Call(ctx context.Context, by gateway.Caller, tool string, arguments []byte) (gateway.Answer, error) {
	a, err := s.call(ctx, by, tool, arguments)
	if t := s.reads(tool); err == nil && (tool == memory.ToolRemember || t != nil && t.everyday) {
		a = once(a)
	}
	return a, err
}

// once is an answer in its text alone, which is what every client shows its model where
// there is nothing else (docs/clients.md).
func once(a gateway.Answer) gateway.Answer {
	a.Result = strictjson.Delete(a.Result, "structuredContent")
	for i := range a.Recalled {
		r := &a.Recalled[i]
		r.Pointer, r.Inner = "/content/0/text", strings.TrimPrefix(r.Pointer, "/structuredContent")
	}
	return a
}

func (s *Server) call(ctx context.Context, by gateway.Caller, tool string, arguments []byte) (gateway.Answer, error) {
	if arguments == nil {
		arguments = []byte("{}")
	}
	if no := bindTask(&by); no != nil {
		return refusing(no)
	}
	if t := s.reads(tool); t != nil {
		return s.read(ctx, t, by, arguments)
	}
	p := writ.Proposal{ToolName: tool, Payload: arguments}
	c := memory.Context{Principal: by.Principal, Session: by.Session, Task: taskOf(by), Redacted: by.Redacted}
	var err error
	if c.Exposed, err = by.Exposed(ctx); err != nil {
		return gateway.Answer{}, err
	}
	if c.Captured, c.Unlooked, err = captured(ctx, by, p); err != nil {
		return gateway.Answer{}, err
	}
	outcome, err := s.keeper.Propose(ctx, c, p)
	if err != nil {
		return gateway.Answer{}, err
	}
	if tool == memory.ToolRemember && outcome.Kept != nil {
		return answer(outcome.Kept, nil)
	}
	if outcome.Status == writ.Rejected {
		return answer(outcome, &outcome.Outcome)
	}
	return answer(outcome, nil)
}

// captured looks for what a proposal's observation stands in: in the evidence
// it names, or else where the session saw it at its most worth (Gateway.Capture). unlooked
// says that something was passed over.
func captured(ctx context.Context, by gateway.Caller, p writ.Proposal) (found []memory.Captured, unlooked bool, err error) {
	cite, ok := memory.Cites(p)
	if !ok {
		return nil, false, nil
	}
	if p.ToolName == memory.ToolRemember {
		about, _ := strictjson.Text(strictjson.Get(p.Payload, "about"))
		found, all, err := find(ctx, by, cite.Raw, about)
		return found, !all, err
	}
	number := uint32(0)
	if cite.Ref != "" {
		if number, ok = evidenceNumber(by.Session, cite.Ref); !ok {
			return nil, false, nil // it names something else, a page or a message
		}
	}
	got, ok, err := by.Capture(ctx, number, cite.Raw)
	if err != nil || !ok {
		return nil, got.Unlooked, err
	}
	return []memory.Captured{capturedBy(by, got)}, false, nil
}

// capturedBy is what the session saw, as the memory is told of it.
func capturedBy(by gateway.Caller, got gateway.Captured) memory.Captured {
	source, class := "user:"+by.Principal, memory.TrustClass("")
	switch {
	case got.Server != "":
		source = got.Server + "/" + got.Tool
	case got.Label != writ.User: // it stands in a turn and is not his: of unknown origin
		source, class = "pasted:"+by.Principal, memory.ClassDocument
	}
	full := got.Evidence.String()
	_, short, _ := strings.Cut(full, "/")
	return memory.Captured{Ref: short, Evidence: full, Label: got.Label, Source: source, Class: class, Verbatim: true,
		Between: true, Whole: got.Whole, Text: got.Wide, Offset: got.Offset, Seen: got.Seen, Type: string(got.Type), Collection: got.Collection}
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

// refusing is the answer to what is refused before the memory is asked.
func refusing(no *writ.Rejection) (gateway.Answer, error) {
	o := writ.Outcome{Status: writ.Rejected, Rejection: no}
	return answer(o, &o)
}

// answer is a result that says the same as structured content and as text; a
// refusal says it in words, as the gate's do. Of a
// proposal it is clean: it says nothing but what the session brought.
func answer(content any, refusal *writ.Outcome) (gateway.Answer, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // a text is shown as it stands: <mail> is no \u003cmail\u003e
	if err := e.Encode(content); err != nil {
		return gateway.Answer{}, err
	}
	b := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	said := string(b)
	if refusal != nil {
		said = gate.Say(*refusal, "")
	}
	block := strictjson.Set([]byte(`{"type":"text"}`), "text", strictjson.Quote(said))
	result := strictjson.Set([]byte("{}"), "content", append(append([]byte{'['}, block...), ']'))
	result = strictjson.Set(result, "structuredContent", b)
	if refusal != nil { // in the form of every refusal of Writ
		result = strictjson.Set(result, "isError", []byte("true"))
		result = strictjson.Set(result, "_meta", strictjson.Set([]byte("{}"), gateway.MetaOutcome, b))
	}
	return gateway.Answer{Result: result, Clean: true}, nil
}

// taskForm is the form of a task's name.
const taskForm = `^[A-Za-z0-9._:-]{1,128}$`

var taskName = text.Pattern(taskForm)

// bindTask settles the task a call works on: the one its host named, else the
// session itself. What is no name of a task is refused, never left out: what
// belongs apart would be put together.
func bindTask(by *gateway.Caller) *writ.Rejection {
	if by.Task == nil {
		by.Task = strictjson.Quote(by.Session)
	}
	if task, ok := strictjson.Text(by.Task); ok && taskName().MatchString(task) {
		return nil
	}
	return refuse(writ.SchemaInvalid, "", "a task in _meta, under "+gateway.MetaTask+", of 1 to 128 letters, digits, . _ : or -").rejection
}

// taskOf is the task of a call, once it is bound.
func taskOf(by gateway.Caller) string {
	task, _ := strictjson.Text(by.Task)
	return task
}
