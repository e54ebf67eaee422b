package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/policy"
)

// KindSettle is the kind of a record of what a person said of an act of which no result
// says whether it happened.
const KindSettle audit.Kind = "settle"

type settleData struct {
	By       string `json:"by"` // as far as it is known
	Decision uint64 `json:"decision"`
	Happened bool   `json:"happened"`
}

// recordName names a record of the log.
type recordName struct {
	session string
	n       uint64
}

// NotSettledError says why nobody can say of a record whether it happened.
type NotSettledError struct{ Why string }

func (e *NotSettledError) Error() string { return e.Why }

// WhyUnderWay is NotSettledError.Why of a call that has not ended in a gateway that runs.
const WhyUnderWay = "that call is under way: its result is still to come"

// UnderWay reports whether a decided act of this gateway has not ended.
func (ss *sessions) UnderWay(session string, n uint64) bool {
	_, is := ss.underway.Load(recordName{session, n})
	return is
}

// Acting are the decided acts of this gateway that have not ended, as SESSION/N, sorted.
func (ss *sessions) Acting() []string {
	all := []string{}
	ss.underway.Range(func(k, _ any) bool {
		r := k.(recordName)
		all = append(all, fmt.Sprintf("%s/%d", r.session, r.n))
		return true
	})
	slices.Sort(all)
	return all
}

// over says that a call has ended, or was never made.
func (c *judgedCall) over(d *decision) {
	if d.record != nil {
		c.g.sessions.underway.Delete(recordName{c.s.id, d.record.n})
	}
}

// Settle puts on record what a person says of an act that was let pass, and of which no
// result says whether it happened (P04, P28). A *NotSettledError is that this record is
// none. The caller is a person: nothing that came by way of the agent ever causes it. Of
// another process of this state directory he has asked whether the call is under way there.
func (ss *sessions) Settle(ctx context.Context, id string, n uint64, happened bool, by string) error {
	if ss.UnderWay(id, n) {
		return &NotSettledError{WhyUnderWay}
	}
	_, err := ss.recordIn(ctx, id, func(s *session) (*receipt, error) {
		ss.drain(s)
		// A snapshot has no decisions, so all is folded once more, apart.
		r, as := ss.newReplayer(), newSession(id, time.Time{})
		if err := ss.steps(ctx, as, r, snapshot.At{}); err != nil {
			return nil, err
		}
		if as.next != s.next {
			s.outdated = audit.ErrConflict // another process moved it on
			return nil, s.outdated
		}
		d, ok := r.unsettled[n]
		if !ok {
			return nil, errSettled
		}
		rec, err := ss.write(s, powerCut, KindSettle, ss.now(), settleData{by, n, happened})
		if err == nil {
			s.evidence.Settle(d, happened)
		}
		return rec, err
	})
	switch {
	case errors.Is(err, errSettled):
		return ss.whySettled(ctx, id, n)
	case errors.Is(err, audit.ErrConflict), errors.Is(err, downstream.ErrNoSession):
		head, herr := ss.store.Head(ctx, id)
		if _, over, cerr := closedBy(ctx, ss.store, id, head); over && cmp.Or(herr, cerr) == nil {
			return &NotSettledError{"its session is over: nothing that is decided rests on it any more"}
		}
	}
	return err
}

var errSettled = errors.New("there is nothing to settle")

// whySettled says what a record is that nobody can settle.
func (ss *sessions) whySettled(ctx context.Context, session string, n uint64) error {
	why := "there is no such record"
	for rec, err := range recordsFrom(ctx, ss.store, session, n) {
		switch {
		case err != nil:
			return err
		case rec.N == n && rec.Kind != audit.KindDecision:
			return &NotSettledError{fmt.Sprintf("that record is no decision but of kind %s", rec.Kind)}
		case rec.N == n:
			if why = "that act is in no session that remembers it"; !isAct(rec.Record) {
				return &NotSettledError{"that call was a read, or was refused: nothing was done by it"}
			}
		case continued(rec.Record) == n:
			return &NotSettledError{fmt.Sprintf("the call went on by decision %s/%d", session, rec.N)}
		case audit.DecisionOf(rec.Record) != n:
		case rec.Kind == audit.KindResult:
			if data, err := readResult(rec.Data); err == nil {
				why = fmt.Sprintf("its result is on record: the call ended %s", data.Status)
			}
		case rec.Kind == KindSettle:
			var data settleData
			if json.Unmarshal(rec.Data, &data) == nil {
				why = "that was said already: " + fateOf(data.Happened)
			}
		}
	}
	return &NotSettledError{why}
}

func fateOf(happened bool) string {
	if happened {
		return "it happened"
	}
	return "it did not happen"
}

// isAct reports whether a decision let an act pass.
func isAct(rec *audit.Record) bool {
	if rec.Kind != audit.KindDecision {
		return false
	}
	data, err := readDecision(rec.Data)
	return err == nil && (data.Status != string(writ.Rejected) || data.Shadow) && !slices.Equal(data.Effect, policy.Read.Names())
}

// continued is the decision whose place a record takes, 0 for none.
func continued(rec *audit.Record) uint64 {
	if rec.Kind != audit.KindDecision {
		return 0
	}
	data, _ := readDecision(rec.Data)
	return data.Continues
}

// Unsettled are the acts of sessions that are not closed of which no record says whether
// they happened, by session and the number of the decision. One of them may be under way.
type Unsettled map[string]map[uint64]bool

// Step takes in one record of a log, in its order.
func (u Unsettled) Step(rec *audit.Record) {
	switch rec.Kind {
	case audit.KindOpen:
		var data openData
		if json.Unmarshal(rec.Data, &data) == nil && !data.Anonymous {
			u[rec.Session] = map[uint64]bool{}
		}
	case audit.KindDecision:
		if acts := u[rec.Session]; acts != nil && isAct(rec) {
			delete(acts, continued(rec))
			acts[rec.N] = true
		}
	case audit.KindResult:
		if data, err := readResult(rec.Data); err == nil && heard(gate.Status(data.Status)) {
			delete(u[rec.Session], data.Decision)
		}
	case KindSettle:
		delete(u[rec.Session], audit.DecisionOf(rec))
	case audit.KindClose:
		delete(u, rec.Session)
	}
}

// heard reports whether a result says that the server answered.
func heard(status gate.Status) bool { return status != gate.Unknown }

// settled folds what a person said of an act. That there was such an act is decided anew.
func (r *Replayer) settled(rec *audit.Record) error {
	var data settleData
	if err := json.Unmarshal(rec.Data, &data); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	d, ok := r.unsettled[data.Decision]
	switch {
	case r.blind || r.redacted:
		return nil
	case data.Decision > 0 && data.Decision <= r.from:
		return errFromStart
	case !ok || r.session == nil:
		return fmt.Errorf("%w: there was nothing to settle (n %d)", ErrReplay, rec.N)
	}
	delete(r.unsettled, data.Decision)
	r.session.Settle(d, data.Happened)
	r.learns.settled(data.Decision, data.Happened)
	return nil
}
