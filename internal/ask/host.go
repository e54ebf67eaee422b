// Package ask is the single-step host behind `writ ask`: it answers one
// request of a user with at most one tool call, in one fixed order of gates
// (claim.Stages). It is the only package that speaks to a model.
//
// It trusts the operator's policy, screen and rules, and what the gateway
// recorded. It believes no planner: a plan is bytes until package claim has
// read them, a plan that passed is only a proposal to the one door, and a
// summary is shown only where its quotes stand in the recorded bytes. There is
// one attempt at each: nothing is repaired and nothing is asked again.
//
// The input policy is asked first. Until it lets a request pass, no server is
// started: the door is opened by the first request that passes.
package ask

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/strictjson"
)

// Listed is one tool as it was discovered.
type Listed struct {
	claim.Tool
	// Public is the name a call carries.
	Public string
	// Definition is the tool's definition as its server sent it.
	Definition []byte
	// ValidateOutput judges structured results by the registered output
	// schemas, the tool's own and the operator's; nil when there is none.
	ValidateOutput func(structured []byte) bool
}

// Listing is what live discovery found.
type Listing struct {
	Tools   []Listed
	Servers []string // that answered, sorted
	Failed  []string // that did not, sorted
}

// Reply is what came back from the one door.
type Reply struct {
	// Refused is the outcome of a call the door refused: no server heard of it.
	Refused *writ.Outcome
	// Decision is the id of the decision's record, "s_…/7", where it is told.
	Decision string
	// Evidence names the result in the ledger; the zero id when there is none.
	Evidence writ.EvidenceID
	// Admissible says that the result may vouch for later acts.
	Admissible bool
	// ServerError says that the server answered with a JSON-RPC error, or asked
	// for input that a single step cannot give. The text is the server's.
	ServerError string
	// Lost says, in words of the gateway, why a call that the door let pass has
	// no result that can be shown. The server may have carried it out.
	Lost string
	// Shadow is why a gateway that shadows would have refused the call.
	Shadow *writ.Rejection
}

// Door is the way to the servers: what a gateway with one open session offers.
// It is an interface so that tests can count what goes through.
type Door interface {
	Discover(ctx context.Context) (*Listing, error)
	// Turn puts the user's words on record as evidence labelled user and
	// returns its id.
	Turn(ctx context.Context, text string) (string, error)
	// Call takes one tools/call through the one door.
	Call(ctx context.Context, tool Listed, args []byte) (*Reply, error)
	// Recorded returns the exact bytes on record as that evidence.
	Recorded(ctx context.Context, evidence writ.EvidenceID) ([]byte, error)
	// RecordSummary grounds a summary in recorded bytes and puts it on record.
	RecordSummary(ctx context.Context, evidence writ.EvidenceID, pointer string, limit int, summary []byte) (claim.Summary, string, *claim.Stop, error)
	// Session is the public id of the session.
	Session() string
}

// Options are what a host is made of.
type Options struct {
	// Screen is the input policy. Nil halts every request.
	Screen *screen.Screen
	// Open starts the gateway and opens the session. It is called once, by the
	// first request the screen lets pass; after an error it is called again.
	Open func(ctx context.Context) (Door, error)
	// Allow is the operator's allowlist.
	Allow []claim.Allowed
	// Planner proposes. Summariser is nil where no summary is wanted.
	Planner    Planner
	Summariser Summariser
	// PlannerName stands in events: "rules", "openai", …
	PlannerName string
	// Timeout bounds one answer of the planner or summariser, and discovery;
	// 0 is DefaultTimeout. A call has the server's own limits.
	Timeout time.Duration
	// Shadow says that the gateway shadows: a server's word for it is not taken.
	Shadow bool
	// Runs is the directory of event files; "" writes none.
	Runs string
	// Clock is the recorded time; nil is the real one.
	Clock func() time.Time
}

// DefaultTimeout is Options.Timeout where none is given.
const DefaultTimeout = time.Minute

// Host answers requests, one at a time.
type Host struct {
	o    Options
	door Door
}

