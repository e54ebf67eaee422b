package gates

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestCommittedResult makes the committed result again: the same bytes, and
// nothing in it failed.
func TestCommittedResult(t *testing.T) {
	const file, again = "../results/offline_gate_eval.json", "go run ./cmd/writ-eval gates, or make eval"
	r, err := Run(Options{Gates: Product(), Seed: DefaultSeed, Fuzz: DefaultFuzz})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Sections() {
		for _, f := range s.FailedCases {
			t.Errorf("%s (%s): want %s, got %s", f.ID, f.Kind, f.Want, f.Got)
		}
	}
	got, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; make it by %s", err, again)
	}
	if bytes.Equal(got, want) {
		return
	}
	t.Errorf("%s is not what the cases and gates give now; look at the difference and make it again by %s", file, again)
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i, shown := 0, 0; i < max(len(g), len(w)) && shown < 20; i++ {
		a, b := "", ""
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			t.Logf("line %d\n-%s\n+%s", i+1, a, b)
			shown++
		}
	}
}

// TestNamedCases: what the documents point at is there, in the numbers they say.
func TestNamedCases(t *testing.T) {
	r, err := Run(Options{Gates: Product(), Seed: 5, Fuzz: 400})
	if err != nil {
		t.Fatal(err)
	}
	if r.HandMade < 400 || r.Fuzzed != 800 || r.Total != r.HandMade+r.Fuzzed || r.Total != r.Passed+r.Failed {
		t.Errorf("%d made by hand, %d generated, %d in all", r.HandMade, r.Fuzzed, r.Total)
	}
	for _, id := range []string{"disallowed_tool_by_allowlist", "final_answer_needs_more_info_true"} {
		if !r.PlanGate.Cases[id].Passed {
			t.Errorf("plan_gate has no passed case %s", id)
		}
	}
	if k := r.PlanFuzz.Kinds["blocked_by_allowlist"]; k == nil || k.Total < 5 || k.Passed != k.Total || k.Expect != "block" {
		t.Errorf("plan_fuzz has no kind blocked_by_allowlist that passed: %+v", k)
	}
	for _, id := range []string{"seed_bob_passes", "seed_eve_fails", "seed_etc_passwd_fails", "echo_laundering"} {
		for _, profile := range []string{"@standard", "@strict"} {
			if !r.ProvenanceGate.Cases[id+profile].Passed {
				t.Errorf("provenance_gate has no passed case %s", id+profile)
			}
		}
	}
	for _, s := range r.Sections() {
		if s.MustAccept < 6 || s.MustBlock < 20 {
			t.Errorf("%s: %d to accept and %d to block are too few to tell a gate from a wall or a hole", s.Suite, s.MustAccept, s.MustBlock)
		}
		for kind, k := range s.Kinds {
			if s.Seed != nil && k.Expect == "mixed" {
				t.Errorf("%s: the mutants of kind %s are not all to come to the same", s.Suite, kind)
			}
		}
	}
}

// TestOtherSeeds: no seed was chosen because it passes. The same one gives the
// same bytes, another one other inputs.
func TestOtherSeeds(t *testing.T) {
	inputs := map[string]bool{}
	for _, seed := range []uint64{2, 3, 1 << 63} {
		var before []byte
		for range 2 {
			r, err := Run(Options{Gates: Product(), Seed: seed, Fuzz: 300})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []*Section{r.PlanFuzz, r.GroundingFuzz} {
				inputs[s.Inputs] = true
				for _, f := range s.FailedCases {
					t.Errorf("seed %d: %+v", seed, f)
				}
			}
			b, err := r.JSON()
			if err != nil || before != nil && !bytes.Equal(b, before) {
				t.Errorf("seed %d: two runs differ (%v)", seed, err)
			}
			before = b
		}
	}
	if len(inputs) != 6 {
		t.Errorf("three seeds gave %d different inputs, want 6", len(inputs))
	}
}

// TestOffline: the evaluation is not linked with anything that could reach a
// network or start a process.
func TestOffline(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 20 {
		t.Fatalf("go list names %d packages", len(deps))
	}
	for _, d := range []string{"net", "net/http", "crypto/tls", "os/exec", "plugin"} {
		if slices.Contains(deps, d) {
			t.Errorf("eval/gates depends on %s", d)
		}
	}
}

// TestCaseFiles: a case that is written wrongly stops the evaluation with its
// place; none is skipped.
func TestCaseFiles(t *testing.T) {
	const good = "cases:\n  - { id: a, expect: plan.syntax, plan: x }\n"
	for name, c := range map[string]struct{ file, text, fault string }{
		"id twice in one file":     {"a.yaml", good + "  - { id: a, expect: plan.syntax, plan: y }\n", "the id a stands in"},
		"id twice in two sections": {"../plan_gate/a.yaml", good, "the id a stands in"},
		"no id":                    {"a.yaml", "cases:\n  - { expect: plan.syntax, plan: x }\n", "has no id"},
		"expects nothing":          {"a.yaml", "cases:\n  - { id: b, plan: x }\n", "does not say what to expect"},
		"unknown key":              {"a.yaml", "cases:\n  - { id: b, expects: accept, plan: x }\n", "unknown key"},
		"not YAML":                 {"a.yaml", "cases: [", "YAML"},
		"empty":                    {"a.yaml", "", "the key cases"},
		"another kind of file":     {"a.json", "{}", "ends in .yaml"},
		"bad hex":                  {"a.yaml", "cases:\n  - { id: b, expect: plan.syntax, plan: { hex: zz } }\n", "hexadecimal"},
		"no world":                 {"../plan_gate/b.yaml", "cases:\n  - { id: b, expect: accept, world: mars, plan: '{}' }\n", "mars.yaml: not there"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"cases/worlds/w.yaml": {Data: []byte("tools: []\n")}}
			for _, s := range []string{"policy_gate", "plan_parse", "plan_gate", "typed_output", "grounding", "provenance_gate"} {
				files["cases/"+s+"/none.yaml"] = &fstest.MapFile{Data: []byte("cases: []\n")}
			}
			files["cases/plan_parse/good.yaml"] = &fstest.MapFile{Data: []byte(good)}
			run := func() error {
				_, err := Run(Options{Gates: Product(), Cases: files})
				return err
			}
			if err := run(); err != nil {
				t.Fatalf("without the fault: %v", err)
			}
			at := "cases/plan_parse/" + c.file
			if rest, up := strings.CutPrefix(c.file, "../"); up {
				at = "cases/" + rest
			}
			files[at] = &fstest.MapFile{Data: []byte(c.text)}
			if err := run(); err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("got %v, want %q", err, c.fault)
			}
		})
	}
}
