package policy

import (
	"maps"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/provenance"
)

// The words of a policy.
var (
	effectWords = byWord(effectNames[:], func(i int) Effect { return 1 << i })
	roleWords   = byWord(roleNames[:], func(i int) Role { return Role(i) })
	labelWords  = map[string]writ.Label{
		"system": writ.System, "party": writ.Party, "external": writ.External, "model": writ.Model,
	}
	noArgsWords = map[string]NoArgs{"refuse": NoArgsRefuse, "approval": NoArgsApproval, "allow": NoArgsAllow, "user": NoArgsUser}
	sourceWords = map[string]SourceKind{
		"output": FromOutput, "const": FromConst, "catalog": FromCatalog, "derived": FromDerived, "seen": FromSeen,
		"user": FromUser, "said_by": FromSaidBy, "of_named": FromNamed, "approval": FromApproval,
	}
	extractWords = map[string]provenance.Extract{"lines": provenance.ExtractLines, "json": provenance.ExtractJSON, "tree": provenance.ExtractTree, "start": provenance.ExtractStart}
	typeWords    = func() map[string]provenance.Type {
		out := map[string]provenance.Type{}
		for _, t := range provenance.Types() {
			out[string(t)] = t
		}
		return out
	}()
)

// byWord finds what a list of names is a list of.
func byWord[T any](names []string, of func(i int) T) map[string]T {
	out := map[string]T{}
	for i, name := range names {
		out[name] = of(i)
	}
	return out
}

// emptyList reports a list that is written, with nothing in it.
func emptyList(p strictyaml.Place) bool {
	return p.Given() && p.Node.Kind == strictyaml.List && len(p.Node.Items) == 0
}

// single reports whether a pattern is the pointer of one argument: exact, and not empty.
func single(p provenance.Pattern) bool { return len(p.Tokens) > 0 && p.Exact() }

// pick reads one word of a set.
func pick[T any](r *reader, t strictyaml.String, set map[string]T) (v T, ok bool) {
	if !t.Given() || t.Node.Kind != strictyaml.Text {
		return v, false // absent, or a fault already
	}
	if v, ok = set[t.S]; ok {
		return v, true
	}
	r.Fault(t.Node, "unknown word "+strictyaml.Word(t.S), strictyaml.Nearest(t.S, slices.Sorted(maps.Keys(set))))
	return v, false
}

// A sourceFile is one item of `from:`: a word, or a mapping of one word to
// what it is restricted to.
type sourceFile struct {
	strictyaml.Place
	kind  *strictyaml.Node     // the word
	ref   strictyaml.String    // output, said_by or of_named: server/tool#/pointer
	said  strictyaml.Words     // of_named, derived: fresh, const and output: phrases: [...]
	cons  strictyaml.Constants // const: [...]
	op    strictyaml.String    // derived: path_join
	until strictyaml.Words     // output with phrases: the tools by whose calls it may be over
	valid bool
}

const sourceHint = "user, output, output: server/tool#/pointer, const: [...], catalog, derived: path_join, typed_in, fresh, due or element, seen, said_by: server/tool#/pointer, of_named: server/tool#/pointer with phrases: [...], or approval"

func (s *sourceFile) ReadYAML(r *strictyaml.Reader, n *strictyaml.Node) {
	switch {
	case n.Kind.Scalar():
		s.kind = n
		switch n.Value {
		case "user", "output", "catalog", "seen", "approval":
			s.valid = true
		case "const", "derived", "said_by", "of_named":
			r.Fault(n, strictyaml.Word(n.Value)+" needs a value", "use "+sourceHint)
		default:
			r.Fault(n, "unknown source "+strictyaml.Word(n.Value), "use "+sourceHint)
		}
	case s.phrased(n) != nil:
		s.kind = n.Items[0]
		before := r.Count()
		r.Decode(n.Items[1], s.phrased(n))
		r.Decode(n.Items[3], &s.said)
		if len(n.Items) == 6 {
			r.Decode(n.Items[5], &s.until)
		}
		s.valid = r.Count() == before && (s.kind.Value != "const" || len(s.cons.Items) > 0)
	case n.Kind == strictyaml.Mapping && len(n.Items) == 2:
		s.kind = n.Items[0]
		before := r.Count()
		switch v := n.Items[1]; s.kind.Value {
		case "output", "said_by":
			r.Decode(v, &s.ref)
		case "const":
			r.Decode(v, &s.cons)
			r.FaultIf(len(s.cons.Items) == 0 && r.Count() == before, v, "an empty list of constants accepts nothing", "list the constants")
		case "derived":
			r.Decode(v, &s.op)
			r.FaultIf(!slices.Contains([]string{PathJoin, TypedIn, FreshName, Due, Element}, s.op.S) && r.Count() == before, v, "unknown derivation "+strictyaml.Word(s.op.S), "derived: path_join, typed_in, fresh, due or element")
		case "of_named":
			r.Fault(s.kind, "of_named needs what users call such values before they name the record", "{ of_named: server/tool#/people/*/email, phrases: [same people as] }")
		case "user", "catalog", "seen", "approval":
			r.Fault(s.kind, strictyaml.Word(s.kind.Value)+" takes no value", "")
		default:
			r.Fault(s.kind, "unknown source "+strictyaml.Word(s.kind.Value), "use "+sourceHint)
		}
		s.valid = r.Count() == before
	default:
		s.kind = n
		r.Fault(n, "a source is a word, or one word and its value", "use "+sourceHint)
	}
}

