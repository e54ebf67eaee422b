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
	captured  lists // observations, by evidence and kind, the longest first
	byRecord  lists // ids of what a record made
	about     lists // propositions, by entity
	names     lists // entities, by type and normalised name
	named     lists // entities, by normalised first name
	grams     lists // entities, by type and trigram

	claims     lists // propositions without a slot, by entity and text
	taskClaims lists // propositions, by workspace
	answers    lists // propositions, by slot and value
	mergedFrom lists // entities, by the one they were merged into

	slotOf refs // slots, by subject, predicate and qualifiers
}

func (ix *indexes) tables() []stored {
	return []stored{&ix.slotOf, &ix.edgesOf, &ix.edgesFrom, &ix.taskTests, &ix.children, &ix.bySource, &ix.captured, &ix.byRecord, &ix.about, &ix.names, &ix.named,
		&ix.grams, &ix.claims, &ix.taskClaims, &ix.answers, &ix.mergedFrom}
}

// lists are lists of ids by a key.
type lists struct{ table[idList] }

type idList struct{ IDs []string }

func (l *idList) copied() *idList { return &idList{slices.Clone(l.IDs)} }

func (l *lists) of(key string) []string {
	if r := l.get(key); r != nil {
		return r.IDs
	}
	return nil
}

func (l *lists) add(key, id string) {
	r := l.edit(key)
	if r == nil {
		r = &idList{}
		l.put(key, r)
	}
	r.IDs = append(r.IDs, id)
}

func (l *lists) addOnce(key, id string) {
	if !slices.Contains(l.of(key), id) {
		l.add(key, id)
	}
}

func recordKey(n uint64) string { return strconv.FormatUint(n, 10) }

func join(parts ...string) string {
	out := parts[0]
	for _, p := range parts[1:] {
		out += "\x00" + p
	}
	return out
}

// index brings the indexes up to an event that was applied, and made these rows or
// gave them names.
func (s *State) index(e *Event, fresh []any) {
	if slices.ContainsFunc(e.Ops, func(o Op) bool { return o.Merge != nil || o.Erase != nil }) {
		s.reindex() // what was an answer may be the same as another now
		return
	}
	for _, row := range fresh {
		if en, ok := row.(*Entity); ok && number(en.ID) != e.N {
			for i := range en.Names {
				if en.Names[i].Record == e.N {
					s.indexName(en, i)
				}
			}
			continue
		}
		s.enter(row)
	}
}

func (s *State) reindex() {
	s.ix = &indexes{}
	for _, t := range s.ix.tables() {
		t.spell(s.words)
	}
	for _, t := range s.tables() {
		_ = t.each(func(_ string, row any) error { s.enter(row); return nil })
	}
}

func (s *State) enter(row any) {
	ix := s.ix
	made := func(id string) { ix.byRecord.add(recordKey(number(id)), id) }
	switch r := row.(type) {
	case *Observation:
		made(r.ID)
		ix.bySource.add(r.Source, r.ID)
		if r.Evidence != "" {
			key, had := join(r.Evidence, kindOf(r)), s.captured(r)
			longest := len(had) > 0 && len(r.Raw) > len(s.observations.get(had[0]).Raw)
			if ix.captured.add(key, r.ID); longest {
				ids := ix.captured.edit(key).IDs
				ids[0], ids[len(ids)-1] = ids[len(ids)-1], ids[0]
			}
		}
		for _, from := range r.Lineage {
			ix.children.add(from, r.ID)
		}
	case *Entity:
		made(r.ID)
		for i := range r.Names {
			s.indexName(r, i)
		}
		if r.MergedInto != "" {
			ix.mergedFrom.add(r.MergedInto, r.ID)
		}
	case *Slot:
		made(r.ID)
		if !r.Qualified {
			ix.slotOf.set(join(r.Subject, predicateKey(r.Predicate), ""), r.ID)
		}
	case *Proposition:
		made(r.ID)
		s.enterClaim(r)
	case *Edge:
		made(r.ID)
		ix.edgesOf.add(r.To, r.ID)
		ix.edgesFrom.add(r.From, r.ID)
	case *Test:
		made(r.ID)
		ix.taskTests.add(join(r.Session, r.Task), r.ID)
	}
}

func (s *State) enterClaim(p *Proposition) {
	ix := s.ix
	for _, en := range p.About {
		ix.about.add(en, p.ID)
	}
	if p.Subject == "" && !p.Gone {
		ix.claims.add(join(p.About[0], p.Text), p.ID)
	}
	if v := s.valueKey(p); p.Slot != "" && v != "" && !p.Gone {
		ix.answers.add(join(p.Slot, v), p.ID)
	}
	ix.taskClaims.add(join(p.Session, p.Task), p.ID)
	if p.Slot != "" && p.Quals != "" {
		ix.slotOf.set(join(p.Subject, predicateKey(p.Predicate), p.Quals), p.Slot)
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

func addOnce(list []string, id string) []string {
	if slices.Contains(list, id) {
		return list
	}
	return append(list, id)
}
