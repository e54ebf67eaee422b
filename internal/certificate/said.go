package certificate

import (
	"slices"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// saidBy checks what somebody asked for whom the user named (R12): the one value of its
// type in all records of the one origin that the latest turn holds.
func (s *Session) saidBy(c *call, l *leaf) bool {
	if c.strict || l.answer || l.key || empty(l.value) || c.effect&(policy.Delete|policy.Auth) != 0 || l.typ() == provenance.Untyped || len(l.Evidence) != 3 || len(s.turns) == 0 {
		return false
	}
	// Who is quoted at all, before the whole turn is read for whom it names.
	t, text, ok := s.quote(l.Evidence[2])
	if !ok || t != &s.turns[len(s.turns)-1] || !slices.ContainsFunc(s.at(l.Evidence[1]), func(by *place) bool { return by.says(text) }) {
		return false
	}
	for _, src := range c.from(l) {
		if src.Kind != policy.FromSaidBy {
			continue
		}
		records, alone := s.spoke(src, l)
		if alone && slices.ContainsFunc(records, func(by *place) bool { return s.asked(l, by) }) {
			return true
		}
	}
	return false
}

// asked reports whether the references are a value, who asks for it in the same record
// and the words of the latest turn that name him.
func (s *Session) asked(l *leaf, by *place) bool {
	n, _ := by.record()
	value, origin, words := l.Evidence[0], l.Evidence[1], l.Evidence[2]
	t, text, ok := s.quote(words)
	return ok && t == &s.turns[len(s.turns)-1] && t.token(words.Start, words.End) && !t.over(words.Start, words.End) && by.says(text) &&
		origin.Label >= writ.Party && slices.Contains(s.at(origin), by) &&
		slices.ContainsFunc(s.at(value), func(p *place) bool {
			m, is := p.record()
			return is && m == n && p.direct(n) && p != by && within(p, by, n) && p.rule != nil && p.rule.Lifetime == 0 &&
				value.Label >= writ.External && p.typ == l.typ() && equal(l.value, l.typ(), p)
		})
}

// spoke returns the places that a source names and the latest turn holds: who was named,
// in each of his records. alone is false if they are two, or if something of the type
// other than the value stands in one of the records.
func (s *Session) spoke(src policy.Source, l *leaf) (of []*place, alone bool) {
	t := &s.turns[len(s.turns)-1]
	var q query
	for start := range t.own {
		if !t.begins(start) {
			continue
		}
		for end := start + 1; end <= min(len(t.own), start+512); end++ {
			words := t.own[start:end]
			if !t.ends(end) || !utf8.ValidString(words) || t.over(start, end) || !naming(t, words) {
				continue
			}
			for _, p := range s.spelling(words) {
				if p.rule == nil || !q.source(src, p) || slices.Contains(of, p) {
					continue
				}
				if of = append(of, p); !provenance.Equal(provenance.Untyped, p.value, of[0].value) {
					return nil, false
				}
				n, is := p.record()
				if !is || slices.ContainsFunc(s.places[p.evidence], func(o *place) bool {
					return o != p && within(o, p, n) && o.typ == l.typ() && !provenance.Equal(l.typ(), o.value, l.value)
				}) {
					return nil, false
				}
			}
		}
	}
	return of, len(of) > 0
}

// spelling are the places whose value words are, as a text or as a number.
func (s *Session) spelling(words string) []*place {
	v := strictjson.StringOf(words)
	out := s.holding(v, provenance.Untyped)
	if n, _, why := provenance.Canonical(provenance.Decimal, v); why == "" {
		out = slices.Concat(out, s.holding(strictjson.Of([]byte(n)), provenance.Untyped))
	}
	return out
}

// says reports whether words are what stands at a place.
func (p *place) says(words string) bool {
	if text, ok := p.value.Text(); ok {
		return text == words
	}
	return provenance.Equal(provenance.Decimal, p.value, strictjson.StringOf(words))
}
