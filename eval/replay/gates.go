package replay

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/eval/measure"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// A person answers what a gate asks. Nobody answers where he is nil.
type person func(s *Step) bool

// truthful allows ground truth and nothing else.
func truthful(s *Step) bool { return !s.Attacker }

// persons are those of --approve.
var persons = map[string]person{"none": nil, "truth": truthful, "all": func(*Step) bool { return true }}

// judge is one gate in one session of a user.
type judge interface {
	say(text string)
	call(s *Step) verdict
	saw(s *Step) // the result of a call that passed
}

// verdict is what a gate made of one call.
type verdict struct {
	allowed, asked bool
	refused        []refusal
	leaves         []leaf // of Writ's own gate: what its policy says of each argument
}

type refusal struct{ tool, pointer, reason, exact string }

// leaf is an argument leaf: its role, what vouched for it and where that stood.
type leaf struct{ pointer, role, rule, from string }

// gates are the columns of the report. The first is the one under test; the others
// say what its figures are worth.
var gates = []struct {
	name string
	open func(w *world, p person) judge
}{
	{"writ", func(w *world, _ person) judge { return newOurs(w, nil) }},
	{"writ_and_person", func(w *world, p person) judge { return newOurs(w, p) }},
	{"naive", func(*world, person) judge { return &naive{seen: map[string]bool{}} }},
	{"allow_all", func(*world, person) judge { return every(func(*Step) verdict { return verdict{allowed: true} }) }},
	{"deny_all", func(*world, person) judge { return every(func(s *Step) verdict { return verdict{allowed: !s.act()} }) }},
	{"ask_for_all", func(_ *world, p person) judge {
		return every(func(s *Step) verdict { return verdict{allowed: !s.act() || p != nil && p(s), asked: s.act()} })
	}},
}

// every is a gate that looks at the call alone.
type every func(s *Step) verdict

func (every) say(string)             {}
func (every) saw(*Step)              {}
func (e every) call(s *Step) verdict { return e(s) }

// naive lets an act pass if each of its values stood as a whole leaf in the result of
// an earlier call, whoever wrote it there.
type naive struct{ seen map[string]bool }

func (*naive) say(string) {}

func (n *naive) call(s *Step) verdict {
	ok := true
	if s.act() {
		measure.Leaves(s.Args, func(_ []string, v any) { ok = ok && (v == nil || text(v) == "" || n.seen[text(v)]) })
	}
	return verdict{allowed: ok}
}

func (n *naive) saw(s *Step) {
	if !s.failed() {
		measure.Leaves(s.Output, func(_ []string, v any) { n.seen[text(v)] = n.seen[text(v)] || v != nil })
	}
}

// spell writes a number as the corpora do: 98.70 is 98.7.
func spell(n json.Number) string {
	if s := n.String(); !strings.ContainsAny(s, ".eE") {
		return s
	}
	f, _ := n.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// at is the time of every decision: that of AgentDojo's and tau's worlds.
var at = time.Date(2024, 5, 15, 12, 0, 0, 0, time.UTC)

// ours is Writ's gate, driven as the gateway drives it.
type ours struct {
	w       *world
	person  person
	session *gate.Session
	decided gate.Decision
}

func newOurs(w *world, p person) *ours {
	return &ours{w: w, person: p, session: gate.NewSession("s_replay", sha256.Sum256([]byte(w.name)), provenance.Caps{})}
}

func (o *ours) say(text string) {
	o.session.Commit(o.session.Turn(o.session.Next(), []byte(text), at))
}

func (o *ours) call(s *Step) verdict {
	args := s.Args
	if !given(args) {
		args = json.RawMessage("{}")
	}
	value, _ := strictjson.Parse(args, strictjson.Request) // what is none, the gate refuses
	in := gate.Input{Policy: o.w.policy, Catalogue: o.w.catalogue, Session: o.session, Time: at,
		Call: gate.Call{Server: o.w.server, Tool: s.Tool, Arguments: value}}
	var v verdict
	d := decide(in)
	if ask := d.Ask(); ask != nil && o.person != nil {
		v.asked = true
		o.session.Commit(o.session.Approve(o.session.Next(), gate.Approval{Act: ask.Act, Covers: ask.Covers(), Yes: o.person(s), By: "person", Label: writ.User, At: at}))
		d = decide(in)
	}
	o.session.Decided(&d)
	o.decided = d
	v.allowed = d.Allowed()
	for _, t := range d.Traces {
		l := leaf{pointer: t.Pointer, role: t.Role, rule: t.Rule}
		if len(t.Evidence) > 0 {
			l.from = t.Evidence[0].Pointer
		}
		v.leaves = append(v.leaves, l)
	}
	if r := d.Outcome.Rejection; r != nil {
		for _, f := range r.Failures {
			v.refused = append(v.refused, refusal{s.Tool, general(f.Pointer), string(f.Reason), f.Pointer})
		}
		if len(r.Failures) == 0 {
			v.refused = append(v.refused, refusal{s.Tool, "", string(r.Reason), ""})
		}
	}
	return v
}

// decide is the one place that has a call judged.
func decide(in gate.Input) gate.Decision { return gate.Decide(in) }

func (o *ours) saw(s *Step) {
	r := o.w.result(s)
	r.Evidence = o.session.Next()
	o.session.Commit(o.session.Observe(&o.decided, r))
}

// general replaces the indices of a pointer by "*".
func general(pointer string) string {
	tokens := strings.Split(pointer, "/")
	for i, t := range tokens {
		if _, err := strconv.Atoi(t); err == nil {
			tokens[i] = "*"
		}
	}
	return strings.Join(tokens, "/")
}
