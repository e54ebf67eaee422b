package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// node is what a rule says of the words [from, to). Without a kind it says that
// these words name nothing.
type node struct {
	from, to int
	kind     Kind
	by       *language
	days     []int // of a date or a range's begin; of a span all
	clocks   []int // seconds; of a range's begin
	ends     []int // of a range: the candidates of its end, days or seconds
	at       []civil
	length   length
	part     int  // of the day, 0 for none
	hour     bool // a number that may be one
	yearless bool // a month and day
	weekly   bool // a weekday
}

// length is a duration. days that are counted with the first one (three days, but
// not three nights) end a day before too.
type length struct {
	months, days, seconds int
	counted               bool
}

// The units, in the order of their names.
const (
	second = iota + 1
	minute
	hour
	day
	night
	week
	month
	year
)

func (l length) add(n, unit int, half bool) (length, bool) {
	h := 0
	if half {
		h = 1
	}
	switch unit {
	case second:
		l.seconds += n
	case minute:
		l.seconds += 60*n + 30*h
	case hour:
		l.seconds += 3600*n + 1800*h
	case day:
		l.days, l.counted = l.days+n, true
	case night:
		l.days += n
	case week:
		l.days, l.counted = l.days+7*n, true
	case month:
		l.months += n
	case year:
		l.months += 12*n + 6*h
	}
	return l, !half || unit == minute || unit == hour || unit == year
}

// String is ISO 8601, in months, days and seconds.
func (l length) String() string { return fmt.Sprintf("P%dM%dDT%dS", l.months, l.days, l.seconds) }

type values []value

// get returns the i-th value of a name.
func (v values) get(name string, i int) (int, bool) {
	for _, x := range v {
		if x.name == name {
			if i == 0 {
				return x.n, true
			}
			i--
		}
	}
	return 0, false
}

// n is the first value of any of the names, or 0.
func (v values) n(names ...string) int {
	for _, name := range names {
		if n, ok := v.get(name, 0); ok {
			return n
		}
	}
	return 0
}

// asWritten is added to an hour that is of the half of the day in which it is
// written: with a zero before it, or of two digits before minutes.
const asWritten = 100

// hours are the candidates of an hour and some seconds.
func hours(h, after int) []int {
	at := h%asWritten*3600 + after
	if 0 < h && h < 12 || h == 12 && after < 0 {
		return []int{at, at + daySeconds/2}
	}
	return []int{at}
}

// mean does what the action of a rule says. nil: the words do not fit together.
func (p *parser) mean(r *rule, v values, nodes []*node) *node {
	today := p.now.day
	monday, sunday := p.week()
	sign := 1
	if v.n("sign") < 0 {
		sign = -1
	}
	if idiom := r.first["idiom"]; idiom != nil && v.n("unit") == day && idiom[strconv.Itoa(v.n("n"))] != nil {
		return &node{} // "in 15 days" is in two weeks
	}
	switch r.action {
	case "void":
		return &node{}
	case "same": // "why not on Friday?" asks for it, and "if not" is no denial
		n := *nodes[0]
		return &n
	case "denied":
		return p.denied(v, nodes)
	case "shift": // of a time by hours; one by days is said of the day
		if v.n("unit") < day {
			return &node{}
		}
		return nil
	case "part":
		return &node{kind: part, part: v.n("part", "daily")}
	case "clock":
		return p.clock(v, sign)
	case "midnight":
		return midnight()
	case "date":
		y, ok := v.get("year", 0)
		if ahead, is := v.get("ahead", 0); is {
			y, ok = date(today).Year()+ahead, true
		}
		return dated(p.monthDay(y, v.n("month", "mo"), v.n("day", "d", "dd", "n", "nth", "ordinal")), !ok).orVoid()
	case "either":
		days := p.monthDay(v.n("year"), v.n("b"), v.n("a"))
		return dated(distinct(append(days, p.monthDay(v.n("year"), v.n("a"), v.n("b"))...)), false).orVoid()
	case "nth":
		return p.nth(v)
	case "day":
		n := dated([]int{today + v.n("n")}, false)
		n.part = v.n("part")
		return n
	case "weekday":
		n := dated(p.weekday(v), false)
		n.weekly, n.part = true, v.n("part", "daily")
		return n
	case "on":
		n := *nodes[0]
		if n.kind == 0 {
			return &n
		}
		if n.weekly { // "this Friday, next Friday"
			return nil
		}
		n.days = slices.DeleteFunc(slices.Clone(n.days), func(d int) bool { return weekdayOf(d) != v.n("weekday")%7 })
		if len(n.days) == 0 {
			return nil
		}
		return &n
	case "counted":
		return counted(v, nodes[0], sign)
	case "beside": // the next such day of the week before or behind a day
		var days []int
		for _, d := range nodes[0].days {
			from := d + sign
			days = append(days, from+sign*((sign*(v.n("weekday")-weekdayOf(from))+14)%7))
		}
		return dated(distinct(days), false)
	case "of":
		return p.of(v)
	case "ahead":
		return p.ahead(v, sign)
	case "instant":
		return p.instant(v)
	case "week":
		from, to := monday+7*v.n("n"), sunday+7*v.n("n") // or a week of Sunday to Saturday
		return span(min(from, to), max(from, to)+6)
	case "weekend":
		saturday := monday + 5
		n := span(saturday+7*v.n("n"), saturday+7*v.n("n")+1)
		if v.n("n") == 1 && today < saturday { // the one to come, or the one after
			n.days = append([]int{saturday, saturday + 1}, n.days...)
		}
		return n
	case "month":
		return p.month(v)
	case "dates":
		return between(nodes[0], nodes[1], v.n("inside") > 0)
	case "days":
		return p.between(v)
	case "times":
		return times(*nodes[0], *nodes[1], v.n("all") > 0)
	case "duration":
		return duration(v)
	}
	return nil
}

