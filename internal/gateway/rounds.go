package gateway

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/writ-project/writ/gate"
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
func asksInput(result []byte) bool {
	t, _ := strictjson.Text(strictjson.Get(result, "resultType"))
	return t == "input_required"
}

// carry makes the allowed call and brings its questions to the client and the
// answers back, whatever wires the two speak.
func (a *judgedCall) carry(ctx context.Context) downstream.Reply {
	if a.r.Era == downstream.Modern && a.g.legacyServer(ctx, a.d.Call.Server) {
		return a.carrySuspendable(ctx)
	}
	for round := 0; ; round++ {
		resp := a.call(ctx)
		if a.r.Era == downstream.Modern || resp.End != upstream.Answered || !asksInput(resp.Result) || round >= maxRounds {
			return a.finish(resp)
		}
		next, reply := a.askLegacyClient(ctx, resp)
		if next == nil {
			return reply
		}
		a = next
	}
}

// askLegacyClient turns an input_required result into requests to a client of
// the legacy wire and judges the call again with the answers. next is nil when
// the call ends here, with reply.
func (a *judgedCall) askLegacyClient(ctx context.Context, resp upstream.Response) (next *judgedCall, reply downstream.Reply) {
	asked, _ := strictjson.Members(strictjson.Get(resp.Result, "inputRequests"))
	answers := []byte("{}")
	for _, q := range asked {
		method, _ := strictjson.Text(strictjson.Get(q.Value, "method"))
		if !mayAsk(method) {
			return nil, a.finish(upstream.Response{End: upstream.Answered, Err: rpc.Errorf(rpc.CodeInternal, "the server asked for something that is not passed on")})
		}
		got, err := a.r.Peer.Request(ctx, method, strictjson.Get(q.Value, "params"))
		if err != nil {
			return nil, a.finish(upstream.Response{End: upstream.Answered, Err: err})
		}
		answers = strictjson.Set(answers, q.Name, got)
	}
	a.finish(resp) // the question is on record before the answer is judged
	call := a.d.Call
	call.Answers = answers
	v, _ := a.g.listed(ctx, call.Server)
	next = &judgedCall{g: a.g, v: v, r: a.r, extra: []strictjson.Member{{Name: "inputResponses", Value: answers}}}
	if state := strictjson.Get(resp.Result, "requestState"); state != nil {
		next.extra = append(next.extra, strictjson.Member{Name: "requestState", Value: state})
	}
	if !next.judge(ctx, call) {
		return nil, next.refuse()
	}
	if next.d.Effect.Gated() {
		if err := next.decisionRecorded(); err != nil {
			return nil, next.g.notRecorded(next.r, call.Method, err)
		}
	}
	return next, downstream.Reply{}
}

// askCapability lists what a server may ask a client for, with the capability
// the client must have declared.
var askCapability = map[string]string{
	"elicitation/create":     "elicitation",
	"sampling/createMessage": "sampling",
	"roots/list":             "roots",
}

func mayAsk(method string) bool { return askCapability[method] != "" }

// answer brings a request that a legacy server makes during the call to a
// client of the same wire, and judges the call again with the answer.
func (a *judgedCall) answer(ctx context.Context, method string, params []byte) ([]byte, *rpc.Error) {
	if !mayAsk(method) {
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "not passed on")
	}
	got, err := a.r.Peer.Request(ctx, method, params)
	if err != nil {
		return nil, err
	}
	return a.judgeAnswer(ctx, method, got)
}

