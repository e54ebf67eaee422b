package gates

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/claim"
)

// param is one argument of a generated tool. The tool's schema and the values
// that satisfy or break it come from the same param, so that what a mutant must
// be is known without a validator.
type param struct {
	name     string
	kind     string // string, pattern, enum, integer, number, boolean, array, object
	required bool
	min, max int // of a string's length, a number's value, an array's items
	enum     []string
	inner    []*param // the item of an array, the members of an object
}

var paramKinds = []string{"string", "pattern", "enum", "integer", "number", "boolean", "array", "object"}

func newParam(rng *rand.Rand, kind string, depth int) *param {
	p := &param{name: word(rng, 4+rng.IntN(6)), kind: kind, required: rng.IntN(2) == 0}
	switch kind {
	case "string":
		p.min, p.max = 1+rng.IntN(4), 12+rng.IntN(40)
	case "integer", "number":
		p.min, p.max = -50-rng.IntN(50), 100+rng.IntN(900)
	case "enum":
		for range 2 + rng.IntN(4) {
			p.enum = append(p.enum, word(rng, 5)+strconv.Itoa(len(p.enum)))
		}
	case "array":
		p.min, p.max = rng.IntN(2), 3+rng.IntN(5)
		p.inner = []*param{newParam(rng, pick(rng, "string", "integer", "enum"), depth+1)}
	case "object":
		p.inner = newParams(rng, "", 2, depth+1)
	}
	return p
}

// newParams returns n params of different names. The first is required, and of
// that kind unless it is "".
func newParams(rng *rand.Rand, first string, n, depth int) (out []*param) {
	kinds := paramKinds
	if depth > 1 {
		kinds = paramKinds[:6]
	}
	for i := range n {
		kind := pick(rng, kinds...)
		if i == 0 && first != "" {
			kind = first
		}
		p := newParam(rng, kind, depth)
		p.name += strconv.Itoa(i)
		p.required = p.required || i == 0
		out = append(out, p)
	}
	return out
}

func schemaOf(params []*param) *value {
	properties, required := object(), array()
	for _, p := range params {
		properties.add(p.name, p.schema())
		if p.required {
			required.items = append(required.items, text(p.name))
		}
	}
	return object("type", text("object"), "properties", properties, "required", required)
}

func (p *param) schema() *value {
	s := object("type", text(p.kind))
	switch p.kind {
	case "string":
		s.add("minLength", number(p.min))
		s.add("maxLength", number(p.max))
	case "pattern":
		return object("type", text("string"), "pattern", text("^[A-Z]{2}-[0-9]{4}$"))
	case "enum":
		s = object("enum", array())
		for _, e := range p.enum {
			s.items[0].items = append(s.items[0].items, text(e))
		}
	case "integer", "number":
		s.add("minimum", number(p.min))
		s.add("maximum", number(p.max))
	case "array":
		s.add("items", p.inner[0].schema())
		s.add("minItems", number(p.min))
		s.add("maxItems", number(p.max))
	case "object":
		return schemaOf(p.inner)
	}
	return s
}

// letters are the characters of generated strings, of one to four bytes each.
var letters = []rune("abcdefghijklmnopqrstuvwxyz ABC0123456789-_/.,:;\"\\äéßøñłжяωλ漢字😀\n\t{}[]<>&'")

func randomText(rng *rand.Rand, n int) string {
	out := make([]rune, n)
	for i := range out {
		out[i] = pick(rng, letters...)
	}
	return string(out)
}

// valid returns a value that satisfies the param's schema, at its bounds too.
func (p *param) valid(rng *rand.Rand) *value {
	between := func(lo, hi int) int {
		switch rng.IntN(6) {
		case 0:
			return lo
		case 1:
			return hi
		}
		return lo + rng.IntN(hi-lo+1)
	}
	switch p.kind {
	case "string":
		return text(randomText(rng, between(p.min, p.max)))
	case "pattern":
		return text(strings.ToUpper(word(rng, 2)) + "-" + strconv.Itoa(1000+rng.IntN(9000)))
	case "enum":
		return text(pick(rng, p.enum...))
	case "integer":
		return number(between(p.min, p.max))
	case "number":
		if rng.IntN(2) == 0 {
			return literal(strconv.Itoa(p.min+1+rng.IntN(p.max-p.min-1)) + "." + strconv.Itoa(rng.IntN(1000)))
		}
		return number(between(p.min, p.max))
	case "boolean":
		return literal(pick(rng, "true", "false"))
	case "array":
		out := array()
		for range between(p.min, p.max) {
			out.items = append(out.items, p.inner[0].valid(rng))
		}
		return out
	}
	return validArgs(rng, p.inner)
}

// validArgs returns an object with all required params and some of the others.
func validArgs(rng *rand.Rand, params []*param) *value {
	out := object()
	for _, p := range params {
		if p.required || rng.IntN(2) == 0 {
			out.add(p.name, p.valid(rng))
		}
	}
	return out
}

