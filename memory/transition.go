package memory

import (
	"fmt"
	"time"
)

// Status is the belief state of a proposition.
type Status string

// The six states. A proposition has exactly one.
const (
	Tentative   Status = "tentative"
	Provisional Status = "provisional"
	Accepted    Status = "accepted"
	Contested   Status = "contested"
	Deprecated  Status = "deprecated"
	Rejected    Status = "rejected"
)

// rank orders the states by how far they may be relied on.
func (s Status) rank() int {
	switch s {
	case Deprecated:
		return 1
	case Tentative:
		return 2
	case Contested:
		return 3
	case Provisional:
		return 4
	case Accepted:
		return 5
	}
	return 0
}

func (s Status) valid() bool {
	switch s {
	case Tentative, Provisional, Accepted, Contested, Deprecated, Rejected:
		return true
	}
	return false
}

// Usable says that a read may return the proposition as an answer.
func (s Status) Usable() bool { return s == Accepted || s == Provisional }

// Rule names the rule that decided: rule ids of memory, as they stand in
// events, explanations and logs. They are listed in rules.go.
type Rule string

// Standing is what the state machine looks at beside the score.
type Standing struct {
	Prior Status
	// FailedTest says that a discriminating test failed and is in force.
	FailedTest bool
	// SinceSupport is the time since the newest support; nil is unknown.
	SinceSupport *time.Duration

	// The rest matters only under flags of the policy.

	// WasUsable: the state computed when the newest support came was usable.
	WasUsable bool
	// NewSupport: a supporting edge came since the state was last computed.
	NewSupport bool
	// NewEvidence: anything but time changed since then.
	NewEvidence bool
	// SupportLevel is the highest level among the support, -1 without any.
	SupportLevel int
	// SelfReport: the predicate is a person's own, and that person said so at
	// level 3.
	SelfReport bool
	// Class is the class of the proposition.
	Class PropositionClass
	// PassedTest: a discriminating test confirmed it.
	PassedTest bool
	// MinGroups and MinConfidence are the predicate's own, 0 for none.
	MinGroups     int
	MinConfidence Micro
	// Challenged: another open value of the same slot disputes it, with the
	// level to dispute and without the level to replace.
	Challenged bool
	// Superseded: another value took its place, for good.
	Superseded bool
}

// PropositionClass is the class of a claim.
type PropositionClass string

// The four classes.
const (
	Descriptive PropositionClass = "descriptive"
	Predictive  PropositionClass = "predictive"
	Causal      PropositionClass = "causal"
	Procedural  PropositionClass = "procedural"
)

// Transition is one evaluation of a proposition's state.
type Transition struct {
	Prior Status `json:"prior"`
	Next  Status `json:"next"`
	Rule  Rule   `json:"rule"`
}

// Acceptance returns what acceptance takes for such a claim.
func (p *Policy) Acceptance(st Standing) Acceptance {
	t := &p.Thresholds
	a := Acceptance{Confidence: t.AcceptedConfidence, Groups: t.AcceptedGroups}
	switch {
	case p.Flags.SelfReport && st.SelfReport:
		a = p.Strict.SelfReport
	case p.Flags.ByClass && st.Class == Causal:
		a = p.Strict.Causal
	case p.Flags.ByClass && st.Class == Procedural:
		a = p.Strict.Procedural
	}
	// A predicate may ask for more than its class does, never for less.
	a.Groups = max(a.Groups, Count(st.MinGroups))
	a.Confidence = max(a.Confidence, st.MinConfidence)
	return a
}

// Next returns the state that follows: the first rule that matches decides. An
// unknown prior state is an error.
func (p *Policy) Next(s Score, st Standing) (Transition, error) {
	if !st.Prior.valid() {
		return Transition{}, fmt.Errorf("memory: unknown prior state")
	}
	next, rule := p.next(s, st)
	low := p.Flags.LowTrust && st.SupportLevel <= 1
	switch {
	case low && (next.Usable() || next == Contested && s.Contradiction == 0):
		next, rule = Tentative, RuleTentativeLowTrust
	case p.Flags.TimeOnlyLowers && !st.NewEvidence && next.rank() > st.Prior.rank():
		next, rule = st.Prior, RuleHeldTimeOnly
	}
	return Transition{st.Prior, next, rule}, nil
}

func (p *Policy) next(s Score, st Standing) (Status, Rule) {
	t := &p.Thresholds
	accept := p.Acceptance(st)
	saturated := s.Contradiction >= t.RejectedContradiction && s.ContradictGroups >= int(t.RejectedGroups)
	switch {
	case st.FailedTest:
		return Rejected, RuleRejectedFailedTest
	case st.Superseded:
		return Deprecated, RuleDeprecatedSuperseded
	case s.Confidence < t.RejectedConfidence && saturated:
		return Rejected, RuleRejectedSaturation
	case p.Flags.Balance && saturated && s.Contradiction-s.Support >= t.RejectedBalance:
		return Rejected, RuleRejectedBalance
	case s.Support >= t.ContestedSupport && s.Contradiction >= t.ContestedContradiction:
		return Contested, RuleContestedConflict
	case p.Flags.Supersession && st.Challenged:
		return Contested, RuleContestedSlot
	case p.Flags.StickyStale && st.Prior == Deprecated && !st.NewSupport:
		return Deprecated, RuleDeprecatedHeld
	case s.Confidence >= accept.Confidence && s.SupportGroups >= int(accept.Groups) &&
		s.Contradiction < t.AcceptedContradiction && s.Freshness >= t.AcceptedFreshness &&
		(!accept.Test || st.PassedTest):
		return Accepted, RuleAccepted
	case p.stale(s, st):
		return Deprecated, RuleDeprecatedStale
	case s.Confidence >= t.ProvisionalConfidence:
		return Provisional, RuleProvisional
	}
	return Tentative, RuleTentative
}

// stale is the fifth rule.
func (p *Policy) stale(s Score, st Standing) bool {
	usable := st.Prior.Usable()
	if p.Flags.StickyStale {
		usable = st.WasUsable
	}
	if !usable || s.Freshness >= p.Thresholds.DeprecatedFreshness || st.SinceSupport == nil {
		return false
	}
	tier, decays := p.tier(s.Volatility)
	if !decays {
		return false
	}
	// since/half >= n, in whole numbers of microseconds and millionths
	half := time.Duration(tier.HalfLife).Microseconds()
	need := mulDiv(half, int64(p.Thresholds.DeprecatedHalfLives), int64(One))
	return st.SinceSupport.Microseconds() >= need
}

// mulDiv is a·b/c, rounded up, for a of at most 2^40, b and c of at most 2^30,
// without overflow: the factor is split.
func mulDiv(a, b, c int64) int64 {
	return a*(b/c) + (a/c)*(b%c) + ((a%c)*(b%c)+c-1)/c
}
