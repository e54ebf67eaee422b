package provenance

import (
	"regexp"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
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

// parted is what the latest turn says of how a member begins or ends, and which do.
type parted struct {
	at    Quote
	noun  int // where the word for it ends
	ends  bool
	found []partOf
}

type partOf struct {
	collection string
	typ        Type
	mark       uint32
}

var partly = regexp.MustCompile(`(?i)(?:[ \t](?:that|which|whose[ \t](?:name|title|number|id)))?[ \t](?:(?:start(?:s|ing)?|begin(?:s|ning)?)[ \t]with|(end(?:s|ing)?)[ \t](?:with|in))[ \t]` + "[" + quotes + "]?")

// parts finds what a turn says so.
func (t *turn) parts() (out []parted) {
	for _, m := range partly.FindAllStringSubmatchIndex(t.own.text, 16) {
		for end := m[1] + 1; end <= min(len(t.own.text), m[1]+longestName); end++ {
			if !t.own.end[end] {
				continue
			}
			if word := t.own.text[m[1]:end]; isName(word) && !strings.ContainsFunc(word, blank) && !t.own.closes(span{m[1], end}) {
				out = append(out, parted{at: Quote{t.Evidence, m[1], end}, noun: m[0] + 1, ends: m[2] >= 0})
			}
			break
		}
	}
	return out
}

// part keeps which members of a whole list begin or end as the latest turn says.
func (l *Ledger) part(o *Observation, facts []judged) {
	if l.since || len(l.parts) == 0 {
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
			word := said[p.at.Start:p.at.End]
			if !p.ends && !strings.HasPrefix(text, word) || p.ends && !strings.HasSuffix(text, word) {
				continue
			}
			n := 0
			for _, of := range p.found {
				if of.collection == leaf.Rule.Collection {
					n++
				}
			}
			if k, ok := l.keyOf(leaf.Type, leaf.Value); ok && n < 2 { // of two neither is meant
				if of := (partOf{leaf.Rule.Collection, leaf.Type, k.mark()}); !slices.Contains(p.found, of) {
					p.found = append(p.found, of)
				}
			}
		}
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
		if len(found) != 1 || !ok || !Refers(own.text, noun, p.at.End) {
			continue
		}
		if k, ok := l.keyOf(found[0].typ, q.Value); ok && k.mark() == found[0].mark {
			return p.at, true
		}
	}
	return Quote{}, false
}
