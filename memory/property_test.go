package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// A world draws proposals and commands, most of them ones that make sense, and
// keeps what the memory comes to.
type world struct {
	*script
	rt    *rapid.T
	level int // the highest level of evidence that is drawn
	n     int
}

var (
	worldTexts = []string{"red", "green", "blue", "Alice lives in Bern", `{"city":"Bern","id":"a-17"}`, "DE89370400440532013000"}
	// Half of what is observed bears most claims out.
	worldSaid = append([]string{"Bern 2020 ", "Basel 2021 ", "a-17 2020 ", "Bern Basel a-17 2020 2021 DE89370400440532013000 ",
		`{"city":"Bern","id":"a-17","year":2021} `, "Basel 2020 2021 a-17 "}, worldTexts...)
	worldNames = []string{"Alice", "alice", "Alicia", "Bob", "B0b", "Robert Miller", "Robert Millers", "Acme GmbH"}
	worldTools = []string{ToolRecordObservation, ToolRecordObservation, ToolRecordObservation, ToolEntity, ToolPropose, ToolPropose, ToolPropose,
		ToolAttachSupport, ToolAttachSupport, ToolAttachContra, ToolProposeTest, ToolTestResult, ToolConsolidate, ToolArchiveEpisode}
)

func newWorld(rt *rapid.T, t testing.TB, profile string, level int) *world {
	w := &world{script: newScript(t), rt: rt, level: level}
	w.c.Policy = builtinPolicy(t, profile)
	if level < 2 {
		w.c.Mode = Hardened
	} else {
		w.c.Mode = rapid.SampledFrom([]Mode{Hardened, Local}).Draw(rt, "mode")
	}
	w.operate(CommandOpen, []byte("{}"))
	w.operate(CommandPredicate, []byte(`{"name":"city","single":true}`))
	w.operate(CommandPredicate, []byte(`{"name":"colour"}`))
	w.operate(CommandPredicate, []byte(`{"name":"name","single":true,"self_report":true}`))
	// Enough to begin with that most of what is drawn makes sense.
	for range 8 {
		w.n++
		w.propose(ToolRecordObservation, []byte(fmt.Sprintf(`{"observation_id":"o%d","raw_payload":"red %d","source_ref":"ev1"}`, w.n, w.n)))
	}
	if len(w.made["obs"]) == 0 {
		w.propose(ToolRecordObservation, []byte(`{"observation_id":"first","raw_payload":"red","source_ref":"https://example.com"}`))
	}
	for _, e := range []string{"self", "person"} {
		w.line(`create_or_link_entity_candidate {"name":"Alice","entity_type":"` + e + `","observation_ids":["$obs1"]}`)
	}
	return w
}

func pickOf(rt *rapid.T, from []string, name string) string {
	if len(from) == 0 || rapid.IntRange(0, 40).Draw(rt, "odd") == 40 {
		return "prop_9999"
	}
	return rapid.SampledFrom(from).Draw(rt, name)
}

func (w *world) ids(prefix, name string, most int) []string {
	out := []string{}
	for range rapid.IntRange(1, most).Draw(w.rt, "how many") {
		out = append(out, pickOf(w.rt, w.made[prefix], name))
	}
	return out
}

func (w *world) observation() map[string]any {
	w.n++
	o := map[string]any{"observation_id": fmt.Sprintf("o%d", w.n-max(0, rapid.IntRange(-6, min(3, w.n-1)).Draw(w.rt, "id"))), "raw_payload": rapid.SampledFrom(worldSaid).Draw(w.rt, "text") + fmt.Sprint(w.n)}
	switch rapid.IntRange(0, 5).Draw(w.rt, "how it came") {
	case 0:
		o["source_ref"] = "https://example.com"
	case 1:
		o["source_ref"] = "user"
	case 2:
		o["source_ref"] = "a note"
		o["derived_from"] = w.ids("obs", "from", 2)
	}
	return o
}

