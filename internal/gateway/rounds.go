package gateway

import (
	"bytes"
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// A server may ask for input while a call runs: by a request of its own on the
// legacy wire, by a result of type input_required on 2026-07-28. The client may
// speak the other wire. Whichever way an answer comes, it is an argument of the
// call it is given in (R31) and is judged before the server hears of it.

const (
	maxRounds      = 10               // questions in one call
	maxSuspended   = 100              // calls of one session that wait for an answer
	suspendedUntil = 10 * time.Minute // then the call is given up
)

// asksInput reports a result of type input_required.
func asksInput(result strictjson.Value) bool {
	return textMember(result, "resultType") == "input_required"
}

// send makes the allowed call. A question of a legacy server to a client of
// 2026-07-28 suspends it: then later is the client's answer for now.
func (c *judgedCall) send(ctx context.Context) (resp upstream.Response, later *downstream.Reply) {
	if c.r.Era == downstream.Modern && c.rs.legacyServer(c.call.Server) {
		return c.sendSuspendable(ctx)
	}
	return c.callServer(ctx), nil
}

// askLegacyClient turns an input_required result into requests to a client of
// the legacy wire, which knows no other, and returns the answers. They are nil
// where the call ends, with the response returned.
func (c *judgedCall) askLegacyClient(ctx context.Context, resp upstream.Response, round int) (_ upstream.Response, answers []byte) {
	if c.r.Era == downstream.Modern || resp.End != upstream.Answered || !asksInput(resp.Result) || round >= maxRounds {
		return resp, nil
	}
	answers = []byte("{}")
	for name, q := range resp.Result.Get("inputRequests").Members() {
		method := textMember(q, "method")
		if rpc.AskCapability[method] == "" {
			return upstream.Response{End: upstream.Answered, Err: rpc.Errorf(rpc.CodeInternal, "the server asked for something that is not passed on")}, nil
		}
		got, err := c.r.Peer.Request(ctx, method, q.Get("params").Raw())
		if err != nil {
			return upstream.Response{End: upstream.Answered, Err: err}, nil
		}
		answers = strictjson.Set(answers, name, got)
	}
	return resp, answers
}

// withAnswers is the call made anew with the answers to what the response asks.
// The question is on record by now: it was before the answer is judged.
func (c *judgedCall) withAnswers(ctx context.Context, answers []byte, resp upstream.Response) *judgedCall {
	call := c.newest().Call
	call.Answers = strictjson.Of(answers)
	rs, _ := c.g.rules.listed(ctx, call.Server)
	next := &judgedCall{g: c.g, rs: rs, r: c.r, call: call, extra: []strictjson.Member{{Name: "inputResponses", Value: answers}}, parent: c.parent, span: c.span}
	if state := resp.Result.Get("requestState"); state.Exists() {
		next.extra = append(next.extra, strictjson.Member{Name: "requestState", Value: state.Raw()})
	}
	return next
}

// askClient brings a request that a legacy server makes during the call to the
// client, and judges the call again with the answer.
func (c *judgedCall) askClient(ctx context.Context, method string, params []byte) ([]byte, *rpc.Error) {
	if rpc.AskCapability[method] == "" {
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "not passed on")
	}
	got, err := c.r.Peer.Request(ctx, method, params)
	if err != nil {
		return nil, err
	}
	d := c.newest()
	rs, listed := c.stillListed(ctx, d)
	if method == "elicitation/create" && declines(strictjson.Of(got)) {
		return got, nil
	}
	if listed {
		allowed, err := c.decideWithAnswer(ctx, rs, got)
		if allowed && err == nil { // a person may have been waited for
			d = c.newest()
			_, allowed = c.stillListed(ctx, d)
		}
		if allowed && err != nil {
			return nil, rpc.Errorf(rpc.CodeInternal, "the answer could not be recorded")
		} else if allowed {
			return got, nil
		} else if err != nil {
			c.g.events.log.Error("a refused answer could not be recorded", "error", err)
		}
	}
	// A refused answer reaches the server as a cancelled question.
	if method == "elicitation/create" {
		return []byte(`{"action":"cancel"}`), nil
	}
	return nil, rpc.Errorf(rpc.CodeInvalidRequest, "the answer was refused")
}

