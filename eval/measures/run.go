package measures

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/writ-project/writ/memory"
)

// Seeds are what the committed result was made with.
func Seeds() []uint64 { return []uint64{101, 202, 303, 404, 505} }

// Options of an evaluation.
type Options struct {
	Memory Memory
	Seeds  []uint64
	// Chains of each seed; 0 is Chains.
	Chains int
	// Policy replaces the built-in v1, to measure another. With its knob on it is
	// measured as well.
	Policy *memory.Policy
	// Progress, unless nil, is told how much is done, from one goroutine at a
	// time.
	Progress func(done, of int)

	// narrow leaves out all but M2 and M3 of the rows the targets are for.
	narrow bool
}

// Run measures. An error means that there is nothing to report: no seed, or a
// memory that does not fold. The memory is called from several goroutines at
// once.
func Run(o Options) (*Report, error) {
	if len(o.Seeds) == 0 {
		return nil, errors.New("measures: no seed")
	}
	for i, s := range o.Seeds {
		if slices.Contains(o.Seeds[:i], s) {
			return nil, fmt.Errorf("measures: the seed %d stands twice", s)
		}
	}
	if o.Chains == 0 {
		o.Chains = Chains
	}
	v1, knob, v01q, err := policies(o.Policy)
	if err != nil {
		return nil, err
	}
	rules := Rules(&o.Memory, v01q, v1, knob)
	if o.narrow {
		rules = slices.DeleteFunc(rules, func(r Rule) bool { return r.ID != Strict && r.ID != ToolMay })
	}
	r := &Report{Version: Version, Data: ownData, Seeds: slices.Clone(o.Seeds), Chains: o.Chains}

	// One job is one chain under all rules, or the texts or the names of one seed.
	type job func()
	var jobs []job
	said := make([][]replayed, len(rules))
	other := make([][]replayed, len(rules))
	updates, otherUpdates, inOther := 0, 0, 0
	var mu sync.Mutex
	for i := range rules {
		said[i], other[i] = make([]replayed, len(o.Seeds)*o.Chains), make([]replayed, len(o.Seeds)*o.Chains)
	}
	for si, seed := range o.Seeds {
		for k := range o.Chains {
			at := si*o.Chains + k
			jobs = append(jobs, func() {
				c, w := newChain(seed, k, false), newChain(seed, k, true)
				for i := range rules {
					said[i][at] = replay(&rules[i], c, seed, Attacks)
					if !o.narrow {
						other[i][at] = replay(&rules[i], w, seed, nil)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				updates, otherUpdates = updates+len(c.updates), otherUpdates+len(w.updates)
				for _, u := range w.updates {
					if u.other {
						inOther++
					}
				}
			})
		}
	}
	texts := make([]found, len(o.Seeds))
	names := make([]linked, len(o.Seeds))
	for i, seed := range o.Seeds {
		if o.narrow {
			break
		}
		jobs = append(jobs, func() { texts[i] = retrieve(&o.Memory, seed) }, func() { names[i] = link(&o.Memory, v1, seed) })
	}
	if err := work(jobs, o.Progress); err != nil {
		return nil, err
	}
	r.Updates = updates
	r.OtherWords = OtherWords{Updates: otherUpdates, Other: inOther, Belief: []Belief{}}
	for i := range rules {
		r.Belief = append(r.Belief, rules[i].fill(said[i], Attacks))
		r.OtherWords.Belief = append(r.OtherWords.Belief, rules[i].fill(other[i], nil))
	}
	if !o.narrow {
		r.Retrieval, r.Linking = retrieved(texts), namesLinked(names)
	}
	r.gates()
	return r, nil
}

// work does the jobs on all processors.
func work[J ~func()](jobs []J, progress func(done, of int)) error {
	var (
		mu     sync.Mutex
		done   int
		failed error
		wg     sync.WaitGroup
		next   = make(chan J)
	)
	one := func(j J) {
		defer func() {
			r := recover()
			mu.Lock()
			defer mu.Unlock()
			if f, ok := r.(fault); ok {
				failed = errors.Join(failed, fmt.Errorf("measures: %w", f.error))
			} else if r != nil {
				panic(r)
			}
			if done++; progress != nil {
				progress(done, len(jobs))
			}
		}()
		j()
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for j := range next {
				one(j)
			}
		})
	}
	for _, j := range jobs {
		next <- j
	}
	close(next)
	wg.Wait()
	return failed
}

// knobLine is the knob in the text of a policy.
var knobLine = []byte("  tool_may_supersede_user: false")

// policies are the ones measured: v1 or what stands in its place, that with its
// knob on, and v01q.
func policies(p *memory.Policy) (v1, knob, v01q *memory.Policy, err error) {
	if v1 = p; v1 == nil {
		v1, _ = memory.Builtin("v1")
	}
	v01q, _ = memory.Builtin("v01q")
	src := v1.Source()
	if bytes.Count(src, knobLine) != 1 {
		return nil, nil, nil, errors.New("measures: the policy does not have the line tool_may_supersede_user: false")
	}
	knob, faults := memory.ParsePolicy("knob.yaml", bytes.Replace(src, knobLine, []byte("  tool_may_supersede_user: true"), 1))
	if len(faults) > 0 {
		return nil, nil, nil, fmt.Errorf("measures: %s", faults[0].String())
	}
	return v1, knob, v01q, nil
}
