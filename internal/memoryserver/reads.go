package memoryserver

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/memory"
)

// The read tools.
const (
	toolRecall   = "recall"
	toolSearch   = "memory_search"
	toolGet      = "memory_get"
	toolExplain  = "memory_explain"
	toolTimeline = "memory_timeline"
	toolPending  = "memory_pending"
)

// readTool is one question. Its arguments were checked against its schema by
// the gate.
type readTool struct {
	memory.ToolSpec
	everyday bool // also on the surface of every day
	answer   func(ctx context.Context, s *Server, by gateway.Caller, arguments []byte) (any, error)
}

const readLimit = 20

func schemaOf(properties, required string) []byte {
	return []byte(`{"additionalProperties":false,"properties":{` + properties + `},"required":[` + required + `],"type":"object"}`)
}

const (
	idProperty    = `{"maxLength":128,"minLength":1,"type":"string"}`
	limitProperty = `"limit":{"maximum":50,"minimum":1,"type":"integer"}`
	asOfProperty  = `"as_of":{"format":"date-time","type":"string"}`
)

var readTools = []readTool{
	{memory.ToolSpec{Name: toolRecall, Description: "Recall what is known, as quotes: established is what the user or a trusted tool said; unverified your own notes. Rely on established alone.",
		InputSchema: schemaOf(`"query":{"description":"words that were said; may be left out where about is given","maxLength":512,"type":"string"},
			"about":{"description":"as in remember: Anna, or Anna: phone; me for the user","maxLength":300,"minLength":1,"type":"string"},
			"as_of":{"description":"what was known then","format":"date-time","type":"string"},
			"all":{"description":"also what only others say, was replaced, or you noted after reading others","type":"boolean"}`, ``)}, true, recall},
	{memory.ToolSpec{Name: toolSearch, Description: "recall, with a limit and by entity.",
		InputSchema: schemaOf(`"query":{"maxLength":512,"minLength":1,"type":"string"},`+limitProperty+`,
			"entity_id":`+idProperty+`,`+asOfProperty+`,"include_untrusted":{"type":"boolean"}`, `"query"`)}, false, search},
	{memory.ToolSpec{Name: toolGet, Description: "Read one object by its id.",
		InputSchema: schemaOf(`"id":`+idProperty, `"id"`)}, false, get},
	{memory.ToolSpec{Name: toolExplain, Description: "Why a claim, or the value of a slot, is worth what it is, and what would change that.",
		InputSchema: schemaOf(`"proposition_id":`+idProperty+`,"slot":`+idProperty+`,`+asOfProperty, ``)}, false, explain},
	{memory.ToolSpec{Name: toolTimeline, Description: "What happened to an entity, slot or claim, in order.",
		InputSchema: schemaOf(`"id":`+idProperty+`,"from":{"maximum":1000000000000,"minimum":0,"type":"integer"},`+limitProperty, `"id"`)}, false, timeline},
	{memory.ToolSpec{Name: toolPending, Description: "Contested claims, open tests, what was refused, and evidence to cite.",
		InputSchema: schemaOf(`"task_id":{"pattern":"`+taskForm+`","type":"string"},`+limitProperty, ``)}, false, pending},
}

func (s *Server) reads(name string) *readTool {
	for i := range readTools {
		if t := &readTools[i]; t.Name == name && (s.surface != Everyday || t.everyday) {
			return t
		}
	}
	return nil
}

// none is the answer to a question nothing is known about.
type none struct {
	Notice     string            `json:"notice"`
	Abstention memory.Abstention `json:"abstention"`
}

func nothing() none { return none{memory.Notice, memory.NothingKnown} }

// asOf reads an optional time, whose form the schema has checked as far as
// schemas do.
func asOf(text string) (time.Time, *writ.Rejection) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, &writ.Rejection{Code: writ.InvalidPayload, Reason: writ.SchemaInvalid,
			Failures: []writ.Failure{{Pointer: "/as_of", Reason: writ.SchemaInvalid, Need: "a time in RFC 3339"}}}
	}
	return t, nil
}

// refused is an answer that refuses, in the one form of every refusal.
type refused struct{ rejection *writ.Rejection }

func (r refused) Error() string { return string(r.rejection.Reason) }

func (s *Server) reader(st *memory.State, now time.Time, by gateway.Caller) *memory.Reader {
	return &memory.Reader{State: st, Policy: s.keeper.o.Policy, Principal: by.Principal, Now: now}
}

