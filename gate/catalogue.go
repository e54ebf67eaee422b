package gate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/schema"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// Kind says which list of a server a definition stood in.
type Kind string

// The kinds of definitions. The zero Kind is a tool.
const (
	ToolKind     Kind = ""
	PromptKind   Kind = "prompt"
	ResourceKind Kind = "resource"
	TemplateKind Kind = "template"
	// HostKind is a tool that a client has itself and asks about before it runs it. No
	// client is offered it, and its name takes none from a server's tools.
	HostKind Kind = "host"
)

// Definition is one entry of a server's list, exactly as the server sent it.
type Definition struct {
	Server string
	Kind   Kind
	Raw    []byte // the JSON object, byte for byte
}

// State says what may be done with a tool. The zero State is the most closed.
type State uint8

// The states of a tool.
const (
	// Refused tools did not pass the vetting of their definition. They are
	// neither listed nor callable in any mode.
	Refused State = iota
	// Shut tools are harmless to show to an operator but not open: no contract,
	// no pin, a changed definition, a closed contract. Shadow mode lists them.
	Shut
	// Open tools are listed and judged by their contract.
	Open
)

// Tool is one tool of the catalogue: what its server published, vetted, and
// what the operator said of it. It is immutable and safe for concurrent use.
type Tool struct {
	Server string
	Name   string        // the server's own name; for R32 the method, as in "resources/read"
	Method policy.Method // CallTool for a tool
	Public string        // the name a client sees
	Pin    string        // of the definition as it is now, "sha256:<hex>"; "" for R32 methods
	Raw    []byte        // the definition as it was sent, nil for R32 methods
	State  State
	Reason writ.Reason // why the tool is not open, "" when it is

	// Contract is nil when the operator declared none: every effect, every
	// argument a target, all output external.
	Contract *policy.Contract

	host       bool             // of HostKind
	definition strictjson.Value // Raw
	added      policy.Effect    // what the server's annotations add
	input      *schema.Schema
	output     []*schema.Schema // all must hold
}

// Catalogue is the set of tools at one moment. It is immutable.
type Catalogue struct {
	policy *policy.Policy   // it was joined to, nil for none: Decide takes no other
	tools  map[string]*Tool // by "server/name"
	public map[string]*Tool // by public name
	order  []*Tool          // by server, then name
	others []Definition
	digest [32]byte
}

// Finding is what the making of a catalogue has to tell the operator. Nothing
// in it is a text a server chose, but names that passed the check of names.
type Finding struct {
	Server  string
	Tool    string      // "" for the whole server
	Reason  writ.Reason // why something is not open, "" for a mere warning
	Message string
	Hint    string // what to do, may be ""
	// Line and Column point into the policy where the finding is about it.
	Line, Column int
}

// NewCatalogue vets every definition and joins it with its contract. It never
// fails: what is not acceptable is not open, and a finding says why. The answer
// depends on the set of definitions and the policy alone, not on their order.
// A nil policy has no contract. Decide takes the catalogue only with that policy.
//
// A contract whose tool is not among the definitions yields a finding unless
// it says `optional: true`; whether that stops the start is for the caller, who
// knows which servers answered.
func NewCatalogue(defs []Definition, p *policy.Policy) (*Catalogue, []Finding) {
	return (*Catalogue)(nil).Renewed(defs, p)
}

// Renewed answers as NewCatalogue does, and takes over what this catalogue, nil for
// none, has compiled of the same schemas: most of the work where the policy alone is
// another.
func (c *Catalogue) Renewed(defs []Definition, p *policy.Policy) (*Catalogue, []Finding) {
	given := p
	if p == nil {
		p = &policy.Policy{Profile: policy.Standard}
	}
	m := &making{policy: p, tools: map[string]*Tool{}, servers: map[string][]*Tool{}, compiled: c.compiled()}
	for _, d := range sortedDefinitions(defs) {
		m.add(d)
	}
	m.refuseLists()
	for _, key := range slices.Sorted(maps.Keys(m.tools)) {
		m.compile(m.tools[key])
		m.join(m.tools[key])
	}
	m.unlisted()
	out := &Catalogue{policy: given, tools: m.tools, public: map[string]*Tool{}, others: m.others, digest: m.digest()}
	for _, t := range m.tools {
		out.order = append(out.order, t)
	}
	slices.SortFunc(out.order, func(a, b *Tool) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Name, b.Name))
	})
	m.name(out)
	slices.SortStableFunc(m.findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Tool, b.Tool), strings.Compare(a.Message, b.Message))
	})
	return out, slices.Compact(m.findings)
}

// Definitions returns the vetted prompts, resources or templates, as they were
// sent, by server and then by bytes. Tools are not among them.
func (c *Catalogue) Definitions(k Kind) []Definition {
	var out []Definition
	if c != nil {
		for _, d := range c.others {
			if d.Kind == k {
				out = append(out, d)
			}
		}
	}
	return out
}

// Lookup returns the tool of that server and name, open or not, nil when there
// is none. For R32 the name is the method, as in "resources/read".
func (c *Catalogue) Lookup(server, name string) *Tool {
	if c == nil {
		return nil
	}
	return c.tools[server+"/"+name]
}

// Resolve finds the tool a client means by a public name. A tool that is not
// listed in this mode is returned with listed false, for the record alone: the
// client must be answered as for a name that resolves to nothing.
func (c *Catalogue) Resolve(public string, shadow bool) (t *Tool, listed bool) {
	if c == nil {
		return nil, false
	}
	t = c.public[public]
	return t, t != nil && t.listed(shadow)
}

// Listed returns the tools a client is shown, by server and then by name:
// open ones, and in shadow mode shut ones too. R32 methods are not among them.
func (c *Catalogue) Listed(shadow bool) []*Tool {
	var out []*Tool
	if c != nil {
		for _, t := range c.order {
			if t.Method == policy.CallTool && t.listed(shadow) {
				out = append(out, t)
			}
		}
	}
	return out
}

// Tools returns every tool the servers published and every R32 method a
// contract names, in the order of Listed, for the operator's eyes.
func (c *Catalogue) Tools() []*Tool {
	if c == nil {
		return nil
	}
	return append([]*Tool(nil), c.order...)
}

// Digest is the SHA-256 over every definition the catalogue was made from, in
// sorted order. It is recorded with each decision.
func (c *Catalogue) Digest() [32]byte {
	if c == nil {
		return [32]byte{}
	}
	return c.digest
}