// beyond returns a value of the param's type that its schema does not allow.
func (p *param) beyond(rng *rand.Rand) *value {
	switch p.kind {
	case "string":
		if rng.IntN(2) == 0 {
			return text(strings.Repeat("x", p.max+1+rng.IntN(20)))
		}
		return text(strings.Repeat("x", p.min-1))
	case "pattern":
		return text(pick(rng, "ab-1234", "AB-12345", " AB-1234", "AB-1234\n", "AB_1234", "ＡＢ-1234"))
	case "enum":
		return text(pick(rng, strings.ToUpper(p.enum[0]), p.enum[0]+" ", "", p.enum[0]+p.enum[1]))
	case "integer":
		return literal(pick(rng, strconv.Itoa(p.max+1), strconv.Itoa(p.min-1), "1.5", "1e30", "-9007199254740993"))
	case "number":
		return literal(pick(rng, strconv.Itoa(p.max+1), strconv.Itoa(p.min-1), "1e30", strconv.Itoa(p.max)+".0000000001"))
	case "boolean":
		return literal(pick(rng, "0", "1", "null"))
	case "array":
		out := array()
		for range p.max + 1 {
			out.items = append(out.items, p.inner[0].valid(rng))
		}
		return out
	}
	out := validArgs(rng, p.inner)
	i := rng.IntN(len(out.items))
	for _, q := range p.inner {
		if q.name == out.names[i] {
			out.items[i] = q.beyond(rng)
		}
	}
	return out
}

// otherType returns a value of a type the param's schema does not allow.
func (p *param) otherType(rng *rand.Rand) *value {
	v := pick(rng, literal("null"), text("true"), literal("true"), number(7), array(), object(), array(text("x")))
	switch ok := map[string]byte{"string": '"', "pattern": '"', "enum": '"', "integer": '0', "number": '0', "boolean": '0', "array": '[', "object": '{'}[p.kind]; {
	case v.kind != ok:
		return v
	case ok == '0' || ok == '[':
		return text("7")
	default:
		return number(7)
	}
}

// The standing of a generated tool. Only an open one may be called.
const (
	open       = iota
	notAllowed // listed, and not on the operator's list
	notListed  // on the operator's list, and no longer listed
	repinned   // listed with another definition than the one approved
	standings
)

type planTool struct {
	server, name string
	standing     int
	params       []*param
}

// planWorld is what a generated plan is held to.
type planWorld struct {
	allowlist *claim.Allowlist
	tools     []*planTool
}

func newPlanWorld(rng *rand.Rand) *planWorld {
	w := &planWorld{}
	var defs []gate.Definition
	var operator []claim.Allowed
	for s := range 3 {
		server := word(rng, 5) + strconv.Itoa(s)
		for n := range 8 {
			t := &planTool{server: server, name: word(rng, 4) + "_" + word(rng, 6) + strconv.Itoa(s*8+n)}
			if n%2 == s%2 { // half are open, among them one with each kind of param
				t.standing = 1 + n%(standings-1)
			}
			t.params = newParams(rng, paramKinds[len(w.tools)%len(paramKinds)], 1+rng.IntN(5), 0)
			w.tools = append(w.tools, t)
			definition := object("name", text(t.name), "description", text(word(rng, 9)), "inputSchema", schemaOf(t.params))
			raw := []byte(definition.json(style{}))
			pin := ""
			if t.standing == repinned || rng.IntN(2) == 0 {
				pin = gate.PinOf(t.server, raw)
			}
			if t.standing == repinned {
				definition.items[1] = text("now does something else")
				raw = []byte(definition.json(style{}))
			}
			if t.standing != notListed {
				defs = append(defs, gate.Definition{Server: t.server, Raw: raw})
			}
			if t.standing != notAllowed {
				operator = append(operator, claim.Allowed{Server: t.server, Name: t.name, Pin: pin})
			}
		}
	}
	w.allowlist = claim.NewAllowlist(listed(defs), operator)
	return w
}

// listed makes of definitions the tools of a live list, with the product's own
// catalogue and validator; each by itself, so that a name listed twice stays so.
func listed(defs []gate.Definition) (out []claim.Tool) {
	for i := range defs {
		c, _ := gate.NewCatalogue(defs[i:i+1], nil)
		for _, t := range c.Tools() {
			out = append(out, claimTool(t))
		}
	}
	return out
}

func claimTool(t *gate.Tool) claim.Tool {
	tool := claim.Tool{Server: t.Server, Name: t.Name, Pin: t.Pin}
	if t.State != gate.Refused {
		tool.Validate = t.ValidateArguments
	}
	return tool
}

func (w *planWorld) tool(rng *rand.Rand, standing int) *planTool {
	for {
		if t := pick(rng, w.tools...); t.standing == standing {
			return t
		}
	}
}

// has reports whether any tool has that name at that server.
func (w *planWorld) has(server, name string) bool {
	for _, t := range w.tools {
		if t.server == server && t.name == name {
			return true
		}
	}
	return false
}
