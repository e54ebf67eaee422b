package gate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/provenance"
)

// The words of a policy.
var (
	effectWords = map[string]Effect{
		"read": Read, "egress": Egress, "write": Write, "send": Send,
		"transfer": Transfer, "delete": Delete, "auth": Auth,
	}
	roleWords = map[string]Role{
		"target": Target, "selector": Selector, "amount": Amount, "time": TimeRole, "enum": Enum,
		"control": Control, "content": Content, "query": Query, "secret": SecretRole,
	}
	labelWords = map[string]writ.Label{
		"system": writ.System, "party": writ.Party, "external": writ.External, "model": writ.Model,
	}
	noArgsWords  = map[string]NoArgs{"refuse": NoArgsRefuse, "approval": NoArgsApproval, "allow": NoArgsAllow}
	extractWords = map[string]provenance.Extract{"lines": provenance.ExtractLines, "json": provenance.ExtractJSON}
	typeWords    = func() map[string]provenance.Type {
		out := map[string]provenance.Type{}
		for _, t := range []provenance.Type{
			provenance.ID, provenance.Integer, provenance.Decimal, provenance.Email, provenance.Host, provenance.URL,
			provenance.Path, provenance.Name, provenance.Phone, provenance.IBAN, provenance.Time,
		} {
			out[string(t)] = t
		}
		return out
	}()
	// methodWords are the R32 methods a contract may name after the server, and
	// whether they are judged acts rather than lists.
	methodWords = map[string]bool{
		string(ReadResource): true, string(SubscribeResource): true, string(GetPrompt): true, string(Complete): true,
		string(ListResources): false, string(ListTemplates): false, string(ListPrompts): false,
	}
)

// String returns the effect's words, joined by "+": "read", "write+send".
func (e Effect) String() string {
	if e == EveryEffect || e == 0 {
		return "every"
	}
	var out []string
	for _, w := range []string{"read", "egress", "write", "send", "transfer", "delete", "auth"} {
		if e&effectWords[w] != 0 {
			out = append(out, w)
		}
	}
	return strings.Join(out, "+")
}

// pick reads one word of a set. A word of a later version is told apart from a
// misspelt one.
func pick[T any](r *reader, t text, set map[string]T, later ...string) (v T, ok bool) {
	if !t.given() || t.node.Kind != yaml.ScalarNode || t.node.ShortTag() != "!!str" {
		return v, false // absent, or a fault already
	}
	if v, ok = set[t.s]; ok {
		return v, true
	}
	if slices.Contains(later, t.s) {
		r.fault(t.node, word(t.s)+" is not yet enforced", "use one of: "+strings.Join(sortedKeys(set), ", "))
		return v, false
	}
	r.fault(t.node, "unknown word "+word(t.s), nearest(t.s, sortedKeys(set)))
	return v, false
}

// A sourceFile is one item of `from:`: a word, or a mapping of one word to
// what it is restricted to.
type sourceFile struct {
	place
	kind  *yaml.Node // the word
	ref   text       // output: server/tool#/pointer
	cons  consts     // const: [...]
	op    text       // derived: path_join
	valid bool
}

const sourceHint = "output, output: server/tool#/pointer, const: [...], catalog, derived: path_join or seen"

func (s *sourceFile) read(r *reader, n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode:
		s.kind = n
		switch n.Value {
		case "output", "catalog", "seen":
			s.valid = true
		case "user", "approval", "fresh":
			r.fault(n, word(n.Value)+" is not yet enforced", "use "+sourceHint)
		case "const", "derived":
			r.fault(n, word(n.Value)+" needs a value", "use "+sourceHint)
		default:
			r.fault(n, "unknown source "+word(n.Value), "use "+sourceHint)
		}
	case n.Kind == yaml.MappingNode && len(n.Content) == 2:
		s.kind = n.Content[0]
		before := len(r.faults)
		switch v := n.Content[1]; s.kind.Value {
		case "output":
			r.value(v, &s.ref)
		case "const":
			r.value(v, &s.cons)
			if len(s.cons.items) == 0 && len(r.faults) == before {
				r.fault(v, "an empty list of constants accepts nothing", "list the constants")
			}
		case "derived":
			r.value(v, &s.op)
			if s.op.s != "path_join" && len(r.faults) == before {
				r.fault(v, "derived: "+word(s.op.s)+" is not yet enforced", "derived: path_join")
			}
		case "user", "approval", "fresh":
			r.fault(s.kind, word(s.kind.Value)+" is not yet enforced", "use "+sourceHint)
		case "catalog", "seen":
			r.fault(s.kind, word(s.kind.Value)+" takes no value", "")
		default:
			r.fault(s.kind, "unknown source "+word(s.kind.Value), "use "+sourceHint)
		}
		s.valid = len(r.faults) == before
	default:
		s.kind = n
		r.fault(n, "a source is a word, or one word and its value", "use "+sourceHint)
	}
}

// An ownerFile is a list of constants; the word user follows later.
type ownerFile struct {
	place
	consts [][]byte
}

func (o *ownerFile) read(r *reader, n *yaml.Node) {
	user := n.Kind == yaml.ScalarNode && n.Value == "user"
	for _, c := range n.Content {
		user = user || n.Kind == yaml.SequenceNode && c.Style == 0 && c.Value == "user"
	}
	if user {
		r.fault(n, `an owner typed by the "user" is not yet enforced`, `list the accepted owners; put "user" in quotes if that is one's name`)
		return
	}
	var c consts
	c.read(r, n)
	if o.consts = c.items; n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.fault(n, "an empty list of owners accepts nothing", "list the owners")
	}
}

// A caseFile is { /pointer: [values], effect: …, args: … }.
type caseFile struct {
	place
	at     *yaml.Node
	values consts
	body   caseBody
}

type caseBody struct {
	place
	Effect words            `yaml:"effect"`
	Args   mapping[argFile] `yaml:"args"`
}

func (caseBody) later() []string { return toolFile{}.later() }

func (c *caseFile) read(r *reader, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.fault(n, "a case is a mapping", "- { /method: [get, list], effect: read }")
		return
	}
	rest := *n
	rest.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if !strings.HasPrefix(k.Value, "/") {
			rest.Content = append(rest.Content, k, v)
			continue
		}
		if c.at != nil {
			r.fault(k, "a case names one argument", "")
			continue
		}
		c.at = k
		r.value(v, &c.values)
		if v.Kind == yaml.SequenceNode && len(v.Content) == 0 {
			r.fault(v, "an empty list of values is no case", "")
		}
	}
	if c.at == nil {
		r.fault(n, "the case names no argument", "- { /method: [get, list], effect: read }")
	}
	r.value(&rest, &c.body)
}
