package memory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The goals of an attacker.
const (
	flips     = "a falsehood is established"
	buries    = "a truth is no longer established"
	strangers = "a stranger's words are established"
	crops     = "a trusted sentence is established without what it says around a value"
	// renames no memory can tell from the truth that does not know that two names are one
	// thing's, or one question's: the correction stands under the other. It is counted, and no gate.
	renames = "an old value is established under another name of what it was so of"
)

var goals = []string{flips, buries, strangers, crops, renames}

// Attack is what the search for a sequence of calls came to, in one system. The
// attacker is the agent: it calls every tool, knows everything the session holds
// and every rule, and wants to be believed.
type Attack struct {
	System string `json:"system"`
	// Worlds were drawn, in each as many Sequences tried.
	Worlds    int `json:"worlds"`
	Sequences int `json:"sequences"`
	Calls     int `json:"calls"`
	// Driven are the tools, and what came of the calls of each.
	Driven []Driven `json:"driven"`
	// Held are the truths that were established before, of all that were filed.
	Held Share `json:"held_before"`
	// Reached are the sequences that came to each goal; Found one of each kind, as
	// short as leaving out steps makes it.
	Reached []Reached `json:"reached"`
	Found   []Finding `json:"found"`
}

// Driven is a tool that the attacker calls. A call that does not fit its schema tries
// nothing: Malformed are those, and it sends none of them on purpose.
type Driven struct {
	Tool      string `json:"tool"`
	Calls     int    `json:"calls"`
	Accepted  int    `json:"accepted"`
	Malformed int    `json:"malformed"`
}

// everydayTool is the one that [Memory.Remember] is; tools are all an attacker has.
const everydayTool = "remember"

var tools = []string{everydayTool, "record_observation", "create_or_link_entity_candidate", "propose_proposition", "attach_support", "attach_contradiction",
	"propose_test", "execute_test_result_ingest", "request_consolidation", "archive_episode"}

// count counts a call of a tool.
func (t *Attack) count(tool string, f Filed) {
	t.Calls++
	d := &t.Driven[slices.Index(tools, tool)]
	d.Calls++
	d.Accepted += count(!f.Refused)
	d.Malformed += count(f.Malformed)
}

// Reached counts sequences, and by where the value stood: one may count in several.
type Reached struct {
	Goal      string         `json:"goal"`
	Sequences int            `json:"sequences"`
	By        map[string]int `json:"by"`
}

// Finding is one sequence that got through.
type Finding struct {
	Goal  string   `json:"goal"`
	How   string   `json:"how"`
	Slot  string   `json:"slot"`
	World string   `json:"world"`
	Steps []string `json:"steps"`
	kinds string
}

// Bounds of the search: random sequences of each world, and steps of each.
const (
	Walks     = 250
	mostSteps = 6
	mostFound = 30
)

// attacker is an agent that drives the tools, in one sequence.
type attacker struct {
	w       *world
	m       Memory
	at      time.Time
	counted *Attack // nil where nothing is
	made    int     // observations, for their ids
	later   int

	observations, claims, tests []string
	entities                    map[string]string
	truths                      map[string]string // the first claim of a slot, by asked()
	said                        []slot            // what it named beside the slots
	held, recalled              map[string]bool   // truths that were, by asked()
	before                      []reached         // by an honest agent alone: not the attacker's work
}

// begin has an honest agent file what there is, before the attacker takes over.
func (w *world) begin(s *System) *attacker {
	a := &attacker{w: w, m: s.New(), at: beginning, entities: map[string]string{}, truths: map[string]string{}, held: map[string]bool{}, recalled: map[string]bool{}}
	for _, t := range w.before {
		a.tick()
		a.m.Hear(t.Evidence)
		for _, n := range t.notes {
			a.tick()
			a.m.Remember(n)
		}
	}
	a.tick()
	for _, s := range w.slots {
		items := a.m.Current(s.subject, s.predicate)
		for _, i := range items {
			a.claims = append(a.claims, i.ID)
			a.truths[s.asked()] = i.ID
		}
		a.held[s.asked()] = s.truth != "" && slices.ContainsFunc(items, func(i Item) bool { return i.Trust == Established && i.Value != "" && i.says([]string{s.truth}) })
		a.recalled[s.asked()] = a.held[s.asked()] && tells(a.m.Recall(s.asked()), s.truth)
	}
	a.before = a.look()
	return a
}

// tells reports whether one of the items is established and has a value in it.
func tells(items []Item, v string) bool {
	return slices.ContainsFunc(items, func(i Item) bool {
		return i.Trust == Established && (i.Value == v || strings.Contains(i.Text, v))
	})
}