// weekdayOf is the day of the week, Sunday is 0.
func weekdayOf(day int) int { return int(date(day).Weekday()) }

// week is where the week of today begins, on Monday and on Sunday.
func (p *parser) week() (monday, sunday int) {
	of := weekdayOf(p.now.day)
	return p.now.day - (of+6)%7, p.now.day - of
}

// thisMonth is where the month of today begins.
func (p *parser) thisMonth() int { return p.now.day - date(p.now.day).Day() + 1 }

// denied are days that are not meant, also of a stretch that holds them: of "next week, but not on
// Friday".
func (p *parser) denied(v values, nodes []*node) *node {
	n := &node{kind: denied}
	for _, of := range nodes {
		if of.kind == Clock {
			return &node{}
		}
		n.days = append(n.days, of.days...)
		for _, end := range of.ends {
			n.days = append(n.days, span(slices.Min(of.days), end).days...)
		}
	}
	for _, of := range v {
		if of.name != "weekdays" && of.name != "weekday" {
			continue
		}
		for d := p.now.day - 7*53; d < p.now.day+7*106; d++ {
			if weekdayOf(d) == of.n%7 {
				n.days = append(n.days, d)
			}
		}
	}
	return n
}

// nth is such a day of a month, or of this one and the next.
func (p *parser) nth(v values) *node {
	months := []int{addMonths(p.thisMonth(), v.n("month"))}
	if _, said := v.get("month", 0); !said {
		months = append(months, addMonths(months[0], 1))
	}
	var days []int
	for _, m := range months {
		if n, ok := real(date(m).Year(), int(date(m).Month()), v.n("day", "nth", "d")); ok {
			days = append(days, n)
		}
	}
	if w := v.n("weekday"); w > 0 {
		days = slices.DeleteFunc(days, func(d int) bool { return weekdayOf(d) != w%7 })
	}
	return dated(days, false).orVoid()
}

// counted is so long before or behind a day.
func counted(v values, from *node, sign int) *node {
	stay := v.n("stay") > 0
	l, ok := length{}.add(v.n("n"), v.n("unit"), false)
	if !ok || l.seconds != 0 || v.n("unit") == night || from.part != 0 {
		if stay {
			return nil // how long something is that begins then
		}
		return &node{}
	}
	var days []int
	for _, d := range from.days {
		if stay {
			days = append(days, d) // "100 euros a month from Friday", "book a week from Friday"
		}
		days = append(days, addMonths(d+sign*l.days, sign*l.months))
	}
	return dated(distinct(days), false)
}

// ahead is so long before or behind now.
func (p *parser) ahead(v values, sign int) *node {
	l, ok := lengthOf(v)
	if !ok || l.seconds > 0 && l.days+l.months > 0 || v.n("hours") > 0 && l.seconds == 0 {
		return &node{}
	}
	if l.seconds == 0 {
		return dated([]int{addMonths(p.now.day+sign*l.days, sign*l.months)}, false)
	}
	at := p.now.add(0, sign*l.seconds)
	return &node{kind: Instant, at: []civil{at, {at.day, at.second / 60 * 60}}}
}

