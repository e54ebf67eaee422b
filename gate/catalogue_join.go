package gate

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/schema"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// join gives a vetted tool its contract and decides whether it is open.
func (m *making) join(t *Tool) {
	if t.State == Refused {
		return
	}
	key := t.Server + "/" + t.Name
	c := m.policy.Contracts[key]
	if t.Server == policy.OwnServer {
		c = ownContract(t.Name)
	}
	if c == nil {
		if t.Reason == "" {
			t.Reason = writ.NameForbidden
		}
		if hints := annotations(t.Raw); hints.readOnly != "true" || hints.destructive == "true" {
			m.find(t.Server, t.Name, "", "the tool may write and has no contract; it is not listed", "declare "+key+" in the policy")
		}
		return
	}
	t.Contract = c
	if t.Reason == "" && c.OutputSchema != nil {
		s, err := schema.Compile(c.OutputSchema)
		if err != nil { // Parse has refused it already
			t.Reason = writ.SchemaUnusable
		} else {
			t.output = append(t.output, s)
		}
	}
	at := func(r writ.Reason, message, hint string) {
		m.findings = append(m.findings, Finding{t.Server, t.Name, r, message, hint, c.Line, c.Col})
	}
	switch {
	case t.Reason != "":
		at(t.Reason, "the contract is not in force: the tool's schema is unusable", "")
	case c.Closed:
		t.Reason = writ.PolicyClosed
	case governs(c):
		t.State = Open
	case c.Pin == "" && !m.policy.PinsOptional:
		t.Reason = writ.NameUnpinned
		at(t.Reason, "the definition was not approved; it is "+t.Pin, "look at it and run: writ tools approve "+key)
	case c.Pin == "":
		at("", "the contract has no pin, and pins are optional: a changed definition would not be noticed (R26)", "writ tools approve "+key)
		t.State = Open
	case c.Pin != t.Pin:
		t.Reason = writ.NameChanged
		at(t.Reason, "the definition changed: approved was "+c.Pin+", it is "+t.Pin, "look at it and run: writ tools approve "+key)
	default:
		t.State = Open
	}
	if t.input != nil && !governs(c) {
		m.compare(t, c)
	}
}

// hints are the annotations that can tighten a contract, as JSON words.
type hints struct{ readOnly, destructive string }

func annotations(raw []byte) hints {
	a := strictjson.Get(raw, "annotations")
	return hints{
		string(strictjson.Get(a, "readOnlyHint")),
		string(strictjson.Get(a, "destructiveHint")),
	}
}