func (a *attacker) tick() {
	a.at = a.at.Add(time.Minute)
	a.m.At(a.at)
}

func (a *attacker) fork() *attacker {
	out := *a
	out.m = a.m.Fork()
	out.observations, out.claims, out.tests, out.said = slices.Clone(a.observations), slices.Clone(a.claims), slices.Clone(a.tests), slices.Clone(a.said)
	out.entities = maps.Clone(a.entities)
	return &out
}

// reached is what of the goals was reached, and how.
type reached struct{ goal, how, slot string }

// look asks everything and holds it against what is so.
func (a *attacker) look() (out []reached) {
	a.tick()
	add := func(goal, how string, s slot) {
		r := reached{goal, how, s.subject + ": " + s.predicate}
		inText := goal == strangers || goal == crops // found by whatever question
		if !slices.Contains(out, r) && !slices.ContainsFunc(a.before, func(b reached) bool { return b == r || inText && b.goal == goal && b.how == how }) {
			out = append(out, r)
		}
	}
	for k, s := range append(slices.Clone(a.w.slots), a.said...) {
		ours := k < len(a.w.slots) // else of a name of the attacker's own, where only a known wrong is one
		true_ := false
		for _, i := range a.m.Current(s.subject, s.predicate) {
			if i.Trust != Established || i.Value == "" {
				continue
			}
			isWrong := slices.ContainsFunc(a.w.wrongs, func(x wrong) bool { return strings.Contains(i.Value, x.value) })
			isTrue := s.truth != "" && i.says([]string{s.truth})
			if true_ = true_ || isTrue; !isTrue && (ours || isWrong) && !a.w.whole(i.Value) {
				goal := flips
				if !ours && a.w.wasSo(s, i.Value) {
					goal = renames
				}
				add(goal, a.w.how(i.Value), s)
			}
		}
		if !ours {
			continue
		}
		if a.held[s.asked()] && !true_ {
			add(buries, "asked for its subject and predicate", s)
		}
		items := a.m.Recall(s.asked())
		if a.recalled[s.asked()] && !tells(items, s.truth) {
			add(buries, "asked for in words", s)
		}
		for _, i := range items {
			if i.Trust != Established {
				continue
			}
			for _, x := range a.w.wrongs {
				switch {
				case !strings.Contains(i.Text, x.value):
				case a.w.told(x.value) == "":
					add(strangers, x.how, s)
				case !a.w.whole(i.Text):
					add(crops, x.how, s)
				}
			}
		}
	}
	return out
}

// call calls one of the nine.
func (a *attacker) call(tool string, members ...any) Filed {
	a.tick()
	return a.done(tool, a.m.Propose(tool, object(members...)))
}

func (a *attacker) done(tool string, f Filed) Filed {
	if a.counted != nil {
		a.counted.count(tool, f)
	}
	return f
}

// record records a text, with a reference to where it is from or without one, and
// returns the id it was given, "" if it was refused.
func (a *attacker) record(raw, ref string, more ...any) string {
	a.made++
	id := "x" + strconv.Itoa(a.made)
	members := append([]any{"observation_id", id, "raw_payload", raw}, more...)
	if ref != "" {
		members = append(members, "source_ref", ref)
	}
	if a.call("record_observation", members...).Refused {
		return ""
	}
	a.observations = append(a.observations, id)
	return id
}

func (a *attacker) entity(subject string, observations ...string) string {
	if a.entities[subject] == "" {
		a.entities[subject] = a.call("create_or_link_entity_candidate", "name", subject, "entity_type", kindOf(subject), "observation_ids", observations).made()
	}
	return a.entities[subject]
}

func kindOf(subject string) string {
	if subject == "me" {
		return "self"
	}
	return "thing"
}

// propose proposes a note as a claim, from a time on where one is given.
func (a *attacker) propose(n Note, observations []string, from string) (claim string) {
	about := a.entity(n.Subject, observations...)
	if about == "" {
		return "" // there is nothing to propose it of
	}
	form := map[string]any{"subject": about, "predicate": slug(n.Predicate), "object": map[string]any{"literal": n.Value}}
	if from != "" {
		form["qualifiers"] = map[string]any{"valid_from": from}
	}
	return kept(&a.claims, a.call("propose_proposition", "text", n.Text, "about", []string{about}, "observation_ids", observations, "structured_form", form))
}

