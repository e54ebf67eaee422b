package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	js "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// MaxFailures bounds a list of failures: a call that fails everywhere must not
// make a refusal larger than itself. So does maxPointer for one of them.
const (
	MaxFailures = 256
	maxPointer  = 1024
)

// Judge validates arguments and closes them: open tells which objects the
// contract opens to properties the schema neither names nor openly admits (R16).
// The answer is sorted and empty when nothing is wrong.
func (s *Schema) Judge(arguments strictjson.Value, open func(path []string) bool) []writ.Failure {
	if arguments.Kind() == 0 {
		return []writ.Failure{{Reason: writ.PayloadSyntax, Need: "arguments in strict JSON"}}
	}
	if s.flat.accepts(arguments) {
		return nil
	}
	j := &judging{
		meter: meter{weight: s.weight, cost: map[visit]int{}},
		top:   s.top,
		open:  open,
	}
	root := node{arguments, decoded(arguments)}
	if !j.afford(s.root, root) {
		return []writ.Failure{tooLarge}
	}
	if err := validate(s.root, root.d); err != nil {
		j.failed = true
		j.report(err)
	}
	j.close([]*js.Schema{s.root}, root)
	if j.over {
		return []writ.Failure{tooLarge}
	}
	if j.failed && len(j.out) == 0 {
		j.fail(nil, writ.SchemaInvalid, "a value the tool's schema accepts")
	}
	j.prune()
	return j.out
}

var tooLarge = writ.Failure{Reason: writ.PayloadTooLarge, Need: "arguments small enough to be checked against the tool's schema"}

type judging struct {
	meter
	top    []*js.Schema // what judges the arguments, whatever they are
	open   func(path []string) bool
	holds  map[visit]bool
	path   []string
	places [][]*js.Schema // of each beginning of path that was asked for: anywhere
	failed bool           // by the schema as it is written
	over   bool           // beyond the bound
	seen   map[writ.Failure]bool
	out    []writ.Failure
}

// fail notes one failure. A pointer that would be too long is cut to the
// object it lies in.
func (j *judging) fail(path []string, r writ.Reason, need string) {
	j.failed = true
	n := 0
	for i, t := range path {
		if n += len(t) + 1; n > maxPointer {
			path = path[:i]
			break
		}
	}
	f := writ.Failure{Pointer: strictjson.Pointer(path), Reason: r, Need: need}
	if j.seen[f] {
		return
	}
	if j.seen == nil {
		j.seen = map[writ.Failure]bool{}
	}
	j.seen[f] = true
	if j.out = append(j.out, f); len(j.out) > 8*MaxFailures {
		j.prune()
	}
}

// prune sorts the failures and keeps the smallest, so that the answer does not
// depend on the order in which they were found.
func (j *judging) prune() {
	slices.SortFunc(j.out, func(a, b writ.Failure) int {
		return cmp.Or(
			strings.Compare(a.Pointer, b.Pointer),
			strings.Compare(string(a.Reason), string(b.Reason)),
			strings.Compare(a.Need, b.Need))
	})
	if len(j.out) > MaxFailures {
		for _, f := range j.out[MaxFailures:] {
			delete(j.seen, f)
		}
		j.out = j.out[:MaxFailures]
	}
}

