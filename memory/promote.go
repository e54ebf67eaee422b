package memory

// Due says by which rule a consolidation is due: at the end of a task, or once
// enough new observations came.
func (p *Policy) Due(taskBoundary bool, newObservations int) Rule {
	n := int(p.Consolidation.Cadence)
	switch {
	case taskBoundary:
		return RuleTaskBoundary
	case newObservations <= 0:
	case p.Flags.CadenceAtLeast && newObservations >= n, newObservations%n == 0:
		return RuleCadence
	}
	return RuleNotDue
}

// Promotable says whether a proposition in that state, and as fresh, passes
// into canonical memory. What is canonical already is held, under
// flags.hold_gate, as long as it is accepted or provisional and fresh enough.
func (p *Policy) Promotable(s Status, freshness Micro, canonical bool) (bool, Rule) {
	hold := p.Flags.HoldGate && canonical
	switch {
	case s != Accepted && !(hold && s == Provisional):
		return false, RuleIneligible
	case freshness < p.Promotion.Freshness:
		return false, RuleIneligibleOld
	case hold:
		return true, RuleHeldCanonical
	}
	return true, RuleEligible
}

// carry cuts the unresolved propositions, in their order, at the cap.
func (p *Policy) carry(ids []string) (kept, overflow []string) {
	n := min(len(ids), int(p.Consolidation.CarryOver))
	return ids[:n:n], ids[n:]
}
