// Package schema is JSON Schema as Writ judges by it: closed where a schema says
// nothing, without any document but itself, and with an amount of work that is
// known before it is done (T08, T09, R16). What it says of a failure holds no
// value that was judged. It is pure.
package schema

import (
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"

	js "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/writ-project/writ/internal/strictjson"
)

// Nesting bounds the JSON nesting of a schema: 64 subschemas, each in an array or
// a keyword's object.
const Nesting = 2 * 64

// The bounds of a schema (T09). A schema beyond one of them is not compiled or
// not used, and its tool stays shut.
const (
	maxBytes       = 256 << 10
	maxParts       = 5_000  // subschemas
	maxFanOut      = 1_000  // subschemas one value meets once $ref is followed
	maxInPlace     = 64     // subschemas in a row that judge the same value
	patternProgram = 10_000 // RE2 instructions of one pattern
	// validationSteps bounds one validation, counted before it is run, so that
	// a recursive schema cannot be made exponential by a deep value.
	validationSteps = 1_000_000
)

// Schema is one JSON Schema, compiled and vetted: no reference leaves it, every
// pattern is RE2, and the work of one validation is known before it is done.
// It is safe for concurrent use.
type Schema struct {
	root   *js.Schema
	top    []*js.Schema       // root, and everything that judges the same value
	weight map[*js.Schema]int // own steps of one visit, without subschemas
	flat   *flat              // nil where it says more
}

// unusable says why a schema is not usable. It quotes nothing of the schema.
type unusable string

func (e unusable) Error() string { return string(e) }

// The reasons a schema is not usable.
const (
	errForm     unusable = "it is not a strict JSON object or boolean within the limits of a schema"
	errInvalid  unusable = "it is not a valid JSON Schema of its draft, or a pattern in it is not RE2"
	errPattern  unusable = "a pattern in it is not RE2, or too large"
	errRemote   unusable = "it refers to a document outside itself, which is never loaded (T08)"
	errDialect  unusable = "its $schema is not a draft this version knows (2020-12, 2019-09, 7, 6, 4)"
	errDynamic  unusable = "it uses $dynamicRef or $recursiveRef, whose work cannot be bounded beforehand"
	errSize     unusable = "it has too many subschemas (T09)"
	errFanOut   unusable = "its references multiply beyond the limit (T09)"
	errCircular unusable = "its references run in a circle without reaching a value"
)

// noLoader refuses every document that is not the schema itself (T08). The
// metaschemas of the drafts are part of the library.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errRemote }

// re2 is a pattern with its size, from which a match's work is bounded.
type re2 struct {
	*regexp.Regexp
	size int
}

func compileRE2(s string) (*re2, error) {
	p, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, errPattern
	}
	prog, err := syntax.Compile(p.Simplify())
	if err != nil || len(prog.Inst) > patternProgram {
		return nil, errPattern
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, errPattern
	}
	return &re2{re, len(prog.Inst)}, nil
}

// PatternSize is the number of RE2 instructions of a pattern, or the error that
// makes it unusable in a schema.
func PatternSize(s string) (int, error) {
	re, err := compileRE2(s)
	if err != nil {
		return 0, err
	}
	return re.size, nil
}

// steps bounds one match against n bytes.
func (r *re2) steps(n int) int { return 1 + r.size*n/100 }

// Compile vets and compiles one schema; an error says why it is not usable and
// quotes nothing of it. Without $schema it is draft
// 2020-12, as MCP says.
func Compile(raw []byte) (s *Schema, err error) {
	// A server chose these bytes: should the library ever panic on them, the
	// tool is unusable and the gateway goes on.
	defer func() {
		if recover() != nil {
			s, err = nil, errInvalid
		}
	}()
	doc, err := strictjson.Parse(raw, strictjson.Limits{Bytes: maxBytes, Depth: Nesting, Leaves: maxBytes, Number: 64})
	if k := doc.Kind(); err != nil || k != strictjson.Object && k != strictjson.Bool {
		return nil, errForm
	}
	const self = "writ:schema"
	c := js.NewCompiler()
	c.UseLoader(noLoader{})
	c.DefaultDraft(js.Draft2020)
	c.UseRegexpEngine(func(s string) (js.Regexp, error) { return compileRE2(s) })
	if err := c.AddResource(self, decoded(doc)); err != nil {
		return nil, classify(err)
	}
	root, err := c.Compile(self)
	if err != nil {
		return nil, classify(err)
	}
	s = &Schema{root: root, weight: map[*js.Schema]int{}, flat: flatOf(root)}
	if err := s.measure(); err != nil {
		return nil, err
	}
	s.top = slices.Clip(static([]*js.Schema{root})) // of what was measured
	return s, nil
}