// report turns the library's errors into failures. Errors inside alternatives
// are told as one, where the alternatives stand.
func (j *judging) report(err error) {
	var ve *js.ValidationError
	if !errors.As(err, &ve) {
		j.fail(nil, writ.SchemaInvalid, "a value the tool's schema accepts")
		return
	}
	todo := []*js.ValidationError{ve}
	for len(todo) > 0 {
		e := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		loc := e.InstanceLocation
		switch k := e.ErrorKind.(type) {
		case *kind.Required:
			j.failEach(loc, k.Missing, writ.SchemaMissingField, "this field, which the tool requires")
		case *kind.DependentRequired:
			j.failEach(loc, k.Missing, writ.SchemaMissingField, "this field, which another one present requires")
		case *kind.Dependency:
			j.failEach(loc, k.Missing, writ.SchemaMissingField, "this field, which another one present requires")
		case *kind.AdditionalProperties:
			j.failEach(loc, k.Properties, writ.SchemaUnknownField, unknownField)
		case *kind.PropertyNames:
			// Its location is not reliable; close judges the names itself.
		case *kind.AnyOf, *kind.OneOf:
			j.fail(loc, writ.SchemaInvalid, "a value that one of the schema's alternatives accepts")
		case *kind.Not, *kind.Contains, *kind.MinContains, *kind.MaxContains:
			j.fail(loc, writ.SchemaInvalid, need(k))
		default:
			if len(e.Causes) > 0 {
				todo = append(todo, e.Causes...)
				break
			}
			j.fail(loc, writ.SchemaInvalid, need(k))
		}
	}
}

// failEach notes one failure for each of some members of the value at a path.
func (j *judging) failEach(path, names []string, r writ.Reason, need string) {
	for _, name := range names {
		j.fail(join(path, name), r, need)
	}
}

const unknownField = "no such field: the tool's schema does not name it"

func join(path []string, name string) []string {
	return append(append(make([]string, 0, len(path)+1), path...), name)
}

// need says in words what the schema wants, with its own numbers and type
// words and nothing of the value.
func need(k js.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "a value of type " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "one of the values the schema lists"
	case *kind.Const:
		return "the one value the schema allows"
	case *kind.FalseSchema:
		return "no value: the schema allows none here"
	case *kind.Pattern:
		return "a string of the schema's pattern"
	case *kind.Format:
		return "a string of the schema's format"
	case *kind.MinLength:
		return "at least " + strconv.Itoa(k.Want) + " characters"
	case *kind.MaxLength:
		return "at most " + strconv.Itoa(k.Want) + " characters"
	case *kind.MinItems:
		return "at least " + strconv.Itoa(k.Want) + " elements"
	case *kind.MaxItems:
		return "at most " + strconv.Itoa(k.Want) + " elements"
	case *kind.AdditionalItems:
		return "fewer elements"
	case *kind.UniqueItems:
		return "elements that differ from each other"
	case *kind.MinProperties:
		return "at least " + strconv.Itoa(k.Want) + " properties"
	case *kind.MaxProperties:
		return "at most " + strconv.Itoa(k.Want) + " properties"
	case *kind.Minimum, *kind.ExclusiveMinimum:
		return "a number not below the schema's minimum"
	case *kind.Maximum, *kind.ExclusiveMaximum:
		return "a number not above the schema's maximum"
	case *kind.MultipleOf:
		return "a multiple the schema allows"
	case *kind.Contains, *kind.MinContains, *kind.MaxContains:
		return "elements of the kind and number the schema demands"
	}
	return "a value the tool's schema accepts"
}

// close refuses, in this value and below, every property that no applicable
// subschema names or openly admits. schemas are those that judge the value.
func (j *judging) close(schemas []*js.Schema, n node) {
	if j.over || !holdsMore(n.v) {
		return
	}
	apply := j.applicable(schemas, n)
	if n.v.Kind() == strictjson.Object {
		j.closeMembers(apply, n)
		return
	}
	for i, v := range n.v.Elements() {
		if !holdsMore(v) {
			continue
		}
		e := n.element(i, v)
		var next []*js.Schema
		tok := strconv.Itoa(i)
		for _, s := range apply {
			next = addChild(next, s, tok)
		}
		j.within(tok, next, e)
	}
}

