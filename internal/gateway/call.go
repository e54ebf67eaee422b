package gateway

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// judgedCall is one judged request on its way through the door.
type judgedCall struct {
	g     *Gateway
	s     *session
	v     *ruleset
	r     *downstream.Request
	in    gate.Input
	extra []strictjson.Member // members of params beside arguments and _meta that pass: requestState, inputResponses
	run   Run                 // makes the call in place of a server, nil for none

	mu         sync.Mutex // guards d, n and recalled: an answer given inside the call decides again
	recalled   []provenance.Recalled
	d          gate.Decision
	n          uint64
	generation int    // of the session, when d was put in its queue
	own        uint64 // the place d lowered (R38), 0 for none
	recorded   <-chan error
	lists      atomic.Uint64   // how often the server's lists had changed that it rests on
	halted     *writ.Rejection // why the session's calls have ended, if they have
}

// through takes a client's request through the door.
func (g *Gateway) through(ctx context.Context, r *downstream.Request, v *ruleset, call gate.Call, extra []strictjson.Member) downstream.Reply {
	return (&judgedCall{g: g, v: v, r: r, extra: extra}).through(ctx, call)
}

// through is the one door. It judges the call, records the decision, and only
// then calls the server; what comes back is recorded and becomes evidence if it
// may. For an act the decision is durable before the server hears of it; for a
// read it is in the log before the client hears of the result. If it cannot be
// written, nothing happens.
func (a *judgedCall) through(ctx context.Context, call gate.Call) downstream.Reply {
	call = a.g.redacted(call)
	a.in = gate.Input{Call: call}
	if !a.judge(ctx, call) {
		return a.refuse()
	}
	if a.d.Effect.Gated() {
		if err := a.decisionRecorded(); err != nil {
			return a.g.notRecorded(a.r, call.Method, err)
		}
	}
	return a.carry(ctx)
}

// judge decides and puts the decision on record; it reports whether the call
// may be made. Another process may have moved the session on: then its
// evidence is folded anew and the call is judged again, a bounded number of times.
func (a *judgedCall) judge(ctx context.Context, call gate.Call) bool {
	for try := 0; ; try++ {
		s, err := a.g.sessionOf(a.r)
		if err != nil {
			a.d, a.recorded = gate.Decision{}, failed(err)
			return false
		}
		a.s = s
		a.in = gate.Input{Policy: a.v.policy, Catalogue: a.v.catalogue, Call: call, Shadow: a.g.shadow, OwnPaths: a.g.ownPaths}
		a.g.locate(ctx, &a.in)
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			a.d, a.recorded = gate.Decision{}, failed(errNotRecorded)
			return false
		}
		fresh := s.outdated == nil || a.g.refold(s)
		if s.halted != nil {
			a.halted = s.halted
			s.mu.Unlock()
			a.d, a.recorded = gate.Decision{}, failed(nil)
			return false
		}
		if !fresh {
			s.mu.Unlock()
			a.d, a.recorded = gate.Decision{}, failed(errNotRecorded)
			return false
		}
		now := a.g.now()
		if err := a.g.lapse(s, now); err != nil {
			s.mu.Unlock()
			a.d, a.recorded = gate.Decision{}, failed(err)
			return false
		}
		s.active = now
		a.in.Session, a.in.Time = s.evidence, now
		d := decide(a.in)
		rec, err := a.g.writeDecision(s, a.v, &a.in, &d, now)
		if err == nil && s.evidence != nil {
			s.evidence.Decided(&d)
		}
		generation := s.generation
		s.mu.Unlock()
		if err != nil {
			a.d, a.recorded = gate.Decision{}, failed(err)
			return false
		}
		a.d, a.n, a.generation, a.recorded = d, rec.n, generation, rec.done
		if d.Keeps() {
			if a.own, err = a.g.lower(s.id, now, &d); err != nil {
				a.recorded = failed(err)
				return false
			}
		}
		if !d.Allowed() || d.Effect.Gated() {
			err := <-rec.done
			a.recorded = failed(err)
			if err != nil && try < 2 {
				continue
			}
		}
		return a.d.Allowed()
	}
}

