package calendar

import (
	"slices"
	"sync"

	"github.com/writ-project/writ/internal/numeral"
)

// How what stands between two readings joins them.
const (
	apart  = iota
	comma  // nothing but a comma, and words that link
	beside // nothing, or words that link: "Friday at 3pm"
)

// joiner combines what stands in one text.
type joiner struct {
	*parser
	nodes   []*node // in their order
	counted []*node // those of them that have a day
	lengths []*node // durations
	passed  []bool  // words of parts of days and of durations, which stand between others as if not there
	out     []Reading
}

// group is readings of one kind that "and", "or" or commas list.
type group []*node

func (p *parser) readings(nodes []*node) []Reading {
	j := &joiner{parser: p, passed: make([]bool, len(p.words))}
	j.take(nodes)
	// Where no hour is said, a day may stand for its begin: not even one that is not read.
	clockless := !slices.ContainsFunc(nodes, func(n *node) bool {
		return n.kind == Clock || n.kind == Instant || n.kind == 0 || n.length.seconds > 0
	})
	groups := j.groups()
	for i, clocks := range groups {
		if clocks[0].kind == Clock && !j.combine(j.daysOf(groups, i), clocks) {
			return nil
		}
	}
	for _, n := range j.nodes {
		j.alone(n, clockless)
		for _, l := range j.lasting(n) {
			j.end(n, nil, l)
		}
	}
	if len(j.out) > 8*maxReadings {
		return nil
	}
	return j.out
}

// take sorts what stands in the text, files how long things last, and tells the others of the
// part of the day that they are of.
func (j *joiner) take(nodes []*node) {
	var parts []*node
	var without []int
	for _, n := range nodes {
		switch n.kind {
		case denied:
			without = append(without, n.days...)
		case part:
			parts = append(parts, n)
			j.pass(n)
		case Duration:
			j.pass(n)
			j.lengths = append(j.lengths, n)
			j.add(Duration, []string{n.length.String()}, n)
		case Date, Span, Instant, Clock:
			own := *n
			j.nodes = append(j.nodes, &own)
			if n.kind != Clock {
				j.counted = append(j.counted, &own)
			}
		}
	}
	for _, n := range parts {
		j.narrow(n)
	}
	without = distinct(without)
	for _, n := range j.nodes {
		if n.kind == Span && len(n.days) <= MaxCandidates {
			n.days = slices.DeleteFunc(slices.Clone(n.days), func(d int) bool { return slices.Contains(without, d) })
		}
	}
}

func (j *joiner) pass(n *node) {
	for i := n.from; i < n.to; i++ {
		j.passed[i] = true
	}
}

// combine files listed clocks of listed days, unless the text says more than anybody does.
func (j *joiner) combine(days, clocks group) bool {
	for _, c := range clocks {
		for _, d := range days {
			if len(j.out) > maxReadings {
				return false
			}
			if c.part == 0 {
				c.part = d.part
			}
			j.instants(d, c)
			for _, l := range j.lasting(d, c) {
				j.end(d, c, l)
			}
		}
	}
	return true
}

// add files a reading, if it has candidates and not too many.
func (j *joiner) add(kind Kind, candidates []string, of ...*node) {
	r := Reading{Kind: kind, Candidates: distinct(candidates)}
	if len(r.Candidates) == 0 || len(r.Candidates) > MaxCandidates {
		return
	}
	for _, n := range of {
		if n != nil {
			r.At = append(r.At, Piece{j.words[n.from].Start, j.words[n.to-1].End})
		}
	}
	slices.SortFunc(r.At, func(a, b Piece) int { return a.Start - b.Start })
	j.out = append(j.out, r)
}

// between says how the words from one reading to the next join them, and
// whether they list them.
func (j *joiner) between(a, b *node) (strength int, listed bool) {
	if a.from > b.from {
		a, b = b, a
	}
	strength = beside
	links := 0
	for i := a.to; i <= b.from; i++ {
		switch w := j.words[i]; {
		case w.Gap == numeral.Line && i > 0:
			return apart, false
		case i == b.from || j.passed[i]:
		case w.Fold == ",":
			strength, listed = min(strength, comma), true
		case j.joins("list", "link", w.Fold, a, b):
			strength, listed = apart, true
		case j.joins("link", "list", w.Fold, a, b) && links < 4:
			links++
		default:
			return apart, false
		}
	}
	return strength, listed
}

// narrow tells the reading beside it that it is of a part of the day: the one
// before, or else the one behind.
func (j *joiner) narrow(n *node) {
	i, _ := slices.BinarySearchFunc(j.nodes, n.from, func(n *node, at int) int { return n.from - at })
	for _, k := range []int{i - 1, i} {
		if k < 0 || k == len(j.nodes) {
			continue
		}
		if s, _ := j.between(j.nodes[k], n); s == beside && j.nodes[k].part == 0 {
			j.nodes[k].part = n.part
			return
		}
	}
}

// parts of the day, in the order of their names: from and up to an hour, over midnight too. The
// last is the Spanish and Portuguese "tarde".
var partHours = [][2]int{{0, 24}, {0, 12}, {12, 18}, {17, 24}, {18, 24}, {20, 6}, {12, 22}}

func inPart(second, part int) bool {
	h := partHours[part]
	if h[0] > h[1] {
		return second >= h[0]*3600 || second < h[1]*3600
	}
	return second >= h[0]*3600 && (second < h[1]*3600 || second == h[1]*3600 && h[1] == 24)
}

