package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/writ-project/writ/eval/measure"
)

// Version is the version of the report's form.
const Version = 3

// Seeds are those which the committed result was made with.
func Seeds() []uint64 { return []uint64{101, 202, 303, 404, 505} }

// The parts of an evaluation.
const (
	RevisionPart = "revision"
	AttackPart   = "attack"
	RecallPart   = "recall"
)

// Options of an evaluation. What is zero is as in the committed result.
type Options struct {
	Systems []System
	Seeds   []uint64
	Chains  int // of each seed
	Walks   int // of each world
	// Only is one part to run alone.
	Only string
	// LoCoMo is a file of that form, to ask as well.
	LoCoMo []byte
	// Progress, unless nil, is told how much is done, from one goroutine at a time.
	Progress func(done, of int)

	worlds   int // of each seed
	together int // conversations of a seed in one memory
	every    int // sentence that says I, of all
}

const (
	longChains         = 6 // of each seed
	longUpdates        = 30
	conversationsAlone = 3 // of each seed
	togetherSeeds      = 2 // how many seeds are asked of many conversations
)

// besideClaims are how many claims stand beside the turns.
var besideClaims = []int{0, 50, 190, 950}

// Report is what one evaluation showed, in the order of its file.
type Report struct {
	Version int      `json:"v"`
	Seeds   []uint64 `json:"seeds"`
	// Passed: every gate that was judged is met, and there is one.
	Passed  bool     `json:"passed"`
	Gates   []Gate   `json:"gates"`
	Systems []System `json:"systems"`
	// Plain has every correction in the words that were used before, Spelled every
	// fifth in another spelling.
	Plain   []Revision `json:"revision,omitempty"`
	Spelled []Revision `json:"revision_other_spelling,omitempty"`
	Long    []Long     `json:"long,omitempty"`
	Attacks []Attack   `json:"attack,omitempty"`
	Whose   []Whose    `json:"whose,omitempty"`
	Recall  []Recall   `json:"recall,omitempty"`
}

// Gate is one aim, and what was measured against it.
type Gate struct {
	ID   string `json:"id"`
	Need string `json:"need"`
	Got  string `json:"got"`
	Met  bool   `json:"met"`
}

