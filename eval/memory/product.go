package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/memory"
)

// Memory is the memory under measurement.
type Memory struct {
	Handle  func(*memory.State, memory.Context, writ.Proposal) memory.Decision
	Operate func(*memory.State, memory.Context, string, []byte) memory.Decision
	Answer  func(*memory.Reader, string) memory.Answer
	Search  func(*memory.Reader, memory.Query, []memory.Hit) memory.Results
	// Index makes an empty index.
	Index func() memory.Index
}

// Product is the memory that the product runs, over an index of its own.
func Product(index func() memory.Index) Memory {
	return Memory{
		Handle: memory.Handle, Operate: memory.Operate,
		Answer: (*memory.Reader).Answer, Search: (*memory.Reader).Search,
		Index: index,
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

// believing is the product with one chain's slot in it: the events it wrote,
// and the state they come to. An agent of few words files the proposals.
type believing struct {
	m        *Memory
	policy   *memory.Policy
	accepted bool // only what is accepted is read
	c        *chain

	s       *memory.State
	log     []memory.Decision
	session int
	entity  string
	obs     map[string]string // by text, the newest observation with it
	props   map[string]string // by value, the newest proposition that states it
	last    string            // the value that was stated last
	no      int
}

const namespace = "measures"

func newBelieving(m *Memory, p *memory.Policy, accepted bool, c *chain) *believing {
	g := &believing{m: m, policy: p, accepted: accepted, c: c, s: memory.New(), obs: map[string]string{}, props: map[string]string{}}
	g.operate(memory.CommandOpen, `{}`)
	g.operate(memory.CommandPredicate, `{"name":"`+c.ask.predicate+`","single":true}`)
	g.record(said{by: c.asideBy, text: c.aside, at: beginning.Add(-time.Hour)}, "")
	return g
}

func (g *believing) context(at time.Time) memory.Context {
	id := strconv.Itoa(g.session)
	return memory.Context{Policy: g.policy, Namespace: namespace, Mode: memory.Hardened, Principal: "alice", Session: "s" + id, Task: "t" + id, Now: at}
}

func (g *believing) operate(command, args string) {
	c := g.context(beginning.Add(-time.Hour))
	c.Principal = "root"
	g.apply(g.m.Operate(g.s, c, command, []byte(args)))
}

func (g *believing) apply(d memory.Decision) bool {
	if d.Outcome.Status == writ.Rejected {
		g.no++
	}
	if d.Event == nil {
		return false
	}
	if err := g.s.Apply(d.Event, d.Value); err != nil {
		panic(fault{fmt.Errorf("an event does not fit the state it was decided on: %w", err)})
	}
	g.log = append(g.log, d)
	return d.Outcome.Status != writ.Rejected
}

// propose files one proposal and returns what it made.
func (g *believing) propose(c memory.Context, name string, payload any) (d memory.Decision, ok bool) {
	b, err := json.Marshal(payload)
	if err != nil {
		panic(fault{err})
	}
	d = g.m.Handle(g.s, c, writ.Proposal{ToolName: name, Payload: b})
	return d, g.apply(d)
}

func (g *believing) fork() believer {
	f := *g
	f.s, f.log = memory.New(), slices.Clone(g.log)
	for _, d := range f.log {
		if err := f.s.Apply(d.Event, d.Value); err != nil {
			panic(fault{fmt.Errorf("the log does not fold: %w", err)})
		}
	}
	f.obs, f.props = map[string]string{}, map[string]string{}
	for k, v := range g.obs {
		f.obs[k] = v
	}
	for k, v := range g.props {
		f.props[k] = v
	}
	return &f
}

func (g *believing) refused() int { return g.no }

// record has one thing that was said recorded, captured where it was seen, and
// returns the id of its observation, "" if it was refused.
func (g *believing) record(s said, derived string) string {
	if s.again {
		return g.obs[s.text]
	}
	c := g.context(s.at)
	payload := map[string]any{"observation_id": "o" + strconv.Itoa(len(g.log)), "raw_payload": s.text}
	switch {
	case s.by.agent:
		payload["source_ref"] = "my own notes"
		payload["derived_from"] = []string{derived}
	default:
		// Every text is a whole leaf of a result of its own, or a turn of the user.
		c.Captured = []memory.Captured{{Ref: "ev1", Evidence: "s_" + c.Session + "/ev" + strconv.Itoa(len(g.log)+1), Label: s.by.label, Class: s.by.class, Source: s.by.source,
			Verbatim: true, Whole: true, Between: true}}
		payload["source_ref"] = "ev1"
	}
	if !s.claims.IsZero() {
		payload["event_time"] = s.claims.Format(time.RFC3339)
	}
	d, ok := g.propose(c, memory.ToolRecordObservation, payload)
	if !ok {
		return ""
	}
	for _, o := range d.Event.Ops {
		if o.Observation != nil {
			g.obs[s.text] = o.Observation.ID
			return o.Observation.ID
		}
	}
	return ""
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

func (g *believing) claim(v string, ss []said) {
	g.session++
	ids := g.recorded(ss)
	if len(ids) == 0 {
		return
	}
	at := ss[len(ss)-1].at
	c := g.context(at)
	if g.entity == "" {
		d, _ := g.propose(c, memory.ToolEntity, map[string]any{"name": g.c.subject, "entity_type": g.c.kind, "observation_ids": ids[:1]})
		for _, o := range d.Event.Ops {
			if o.Entity != nil {
				g.entity = o.Entity.ID
			}
		}
	}
	payload := map[string]any{"text": g.c.wording(v), "about": []string{g.entity}, "observation_ids": ids,
		"structured_form": map[string]any{"subject": g.entity, "predicate": g.c.ask.predicate, "object": map[string]any{"literal": v}}}
	if s := ss[len(ss)-1]; !s.claims.IsZero() {
		payload["valid_from"] = s.claims.Format(time.RFC3339)
	}
	d, ok := g.propose(c, memory.ToolPropose, payload)
	if !ok {
		return
	}
	for _, o := range d.Event.Ops {
		if o.Proposition != nil {
			g.props[v] = o.Proposition.ID
		}
	}
	// Where the policy gives a slot no current value by itself, whoever states
	// another value says that the one before is not so.
	if !g.policy.Flags.Supersession && g.last != "" && g.last != v && g.props[g.last] != "" {
		g.propose(c, memory.ToolAttachContra, map[string]any{"proposition_id": g.props[g.last], "observation_ids": ids})
	}
	g.last = v
}

func (g *believing) deny(v string, ss []said) {
	g.session++
	ids := g.recorded(ss)
	if len(ids) == 0 || g.props[v] == "" {
		return
	}
	if g.policy.Flags.Grounded {
		// A contradiction counts in the name of another value, which stands in it.
		g.propose(g.context(ss[len(ss)-1].at), memory.ToolPropose, map[string]any{"text": g.c.wording(g.c.lie.text), "about": []string{g.entity},
			"observation_ids": ids, "structured_form": map[string]any{"subject": g.entity, "predicate": g.c.ask.predicate, "object": map[string]any{"literal": g.c.lie.text}}})
	}
	g.propose(g.context(ss[len(ss)-1].at), memory.ToolAttachContra, map[string]any{"proposition_id": g.props[v], "observation_ids": ids})
}

func (g *believing) reader(at time.Time) *memory.Reader {
	return &memory.Reader{State: g.s, Policy: g.policy, Principal: "alice", Now: at}
}

func (g *believing) slot() string { return g.s.SlotOf(g.entity, g.c.ask.predicate, nil) }

// searchHits and searchKinds are what a search of the product looks at without
// further arguments.
const searchHits = 400

var searchKinds = []string{"proposition", "observation", "entity"}

func (g *believing) answer(at time.Time) string {
	for _, v := range g.m.Answer(g.reader(at), g.slot()).Values {
		if v.Usable && v.Object != nil && (!g.accepted || v.State == memory.Accepted) {
			return v.Object.Value
		}
	}
	return ""
}

func (g *believing) read(at time.Time) (out heard) {
	r, slot := g.reader(at), g.slot()
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
	res := g.m.Search(r, memory.Query{}, g.find(g.c.asked()))
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

// find asks an index of all the memory's texts, made anew.
func (g *believing) find(query string) []memory.Hit {
	ctx, x := context.Background(), g.m.Index()
	if err := x.Update(ctx, memory.Change{Namespace: namespace, To: g.s.Head(), Put: g.s.Docs()}); err != nil {
		panic(fault{fmt.Errorf("the index: %w", err)})
	}
	hits, err := x.Search(ctx, namespace, query, searchKinds, searchHits)
	if err != nil {
		panic(fault{fmt.Errorf("the index: %w", err)})
	}
	return hits
}

// history reads the timeline: each value is listed where it was made, and each
// time it was supported anew.
func (g *believing) history(at time.Time) (out []string) {
	moments, _ := g.reader(at).Timeline(g.slot(), 0, 0)
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
