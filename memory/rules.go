package memory

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
)

// The rule ids. An id is never reused and never changes its meaning.
const (
	RuleRejectedFailedTest   Rule = "transition.rejected.failed_test"
	RuleRejectedSaturation   Rule = "transition.rejected.contradiction_saturation"
	RuleRejectedBalance      Rule = "transition.rejected.contradiction_balance"
	RuleContestedConflict    Rule = "transition.contested.material_conflict"
	RuleContestedSlot        Rule = "transition.contested.slot"
	RuleAccepted             Rule = "transition.accepted.policy_threshold"
	RuleDeprecatedStale      Rule = "transition.deprecated.staleness"
	RuleDeprecatedHeld       Rule = "transition.deprecated.held"
	RuleDeprecatedSuperseded Rule = "transition.deprecated.superseded"
	RuleDeprecatedErased     Rule = "transition.deprecated.erased"
	RuleProvisional          Rule = "transition.provisional.supported"
	RuleTentative            Rule = "transition.tentative.default"
	RuleTentativeLowTrust    Rule = "transition.tentative.low_trust"
	RuleHeldTimeOnly         Rule = "transition.held.time_only"

	RuleTriggerSuppressed     Rule = "trigger.suppressed.low_impact_cost"
	RuleTriggerSmallGap       Rule = "trigger.high_impact_small_gap"
	RuleTriggerPersistence    Rule = "trigger.contested_persistence"
	RuleTriggerContradictions Rule = "trigger.unresolved_contradictions"
	RuleTriggerNovelty        Rule = "trigger.high_impact_novelty"
	RuleTriggerForecast       Rule = "trigger.forecast_due"
	RuleTriggerNone           Rule = "trigger.none"

	RuleTaskBoundary  Rule = "consolidation.task_boundary"
	RuleCadence       Rule = "consolidation.cadence.25"
	RuleNotDue        Rule = "consolidation.not_due"
	RuleEligible      Rule = "promotion.eligible"
	RuleIneligible    Rule = "promotion.ineligible.state"
	RuleIneligibleOld Rule = "promotion.ineligible.freshness"
	RuleHeldCanonical Rule = "promotion.held"
	RuleOverflow      Rule = "carryover_cap_exceeded"
	RuleCarryExpired  Rule = "carryover_expired"
	RuleDiscarded     Rule = "consolidation.discarded"
)

// The rules of memory that refuse (the package comment lists all ten; memory.r2
// has nothing to refuse: there is no way to ask for it).
const (
	RuleRecordFirst  = "memory.r1"
	RuleSupported    = "memory.r3"
	RuleDerived      = "memory.r4"
	RuleIndependence = "memory.r5"
	RuleHistory      = "memory.r6"
	RuleDecay        = "memory.r7"
	RuleNoMerge      = "memory.r8"
	RuleWorthTesting = "memory.r9"
	RulePromotion    = "memory.r10"
)

// ruleOf names the rule of memory a rejection comes from (the package
// comment lists them). "" where it comes from none: a matter
// of form, of the context, or of an operator's command.
func ruleOf(tool string, r *refusal) string {
	switch r.reason {
	case writ.MemoryMissing, writ.MemoryUnknown, writ.MemoryErased, writ.MemoryQuarantined, writ.MemoryQuote, writ.MemoryEmpty:
		if tool == ToolRecordObservation || tool == ToolTestResult || tool == ToolConsolidate {
			return RuleRecordFirst
		}
		return RuleSupported
	case writ.ObservationConflict:
		return RuleRecordFirst
	case writ.DirectCanonical:
		name := r.at[strings.LastIndexByte(r.at, '/')+1:]
		switch {
		case slices.Contains([]string{"merge", "merge_into"}, name):
			return RuleNoMerge
		case slices.Contains([]string{"direct_write", "canonical", "is_canonical", "promote", "promoted"}, name):
			return RulePromotion
		}
		return RuleDerived
	case writ.PropositionRefuted, writ.MemoryUnborne:
		return RuleDerived
	case writ.ObservationRate, writ.SourceSuspended, writ.TestNotIndependent:
		return RuleIndependence
	case writ.EvidenceBothSides, writ.PropositionClosed:
		return RuleHistory
	case writ.PropositionVolatility:
		return RuleDecay
	case writ.TestNotTriggered, writ.TestSpawnCap, writ.TestClosed:
		return RuleWorthTesting
	case writ.ConsolidationNotDue, writ.EpisodePending:
		return RulePromotion
	}
	return ""
}
