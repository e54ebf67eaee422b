package memory

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// adapter is what an ablation puts between the steps and the memory.
type adapter struct {
	// capture changes how an observation comes in.
	capture func(g *governed, src *source, c *memory.Captured)
	// drops says which proposals are not made.
	drops func(tool string) bool
	// oneLayer makes whatever is proposed part of canonical memory.
	oneLayer bool
	// direct takes the agent's claim for what is so.
	direct bool
	// logged says that every event is read back and decided again, and the log
	// folded again at the end. So it is for the two profiles; of an ablation it
	// would show nothing more.
	logged bool
}

// governed is package memory in one run: a state, its log, and what was made. It
// is the one driver of the memory: steps of scenarios come to it as they are,
// chains through believing, which makes steps of them.
type governed struct {
	r       *run
	policy  *memory.Policy
	m       *Memory
	adapter adapter

	state *memory.State
	c     memory.Context
	src   map[string]*source
	log   []logged
	seen  int // pieces of evidence
	no    int // refused proposals

	ids     map[string]string // names of steps and observations, and their ids
	results map[string]memory.Outcome
	linked  map[string]bool
	claims  map[string]claim // by proposition
	props   []string
	states  map[string][]belief // each a proposition was in
	written map[string]string   // by slot: direct writes
	erased  map[uint64]bool

	transitions    []transition
	consolidations []consolidation
	promoted       []promotion
	open           map[string]bool // contradictions
	calls          int
	corrective     int
	faults         []string
}

// logged is a decision that was applied, and of what.
type logged struct {
	d   memory.Decision
	as  string
	e   *event
	now time.Time
}

// belief is one recorded state of a proposition.
type belief struct {
	state memory.Status
	rule  memory.Rule
	at    time.Duration
}

// promotion is a claim that became canonical.
type promotion struct {
	prop string
	at   time.Duration
}

const governedSession = "s_eval"

func newGoverned(r *run, policy *memory.Policy, m *Memory, a adapter) *governed {
	g := blank(r, policy, m, a)
	g.operate(memory.CommandOpen, []byte("{}"), "")
	for i := range r.sources {
		if s := &r.sources[i]; s.Group.Given() || s.Reliability.Given() {
			g.register(s.ID.S, s, s.Group.S)
		}
	}
	return g
}

// blank is a memory in which nothing was done.
func blank(r *run, policy *memory.Policy, m *Memory, a adapter) *governed {
	g := &governed{r: r, policy: policy, m: m, adapter: a, state: memory.New(), src: map[string]*source{}, ids: map[string]string{},
		results: map[string]memory.Outcome{}, linked: map[string]bool{}, claims: map[string]claim{}, states: map[string][]belief{},
		written: map[string]string{}, erased: map[uint64]bool{}, open: map[string]bool{},
		c: memory.Context{Policy: policy, Namespace: "eval", Mode: memory.Hardened, Principal: "user", Task: "t1", Now: r.clock0}}
	for i := range r.sources {
		g.src[r.sources[i].ID.S] = &r.sources[i]
	}
	return g
}

// copied is a memory to which the same was done, on a log of its own.
func (g *governed) copied() *governed {
	out := blank(g.r, g.policy, g.m, g.adapter)
	for _, l := range g.log {
		out.c.Now = l.now
		out.apply(l.d, l.as, l.e)
	}
	out.c, out.seen, out.no = g.c, g.seen, g.no
	return out
}

// register has the operator register a source as what its label shows.
func (g *governed) register(id string, s *source, group string) {
	args := fmt.Sprintf(`{"source_id":%s,"class":%q`, strictjson.Quote(id), classOf(s))
	if group != "" {
		args += fmt.Sprintf(`,"group":%s`, strictjson.Quote(group))
	}
	if s.Reliability.Given() {
		args += `,"reliability":` + s.Reliability.S
	}
	g.operate(memory.CommandSource, []byte(args+"}"), "")
}

func classOf(s *source) memory.TrustClass {
	switch {
	case s.Class.S != "":
		return memory.TrustClass(s.Class.S)
	case s.label == writ.Operator:
		return memory.ClassOperator
	case s.label == writ.User:
		return memory.ClassDirectUser
	case s.label == writ.System:
		return memory.ClassToolInternal
	}
	return memory.ClassToolExternal
}

// operate is a command of the operator.
func (g *governed) operate(command string, args []byte, as string) {
	c := g.c
	c.Principal = "operator"
	g.apply(g.m.Operate(g.state, c, command, args), as, nil)
}

