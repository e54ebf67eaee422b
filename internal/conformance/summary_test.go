package conformance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `Running requirements 2026-07-28 (4 scenarios) against http://127.0.0.1:1/

=== Running scenario: tools-list ===
✗ noise of a scenario: 1 passed, 0 failed

=== SUMMARY ===
✓ tools-list: 4 passed, 0 failed
✗ caching: 7 passed, 1 failed
✓ tasks-status-notifications: 0 passed, 0 failed
✗ tasks-lifecycle: 1 passed, 8 failed

Total: 12 passed, 9 failed

Not scored for 2026-07-28: 2 scenario(s) run, 1 failing. These do not affect conformance.
  ✗ tasks-lifecycle (extension)
  ✓ tasks-status-notifications (extension)
`

func TestParseSummary(t *testing.T) {
	got, err := ParseSummary(sample)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Result{
		"tools-list":                 {Passed: 4},
		"caching":                    {Passed: 7, Failed: 1},
		"tasks-status-notifications": {Unscored: "extension"},
		"tasks-lifecycle":            {Passed: 1, Failed: 8, Unscored: "extension"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if want["tasks-status-notifications"].OK() {
		t.Error("a scenario that checked nothing counts as passed")
	}

	for name, bad := range map[string]string{
		"empty":            "",
		"cut":              strings.Split(sample, "✗ caching")[0],
		"no announcement":  strings.Replace(sample, "Running requirements", "Running", 1),
		"unknown mark":     strings.Replace(sample, "✗ caching", "~ caching", 1),
		"twice":            strings.Replace(sample, "✗ caching", "✓ tools-list", 1),
		"unscored unknown": strings.Replace(sample, "✗ tasks-lifecycle (", "✗ other (", 1),
	} {
		if got, err := ParseSummary(bad); err == nil {
			t.Errorf("%s: accepted as %v", name, got)
		}
	}
}

func TestCompare(t *testing.T) {
	results, err := ParseSummary(sample)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, baseline string
		want           []string
	}{
		{"as expected", "caching\n# the tasks extension\ntasks-lifecycle # not offered\ntasks-status-notifications\n", nil},
		{"one may not fail unlisted", "tasks-lifecycle\ntasks-status-notifications\n",
			[]string{"caching does not pass: 7 passed, 1 failed"}},
		{"one may not pass listed", "caching\ntasks-lifecycle\ntasks-status-notifications\ntools-list\n",
			[]string{"tools-list passes now: strike it from the baseline"}},
		{"one may not be gone", "caching\ntasks-lifecycle\ntasks-status-notifications\nping\n",
			[]string{"ping is in the baseline and was not run"}},
	} {
		listed, err := ParseBaseline(c.baseline)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, Compare(results, listed)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	for _, bad := range []string{"a b\n", "a\na\n"} {
		if _, err := ParseBaseline(bad); err == nil {
			t.Errorf("baseline %q accepted", bad)
		}
	}
}
