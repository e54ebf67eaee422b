package memory

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/words"
	"github.com/writ-project/writ/memory"
)

// Memory is the memory under measurement.
type Memory struct {
	Handle  func(*memory.State, memory.Context, writ.Proposal) memory.Decision
	Operate func(*memory.State, memory.Context, string, []byte) memory.Decision
	Answer  func(*memory.Reader, string) memory.Answer
	Search  func(*memory.Reader, string, memory.Query) memory.Results
	// Index makes an empty index.
	Index func() Index
}

// Index is what finds texts by their words.
type Index interface {
	Put(id, kind, text string)
	Drop(id string)
	Search(query string, kinds []string, limit int) []words.Hit
}

// Product is the memory that the product runs.
func Product() Memory {
	return Memory{
		Handle: memory.Handle, Operate: memory.Operate,
		Answer: (*memory.Reader).Answer, Search: (*memory.Reader).Search,
		Index: func() Index { return &words.Index{} },
	}
}

// fault is thrown where a memory cannot be measured: it writes what does not
// fold. Run returns it.
type fault struct{ error }

// heard is what a memory says to one question.
type heard struct {
	// values are those it gives as usable; the first is its answer.
	values []string
	// shown are the texts it hands out with no sign that they are not to be
	// relied on: as usable, as trusted, or without any label.
	shown []string
}

func (r heard) answer() string {
	if len(r.values) == 0 {
		return ""
	}
	return r.values[0]
}

// shows reports whether a value stands in something handed out like that.
func (r heard) shows(v string) bool {
	return slices.ContainsFunc(r.shown, func(t string) bool { return strings.Contains(t, v) })
}

// believer is a memory, or a rule, that holds one slot.
type believer interface {
	// claim has an agent state a value and cite what was said for it.
	claim(v string, said []said)
	// deny has it say, citing, that a value it holds is not so.
	deny(v string, said []said)
	// read asks for the slot's value.
	read(at time.Time) heard
	// answer is the value a question for the slot alone is answered with, "" for
	// none.
	answer(at time.Time) string
	// history is the values the slot's timeline lists, in their order, nil where
	// there is none.
	history(at time.Time) []string
	fork() believer
	// refused is how many proposals were.
	refused() int
}

// believing is the product with one chain's slot in it. An agent of few words
// makes steps of what is said: the value stated last has its id under its own
// name, and so has the observation of a text that was recorded last.
type believing struct {
	*governed
	accepted bool // only what is accepted is read
	c        *chain
	session  int
	last     string // the value that was stated last
}

const (
	namespace = "measures"
	theEntity = "entity"
)

func newBelieving(m *Memory, p *memory.Policy, accepted bool, c *chain) *believing {
	g := &believing{governed: newGoverned(heardBy, p, m, adapter{}), accepted: accepted, c: c}
	before := beginning.Add(-time.Hour)
	g.step(operates, memory.CommandPredicate, "", voice{}, before, map[string]any{"name": c.ask.predicate, "single": true})
	g.record(said{by: c.asideBy, text: c.aside, at: before}, "")
	return g
}

// heardBy is a run without steps, whose sources are all voices.
var heardBy = func() *run {
	r := &run{clock0: beginning}
	for _, v := range append(append([]voice{theUser}, tools...), strangers...) {
		r.sources = append(r.sources, source{ID: strictyaml.String{S: v.source}, Class: strictyaml.String{S: string(v.class)}, label: v.label})
	}
	return r
}()

// step does one step, in the session and task in hand, and reports whether it was
// not refused.
func (g *believing) step(kind eventKind, tool, as string, by voice, at time.Time, payload map[string]any) bool {
	b, err := json.Marshal(payload)
	if err != nil {
		panic(fault{err})
	}
	before, id := g.no, strconv.Itoa(g.session)
	g.governed.c.Task = "t" + id
	g.do(&event{kind: kind, tool: tool, as: as, from: by.source, session: "s" + id, at: at.Sub(g.r.clock0), payload: b})
	if len(g.faults) > 0 {
		panic(fault{fmt.Errorf("an event does not fit the state it was decided on: %s", g.faults[0])})
	}
	return g.no == before
}

func (g *believing) fork() believer {
	f := *g
	f.governed = g.copied()
	return &f
}

func (g *believing) refused() int { return g.no }

func (g *believing) obs(text string) string { return g.ids["said "+text] }
func (g *believing) prop(v string) string   { return g.ids["value "+v] }

// record has one thing that was said recorded, captured where it was seen, and
// returns the id of its observation, "" if it was refused.
func (g *believing) record(s said, derived string) string {
	if s.again {
		return g.obs(s.text)
	}
	payload := map[string]any{"observation_id": "o" + strconv.Itoa(len(g.log)), "raw_payload": s.text, "source_ref": "ev" + strconv.Itoa(g.seen+1)}
	if s.by.agent {
		payload["source_ref"], payload["derived_from"] = "my own notes", []string{derived}
	}
	if !s.claims.IsZero() {
		payload["event_time"] = s.claims.Format(time.RFC3339)
	}
	if !g.step(proposes, memory.ToolRecordObservation, "said "+s.text, s.by, s.at, payload) {
		return ""
	}
	return g.obs(s.text)
}