// decideWithAnswer decides the call anew with one more answer in it.
func (c *judgedCall) decideWithAnswer(ctx context.Context, rs *ruleset, answer []byte) (allowed bool, err error) {
	c.answering.Lock()
	defer c.answering.Unlock()
	call := c.newest().Call
	if !call.Answers.Exists() {
		call.Answers = noMembers
	}
	n := strconv.Itoa(call.Answers.Len() + 1)
	call.Answers = strictjson.Of(call.Answers.With(strictjson.Member{Name: n, Value: answer}))
	again := &judgedCall{g: c.g, rs: rs, r: c.r, call: call, continues: c.newest().record.n, parent: c.parent, span: c.span}
	if allowed, err = again.decide(ctx, call); allowed && err == nil {
		c.mu.Lock()
		if c.decision != nil {
			again.decision.own = cmp.Or(again.decision.own, c.decision.own) // nobody else has it yet
			again.over(c.decision)
		}
		c.decision = again.decision
		c.mu.Unlock()
	}
	return allowed, err
}

// declines reports an answer to an elicitation that says nothing but no.
func declines(answer strictjson.Value) bool {
	action := textMember(answer, "action")
	return (action == "decline" || action == "cancel") && answer.Len() == 1
}

// takeRetry reads what the retry of a call that asked for input carries beside
// the arguments. ended says that reply is the answer: the call went on where it
// was suspended, or the retry is none.
func (c *judgedCall) takeRetry(ctx context.Context) (reply downstream.Reply, ended bool) {
	if c.r.Era != downstream.Modern {
		return reply, false
	}
	answers, sealed := c.r.Params.Get("inputResponses"), c.r.Params.Get("requestState")
	if answers.Exists() {
		if answers.Kind() != strictjson.Object {
			return failure(rpc.CodeInvalidParams, "inputResponses is an object"), true
		}
		c.call.Answers = answers
		c.extra = append(c.extra, strictjson.Member{Name: "inputResponses", Value: answers.Raw()})
	}
	if sealed.Exists() {
		token, _ := sealed.Text()
		var state []byte
		s, err := c.g.sessions.of(c.r)
		if err == nil {
			if reply, ended = c.resume(ctx, s, token); ended {
				return reply, true
			}
			state, err = c.g.sessions.unseal(s, c.g.redacted(c.call), token)
		}
		if id, ours := bytes.CutPrefix(state, []byte(approvalState)); err == nil && ours {
			return c.takeAnswer(ctx, string(id))
		}
		if err != nil {
			return failure(rpc.CodeInvalidParams, "requestState is not one that this call was given"), true
		}
		c.extra = append(c.extra, strictjson.Member{Name: "requestState", Value: state})
	}
	if len(c.extra) > 0 && c.rs.legacyServer(c.call.Server) {
		// Such a server asks within a call, and that call is not waiting.
		return failure(rpc.CodeInvalidParams, "no call of this session waits for that answer"), true
	}
	return reply, false
}

// suspension is a call to a legacy server, made for a client of the 2026-07-28
// wire, that waits for that client to come back with an answer.
type suspension struct {
	call   *judgedCall
	cancel context.CancelFunc
	asks   chan question
	done   chan upstream.Response
	open   *question
}

type question struct {
	method string
	params []byte
	answer chan []byte // buffered
}

// sendSuspendable makes the call in the background, so that it can outlive the
// request that began it: a question of the server ends the request with
// input_required, and the client's retry goes on where it stood.
func (c *judgedCall) sendSuspendable(ctx context.Context) (upstream.Response, *downstream.Reply) {
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &suspension{call: c, cancel: cancel, asks: make(chan question), done: make(chan upstream.Response, 1)}
	inner := *c.r
	inner.Peer = &suspendedPeer{p: p, now: c.r.Peer}
	c.r = &inner
	go func() { p.done <- c.callServer(callCtx) }()
	return p.wait(ctx)
}

// wait goes on until the call ends, asks, or the client goes away.
func (p *suspension) wait(ctx context.Context) (resp upstream.Response, later *downstream.Reply) {
	select {
	case resp = <-p.done:
		p.cancel()
		return resp, nil
	case q := <-p.asks:
		p.open = &q
		if reply, ok := p.suspend(); ok {
			return resp, &reply
		}
	case <-ctx.Done():
	}
	return p.end(), nil
}

