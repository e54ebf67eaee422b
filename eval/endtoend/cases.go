package endtoend

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/strictyaml"
)

// File is a file of cases. docs/formats.md describes it for who writes one.
type File struct {
	strictyaml.Place
	Version strictyaml.Whole `yaml:"version"`
	// Reads are the tools without a side effect, Acts those with one, each with
	// the arguments whose values must be founded. A tool that neither names is
	// not allowed, and an act of which every argument must be.
	Reads strictyaml.Words                 `yaml:"reads"`
	Acts  strictyaml.Map[strictyaml.Words] `yaml:"acts"`
	// Trusted are the tools whose results can found a value.
	Trusted strictyaml.Words     `yaml:"trusted"`
	Poison  poison               `yaml:"poison"`
	Cases   strictyaml.Seq[Case] `yaml:"cases"`

	digest string
}

// poison is what an injection is made of: a step that reads a text an attacker
// wrote, and the act that text asks for, which nobody requested.
type poison struct {
	strictyaml.Place
	Read Step `yaml:"read"`
	Act  Step `yaml:"act"`
}

// Step is an earlier request of the session and the call it comes to; without
// a call the user is asked for more, and has said something.
type Step struct {
	strictyaml.Place
	Request strictyaml.String   `yaml:"request"`
	Tool    strictyaml.String   `yaml:"call"`
	Args    strictyaml.Anything `yaml:"args"`

	plan claim.Plan
}

// Case is one request and what must come of it.
type Case struct {
	strictyaml.Place
	ID      strictyaml.String `yaml:"id"`
	Attack  strictyaml.String `yaml:"attack"`
	Note    strictyaml.String `yaml:"note"`
	Request strictyaml.String `yaml:"request"`
	// Before are earlier requests of the session, in their order.
	Before strictyaml.Seq[Step] `yaml:"before"`
	// Allow narrows the operator's tools to these.
	Allow strictyaml.Words `yaml:"allow"`
	// Founded are the values an act may carry at the end of this session.
	Founded strictyaml.Words `yaml:"founded"`
	// Expect is answer, needs_more_info, server_error, or the stage it stops at;
	// of several, any.
	Expect strictyaml.Words `yaml:"expect"`
	// Shows stands in the answer.
	Shows     strictyaml.String `yaml:"shows"`
	Summarise strictyaml.Truth  `yaml:"summarise"`
	// Attacks are what an adversary in the planner's place answers; where there
	// are none, they are derived.
	Attacks strictyaml.Seq[Attack] `yaml:"attacks"`
}

// Attack is one answer of an adversary, as text: a plan and perhaps a summary.
type Attack struct {
	strictyaml.Place
	ID      strictyaml.String `yaml:"id"`
	Attack  strictyaml.String `yaml:"attack"`
	Note    strictyaml.String `yaml:"note"`
	Plan    strictyaml.String `yaml:"plan"`
	Summary strictyaml.String `yaml:"summary"`
	Expect  strictyaml.Words  `yaml:"expect"`
	Shows   strictyaml.String `yaml:"shows"`
}

const (
	formVersion = 1
	maxCases    = 10_000
	maxSteps    = 20
)

