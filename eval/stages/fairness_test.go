package stages

import (
	"strings"
	"testing"
)

func TestFair(t *testing.T) {
	contract := func(name string, put ...func(*Contract)) Contract {
		c := Contract{System: name, Model: noModel, Prompts: noModel, Tools: []string{"search", "mail"}, Steps: 100, Timeout: 60, Seeds: Seeds(), Bundle: "sha256:1"}
		for _, p := range put {
			p(&c)
		}
		return c
	}
	for _, c := range []struct {
		name  string
		cs    []Contract
		fault string // "" passes
	}{
		{"the same", []Contract{contract("a"), contract("b")}, ""},
		{"nobody", nil, "no system"},
		{"tools in another order, and the memory's own", []Contract{contract("a"), contract("b", func(c *Contract) { c.Tools = []string{"mail", "record_observation", "search", "mail"} })}, ""},
		{"one tool more", []Contract{contract("a"), contract("b", func(c *Contract) { c.Tools = append(c.Tools, "web") })}, "b: tool_availability differs from a"},
		{"another model", []Contract{contract("a"), contract("b", func(c *Contract) { c.Model = "x" })}, "b: model_snapshot differs from a"},
		{"another prompt", []Contract{contract("a"), contract("b", func(c *Contract) { c.Prompts = "x" })}, "b: prompt_template_family differs from a"},
		{"a placeholder", []Contract{contract("a", func(c *Contract) { c.Model = " LOCKED_AT_RUN" })}, "a: model_snapshot is a placeholder"},
		{"no bundle", []Contract{contract("a", func(c *Contract) { c.Bundle = "" })}, "a: bundle is a placeholder"},
		{"another bundle", []Contract{contract("a"), contract("b", func(c *Contract) { c.Bundle = "sha256:2" })}, "b: bundle differs from a"},
		{"no budget", []Contract{contract("a", func(c *Contract) { c.Steps = 0 })}, "a: step_budget is not above 0"},
		{"another budget", []Contract{contract("a"), contract("b", func(c *Contract) { c.Steps = 101 })}, "b: step_budget differs from a"},
		{"no time", []Contract{contract("a", func(c *Contract) { c.Timeout = -1 })}, "a: wall_clock_timeout_seconds is not above 0"},
		{"four seeds", []Contract{contract("a", func(c *Contract) { c.Seeds = []uint64{1, 2, 3, 4, 4} })}, "a: 4 different seeds, not 5"},
		{"other seeds", []Contract{contract("a"), contract("b", func(c *Contract) { c.Seeds = []uint64{1, 2, 3, 4, 5} })}, "b: seed_set differs from a"},
	} {
		f := Fair(c.cs)
		if f.Passed != (c.fault == "") || c.fault != "" && !strings.Contains(strings.Join(f.Violations, "\n"), c.fault) {
			t.Errorf("%s: %v %v", c.name, f.Passed, f.Violations)
		}
	}
}
