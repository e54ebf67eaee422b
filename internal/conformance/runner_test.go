package conformance

import (
	"bufio"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Result is how one scenario went.
type Result struct {
	Passed, Failed int    // checks
	Unscored       string // why the revision does not require it, "" when it does
}

// OK reports whether the scenario passed. One that checked nothing did not.
func (r Result) OK() bool { return r.Passed > 0 && r.Failed == 0 }

var (
	announced = regexp.MustCompile(`^Running requirements \S+ \((\d+) scenarios\)`)
	scored    = regexp.MustCompile(`^[✓✗] (\S+): (\d+) passed, (\d+) failed$`)
	unscored  = regexp.MustCompile(`^  [✓✗] (\S+) \((.+)\)$`)
)

// ParseSummary reads what the runner printed. It is an error when a line of
// the summary is not understood or a scenario that was announced is not in it:
// what was not read must not count as passed.
func ParseSummary(out string) (map[string]Result, error) {
	results := map[string]Result{}
	want, in := -1, ""
	sc := bufio.NewScanner(strings.NewReader(out))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := sc.Text()
		switch {
		case in == "" && announced.MatchString(line):
			want, _ = strconv.Atoi(announced.FindStringSubmatch(line)[1])
		case in == "" && line == "=== SUMMARY ===":
			in = "summary"
		case in == "summary" && strings.HasPrefix(line, "Total: "), in == "unscored" && line == "":
			in = "total"
		case in == "total" && strings.HasPrefix(line, "Not scored for "):
			in = "unscored"
		case in == "summary" && line != "":
			m := scored.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("line of the summary not understood: %q", line)
			}
			if _, twice := results[m[1]]; twice {
				return nil, fmt.Errorf("scenario %s is in the summary twice", m[1])
			}
			p, _ := strconv.Atoi(m[2])
			f, _ := strconv.Atoi(m[3])
			results[m[1]] = Result{Passed: p, Failed: f}
		case in == "unscored":
			m := unscored.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("line of the unscored list not understood: %q", line)
			}
			r, ok := results[m[1]]
			if !ok {
				return nil, fmt.Errorf("unscored scenario %s is not in the summary", m[1])
			}
			r.Unscored = m[2]
			results[m[1]] = r
		}
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if want <= 0 || len(results) != want {
		return nil, fmt.Errorf("%d scenarios in the summary, %d announced", len(results), want)
	}
	return results, nil
}

// ParseBaseline reads the scenarios a leg does not pass yet: one to a line, a
// comment after #.
func ParseBaseline(text string) (map[string]bool, error) {
	listed := map[string]bool{}
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "#")
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			continue
		case strings.ContainsAny(name, " \t"):
			return nil, fmt.Errorf("one scenario to a line: %q", name)
		case listed[name]:
			return nil, fmt.Errorf("%s is listed twice", name)
		}
		listed[name] = true
	}
	return listed, nil
}

// Compare returns one line for each scenario that is not as the baseline says,
// sorted; none when the run is as expected.
func Compare(results map[string]Result, listed map[string]bool) []string {
	var wrong []string
	for name, r := range results {
		switch {
		case r.OK() && listed[name]:
			wrong = append(wrong, name+" passes now: strike it from the baseline")
		case !r.OK() && !listed[name]:
			wrong = append(wrong, fmt.Sprintf("%s does not pass: %d passed, %d failed", name, r.Passed, r.Failed))
		}
	}
	for name := range listed {
		if _, ran := results[name]; !ran {
			wrong = append(wrong, name+" is in the baseline and was not run")
		}
	}
	slices.Sort(wrong)
	return wrong
}
