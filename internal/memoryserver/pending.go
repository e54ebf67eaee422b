package memoryserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/memory"
)

// sighting is evidence of the session that an observation can cite.
type sighting struct {
	Evidence   string    `json:"evidence"` // what source_ref takes
	Source     string    `json:"source"`
	Admissible bool      `json:"admissible"`
	Time       time.Time `json:"time"`
}

// pending reads what waits in one task of the session. What the session saw is
// every task's.
func pending(ctx context.Context, s *Server, by gateway.Caller, arguments []byte) (out any, err error) {
	var in struct {
		Task  string `json:"task_id"`
		Limit int    `json:"limit"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	if in.Limit == 0 {
		in.Limit = readLimit
	}
	if in.Task == "" {
		in.Task = taskOf(by)
	}
	seen, err := by.Sightings(ctx, in.Limit)
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
	var no error
	err = s.keeper.Read(ctx, func(st *memory.State, now time.Time) {
		if in.Task != taskOf(by) && !st.HasTask(by.Session, in.Task) {
			no = refused{&writ.Rejection{Code: writ.CodeOf(writ.ContextMismatch), Reason: writ.ContextMismatch, Failures: []writ.Failure{{
				Pointer: "/task_id", Reason: writ.ContextMismatch, Need: "a task of this session, or none"}}}}
			return
		}
		p := s.reader(st, now, by).Pending(by.Session, in.Task, in.Limit)
		if st.Head() == 0 {
			p.Mode = s.keeper.o.Mode // what it will begin with
		}
		out = struct {
			memory.Pending
			Task     string     `json:"task_id"`
			Evidence []sighting `json:"evidence"`
		}{p, in.Task, evidence}
	})
	if no != nil {
		err = no
	}
	return out, err
}
