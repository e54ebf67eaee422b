package memory

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
)

// supportLevel is the highest level among a proposition's active support, -1
// without any.
func (p *Proposition) supportLevel() int {
	level := -1
	for _, t := range p.Support {
		level = max(level, t.Level)
	}
	return level
}

// strongGroups is how many independent groups of level 2 or more support it.
func (p *Proposition) strongGroups() int {
	n, last := 0, "\x00"
	for _, t := range p.Support { // sorted by group
		if t.Level >= 2 && t.Group != last {
			n++
			last = t.Group
		}
	}
	return n
}

// counted returns the groups of one side: the tallies of at least the level,
// joined by group.
func (p *Policy) counted(ts []Tally, level int) (gs []Group) {
	last := ""
	for _, t := range ts { // sorted by group
		if t.Level < level {
			continue
		}
		if len(gs) == 0 || t.Group != last {
			gs = append(gs, Group{Uncounted: p.Flags.LowTrust})
			last = t.Group
		}
		g := &gs[len(gs)-1]
		g.Count += t.Count
		g.Reliability = max(g.Reliability, t.Reliability)
		if t.Level > 0 {
			g.Uncounted = false
		}
	}
	return gs
}

// needed is the level a contradiction must have to count against p.
func (p *Policy) needed(pr *Proposition) int {
	if !p.Flags.Eligibility {
		return 0
	}
	return min(max(0, pr.supportLevel()), 2)
}

// Disputed is how many active contradictions are too low to count.
func (p *Policy) disputed(pr *Proposition) (n int) {
	for _, t := range pr.Contradict {
		if t.Level < p.needed(pr) {
			n += t.Count
		}
	}
	return n
}

// newestSupport is when support that refreshes last came; without any, when
// the proposition was made, and known is false if it has no support at all.
func (p *Policy) newestSupport(pr *Proposition) (at Instant, known bool) {
	at, refreshed := pr.CreatedAt, false
	for _, t := range pr.Support {
		known = true
		if t.Level >= 2 || !p.Flags.LowTrust {
			if !refreshed || t.Newest > at {
				at, refreshed = t.Newest, true
			}
		}
	}
	return at, known
}

// evidence is what the policy scores of a proposition at a time.
func (p *Policy) evidence(pr *Proposition, now Instant) Evidence {
	at, _ := p.newestSupport(pr)
	return Evidence{
		Support:    p.counted(pr.Support, 0),
		Contradict: p.counted(pr.Contradict, p.needed(pr)),
		Age:        at.since(now),
		Volatility: pr.Volatility,
	}
}

// change says what came since a proposition was last evaluated.
type change struct {
	support  bool // a supporting edge
	evidence bool // anything but time
	failed   bool // a discriminating test failed in this very event
}

// evaluation computes a proposition's score and state at a time, and changes
// nothing.
func (s *State) evaluation(p *Policy, pr *Proposition, now Instant, c change) (Score, Transition, Standing) {
	score := p.Score(p.evidence(pr, now))
	st := Standing{
		Prior: pr.Status, FailedTest: c.failed || p.Flags.DurableFailure && pr.Failed,
		WasUsable: pr.WasUsable, NewSupport: c.support, NewEvidence: c.evidence,
		SupportLevel: pr.supportLevel(), Class: pr.Class, PassedTest: pr.Passed,
		Challenged: len(pr.Challenged) > 0, Superseded: p.Flags.Supersession && pr.SupersededBy != "",
	}
	if at, known := p.newestSupport(pr); known {
		d := at.since(now)
		st.SinceSupport = &d
	}
	if pd := s.predicates.get(pr.Predicate); pd != nil {
		st.MinGroups, st.MinConfidence = pd.MinGroups, pd.MinConfidence
		st.SelfReport = pd.SelfReport && s.saidByHimself(pr)
	}
	if pr.Gone {
		// Nothing can be believed whose words are gone.
		return score, Transition{pr.Status, Deprecated, RuleDeprecatedErased}, st
	}
	tr, err := p.Next(score, st)
	if err != nil { // a state of no known name is no state to rely on
		tr = Transition{pr.Status, Tentative, RuleTentative}
	}
	return score, tr, st
}

