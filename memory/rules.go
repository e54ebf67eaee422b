package memory

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
)

// The rules of memory that refuse (the package comment lists all ten).
const (
	RuleRecordFirst  = "memory.r1"
	RuleSupported    = "memory.r3"
	RuleDerived      = "memory.r4"
	RuleIndependence = "memory.r5"
	RuleHistory      = "memory.r6"
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
		if tool == ToolRecordObservation || tool == ToolTestResult || tool == ToolConsolidate || tool == ToolRemember {
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
	case writ.MemoryUnborne:
		return RuleDerived
	case writ.ObservationRate, writ.SourceSuspended:
		return RuleIndependence
	case writ.PropositionClosed:
		return RuleHistory
	case writ.TestSpawnCap, writ.TestClosed:
		return RuleWorthTesting
	case writ.EpisodePending:
		return RulePromotion
	}
	return ""
}
