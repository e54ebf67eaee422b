package memory

import (
	"fmt"
	"slices"
	"strconv"
)

// The bounds of the gates, as the design has them.
const (
	needGain     = 0.10 // of a policy metric, relative
	needAbsolute = 0.05 // where the baseline is at 0
	needMetrics  = 3
	allowedLoss  = 0.03 // of task success, absolute
	leastSeeds   = 5
)

func newStages(b *Bundle, o *Options, all []System) *Stages {
	r := &Stages{Only: o.Only, Seeds: b.Seeds, Bundle: b.Hash, Scenarios: b.Files, RunsOf: map[string]int{"1": b.Runs(1), "2": b.Runs(2)},
		Expected: []Expected{}, Compared: []Compared{}, Unmet: []Unmet{}, Faults: []string{}, NotMeasured: NotMeasured()}
	for _, s := range all {
		r.Systems = append(r.Systems, Figures{System: s})
	}
	return r
}

// finish draws the conclusions.
func (r *Stages) finish() {
	r.expected()
	for _, l := range r.Runs {
		l.Success = l.Failed == 0
		r.Unmet = append(r.Unmet, l.Unmet...)
	}
	if r.Only < Stress {
		for _, name := range []string{B501, B5} {
			e := r.count(name, 1)
			r.gate("stage1."+name, "100 % of the expected transitions", fmt.Sprintf("%d of %d", e.Met, e.Of), e.Met == e.Of && e.Of > 0)
		}
	}
	if r.Only != Rulings {
		drawn := map[uint64]bool{}
		for _, l := range r.Runs {
			if l.Stage == 2 && l.Seed != 0 { // 0 of what draws nothing
				drawn[l.Seed] = true
			}
		}
		r.gate("stage2.seeds", "at least five seeds", strconv.Itoa(len(drawn)), len(drawn) >= leastSeeds)
	}
	if r.Only == Everything || r.Only == Stress {
		e := r.count(B5, 2)
		r.gate("stage2."+B5, "what the design expects under stress, of the default profile", fmt.Sprintf("%d of %d", e.Met, e.Of), e.Met == e.Of && e.Of > 0)
	}
	if r.Only == Everything || r.Only == Comparison {
		r.compare()
	}
	r.gate("integrity", "every decision is decided again the same, and every log folds to the same state", fmt.Sprintf("%d faults", len(r.Faults)), len(r.Faults) == 0)
}

func (r *Stages) gate(id, need, got string, met bool) {
	r.Gates = append(r.Gates, Gate{id, "the memory's design", need, got, met})
}

func (r *Stages) expected() {
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

func (r *Stages) count(system string, stage int) Expected {
	for _, e := range r.Expected {
		if e.System == system && e.Stage == stage {
			return e
		}
	}
	return Expected{}
}

// Of returns the figures of a system, nil if it was not run.
func (r *Stages) Of(system string) *Figures {
	for i := range r.Systems {
		if r.Systems[i].Name == system {
			return &r.Systems[i]
		}
	}
	return nil
}

// compare is stage 3: B5 under its default profile against the raw log.
func (r *Stages) compare() {
	b1, b5 := r.Of(B1), r.Of(B5)
	gains, both := 0, 0
	for _, m := range metrics {
		if m.group != "policy" {
			continue
		}
		c := Compared{Metric: m.name}
		x, y := b1.Figures[m.name], b5.Figures[m.name]
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
			d = round(d, 6)
			c.Gain, c.Counts = &d, d >= need
		}
		gains += btoi(c.Counts)
		r.Compared = append(r.Compared, c)
	}
	r.gate("stage3.gain", "at least 10 % gain over the raw log on at least 3 policy metrics", fmt.Sprintf("%d of the %d that both have", gains, both), gains >= needMetrics)
	x, y := b1.Figures["task_success"], b5.Figures["task_success"]
	if x == nil || y == nil {
		r.gate("stage3.task_success", "task success at most 3 points below the raw log", "not measured", false)
		return
	}
	r.gate("stage3.task_success", "task success at most 3 points below the raw log", fmt.Sprintf("%.1f %% against %.1f %%", 100*y.Value, 100*x.Value), round(x.Value-y.Value, 6) <= allowedLoss)
}