func (w *world) form() map[string]any {
	f := map[string]any{
		"subject":   pickOf(w.rt, w.made["ent"], "subject"),
		"predicate": rapid.SampledFrom([]string{"city", "city", "city", "colour", "name", "free"}).Draw(w.rt, "predicate"),
		"object":    map[string]any{"literal": rapid.SampledFrom([]string{"Bern", "Basel", "a-17"}).Draw(w.rt, "value")},
	}
	if rapid.IntRange(0, 4).Draw(w.rt, "qualified") == 0 {
		f["qualifiers"] = map[string]any{"year": rapid.IntRange(2020, 2021).Draw(w.rt, "year")}
	}
	return f
}

// step makes one proposal.
func (w *world) step() Decision {
	w.c.Now = w.c.Now.Add(time.Duration(rapid.SampledFrom([]int64{0, 1, 60, 600, 3600, 30 * 3600}).Draw(w.rt, "pause")) * time.Second)
	w.c.Task = rapid.SampledFrom([]string{"t1", "t2"}).Draw(w.rt, "task")
	w.c.Principal = rapid.SampledFrom([]string{"alice", "alice", "alice", "bob"}).Draw(w.rt, "principal")
	tool := rapid.SampledFrom(worldTools).Draw(w.rt, "tool")
	p := map[string]any{}
	switch tool {
	case ToolRecordObservation:
		p = w.observation()
	case ToolEntity:
		p["name"] = rapid.SampledFrom(worldNames).Draw(w.rt, "name")
		p["entity_type"] = rapid.SampledFrom([]string{"person", "person", "self"}).Draw(w.rt, "type")
		p["observation_ids"] = w.ids("obs", "evidence", 1)
		if rapid.Bool().Draw(w.rt, "alias") {
			p["aliases"] = []string{rapid.SampledFrom(worldNames).Draw(w.rt, "alias")}
		}
	case ToolPropose:
		p["text"] = rapid.SampledFrom(worldTexts).Draw(w.rt, "claim")
		p["about"] = w.ids("ent", "about", 1)
		p["observation_ids"] = w.ids("obs", "evidence", 3)
		if rapid.IntRange(0, 3).Draw(w.rt, "structured") < 3 {
			p["structured_form"] = w.form()
		}
	case ToolAttachSupport, ToolAttachContra:
		p["proposition_id"] = pickOf(w.rt, w.made["prop"], "proposition")
		p["observation_ids"] = w.ids("obs", "evidence", 3)
		if rapid.IntRange(0, 2).Draw(w.rt, "quoted") == 2 {
			ids := w.ids("obs", "quoted", 1)
			if o := w.s.observations.get(ids[0]); o != nil && o.Raw != "" {
				p["observation_ids"], p["quote"] = ids, o.Raw
			}
		}
	case ToolProposeTest:
		ids := w.ids("prop", "tested", 2)
		slices.Sort(ids)
		ids = slices.Compact(ids)
		d := map[string]any{}
		for i, id := range ids {
			d[id] = []string{"yes", "no"}[i]
		}
		p = map[string]any{"proposition_ids": ids, "kind": "ask_user", "discriminates": d, "action_impact": rapid.SampledFrom([]string{"low", "high", "irreversible"}).Draw(w.rt, "impact"),
			"estimated_cost": 0.1, "estimated_benefit": 0.5, "rationale_observation_ids": w.ids("obs", "why", 1)}
	case ToolTestResult:
		p["test_id"] = pickOf(w.rt, w.made["test"], "test")
		p["outcome"] = rapid.SampledFrom([]string{"yes", "no", "other", "inconclusive"}).Draw(w.rt, "outcome")
		p["observation"] = w.observation()
	case ToolConsolidate:
		p["reason"] = rapid.SampledFrom([]string{"task_boundary", "checkpoint"}).Draw(w.rt, "reason")
	case ToolArchiveEpisode:
		if rapid.Bool().Draw(w.rt, "summary") {
			p["summary_text"], p["observation_ids"] = "what happened "+fmt.Sprint(w.n), w.ids("obs", "sources", 2)
		}
	}
	b, err := json.Marshal(p)
	if err != nil {
		w.rt.Fatal(err)
	}
	return w.propose(tool, b)
}