func (g *governed) do(e *event) {
	g.c.Now = g.r.instant(e.at)
	g.c.Session, g.c.Captured = cmp.Or(e.session, "s1"), nil
	payload := g.resolved(e.payload)
	switch e.kind {
	case ticks:
		g.operate(memory.CommandSweep, []byte("{}"), e.as)
		return
	case operates:
		if e.tool == memory.CommandRule {
			g.corrective++
		}
		g.operate(e.tool, payload, e.as)
		return
	}
	if g.adapter.drops != nil && g.adapter.drops(e.tool) {
		return
	}
	g.calls++
	if e.tool == memory.ToolProposeTest || e.tool == memory.ToolTestResult {
		g.corrective++
	}
	ob := payload
	if e.tool == memory.ToolTestResult {
		ob = strictjson.Get(payload, "observation")
	}
	if e.tool == memory.ToolRecordObservation || e.tool == memory.ToolTestResult {
		g.capture(e, text(ob, "raw_payload"))
	}
	g.apply(g.m.Handle(g.state, g.c, writ.Proposal{ToolName: e.tool, Payload: payload}), e.as, e)
}

// capture puts the evidence beside a proposal that the gateway would have
// found: a leaf of a result whose text the observation is.
func (g *governed) capture(e *event, raw string) {
	s := g.src[e.from]
	if s == nil && g.adapter.capture == nil {
		return
	}
	g.seen++
	ref := fmt.Sprintf("ev%d", g.seen)
	c := memory.Captured{Ref: ref, Evidence: governedSession + "/" + ref, Verbatim: raw != "", Whole: true, Between: true}
	if s != nil {
		c.Label, c.Class, c.Source = s.label, memory.TrustClass(s.Class.S), s.ID.S
	}
	if g.adapter.capture != nil {
		g.adapter.capture(g, s, &c)
	}
	if c.Source != "" {
		g.c.Captured = []memory.Captured{c}
	}
}

// resolved puts ids in the place of names.
func (g *governed) resolved(payload []byte) []byte {
	return reference.ReplaceAllFunc(payload, func(m []byte) []byte {
		if id := g.ids[string(m[1:])]; id != "" {
			return []byte(id)
		}
		return []byte("prop_999999") // what was refused is not there
	})
}

// apply writes a decision's event down, and keeps what the measures are of.
func (g *governed) apply(d memory.Decision, as string, e *event) {
	if as != "" {
		g.results[as] = d.Outcome
	}
	if d.Outcome.Status == writ.Rejected {
		g.no++
	}
	if d.Event == nil {
		g.faults = append(g.faults, "a decision without an event")
		return
	}
	if err := g.write(d); err != nil {
		g.faults = append(g.faults, fmt.Sprintf("record %d: %v", d.Event.N, err))
		return
	}
	g.log = append(g.log, logged{d, as, e, g.c.Now})
	at := g.c.Now.Sub(g.r.clock0)
	for _, op := range d.Event.Ops {
		switch {
		case op.Proposition != nil:
			id := op.Proposition.ID
			g.props = append(g.props, id)
			g.states[id] = append(g.states[id], belief{memory.Tentative, memory.RuleTentative, at})
			if e != nil {
				g.claims[id] = claimOf(e.payload)
				if g.adapter.oneLayer {
					g.promoted = append(g.promoted, promotion{id, at})
				}
			}
			g.named(as, id)
		case op.Observation != nil && e != nil && e.tool == memory.ToolRecordObservation:
			g.ids[text(e.payload, "observation_id")] = op.Observation.ID
			g.named(as, op.Observation.ID)
		case op.Entity != nil:
			g.named(as, op.Entity.ID)
		case op.Test != nil:
			g.named(as, op.Test.ID)
		case op.Episode != nil:
			g.named(as, op.Episode.ID)
		case op.Belief != nil:
			g.states[op.Belief.Proposition] = append(g.states[op.Belief.Proposition], belief{op.Belief.Next, op.Belief.Rule, at})
		case op.Mark != nil && op.Mark.Canonical != nil && *op.Mark.Canonical:
			g.promoted = append(g.promoted, promotion{op.Mark.Proposition, at})
		case op.Edge != nil && op.Edge.Type == memory.Contradicts:
			g.open[op.Edge.ID] = true
		case op.Close != nil:
			delete(g.open, op.Close.Edge)
		case op.Erase != nil:
			for _, n := range op.Erase.Records {
				g.erased[n] = true
			}
		case op.Consolidate != nil:
			g.consolidations = append(g.consolidations, newConsolidation(op.Consolidate, d.Event.At))
		}
	}
	for _, f := range d.Outcome.Effects {
		switch f.Effect {
		case "proposition.attached_existing":
			g.named(as, f.ID)
		case "entity.linked", "entity.linked_existing":
			g.named(as, f.ID)
			g.linked[as] = true
		}
	}
	for _, t := range d.Outcome.Transitions {
		g.transitions = append(g.transitions, transition{Changed: t, Evidence: g.cited(e)})
	}
	if e != nil && g.adapter.direct && d.Event.Reason == "" {
		switch e.tool {
		case memory.ToolPropose:
			if c := claimOf(e.payload); c.slot != "" {
				g.written[c.slot] = c.value
			}
		case memory.ToolAttachSupport:
			if c := g.claims[text(g.resolved(e.payload), "proposition_id")]; c.slot != "" {
				g.written[c.slot] = c.value
			}
		}
	}
}