// compare looks for what the contract and the definition say of each other:
// annotations that add an effect, and rules that can never match.
func (m *making) compare(t *Tool, c *policy.Contract) {
	warn := func(line, col int, message, hint string) {
		m.findings = append(m.findings, Finding{t.Server, t.Name, "", message, hint, line, col})
	}
	const acts = policy.Write | policy.Send | policy.Transfer | policy.Delete | policy.Auth
	if h := annotations(t.Raw); !(c.Overrules && c.Pin == t.Pin) && c.Declared()&acts == 0 && (h.destructive == "true" || h.readOnly == "false") {
		t.added = policy.Write
		warn(c.Line, c.Col, "the server says that this tool writes; the effect write was added to the contract (P17)", "declare effect: write, or pin a definition that says otherwise")
	}
	if said := t.Belies(c); said != "" && t.State == Open {
		t.State, t.Reason = Shut, writ.PolicyMisdeclared
		m.findings = append(m.findings, Finding{t.Server, t.Name, t.Reason, said + ", and the contract says " + c.Declared().String() + ": what leaves is send, egress or transfer; the tool is closed", policy.OutHint, c.Line, c.Col})
	}
	rules := c.Args
	for _, k := range c.Cases {
		rules = append(rules[:len(rules):len(rules)], k.Args...)
	}
	for _, r := range rules {
		at := concrete(r.At.Tokens)
		if c.PartsAt != "" && len(at) > 1 && at[0] == c.PartsAt {
			continue // of what stands within a statement no schema says anything
		}
		if !t.input.Knows(at) && !opened(rules, r.At.Tokens) {
			warn(r.Line, r.Col, "the rule can never match: the tool's schema has no "+strconv.Quote(r.At.Source), "")
			continue
		}
		t.compareRule(&r, at, warn)
	}
	if c.PartsAt != "" && !t.input.Knows([]string{c.PartsAt}) {
		warn(c.Line, c.Col, "the tool's schema has no argument where parts looks for a statement; none is taken apart", "")
	}
	if c.CaseAt != nil && !t.input.Knows(c.CaseAt) && c.CaseAt[0] != c.PartsAt {
		warn(c.Line, c.Col, "the tool's schema has no argument that the cases are told apart by; every call has every effect", "")
	}
	if c.ReadsAt != nil && !t.input.Knows(c.ReadsAt) {
		warn(c.Line, c.Col, "the tool's schema has no argument where reads looks for a statement; no call is a read", "")
	}
	for _, k := range c.Cases {
		for _, v := range k.Values {
			if t.input.ListsAll(c.CaseAt) && !t.input.EnumMember(c.CaseAt, strictjson.Of(v)) {
				warn(k.Line, k.Col, "the case can never be: the tool's schema does not list "+strconv.Quote(string(v))+" there", "")
			}
		}
	}
	for _, b := range c.Budgets {
		for _, at := range []provenance.Pattern{b.Sum, b.Per} {
			if len(at.Tokens) > 0 && !t.input.Knows(concrete(at.Tokens)) && !opened(rules, at.Tokens) {
				warn(c.Line, c.Col, "a budget counts by "+strconv.Quote(at.Source)+", which the tool's schema does not have", "")
			}
		}
	}
	for _, o := range c.Outputs {
		if o.HasJoin && !t.input.Knows(o.Join) {
			warn(c.Line, c.Col, "an output joins an argument the tool's schema does not have; it labels nothing", "")
		}
		if !o.InText && slices.ContainsFunc(t.output, func(s *schema.Schema) bool { return s.Omits(o.At.Tokens) }) {
			warn(c.Line, c.Col, "the output "+strconv.Quote(o.At.Source)+" is not in the tool's output schema; it labels nothing", "")
		}
	}
}

// compareRule looks for what one rule says of values that the schema does not admit.
func (t *Tool) compareRule(r *policy.ArgRule, at []string, warn func(line, col int, message, hint string)) {
	kinds, where := t.input.Kinds(at), strconv.Quote(r.At.Source)
	none := func(of ...string) bool {
		return len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(of, k) })
	}
	switch {
	case r.Open:
	case none("null", "boolean", "number", "integer", "string", "object"):
		warn(r.Line, r.Col, "the tool's schema has an array at "+where+": what is in it is judged without this rule", r.At.Source+"/*")
	case none("null", "boolean", "number", "integer", "string"):
		warn(r.Line, r.Col, "the tool's schema has an object at "+where+": what is in it is judged without this rule", r.At.Source+"/…")
	case r.Role == policy.Amount && none("number", "integer", "string"):
		warn(r.Line, r.Col, "the tool's schema has no number at "+where+", and the role is amount", "role: enum or control")
	case textual[r.Type] && none("string"):
		warn(r.Line, r.Col, "the tool's schema has no text at "+where+", and the type is "+string(r.Type), "")
	case r.Type != provenance.Untyped && none("string", "number", "integer"):
		warn(r.Line, r.Col, "the tool's schema has no value at "+where+" that the type "+string(r.Type)+" has a form for", "")
	}
	for _, s := range r.From {
		if s.Kind == policy.FromCatalog && r.Role == policy.Enum && !t.input.ListsValues(at) {
			warn(r.Line, r.Col, "the tool's schema lists no values for "+where+", so from: catalog matches none", "from: [{const: [...]}]")
		}
		for _, v := range s.Const {
			if !s.Grown && t.input.ListsAll(at) && !t.input.EnumMember(at, strictjson.Of(v)) {
				warn(r.Line, r.Col, "a constant can never match: the tool's schema lists the values of "+where+", and this is none of them", "")
			}
		}
	}
}

// textual are the types that no number spells.
var textual = map[provenance.Type]bool{provenance.Email: true, provenance.Host: true, provenance.URL: true, provenance.Path: true, provenance.Name: true, provenance.IBAN: true, provenance.Time: true}

