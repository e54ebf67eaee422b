package memory

import (
	"cmp"
	"slices"

	writ "github.com/writ-project/writ"
)

// consolidate is request_consolidation: the only way into canonical memory.
func (j *judge) consolidate() *refusal {
	w := j.d.workspaces.get(join(j.c.Session, j.c.Task))
	if w.Observations == 0 {
		return refuse("", writ.MemoryEmpty, "a task that has recorded an observation")
	}
	boundary := j.texts["reason"] == "task_boundary"
	rule := j.c.Policy.Due(boundary, w.NewSince)
	if rule == RuleNotDue {
		return refuse("/reason", writ.ConsolidationNotDue, "task_boundary at the end of the task, or a checkpoint after "+count(j.c.Policy.Consolidation.Cadence)+" new observations")
	}
	j.d.consolidate(j.c.Session, j.c.Task, rule, boundary)
	j.d.effect(string(rule), "")
	j.d.forecasts()
	return nil
}

// consolidate classifies what a task works on, all at one time.
func (d *draftEvent) consolidate(session, task string, rule Rule, boundary bool) {
	c := &ConsolidateOp{Session: session, Task: task, Rule: rule, Promoted: []string{}, Archived: []string{}, Discarded: []string{}, Carried: []string{}, Carry: []Carry{}}
	key := join(session, task)
	var open []string // to be carried over
	items := map[string]*Item{}
	var settle []string
	put := func(id string, m MarkOp) {
		m.Proposition = id
		d.add(Op{Mark: &m})
	}
	yes, no := true, false
	for _, it := range d.itemsOf(key) {
		if it.Outcome != "" {
			continue
		}
		id := it.Proposition
		if it.Touches > 0 {
			items[id] = it
		}
		d.evaluate(id, change{})
		pr := d.propositions.get(id)
		score := d.p.Score(d.p.evidence(pr, d.e.At))
		ok, why := d.p.Promotable(pr.Status, score.Freshness, pr.Canonical)
		evidence := len(pr.Support)+len(pr.Contradict) > 0
		switch {
		case ok && pr.Open():
			c.Promoted = append(c.Promoted, id)
			if !pr.Canonical {
				put(id, MarkOp{Canonical: &yes})
			}
			settle = append(settle, pr.About...)
			d.effect(string(why), id)
			continue
		case pr.Canonical:
			put(id, MarkOp{Canonical: &no})
		}
		d.effect(string(why), id)
		switch {
		case it.Touches == 0: // only read here: it stays where it was
		case pr.Status == Rejected || pr.Status == Deprecated || !pr.Open():
			because := pr.Rule
			put(id, MarkOp{Archived: &because})
			c.Archived = append(c.Archived, id)
		case pr.Status == Tentative && (!evidence || it.Born && !it.Carried && it.Touches < 2 && it.Impact == LowImpact):
			because := RuleDiscarded
			put(id, MarkOp{Archived: &because})
			c.Discarded = append(c.Discarded, id)
		default:
			open = append(open, id)
		}
	}
	slices.SortFunc(open, func(a, b string) int {
		pa, pb := d.propositions.get(a), d.propositions.get(b)
		return cmp.Or(
			-compareBool(pa.Status == Contested, pb.Status == Contested),
			-compareBool(d.testOpen(a), d.testOpen(b)),
			-cmp.Compare(items[a].Impact.rank(), items[b].Impact.rank()),
			-cmp.Compare(pa.Score.Confidence, pb.Score.Confidence),
			compareID(a, b))
	})
	kept, overflow := d.p.carry(open)
	c.Carried = append(c.Carried, kept...)
	for _, id := range overflow {
		because := RuleOverflow
		put(id, MarkOp{Archived: &because})
		c.Archived = append(c.Archived, id)
		c.Overflow = RuleOverflow
	}
	// What earlier tasks handed on and this one did not touch.
	var before []Carry
	if l := d.carry.get("carry"); l != nil {
		before = l.Items
	}
	for _, old := range before {
		pr := d.propositions.get(old.Proposition)
		if items[old.Proposition] != nil || pr.Canonical || pr.Archived != "" || !pr.Open() {
			continue
		}
		if boundary {
			old.Untouched++
		}
		if old.Untouched >= int(d.p.Consolidation.ExpireAfter) {
			because := RuleCarryExpired
			put(old.Proposition, MarkOp{Archived: &because})
			d.effect(string(RuleCarryExpired), old.Proposition)
			c.Archived = append(c.Archived, old.Proposition)
			continue
		}
		c.Carry = append(c.Carry, old)
	}
	for _, id := range kept {
		c.Carry = append(c.Carry, Carry{Proposition: id})
	}
	d.settle(settle)
	d.add(Op{Consolidate: c})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (d *draftEvent) testOpen(id string) bool {
	return slices.ContainsFunc(d.ix.testsOf[id], func(t string) bool { return d.tests.get(t).Status == TestProposed })
}

// settle makes entities canonical that something promoted is about, unless
// they may well be another canonical one.
func (d *draftEvent) settle(ids []string) {
	for _, id := range ids {
		id = d.resolve(id)
		en := d.entities.get(id)
		if en == nil || en.Canonicality != Candidate {
			continue
		}
		if slices.ContainsFunc(en.PossibleSames, func(s PossibleSame) bool {
			other := d.entities.get(s.Entity)
			return other.Canonicality == Canonical && s.Similarity >= d.p.Entities.CanonicalSimilarity
		}) {
			d.effect("entity.identity_unresolved", id)
			continue
		}
		d.add(Op{Settle: &SettleOp{id}})
		d.effect("entity.canonical", id)
	}
}

// itemsOf returns the items of a workspace by proposition.
func (s *State) itemsOf(workspace string) (out []*Item) {
	for _, k := range s.ix.taskItems[workspace] {
		out = append(out, s.items.get(k))
	}
	slices.SortFunc(out, func(a, b *Item) int { return compareID(a.Proposition, b.Proposition) })
	return out
}

// archive is archive_episode.
func (j *judge) archive() *refusal {
	if id, given := j.texts["episode_id"]; given {
		if j.d.episodes.get(id) == nil {
			return refuse("/episode_id", writ.MemoryTarget, "an episode that exists")
		}
		j.d.effect("episode.already_archived", id)
		j.noValue = true // a summary said again is kept where it stands
		return nil
	}
	retention := Standard
	if r, given := j.texts["retention_class"]; given {
		retention = RetentionClass(r)
	}
	if retention == LegalHold {
		return refuse("/retention_class", writ.EpisodeHold, "transient or standard: only an operator places a hold")
	}
	obs, r := j.cited("observation_ids")
	if r != nil {
		return r
	}
	_, summary := j.texts["summary_text"]
	if summary && len(obs) == 0 {
		return refuse("/observation_ids", writ.MemoryMissing, "the observations the summary rests on")
	}
	key := join(j.c.Session, j.c.Task)
	w := j.d.workspaces.get(key)
	switch {
	case w.Episode != "" && w.LastObservation <= w.LastConsolidation:
		j.d.effect("episode.already_archived", w.Episode)
		j.noValue = true
		return nil
	case w.LastConsolidation == 0 || w.LastObservation > w.LastConsolidation:
		return refuse("", writ.EpisodePending, "request_consolidation with reason task_boundary, after the last observation")
	}
	j.d.value = j.value()
	ep := &Episode{ID: j.d.mint("epi"), Session: j.c.Session, Task: j.c.Task, StartedAt: w.StartedAt, EndedAt: j.e.At, Sources: obs, Retention: retention}
	ep.ExpiresAt = j.expiry(retention)
	if summary {
		o := &Observation{ID: j.d.mint("obs"), Client: "summary/" + ep.ID, Source: "agent:" + j.c.Principal, Class: ClassAgentInference,
			Label: writ.Model, Group: "pool:" + string(ClassAgentInference), Reliability: j.c.Policy.Trust.AgentInference.Reliability,
			Principal: j.c.Principal, Session: j.c.Session, Task: j.c.Task, RecordedAt: j.e.At, EventTime: j.now(), Lineage: obs, Status: Ingested}
		j.d.add(Op{At: "/payload", Observation: o})
		ep.Summary = o.ID
	}
	for _, it := range j.d.itemsOf(key) {
		switch it.Outcome {
		case WasPromoted:
			ep.Promoted = append(ep.Promoted, it.Proposition)
		case WasArchived:
			ep.Archived = append(ep.Archived, it.Proposition)
		case WasDiscarded:
			ep.Discarded = append(ep.Discarded, it.Proposition)
		default:
			if it.Touches == 0 {
				continue // only read here
			}
			ep.CarriedOver = append(ep.CarriedOver, it.Proposition)
		}
	}
	for _, id := range j.s.ix.taskTests[key] {
		t := j.d.tests.get(id)
		carried := slices.ContainsFunc(t.Propositions, func(p string) bool { return slices.Contains(ep.CarriedOver, p) })
		if t.Status == TestProposed && !carried {
			j.d.add(Op{EndTest: &EndTestOp{Test: id, Status: TestExpired}})
			j.d.effect("test.expired", id)
		}
	}
	j.d.add(Op{Episode: ep})
	j.d.effect("episode.archived", ep.ID)
	return nil
}
