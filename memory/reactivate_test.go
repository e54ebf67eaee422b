package memory

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
)

// TestReactivate: what is brought back is looked at again and is no evidence:
// no state, no tally and no list of what is carried over differs from a memory
// where it was not, but where a consolidation finds it fit or unfit.
func TestReactivate(t *testing.T) {
	x := newScript(t)
	x.evidence = []seen{{"ev1", "a/x", "the lamp is lamp-1 and the desk is desk-2", writ.System, ""}}
	for _, l := range []string{
		`record_observation {"observation_id":"o1","raw_payload":"the lamp is lamp-1 and the desk is desk-2"}`,
		`create_or_link_entity_candidate {"name":"the lamp","entity_type":"thing","observation_ids":["o1"]}`,
		`propose_proposition {"text":"it is lamp-1","observation_ids":["o1"],"about":["$ent1"]}`,
		`propose_proposition {"text":"the desk is desk-2","observation_ids":["o1"],"about":["$ent1"]}`,
		`request_consolidation {"reason":"task_boundary"}`,
	} {
		if got := x.line(l); strings.HasPrefix(got, "rejected") {
			t.Fatal(l, got)
		}
	}
	props := slices.Clone(x.made["prop"])
	load := func(ids ...string) Decision {
		t.Helper()
		d := Reactivate(x.s, x.c, ids)
		if d.Event == nil {
			t.Fatalf("%+v", d.Outcome)
		}
		b, err := d.Event.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if e, err := ParseEvent(b); err != nil || e.Tool != ToolReactivate {
			t.Fatal(err)
		}
		if ok, err := Recheck(x.s, x.c.Policy, d.Event, d.Value); err != nil || !ok && d.Outcome.Status != writ.Rejected {
			t.Errorf("decided again: %v %v", ok, err)
		}
		if err := x.s.Apply(d.Event, d.Value); err != nil {
			t.Fatal(err)
		}
		return d
	}
	if got := x.s.Loadable(x.c.Session, x.c.Task, props); len(got) != 0 {
		t.Errorf("of its own task: %v", got)
	}
	// A task that is full takes no more.
	x.c.Task = "full"
	for i := range maxLoaded - 1 {
		x.s.items.put(join("s1", "full", strconv.Itoa(i)), &Item{})
		x.s.ix.taskItems[join("s1", "full")] = append(x.s.ix.taskItems[join("s1", "full")], join("s1", "full", strconv.Itoa(i)))
	}
	if got := x.s.Loadable("s1", "full", props); !slices.Equal(got, props[:1]) {
		t.Errorf("of a full one: %v", got)
	}
	for i := range maxLoaded - 1 {
		delete(x.s.items.rows, join("s1", "full", strconv.Itoa(i)))
	}
	delete(x.s.ix.taskItems, join("s1", "full"))
	// In another task, and of that nothing was done in it.
	x.c.Task = "t2"
	if d := load(append(props, "prop_99")...); len(d.Outcome.Effects) != 2 || d.Outcome.Effects[0] != (Effect{"workspace.loaded", props[0]}) {
		t.Errorf("%+v", d.Outcome)
	}
	if !x.s.HasTask("s1", "t2") || x.s.HasTask("s1", "t3") || x.s.HasTask("s2", "t2") {
		t.Error("the tasks there are")
	}
	if d := load(props...); len(d.Outcome.Effects) != 0 {
		t.Errorf("again: %+v", d.Outcome)
	}
	for _, ids := range [][]string{nil, {"obs_2"}, {`prop_1","x`}, {"prop_1\"],\"x\":[\""}} {
		if d := load(ids...); d.Outcome.Rejection == nil || d.Outcome.Rejection.Code != writ.InvalidPayload {
			t.Errorf("%q: %+v", ids, d.Outcome)
		}
	}
	before := *x.s.propositions.get(props[0])
	carried := slices.Clone(x.s.carry.get("carry").Items)
	if len(carried) == 0 {
		t.Fatal("nothing is carried over")
	}
	x.line(`record_observation {"observation_id":"o2","raw_payload":"a note","source_ref":"note"}`)
	if got := x.line(`request_consolidation {"reason":"task_boundary"}`); strings.HasPrefix(got, "rejected") || strings.Contains(got, string(RuleDiscarded)) {
		t.Error(got)
	}
	after := *x.s.propositions.get(props[0])
	if after.Status != before.Status || after.Archived != "" || after.Canonical || !slices.Equal(after.Support, before.Support) {
		t.Errorf("%+v, before %+v", after, before)
	}
	for i, c := range x.s.carry.get("carry").Items {
		if c.Proposition != carried[i].Proposition || c.Untouched != carried[i].Untouched+1 {
			t.Errorf("carried: %+v, before %+v", c, carried[i])
		}
	}
	if got := x.line(`archive_episode {}`); !strings.Contains(got, "episode.archived") {
		t.Error(got)
	}
	ep := x.s.episodes.get(x.made["epi"][0])
	if len(ep.CarriedOver)+len(ep.Archived)+len(ep.Discarded)+len(ep.Promoted) != 0 {
		t.Errorf("%+v", ep)
	}
	// It is the name of no proposal.
	if d := Handle(x.s, x.c, writ.Proposal{ToolName: ToolReactivate, Payload: []byte(`{"proposition_ids":["` + props[0] + `"]}`)}); d.Outcome.Rejection == nil || d.Outcome.Rejection.Code != writ.InvalidToolName {
		t.Errorf("%+v", d.Outcome)
	}
}