// recorded has all of it recorded.
func (g *believing) recorded(ss []said) (ids []string) {
	for _, s := range ss {
		derived := ""
		if s.from && len(ids) > 0 {
			derived = ids[len(ids)-1]
		}
		if id := g.record(s, derived); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// propose states a value of the slot, and whether that was not refused.
func (g *believing) propose(v string, at time.Time, ids []string, more map[string]any) bool {
	payload := map[string]any{"text": g.c.wording(v), "about": []string{g.ids[theEntity]}, "observation_ids": ids,
		"structured_form": map[string]any{"subject": g.ids[theEntity], "predicate": g.c.ask.predicate, "object": map[string]any{"literal": v}}}
	maps.Copy(payload, more)
	return g.step(proposes, memory.ToolPropose, "value "+v, voice{}, at, payload)
}

// contradict says that a value is not so.
func (g *believing) contradict(v string, at time.Time, ids []string) {
	g.step(proposes, memory.ToolAttachContra, "", voice{}, at, map[string]any{"proposition_id": g.prop(v), "observation_ids": ids})
}

func (g *believing) claim(v string, ss []said) {
	g.session++
	ids, s := g.recorded(ss), ss[len(ss)-1]
	if len(ids) == 0 {
		return
	}
	if g.ids[theEntity] == "" {
		g.step(proposes, memory.ToolEntity, theEntity, voice{}, s.at, map[string]any{"name": g.c.subject, "entity_type": g.c.kind, "observation_ids": ids[:1]})
	}
	var from map[string]any
	if !s.claims.IsZero() {
		from = map[string]any{"valid_from": s.claims.Format(time.RFC3339)}
	}
	if !g.propose(v, s.at, ids, from) {
		return
	}
	// Where the policy gives a slot no current value by itself, whoever states
	// another value says that the one before is not so.
	if !g.policy.Flags.Supersession && g.last != "" && g.last != v && g.prop(g.last) != "" {
		g.contradict(g.last, s.at, ids)
	}
	g.last = v
}

func (g *believing) deny(v string, ss []said) {
	g.session++
	ids, at := g.recorded(ss), ss[len(ss)-1].at
	if len(ids) == 0 || g.prop(v) == "" {
		return
	}
	if g.policy.Flags.Grounded {
		// A contradiction counts in the name of another value, which stands in it.
		g.propose(g.c.lie.text, at, ids, nil)
	}
	g.contradict(v, at, ids)
}

// by is a reader at a time.
func (g *believing) by(at time.Time) *memory.Reader {
	g.governed.c.Now = at
	return g.reader()
}

func (g *believing) slot() string { return g.state.SlotOf(g.ids[theEntity], g.c.ask.predicate, nil) }

func (g *believing) answer(at time.Time) string {
	for _, v := range g.m.Answer(g.by(at), g.slot()).Values {
		if v.Usable && v.Object != nil && (!g.accepted || v.State == memory.Accepted) {
			return v.Object.Value
		}
	}
	return ""
}

func (g *believing) read(at time.Time) (out heard) {
	r, slot := g.by(at), g.slot()
	take := func(v *memory.View) {
		if v == nil || v.Slot != slot || !v.Usable || g.accepted && v.State != memory.Accepted || v.Object == nil {
			return
		}
		if !slices.Contains(out.values, v.Object.Value) {
			out.values = append(out.values, v.Object.Value)
		}
		out.shown = append(out.shown, v.Text.Text, v.Object.Value)
	}
	for _, v := range g.m.Answer(r, slot).Values {
		take(&v)
	}
	res := g.m.Search(r, g.c.asked(), memory.Query{})
	for _, f := range res.Items {
		take(f.Proposition)
		switch {
		case f.Proposition != nil && (f.Proposition.Level >= 2 || f.Proposition.Text.Kind == ""):
			out.shown = append(out.shown, f.Proposition.Text.Text)
		case f.Observation != nil && (f.Observation.Text.Trust >= 2 || f.Observation.Text.Kind == ""):
			out.shown = append(out.shown, f.Observation.Text.Text)
		}
	}
	return out
}

// history reads the timeline: each value is listed where it was made, and each
// time it was supported anew.
func (g *believing) history(at time.Time) (out []string) {
	moments, _ := g.by(at).Timeline(g.slot(), 0, 0)
	values := map[string]string{}
	for _, m := range moments {
		switch m.What {
		case "value":
			if m.Text != nil {
				values[m.ID] = strings.TrimPrefix(m.Text.Text, g.c.wording(""))
			}
		case string(memory.Supports):
			if v := values[m.Other]; len(out) == 0 || out[len(out)-1] != v {
				out = append(out, v)
			}
		}
	}
	return out
}
