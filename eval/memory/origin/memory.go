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
}

// claim is one claim with its evidence, by independence group.
type claim struct {
	tier                Tier
	support, contradict map[string]int
	newest              time.Duration // support, or when it was made
	supported           bool
	belief              Belief
	scored              time.Duration // when belief.Score is of, unless changed
	changed             bool
}

// Belief is what is believed of a claim.
type Belief struct {
	Status Status
	Rule   Rule
	Score  Score
}

var errUnknown = errors.New("origin: no such claim")

// Propose makes a claim, which is tentative until there is evidence. One that is
// there stays as it is.
func (m *Memory) Propose(id string, tier Tier, at time.Duration) {
	if m.claims == nil {
		m.claims = map[string]*claim{}
	}
	if m.claims[id] == nil {
		m.claims[id] = &claim{tier: tier, support: map[string]int{}, contradict: map[string]int{}, newest: at, changed: true,
			belief: Belief{Status: Tentative, Rule: TentativeRule}}
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

// update changes a claim by new evidence and evaluates it.
func (m *Memory) update(id string, at time.Duration, change func(*claim)) (Belief, error) {
	c := m.claims[id]
	if c == nil {
		return Belief{}, errUnknown
	}
	change(c)
	c.changed = true
	return m.Read(id, at)
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
	next, by, err := Next(c.belief.Status, s, false, since)
	if err != nil {
		return Belief{}, err
	}
	c.belief = Belief{next, by, s}
	return c.belief, nil
}

func counts(groups map[string]int) []int { return slices.Collect(maps.Values(groups)) }

// Clone is a memory that goes on by itself from here.
func (m *Memory) Clone() *Memory {
	out := &Memory{claims: map[string]*claim{}}
	for id, c := range m.claims {
		d := *c
		d.support, d.contradict = maps.Clone(c.support), maps.Clone(c.contradict)
		out.claims[id] = &d
	}
	return out
}
