package certificate

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/calendar"
	"github.com/writ-project/writ/internal/money"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// longestSaid bounds the turns that are read for days and amounts.
const longestSaid = 16 << 10

// days are what a turn says of days and times.
func (t *turn) days() []calendar.Reading {
	if len(t.text) > longestSaid {
		return nil
	}
	return calendar.Read(strings.ReplaceAll(t.own, "\x00", "|"), t.at)
}

// saidTime reports whether the references are the words by which the user named the day
// or time that a value is, in the zone he said it in: of one turn, or of the last four up to
// it, read as one text (R10).
func (s *Session) saidTime(l *leaf) bool {
	text, ok := l.value.Text()
	if !ok || l.role != policy.TimeRole || len(l.Evidence) == 0 || s.quoted(l) {
		return false
	}
	t, _, ok := s.quote(l.Evidence[len(l.Evidence)-1])
	if !ok {
		return false
	}
	turns, days, begins := []turn{*t}, t.days(), []int{0}
	if l.Evidence[0].Evidence != t.evidence {
		turns, days, begins = s.joined(t)
	}
	r, holds := calendar.Holds(text, days, t.at.Location())
	if begin, is := calendar.Begin(text); is && !holds && l.rule != nil && l.rule.EndsDay {
		r, holds = calendar.Holds(begin, days, t.at.Location())
	}
	if l.Rule == "user:day" {
		begin, is := calendar.Day(text)
		if holds || !is || l.rule == nil || !l.rule.AnyHour {
			return false
		}
		if r, holds = calendar.Holds(begin, days, t.at.Location()); !holds || s.hourOf(t, begin) {
			if r, holds = calendar.Only(days); !l.rule.EndsDay || l.Evidence[0].Evidence != t.evidence || !holds || !calendar.Later(text, r) || s.timedAfter(t) || s.bounded(t) {
				return false
			}
		}
	}
	if !holds || len(r.At) != len(l.Evidence) {
		return false
	}
	for i, e := range l.Evidence {
		n := slices.IndexFunc(turns, func(of turn) bool { return of.evidence == e.Evidence })
		if _, _, quoted := s.quote(e); !quoted || n < 0 || e.Start != r.At[i].Start-begins[n] || e.End != r.At[i].End-begins[n] {
			return false
		}
	}
	return true
}

// timedAfter reports whether a turn behind one says an hour, what may be one, or how long
// something takes.
func (s *Session) timedAfter(t *turn) bool {
	return slices.ContainsFunc(s.turns, func(of turn) bool {
		return of.evidence > t.evidence && (slices.ContainsFunc(of.days(), calendar.Reading.Hour) || numberForm().MatchString(of.own))
	})
}

// bounded reports whether a turn, or one behind it, says an end or how long something takes in
// words that are no time.
func (s *Session) bounded(t *turn) bool {
	return slices.ContainsFunc(s.turns, func(of turn) bool {
		return of.evidence >= t.evidence && calendar.Bounds(of.own, of.days())
	})
}

// hourOf reports whether the user said an hour of a day, whose begin is given, in a turn or
// together with those before it, or in a turn behind it any hour, what may be one, or how long
// something takes.
func (s *Session) hourOf(t *turn, begin string) bool {
	timed := func(days []calendar.Reading) bool {
		return slices.ContainsFunc(calendar.Candidates(days, calendar.Instant), func(at string) bool { return at[:10] == begin[:10] })
	}
	return s.timedAfter(t) || slices.ContainsFunc(s.turns, func(of turn) bool {
		if of.evidence < t.evidence {
			return false
		}
		own := of.days()
		_, together, _ := s.joined(&of)
		return timed(together) ||
			slices.ContainsFunc(own, func(r calendar.Reading) bool { return r.Kind == calendar.Clock }) && timed(own)
	})
}

var numberForm = text.Pattern(`\pN`)

// joined are a turn and those before it that it goes on with, what they say together and
// not alone, and where each begins in their text.
func (s *Session) joined(t *turn) (turns []turn, days []calendar.Reading, begins []int) {
	if turns = s.continued(t); len(turns) < 2 || len(t.days()) == 0 {
		return nil, nil, nil
	}
	all := turn{at: t.at}
	for _, of := range turns {
		begins = append(begins, len(all.own))
		all.own += of.own + "\n"
	}
	own := begins[len(begins)-1]
	all.text = all.own
	early := all
	early.at = turns[0].at
	then := early.days()
	return turns, slices.DeleteFunc(all.days(), func(r calendar.Reading) bool {
		late := func(p calendar.Piece) bool { return p.Start >= own }
		return !slices.ContainsFunc(r.At, late) || !slices.ContainsFunc(r.At, func(p calendar.Piece) bool { return !late(p) }) ||
			!slices.ContainsFunc(then, r.Equal) // counted from when it was said
	}), begins
}

