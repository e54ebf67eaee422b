package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/certificate"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// KindApproval is the kind of a record of a person's answer to a call that waited.
const KindApproval audit.Kind = "approval"

// approvalData is the data of its record: all that a session is folded from. The
// call is named by a keyed digest.
type approvalData struct {
	Evidence uint32         `json:"evidence"`
	Act      string         `json:"act"`
	Covers   []gate.Covered `json:"covers"` // what he was shown that it lacks
	Yes      bool           `json:"yes"`
	By       string         `json:"by"`
	Label    string         `json:"label"`
}

// approvals are what a gateway asks a person by.
type approvals struct {
	queue      *approval.Queue // nil where nobody can be asked
	stand      bool            // a question stands open though nobody watches
	own        approval.Surface
	answersFor func(principal string) (by string, label writ.Label, ok bool)
	grow       func(ctx context.Context, lines []policy.Grown, record func() error) error // nil where nothing grows
}

// surface says how the call may be put to a person: at this process's terminal or at
// its own client, where that is his, own being nil elsewhere, and how long it is held
// for an answer, not at all where nobody watches. ok is false where nobody can be
// asked.
func (c *judgedCall) surface() (own approval.Surface, wait time.Duration, ok bool) {
	a := &c.g.approvals
	if a.queue == nil || c.look {
		return nil, 0, false
	}
	if a.own != nil {
		return a.own, approval.Stands, true
	}
	_, _, his := a.answersFor(c.r.Principal)
	switch his = his && downstream.MayAsk(c.r.Version, c.r.ClientCapabilities, "elicitation/create", nil); {
	case his && c.r.Era == downstream.Legacy:
		return c.elicit, approval.Waits, true
	case his && len(c.extra) == 0 && !c.call.Answers.Exists(): // what a retry of the server's carries would be lost on the way
		return c.elicitLater, 0, true
	case a.queue.Watched():
		return nil, approval.Waits, true
	}
	return nil, 0, a.stand
}

func (c *judgedCall) asks() bool {
	_, _, ok := c.surface()
	return ok
}

// asking is the call as a question names it.
func (c *judgedCall) asking() approval.Question {
	return approval.Question{Session: c.s.id, Server: c.call.Server, Tool: c.call.Tool, Arguments: c.call.Arguments.Raw(), Came: c.call.Arguments.Raw(), Answers: c.call.Answers.Raw(), Since: c.since}
}

// putTo puts a call to a person, and notes how far that went. With an answer on record
// the call is to be judged again.
func (c *judgedCall) putTo(ctx context.Context, in gate.Input, ask *gate.Ask) (err error) {
	own, wait, ok := c.surface()
	if !ok {
		c.asked = gate.NotAsked
		return nil
	}
	of := c.asking()
	of.Arguments, of.Values = ask.Arguments.Raw(), ask.Values
	id := c.s.id // the call may be over when he answers
	does := approval.Effects{Settle: func(a approval.Answer, keep *approval.Offer) error {
		c.g.events.counts.answered(a)
		return c.g.settle(id, ask, a, keep)
	}}
	does.Changed = func() bool {
		now := c.g.rules.newest()
		return now != nil && !slices.Contains(now.policy.Lineage(), in.Policy.Digest)
	}
	if c.g.approvals.grow != nil {
		does.Offers = func() []approval.Offer { return c.offers(in, ask) }
	}
	var kept []policy.Grown
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.g.asking, cancel)()
	kept, c.asked, err = c.g.approvals.queue.Ask(asking, of, ask.Question, wait, does, own)
	c.judgeBy(ctx, kept)
	return err
}

// judgeBy has the call judged by lines that were kept with its answer.
func (c *judgedCall) judgeBy(ctx context.Context, kept []policy.Grown) {
	if len(kept) > 0 && !isExact(kept) {
		c.rs, _ = c.g.rules.listed(ctx, c.call.Server)
	}
}

