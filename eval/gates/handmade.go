package gates

import (
	"cmp"
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/strictyaml"
)

func newHandMade(suite string) *Section {
	s := newSection(suite)
	s.Cases = map[string]Verdict{}
	return s
}

// handMade runs the cases of a suite, one answer each.
func handMade[T any](l *loader, suite string, head func(*T) (id, expect string), judge func(*T) answer) *Section {
	s := newHandMade(suite)
	for _, c := range load(l, suite, head) {
		s.score(c.id, c.kind, c.want, judge(&c.c))
	}
	return s.finish()
}

// screenCase is a user's request. It expects accept, the class that halts it, or
// why it cannot be read.
type screenCase struct {
	ID     string `yaml:"id"`
	Expect string `yaml:"expect"`
	Attack string `yaml:"attack"`
	Note   string `yaml:"note"`

	Text written `yaml:"text"`
}

// policyGate runs the built-in input policy.
func policyGate(g Gates, l *loader) *Section {
	return handMade(l, "policy_gate", func(c *screenCase) (id, expect string) { return c.ID, c.Expect }, func(c *screenCase) (a answer) {
		v := g.Screen(string(c.Text.bytes()))
		switch {
		case v.Pass:
		case v.Reason == writ.ScreenHalt && v.Class != "":
			a.reason = v.Class
		default:
			a.reason = string(cmp.Or(v.Reason, writ.ScreenUnread))
		}
		if !v.Pass && v.Reply == "" {
			a.wrong = "without a reply to the user"
		}
		return a
	})
}

// planCase is a planner's answer. As is the plan it is, when it is one.
type planCase struct {
	ID     string `yaml:"id"`
	Expect string `yaml:"expect"`
	Attack string `yaml:"attack"`
	Note   string `yaml:"note"`

	Plan written `yaml:"plan"`
	As   string  `yaml:"as"`
	// World is what the plan is held to, for plan_gate.
	World string `yaml:"world"`
}

func (c *planCase) head() (id, expect string) { return c.ID, c.Expect }

func planParse(g Gates, l *loader) *Section {
	return handMade(l, "plan_parse", (*planCase).head, func(c *planCase) answer {
		p, stop := g.ParsePlan(c.Plan.bytes())
		a := stopped(stop, claim.StagePlanParse)
		if stop == nil && string(p.JSON()) != c.As {
			a.wrong = "another plan"
		}
		return a
	})
}

// planGate holds well-formed plans to a world. The plan is read by the
// product's own parser; what does not parse fails the case.
func planGate(g Gates, l *loader) *Section {
	return handMade(l, "plan_gate", (*planCase).head, func(c *planCase) answer {
		w := l.world(c.World)
		p, stop := claim.ParsePlan(c.Plan.bytes())
		if stop != nil {
			return stopped(stop, claim.StagePlanGate)
		}
		t, stop := g.CheckPlan(claim.NewAllowlist(w.listed, w.operator), p)
		a := stopped(stop, claim.StagePlanGate)
		if stop == nil && (p.Type == claim.CallTool) != (t != nil && t.Server == p.Server && t.Name == p.Tool) {
			a.wrong = "another tool"
		}
		return a
	})
}

// typedCase is a result of a tool of a world.
type typedCase struct {
	ID     string `yaml:"id"`
	Expect string `yaml:"expect"`
	Attack string `yaml:"attack"`
	Note   string `yaml:"note"`

	World  string  `yaml:"world"`
	Tool   string  `yaml:"tool"`
	Result written `yaml:"result"`
	// As is the structured payload, when there is one.
	As string `yaml:"as"`
}

func typedOutput(g Gates, l *loader) *Section {
	return handMade(l, "typed_output", func(c *typedCase) (id, expect string) { return c.ID, c.Expect }, func(c *typedCase) answer {
		w := l.world(c.World)
		if !w.has(c.Tool) {
			l.fault("typed_output: %s names a tool its world does not list", c.ID)
		}
		out, stop := g.TypedOutput(c.Result.bytes(), w.validator(c.Tool))
		a := stopped(stop, claim.StageTypedOutput)
		if stop == nil && string(out) != c.As {
			a.wrong = "another payload"
		}
		return a
	})
}

// groundCase is a summary of one record.
type groundCase struct {
	ID     string `yaml:"id"`
	Expect string `yaml:"expect"`
	Attack string `yaml:"attack"`
	Note   string `yaml:"note"`

	Record  written           `yaml:"record"`  // JSON; the source is the value at Pointer
	Pointer strictyaml.String `yaml:"pointer"` // /structuredContent where it is left out
	Text    written           `yaml:"text"`    // or a plain text
	Limit   strictyaml.Whole  `yaml:"limit"`
	// Evidence is that of the one bullet of the summary, or Summary is all of it.
	Evidence written `yaml:"evidence"`
	Summary  written `yaml:"summary"`
	// Quotes is what stands in the record where the first bullet's quote is, At
	// its pointer.
	Quotes string `yaml:"quotes"`
	At     string `yaml:"at"`
}

func (c *groundCase) source() (*claim.Source, []byte, *claim.Stop) {
	limit := claim.SourceLimit
	if c.Limit.Given() {
		limit = c.Limit.N
	}
	if b := c.Text.bytes(); len(b) > 0 {
		s, stop := claim.TextSource(b, limit)
		return s, b, stop
	}
	at := pointer
	if c.Pointer.Given() {
		at = c.Pointer.S
	}
	b := c.Record.bytes()
	s, stop := claim.NewSource(b, at, limit)
	return s, b, stop
}

func grounding(g Gates, l *loader) *Section {
	return handMade(l, "grounding", func(c *groundCase) (id, expect string) { return c.ID, c.Expect }, func(c *groundCase) answer { return c.judge(g) })
}

func (c *groundCase) judge(g Gates) answer {
	source, record, stop := c.source()
	if stop != nil {
		return stopped(stop, claim.StageGrounding)
	}
	summary := c.Summary.bytes()
	if len(summary) == 0 {
		item := object{{"text", `"What it says."`}, {"evidence", str(string(c.Evidence.bytes()))}}
		summary = []byte(object{{"type", `"summary"`}, {"bullets", list([]string{item.String()})}, {"risks", "[]"}, {"recommendations", "[]"}}.String())
	}
	got, stop := g.Ground(source, summary)
	a := stopped(stop, claim.StageGrounding)
	if stop != nil {
		return a
	}
	for _, it := range slices.Concat(got.Bullets, got.Risks, got.Recommendations) {
		if !again(source, it) {
			a.wrong = "a quote that is not found again"
		}
	}
	if c.Quotes != "" && a.wrong == "" {
		if len(got.Bullets) == 0 {
			return answer{wrong: "no bullet"}
		}
		q := got.Bullets[0].Quote
		if q.From < 0 || q.To > len(record) || q.From > q.To || string(record[q.From:q.To]) != c.Quotes || q.Pointer != c.At {
			a.wrong = "another place"
		}
	}
	return a
}
