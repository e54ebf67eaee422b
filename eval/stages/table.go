package stages

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Table returns the result for a reader. All words in it are of the program and
// of the scenario files.
func (r *Result) Table() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d scenarios, %d runs of stage 1 and %d of stage 2, seeds %s\n\n", r.Scenarios, r.RunsOf["1"], r.RunsOf["2"], strings.Trim(fmt.Sprint(r.Seeds), "[]"))
	for _, e := range r.Expected {
		fmt.Fprintf(&b, "stage %d, %s: %d of %d expectations met\n", e.Stage, e.System, e.Met, e.Of)
	}
	if r.Stage != 1 {
		b.WriteByte('\n')
		r.figures(&b)
	}
	if len(r.Compared) > 0 {
		fmt.Fprintf(&b, "\n%s against %s\n", B5, B1)
		for _, c := range r.Compared {
			word := ""
			if c.Counts {
				word = "  reaches it"
			}
			fmt.Fprintf(&b, "  %-28s%10s%10s%10s%s\n", c.Metric, number(c.B1), number(c.B5), number(c.Gain), word)
		}
	}
	b.WriteByte('\n')
	const shown = 5
	left := map[string]int{}
	for _, u := range r.Unmet {
		if left[u.System]++; left[u.System] <= shown {
			fmt.Fprintf(&b, "not as expected: %s, %s at hour %s: %s of %s: want %s, got %s\n", u.System, u.Run, u.AtH, u.Claim, u.Of, u.Want, u.Got)
		}
	}
	for _, s := range r.Systems {
		if n := left[s.Name]; n > shown {
			fmt.Fprintf(&b, "not as expected: %s: %d more, see --json\n", s.Name, n-shown)
		}
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "fault: %s\n", f)
	}
	for _, g := range r.Gates {
		word := "met    "
		if !g.Met {
			word = "NOT MET"
		}
		fmt.Fprintf(&b, "gate %s %s: %s; %s\n", word, g.ID, g.Need, g.Got)
	}
	return b.Bytes()
}

// figures prints a line for each metric and a column for each system.
func (r *Result) figures(b *bytes.Buffer) {
	var run []*Figures
	for i := range r.Systems {
		if r.Systems[i].Runs > 0 {
			run = append(run, &r.Systems[i])
		}
	}
	fmt.Fprintf(b, "%-28s", "")
	for _, f := range run {
		short, _, _ := strings.Cut(f.Name, "_")
		if f.Name == B501 {
			short = "B5 v01q"
		}
		fmt.Fprintf(b, "%9s", short)
	}
	b.WriteByte('\n')
	for _, m := range allMetrics {
		fmt.Fprintf(b, "%-28s", m.name)
		for _, f := range run {
			var v *float64
			if x := m.of(f); x != nil {
				v = &x.Value
			}
			fmt.Fprintf(b, "%9s", number(v))
		}
		b.WriteByte('\n')
	}
	if len(run) == 0 {
		return
	}
	fmt.Fprintln(b, "task success by family")
	for _, name := range slices.Sorted(maps.Keys(run[0].ByFamily)) {
		fmt.Fprintf(b, "  %-26s", name)
		for _, f := range run {
			var v *float64
			if x := f.ByFamily[name]; x != nil {
				v = &x.Value
			}
			fmt.Fprintf(b, "%9s", number(v))
		}
		b.WriteByte('\n')
	}
}

func number(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v >= 1000 || *v <= -1000:
		return fmt.Sprintf("%.0f", *v)
	}
	return fmt.Sprintf("%.3f", *v)
}

// allMetrics are the figures in the order of the design.
var allMetrics = []struct {
	name string
	of   func(*Figures) *Figure
}{
	{"false promotion -", func(f *Figures) *Figure { return f.FalsePromotion }},
	{"false rejection -", func(f *Figures) *Figure { return f.FalseRejection }},
	{"contested precision", func(f *Figures) *Figure { return f.ContestedPrecision }},
	{"calibration error -", func(f *Figures) *Figure { return f.Calibration }},
	{"contradiction recovery", func(f *Figures) *Figure { return f.Recovery }},
	{"stale handling", func(f *Figures) *Figure { return f.StaleHandling }},
	{"calibration, all claims -", func(f *Figures) *Figure { return f.CalibrationAll }},
	{"duplicate entities -", func(f *Figures) *Figure { return f.DuplicateEntities }},
	{"false merges -", func(f *Figures) *Figure { return f.FalseMerge }},
	{"alias precision", func(f *Figures) *Figure { return f.AliasPrecision }},
	{"rows per 100 observations", func(f *Figures) *Figure { return f.GraphGrowth }},
	{"evidence per accepted", func(f *Figures) *Figure { return f.EvidencePerClaim }},
	{"overturned -", func(f *Figures) *Figure { return f.Overturned }},
	{"deprecated of live -", func(f *Figures) *Figure { return f.StaleFraction }},
	{"open contradictions a run -", func(f *Figures) *Figure { return f.OpenContradiction }},
	{"task success", func(f *Figures) *Figure { return f.Success }},
	{"abstained", func(f *Figures) *Figure { return f.Abstained }},
	{"false answers -", func(f *Figures) *Figure { return f.FalseAnswers }},
	{"proposals a run", func(f *Figures) *Figure { return f.ToolCalls }},
	{"corrective actions a run", func(f *Figures) *Figure { return f.Corrective }},
	{"bytes of text a run", func(f *Figures) *Figure { return f.Bytes }},
	{"same answer again", func(f *Figures) *Figure { return f.Consistency }},
	{"flips under attack -", func(f *Figures) *Figure { return f.Flips }},
}