// propose is script.propose with evidence drawn.
func (w *world) propose(tool string, payload []byte) Decision {
	prop := writ.Proposal{ToolName: tool, Payload: payload}
	c := w.c
	if _, ok := Cites(prop); ok && rapid.IntRange(0, 3).Draw(w.rt, "captured") < 3 {
		labels := []writ.Label{writ.External, writ.Party, writ.External}
		if w.level >= 2 {
			labels = []writ.Label{writ.External, writ.System, writ.System, writ.User}
		}
		l := rapid.SampledFrom(labels).Draw(w.rt, "label")
		k := Captured{Ref: "ev1", Evidence: "s_1/ev1", Label: l, Verbatim: true,
			Source: rapid.SampledFrom([]string{"a/x", "b/y", "c/z", "d/w"}).Draw(w.rt, "source")}
		if l == writ.External {
			k.Class = rapid.SampledFrom([]TrustClass{"", ClassWeb, ClassDocument, ClassPeerAgent, ClassOperator}).Draw(w.rt, "class")
		}
		c.Captured = []Captured{k}
	}
	d := Handle(w.s, c, prop)
	w.apply(d)
	return d
}

// tables is a state's encoding without what every event adds to.
func tables(t testing.TB, s *State) string {
	var b bytes.Buffer
	if err := s.Encode(&b); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for l := range strings.Lines(b.String()) {
		if !strings.HasPrefix(l, `{"table":"state"`) && !strings.HasPrefix(l, `{"table":"decided"`) {
			out.WriteString(l)
		}
	}
	return out.String()
}

// The log of any history folds to the same state, decides again to the same
// events, and a rejected proposal changes nothing but the list of decisions.
func TestReplay(t *testing.T) {
	for _, profile := range []string{"v1", "v01q"} {
		rapid.Check(t, func(rt *rapid.T) {
			w := newWorld(rt, t, profile, 3)
			for i := range rapid.IntRange(10, 60).Draw(rt, "steps") {
				before := ""
				if i%4 == 0 { // encoding all of it is what takes the time
					before = tables(t, w.s)
				}
				if d := w.step(); d.Outcome.Status == writ.Rejected && before != "" && tables(t, w.s) != before {
					rt.Fatalf("a rejection changed the state: %+v", d.Outcome.Rejection)
				}
			}
			if replay(t, w.log, nil).Digest() != w.s.Digest() {
				rt.Fatal("the log folds to another state")
			}
			checkModel(rt, w.s, w.c.Policy)
		})
	}
}

