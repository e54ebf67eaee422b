package memory

// Impact is what is at stake in the action a test informs.
type Impact string

// The three impacts. "medium" of other systems is High.
const (
	LowImpact    Impact = "low"
	HighImpact   Impact = "high"
	Irreversible Impact = "irreversible"
)

func (i Impact) rank() int {
	switch i {
	case Irreversible:
		return 2
	case HighImpact:
		return 1
	}
	return 0
}

// Uncertainty is what decides whether a test is worth proposing.
type Uncertainty struct {
	Impact Impact
	// Gap is the difference of confidence between the two best competing
	// propositions, 1 with only one.
	Gap Micro
	// ContestedUpdates is how many updates by new evidence in a row left the
	// proposition contested.
	ContestedUpdates int
	// Contradictions is how many independent groups contradict it, unresolved.
	Contradictions int
	// Novelty: high impact, made in this task, and nothing accepted in its slot.
	Novelty    bool
	Confidence Micro
	Groups     int
	// Cost and Benefit are the proposer's estimates.
	Cost, Benefit Micro
}

// Triggered is the answer.
type Triggered struct {
	Trigger, Suppressed bool
	Rule                Rule
}

// ShouldTest says whether a test may be proposed, and by which rule.
// Suppression comes first and is for low impact alone.
func (p *Policy) ShouldTest(u Uncertainty) Triggered {
	t := &p.Trigger
	high := u.Impact.rank() > 0
	switch {
	case u.Impact == LowImpact && u.Cost > clamp01(u.Benefit):
		return Triggered{Suppressed: true, Rule: RuleTriggerSuppressed}
	case high && u.Gap < t.SmallGap:
		return Triggered{Trigger: true, Rule: RuleTriggerSmallGap}
	case u.ContestedUpdates >= int(t.ContestedUpdates):
		return Triggered{Trigger: true, Rule: RuleTriggerPersistence}
	case u.Contradictions >= int(t.Contradictions):
		return Triggered{Trigger: true, Rule: RuleTriggerContradictions}
	case u.Novelty && u.Confidence >= t.NoveltyConfidence.From && u.Confidence <= t.NoveltyConfidence.To && u.Groups <= int(t.NoveltyGroups):
		return Triggered{Trigger: true, Rule: RuleTriggerNovelty}
	}
	return Triggered{Rule: RuleTriggerNone}
}
