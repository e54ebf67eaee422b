package gates

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/strictjson"
)

// param is a kind of argument: its schema, and values, as JSON, that satisfy it,
// that are of its type and do not, and of another type. What a mutant must be is
// known from here, without a validator.
type param struct {
	schema               string
	valid, beyond, other []string
}

var params = []param{
	{`{"type":"string","minLength":2,"maxLength":9}`, []string{`"ab"`, `"漢😀"`, `"{}\",\n[\u0000"`}, []string{`""`, `"ж"`, `"ten letters"`}, []string{"null", "7", `["ab"]`}},
	{`{"type":"string","pattern":"^[A-Z]{2}-[0-9]{4}$"}`, []string{`"AB-1234"`, `"ZZ-0000"`}, []string{`"ab-1234"`, `"AB-12345"`, `" AB-1234"`, `"AB-1234\n"`, `"ＡＢ-1234"`}, []string{"null", "1234"}},
	{`{"enum":["paid","open"]}`, []string{`"paid"`, `"open"`}, []string{`"Paid"`, `"paid "`, `""`, `"paidopen"`}, []string{"null", "0", `["paid"]`}},
	{`{"type":"integer","minimum":-5,"maximum":120}`, []string{"-5", "120", "0", "7.0", "1e2", "700E-2"}, []string{"121", "-6", "1.5", "1e30"}, []string{"null", `"7"`, "true"}},
	{`{"type":"number","minimum":-5,"maximum":5}`, []string{"-5", "5.0", "4.999", "-0.0"}, []string{"6", "-5.0000000001", "1e30"}, []string{"null", `"1"`, "[]"}},
	{`{"type":"boolean"}`, []string{"true", "false"}, []string{"0", `"true"`}, []string{"null", "1"}},
	{`{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2}`, []string{`["a"]`, `["","{}"]`}, []string{"[]", `["a","b","c"]`, "[7]", `["a",null]`}, []string{"null", `"a"`, "{}"}},
	{`{"type":"object","properties":{"in":{"type":"string"}},"required":["in"]}`, []string{`{"in":""}`, `{"in":"x"}`}, []string{`{"in":7}`, `{"in":null}`}, []string{"null", `"{}"`, "[]"}},
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
	args         []argument
}

type argument struct {
	param
	name     string
	required bool
}

// planWorld is what a generated plan is held to.
type planWorld struct {
	allowlist *claim.Allowlist
	tools     []*planTool
}

func newPlanWorld(rng *rand.Rand) *planWorld {
	w := &planWorld{}
	servers := []string{word(rng, 6), word(rng, 7)}
	var defs []gate.Definition
	var operator []claim.Allowed
	for i := range 2 * len(params) {
		t := &planTool{server: servers[i%2], name: word(rng, 4) + "_" + word(rng, 6) + strconv.Itoa(i)}
		if i >= len(params) { // the first are open, one for each kind of argument
			t.standing = 1 + i%(standings-1)
		}
		properties, required := object{}, []string{}
		for k := range 1 + rng.IntN(4) {
			a := argument{params[(i+k*rng.IntN(len(params)))%len(params)], word(rng, 7) + strconv.Itoa(k), k == 0 || rng.IntN(2) == 0}
			if a.required {
				required = append(required, str(a.name))
			}
			t.args, properties = append(t.args, a), append(properties, member{a.name, a.schema})
		}
		define := func(what string) []byte {
			return fmt.Appendf(nil, `{"name":%q,"description":%q,"inputSchema":{"type":"object","properties":%s,"required":%s}}`, t.name, what, properties, list(required))
		}
		raw, pin := define("what it does"), ""
		if t.standing == repinned || rng.IntN(2) == 0 {
			pin = gate.PinOf(t.server, raw)
		}
		if t.standing == repinned {
			raw = define("what it does now")
		}
		if t.standing != notListed {
			defs = append(defs, gate.Definition{Server: t.server, Raw: raw})
		}
		if t.standing != notAllowed {
			operator = append(operator, claim.Allowed{Server: t.server, Name: t.name, Pin: pin})
		}
		w.tools = append(w.tools, t)
	}
	w.allowlist = claim.NewAllowlist(listed(defs), operator)
	return w
}