// settle puts a person's answer on record, and keeps from now on what he said. A call
// that is judged by the lines that were kept, as any later one, needs no yes besides:
// it could let the call pass another time.
func (g *Gateway) settle(id string, ask *gate.Ask, a approval.Answer, keep *approval.Offer) error {
	var lost error
	if keep != nil {
		if err := g.grow(id, *keep, a); err != nil {
			lost = &approval.NotKeptError{Why: err}
		} else if !isExact(keep.Lines) {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	if err := g.sessions.approve(ctx, id, gate.Approval{Act: ask.Act, Covers: ask.Covers(), Yes: a.Yes, By: a.By, Label: a.Label}); err != nil {
		if g.isClosed(ctx, id) {
			err = fmt.Errorf("%w: %w", approval.ErrOver, err)
		}
		return err
	}
	return lost
}

// isClosed reports whether the register of sessions says that one is closed.
func (g *Gateway) isClosed(ctx context.Context, id string) bool {
	reg, err := g.sessions.store.SessionByID(ctx, id)
	return err == nil && !reg.Closed.IsZero()
}

// Over ends what waits for a person in a session that another process closed. Of one that
// is not closed nothing ends.
func (g *Gateway) Over(ctx context.Context, session string) {
	if g.approvals.queue != nil && g.isClosed(ctx, session) {
		g.approvals.queue.Over(session)
	}
}

// elicit asks a person's client of the legacy wire, while the call is held.
func (c *judgedCall) elicit(ctx context.Context, q approval.Question) {
	params, ok := q.Elicitation()
	if !ok {
		return
	}
	got, rerr := c.r.Peer.Request(ctx, "elicitation/create", params)
	if rerr != nil {
		return
	}
	if _, err := c.heard(q.ID, strictjson.Of(got)); err != nil && !errors.Is(err, approval.ErrAnswered) && !errors.Is(err, approval.ErrUnknown) {
		c.g.events.log.Error("a person's answer could not be recorded", "error", err)
	}
}

// elicitLater has a person's client of 2026-07-28 asked by the answer to its call.
func (c *judgedCall) elicitLater(_ context.Context, q approval.Question) {
	if _, ok := q.Elicitation(); ok {
		c.question = &q
	}
}

// heard takes what a person's client answered to a question, which ends it if it is one
// of its choices. The answer came in the call of that client's own session, by what
// its wire has for answers and no tool's arguments can hold; whether the client is
// still a person's is looked up anew.
func (c *judgedCall) heard(id string, answer strictjson.Value) (kept []policy.Grown, err error) {
	by, label, his := c.g.approvals.answersFor(c.r.Principal)
	of, asks := c.g.approvals.queue.Asked(id)
	if his && asks == "" {
		return nil, approval.ErrUnknown
	}
	a, said := of.Elicited(answer)
	if !his || !said {
		return nil, nil
	}
	a.By, a.Label = by, label
	if kept, err = c.g.approvals.queue.Answer(id, a); err == nil && !a.Yes {
		c.asked = gate.Denied
	}
	var lost *approval.NotKeptError
	switch {
	case errors.Is(err, approval.ErrNotOffered): // no answer to what was asked
		return nil, nil
	case errors.As(err, &lost): // the yes counts
		c.g.events.log.Warn("what a person said from now on was not kept", "error", lost.Why)
		return nil, nil
	}
	return kept, err
}

// The state of a call that waits for a person, as the client carries it, sealed to its
// session, and with that to its principal, its tool and its arguments. No server's
// state begins like it: that is JSON.
const approvalState = "approval "

// approvalInput names the question within what a client is asked.
const approvalInput = "approval"

// askAgain asks the client what its person says, and to make the call again.
func (c *judgedCall) askAgain() downstream.Reply {
	params, _ := c.question.Elicitation()
	return inputRequired(approvalInput, "elicitation/create", params, c.g.sessions.seal(c.s.id, c.call, []byte(approvalState+c.question.ID)))
}

// takeAnswer reads the retry of a call that was put to a person: with his answer on
// record it is judged as it was made, without the answer in it. He is not asked a
// second time for one retry.
func (c *judgedCall) takeAnswer(ctx context.Context, id string) (reply downstream.Reply, ended bool) {
	answer := c.call.Answers.Get(approvalInput)
	if c.call.Answers.Len() != 1 || answer.Kind() != strictjson.Object {
		return failure(rpc.CodeInvalidParams, "inputResponses does not answer what was asked"), true
	}
	c.call.Answers, c.extra = strictjson.Value{}, nil
	_, c.put = c.g.approvals.queue.Asked(id)
	c.asked = gate.Pending
	kept, err := c.heard(id, answer)
	c.judgeBy(ctx, kept)
	switch {
	case errors.Is(err, approval.ErrUnknown):
		c.asked, c.puts = gate.Expired, maxPuts
	case err != nil && !errors.Is(err, approval.ErrAnswered):
		return c.notRecorded(err), true
	}
	return reply, false
}

// approve puts a person's answer on record: durably, before a call rests on it. The
// caller is a surface that knows who he is; nothing that came by way of the agent is
// ever handed to it.
func (ss *sessions) approve(ctx context.Context, id string, a gate.Approval) error {
	_, err := ss.recordIn(ctx, id, func(s *session) (*receipt, error) {
		a.At = ss.now()
		data := approvalData{Evidence: s.evidence.Next(), Act: a.Act, Covers: a.Covers, Yes: a.Yes, By: a.By, Label: a.Label.String()}
		rec, err := ss.write(s, powerCut, KindApproval, a.At, data)
		if err == nil {
			s.evidence.Commit(s.evidence.Approve(data.Evidence, a))
		}
		return rec, err
	})
	return err
}

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
	r.session.Commit(r.session.Approve(data.Evidence, gate.Approval{Act: data.Act, Covers: data.Covers, Yes: data.Yes, By: data.By, Label: label, At: rec.Time}))
	if r.certificates != nil {
		r.certificates.Approve(certificate.Approval{Evidence: data.Evidence, Act: data.Act, Covers: data.Covers, Yes: data.Yes, Label: label, At: rec.Time})
	}
	return nil
}
