package gates

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
)

// draft is a plan in the making. Its parts are changed by one mutation and then
// written.
type draft struct {
	rng   *rand.Rand
	world *planWorld
	tool  *planTool
	plan  *value // the whole object
	args  *value // what is written into it at hole, nil for a final_answer
	hole  *value
	style style
	// raw is what the planner writes in the end, "" for the plan in its style.
	raw string
}

// planMutation is one way to write a plan, and what must become of it.
type planMutation struct {
	name  string
	stage claim.Stage
	want  []writ.Reason // none: it must be accepted
	do    func(d *draft)
}

const (
	plansPerWorld = 100
	planStream    = 1
	groundStream  = 2
)

// fuzzPlans runs n generated plans through both gates of a plan.
func fuzzPlans(g Gates, seed uint64, n int) *Section {
	s := newSection("plan_fuzz")
	s.Seed = &seed
	rng := rand.New(rand.NewPCG(seed, planStream))
	h := sha256.New()
	var w *planWorld
	for i := range n {
		if i%plansPerWorld == 0 {
			w = newPlanWorld(rng)
		}
		m := planMutations[i%len(planMutations)]
		d := newDraft(rng, w)
		m.do(d)
		raw, args := d.write()
		note(h, m.name, raw)
		s.score(fmt.Sprintf("plan_fuzz/%05d", i), m.name, expect(m.want), d.judge(g, m, raw, args))
	}
	s.Inputs = sum(h)
	return s.finish()
}

func expect(reasons []writ.Reason) (e expectation) {
	for _, r := range reasons {
		e = append(e, string(r))
	}
	return e
}

func newDraft(rng *rand.Rand, w *planWorld) *draft {
	d := &draft{rng: rng, world: w, style: style{rng: rng}}
	d.use(w.tool(rng, open))
	return d
}

// use makes the draft a valid plan to call a tool.
func (d *draft) use(t *planTool) {
	d.tool, d.args, d.hole = t, validArgs(d.rng, t.params), literal("")
	d.plan = object("type", text("call_tool"), "server", text(t.server), "tool", text(t.name), "args", d.hole)
}

// answer makes the draft a valid final_answer.
func (d *draft) answer() {
	d.tool, d.args = nil, nil
	d.plan = object("type", text("final_answer"), "needs_more_info", literal("true"), "answer", text("Which one? "+randomText(d.rng, 10)))
}

// write returns the planner's bytes, and in them the bytes of args.
func (d *draft) write() (plan, args string) {
	if d.args != nil {
		args = d.args.json(d.style)
		*d.hole = *literal(args)
	}
	if d.raw != "" {
		return d.raw, args
	}
	st := d.style
	st.numbers = false // args are written already
	return st.gap() + d.plan.json(st) + st.gap(), args
}

// text is the plan in its style: what a mutation of the text starts from.
func (d *draft) text() string { s, _ := d.write(); return s }

func (d *draft) set(key string, v *value) { d.plan.items[d.plan.index(key)] = v }
func (d *draft) get(key string) *value    { return d.plan.items[d.plan.index(key)] }

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
	case len(m.want) > 0:
		return answer{}
	case d.tool == nil:
		if p.Type != claim.FinalAnswer || t != nil || p.Answer != d.get("answer").text {
			return answer{wrong: "another answer"}
		}
	case p.Type != claim.CallTool || t == nil || p.Server != d.tool.server || t.Server != d.tool.server ||
		p.Tool != d.tool.name || t.Name != d.tool.name || string(p.Args) != args:
		return answer{wrong: "another call"}
	}
	return answer{}
}

// cut returns a proper, not empty beginning of s.
func (d *draft) cut(s string) string { return s[:1+d.rng.IntN(len(s)-1)] }

// within puts extra into an object's text, before its last brace.
func within(s, extra string) string {
	i := strings.LastIndexByte(s, '}')
	return s[:i] + extra + s[i:]
}

