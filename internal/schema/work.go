package schema

import (
	js "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/writ-project/writ/internal/strictjson"
)

// measure visits every subschema once, bounds their number and what one value
// can meet, and notes each one's own work.
func (s *Schema) measure() error {
	todo := []*js.Schema{s.root}
	s.weight[s.root] = 0
	for len(todo) > 0 {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if t.DynamicRef != nil || t.RecursiveRef != nil {
			return errDynamic
		}
		s.weight[t] = weightOf(t)
		if len(s.weight) > maxParts {
			return errSize
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
		case f.count > maxFanOut || f.height > maxInPlace:
			return errFanOut
		}
	}
	return nil
}

// weightOf is the work of one visit of a subschema, without those in it.
func weightOf(t *js.Schema) int {
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
		names, _ := d.([]string)
		w += len(names)
	}
	return w
}

// fan is what a value meets at one subschema: how many subschemas, each as
// often as it is met, and how many in a row. Zero marks one under way.
type fan struct{ count, height int }

func fanOut(t *js.Schema, done map[*js.Schema]fan) (fan, error) {
	if f, ok := done[t]; ok {
		if f.count == 0 {
			return f, errCircular
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
		f.count = min(f.count+g.count, maxFanOut+1)
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

// node is one value of an instance, or the name of a property: d is what the
// library validates, and v where it stands, by which work done on it is
// remembered.
type node struct {
	v strictjson.Value // zero for a name
	d any
}

func (n node) member(name string, v strictjson.Value) node {
	m, _ := n.d.(map[string]any)
	return node{v, m[name]}
}

func (n node) has(name string) bool {
	m, _ := n.d.(map[string]any)
	_, ok := m[name]
	return ok
}

func (n node) element(i int, v strictjson.Value) node {
	a, _ := n.d.([]any)
	return node{v, a[i]}
}

// visit is one subschema judging one value, or one name.
type visit struct {
	s    *js.Schema
	v    strictjson.Value
	name string
}

func visited(s *js.Schema, n node) visit {
	at := visit{s: s, v: n.v}
	if !n.v.Exists() {
		at.name, _ = n.d.(string)
	}
	return at
}

// meter counts the steps of validations before they are run.
type meter struct {
	weight map[*js.Schema]int
	cost   map[visit]int
	spent  int // by what was run already
}

// afford reports whether validating n by s stays within what is left, and
// takes it.
func (m *meter) afford(s *js.Schema, n node) bool {
	c := m.count(s, n)
	if m.spent+c > validationSteps {
		return false
	}
	m.spent += c
	return true
}

// count returns the steps of validating n by s, saturating. It is itself
// bounded: every pair is counted once, and not more pairs than steps.
func (m *meter) count(s *js.Schema, n node) int {
	const over = validationSteps + 1
	at := visited(s, n)
	if c, ok := m.cost[at]; ok {
		return c // 0 while under way, which measure has excluded in place
	}
	if len(m.cost) > validationSteps {
		return over
	}
	m.cost[at] = 0
	c := 1 + m.weight[s]
	add := func(t *js.Schema, n node) {
		if t != nil && c <= validationSteps {
			c += m.count(t, n)
		}
	}
	for _, t := range inPlace(s) {
		add(t, n)
	}
	if !refersOn(s) {
		switch v := n.d.(type) {
		case string:
			c += len(v) / 1000
			if re, ok := s.Pattern.(*re2); ok {
				c += re.steps(len(v))
			}
		case []any:
			if s.UniqueItems {
				c += size(v)
			}
		}
		c += inside(s, n, add)
	}
	c = min(c, over)
	m.cost[at] = c
	return c
}

// inside adds each member or element of n with the subschemas that s may judge it by, and
// returns what they cost s itself.
func inside(s *js.Schema, n node, add func(*js.Schema, node)) (own int) {
	for name, member := range n.v.Members() {
		own++
		e := n.member(name, member)
		add(s.Properties[name], e)
		for re, t := range s.PatternProperties {
			own += re.(*re2).steps(len(name))
			add(t, e)
		}
		add(asSchema(s.AdditionalProperties), e)
		add(s.UnevaluatedProperties, e)
		if s.PropertyNames != nil {
			add(s.PropertyNames, node{d: name})
		}
	}
	list, _ := s.Items.([]*js.Schema)
	for i, element := range n.v.Elements() {
		own++
		e := n.element(i, element)
		if i < len(list) {
			add(list[i], e)
		}
		if i < len(s.PrefixItems) {
			add(s.PrefixItems[i], e)
		}
		for _, t := range []*js.Schema{asSchema(s.Items), asSchema(s.AdditionalItems), s.Items2020, s.Contains, s.UnevaluatedItems} {
			add(t, e)
		}
	}
	return own
}