// saidByHimself reports whether the person the subject is supports the claim
// at level 3.
func (s *State) saidByHimself(pr *Proposition) bool {
	en := s.entities.get(s.resolve(pr.Subject))
	if en == nil || en.Principal == "" {
		return false
	}
	for _, t := range pr.Support {
		if t.Level >= 3 && t.Group == personGroup(en.Principal) {
			return true
		}
	}
	return false
}

// saidByOperator reports whether an operator supports the claim: of what has
// level 3, all else is a person's own.
func (p *Proposition) saidByOperator() bool {
	return slices.ContainsFunc(p.Support, func(t Tally) bool {
		return t.Level >= 3 && !strings.HasPrefix(t.Group, personGroup(""))
	})
}

// personGroup is the independence group of what one person says.
func personGroup(principal string) string { return "user:" + principal }

// resolve follows merges.
func (s *State) resolve(entity string) string {
	for range 64 {
		en := s.entities.get(entity)
		if en == nil || en.MergedInto == "" {
			return entity
		}
		entity = en.MergedInto
	}
	return entity
}

// A draftEvent collects the operations of one event, each applied to a draft
// as it is decided.
type draftEvent struct {
	*State         // the draft
	e      *Event  //
	value  []byte  // what the event's texts come from
	p      *Policy //
	minted map[string]int
	out    []Changed
	// touched are propositions a retraction took evidence from.
	touched []string
	looked  *looking // nil until something is looked for
	err     error
}

// Changed is one state that changed: part of an outcome.
type Changed struct {
	Proposition string  `json:"proposition_id"`
	Prior       Status  `json:"prior_state"`
	Next        Status  `json:"new_state"`
	Rule        Rule    `json:"rule_id"`
	Confidence  Micro   `json:"confidence"`
	Support     Micro   `json:"support_score"`
	Against     Micro   `json:"contradiction_score"`
	Freshness   Micro   `json:"freshness"`
	At          Instant `json:"timestamp_utc"`
}

func (d *draftEvent) mint(prefix string) string {
	d.minted[prefix]++
	return mintID(prefix, d.e.N, d.minted[prefix])
}

// add decides an operation: it is applied at once, so that what follows is
// decided on the state it leaves.
func (d *draftEvent) add(o Op) {
	if d.err != nil {
		return
	}
	if d.err = d.do(d.e, &o, d.value); d.err == nil {
		d.e.Ops = append(d.e.Ops, o)
	}
}

func (d *draftEvent) effect(word, id string) {
	d.e.Effects = append(d.e.Effects, Effect{word, id})
}

// evaluate computes a proposition's state anew and records it if it changed or
// rests on new evidence.
func (d *draftEvent) evaluate(id string, c change) Status {
	pr := d.propositions.get(id)
	if pr == nil {
		d.err = errFit
		return Tentative
	}
	score, tr, _ := d.evaluation(d.p, pr, d.e.At, c)
	if tr.Next == tr.Prior && !c.evidence {
		return tr.Next
	}
	b := &BeliefOp{Proposition: id, Prior: tr.Prior, Next: tr.Next, Rule: tr.Rule, Score: score,
		WasUsable: pr.WasUsable, ContestedUpdates: pr.ContestedUpdates}
	if c.support {
		b.WasUsable = tr.Next.Usable()
	}
	if tr.Next != Contested {
		b.ContestedUpdates = 0
	} else if c.evidence {
		b.ContestedUpdates++
	}
	d.add(Op{Belief: b})
	if tr.Next != tr.Prior || tr.Rule != pr.Rule {
		d.out = append(d.out, Changed{id, tr.Prior, tr.Next, tr.Rule, score.Confidence, score.Support, score.Contradiction, score.Freshness, d.e.At})
	}
	return tr.Next
}