// continued are a turn and those before it that it goes on with: at most three, of its day,
// with no act between them.
func (s *Session) continued(t *turn) []turn {
	n := slices.IndexFunc(s.turns, func(of turn) bool { return of.evidence == t.evidence })
	if n < 0 {
		return nil // it only agrees
	}
	year, month, day := t.at.Date()
	_, zone := t.at.Zone()
	first := n
	for first > max(0, n-3) {
		of := s.turns[first-1]
		y, m, d := of.at.Date()
		if _, z := of.at.Zone(); of.acts != t.acts || y != year || m != month || d != day || z != zone {
			break
		}
		first--
	}
	return s.turns[first : n+1]
}

// number is an amount that the user named.
type number struct {
	money.Amount
	bare bool // without a currency, and no word before it says what it is
}

// amount returns the amount that a reference quotes, of the user's latest turn or of
// any.
func (s *Session) amount(l *leaf, r gate.Ref, latest bool) (n number, ok bool) {
	t, _, ok := s.quote(r)
	if !ok || latest && t != &s.turns[len(s.turns)-1] || len(t.text) > longestSaid {
		return n, false
	}
	days := t.days()
	for _, a := range money.Read(strings.ReplaceAll(t.own, "\x00", "|")) {
		if a.Start != r.Start || a.End != r.End || slices.ContainsFunc(days, func(d calendar.Reading) bool {
			return d.Kind != calendar.Duration && slices.ContainsFunc(d.At, func(p calendar.Piece) bool { return a.Start < p.End && p.Start < a.End })
		}) {
			continue
		}
		bare := a.Currency == "" && !a.Percent
		if counted := t.unit(l, a.End); a.One && !counted {
			continue
		} else if bare && !counted {
			hash := !t.begins(a.Start) && a.Start > 0 && t.own[a.Start-1] == '#' && t.begins(a.Start-1)
			bare = !t.behind(a.Start, hash, l.words(), false)
		} else {
			bare = false
		}
		return number{a, bare}, true
	}
	return n, false
}

// ruleDue is the rule of an amount of which the server takes no other.
const ruleDue = "derived:due"

// due reports whether an amount may be what is due: the only one of its call, and not below
// zero.
func (c *call) due(l *leaf) bool {
	n, _, why := provenance.Canonical(provenance.Decimal, l.value)
	for _, o := range c.leaves {
		if o.Rule == ruleDue && o != l {
			return false
		}
	}
	return why == "" && n[0] != '-' && l.role == policy.Amount && !l.key && !l.answer && c.accepts(l, policy.FromDerived, "due")
}

// saidAmount reports whether an amount is one that the user named (R11).
func (s *Session) saidAmount(l *leaf) bool {
	want, _, why := provenance.Canonical(provenance.Decimal, l.value)
	if why != "" || l.role != policy.Amount || len(l.Evidence) != 1 {
		return false
	}
	n, ok := s.amount(l, l.Evidence[0], false)
	return ok && !n.Percent && !n.bare && slices.Contains(n.Values, want) && !n.Part && !(n.More && l.rule != nil && slices.Contains(l.rule.Forms, money.Sum))
}

// follows reports whether an amount follows by a form of the contract from one that the
// user named and one more: another of his, or a number of the record that it is `of`.
func (s *Session) follows(c *call, l *leaf, form money.Form) bool {
	want, _, why := provenance.Canonical(provenance.Decimal, l.value)
	if why != "" || l.role != policy.Amount || len(l.Evidence) != 2 || l.rule == nil || !slices.Contains(l.rule.Forms, form) {
		return false
	}
	percent := form == money.Percent || form == money.PercentPlus
	derive := func(a, b string, places int) bool {
		operands := []string{a, b}
		if form == money.PercentPlus {
			operands = append(operands, a)
		}
		_, ok := money.Derive(form, operands, places, want)
		return ok
	}
	if l.Evidence[0].Tool == userTool {
		a, ok1 := s.amount(l, l.Evidence[0], true)
		b, ok2 := s.amount(l, l.Evidence[1], true)
		if !ok1 || !ok2 || a.Start == b.Start || a.Percent || b.Percent != percent || a.bare && b.bare || !a.Fits(form) || !b.Fits(form) {
			return false
		}
		for _, x := range a.Values {
			for _, y := range b.Values {
				if derive(x, y, max(money.Places(a.Currency), money.Places(b.Currency))) {
					return true
				}
			}
		}
		return false
	}
	said, ok := s.amount(l, l.Evidence[1], true)
	for _, p := range s.system(l.Evidence[0]) {
		x, _, why := provenance.Canonical(provenance.Decimal, p.value)
		if why != "" || !ok || said.bare || !said.Fits(form) || said.Percent != percent || !s.vouches(c, l, p) || !s.ofRecord(c, l, p) {
			continue
		}
		for _, y := range said.Values {
			if derive(x, y, money.Places(said.Currency)) || !percent && derive(y, x, money.Places(said.Currency)) {
				return true
			}
		}
	}
	return false
}
