package schema

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	js "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/writ-project/writ/internal/strictjson"
)

// at returns the subschemas that can judge the value at a path, whatever the
// other values are. Branches that only deny or only test (not, if) are left
// out.
func (s *Schema) at(path []string) []*js.Schema {
	if s == nil {
		return nil
	}
	cur := s.top
	for _, tok := range path {
		cur = down(cur, tok)
	}
	return cur
}

// down is at, one step further.
func down(in []*js.Schema, tok string) []*js.Schema {
	var next []*js.Schema
	for _, t := range in {
		next = addChild(next, t, tok)
	}
	return static(next)
}

// static adds to the schemas everything that judges the same value. Nobody writes to in
// from then on.
func static(in []*js.Schema) []*js.Schema {
	if len(in) == 0 || len(in) == 1 && len(inPlace(in[0])) == 0 {
		return in
	}
	var out []*js.Schema
	var seen distinct
	for len(in) > 0 {
		t := in[0]
		in = in[1:]
		if !seen.add(t) {
			continue
		}
		out = append(out, t)
		for _, u := range inPlace(t) {
			if u != t.Not && u != t.If {
				in = append(in, u)
			}
		}
	}
	return out
}

// distinct tells which schemas were met. It is a list as long as they are few.
type distinct struct {
	few  [8]*js.Schema
	n    int
	many map[*js.Schema]bool
}

// add reports whether t was not met yet.
func (d *distinct) add(t *js.Schema) bool {
	if slices.Contains(d.few[:d.n], t) || d.many[t] {
		return false
	}
	if d.n < len(d.few) {
		d.few[d.n], d.n = t, d.n+1
		return true
	}
	if d.many == nil {
		d.many = map[*js.Schema]bool{}
	}
	d.many[t] = true
	return true
}

// always returns a schema and what it demands of the same value without condition.
func always(root *js.Schema) []*js.Schema {
	out := []*js.Schema{root}
	for i := 0; i < len(out); i++ {
		t := out[i]
		more := t.AllOf
		if t.Ref != nil {
			if refersOn(t) {
				more = nil
			}
			more = append(more[:len(more):len(more)], t.Ref)
		}
		for _, u := range more {
			if !slices.Contains(out, u) {
				out = append(out, u)
			}
		}
	}
	return out
}

