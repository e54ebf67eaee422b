// Package calendar reads the days and times that a user's own words name (R10),
// by a fixed grammar, and says whether an argument is one of them.
//
// Words are counted from the instant and in the zone in which they were said.
// What they can mean is the exact set of its candidates: more than one where
// people differ ("next Friday") or the words leave it open ("at 3"), none where
// it would be more than MaxCandidates. What is not in the grammar is not read.
//
// None of it is an attacker's: only the user's own words are read. What is held
// against here is a model that was confused, by others or by itself, and now
// chooses among the days and times that stand in one request. So they are
// combined only as the words combine them:
//
//   - A clock belongs to the day beside it ("Friday at 3pm", "3pm on Friday",
//     "Friday, 3pm"), the nearer of two: nothing or only words like "at" between
//     is nearer than a comma. Between two as near it belongs to neither. Several
//     clocks, or days, listed with "and", "or" or commas belong there together.
//   - A clock beside no day belongs to the only day of the whole text, however
//     often it is named. Next to two different days, or a week, it has none.
//   - A duration gives the end of what starts beside it or, being the only one,
//     of everything that starts in the text. Nothing starts in a range: there
//     both ends are said.
//   - Of "from … to …" the two ends count; of "between … and …" and of named
//     weeks, weekends and months every day, but with no clock: who says "next
//     week at 10" has not said which day. They count only where they and all
//     exact days of the text are no more than MaxCandidates together.
//   - The day of an instant counts as a day and its clock as a clock. A day
//     counts as the instant of its begin, 00:00, only where the text has no
//     clock and no hours: then it is what "on Friday" says to a tool that takes
//     instants alone. With a clock in the text, midnight would be one that nobody
//     said. The end of a day (23:59, 24:00) nobody said either.
//
// A clock without am or pm is of either half of the day if it is written with one
// digit, or as an hour alone ("at 3", "3:30"), but not "03:30", "10:00" or noon. A
// month and day without a year is this year's or the next to come. A clock that
// a zone stands behind, by its name, its offset or whose time it is, is not read; an
// ISO 8601 instant with an offset is, as what the clocks of the user's zone show then.
//
// What a day or a clock goes on with is never left out: where the grammar knows that
// more is said ("Friday of next month", "an hour before", "31 April") and not what, none
// of it is read. Nor is what stands right behind a denial ("not on Friday", "instead of
// 3pm"); a bound is none ("not before Friday").
package calendar

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/text"
)

// Kind is what a reading names.
type Kind int

const (
	Date     Kind = iota + 1 // one day: 2024-05-15
	Clock                    // a time of day: 10:00:00
	Instant                  // a time of a day: 2024-05-15T10:00:00, in the zone of the user
	Span                     // a stretch of days, each of which is a candidate
	Duration                 // how long: P0M2DT0S, two days
	part                     // of a day
	denied                   // a day that is not meant
)

// MaxCandidates is how many values a reading, and an argument, may have.
const MaxCandidates = 31

// maxReadings bounds what is read of one text; a text that says more than a few
// hundred things says nothing.
const maxReadings = 256

// Piece is the bytes [Start, End) of the words.
type Piece struct{ Start, End int }

// Reading is something that the words name. Combined readings rest on several
// pieces.
type Reading struct {
	Kind       Kind
	At         []Piece  // in the order of the text
	Candidates []string // sorted, without doubles, 1 to MaxCandidates
}

// Read returns what a run of a user's own words names, said at an instant in its
// zone, in the order of the text.
func Read(words string, at time.Time) []Reading {
	p := newParser(words, at)
	if at.Year() < 1970 || at.Year() > 9000 {
		return nil
	}
	var nodes []*node
	for i := 0; i < len(p.words); {
		i++
		if !p.words[i-1].Opens {
			continue
		}
		if n := p.longest("", i-1); n != nil {
			i, nodes = n.to, append(nodes, n)
		}
	}
	if len(nodes) > maxReadings {
		return nil
	}
	out := p.readings(nodes)
	slices.SortStableFunc(out, func(a, b Reading) int { return a.At[0].Start - b.At[0].Start })
	return out
}

// Equal reports whether two readings name the same by the same words. One that is counted from
// the minute in which it was said equals none of the same words at another time.
func (r Reading) Equal(as Reading) bool {
	return r.Kind == as.Kind && slices.Equal(r.At, as.At) && slices.Equal(r.Candidates, as.Candidates)
}