// attach links observations to a proposition and returns which were new, and
// the highest level at which one was linked.
func (d *draftEvent) attach(typ EdgeType, id string, obs []string, at string, quoted bool) (fresh []string, level int) {
	level = -1
	pr := d.propositions.get(id)
	var cited []*witness
	if d.p.Flags.Grounded {
		cited = d.witnesses(obs)
	}
	for i, o := range obs {
		if l := d.links.get(join(string(typ), o, id)); l != nil {
			continue
		}
		ob := d.observations.get(o)
		ed := &Edge{ID: d.mint("edge"), Type: typ, From: o, To: id, Group: ob.Group, Class: ob.Class, Level: ob.Level,
			Reliability: d.weigh(ob, pr), RecordedAt: ob.RecordedAt, Quoted: quoted, Decision: mintID("dec", d.e.N, 1)}
		if d.p.Flags.Grounded {
			ed.Statement = ob.Evidence
		}
		switch {
		case cited == nil:
		case typ == Contradicts:
			ed.Challenge = d.disputes(cited[i], pr)
		case ob.Level > 0 && !d.bears(cited[i], pr, cited):
			d.inferred(ed)
			d.effect("evidence.counted_as_inference", o)
		}
		d.add(Op{At: at, Edge: ed})
		fresh = append(fresh, o)
		level = max(level, ed.Level)
	}
	return fresh, level
}

// weigh is what one observation's word is worth for a proposition: its
// source's reliability, less outside of the source's domain.
func (d *draftEvent) weigh(ob *Observation, pr *Proposition) Micro {
	r := ob.Reliability
	src, pd := d.sources.get(ob.Source), d.predicates.get(pr.Predicate)
	if src == nil || len(src.Domains) == 0 || pd != nil && pd.Domain != "" && slices.Contains(src.Domains, pd.Domain) {
		return r
	}
	return mulMicro(r, d.p.Trust.DomainFactor)
}

// noteFailure keeps count of the groups that support what a test failed, and
// lifts the failure when there are enough.
func (d *draftEvent) noteFailure(id string, fresh []string) {
	pr := d.propositions.get(id)
	if !pr.Failed {
		return
	}
	by := slices.Clone(pr.ClearedBy)
	for _, o := range fresh {
		if ob := d.observations.get(o); d.levelOf(Supports, o, id) >= 2 {
			by = addOnce(by, ob.Group)
		}
	}
	m := &MarkOp{Proposition: id, ClearedBy: &by}
	if len(by) >= int(d.p.Thresholds.FailureClearedBy) {
		no, none := false, []string{}
		m.Failed, m.ClearedBy = &no, &none
	}
	d.add(Op{Mark: m})
}

// support is what follows from new support: the slot has one current value, or
// is contested, and what was touched is evaluated.
func (d *draftEvent) support(id string, fresh []string, level int) {
	d.noteFailure(id, fresh)
	pr := d.propositions.get(id)
	if pr.Archived != "" {
		var back Rule
		d.add(Op{Mark: &MarkOp{Proposition: id, Archived: &back}})
	}
	var others []string
	sl := d.slots.get(pr.Slot)
	if d.p.Flags.Supersession && sl != nil && sl.Single && pr.Open() && level >= 0 && !pr.Failed {
		for _, o := range sl.Current {
			if other := d.propositions.get(o); o != id && !other.Failed && !d.sameValue(other, pr) {
				others = append(others, o)
			}
		}
	}
	for _, o := range others {
		d.rival(id, o, fresh, level)
	}
	d.evaluate(id, change{support: true, evidence: true})
	for _, o := range others {
		d.evaluate(o, change{evidence: true})
	}
}

