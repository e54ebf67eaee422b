package memory

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/writ-project/writ/memory"
)

// measure replays the generated data of every seed.
func measure(o *Options) (*Measures, error) {
	v1, knob, v01q, err := policies(o)
	if err != nil {
		return nil, err
	}
	rules := Rules(&o.Memory, v01q, v1, knob)
	if o.narrow {
		rules = slices.DeleteFunc(rules, func(r Rule) bool { return r.ID != Strict && r.ID != ToolMay })
	}
	r := &Measures{Data: ownData, Chains: o.Chains}

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
	if !o.narrow { // first: they are the longest
		jobs = append([]job{func() { r.Retrieval = retrieve(&o.Memory, o.Seeds...) }, func() { r.Linking = link(&o.Memory, v1, o.Seeds...) }}, jobs...)
	}
	if err := work(jobs, o.progress("chains, texts and names")); err != nil {
		return nil, err
	}
	r.Updates = updates
	r.OtherWords = OtherWords{Updates: otherUpdates, Other: inOther, Belief: []Belief{}}
	for i := range rules {
		r.Belief = append(r.Belief, rules[i].fill(said[i], Attacks))
		r.OtherWords.Belief = append(r.OtherWords.Belief, rules[i].fill(other[i], nil))
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
				failed = errors.Join(failed, fmt.Errorf("memory: %w", f.error))
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

// policies are the ones measured: v1, that with its knob on, and v01q.
func policies(o *Options) (v1, knob, v01q *memory.Policy, err error) {
	if v1, err = o.policy("v1"); err == nil {
		v01q, err = o.policy("v01q")
	}
	if err == nil {
		knob, err = edit(v1, "knob", "flags.tool_may_supersede_user true")
	}
	return v1, knob, v01q, err
}
