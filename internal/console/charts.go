package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/story"
)

// Friction is a tool that a person would be asked about, of what was recorded lately and by the
// policy in force, and what would end that.
type Friction struct {
	Tool  string
	Asked int
	Edge      // the field that would save most of these questions; without lines nothing would
	With  int // how often it would be asked then
}

// Bounds of the page of charts: parts of the time, and rows of each table.
const (
	maxSpans, leastSpans = 48, 12
	maxRanked            = 20
)

// span is a part of the time with what came of the calls in it.
type span struct {
	tally
	From time.Time
}

// column is a rectangle of a picture.
type column struct {
	Word       string
	X, Y, W, H int
}

// ranked is one row of a table, with its picture.
type ranked struct {
	Name, Word string
	Called     string // of a session, how it is called
	N, W       int    // how many, and in thousandths of the most
	tally      tally
	Typed      int // of evidence
	Returned   int
}

// Calls are its calls by outcome, and Bars what of them was asked or refused, as long as that is
// beside the other rows.
func (r *ranked) Calls() *tally { return &r.tally }

// Stopped is in words what its bars are, of all its calls.
func (r *ranked) Stopped() string {
	all := 0
	for _, n := range r.tally.N {
		all += n
	}
	return r.stopped().Says() + " of " + fmt.Sprint(all)
}

func (r *ranked) stopped() *tally {
	return &tally{N: map[string]int{"asked": r.tally.N["asked"], "refused": r.tally.N["refused"]}}
}

func (r *ranked) Bars() []bar {
	all := r.stopped().Bars()
	for i := range all {
		all[i].At, all[i].W = all[i].At*r.W/1000, all[i].W*r.W/1000
	}
	return all
}

type chartsPage struct {
	Filter   filter
	Records  int64
	All      tally
	Spans    []span
	Step     time.Duration
	Most     int // calls in one span
	Reasons  []*ranked
	Tools    []*ranked
	Sessions []*ranked
	More     int
	Looked   bool // for what would end the questions
	Friction []Friction
	Command  string
}

// Until is when the last span ended.
func (p *chartsPage) Until() time.Time { return p.Spans[len(p.Spans)-1].From.Add(p.Step) }

// charts shows what the newest part of the log comes to.
func (c *Console) charts(x *request) error {
	p := &chartsPage{Filter: c.filter(x), Looked: x.URL.Query().Has("ends")}
	reasons, tools, sessions := map[string]*ranked{}, map[string]*ranked{}, map[string]*ranked{}
	one := func(all map[string]*ranked, name string) *ranked {
		if all[name] == nil {
			all[name] = &ranked{Name: name, tally: tally{N: map[string]int{}}}
		}
		return all[name]
	}
	rows, records, err := c.newest(x.Context(), p.Filter, func(rec *audit.Record, _ uint64) {
		if story.EvidenceOf(rec) == 0 || !p.Filter.of(rec.Session) {
			return
		}
		switch s := one(sessions, rec.Session); rec.Kind {
		case "turn":
			s.Typed++
		case audit.KindResult:
			s.Returned++
		}
	})
	if err != nil {
		return err
	}
	p.Records, p.All = records, tally{N: map[string]int{}}
	for _, d := range rows {
		p.All.N[d.Word]++
		one(tools, d.Tool).tally.N[d.Word]++
		one(sessions, d.Session).tally.N[d.Word]++
		if d.Reason != "" {
			r := one(reasons, d.Reason)
			r.N++
			r.Word = d.Word
		}
	}
	p.over(rows)
	for _, t := range tools {
		t.N = t.tally.N["asked"] + t.tally.N["refused"]
	}
	maps.DeleteFunc(tools, func(_ string, t *ranked) bool { return t.N == 0 })
	maps.DeleteFunc(sessions, func(_ string, s *ranked) bool { return p.Filter != (filter{}) && len(s.tally.N) == 0 })
	names := c.o.Names(x.Context())
	for _, s := range sessions {
		s.Called = cmp.Or(names[s.Name], s.Name)
		s.N = s.Typed + s.Returned
	}
	p.Reasons, p.Tools, p.Sessions = p.rank(reasons), p.rank(tools), p.rank(sessions)
	if p.Looked {
		leave, err := c.health.await(x)
		if err != nil {
			return err
		}
		defer leave()
		if p.Friction, p.Command, err = c.o.Friction(x.Context()); err != nil {
			return err
		}
	}
	return c.show(x, http.StatusOK, "charts.html", "Charts", p)
}

// rank are the rows of which there are most.
func (p *chartsPage) rank(all map[string]*ranked) []*ranked {
	out := slices.SortedFunc(maps.Values(all), func(a, b *ranked) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Name, b.Name)) })
	p.More += max(0, len(out)-maxRanked)
	out = out[:min(len(out), maxRanked)]
	for _, r := range out {
		r.W = r.N * 1000 / max(1, out[0].N)
	}
	return out
}

// over puts the calls into spans of one length, from the first on.
func (p *chartsPage) over(rows []*row) {
	if len(rows) == 0 {
		return
	}
	first, last := rows[0].Time, rows[0].Time
	for _, d := range rows { // clocks are set back
		if d.Time.Before(first) {
			first = d.Time
		}
		if d.Time.After(last) {
			last = d.Time
		}
	}
	const day = 24 * time.Hour
	for _, p.Step = range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 12 * time.Hour, day, 7 * day, 30 * day, 365 * day, 100 * 365 * day} {
		if first = first.Truncate(p.Step); last.Sub(first)/p.Step < maxSpans {
			break
		}
	}
	n := int(last.Sub(first)/p.Step) + 1
	if n < leastSpans { // of few calls the picture is not one block
		first, n = first.Add(-time.Duration(leastSpans-n)*p.Step), leastSpans
	}
	for i := range n {
		p.Spans = append(p.Spans, span{tally: tally{N: map[string]int{}}, From: first.Add(time.Duration(i) * p.Step)})
	}
	for _, d := range rows {
		s := &p.Spans[d.Time.Sub(first)/p.Step]
		s.N[d.Word]++
		all := 0
		for _, n := range s.N {
			all += n
		}
		p.Most = max(p.Most, all)
	}
}

// Columns are the picture of the spans, 1000 by 160.
func (p *chartsPage) Columns() (out []column) {
	for i := range p.Spans {
		x, w, y := i*1000/len(p.Spans), 0, 160
		w = (i+1)*1000/len(p.Spans) - x - 2
		for _, word := range words() {
			n := p.Spans[i].N[word]
			if n == 0 {
				continue
			}
			h := max(1, n*160/p.Most)
			y = max(0, y-h)
			out = append(out, column{word, x, y, w, h})
		}
	}
	return out
}

// Each says how long a span is.
func (p *chartsPage) Each() string {
	switch day := 24 * time.Hour; {
	case p.Step < time.Hour:
		return fmt.Sprintf("%d min", p.Step/time.Minute)
	case p.Step < day:
		return fmt.Sprintf("%d h", p.Step/time.Hour)
	default:
		return fmt.Sprintf("%d d", p.Step/day)
	}
}

// newest are the decisions in the newest part of the log that a filter lets through, and of how
// many records that is. seen is told of each.
func (c *Console) newest(ctx context.Context, f filter, seen func(rec *audit.Record, ended uint64)) (rows []*row, records int64, err error) {
	size, err := c.size(ctx)
	if err != nil {
		return nil, 0, err
	}
	records = min(size, maxCounted)
	rows, _, err = c.between(ctx, f, ends{}, size-records, size, 0, seen)
	return rows, records, err
}
