package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
)

// KindApproval is the kind of a record of a person's answer to a call that waited.
const KindApproval audit.Kind = "approval"

// approvalData is the data of its record: all that a session is folded from. The
// call is named by a keyed digest.
type approvalData struct {
	Evidence uint32 `json:"evidence"`
	Act      string `json:"act"`
	Yes      bool   `json:"yes"`
	By       string `json:"by"`
	Label    string `json:"label"`
}

// approvals are what a gateway asks a person by.
type approvals struct {
	queue *approval.Queue // nil where nobody can be asked
	stand bool            // a question stands open though nobody watches
}

// wait is how long a call is held for an answer: not at all where nobody watches.
// ok is false where nobody can be asked.
func (a *approvals) wait() (d time.Duration, ok bool) {
	switch {
	case a.queue == nil:
		return 0, false
	case a.queue.Watched():
		return approval.Waits, true
	}
	return 0, a.stand
}

// asks reports whether anybody can be asked.
func (a *approvals) asks() bool {
	_, ok := a.wait()
	return ok
}

// put puts a call to a person, and says how far that went. With an answer on record
// the call is to be judged again.
func (c *judgedCall) put(ctx context.Context, ask *gate.Ask) (gate.Asked, error) {
	wait, ok := c.g.approvals.wait()
	if !ok {
		return gate.NotAsked, nil
	}
	of := approval.Question{Session: c.s.id, Server: c.call.Server, Tool: c.call.Tool, Arguments: c.call.Arguments.Raw(), Values: ask.Values}
	return c.g.approvals.queue.Ask(ctx, of, ask.Act, wait, func(a approval.Answer) error {
		ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
		defer cancel()
		return c.g.sessions.approve(ctx, c.s.id, gate.Approval{Act: ask.Act, Yes: a.Yes, By: a.By, Label: a.Label})
	})
}

// approve puts a person's answer on record: durably, before a call rests on it. The
// caller is a surface that knows who he is; nothing that came by way of the agent is
// ever handed to it.
func (ss *sessions) approve(ctx context.Context, id string, a gate.Approval) error {
	_, err := ss.recordIn(ctx, id, func(s *session) (*receipt, error) {
		a.At = ss.now()
		data := approvalData{Evidence: s.evidence.Next(), Act: a.Act, Yes: a.Yes, By: a.By, Label: a.Label.String()}
		rec, err := ss.write(s, powerCut, KindApproval, a.At, data)
		if err == nil {
			s.evidence.Commit(s.evidence.Approve(data.Evidence, a))
		}
		return rec, err
	})
	return err
}

// approval folds a recorded answer.
func (r *Replayer) approval(rec *audit.Record) error {
	var data approvalData
	if err := json.Unmarshal(rec.Data, &data); err != nil {
		return fmt.Errorf("approval: %w", err)
	}
	label, err := writ.ParseLabel(data.Label)
	if err != nil {
		return fmt.Errorf("%w: approval (n %d)", ErrReplay, rec.N)
	}
	if r.blind || r.session == nil {
		return nil
	}
	r.session.Commit(r.session.Approve(data.Evidence, gate.Approval{Act: data.Act, Yes: data.Yes, By: data.By, Label: label, At: rec.Time}))
	return nil
}
