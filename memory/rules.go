package memory

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
)

// ruleOf names the rule of memory a rejection comes from (the package
// comment lists them). "" where it comes from none: a matter
// of form, of the context, or of an operator's command.
func ruleOf(tool string, r *refusal) string {
	switch r.reason {
	case writ.MemoryMissing, writ.MemoryUnknown, writ.MemoryErased, writ.MemoryQuarantined, writ.MemoryQuote, writ.MemoryEmpty:
		if tool == ToolRecordObservation || tool == ToolTestResult || tool == ToolConsolidate || tool == ToolRemember {
			return "memory.r1"
		}
		return "memory.r3"
	case writ.ObservationConflict:
		return "memory.r1"
	case writ.DirectCanonical:
		name := r.at[strings.LastIndexByte(r.at, '/')+1:]
		switch {
		case slices.Contains([]string{"merge", "merge_into"}, name):
			return "memory.r8"
		case slices.Contains([]string{"direct_write", "canonical", "is_canonical", "promote", "promoted"}, name):
			return "memory.r10"
		}
		return "memory.r4"
	case writ.MemoryUnborne:
		return "memory.r4"
	case writ.ObservationRate, writ.SourceSuspended:
		return "memory.r5"
	case writ.PropositionClosed:
		return "memory.r6"
	case writ.TestSpawnCap, writ.TestClosed:
		return "memory.r9"
	case writ.EpisodePending:
		return "memory.r10"
	}
	return ""
}