// otherCase changes the case of one letter of s, which has one.
func otherCase(rng *rand.Rand, s string) string {
	b := []byte(s)
	for {
		i := rng.IntN(len(b))
		if c := b[i] &^ 0x20; c >= 'A' && c <= 'Z' {
			b[i] ^= 0x20
			return string(b)
		}
	}
}

// lookAlike puts a Cyrillic letter for the first Latin one that has one.
var lookAlike = strings.NewReplacer("a", "а", "e", "е", "o", "о", "i", "і", "u", "ս")

// rename gives the draft a server or tool name nobody has.
func (d *draft) rename(f func(string) string) {
	key := pick(d.rng, "server", "tool")
	for n := 0; ; n++ {
		d.set(key, text(f(d.get(key).text)))
		if !d.world.has(d.get("server").text, d.get("tool").text) {
			return
		}
	}
}

// withParam makes the draft a call of a tool that has a param f accepts, with a
// value for it, and returns the param and its place in args.
func (d *draft) withParam(f func(*param) bool) (*param, int) {
	for {
		t := d.world.tool(d.rng, open)
		d.use(t)
		p := pick(d.rng, t.params...)
		if i := d.args.index(p.name); i >= 0 && f(p) {
			return p, i
		}
	}
}

func anyParam(*param) bool { return true }

var syntax = []writ.Reason{writ.PlanSyntax}

// The valid ones come up twice, so that a third of all must be accepted.
var planMutations = slices.Concat(validPlans, brokenTexts, brokenPlans, brokenCalls, validPlans)

var validPlans = []planMutation{
	{name: "valid_as_it_is", do: func(d *draft) {}},
	{name: "valid_white_space", do: func(d *draft) { d.style.space = true }},
	{name: "valid_key_order", do: func(d *draft) { d.style.shuffle = true }},
	{name: "valid_escapes", do: func(d *draft) { d.style.escape = true }},
	{name: "valid_equal_numbers", do: func(d *draft) {
		d.withParam(func(p *param) bool { return p.kind == "integer" })
		d.style.numbers = true
	}},
	{name: "valid_every_spelling", do: func(d *draft) {
		d.style = style{rng: d.rng, space: true, escape: true, shuffle: true, numbers: true}
	}},
	{name: "valid_longest_text", do: func(d *draft) {
		p, i := d.withParam(func(p *param) bool { return p.kind == "string" })
		d.args.items[i] = text(randomText(d.rng, p.max))
	}},
	{name: "valid_shortest_text", do: func(d *draft) {
		p, i := d.withParam(func(p *param) bool { return p.kind == "string" })
		d.args.items[i] = text(randomText(d.rng, p.min))
	}},
	{name: "valid_bounds", do: func(d *draft) {
		p, i := d.withParam(func(p *param) bool { return p.kind == "integer" || p.kind == "number" })
		d.args.items[i] = number(pick(d.rng, p.min, p.max))
	}},
	{name: "valid_without_options", do: func(d *draft) {
		for _, p := range d.tool.params {
			if i := d.args.index(p.name); i >= 0 && !p.required {
				d.args.remove(i)
			}
		}
	}},
	{name: "valid_with_options", do: func(d *draft) {
		for _, p := range d.tool.params {
			if d.args.index(p.name) < 0 {
				d.args.add(p.name, p.valid(d.rng))
			}
		}
	}},
	{name: "valid_plan_as_text", do: func(d *draft) { // a plan inside a string is a string
		_, i := d.withParam(func(p *param) bool { return p.kind == "string" })
		d.args.items[i] = text(pick(d.rng, "```\n{}\n```", `{"type":"x"}`, `","tool":"x`, "</s>{\"a\":1}"))
	}},
	{name: "valid_final_answer", do: func(d *draft) { d.answer() }},
	{name: "valid_final_answer_every_spelling", do: func(d *draft) {
		d.answer()
		d.style = style{rng: d.rng, space: true, escape: true, shuffle: true}
	}},
}

