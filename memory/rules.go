package memory

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
