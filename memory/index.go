package memory

import (
	"slices"
	"strconv"
)

// indexes are functions of the rest of the state, kept for speed alone. They
// are no part of its encoding, and hold what is committed, not drafts. Lists
// are in the order of the records.
type indexes struct {
	edgesOf   lists // by proposition
	edgesFrom lists // by observation
	taskTests lists // tests, by workspace
	children  lists // observations, by what they were derived from
	bySource  lists // observations
	byRecord  lists // ids of what a record made
	about     lists // propositions, by entity
	names     lists // entities, by type and normalised name
	named     lists // entities, by normalised first name
	grams     lists // entities, by type and trigram
	testsOf   lists // tests, by proposition

	claims     lists // propositions without a slot, by entity and text
	taskClaims lists // propositions, by workspace
	answers    lists // propositions, by slot and value
	mergedFrom lists // entities, by the one they were merged into

	slotOf refs // slots, by subject, predicate and qualifiers
}

func newIndexes(w *lexicon) *indexes {
	ix := &indexes{}
	for _, t := range ix.tables() {
		t.spell(w)
	}
	return ix
}

// lists are all lists of the indexes.
func (ix *indexes) lists() []*lists {
	return []*lists{&ix.edgesOf, &ix.edgesFrom, &ix.taskTests, &ix.children, &ix.bySource, &ix.byRecord, &ix.about, &ix.names, &ix.named, &ix.grams,
		&ix.testsOf, &ix.claims, &ix.taskClaims, &ix.answers, &ix.mergedFrom}
}

// tables are all tables of the indexes.
func (ix *indexes) tables() []stored {
	out := []stored{&ix.slotOf}
	for _, l := range ix.lists() {
		out = append(out, l)
	}
	return out
}

// lists are lists of ids by a key.
type lists struct{ table[idList] }

type idList struct{ IDs []string }

func (l *idList) copied() *idList { return &idList{slices.Clone(l.IDs)} }

// of returns a list to read.
func (l *lists) of(key string) []string {
	if r := l.get(key); r != nil {
		return r.IDs
	}
	return nil
}

// add appends to a list.
func (l *lists) add(key, id string) {
	r := l.edit(key)
	if r == nil {
		r = &idList{}
		l.put(key, r)
	}
	r.IDs = append(r.IDs, id)
}

// addOnce appends to a list what it does not hold.
func (l *lists) addOnce(key, id string) {
	if !slices.Contains(l.of(key), id) {
		l.add(key, id)
	}
}

// recordKey is the key of a record.
func recordKey(n uint64) string { return strconv.FormatUint(n, 10) }

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
			if ed := s.edges.get(o.Edge.ID); ed != nil {
				s.indexEdge(ed)
			}
		case o.Merge != nil: // what was an answer may be the same as another now
			s.reindex()
			return
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
	s.ix.byRecord.add(recordKey(number(id)), id)
}

func (s *State) indexObservation(o *Observation) {
	s.made(o.ID)
	s.ix.bySource.add(o.Source, o.ID)
	for _, from := range o.Lineage {
		s.ix.children.add(from, o.ID)
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
	s.ix.names.addOnce(join(en.Type, n), en.ID)
	if i == 0 {
		s.ix.named.addOnce(n, en.ID)
	}
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
			s.ix.grams.add(join(en.Type, g), en.ID)
		}
	}
}

func (s *State) indexSlot(sl *Slot) {
	s.made(sl.ID)
	if !sl.Qualified {
		s.ix.slotOf.set(join(sl.Subject, predicateKey(sl.Predicate), ""), sl.ID)
	}
}

func (s *State) indexProposition(p *Proposition) {
	s.made(p.ID)
	for _, en := range p.About {
		s.ix.about.add(en, p.ID)
	}
	if p.Subject == "" && !p.Gone {
		s.ix.claims.add(join(p.About[0], p.Text), p.ID)
	}
	if v := s.valueKey(p); p.Slot != "" && v != "" && !p.Gone {
		s.ix.answers.add(join(p.Slot, v), p.ID)
	}
	s.ix.taskClaims.add(join(p.Session, p.Task), p.ID)
	if p.Slot != "" && p.Quals != "" {
		s.ix.slotOf.set(join(p.Subject, predicateKey(p.Predicate), p.Quals), p.Slot)
	}
}

func (s *State) indexEdge(e *Edge) {
	s.made(e.ID)
	s.ix.edgesOf.add(e.To, e.ID)
	s.ix.edgesFrom.add(e.From, e.ID)
}

func (s *State) indexTest(t *Test) {
	s.made(t.ID)
	s.ix.taskTests.add(join(t.Session, t.Task), t.ID)
	for _, p := range t.Propositions {
		s.ix.testsOf.add(p, t.ID)
	}
}

// reindex makes all indexes anew.
func (s *State) reindex() {
	s.ix = newIndexes(s.words)
	for _, id := range s.observations.keys() {
		s.indexObservation(s.observations.get(id))
	}
	for _, id := range s.entities.keys() {
		en := s.entities.get(id)
		s.indexEntity(en)
		if en.MergedInto != "" {
			s.ix.mergedFrom.add(en.MergedInto, id)
		}
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
}