func classify(err error) error {
	var (
		load    *js.LoadURLError
		dialect *js.UnsupportedDraftError
		re      *js.InvalidRegexError
		own     unusable
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &load):
		return errRemote
	case errors.As(err, &dialect):
		return errDialect
	case errors.As(err, &re):
		return errPattern
	}
	return errInvalid
}

// decoded is checked JSON as the library validates it, numbers kept digit for
// digit.
func decoded(v strictjson.Value) any {
	switch v.Kind() {
	case strictjson.Object:
		m := make(map[string]any, v.Len())
		for name, e := range v.Members() {
			m[name] = decoded(e)
		}
		return m
	case strictjson.Array:
		a := make([]any, 0, v.Len())
		for _, e := range v.Elements() {
			a = append(a, decoded(e))
		}
		return a
	case strictjson.String:
		s, _ := v.Text()
		return s
	case strictjson.Number:
		return json.Number(v.Literal())
	case strictjson.Bool:
		return string(v.Literal()) == "true"
	}
	return nil
}

// refersOn reports whether a schema says nothing but its reference, whatever stands beside
// that: so it is in the older drafts.
func refersOn(s *js.Schema) bool { return s.Ref != nil && s.DraftVersion < 2019 }

// inPlace returns the subschemas that judge the same value as s does.
func inPlace(s *js.Schema) []*js.Schema {
	if refersOn(s) {
		return []*js.Schema{s.Ref}
	}
	var out []*js.Schema
	for _, t := range []*js.Schema{s.Ref, s.Not, s.If, s.Then, s.Else} {
		if t != nil {
			out = append(out, t)
		}
	}
	out = append(out, s.AllOf...)
	out = append(out, s.AnyOf...)
	out = append(out, s.OneOf...)
	out = slices.AppendSeq(out, maps.Values(s.DependentSchemas))
	for _, d := range s.Dependencies {
		if t, ok := d.(*js.Schema); ok {
			out = append(out, t)
		}
	}
	return out
}

// below returns the subschemas that judge members, elements or names.
func below(s *js.Schema) []*js.Schema {
	if refersOn(s) {
		return nil
	}
	out := slices.AppendSeq(slices.Collect(maps.Values(s.Properties)), maps.Values(s.PatternProperties))
	for _, t := range []*js.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, asSchema(s.AdditionalProperties), asSchema(s.AdditionalItems), asSchema(s.Items)} {
		if t != nil {
			out = append(out, t)
		}
	}
	if ts, ok := s.Items.([]*js.Schema); ok {
		out = append(out, ts...)
	}
	return append(out, s.PrefixItems...)
}

func asSchema(v any) *js.Schema {
	s, _ := v.(*js.Schema)
	return s
}

// Accepts reports whether checked JSON satisfies the schema. A validation beyond
// the bound is a failed one.
func (s *Schema) Accepts(v strictjson.Value) bool {
	if v.Kind() == 0 {
		return false
	}
	if s.flat.accepts(v) {
		return true
	}
	n := node{v, decoded(v)}
	m := &meter{weight: s.weight, cost: map[visit]int{}}
	return m.afford(s.root, n) && validate(s.root, n.d) == nil
}

// validate runs the library. A panic in it is a failed validation.
func validate(s *js.Schema, v any) (err error) {
	defer func() {
		if recover() != nil {
			err = errInvalid
		}
	}()
	return s.Validate(v)
}
