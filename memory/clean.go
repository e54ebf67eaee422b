package memory

import (
	"slices"

	writ "github.com/writ-project/writ"
)

// Clean reports whether the texts that reading an object shows are all of those
// that pass the one gate, and this reader's own or a trusted tool's: whoever reads
// one that is not has read what somebody else may have written, or what the agent
// wrote after reading such. Of what is not there nothing is clean.
func (r *Reader) Clean(id string) bool {
	s := r.State
	switch prefix, n, _, _ := splitID(id); prefix {
	case "obs":
		o := s.observations.get(id)
		return o != nil && r.clean(o)
	case "prop":
		p := s.propositions.get(id)
		return p != nil && (p.Gone || r.worded(p.Decision))
	case "ent":
		en := s.entities.get(id)
		if en == nil {
			return false
		}
		for _, n := range en.Names {
			if !n.Gone && !slices.ContainsFunc(en.Names, func(k Name) bool {
				o := s.observations.get(k.Observation)
				return !k.Gone && k.Text == n.Text && o != nil && r.clean(o)
			}) && slices.ContainsFunc(r.entity(en).Names, func(shown Recalled) bool { return shown.Value == n.Text }) {
				return false
			}
		}
		return true
	case "epi":
		ep := s.episodes.get(id)
		return ep != nil && (ep.Summary == "" || r.Clean(ep.Summary))
	case "test":
		return s.tests.get(id) != nil && r.worded(decisionID(n))
	case "dec": // ids and fixed words
		return s.decided.get(id) != nil
	}
	return false
}

func (r *Reader) clean(o *Observation) bool {
	return r.passes(o) && (o.Principal == r.Principal || o.Label == writ.System || o.Label == writ.Operator)
}

// worded reports whether the words of a decision's proposal were written by the
// reader's own agent, before its session saw others'.
func (r *Reader) worded(decision string) bool {
	d := r.State.decided.get(decision)
	return d != nil && !d.Exposed && (d.Principal == r.Principal || d.Kind == KindCommand)
}
