package memory

import (
	"cmp"
	"slices"

	writ "github.com/writ-project/writ"
)

// indexes are functions of the rest of the state, kept for speed alone. They
// are no part of its encoding, and hold what is committed, not drafts. Lists
// are in the order of the records.
type indexes struct {
	edgesOf   map[string][]string // by proposition
	edgesFrom map[string][]string // by observation
	taskItems map[string][]string // keys of items, by workspace
	taskTests map[string][]string // tests, by workspace
	children  map[string][]string // observations, by what they were derived from
	bySource  map[string][]string // observations
	byRecord  map[uint64][]string // ids of what a record made
	about     map[string][]string // propositions, by entity
	slotOf    map[string]string   // slots, by subject, predicate and qualifiers
	names     map[string][]string // entities, by type and normalised name
	grams     map[string][]string // entities, by type and trigram
	testsOf   map[string][]string // tests, by proposition
	forecasts []string            // propositions that say what will be

	// known is, by session and number, when recorded evidence was seen. latest is
	// the newest time any was recorded.
	known  map[string][]knownAt
	latest Instant
	claims map[string][]string // propositions without a slot, by entity and text

	summaryOf  map[string]string   // episodes, by the observation that is their summary
	mergedFrom map[string][]string // entities, by the one they were merged into
}

func newIndexes() *indexes {
	return &indexes{
		edgesOf: map[string][]string{}, edgesFrom: map[string][]string{}, taskItems: map[string][]string{},
		taskTests: map[string][]string{}, children: map[string][]string{}, bySource: map[string][]string{},
		byRecord: map[uint64][]string{}, about: map[string][]string{}, slotOf: map[string]string{},
		names: map[string][]string{}, grams: map[string][]string{}, testsOf: map[string][]string{}, claims: map[string][]string{},
		summaryOf: map[string]string{}, mergedFrom: map[string][]string{},
		known: map[string][]knownAt{},
	}
}

// knownAt is a number of recorded evidence and when it was seen at the latest.
type knownAt struct {
	number uint32
	at     Instant
}

// seenBy are the times by which evidence of that session and number was seen, as
// far as numbers tell, which no clock changes (M08): when it was recorded itself,
// and when the next was that is recorded.
func (ix *indexes) seenBy(id writ.EvidenceID) (out []Instant) {
	ks := ix.known[id.Session]
	i, found := slices.BinarySearchFunc(ks, id.Number, func(k knownAt, n uint32) int { return cmp.Compare(k.number, n) })
	if found {
		out = append(out, ks[i].at)
		i++
	}
	if i < len(ks) {
		out = append(out, ks[i].at)
	}
	return out
}

// know keeps when evidence was seen that is recorded for the first time.
func (ix *indexes) know(id writ.EvidenceID) {
	ks := ix.known[id.Session]
	i, found := slices.BinarySearchFunc(ks, id.Number, func(k knownAt, n uint32) int { return cmp.Compare(k.number, n) })
	if found {
		return
	}
	k := knownAt{id.Number, ix.latest}
	if i < len(ks) {
		k.at = ks[i].at
	}
	ix.known[id.Session] = slices.Insert(ks, i, k)
}

func join(parts ...string) string {
	out := parts[0]
	for _, p := range parts[1:] {
		out += "\x00" + p
	}
	return out
}

// index brings the indexes up to an event that was applied.
func (s *State) index(e *Event) {
	var named []string // entities whose names of this event are indexed
	for i := range e.Ops {
		o := &e.Ops[i]
		switch {
		case o.Observation != nil:
			s.indexObservation(s.observations.get(o.Observation.ID))
		case o.Entity != nil:
			s.indexEntity(s.entities.get(o.Entity.ID))
			named = append(named, o.Entity.ID)
		case o.Alias != nil:
			if slices.Contains(named, o.Alias.Entity) {
				continue
			}
			named = append(named, o.Alias.Entity)
			en := s.entities.get(o.Alias.Entity)
			for i := range en.Names {
				if en.Names[i].Record == e.N {
					s.indexName(en, i)
				}
			}
		case o.Slot != nil:
			s.indexSlot(s.slots.get(o.Slot.ID))
		case o.Proposition != nil:
			s.indexProposition(s.propositions.get(o.Proposition.ID))
		case o.Edge != nil:
			s.indexEdge(s.edges.get(o.Edge.ID))
		case o.Touch != nil:
			key := join(e.Session, e.Task)
			s.ix.taskItems[key] = addOnce(s.ix.taskItems[key], join(key, o.Touch.Proposition))
		case o.Load != nil:
			key := join(e.Session, e.Task)
			s.ix.taskItems[key] = addOnce(s.ix.taskItems[key], join(key, o.Load.Proposition))
		case o.Episode != nil:
			s.indexEpisode(s.episodes.get(o.Episode.ID))
		case o.Merge != nil:
			s.indexMerge(o.Merge)
		case o.Test != nil:
			s.indexTest(s.tests.get(o.Test.ID))
		case o.Erase != nil:
			s.reindex()
			return
		}
	}
}

