package claim

import (
	"cmp"
	"fmt"
	"slices"

	writ "github.com/writ-project/writ"
)

// Stage names a gate of the single-step host. Events carry it, in the order of
// the constants; the zero Stage is none of them.
type Stage string

// The gates, in the one order in which a request meets them.
const (
	StagePolicyGate  Stage = "policy_gate"  // INV-0, before any server is started or asked
	StageDiscovery   Stage = "discovery"    // what the servers list now
	StageAllowlist   Stage = "allowlist"    // INV-3: discovered and the operator's
	StagePlanner     Stage = "planner"      // the model, or what stands in for it
	StagePlanParse   Stage = "plan_parse"   // INV-1
	StagePlanGate    Stage = "plan_gate"    // INV-2, INV-3
	StageProvenance  Stage = "provenance"   // the one door's decision
	StageCall        Stage = "call"         // INV-6: at most once
	StageTypedOutput Stage = "typed_output" // INV-4
	StageGrounding   Stage = "grounding"    // INV-5
	StageAnswer      Stage = "answer"
)

// Stages returns all stages in their order.
func Stages() []Stage {
	return []Stage{StagePolicyGate, StageDiscovery, StageAllowlist, StagePlanner, StagePlanParse, StagePlanGate,
		StageProvenance, StageCall, StageTypedOutput, StageGrounding, StageAnswer}
}

// Stop says at which gate a request ended and why. It holds no value of what
// was judged. A nil *Stop means that the gate let it pass.
type Stop struct {
	Stage     Stage          `json:"stage"`
	Rejection writ.Rejection `json:"rejection"`
}

// String says in one line where, why and what would make it pass.
func (s *Stop) String() string {
	out := fmt.Sprintf("%s: %s %s", s.Stage, s.Rejection.Code, s.Rejection.Reason)
	if len(s.Rejection.Failures) > 0 {
		f := s.Rejection.Failures[0]
		if f.Pointer != "" {
			out += fmt.Sprintf(" at %q", f.Pointer)
		}
		out += ": " + f.Need
	}
	return out
}

// StopAt makes a stop of at least one failure. Code and reason are those of the
// first; the failures are then sorted by pointer, as a rejection has them.
func StopAt(stage Stage, failures ...writ.Failure) *Stop {
	first := failures[0].Reason
	failures = slices.SortedStableFunc(slices.Values(failures), func(a, b writ.Failure) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return &Stop{stage, writ.Rejection{Code: writ.CodeOf(first), Reason: first, Failures: failures}}
}

// because is StopAt for one failure.
func because(stage Stage, r writ.Reason, pointer, need string) *Stop {
	return StopAt(stage, writ.Failure{Pointer: pointer, Reason: r, Need: need})
}
