package provenance

import "slices"

// # One-time values (R19)
//
// A code or a cursor is issued for one act. It vouches once, within its lifetime,
// for an argument that accepts its output or has its collection; and once a tool
// issued a value so, nothing else it stands in lets it vouch: neither an echo nor a
// second listing issues it anew.

// oneTime returns those of the facts of a value that issue it for one act.
func (l *Ledger) oneTime(all []uint32) []uint32 {
	return slices.DeleteFunc(slices.Clone(all), func(i uint32) bool { return l.store.metas[l.store.at(i).meta].lifetime <= 0 })
}

// usedUp reports whether an act was accepted with the value, or its time is over:
// counted from where it was issued first.
func (l *Ledger) usedUp(issued []uint32, q *Query) bool {
	return slices.ContainsFunc(issued, func(i uint32) bool {
		f := l.store.at(i)
		m := &l.store.metas[f.meta]
		age := q.Now.Sub(l.issued[f.evidence])
		k, ok := l.keyOf(m.typ, q.Value)
		return !ok || l.spent[k] || age < 0 || age >= m.lifetime
	})
}

// Spend uses up the one-time values that an act was accepted with, whatever they rest
// on there and whatever becomes of it: typed or allowed by a person it is the same code.
func (l *Ledger) Spend(args []Arg) {
	for _, a := range args {
		for _, f := range l.oneTime(l.candidates(Query{Value: a.Value, Type: a.Type})) {
			if k, ok := l.keyOf(l.store.metas[l.store.at(f).meta].typ, a.Value); ok {
				l.spent.add(k, l)
			}
		}
	}
}