// judgeAnswer decides the call anew with one more answer in it. A refused
// answer reaches the server as a cancelled question.
func (a *judgedCall) judgeAnswer(ctx context.Context, method string, got []byte) ([]byte, *rpc.Error) {
	a.mu.Lock()
	d := a.d
	a.mu.Unlock()
	v, listed := a.stillListed(ctx, &d)
	if method == "elicitation/create" && declines(got) {
		return got, nil
	}
	refused := func() ([]byte, *rpc.Error) {
		if method == "elicitation/create" {
			return []byte(`{"action":"cancel"}`), nil
		}
		return nil, rpc.Errorf(rpc.CodeInvalidRequest, "the answer was refused")
	}
	if !listed {
		return refused()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	call := a.d.Call
	answers := call.Answers
	if answers == nil {
		answers = []byte("{}")
	}
	ms, _ := strictjson.Members(answers)
	call.Answers = strictjson.Set(answers, strconv.Itoa(len(ms)+1), got)
	again := &judgedCall{g: a.g, v: v, r: a.r}
	if !again.judge(ctx, call) {
		if err := again.decisionRecorded(); err != nil {
			a.g.log.Error("a refused answer could not be recorded", "error", err)
		}
		return refused()
	}
	if again.d.Effect.Gated() {
		if err := again.decisionRecorded(); err != nil {
			return nil, rpc.Errorf(rpc.CodeInternal, "the answer could not be recorded")
		}
	}
	a.d, a.n, a.generation, a.recorded = again.d, again.n, again.generation, again.recorded
	a.own = cmp.Or(again.own, a.own)
	return got, nil
}

// declines reports an answer to an elicitation that says nothing but no.
func declines(answer []byte) bool {
	action := textMember(answer, "action")
	ms, _ := strictjson.Members(answer)
	return (action == "decline" || action == "cancel") && len(ms) == 1
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
	answer chan answered // buffered
}

type answered struct {
	result []byte
	err    *rpc.Error
}

// carrySuspendable makes the call in the background, so that it can outlive
// the request that began it: a question of the server ends the request with
// input_required, and the client's retry goes on where it stood.
func (a *judgedCall) carrySuspendable(ctx context.Context) downstream.Reply {
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &suspension{call: a, cancel: cancel, asks: make(chan question), done: make(chan upstream.Response, 1)}
	inner := *a.r
	inner.Peer = &suspendedPeer{p: p, now: a.r.Peer}
	a.r = &inner
	go func() { p.done <- a.call(callCtx) }()
	return p.wait(ctx)
}

// wait goes on until the call ends, asks, or the client goes away.
func (p *suspension) wait(ctx context.Context) downstream.Reply {
	select {
	case resp := <-p.done:
		p.cancel()
		return p.call.finish(resp)
	case q := <-p.asks:
		p.open = &q
		return p.suspend()
	case <-ctx.Done():
		p.cancel()
		return p.call.finish(<-p.done)
	}
}

// suspend parks the call under an unguessable token and tells the client what
// is asked.
func (p *suspension) suspend() downstream.Reply {
	s := p.call.s
	token, err := newSecret()
	s.mu.Lock()
	full := len(s.suspended) >= maxSuspended
	if err == nil && !full {
		s.suspended[token] = p
	}
	s.mu.Unlock()
	if err != nil || full {
		p.cancel()
		return p.call.finish(<-p.done)
	}
	p.call.g.after(suspendedUntil, func() {
		s.mu.Lock()
		waiting := s.suspended[token] == p
		delete(s.suspended, token)
		s.mu.Unlock()
		if waiting {
			p.cancel()
			p.call.finish(<-p.done)
		}
	})
	ask := strictjson.Set([]byte("{}"), "method", strictjson.Quote(p.open.method))
	if p.open.params != nil {
		ask = strictjson.Set(ask, "params", p.open.params)
	}
	out := []byte(`{"resultType":"input_required"}`)
	out = strictjson.Set(out, "inputRequests", strictjson.Set([]byte("{}"), "1", ask))
	out = strictjson.Set(out, "requestState", strictjson.Quote(token))
	return downstream.Reply{Result: out}
}

// resume goes on with a suspended call when the client's request is the retry
// of it: the same session, the same call, and the token that was given out.
func (g *Gateway) resume(ctx context.Context, r *downstream.Request, call gate.Call) (downstream.Reply, bool) {
	token, ok := strictjson.Text(strictjson.Get(r.Params, "requestState"))
	if !ok || r.Era != downstream.Modern {
		return downstream.Reply{}, false
	}
	s, err := g.sessionOf(r)
	if err != nil {
		return downstream.Reply{}, false
	}
	s.mu.Lock()
	p := s.suspended[token]
	same := p != nil && p.call.d.Call.Server == call.Server && p.call.d.Call.Tool == call.Tool &&
		p.call.d.Call.Method == call.Method && string(p.call.d.Call.Arguments) == string(call.Arguments)
	if same {
		delete(s.suspended, token)
	}
	s.mu.Unlock()
	if p == nil {
		return downstream.Reply{}, false
	}
	if !same {
		return downstream.Reply{Err: rpc.Errorf(rpc.CodeInvalidParams, "requestState belongs to another call")}, true
	}
	ms, _ := strictjson.Members(call.Answers)
	if len(ms) != 1 || ms[0].Name != "1" || strictjson.KindOf(ms[0].Value) != strictjson.Object {
		p.cancel()
		p.call.finish(<-p.done)
		return downstream.Reply{Err: rpc.Errorf(rpc.CodeInvalidParams, "inputResponses does not answer what was asked")}, true
	}
	p.call.r.Peer.(*suspendedPeer).attach(r.Peer)
	p.open.answer <- answered{result: ms[0].Value}
	return p.wait(ctx), true
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
	if !hasCapability(sp.p.call.r.ClientCapabilities, askCapability[method]) {
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "the client did not declare the capability")
	}
	q := question{method, params, make(chan answered, 1)}
	select {
	case sp.p.asks <- q:
	case <-ctx.Done():
		return nil, rpc.Errorf(rpc.CodeInternal, "the call ended")
	}
	select {
	case ans := <-q.answer:
		return ans.result, ans.err
	case <-ctx.Done():
		return nil, rpc.Errorf(rpc.CodeInternal, "the call ended")
	}
}
