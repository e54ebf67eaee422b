package provenance

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"

	"github.com/writ-project/writ/internal/text"
)

// # Members named by how they begin or end (R9, R28)
//
// "The channel starting with Ext", "the card ending in 4321": the user's latest turn says
// a part of what a thing is called, right behind the word for such things (`words`, or the
// collection's name) and in a sentence that lets it be meant (Refers). It names the one
// member that begins or ends so, of lists that are whole, that the server makes of its own,
// and that were seen after he said it and before an act: of two that do, neither.
//
// Whoever has read this and can make a member appear can have his begin so as well, and
// then none is named. Where the user's own is not there his is the one that is called so,
// as it would be had the user said the whole name.

// partSaid is a place where the user says how what he means begins or ends.
type partSaid struct {
	noun int // where the word for it ends
	at   span
	ends bool
}

// parted is what the latest turn says so, and which members do.
type parted struct {
	partSaid
	found []partOf
}

type partOf struct {
	collection string
	typ        Type
	mark       uint32
	exact      bool // in these very letters
}

var partly = text.Pattern(`(?i)(?:[ \t](?:that|which|whose[ \t](?:name|title|number|id)))?[ \t](?:(?:start(?:s|ing)?|begin(?:s|ning)?)[ \t]with|(end(?:s|ing)?)[ \t](?:with|in))[ \t]` + "([" + quotes + "]?)")

// saidParts finds what a text says so.
func (r *reading) saidParts() (out []partSaid) {
	for _, m := range partly().FindAllStringSubmatchIndex(r.text, 16) {
		from, most := m[1], min(len(r.text), m[1]+longestName)
		if m[4] < m[5] {
			for n, c := range r.text[from:most] {
				if n > 0 && strings.ContainsRune(quotes, c) && r.end[from+n] {
					out = append(out, partSaid{m[0] + 1, span{from, from + n}, m[2] >= 0})
					break
				}
			}
			continue
		}
		for end := from + 1; end <= most; end++ {
			if r.end[end] {
				out = append(out, partSaid{m[0] + 1, span{from, end}, m[2] >= 0})
				break
			}
		}
	}
	return out
}

// partial reports whether a stretch reaches into what the user said as a part of the name
// of what one of the words is for.
func (r *reading) partial(s span, words []string) bool {
	return slices.ContainsFunc(r.parts, func(p partSaid) bool {
		return s.start < p.at.end && p.at.start < s.end && r.called(p.noun, words)
	})
}

// part keeps which members of a whole list begin or end as the latest turn says.
func (l *Ledger) part(o *Observation, facts []judged) {
	if l.stale(o) || len(l.parts) == 0 {
		return
	}
	said := l.turns[len(l.turns)-1].own.text
	for i := range o.Leaves {
		leaf := &o.Leaves[i]
		text, isText := leaf.Value.Text()
		if leaf.Rule == nil || leaf.Key || !isText || leaf.Rule.Collection == "" || facts[i].flags&listed == 0 || facts[i].label < writ.System {
			continue
		}
		for n := range l.parts {
			p := &l.parts[n]
			is, exact := p.ofName(text, said[p.at.start:p.at.end])
			if k, ok := l.keyOf(leaf.Type, leaf.Value); is && ok {
				p.add(partOf{leaf.Rule.Collection, leaf.Type, k.mark(), exact})
			}
		}
	}
}

// ofName reports whether a name begins or ends with a word as was said, and in these very letters.
func (p *partSaid) ofName(name, word string) (is, exact bool) {
	has := strings.HasPrefix
	if p.ends {
		has = strings.HasSuffix
	}
	exact = has(name, word)
	return exact || has(fold(name), fold(word)), exact
}

// add keeps a member that begins or ends so. Of two of a collection neither is meant, however
// many more there are.
func (p *parted) add(of partOf) {
	n := 0
	for _, o := range p.found {
		if o.collection == of.collection {
			n++
		}
	}
	if n < 2 && !slices.Contains(p.found, of) {
		p.found = append(p.found, of)
	}
}

// byPart reports whether the user's latest turn says how a member of a collection begins
// or ends, and no other one does.
func (l *Ledger) byPart(q Query) (Quote, bool) {
	for i := range l.parts {
		p := &l.parts[i]
		found := slices.DeleteFunc(slices.Clone(p.found), func(of partOf) bool { return of.collection != q.Collection })
		own := &l.turns[len(l.turns)-1].own
		noun, ok := own.calledAt(p.noun, q.words())
		if len(found) != 1 || !found[0].exact || !ok || !Refers(own.text, noun, p.at.end) {
			continue
		}
		if k, ok := l.keyOf(found[0].typ, q.Value); ok && k.mark() == found[0].mark {
			return Quote{l.turns[len(l.turns)-1].Evidence, p.at.start, p.at.end}, true
		}
	}
	return Quote{}, false
}
