package memory

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/words"
)

// A world draws proposals and commands, most of them ones that make sense and
// answer one of a few questions, and keeps what the memory comes to.
type world struct {
	*script
	rt     *rapid.T
	labels []writ.Label // of the evidence that is drawn
	tools  []string
	facts  bool // nothing but statements on one question
	n      int
	shown  int // evidence so far
	worth  map[int]Captured
}

var (
	worldValues = []string{"Bern", "Basel", "Chur", "42"}
	worldSaid   = []string{
		"Alice's city is %s.", "Alice's city is %s.", "Alice's city is also %s.", "My city is %s.", `{"name":"Alice","city":"%s"}`, `{"name":"Alice","city":["%s","%s"]}`,
		`[{"name":"Alice","city":"%s"},{"name":"Alice","city":"%s"}]`, "Alice's city is %s and %s.", "Alice's city is not %s.", "Is Alice's city %s?",
		"Alice's city is %s. Alice's city is %s.", "Alice Bern's colour is %s.", `{"name":"Bob","city":"%s","year":2021}`, "%s",
	}
	worldNames = []string{"Alice", "alice", "Alicia", "Bob", "B0b", "Robert Miller", "Robert Millers", "Acme GmbH"}
	worldTools = []string{ToolRemember, ToolRemember, ToolRemember, ToolRemember, ToolRecordObservation, ToolRecordObservation, ToolEntity, ToolPropose, ToolPropose, ToolPropose,
		ToolAttachSupport, ToolAttachSupport, ToolAttachContra, ToolProposeTest, ToolTestResult, ToolConsolidate, ToolArchiveEpisode}
	anybody = []writ.Label{writ.External, writ.Party}
	anyone  = []writ.Label{writ.External, writ.System, writ.System, writ.User, writ.User, writ.Operator}
)

func newWorld(rt *rapid.T, t testing.TB, labels []writ.Label) *world {
	w := &world{script: newScript(t), rt: rt, labels: labels, tools: worldTools, worth: map[int]Captured{}}
	if slices.Contains(labels, writ.User) {
		w.c.Mode = rapid.SampledFrom([]Mode{Hardened, Local}).Draw(rt, "mode")
	}
	w.begin()
	for range 3 {
		w.n++
		w.propose(ToolRecordObservation, fmt.Sprintf(`{"observation_id":"o%d","raw_payload":"Alice's city is Bern.","source_ref":"a note"}`, w.n))
	}
	for _, e := range []string{"thing", "self"} {
		w.propose(ToolEntity, `{"name":"Alice","entity_type":"`+e+`","observation_ids":["`+w.made["obs"][0]+`"]}`)
	}
	return w
}

func drawn[T any](rt *rapid.T, name string, of ...T) T { return rapid.SampledFrom(of).Draw(rt, name) }

// pick takes one of what was made, seldom what was not.
func (w *world) pick(what string) string {
	ids := w.made[what]
	if len(ids) == 0 || rapid.IntRange(0, 40).Draw(w.rt, "odd") == 40 {
		return what + "_9999"
	}
	return rapid.SampledFrom(ids).Draw(w.rt, what)
}

func (w *world) picks(what string, most int) []string {
	out := []string{}
	for range rapid.IntRange(1, most).Draw(w.rt, "how many") {
		out = append(out, w.pick(what))
	}
	return out
}

func (w *world) said() string {
	form := drawn(w.rt, "said", worldSaid[:map[bool]int{true: 7, false: len(worldSaid)}[w.facts]]...)
	var of []any
	for range strings.Count(form, "%s") {
		of = append(of, drawn(w.rt, "value", worldValues...))
	}
	return fmt.Sprintf(form, of...)
}

func (w *world) observation() map[string]any {
	w.n++
	o := map[string]any{"observation_id": fmt.Sprintf("o%d", w.n-max(0, rapid.IntRange(-6, min(3, w.n-1)).Draw(w.rt, "id"))), "raw_payload": w.said()}
	switch rapid.IntRange(0, 5).Draw(w.rt, "how it came") {
	case 0:
		o["source_ref"] = "https://example.com"
	case 1:
		o["source_ref"] = "user"
	case 2:
		o["source_ref"], o["derived_from"] = "a note", w.picks("obs", 2)
	}
	return o
}