// draft is a plan in the making: one mutation changes its parts, or what is
// written of them.
type draft struct {
	rng     *rand.Rand
	world   *planWorld
	tool    *planTool // nil for a final_answer
	plan    object
	args    object
	respell bool
}

// use makes the draft a valid call of a tool of that standing.
func (d *draft) use(standing int) {
	for d.tool = pick(d.rng, d.world.tools...); d.tool.standing != standing; {
		d.tool = pick(d.rng, d.world.tools...)
	}
	d.args = object{}
	for _, a := range d.tool.args {
		if a.required || d.rng.IntN(2) == 0 {
			d.args = append(d.args, member{a.name, pick(d.rng, a.valid...)})
		}
	}
	d.plan = object{{"type", `"call_tool"`}, {"server", str(d.tool.server)}, {"tool", str(d.tool.name)}, {"args", "@"}}
}

// answer makes the draft a valid final_answer.
func (d *draft) answer() {
	d.tool, d.args = nil, nil
	d.plan = object{{"type", `"final_answer"`}, {"needs_more_info", "true"}, {"answer", str("Which one? " + pick(d.rng, texts...))}}
}

// write returns the planner's bytes, and in them the bytes of args.
func (d *draft) write() (plan, args string) {
	args, plan = d.args.String(), d.plan.String()
	if d.respell {
		args, plan = strings.TrimSpace(respell(d.rng, args)), respell(d.rng, plan)
	}
	return strings.Replace(plan, "@", args, 1), args
}

// breaks puts another value in for one argument.
func (d *draft) breaks(values func(argument) []string) {
	at := &d.args[d.rng.IntN(len(d.args))]
	for _, a := range d.tool.args {
		if a.name == at.name {
			at.value = pick(d.rng, values(a)...)
		}
	}
}

// rename gives the server or the tool a name nobody has.
func (d *draft) rename(f func(string) string) {
	i := 1 + d.rng.IntN(2)
	name := f([]string{d.tool.server, d.tool.name}[i-1])
	if name == d.tool.server || name == d.tool.name {
		name += "x"
	}
	d.plan[i].value = str(name)
}

// planMutation is one way to write a plan, and what must become of it: for no
// reason it must be accepted. One of do, before it is written, and raw, of what
// was written, may be nil.
type planMutation struct {
	name  string
	stage claim.Stage
	want  writ.Reason
	do    func(d *draft)
	raw   func(rng *rand.Rand, s string) string
}

// fuzzPlans runs n generated plans through both gates of a plan.
func fuzzPlans(g Gates, seed uint64, n int) *Section {
	const plansPerWorld = 100
	var w *planWorld
	return generate("plan_fuzz", seed, planStream, n, func(rng *rand.Rand, i int) (string, writ.Reason, string, answer) {
		if i%plansPerWorld == 0 {
			w = newPlanWorld(rng)
		}
		m := planMutations[i%len(planMutations)]
		d := &draft{rng: rng, world: w}
		if d.use(open); m.do != nil {
			m.do(d)
		}
		raw, args := d.write()
		if m.raw != nil {
			raw = m.raw(rng, raw)
		}
		return m.name, m.want, raw, d.judge(g, m, raw, args)
	})
}

func (d *draft) judge(g Gates, m planMutation, raw, args string) answer {
	p, stop := g.ParsePlan([]byte(raw))
	if stop != nil {
		return stopped(stop, m.stage)
	}
	t, stop := g.CheckPlan(d.world.allowlist, p)
	if stop != nil {
		return stopped(stop, m.stage)
	}
	switch {
	case m.want != "":
		return answer{}
	case d.tool == nil:
		if p.Type != claim.FinalAnswer || t != nil || str(p.Answer) != d.plan[2].value {
			return answer{wrong: "another answer"}
		}
	case p.Type != claim.CallTool || t == nil || p.Server != d.tool.server || t.Server != d.tool.server ||
		p.Tool != d.tool.name || t.Name != d.tool.name || string(p.Args) != args:
		return answer{wrong: "another call"}
	}
	return answer{}
}

