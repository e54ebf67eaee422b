package gate

import (
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/schema"
	"github.com/writ-project/writ/internal/statement"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// listed reports whether a client sees the tool.
func (t *Tool) listed(shadow bool) bool {
	return t != nil && !t.host && (t.State == Open || shadow && t.State == Shut)
}

// Effect returns what this call can do: the contract's effect, or that of the
// case the arguments name, or a read where its statement only reads, and what the
// server's annotations add. Without a
// contract, and for a value no case names, it is EveryEffect.
func (t *Tool) Effect(args strictjson.Value) policy.Effect {
	if t == nil || t.Contract == nil {
		return policy.EveryEffect
	}
	e := t.Contract.Effect
	if onlyReads(t.Contract, args) {
		e = policy.Read
	}
	if t.Contract.CaseAt != nil {
		c := caseOf(t.Contract, args)
		if c == nil {
			return policy.EveryEffect
		}
		e = c.Effect
	}
	if e |= t.added; e == 0 {
		return policy.EveryEffect
	}
	return e
}

// Effects returns all that its calls can do as they are judged: the contract's effect, in
// every case, and what the server's annotations add. Without a contract it is EveryEffect.
func (t *Tool) Effects() policy.Effect {
	if t == nil || t.Contract == nil {
		return policy.EveryEffect
	}
	e := t.Contract.Effect | t.added
	for _, c := range t.Contract.Cases {
		e |= c.Effect
	}
	return e
}

// rules returns what the contract says of this call's arguments: its own rules
// and those of the case the arguments name. No two of them tie on one path.
func (t *Tool) rules(args strictjson.Value) []policy.ArgRule {
	if t == nil || t.Contract == nil {
		return nil
	}
	if c := caseOf(t.Contract, args); c != nil && len(c.Args) > 0 {
		return append(slices.Clone(t.Contract.Args), c.Args...)
	}
	return t.Contract.Args
}

// onlyReads reports whether the statement that the contract says where to find only reads.
func onlyReads(c *policy.Contract, args strictjson.Value) bool {
	if c.ReadsAt == nil {
		return false
	}
	sql, ok := args.Find(c.ReadsAt).Text()
	return ok && statement.Reads(c.ReadsIn, sql)
}

// caseOf returns the case the arguments name, nil when they name none.
func caseOf(c *policy.Contract, args strictjson.Value) *policy.Case {
	if c.CaseAt == nil {
		return nil
	}
	v := args
	for _, tok := range c.CaseAt {
		v = v.Get(tok)
	}
	for i := range c.Cases {
		if slices.ContainsFunc(c.Cases[i].Values, func(want []byte) bool {
			return v.Exists() && schema.Equal(v, strictjson.Of(want)) || !v.Exists() && string(want) == "null"
		}) {
			return &c.Cases[i]
		}
	}
	return nil
}

// ValidateArguments judges the arguments (none are an empty object) by the
// tool's own input schema, closed: at any depth a property that no applicable
// subschema names is refused, unless the contract opens its object (R16). The
// failures are sorted and hold no value of the call. The bytes must have
// passed strictjson. R32 methods have no schema of a server; their shape is
// judged elsewhere.
func (t *Tool) ValidateArguments(args strictjson.Value) []writ.Failure {
	if t == nil || t.input == nil {
		return []writ.Failure{{Reason: writ.SchemaUnusable, Need: "a tool whose input schema can be checked"}}
	}
	if !args.Exists() {
		args = noArguments
	}
	rules := t.rules(args)
	return t.input.Judge(args, func(path []string) bool {
		for i := range rules {
			if rules[i].Open && rules[i].At.Match(path) {
				return true
			}
		}
		return false
	})
}

// InputSchema is the inputSchema its server published, none for R32 methods.
func (t *Tool) InputSchema() strictjson.Value { return t.definition.Get("inputSchema") }

// HasOutputSchema reports whether structured results of the tool can be
// validated: by the server's outputSchema, the operator's, or both.
func (t *Tool) HasOutputSchema() bool { return t != nil && len(t.output) > 0 }

// ValidateOutput reports whether structuredContent satisfies every output
// schema there is. Without one it is false: an untyped result vouches for
// nothing (T12). The bytes must have passed strictjson.
func (t *Tool) ValidateOutput(structured strictjson.Value) bool {
	if !t.HasOutputSchema() || !structured.Exists() {
		return false
	}
	for _, s := range t.output {
		if !s.Accepts(structured) {
			return false
		}
	}
	return true
}

// Schema is the tool's input schema, nil where it has none that can be used.
func (t *Tool) Schema() *schema.Schema {
	if t == nil {
		return nil
	}
	return t.input
}
