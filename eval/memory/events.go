package memory

import "github.com/writ-project/writ/memory"

// transition is one TransitionEvent of the artifacts.
type transition struct {
	Run    string `json:"run"`
	System string `json:"system"`
	memory.Changed
	// Evidence are the observations of the step that brought it about; there is
	// none where time did.
	Evidence []string `json:"evidence_ids"`
}

// consolidation is one ConsolidationEvent of the artifacts.
type consolidation struct {
	Run       string         `json:"run"`
	System    string         `json:"system"`
	Session   string         `json:"session_id"`
	Task      string         `json:"task_id"`
	Promoted  []string       `json:"promoted_proposition_ids"`
	Archived  []string       `json:"archived_proposition_ids"`
	Discarded []string       `json:"discarded_proposition_ids"`
	Carried   []string       `json:"carryover_retained_ids"`
	Overflow  *memory.Rule   `json:"overflow_reason_code"`
	Rule      memory.Rule    `json:"rule_id"`
	At        memory.Instant `json:"timestamp_utc"`
}

func newConsolidation(c *memory.ConsolidateOp, at memory.Instant) consolidation {
	out := consolidation{Session: c.Session, Task: c.Task, Promoted: c.Promoted, Archived: c.Archived, Discarded: c.Discarded, Carried: c.Carried, Rule: c.Rule, At: at}
	if c.Overflow != "" {
		out.Overflow = &c.Overflow
	}
	return out
}
