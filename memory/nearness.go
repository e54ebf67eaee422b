package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/writ-project/writ/internal/words"
)

// fuse puts what is near among what the words found, each kind by itself, in the order
// of the sums of reciprocal ranks (Cormack, Clarke and Büttcher 2009): a text stands
// before another only by being found well among its own kind. Of equals the words
// come first. What is near alone has no score.
func (s *State) fuse(hits map[string][]words.Hit, near []string) {
	const k = 60
	nearest, at := map[string]int{}, map[string]float64{}
	for _, kind := range quoteKinds {
		for i, h := range hits[kind] {
			at[h.ID] = 1 / float64(k+1+i)
		}
	}
	seen := map[string]bool{}
	for _, id := range near {
		kind, _ := s.Text(id)
		if seen[id] || nearest[kind] == NearestOf || !slices.Contains(quoteKinds, kind) {
			continue
		}
		if at[id] == 0 {
			hits[kind] = append(hits[kind], words.Hit{ID: id, Kind: kind})
		}
		seen[id] = true
		nearest[kind]++
		at[id] += 1 / float64(k+nearest[kind])
	}
	for _, kind := range quoteKinds {
		slices.SortStableFunc(hits[kind], func(a, b words.Hit) int { return cmp.Compare(at[b.ID], at[a.ID]) })
	}
}

// nearby takes in what nothing but nearness found, where there is room. What is held
// back of that is not counted: it would be so of every query.
func (g *recalling) nearby(id string, limit int) {
	if g.at[id] || g.near == mostNear || len(g.items) >= limit {
		return
	}
	n, held := len(g.items), maps.Clone(g.held)
	g.quote(id, limit, false)
	if g.held = held; len(g.items) == n {
		delete(g.at, id) // a claim may lead here by its words
		return
	}
	g.items[n].FoundBy = byMeaning
	g.near++
}
