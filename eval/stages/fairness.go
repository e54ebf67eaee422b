package stages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/memory"
)

// Contract is what must be the same for every system of a comparison.
type Contract struct {
	System string `json:"system"`
	// Model, Prompts and Tokens are of a model; none is called.
	Model   string `json:"model_snapshot"`
	Prompts string `json:"prompt_template_family"`
	// Tools are those that are at hand beside the memory's own.
	Tools []string `json:"tool_availability"`
	// Steps is the budget of a run without a model: how many steps there are at
	// most.
	Steps   int      `json:"step_budget"`
	Timeout int      `json:"wall_clock_timeout_seconds"`
	Seeds   []uint64 `json:"seed_set"`
	// Bundle is the SHA-256 of every step the system was given, in its order.
	Bundle string `json:"bundle"`
}

// Fairness is whether all systems were measured on the same.
type Fairness struct {
	Passed     bool       `json:"passed"`
	Violations []string   `json:"violations"`
	Contracts  []Contract `json:"contracts"`
}

// noModel is what stands where a model would: a fact, no placeholder.
const noModel = "none"

// placeholders are what a template leaves and nobody filled in.
var placeholders = []string{"", "locked_at_run", "todo", "tbd", "default", "unknown"}

// Fair holds every contract to the first.
func Fair(cs []Contract) Fairness {
	f := Fairness{Violations: []string{}, Contracts: cs}
	bad := func(format string, args ...any) { f.Violations = append(f.Violations, fmt.Sprintf(format, args...)) }
	if len(cs) == 0 {
		bad("there is no system to compare")
		f.Contracts = []Contract{}
	}
	for _, c := range cs {
		for field, v := range map[string]string{"model_snapshot": c.Model, "prompt_template_family": c.Prompts, "bundle": c.Bundle} {
			if slices.Contains(placeholders, strings.ToLower(strings.TrimSpace(v))) {
				bad("%s: %s is a placeholder", c.System, field)
			}
		}
		if c.Steps <= 0 {
			bad("%s: step_budget is not above 0", c.System)
		}
		if c.Timeout <= 0 {
			bad("%s: wall_clock_timeout_seconds is not above 0", c.System)
		}
		if seeds := slices.Compact(slices.Sorted(slices.Values(c.Seeds))); len(seeds) < fairnessSeeds {
			bad("%s: %d different seeds, not %d", c.System, len(seeds), fairnessSeeds)
		}
		first := cs[0]
		for field, same := range map[string]bool{
			"model_snapshot": c.Model == first.Model, "prompt_template_family": c.Prompts == first.Prompts, "step_budget": c.Steps == first.Steps,
			"wall_clock_timeout_seconds": c.Timeout == first.Timeout, "seed_set": slices.Equal(c.Seeds, first.Seeds), "bundle": c.Bundle == first.Bundle,
			"tool_availability": slices.Equal(besides(c.Tools), besides(first.Tools)),
		} {
			if !same {
				bad("%s: %s differs from %s", c.System, field, first.System)
			}
		}
	}
	slices.Sort(f.Violations)
	f.Passed = len(f.Violations) == 0
	return f
}

// besides is the set of tools without the memory's own: what a baseline cannot
// have.
func besides(tools []string) []string {
	own := map[string]bool{}
	for _, t := range memory.Tools() {
		own[t.Name] = true
	}
	out := []string{}
	for _, t := range tools {
		if !own[t] {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// WallClock is how long an evaluation may take, all systems together; it takes
// seconds. The package has no clock: whoever calls Run holds it to that.
const WallClock = 600 * time.Second

// fair draws up what each system was really given.
func (r *Result) fair(b *Bundle) Fairness {
	var own []string
	for _, t := range memory.Tools() {
		own = append(own, t.Name)
	}
	steps := 0
	for _, run := range b.runs {
		steps = max(steps, len(run.steps))
	}
	var cs []Contract
	for i := range r.Systems {
		s := &r.Systems[i]
		c := Contract{System: s.Name, Model: noModel, Prompts: noModel, Tools: []string{}, Steps: steps, Timeout: int(WallClock.Seconds())}
		if s.Policy != "" {
			c.Tools = own
		}
		h := sha256.New()
		seeds := map[uint64]bool{}
		for _, l := range r.Runs {
			if l.System == s.Name && l.Stage == 2 {
				fmt.Fprintln(h, l.Run, l.bundle)
				if l.Seed != 0 {
					seeds[l.Seed] = true
				}
			}
		}
		if r.Stage == 2 && s.profile == "" || r.Stage == 1 {
			continue // it was not run
		}
		c.Seeds = slices.Sorted(maps.Keys(seeds))
		c.Bundle = "sha256:" + hex.EncodeToString(h.Sum(nil))
		cs = append(cs, c)
	}
	return Fair(cs)
}

func fairWords(f Fairness) string {
	if f.Passed {
		return fmt.Sprintf("%d systems, no violation", len(f.Contracts))
	}
	return fmt.Sprintf("%d violations: %s", len(f.Violations), f.Violations[0])
}