// month is one that is named, of this year or the next to come, or that is so far from this one.
func (p *parser) month(v values) *node {
	first := addMonths(p.thisMonth(), v.n("n"))
	if m := v.n("month"); m > 0 {
		y := v.n("year")
		if this := date(p.now.day); y == 0 {
			if y = this.Year(); m < int(this.Month()) {
				y++
			}
		}
		first = dayOf(y, m, 1)
	}
	return span(first, addMonths(first, 1)-1)
}

// between is from one day to another of a month.
func (p *parser) between(v values) *node {
	y, ok := v.get("year", 0)
	end := func(i int) *node {
		day, _ := v.get("day", i)
		d, _ := v.get("d", i)
		return dated(p.monthDay(y, v.n("month"), cmp.Or(day, d)), !ok)
	}
	return between(end(0), end(1), v.n("inside") > 0)
}

// lengthOf adds up all units of a length.
func lengthOf(v values) (l length, ok bool) {
	for i := 0; ; i++ {
		unit, more := v.get("unit", i)
		n, _ := v.get("n", i)
		if !more {
			return l, i > 0
		} else if l, ok = l.add(n, unit, v.n("half") > 0); !ok {
			return l, false
		}
	}
}

// duration is how long something takes.
func duration(v values) *node {
	l, ok := lengthOf(v)
	if !ok || l.months+l.days+l.seconds == 0 {
		return nil
	}
	return &node{kind: Duration, length: l}
}

// clock is a time of day.
func (p *parser) clock(v values, sign int) *node {
	h, half, after := v.n("h"), v.n("half"), v.n("m")*60+v.n("s")+sign*v.n("n")*60
	clocks := hours(h, after)
	switch h %= asWritten; {
	case h == 24 && after > 0, half > 0 && (h == 0 || h > 12), after >= 3600, after <= -3600:
		return nil
	case half == 1 && h == 12 && after == 0:
		return midnight()
	case half > 0:
		clocks = []int{h%12*3600 + (half-1)*daySeconds/2 + after}
	}
	if clocks[0] < 0 {
		return nil // of the day before
	}
	return &node{kind: Clock, clocks: clocks, part: v.n("daily", "part")}
}

// midnight of a day is at its begin or at its end.
func midnight() *node { return &node{kind: Clock, clocks: []int{0, daySeconds}} }

// times is from one clock to another. Where one of them is of either half of the
// day it is the nearer one ("2 to 4pm").
func times(a, b node, all bool) *node {
	if a.hour && b.hour && !all {
		return nil // two numbers
	}
	for _, n := range []*node{&a, &b} { // "9h du matin"
		n.clocks = slices.DeleteFunc(slices.Clone(n.clocks), func(s int) bool { return !inPart(s, n.part) })
	}
	if len(a.clocks) == 0 || len(b.clocks) == 0 {
		return &node{}
	}
	apart := func(from, to int) int { return (to - from + daySeconds) % daySeconds }
	nearest := func(clocks []int, far func(int) int) []int {
		return []int{slices.MinFunc(clocks, func(x, y int) int { return far(x) - far(y) })}
	}
	if len(b.clocks) == 1 {
		a.clocks = nearest(a.clocks, func(c int) int { return apart(c, b.clocks[0]) })
	} else if len(a.clocks) == 1 {
		b.clocks = nearest(b.clocks, func(c int) int { return apart(a.clocks[0], c) })
	}
	return &node{kind: Clock, clocks: a.clocks, ends: b.clocks}
}

// monthDay is a day of a year, or without one (0) of this year and of the next
// that has it to come.
func (p *parser) monthDay(year, month, day int) (days []int) {
	years := []int{year}
	if year == 0 {
		this := date(p.now.day).Year()
		if n, ok := real(this, month, day); ok {
			days = append(days, n)
		}
		years = years[:0]
		if len(days) == 0 || days[0] < p.now.day {
			for y := this + 1; y <= this+8; y++ { // 29 February, over a century
				years = append(years, y)
			}
		}
	}
	for _, y := range years {
		if n, ok := real(y, month, day); ok {
			return append(days, n)
		}
	}
	return days
}

