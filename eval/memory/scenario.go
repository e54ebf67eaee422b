package memory

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/memory"
)

// scenario is a file of cases/, one variant of it: what stood in angle brackets
// was put in.
type scenario struct {
	strictyaml.Place
	ID       strictyaml.String `yaml:"id"`
	Stage    strictyaml.Whole  `yaml:"stage"`
	Family   strictyaml.String `yaml:"family"`
	Note     strictyaml.String `yaml:"note"`
	Profiles strictyaml.Words  `yaml:"profile"`
	// Seed is each (a run for every seed) or none.
	Seed    strictyaml.String                     `yaml:"seed"`
	Clock0  strictyaml.String                     `yaml:"clock0"`
	Params  strictyaml.Map[scalars]               `yaml:"params"`
	Draw    strictyaml.Map[strictyaml.String]     `yaml:"draw"`
	Sources strictyaml.Seq[source]                `yaml:"sources"`
	Steps   strictyaml.Seq[step]                  `yaml:"steps"`
	Chain   succession                            `yaml:"chain"`
	Expect  strictyaml.Seq[expect]                `yaml:"expect"`
	Truth   strictyaml.Map[strictyaml.Seq[truth]] `yaml:"ground_truth"`

	clock0 time.Time
}

// head is what is read of a file before anything is put in.
type head struct {
	ID     strictyaml.String
	Seed   strictyaml.String
	Params strictyaml.Map[scalars]
	Draw   strictyaml.Map[strictyaml.String]
}

// scalars is a list of plain scalars, as they are written.
type scalars struct{ items []string }

// ReadYAML implements strictyaml.Readable.
func (s *scalars) ReadYAML(r *strictyaml.Reader, n *strictyaml.Node) {
	if n.Kind != strictyaml.List || len(n.Items) == 0 || len(n.Items) > 20 {
		r.Fault(n, "a list of 1 to 20 values is expected here", "write [1, 24, 240]")
		return
	}
	for _, it := range n.Items {
		if !it.Kind.Scalar() || !paramForm.MatchString(it.Value) {
			r.Fault(it, "a value of letters, digits, . _ and - is expected here", "")
			continue
		}
		s.items = append(s.items, it.Value)
	}
}

// hours is a time in hours: a decimal, or a sum of them, such as 24+0.5.
type hours struct {
	strictyaml.Place
	d time.Duration
}

// ReadYAML implements strictyaml.Readable.
func (h *hours) ReadYAML(r *strictyaml.Reader, n *strictyaml.Node) {
	for part := range strings.SplitSeq(n.Value, "+") {
		d, ok := parseHours(part)
		if !n.Kind.Scalar() || !ok {
			r.Fault(n, "a time in hours is expected here", "write 24, 0.5, or a sum such as 24+0.5")
			return
		}
		h.d += d
	}
}

// parseHours reads a decimal with at most three places, in whole numbers.
func parseHours(s string) (time.Duration, bool) {
	whole, frac, dot := strings.Cut(s, ".")
	if whole == "" || len(whole) > 6 || len(frac) > 3 || dot && frac == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+frac+strings.Repeat("0", 3-len(frac)), 10, 32)
	return time.Duration(n) * time.Hour / 1000, err == nil
}

// source is where evidence comes from. What of it the channel does not say, an
// operator has registered.
type source struct {
	strictyaml.Place
	ID    strictyaml.String `yaml:"id"`
	Label strictyaml.String `yaml:"label"`
	Class strictyaml.String `yaml:"class"`
	Group strictyaml.String `yaml:"group"`
	// Count makes that many sources of one, with {i} in the id.
	Count       strictyaml.Whole  `yaml:"count"`
	Reliability strictyaml.String `yaml:"reliability"`
	// Attacker says that who writes there wants a falsehood believed.
	Attacker strictyaml.Truth `yaml:"attacker"`

	label writ.Label
}

// step is one thing that happens. Exactly one of tool, operator, read and tick
// is given.
type step struct {
	strictyaml.Place
	At       hours               `yaml:"at_h"`
	Tool     strictyaml.String   `yaml:"tool"`
	Operator strictyaml.String   `yaml:"operator"`
	Read     strictyaml.String   `yaml:"read"`
	Tick     strictyaml.Truth    `yaml:"tick"`
	Payload  strictyaml.Anything `yaml:"payload"`
	// As names the step, and what it made: $name stands for its id.
	As strictyaml.String `yaml:"as"`
	// From is the source whose words the observation repeats verbatim; without
	// it they are the agent's own.
	From     strictyaml.String `yaml:"from"`
	Session  strictyaml.String `yaml:"session"`
	Question strictyaml.String `yaml:"question"`
	// Is says, of an entity, which thing of the world is meant.
	Is strictyaml.String `yaml:"is"`
	// Corrects says that with this step the true value of the slot has been
	// said, where something else was believed.
	Corrects strictyaml.String `yaml:"corrects"`
	Repeat   repeat            `yaml:"repeat"`

	payload []byte
}

