package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/otlp"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// judgedCall is one call on its way through the door. Of a server that asks
// while it works, each round of questions is a call of its own.
type judgedCall struct {
	g     *Gateway
	rs    *ruleset
	r     *downstream.Request
	call  gate.Call
	extra []strictjson.Member // members of params beside arguments and _meta that pass: requestState, inputResponses
	run   Run                 // makes the call in place of a server, nil for none
	host  *HostCall           // of a client's own tool, nil for any other
	look  bool                // Writ makes it for itself, for another call

	continues uint64             // number of the decision before an answer was given inside the call
	asked     gate.Asked         // how far it was put to a person
	moved     int                // how often the session had moved on when it was to be
	looked    bool               // what could show that names of it are new was read
	put       string             // the question that it was put as
	puts      int                // how often it was: each time for other reasons
	since     uint64             // approval.Queue.Now when it was judged
	question  *approval.Question // what its client is to ask its person
	s         *session           // once it was judged
	halted    *writ.Rejection    // why the session's calls have ended, if they have
	lists     atomic.Uint64      // how often the server's lists had changed that it rests on
	inside    Answer             // what Inside answered
	parent    otlp.Context       // the client's place in a trace, or a trace of our own
	span      otlp.Context       // the call's; none where nobody is told

	answering sync.Mutex // one answer given inside the call after the other: each decides again
	mu        sync.Mutex // guards decision and faulty
	decision  *decision  // the newest; what it points to never changes from then on
	faulty    string     // how it ended with an error
}

// decision is a decision and its place in the log.
type decision struct {
	gate.Decision
	at         time.Time
	record     *receipt
	anonymous  bool   // the request carries no session
	generation int    // of the session, when record was put in its queue
	own        uint64 // the place it lowered (R38), 0 for none
	continues  uint64 // number of the one whose place it takes, 0 for none
}

// answer is the one door, and the story of a call: from the bytes the client
// sent to the bytes it gets, in the five steps of docs/design.md. If a record
// cannot be written, nothing happens.
func (c *judgedCall) answer(ctx context.Context) (reply downstream.Reply) {
	began := time.Now()
	c.traced()
	defer func() { c.served(began, &reply) }()
	// 1. Package downstream has parsed the bytes strictly. The same ones are
	// judged, recorded and sent on: what must not be stored goes before that.
	c.call = c.g.redacted(c.call)
	for round := 0; ; round++ {
		// 2. The gate judges the call, and 3. its decision is recorded: that of an
		// act durably, before the server hears anything.
		switch allowed, err := c.decide(ctx, c.call); {
		case err != nil:
			return c.notRecorded(err)
		case !allowed:
			return c.refused()
		}
		// 4. One function calls the server, which may ask the client for more.
		resp, later := c.send(ctx)
		if later != nil {
			return *later
		}
		resp, answers := c.askLegacyClient(ctx, resp, round)
		// 5. The result is recorded, judged, and becomes evidence if it may; for a
		// read its decision is in the log with it. Then the client gets it.
		if reply = c.conclude(resp); answers == nil {
			return reply
		}
		c = c.withAnswers(ctx, answers, resp)
	}
}

// decide judges the call and puts the decision on record. An act and a refusal
// wait until it is there. Another process may have moved the session on: then
// the call is judged again on what there is now, a bounded number of times.
func (c *judgedCall) decide(ctx context.Context, call gate.Call) (allowed bool, err error) {
	for try := 0; ; try++ {
		d, err := c.judge(ctx, call)
		if err != nil || c.halted != nil {
			c.over(&d)
			return false, err
		}
		c.mu.Lock()
		c.decision = &d
		c.mu.Unlock()
		if d.Allowed() && !d.Effect.Gated() {
			c.decided(&d)
			return true, nil
		}
		if err = d.record.wait(); err != nil {
			c.over(&d)
		} else {
			c.decided(&d)
		}
		if err == nil || try == 2 {
			return d.Allowed(), err
		}
	}
}

// judge has the gate decide on what the session's evidence is now, and puts the
// decision in the session's queue. halted is set where its calls have ended.
func (c *judgedCall) judge(ctx context.Context, call gate.Call) (d decision, err error) {
	for {
		var first *before
		if d, first, err = c.judgeNow(ctx, call); err != nil {
			if c.s != nil {
				c.halted = c.s.whyHalted()
			}
			if c.halted != nil {
				return d, nil
			}
			return d, err
		}
		if again, err := c.prepare(ctx, first); err != nil {
			return d, err
		} else if !again {
			break
		}
	}
	if d.Allowed() && c.g.approvals.queue != nil {
		c.g.approvals.queue.Passed(c.asking())
	}
	if d.Keeps() { // where it goes is on record before it is sent
		d.own, err = c.g.lower(c.s, &d)
	}
	return d, err
}