// step makes one proposal.
func (w *world) step() Decision {
	w.c.Now = w.c.Now.Add(time.Duration(drawn(w.rt, "pause", 0, 1, 60, 3600, -600)) * time.Second)
	w.c.Task = drawn(w.rt, "task", "t1", "t2")
	w.c.Principal = drawn(w.rt, "principal", "alice", "alice", "alice", "bob")
	tool := drawn(w.rt, "tool", w.tools...)
	p := map[string]any{}
	switch tool {
	case ToolRemember:
		p["text"] = w.said()
		if w.facts {
			p["about"] = "Alice: city"
		} else if rapid.IntRange(0, 5).Draw(w.rt, "about") > 0 {
			p["about"] = drawn(w.rt, "about", "Alice: city", "Alice: city", "Alice: city", "Alice: city", "Alice: city", "me: city", "Alice", "Bob: city", "Alice: colour")
		}
		if rapid.IntRange(0, 3).Draw(w.rt, "replaces") == 0 {
			p["replaces"] = w.pick("prop")
		}
	case ToolRecordObservation:
		p = w.observation()
	case ToolEntity:
		p["name"], p["entity_type"], p["observation_ids"] = drawn(w.rt, "name", worldNames...), drawn(w.rt, "type", "thing", "person", "self"), w.picks("obs", 1)
		if rapid.Bool().Draw(w.rt, "alias") {
			p["aliases"] = []string{drawn(w.rt, "alias", worldNames...)}
		}
	case ToolPropose:
		p["text"], p["about"], p["observation_ids"] = w.said(), w.picks("ent", 1), w.picks("obs", 3)
		if rapid.IntRange(0, 3).Draw(w.rt, "structured") > 0 {
			f := map[string]any{"subject": w.pick("ent"), "predicate": drawn(w.rt, "predicate", "city", "city", "city", "colour", "free"),
				"object": map[string]any{"literal": drawn(w.rt, "value", worldValues...)}}
			if rapid.IntRange(0, 5).Draw(w.rt, "qualified") == 0 {
				f["qualifiers"] = map[string]any{"year": 2021}
			}
			p["structured_form"] = f
		}
	case ToolAttachSupport, ToolAttachContra:
		p["proposition_id"], p["observation_ids"] = w.pick("prop"), w.picks("obs", 3)
		if rapid.IntRange(0, 3).Draw(w.rt, "quoted") == 0 {
			ids := w.picks("obs", 1)
			if o := w.s.observations.get(ids[0]); o != nil && o.Raw != "" {
				p["observation_ids"], p["quote"] = ids, o.Raw
			}
		}
	case ToolProposeTest:
		ids := w.picks("prop", 2)
		slices.Sort(ids)
		predicted := map[string]any{}
		for i, id := range slices.Compact(ids) {
			predicted[id] = []string{"yes", "no"}[i]
		}
		p["proposition_ids"], p["kind"], p["discriminates"], p["rationale_observation_ids"] = slices.Compact(ids), "ask_user", predicted, w.picks("obs", 1)
	case ToolTestResult:
		p["test_id"], p["outcome"], p["observation"] = w.pick("test"), drawn(w.rt, "outcome", "yes", "no", "other"), w.observation()
	case ToolConsolidate:
		p["reason"] = drawn(w.rt, "reason", "task_boundary", "checkpoint")
	case ToolArchiveEpisode:
		if rapid.Bool().Draw(w.rt, "summary") {
			p["summary_text"], p["observation_ids"] = "what happened "+fmt.Sprint(w.n), w.picks("obs", 2)
		}
	}
	return w.propose(tool, mustJSON(w.t, p))
}

