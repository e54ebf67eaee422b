package memory

import (
	"time"

	"github.com/writ-project/writ/memory"
)

// reading is what a system answers to one question.
type reading struct {
	// value is what it returns as usable, "" for nothing.
	value      string
	confidence memory.Micro
	// why says, of a system with states, why there is nothing.
	why memory.Abstention
}

// system is one memory, for one run.
type system interface {
	// do takes one step that is no read.
	do(e *event)
	// ask answers one question at a time.
	ask(e *event) reading
	// entity is what a step that named something came to: the system's own id
	// for it, and whether that is one it had before. ok is false where the
	// system knows no entities.
	entity(as string) (id string, linked, ok bool)
	// size is what it holds: rows of whatever kind, and the bytes of its texts.
	size() (rows, bytes int)
}

// System names one column of the result and says how it is made.
type System struct {
	Name string `json:"system"`
	// How says what it is: of an ablation, what was changed in the policy or is
	// put between.
	How string `json:"how"`
	// Policy is the hash of the policy in force, "" where there is none.
	Policy string `json:"policy,omitempty"`

	source  []byte // of the policy
	profile string // v1 or v01q: what is expected of it; "" of a baseline or ablation
	make    func(r *run, o *Options) system
}

// The systems, by the numbers of the design.
const (
	B1   = "B1_raw_text_log"
	B2   = "B2_summary"
	B3   = "B3_key_value"
	B4   = "B4_graph_without_governance"
	B5   = "B5_governed_v1"
	B501 = "B5_governed_v01q"
	A1   = "A1_no_tentative_states"
	A2   = "A2_no_provenance_weighting"
	A3   = "A3_no_source_independence"
	A4   = "A4_no_decay"
	A5   = "A5_no_test_loop"
	A6   = "A6_one_layer"
	A7   = "A7_direct_writes"
)

// NotMeasured is what the design names and this evaluation leaves out, with the
// reason. Nothing stands in for it.
func NotMeasured() map[string]string {
	return map[string]string{
		"B0_context_window_only":      "the baseline is a model that reads its context; there is no model here",
		"metric.memory_cost.tokens":   "tokens are a model's; the bytes a system holds are measured",
		"metric.latency":              "the package has no clock; benchmarks of the stores and of package memory print times",
		"metric.security.exposure":    "every text of the governed memory comes back labelled, and a baseline has no labels: it says nothing beside the flip rate",
		"metric.security.delta_lost":  "measured with its control run by the offline measures of poisoning",
		"stage.4_long_horizon":        "troubleshooting, replanning and assistant work over many sessions need an agent that acts on what it recalls: a model",
		"fairness.model_and_prompts":  "no model is called: the fields of the contract that are about one, its tools, tokens and time say the same of all systems",
		"stage.3_tool_using_families": "task success is that of reads, on the scenarios of stage 2; no tool is called",
	}
}

// instant is a time of a run.
func (r *run) instant(at time.Duration) time.Time { return r.clock0.Add(at) }
