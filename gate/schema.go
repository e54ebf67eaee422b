package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	js "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/writ-project/writ/internal/strictjson"
)

// The bounds of a schema (T09). A schema beyond one of them is not compiled or
// not used, and its tool stays shut.
const (
	schemaBytes    = 256 << 10
	schemaNesting  = 2 * 64 // JSON nesting: 64 subschemas, each in an array or a keyword's object
	schemaParts    = 5_000  // subschemas
	schemaFanOut   = 1_000  // subschemas one value meets once $ref is followed
	schemaInPlace  = 64     // subschemas in a row that judge the same value
	patternProgram = 10_000 // RE2 instructions of one pattern
	// validationSteps bounds one validation, counted before it is run, so that
	// a recursive schema cannot be made exponential by a deep value.
	validationSteps = 1_000_000
)

// schema is one JSON Schema, compiled and vetted: no reference leaves it, every
// pattern is RE2, and the work of one validation is known before it is done.
// It is safe for concurrent use.
type schema struct {
	root   *js.Schema
	weight map[*js.Schema]int // own steps of one visit, without subschemas
}

// errSchema says why a schema is not usable. It quotes nothing of the schema.
type errSchema string

func (e errSchema) Error() string { return string(e) }

// The reasons a schema is not usable.
const (
	errSchemaForm     errSchema = "it is not a strict JSON object or boolean within the limits of a schema"
	errSchemaInvalid  errSchema = "it is not a valid JSON Schema of its draft, or a pattern in it is not RE2"
	errSchemaPattern  errSchema = "a pattern in it is not RE2, or too large"
	errSchemaRemote   errSchema = "it refers to a document outside itself, which is never loaded (T08)"
	errSchemaDialect  errSchema = "its $schema is not a draft this version knows (2020-12, 2019-09, 7, 6, 4)"
	errSchemaDynamic  errSchema = "it uses $dynamicRef or $recursiveRef, whose work cannot be bounded beforehand"
	errSchemaSize     errSchema = "it has too many subschemas (T09)"
	errSchemaFanOut   errSchema = "its references multiply beyond the limit (T09)"
	errSchemaCircular errSchema = "its references run in a circle without reaching a value"
)

// noLoader refuses every document that is not the schema itself (T08). The
// metaschemas of the drafts are part of the library.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errSchemaRemote }

// re2 is a pattern with its size, from which a match's work is bounded.
type re2 struct {
	*regexp.Regexp
	size int
}

func compileRE2(s string) (*re2, error) {
	p, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, errSchemaPattern
	}
	prog, err := syntax.Compile(p.Simplify())
	if err != nil || len(prog.Inst) > patternProgram {
		return nil, errSchemaPattern
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, errSchemaPattern
	}
	return &re2{re, len(prog.Inst)}, nil
}

// steps bounds one match against n bytes.
func (r *re2) steps(n int) int { return 1 + r.size*n/100 }

// compileSchema vets and compiles one schema. Without $schema it is draft
// 2020-12, as MCP says.
func compileSchema(raw []byte) (s *schema, err error) {
	// A server chose these bytes: should the library ever panic on them, the
	// tool is unusable and the gateway goes on.
	defer func() {
		if recover() != nil {
			s, err = nil, errSchemaInvalid
		}
	}()
	if strictjson.Check(raw, strictjson.Limits{Bytes: schemaBytes, Depth: schemaNesting, Leaves: schemaBytes, Number: 64}) != nil {
		return nil, errSchemaForm
	}
	if k := strictjson.KindOf(raw); k != strictjson.Object && k != strictjson.Bool {
		return nil, errSchemaForm
	}
	doc, err := decodeJSON(raw)
	if err != nil {
		return nil, errSchemaForm
	}
	const self = "writ:schema"
	c := js.NewCompiler()
	c.UseLoader(noLoader{})
	c.DefaultDraft(js.Draft2020)
	c.UseRegexpEngine(func(s string) (js.Regexp, error) { return compileRE2(s) })
	if err := c.AddResource(self, doc); err != nil {
		return nil, classify(err)
	}
	root, err := c.Compile(self)
	if err != nil {
		return nil, classify(err)
	}
	s = &schema{root: root, weight: map[*js.Schema]int{}}
	if err := s.measure(); err != nil {
		return nil, err
	}
	return s, nil
}

func classify(err error) error {
	var (
		load    *js.LoadURLError
		dialect *js.UnsupportedDraftError
		re      *js.InvalidRegexError
		own     errSchema
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &load):
		return errSchemaRemote
	case errors.As(err, &dialect):
		return errSchemaDialect
	case errors.As(err, &re):
		return errSchemaPattern
	}
	return errSchemaInvalid
}