// repeat does a step several times, with {i} counting from 1.
type repeat struct {
	strictyaml.Place
	Times strictyaml.Whole `yaml:"times"`
	Every hours            `yaml:"every_h"`
}

// truth is what holds from an hour on: a value, or that nobody can know, or
// that those who ought to know disagree. Of both nothing may be returned.
type truth struct {
	strictyaml.Place
	From     hours             `yaml:"from_h"`
	Value    strictyaml.String `yaml:"value"`
	Unknown  strictyaml.Truth  `yaml:"unknown"`
	Disputed strictyaml.Truth  `yaml:"disputed"`
}

// expect is what must hold after everything up to that hour, in one profile or
// in each. One of prop, slot, entity, observation and step says of what.
type expect struct {
	strictyaml.Place
	At          hours             `yaml:"at_h"`
	Profile     strictyaml.String `yaml:"profile"`
	Prop        strictyaml.String `yaml:"prop"`
	Slot        strictyaml.String `yaml:"slot"`
	Entity      strictyaml.String `yaml:"entity"`
	Observation strictyaml.String `yaml:"observation"`
	Step        strictyaml.String `yaml:"step"`

	State strictyaml.String `yaml:"state"`
	Never strictyaml.String `yaml:"never"` // a state it was in at no time
	Rule  strictyaml.String `yaml:"rule_id"`
	// Recorded and RecordedRule are of the newest state that an event put down,
	// the others of the state at that hour.
	Recorded     strictyaml.String `yaml:"recorded"`
	RecordedRule strictyaml.String `yaml:"recorded_rule_id"`
	Confidence   strictyaml.String `yaml:"confidence"`
	Canonical    strictyaml.Truth  `yaml:"canonical"`
	Disputes     strictyaml.Whole  `yaml:"disputes"`
	Value        strictyaml.String `yaml:"value"`
	Abstains     strictyaml.String `yaml:"abstains"`
	History      strictyaml.Words  `yaml:"history"`
	SameAs       strictyaml.Words  `yaml:"possible_same_as"`
	LinkedTo     strictyaml.String `yaml:"linked_to"`
	New          strictyaml.Truth  `yaml:"new"`
	Erased       strictyaml.Truth  `yaml:"erased"`
	Effect       strictyaml.String `yaml:"effect"`
	Refused      strictyaml.String `yaml:"refused"`
}

