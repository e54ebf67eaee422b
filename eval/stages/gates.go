package stages

import (
	"fmt"
	"slices"
)

// The bounds of the gates, as the design has them.
const (
	needGain      = 0.10 // of a policy metric, relative
	needAbsolute  = 0.05 // where the baseline is at 0
	needMetrics   = 3
	allowedLoss   = 0.03 // of task success, absolute
	fairnessSeeds = 5
)

func newResult(b *Bundle, o *Options, all []System) *Result {
	r := &Result{Version: ResultVersion, Stage: o.Stage, Seeds: b.Seeds, Bundle: b.Hash, Scenarios: b.Files, RunsOf: map[string]int{"1": b.Runs(1), "2": b.Runs(2)},
		Gates: []Gate{}, Expected: []Expected{}, Compared: []Compared{}, Unmet: []Unmet{}, Faults: []string{}, NotMeasured: NotMeasured(), Failures: []Failures{}}
	for _, s := range all {
		r.Systems = append(r.Systems, Figures{System: s})
	}
	return r
}

// finish draws the conclusions.
func (r *Result) finish(b *Bundle) {
	r.expected()
	for _, l := range r.Runs {
		l.Success = l.Failed == 0
		r.Unmet = append(r.Unmet, l.Unmet...)
		if l.Failed == 0 || l.Stage != 2 {
			continue
		}
		i := slices.IndexFunc(r.Failures, func(f Failures) bool { return f.System == l.System && f.Scenario == l.Scenario })
		if i < 0 {
			i = len(r.Failures)
			r.Failures = append(r.Failures, Failures{System: l.System, Scenario: l.Scenario, How: map[string]int{}})
		}
		f := &r.Failures[i]
		f.Wrong += l.Failed
		for _, rd := range l.Reads {
			if !rd.Right {
				f.How[rd.State]++
			}
		}
	}
	for i := range r.Failures {
		for _, l := range r.Runs {
			if l.System == r.Failures[i].System && l.Scenario == r.Failures[i].Scenario {
				r.Failures[i].Reads += len(l.Reads)
			}
		}
	}
	r.Fairness = r.fair(b)
	if r.Stage < 2 {
		for _, name := range []string{B501, B5} {
			e := r.count(name, 1)
			r.gate(1, "stage1."+name, "100 % of the expected transitions", fmt.Sprintf("%d of %d", e.Met, e.Of), e.Met == e.Of && e.Of > 0)
		}
	}
	if r.Stage != 1 {
		r.gate(2, "stage2.fairness", "five fixed seeds, and the identical bundle for every system", fairWords(r.Fairness), r.Fairness.Passed)
	}
	if r.Stage == 0 || r.Stage == 2 {
		e := r.count(B5, 2)
		r.gate(2, "stage2."+B5, "what the design expects under stress, of the default profile", fmt.Sprintf("%d of %d", e.Met, e.Of), e.Met == e.Of && e.Of > 0)
	}
	if r.Stage == 0 || r.Stage == 3 {
		r.compare()
	}
	r.gate(max(1, r.Stage), "integrity", "every decision is decided again the same, and every log folds to the same state", fmt.Sprintf("%d faults", len(r.Faults)), len(r.Faults) == 0)
	r.Passed = !slices.ContainsFunc(r.Gates, func(g Gate) bool { return !g.Met })
}

func (r *Result) gate(stage int, id, need, got string, met bool) {
	r.Gates = append(r.Gates, Gate{ID: id, Need: need, Got: got, Met: met, Stage: stage})
}

func (r *Result) expected() {
	for _, l := range r.Runs {
		if l.Checked == 0 {
			continue
		}
		i := slices.IndexFunc(r.Expected, func(e Expected) bool { return e.System == l.System && e.Stage == l.Stage })
		if i < 0 {
			i = len(r.Expected)
			r.Expected = append(r.Expected, Expected{System: l.System, Stage: l.Stage})
		}
		r.Expected[i].Of += l.Checked
		r.Expected[i].Met += l.Checked - len(l.Unmet)
	}
}

func (r *Result) count(system string, stage int) Expected {
	for _, e := range r.Expected {
		if e.System == system && e.Stage == stage {
			return e
		}
	}
	return Expected{}
}

// Of returns the figures of a system, nil if it was not run.
func (r *Result) Of(system string) *Figures {
	for i := range r.Systems {
		if r.Systems[i].Name == system {
			return &r.Systems[i]
		}
	}
	return nil
}

// policyMetrics are those of the design, and whether lower is better.
var policyMetrics = []struct {
	name  string
	lower bool
	of    func(*Figures) *Figure
}{
	{"false_promotion_rate", true, func(f *Figures) *Figure { return f.FalsePromotion }},
	{"false_rejection_rate", true, func(f *Figures) *Figure { return f.FalseRejection }},
	{"contested_precision", false, func(f *Figures) *Figure { return f.ContestedPrecision }},
	{"calibration_ece", true, func(f *Figures) *Figure { return f.Calibration }},
	{"contradiction_recovery_rate", false, func(f *Figures) *Figure { return f.Recovery }},
	{"stale_handling", false, func(f *Figures) *Figure { return f.StaleHandling }},
}

// compare is stage 3: B5 under its default profile against the raw log.
func (r *Result) compare() {
	b1, b5 := r.Of(B1), r.Of(B5)
	gains, both := 0, 0
	for _, m := range policyMetrics {
		c := Compared{Metric: m.name}
		x, y := m.of(b1), m.of(b5)
		if x != nil {
			c.B1 = &x.Value
		}
		if y != nil {
			c.B5 = &y.Value
		}
		if x != nil && y != nil {
			both++
			d := y.Value - x.Value
			if m.lower {
				d = -d
			}
			need := needGain
			if x.Value == 0 {
				c.Absolute, need = true, needAbsolute
			} else {
				d /= x.Value
			}
			d = round(d)
			c.Gain, c.Counts = &d, d >= need
		}
		gains += btoi(c.Counts)
		r.Compared = append(r.Compared, c)
	}
	r.gate(3, "stage3.gain", "at least 10 % gain over the raw log on at least 3 policy metrics", fmt.Sprintf("%d of the %d that both have", gains, both), gains >= needMetrics)
	if b1.Success == nil || b5.Success == nil {
		r.gate(3, "stage3.task_success", "task success at most 3 points below the raw log", "not measured", false)
		return
	}
	loss := round(b1.Success.Value - b5.Success.Value)
	r.gate(3, "stage3.task_success", "task success at most 3 points below the raw log", fmt.Sprintf("%.1f %% against %.1f %%", 100*b5.Success.Value, 100*b1.Success.Value), loss <= allowedLoss)
}