// Share is a part of a whole, with the 95 % interval of Wilson. Rates have six
// places, bounds four.
type Share struct {
	Count int     `json:"count"`
	Of    int     `json:"of"`
	Rate  float64 `json:"rate"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

func share(n, of int) Share {
	s := Share{Count: n, Of: of, Rate: measure.Quotient(n, of)}
	if of > 0 {
		low, high := measure.Wilson(n, of, 1.959964)
		s.Low, s.High = measure.Round(low, 4), measure.Round(high, 4)
	}
	return s
}

// JSON returns the file's bytes.
func (r *Report) JSON() ([]byte, error) { return measure.JSON(r, " ") }

// Run evaluates. The gates are the first system's. An error means that there is
// nothing to report; that a gate is not met is none.
func Run(o Options) (*Report, error) {
	if o.Seeds == nil {
		o.Seeds = Seeds()
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(o.Seeds)))); n == 0 || n < len(o.Seeds) {
		return nil, errors.New("no seed, or one twice")
	}
	if o.Systems == nil {
		o.Systems = Systems()
	}
	if o.Chains == 0 {
		o.Chains = Chains
	}
	if o.worlds == 0 {
		o.worlds, o.together, o.every = 2, 9, 1 // nine conversations are some 2,500 turns
	}
	if o.Walks == 0 {
		o.Walks = Walks
	}
	var files []*library
	if o.LoCoMo != nil {
		var err error
		if files, err = readLoCoMo(o.LoCoMo); err != nil {
			return nil, err
		}
	}
	r := &Report{Version: Version, Seeds: o.Seeds, Gates: []Gate{}, Systems: o.Systems}
	n := len(o.Systems)
	found := make([][]Recall, n)
	var jobs []func()
	part := func(name string, job func(i int, s *System)) bool {
		if o.Only != "" && o.Only != name {
			return false
		}
		for i := range o.Systems {
			jobs = append(jobs, func() { job(i, &o.Systems[i]) })
		}
		return true
	}
	part(RecallPart, func(i int, s *System) { found[i] = s.recall(&o, files) })
	if part(RevisionPart, func(i int, s *System) { r.Plain[i], r.Spelled[i], r.Long[i] = s.revise(&o) }) {
		r.Plain, r.Spelled, r.Long = make([]Revision, n), make([]Revision, n), make([]Long, n)
	}
	if part(AttackPart, func(i int, s *System) { r.Attacks[i], r.Whose[i] = s.attacks(&o), s.whose(o.Seeds, o.every) }) {
		r.Attacks, r.Whose = make([]Attack, n), make([]Whose, n)
	}
	err := measure.Each(context.Background(), len(jobs), o.Progress, func(_ context.Context, i int) error {
		jobs[i]() // each one's result has a place of its own
		return nil
	})
	r.Recall = slices.Concat(found...)
	r.gates()
	r.Passed = len(r.Gates) > 0 && !slices.ContainsFunc(r.Gates, func(g Gate) bool { return !g.Met })
	return r, err
}

func (s *System) revise(o *Options) (Revision, Revision, Long) {
	var plain, spelled, long played
	for _, seed := range o.Seeds {
		for i := range o.Chains {
			newChain(seed, i, 0, false).play(s.New(), &plain)
			newChain(seed, i, 0, true).play(s.New(), &spelled)
		}
		for i := range min(longChains, o.Chains) {
			newChain(seed, i, longUpdates, true).play(s.New(), &long)
		}
	}
	return s.revision(&plain), s.revision(&spelled), s.long(&long)
}

func (s *System) attacks(o *Options) Attack {
	all := s.newAttack()
	for _, seed := range o.Seeds {
		for i := range o.worlds {
			all.add(s.attack(seed, i, o.Walks))
		}
	}
	return *all
}

// together names the rows of many conversations in one memory.
const together = "ours, together in one memory"

func (s *System) recall(o *Options, files []*library) (out []Recall) {
	if s.Emulated && s.ID != plainWords {
		return nil // they find as that one does
	}
	row := func(data string, claims int, seeds []uint64, of func(seed uint64) []*library) {
		sum := &finds{}
		for _, seed := range seeds {
			for _, l := range of(seed) {
				l.ask(s, seed, claims, sum)
			}
		}
		out = append(out, sum.row(s, data, claims))
	}
	row("ours, each conversation in a memory of its own", 0, o.Seeds, func(seed uint64) (ls []*library) {
		for i := range conversationsAlone {
			ls = append(ls, conversations(seed, i, i+1))
		}
		return ls
	})
	for _, n := range besideClaims {
		row(together, n, o.Seeds[:min(togetherSeeds, len(o.Seeds))], func(seed uint64) []*library { return []*library{conversations(seed, 0, o.together)} })
	}
	if files != nil {
		row("LoCoMo", 0, []uint64{0}, func(uint64) []*library { return files })
	}
	return out
}

// gates hold the first system to the aims. Where a figure is missing, so is its
// gate; an aim of nothing is not met by doing nothing, as others stand beside it.
func (r *Report) gates() {
	gate := func(id, need string, got any, met bool) {
		r.Gates = append(r.Gates, Gate{id, need, fmt.Sprint(got), met})
	}
	if len(r.Plain) > 0 {
		p, s := &r.Plain[0], &r.Spelled[0]
		gate("current", "at least 0.95", p.Aimed.Current.Rate, p.Aimed.Current.Rate >= 0.95)
		gate("current_other_spelling", "at least 0.80", s.Aimed.Current.Rate, s.Aimed.Current.Rate >= 0.80)
		gate("history", "1", p.History.rate(), p.History.rate() == 1)
		gate("kept_a_year", "at least 0.95", p.Kept.Rate, p.Kept.Rate >= 0.95)
	}
	if len(r.Attacks) > 0 {
		a := &r.Attacks[0]
		gate("attack.held_before", "1", a.Held.Rate, a.Held.Rate == 1)
		for k, id := range []string{"falsehood", "buried", "stranger", "cropped"} {
			gate("attack."+id, "0", a.Reached[k].Sequences, a.Reached[k].Sequences == 0)
		}
		malformed, accepted := 0, 0
		for _, d := range a.Driven {
			malformed += d.Malformed
			accepted += count(d.Accepted > 0)
		}
		gate("attack.malformed", "0", malformed, malformed == 0)
		gate("attack.driven", strconv.Itoa(len(tools)), accepted, accepted == len(tools))
	}
	if len(r.Whose) > 0 {
		w := &r.Whose[0]
		gate("whose.others", "0", w.Others.Count, w.Others.Count == 0)
		gate("whose.own", "1", w.Own.Rate, w.Own.Rate == 1)
	}
	var none *Recall
	for i := range r.Recall {
		x := &r.Recall[i]
		switch {
		case x.System != r.Systems[0].ID:
		case x.Data == "LoCoMo":
			gate("locomo.session_recall_5", "at least 0.86", x.Session5, x.Session5 >= 0.86)
			gate("locomo.turn_recall_10", "at least 0.60", x.Turn10, x.Turn10 >= 0.60)
		case x.Claims == 0:
			none = x
		default:
			of := "beside_" + strconv.Itoa(x.Claims) + "_claims"
			for _, f := range []struct {
				what      string
				got, need float64
			}{{"recall.session_", x.Session5, none.Session5}, {"recall.turn_", x.Turn10, none.Turn10}, {"recall.mrr_", x.MRR, none.MRR}} {
				gate(f.what+of, fmt.Sprintf("at least %v, to half a point", f.need), f.got, f.got >= f.need-0.005)
			}
		}
	}
}

func (s *Share) rate() float64 {
	if s == nil {
		return 0
	}
	return s.Rate
}
