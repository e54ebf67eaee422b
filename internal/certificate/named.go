package certificate

import (
	"regexp"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/calendar"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// ofNamed is the rule of a value of a list that the user asked for by the record it is of.
const ofNamed = "of_named"

var (
	// plainWords may stand between a phrase, a name and its day, with a mark of either.
	plainWords = regexp.MustCompile("^[\\pL \"'`´“”„‟‘’‚‛«»‹›]{0,24}$")
	dayOf      = regexp.MustCompile(`(?i)(?:^|[^\pL'’])(?:on|of|from|am|vom)[^\pL'’]*$`)
	goesOn     = regexp.MustCompile(`(?i)(?:^|[^\pL'’])(?:and|or|to|then|und|oder|zu|dann)(?:[^\pL'’]|$)`)
)

// searchedFor reports whether a place was found by a search that shows every record of
// the name which a reference quotes, on the day that is said right behind it.
func (s *Session) searchedFor(p *place, t *turn, e gate.Ref) bool {
	if !p.found || slices.ContainsFunc(s.made, func(m made) bool {
		return provenance.Equal(provenance.Untyped, m.value, strictjson.StringOf(t.own[e.Start:e.End]))
	}) {
		return false
	}
	if p.day == "" {
		return true
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
		return len(between) <= 24 && plainWords.MatchString(between) && dayOf.MatchString(between) && !goesOn.MatchString(between)
	}
	return false
}

// dictated reports whether a reference quotes what stands in quotation marks in the
// user's latest turn.
func (s *Session) dictated(e gate.Ref) bool {
	t, _, ok := s.quote(e)
	return ok && t == &s.turns[len(s.turns)-1] && t.marked(e.Start, e.End)
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
	if between == "" || len(between) > 24 || !plainWords.MatchString(between) || !t.token(phrase.Start, phrase.End) || !provenance.Refers(t.own, phrase.Start, phrase.End) {
		return false
	}
	return slices.ContainsFunc(c.from(l), func(src policy.Source) bool {
		if src.Kind != policy.FromNamed || !slices.ContainsFunc(src.Phrases, func(p string) bool { return strings.EqualFold(p, called) }) {
			return false
		}
		listed, day, stands := false, "", false
		searched := false
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
			if slices.ContainsFunc(s.places[p.evidence], func(g *place) bool {
				m, in := g.record()
				return in && m == n && within(g, p, n) && g.rule != nil && g.listed && g.label >= writ.System
			}) {
				listed = true
			} else if !searched && s.searchedFor(p, t, at) {
				searched, day = true, p.day
			}
		}
		if listed {
			return stands
		}
		return stands && searched && (day == "" || !slices.ContainsFunc(c.leaves, func(o *leaf) bool {
			text, _ := o.value.Text()
			_, on, _ := calendar.Spelled(text, time.UTC)
			return strings.Contains(text, day) || strings.HasPrefix(on, day)
		}))
	})
}