// of is a day of a month: the first or the last one, or of a weekday that or another. Of a
// month whose day is over it is the next such month's too.
func (p *parser) of(v values) *node {
	first, step := p.thisMonth(), 1
	ahead, relative := v.get("ahead", 0)
	year, certain := v.get("year", 0)
	switch {
	case relative:
		first = addMonths(first, ahead)
		certain = ahead > 0
	case certain:
		first = dayOf(year, v.n("month"), 1)
	default:
		first, step = dayOf(date(first).Year(), v.n("month"), 1), 12
	}
	n := max(v.n("day", "ordinal"), 1)
	var days []int
	for len(days) == 0 || !certain && days[len(days)-1] < p.now.day {
		day, after := first+7*(n-1), addMonths(first, 1)
		if v.n("last") > 0 {
			day = after - 1
			if w := v.n("weekday"); w > 0 {
				day -= (weekdayOf(day) - w%7 + 7) % 7
			}
		} else if w := v.n("weekday"); w > 0 {
			day += (w - weekdayOf(first) + 7) % 7
		}
		if n > 5 || day >= after { // there is none
			if len(days) > 0 {
				break
			}
			return &node{}
		}
		days = append(days, day)
		first = addMonths(first, step)
	}
	return dated(days, false)
}

// weekday is a day of the week (Monday is 1): the next to come or today; this
// one, of this week or the next to come; next, that to come after today or the
// one of next week; last, the one before today or of last week; or the one of a week. A week
// begins on Monday or on Sunday.
func (p *parser) weekday(v values) []int {
	n := v.n("weekday", "mornings", "afternoons", "evenings")
	today := p.now.day
	monday, sunday := p.week()
	inWeeks := func(k int) []int { return []int{monday + n - 1 + 7*k, sunday + n%7 + 7*k} }
	if week, said := v.get("week", 0); said {
		return distinct(inWeeks(week))
	}
	coming := today + (n-weekdayOf(today)+7)%7
	switch v.n("which") {
	case 1:
		return distinct([]int{monday + n - 1, coming})
	case 2:
		if coming == today {
			coming += 7
		}
		return distinct(append(inWeeks(1), coming))
	case -1:
		return distinct(append(inWeeks(-1), coming-7))
	}
	if coming == today {
		return []int{today, today + 7}
	}
	return []int{coming}
}

// between is from one day to another, or all days of it.
func between(a, b *node, inside bool) *node {
	if a == nil || b == nil {
		return nil
	}
	var begins, ends, all []int
	for _, from := range a.days {
		for _, to := range b.days {
			if from, to := yearsOf(a, b, from, to); from <= to && to < from+366 {
				begins, ends = append(begins, from), append(ends, to)
				all = append(all, span(from, to).days...)
			}
		}
	}
	switch {
	case len(begins) == 0:
		return nil
	case inside:
		return &node{kind: Span, days: distinct(all)}
	}
	return &node{kind: Date, days: distinct(begins), ends: distinct(ends)}
}

// yearsOf gives a day without a year that of the other one, or the next to it in which they are
// in their order; and of two weekdays the second comes behind the first.
func yearsOf(a, b *node, from, to int) (int, int) {
	within := func(year, of int) int {
		_, m, d := date(of).Date()
		n, _ := real(year, int(m), d)
		return n
	}
	first, last := date(from).Year(), date(to).Year()
	switch {
	case a.yearless && !b.yearless: // the year is said once
		if year := within(last, from); year <= to {
			return year, to
		}
		return within(last-1, from), to
	case b.yearless:
		if year := within(first, to); year >= from {
			return from, year
		}
		return from, within(first+1, to)
	case to < from && b.weekly:
		return from, to + 7
	}
	return from, to
}

// instant is one of ISO 8601.
func (p *parser) instant(v values) *node {
	h := v.n("h") - asWritten
	day, ok := real(v.n("year"), v.n("mo"), v.n("dd"))
	if !ok || h < 0 || h > 23 {
		return nil
	}
	at := civil{day, h*3600 + v.n("m")*60 + v.n("s")}
	if sign := v.n("zoned"); sign != 0 {
		utc := date(at.day).Add(time.Duration(at.second-sign*(v.n("oh")*3600+v.n("om")*60)) * time.Second)
		at = civilOf(utc.In(p.zone))
	}
	return &node{kind: Instant, at: []civil{at}}
}

func dated(days []int, yearless bool) *node {
	days = slices.DeleteFunc(days, func(d int) bool { return d < firstDay || d > lastDay })
	if len(days) == 0 {
		return nil
	}
	return &node{kind: Date, days: days, yearless: yearless}
}

func span(from, to int) *node {
	n := &node{kind: Span}
	for d := from; d <= to && d-from <= MaxCandidates; d++ {
		n.days = append(n.days, d)
	}
	return n
}

// orVoid is a day, or where there is none such, words that name nothing: "30 February 2027" is not
// February either.
func (n *node) orVoid() *node {
	if n == nil {
		return &node{}
	}
	return n
}