// Hour reports whether a reading says a time of a day, or how long something takes.
func (r Reading) Hour() bool { return r.Kind == Clock || r.Kind == Instant || r.Kind == Duration }

// Only returns the one time of a day among the readings of a text that says no other, nor one
// that can mean two, and not how long anything takes.
func Only(readings []Reading) (only Reading, ok bool) {
	clocks := 0
	for _, r := range readings {
		switch r.Kind {
		case Duration:
			return Reading{}, false
		case Clock:
			clocks++
		case Instant:
			if ok {
				return Reading{}, false
			}
			only, ok = r, true
		}
	}
	return only, ok && clocks <= 1 && len(only.Candidates) == 1
}

// Bounds reports whether a text says when something ends, or how long it takes, where no
// reading of it does: "until we leave", "an hour will do", "(60')". Of a text that says one
// time of a day it also reports whether that is an end: "by 18:30".
func Bounds(text string, readings []Reading) bool {
	return bounding().MatchString(text) || slices.ContainsFunc(readings, func(r Reading) bool {
		return slices.ContainsFunc(r.At, func(s Piece) bool { return endingAt().MatchString(text[:s.Start]) })
	})
}

var (
	bounding = text.Pattern(`(?i)\b(?:un)?till?\b|\bthr(?:ough|u)\b|\b(?:end(?:s|ing|et)?|finish(?:es|ing)?|bis|endet|jusqu|hasta|fino|finché|tot(?: en)?|(?:half-)?hours?|minutes?|mins?|hrs?|stunden?|minuten?|heures?|horas?|ore|ora|uur|uren|minut[io]s?|minuut)\b|(?:^|\s)até\s|\d['’′]|\dh\b|\d\s*[–—]\s*\d`)
	endingAt = text.Pattern(`(?i)\b(?:by|before|to|vor|avant|jusqu'à|jusqu'au|hasta(?: el)?|antes d(?:e|el|a|o|as)|prima (?:di|del|delle)|entro(?: le)?|fino (?:a|al|alle)|voor|uiterlijk|tot) *$`)
)

// Candidates returns the values an argument of a kind, Date, Clock or Instant,
// may have: none if they are more than MaxCandidates.
func Candidates(readings []Reading, kind Kind) []string {
	var exact, loose []string
	for _, r := range readings {
		switch {
		case r.Kind == kind:
			exact = append(exact, r.Candidates...)
		case r.Kind == Span && kind == Date:
			loose = append(loose, r.Candidates...)
		}
	}
	exact = distinct(exact)
	if all := distinct(append(loose, exact...)); len(all) <= MaxCandidates {
		return all
	} else if len(exact) <= MaxCandidates {
		return exact
	}
	return nil
}

var spellings = []struct {
	kind Kind
	form func() *regexp.Regexp
}{
	{Date, text.Pattern(`^\d{4}-\d{2}-\d{2}$`)},
	{Clock, text.Pattern(`^\d{2}:\d{2}(:\d{2})?$`)},
	{Instant, text.Pattern(`^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2})?$`)},
}

