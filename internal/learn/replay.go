package learn

import (
	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/policy"
)

// Verdict is what becomes of a call with nobody there to ask.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Waits   Verdict = "asked" // only a person lets it pass, or let it
	Refused Verdict = "refused"
)

// Judged is a verdict, and why where it is no Passed and nobody was asked.
type Judged struct {
	Verdict Verdict     `json:"verdict"`
	Reason  writ.Reason `json:"reason,omitempty"`
}

// JudgedOf is what a decision comes to. In shadow mode it is what would have been.
func JudgedOf(d *gate.Decision) Judged {
	r := d.Outcome.Rejection
	switch {
	case d.Approved():
		return Judged{Verdict: Waits}
	case r == nil:
		return Judged{Verdict: Passed}
	case r.Reason == writ.ApprovalPending, r.Reason == writ.ApprovalExpired, r.Reason == writ.ApprovalRefused:
		return Judged{Verdict: Waits}
	case d.Ask() != nil:
		return Judged{Waits, r.Reason}
	}
	return Judged{Refused, r.Reason}
}

// Replayed is what another policy would have decided on recorded sessions.
type Replayed struct {
	Sessions int `json:"sessions"`
	// Elsewhere is how many sessions more called servers alone that the policy does not name.
	Elsewhere int `json:"elsewhere"`
	// Redefined are calls more that were made under another definition of their tool than the
	// one that the policy pins: it has nothing to say of them, and what they answered counts for
	// nothing in what comes after.
	Redefined int   `json:"redefined"`
	Calls     int   `json:"calls"`
	Before    Count `json:"before"` // as it was recorded
	After     Count `json:"after"`
	// Otherwise are the decisions that come out otherwise, in the order of each session.
	Otherwise []Difference `json:"otherwise"`
	// Undone are the calls that were made and would be refused: what they answered counts
	// for nothing in what comes after. Assumed were made and would wait for a person: a
	// yes is assumed. Untried were not made and would pass: what they would have answered
	// is not known.
	Undone  int `json:"undone"`
	Assumed int `json:"assumed"`
	Untried int `json:"untried"`
}

// Difference is a decision that comes out otherwise.
type Difference struct {
	Session string `json:"session"`
	Number  uint64 `json:"n"` // of its record
	Tool    string `json:"tool"`
	Before  Judged `json:"before"`
	After   Judged `json:"after"`
	// Follows says that an earlier one of its session did, or was left out, which may be why.
	Follows bool `json:"follows,omitempty"`
}

// Replay judges recorded sessions by another policy, each folded by it from what its calls
// answered. Whoever was asked when it was recorded is not there.
func Replay(p *policy.Policy, sessions []*Session) *Replayed {
	sessions, elsewhere := of(p, sessions)
	out := &Replayed{Sessions: len(sessions), Elsewhere: elsewhere, Otherwise: []Difference{}}
	rules := newRules(p)
	rules.recorded = true
	for _, s := range sessions {
		follows := false
		rules.again(s, nil, func(i int, in *gate.Input, d *gate.Decision) {
			c, now := s.Steps[i].Call, JudgedOf(d)
			if redefined(c, now) {
				out.Redefined++
				follows = follows || c.Made
				return
			}
			out.Calls++
			out.Before.take(c.Was.Verdict)
			out.After.take(now.Verdict)
			switch {
			case c.Made && !d.Allowed() && now.Verdict == Waits && c.Was.Verdict == Passed:
				out.Assumed++
			case c.Made && !d.Allowed() && now.Verdict == Refused:
				out.Undone++
			case !c.Made && d.Allowed():
				out.Untried++
			}
			if now.Verdict == c.Was.Verdict && (now.Verdict != Refused || now.Reason == c.Was.Reason) {
				return // why a person is asked is not on record where he was
			}
			tool := "" // a name that no tool has is the caller's
			if in.Call.Method != policy.CallTool {
				tool = in.Call.Server + "/" + string(in.Call.Method)
			} else if d.Tool != nil {
				tool = in.Call.Server + "/" + in.Call.Tool
			}
			out.Otherwise = append(out.Otherwise, Difference{s.ID, c.Number, tool, c.Was, now, follows})
			follows = true
		})
	}
	return out
}

// redefined reports whether a call was made under a definition that was approved then, and is
// not the one that a policy pins.
func redefined(c *Call, now Judged) bool {
	return now.Reason == writ.NameChanged && c.Was.Reason != writ.NameChanged
}

// Add takes in what came of other sessions.
func (r *Replayed) Add(o *Replayed) {
	r.Sessions, r.Elsewhere, r.Calls, r.Redefined = r.Sessions+o.Sessions, r.Elsewhere+o.Elsewhere, r.Calls+o.Calls, r.Redefined+o.Redefined
	r.Before.plus(o.Before)
	r.After.plus(o.After)
	r.Otherwise = append(r.Otherwise, o.Otherwise...)
	r.Undone, r.Assumed, r.Untried = r.Undone+o.Undone, r.Assumed+o.Assumed, r.Untried+o.Untried
}

// take counts one verdict.
func (n *Count) take(v Verdict) {
	switch v {
	case Passed:
		n.Passed++
	case Waits:
		n.Asked++
	default:
		n.Refused++
	}
}
