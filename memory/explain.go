package memory

import (
	"slices"
	"time"
)

// Explanation says why a proposition is believed as far as it is, and what
// would change that.
type Explanation struct {
	Notice      string     `json:"notice"`
	Mode        Mode       `json:"mode"`
	Policy      string     `json:"policy_version"`
	Profile     string     `json:"profile"`
	Proposition View       `json:"proposition"`
	Needs       Acceptance `json:"accepted_at"`
	// Support and Contradictions hold the evidence by group, what is closed
	// too.
	Support        []GroupEvidence `json:"support"`
	Contradictions []GroupEvidence `json:"contradictions"`
	// Slot holds the other values of the same question, by when they held.
	Slot []Value `json:"values,omitempty"`
	// Rivals are the values that dispute this one's place.
	Rivals    []string `json:"rivals,omitempty"`
	Decisions []string `json:"decisions"`
	// Unchecked are decisions it rests on that cannot be made again because
	// what was proposed was erased.
	Unchecked []string     `json:"not_recheckable,omitempty"`
	Changes   []Hypothesis `json:"what_would_change_it"`
	// Lapses is when, without new evidence, the state would be lower.
	Lapses *Instant `json:"lapses_at"`
}

// GroupEvidence is what one independence group says.
type GroupEvidence struct {
	Group string `json:"group"`
	Level int    `json:"trust"`
	// Weight is what the group weighs in the score, 0 if it does not count.
	Weight Micro `json:"weight"`
	Count  int   `json:"count"`
	// Items are the first of them.
	Items []Witness `json:"items"`
}

// Witness is one observation for or against.
type Witness struct {
	Observation string     `json:"observation"`
	Edge        string     `json:"edge"`
	Source      string     `json:"source"`
	Class       TrustClass `json:"class"`
	Level       int        `json:"trust"`
	Evidence    string     `json:"evidence,omitempty"`
	RecordedAt  Instant    `json:"recorded_at"`
	Quote       Data       `json:"quote"`
	// Inference says that it counts as the agent's inference only: it has not
	// the claim's value in it.
	Inference  bool   `json:"counted_as_inference,omitempty"`
	Resolution string `json:"resolution,omitempty"` // why it no longer counts
	Decision   string `json:"decision"`
}

// Value is one value of a slot.
type Value struct {
	Proposition string   `json:"proposition"`
	Text        Data     `json:"text"`
	State       Status   `json:"state"`
	ValidFrom   Instant  `json:"valid_from"`
	ValidTo     *Instant `json:"valid_to"`
	By          string   `json:"superseded_by,omitempty"`
}

// Hypothesis is one change of the evidence, in fixed words, and the state it
// would give. It is found by trying it: by the code that decides.
type Hypothesis struct {
	If         string `json:"if"`
	State      Status `json:"state"`
	Rule       Rule   `json:"rule_id"`
	Confidence Micro  `json:"confidence"`
}

// maxWitnesses is how many items of one group an explanation shows.
const maxWitnesses = 20

// maxQuoted bounds a quote that nobody chose.
const maxQuoted = 300

// Explain explains a proposition; ok is false if there is none.
func (r *Reader) Explain(id string) (x Explanation, ok bool) {
	s := r.State
	p := s.propositions.get(id)
	if p == nil || !r.then(p.CreatedAt) {
		return Explanation{}, false
	}
	p = r.asThen(p)
	v, _ := r.View(id)
	_, _, st := s.evaluation(r.Policy, p, r.now(), change{})
	x = Explanation{Notice: Notice, Mode: s.mode, Policy: s.policy, Profile: r.Policy.Profile, Proposition: v, Needs: r.Policy.Acceptance(st),
		Support: []GroupEvidence{}, Contradictions: []GroupEvidence{}, Rivals: slices.Clone(p.Challenged), Decisions: []string{p.Decision}, Changes: []Hypothesis{}}
	for _, ed := range s.edgesAt(id) {
		if !r.decidedThen(ed.Decision) {
			continue
		}
		x.Decisions = append(x.Decisions, ed.Decision)
		switch ed.Type {
		case Supports:
			x.Support = r.witness(x.Support, ed)
		case Contradicts:
			x.Contradictions = r.witness(x.Contradictions, ed)
		}
	}
	r.weights(x.Support, p.Support, 0)
	r.weights(x.Contradictions, p.Contradict, r.Policy.needed(p))
	for _, b := range s.beliefs[id] {
		if r.then(b.At) {
			x.Decisions = append(x.Decisions, mintID("dec", b.Record, 1))
		}
	}
	slices.SortFunc(x.Decisions, compareID)
	x.Decisions = slices.Compact(x.Decisions)
	for _, d := range x.Decisions {
		if s.decided.get(d).Erased && s.decided.get(d).Kind == KindProposal {
			x.Unchecked = append(x.Unchecked, d)
		}
	}
	if sl := s.slots.get(p.Slot); sl != nil {
		for _, o := range sl.Propositions {
			if other := r.asThen(s.propositions.get(o)); o != id && r.then(other.CreatedAt) {
				status := other.Status
				if !r.AsOf.IsZero() {
					_, status, _ = r.belief(other)
				}
				x.Slot = append(x.Slot, Value{o, data(other.Text, max(0, other.supportLevel()), 0, maxQuoted), status, other.ValidFrom, other.ValidTo, other.SupersededBy})
			}
		}
	}
	if r.AsOf.IsZero() {
		x.Changes = r.changes(p, v.State)
		x.Lapses = r.lapses(p, v.State)
	}
	return x, true
}

