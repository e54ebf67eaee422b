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
)

// param is a kind of argument: its schema, and values, as JSON, that satisfy it
// and that do not. What a mutant must be is known from here, without a validator.
type param struct {
	schema       string
	valid, wrong []string
}

var params = []param{
	{`{"type":"string","minLength":2,"maxLength":9}`, []string{`"ab"`, `"漢😀"`, `"{}\",\n[\u0000"`}, []string{`""`, `"ж"`, `"ten letters"`, "null", "7", `["ab"]`}},
	{`{"type":"string","pattern":"^[A-Z]{2}-[0-9]{4}$"}`, []string{`"AB-1234"`, `"ZZ-0000"`}, []string{`"ab-1234"`, `"AB-12345"`, `" AB-1234"`, `"AB-1234\n"`, `"ＡＢ-1234"`, "null", "1234"}},
	{`{"enum":["paid","open"]}`, []string{`"paid"`, `"open"`}, []string{`"Paid"`, `"paid "`, `""`, `"paidopen"`, "null", "0", `["paid"]`}},
	{`{"type":"integer","minimum":-5,"maximum":120}`, []string{"-5", "120", "0", "7.0", "1e2", "700E-2"}, []string{"121", "-6", "1.5", "1e30", "null", `"7"`, "true"}},
	{`{"type":"number","minimum":-5,"maximum":5}`, []string{"-5", "5.0", "4.999", "-0.0"}, []string{"6", "-5.0000000001", "1e30", "null", `"1"`, "[]"}},
	{`{"type":"boolean"}`, []string{"true", "false"}, []string{"0", `"true"`, "null", "1"}},
	{`{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2}`, []string{`["a"]`, `["","{}"]`}, []string{"[]", `["a","b","c"]`, "[7]", `["a",null]`, "null", `"a"`, "{}"}},
	{`{"type":"object","properties":{"in":{"type":"string"}},"required":["in"]}`, []string{`{"in":""}`, `{"in":"x"}`}, []string{`{"in":7}`, `{"in":null}`, "null", `"{}"`, "[]"}},
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

// argument is one of a tool; the first of a tool is required.
type argument struct {
	param
	name string
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
		properties := object{}
		for k := range 1 + rng.IntN(4) {
			a := argument{params[(i+k*rng.IntN(len(params)))%len(params)], word(rng, 7) + strconv.Itoa(k)}
			t.args, properties = append(t.args, a), append(properties, member{a.name, a.schema})
		}
		define := func(what string) []byte {
			return fmt.Appendf(nil, `{"name":%q,"description":%q,"inputSchema":{"type":"object","properties":%s,"required":[%q]}}`, t.name, what, properties, t.args[0].name)
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

// draft is a plan in the making, of which one mutation changes a part.
type draft struct {
	rng        *rand.Rand
	world      *planWorld
	tool       *planTool // nil for a final_answer
	plan, args object
	sent       string // the bytes of args, as they were written
}

// use makes the draft a valid call of a tool of that standing.
func (d *draft) use(standing int) {
	for d.tool = pick(d.rng, d.world.tools...); d.tool.standing != standing; {
		d.tool = pick(d.rng, d.world.tools...)
	}
	d.args = object{}
	for i, a := range d.tool.args {
		if i == 0 || d.rng.IntN(2) == 0 {
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

// plan is a mutation of the parts of a draft.
func plan(name string, want writ.Reason, do func(*draft)) mutation[*draft] {
	return mutation[*draft]{name, want, func(d *draft) string {
		do(d)
		plan := d.plan.String()
		if d.sent = d.args.String(); d.rng.IntN(3) == 0 {
			d.sent, plan = strings.TrimSpace(respell(d.rng, d.sent)), respell(d.rng, plan)
		}
		return strings.Replace(plan, "@", d.sent, 1)
	}}
}

// text is a mutation of a valid plan as it was written, that is no one JSON
// object (INV-1).
func text(name string, of func(rng *rand.Rand, s string) string) mutation[*draft] {
	valid := plan(name, writ.PlanSyntax, func(*draft) {})
	whole := valid.text
	valid.text = func(d *draft) string { return of(d.rng, whole(d)) }
	return valid
}

// fuzzPlans runs n generated plans through both gates of a plan.
func fuzzPlans(g Gates, seed uint64, n int) *Section {
	const plansPerWorld = 100
	var w *planWorld
	return generate("plan_fuzz", seed, planStream, n, planMutations, func(rng *rand.Rand, i int) *draft {
		if i%plansPerWorld == 0 {
			w = newPlanWorld(rng)
		}
		d := &draft{rng: rng, world: w}
		d.use(open)
		return d
	}, func(d *draft, m *mutation[*draft], raw string) (string, answer) { return "", d.judge(g, m.want, raw) })
}

func (d *draft) judge(g Gates, want writ.Reason, raw string) answer {
	stage := claim.StagePlanGate
	if strings.HasPrefix(string(want), "plan.") {
		stage = claim.StagePlanParse
	}
	p, stop := g.ParsePlan([]byte(raw))
	if stop != nil {
		return stopped(stop, stage)
	}
	t, stop := g.CheckPlan(d.world.allowlist, p)
	if stop != nil {
		return stopped(stop, stage)
	}
	switch {
	case want != "":
		return answer{}
	case d.tool == nil:
		if p.Type != claim.FinalAnswer || t != nil || str(p.Answer) != d.plan[2].value {
			return answer{wrong: "another answer"}
		}
	case p.Type != claim.CallTool || t == nil || p.Server != d.tool.server || t.Server != d.tool.server ||
		p.Tool != d.tool.name || t.Name != d.tool.name || string(p.Args) != d.sent:
		return answer{wrong: "another call"}
	}
	return answer{}
}

// Of valid plans there are so many that a third of all must be accepted.
var planMutations = slices.Concat(slices.Repeat([]mutation[*draft]{
	plan("valid_call", "", func(*draft) {}),
	plan("valid_key_order", "", func(d *draft) {
		d.rng.Shuffle(4, func(i, j int) { d.plan[i], d.plan[j] = d.plan[j], d.plan[i] })
	}),
	plan("valid_final_answer", "", (*draft).answer),
}, 3), []mutation[*draft]{
	text("text_around", func(rng *rand.Rand, s string) string {
		return pick(rng, "```json\n"+s+"\n```", "Sure! "+s, "<think>hm</think>"+s, "\ufeff"+s, s+" Done.", s+"\x00", s+"\n"+s)
	}),
	text("truncated", func(rng *rand.Rand, s string) string { s = strings.TrimSpace(s); return s[:rng.IntN(len(s))] }),
	text("duplicate_key", func(rng *rand.Rand, s string) string {
		return strings.TrimRight(s, "} \t\r\n") + "}" + pick(rng, `,"tool":"x"`, `,"args":{}`, `,"to\u006fl":"x"`, `,"\u0061rgs":{}`) + "}"
	}),
	plan("unknown_type", writ.PlanType, func(d *draft) {
		d.plan[0].value = pick(d.rng, str(misspelt(d.rng, "call_tool")), `"tool_call"`, `""`, "null", `["call_tool"]`)
	}),
	plan("key_dropped", writ.PlanMissingKey, func(d *draft) { d.plan = d.plan.without(1 + d.rng.IntN(3)) }),
	plan("key_misspelt", writ.PlanUnknownKey, func(d *draft) { m := &d.plan[1+d.rng.IntN(3)]; m.name = misspelt(d.rng, m.name) }),
	plan("value_of_wrong_type", writ.PlanValue, func(d *draft) { d.plan[1+d.rng.IntN(3)].value = pick(d.rng, "null", "1", `[]`, `""`) }),
	plan("final_answer_that_needs_nothing", writ.PlanFinal, func(d *draft) { d.answer(); d.plan[1].value = pick(d.rng, "false", `"true"`, "1", "null") }),
	plan("final_answer_with_call", writ.PlanUnknownKey, func(d *draft) { call := d.plan[1]; d.answer(); d.plan = append(d.plan, call) }),

	// What is a plan and may not run (INV-2, INV-3).
	plan("blocked_by_allowlist", writ.NameForbidden, func(d *draft) { d.use(notAllowed) }),
	plan("allowed_and_not_listed", writ.NameUnknown, func(d *draft) { d.use(notListed) }),
	plan("definition_changed", writ.NameChanged, func(d *draft) { d.use(repinned) }),
	plan("unknown_name", writ.NameUnknown, func(d *draft) {
		i := 1 + d.rng.IntN(2)
		name := []string{"", d.tool.server, d.tool.name}[i]
		d.plan[i].value = str(pick(d.rng, word(d.rng, 8), misspelt(d.rng, name), misspelt(d.rng, name), d.tool.server+"__"+d.tool.name))
	}),
	plan("tool_of_other_server", writ.NameUnknown, func(d *draft) {
		i := slices.IndexFunc(d.world.tools, func(t *planTool) bool { return t.server != d.tool.server })
		d.plan[1].value = str(d.world.tools[i].server)
	}),
	plan("argument_dropped", writ.SchemaMissingField, func(d *draft) { d.args = d.args.without(0) }), // the first is required
	plan("extra_argument", writ.SchemaUnknownField, func(d *draft) {
		name := pick(d.rng, "force", "bcc", "__proto__", "$ref", "\u00a0", misspelt(d.rng, d.args[0].name))
		d.args = append(d.args, member{name, pick(d.rng, "true", `"eve"`, "null", "{}")})
	}),
	plan("argument_of_wrong_value", writ.SchemaInvalid, func(d *draft) {
		m := &d.args[d.rng.IntN(len(d.args))]
		i := slices.IndexFunc(d.tool.args, func(a argument) bool { return a.name == m.name })
		m.value = pick(d.rng, d.tool.args[i].wrong...)
	}),
})