func recall(ctx context.Context, s *Server, by gateway.Caller, arguments []byte) (out any, err error) {
	var in struct {
		Query string `json:"query"`
		About string `json:"about"`
		AsOf  string `json:"as_of"`
		All   bool   `json:"all"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	return s.recalls(ctx, by, in.AsOf, memory.Ask{Query: in.Query, About: in.About, All: in.All})
}

func search(ctx context.Context, s *Server, by gateway.Caller, arguments []byte) (out any, err error) {
	var in struct {
		Query     string `json:"query"`
		Limit     int    `json:"limit"`
		Entity    string `json:"entity_id"`
		AsOf      string `json:"as_of"`
		Untrusted bool   `json:"include_untrusted"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	return s.recalls(ctx, by, in.AsOf, memory.Ask{Query: in.Query, Entity: in.Entity, All: in.Untrusted, Limit: in.Limit, Bytes: in.Limit * 400})
}

func (s *Server) recalls(ctx context.Context, by gateway.Caller, asOfText string, ask memory.Ask) (out any, err error) {
	at, bad := asOf(asOfText)
	if bad != nil {
		return nil, refused{bad}
	}
	ask.Near = s.keeper.near(ctx, ask.Query)
	err = s.keeper.Read(ctx, func(st *memory.State, now time.Time) {
		r := s.reader(st, now, by)
		r.AsOf = at
		out = r.Recall(ask)
	})
	return out, err
}

func get(ctx context.Context, s *Server, by gateway.Caller, arguments []byte) (out any, err error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	err = s.keeper.Read(ctx, func(st *memory.State, now time.Time) {
		if rec, ok := s.reader(st, now, by).Get(in.ID); ok {
			if o := rec.Observation; o != nil && o.Status == memory.Quarantined {
				// The screen held it back from whoever acts on what he reads.
				o.Text.Text, o.Text.Cut, o.SourceRef = "", true, nil
			}
			out = rec
		} else {
			out = nothing()
		}
	})
	return out, err
}

func explain(ctx context.Context, s *Server, by gateway.Caller, arguments []byte) (out any, err error) {
	var in struct {
		Proposition string `json:"proposition_id"`
		Slot        string `json:"slot"`
		AsOf        string `json:"as_of"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	at, bad := asOf(in.AsOf)
	if bad == nil && (in.Proposition == "") == (in.Slot == "") {
		bad = &writ.Rejection{Code: writ.InvalidPayload, Reason: writ.SchemaMissingField,
			Failures: []writ.Failure{{Pointer: "/proposition_id", Reason: writ.SchemaMissingField, Need: "either proposition_id or slot"}}}
	}
	if bad != nil {
		return nil, refused{bad}
	}
	err = s.keeper.Read(ctx, func(st *memory.State, now time.Time) {
		r := s.reader(st, now, by)
		r.AsOf = at
		if in.Slot != "" {
			out = struct {
				Notice string `json:"notice"`
				memory.Answer
			}{memory.Notice, r.Answer(in.Slot)}
			return
		}
		if x, ok := r.Explain(in.Proposition); ok {
			out = x
		} else {
			out = nothing()
		}
	})
	return out, err
}

func timeline(ctx context.Context, s *Server, by gateway.Caller, arguments []byte) (out any, err error) {
	var in struct {
		ID    string `json:"id"`
		From  uint64 `json:"from"`
		Limit int    `json:"limit"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	if in.Limit == 0 {
		in.Limit = readLimit
	}
	err = s.keeper.Read(ctx, func(st *memory.State, now time.Time) {
		moments, more := s.reader(st, now, by).Timeline(in.ID, in.From, in.Limit)
		out = struct {
			Notice  string          `json:"notice"`
			Moments []memory.Moment `json:"moments"`
			More    bool            `json:"more"`
		}{memory.Notice, append([]memory.Moment{}, moments...), more}
	})
	return out, err
}

// read answers a question. An error that is a refusal is an answer too.
func (s *Server) read(ctx context.Context, t *readTool, by gateway.Caller, arguments []byte) (gateway.Answer, error) {
	out, err := t.answer(ctx, s, by, arguments)
	var no refused
	switch {
	case errors.As(err, &no):
		return answer(writ.Outcome{Status: writ.Rejected, Rejection: no.rejection}, true)
	case err != nil:
		return gateway.Answer{}, err
	}
	a, err := answer(out, false)
	if a.Recalled = recalled(out); err == nil {
		err = s.keeper.Read(ctx, func(st *memory.State, now time.Time) { a.Clean = clean(out, s.reader(st, now, by)) })
	}
	return a, err
}
