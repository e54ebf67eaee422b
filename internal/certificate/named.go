package certificate

import (
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/calendar"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// ofNamed is the rule of a value of a list that the user asked for by the record it is of.
const ofNamed = "of_named"

const (
	space      = "[ \"'`´“”„‟‘’‚‛«»‹›]"
	recordWord = `(?:event|meeting|appointment|call|session|file|document|note|message|mail|email|task|list|termin|treffen|besprechung|datei|dokument|notiz|nachricht|aufgabe|liste)`
)

var (
	// ofDay may stand between a name and its day, and leading between a phrase and a name.
	ofDay   = text.Pattern(`(?i)^` + space + `*(?:` + recordWord + space + `+)*(?:on|of|from|am|vom)` + space + `*$`)
	leading = text.Pattern(`(?i)^` + space + `*(?:(?:` + recordWord + `|in|for|at|of|im|am|vom|the|this|that|these|those|my|our|an?|der|die|das|den|dem|meine?n?|unsere?n?)(?:` + space + `+|$))*$`)
	// apostrophe stands between letters, and no other mark within a quotation.
	apostrophe = text.Pattern(`\pL` + quoteMark + `\pL`)
	anyMark    = text.Pattern(quoteMark)
)

// searchedFor reports whether a place was found by a search that shows every record of
// the name which a reference quotes, on the day that is said right behind it.
func (s *Session) searchedFor(p *place, t *turn, e gate.Ref) bool {
	if !p.found {
		return false
	}
	if s.told[t.own[e.Start:e.End]] {
		return false
	}
	if p.day == "" {
		return true
	}
	if p.late {
		return false
	}
	// The latest words that name that day count, and of one turn the last.
	for i := len(s.turns) - 1; i >= 0; i-- {
		r, ok := calendar.Holds(p.day, s.turns[i].days(), s.turns[i].at.Location())
		if !ok {
			continue
		}
		if &s.turns[i] != t || r.At[0].Start < e.End {
			return false
		}
		between := t.own[e.End:r.At[0].Start]
		return len(between) <= 24 && ofDay().MatchString(between)
	}
	return false
}

// dictated reports whether a reference quotes what stands in quotation quoteMark in the
// user's latest turn.
func (s *Session) dictated(e gate.Ref) bool {
	t, text, ok := s.quote(e)
	return ok && t == &s.turns[len(s.turns)-1] && t.marked(e.Start, e.End) && !anyMark().MatchString(apostrophe().ReplaceAllString(text, ""))
}

// ofNamed checks a value of a list that the user asked for by the record it is of (R12).
// The references are the value, the record's name, and his words for the list and for
// the record.
func (s *Session) ofNamed(c *call, l *leaf) bool {
	value, name, phrase, at := l.Evidence[0], l.Evidence[1], l.Evidence[2], l.Evidence[3]
	t, words, ok := s.quote(at)
	_, called, ok2 := s.quote(phrase)
	if !ok || !ok2 || c.strict || l.answer || l.key || empty(l.value) || c.effect&(policy.Transfer|policy.Delete|policy.Auth) != 0 ||
		!s.dictated(at) || phrase.Evidence != at.Evidence || strings.ContainsFunc(words, mark) && strings.ContainsAny(words, "\"'`´“”„‟‘’‚‛«»‹›") ||
		!t.token(at.Start, at.End) || !naming(t, words) || value.Label < writ.External || name.Label < writ.External {
		return false
	}
	between := ""
	if phrase.End <= at.Start {
		between = t.own[phrase.End:at.Start]
	}
	if between == "" || len(between) > 24 || !leading().MatchString(between) || !t.token(phrase.Start, phrase.End) || !provenance.Refers(t.own, phrase.Start, phrase.End) {
		return false
	}
	return slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
		if src.Kind != policy.FromNamed || !slices.ContainsFunc(src.Phrases, func(p string) bool { return strings.EqualFold(p, called) }) {
			return false
		}
		listed, searched, dated, stands := false, false, false, false
		for _, p := range s.spelling(words) {
			n, is := p.record()
			if !is || !p.direct(n) || p.key || p.collection() != "" || p.server != src.Server || p.tool != src.Tool {
				continue
			}
			has := false
			for _, v := range s.holding(l.value, l.typ()) {
				if within(v, p, n) && c.query(l).source(src, v) {
					has = true
					stands = stands || slices.Contains(s.at(value), v) && slices.Contains(s.at(name), p)
				}
			}
			if !has {
				return false
			}
			if p.late {
				continue
			}
			if slices.ContainsFunc(s.places[p.evidence], func(g *place) bool {
				m, in := g.record()
				return in && m == n && within(g, p, n) && g.rule != nil && g.listed && g.label >= writ.System
			}) {
				listed = true
			} else if !searched && s.searchedFor(p, t, at) {
				searched, dated = true, p.day != ""
			}
		}
		if listed {
			return stands
		}
		return stands && searched && (!dated || t.datedBefore(c, phrase.Start))
	})
}

// datedBefore reports whether a call is for a day, and for none but those that stand in a
// turn before a place.
func (t *turn) datedBefore(c *call, at int) bool {
	times := slices.DeleteFunc(slices.Clone(c.leaves), func(l *leaf) bool { return l.role != policy.TimeRole || l.key || empty(l.value) })
	return len(times) > 0 && !slices.ContainsFunc(times, func(l *leaf) bool {
		text, _ := l.value.Text()
		r, holds := calendar.Holds(text[:min(len(text), 10)], t.days(), t.at.Location())
		return !holds || r.At[0].Start >= at
	})
}
