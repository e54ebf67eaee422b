package gates

import "io/fs"

// DefaultSeed and DefaultFuzz are what the committed result was made with.
const (
	DefaultSeed = 1
	DefaultFuzz = 10_000
)

// Options of an evaluation.
type Options struct {
	Gates Gates
	Seed  uint64
	Fuzz  int // cases of each generated section
	// Cases replaces the embedded cases; it has a directory cases.
	Cases fs.FS
	// Progress, unless nil, is told the name of each section as it is done.
	Progress func(section string)
}

// Run evaluates. An error means that the cases cannot be read; that gates fail
// is not one. The gates are called from several goroutines at once.
func Run(o Options) (*Report, error) {
	if o.Cases == nil {
		o.Cases = embedded
	}
	l := newLoader(o.Cases)
	plans := later(func() *Section { return fuzzPlans(o.Gates, o.Seed, o.Fuzz) })
	summaries := later(func() *Section { return fuzzGrounding(o.Gates, o.Seed, o.Fuzz) })
	r := &Report{Version: 1, Seed: o.Seed}
	for _, s := range []struct {
		into **Section
		run  func() *Section
	}{
		{&r.PolicyGate, func() *Section { return policyGate(o.Gates, l) }},
		{&r.PlanParse, func() *Section { return planParse(o.Gates, l) }},
		{&r.PlanGate, func() *Section { return planGate(o.Gates, l) }},
		{&r.TypedOutput, func() *Section { return typedOutput(o.Gates, l) }},
		{&r.Grounding, func() *Section { return grounding(o.Gates, l) }},
		{&r.ProvenanceGate, func() *Section { return provenanceGate(o.Gates, l) }},
		{&r.PlanFuzz, plans},
		{&r.GroundingFuzz, summaries},
	} {
		*s.into = s.run()
		if o.Progress != nil {
			o.Progress((*s.into).Suite)
		}
	}
	if err := l.err(); err != nil {
		return nil, err
	}
	for _, s := range r.Sections() {
		r.Total += s.Total
		r.Passed += s.Passed
		r.Failed += s.Failed
		if s.Seed != nil {
			r.Fuzzed += s.Total
		} else {
			s.Inputs = l.digest(s.Suite)
			r.HandMade += s.Total
		}
	}
	return r, nil
}

// later starts f and returns what waits for its result.
func later(f func() *Section) func() *Section {
	done := make(chan *Section, 1)
	go func() { done <- f() }()
	return func() *Section { return <-done }
}