// end cancels the call and returns how it ended.
func (p *suspension) end() upstream.Response {
	p.cancel()
	return <-p.done
}

// suspend parks the call under an unguessable token and tells the client what
// is asked. ok is false where too many wait already.
func (p *suspension) suspend() (_ downstream.Reply, ok bool) {
	s := p.call.s
	token := newSecret()
	if !s.park(token, p) {
		return downstream.Reply{}, false
	}
	time.AfterFunc(suspendedUntil, func() {
		if s.unpark(token, p) {
			p.call.conclude(p.end())
		}
	})
	return inputRequired("1", p.open.method, p.open.params, token), true
}

// inputRequired asks a client of 2026-07-28 to make the call again with an answer, and this state.
func inputRequired(name, method string, params []byte, state string) downstream.Reply {
	ask := strictjson.Set([]byte("{}"), "method", strictjson.Quote(method))
	if params != nil {
		ask = strictjson.Set(ask, "params", params)
	}
	out := strictjson.Set([]byte(`{"resultType":"input_required"}`), "inputRequests", strictjson.Set([]byte("{}"), name, ask))
	return downstream.Reply{Result: strictjson.Set(out, "requestState", strictjson.Quote(state))}
}

// park keeps a call that waits for an answer, if not too many do.
func (s *session) park(token string, p *suspension) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.suspended) >= maxSuspended {
		return false
	}
	s.suspended[token] = p
	return true
}

// unpark takes a call that still waits.
func (s *session) unpark(token string, p *suspension) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil || s.suspended[token] != p {
		return false
	}
	delete(s.suspended, token)
	return true
}

// resume goes on with a suspended call when the client's request is the retry
// of it: the same session, the same call, and the token that was given out.
func (c *judgedCall) resume(ctx context.Context, s *session, token string) (downstream.Reply, bool) {
	s.mu.Lock()
	p := s.suspended[token]
	s.mu.Unlock()
	if p == nil {
		return downstream.Reply{}, false
	}
	if was := p.call.newest().Call; was.Server != c.call.Server || was.Tool != c.call.Tool ||
		was.Method != c.call.Method || string(was.Arguments.Raw()) != string(c.call.Arguments.Raw()) {
		return failure(rpc.CodeInvalidParams, "requestState belongs to another call"), true
	}
	if !s.unpark(token, p) {
		return downstream.Reply{}, false // another retry was first
	}
	answer := c.call.Answers.Get("1")
	if c.call.Answers.Len() != 1 || answer.Kind() != strictjson.Object {
		p.call.conclude(p.end())
		return failure(rpc.CodeInvalidParams, "inputResponses does not answer what was asked"), true
	}
	p.call.r.Peer.(*suspendedPeer).attach(c.r.Peer)
	p.open.answer <- answer.Raw()
	resp, later := p.wait(ctx)
	if later == nil {
		reply := p.call.conclude(resp)
		later = &reply
	}
	return *later, true
}

// suspendedPeer is the client of a suspendable call: notifications go to the
// request that is open now, questions suspend the call.
type suspendedPeer struct {
	p   *suspension
	now downstream.Peer
}

func (sp *suspendedPeer) attach(peer downstream.Peer) {
	sp.p.call.mu.Lock()
	sp.now = peer
	sp.p.call.mu.Unlock()
}

// Notify sends within the request that is open now.
func (sp *suspendedPeer) Notify(ctx context.Context, method string, params []byte) error {
	sp.p.call.mu.Lock()
	peer := sp.now
	sp.p.call.mu.Unlock()
	return peer.Notify(ctx, method, params)
}

// Request suspends the call until the client's retry brings the answer.
func (sp *suspendedPeer) Request(ctx context.Context, method string, params []byte) ([]byte, *rpc.Error) {
	if !hasCapability(sp.p.call.r.ClientCapabilities, rpc.AskCapability[method]) {
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "the client did not declare the capability")
	}
	q := question{method, params, make(chan []byte, 1)}
	select {
	case sp.p.asks <- q:
	case <-ctx.Done():
		return nil, rpc.Errorf(rpc.CodeInternal, "the call ended")
	}
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-ctx.Done():
		return nil, rpc.Errorf(rpc.CodeInternal, "the call ended")
	}
}
