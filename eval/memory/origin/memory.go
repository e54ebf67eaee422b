package origin

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// Memory holds claims that are believed by the rules. The zero Memory is empty
// and ready; times are since any moment, and the same for all calls.
type Memory struct {
	claims map[string]*claim
	order  []string // in which they were made
	fresh  int      // observations since the last consolidation
	seen   map[string]bool
}

// claim is one claim with its evidence, by independence group.
type claim struct {
	tier                Tier
	support, contradict map[string]int
	newest              time.Duration // support, or when it was made
	supported           bool
	failed              bool // a discriminating test failed; counts once
	contested           int  // updates in a row that left it so
	canonical           bool
	belief              Belief
	scored              time.Duration // when belief.Score is of, unless changed
	changed             bool
}

// Belief is what is believed of a claim.
type Belief struct {
	Status    Status
	Rule      Rule
	Score     Score
	Canonical bool
}

var errUnknown = errors.New("origin: no such claim")

// Observe counts an observation towards the cadence, each id once.
func (m *Memory) Observe(id string) {
	if m.seen == nil {
		m.seen = map[string]bool{}
	}
	if !m.seen[id] {
		m.seen[id], m.fresh = true, m.fresh+1
	}
}

// Propose makes a claim, which is tentative until there is evidence. One that is
// there stays as it is.
func (m *Memory) Propose(id string, tier Tier, at time.Duration) {
	if m.claims == nil {
		m.claims = map[string]*claim{}
	}
	if m.claims[id] == nil {
		m.claims[id] = &claim{tier: tier, support: map[string]int{}, contradict: map[string]int{}, newest: at, changed: true,
			belief: Belief{Status: Tentative, Rule: TentativeRule}}
		m.order = append(m.order, id)
	}
}

// Support adds an item of a group for a claim and returns what is believed then.
func (m *Memory) Support(id, group string, at time.Duration) (Belief, error) {
	return m.update(id, at, func(c *claim) {
		c.support[group]++
		c.newest, c.supported = max(c.newest, at), true
	})
}

// Contradict adds an item of a group against a claim. It refreshes nothing.
func (m *Memory) Contradict(id, group string, at time.Duration) (Belief, error) {
	return m.update(id, at, func(c *claim) { c.contradict[group]++ })
}

// FailTest says that a discriminating test of a claim failed. The design keeps no
// mark of it: the next evaluation forgets it.
func (m *Memory) FailTest(id string, at time.Duration) (Belief, error) {
	return m.update(id, at, func(c *claim) { c.failed = true })
}

// update changes a claim by new evidence and evaluates it.
func (m *Memory) update(id string, at time.Duration, change func(*claim)) (Belief, error) {
	c := m.claims[id]
	if c == nil {
		return Belief{}, errUnknown
	}
	change(c)
	c.changed = true
	b, err := m.Read(id, at)
	if c.contested++; b.Status != Contested {
		c.contested = 0
	}
	return b, err
}

// Read evaluates a claim at a time. What it comes to is the prior state of the
// next evaluation, as in the design: who looks when is part of the answer.
func (m *Memory) Read(id string, at time.Duration) (Belief, error) {
	c := m.claims[id]
	if c == nil {
		return Belief{}, errUnknown
	}
	s := c.belief.Score
	if c.changed || at != c.scored {
		s = Of(Evidence{Support: counts(c.support), Contradict: counts(c.contradict), Age: at - c.newest, Tier: c.tier})
		c.scored, c.changed = at, false
	}
	var since *time.Duration
	if c.supported {
		d := at - c.newest
		since = &d
	}
	next, by, err := Next(c.belief.Status, s, c.failed, since)
	if err != nil {
		return Belief{}, err
	}
	c.failed = false
	c.belief = Belief{next, by, s, c.canonical}
	return c.belief, nil
}

func counts(groups map[string]int) []int { return slices.Collect(maps.Values(groups)) }

// Uncertainty says of claims that compete what a trigger asks about the first:
// how near the best two are, and how long and by how many it has been contested.
func (m *Memory) Uncertainty(impact Impact, cost, benefit Micro, at time.Duration, ids ...string) (Uncertainty, error) {
	u := Uncertainty{Impact: impact, Gap: One, Cost: cost, Benefit: benefit}
	var all []Micro
	for i, id := range ids {
		b, err := m.Read(id, at)
		if err != nil {
			return u, err
		}
		all = append(all, b.Score.Confidence)
		if c := m.claims[id]; i == 0 {
			u.ContestedUpdates, u.Contradictions = c.contested, len(c.contradict)
			u.Confidence, u.Groups = b.Score.Confidence, b.Score.SupportGroups
		}
	}
	if slices.Sort(all); len(all) > 1 {
		u.Gap = all[len(all)-1] - all[len(all)-2]
	}
	return u, nil
}

// Consolidation is what one consolidation did.
type Consolidation struct {
	Rule                        Rule
	Promoted, Archived, Carried []string
	Overflow                    Rule
}

// Consolidate evaluates every claim at one time and sorts them: accepted and fresh
// enough becomes canonical, rejected and deprecated is archived, the rest is
// carried over as far as the cap goes. Where it is not due it does nothing.
func (m *Memory) Consolidate(taskBoundary bool, at time.Duration) (out Consolidation, err error) {
	if out.Rule = Due(taskBoundary, m.fresh); out.Rule == NotDue {
		return out, nil
	}
	m.fresh = 0
	var open []string
	for _, id := range m.order {
		b, err := m.Read(id, at)
		if err != nil {
			return out, err
		}
		c := m.claims[id]
		switch ok, _ := Promotable(b.Status, b.Score.Freshness); {
		case ok:
			c.canonical = true
			out.Promoted = append(out.Promoted, id)
		case b.Status == Rejected || b.Status == Deprecated:
			out.Archived = append(out.Archived, id)
		case c.supported || len(c.contradict) > 0:
			open = append(open, id)
		}
	}
	kept, over, by := Carry(open)
	out.Carried, out.Archived, out.Overflow = kept, append(out.Archived, over...), by
	return out, nil
}

// Clone is a memory that goes on by itself from here.
func (m *Memory) Clone() *Memory {
	out := &Memory{claims: map[string]*claim{}, order: slices.Clone(m.order), fresh: m.fresh, seen: maps.Clone(m.seen)}
	for id, c := range m.claims {
		d := *c
		d.support, d.contradict = maps.Clone(c.support), maps.Clone(c.contradict)
		out.claims[id] = &d
	}
	return out
}