// closeMembers is close of an object, to which these subschemas apply.
func (j *judging) closeMembers(apply []*js.Schema, n node) {
	opened := j.open != nil && j.open(j.path)
	free := admits(apply, len(j.path) == 0)
	type member struct {
		name string
		v    strictjson.Value
	}
	var few [8]member
	members := few[:0]
	for name, v := range n.v.Members() {
		members = append(members, member{name, v})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for _, m := range members {
		name, e := m.name, n.member(m.name, m.v)
		var next []*js.Schema
		named := false
		for _, s := range apply {
			named = named || names(s, name)
			next = addChild(next, s, name)
			if s.PropertyNames != nil && !j.satisfies(s.PropertyNames, node{d: name}) {
				j.fail(join(j.path, name), writ.SchemaInvalid, "a property name the schema accepts")
			}
		}
		// What an alternative names that does not apply is admitted as what it is there.
		admitted := !named && free && (!anyNames(j.anywhere(), name) || j.alike(name, e))
		switch {
		case !named && !opened && !admitted:
			j.fail(join(j.path, name), writ.SchemaUnknownField, unknownField)
		case admitted && !slices.ContainsFunc(next, says): // whole
		default:
			j.within(name, next, e)
		}
	}
}

// alike reports whether a member or an element of the value at the path, and all in it that
// the schema names anywhere, is of a type that the schema gives for its place.
func (j *judging) alike(tok string, n node) bool {
	j.path = append(j.path, tok)
	defer j.leave()
	in := j.anywhere()
	if len(in) > 0 && !slices.ContainsFunc(in, func(s *js.Schema) bool { return typed(s, n.d) }) {
		return false
	}
	for name, m := range n.v.Members() {
		if anyNames(in, name) && !j.alike(name, n.member(name, m)) {
			return false
		}
	}
	for i, e := range n.v.Elements() {
		if !j.alike(strconv.Itoa(i), n.element(i, e)) {
			return false
		}
	}
	return true
}

// leave goes back from the place that was entered last.
func (j *judging) leave() {
	j.path = j.path[:len(j.path)-1]
	j.places = j.places[:min(len(j.places), len(j.path)+1)]
}

// typed reports whether s itself gives types, in so many words or by the values it lists, of
// which a decoded value has one.
func typed(s *js.Schema, d any) bool {
	if refersOn(s) {
		return false
	}
	if s.Types != nil {
		return slices.ContainsFunc(s.Types.ToStrings(), func(t string) bool { return isOf(t, d) })
	}
	var listed []any
	if s.Enum != nil {
		listed = s.Enum.Values
	}
	if s.Const != nil {
		listed = append(listed[:len(listed):len(listed)], *s.Const)
	}
	return slices.ContainsFunc(listed, func(w any) bool { return reflect.TypeOf(w) == reflect.TypeOf(d) })
}

// isOf reports whether a decoded value is of a type of JSON Schema; an integer is written as one.
func isOf(t string, d any) bool {
	switch d := d.(type) {
	case map[string]any:
		return t == "object"
	case []any:
		return t == "array"
	case string:
		return t == "string"
	case json.Number:
		return t == "number" || t == "integer" && !strings.ContainsAny(d.String(), ".eE")
	case bool:
		return t == "boolean"
	}
	return t == "null"
}

// within closes a member or an element of the value at the path.
func (j *judging) within(tok string, schemas []*js.Schema, n node) {
	j.path = append(j.path, tok)
	j.close(schemas, n)
	j.leave()
}

// anywhere returns the subschemas that can judge the value at the path, whatever the
// other values are.
func (j *judging) anywhere() []*js.Schema {
	for i := len(j.places); i <= len(j.path); i++ {
		if i == 0 {
			j.places = append(j.places, j.top)
		} else {
			j.places = append(j.places, down(j.places[i-1], j.path[i-1]))
		}
	}
	return j.places[len(j.path)]
}

// holdsMore reports whether a value is an object or an array.
func holdsMore(v strictjson.Value) bool {
	return v.Kind() == strictjson.Object || v.Kind() == strictjson.Array
}

// anyNames reports whether one of the schemas itself names the property.
func anyNames(in []*js.Schema, name string) bool {
	return slices.ContainsFunc(in, func(s *js.Schema) bool { return names(s, name) })
}

// names reports whether s itself names the property.
func names(s *js.Schema, name string) bool {
	if refersOn(s) {
		return false
	}
	if t, ok := s.Properties[name]; ok {
		return t.Bool == nil || *t.Bool // `name: false` forbids, it does not name
	}
	for re := range s.PatternProperties {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// admits reports whether schemas of one object say that it may have members they do
// not name: in so many words, or, of an argument and what lies in it, by asking for an
// object and naming nothing. That a schema names some members and is silent of others
// admits none (R16).
func admits(schemas []*js.Schema, root bool) bool {
	object, names := false, false
	for _, s := range schemas {
		if refersOn(s) {
			continue
		}
		if more, said := s.AdditionalProperties.(bool); said && more || allows(asSchema(s.AdditionalProperties)) || allows(s.UnevaluatedProperties) {
			return true
		}
		object = object || !root && s.Types != nil && slices.Contains(s.Types.ToStrings(), "object")
		names = names || s.Properties != nil || s.PatternProperties != nil
	}
	return object && !names
}

// allows reports whether there is a schema that some value satisfies, as far as a
// schema of one word tells.
func allows(s *js.Schema) bool { return s != nil && (s.Bool == nil || *s.Bool) }

// says reports whether a schema tells of what values it admits more than that there
// are some.
func says(s *js.Schema) bool {
	return s.Types != nil || len(inPlace(s)) > 0 || len(below(s)) > 0
}

// applicable adds to the schemas those in place that apply to this very value:
// of alternatives the ones it satisfies, and what follows from a condition.
func (j *judging) applicable(in []*js.Schema, n node) []*js.Schema {
	var out []*js.Schema
	var seen distinct
	in = in[:len(in):len(in)] // what is added goes elsewhere
	for len(in) > 0 && !j.over {
		s := in[0]
		in = in[1:]
		if !seen.add(s) {
			continue
		}
		out = append(out, s)
		in = j.follow(in, s, n)
	}
	return out
}

// follow adds what applies to a value because s does.
func (j *judging) follow(in []*js.Schema, s *js.Schema, n node) []*js.Schema {
	if s.Ref != nil {
		in = append(in, s.Ref)
	}
	if refersOn(s) {
		return in
	}
	in = append(in, s.AllOf...)
	in = append(in, j.branches(s.AnyOf, n)...)
	in = append(in, j.branches(s.OneOf, n)...)
	if s.If != nil {
		then := s.Else
		if j.satisfies(s.If, n) {
			in, then = append(in, s.If), s.Then
		}
		if then != nil {
			in = append(in, then)
		}
	}
	for name, t := range s.DependentSchemas {
		if n.has(name) {
			in = append(in, t)
		}
	}
	for name, d := range s.Dependencies {
		if t, ok := d.(*js.Schema); ok && n.has(name) {
			in = append(in, t)
		}
	}
	return in
}

// branches returns the alternatives the value satisfies. When it satisfies
// none the call has failed already, and all are taken, lest the refusal name
// every field of the value as unknown.
func (j *judging) branches(alts []*js.Schema, n node) []*js.Schema {
	var out []*js.Schema
	for _, s := range alts {
		if j.satisfies(s, n) {
			out = append(out, s)
		}
	}
	if len(out) == 0 && j.failed {
		return alts
	}
	return out
}

func (j *judging) satisfies(s *js.Schema, n node) bool {
	at := visited(s, n)
	if ok, known := j.holds[at]; known {
		return ok
	}
	if !j.afford(s, n) {
		j.over = true
		return false
	}
	ok := validate(s, n.d) == nil
	if j.holds == nil {
		j.holds = map[visit]bool{}
	}
	j.holds[at] = ok
	return ok
}