// before is what is done before a call is refused, which is then judged again.
type before struct {
	in    gate.Input
	looks []gate.Call // are made for it
	moved bool        // another process moved the session on
	ask   *gate.Ask   // is put to a person
}

// prepare does it, and reports whether there was anything.
func (c *judgedCall) prepare(ctx context.Context, first *before) (again bool, err error) {
	switch {
	case first.looks != nil:
		c.looked = true
		c.lookAt(ctx, first.looks)
	case first.moved && c.moved < maxPuts:
		c.moved++
	case first.ask != nil:
		if err := c.putTo(ctx, first.in, first.ask); err != nil {
			return false, err
		}
		if c.put = first.ask.Question; c.asked == gate.NotAsked && c.g.approvals.queue.Allowed(c.s.id, c.put) {
			c.put = "" // that yes is for one call: where the same one took it, this one has a question of its own
		}
		c.puts++
	default:
		return false, nil
	}
	return true, nil
}

// judgeNow has the gate decide, and puts the decision in the queue unless something is to
// be done before.
func (c *judgedCall) judgeNow(ctx context.Context, call gate.Call) (d decision, first *before, err error) {
	g := c.g
	first = &before{}
	if c.s, err = g.sessions.of(c.r); err != nil {
		return d, first, err
	}
	in := &first.in
	*in = gate.Input{Policy: c.rs.policy, Catalogue: c.rs.catalogue, Call: call, Shadow: g.shadow, OwnPaths: c.rs.fleet.ownPaths, Asked: c.asked, Look: c.look}
	looking := ctx
	if c.puts > 0 && ctx.Err() != nil { // who waited for a person left: what is put on record is why, and not that nobody looked
		var cancel context.CancelFunc
		looking, cancel = context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
		defer cancel()
	}
	g.locate(looking, c.rs.fleet, in, c.host)
	s := c.s
	err = g.sessions.with(s, func() error {
		if err := c.enter(in); err != nil {
			return err
		}
		d = decision{Decision: decide(*in), at: in.Time, anonymous: s.evidence == nil, generation: s.generation, continues: c.continues}
		if looks := d.Looks(); len(looks) > 0 && !c.looked && c.run == nil && c.rs.fleet.servers[call.Server] != nil {
			first.looks = looks
			return nil
		}
		if ask := d.Ask(); ask != nil && ask.Question != c.put && c.puts < maxPuts && c.asks() {
			// It is put to a person first, about what there is: an append would notice that
			// another process moved the session on, a question does not.
			first.ask = ask
			first.moved, err = g.sessions.moved(ctx, s)
			return err
		}
		d.record, err = g.sessions.writeDecision(s, c.rs, in, &d)
		if err == nil && s.evidence != nil {
			s.evidence.Decided(&d.Decision)
			if d.Allowed() && d.Effect.Gated() {
				g.sessions.underway.Store(recordName{s.id, d.record.n}, true)
			}
		}
		return err
	})
	return d, first, err
}

// enter takes note that the session is called, and completes what the gate is told. Its lock is held.
func (c *judgedCall) enter(in *gate.Input) error {
	s, g := c.s, c.g
	if s.closed || s.halted != nil {
		return errNotRecorded
	}
	now := g.sessions.now()
	conversation := ""
	if c.host == nil {
		s.called = true
	} else {
		s.told, conversation = true, c.host.Conversation
	}
	if _, err := g.sessions.lapse(s, now, conversation); err != nil {
		return err
	}
	s.active = now
	in.Session, in.Time = s.evidence, now
	if g.approvals.queue != nil {
		c.since = g.approvals.queue.Now()
	}
	return nil
}

// lookAt makes reads for the call, each through the door as the client's own are, and shows
// the client nothing of them. Of one that fails the call is judged without.
func (c *judgedCall) lookAt(ctx context.Context, looks []gate.Call) {
	for _, call := range looks {
		ctx, cancel := context.WithTimeout(ctx, c.rs.fleet.servers[call.Server].patience)
		r := &downstream.Request{Method: c.r.Method, Era: c.r.Era, Principal: c.r.Principal, Session: c.r.Session, Peer: NoPeer}
		look := &judgedCall{g: c.g, rs: c.rs, r: r, call: call, look: true, parent: c.parent, span: c.span}
		if allowed, err := look.decide(ctx, call); allowed && err == nil {
			look.conclude(look.callServer(ctx))
		}
		cancel()
	}
}

// maxPuts bounds how often one call is put to a person while it waits: as often as
// something else speaks against it than what he was asked.
const maxPuts = 3