var (
	scenarioID = regexp.MustCompile(`^S[1-4]\.[0-9]{1,2}[a-z]?$`)
	wordForm   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	paramForm  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,40}$`)
	slotForm   = regexp.MustCompile(`^([a-z][a-z0-9_]{0,39})\.([a-z][a-z0-9_]{0,39})$`)
	reference  = regexp.MustCompile(`\$([a-z][a-z0-9_-]*)`)
	stateWords = []string{"tentative", "provisional", "accepted", "contested", "deprecated", "rejected"}
	noAnswers  = []string{string(memory.InsufficientEvidence), string(memory.IsContested), string(memory.HasExpired), string(memory.WasErased), string(memory.NothingKnown)}
)

const (
	maxVariants = 60
	maxRepeat   = 200
)

// check finds what the types cannot, and fills in what follows.
func (s *scenario) check(r *strictyaml.Reader) {
	if !scenarioID.MatchString(s.ID.S) {
		r.Fault(s.At("id"), "an id is like S2.1 or S2.1b", "")
	}
	if s.Stage.N != 1 && s.Stage.N != 2 || !strings.HasPrefix(s.ID.S, "S"+strconv.Itoa(s.Stage.N)+".") {
		r.Fault(s.At("stage"), "the stage is 1 or 2, as in the id", "")
	}
	if !wordForm.MatchString(s.Family.S) {
		r.Fault(s.At("family"), "a family is a lower-case word", "")
	}
	if s.Seed.S != "each" && s.Seed.S != "none" {
		r.Fault(s.At("seed"), "seed is each or none", "each: one run for every seed")
	}
	if s.Seed.S == "none" && len(s.Draw.Entries) > 0 {
		r.Fault(s.At("draw"), "what is drawn is drawn by a seed", "write seed: each")
	}
	if len(s.Profiles.Items) == 0 {
		r.Fault(s.At("profile"), "the profiles it says something of are missing", "write [v01q, v1]")
	}
	for _, p := range s.Profiles.Items {
		if p.S != "v1" && p.S != "v01q" {
			r.Fault(p.Node, "a profile is v1 or v01q", "")
		}
	}
	at, err := time.Parse(time.RFC3339, s.Clock0.S)
	if err != nil {
		r.Fault(s.At("clock0"), "a time of RFC 3339 is expected here", "write 2026-11-01T08:00:00Z")
	}
	s.clock0 = at.UTC()
	sources := map[string]bool{}
	for i := range s.Sources.Items {
		s.Sources.Items[i].check(r)
		sources[s.Sources.Items[i].ID.S] = true
	}
	names := map[string]string{}
	last := time.Duration(0)
	for i := range s.Steps.Items {
		st := &s.Steps.Items[i]
		st.check(r, sources, names)
		if st.At.d < last {
			r.Fault(st.Place.At("at_h"), "steps stand in the order of time", "")
		}
		last = st.At.d
	}
	if len(s.Steps.Items) == 0 {
		r.Fault(s.At("steps"), "a scenario has steps", "")
	}
	s.Chain.check(r, sources, names)
	if len(s.Expect.Items) == 0 && !s.Chain.Given() {
		r.Fault(s.At("expect"), "a scenario expects something", "")
	}
	for i := range s.Expect.Items {
		s.Expect.Items[i].check(r, names)
	}
	for _, e := range s.Truth.Entries {
		s.checkTruth(r, e, names)
	}
	for i := range s.Steps.Items {
		if rd := s.Steps.Items[i].Read; rd.Given() && !s.Chain.Given() && !slices.ContainsFunc(s.Truth.Entries, func(e strictyaml.Entry[strictyaml.Seq[truth]]) bool { return e.Key.Value == rd.S }) {
			r.Fault(rd.Node, "ground_truth says nothing of what is read", "")
		}
	}
}

// given is how many of them are.
func given(of ...bool) (n int) {
	for _, g := range of {
		n += btoi(g)
	}
	return n
}

func (s *scenario) checkTruth(r *strictyaml.Reader, e strictyaml.Entry[strictyaml.Seq[truth]], names map[string]string) {
	slotOf(r, e.Key, e.Key.Value, names)
	last := time.Duration(-1)
	for _, t := range e.Value.Items {
		if given(t.Value.Given(), t.Unknown.Is, t.Disputed.Is) != 1 {
			r.Fault(t.Node, "a truth is a value, unknown or disputed", "")
		}
		if t.From.d <= last {
			r.Fault(t.Node, "truths stand in the order of time", "")
		}
		last = t.From.d
	}
	if len(e.Value.Items) == 0 || e.Value.Items[0].From.d != 0 {
		r.Fault(e.Key, "the first truth is from hour 0", "")
	}
}

// slotOf takes a slot apart: the name of a step that made an entity, and a
// predicate.
func slotOf(r *strictyaml.Reader, n *strictyaml.Node, slot string, names map[string]string) {
	m := slotForm.FindStringSubmatch(slot)
	if m == nil || names[m[1]] != memory.ToolEntity {
		r.Fault(n, "a slot is the name of a step that made an entity, a dot and a predicate", "write boat.owner")
	}
}

func (s *source) check(r *strictyaml.Reader) {
	if s.ID.S == "" || len(s.ID.S) > 100 {
		r.Fault(s.At("id"), "a source has an id", "")
	}
	l, err := writ.ParseLabel(s.Label.S)
	if err != nil || l == writ.Model {
		r.Fault(s.At("label"), "the label Writ gives what comes from there", "write operator, user, system, party or external")
	}
	s.label = l
	if s.Reliability.Given() {
		if _, ok := parseHours(s.Reliability.S); !ok {
			r.Fault(s.Reliability.Node, "a number from 0 to 1 with at most three places, in quotes", "")
		}
	}
	if s.Count.Given() && (s.Count.N < 1 || s.Count.N > maxRepeat) {
		r.Fault(s.Count.Node, "from 1 to 200 sources", "")
	}
}

// check of a step notes its name for those behind it.
func (s *step) check(r *strictyaml.Reader, sources map[string]bool, names map[string]string) {
	if given(s.Tool.Given(), s.Operator.Given(), s.Read.Given(), s.Tick.Is) != 1 || !s.At.Given() {
		r.Fault(s.Node, "a step has at_h and one of tool, operator, read and tick", "")
		return
	}
	// A tool may be one that does not exist: that is refused.
	if s.Operator.Given() && (!slices.Contains(memory.Commands(), s.Operator.S) || s.Operator.S == memory.CommandOpen) {
		r.Fault(s.Operator.Node, "an operator's command is expected here", strictyaml.Nearest(s.Operator.S, memory.Commands()))
	}
	if s.Read.Given() {
		slotOf(r, s.Read.Node, s.Read.S, names)
	}
	if s.Corrects.Given() {
		slotOf(r, s.Corrects.Node, s.Corrects.S, names)
	}
	if s.From.Given() && !sources[s.From.S] {
		r.Fault(s.From.Node, "a source of this scenario is expected here", "")
	}
	if s.Repeat.Given() && (s.Repeat.Times.N < 1 || s.Repeat.Times.N > maxRepeat) {
		r.Fault(s.Repeat.Node, "from 1 to 200 times", "")
	}
	s.payload = []byte("{}")
	if s.Payload.Given() {
		b, ok := r.JSON(s.Payload.Node)
		if ok && strictjson.KindOf(b) != strictjson.Object {
			r.Fault(s.Payload.Node, "a payload is a mapping", "")
		}
		s.payload = b
		for _, m := range reference.FindAllSubmatch(b, -1) {
			if names[string(m[1])] == "" {
				r.Fault(s.Payload.Node, "$"+string(m[1])+" is no step before this one", "")
			}
		}
	}
	if id, ok := strictjson.Text(strictjson.Get(s.payload, "observation_id")); ok && s.Tool.S == memory.ToolRecordObservation {
		names[id] = "observation"
	}
	if s.As.Given() {
		if !wordForm.MatchString(s.As.S) || names[s.As.S] != "" {
			r.Fault(s.As.Node, "a name is a lower-case word that no other step has", "")
		}
		names[s.As.S] = s.Tool.S + s.Operator.S
	}
	if s.Is.Given() && s.Tool.S != memory.ToolEntity {
		r.Fault(s.Is.Node, "what is meant is said of an entity", "")
	}
}

func (e *expect) check(r *strictyaml.Reader, names map[string]string) {
	if given(e.Prop.Given(), e.Entity.Given(), e.Observation.Given(), e.Step.Given(), e.Slot.Given()) != 1 || !e.At.Given() {
		r.Fault(e.Node, "an expectation has at_h and one of prop, slot, entity, observation and step", "")
		return
	}
	says := e.Rule.Given()
	for _, of := range []struct {
		s          strictyaml.String
		tool, what string // the tool that makes it, "" for any
		claims     []*strictyaml.Node
	}{
		{e.Prop, memory.ToolPropose, "a prop", []*strictyaml.Node{e.State.Node, e.Never.Node, e.Confidence.Node, e.Canonical.Node, e.Disputes.Node, e.Recorded.Node, e.RecordedRule.Node}},
		{e.Slot, "", "a slot", []*strictyaml.Node{e.Value.Node, e.Abstains.Node, e.History.Node}},
		{e.Entity, memory.ToolEntity, "an entity", []*strictyaml.Node{e.SameAs.Node, e.LinkedTo.Node, e.New.Node}},
		{e.Observation, "observation", "an observation", []*strictyaml.Node{e.Erased.Node}},
		{e.Step, "", "a step", []*strictyaml.Node{e.Effect.Node, e.Refused.Node}},
	} {
		switch {
		case !of.s.Given():
		case of.what == "a slot":
			slotOf(r, of.s.Node, of.s.S, names)
		case names[of.s.S] == "" || of.tool != "" && names[of.s.S] != of.tool:
			r.Fault(of.s.Node, "the name of a step that made it is expected here", "")
		}
		for _, n := range of.claims {
			if says = says || n != nil; n != nil && !of.s.Given() {
				r.Fault(n, "that is said of "+of.what, "")
			}
		}
	}
	if e.Rule.Given() && !e.Prop.Given() {
		r.Fault(e.Rule.Node, "a rule is that of a prop", "of a step, write effect")
	}
	for _, w := range []strictyaml.String{e.State, e.Never, e.Recorded} {
		if w.Given() && !slices.Contains(stateWords, w.S) {
			r.Fault(w.Node, "a state is expected here", strictyaml.Nearest(w.S, stateWords))
		}
	}
	if e.Abstains.Given() && !slices.Contains(noAnswers, e.Abstains.S) {
		r.Fault(e.Abstains.Node, "a reason for no answer is expected here", strictyaml.Nearest(e.Abstains.S, noAnswers))
	}
	if e.Profile.Given() && e.Profile.S != "v1" && e.Profile.S != "v01q" {
		r.Fault(e.Profile.Node, "a profile is v1 or v01q", "")
	}
	for _, w := range append(slices.Clone(e.SameAs.Items), e.LinkedTo) {
		if w.Given() && names[w.S] != memory.ToolEntity {
			r.Fault(w.Node, "the name of a step that made an entity is expected here", "")
		}
	}
	if !says {
		r.Fault(e.Node, "it does not say what is expected", "")
	}
}
