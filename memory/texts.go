package memory

import (
	"iter"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/words"
)

// found asks the index of the texts, which is brought to the state first.
func (s *State) found(query string, kinds []string, limit int) []words.Hit {
	s.readTexts()
	return s.texts.Search(query, kinds, limit)
}

// Observations returns the ids of the observations, in their order.
func (s *State) Observations() []string { return s.observations.keys() }

// Texts yields the ids of what can be found, and by what text, in their order.
func (s *State) Texts() iter.Seq2[string, string] {
	return func(yield func(id, text string) bool) {
		for _, id := range slices.Concat(s.observations.keys(), s.propositions.keys()) {
			if _, text := s.Text(id); text != "" && !yield(id, text) {
				return
			}
		}
	}
}

// Text is by what an object is found, and of which kind it is, "" if by nothing:
// an observation that is neither quarantined nor erased; a claim by how the agent
// words it, its subject's names, its predicate and value.
func (s *State) Text(id string) (kind, text string) {
	switch prefix, _, _, _ := splitID(id); prefix {
	case "obs":
		o := s.observations.get(id)
		if o == nil || o.Status != Ingested {
			return "", ""
		}
		return kindOf(o), o.Raw
	case "prop":
		p := s.propositions.get(id)
		if p == nil || p.Gone {
			return "", ""
		}
		parts := []string{p.Text, strings.ReplaceAll(p.Predicate, "_", " "), p.Literal}
		if d := s.predicates.get(s.declared(p.Predicate)); d != nil {
			for _, name := range append([]string{d.Name}, d.Aliases...) {
				parts = append(parts, strings.ReplaceAll(name, "_", " "))
			}
		}
		for _, en := range p.About {
			for _, n := range s.entities.get(en).Names {
				if !n.Gone {
					parts = append(parts, n.Text)
				}
			}
		}
		return kindClaim, strings.Join(parts, "\n")
	}
	return "", ""
}

// Touches are the objects whose texts an event that was applied may have changed.
func (s *State) Touches(e *Event) (ids []string) {
	for i := range e.Ops {
		switch o := &e.Ops[i]; {
		case o.Observation != nil:
			ids = append(ids, o.Observation.ID)
		case o.Proposition != nil:
			ids = append(ids, o.Proposition.ID)
		case o.Alias != nil:
			ids = append(ids, s.ix.about.of(o.Alias.Entity)...)
		case o.Predicate != nil: // its claims are found by its other names too
			key := predicateKey(o.Predicate.Name)
			for _, id := range s.propositions.keys() {
				if s.declared(s.propositions.get(id).Predicate) == key {
					ids = append(ids, id)
				}
			}
		case o.Erase != nil:
			ids = slices.Concat(ids, o.Erase.Observations, o.Erase.Propositions)
			for _, en := range o.Erase.Entities {
				ids = append(ids, s.ix.about.of(en)...)
			}
		case o.Distrust != nil:
			ids = append(ids, o.Distrust.Observations...)
		}
	}
	return ids
}

// declared is the key of a predicate, or of the one whose other name it is.
func (s *State) declared(predicate string) string {
	key := predicateKey(predicate)
	if of := s.aliases.of(key); of != "" {
		return predicateKey(of)
	}
	return key
}
