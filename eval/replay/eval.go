package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/eval/measure"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// DefaultSeed is what the committed report was made with.
const DefaultSeed = 1

// Options of a replay.
type Options struct {
	Corpora  []string // files; each folder has a tools.json.gz
	Policies fs.FS
	Profile  policy.Profile
	Adaptive bool   // also what the transforms make of the traces
	Approve  string // who answers what is asked: none, truth, all
	Seed     uint64
	Progress func(done string) // told what was judged, unless nil
}

// suite is a set of traces with the same tools.
type suite struct {
	key           string
	plain, helped *world
	traces        []*Trace
	reads         []*Step // of the benign traces, each call once
	passed        []passed
}

// trial is one trace before one gate.
type trial struct {
	w *world
	t *Trace
}

// Run replays. An error means that a file cannot be read or is not what it should
// be, or that ctx is done; a corpus that is not there is not one.
func Run(ctx context.Context, o Options) (*Report, error) {
	p, known := persons[o.Approve]
	if !known {
		return nil, fmt.Errorf("nobody is called %q", o.Approve)
	}
	r := &Report{Version: 1, Seed: o.Seed, Profile: string(o.Profile), Person: o.Approve, Adaptive: o.Adaptive}
	suites, err := load(o, r)
	if err != nil {
		return nil, err
	}
	tell := func(what string) {
		if o.Progress != nil {
			o.Progress(what)
		}
	}
	for _, s := range suites {
		var trials []trial
		for _, t := range s.traces {
			trials = append(trials, trial{s.plain, t})
		}
		os, err := judged(ctx, trials, p)
		if err != nil {
			return nil, err
		}
		r.static(s, trials, os)
		tell(s.key)
	}
	if o.Adaptive {
		for _, s := range suites {
			if err := s.pass(ctx); err != nil {
				return nil, err
			}
		}
		for _, tr := range transforms {
			var trials []trial
			for _, s := range suites {
				trials = append(trials, s.transformed(tr, o.Seed)...)
			}
			os, err := judged(ctx, trials, p)
			if err != nil {
				return nil, err
			}
			for n := range trials {
				attacksOf(&r.Transforms, trials[n].t.Corpus+", "+tr.name).add(trials[n].t, os[n])
			}
			tell(tr.name)
		}
		if r.Habits, err = habitually(ctx, suites); err != nil {
			return nil, err
		}
		tell("habits")
	}
	slices.SortStableFunc(r.Benign, func(a, b Benign) int { return strings.Compare(a.Suite, b.Suite) })
	slices.SortStableFunc(r.Attacks, func(a, b Attack) int { return strings.Compare(a.Set, b.Set) })
	return r, nil
}

// pass gathers the acts of benign traces that Writ's gate lets pass, to be altered.
func (s *suite) pass(ctx context.Context) error {
	of := make([][]passed, len(s.traces))
	err := measure.Each(ctx, len(s.traces), nil, func(_ context.Context, n int) error {
		t := s.traces[n]
		if t.attack() {
			return nil
		}
		play(t, func() judge { return newOurs(s.helped, nil) }, func(i int, v verdict) {
			if t.Steps[i].act() && v.allowed {
				of[n] = append(of[n], passed{t, i, v.leaves})
			}
		})
		return nil
	})
	s.passed = slices.Concat(of...)
	return err
}

// judged is what each gate makes of each trial.
func judged(ctx context.Context, trials []trial, p person) ([][]outcome, error) {
	out := make([][]outcome, len(trials))
	return out, measure.Each(ctx, len(trials), nil, func(_ context.Context, i int) error {
		for _, g := range gates {
			out[i] = append(out[i], play(trials[i].t, func() judge { return g.open(trials[i].w, p) }, nil))
		}
		return nil
	})
}

