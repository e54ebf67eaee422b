package memory

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-project/writ/eval/measure"
)

// Revision is what the reads of one system came to while values changed. A read is
// current where the first value it gives as established is the one that is so then,
// stale where it is another, and flagged where there is none; of the three it is
// always one.
type Revision struct {
	System
	Chains int `json:"chains"`
	// Slot asks for a subject's predicate, Words asks a question in words.
	Slot  Reads `json:"slot"`
	Words Reads `json:"words"`
	// Aimed are the reads of Slot where each correction has the level of what it
	// corrects; Spelled those after a correction in another spelling.
	Aimed   Reads `json:"aimed"`
	Spelled Reads `json:"other_spelling"`
	// Channels and Gaps are Slot by who states the values, and by how long one
	// was so before it was corrected.
	Channels []Part `json:"channels"`
	Gaps     []Part `json:"gaps"`
	// History are the chains of Aimed whose values are listed in their order, nil
	// where no list is kept; Kept those whose last value is current a year later.
	History *Share `json:"history"`
	Kept    Share  `json:"kept_a_year"`
	// Refused are notes that were.
	Refused int `json:"refused"`
}

// Reads are what reads came to.
type Reads struct {
	Reads   int   `json:"reads"`
	Current Share `json:"current"`
	Stale   Share `json:"stale"`
	Flagged Share `json:"flagged"`
	// Beside are the current ones that gave an older value as established too.
	Beside Share `json:"stale_beside"`
}

// Part is a part of the reads.
type Part struct {
	Name string `json:"name"`
	Reads
}

// Long is what chains of many updates came to, one entry for each update.
type Long struct {
	System  string    `json:"system"`
	Chains  int       `json:"chains"`
	Current []float64 `json:"current"`
	Stale   []float64 `json:"stale"`
	Flagged []float64 `json:"flagged"`
}

const (
	current = iota
	stale
	flagged
	beside
)

// tally counts reads by what they came to.
type tally [4]int

func (t *tally) add(how int, besides bool) {
	t[how]++
	if besides {
		t[beside]++
	}
}

func (t *tally) reads() Reads {
	n := t[current] + t[stale] + t[flagged]
	return Reads{n, share(t[current], n), share(t[stale], n), share(t[flagged], n), share(t[beside], n)}
}

// says reports whether an item answers with one of the values: a memory may answer
// with a value, with the words it stands in, or with the part of it that the rest of
// a quote does not say.
func (i *Item) says(values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool {
		in := strings.Contains(i.Text, v)
		return strings.Contains(i.Value, v) || in && (i.Value == "" || strings.Contains(v, i.Value))
	})
}

// judge says what the items a read gave came to, where means are the ways to write
// what is so, and others the values of the chain that are not. An answer with none
// of them is another value where the slot was asked for, and of something else
// where a question was.
func judge(items []Item, means, others []string, slot bool) (how int, besides bool) {
	how = flagged
	for _, i := range items {
		right, wrong := i.says(means), i.says(others)
		switch {
		case i.Trust != Established || slot && i.Value == "":
		case right && !wrong && how == flagged:
			how = current
		case right && !wrong, !right && !wrong && !slot:
		case how == flagged:
			how = stale
		case how == current:
			besides = true
		}
	}
	return how, besides
}

// untilRead is when a read comes after an update.
const untilRead = 20 * time.Minute

// played is what chains came to in one system.
type played struct {
	chains                      int
	slot, words, aimed, spelled tally
	channels                    [6]tally
	gaps                        [3]tally
	each                        [longUpdates]tally // by update, of long chains
	history, kept, aims         int                // of those that are aimed at; history below 0 for no list
	refused                     int
}

// play tells a memory the values of a chain, one after the other, and reads after
// each.
func (c *chain) play(m Memory, sum *played) {
	sum.chains++
	var so [][]string // each as it may be written
	var values []string
	heard := 0
	for k := range c.updates {
		u := &c.updates[k]
		values = append(values, u.means...)
		others := slices.DeleteFunc(slices.Clone(values), func(v string) bool {
			return slices.ContainsFunc(u.means, func(w string) bool { return strings.Contains(w, v) || strings.Contains(v, w) })
		})
		so = append(so, u.means)
		for _, e := range u.said {
			heard++
			e.ID = "ev" + strconv.Itoa(heard)
			m.At(e.At)
			m.Hear(e)
			if m.Remember(u.note).Refused {
				sum.refused++
			}
		}
		m.At(u.said[0].At.Add(untilRead))
		how, also := judge(m.Current(c.subject, c.predicate), u.means, others, true)
		sum.each[k].add(how, also)
		sum.slot.add(how, also)
		sum.channels[c.channel].add(how, also)
		if c.channel < aimed {
			sum.aimed.add(how, also)
		}
		if u.gap >= 0 {
			sum.gaps[u.gap].add(how, also)
		}
		if len(u.means) > 1 {
			sum.spelled.add(how, also)
		}
		sum.words.add(judge(m.Recall(c.asked()), u.means, others, false))
	}
	if c.channel >= aimed {
		return
	}
	sum.aims++
	last := c.updates[len(c.updates)-1]
	m.At(last.said[0].At.AddDate(1, 0, 0))
	if how, _ := judge(m.Current(c.subject, c.predicate), last.means, nil, true); how == current {
		sum.kept++
	}
	if h, ok := m.History(c.subject, c.predicate); !ok {
		sum.history--
	} else if slices.EqualFunc(h, so, func(v string, means []string) bool { return (&Item{Value: v}).says(means) }) {
		sum.history++
	}
}

// revision is what they came to, for the report.
func (s System) revision(of *played) Revision {
	r := Revision{System: s, Chains: of.chains, Slot: of.slot.reads(), Words: of.words.reads(), Aimed: of.aimed.reads(), Spelled: of.spelled.reads(), Refused: of.refused}
	for i, c := range channels {
		r.Channels = append(r.Channels, Part{c.name, of.channels[i].reads()})
	}
	for i, g := range gaps {
		r.Gaps = append(r.Gaps, Part{g.name, of.gaps[i].reads()})
	}
	if r.Kept = share(of.kept, of.aims); of.history >= 0 {
		h := share(of.history, of.aims)
		r.History = &h
	}
	return r
}

// long is the same by update.
func (s System) long(of *played) Long {
	l := Long{System: s.ID, Chains: of.chains}
	for _, t := range of.each {
		l.Current = append(l.Current, measure.Quotient(t[current], of.chains))
		l.Stale = append(l.Stale, measure.Quotient(t[stale], of.chains))
		l.Flagged = append(l.Flagged, measure.Quotient(t[flagged], of.chains))
	}
	return l
}
