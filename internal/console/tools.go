package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/story"
)

// Server is a server of the gateway, as it is in force. What it wrote is a stranger's.
type Server struct {
	Name    string
	Reached string // how, without what may be a secret
	Fault   string // why it is not there, "" where it is
	Notes   []string
	Tools   []Tool
}

// Tool is a tool of a server, with what the policy says of it.
type Tool struct {
	ID     string // server/name
	Public string // what a client calls it
	State  string // open, closed or refused
	Why    string // it is not open, and what opens it
	Effect []string
	Pin    string // "no contract", unpinned, changed or pinned; of Writ's own tools "its own"
}

// Contract is all there is to say of one tool.
type Contract struct {
	Tool
	Line      int      // where it stands in the policy in force, 0 for nowhere
	Approved  string   // pin
	Approve   []string // the lines of a terminal that pin it as it is now, and put that in force
	Now       string
	Arguments []Rule
	Unnamed   []string // arguments that it has no word of
	Outputs   []Rule
	More      int // values of one argument that have lines of their own
	// Of says of which definition one knows how this one differs, and Unlike how: of the one that
	// was approved, or that a contract was made of that ships for nearly this.
	Of         string
	Unlike     []string
	Lines      []cli.DiffLine // of both, where it is known how the approved one was
	Definition []byte
	Drafted    []byte // lines to begin one with, where there is none
}

// Rule is what a contract says of one argument or output: where it is, what it decides or
// how far it is trusted, and what it accepts or is.
type Rule struct {
	At, Is string
	Says   []string
	Line   int // where it stands in the policy in force, 0 for nowhere
}

// Edge is a field that arguments of a tool were taken from in recorded calls and that does not
// vouch for them by the policy, in lines as writ learn says it; the lines of policy by which it
// would, exactly as they are kept; and what has to be true for that, which a person alone knows.
type Edge struct {
	Says []string
	Keep []string
	Asks []string
}

// Learned is what recorded calls of a tool say of its arguments.
type Learned struct {
	Edges []Edge
	Learn string // the command that asks, and keeps what a person says; "" where there is no file
	// Redefined are calls under another definition than the one that is approved: of them
	// nothing is learned.
	Redefined int
}

// Bounds on what a page tells of servers, whatever they list: rows of one server and of all,
// lines of one thing; and on the records in which calls are counted.
const (
	maxOfServer = 200
	maxTools    = 500
	maxRules    = 200
	maxNotes    = 20
	maxEdges    = 10
	maxUnlike   = 5000
	maxCounted  = 8 * atOnce
)

// tally is what came of the calls of one tool.
type tally struct {
	N       map[string]int // by word
	reasons map[string]int
}

func (t *tally) all() (n int) {
	for _, of := range t.N {
		n += of
	}
	return n
}

// bar is a part of a picture, in thousandths of it.
type bar struct {
	Word     string
	N, At, W int
}

// Bars are the parts of a tally that there are, side by side.
func (t *tally) Bars() (out []bar) {
	if t == nil {
		return nil
	}
	all, before := t.all(), 0
	for _, w := range words() {
		if n := t.N[w]; n > 0 {
			at := before * 1000 / all
			before += n
			out = append(out, bar{w, n, at, before*1000/all - at})
		}
	}
	return out
}

// Says is the picture in words.
func (t *tally) Says() string {
	var parts []string
	for _, b := range t.Bars() {
		parts = append(parts, fmt.Sprint(b.N, " ", b.Word))
	}
	return strings.Join(parts, ", ")
}

// A counted reason is why so many calls did not pass.
type countedReason struct {
	Reason string
	N      int
}

// Reasons are why its calls did not pass, the most frequent first.
func (t *tally) Reasons() (out []countedReason) {
	if t == nil {
		return nil
	}
	for _, r := range slices.Sorted(maps.Keys(t.reasons)) {
		out = append(out, countedReason{r, t.reasons[r]})
	}
	slices.SortStableFunc(out, func(a, b countedReason) int { return b.N - a.N })
	return out[:min(len(out), maxNotes)]
}

// Most is the first of them.
func (t *tally) Most() string {
	if all := t.Reasons(); len(all) > 0 {
		return all[0].Reason
	}
	return ""
}

func words() []string { return []string{"accepted", "asked", "refused", "unknown"} }

// counted says what came of the calls of each tool in the newest part of the log, and of how
// many records that is.
func (c *Console) counted(ctx context.Context) (by map[string]*tally, records int64, err error) {
	rows, records, err := c.newest(ctx, filter{}, nil)
	by = map[string]*tally{}
	for _, d := range rows {
		t := by[d.Tool]
		if t == nil {
			t = &tally{map[string]int{}, map[string]int{}}
			by[d.Tool] = t
		}
		if t.N[d.Word]++; d.Reason != "" {
			t.reasons[d.Reason]++
		}
	}
	return by, records, err
}