// brokenTexts are not one JSON object (INV-1).
var brokenTexts = []planMutation{
	parse("fence", syntax, func(d *draft) {
		d.raw = pick(d.rng, "```json\n", "```\n", "~~~\n", "```JSON ") + d.text() + pick(d.rng, "\n```", "```", "\n~~~")
	}),
	parse("text_before", syntax, func(d *draft) {
		d.raw = pick(d.rng, "Sure! ", "Plan:\n", "<think>hm</think>", "json\n", "// ", "; ") + d.text()
	}),
	parse("text_after", syntax, func(d *draft) {
		d.raw = d.text() + pick(d.rng, " Done.", "\n\nI chose it because", "</s>", ";", "\n#", ",")
	}),
	parse("byte_order_mark", syntax, func(d *draft) { d.raw = "\ufeff" + d.text() }),
	parse("other_white_space", syntax, func(d *draft) {
		odd := pick(d.rng, "\u00a0", "\u2003", "\u200b", "\v", "\f", "\x00", "\u2028")
		d.raw = pick(d.rng, odd+d.text(), d.text()+odd, strings.Replace(d.text(), ":", ":"+odd, 1))
	}),
	parse("second_object", syntax, func(d *draft) { d.raw = d.text() + pick(d.rng, "", "\n", ",") + d.text() }),
	parse("truncated", syntax, func(d *draft) { d.raw = d.cut(d.text()) }),
	parse("beginning_lost", syntax, func(d *draft) { d.raw = d.text()[1:] }),
	parse("trailing_comma", syntax, func(d *draft) { d.raw = within(d.text(), ",") }),
	parse("comment", syntax, func(d *draft) { d.raw = within(d.text(), pick(d.rng, "/* ok */", "// ok\n", "# ok\n")) }),
	parse("single_quotes", syntax, func(d *draft) { d.raw = strings.Replace(d.text(), `"type"`, `'type'`, 1) }),
	parse("bare_key", syntax, func(d *draft) { d.raw = strings.Replace(d.text(), `"type"`, `type`, 1) }),
	parse("duplicate_key", syntax, func(d *draft) {
		d.raw = within(d.text(), pick(d.rng, `,"tool":"x"`, `,"args":{}`, `,"type":"call_tool"`, `,"server":"x"`))
	}),
	parse("duplicate_key_escaped", syntax, func(d *draft) {
		d.raw = within(d.text(), pick(d.rng, `,"to\u006fl":"x"`, `,"\u0061rgs":{}`, `,"typ\u0065":"call_tool"`))
	}),
	parse("duplicate_argument", syntax, func(d *draft) {
		i := d.rng.IntN(len(d.args.items))
		d.args.add(d.args.names[i], text("x"))
	}),
	parse("bad_utf8", syntax, func(d *draft) {
		d.raw = strings.Replace(d.text(), `call_tool`, "call_tool"+pick(d.rng, "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc3"), 1)
	}),
	parse("lone_surrogate", syntax, func(d *draft) {
		d.raw = within(d.text(), pick(d.rng, `,"x":"\ud800"`, `,"x":"\udc00\ud800"`, `,"\ud83d":1`))
	}),
	parse("control_character", syntax, func(d *draft) {
		d.raw = strings.Replace(d.text(), `call_tool`, "call_tool"+string(rune(d.rng.IntN(0x20))), 1)
	}),
	parse("not_a_number", syntax, func(d *draft) {
		d.args.items[d.rng.IntN(len(d.args.items))] = literal(pick(d.rng, "NaN", "Infinity", "-Infinity", "01", "+1", "0x10", ".5", "1.", "1e", "True", "None", "undefined", "1_000"))
	}),
	parse("number_out_of_bounds", []writ.Reason{writ.PlanNumber}, func(d *draft) {
		d.args.items[d.rng.IntN(len(d.args.items))] = literal(pick(d.rng, "1e999", "1E401", "-1e-999", "1"+strings.Repeat("0", 64), "0."+strings.Repeat("1", 70)))
	}),
	parse("too_deep", []writ.Reason{writ.PlanTooDeep}, func(d *draft) {
		n := 64 + d.rng.IntN(200)
		d.args.items[0] = literal(strings.Repeat("[", n) + strings.Repeat("]", n))
	}),
	parse("no_object", []writ.Reason{writ.PlanNotObject}, func(d *draft) {
		d.raw = pick(d.rng, "["+d.text()+"]", text(d.text()).json(style{}), "null", "true", "7", `""`, "[]")
	}),
	parse("nothing", syntax, func(d *draft) { d.raw = pick(d.rng, " ", "\n", "\t\r\n") }),
}

