package memory

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
)

// ruled are the rules of memory (the package comment lists them) that rejections come
// from. A matter of form, of the context, or of an operator's command comes from none.
var ruled = map[writ.Reason]string{
	writ.MemoryMissing: "memory.r3", writ.MemoryUnknown: "memory.r3", writ.MemoryErased: "memory.r3",
	writ.MemoryQuarantined: "memory.r3", writ.MemoryQuote: "memory.r3", writ.MemoryEmpty: "memory.r3",
	writ.ObservationConflict: "memory.r1", writ.DirectCanonical: "memory.r4", writ.MemoryUnborne: "memory.r4",
	writ.ObservationRate: "memory.r5", writ.SourceSuspended: "memory.r5", writ.PropositionClosed: "memory.r6",
	writ.TestSpawnCap: "memory.r9", writ.TestClosed: "memory.r9", writ.EpisodePending: "memory.r10",
}

// ruleOf names the rule of memory a rejection comes from, "" where it comes from none.
func ruleOf(tool string, r *refusal) string {
	rule, name := ruled[r.reason], r.at[strings.LastIndexByte(r.at, '/')+1:]
	switch {
	case rule == "memory.r3" && slices.Contains([]string{ToolRecordObservation, ToolTestResult, ToolConsolidate, ToolRemember}, tool):
		return "memory.r1"
	case r.reason != writ.DirectCanonical:
	case slices.Contains([]string{"merge", "merge_into"}, name):
		return "memory.r8"
	case slices.Contains([]string{"direct_write", "canonical", "is_canonical", "promote", "promoted"}, name):
		return "memory.r10"
	}
	return rule
}