// rival decides between a value with new support and another open value of
// its slot.
func (d *draftEvent) rival(id, other string, fresh []string, level int) {
	v2, v1 := d.propositions.get(id), d.propositions.get(other)
	l2, l1 := v2.supportLevel(), v1.supportLevel()
	at := d.validAt(v2, fresh)
	if soon := d.now() + d.p.lead(); at > soon || v1.ValidFrom > soon {
		return // what is said of the future takes no place before its time
	}
	if l2 < 2 || level < 2 {
		return // what strangers add moves no value, up or down
	}
	// Times that were claimed may lead the clock a little; that little decides
	// nothing, and what strangers claim decides nothing at all.
	older := at+d.p.lead() < v1.ValidFrom || d.p.Flags.Grounded && d.saidBefore(v2.ID, v1.ID)
	if l1 >= 2 && older && d.mayReplace(d.p, v1, v2, l1, l2) {
		// What was said of an earlier time is history, and ends where the
		// current value begins. Left open it could be accepted beside that one.
		// But the order in which an agent records two statements gives neither
		// a standing it does not have: a person's earlier word against a
		// tool's later one is a dispute, whichever came first.
		d.supersede(v1, v2, v1.ValidFrom)
		return
	}
	if (l1 < 2 || !older) && d.mayReplace(d.p, v2, v1, l2, l1) {
		end := at
		if len(v1.Challenged) > 0 && v1.ValidFrom > v2.ValidFrom {
			end = v1.ValidFrom // it never was the current value
		}
		d.supersede(v2, v1, end)
		return
	}
	for _, o := range fresh {
		ob := d.observations.get(o)
		if d.levelOf(Supports, o, id) < min(l1, 2) || d.links.get(join(string(Contradicts), o, other)) != nil || d.links.get(join(string(Supports), o, other)) != nil {
			continue
		}
		ed := &Edge{ID: d.mint("edge"), Type: Contradicts, From: o, To: other, Group: ob.Group, Class: ob.Class, Level: ob.Level,
			Reliability: d.weigh(ob, v1), RecordedAt: ob.RecordedAt, Challenge: id, Decision: mintID("dec", d.e.N, 1)}
		if d.p.Flags.Grounded {
			ed.Statement = ob.Evidence
		}
		d.add(Op{Edge: ed})
	}
	for _, p := range [][2]string{{id, other}, {other, id}} {
		rivals := addOnce(slices.Clone(d.propositions.get(p[0]).Challenged), p[1])
		d.add(Op{Mark: &MarkOp{Proposition: p[0], Challenged: &rivals}})
	}
	d.touch(other)
	d.effect("slot.contested", other)
}

// newestSeen is, by session, the newest evidence of level 2 and more that bears
// a value out.
func (d *draftEvent) newestSeen(id string) map[string]uint32 {
	out := map[string]uint32{}
	for _, ed := range d.edgesAt(id) {
		if ed.Type == Supports && ed.Active() && ed.Level >= 2 {
			if ev, err := writ.ParseEvidenceID(ed.Statement); err == nil {
				out[ev.Session] = max(out[ev.Session], ev.Number)
			}
		}
	}
	return out
}

// spokeBefore reports whether an observation is of a time before a claim, or was
// seen before the newest that bears the claim out.
func (d *draftEvent) spokeBefore(ob *Observation, pr *Proposition) bool {
	ev, err := writ.ParseEvidenceID(ob.Evidence)
	return ob.EventTime+d.p.lead() < pr.ValidFrom || err == nil && ev.Number < d.newestSeen(pr.ID)[ev.Session]
}

// saidBefore reports whether, in a session that says both, all that bears out
// one value was seen before the newest that bears out the other.
func (d *draftEvent) saidBefore(a, b string) bool {
	as, bs, before := d.newestSeen(a), d.newestSeen(b), false
	for s, n := range as {
		if m, both := bs[s]; both && n < m {
			before = true
		} else {
			return false // it was said elsewhere, or later, too
		}
	}
	return before
}

// touch brings a proposition that a proposal changed into its workspace, so
// that the next consolidation judges it.
func (d *draftEvent) touch(id string) {
	if d.e.Session != "" {
		d.add(Op{Touch: &TouchOp{id, LowImpact}})
	}
}

// now is the time of the event, never before what was recorded earlier.
func (d *draftEvent) now() Instant { return max(d.e.At, d.latest) }