// parse is a mutation the first gate of a plan must stop.
func parse(name string, want []writ.Reason, do func(*draft)) planMutation {
	return planMutation{name, claim.StagePlanParse, want, do}
}

// check is a mutation the second gate of a plan must stop.
func check(name string, want []writ.Reason, do func(*draft)) planMutation {
	return planMutation{name, claim.StagePlanGate, want, do}
}

func one(r ...writ.Reason) []writ.Reason { return r }

// brokenPlans are JSON objects and no plans (INV-1).
var brokenPlans = []planMutation{
	parse("type_of_other_case", one(writ.PlanType), func(d *draft) { d.set("type", text(otherCase(d.rng, "call_tool"))) }),
	parse("unknown_type", one(writ.PlanType), func(d *draft) {
		d.set("type", pick(d.rng, text("tool_call"), text("call_tool "), text(""), text("final"), literal("null"), array(text("call_tool")), number(1)))
	}),
	parse("type_dropped", one(writ.PlanType), func(d *draft) { d.plan.remove(d.plan.index("type")) }),
	parse("key_of_other_case", one(writ.PlanUnknownKey), func(d *draft) {
		i := 1 + d.rng.IntN(3)
		d.plan.names[i] = otherCase(d.rng, d.plan.names[i])
	}),
	parse("key_look_alike", one(writ.PlanUnknownKey), func(d *draft) {
		i := 1 + d.rng.IntN(3)
		d.plan.names[i] = lookAlike.Replace(d.plan.names[i])
	}),
	parse("key_dropped", one(writ.PlanMissingKey), func(d *draft) { d.plan.remove(1 + d.rng.IntN(3)) }),
	parse("extra_key", one(writ.PlanUnknownKey), func(d *draft) {
		d.plan.add(pick(d.rng, "reason", "thought", "id", "plan", "__proto__", "needs_more_info", "answer", "", "arguments"), pick(d.rng, text("x"), literal("null"), object()))
	}),
	parse("name_of_wrong_type", one(writ.PlanValue), func(d *draft) {
		d.set(pick(d.rng, "server", "tool"), pick(d.rng, literal("null"), number(1), array(text("x")), object(), literal("true"), text(""), text(" \t"), text("\u200b")))
	}),
	parse("args_of_wrong_type", one(writ.PlanValue), func(d *draft) {
		d.set("args", pick(d.rng, literal("null"), text(d.args.json(style{})), array(), array(d.args), number(0), literal("false")))
	}),
	parse("name_too_long", one(writ.PlanTooLarge), func(d *draft) { d.set(pick(d.rng, "server", "tool"), text(strings.Repeat("x", 257+d.rng.IntN(100)))) }),
	parse("final_answer_that_needs_nothing", one(writ.PlanFinal), func(d *draft) {
		d.answer()
		d.set("needs_more_info", pick(d.rng, literal("false"), text("true"), number(1), literal("null"), array(literal("true"))))
	}),
	parse("final_answer_without_flag", one(writ.PlanMissingKey), func(d *draft) { d.answer(); d.plan.remove(1) }),
	parse("final_answer_empty", one(writ.PlanValue), func(d *draft) {
		d.answer()
		d.set("answer", pick(d.rng, text(""), text(" \n"), literal("null"), number(3), array(), text("\u200b\u2060")))
	}),
	parse("final_answer_with_call", one(writ.PlanUnknownKey), func(d *draft) {
		call := d.plan
		d.answer()
		i := 1 + d.rng.IntN(2)
		d.plan.add(call.names[i], call.items[i])
	}),
}