// Of validPlans there are so many that a third of all must be accepted.
var planMutations = slices.Concat(slices.Repeat(validPlans, 4), brokenTexts, brokenPlans, brokenCalls)

var validPlans = []planMutation{
	{name: "valid_as_it_is"},
	{name: "valid_respelt", do: func(d *draft) { d.respell = true }},
	{name: "valid_key_order", do: func(d *draft) {
		d.rng.Shuffle(4, func(i, j int) { d.plan[i], d.plan[j] = d.plan[j], d.plan[i] })
	}},
	{name: "valid_final_answer", do: func(d *draft) { d.answer(); d.respell = d.rng.IntN(2) == 0 }},
}

// text is a mutation of what was written, that is no one JSON object (INV-1).
func text(name string, raw func(rng *rand.Rand, s string) string) planMutation {
	return planMutation{name, claim.StagePlanParse, writ.PlanSyntax, nil, raw}
}

// parse is a mutation the first gate of a plan must stop, check one for the second.
func parse(name string, want writ.Reason, do func(*draft)) planMutation {
	return planMutation{name, claim.StagePlanParse, want, do, nil}
}

func check(name string, want writ.Reason, do func(*draft)) planMutation {
	return planMutation{name, claim.StagePlanGate, want, do, nil}
}

var brokenTexts = []planMutation{
	text("fence", func(rng *rand.Rand, s string) string { return pick(rng, "```json\n", "```\n", "~~~\n") + s + "\n```" }),
	text("text_around", func(rng *rand.Rand, s string) string {
		return pick(rng, "Sure! "+s, "<think>hm</think>"+s, "\ufeff"+s, "\u00a0"+s, s+" Done.", s+"\x00", s+";", s+"\n"+s)
	}),
	text("truncated", func(rng *rand.Rand, s string) string { return s[:rng.IntN(len(s))] }),
	text("beginning_lost", func(_ *rand.Rand, s string) string { return s[1:] }),
	text("not_json", func(rng *rand.Rand, s string) string {
		return pick(rng, within(s, ","), within(s, "/* ok */"), strings.Replace(s, `"type"`, `'type'`, 1), strings.Replace(s, `"type"`, "type", 1), within(s, `,"x":NaN`), within(s, `,"x":01`))
	}),
	text("duplicate_key", func(rng *rand.Rand, s string) string {
		return within(s, pick(rng, `,"tool":"x"`, `,"args":{}`, `,"to\u006fl":"x"`, `,"\u0061rgs":{}`, `,"typ\u0065":"call_tool"`))
	}),
	text("bad_text", func(rng *rand.Rand, s string) string {
		return strings.Replace(s, "call_tool", "call_tool"+pick(rng, "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xc3", `\ud800`, `\udc00\ud800`, "\n", "\x1f"), 1)
	}),
}