// Belies says by what the definition contradicts a contract by which nothing leaves, and
// is "" where it does not: by its title, by an argument, or, where the contract has a text
// stay under our own roots, by the world it is open to. No text of the server is in it.
func (t *Tool) Belies(c *policy.Contract) string {
	d := t.definition
	for _, title := range []strictjson.Value{d.Get("title"), d.Get("annotations").Get("title")} {
		if s, ok := title.Text(); ok {
			if word := c.BeliedBy(s); word != "" {
				return "the title of this tool says " + strconv.Quote(word)
			}
		}
	}
	if slices.ContainsFunc(t.input.PropertyNames(), c.BeliedByArgument) {
		return "an argument of this tool says who receives something"
	}
	if string(d.Get("annotations").Get("openWorldHint").Raw()) == "true" && c.KeepsText() {
		return "the server says that this tool works on what others have (openWorldHint), where a text is content: local"
	}
	return ""
}

// concrete replaces wildcards by a token that can be an index and a key.
func concrete(tokens []string) []string {
	out := slices.Clone(tokens)
	for i, t := range out {
		if t == "*" {
			out[i] = "0"
		}
	}
	return out
}

// opened reports whether a rule opens an object the path lies in.
func opened(rules []policy.ArgRule, path []string) bool {
	for _, r := range rules {
		for n := range path {
			if r.Open && r.At.Match(path[:n]) {
				return true
			}
		}
	}
	return false
}

// unlisted adds the R32 methods contracts name, and reports contracts whose
// tool the server does not publish: once of a server that publishes none, for it may not run.
func (m *making) unlisted() {
	lists, told := map[string]bool{}, map[string]bool{}
	for _, t := range m.tools {
		lists[t.Server] = lists[t.Server] || t.Method == policy.CallTool
	}
	for _, key := range slices.Sorted(maps.Keys(m.policy.Contracts)) {
		c := m.policy.Contracts[key]
		if m.tools[key] != nil {
			continue
		}
		if c.Method != policy.CallTool {
			t := &Tool{Server: c.Server, Name: c.Tool, Method: c.Method, Contract: c, State: Open}
			if c.Closed {
				t.State, t.Reason = Shut, writ.PolicyClosed
			}
			m.tools[key] = t
			continue
		}
		switch {
		case c.Optional, told[c.Server]:
		case !lists[c.Server]:
			told[c.Server] = true
			m.findings = append(m.findings, Finding{c.Server, c.Tool, writ.NameUnknown, "the policy has contracts for a server that lists no tool, of which this is the first", "writ check --live says whether it answers", c.Line, c.Col})
		default:
			m.findings = append(m.findings, Finding{c.Server, c.Tool, writ.NameUnknown, "the policy has a contract for a tool that no server publishes", "correct the name, or say optional: true", c.Line, c.Col})
		}
	}
}

// fold is the form in which two public names are one. Names are ASCII, so no other script can look alike; what remains are letters
// and digits that print alike.
func fold(name string) string {
	return lookalikes.Replace(text.Fold(name, text.Compatible))
}

var lookalikes = strings.NewReplacer("0", "o", "1", "l", "i", "l")

// name gives every tool its public name: its own where no other tool shares
// it, else `server__tool` for all who share it (T03). Among open tools only
// open ones count, so that nothing a server publishes without a contract can
// rename what the operator opened; the others yield to all. A name that could
// be read as some server's qualified name is always qualified itself.
func (m *making) name(c *Catalogue) {
	all, open := map[string]int{}, map[string]int{}
	servers := map[string]bool{}
	for _, t := range c.order {
		if t.Method != policy.CallTool || t.host {
			continue
		}
		servers[t.Server] = true
		all[fold(t.Name)]++
		if t.State == Open {
			open[fold(t.Name)]++
		}
	}
	for _, t := range c.order {
		if t.Method != policy.CallTool || t.host {
			continue
		}
		n := all[fold(t.Name)]
		if t.State == Open {
			n = open[fold(t.Name)]
		}
		t.Public = t.Name
		if prefix, _, ok := strings.Cut(t.Name, "__"); n > 1 || ok && servers[strings.ToLower(prefix)] {
			t.Public = t.Server + "__" + t.Name
		}
		if len(t.Public) > publicName && t.State != Refused {
			t.State, t.Reason = Refused, writ.NameAmbiguous
			m.find(t.Server, t.Name, t.Reason, "the tool shares its name and its qualified name is longer than 128 characters", "")
		}
		c.public[t.Public] = t
	}
}