// write does with an event what a log does. Of the product's own profiles it is
// also read back and decided again.
func (g *governed) write(d memory.Decision) error {
	if !g.adapter.logged {
		return g.state.Apply(d.Event, d.Value)
	}
	b, err := d.Event.Bytes()
	if err != nil {
		return err
	}
	e, err := memory.ParseEvent(b)
	if err != nil {
		return err
	}
	if _, err = memory.Recheck(g.state, g.policy, e, d.Value); err != nil {
		return err
	}
	return g.state.Apply(e, d.Value)
}

// cited are the observations a step names.
func (g *governed) cited(e *event) []string {
	out := []string{}
	if e == nil {
		return out
	}
	for _, o := range texts(e.payload, "observation_ids") {
		if id := g.ids[o]; id != "" {
			o = id
		}
		out = append(out, o)
	}
	return out
}

func (g *governed) named(as, id string) {
	if as != "" {
		g.ids[as] = id
	}
}

func (g *governed) reader() *memory.Reader {
	return &memory.Reader{State: g.state, Policy: g.policy, Principal: "user", Now: g.c.Now}
}

func (g *governed) slot(slot string) string {
	entity, predicate, _ := cutSlot(slot)
	return g.state.SlotOf(g.ids[entity], predicate, nil)
}

// ask reads the slot. Of several values that are usable at once, as a predicate
// with many values allows, the one believed most is taken.
func (g *governed) ask(e *event) reading {
	g.c.Now = g.r.instant(e.at)
	if v := g.written[e.slot]; g.adapter.direct && v != "" {
		return reading{value: v, confidence: memory.One}
	}
	a := g.m.Answer(g.reader(), g.slot(e.slot))
	if len(a.Values) == 0 {
		return reading{why: a.Abstention}
	}
	v := slices.MaxFunc(a.Values, func(x, y memory.View) int {
		return cmp.Or(cmp.Compare(btoi(x.State == memory.Accepted), btoi(y.State == memory.Accepted)), cmp.Compare(x.Confidence, y.Confidence))
	})
	out := reading{confidence: v.Confidence}
	if v.Object != nil {
		out.value = v.Object.Value
	}
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (g *governed) entity(as string) (string, bool, bool) {
	return g.ids[as], g.linked[as], g.ids[as] != ""
}

func (g *governed) size() (rows, size int) {
	var b bytes.Buffer
	if err := g.state.Encode(&b); err != nil {
		g.faults = append(g.faults, "the state cannot be written")
	}
	for _, text := range g.state.Texts() {
		size += len(text)
	}
	return bytes.Count(b.Bytes(), []byte("\n")) - 1, size // the first is its head
}

// verify folds the log again, without what was erased.
func (g *governed) verify() {
	if !g.adapter.logged {
		return
	}
	s := memory.New()
	for i, l := range g.log {
		b, err := l.d.Event.Bytes()
		if err == nil {
			var e *memory.Event
			if e, err = memory.ParseEvent(b); err == nil {
				v := l.d.Value
				if g.erased[e.N] {
					v = nil
				}
				err = s.Apply(e, v)
			}
		}
		if err != nil {
			g.faults = append(g.faults, fmt.Sprintf("record %d does not fold: %v", i+1, err))
			return
		}
	}
	if s.Digest() != g.state.Digest() {
		g.faults = append(g.faults, "the log does not fold to the same state")
	}
}

// history are the values of a slot in their order, as its timeline tells them.
func (g *governed) history(slot string) (out []string) {
	ms, _ := g.reader().Timeline(g.slot(slot), 0, 0)
	for _, m := range ms {
		if m.What == "value" {
			out = append(out, g.claims[m.ID].value)
		}
	}
	return out
}

// effects are the effects of a step's outcome.
func effects(o memory.Outcome) string {
	var out []string
	for _, e := range append(slices.Clone(o.Effects), o.Advisories...) {
		out = append(out, e.Effect)
	}
	return strings.Join(out, " ")
}
