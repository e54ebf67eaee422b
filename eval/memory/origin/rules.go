package origin

import (
	"errors"
	"time"
)

// Status is the belief state of a claim.
type Status string

// The six states.
const (
	Tentative   Status = "tentative"
	Provisional Status = "provisional"
	Accepted    Status = "accepted"
	Contested   Status = "contested"
	Deprecated  Status = "deprecated"
	Rejected    Status = "rejected"
)

// Rule names what decided.
type Rule string

// The rules.
const (
	RejectedFailedTest Rule = "transition.rejected.failed_test"
	RejectedSaturation Rule = "transition.rejected.contradiction_saturation"
	ContestedConflict  Rule = "transition.contested.material_conflict"
	AcceptedThreshold  Rule = "transition.accepted.policy_threshold"
	DeprecatedStale    Rule = "transition.deprecated.staleness"
	ProvisionalRule    Rule = "transition.provisional.supported"
	TentativeRule      Rule = "transition.tentative.default"

	TriggerSuppressed     Rule = "trigger.suppressed.low_impact_cost"
	TriggerSmallGap       Rule = "trigger.high_impact_small_gap"
	TriggerPersistence    Rule = "trigger.contested_persistence"
	TriggerContradictions Rule = "trigger.unresolved_contradictions"
	TriggerNovelty        Rule = "trigger.high_impact_novelty"
	TriggerNone           Rule = "trigger.none"
)

// Next returns the state that follows and the rule that says so: the first that
// matches. since is the time since the newest support, nil for unknown. A prior
// state that is none is an error.
func Next(prior Status, s Score, failedTest bool, since *time.Duration) (Status, Rule, error) {
	switch prior {
	case Tentative, Provisional, Accepted, Contested, Deprecated, Rejected:
	default:
		return "", "", errors.New("origin: unknown prior state")
	}
	usable := prior == Accepted || prior == Provisional
	half, _ := s.tier.constants()
	switch {
	case failedTest:
		return Rejected, RejectedFailedTest, nil
	case s.Confidence < 150_000 && s.Contradiction >= 800_000 && s.ContradictGroups >= 2:
		return Rejected, RejectedSaturation, nil
	case s.Support >= 450_000 && s.Contradiction >= 450_000:
		return Contested, ContestedConflict, nil
	case s.Confidence >= 800_000 && s.SupportGroups >= 2 && s.Contradiction < 300_000 && s.Freshness >= 400_000:
		return Accepted, AcceptedThreshold, nil
	case usable && s.Freshness < 200_000 && since != nil && *since >= half:
		return Deprecated, DeprecatedStale, nil
	case s.Confidence >= 550_000:
		return Provisional, ProvisionalRule, nil
	}
	return Tentative, TentativeRule, nil
}

// Impact is what is at stake in the action a test informs.
type Impact string

// The impacts.
const (
	LowImpact    Impact = "low"
	HighImpact   Impact = "high"
	Irreversible Impact = "irreversible"
)

// Uncertainty is what decides whether a test is worth proposing.
type Uncertainty struct {
	Impact Impact
	// Gap is the difference of confidence between the two best competing claims.
	Gap Micro
	// ContestedUpdates in a row left the claim contested; Contradictions are
	// those unresolved.
	ContestedUpdates, Contradictions int
	Novelty                          bool // of high impact
	Confidence                       Micro
	Groups                           int // that support it
	Cost, Benefit                    Micro
}

// ShouldTest says whether a test may be proposed, and by which rule. Suppression
// comes first and is for low impact alone.
func ShouldTest(u Uncertainty) (trigger, suppressed bool, by Rule) {
	switch {
	case u.Impact == LowImpact && u.Cost > max(0, min(One, u.Benefit)):
		return false, true, TriggerSuppressed
	case (u.Impact == HighImpact || u.Impact == Irreversible) && u.Gap < 150_000:
		return true, false, TriggerSmallGap
	case u.ContestedUpdates >= 2:
		return true, false, TriggerPersistence
	case u.Contradictions >= 2:
		return true, false, TriggerContradictions
	case u.Novelty && u.Confidence >= 450_000 && u.Confidence <= 700_000 && u.Groups <= 1:
		return true, false, TriggerNovelty
	}
	return false, false, TriggerNone
}

// Promotable says whether a claim in that state, and as fresh, becomes canonical.
func Promotable(s Status, freshness Micro) bool { return s == Accepted && freshness >= 350_000 }
