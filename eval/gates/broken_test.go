package gates

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/ask/screen"
)

// TestBrokenGates puts gates in place of the product's that are broken in ways
// gates get broken, the two plainest among them: one that blocks everything and
// one that lets everything pass. The evaluation must find each out.
func TestBrokenGates(t *testing.T) {
	stop := func(stage claim.Stage, r writ.Reason) *claim.Stop {
		return claim.StopAt(stage, writ.Failure{Reason: r, Need: "something else"})
	}
	accepts := func(s *Section) int { return s.FalseAccepts }
	blocks := func(s *Section) int { return s.FalseBlocks }
	reasons := func(s *Section) int { return s.WrongReasons }
	results := func(s *Section) int { return s.WrongResults }
	product := Product()
	for _, c := range []struct {
		name   string
		put    func(g *Gates)
		suites string
		fault  func(*Section) int
	}{
		{"input policy that passes all", func(g *Gates) { g.Screen = func(string) screen.Verdict { return screen.Verdict{Pass: true} } }, "policy_gate", accepts},
		{"input policy that halts all", func(g *Gates) { g.Screen = (*screen.Screen)(nil).Check }, "policy_gate", blocks},
		{"input policy of plain words", func(g *Gates) {
			g.Screen = func(s string) screen.Verdict {
				for _, w := range []string{"kill", "bomb", "hack", "password", "phishing", "steal", "ransomware"} {
					if strings.Contains(strings.ToLower(s), w) {
						return screen.Verdict{Reason: writ.ScreenHalt, Class: "attacks", Reply: "no"}
					}
				}
				return screen.Verdict{Pass: true}
			}
		}, "policy_gate", blocks},

		{"parser that takes all for a plan", func(g *Gates) {
			g.ParsePlan = func([]byte) (claim.Plan, *claim.Stop) {
				return claim.Plan{Type: claim.FinalAnswer, Answer: "ok"}, nil
			}
		}, "plan_parse plan_fuzz", accepts},
		{"parser that takes nothing", func(g *Gates) {
			g.ParsePlan = func([]byte) (claim.Plan, *claim.Stop) {
				return claim.Plan{}, stop(claim.StagePlanParse, writ.PlanSyntax)
			}
		}, "plan_parse plan_fuzz", blocks},
		{"parser with one reason for all", func(g *Gates) {
			g.ParsePlan = func(b []byte) (claim.Plan, *claim.Stop) {
				p, s := claim.ParsePlan(b)
				if s != nil {
					s = stop(claim.StagePlanParse, writ.PlanValue)
				}
				return p, s
			}
		}, "plan_parse plan_fuzz", reasons},
		{"parser that takes off fences and prose", func(g *Gates) {
			g.ParsePlan = func(b []byte) (claim.Plan, *claim.Stop) {
				if i, j := bytes.IndexByte(b, '{'), bytes.LastIndexByte(b, '}'); i >= 0 && i < j {
					b = b[i : j+1]
				}
				return claim.ParsePlan(b)
			}
		}, "plan_parse plan_fuzz", accepts},
		{"parser that lets the last key win", func(g *Gates) { g.ParsePlan = lenient }, "plan_parse plan_fuzz", accepts},
		{"parser that rewrites arguments", func(g *Gates) {
			g.ParsePlan = func(b []byte) (claim.Plan, *claim.Stop) {
				p, s := claim.ParsePlan(b)
				if s == nil && p.Type == claim.CallTool {
					var v any
					if json.Unmarshal(p.Args, &v) == nil {
						p.Args, _ = json.Marshal(v)
					}
				}
				return p, s
			}
		}, "plan_parse plan_fuzz", results},

		{"allowlist that allows all", func(g *Gates) {
			g.CheckPlan = func(_ *claim.Allowlist, p claim.Plan) (*claim.Tool, *claim.Stop) {
				if p.Type == claim.FinalAnswer {
					return nil, nil
				}
				return &claim.Tool{Server: p.Server, Name: p.Tool}, nil
			}
		}, "plan_gate plan_fuzz", accepts},
		{"allowlist that allows nothing", func(g *Gates) {
			g.CheckPlan = func(*claim.Allowlist, claim.Plan) (*claim.Tool, *claim.Stop) {
				return nil, stop(claim.StagePlanGate, writ.NameForbidden)
			}
		}, "plan_gate plan_fuzz", blocks},
		{"allowlist without the operator", func(g *Gates) {
			g.CheckPlan = func(a *claim.Allowlist, p claim.Plan) (*claim.Tool, *claim.Stop) {
				t, s := a.Check(p)
				if s != nil && s.Rejection.Reason == writ.NameForbidden {
					return &claim.Tool{Server: p.Server, Name: p.Tool}, nil
				}
				return t, s
			}
		}, "plan_gate plan_fuzz", accepts},
		{"allowlist that lets schemas be open", func(g *Gates) {
			g.CheckPlan = func(a *claim.Allowlist, p claim.Plan) (*claim.Tool, *claim.Stop) {
				t, s := a.Check(p)
				if s != nil && s.Rejection.Reason == writ.SchemaUnknownField {
					return &claim.Tool{Server: p.Server, Name: p.Tool}, nil
				}
				return t, s
			}
		}, "plan_gate plan_fuzz", accepts},
		{"allowlist that returns another tool", func(g *Gates) {
			g.CheckPlan = func(a *claim.Allowlist, p claim.Plan) (*claim.Tool, *claim.Stop) {
				t, s := a.Check(p)
				if t != nil {
					t = &a.Tools()[0]
				}
				return t, s
			}
		}, "plan_gate plan_fuzz", results},

		{"typing that types all", func(g *Gates) {
			g.TypedOutput = func(b []byte, _ func([]byte) bool) ([]byte, *claim.Stop) { return b, nil }
		}, "typed_output", accepts},
		{"typing that types nothing", func(g *Gates) {
			g.TypedOutput = func([]byte, func([]byte) bool) ([]byte, *claim.Stop) {
				return nil, stop(claim.StageTypedOutput, writ.TypedSchema)
			}
		}, "typed_output", blocks},
		{"typing without the schema", func(g *Gates) {
			g.TypedOutput = func(b []byte, v func([]byte) bool) ([]byte, *claim.Stop) {
				if v != nil {
					v = func([]byte) bool { return true }
				}
				return claim.TypedOutput(b, v)
			}
		}, "typed_output", accepts},

		{"grounding of all", func(g *Gates) {
			g.Ground = func(_ *claim.Source, b []byte) (claim.Summary, *claim.Stop) { return claim.Summary{}, nil }
		}, "grounding grounding_fuzz", accepts},
		{"grounding of nothing", func(g *Gates) {
			g.Ground = func(*claim.Source, []byte) (claim.Summary, *claim.Stop) {
				return claim.Summary{}, stop(claim.StageGrounding, writ.GroundUnquoted)
			}
		}, "grounding grounding_fuzz", blocks},
		{"grounding by form alone", func(g *Gates) {
			g.Ground = func(_ *claim.Source, b []byte) (claim.Summary, *claim.Stop) { return claim.ParseSummary(b) }
		}, "grounding grounding_fuzz", accepts},
		{"grounding by any substring", func(g *Gates) { g.Ground = substring }, "grounding grounding_fuzz", accepts},
		{"grounding at another place", func(g *Gates) {
			g.Ground = func(src *claim.Source, b []byte) (claim.Summary, *claim.Stop) {
				s, stop := claim.Ground(src, b)
				for i := range s.Bullets {
					s.Bullets[i].Quote.From++
				}
				return s, stop
			}
		}, "grounding grounding_fuzz", results},

		{"decision in shadow mode", func(g *Gates) {
			g.Decide = func(in gate.Input) gate.Decision { in.Shadow = true; return gate.Decide(in) }
		}, "provenance_gate", accepts},
		{"decision that denies", func(g *Gates) { g.Decide = func(gate.Input) gate.Decision { return gate.Decision{} } }, "provenance_gate", blocks},
		{"decision without a session", func(g *Gates) {
			g.Decide = func(in gate.Input) gate.Decision { in.Session = nil; return gate.Decide(in) }
		}, "provenance_gate", blocks},
		{"decision that knows no own paths", func(g *Gates) {
			g.Decide = func(in gate.Input) gate.Decision { in.OwnPaths = nil; return gate.Decide(in) }
		}, "provenance_gate", accepts},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, fuzz := product, 0
			c.put(&g)
			if strings.Contains(c.suites, "_fuzz") {
				fuzz = 200
			}
			r, err := Run(Options{Gates: g, Seed: DefaultSeed, Fuzz: fuzz})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range r.Sections() {
				broken := strings.Contains(" "+c.suites+" ", " "+s.Suite+" ")
				if broken && (c.fault(s) == 0 || s.Failed == 0 || len(s.FailedCases) == 0 || s.Rates.Pass >= 1) {
					t.Errorf("%s does not find it out: %d failed, %d false accepts, %d false blocks, %d wrong reasons, %d wrong results",
						s.Suite, s.Failed, s.FalseAccepts, s.FalseBlocks, s.WrongReasons, s.WrongResults)
				}
				if !broken && s.Failed > 0 {
					t.Errorf("%s fails too: %+v", s.Suite, s.FailedCases[0])
				}
				if s.Failed != s.FalseAccepts+s.FalseBlocks+s.WrongReasons+s.WrongResults {
					t.Errorf("%s: the failed cases are not told apart", s.Suite)
				}
			}
		})
	}
}

// lenient reads a plan as encoding/json does: case is ignored, the last of two
// keys wins, what is unknown is left out.
func lenient(b []byte) (claim.Plan, *claim.Stop) {
	var v struct {
		Type, Server, Tool, Answer string
		Args                       json.RawMessage
	}
	if json.Unmarshal(b, &v) != nil {
		return claim.Plan{}, claim.StopAt(claim.StagePlanParse, writ.Failure{Reason: writ.PlanSyntax, Need: "JSON"})
	}
	return claim.Plan{Type: claim.PlanType(v.Type), Server: v.Server, Tool: v.Tool, Args: writ.RawJSON(v.Args), Answer: v.Answer}, nil
}

// substring grounds as one would at first: a quote is what the text contains.
func substring(src *claim.Source, b []byte) (claim.Summary, *claim.Stop) {
	s, stop := claim.ParseSummary(b)
	if stop != nil {
		return s, stop
	}
	for _, items := range [][]claim.Item{s.Bullets, s.Risks, s.Recommendations} {
		for i := range items {
			if !strings.Contains(src.Text(), items[i].Evidence) {
				return claim.Ground(src, b)
			}
			items[i].Quote, _ = src.Find(items[i].Evidence)
		}
	}
	return s, nil
}