// addChild adds to out the subschemas t itself has for the member or element tok.
func addChild(out []*js.Schema, t *js.Schema, tok string) []*js.Schema {
	if refersOn(t) {
		return out
	}
	before := len(out)
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
	if len(out) == before {
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

// Knows reports whether the schema says anything of the value at a path, or openly
// admits one there: a rule for another path can never match. Like the questions below
// it is false of a nil schema.
func (s *Schema) Knows(path []string) bool {
	for i := range path {
		if in := s.at(path[:i]); len(s.at(path[:i+1])) == 0 {
			return admits(in, i == 0) || s.opens(path)
		}
	}
	return s != nil
}

// opens reports whether on the way of a path an alternative openly admits what another one
// names there: what lies behind that is not bound to what the other says of it.
func (s *Schema) opens(path []string) bool {
	for i, tok := range path {
		in := s.at(path[:i])
		if anyNames(in, tok) && slices.ContainsFunc(in, func(t *js.Schema) bool { return !names(t, tok) && admits([]*js.Schema{t}, true) }) {
			return true
		}
	}
	return false
}

// ListsValues reports whether it gives an enum, or a const, for a path.
func (s *Schema) ListsValues(path []string) bool { return hasEnum(s.at(path)) }

// ListsAll reports whether it gives all values for a path so, and no alternative admits others.
func (s *Schema) ListsAll(path []string) bool { return s.ListsValues(path) && !s.opens(path) }

// Omits reports whether the schema spells the names of members somewhere on a path, and
// neither the path's nor that there are others: a result will hardly have it. "*" is any
// member of an object and any element of an array.
func (s *Schema) Omits(pattern []string) bool {
	path := slices.Clone(pattern)
	for i := range path {
		if path[i] == "*" {
			path[i] = "0"
			if slices.ContainsFunc(s.at(path[:i]), func(t *js.Schema) bool { return len(t.Properties) > 0 }) {
				return false // some of those that are spelled
			}
		}
		if in := s.at(path[:i]); len(s.at(path[:i+1])) == 0 {
			return !admits(in, true) && slices.ContainsFunc(in, func(t *js.Schema) bool { return len(t.Properties) > 0 })
		}
	}
	return false
}

// Kinds are the JSON types that the schema admits at a path, nil where it does not say.
func (s *Schema) Kinds(path []string) (kinds []string) {
	for _, t := range s.at(path) {
		switch {
		case t.Types != nil:
			kinds = append(kinds, t.Types.ToStrings()...)
		case len(inPlace(t)) == 0:
			return nil
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// EnumMember reports whether the value is a member of an enum, or the const,
// that the schema gives for that path (R7).
func (s *Schema) EnumMember(path []string, value strictjson.Value) bool {
	if s != nil && s.flat != nil { // it lists no values
		return false
	}
	schemas := s.at(path)
	if !hasEnum(schemas) {
		return false
	}
	v := decoded(value)
	return slices.ContainsFunc(schemas, func(s *js.Schema) bool {
		return !refersOn(s) && (s.Const != nil && same(v, *s.Const) ||
			s.Enum != nil && slices.ContainsFunc(s.Enum.Values, func(m any) bool { return same(v, m) }))
	})
}

// Requires reports whether the schema demands a member of the value whatever the
// others are.
func (s *Schema) Requires(name string) bool {
	return s != nil && slices.ContainsFunc(always(s.root), func(t *js.Schema) bool { return slices.Contains(t.Required, name) })
}

// Default returns what the schema says a member of the value is where it is left out,
// in canonical form, or the zero Value: where it says nothing, or not the same
// everywhere. A schema that cannot be used says nothing.
func (s *Schema) Default(name string) strictjson.Value {
	if s == nil {
		return strictjson.Value{}
	}
	var said *any
	for _, in := range always(s.root) {
		if refersOn(in) || in.Properties[name] == nil {
			continue
		}
		for _, t := range always(in.Properties[name]) {
			switch {
			case t.Default == nil:
			case said != nil && !same(*said, *t.Default):
				return strictjson.Value{}
			default:
				said = t.Default
			}
		}
	}
	if said == nil {
		return strictjson.Value{}
	}
	raw, err := json.Marshal(*said)
	if err == nil {
		raw, err = strictjson.CanonicalWithin(raw, strictjson.Request)
	}
	if err != nil {
		return strictjson.Value{}
	}
	return strictjson.Of(raw)
}

// NamesProperty reports whether the last element of the path is a name that
// the schema itself spells under `properties` there. Any other object key was
// chosen by the caller and is judged like a value (R16).
func (s *Schema) NamesProperty(path []string) bool {
	if len(path) == 0 {
		return false
	}
	last := path[len(path)-1]
	if s != nil && s.flat != nil {
		_, named := s.flat.members[last]
		return named && len(path) == 1
	}
	return slices.ContainsFunc(s.at(path[:len(path)-1]), func(t *js.Schema) bool { return !refersOn(t) && allows(t.Properties[last]) })
}

// PropertyNames are the names that the schema spells under `properties`, at any depth.
func (s *Schema) PropertyNames() (names []string) {
	if s == nil {
		return nil
	}
	var seen distinct
	for todo := []*js.Schema{s.root}; len(todo) > 0; {
		t := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; seen.add(t) {
			names = slices.AppendSeq(names, maps.Keys(t.Properties))
			todo = append(append(todo, inPlace(t)...), below(t)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func hasEnum(schemas []*js.Schema) bool {
	return slices.ContainsFunc(schemas, func(s *js.Schema) bool {
		return !refersOn(s) && (s.Enum != nil || s.Const != nil)
	})
}

// Idle reports whether a value of a member says no more than leaving it out: the schema
// does not demand it, and its default is that very value, which is empty: null, false, "",
// [] or {}. Of any other default a server may do something else (0034).
func (s *Schema) Idle(name string, v strictjson.Value) bool {
	if text, _ := v.Text(); text != "" || v.Kind() == strictjson.Number || v.Len() > 0 {
		return false
	}
	switch given := s.Default(name); string(given.Raw()) {
	case "null", "false", `""`, "[]", "{}":
		return !s.Requires(name) && Equal(v, given)
	}
	return false
}

// Equal reports whether two texts are one value: of the same type, numbers by
// exact value.
func Equal(a, b strictjson.Value) bool {
	return a.Kind() == b.Kind() && a.Kind() != 0 && same(decoded(a), decoded(b))
}

// same compares two decoded values: same JSON type, numbers by exact value.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !same(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case interface{ String() string }: // json.Number
		b, ok := b.(interface{ String() string })
		if !ok {
			return false
		}
		x, ok1 := new(big.Rat).SetString(a.String())
		y, ok2 := new(big.Rat).SetString(b.String())
		return ok1 && ok2 && x.Cmp(y) == 0
	}
	return a == b
}