// brokenPlans are no plans (INV-1).
var brokenPlans = []planMutation{
	parse("duplicate_argument", writ.PlanSyntax, func(d *draft) { d.args = append(d.args, member{d.args[0].name, `"x"`}) }),
	parse("number_out_of_bounds", writ.PlanNumber, func(d *draft) { d.args[0].value = pick(d.rng, "1e999", "-1e-999", "1"+strings.Repeat("0", 64)) }),
	parse("too_deep", writ.PlanTooDeep, func(d *draft) { d.args[0].value = strings.Repeat("[", 70) + strings.Repeat("]", 70) }),
	{"no_object", claim.StagePlanParse, writ.PlanNotObject, nil, func(rng *rand.Rand, s string) string { return pick(rng, "["+s+"]", str(s), "null", "7", "[]") }},
	parse("unknown_type", writ.PlanType, func(d *draft) {
		d.plan[0].value = pick(d.rng, str(otherCase(d.rng, "call_tool")), `"tool_call"`, `"call_tool "`, `""`, "null", `["call_tool"]`)
	}),
	parse("key_dropped", writ.PlanMissingKey, func(d *draft) { d.plan = d.plan.without(1 + d.rng.IntN(3)) }),
	parse("key_misspelt", writ.PlanUnknownKey, func(d *draft) {
		m := &d.plan[1+d.rng.IntN(3)]
		m.name = pick(d.rng, otherCase(d.rng, m.name), lookAlike.Replace(m.name))
	}),
	parse("extra_key", writ.PlanUnknownKey, func(d *draft) {
		d.plan = append(d.plan, member{pick(d.rng, "reason", "__proto__", "answer", "needs_more_info", ""), pick(d.rng, `"x"`, "null", "{}")})
	}),
	parse("name_of_wrong_type", writ.PlanValue, func(d *draft) {
		d.plan[1+d.rng.IntN(2)].value = pick(d.rng, "null", "1", `["x"]`, `""`, `" \t"`, `"\u200b"`)
	}),
	parse("args_of_wrong_type", writ.PlanValue, func(d *draft) { d.plan[3].value = pick(d.rng, "null", "[@]", str(d.args.String()), "false") }),
	parse("final_answer_that_needs_nothing", writ.PlanFinal, func(d *draft) { d.answer(); d.plan[1].value = pick(d.rng, "false", `"true"`, "1", "null") }),
	parse("final_answer_empty", writ.PlanValue, func(d *draft) { d.answer(); d.plan[2].value = pick(d.rng, `""`, `" \n"`, "null", `"\u200b\u2060"`) }),
	parse("final_answer_with_call", writ.PlanUnknownKey, func(d *draft) { call := d.plan[1]; d.answer(); d.plan = append(d.plan, call) }),
}

// brokenCalls are plans that may not run (INV-2, INV-3).
var brokenCalls = []planMutation{
	check("blocked_by_allowlist", writ.NameForbidden, func(d *draft) { d.use(notAllowed) }),
	check("allowed_and_not_listed", writ.NameUnknown, func(d *draft) { d.use(notListed) }),
	check("definition_changed", writ.NameChanged, func(d *draft) { d.use(repinned) }),
	check("unknown_name", writ.NameUnknown, func(d *draft) { d.rename(func(string) string { return word(d.rng, 8) }) }),
	check("name_misspelt", writ.NameUnknown, func(d *draft) {
		d.rename(func(s string) string {
			return pick(d.rng, otherCase(d.rng, s), lookAlike.Replace(s), s+" ", s+"\u200b", s+"\x00", "../"+s, s+"\u202e")
		})
	}),
	check("server_and_tool_joined", writ.NameUnknown, func(d *draft) { d.plan[2].value = str(d.tool.server + pick(d.rng, "__", "/", ".") + d.tool.name) }),
	check("tool_of_other_server", writ.NameUnknown, func(d *draft) {
		for _, t := range d.world.tools {
			if t.server != d.tool.server {
				d.plan[1].value = str(t.server)
			}
		}
	}),
	check("argument_dropped", writ.SchemaMissingField, func(d *draft) { d.args = d.args.without(0) }), // the first is required
	check("no_arguments", writ.SchemaMissingField, func(d *draft) { d.args = object{} }),
	check("extra_argument", writ.SchemaUnknownField, func(d *draft) {
		d.args = append(d.args, member{pick(d.rng, "force", "bcc", "__proto__", "$ref", "\u00a0", otherCase(d.rng, d.args[0].name)), pick(d.rng, "true", `"eve"`, "null", "{}")})
	}),
	check("argument_of_wrong_type", writ.SchemaInvalid, func(d *draft) { d.breaks(func(a argument) []string { return a.other }) }),
	check("argument_beyond_its_schema", writ.SchemaInvalid, func(d *draft) { d.breaks(func(a argument) []string { return a.beyond }) }),
}

// listed makes of definitions the tools of a live list, with the product's own
// catalogue and validator; each by itself, so that a name listed twice stays so.
func listed(defs []gate.Definition) (out []claim.Tool) {
	for i := range defs {
		c, _ := gate.NewCatalogue(defs[i:i+1], nil)
		for _, t := range c.Tools() {
			tool := claim.Tool{Server: t.Server, Name: t.Name, Pin: t.Pin}
			if t.State != gate.Refused {
				tool.Validate = func(args []byte) []writ.Failure { return t.ValidateArguments(strictjson.Of(args)) }
			}
			out = append(out, tool)
		}
	}
	return out
}
