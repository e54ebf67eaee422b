package memory

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/words"
)

// found asks the indexes of the texts, which are brought to the state first: for
// quotes, and for what stands beside them.
func (s *State) found(query string, kinds []string, limit int) (quotes, beside []words.Hit, small bool) {
	s.readTexts()
	hits, small := words.Search(query, kinds, limit, &s.texts, &s.beside)
	return hits[0], hits[1], small
}

// A text stands beside the quotes where it is a claim, or a part of a quote out of the
// same evidence: a session may be kept whole, and a sentence of it for a claim. A short
// text of the same words ranks better, and many of them make common what is rare: what
// was kept for claims would take the places of what nobody made a claim on.
func (s *State) besides(id string) bool {
	o := s.observations.get(id)
	return o == nil || s.whole(o) != o.ID
}

// whole is the observation that an observation is a part of, or itself.
func (s *State) whole(o *Observation) string {
	if ids := s.captured(o); len(ids) > 0 && ids[0] != o.ID {
		if w := s.observations.get(ids[0]); w.Status == Ingested && strings.Contains(w.Raw, o.Raw) {
			return w.ID
		}
	}
	return o.ID
}

// captured are the observations out of the evidence of one, of its kind, the longest
// first: what that is of a part can be one of no other.
func (s *State) captured(o *Observation) []string {
	if o.Evidence == "" {
		return nil
	}
	return s.ix.captured.of(join(o.Evidence, kindOf(o)))
}

// capturedWith are some observations, and those that may be parts of them.
func (s *State) capturedWith(obs []string) (out []string) {
	out = slices.Clone(obs)
	for _, id := range obs {
		for _, id := range s.captured(s.observations.get(id)) {
			out = addOnce(out, id)
		}
	}
	return out
}

// Observations returns the ids of the observations, in their order.
func (s *State) Observations() []string { return s.observations.keys() }

// Text is by what an object is found, and of which kind it is, "" if by nothing:
// an observation that is neither quarantined nor erased; a claim by how the agent
// words it, its subject's names, its predicate and value.
func (s *State) Text(id string) (kind, text string) {
	if o := s.observations.get(id); o != nil && o.Status == Ingested {
		return kindOf(o), o.Raw
	}
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

// Touches are the objects whose texts an event that was applied may have changed.
func (s *State) Touches(e *Event) (ids []string) {
	for i := range e.Ops {
		switch o := &e.Ops[i]; {
		case o.Observation != nil:
			ids = append(ids, o.Observation.ID)
			if ob := s.observations.get(o.Observation.ID); ob != nil && len(s.captured(ob)) > 0 && s.captured(ob)[0] == ob.ID {
				ids = append(ids, s.captured(ob)...) // of which it may be the whole now
			}
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
			ids = slices.Concat(ids, s.capturedWith(o.Erase.Observations), o.Erase.Propositions)
			for _, en := range o.Erase.Entities {
				ids = append(ids, s.ix.about.of(en)...)
			}
		case o.Distrust != nil:
			ids = append(ids, s.capturedWith(o.Distrust.Observations)...)
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