// checkModel holds the state to a slow plain model of it: the tallies are those
// of the edges, and the indexes are those of the rows.
func checkModel(t *rapid.T, s *State, pol *Policy) {
	for _, id := range s.propositions.keys() {
		p := s.propositions.get(id)
		plain, said := &Proposition{}, map[string]bool{}
		for _, e := range s.edges.keys() {
			if ed := s.edges.get(e); ed.To == id && ed.Active() && ed.Type != Supersedes {
				// Of one statement the first that counts.
				key := fmt.Sprint(ed.Type, ed.Group, ed.Level, ed.Statement)
				if ed.Statement != "" && said[key] {
					continue
				}
				said[key] = true
				plain.tally(ed)
			}
		}
		if !slices.Equal(plain.Support, p.Support) || !slices.Equal(plain.Contradict, p.Contradict) {
			t.Fatalf("%s: %+v %+v, of the edges %+v %+v", id, p.Support, p.Contradict, plain.Support, plain.Contradict)
		}
		if p.ValidTo != nil && *p.ValidTo < p.ValidFrom {
			t.Fatalf("%s ends before it begins", id)
		}
	}
	if pol.Flags.Grounded {
		for _, id := range s.edges.keys() {
			ed := s.edges.get(id)
			if ed.Type != Supports || ed.Level == 0 {
				continue
			}
			// Whatever the rule is exactly, a value that is not even a part of the
			// text is not in it.
			p, o := s.propositions.get(ed.To), s.observations.get(ed.From)
			if v, isText := strictjson.Text([]byte(p.Literal)); isText && o.Status == Ingested && !strings.Contains(strings.ToLower(o.Raw), strings.ToLower(v)) {
				t.Fatalf("%s counts at level %d for the value %q, and says %q", o.ID, ed.Level, v, o.Raw)
			}
			all := o.Raw
			for _, beside := range s.ix.edgesOf[p.ID] {
				if b := s.edges.get(beside); b.Type == Supports && b.Decision == ed.Decision {
					all += " " + s.observations.get(b.From).Raw
				}
			}
			number := regexp.MustCompile(`[0-9]{4,}`)
			if n := number.FindString(p.Quals); n != "" && o.Status == Ingested && !strings.Contains(o.Raw, n) {
				t.Fatalf("%s counts at level %d for the question of %q, and says %q", o.ID, ed.Level, n, o.Raw)
			}
			if number := number.FindString(p.Text); number != "" && o.Status == Ingested && !strings.Contains(all, number) {
				t.Fatalf("%s counts at level %d for words with %q, and says %q", o.ID, ed.Level, number, o.Raw)
			}
		}
	}
	for _, id := range s.slots.keys() {
		sl := s.slots.get(id)
		var open []*Proposition
		var current []string
		for _, p := range sl.Propositions {
			pr := s.propositions.get(p)
			if pr.Open() {
				current = append(current, p)
			}
			if pr.Open() && pr.Status == Accepted && !slices.ContainsFunc(open, func(o *Proposition) bool {
				return s.sameValue(o, pr) // worded in two ways
			}) {
				open = append(open, pr)
			}
		}
		if !slices.Equal(current, sl.Current) {
			t.Fatalf("%s has the open values %v, says %v", id, current, sl.Current)
		}
		if pol.Flags.Supersession && sl.Single && len(open) > 1 {
			t.Fatalf("%s has %d accepted values", id, len(open))
		}
	}
	for _, k := range s.workspaces.keys() {
		open := 0
		for _, it := range s.itemsOf(k) {
			if it.Born && it.Outcome == "" {
				open++
			}
		}
		if w := s.workspaces.get(k); w.OpenClaims != open {
			t.Fatalf("%q has %d open claims, says %d", k, open, w.OpenClaims)
		}
	}
	was := s.ix
	s.reindex()
	same := func(name string, a, b map[string][]string) {
		for _, k := range slices.Sorted(maps.Keys(b)) {
			if x, y := slices.Sorted(slices.Values(a[k])), slices.Sorted(slices.Values(b[k])); !slices.Equal(x, y) {
				t.Fatalf("index %s at %q: %v, of the rows %v", name, k, x, y)
			}
		}
		if len(a) != len(b) {
			t.Fatalf("index %s has %d keys, of the rows %d", name, len(a), len(b))
		}
	}
	same("edgesOf", was.edgesOf, s.ix.edgesOf)
	same("edgesFrom", was.edgesFrom, s.ix.edgesFrom)
	same("taskItems", was.taskItems, s.ix.taskItems)
	same("taskTests", was.taskTests, s.ix.taskTests)
	same("children", was.children, s.ix.children)
	same("bySource", was.bySource, s.ix.bySource)
	same("about", was.about, s.ix.about)
	same("names", was.names, s.ix.names)
	same("grams", was.grams, s.ix.grams)
	same("claims", was.claims, s.ix.claims)
	same("testsOf", was.testsOf, s.ix.testsOf)
	if !maps.Equal(was.slotOf, s.ix.slotOf) {
		t.Fatalf("index slotOf: %v, of the rows %v", was.slotOf, s.ix.slotOf)
	}
	for n, ids := range s.ix.byRecord {
		if !slices.Equal(slices.Sorted(slices.Values(was.byRecord[n])), slices.Sorted(slices.Values(ids))) {
			t.Fatalf("index byRecord at %d", n)
		}
	}
	s.ix = was
}