// propose is script.propose with evidence drawn.
func (w *world) propose(tool, payload string) Decision {
	prop := writ.Proposal{ToolName: tool, Payload: []byte(payload)}
	c := w.c
	c.Exposed = rapid.Bool().Draw(w.rt, "exposed")
	if cite, ok := Cites(prop); ok && rapid.IntRange(0, 5).Draw(w.rt, "captured") > 0 {
		w.shown++
		seen := max(1, w.shown-rapid.IntRange(0, 4).Draw(w.rt, "before"))
		k := Captured{Ref: "ev1", Evidence: fmt.Sprintf("s_%s/ev%d", []string{"a", "a", "b"}[seen%3], seen), Seen: uint64(seen),
			Verbatim: true, Whole: true,
			Offset: rapid.IntRange(0, 1).Draw(w.rt, "offset")}
		of, shown := w.worth[seen] // one piece of evidence has one source
		if !shown {
			of = Captured{Label: drawn(w.rt, "label", w.labels...), Source: drawn(w.rt, "source", "a/x", "b/y", "c/z")}
			w.worth[seen] = of
		}
		k.Label, k.Source = of.Label, of.Source
		if k.Label == writ.External {
			k.Class = drawn(w.rt, "class", "", ClassWeb, ClassDocument, ClassPeerAgent, ClassOperator)
		}
		if tool == ToolRemember {
			stand := slices.DeleteFunc(slices.Clone(worldValues), func(v string) bool { return !strings.Contains(cite.Raw, v) })
			k.Text, k.Value = cite.Raw, []byte(mustJSON(w.t, drawn(w.rt, "value", append(stand, "Bern")...)))
		}
		c.Captured = []Captured{k}
	}
	d := Handle(w.s, c, prop)
	w.apply(d)
	return d
}

// command does one thing that an operator does.
func (w *world) command() Decision {
	command, v := CommandRule, map[string]any{}
	switch rapid.IntRange(0, 19).Draw(w.rt, "command") {
	case 15:
		command, v["source"], v["since"] = CommandDistrust, drawn(w.rt, "source", "a/x", "b/y"), InstantOf(w.c.Now.Add(-time.Minute)).String()
	case 16:
		command, v["source_id"], v["suspended"] = CommandSuspend, drawn(w.rt, "source", "a/x", "b/y"), false
	case 17:
		command, v["from"], v["into"] = CommandMerge, w.pick("ent"), w.pick("ent")
	case 18:
		command, v["from"], v["into"] = CommandUnmerge, w.pick("ent"), w.pick("ent")
	case 19:
		command, v["name"], v["single"] = CommandPredicate, drawn(w.rt, "predicate", "city", "colour"), rapid.Bool().Draw(w.rt, "single")
	default:
		v["proposition_id"], v["ruling"] = w.pick("prop"), drawn(w.rt, "ruling", "uphold", "refute")
	}
	return w.operate(command, []byte(mustJSON(w.t, v)))
}

// erase takes what was observed away.
func (w *world) erase() {
	sel := drawn(w.rt, "selection", `"observation_ids":["`+w.pick("obs")+`"]`, `"source":"a/x"`, `"principal":"bob"`)
	w.operate(CommandErase, []byte(`{`+sel+`,"reason":"request"}`))
}

// lived is a world in which much has happened.
func lived(rt *rapid.T, t testing.TB, most int) *world {
	w := newWorld(rt, t, anyone)
	if w.facts = rapid.Bool().Draw(rt, "facts alone"); w.facts {
		w.tools = []string{ToolRemember}
	}
	for range rapid.IntRange(10, most).Draw(rt, "steps") {
		switch rapid.IntRange(0, 19).Draw(rt, "who") {
		case 18, 19: // small numbers are drawn more often
			w.command()
		case 17:
			w.erase()
		default:
			w.step()
		}
	}
	return w
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
// events (script.apply holds each to Recheck), and a rejected proposal changes
// nothing but the list of decisions.
func TestReplay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := lived(rt, t, 35)
		if replay(t, w.log, nil).Digest() != w.s.Digest() {
			rt.Fatal("the log folds to another state")
		}
		for range 5 {
			before := tables(t, w.s)
			if d := w.step(); d.Outcome.Status == writ.Rejected && tables(t, w.s) != before {
				rt.Fatalf("a rejection changed the state: %+v", d.Outcome.Rejection)
			}
		}
		checkIndexes(rt, w.s)
	})
}