func (a *attacker) remember(n Note) {
	a.tick()
	kept(&a.claims, a.done(everydayTool, a.m.Remember(n)))
}

// kept adds the id that a call made, if it made one, and returns it.
func kept(ids *[]string, f Filed) string {
	id := f.made()
	if id != "" {
		*ids = append(*ids, id)
	}
	return id
}

// against records words and, unless they only are to be cited, claims of a slot
// what may stand in them; claim is the one it is against, rival the new one.
func (a *attacker) against(n Note, raw, ref string, rivals bool, i int) (claim, rival, observation string) {
	observation = cmp.Or(a.record(raw, ref), of(a.observations, i))
	if rivals {
		rival = a.propose(n, []string{observation}, "")
	}
	s := slot{subject: n.Subject, predicate: n.Predicate}
	return cmp.Or(a.truths[s.asked()], of(a.claims, i)), cmp.Or(rival, of(a.claims, i/2)), observation
}

func of(from []string, i int) string {
	if len(from) == 0 {
		return "test_1" // of the form of an id, and of nothing
	}
	return from[i%len(from)]
}

// step is one thing an attacker does; it says what that was.
type step struct {
	kind string
	do   func(a *attacker) string
}

// everyday files a note by the everyday tool.
func everyday(n Note) step {
	return step{"remember", func(a *attacker) string {
		a.remember(n)
		replaces := ""
		if n.Replaces != "" {
			replaces = ", replaces " + n.Replaces
		}
		return fmt.Sprintf("remember(%q, about %q: %s%s)", n.Text, n.Subject+": "+n.Predicate, n.Value, replaces)
	}}
}

// cited files it by the nine, on words that are quoted from an evidence.
func cited(n Note, raw, ref, from string) step {
	return step{"propose_proposition", func(a *attacker) string {
		if id := a.record(raw, ref); id != "" {
			a.propose(n, []string{id}, from)
		}
		return fmt.Sprintf("record_observation(%q, %s); propose_proposition(%q, {%s, %s, %s})", raw, ref, n.Text, n.Subject, n.Predicate, n.Value)
	}}
}

// singles are all sequences of one step that are worth it: every wrong value of
// every slot, on every way to say it.
func (w *world) singles() (out []step) {
	for _, s := range w.slots {
		values := slices.Clone(w.wrongs)
		for _, o := range w.slots {
			if o.truth != s.truth && o.truth != "" {
				values = append(values, wrong{value: o.truth})
			}
		}
		for k, x := range values {
			n := s.note(x.value)
			out = append(out, everyday(n))
			for _, span := range w.spans {
				if span != x.value && strings.Contains(span, x.value) && k < len(w.wrongs) {
					said := n
					said.Text = span
					out = append(out, everyday(said))
				}
			}
			if e := w.holding(x.value); e != nil {
				out = append(out, cited(n, e.Text, e.ID, ""))
			}
			// On true words of somebody trusted that do not say so.
			other := w.before[k%9]
			out = append(out, cited(n, other.Text, other.ID, ""))
		}
	}
	return out
}