// brokenCalls are plans that may not run (INV-2, INV-3).
var brokenCalls = []planMutation{
	check("blocked_by_allowlist", one(writ.NameForbidden), func(d *draft) { d.use(d.world.tool(d.rng, notAllowed)) }),
	check("allowed_and_not_listed", one(writ.NameUnknown), func(d *draft) { d.use(d.world.tool(d.rng, notListed)) }),
	check("definition_changed", one(writ.NameChanged), func(d *draft) { d.use(d.world.tool(d.rng, repinned)) }),
	check("unknown_name", one(writ.NameUnknown), func(d *draft) { d.rename(func(string) string { return word(d.rng, 8) }) }),
	check("name_of_other_case", one(writ.NameUnknown), func(d *draft) { d.rename(func(s string) string { return otherCase(d.rng, s) }) }),
	check("name_with_more", one(writ.NameUnknown), func(d *draft) {
		d.rename(func(s string) string {
			return pick(d.rng, s+" ", " "+s, s+"\u200b", s+"\x00", "../"+s, s+"_v2", s+";ls", s+"\u202e")
		})
	}),
	check("name_look_alike", one(writ.NameUnknown), func(d *draft) { d.rename(func(s string) string { return lookAlike.Replace(s) }) }),
	check("tool_of_other_server", one(writ.NameUnknown), func(d *draft) {
		for d.world.has(d.get("server").text, d.get("tool").text) {
			d.set("server", text(pick(d.rng, d.world.tools...).server))
		}
	}),
	check("server_and_tool_joined", one(writ.NameUnknown), func(d *draft) {
		d.set("tool", text(d.tool.server+pick(d.rng, "__", "/", ".", ":")+d.tool.name))
	}),
	check("argument_dropped", one(writ.SchemaMissingField), func(d *draft) {
		_, i := d.withParam(func(p *param) bool { return p.required })
		d.args.remove(i)
	}),
	check("no_arguments", one(writ.SchemaMissingField), func(d *draft) { d.args = object() }),
	check("extra_argument", one(writ.SchemaUnknownField), func(d *draft) {
		d.args.add(pick(d.rng, "force", "bcc", "__proto__", "constructor", "$ref", "x-"+word(d.rng, 4), "\u00a0"), pick(d.rng, literal("true"), text("eve"), literal("null"), object()))
	}),
	check("argument_of_other_case", one(writ.SchemaMissingField, writ.SchemaUnknownField), func(d *draft) {
		_, i := d.withParam(anyParam)
		d.args.names[i] = otherCase(d.rng, d.args.names[i])
	}),
	check("extra_inner_argument", one(writ.SchemaUnknownField), func(d *draft) {
		_, i := d.withParam(func(p *param) bool { return p.kind == "object" })
		d.args.items[i].add(word(d.rng, 11), text("x"))
	}),
	check("argument_of_wrong_type", one(writ.SchemaInvalid), func(d *draft) {
		p, i := d.withParam(anyParam)
		d.args.items[i] = p.otherType(d.rng)
	}),
	check("argument_beyond_its_schema", one(writ.SchemaInvalid), func(d *draft) {
		p, i := d.withParam(anyParam)
		d.args.items[i] = p.beyond(d.rng)
	}),
	check("item_of_wrong_type", one(writ.SchemaInvalid), func(d *draft) {
		p, i := d.withParam(func(p *param) bool { return p.kind == "array" })
		for len(d.args.items[i].items) == 0 {
			d.args.items[i] = p.valid(d.rng)
		}
		d.args.items[i].items[0] = p.inner[0].otherType(d.rng)
	}),
}
