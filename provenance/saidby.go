package provenance

import writ "github.com/writ-project/writ"

// SaidBy answers `from: said_by` (R12): is a value what somebody asked for whom the
// user named? The query's At names, in the results of one tool, the field that says
// who speaks, at party or better: it cannot be forged. The user typed what stands
// there whole in his latest turn, and of all he typed there one alone stands in that
// field. The value is a direct scalar, declared of the query's type, of a record of
// that origin; and in all such records seen in this session nothing else is of that
// type, so that nobody but the user chose which. A model's record is none.
//
// Whoever has read this can have his own value accepted only where the user names
// him, in the very turn, and then says it himself.
func (n *Names) SaidBy(q Query) (said, by Fact, at Quote, ok bool) {
	l := n.l
	s := &l.store
	k, typed := l.keyOf(q.Type, q.Value)
	if q.Type == Untyped || q.Strict || !typed || empty(q.Value) || len(l.turns) == 0 {
		return said, by, at, false
	}
	none := func() (Fact, Fact, Quote, bool) { return Fact{}, Fact{}, Quote{}, false }
	latest := l.turns[len(l.turns)-1].Evidence
	var origin *fact
	for _, name := range n.all() {
		for _, i := range name.whole {
			f := s.at(i)
			if m := &s.metas[f.meta]; name.at.Evidence != latest || !m.named || m.server != q.Server || m.tool != q.Tool || !l.standsAt(q.At, f) {
				continue
			}
			if s.crowded(name.whole) || origin != nil && origin.mark != f.mark {
				return none() // not all of it is known, or he named two
			}
			origin = f
			held, alone := n.only(i, q.Type, k.mark())
			if !alone {
				return none()
			}
			if held > 0 && f.label >= writ.Party && !ok {
				said, by, at, ok = s.fact(held-1), s.fact(i), name.at, true
			}
		}
	}
	return said, by, at, ok
}

// only reports whether an origin has a record and nothing in it is of a type but one value,
// and which fact, plus 1, holds it where it may be relied on.
func (n *Names) only(origin uint32, t Type, mark uint32) (held uint32, alone bool) {
	s := &n.l.store
	rec, alone := s.record(s.at(origin))
	if !alone {
		return 0, false
	}
	s.around(origin, func(i uint32) bool {
		g := s.at(i)
		if n.visits--; n.visits < 0 || g.evidence != s.at(origin).evidence || !s.within(g.node, rec) {
			return false
		}
		if m := &s.metas[g.meta]; m.typ == t && i != origin {
			alone = alone && g.mark == mark
			if _, is := s.record(g); is && g.mark == mark && g.node == rec && m.named && g.label >= writ.External && m.lifetime == 0 && held == 0 {
				held = i + 1
			}
		}
		return true
	})
	return held, alone && n.visits >= 0
}