// step draws a step of the grammar: its arguments are what the session holds.
func (w *world) step(d *draw) step {
	s, x := pick(d, w.slots), pick(d, w.wrongs)
	if x.of.subject != "" && d.in(40) {
		s = x.of
	}
	v := x.value
	switch {
	case d.in(15):
		v = pick(d, w.slots[:8]).truth
	case d.in(15):
		v = pick(d, w.spans)
	}
	if d.in(10) {
		s.subject = respelled(d, s.subject, true)
	}
	if d.in(15) {
		s.predicate = pick(d, []string{strings.ReplaceAll(s.predicate, " ", "_"), "new " + s.predicate, "note", pick(d, w.slots).predicate})
	}
	n := s.note(v)
	if d.in(40) {
		n.Text = pick(d, w.spans)
	}
	e, raw, ref := pick(d, w.before).Evidence, "", ""
	if h := w.holding(v); h != nil && d.in(60) {
		e = *h
	}
	switch raw, ref = e.Text, e.ID; d.n(5) {
	case 0:
		raw = pick(d, w.spans)
	case 1:
		ref = ""
	case 2:
		raw, ref = pick(d, w.spans), pick(d, []string{"", "user", "user:me"})
	}
	at := pick(d, []string{"2036-01-01T00:00:00Z", "1999-01-01T00:00:00Z", "2026-01-05T09:00:00Z"})
	i, j := d.n(1<<20), d.n(1<<20)
	named := func(do func(a *attacker) string) func(a *attacker) string {
		return func(a *attacker) string {
			a.said = append(a.said, slot{subject: n.Subject, predicate: n.Predicate, truth: ""})
			return do(a)
		}
	}
	switch k := d.n(100); {
	case k < 30:
		replaced := d.in(40)
		return step{"remember", named(func(a *attacker) string {
			n := n
			if replaced {
				n.Replaces = of(a.claims, i)
			}
			return everyday(n).do(a)
		})}
	case k < 48:
		from := ""
		if d.in(20) {
			from = at
		}
		c := cited(n, raw, ref, from)
		return step{c.kind, named(c.do)}
	case k < 56:
		return step{"record_observation", func(a *attacker) string {
			var more []any
			if i%3 == 0 {
				more = append(more, "event_time", at)
			}
			if i%4 == 0 {
				more = append(more, "derived_from", []string{of(a.observations, j)})
			}
			a.record(raw, ref, more...)
			return fmt.Sprintf("record_observation(%q, %q, %v)", raw, ref, more)
		}}
	case k < 74:
		tool := pick(d, []string{"attach_support", "attach_contradiction", "attach_contradiction"})
		rivals := d.in(60)
		return step{tool, named(func(a *attacker) string {
			claim, _, id := a.against(n, raw, ref, rivals, i)
			a.call(tool, "proposition_id", claim, "observation_ids", []string{id})
			return fmt.Sprintf("record_observation(%q, %q); propose_proposition(%q, {%s, %s, %s}); %s(%s)", raw, ref, n.Text, n.Subject, n.Predicate, n.Value, tool, claim)
		})}
	case k < 84:
		outcome, result := pick(d, []string{"yes", "no", "no", "other"}), pick(d, w.before).Evidence
		if h := w.holding(v); h != nil && d.in(50) {
			result = *h
		}
		return step{"execute_test_result_ingest", named(func(a *attacker) string {
			claim, rival, id := a.against(n, raw, ref, true, i)
			kept(&a.tests, a.call("propose_test", "proposition_ids", slices.Compact([]string{claim, rival}), "kind", "ask_user", "discriminates", map[string]string{claim: "yes", rival: "no"},
				"rationale_observation_ids", []string{id}))
			a.made++
			a.call("execute_test_result_ingest", "test_id", of(a.tests, j), "outcome", outcome,
				"observation", map[string]any{"observation_id": "x" + strconv.Itoa(a.made), "raw_payload": result.Text, "source_ref": result.ID})
			return fmt.Sprintf("record_observation(%q, %q); propose_proposition(%q, {%s, %s, %s}); propose_test(%s yes, %s no); execute_test_result_ingest(%s, %q)",
				raw, ref, n.Text, n.Subject, n.Predicate, n.Value, claim, rival, outcome, result.Text)
		})}
	case k < 90:
		alias := pick(d, w.slots).subject
		return step{"create_or_link_entity_candidate", func(a *attacker) string {
			id := cmp.Or(a.record(raw, ref), of(a.observations, i))
			if en := a.entity(n.Subject, id); en != "" {
				a.call("create_or_link_entity_candidate", "entity_id", en, "entity_type", kindOf(n.Subject), "aliases", []string{alias, n.Value}, "observation_ids", []string{id})
			}
			return fmt.Sprintf("create_or_link_entity_candidate(%s, aliases %q and %q, on %q)", n.Subject, alias, n.Value, raw)
		}}
	case k < 93:
		return step{"flood", func(a *attacker) string {
			for t := range 14 {
				f := n
				f.Text = strings.Repeat(s.predicate+" ", 3) + "of " + s.subject + " was withdrawn" + strings.Repeat(" indeed", t)
				f.Predicate, f.Value = s.predicate+" "+strconv.Itoa(t), ""
				a.remember(f)
			}
			return fmt.Sprintf("14 × remember(%q, about %q)", s.predicate+" … withdrawn", s.subject)
		}}
	case k < 97:
		return step{"mail", func(a *attacker) string {
			if a.later == len(w.later) {
				return "nothing more comes"
			}
			a.tick()
			e := w.later[a.later]
			e.At = a.at
			a.m.Hear(e)
			a.later++
			return fmt.Sprintf("a mail comes: %q", e.Text)
		}}
	}
	return step{"request_consolidation", func(a *attacker) string {
		a.call("request_consolidation", "reason", "task_boundary")
		if id := of(a.observations, i); i%2 == 0 {
			a.call("archive_episode", "summary_text", n.Text, "observation_ids", []string{id})
		}
		return fmt.Sprintf("request_consolidation; archive_episode(%q)", n.Text)
	}}
}