// phrased is where the value goes of a source that stands with phrases, nil of any other.
func (s *sourceFile) phrased(n *strictyaml.Node) any {
	if n.Kind != strictyaml.Mapping || len(n.Items) < 4 || n.Items[2].Value != "phrases" {
		return nil
	}
	switch word := n.Items[0].Value; {
	case len(n.Items) == 6 && n.Items[4].Value == "until" && word == "output":
		return &s.ref
	case len(n.Items) != 4:
		return nil
	case word == "of_named", word == "output":
		return &s.ref
	case word == "derived" && (n.Items[1].Value == FreshName || n.Items[1].Value == Element):
		return &s.op
	case word == "const":
		return &s.cons
	}
	return nil
}

// An ownerFile is a list of constants, the word user, or both.
type ownerFile struct {
	strictyaml.Place
	consts [][]byte
	user   bool
}

func (o *ownerFile) ReadYAML(r *strictyaml.Reader, n *strictyaml.Node) {
	if n.Kind.Scalar() && n.Plain && n.Value == "user" {
		o.user = true
		return
	}
	rest := *n
	rest.Items = slices.DeleteFunc(slices.Clone(n.Items), func(c *strictyaml.Node) bool {
		user := n.Kind == strictyaml.List && c.Plain && c.Value == "user"
		o.user = o.user || user
		return user
	})
	if o.user && len(rest.Items) == 0 {
		return
	}
	var c strictyaml.Constants
	c.ReadYAML(r, &rest)
	if o.consts = c.Items; n.Kind == strictyaml.List && len(n.Items) == 0 {
		r.Fault(n, "an empty list of owners accepts nothing", "list the owners")
	}
}

// A recordsFile is a list of pointers, or a list of such lists.
type recordsFile struct {
	strictyaml.Place
	lists []strictyaml.Words
}

func (f *recordsFile) ReadYAML(r *strictyaml.Reader, n *strictyaml.Node) {
	if n.Kind != strictyaml.List || len(n.Items) == 0 {
		r.Fault(n, "a list of the arguments of one record, or several such lists", "same_record: [/order_id, /item_ids/*]")
		return
	}
	if n.Items[0].Kind != strictyaml.List {
		f.lists = make([]strictyaml.Words, 1)
		r.Decode(n, &f.lists[0])
		return
	}
	f.lists = make([]strictyaml.Words, len(n.Items))
	for i, one := range n.Items {
		r.Decode(one, &f.lists[i])
	}
}

// A caseFile is { /pointer: [values], effect: …, args: …, phrases: … }.
type caseFile struct {
	strictyaml.Place
	at     *strictyaml.Node
	values strictyaml.Constants
	body   caseBody
}

type caseBody struct {
	strictyaml.Place
	Effect strictyaml.Words        `yaml:"effect"`
	Args   strictyaml.Map[argFile] `yaml:"args"`
	// Phrases stand in the contract's stead, and say the case's value (R21).
	Phrases strictyaml.Words `yaml:"phrases"`
}

func (c *caseFile) ReadYAML(r *strictyaml.Reader, n *strictyaml.Node) {
	if n.Kind != strictyaml.Mapping {
		r.Fault(n, "a case is a mapping", "- { /method: [get, list], effect: read }")
		return
	}
	rest := *n
	rest.Items = nil
	for i := 0; i+1 < len(n.Items); i += 2 {
		k, v := n.Items[i], n.Items[i+1]
		if !strings.HasPrefix(k.Value, "/") {
			rest.Items = append(rest.Items, k, v)
			continue
		}
		if c.at != nil {
			r.Fault(k, "a case names one argument", "")
			continue
		}
		c.at = k
		r.Decode(v, &c.values)
		r.FaultIf(v.Kind == strictyaml.List && len(v.Items) == 0, v, "an empty list of values is no case", "")
	}
	r.FaultIf(c.at == nil, n, "the case names no argument", "- { /method: [get, list], effect: read }")
	r.Decode(&rest, &c.body)
}