// offset is RFC 3339 to the second.
var offset = text.Pattern(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.0{1,9})?(Z|[+-]\d{2}:\d{2})$`)

// Spelled returns what an argument names as candidates are written: 2024-05-15,
// 10:00, 10:00:00, the two with T or a space between, or RFC 3339 with an offset,
// which is what the clocks of zone, the user's, show then. In another spelling it
// names nothing.
func Spelled(arg string, zone *time.Location) (kind Kind, candidate string, zoned bool) {
	for _, s := range spellings {
		if s.form().MatchString(arg) {
			kind = s.kind
		}
	}
	switch {
	case kind == Clock || kind == Instant:
		if arg = strings.Replace(arg, " ", "T", 1); strings.Count(arg, ":") == 1 {
			arg += ":00"
		}
	case kind == Date:
	case !offset().MatchString(arg) || strings.HasSuffix(arg, "-00:00"):
		return 0, "", false
	default:
		at, err := time.Parse(time.RFC3339, arg)
		if err != nil {
			return 0, "", false
		}
		return Instant, at.In(zone).Format(instant), true
	}
	return kind, arg, false
}

// Holds reports whether an argument, as Spelled reads it, is one of the candidates
// of its kind among the readings of one text, and returns the reading that has it.
func Holds(arg string, readings []Reading, zone *time.Location) (Reading, bool) {
	kind, arg, _ := Spelled(arg, zone)
	if kind == 0 || !slices.Contains(Candidates(readings, kind), arg) {
		return Reading{}, false
	}
	best := slices.IndexFunc(readings, func(r Reading) bool { return r.Kind == kind && slices.Contains(r.Candidates, arg) })
	if best < 0 {
		best = slices.IndexFunc(readings, func(r Reading) bool { return r.Kind == Span && slices.Contains(r.Candidates, arg) })
	}
	return readings[best], true
}

// Begin returns the begin, 00:00, of the day that an argument is the end of, as an
// argument spells it: of 23:59, 23:59:59, or the midnight after. An argument with an
// offset, or of another clock, is no day's end. What a text says of a day stands for its
// begin alone; that an argument is an end says whoever knows what it is for.
func Begin(arg string) (begin string, ok bool) {
	kind, at, zoned := Spelled(arg, time.UTC)
	day, clock, _ := strings.Cut(at, "T")
	if kind != Instant || zoned {
		return "", false
	}
	switch clock {
	case "23:59:00", "23:59:59":
	case "00:00:00":
		d, err := time.Parse(time.DateOnly, day)
		if err != nil {
			return "", false
		}
		day = d.AddDate(0, 0, -1).Format(time.DateOnly)
	default:
		return "", false
	}
	return day + "T00:00:00", true
}

// Day returns the begin, 00:00, of the day in which an argument is an instant, as an argument
// spells it; ok is false of what is none, or has an offset.
func Day(arg string) (begin string, ok bool) {
	_, at, zoned := Spelled(arg, time.UTC)
	_, err := time.Parse(instant, at)
	day, _, _ := strings.Cut(at, "T")
	return day + "T00:00:00", err == nil && !zoned
}

func distinct[T cmp.Ordered](all []T) []T {
	slices.Sort(all)
	return slices.Compact(all)
}

// civil is what a calendar and a clock on the wall show: the days since
// 1970-01-01 and the seconds of the day, which may be those of midnight at its
// end.
type civil struct{ day, second int }

const (
	instant    = "2006-01-02T15:04:05"
	daySeconds = 24 * 60 * 60
	firstDay   = -25567  // 1900-01-01
	lastDay    = 2932896 // 9999-12-31
)

func civilOf(t time.Time) civil {
	h, m, s := t.Clock()
	return civil{dayOf(t.Year(), int(t.Month()), t.Day()), h*3600 + m*60 + s}
}

// dayOf is the number of a day; of those a month does not have too.
func dayOf(year, month, day int) int {
	return int(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Unix() / daySeconds)
}

func date(day int) time.Time { return time.Unix(int64(day)*daySeconds, 0).UTC() }

// real returns the number of a day that its month has.
func real(year, month, day int) (n int, ok bool) {
	n = dayOf(year, month, day)
	return n, n >= firstDay && n <= lastDay && date(n).Day() == day && month <= 12
}

// addMonths keeps the day of the month, or takes the last it has.
func addMonths(day, months int) int {
	y, m, d := date(day).Date()
	first := time.Date(y, m+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return dayOf(first.Year(), int(first.Month()), min(d, last))
}

func (c civil) add(days, seconds int) civil {
	all := c.second + seconds
	c.day, c.second = c.day+days, all%daySeconds
	if c.day += all / daySeconds; c.second < 0 {
		c.day, c.second = c.day-1, c.second+daySeconds
	}
	return c
}

func clockText(second int) string {
	second %= daySeconds
	return fmt.Sprintf("%02d:%02d:%02d", second/3600, second/60%60, second%60)
}

func (c civil) text(kind Kind) string {
	c = c.add(0, 0)
	switch kind {
	case Clock:
		return clockText(c.second)
	case Instant:
		return date(c.day).Format("2006-01-02T") + clockText(c.second)
	}
	return date(c.day).Format(time.DateOnly)
}

// Later reports whether an argument is an instant, without an offset, of the day of the one
// that a reading has, and behind it.
func Later(arg string, r Reading) bool {
	kind, at, zoned := Spelled(arg, time.UTC)
	_, err := time.Parse(instant, at)
	const day = len(time.DateOnly)
	return kind == Instant && !zoned && err == nil && at[:day] == r.Candidates[0][:day] && at > r.Candidates[0]
}