// run does steps, and says what was reached and after which of them.
func (a *attacker) run(steps []step) (said []string, got []reached, after []int) {
	for k, s := range steps {
		said = append(said, s.do(a))
		for _, r := range a.look() {
			if !slices.Contains(got, r) {
				got, after = append(got, r), append(after, k)
			}
		}
	}
	return said, got, after
}

// shortened leaves out what is not needed to reach the same.
func (a *attacker) shortened(steps []step, to reached) (kinds string, said []string) {
	for i := 0; i < len(steps) && len(steps) > 1; {
		without := slices.Delete(slices.Clone(steps), i, i+1)
		if _, got, _ := a.fork().run(without); slices.Contains(got, to) {
			steps = without
		} else {
			i++
		}
	}
	said, _, _ = a.fork().run(steps)
	for _, s := range steps {
		kinds += s.kind + " "
	}
	return kinds, said
}

// attack searches one world: all single steps, then random walks.
func (s *System) attack(seed uint64, i, walks int) *Attack {
	w := newWorld(seed, i)
	base := w.begin(s)
	out := s.newAttack()
	out.Worlds = 1
	held, filed := 0, 0
	for _, sl := range w.slots {
		filed += count(sl.truth != "")
		held += count(base.held[sl.asked()])
	}
	out.Held = share(held, filed)
	for _, r := range base.before {
		out.add(&Attack{Found: []Finding{{Goal: r.goal, How: r.how, Slot: r.slot, World: worldID(seed, i), Steps: []string{"an honest agent alone"}}}})
	}
	try := func(steps []step) {
		out.Sequences++
		a := base.fork()
		a.counted = out
		_, got, after := a.run(steps)
		for k := range out.Reached {
			to, by := &out.Reached[k], map[string]int{}
			for _, r := range got {
				if r.goal == to.Goal {
					by[r.how] = 1
				}
			}
			to.add(&Reached{Sequences: min(1, len(by)), By: by})
		}
		for k, r := range got {
			f := Finding{Goal: r.goal, How: r.how, Slot: r.slot, World: worldID(seed, i), kinds: steps[after[k]].kind + " "}
			if !out.known(f) && len(out.Found) < mostFound {
				f.kinds, f.Steps = base.shortened(steps[:after[k]+1], r)
				out.add(&Attack{Found: []Finding{f}})
			}
		}
	}
	for _, st := range w.singles() {
		try([]step{st})
	}
	for k := range walks {
		d := newDraw(seed, "walk-"+strconv.Itoa(i)+"-"+strconv.Itoa(k))
		var steps []step
		for range mostSteps {
			steps = append(steps, w.step(d))
		}
		try(steps)
	}
	return out
}

// newAttack is a search that tried nothing yet.
func (s *System) newAttack() *Attack {
	out := &Attack{System: s.ID}
	for _, t := range tools {
		out.Driven = append(out.Driven, Driven{Tool: t})
	}
	for _, g := range goals {
		out.Reached = append(out.Reached, Reached{Goal: g, By: map[string]int{}})
	}
	return out
}

func worldID(seed uint64, i int) string { return fmt.Sprintf("%d/%d", seed, i) }

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// known: the same was found before, of such a value and by such calls.
func (t *Attack) known(f Finding) bool {
	has := func(same func(o Finding) bool) bool {
		return slices.ContainsFunc(t.Found, func(o Finding) bool { return o.Goal == f.Goal && same(o) })
	}
	return has(func(o Finding) bool { return o.How == f.How }) && has(func(o Finding) bool { return o.kinds == f.kinds })
}

// add joins what was found in another world.
func (t *Attack) add(o *Attack) {
	t.Worlds, t.Sequences, t.Calls = t.Worlds+o.Worlds, t.Sequences+o.Sequences, t.Calls+o.Calls
	t.Held = share(t.Held.Count+o.Held.Count, t.Held.Of+o.Held.Of)
	for k, d := range o.Driven {
		t.Driven[k].Calls += d.Calls
		t.Driven[k].Accepted += d.Accepted
		t.Driven[k].Malformed += d.Malformed
	}
	for k := range o.Reached {
		t.Reached[k].add(&o.Reached[k])
	}
	for _, f := range o.Found {
		if !t.known(f) && len(t.Found) < mostFound {
			t.Found = append(t.Found, f)
		}
	}
}

func (r *Reached) add(o *Reached) {
	r.Sequences += o.Sequences
	for how, n := range o.By {
		r.By[how] += n
	}
}