// checkIndexes holds the indexes to those of the rows.
func checkIndexes(t *rapid.T, s *State) {
	was := s.ix
	s.reindex()
	defer func() { s.ix = was }()
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
	for i, t := range s.ix.tables() {
		if l, ok := t.(*lists); ok {
			same(fmt.Sprint(i), idsOf(*was.tables()[i].(*lists)), idsOf(*l))
		}
	}
	for i, x := range [][2]stored{{&was.slotOf, &s.ix.slotOf}} {
		rows := map[string]any{}
		x[0].each(func(key string, row any) error { rows[key] = row; return nil })
		x[1].each(func(key string, row any) error {
			if !reflect.DeepEqual(row, rows[key]) {
				t.Fatalf("index %d at %q: %v, of the rows %v", i, key, row, rows[key])
			}
			delete(rows, key)
			return nil
		})
		if i == 0 && len(rows) > 0 {
			t.Fatalf("the index of slots lacks %v", rows)
		}
	}
}

func idsOf(l lists) map[string][]string {
	out := map[string][]string{}
	for _, k := range l.keys() {
		out[k] = l.of(k)
	}
	return out
}

// What is found by words follows each event.
func TestTextsFollow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := lived(rt, t, 25)
		s := New()
		for _, r := range w.log {
			e, err := ParseEvent(r.event)
			if err != nil {
				rt.Fatal(err)
			}
			if err := s.Apply(e, r.value); err != nil {
				rt.Fatal(err)
			}
			s.found("x", nil, 1)
		}
		n := 0
		for _, id := range slices.Concat(s.observations.keys(), s.propositions.keys()) {
			kind, text := s.Text(id)
			if text != "" {
				n++
			}
			for _, w := range words.Of(text) {
				quotes, beside, _ := s.found(w, []string{kind}, 1000)
				if s.besides(id) {
					quotes = beside
				}
				if !slices.ContainsFunc(quotes, func(h words.Hit) bool { return h.ID == id && h.Kind == kind }) {
					rt.Fatalf("%q does not find %s among %s", w, id, kind)
				}
			}
		}
		if s.texts.Len()+s.beside.Len() != n {
			rt.Fatalf("%d texts are found, the state has %d", s.texts.Len()+s.beside.Len(), n)
		}
	})
}

// M03: what was erased is gone from the state, the log without its values folds
// to the state that erased it live, and what cannot be decided again says so.
func TestErasure(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := lived(rt, t, 25)
		texts := map[string]string{}
		for _, id := range w.s.observations.keys() {
			texts[id] = w.s.observations.get(id).Raw
		}
		var secret []string
		last := uint64(0)
		d := w.operate(CommandErase, []byte(`{"source":"b/y","reason":"request"}`))
		for _, o := range d.Event.Ops {
			if o.Erase == nil {
				continue
			}
			last = d.Event.N
			for _, id := range o.Erase.Observations {
				secret = append(secret, texts[id])
			}
			for _, id := range o.Erase.Observations { // what says the same stays, and is named as an echo
				for other, text := range texts {
					if !slices.Contains(o.Erase.Observations, other) && strings.Contains(text, texts[id]) {
						secret = slices.DeleteFunc(secret, func(t string) bool { return t == texts[id] })
					}
				}
			}
		}
		again := replay(t, w.log, w.gone)
		if again.Digest() != w.s.Digest() {
			rt.Fatalf("without the erased values the log folds to another state:\n%s\n%s", tables(t, again), tables(t, w.s))
		}
		checkIndexes(rt, w.s)
		checkIndexes(rt, again)
		all := tables(t, w.s)
		for i, r := range w.log {
			if e, _ := ParseEvent(r.event); !w.gone[e.N] && e.N < last {
				all += fmt.Sprintf("%d %s\n", i+1, r.value)
			}
		}
		for _, text := range secret {
			if quoted := mustJSON(t, text); len(text) > 8 && strings.Contains(all, `"raw":`+quoted) || len(text) > 8 && strings.Contains(all, `"raw_payload":`+quoted) {
				rt.Fatalf("%s is still there:\n%s", quoted, all)
			}
		}
		s := New()
		for _, r := range w.log {
			e, _ := ParseEvent(r.event)
			v := r.value
			if w.gone[e.N] {
				v = nil
			}
			if w.gone[e.N] {
				if checked, err := Recheck(s, w.c.Policy, e, v); checked || err != nil {
					rt.Fatalf("event %d was decided again without its text: %v", e.N, err)
				}
			}
			if err := s.Apply(e, v); err != nil {
				rt.Fatal(err)
			}
		}
	})
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

