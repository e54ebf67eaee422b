package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/writ-project/writ/memory"
)

// Seeds are those of the design, which the committed result was made with.
func Seeds() []uint64 { return []uint64{101, 202, 303, 404, 505} }

// Part is what of an evaluation is run.
type Part int

// The parts. The comparison is on the scenarios of the stress.
const (
	Everything Part = iota
	Rulings         // stage 1
	Stress          // stage 2
	Comparison      // stage 3
	Measured        // the four measures
)

// Options of an evaluation.
type Options struct {
	// Memory is what is under evaluation.
	Memory Memory
	// Seeds are those of what is generated and of the scenarios that are run once
	// for each; nil for the design's.
	Seeds []uint64
	// Chains of values of each seed; 0 is Chains.
	Chains int
	// Only is what is run of it all.
	Only Part
	// Files replaces the embedded scenarios; it has a directory cases.
	Files fs.FS
	// Policy replaces the built-in policies.
	Policy func(profile string) (*memory.Policy, bool)
	// Progress, unless nil, is told how much of what is done, from one goroutine
	// at a time.
	Progress func(what string, done, of int)

	// narrow leaves out all but M2 and M3 of the rows the targets are for.
	narrow bool
}

func (o *Options) progress(what string) func(done, of int) {
	if o.Progress == nil {
		return nil
	}
	return func(done, of int) { o.Progress(what, done, of) }
}

func (o *Options) policy(profile string) (*memory.Policy, error) {
	if o.Policy == nil {
		o.Policy = memory.Builtin
	}
	p, ok := o.Policy(profile)
	if !ok {
		return nil, fmt.Errorf("there is no policy %s", profile)
	}
	return p, nil
}

// Run evaluates. An error means that there is nothing to report: scenarios that
// cannot be read, a seed twice, a memory that writes what does not fold. That a
// gate is not met is not one. The memory is called from several goroutines at
// once.
func Run(o Options) (*Report, error) {
	if o.Seeds == nil {
		o.Seeds = Seeds()
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(o.Seeds)))); n == 0 || n < len(o.Seeds) {
		return nil, errors.New("no seed, or one twice")
	}
	if o.Chains == 0 {
		o.Chains = Chains
	}
	if o.Files == nil {
		o.Files = embedded
	}
	r := &Report{Version: Version, Seeds: o.Seeds, Gates: []Gate{}}
	var err error
	if o.Only != Measured {
		if r.Stages, err = play(&o); err != nil {
			return nil, err
		}
		r.Gates = r.Stages.Gates
	}
	if o.Only == Everything || o.Only == Measured {
		if r.Measures, err = measure(&o); err != nil {
			return nil, err
		}
		r.Gates = append(r.Gates, r.Measures.Gates...)
	}
	r.Passed = len(r.Gates) > 0 && !slices.ContainsFunc(r.Gates, func(g Gate) bool { return !g.Met })
	return r, nil
}

// play runs every system through the scenarios.
func play(o *Options) (*Stages, error) {
	b, err := load(o.Files, o.Seeds)
	if err != nil {
		return nil, err
	}
	all, err := systems(o)
	if err != nil {
		return nil, err
	}
	res := newStages(b, o, all)
	// Each system is on its own; what they showed is put together in their order.
	shown := make([]struct {
		t     *tally
		runs  int // of the bundle
		lines []*RunLine
		part  Stages
	}, len(all))
	var jobs []func()
	for i := range all {
		jobs = append(jobs, func() {
			s := &shown[i]
			s.t = newTally()
			for _, r := range b.runs {
				if wanted(o, &all[i], r) {
					t := newTally()
					line := one(&all[i], r, o, t, &s.part)
					line.groups = grouped(t.figures())
					s.t.add(t)
					s.runs += btoi(r.stage == 2)
					s.lines = append(s.lines, line)
				}
			}
		})
	}
	if err := work(jobs, o.progress("systems")); err != nil {
		return nil, err
	}
	for i := range shown {
		s := &shown[i]
		res.Runs = append(res.Runs, s.lines...)
		res.Faults = append(res.Faults, s.part.Faults...)
		res.Transitions = append(res.Transitions, s.part.Transitions...)
		res.Consolidations = append(res.Consolidations, s.part.Consolidations...)
		if o.Only != Rulings {
			res.Systems[i].Runs, res.Systems[i].Figures = s.runs, s.t.figures()
		}
	}
	res.finish()
	return res, nil
}

// wanted says which system runs what: stage 1 is of the memory's own rules, so
// only under its two profiles.
func wanted(o *Options, s *System, r *run) bool {
	switch {
	case r.stage == 1:
		return s.profile != "" && o.Only < Stress
	case o.Only == Rulings:
		return false
	case o.Only == Stress:
		return s.profile != ""
	}
	return true
}

// one runs one system through one run.
func one(sys *System, r *run, o *Options, t *tally, res *Stages) *RunLine {
	s := sys.make(r, o)
	g, _ := s.(*governed)
	line := &RunLine{Run: r.name(), Stage: r.stage, Scenario: r.id, Family: r.family, System: sys.Name, Seed: r.seed, Reads: []ReadLine{}, Unmet: []Unmet{}}
	m := &meter{r: r, s: s, g: g, t: t, line: line, counts: r.stage == 2}
	todo := r.expect
	if sys.profile == "" || !slices.Contains(r.profiles, sys.profile) {
		todo = nil
	}
	check := func(until *event) {
		for len(todo) > 0 && (until == nil || todo[0].At.d < until.at) {
			e := &todo[0]
			todo = todo[1:]
			if e.Profile.Given() && e.Profile.S != sys.profile {
				continue
			}
			n, unmet := g.judge(e)
			line.Checked += n
			for _, u := range unmet {
				u.Run, u.System = line.Run, sys.Name
				line.Unmet = append(line.Unmet, u)
			}
		}
	}
	for i := range r.steps {
		e := &r.steps[i]
		check(e)
		if e.kind == reads {
			m.read(e)
			continue
		}
		m.step(e)
		s.do(e)
		m.after(e)
	}
	check(nil)
	m.end()
	if g != nil {
		g.verify()
		for _, f := range g.faults {
			res.Faults = append(res.Faults, fmt.Sprintf("%s, %s: %s", sys.Name, r.name(), f))
		}
		for _, tr := range g.transitions {
			tr.Run, tr.System = line.Run, sys.Name
			res.Transitions = append(res.Transitions, tr)
		}
		for _, c := range g.consolidations {
			c.Run, c.System = line.Run, sys.Name
			res.Consolidations = append(res.Consolidations, c)
		}
	}
	return line
}
