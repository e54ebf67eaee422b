package provenance

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/writ-project/writ/internal/calendar"
	"github.com/writ-project/writ/internal/money"
	"github.com/writ-project/writ/internal/strictjson"
)

// What the user said of days, times and amounts, by the grammars of
// internal/calendar and internal/money over his own words (R10, R11).

// maxSaid bounds the turns that are read for them, in bytes: nobody types more, and
// what he pastes names days of others.
const maxSaid = 16 << 10

// said is what one turn says.
type said struct {
	days    []calendar.Reading
	amounts []money.Amount
}

// words are the user's own, with a word that means nothing for all else.
func (t *turn) words() string { return strings.ReplaceAll(t.own.text, "\x00", "|") }

// say reads a turn. What is not the user's own stands between his words like a word
// that means nothing. The numbers of days and clocks are no amounts.
func (t *turn) say() (s said) {
	if len(t.Text) > maxSaid {
		return s
	}
	words := t.words()
	s.days = calendar.Read(words, t.Time)
	s.amounts = slices.DeleteFunc(money.Read(words), func(a money.Amount) bool {
		return slices.ContainsFunc(s.days, func(d calendar.Reading) bool {
			return d.Kind != calendar.Duration && slices.ContainsFunc(d.At, func(p calendar.Piece) bool { return a.Start < p.End && p.Start < a.End })
		})
	})
	return s
}

// moment is a day or time that the user named, in the clocks of whom it was counted
// where an argument can have an offset of its own.
type moment struct {
	kind      calendar.Kind
	candidate string
	zone      int // seconds ahead of UTC, in zoned ones
	zoned     bool
}

// joinedTurns bounds how many turns are read as one text.
const joinedTurns = 4

// index files what the latest turn names, over what earlier turns named, and below that what
// it names together with those before it, as if they were one text: "book a table for Friday",
// and to the next question "at 7 pm" (R10). They are of one day, for which all of them
// count, and no act was made between them: what is said behind one is of another matter.
// What is counted from the minute in which it was said is joined to nothing.
func (l *Ledger) index() {
	last := len(l.turns) - 1
	t := &l.turns[last]
	_, zone := t.Time.Zone()
	l.zones[zone] = true
	first := last
	for first > 0 && last-first+1 < joinedTurns && l.turns[first-1].acts == t.acts && sameDay(l.turns[first-1].Time, t.Time) {
		first--
	}
	words, from := "", []int{}
	for i := first; i <= last; i++ {
		from = append(from, len(words))
		words += l.turns[i].words() + "\n"
	}
	if own := from[last-first]; len(t.said.days) > 0 && own > 0 && len(words) <= maxSaid {
		then := calendar.Read(words, l.turns[first].Time)
		l.file(slices.DeleteFunc(calendar.Read(words, t.Time), func(r calendar.Reading) bool {
			return r.At[0].Start >= own || r.At[len(r.At)-1].Start < own || !slices.ContainsFunc(then, r.Equal)
		}), l.turns[first:], from)
	}
	l.file(t.said.days, l.turns[last:], []int{0})
}

func sameDay(a, b time.Time) bool {
	const day = time.DateOnly + "Z07:00"
	return a.Format(day) == b.Format(day)
}

// file files the candidates of what turns name that begin at places of one text.
func (l *Ledger) file(days []calendar.Reading, turns []turn, from []int) {
	now, last := turns[len(turns)-1].Time, turns[len(turns)-1].Evidence
	// What several turns say together is a day and a clock.
	clock := len(turns) > 1 || slices.ContainsFunc(days, func(r calendar.Reading) bool { return r.Kind == calendar.Clock })
	_, zone := now.Zone()
	for _, kind := range []calendar.Kind{calendar.Date, calendar.Clock, calendar.Instant} {
		for _, c := range calendar.Candidates(days, kind) {
			r, _ := calendar.Holds(c, days, now.Location())
			at := make([]Quote, len(r.At))
			for i, p := range r.At {
				n := len(from) - 1
				for from[n] > p.Start {
					n--
				}
				at[i] = Quote{turns[n].Evidence, p.Start - from[n], p.End - from[n]}
			}
			l.moments[moment{kind: kind, candidate: c}] = at
			if kind == calendar.Instant {
				l.moments[moment{kind, c, zone, true}] = at
				if day, _, _ := strings.Cut(c, "T"); clock {
					l.hours[day] = last
				}
			}
		}
	}
}

// SaidTime reports whether the user named the day or time that a value is, in the
// latest turn that does, counted from when and in the zone in which he said it
// (R10). It answers with the words it rests on.
func (l *Ledger) SaidTime(v strictjson.Value) (at []Quote, ok bool) {
	text, isText := v.Text()
	if !isText || len(l.moments) == 0 {
		return nil, false
	}
	for zone := range l.zones {
		kind, candidate, zoned := calendar.Spelled(text, time.FixedZone("", zone))
		m := moment{kind: kind, candidate: candidate}
		if zoned {
			m.zone, m.zoned = zone, true
		}
		if found, is := l.moments[m]; is && (!ok || found[len(found)-1].Evidence > at[len(at)-1].Evidence) {
			at, ok = found, true
		}
	}
	return at, ok
}