// M01: whatever is recorded, derived, proposed, attached, tested or summarised,
// evidence of level 0 and 1 makes nothing usable under v1.
func TestUntrustedMakesNothingUsable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, t, "v1", 1)
		for range rapid.IntRange(10, 60).Draw(rt, "steps") {
			w.step()
			for _, id := range w.s.propositions.keys() {
				if p := w.s.propositions.get(id); p.Status.Usable() {
					rt.Fatalf("%s is %s by %s", id, p.Status, p.Rule)
				}
				r := w.reader()
				if v, _ := r.View(id); v.Usable {
					rt.Fatalf("%s is read as %s", id, v.State)
				}
			}
		}
	})
}

// M03: what was erased is gone from the state, the log without its values folds
// to the state that erased it live, and nothing brings it back.
func TestErasure(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, t, "v1", 3)
		steps := rapid.IntRange(10, 40).Draw(rt, "steps")
		gone := map[uint64]bool{}
		last := uint64(0) // the newest erasure
		var secret []string
		for i := range steps {
			w.step()
			if i%10 != 9 && i != steps-1 || len(w.made["obs"]) == 0 {
				continue
			}
			args := rapid.SampledFrom([]string{`{"observation_ids":["` + pickOf(rt, w.made["obs"], "erased") + `"],"reason":"request"}`,
				`{"source":"a/x","reason":"request"}`, `{"principal":"bob","reason":"request"}`}).Draw(rt, "selection")
			before := w.s.observations
			texts := map[string]string{}
			for _, id := range before.keys() {
				texts[id] = before.get(id).Raw
			}
			d := w.operate(CommandErase, []byte(args))
			for _, o := range d.Event.Ops {
				if o.Erase != nil {
					last = d.Event.N
					for _, n := range o.Erase.Records {
						gone[n] = true
					}
					for _, id := range o.Erase.Observations {
						secret = append(secret, texts[id])
					}
				}
			}
			if o := rapid.IntRange(0, 3).Draw(rt, "distrust"); o == 0 {
				w.operate(CommandDistrust, []byte(`{"source":"b/y","since":"2026-11-01T08:00:00Z"}`))
			}
		}
		var b bytes.Buffer
		if err := w.s.Encode(&b); err != nil {
			rt.Fatal(err)
		}
		for _, text := range secret {
			if quoted, _ := json.Marshal(text); text != "" && bytes.Contains(b.Bytes(), quoted) {
				rt.Fatalf("%s is still in the state", quoted)
			}
		}
		again := replay(t, w.log, gone)
		if again.Digest() != w.s.Digest() {
			rt.Fatalf("without the erased values the log folds to another state:\n%s\n%s", tables(t, again), tables(t, w.s))
		}
		checkModel(rt, again, w.c.Policy)
		checkModel(rt, w.s, w.c.Policy)
		for i, r := range w.log {
			e, _ := ParseEvent(r.event)
			if gone[e.N] || e.Status == writ.Rejected && e.N > last {
				continue // nobody has erased since
			}
			for _, text := range secret {
				if quoted, _ := json.Marshal(text); text != "" && bytes.Contains(r.value, quoted) {
					rt.Fatalf("%s still stands in the value of record %d: %s", quoted, i+1, r.value)
				}
			}
		}
		// What cannot be decided again says so.
		s := New()
		for _, r := range w.log {
			e, _ := ParseEvent(r.event)
			v := r.value
			if gone[e.N] {
				v = nil
			}
			checked, err := Recheck(s, w.c.Policy, e, v)
			if gone[e.N] && (checked || err != nil) {
				rt.Fatalf("event %d was decided again without its text: %v", e.N, err)
			}
			if err := s.Apply(e, v); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// Evidence that came at one time gives one belief, in whatever order it is
// attached.
func TestEvidenceCommutes(t *testing.T) {
	for _, profile := range []string{"v1", "v01q"} {
		rapid.Check(t, func(rt *rapid.T) {
			type item struct {
				typ   EdgeType
				group string
				label writ.Label
			}
			items := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) item {
				return item{rapid.SampledFrom([]EdgeType{Supports, Contradicts}).Draw(rt, "type"),
					rapid.SampledFrom([]string{"a/x", "b/x", "c/x"}).Draw(rt, "source"),
					rapid.SampledFrom([]writ.Label{writ.External, writ.System, writ.User}).Draw(rt, "label")}
			}), 1, 7).Draw(rt, "items")
			order := make([]int, len(items))
			for i := range order {
				order[i] = i
			}
			run := func(order []int) *Proposition {
				x := newScript(t)
				x.c.Policy = builtinPolicy(t, profile)
				x.operate(CommandOpen, []byte("{}"))
				x.evidence = append(x.evidence, seen{"ev0", "z/x", "seed", writ.External, ""})
				x.line(`record_observation {"observation_id":"seed","raw_payload":"seed"}`)
				x.line(`create_or_link_entity_candidate {"name":"X","entity_type":"thing","observation_ids":["seed"]}`)
				x.line(`propose_proposition {"text":"x","observation_ids":["seed"],"about":["$ent1"]}`)
				for i, it := range items {
					x.evidence = []seen{{"ev1", it.group, fmt.Sprintf("item %d", i), it.label, ""}}
					x.line(fmt.Sprintf(`record_observation {"observation_id":"o%d","raw_payload":"item %d"}`, i, i))
				}
				for _, i := range order {
					tool := map[EdgeType]string{Supports: ToolAttachSupport, Contradicts: ToolAttachContra}[items[i].typ]
					x.line(fmt.Sprintf(`%s {"proposition_id":"$prop1","observation_ids":["o%d"]}`, tool, i))
				}
				return x.s.propositions.get(x.made["prop"][0])
			}
			a, b := run(order), run(rapid.Permutation(order).Draw(rt, "order"))
			if a.Status != b.Status || a.Score != b.Score || a.Rule != b.Rule || !slices.Equal(a.Support, b.Support) || !slices.Equal(a.Contradict, b.Contradict) {
				rt.Fatalf("%s %+v by %s, in another order %s %+v by %s", a.Status, a.Score, a.Rule, b.Status, b.Score, b.Rule)
			}
		})
	}
}

