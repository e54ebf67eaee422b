package memory

import (
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// Outcomes of a test that no proposition can predict.
const (
	outcomeInconclusive = "inconclusive"
	outcomeOther        = "other" // none of the predicted ones came about
)

// proposeTest is propose_test.
func (j *judge) proposeTest() *refusal {
	why, r := j.cited("rationale_observation_ids")
	if r != nil {
		return r
	}
	ids := j.lists["proposition_ids"]
	for i, id := range ids {
		at := strictjson.Pointer([]string{"proposition_ids", strconv.Itoa(i)})
		switch pr := j.d.propositions.get(id); {
		case pr == nil:
			return refuse(at, writ.MemoryTarget, "a proposition that exists")
		case !pr.Open():
			return refuse(at, writ.PropositionClosed, "a proposition that was not superseded or erased")
		}
	}
	var predicted []Predicted
	distinct := map[string]bool{}
	ms, _ := strictjson.Members(j.m["discriminates"])
	for _, m := range ms {
		if !slices.Contains(ids, m.Name) {
			return refuse("/discriminates", writ.SchemaInvalid, "an outcome for each of proposition_ids and for no other")
		}
		o := textOf(m.Value)
		if o == outcomeOther {
			return refuse("/discriminates", writ.SchemaInvalid, "outcomes that are neither other nor inconclusive")
		}
		distinct[o] = true
		predicted = append(predicted, Predicted{m.Name, o})
	}
	if len(predicted) != len(ids) || len(ids) > 1 && len(distinct) < 2 {
		return refuse("/discriminates", writ.SchemaInvalid, "an outcome for each of proposition_ids, and at least two different ones for two")
	}
	slices.SortFunc(predicted, func(a, b Predicted) int { return compareID(a.Proposition, b.Proposition) })
	p := j.c.Policy
	for i, id := range ids {
		if p.Flags.Grounded && j.d.propositions.get(id).Slot == "" {
			return refuse(strictjson.Pointer([]string{"proposition_ids", strconv.Itoa(i)}), writ.MemoryUnborne,
				"a proposition with a value, for a test ends with an observation that has one in it; propose it with structured_form")
		}
	}
	w := j.d.workspaces.get(join(j.c.Session, j.c.Task))
	if w.OpenTests >= int(p.Caps.OpenTestsPerTask) {
		return refuse("", writ.TestSpawnCap, "a task has at most "+count(p.Caps.OpenTestsPerTask)+" open tests; report how one of them ended")
	}
	impact := Impact(j.texts["action_impact"])
	var tr Triggered
	for _, id := range ids {
		u := j.d.uncertainty(id, ids, impact, j.c)
		u.Cost, u.Benefit = j.units["estimated_cost"], j.units["estimated_benefit"]
		if tr = p.ShouldTest(u); tr.Trigger || tr.Suppressed {
			break
		}
	}
	if !tr.Trigger {
		return refuse("", writ.TestNotTriggered, "uncertainty that matters (rule "+string(tr.Rule)+"): competing claims, a lasting conflict, or more at stake than the test costs")
	}
	id := j.d.mint("test")
	j.d.value = j.value()
	j.d.add(Op{Test: &Test{ID: id, Propositions: ids, Kind: TestKind(j.texts["kind"]), Outcomes: predicted, Impact: impact,
		Cost: j.units["estimated_cost"], Benefit: j.units["estimated_benefit"], Status: TestProposed, Rule: tr.Rule, Rationale: why,
		Session: j.c.Session, Task: j.c.Task, CreatedAt: j.e.At, ExpiresAt: j.e.At + Instant(int64(p.Caps.TestHours)/1000)}})
	j.d.effect("test.proposed", id)
	j.d.effect(string(tr.Rule), id)
	for _, pr := range ids {
		j.d.add(Op{Touch: &TouchOp{pr, impact}})
	}
	return nil
}

// uncertainty is how open a proposition is, among those it competes with: the
// open values of its slot, or else those that are tested beside it.
func (d *draftEvent) uncertainty(id string, tested []string, impact Impact, c Context) Uncertainty {
	pr := d.propositions.get(id)
	rivals := tested
	accepted := false
	if sl := d.slots.get(pr.Slot); sl != nil {
		rivals = sl.Current
		for _, r := range rivals {
			accepted = accepted || d.propositions.get(r).Status == Accepted
		}
	}
	score := d.p.Score(d.p.evidence(pr, d.e.At))
	var first, second Micro = -1, -1
	for _, r := range rivals {
		s := score
		if r != id {
			s = d.p.Score(d.p.evidence(d.propositions.get(r), d.e.At))
		}
		switch {
		case s.Confidence > first:
			first, second = s.Confidence, first
		case s.Confidence > second:
			second = s.Confidence
		}
	}
	gap := One
	if second >= 0 {
		gap = first - second
	}
	against, last := 0, "\x00"
	for _, t := range pr.Contradict {
		if t.Group != last {
			against++
			last = t.Group
		}
	}
	return Uncertainty{Impact: impact, Gap: gap, ContestedUpdates: pr.ContestedUpdates, Contradictions: against,
		Novelty:    impact.rank() > 0 && pr.Session == c.Session && pr.Task == c.Task && !accepted,
		Confidence: score.Confidence, Groups: score.SupportGroups}
}

// testResult is execute_test_result_ingest: the result is an observation like
// any other, and what it decides depends on who says so.
func (j *judge) testResult() *refusal {
	t := j.d.tests.get(j.texts["test_id"])
	switch {
	case t == nil:
		return refuse("/test_id", writ.MemoryTarget, "a test that exists")
	case t.Status != TestProposed || t.ExpiresAt < j.e.At:
		return refuse("/test_id", writ.TestClosed, "a test that is open; propose one anew")
	}
	outcome := j.texts["outcome"]
	matches := slices.ContainsFunc(t.Outcomes, func(p Predicted) bool { return p.Outcome == outcome })
	if !matches && outcome != outcomeInconclusive && outcome != outcomeOther {
		return refuse("/outcome", writ.SchemaInvalid, "one of the outcomes the test names, other, or inconclusive")
	}
	in := &judge{s: j.s, c: j.c, e: j.e, t: j.t, d: j.d}
	if r := in.read(j.m["observation"], observationFields); r != nil {
		r.at = "/observation" + r.at
		return r
	}
	if !parsedOK(in.m["parsed_payload"]) {
		return refuse("/observation/parsed_payload", writ.SchemaInvalid, "an object of at most 64 KiB")
	}
	for _, e := range in.changed {
		j.transform(e.Effect, "/observation"+e.ID)
	}
	j.set("observation", in.payload())
	lineage, r := in.cited("derived_from")
	if r != nil {
		r.at = "/observation" + r.at
		return r
	}
	at, given := in.times["event_time"]
	if !given {
		at = j.now()
	}
	id, again, r := j.observe("/observation", in.texts["observation_id"], in.texts["raw_payload"], in.texts["source_ref"], lineage, at, given)
	if r != nil {
		return r
	}
	ob := j.d.observations.get(id)
	if again && ob.Status != Ingested {
		return refuse("/observation", writ.MemoryQuarantined, "an observation that is neither quarantined nor distrusted")
	}
	for _, p := range t.Propositions {
		// Who foretold something may say, when its time has come, that it came.
		afterwards := t.Rule == RuleTriggerForecast && !again && ob.EventTime >= j.d.propositions.get(p).ValidFrom
		if j.d.onlyGroup(p) == ob.Group && !afterwards {
			return refuse("/observation", writ.TestNotIndependent, "a result from another source than the only one that supports a tested proposition")
		}
	}
	status := TestPassed
	if outcome == outcomeInconclusive || ob.Status != Ingested {
		status = TestInconclusive
	} else if !matches {
		status = TestFailed
	}
	j.d.add(Op{EndTest: &EndTestOp{Test: t.ID, Status: status, Result: id}})
	j.d.effect("test."+string(status), t.ID)
	if status == TestInconclusive {
		return nil
	}
	// The outcome is the agent's word. What it does to a claim must be in the
	// observation: the claim's value, or another of the same question.
	shown := func(o Predicted) bool {
		pr := j.d.propositions.get(o.Proposition)
		switch {
		case !j.c.Policy.Flags.Grounded:
			return true
		case o.Outcome == outcome:
			return pr.Slot != "" && j.d.bears(j.d.witness(ob), pr, nil)
		}
		return j.d.disputes(j.d.witness(ob), pr) != ""
	}
	if !slices.ContainsFunc(t.Outcomes, func(o Predicted) bool { return (o.Outcome == outcome) == matches && shown(o) }) {
		return refuse("/observation", writ.MemoryUnborne, "an observation that has in it the value of the claim that predicts this outcome; for other, another value of the same subject and predicate, proposed before; else inconclusive")
	}
	yes := true
	for _, o := range t.Outcomes {
		if pr := j.d.propositions.get(o.Proposition); o.Outcome == outcome || !pr.Open() || j.d.links.get(join(string(Supports), id, o.Proposition)) != nil || !shown(o) {
			continue
		}
		j.d.add(Op{Touch: &TouchOp{o.Proposition, t.Impact}})
		j.d.attach(Contradicts, o.Proposition, []string{id}, "", false)
		// What a person said of himself nobody else's finding ends.
		failed := ob.Level >= 2 && (ob.Level >= 3 || !j.d.saidByHimself(j.d.propositions.get(o.Proposition)))
		if failed && j.c.Policy.Flags.DurableFailure {
			j.d.add(Op{Mark: &MarkOp{Proposition: o.Proposition, Failed: &yes, ClearedBy: &[]string{}}})
		}
		var rivals []string
		if failed && j.c.Policy.Flags.Supersession {
			rivals = slices.Clone(j.d.propositions.get(o.Proposition).Challenged)
			j.d.unchallenge(o.Proposition, "test", t.ID)
		}
		j.d.evaluate(o.Proposition, change{evidence: true, failed: failed})
		for _, r := range rivals {
			j.d.evaluate(r, change{evidence: true})
		}
	}
	for _, o := range t.Outcomes {
		if pr := j.d.propositions.get(o.Proposition); o.Outcome != outcome || !pr.Open() || j.d.links.get(join(string(Contradicts), id, o.Proposition)) != nil || !shown(o) {
			continue
		}
		j.d.add(Op{Touch: &TouchOp{o.Proposition, t.Impact}})
		if ob.Level >= 2 {
			j.d.add(Op{Mark: &MarkOp{Proposition: o.Proposition, Passed: &yes}})
		}
		if ob.Level >= 2 && j.c.Policy.Flags.DurableFailure {
			j.d.answered(o.Proposition, t.ID, ob.Level)
		}
		fresh, level := j.d.attach(Supports, o.Proposition, []string{id}, "", false)
		j.d.support(o.Proposition, fresh, level)
	}
	return nil
}

// answered closes what contradicted a claim before a test confirmed it, as far
// as the test's witness reaches.
func (d *draftEvent) answered(id, test string, level int) {
	for _, ed := range d.edgesAt(id) {
		if ed.Type == Contradicts && ed.Active() && ed.Level <= level {
			d.add(Op{Close: &CloseOp{Edge: ed.ID, Resolution: "test", By: test}})
		}
	}
}

// onlyGroup is the one group that supports a proposition, "" for none or
// several.
func (d *draftEvent) onlyGroup(id string) string {
	ts := d.propositions.get(id).Support
	for _, t := range ts {
		if t.Group != ts[0].Group {
			return ""
		}
	}
	if len(ts) == 0 {
		return ""
	}
	return ts[0].Group
}