var (
	idForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9_]{0,79}$`)
	attackID = regexp.MustCompile(`^[A-Z][0-9]{2}$`)
)

// BuiltIn are the cases that are part of the program: those of the built-in example server.
//
//go:embed cases/ask.yaml
var BuiltIn []byte

// ParseFile reads a file of cases. Its name is only repeated in the faults;
// with a fault there is no file.
func ParseFile(name string, b []byte) (*File, []strictyaml.Fault) {
	r := strictyaml.New(name)
	f := &File{}
	if r.Read(b, "a file of cases has the keys version, reads, acts, trusted and cases", f) {
		f.check(r)
	}
	if r.Count() > 0 {
		return nil, r.Faults()
	}
	f.digest = digest(b)
	return f, nil
}

// check finds what the types cannot.
func (f *File) check(r *strictyaml.Reader) {
	r.FaultIf(f.Version.N != formVersion, f.At("version"), "version must be 1", "write version: 1")
	tools(r, &f.Reads, &f.Trusted)
	reads := texts(&f.Reads)
	for _, e := range f.Acts.Entries {
		if _, _, ok := cutTool(e.Key.Value); !ok {
			r.Fault(e.Key, "a tool is named as server/tool", "example/delete_document")
		}
		r.FaultIf(slices.Contains(reads, e.Key.Value), e.Key, "a tool is a read or an act, not both", "")
	}
	if f.Poison.Given() {
		f.Poison.Read.check(r, true)
		f.Poison.Act.check(r, false)
		for _, key := range []string{"read", "act"} {
			r.FaultIf(f.Poison.Node.Get(key) == nil, f.Poison.Node, "what is poisoned has a read and the act it asks for", key+": {call: server/tool}")
		}
	}
	if n := len(f.Cases.Items); n == 0 || n > maxCases {
		r.Fault(f.At("cases"), "1 to 10000 cases are needed", "")
	}
	seen := map[string]bool{}
	for i := range f.Cases.Items {
		c := &f.Cases.Items[i]
		name(r, c.Place, c.ID, c.Attack, seen)
		r.FaultIf(!c.Request.Given() || c.Request.S == "", c.At("request"), "a case has a request", `request: Show me ticket INC-1042`)
		expected(r, c.Place, &c.Expect)
		tools(r, &c.Allow)
		r.FaultIf(len(c.Before.Items) > maxSteps, c.At("before"), "at most 20 earlier requests", "")
		for k := range c.Before.Items {
			c.Before.Items[k].check(r, true)
		}
		own := map[string]bool{}
		for k := range c.Attacks.Items {
			a := &c.Attacks.Items[k]
			name(r, a.Place, a.ID, a.Attack, own)
			r.FaultIf(!a.Plan.Given(), a.Place.Node, "an attack has a plan, the text the planner answers", "plan: '{…}'")
			expected(r, a.Place, &a.Expect)
		}
	}
}

// name checks what a case is called, and that nothing before it is.
func name(r *strictyaml.Reader, p strictyaml.Place, id, attack strictyaml.String, seen map[string]bool) {
	switch {
	case !idForm.MatchString(id.S):
		r.Fault(p.At("id"), "an id of 1 to 80 of a-z, 0-9 and _ is needed", "id: show_a_ticket")
	case seen[id.S]:
		r.Fault(p.At("id"), "the id "+id.S+" stands twice", "give it another")
	}
	seen[id.S] = true
	r.FaultIf(attack.Given() && !attackID.MatchString(attack.S), p.At("attack"), "not an attack's id", "attack: P12")
}

// The ends of a case that are no stage.
const (
	expectAnswer   = "answer"
	expectMoreInfo = "needs_more_info"
	expectServer   = "server_error"
)

func expected(r *strictyaml.Reader, p strictyaml.Place, w *strictyaml.Words) {
	known := []string{expectAnswer, expectMoreInfo, expectServer}
	for _, s := range claim.Stages() {
		if s != claim.StageAnswer {
			known = append(known, string(s))
		}
	}
	r.FaultIf(len(w.Items) == 0, p.At("expect"), "what must come of it is missing", "expect: answer")
	for _, x := range w.Items {
		r.FaultIf(!slices.Contains(known, x.S), x.Node, "unknown word "+strictyaml.Word(x.S), strictyaml.Nearest(x.S, known))
	}
}

func tools(r *strictyaml.Reader, of ...*strictyaml.Words) {
	for _, w := range of {
		for _, x := range w.Items {
			_, _, ok := cutTool(x.S)
			r.FaultIf(!ok, x.Node, "a tool is named as server/tool", "example/fetch_ticket")
		}
	}
}

func cutTool(s string) (server, tool string, ok bool) {
	server, tool, ok = strings.Cut(s, "/")
	return server, tool, ok && server != "" && tool != ""
}

// check reads what a step comes to. A requested one may be without a call.
func (s *Step) check(r *strictyaml.Reader, requested bool) {
	if !s.Given() {
		return
	}
	switch {
	case requested && s.Request.S == "":
		r.Fault(s.At("request"), "an earlier step has the request it answers", "request: List all tickets")
	case !requested && s.Request.Given():
		r.Fault(s.At("request"), "nobody requests what a poisoned text asks for", "")
	case requested && !s.Tool.Given():
		r.FaultIf(s.Args.Given(), s.At("args"), "args belong to a call", "call: server/tool")
		s.plan = claim.Plan{Type: claim.FinalAnswer, Answer: "What shall I do?"}
		return
	}
	server, tool, ok := cutTool(s.Tool.S)
	r.FaultIf(!ok, s.At("call"), "a call names server/tool", "call: example/fetch_ticket")
	s.plan = claim.Plan{Type: claim.CallTool, Server: server, Tool: tool, Args: writ.RawJSON("{}")}
	if s.Args.Given() && s.Args.Node.Kind != strictyaml.Mapping {
		r.Fault(s.Args.Node, "a mapping is expected here", "args: {id: INC-1042}")
	} else if s.Args.Given() {
		if b, ok := r.JSON(s.Args.Node); ok {
			s.plan.Args = b
		}
	}
}

func texts(w *strictyaml.Words) []string {
	out := make([]string, len(w.Items))
	for i, x := range w.Items {
		out[i] = x.S
	}
	return out
}
