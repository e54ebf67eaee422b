package memoryserver

import (
	"context"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// loadProperty is what memory_search takes where there is a workspace to load.
const loadProperty = `"load_workspace":{"description":"also bring the claims that are found into the workspace of this task","type":"boolean"}`

// found is the answer to a search that loaded what it found.
type found struct {
	memory.Results
	// Loaded are those of the claims that were brought into the workspace of
	// the task; the others were there, or are over.
	Loaded   []string `json:"loaded"`
	Task     string   `json:"task_id"`
	Decision string   `json:"decision_id,omitempty"` // of the event that did so
}

// searching is memory_search. To load a workspace is an effect, if one that
// nothing rests on: the decision about the question is in the log before the
// event is, and the event before anybody is told.
func searching(ctx context.Context, s *Server, by gateway.Caller, arguments []byte) (any, error) {
	load := string(strictjson.Get(arguments, "load_workspace")) == "true"
	if load && by.Anonymous {
		return nil, refused{&writ.Rejection{Code: writ.CodeOf(writ.ContextMismatch), Reason: writ.ContextMismatch, Failures: []writ.Failure{{
			Pointer: "/load_workspace", Reason: writ.ContextMismatch, Need: "a session: without one there is no workspace"}}}}
	}
	out, err := search(ctx, s, by, arguments)
	results, ok := out.(memory.Results)
	if err != nil || !load || !ok {
		return out, err
	}
	f := found{Results: results, Loaded: []string{}, Task: taskOf(by)}
	var ids []string
	for i := range results.Items {
		if p := results.Items[i].Proposition; p != nil {
			ids = append(ids, p.ID)
		}
	}
	if err := s.keeper.Read(ctx, func(st *memory.State, _ time.Time) { ids = st.Loadable(by.Session, f.Task, ids) }); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return f, nil
	}
	if err := by.Recorded(); err != nil {
		return nil, err
	}
	o, err := s.keeper.Reactivate(ctx, memory.Context{Principal: by.Principal, Session: by.Session, Task: f.Task}, ids)
	if err != nil {
		return nil, err
	}
	if o.Status == writ.Rejected {
		return nil, refused{o.Rejection}
	}
	f.Decision = o.Decision
	for _, e := range o.Effects {
		f.Loaded = append(f.Loaded, e.ID)
	}
	return f, nil
}

// Reactivate decides to bring claims into the workspace of a task, and writes
// the event, like Propose.
func (k *Keeper) Reactivate(ctx context.Context, c memory.Context, propositions []string) (memory.Outcome, error) {
	d, err := k.do(ctx, func(s *memory.State, now time.Time) memory.Decision {
		c.Policy, c.Namespace, c.Mode, c.Now = k.o.Policy, k.o.Namespace, k.o.Mode, now
		return memory.Reactivate(s, c, propositions)
	})
	return d.Outcome, err
}