// lower puts the place an act goes to on record before the act is sent, and the decision beside it. Where
// there is nothing to put, who waits for the decision writes it.
func (g *Gateway) lower(s *session, d *decision) (n uint64, err error) {
	beside := func() { g.sessions.writeNow(s) }
	if n, err = g.places.lower(g.sessions.patience.now(), g.sessions.store, s.id, d.at, d.Lowers, beside); err != nil {
		beside() // nobody waits for it
		return 0, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	return n, nil
}

// newest returns the newest decision of the call, the zero one where there is none.
// Nobody writes to it.
func (c *judgedCall) newest() *decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decision == nil {
		return &decision{}
	}
	return c.decision
}

// name is what a decision's record is called to clients.
func (c *judgedCall) name(d *decision) string {
	return c.s.id + "/" + strconv.FormatUint(d.record.n, 10)
}

// refused is the answer to a call that may not be made.
func (c *judgedCall) refused() downstream.Reply {
	if c.halted != nil {
		c.g.events.count(peerEvent{"client", string(c.halted.Reason), c.s.id}, 1)
		c.fault(string(c.halted.Reason))
		return c.g.refusal(c.call.Method, writ.Outcome{Status: writ.Rejected, Rejection: c.halted}, "")
	}
	d := c.newest()
	if c.question != nil && d.Outcome.Rejection.Reason == writ.ApprovalPending {
		return c.askAgain()
	}
	c.fault(string(d.Outcome.Rejection.Reason))
	return c.g.refusal(c.call.Method, d.Outcome, c.name(d))
}

func (c *judgedCall) notRecorded(err error) downstream.Reply {
	c.g.events.log.Error("a record could not be written: the call is refused", "error", err)
	c.fault(string(writ.PolicyNotRecorded))
	need := "the audit log must be writable; nothing was done, so the call can be made again once it is"
	if _, altered := errors.AsType[*audit.AlteredError](err); altered {
		need = "what was recorded must be as it was written: `writ audit verify` says where it was altered; nothing was done, and a new state directory starts a record anew"
	}
	return c.g.refusal(c.call.Method, writ.Outcome{Status: writ.Rejected, Rejection: rejection(writ.PolicyNotRecorded, need)}, "")
}

// callServer is the one function of the module that calls an upstream tool.
func (c *judgedCall) callServer(ctx context.Context) (resp upstream.Response) {
	d, began := c.newest(), time.Now()
	defer func() { c.called(began, &resp) }()
	if c.run != nil {
		return c.runHere(ctx, d)
	}
	if d.Call.Server == policy.OwnServer && c.g.inside != nil {
		return c.callInside(ctx, d)
	}
	srv := c.server(d)
	if srv == nil {
		return upstream.Response{End: upstream.NotSent, Err: rpc.Errorf(rpc.CodeInternal, "the server is not configured")}
	}
	leave, no := srv.enter()
	if no != nil {
		return *no
	}
	defer leave()
	if of, isList := listOf(string(d.Call.Method)); isList {
		return srv.fetchList(ctx, of)
	}
	req := c.wireRequest(ctx, d)
	for range maxHeldBack {
		if _, ok := c.stillListed(ctx, d); !ok {
			break
		}
		if resp = srv.conn.Call(ctx, req); !resp.Changed {
			return resp
		}
	}
	return changedUnder()
}

// maxHeldBack is how often a call is held back, because a list changed, before
// it is given up.
const maxHeldBack = 10

// conclude puts on record how the call ended, which makes evidence of it if it
// may be, and makes the client's answer.
func (c *judgedCall) conclude(resp upstream.Response) downstream.Reply {
	d, res := c.newest(), gate.Result{Recalled: c.inside.Recalled}
	defer c.over(d)
	if res.Status = c.statusOf(d, resp); resp.End == upstream.Answered && resp.Err == nil && !asksInput(resp.Result) {
		res.Value = resp.Result
	}
	c.ended(res.Status, &resp)
	obs, err := c.recordResult(d, &res, resp)
	tries := 3
	if d.Effect.Gated() { // nothing is judged again, and its end would stay unknown
		tries = 30
	}
	for try := 0; errors.Is(err, audit.ErrConflict) && try < tries; try++ {
		// Somebody else appended to the session. An act's decision is durable
		// and stands; a read is decided again on what there is now.
		if !d.Effect.Gated() {
			switch allowed, err := c.decide(context.Background(), d.Call); {
			case err != nil:
				return c.notRecorded(err)
			case !allowed:
				return c.refused()
			}
			d = c.newest()
		}
		obs, err = c.recordResult(d, &res, resp)
	}
	switch {
	case err == nil:
		if res.Status == gate.Unknown && d.Effect.Gated() {
			server, tool := c.toolOf(d)
			c.g.events.log.Warn("whether an act happened is not known: writ audit show --unsettled", "decision", c.name(d), "server", server, "tool", tool)
			c.tellUnknown(d)
		}
		return c.reply(d, resp, &res, obs)
	case d.Effect.Gated(): // it took place, and the log does not know how it ended
		server, tool := c.toolOf(d)
		c.g.events.log.Error("the result of an act could not be written: writ audit show --unsettled", "decision", c.name(d), "server", server, "tool", tool, "error", err)
		c.tellUnknown(d)
		return failure(rpc.CodeInternal, "the call was made and its result could not be recorded: its outcome is unknown")
	}
	return c.notRecorded(err)
}