// lower puts the place an act goes to on record before the act is sent.
func (g *Gateway) lower(session string, at time.Time, d *gate.Decision) (n uint64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	if n, err = g.places.lower(ctx, g.store, session, at, d.Lowers); err != nil {
		return 0, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	return n, nil
}

// sessionOf is the session of a request, or the stream of those without one.
func (g *Gateway) sessionOf(r *downstream.Request) (*session, error) {
	h, ok := r.Session.(handle)
	if !ok {
		return g.anonymousSession()
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	s, err := g.loadedSession(ctx, h.id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	return s, nil
}

// failed returns a channel that answers err.
func failed(err error) <-chan error {
	c := make(chan error, 1)
	c <- err
	return c
}

// refold folds an outdated session anew once its queue has drained. The caller
// holds s.mu.
func (g *Gateway) refold(s *session) bool {
	for s.flushing {
		s.drained.Wait()
	}
	if s.evidence == nil {
		return false // the next request opens the stream anew
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	if err := g.restore(ctx, s); err != nil {
		g.log.Error("a session could not be restored", "session", s.id, "error", err)
		return false
	}
	return true
}

// refuse is the answer to a call that may not be made.
func (a *judgedCall) refuse() downstream.Reply {
	if err := a.decisionRecorded(); err != nil {
		return a.g.notRecorded(a.r, a.in.Call.Method, err)
	}
	if a.halted != nil {
		a.g.countEvent(peerEvent{"client", string(a.halted.Reason), a.s.id}, 1)
		return refusal(a.in.Call.Method, writ.Outcome{Status: writ.Rejected, Rejection: a.halted}, "", true)
	}
	return refusal(a.in.Call.Method, a.d.Outcome, fmt.Sprintf("%s/%d", a.s.id, a.n), publishesSchema(a.d.Tool))
}

// publishesSchema reports whether clients hold the tool's structuredContent
// against a schema, some of them also in an error.
func publishesSchema(t *gate.Tool) bool {
	return t != nil && strictjson.Get(t.Raw, "outputSchema") != nil
}

// notRecorded refuses because the record could not be written.
func (g *Gateway) notRecorded(r *downstream.Request, m policy.Method, err error) downstream.Reply {
	g.log.Error("a record could not be written: the call is refused", "error", err)
	need := "the audit log must be writable; nothing was done, so the call can be made again once it is"
	var altered *audit.AlteredError
	if errors.As(err, &altered) {
		need = "what was recorded must be as it was written: `writ audit verify` says where it was altered; nothing was done, and a new state directory starts a record anew"
	}
	return refusal(m, writ.Outcome{Status: writ.Rejected, Rejection: &writ.Rejection{
		Code: writ.PolicyViolation, Reason: writ.PolicyNotRecorded,
		Failures: []writ.Failure{{Reason: writ.PolicyNotRecorded, Need: need}},
	}}, "", true)
}

// call is the one function of the module that calls an upstream tool.
func (a *judgedCall) call(ctx context.Context) upstream.Response {
	a.mu.Lock()
	d := a.d
	a.mu.Unlock()
	if a.run != nil {
		return a.runHere(ctx, &d)
	}
	if d.Call.Server == policy.OwnServer && a.g.inside != nil {
		return a.callInside(ctx, &d)
	}
	srv := a.g.servers[d.Call.Server]
	if srv == nil {
		return upstream.Response{End: upstream.NotSent, Err: rpc.Errorf(rpc.CodeInternal, "the server is not configured")}
	}
	if listKey(string(d.Call.Method)) != "" {
		return srv.fetchList(ctx, string(d.Call.Method))
	}
	method, params := wireCall(&d, a.extra)
	req := upstream.Request{
		Decision: &d, Method: method, Params: params,
		Meta: passedMeta(a.r.Params), ProgressToken: a.r.ProgressToken,
		OnNotify: func(method string, params []byte) {
			// A client that is gone or slow loses progress, never the outcome.
			_ = a.r.Peer.Notify(ctx, method, params)
		},
		OnRequest:          a.answer,
		Listed:             &a.lists,
		Owner:              a.owner(),
		ClientCapabilities: passedCapabilities(a.r.ClientCapabilities),
	}
	if a.r.LogLevel != nil {
		req.Meta = append(req.Meta, strictjson.Member{Name: "io.modelcontextprotocol/logLevel", Value: a.r.LogLevel})
	}
	if d.Tool != nil {
		req.ToolSchema = strictjson.Get(d.Tool.Raw, "inputSchema")
	}
	for range maxHeld {
		if _, ok := a.stillListed(ctx, &d); !ok {
			break
		}
		if resp := srv.conn.Call(ctx, req); !resp.Changed {
			return resp
		}
	}
	return changedUnder()
}

// maxHeld is how often a call is held back before it is given up.
const maxHeld = 10

// owner is whose a call is: of the session, or of nobody else where it carries
// none.
func (a *judgedCall) owner() string {
	if a.s.evidence == nil {
		return fmt.Sprintf("%s/%d", a.s.id, a.n)
	}
	return a.s.id
}

// wireCall returns the method and the params a server is sent: the name, the
// judged argument bytes, and nothing of the client's but the listed members.
func wireCall(d *gate.Decision, extra []strictjson.Member) (method string, params []byte) {
	params = []byte("{}")
	switch d.Call.Method {
	case policy.CallTool:
		method = "tools/call"
		params = strictjson.Set(params, "name", strictjson.Quote(d.Call.Tool))
		if d.Arguments != nil {
			params = strictjson.Set(params, "arguments", d.Arguments)
		}
	default:
		method = string(d.Call.Method)
		params = d.Arguments
		if d.Call.Method == policy.GetPrompt {
			params = strictjson.Set(params, "name", strictjson.Quote(d.Call.Tool))
		}
	}
	for _, m := range extra {
		params = strictjson.Set(params, m.Name, m.Value)
	}
	return method, params
}

// traceParent is the W3C form of trace context: four numbers in hexadecimal.
// tracestate and baggage are free text that nobody judges, and stay here.
var traceParent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// passedMeta are the members of a request's _meta that reach a server (R32).
// The wire's own keys are written anew by package upstream.
func passedMeta(params []byte) []strictjson.Member {
	raw := strictjson.Get(strictjson.Get(params, "_meta"), "traceparent")
	if t, ok := strictjson.Text(raw); ok && traceParent.MatchString(t) {
		return []strictjson.Member{{Name: "traceparent", Value: strictjson.Quote(t)}}
	}
	return nil
}

// passedCapabilities are those of the client's capabilities whose requests are
// passed on (askCapability).
func passedCapabilities(client []byte) []byte {
	out := []byte("{}")
	for _, c := range []string{"elicitation", "sampling", "roots"} {
		if v := strictjson.Get(client, c); strictjson.KindOf(v) == strictjson.Object {
			out = strictjson.Set(out, c, v)
		}
	}
	return out
}

// finish records how the call ended, folds it, and makes the client's answer.
func (a *judgedCall) finish(resp upstream.Response) downstream.Reply {
	a.mu.Lock()
	d, n := a.d, a.n
	res := gate.Result{Recalled: a.recalled}
	a.mu.Unlock()

	switch {
	case resp.End == upstream.Answered && resp.Err != nil:
		res.Status = gate.Errored
	case resp.End == upstream.Answered && asksInput(resp.Result):
		res.Status = gate.Errored // it asks for input: nothing was returned yet
	case resp.End == upstream.Answered:
		res.Status, res.Bytes = gate.OK, resp.Result
		if string(strictjson.Get(resp.Result, "isError")) == "true" {
			res.Status = gate.Errored
		} else if !a.unmoved(&d) {
			res.Status = gate.Changed
		}
	case resp.End == upstream.TooLarge:
		res.Status = gate.Cut
	case resp.End == upstream.NotSent:
		res.Status = gate.Errored
	default:
		res.Status = gate.Unknown
	}

	var obs gate.Observation
	for try := 0; ; try++ {
		var err error
		if obs, err = a.record(&d, n, &res, resp); err == nil {
			break
		}
		if try == 3 || !errors.Is(err, audit.ErrConflict) {
			return a.g.notRecordedResult(a.r, &d, err)
		}
		// Somebody else appended to the session. An act's decision is durable
		// and stands; a read is decided again on what there is now.
		if !d.Effect.Gated() {
			if !a.judge(context.Background(), d.Call) {
				return a.refuse()
			}
			a.mu.Lock()
			d, n = a.d, a.n
			a.mu.Unlock()
		}
	}
	s := a.s
	if resp.Changed {
		a.g.countEvent(peerEvent{d.Call.Server, string(writ.NameUnlisted), s.id}, 1)
		return refusal(d.Call.Method, unlisted(), fmt.Sprintf("%s/%d", s.id, n), publishesSchema(d.Tool))
	}
	if resp.Err != nil {
		return downstream.Reply{Err: resp.Err}
	}
	ev := evidenceMark{Admissible: obs.Admissible, Why: obs.Why}
	if s.evidence != nil {
		ev.ID = writ.EvidenceID{Session: s.id, Number: res.Evidence}.String()
	}
	members := []strictjson.Member{
		member(MetaDecision, fmt.Sprintf("%s/%d", s.id, n)),
		member(MetaEvidence, ev),
	}
	if d.Outcome.Status == writ.Transformed {
		members = append(members, member(MetaOutcome, d.Outcome))
	}
	if d.Shadow {
		members = append(members, member(MetaShadow, d.Outcome))
	}
	result := resp.Result
	if state := strictjson.Get(result, "requestState"); state != nil && asksInput(result) {
		result = strictjson.Set(result, "requestState", strictjson.Quote(a.g.seal(s.id, a.in.Call, state)))
	}
	return downstream.Reply{Result: mark(result, members...)}
}

// record puts a result on record and folds it. It is in the log when record
// returns nil: before the client sees it, and with it a read's decision, which
// lies before it in the same queue.
func (a *judgedCall) record(d *gate.Decision, n uint64, res *gate.Result, resp upstream.Response) (obs gate.Observation, err error) {
	// The result refers to the decision, so that is in the log first. A read's
	// is, or stands before the result in the same queue, unless it was folded
	// anew since: then it may have been lost with what made the session
	// outdated, and whoever wrote it knows.
	s := a.s
	if res.Status == gate.OK {
		// Whoever lowered a place before the server answered did so on record.
		ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
		res.Through, err = a.g.places.now(ctx)
		cancel()
		if err != nil {
			return obs, fmt.Errorf("%w: %w", errNotRecorded, err)
		}
		a.mu.Lock()
		res.Places, res.Own = a.g.places.all, a.own
		a.mu.Unlock()
	}
	s.mu.Lock()
	if s.outdated != nil || s.generation != a.generation {
		s.mu.Unlock()
		if err := a.decisionRecorded(); err != nil {
			return obs, err
		}
		s.mu.Lock()
	}
	if err := s.outdated; err != nil && !a.g.refold(s) {
		s.mu.Unlock()
		return obs, err
	}
	if s.evidence != nil {
		res.Evidence, res.Full = s.evidence.Next(), !a.g.room(s)
		obs = s.evidence.Observe(d, *res)
	} else {
		obs.Why = "no_session"
	}
	data := resultData{Decision: n, Status: string(res.Status), Evidence: res.Evidence, Admissible: obs.Admissible, Why: obs.Why, Recalled: res.Recalled}
	if res.Through > 0 {
		data.Places = &placesAt{strings.TrimPrefix(a.g.places.log, placesPrefix), res.Through, res.Own}
	}
	var vs []value
	if res.Bytes != nil {
		vs = append(vs, value{valueResult, res.Bytes})
	} else if resp.Err != nil && resp.End == upstream.Answered {
		vs = append(vs, value{"error", resp.Err.Encode()})
	}
	_, done, err := a.g.write(s, processEnd, audit.KindResult, a.g.now(), data, vs...)
	if err == nil && s.evidence != nil {
		s.evidence.Commit(obs)
	}
	s.mu.Unlock()
	if err != nil {
		return obs, err
	}
	return obs, <-done
}

// decisionRecorded waits until the newest decision is in the log.
func (a *judgedCall) decisionRecorded() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := <-a.recorded
	a.recorded = failed(err)
	return err
}

// notRecordedResult answers when an act took place and its result could not be
// recorded: the outcome is unknown to the log, and the client is told so.
func (g *Gateway) notRecordedResult(r *downstream.Request, d *gate.Decision, err error) downstream.Reply {
	if !d.Effect.Gated() {
		return g.notRecorded(r, d.Call.Method, err)
	}
	g.log.Error("the result of an act could not be written", "error", err)
	return downstream.Reply{Err: rpc.Errorf(rpc.CodeInternal, "the call was made and its result could not be recorded: its outcome is unknown")}
}

// now is the recorded time: UTC, to the microsecond, as records keep it.
func (g *Gateway) now() time.Time { return g.clock().UTC().Truncate(time.Microsecond) }
