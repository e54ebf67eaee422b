package certificate

import (
	"slices"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// spent is a one-time value that an act was accepted with, as the type it was issued of.
type spent struct {
	typ   provenance.Type
	value strictjson.Value
}

// issued are the places that hold a value and issue it for one act (R19).
func (s *Session) issued(l *leaf) []*place {
	return slices.DeleteFunc(s.holding(l.value, l.typ()), func(p *place) bool { return p.rule == nil || p.rule.Lifetime == 0 })
}

// once reports whether a one-time value may be used now, at the place an argument names:
// one that issues it, for an argument that accepts that output or has its collection, in
// its time, by no act before and by no other argument of this one. Other values are free.
func (s *Session) once(c *call, l *leaf, p *place) bool {
	all := s.issued(l)
	if len(all) == 0 {
		return true
	}
	q := c.query(l)
	named := q.collection != "" && q.collection == p.collection() || slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
		return l.output(src) && src.HasAt && q.source(src, p)
	})
	if !named || !slices.Contains(all, p) || l.answer || l.key {
		return false
	}
	for _, o := range c.leaves {
		if o != l && o.Rule == "output" && (provenance.Equal(l.typ(), l.value, o.value) || provenance.Equal(o.typ(), l.value, o.value)) {
			return false
		}
	}
	return !slices.ContainsFunc(all, func(p *place) bool {
		age := c.Time.Sub(p.at)
		return age < 0 || age >= p.rule.Lifetime ||
			slices.ContainsFunc(s.spent, func(u spent) bool { return u.typ == p.typ && provenance.Equal(p.typ, u.value, l.value) })
	})
}

// spend uses up the one-time values of an act.
func (s *Session) spend(c *call) {
	for _, l := range c.leaves {
		for _, p := range s.issued(l) {
			s.spent = append(s.spent, spent{p.typ, l.value})
		}
	}
}