// mayReplace says whether v2 has the standing to take v1's place. What a person
// said of himself nobody else's word alone replaces.
func (s *State) mayReplace(p *Policy, v2, v1 *Proposition, l2, l1 int) bool {
	himself := s.saidByHimself(v1) && !s.saidByHimself(v2) && !v2.saidByOperator()
	if l2 >= l1 && !himself || l2 < l1 && p.Flags.ToolMaySupersedeUser {
		return true
	}
	return v2.strongGroups() >= 2 && p.strongSupport(v2) >= p.strongSupport(v1)
}

// strongSupport is the score of the support of level 2 and more. What strangers
// add to either side of a dispute does not decide it.
func (p *Policy) strongSupport(pr *Proposition) Micro {
	return p.Score(Evidence{Support: p.counted(pr.Support, 2), Volatility: pr.Volatility}).Support
}

// validAt is the time from which the new support speaks.
func (d *draftEvent) validAt(v2 *Proposition, fresh []string) Instant {
	at := v2.ValidFrom
	if v2.Decision == mintID("dec", d.e.N, 1) {
		return at
	}
	for _, o := range fresh {
		if !d.p.Flags.Grounded || d.levelOf(Supports, o, v2.ID) >= min(v2.supportLevel(), 2) {
			at = max(at, d.observations.get(o).EventTime)
		}
	}
	return at
}

// supersede puts winner in the place of loser, whose validity ends, and closes
// what they held against each other.
func (d *draftEvent) supersede(winner, loser *Proposition, end Instant) {
	w, l := winner.ID, loser.ID
	end = max(end, loser.ValidFrom)
	for _, p := range []*Proposition{winner, loser} {
		if len(p.Challenged) == 0 {
			continue // nothing was held against it by a rival
		}
		for _, ed := range d.edgesAt(p.ID) {
			if ed.Type == Contradicts && ed.Active() && (ed.Challenge == w || ed.Challenge == l) {
				d.add(Op{Close: &CloseOp{Edge: ed.ID, Resolution: "superseded", By: w}})
			}
		}
	}
	if d.links.get(join(string(Supersedes), w, l)) == nil {
		d.add(Op{Edge: &Edge{ID: d.mint("edge"), Type: Supersedes, From: w, To: l, RecordedAt: d.e.At, Decision: mintID("dec", d.e.N, 1)}})
	}
	m := &MarkOp{Proposition: l, SupersededBy: &w, ValidTo: &end}
	if no := false; loser.Canonical {
		m.Canonical = &no
	}
	d.add(Op{Mark: m})
	d.touch(l)
	d.unchallenge(l, "superseded", w)
	d.effect("proposition.superseded", l)
}

// unchallenge ends every dispute that a value had with others of its slot:
// what it held against them no longer counts.
func (d *draftEvent) unchallenge(loser, resolution, by string) {
	for _, other := range slices.Clone(d.propositions.get(loser).Challenged) {
		rest := slices.DeleteFunc(slices.Clone(d.propositions.get(other).Challenged), func(id string) bool { return id == loser })
		if rest == nil {
			rest = []string{}
		}
		d.add(Op{Mark: &MarkOp{Proposition: other, Challenged: &rest}})
		for _, ed := range d.edgesAt(other) {
			if ed.Active() && ed.Challenge == loser {
				d.add(Op{Close: &CloseOp{Edge: ed.ID, Resolution: resolution, By: by}})
			}
		}
	}
	d.add(Op{Mark: &MarkOp{Proposition: loser, Challenged: &[]string{}}})
}

// sameValue reports whether two propositions of one slot say the same.
func (s *State) sameValue(a, b *Proposition) bool {
	if a.Object != "" || b.Object != "" {
		return s.resolve(a.Object) == s.resolve(b.Object)
	}
	if a.Literal != "" || b.Literal != "" {
		return a.Literal == b.Literal
	}
	return strings.EqualFold(a.Text, b.Text)
}