// decodeJSON turns checked JSON into what the library validates, numbers kept
// digit for digit.
func decodeJSON(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// inPlace returns the subschemas that judge the same value as s does.
func inPlace(s *js.Schema) []*js.Schema {
	if s.Ref != nil && s.DraftVersion < 2019 { // its siblings do not count
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
	for _, t := range s.DependentSchemas {
		out = append(out, t)
	}
	for _, d := range s.Dependencies {
		if t, ok := d.(*js.Schema); ok {
			out = append(out, t)
		}
	}
	return out
}

// below returns the subschemas that judge members, elements or names.
func below(s *js.Schema) []*js.Schema {
	if s.Ref != nil && s.DraftVersion < 2019 {
		return nil
	}
	var out []*js.Schema
	for _, t := range s.Properties {
		out = append(out, t)
	}
	for _, t := range s.PatternProperties {
		out = append(out, t)
	}
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

// measure visits every subschema once, bounds their number and what one value
// can meet, and notes each one's own work.
func (s *schema) measure() error {
	todo := []*js.Schema{s.root}
	s.weight[s.root] = 0
	for len(todo) > 0 {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if t.DynamicRef != nil || t.RecursiveRef != nil {
			return errSchemaDynamic
		}
		w := 1 + len(t.Required) + len(t.Dependencies) + len(t.DependentRequired)
		if t.Enum != nil {
			for _, v := range t.Enum.Values {
				w += size(v)
			}
		}
		if t.Const != nil {
			w += size(*t.Const)
		}
		for _, names := range t.DependentRequired {
			w += len(names)
		}
		for _, d := range t.Dependencies {
			if names, ok := d.([]string); ok {
				w += len(names)
			}
		}
		s.weight[t] = w
		if len(s.weight) > schemaParts {
			return errSchemaSize
		}
		for _, u := range append(inPlace(t), below(t)...) {
			if _, seen := s.weight[u]; !seen {
				s.weight[u] = 0
				todo = append(todo, u)
			}
		}
	}
	fans := make(map[*js.Schema]fan, len(s.weight))
	for t := range s.weight {
		f, err := fanOut(t, fans)
		switch {
		case err != nil:
			return err
		case f.count > schemaFanOut || f.height > schemaInPlace:
			return errSchemaFanOut
		}
	}
	return nil
}

// fan is what a value meets at one subschema: how many subschemas, each as
// often as it is met, and how many in a row. Zero marks one under way.
type fan struct{ count, height int }

func fanOut(t *js.Schema, done map[*js.Schema]fan) (fan, error) {
	if f, ok := done[t]; ok {
		if f.count == 0 {
			return f, errSchemaCircular
		}
		return f, nil
	}
	done[t] = fan{}
	f := fan{1, 1}
	for _, u := range inPlace(t) {
		g, err := fanOut(u, done)
		if err != nil {
			return f, err
		}
		f.count = min(f.count+g.count, schemaFanOut+1)
		f.height = max(f.height, g.height+1)
	}
	done[t] = f
	return f, nil
}

func size(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v) / 100
	case []any:
		for _, e := range v {
			n += size(e)
		}
	case map[string]any:
		for _, e := range v {
			n += size(e)
		}
	}
	return n
}

// node is one value of an instance, with an identity, so that work done on it
// can be remembered.
type node struct {
	v     any
	props map[string]*node
	items []*node
}

func tree(v any) *node {
	n := &node{v: v}
	switch v := v.(type) {
	case map[string]any:
		n.props = make(map[string]*node, len(v))
		for k, e := range v {
			n.props[k] = tree(e)
		}
	case []any:
		n.items = make([]*node, len(v))
		for i, e := range v {
			n.items[i] = tree(e)
		}
	}
	return n
}

// visit is one subschema judging one value.
type visit struct {
	s *js.Schema
	n *node
}

// meter counts the steps of validations before they are run.
type meter struct {
	weight map[*js.Schema]int
	cost   map[visit]int
	spent  int // by what was run already
}

// afford reports whether validating n by s stays within what is left, and
// takes it.
func (m *meter) afford(s *js.Schema, n *node) bool {
	c := m.count(s, n)
	if m.spent+c > validationSteps {
		return false
	}
	m.spent += c
	return true
}

// count returns the steps of validating n by s, saturating. It is itself
// bounded: every pair is counted once, and not more pairs than steps.
func (m *meter) count(s *js.Schema, n *node) int {
	const over = validationSteps + 1
	at := visit{s, n}
	if c, ok := m.cost[at]; ok {
		return c // 0 while under way, which measure has excluded in place
	}
	if len(m.cost) > validationSteps {
		return over
	}
	m.cost[at] = 0
	c := 1 + m.weight[s]
	add := func(t *js.Schema, n *node) {
		if t != nil && c <= validationSteps {
			c += m.count(t, n)
		}
	}
	for _, t := range inPlace(s) {
		add(t, n)
	}
	if s.Ref == nil || s.DraftVersion >= 2019 {
		switch v := n.v.(type) {
		case string:
			c += len(v) / 1000
			if re, ok := s.Pattern.(*re2); ok {
				c += re.steps(len(v))
			}
		case map[string]any:
			for name, e := range n.props {
				c++
				add(s.Properties[name], e)
				for re, t := range s.PatternProperties {
					c += re.(*re2).steps(len(name))
					add(t, e)
				}
				add(asSchema(s.AdditionalProperties), e)
				add(s.UnevaluatedProperties, e)
				if s.PropertyNames != nil {
					add(s.PropertyNames, &node{v: name})
				}
			}
		case []any:
			list, _ := s.Items.([]*js.Schema)
			if s.UniqueItems {
				c += size(v)
			}
			for i, e := range n.items {
				c++
				if i < len(list) {
					add(list[i], e)
				}
				if i < len(s.PrefixItems) {
					add(s.PrefixItems[i], e)
				}
				add(asSchema(s.Items), e)
				add(asSchema(s.AdditionalItems), e)
				add(s.Items2020, e)
				add(s.Contains, e)
				add(s.UnevaluatedItems, e)
			}
		}
	}
	c = min(c, over)
	m.cost[at] = c
	return c
}

// ok reports whether checked JSON satisfies the schema. A validation beyond
// the bound is a failed one.
func (s *schema) ok(raw []byte) bool {
	v, err := decodeJSON(raw)
	if err != nil {
		return false
	}
	m := &meter{weight: s.weight, cost: map[visit]int{}}
	return m.afford(s.root, tree(v)) && validate(s.root, v) == nil
}

// validate runs the library. A panic in it is a failed validation.
func validate(s *js.Schema, v any) (err error) {
	defer func() {
		if recover() != nil {
			err = errSchemaInvalid
		}
	}()
	return s.Validate(v)
}

// at returns the subschemas that can judge the value at a path, whatever the
// other values are. Branches that only deny or only test (not, if) are left
// out.
func (s *schema) at(path []string) []*js.Schema {
	cur := static([]*js.Schema{s.root})
	for _, tok := range path {
		var next []*js.Schema
		for _, t := range cur {
			next = append(next, child(t, tok)...)
		}
		cur = static(next)
	}
	return cur
}

// static adds to the schemas everything that judges the same value.
func static(in []*js.Schema) []*js.Schema {
	var out []*js.Schema
	seen := map[*js.Schema]bool{}
	for len(in) > 0 {
		t := in[0]
		in = in[1:]
		if seen[t] {
			continue
		}
		seen[t] = true
		out = append(out, t)
		for _, u := range inPlace(t) {
			if u != t.Not && u != t.If {
				in = append(in, u)
			}
		}
	}
	return out
}

// child returns the subschemas t itself has for the member or element tok.
func child(t *js.Schema, tok string) []*js.Schema {
	if t.Ref != nil && t.DraftVersion < 2019 {
		return nil
	}
	var out []*js.Schema
	add := func(u *js.Schema) {
		if u != nil {
			out = append(out, u)
		}
	}
	add(t.Properties[tok])
	for re, u := range t.PatternProperties {
		if re.MatchString(tok) {
			add(u)
		}
	}
	if len(out) == 0 {
		add(asSchema(t.AdditionalProperties))
		add(t.UnevaluatedProperties)
	}
	if i, ok := index(tok); ok {
		list, _ := t.Items.([]*js.Schema)
		switch {
		case i < len(list):
			add(list[i])
		case list != nil:
			add(asSchema(t.AdditionalItems))
		case i < len(t.PrefixItems):
			add(t.PrefixItems[i])
		default:
			add(t.Items2020)
			add(asSchema(t.Items))
		}
		add(t.Contains)
		add(t.UnevaluatedItems)
	}
	return out
}

// index reads an array index as a pointer spells it.
func index(tok string) (int, bool) {
	if tok == "" || len(tok) > 9 || tok[0] == '0' && len(tok) > 1 || strings.Trim(tok, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(tok)
	return n, err == nil
}
