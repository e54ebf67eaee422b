package memory

import (
	"slices"
	"strconv"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

func (j *judge) proposeTest() *refusal {
	ids := j.lists["proposition_ids"]
	for i, id := range ids {
		at := strictjson.Pointer([]string{"proposition_ids", strconv.Itoa(i)})
		switch pr := j.d.propositions.get(id); {
		case pr == nil:
			return refuse(at, writ.MemoryTarget, "a proposition that exists")
		case pr.Gone:
			return refuse(at, writ.PropositionClosed, "a proposition that was not erased")
		case pr.Slot == "":
			return refuse(at, writ.MemoryUnborne, "a proposition with a value, for a test ends with an observation that has one in it; propose it with structured_form")
		}
	}
	var predicted []Predicted
	ms, _ := strictjson.Members(j.m["discriminates"])
	for _, m := range ms {
		if !slices.Contains(ids, m.Name) {
			return refuse("/discriminates", writ.SchemaInvalid, "an outcome for each of proposition_ids and for no other")
		}
		predicted = append(predicted, Predicted{m.Name, textOf(m.Value)})
	}
	if len(predicted) != len(ids) {
		return refuse("/discriminates", writ.SchemaInvalid, "an outcome for each of proposition_ids")
	}
	slices.SortFunc(predicted, func(a, b Predicted) int { return compareID(a.Proposition, b.Proposition) })
	p := j.c.Policy
	w := j.task()
	if w.OpenTests >= int(p.Caps.OpenTestsPerTask) {
		return refuse("", writ.TestSpawnCap, "a task has at most "+count(p.Caps.OpenTestsPerTask)+" open tests; report how one of them ended")
	}
	id := j.d.mint("test")
	j.d.add(Op{Test: &Test{ID: id, Propositions: ids, Kind: TestKind(j.texts["kind"]), Outcomes: predicted, Status: TestProposed, Rationale: j.lists["rationale_observation_ids"],
		Session: j.c.Session, Task: j.c.Task, CreatedAt: j.e.At, ExpiresAt: j.e.At + Instant(int64(p.Caps.TestHours)/1000)}})
	j.d.effect("test.proposed", id)
	return nil
}

// testResult is execute_test_result_ingest: the result is an observation like any
// other, and what it shows is read from it, never from what the caller says.
func (j *judge) testResult() *refusal {
	t := j.d.tests.get(j.texts["test_id"])
	switch {
	case t == nil:
		return refuse("/test_id", writ.MemoryTarget, "a test that exists")
	case t.Status != TestProposed || t.ExpiresAt < j.e.At:
		return refuse("/test_id", writ.TestClosed, "a test that is open; propose one anew")
	}
	in := &judge{s: j.s, c: j.c, e: j.e, t: j.t, d: j.d}
	if r := in.read(j.m["observation"], observationFields); r != nil {
		r.at = "/observation" + r.at
		return r
	}
	for _, e := range in.changed {
		j.transform(e.Effect, "/observation"+e.ID)
	}
	j.set("observation", in.payload())
	id, again, r := j.told("/observation", in)
	if r != nil {
		return r
	}
	ob := j.d.observations.get(id)
	j.noValue = again // as recordObservation: its words stand in one record alone
	if again && ob.Status != Ingested {
		return refuse("/observation", writ.MemoryQuarantined, "an observation that is neither quarantined nor distrusted")
	}
	status := TestInconclusive
	if ob.Status == Ingested {
		status = j.d.outcome(t, ob)
	}
	j.d.add(Op{EndTest: &EndTestOp{Test: t.ID, Status: status, Result: id}})
	j.d.effect("test."+string(status), t.ID)
	return nil
}

// outcome is what an observation says of a test, which is evidence of that.
func (d *draftEvent) outcome(t *Test, ob *Observation) TestStatus {
	status := TestInconclusive
	for _, p := range t.Propositions {
		if pr := d.propositions.get(p); !pr.Gone && d.bears(d.witness(ob), pr) {
			status = TestPassed
			d.attach(p, []string{ob.ID}, "", false)
		}
	}
	for _, p := range t.Propositions {
		if rival := d.rivalIn(ob, d.propositions.get(p)); rival != "" && status != TestPassed {
			status = TestFailed
			d.attach(rival, []string{ob.ID}, "", false)
		}
	}
	return status
}
