package memory

import "slices"

// Explanation says why a proposition is believed as far as it is, and what
// would change that.
type Explanation struct {
	Notice      string `json:"notice"`
	Mode        Mode   `json:"mode"`
	Policy      string `json:"policy_version"`
	Proposition View   `json:"proposition"`
	// Statements are the words on it, in their order, those too that no longer
	// count; the newest mostListed of them.
	Statements []Statement `json:"statements"`
	// Values are the other answers to the same question.
	Values    []Value  `json:"values,omitempty"`
	Decisions []string `json:"decisions"`
	// Unchecked are decisions it rests on that cannot be made again because
	// what was proposed was erased.
	Unchecked []string `json:"not_recheckable,omitempty"`
	Changes   []string `json:"what_would_change_it"`
}

// Statement is one word on a claim.
type Statement struct {
	Observation string     `json:"observation,omitempty"` // none of a ruling
	Edge        string     `json:"edge"`
	Source      string     `json:"source"`
	Class       TrustClass `json:"class"`
	Level       int        `json:"trust"`
	Evidence    string     `json:"evidence,omitempty"`
	RecordedAt  Instant    `json:"recorded_at"`
	Quote       *Data      `json:"quote,omitempty"`
	// Inference says that it does not bear the claim out, and counts as what the
	// agent makes of it.
	Inference  bool   `json:"counted_as_inference,omitempty"`
	Resolution string `json:"resolution,omitempty"` // why it no longer counts
	Decision   string `json:"decision"`
}

// Value is one answer to a question.
type Value struct {
	Proposition string `json:"proposition"`
	Caption     Data   `json:"caption"`
	Standing
}

// Explain explains a proposition; ok is false if there is none.
func (r *Reader) Explain(id string) (x Explanation, ok bool) {
	s, t := r.State, r.upTo()
	v, ok := r.View(id)
	if !ok {
		return Explanation{}, false
	}
	p := s.propositions.get(id)
	x = Explanation{Notice: Notice, Mode: s.mode, Policy: s.policy, Proposition: v, Statements: []Statement{}, Decisions: []string{p.Decision}}
	for _, ed := range s.edgesAt(id) {
		if ed.Type == Supports && t.has(ed.Decision) {
			x.Decisions = append(x.Decisions, ed.Decision)
			x.Statements = append(x.Statements, r.statement(ed, p, t))
		}
	}
	x.Statements = newest(x.Statements)
	for _, st := range x.Statements {
		r.shows(st.Quote == nil || r.clean(s.observations.get(st.Observation)))
	}
	slices.SortFunc(x.Decisions, compareID)
	x.Decisions = slices.Compact(x.Decisions)
	for _, d := range x.Decisions {
		if s.decided.get(d).Erased && s.decided.get(d).Kind == KindProposal {
			x.Unchecked = append(x.Unchecked, d)
		}
	}
	if sl := s.slots.get(p.Slot); sl != nil {
		others := slices.DeleteFunc(slices.Clone(sl.Propositions), func(o string) bool { return o == id || !t.has(o) })
		for _, o := range newest(others) {
			p := s.propositions.get(o)
			x.Values = append(x.Values, Value{o, r.caption(p), s.standing(o, t)})
			r.showsWords(p)
		}
	}
	x.Changes = changes(v)
	return x, true
}

// statement is one word on a claim as it is told.
func (r *Reader) statement(ed *Edge, p *Proposition, t upTo) Statement {
	st := Statement{Edge: ed.ID, Level: ed.Level, RecordedAt: ed.RecordedAt, Decision: ed.Decision}
	if t.has(ed.ResolvedBy) {
		st.Resolution = ed.Resolution
	}
	o := r.State.observations.get(ed.From)
	if o == nil {
		st.Source, st.Class = r.State.decided.get(ed.From).Principal, ClassOperator
		return st
	}
	st.Observation, st.Source, st.Class, st.Evidence, st.Inference = o.ID, o.Source, o.Class, o.Evidence, ed.Level < o.Level
	if o.Status == Ingested {
		st.Quote = r.quoted(o, p)
	}
	return st
}

// changes says what would make a claim stand otherwise, in fixed words.
func changes(v View) []string {
	const again = "the user or a trusted tool says it in one sentence or record that names whom it is about, the question and the value"
	switch v.Status {
	case Established:
		if v.Slot == "" {
			return []string{"an operator's ruling, or an erasure"}
		}
		out := []string{"a newer word of its level or a higher one, with another value, replaces it"}
		if v.Level > 2 {
			out = append(out, "a newer word of a trusted tool, with another value, makes it contested")
		}
		return out
	case Contested:
		return []string{"whoever has the higher level says it once more", "an operator's ruling"}
	case Replaced:
		return []string{again + ", once more"}
	case Gone:
		return []string{}
	}
	return []string{again}
}