// witness puts an edge into its group.
func (r *Reader) witness(gs []GroupEvidence, ed *Edge) []GroupEvidence {
	i := slices.IndexFunc(gs, func(g GroupEvidence) bool { return g.Group == ed.Group })
	if i < 0 {
		gs = append(gs, GroupEvidence{Group: ed.Group, Items: []Witness{}})
		i = len(gs) - 1
	}
	gs[i].Level = max(gs[i].Level, ed.Level)
	if gs[i].Count++; gs[i].Count > maxWitnesses {
		return gs
	}
	o := r.State.observations.get(ed.From)
	quote := ed.Quote
	if quote == "" {
		quote = o.Raw
	}
	w := Witness{Observation: o.ID, Edge: ed.ID, Source: o.Source, Class: o.Class, Level: o.Level, Evidence: o.Evidence, RecordedAt: o.RecordedAt,
		Quote: data(quote, o.Level, o.labelFor(r.Principal), maxQuoted), Resolution: r.resolution(ed), Decision: ed.Decision, Inference: ed.Level < o.Level}
	gs[i].Items = append(gs[i].Items, w)
	return gs
}

// weights fills in what each group weighs.
func (r *Reader) weights(gs []GroupEvidence, ts []Tally, level int) {
	for i := range gs {
		own := slices.DeleteFunc(slices.Clone(ts), func(t Tally) bool { return t.Group != gs[i].Group })
		for _, g := range r.Policy.counted(own, level) {
			gs[i].Weight = Micro(r.Policy.weight(g) / int64(One))
		}
	}
}

// changes tries what else could come.
func (r *Reader) changes(p *Proposition, now Status) []Hypothesis {
	out := []Hypothesis{}
	at := r.now()
	tool, user := r.Policy.Trust.ToolInternal, r.Policy.Trust.DirectUser
	web := r.Policy.Trust.Web
	try := func(words string, c change, f func(q *Proposition)) {
		q := p.copied()
		f(q)
		score, tr, _ := r.State.evaluation(r.Policy, q, at, c)
		if tr.Next != now {
			out = append(out, Hypothesis{words, tr.Next, tr.Rule, score.Confidence})
		}
	}
	came := func(typ EdgeType, class Class, groups ...string) func(*Proposition) {
		return func(q *Proposition) {
			for _, g := range groups {
				q.tally(&Edge{Type: typ, Group: g, Level: int(class.Level), Reliability: class.Reliability, RecordedAt: at})
			}
		}
	}
	// No group that exists has such a name.
	const one, two, pool = "\x00one", "\x00two", "\x00pool"
	said := change{support: true, evidence: true}
	heard := change{evidence: true}
	try("one more independent tool of level 2 says so", said, came(Supports, tool, one))
	try("two more independent tools of level 2 say so", said, came(Supports, tool, one, two))
	try("this user says so", said, came(Supports, user, personGroup(r.Principal)))
	try("one more page of the web says so", said, came(Supports, web, pool))
	// A claim in words alone has no other value, and no test finds its own.
	valued := p.Slot != "" || !r.Policy.Flags.Grounded
	if valued {
		try("one independent tool of level 2 contradicts it", heard, came(Contradicts, tool, one))
		try("two independent tools of level 2 contradict it", heard, came(Contradicts, tool, one, two))
		try("one page of the web contradicts it", heard, came(Contradicts, web, pool))
	}
	if len(p.Contradict) > 0 || len(p.Challenged) > 0 {
		try("what contradicts it is resolved", heard, func(q *Proposition) { q.Contradict, q.Challenged = nil, nil })
	}
	if !valued {
		return out
	}
	if !p.Passed {
		try("a test confirms it, by a tool of level 2", said, func(q *Proposition) {
			q.Passed = true
			came(Supports, tool, one)(q)
		})
	}
	try("a test fails it, by a tool of level 2", change{evidence: true, failed: true}, came(Contradicts, tool, one))
	return out
}

// lapses is when time alone would lower the state, to the second: found by
// halving, for time only lowers.
func (r *Reader) lapses(p *Proposition, now Status) *Instant {
	if !now.Usable() {
		return nil
	}
	tier, decays := r.Policy.tier(p.Volatility)
	if !decays {
		return nil
	}
	same := func(at Instant) bool {
		_, tr, _ := r.State.evaluation(r.Policy, p, at, change{})
		return tr.Next == now
	}
	lo := r.now()
	hi := lo + Instant(time.Duration(tier.HalfLife).Microseconds())*10
	if hi > maxInstant || same(hi) {
		return nil
	}
	for hi-lo > 1_000_000 {
		if mid := lo + (hi-lo)/2; same(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return &hi
}