// statusOf says what a response is to the gate.
func (c *judgedCall) statusOf(d *decision, resp upstream.Response) gate.Status {
	status := endOf(&resp)
	if status == gate.OK && !c.unmoved(d) {
		return gate.Changed
	}
	return status
}

// endOf is statusOf without what may have changed meanwhile.
func endOf(resp *upstream.Response) gate.Status {
	switch {
	case resp.End == upstream.TooLarge:
		return gate.Cut
	case resp.End == upstream.NotSent:
		return gate.Errored
	case resp.End != upstream.Answered:
		return gate.Unknown
	case resp.Err != nil, asksInput(resp.Result), string(resp.Result.Get("isError").Raw()) == "true":
		return gate.Errored // who asks for input returned nothing yet
	}
	return gate.OK
}

// recordResult puts a result on record and makes evidence of it if it may be. It
// is in the log when recordResult returns nil: before the client sees it, and
// with it a read's decision, which lies before it in the same queue.
func (c *judgedCall) recordResult(d *decision, res *gate.Result, resp upstream.Response) (obs gate.Observation, err error) {
	g, s := c.g, c.s
	if res.Status == gate.OK {
		// Whoever lowered a place before the server answered did so on record.
		if res.Through, err = g.places.now(g.sessions.patience.now()); err != nil {
			return obs, fmt.Errorf("%w: %w", errNotRecorded, err)
		}
		res.Places, res.Own = g.places.all, d.own
	}
	var rec *receipt
	err = g.sessions.with(s, func() error {
		// The result refers to the decision, so that is in the log first. A read's
		// is, or stands before the result in the same queue, unless the session was
		// folded anew since: then it may have been lost with what outdated it. That
		// is known by now, because a session is folded when its queue is empty.
		if s.generation != d.generation {
			if err := d.record.outcome(); err != nil {
				return err
			}
		}
		obs.Why, res.Time = "no_session", g.sessions.now()
		if s.evidence != nil {
			res.Evidence, res.Full = s.evidence.Next(), !g.sessions.room(s)
			obs = s.evidence.Observe(&d.Decision, *res)
		}
		rec, err = g.sessions.writeResult(s, d, res, obs, g.places.at(res), c.inside.Clean, resp)
		if err == nil && s.evidence != nil {
			s.evidence.Commit(obs)
			g.sessions.warnOfRoom(s)
		}
		return err
	})
	if err != nil {
		return obs, err
	}
	return obs, rec.wait()
}

// reply is what the client gets of a result that is on record.
func (c *judgedCall) reply(d *decision, resp upstream.Response, res *gate.Result, obs gate.Observation) downstream.Reply {
	if resp.Changed {
		c.g.events.count(peerEvent{d.Call.Server, string(writ.NameUnlisted), c.s.id}, 1)
		return c.g.refusal(d.Call.Method, unlisted(), c.name(d))
	}
	if resp.Err != nil && res.Status == gate.Unknown && d.Effect.Gated() {
		return failure(rpc.CodeInternal, resp.Err.Message+". "+NotKnown+": do not make it again before somebody looked, nor in "+
			"another session, where nothing holds it back. It is "+c.name(d)+"; `writ audit settle` takes what a person says of it")
	}
	if resp.Err != nil {
		return downstream.Reply{Err: resp.Err}
	}
	ev := evidenceMark{Admissible: obs.Admissible, Why: obs.Why}
	if !d.anonymous {
		ev.ID = writ.EvidenceID{Session: c.s.id, Number: res.Evidence}.String()
	}
	members := []strictjson.Member{{Name: MetaDecision, Value: strictjson.Quote(c.name(d))}, member(MetaEvidence, ev)}
	if d.Outcome.Status == writ.Transformed {
		members = append(members, member(MetaOutcome, d.Outcome))
	}
	if d.Shadow {
		members = append(members, member(MetaShadow, d.Outcome))
	}
	result := resp.Result
	if state := result.Get("requestState"); state.Exists() && asksInput(result) {
		sealed := strictjson.Quote(c.g.sessions.seal(c.s.id, c.call, state.Raw()))
		result = strictjson.Of(result.With(strictjson.Member{Name: "requestState", Value: sealed}))
	}
	return downstream.Reply{Result: mark(result, members...)}
}