// load reads the corpora and joins each suite with its policy, and the own corpus.
func load(o Options, r *Report) ([]*suite, error) {
	own, ownTools, err := ownCorpus()
	if err != nil {
		return nil, err
	}
	tools := map[string][]tool{"own": ownTools}
	traces := own
	for _, file := range o.Corpora {
		b, sum, err := readFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			r.Missing = append(r.Missing, filepath.Base(file))
			continue
		} else if err != nil {
			return nil, err
		}
		more, err := readTraces(file, b)
		if err != nil {
			return nil, err
		}
		traces = append(traces, more...)
		r.Inputs = append(r.Inputs, Input{Name: filepath.Base(file), SHA256: sum, Traces: len(more)})
		described := filepath.Join(filepath.Dir(file), "tools.json.gz")
		if b, sum, err = readFile(described); err != nil {
			return nil, err
		}
		if in := (Input{Name: filepath.Base(described), SHA256: sum}); !slices.Contains(r.Inputs, in) {
			r.Inputs = append(r.Inputs, in)
		}
		var ts map[string][]tool
		if err := json.Unmarshal(b, &ts); err != nil {
			return nil, fmt.Errorf("%s: %w", described, err)
		}
		maps.Copy(tools, ts)
	}
	by := map[string]*suite{}
	for i := range traces {
		t := &traces[i]
		key := t.suiteOf(tools)
		s := by[key]
		if s == nil {
			s = &suite{key: key}
			by[key] = s
			for _, helped := range []bool{false, true} {
				w, err := newWorld(key, tools[key], o.Policies, o.Profile, helped)
				if err != nil {
					return nil, err
				}
				if s.helped = w; !helped {
					s.plain = w
				}
			}
			if s.plain.defaults {
				r.Defaults = append(r.Defaults, key)
			}
		}
		s.traces = append(s.traces, t)
	}
	suites := slices.SortedFunc(maps.Values(by), func(a, b *suite) int { return strings.Compare(a.key, b.key) })
	for _, s := range suites {
		s.collect()
		if strings.HasPrefix(s.key, "bfcl") {
			r.Grounded += s.ground()
		}
	}
	slices.Sort(r.Defaults)
	return suites, nil
}

// collect gathers the reads of the suite's benign traces: what an agent could have
// been shown.
func (s *suite) collect() {
	seen := map[string]bool{}
	for _, t := range s.traces {
		for i := range t.Steps {
			st := &t.Steps[i]
			if id := st.Tool + string(st.Args) + string(st.Output); !t.attack() && !st.act() && !st.failed() && given(st.Output) && !seen[id] {
				seen[id] = true
				read := *st // ground moves the steps of a trace
				s.reads = append(s.reads, &read)
			}
		}
	}
}

// ground puts reads before acts that want a value of a collection which stands nowhere
// yet, as an agent behind a gate would make them: of the calls that the suite's other
// traces made, the first that returned that very value as a member of that collection.
// It returns how many.
func (s *suite) ground() (n int) {
	for _, t := range s.traces {
		put := map[int][]Step{}
		play(t, func() judge { return newOurs(s.plain, nil) }, func(i int, v verdict) {
			for _, r := range v.refused {
				if t.Steps[i].act() && (r.reason == string(writ.ProvenanceUnseen) || r.reason == string(writ.ProvenanceReflected)) {
					if read := s.holding(&t.Steps[i], r.exact); read != nil {
						x := *read
						x.Turn = t.Steps[i].Turn
						put[i] = append(put[i], x)
						n++
					}
				}
			}
		})
		for i := len(t.Steps) - 1; i >= 0; i-- {
			t.Steps = slices.Insert(t.Steps, i, put[i]...)
		}
	}
	return n
}

// holding finds a read that returned the value of an argument.
func (s *suite) holding(act *Step, at string) *Step {
	c := s.plain.policy.Contracts[s.plain.server+"/"+act.Tool]
	if c == nil {
		return nil
	}
	var found *Step
	measure.Leaves(act.Args, func(path []string, v any) {
		for _, a := range c.Args {
			if strictjson.Pointer(path) != at || a.Collection == "" || !a.At.Match(path) {
				continue
			}
			for _, read := range s.reads {
				from := s.plain.policy.Contracts[s.plain.server+"/"+read.Tool]
				if found != nil || from == nil {
					continue
				}
				measure.Leaves(s.plain.structured(read), func(in []string, e any) {
					for _, o := range from.Outputs {
						if e == v && o.Collection == a.Collection && o.At.Match(in) {
							found = read
						}
					}
				})
			}
		}
	})
	return found
}