// addOnce appends to a short list what it does not hold.
func addOnce(list []string, id string) []string {
	if slices.Contains(list, id) {
		return list
	}
	return append(list, id)
}

func (s *State) made(id string) {
	_, n, _, _ := splitID(id)
	s.ix.byRecord[n] = append(s.ix.byRecord[n], id)
}

func (s *State) indexObservation(o *Observation) {
	s.made(o.ID)
	s.ix.latest = max(s.ix.latest, o.RecordedAt)
	if id, err := writ.ParseEvidenceID(o.Evidence); err == nil {
		s.ix.know(id)
	}
	s.ix.bySource[o.Source] = append(s.ix.bySource[o.Source], o.ID)
	for _, from := range o.Lineage {
		s.ix.children[from] = append(s.ix.children[from], o.ID)
	}
}

func (s *State) indexEntity(en *Entity) {
	s.made(en.ID)
	for i := range en.Names {
		s.indexName(en, i)
	}
}

func (s *State) indexName(en *Entity, i int) {
	if en.Names[i].Gone {
		return
	}
	n := normName(en.Names[i].Text)
	key := join(en.Type, n)
	s.ix.names[key] = addOnce(s.ix.names[key], en.ID)
	had := map[string]bool{}
	for _, k := range en.Names[:i] {
		if !k.Gone {
			for _, g := range trigrams(normName(k.Text)) {
				had[g] = true
			}
		}
	}
	for _, g := range trigrams(n) {
		if !had[g] {
			key := join(en.Type, g)
			s.ix.grams[key] = append(s.ix.grams[key], en.ID)
		}
	}
}

func (s *State) indexSlot(sl *Slot) {
	s.made(sl.ID)
	if !sl.Qualified {
		s.ix.slotOf[join(sl.Subject, sl.Predicate, "")] = sl.ID
	}
}

func (s *State) indexProposition(p *Proposition) {
	s.made(p.ID)
	for _, en := range p.About {
		s.ix.about[en] = append(s.ix.about[en], p.ID)
	}
	if p.Subject == "" && !p.Gone {
		key := join(p.About[0], p.Text)
		s.ix.claims[key] = append(s.ix.claims[key], p.ID)
	}
	if p.forecast() {
		s.ix.forecasts = append(s.ix.forecasts, p.ID)
	}
	if p.Slot != "" && p.Quals != "" {
		s.ix.slotOf[join(p.Subject, p.Predicate, p.Quals)] = p.Slot
	}
}

func (s *State) indexEdge(e *Edge) {
	s.made(e.ID)
	s.ix.edgesOf[e.To] = append(s.ix.edgesOf[e.To], e.ID)
	s.ix.edgesFrom[e.From] = append(s.ix.edgesFrom[e.From], e.ID)
}

func (s *State) indexMerge(m *MergeOp) {
	from := slices.DeleteFunc(s.ix.mergedFrom[m.Into], func(id string) bool { return id == m.From })
	if !m.Undo {
		from = append(from, m.From)
		slices.SortFunc(from, compareID)
	}
	if s.ix.mergedFrom[m.Into] = from; len(from) == 0 {
		delete(s.ix.mergedFrom, m.Into)
	}
}

func (s *State) indexEpisode(ep *Episode) {
	if ep.Summary != "" {
		s.ix.summaryOf[ep.Summary] = ep.ID
	}
}

func (s *State) indexTest(t *Test) {
	s.made(t.ID)
	key := join(t.Session, t.Task)
	s.ix.taskTests[key] = append(s.ix.taskTests[key], t.ID)
	for _, p := range t.Propositions {
		s.ix.testsOf[p] = append(s.ix.testsOf[p], t.ID)
	}
}

// reindex makes all indexes anew.
func (s *State) reindex() {
	s.ix = newIndexes()
	for _, id := range s.observations.keys() {
		s.indexObservation(s.observations.get(id))
	}
	for _, id := range s.entities.keys() {
		en := s.entities.get(id)
		s.indexEntity(en)
		if en.MergedInto != "" {
			s.indexMerge(&MergeOp{From: id, Into: en.MergedInto})
		}
	}
	for _, id := range s.episodes.keys() {
		s.indexEpisode(s.episodes.get(id))
	}
	for _, id := range s.slots.keys() {
		s.indexSlot(s.slots.get(id))
	}
	for _, id := range s.propositions.keys() {
		s.indexProposition(s.propositions.get(id))
	}
	for _, id := range s.edges.keys() {
		s.indexEdge(s.edges.get(id))
	}
	for _, id := range s.tests.keys() {
		s.indexTest(s.tests.get(id))
	}
	for _, k := range s.items.keys() {
		i := s.items.get(k)
		key := join(i.Session, i.Task)
		s.ix.taskItems[key] = append(s.ix.taskItems[key], k)
	}
}