// toolsPage are the servers with those of their tools that were asked for.
type toolsPage struct {
	Named, State string
	States       []string
	Counted      int64
	Servers      []shownServer
}

type shownServer struct {
	*Server
	Tools []shownTool
	Notes []string
	All   int
	Open  int
	// Changed are tools that closed since their definition is another.
	Changed []string
	Left    int // that were asked for, and have no room
	Quiet   int // notes that have none
}

type shownTool struct {
	*Tool
	Calls *tally
}

var errNoTool = &refusal{http.StatusNotFound, "No such tool", "No server of this gateway lists a tool of that name now."}

// tools shows the servers with their tools, or one of these.
func (c *Console) tools(x *request) error {
	if x.asked("tool") != "" {
		return c.contract(x)
	}
	servers, err := c.o.Servers(x.Context())
	if err != nil {
		return err
	}
	by, records, err := c.counted(x.Context())
	if err != nil {
		return err
	}
	p := toolsPage{Named: strings.TrimSpace(x.asked("name")), State: x.asked("state"), States: []string{"open", "closed", "refused"}, Counted: records}
	room := maxTools
	for i := range servers {
		s := shownServer{Server: &servers[i], All: len(servers[i].Tools)}
		s.Notes = s.Server.Notes[:min(len(s.Server.Notes), maxNotes)]
		s.Quiet = len(s.Server.Notes) - len(s.Notes)
		for j := range servers[i].Tools {
			t := &servers[i].Tools[j]
			if t.State == "open" {
				s.Open++
			} else if t.Pin == "changed" && len(s.Changed) < maxNotes {
				s.Changed = append(s.Changed, t.ID)
			}
			switch {
			case p.State != "" && p.State != t.State || !strings.Contains(strings.ToLower(t.ID), strings.ToLower(p.Named)):
			case len(s.Tools) == maxOfServer || room == 0:
				s.Left++
			default:
				s.Tools = append(s.Tools, shownTool{t, by[t.ID]})
				room--
			}
		}
		p.Servers = append(p.Servers, s)
	}
	return c.show(x, http.StatusOK, "tools.html", "Servers and tools", p)
}

type contractPage struct {
	*Contract
	Calls   *tally
	Counted int64
	Cut     bool // of the definition
	// Lines are those of the difference, and MoreLines are others, which have no room.
	Lines     []diffLine
	MoreLines int
	Left      int      // arguments and outputs that have no room
	Learned   *Learned // nil where nobody asked
	Others    int      // edges that have no room
}

func (c *Console) contract(x *request) error {
	t, err := c.o.Contract(x.Context(), x.asked("tool"))
	if err != nil {
		return err
	}
	if t == nil {
		return errNoTool
	}
	by, records, err := c.counted(x.Context())
	if err != nil {
		return err
	}
	p := contractPage{Contract: t, Calls: by[t.ID], Counted: records}
	t.Definition, p.Cut = upTo(t.Definition)
	for _, rules := range []*[]Rule{&t.Arguments, &t.Outputs} {
		p.Left += max(0, len(*rules)-maxRules)
		*rules = (*rules)[:min(len(*rules), maxRules)]
	}
	for _, lines := range []*[]string{&t.Unlike, &t.Unnamed} {
		if n := len(*lines) - maxNotes; n > 0 {
			*lines = append((*lines)[:maxNotes:maxNotes], fmt.Sprintf("… and %d more", n))
		}
	}
	for i, room := 0, maxUnlike; i < len(t.Unlike); i++ { // what changed is told whole, as long as it is not too much
		t.Unlike[i] = clip(t.Unlike[i], max(room, 100))
		room -= len(t.Unlike[i])
	}
	t.Drafted, _ = upTo(t.Drafted)
	p.Lines, p.MoreLines = someLines(t.Lines)
	if x.URL.Query().Has("learned") {
		if p.Learned, err = c.o.Learned(x.Context(), t.ID); err != nil {
			return err
		}
		p.Others = max(0, len(p.Learned.Edges)-maxEdges)
		p.Learned.Edges = p.Learned.Edges[:len(p.Learned.Edges)-p.Others]
	}
	return c.show(x, http.StatusOK, "tool.html", short(t.ID, 100), p)
}

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
	return r.stopped().Says() + " of " + fmt.Sprint(r.tally.all())
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
		err := c.health.during(func(*request) (err error) {
			p.Friction, p.Command, err = c.o.Friction(x.Context())
			return err
		})(x)
		if err != nil {
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
		p.Most = max(p.Most, s.all())
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