// M05: an event that is dropped, swapped or repeated is refused where it
// stands, and changes nothing.
func TestOrder(t *testing.T) {
	x := newScript(t)
	x.line(`seen ev1 user user red`)
	x.line(`record_observation {"observation_id":"o1","raw_payload":"red"}`)
	x.line(`record_observation {"observation_id":"o2","raw_payload":"re"}`)
	parse := func(i int) *Event {
		e, err := ParseEvent(x.log[i].event)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	s := New()
	for i := range x.log {
		before := s.Digest()
		for other := range x.log {
			if other != i {
				if err := s.Apply(parse(other), x.log[other].value); err != ErrOrder {
					t.Errorf("event %d in the place of %d: %v", other+1, i+1, err)
				}
			}
		}
		if s.Digest() != before {
			t.Fatal("a refused event changed the state")
		}
		if err := s.Apply(parse(i), x.log[i].value); err != nil {
			t.Fatal(err)
		}
	}
	foreign := *parse(1)
	foreign.N, foreign.Namespace = s.Head()+1, "other"
	if err := s.Apply(&foreign, x.log[1].value); err != ErrOrder {
		t.Errorf("an event of another namespace: %v", err)
	}
	// One that is next and does not fit: the same object twice.
	twice := *parse(1)
	twice.N = s.Head() + 1
	before := s.Digest()
	if err := s.Apply(&twice, x.log[1].value); err == nil || s.Digest() != before {
		t.Errorf("an object that is made twice: %v", err)
	}
	o := *twice.Ops[0].Observation
	o.ID = mintID("obs", twice.N, 1)
	twice.Ops = []Op{{Observation: &o}}
	if err := s.Apply(&twice, x.log[1].value); err == nil || s.Digest() != before {
		t.Errorf("an id of the caller's that is used twice: %v", err)
	}
}

// M01: noise of level 0 and 1, whatever it supports, contradicts, proposes or
// tests, changes no answer that fresh evidence of level 2 and 3 gives.
func TestNoiseChangesNoAnswer(t *testing.T) {
	type act struct {
		noise bool
		kind  int // 0 claims a value, 1 contradicts the nth claim, 2 supports it
		value string
		nth   int
		label writ.Label
		tool  string
		time  string // claimed, of noise alone
		class TrustClass
	}
	rapid.Check(t, func(rt *rapid.T) {
		acts := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) act {
			a := act{noise: rapid.Bool().Draw(rt, "noise"), kind: rapid.SampledFrom([]int{0, 0, 1, 2, 2}).Draw(rt, "kind"),
				value: rapid.SampledFrom([]string{"Bern", "Basel", "Chur"}).Draw(rt, "value"), nth: rapid.IntRange(0, 3).Draw(rt, "nth"),
				tool: rapid.SampledFrom([]string{"a/x", "b/x", "c/x"}).Draw(rt, "tool")}
			a.label = rapid.SampledFrom([]writ.Label{writ.System, writ.System, writ.User}).Draw(rt, "label")
			if a.noise {
				a.label = rapid.SampledFrom([]writ.Label{writ.Model, writ.External, writ.Party}).Draw(rt, "label of the noise")
				a.time = rapid.SampledFrom([]string{"", `,"event_time":"2020-01-01T00:00:00Z"`, `,"event_time":"2036-01-01T00:00:00Z"`}).Draw(rt, "claimed time")
				if a.label == writ.External {
					a.class = rapid.SampledFrom([]TrustClass{"", ClassWeb, ClassDocument, ClassPeerAgent}).Draw(rt, "class")
				}
			}
			return a
		}), 1, 25).Draw(rt, "acts")
		answers := func(noise bool) (values []string) {
			x := newScript(t)
			x.line(`operator predicate {"name":"city","single":true,"volatility":"durable"}`)
			x.evidence = []seen{{"ev0", "z/x", "seed", writ.External, ""}}
			x.line(`record_observation {"observation_id":"seed","raw_payload":"seed"}`)
			x.line(`create_or_link_entity_candidate {"name":"X","entity_type":"thing","observation_ids":["seed"]}`)
			var trusted []string // claims that trusted evidence made, in their order
			for i, a := range acts {
				if a.noise && !noise {
					continue
				}
				x.c.Now = x.c.Now.Add(time.Second)
				raw := fmt.Sprintf("act %d", i)
				x.evidence = []seen{{"ev1", a.tool, raw, a.label, a.class}}
				x.line(fmt.Sprintf(`record_observation {"observation_id":"o%d","raw_payload":"%s"%s}`, i, raw, a.time))
				claim := ""
				if len(trusted) > 0 {
					claim = trusted[a.nth%len(trusted)]
				}
				switch {
				case a.kind == 0:
					out := x.line(fmt.Sprintf(`propose_proposition {"text":"%s","structured_form":{"subject":"$ent1","predicate":"city","object":{"literal":"%s"}},"observation_ids":["o%d"],"about":["$ent1"]}`, a.value, a.value, i))
					// A claim may stand there already, made of noise.
					if m := regexp.MustCompile(`(?:created|attached_existing) (prop_[0-9]+)`).FindStringSubmatch(out); m != nil && !a.noise {
						trusted = append(trusted, m[1])
					}
				case claim == "":
				case a.kind == 1:
					x.line(fmt.Sprintf(`attach_contradiction {"proposition_id":"%s","observation_ids":["o%d"]}`, claim, i))
				case a.kind == 2:
					x.line(fmt.Sprintf(`attach_support {"proposition_id":"%s","observation_ids":["o%d"]}`, claim, i))
				}
				if a.noise {
					continue
				}
				got := x.line("answer $ent1 city")
				_, got, _ = strings.Cut(got, " ") // without the id
				_, got, _ = strings.Cut(got, " ") // and how sure it is
				value, _, _ := strings.Cut(got, " ")
				values = append(values, value)
			}
			return values
		}
		if a, b := answers(false), answers(true); !slices.Equal(a, b) {
			rt.Fatalf("without noise %q, with it %q", a, b)
		}
	})
}
