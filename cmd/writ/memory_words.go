package main

import (
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/memory"
)

// rules says the memory's rules in words. A test holds that none is left out.
var rules = map[memory.Rule]string{
	memory.RuleRejectedFailedTest:   "a test that told it apart failed",
	memory.RuleRejectedSaturation:   "several independent sources contradict it and little is left of its confidence",
	memory.RuleRejectedBalance:      "far more speaks against it than for it",
	memory.RuleContestedConflict:    "strong evidence stands on both sides",
	memory.RuleContestedSlot:        "another value answers the same question, and neither may replace the other",
	memory.RuleAccepted:             "enough independent evidence supports it and little contradicts it",
	memory.RuleDeprecatedStale:      "nothing has borne it out for too long",
	memory.RuleDeprecatedHeld:       "it was out of date before and nothing new supports it",
	memory.RuleDeprecatedSuperseded: "another value took its place",
	memory.RuleDeprecatedErased:     "its words were erased",
	memory.RuleProvisional:          "evidence supports it, not yet enough to accept it",
	memory.RuleTentative:            "too little supports it",
	memory.RuleTentativeLowTrust:    "only sources that anybody can write to support it",
	memory.RuleHeldTimeOnly:         "only time has passed, and time alone raises nothing",

	memory.RuleTriggerSuppressed:     "a test would cost more than is at stake",
	memory.RuleTriggerSmallGap:       "much is at stake and the values are close",
	memory.RuleTriggerPersistence:    "it has been contested for long",
	memory.RuleTriggerContradictions: "contradictions are unresolved",
	memory.RuleTriggerNovelty:        "much is at stake and it is new",
	memory.RuleTriggerForecast:       "what was forecast should have come about",
	memory.RuleTriggerNone:           "nothing calls for a test",

	memory.RuleTaskBoundary:  "the task was over",
	memory.RuleCadence:       "enough new observations had come",
	memory.RuleNotDue:        "no consolidation was due",
	memory.RuleEligible:      "it was fit for durable memory",
	memory.RuleIneligible:    "only what is accepted becomes durable",
	memory.RuleIneligibleOld: "it was too stale to become durable",
	memory.RuleHeldCanonical: "it was durable already and still is",
	memory.RuleOverflow:      "more was carried over than a task may hand on",
	memory.RuleCarryExpired:  "it was carried over and never touched again",
	memory.RuleDiscarded:     "nothing supported it",
}

func ruleWords(r memory.Rule) string {
	if w, ok := rules[r]; ok {
		return w + " (" + string(r) + ")"
	}
	return cli.OneLine(string(r), 80)
}

// abstentions says why there is no answer.
var abstentions = map[memory.Abstention]string{
	memory.NoAbstention:         "it may be used as an answer",
	memory.InsufficientEvidence: "it is no answer: too little supports it",
	memory.IsContested:          "it is no answer: it is contested",
	memory.HasExpired:           "it is no answer: it no longer holds",
	memory.WasErased:            "it is no answer: it was erased",
	memory.NothingKnown:         "nothing is known",
}
