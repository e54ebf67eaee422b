package memoryserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	answer   func(q *question) (any, error)
}

// question is one call of a read tool.
type question struct {
	ctx  context.Context
	s    *Server
	by   gateway.Caller
	args arguments
	at   time.Time // what was known then; zero for now
	// clean says that nothing was read but what passes the one gate of the memory:
	// else the session that reads it has seen what somebody else may have written,
	// and what its agent notes from then on is no note of its own.
	clean bool
}

// arguments are those of all read tools.
type arguments struct {
	ID          string `json:"id"`
	Query       string `json:"query"`
	About       string `json:"about"`
	Entity      string `json:"entity_id"`
	Proposition string `json:"proposition_id"`
	Slot        string `json:"slot"`
	Task        string `json:"task_id"`
	AsOf        string `json:"as_of"`
	From        uint64 `json:"from"`
	Limit       int    `json:"limit"`
	All         bool   `json:"all"`
	Untrusted   bool   `json:"include_untrusted"`
}

// read calls f with a reader of the memory as it is now, or as it was then.
func (q *question) read(f func(r *memory.Reader)) error {
	return q.s.keeper.Read(q.ctx, func(st *memory.State, now time.Time) {
		r := &memory.Reader{State: st, Principal: q.by.Principal, Now: now, AsOf: q.at}
		f(r)
		q.clean = r.Clean()
	})
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

// refused is an answer that refuses, in the one form of every refusal.
type refused struct{ rejection *writ.Rejection }

func (r refused) Error() string { return string(r.rejection.Reason) }

func refuse(reason writ.Reason, at, need string) refused {
	return refused{&writ.Rejection{Code: writ.CodeOf(reason), Reason: reason, Failures: []writ.Failure{{Pointer: at, Reason: reason, Need: need}}}}
}

func recall(q *question) (any, error) {
	return q.recall(memory.Ask{Query: q.args.Query, About: q.args.About, All: q.args.All})
}

func search(q *question) (any, error) {
	limit := q.args.Limit
	return q.recall(memory.Ask{Query: q.args.Query, Entity: q.args.Entity, All: q.args.Untrusted, Limit: limit, Bytes: limit * 400})
}

func (q *question) recall(ask memory.Ask) (out any, err error) {
	ask.Near = q.s.keeper.near(q.ctx, ask.Query)
	err = q.read(func(r *memory.Reader) { out = r.Recall(ask) })
	return out, err
}

func get(q *question) (out any, err error) {
	err = q.read(func(r *memory.Reader) {
		rec, ok := r.Get(q.args.ID)
		if !ok {
			out = nothing()
			return
		}
		if o := rec.Observation; o != nil && o.Status == memory.Quarantined {
			// The screen held it back from whoever acts on what he reads.
			o.Text.Text, o.Text.Cut, o.SourceRef = "", true, nil
		}
		out = rec
	})
	return out, err
}

func explain(q *question) (out any, err error) {
	if (q.args.Proposition == "") == (q.args.Slot == "") {
		return nil, refuse(writ.SchemaMissingField, "/proposition_id", "either proposition_id or slot")
	}
	err = q.read(func(r *memory.Reader) {
		if q.args.Slot != "" {
			out = struct {
				Notice string `json:"notice"`
				memory.Answer
			}{memory.Notice, r.Answer(q.args.Slot)}
			return
		}
		if x, ok := r.Explain(q.args.Proposition); ok {
			out = x
		} else {
			out = nothing()
		}
	})
	return out, err
}

func timeline(q *question) (out any, err error) {
	err = q.read(func(r *memory.Reader) {
		out = r.Timeline(q.args.ID, q.args.From, cmp.Or(q.args.Limit, readLimit))
	})
	return out, err
}

// read answers a question. An error that is a refusal is an answer too.
func (s *Server) read(ctx context.Context, t *readTool, by gateway.Caller, args []byte) (gateway.Answer, error) {
	q := question{ctx: ctx, s: s, by: by}
	if err := json.Unmarshal(args, &q.args); err != nil {
		return gateway.Answer{}, err
	}
	if q.args.AsOf != "" { // before anything leaves the machine; schemas check no more than its form
		var err error
		if q.at, err = time.Parse(time.RFC3339Nano, q.args.AsOf); err != nil {
			return refusing(refuse(writ.SchemaInvalid, "/as_of", "a time in RFC 3339").rejection)
		}
	}
	out, err := t.answer(&q)
	var no refused
	switch {
	case errors.As(err, &no):
		return refusing(no.rejection)
	case err != nil:
		return gateway.Answer{}, err
	}
	a, err := answer(out, nil)
	a.Recalled, a.Clean = recalled(out), q.clean
	return a, err
}

// sighting is evidence of the session that an observation can cite.
type sighting struct {
	Evidence   string    `json:"evidence"` // what source_ref takes
	Source     string    `json:"source"`
	Admissible bool      `json:"admissible"`
	Time       time.Time `json:"time"`
}

// pending reads what waits in one task of the session. What the session saw is
// every task's.
func pending(q *question) (out any, err error) {
	task, limit := cmp.Or(q.args.Task, taskOf(q.by)), cmp.Or(q.args.Limit, readLimit)
	seen, err := q.by.Sightings(q.ctx, limit)
	if err != nil {
		return nil, err
	}
	evidence := []sighting{}
	for _, x := range seen {
		source := "user"
		if x.Server != "" {
			source = x.Server + "/" + x.Tool
		}
		evidence = append(evidence, sighting{fmt.Sprintf("ev%d", x.Evidence.Number), source, x.Admissible, x.Time})
	}
	known := true
	err = q.read(func(r *memory.Reader) {
		if known = task == taskOf(q.by) || r.State.HasTask(q.by.Session, task); !known {
			return
		}
		p := r.Pending(q.by.Session, task, limit)
		if r.State.Head() == 0 {
			p.Mode = q.s.keeper.o.Mode // what it will begin with
		}
		out = struct {
			memory.Pending
			Task     string     `json:"task_id"`
			Evidence []sighting `json:"evidence"`
		}{p, task, evidence}
	})
	if err == nil && !known {
		err = refuse(writ.ContextMismatch, "/task_id", "a task of this session, or none")
	}
	return out, err
}