// SaidDayOfEnd reports whether a value is the end of a day that the user named and of
// which he said no hour, as SaidTime does of its begin.
func (l *Ledger) SaidDayOfEnd(v strictjson.Value) (at []Quote, ok bool) {
	text, _ := v.Text()
	begin, ok := calendar.Begin(text)
	if !ok {
		return nil, false
	}
	return l.SaidTime(strictjson.StringOf(begin))
}

// SaidDayOf reports whether a value is a time of a day that the user named, where he said no
// hour with it, be it midnight or in a turn before that is read with it, nor in a turn since,
// as SaidTime does of its begin. A number in a turn since may be one: "7", "5 pm EST".
func (l *Ledger) SaidDayOf(v strictjson.Value) (at []Quote, ok bool) {
	text, _ := v.Text()
	begin, ok := calendar.Day(text)
	if !ok {
		return nil, false
	}
	if at, ok = l.SaidTime(strictjson.StringOf(begin)); !ok {
		return nil, false
	}
	last := at[len(at)-1].Evidence
	day, _, _ := strings.Cut(begin, "T")
	return at, l.hours[day] < last && !l.hourAfter(last)
}

// hourAfter reports whether a turn behind a place in the session says an hour, or what may be
// one.
func (l *Ledger) hourAfter(evidence uint32) bool {
	return slices.ContainsFunc(l.turns, func(t turn) bool {
		return t.Evidence > evidence && (slices.ContainsFunc(t.said.days, calendar.Reading.Hour) || strings.ContainsFunc(t.own.text, unicode.IsNumber))
	})
}

// SaidBeginOf answers with the one time that the user said, in the latest turn that says
// any, where a value is a later time of its day, and he said neither an end nor how long.
func (l *Ledger) SaidBeginOf(v strictjson.Value) (at []Quote, ok bool) {
	text, _ := v.Text()
	i := len(l.turns) - 1
	for i >= 0 && !slices.ContainsFunc(l.turns[i].said.days, calendar.Reading.Hour) {
		i--
	}
	if i < 0 || l.hourAfter(l.turns[i].Evidence) {
		return nil, false
	}
	r, ok := calendar.Only(l.turns[i].said.days)
	if !ok || !calendar.Later(text, r) || slices.ContainsFunc(l.turns[i:], func(t turn) bool { return calendar.Bounds(t.own.text, t.said.days) }) {
		return nil, false
	}
	for _, p := range r.At {
		at = append(at, Quote{l.turns[i].Evidence, p.Start, p.End})
	}
	return at, true
}

// SaidNear reports how a time misses what SaidTime finds: hour, that the user said it and no
// offset; day, that he named its day alone.
func (l *Ledger) SaidNear(v strictjson.Value) (hour, day bool) {
	const local = len("2006-01-02T15:04:05")
	text, _ := v.Text()
	if len(text) > local {
		_, hour = l.SaidTime(strictjson.StringOf(text[:local]))
	}
	if begin, ok := calendar.Day(text); ok {
		_, day = l.SaidTime(strictjson.StringOf(begin))
	}
	return hour, day
}

// Number is an amount that the user named.
type Number struct {
	At      Quote
	Value   string // in decimal
	Percent bool
	Places  int  // of its currency
	Bare    bool // without a currency: what it is, the word before it or the unit says (R8)
	money.Sense
}

// SaidNumbers returns the amounts of the user's latest turn, at most maxNumbers of
// them; a number that can be read in two ways stands there twice. words are those
// after which a number without a currency is the argument's, units those before which
// it is.
func (l *Ledger) SaidNumbers(words, units []string) (out []Number) {
	if len(l.turns) == 0 {
		return nil
	}
	if out = l.turns[len(l.turns)-1].numbers(words, units); len(out) > maxNumbers {
		return nil
	}
	return out
}

func (t *turn) numbers(words, units []string) (out []Number) {
	for _, a := range t.said.amounts {
		for _, v := range a.Values {
			counted := t.own.counts(a.End, units)
			if a.One && !counted {
				continue
			}
			n := Number{Quote{t.Evidence, a.Start, a.End}, v, a.Percent, money.Places(a.Currency), a.Currency == "" && !a.Percent, a.Sense}
			n.Bare = n.Bare && !counted && !t.own.called(a.Start, words)
			out = append(out, n)
		}
	}
	return out
}

// SaidAmount returns the amount of a value that the user named, in the latest turn
// that does: with a currency, after one of the words, or before one of the units. Where the
// argument is the sum, what he wants more of is no such amount, nor is ever what he computes with.
func (l *Ledger) SaidAmount(value string, words, units []string, sum bool) (Number, bool) {
	for i := len(l.turns) - 1; i >= 0; i-- {
		for _, n := range l.turns[i].numbers(words, units) {
			if n.Value == value && !n.Percent && !n.Bare && !n.Part && !(sum && n.More) {
				return n, true
			}
		}
	}
	return Number{}, false
}

// maxNumbers bounds what a computation may choose from.
const maxNumbers = 8