// alone files what a reading says by itself.
func (j *joiner) alone(n *node, clockless bool) {
	var days, midnights, clocks, instants []string
	for _, d := range slices.Concat(n.days, n.ends) {
		if n.kind != Clock {
			days = append(days, civil{d, 0}.text(Date))
			midnights = append(midnights, civil{d, 0}.text(Instant))
		} else if inPart(d, n.part) {
			clocks = append(clocks, clockText(d))
		}
	}
	for _, c := range n.clocks {
		if inPart(c, n.part) {
			clocks = append(clocks, clockText(c))
		}
	}
	for _, at := range n.at {
		instants = append(instants, at.text(Instant))
		days = append(days, at.text(Date))
		clocks = append(clocks, at.text(Clock))
	}
	if n.kind == Span {
		j.add(Span, days, n)
		return
	}
	j.add(Instant, instants, n)
	j.add(Date, days, n)
	j.add(Clock, clocks, n)
	if clockless && n.part == 0 {
		j.add(Instant, midnights, n)
	}
}

// groups are the readings, listed ones together.
func (j *joiner) groups() (out []group) {
	for i, n := range j.nodes {
		if i > 0 && n.kind == j.nodes[i-1].kind && (n.kind == Date || n.kind == Clock) {
			if _, listed := j.between(j.nodes[i-1], n); listed {
				out[len(out)-1] = append(out[len(out)-1], n)
				continue
			}
		}
		out = append(out, group{n})
	}
	return out
}

// daysOf returns the days that the clocks of a group stand beside, or else the only one.
func (j *joiner) daysOf(groups []group, i int) group {
	left, right := apart, apart
	if i > 0 && groups[i-1][0].kind == Date {
		left, _ = j.between(groups[i-1][len(groups[i-1])-1], groups[i][0])
	}
	if i+1 < len(groups) && groups[i+1][0].kind == Date {
		right, _ = j.between(groups[i][len(groups[i])-1], groups[i+1][0])
	}
	switch {
	case left > right:
		return groups[i-1]
	case right > left:
		return groups[i+1]
	case onlyDay(j.counted):
		return group{j.counted[0]}
	}
	return nil
}

// onlyDay reports whether all that has a day has the same one.
func onlyDay(counted []*node) bool {
	for _, n := range counted {
		if n.kind != Date || len(n.ends) > 0 || !slices.Equal(n.days, counted[0].days) || n.part != counted[0].part {
			return false
		}
	}
	return len(counted) > 0
}

// instants files the clocks of a day.
func (j *joiner) instants(d, c *node) {
	var out []string
	for _, day := range slices.Concat(d.days, d.ends) {
		for _, at := range starts(day, d, c) {
			out = append(out, at.text(Instant))
		}
		for _, s := range c.ends {
			next := 0
			if s <= slices.Min(c.clocks) { // over midnight
				next = 1
			}
			if inPart(s, c.part) {
				out = append(out, civil{day + next, s}.text(Instant))
			}
		}
	}
	j.add(Instant, out, d, c)
}

// starts are the instants at which the clocks of a day begin something.
func starts(day int, d, c *node) (out []civil) {
	for _, s := range c.clocks {
		if inPart(s, c.part) && inPart(s, d.part) {
			out = append(out, civil{day, s})
		}
	}
	return out
}

// lasting are the durations of what begins at readings: the only one of the
// text, or what stands beside one of them.
func (j *joiner) lasting(of ...*node) []*node {
	lengths := j.lengths
	if len(lengths) == 0 || slices.ContainsFunc(of, func(n *node) bool { return len(n.ends) > 0 || n.kind == Span }) {
		return nil
	}
	if !slices.ContainsFunc(lengths, func(l *node) bool { return l.length != lengths[0].length }) {
		return lengths[:1]
	}
	var out []*node
	for _, l := range lengths {
		for _, n := range of {
			if s, _ := j.between(n, l); s > apart && !slices.Contains(out, l) {
				out = append(out, l)
			}
		}
	}
	return out
}

// end files when that ends which begins on a day, at a clock, or at the clock of
// a day, and lasts so long.
func (j *joiner) end(d, c, l *node) {
	long := l.length
	kind := Instant
	var begins []civil
	switch {
	case c != nil:
		for _, day := range d.days {
			begins = append(begins, starts(day, d, c)...)
		}
	case d.kind == Instant:
		begins = d.at
	case d.kind == Clock && long.days+long.months == 0:
		kind = Clock
		for _, s := range d.clocks {
			if inPart(s, d.part) {
				begins = append(begins, civil{0, s})
			}
		}
	case d.kind == Date && long.seconds == 0:
		kind = Date
		for _, day := range d.days {
			begins = append(begins, civil{day, 0})
		}
	}
	var out []string
	for _, at := range begins {
		end := civil{addMonths(at.day, long.months), at.second}.add(long.days, long.seconds)
		out = append(out, end.text(kind))
		if kind == Date && long.counted {
			out = append(out, end.add(-1, 0).text(kind))
		}
	}
	j.add(kind, out, d, c, l)
}

// joins reports whether a word links, or lists, two readings. One that does either in different
// languages, like "of", does what it does in a language of theirs.
func (j *joiner) joins(kind, other, word string, a, b *node) bool {
	words := linking()
	return words[kind][word] && (!words[other][word] || a.by.has(kind, word) || b.by.has(kind, word))
}

func (l *language) has(set, word string) bool { return l != nil && l.first[set][word] != nil }

// linking are the words of all languages that link and list readings.
var linking = sync.OnceValue(func() map[string]map[string]bool {
	out := map[string]map[string]bool{"link": {}, "list": {}}
	for _, l := range rules().languages {
		for kind, words := range out {
			for _, n := range l.names[kind] {
				words[n.words[0]] = true
			}
		}
	}
	return out
})