// New returns a host that has started nothing.
func New(o Options) (*Host, error) {
	if o.Open == nil || o.Planner == nil {
		return nil, errors.New("host: a planner and a door are needed")
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Host{o: o}, nil
}

// Door returns the door, opening it if it is not open yet.
func (h *Host) Door(ctx context.Context) (Door, error) {
	if h.door == nil {
		d, err := h.o.Open(ctx)
		if err != nil {
			return nil, err
		}
		h.door = d
	}
	return h.door, nil
}

// run is one request on its way.
type run struct {
	*Host
	rec    *recorder
	answer *Answer
	step   Event // what the event of the current stage will say
}

// Ask answers one request. The answer is never nil. The error is not nil only
// where something failed that is no gate's decision (Failed), and where the
// answer stands but its event file could not be written.
func (h *Host) Ask(ctx context.Context, text string) (*Answer, error) {
	a := &Answer{Version: AnswerVersion, Status: Failed, Stage: claim.StagePolicyGate}
	rec, err := newRecorder(h.o.Runs, h.o.Clock)
	if err != nil {
		a.Failure = "the event file cannot be made, so nothing was done"
		return a, fmt.Errorf("host: %s: %w", a.Failure, err)
	}
	a.Run = rec.run
	r := &run{Host: h, rec: rec, answer: a}
	err = r.ask(ctx, text)
	return a, errors.Join(err, r.rec.close())
}

// ask is the pipeline. Each stage ends in exactly one of pass, stop and fail.
func (r *run) ask(ctx context.Context, text string) error {
	a := r.answer

	// INV-0: before anything is started or asked.
	r.enter(claim.StagePolicyGate)
	r.step.Request = digest([]byte(text))
	if v := r.o.Screen.Check(text); v.Halt() {
		r.step.Class, r.step.Rule = v.Class, v.Rule
		a.Message, a.MessageBy = v.Reply, ByPolicy
		return r.stop(&claim.Stop{Stage: claim.StagePolicyGate, Rejection: *v.Rejection()})
	}
	if err := r.pass(); err != nil {
		return err
	}

	r.enter(claim.StageDiscovery)
	listing, err := r.discover(ctx, text)
	if halted := (*gateway.HaltedError)(nil); errors.As(err, &halted) {
		// The gateway's own input policy, or that of an earlier turn.
		a.Message, a.MessageBy = halted.Reply, ByPolicy
		return r.stop(&claim.Stop{Stage: claim.StageDiscovery, Rejection: halted.Rejection})
	} else if err != nil {
		return r.fail("the servers cannot be listed", err)
	}
	if err := r.pass(); err != nil {
		return err
	}

	// INV-3.
	r.enter(claim.StageAllowlist)
	all := make([]claim.Tool, len(listing.Tools))
	for i, t := range listing.Tools {
		all[i] = t.Tool
	}
	list := claim.NewAllowlist(all, r.o.Allow)
	allowed := list.Tools()
	n := len(allowed)
	r.step.Allowed = &n
	if n == 0 {
		return r.stop(claim.StopAt(claim.StageAllowlist, writ.Failure{Reason: writ.NameForbidden,
			Need: "a tool that a server lists now and the operator allows; writ tools shows both"}))
	}
	if err := r.pass(); err != nil {
		return err
	}

	r.enter(claim.StagePlanner)
	r.step.Planner = r.o.PlannerName
	raw, err := r.plan(ctx, text, listing, allowed)
	if reply := (*ReplyError)(nil); errors.As(err, &reply) {
		return r.stop(claim.StopAt(claim.StagePlanner, writ.Failure{Reason: writ.PlanSyntax, Need: reply.Need}))
	} else if err != nil {
		return r.fail("the planner gave no plan", err)
	}
	r.step.Output = digest(raw)
	if err := r.pass(); err != nil {
		return err
	}

	// INV-1.
	r.enter(claim.StagePlanParse)
	plan, stop := claim.ParsePlan(raw)
	if stop != nil {
		return r.stop(stop)
	}
	r.step.Plan = plan.Type
	if err := r.pass(); err != nil {
		return err
	}

	// INV-2, INV-3.
	r.enter(claim.StagePlanGate)
	tool, stop := list.Check(plan)
	if stop != nil {
		return r.stop(stop)
	}
	if tool == nil { // a final_answer: nothing is called
		if err := r.pass(); err != nil {
			return err
		}
		// On one line, whatever breaks lines, so that nothing in it passes for a
		// line of ours wherever it is printed.
		a.Message, a.MessageBy = strings.Join(strings.Fields(plan.Answer), " "), author(r.o.Planner)
		return r.end(NeedsMoreInfo)
	}
	a.Tool = tool.Server + "/" + tool.Name
	a.Arguments = plan.Args
	r.step.Tool = a.Tool
	if err := r.pass(); err != nil {
		return err
	}
	return r.act(ctx, text, listing.tool(tool), plan.Args)
}

// discover opens the door, asks what is there and puts the user's words on
// record, so that they can vouch for what the plan will say.
func (r *run) discover(ctx context.Context, text string) (*Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	door, err := r.Door(ctx)
	if err != nil {
		return nil, err
	}
	r.answer.Session = door.Session()
	r.step.Session = door.Session()
	listing, err := door.Discover(ctx)
	if err != nil {
		return nil, err
	}
	n := len(listing.Tools)
	r.step.Tools, r.step.Servers, r.step.Unreachable = &n, listing.Servers, listing.Failed
	r.answer.Unreachable = listing.Failed
	if n == 0 && len(listing.Failed) > 0 {
		return nil, errUnreachable
	}
	r.step.Turn, err = door.Turn(ctx, text)
	return listing, err
}

var errUnreachable = errors.New("no server can be reached")

func (l *Listing) tool(t *claim.Tool) Listed {
	for _, x := range l.Tools {
		if x.Server == t.Server && x.Name == t.Name {
			return x
		}
	}
	return Listed{Tool: *t} // not reached: what was allowed was listed
}

func (r *run) plan(ctx context.Context, text string, listing *Listing, allowed []claim.Tool) ([]byte, error) {
	p := Prompt{Request: text}
	for i := range allowed {
		p.Tools = append(p.Tools, listing.tool(&allowed[i]))
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	raw, err := r.o.Planner.Plan(ctx, p)
	if err == nil && len(raw) > claim.PlanBytes+1 {
		raw = raw[:claim.PlanBytes+1] // ParsePlan refuses it all the same
	}
	return raw, err
}

// act takes the one call of a request through the one door, and types and
// summarises what came back.
func (r *run) act(ctx context.Context, text string, tool Listed, args []byte) error {
	a := r.answer
	r.enter(claim.StageProvenance)
	if err := ctx.Err(); err != nil {
		return r.fail("the request was ended before its call", err)
	}
	reply, err := r.door.Call(ctx, tool, args) // INV-6: the one call site
	if err != nil {
		return r.fail("the call could not be taken to the door", err)
	}
	a.Decision, r.step.Decision = reply.Decision, reply.Decision
	if reply.Refused != nil && reply.Refused.Rejection != nil {
		return r.stop(&claim.Stop{Stage: claim.StageProvenance, Rejection: *reply.Refused.Rejection})
	}
	if r.o.Shadow && reply.Shadow != nil {
		a.Shadow, r.step.Shadow = reply.Shadow, true
		r.refused(&claim.Stop{Rejection: *reply.Shadow})
	}
	// From here on something may have happened: events that cannot be written
	// do not hide it.
	late := r.pass()

	r.enter(claim.StageCall)
	if reply.Lost != "" {
		return errors.Join(late, r.fail("the call has no result that can be shown; the log says how far it came", errors.New(reply.Lost)))
	}
	if reply.ServerError != "" {
		a.Message, a.MessageBy = reply.ServerError, ByServer
		r.step.Reason = "server_error"
		return errors.Join(late, r.leave("failed"), r.end(ServerError))
	}
	if reply.Evidence.Number != 0 {
		a.Evidence = reply.Evidence.String()
		a.Admissible = reply.Admissible
		r.step.Evidence = a.Evidence
	}
	recorded, err := r.door.Recorded(ctx, reply.Evidence)
	if err != nil {
		return errors.Join(late, r.fail("the call was made and its result is not on record", err))
	}
	a.Result = recorded
	r.step.Result = digest(recorded)
	late = errors.Join(late, r.pass())

	// INV-4.
	r.enter(claim.StageTypedOutput)
	typed, stop := claim.TypedOutput(recorded, tool.ValidateOutput)
	if stop != nil {
		a.Note, a.Untyped = claim.TypedNote, &stop.Rejection
		status := Answered
		if stop.Rejection.Reason == writ.TypedIsError {
			status = ServerError
		} else if r.o.Summariser != nil { // a summary was asked for, and there is none
			return errors.Join(late, r.stop(stop))
		}
		r.refused(stop)
		return errors.Join(late, r.leave("stopped"), r.end(status))
	}
	a.Typed = typed
	r.step.Typed = digest(typed)
	late = errors.Join(late, r.pass())

	if r.o.Summariser != nil {
		r.enter(claim.StageGrounding)
		done, err := r.summarise(ctx, text, reply.Evidence, recorded)
		late = errors.Join(late, err)
		if !done {
			return late
		}
	}
	return errors.Join(late, r.end(Answered))
}

// typedPointer is where a typed result stands in the recorded bytes.
const typedPointer = "/structuredContent"

// summarise is INV-5. done is false where the request has ended here.
func (r *run) summarise(ctx context.Context, text string, evidence writ.EvidenceID, recorded []byte) (done bool, err error) {
	a := r.answer
	source, stop := claim.NewSource(recorded, typedPointer, claim.SourceLimit)
	if stop != nil {
		return false, r.stop(stop)
	}
	a.Truncated = source.Truncated()
	wait, cancel := context.WithTimeout(ctx, r.o.Timeout)
	raw, err := r.o.Summariser.Summarise(wait, Material{Request: text, Tool: a.Tool, Source: source})
	cancel()
	if reply := (*ReplyError)(nil); errors.As(err, &reply) {
		return false, r.stop(claim.StopAt(claim.StageGrounding, writ.Failure{Reason: writ.SummarySyntax, Need: reply.Need}))
	} else if err != nil {
		return false, r.fail("the result stands, but there is no summary of it", err)
	}
	r.step.Output = digest(raw)
	grounded, id, stop, err := r.door.RecordSummary(ctx, evidence, typedPointer, claim.SourceLimit, raw)
	if stop != nil {
		return false, r.stop(stop)
	}
	if err != nil {
		return false, r.fail("the summary could not be put on record", err)
	}
	a.Summary = newSummary(author(r.o.Summariser), grounded, evidence, id)
	r.step.Summary = id
	n := len(grounded.Bullets) + len(grounded.Risks) + len(grounded.Recommendations)
	r.step.Items = &n
	return true, r.pass()
}

// enter begins a stage.
func (r *run) enter(s claim.Stage) {
	r.answer.Stage = s
	r.step = Event{Stage: s}
}

// leave writes the event of the stage.
func (r *run) leave(outcome string) error {
	r.step.Outcome = outcome
	if err := r.rec.write(r.step); err != nil {
		if r.answer.Stage != claim.StageAnswer {
			r.answer.Failure = "the event file cannot be written"
		}
		return fmt.Errorf("host: the event file cannot be written: %w", err)
	}
	return nil
}

func (r *run) pass() error { return r.leave("passed") }

func (r *run) refused(s *claim.Stop) {
	r.step.Code, r.step.Reason, r.step.Failures = s.Rejection.Code, s.Rejection.Reason, nil
	for _, f := range s.Rejection.Failures {
		r.step.Failures = append(r.step.Failures, f.Reason)
	}
}

// stop ends the request at a gate.
func (r *run) stop(s *claim.Stop) error {
	r.answer.Status, r.answer.Stage = Stopped, s.Stage
	r.answer.Rejection = &s.Rejection
	r.refused(s)
	return r.leave("stopped")
}

// fail ends the request where no gate decided. What went wrong is told to the
// caller; the event holds only that it did.
func (r *run) fail(what string, err error) error {
	r.answer.Status, r.answer.Failure = Failed, what
	r.step.Reason = "failed"
	return errors.Join(fmt.Errorf("%s: %w", what, err), r.leave("failed"))
}

// end is the last stage.
func (r *run) end(s Status) error {
	r.answer.Status = s
	at := r.answer.Stage
	r.enter(claim.StageAnswer)
	r.step.Status = s
	if s == ServerError {
		r.answer.Stage = at
	}
	return r.leave("passed")
}

// textOf is a string member, "" where there is none.
func textOf(raw []byte, name string) string {
	s, _ := strictjson.Text(strictjson.Get(raw, name))
	return s
}
