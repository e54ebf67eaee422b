package memoryserver

import (
	"cmp"
	"fmt"
	"time"

	writ "github.com/writ-project/writ"
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
