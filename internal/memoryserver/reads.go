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
	minimal bool // also in profile Minimal
	answer  func(ctx context.Context, s *Server, by gateway.Caller, arguments []byte) (any, error)
}

const readLimit = 20

func schemaOf(properties, required string) []byte {
	return []byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","additionalProperties":false,"properties":{` +
		properties + `},"required":[` + required + `],"type":"object"}`)
}

// readOutput says no more than what every answer has: what it holds depends on
// what was asked, and docs/formats.md describes it.
var readOutput = []byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"notice":{"type":"string"}},"required":["notice"],"type":"object"}`)

const (
	idProperty    = `{"maxLength":128,"minLength":1,"type":"string"}`
	limitProperty = `"limit":{"maximum":50,"minimum":1,"type":"integer"}`
	asOfProperty  = `"as_of":{"description":"RFC 3339: what was believed then","format":"date-time","type":"string"}`
)

var readTools = []readTool{
	{memory.ToolSpec{Name: toolSearch, Description: "Find what is believed, by words. Weak and disputed claims are withheld and counted; min_state and include_untrusted show them, labelled.",
		InputSchema: schemaOf(`"query":{"maxLength":512,"minLength":1,"type":"string"},`+limitProperty+`,
			"types":{"items":{"enum":["proposition","observation","entity","episode"]},"type":"array","uniqueItems":true},
			"entity_id":`+idProperty+`,`+asOfProperty+`,
			"min_state":{"enum":["accepted","provisional","tentative","contested","deprecated","rejected"]},
			"include_untrusted":{"type":"boolean"},"max_tokens":{"maximum":100000,"minimum":1,"type":"integer"},`+loadProperty, `"query"`)}, true, searching},
	{memory.ToolSpec{Name: toolGet, Description: "Read one entity, proposition, observation, episode, test or decision by its id.",
		InputSchema: schemaOf(`"id":`+idProperty, `"id"`)}, false, get},
	{memory.ToolSpec{Name: toolExplain, Description: "Explain a proposition, or the current value of a slot: its state, the rule, the scores, the evidence with quotes, and what would change it.",
		InputSchema: schemaOf(`"proposition_id":`+idProperty+`,"slot":`+idProperty+`,`+asOfProperty, ``)}, true, explain},
	{memory.ToolSpec{Name: toolTimeline, Description: "Tell what happened to an entity, a slot or a proposition, in order.",
		InputSchema: schemaOf(`"id":`+idProperty+`,"from":{"maximum":1000000000000,"minimum":0,"type":"integer"},`+limitProperty, `"id"`)}, false, timeline},
	{memory.ToolSpec{Name: toolPending, Description: "List what waits: contested claims, open tests, what was refused last, and the newest evidence of this session that an observation can cite.",
		InputSchema: schemaOf(`"task_id":{"description":"a task of this session; the one this call is in if left out","pattern":"`+taskForm+`","type":"string"},`+limitProperty, ``)}, false, pending},
}

func (s *Server) reads(name string) *readTool {
	for i := range readTools {
		if t := &readTools[i]; t.Name == name && (s.profile != Minimal || t.minimal) {
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

func search(ctx context.Context, s *Server, by gateway.Caller, arguments []byte) (out any, err error) {
	var in struct {
		Query     string   `json:"query"`
		Limit     int      `json:"limit"`
		Types     []string `json:"types"`
		Entity    string   `json:"entity_id"`
		AsOf      string   `json:"as_of"`
		MinState  string   `json:"min_state"`
		Untrusted bool     `json:"include_untrusted"`
		MaxTokens int      `json:"max_tokens"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	at, bad := asOf(in.AsOf)
	if bad != nil {
		return nil, refused{bad}
	}
	err = s.keeper.Read(ctx, func(st *memory.State, now time.Time) {
		r := s.reader(st, now, by)
		r.AsOf = at
		out = r.Search(in.Query, memory.Query{Limit: in.Limit, Types: in.Types, Entity: in.Entity, MinState: memory.Status(in.MinState),
			Untrusted: in.Untrusted, MaxTokens: in.MaxTokens})
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
	a.Recalled = recalled(out)
	return a, err
}
