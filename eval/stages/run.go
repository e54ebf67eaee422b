package stages

import (
	"fmt"
	"io/fs"
	"runtime"
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/memory"
)

func nodeIf(given bool) *strictyaml.Node {
	if !given {
		return nil
	}
	return &strictyaml.Node{Kind: strictyaml.Text}
}

// Options of an evaluation.
type Options struct {
	// Index makes an empty index of texts, which the raw log is searched by.
	Index func() memory.Index
	// Seeds are those of the scenarios that are run once for each; nil for the
	// design's.
	Seeds []uint64
	// Stage is 1, 2 or 3 to run no more than that one; 0 for all. Stage 3 is on
	// the bundle of stage 2.
	Stage int
	// Files replaces the embedded scenarios; it has a directory cases.
	Files fs.FS
	// Handle replaces [memory.Handle], and Policy the built-in policies, to show
	// that a memory which is broken is found out.
	Handle func(*memory.State, memory.Context, writ.Proposal) memory.Decision
	Policy func(profile string) (*memory.Policy, bool)
	// Progress, unless nil, is told each system as it is done.
	Progress func(system string)
}

func (o *Options) policy(profile string) (*memory.Policy, error) {
	p, ok := o.Policy(profile)
	if !ok {
		return nil, fmt.Errorf("there is no policy %s", profile)
	}
	return p, nil
}

// Run evaluates. An error means that the scenarios cannot be read; that a gate
// is not met is not one.
func Run(o Options) (*Result, error) {
	if o.Files == nil {
		o.Files = embedded
	}
	if o.Seeds == nil {
		o.Seeds = Seeds()
	}
	if o.Handle == nil {
		o.Handle = memory.Handle
	}
	if o.Policy == nil {
		o.Policy = memory.Builtin
	}
	b, err := load(o.Files, o.Seeds)
	if err != nil {
		return nil, err
	}
	all, err := systems(&o)
	if err != nil {
		return nil, err
	}
	res := newResult(b, &o, all)
	// Each system is on its own; what they showed is put together in their order.
	type shown struct {
		t     tally
		lines []*RunLine
		part  Result
	}
	out := make([]chan *shown, len(all))
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range all {
		out[i] = make(chan *shown, 1)
		go func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			s := &shown{t: tally{families: map[string]ratio{}}}
			for _, r := range b.runs {
				if wanted(&o, &all[i], r) {
					t := &tally{families: map[string]ratio{}}
					line := one(&all[i], r, &o, t, &s.part)
					line.metrics(t)
					s.t.add(t)
					s.lines = append(s.lines, line)
				}
			}
			out[i] <- s
		}()
	}
	for i := range all {
		s := <-out[i]
		res.Runs = append(res.Runs, s.lines...)
		res.Faults = append(res.Faults, s.part.Faults...)
		res.Transitions = append(res.Transitions, s.part.Transitions...)
		res.Consolidations = append(res.Consolidations, s.part.Consolidations...)
		if o.Stage != 1 {
			res.Systems[i].measure(&s.t)
		}
		if o.Progress != nil {
			o.Progress(all[i].Name)
		}
	}
	res.finish(b)
	return res, nil
}

// wanted says which system runs what: stage 1 is of the memory's own rules, so
// only under its two profiles.
func wanted(o *Options, s *System, r *run) bool {
	switch {
	case r.stage == 1:
		return s.profile != "" && o.Stage < 2
	case o.Stage == 1:
		return false
	case o.Stage == 2:
		return s.profile != ""
	}
	return true
}

// one runs one system through one run.
func one(sys *System, r *run, o *Options, t *tally, res *Result) *RunLine {
	s := sys.make(r, o)
	g, _ := s.(*governed)
	line := &RunLine{Run: r.name(), Stage: r.stage, Scenario: r.id, Family: r.family, System: sys.Name, Seed: r.seed, Reads: []ReadLine{}, Unmet: []Unmet{}, bundle: r.digest()}
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