// M01: whatever is remembered, recorded, derived, proposed, attached, tested or
// summarised, what strangers and the agent say makes nothing established,
// contested or of a level above 1, and nothing is given by itself that a stranger
// said.
func TestUntrustedMakesNothingEstablished(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, t, anybody)
		for range rapid.IntRange(10, 35).Draw(rt, "steps") {
			d := w.step()
			for _, c := range d.Outcome.Transitions {
				if c.Next == Established || c.Next == Contested {
					rt.Fatalf("%s is %s", c.Proposition, c.Next)
				}
			}
			if k := d.Outcome.Kept; k != nil && k.Trust == Established {
				rt.Fatalf("%s is told to be %s", k.ID, k.Trust)
			}
		}
		r := w.reader()
		for _, id := range w.s.propositions.keys() {
			if v, _ := r.View(id); v.Usable || v.Level > 1 {
				rt.Fatalf("%s is read as %+v", id, v)
			}
		}
		for _, it := range r.Recall(Ask{Query: "Alice city Bern Basel Chur 42"}).Items {
			if it.Trust == Established || it.From != "you" && !strings.HasPrefix(it.From, "attested:") {
				rt.Fatalf("%+v is given by itself", it)
			}
		}
	})
}

// M01: noise of level 0 and 1, whatever it claims, supports, contradicts, tests or
// says it replaces, changes nothing of what evidence of level 2 and 3 comes to.
func TestNoiseChangesNothing(t *testing.T) {
	type act struct {
		noise       bool
		kind        int
		said, value string
		nth         int
		label       writ.Label
		exposed     bool
	}
	rapid.Check(t, func(rt *rapid.T) {
		acts := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) act {
			a := act{noise: rapid.Bool().Draw(rt, "noise"), kind: rapid.IntRange(0, 5).Draw(rt, "kind"),
				value: drawn(rt, "value", "Bern", "Basel", "Chur"), nth: rapid.IntRange(0, 5).Draw(rt, "nth"), exposed: rapid.Bool().Draw(rt, "exposed"),
				label: drawn(rt, "label", writ.System, writ.User)}
			a.said = fmt.Sprintf(drawn(rt, "said", "Alice's city is %s.", `{"name":"Alice","city":"%s"}`, `{"name":"Alice","city":["%s","Bern"]}`, "Alice's city is %s and Chur."), a.value)
			if a.noise {
				a.label = drawn(rt, "label of the noise", writ.Model, writ.External, writ.Party)
			}
			return a
		}), 1, 20).Draw(rt, "acts")
		come := func(noise bool) (out []string) {
			x := newScript(t)
			x.begin()
			trusted := map[string]bool{} // what trusted evidence says
			for i, a := range acts {
				if a.noise && !noise {
					continue
				}
				c := x.c
				c.Exposed = a.exposed
				if a.label != writ.Model {
					c.Captured = []Captured{{Ref: "ev", Evidence: fmt.Sprintf("s_a/ev%d", i+1), Seen: uint64(i + 1), Label: a.label, Source: "a/x", Verbatim: true, Whole: true, Text: a.said, Value: []byte(mustJSON(t, a.value))}}
				}
				tell := func(tool string, p map[string]any) {
					if tool != ToolRecordObservation && tool != ToolRemember {
						c.Captured = nil
					}
					x.apply(Handle(x.s, c, writ.Proposal{ToolName: tool, Payload: []byte(mustJSON(t, p))}))
				}
				text := a.value // what the agent says of itself is its value
				if c.Captured != nil {
					text = a.said
				}
				p := map[string]any{"text": text, "about": "Alice: city"}
				claim := ""
				if n := len(x.made["prop"]); n > 0 {
					claim = x.made["prop"][a.nth%n]
				}
				switch {
				case !a.noise || a.kind == 0 || claim == "":
					tell(ToolRemember, p)
				case a.kind == 1:
					p["replaces"] = claim
					tell(ToolRemember, p)
				case a.kind == 2:
					tell(ToolRemember, map[string]any{"text": text, "about": "Alice", "replaces": claim})
				default:
					o := fmt.Sprintf("o%d", i)
					tell(ToolRecordObservation, map[string]any{"observation_id": o, "raw_payload": a.said, "source_ref": "ev"})
					tell([]string{ToolAttachSupport, ToolAttachContra, ToolConsolidate}[a.kind-3], map[string]any{"proposition_id": claim, "observation_ids": []string{o}})
				}
				if a.noise {
					continue
				}
				trusted[a.value] = true
				line := ""
				for _, id := range x.s.propositions.keys() {
					p := x.s.propositions.get(id)
					if v := textOf([]byte(p.Literal)); p.Predicate == "city" && trusted[v] {
						st := x.s.standing(id, 0)
						var rivals []string
						for _, r := range st.Rivals {
							rivals = append(rivals, x.s.propositions.get(r).Literal)
						}
						slices.Sort(rivals)
						by := ""
						if p := x.s.propositions.get(st.ReplacedBy); p != nil {
							by = p.Literal
						}
						line += fmt.Sprint(" ", v, st.Status, st.Level, rivals, by)
					}
				}
				f := strings.Fields(line)
				slices.Sort(f)
				out = append(out, strings.Join(f, " "))
			}
			return out
		}
		if a, b := come(false), come(true); !slices.Equal(a, b) {
			rt.Fatalf("without noise\n%s\nwith it\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	})
}

// Whatever the rule is exactly, a value that is not even a part of a text is not
// in it, and neither is who it is about.
func TestBorneOutStandsThere(t *testing.T) {
	number := regexp.MustCompile(`[0-9]{4,}`)
	rapid.Check(t, func(rt *rapid.T) {
		w := lived(rt, t, 25)
		for _, id := range w.s.edges.keys() {
			ed := w.s.edges.get(id)
			p, o := w.s.propositions.get(ed.To), w.s.observations.get(ed.From)
			if ed.Type != Supports || ed.Level == 0 || o == nil || o.Status != Ingested || p.Gone {
				continue
			}
			if ed.Level > o.Level {
				rt.Fatalf("%s is of level %d, and says it at %d", o.ID, o.Level, ed.Level)
			}
			if v, ok := w.s.valueOf(p); !ok || !strings.Contains(strings.ToLower(o.Raw), strings.ToLower(v)) {
				rt.Fatalf("%s bears out the value %q, and says %q", o.ID, v, o.Raw)
			}
			if n := number.FindString(p.Quals); n != "" && !strings.Contains(o.Raw, n) {
				rt.Fatalf("%s bears out a claim of %q, and says %q", o.ID, n, o.Raw)
			}
			if en := w.s.entities.get(p.Subject); en.Principal == "" && en.MergedInto == "" && !en.Gone && len(w.s.ix.mergedFrom.of(en.ID)) == 0 &&
				!strings.Contains(strings.ToLower(o.Raw), strings.ToLower(en.Names[0].Text)) {
				rt.Fatalf("%s bears out something of %q, and says %q", o.ID, en.Names[0].Text, o.Raw)
			}
		}
	})
}
