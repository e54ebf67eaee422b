package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/internal/strictjson"
)

// Bounds of a session's page: the records that it tells of, and the acts that are drawn.
const (
	perSession = 100
	perGraph   = 12
	perBox     = 24      // rows
	perValue   = 4       // lines
	maxTold    = 8 << 20 // bytes of the decisions that are told in full
)

type sessionPage struct {
	Session, Name  string
	Head           uint64
	First, Last    uint64
	Earlier, Later string
	Moments        []moment
	Graph          *graph
	Left           int    // acts of this part that are not drawn
	Before         string // where they are
}

// moment is one record in the timeline.
type moment struct {
	N     uint64
	Time  time.Time
	Kind  string
	Word  string
	Title string
	Text  string
	Link  string
	Ended string
	Call  *row // that it decided about, nil for another record
}

func (c *Console) session(x *request) error {
	ctx, session := x.Context(), x.PathValue("session")
	if !audit.ValidSession(session) {
		return errNoRecord
	}
	head, err := c.o.Log.Head(ctx, session)
	if err != nil {
		return err
	}
	if head == 0 {
		return errNoRecord
	}
	from := x.firstOf(head)
	p := &sessionPage{Session: session, Name: c.o.Names(ctx)[session], Head: head, First: from}
	t := telling{sessionPage: p, log: c.o.Log, said: answers{}, called: map[uint64]*story.Explained{}, at: map[uint64]int{}, skipped: from > 1}
	for it, err := range c.o.Log.Read(ctx, session, from) {
		if err == nil && it.N >= from+perSession {
			break
		}
		if err == nil {
			err = t.step(ctx, it)
		}
		if err != nil {
			return err
		}
	}
	c.fill(ctx, t.calls, t.said)
	acts := t.acts
	if p.First > 1 {
		p.Earlier = fmt.Sprintf("/s/%s?from=%d", session, max(1, int64(p.First)-perSession))
	}
	if p.Last < head {
		p.Later = fmt.Sprintf("/s/%s?from=%d", session, p.Last+1)
	}
	if len(acts) > perGraph {
		p.Left, acts = len(acts)-perGraph, acts[len(acts)-perGraph:]
		p.Before = fmt.Sprintf("/s/%s?from=%d", session, max(1, int64(acts[0].Records[0].N)-perSession))
	}
	if p.Graph = drawGraph(ctx, acts, t.seen); ctx.Err() != nil {
		return errLong
	}
	if p.Graph != nil && t.skipped {
		p.Graph.Unsearched = p.Graph.Unsearched || slices.ContainsFunc(p.Graph.Edges, func(e edge) bool { return e.Hangs })
	}
	return c.show(x, http.StatusOK, "session.html", "Session", p)
}

// firstOf is the record with which a page of a session begins that has so many: the one that is
// asked for, or so that it ends with the newest.
func (x *request) firstOf(head uint64) uint64 {
	from, at := x.place("from"), x.place("at")
	switch {
	case at >= 0: // with what stands around it
		return uint64(max(1, min(at, int64(head))-perSession/2))
	case from >= 0:
		return min(max(uint64(from), 1), head)
	case head > perSession:
		return head - perSession + 1
	}
	return 1
}

// telling is a session's page, as far as the records were read that it tells of.
type telling struct {
	*sessionPage
	log          story.Log
	said         answers
	called       map[uint64]*story.Explained // decisions, by their numbers
	at           map[uint64]int              // moments, by those of their records
	calls        []*row
	acts         []*story.Explained // that can be drawn
	seen         []story.Sight
	sought, told int  // bytes
	skipped      bool // not all that the session saw is among what was seen
}

func (t *telling) step(ctx context.Context, it audit.Item) error {
	rec, err := audit.ParseRecord(it.Leaf)
	if err != nil {
		return err
	}
	t.Last = it.N
	t.said.step(rec)
	r := audit.ProvenRecord{Item: it, Record: rec}
	if ctx.Err() != nil {
		return errLong
	}
	if rec.Kind == audit.KindDecision {
		t.decision(ctx, r)
	}
	if of := audit.DecisionOf(rec); t.called[of] != nil && t.at[of] < len(t.Moments) {
		t.Moments[t.at[of]].ended(r)
	}
	if rec.Kind == audit.KindResult {
		t.result(r)
		return nil // it is told with its call
	}
	t.at[it.N] = len(t.Moments)
	m := momentOf(r, t.called[it.N])
	if t.Moments = append(t.Moments, m); m.Call != nil {
		t.calls = append(t.calls, m.Call)
	}
	return nil
}

func (t *telling) decision(ctx context.Context, r audit.ProvenRecord) {
	for _, v := range r.Values {
		t.told += len(v.Bytes)
	}
	if t.told > maxTold { // the rest is told by its head alone
		if line, ok := story.Of(r.Record); ok {
			t.called[r.N] = &story.Explained{Line: line, Records: []audit.ProvenRecord{r}}
		}
		return
	}
	d, err := story.Recorded(ctx, t.log, r)
	if d == nil || err != nil {
		return
	}
	t.called[r.N] = d
	if d.Record != nil && (d.Status == string(writ.Rejected) && len(d.Record.Traces) > 0 || len(d.Effect) > 0 && !slices.Equal(d.Effect, []string{"read"})) { // an act, or refused
		t.acts = append(t.acts, d)
	}
}

// result keeps what a call returned, to look in it for what nothing vouches for.
func (t *telling) result(r audit.ProvenRecord) {
	b, kept := r.Value("result")
	if t.sought += len(b); t.sought > story.MaxSought {
		t.skipped = true
	} else if kept {
		tool := ""
		if d := t.called[audit.DecisionOf(r.Record)]; d != nil {
			tool = d.Tool
		}
		t.seen = append(t.seen, story.Sight{Number: story.EvidenceOf(r.Record), N: r.N, Tool: tool, Bytes: b})
	}
}

// momentOf tells of one record; d is of a decision.
func momentOf(r audit.ProvenRecord, d *story.Explained) moment {
	m := moment{N: r.N, Time: r.Record.Time, Kind: string(r.Record.Kind), Title: string(r.Record.Kind)}
	link := func(ev uint32) string { return fmt.Sprintf("/e/%s/%d", r.Record.Session, ev) }
	switch {
	case d != nil:
		m.Word, m.Text = word(&d.Line, false)
		m.Call = &row{Line: d.Line, Session: r.Record.Session, N: r.N, rec: r.Record, values: inHand{r.Item}}
	case r.Record.Kind == "turn":
		m.Title, m.Link = "What was typed", link(story.EvidenceOf(r.Record))
		if b, kept := r.Value("turn"); kept {
			m.Text = short(string(b), 400)
		}
	case story.EvidenceOf(r.Record) > 0:
		m.Link = link(story.EvidenceOf(r.Record))
	case r.Record.Kind == audit.KindOpen:
		m.Title = "The session began"
	case r.Record.Kind == audit.KindClose:
		m.Title = "The session was closed"
	case r.Record.Kind == "grown":
		m.Title, m.Link = "Allowed from now on", "/policy#kept"
		by, _ := strictjson.Of(r.Record.Data).Get("by").Text()
		kept, _ := r.Value("lines")
		m.Text = short(by, 80) + " allowed: " + cmp.Or(strings.Join(approval.Sentences(kept), "; "), "what it was is erased")
	}
	if r.Record.Kind == "approval" {
		m.Title = "A person answered"
		v := strictjson.Of(r.Record.Data)
		by, _ := v.Get("by").Text()
		m.Text = short(by, 80) + " said " + map[bool]string{true: "yes", false: "no"}[string(v.Get("yes").Raw()) == "true"]
	}
	return m
}

func (m *moment) ended(r audit.ProvenRecord) {
	e := story.Ended(r.Record)
	if m.Ended = "it ended " + short(e.Status, 20); e.Status == "unknown" && m.Word == "accepted" {
		m.Word, m.Ended = "unknown", "nobody knows whether it happened"
	}
	if e.Evidence > 0 {
		m.Ended += fmt.Sprintf("; its result is evidence ev%d", e.Evidence)
	}
}

// pieceAt leads to a piece of what was seen.
func pieceAt(session string, evidence uint32, place, words string) string {
	return fmt.Sprintf("/e/%s/%d?%s#hit", session, evidence, url.Values{"at": {place}, "has": {words}}.Encode())
}

// insideOf is the text that a value stands in which nothing holds whole.
func insideOf(session string, at *approval.Inside, literal []byte) *origin {
	return &origin{Link: pieceAt(session, at.Evidence, at.Pointer, story.Wants(literal, 0).Words), Text: short(at.Text(), 1000), Who: at.Whose()}
}

// graph is the picture: what was seen left, what was done right, and a line from each
// argument to where it came from.
type graph struct {
	Width, Height int
	Left, Right   []box
	Edges         []edge
	Unsearched    bool   // a value that hangs may stand in what was seen
	Words         string // the same for who does not see it
}

type box struct {
	X, Y, W, H        int
	Title, Sub, Class string
	Link              string
	Rows              []boxRow
	number            uint32 // of the evidence
}

// rests says what a value rests on that no evidence vouches for, by the rule of its trace.
func rests(rule string) string {
	switch rule {
	case "const":
		return "a constant of the operator"
	case "grown", "grown:call":
		return "allowed from now on"
	case "catalog":
		return "a value that the tool lists"
	case "local", "open":
		return "free text"
	case "governed":
		return "for the memory to judge"
	case "protocol":
		return "declines"
	case "derived:fresh", "invented":
		return "a new name"
	case "derived:element":
		return "called by the user's words"
	}
	if strings.HasPrefix(rule, "user") {
		return "the user's words"
	}
	return short(rule, 40)
}

// Before is where what stands beside the box ends.
func (b box) Before() int { return b.X - 10 }

// End is where what stands at its right begins.
func (b box) End() int { return b.X + b.W - 10 }

type boxRow struct {
	Y          int
	Rests      string // what it rests on, where no line says so
	Text, Full string
	Value      string
	Link       string
	Class      string
	place      string
}

type edge struct {
	Class, Path string
	X, Y        int // where it ends in the air
	Hangs       bool
}

// The measures of the picture.
const (
	leftW, rightW, rightX     = 300, 340, 580
	rowH, headH, gap, padding = 24, 30, 14, 10
)

type drawing struct {
	graph
	left map[uint32]int       // boxes by the evidence that they are of
	ends map[[2]int][]lineEnd // by act and row
	lost []lostValue
}

// lineEnd is where a line begins: a row of what was seen.
type lineEnd struct {
	evidence uint32
	row      int
	class    string
}

// lostValue is a value of an act that nothing vouches for, in which row it stands.
type lostValue struct {
	*story.Wanted
	at      [2]int
	session string
}

func drawGraph(ctx context.Context, acts []*story.Explained, seen []story.Sight) *graph {
	if len(acts) == 0 {
		return nil
	}
	g := &drawing{graph: graph{Width: rightX + rightW + padding}, left: map[uint32]int{}, ends: map[[2]int][]lineEnd{}}
	for i, d := range acts {
		g.act(ctx, i, d)
	}
	hanging := g.search(ctx, seen)
	slices.SortFunc(g.Left, func(a, b box) int { return cmp.Compare(a.number, b.number) })
	for i := range g.Left {
		g.left[g.Left[i].number] = i
	}
	g.Height = max(stack(g.Left), stack(g.Right)) + padding
	words := g.lines()
	for _, at := range hanging {
		r := &g.Right[at[0]].Rows[at[1]]
		x, y := rightX-150, r.Y+rowH/2+6 // what the next value rests on stands below it
		g.Edges = append(g.Edges, edge{Class: "hangs", Hangs: true, X: x, Y: y, Path: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, y, x+60, y, rightX-70, r.Y+rowH/2, rightX, r.Y+rowH/2)})
		words = append(words, g.Right[at[0]].Title+" "+r.Full+", which was refused, came from nothing")
	}
	g.Words = strings.Join(words, ". ")
	return &g.graph
}

// act adds what was done, each value in a row with the places that it came from.
func (g *drawing) act(ctx context.Context, i int, d *story.Explained) {
	w, _ := word(&d.Line, false)
	b := box{X: rightX, W: rightW, Title: short(d.Tool, 36), Sub: w, Class: w, Link: "/d/" + d.ID}
	session := d.Records[0].Record.Session
	values, more := arguments(ctx, d, perBox)
	for _, a := range values {
		if a.Pointer == "" {
			continue
		}
		r := boxRow{Text: tail(a.Pointer, 14), Value: short(string(a.Value), 26), Full: short(a.Pointer, 300) + " " + short(string(a.Value), 300), Link: b.Link, Class: "ok"}
		at := [2]int{i, len(b.Rows)}
		g.came(at, session, d, &a)
		switch {
		case len(a.From) > 0:
			r.Link = a.From[0].Link
		case a.Missing == "":
			r.Rests = rests(a.Rule)
		}
		if a.Missing != "" {
			r.Class = "refused"
			if len(g.ends[at]) == 0 {
				g.lost = append(g.lost, lostValue{story.Wants(a.Value, d.Records[0].N), at, session})
			}
		}
		b.Rows = append(b.Rows, r)
	}
	if more > 0 {
		b.Rows = append(b.Rows, boxRow{Text: fmt.Sprintf("and %d more", more), Full: fmt.Sprintf("%d more values", more), Link: b.Link, Class: "ok"})
	}
	g.Right = append(g.Right, b)
}

// came has lines begin where a value came from.
func (g *drawing) came(at [2]int, session string, d *story.Explained, a *argument) {
	if a.trace < 0 {
		return
	}
	for k, e := range d.Record.Traces[a.trace].Evidence[:min(len(a.From), perValue)] {
		place := cmp.Or(e.Inner, e.Pointer, "the whole")
		if e.Tool == "user" {
			place = fmt.Sprintf("bytes %d to %d", e.Start, e.End)
		}
		g.from(at, session, e.Evidence, e.Tool, place, a.From[k].Link, "ok")
		if a.Missing != "" { // it stands there, and that was not enough
			g.ends[at][k].class = "stranger"
		}
	}
}

// from has a line begin at a place in what was seen, which gets its box and row.
func (g *drawing) from(to [2]int, session string, number uint32, tool, place, link, class string) {
	i, known := g.left[number]
	if !known {
		i, g.left[number] = len(g.Left), len(g.Left)
		title := tool
		if _, name, cut := strings.Cut(tool, "/"); cut {
			title = name
		}
		switch tool {
		case "user":
			title = "what was typed"
		case "approval":
			title = "a person's answer"
		}
		g.Left = append(g.Left, box{X: padding, W: leftW, Title: short(title, 32), Sub: fmt.Sprintf("ev%d", number), Class: "seen", Link: fmt.Sprintf("/e/%s/%d", session, number), number: number})
	}
	b := &g.Left[i]
	row := func() int { return slices.IndexFunc(b.Rows, func(r boxRow) bool { return r.place == place }) }
	at := row()
	if at < 0 && len(b.Rows) >= perBox {
		place, link = "more places", b.Link
		at = row()
	}
	if at < 0 {
		at = len(b.Rows)
		b.Rows = append(b.Rows, boxRow{Text: tail(place, 38), Full: short(place, 300), Link: link, Class: class, place: place})
	}
	g.ends[to] = append(g.ends[to], lineEnd{number, at, class})
}

// search looks in what was seen for what nothing vouches for, and returns what is not there either.
func (g *drawing) search(ctx context.Context, seen []story.Sight) (hanging [][2]int) {
	var all []*story.Wanted
	for _, l := range g.lost {
		all = append(all, l.Wanted)
	}
	room := story.MaxSearch
	g.Unsearched = !story.Sought(ctx, all, seen, &room)
	for _, l := range g.lost {
		if l.In == nil {
			hanging = append(hanging, l.at)
			continue
		}
		link := pieceAt(l.session, l.In.Number, l.Place, l.Words)
		g.Right[l.at[0]].Rows[l.at[1]].Link = link
		g.from(l.at, l.session, l.In.Number, l.In.Tool, l.Place, link, "stranger")
	}
	return hanging
}

// lines draws a line to each row of what was done, and says the same in words.
func (g *drawing) lines() (words []string) {
	for i := range g.Right {
		for j := range g.Right[i].Rows {
			r := &g.Right[i].Rows[j]
			if r.Rests != "" {
				words = append(words, g.Right[i].Title+" "+r.Full+" rests on no evidence: "+r.Rests)
			}
			for _, e := range g.ends[[2]int{i, j}] {
				from := g.Left[g.left[e.evidence]]
				x1, y1, x2, y2 := from.X+from.W, from.Rows[e.row].Y+rowH/2, rightX, r.Y+rowH/2
				g.Edges = append(g.Edges, edge{Class: e.class, Path: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+110, y1, x2-110, y2, x2, y2)})
				verb := " came from "
				if e.class == "stranger" {
					verb = ", which was refused, also stands in "
				}
				words = append(words, g.Right[i].Title+" "+r.Full+verb+from.Sub+" "+from.Title+" "+from.Rows[e.row].Full)
			}
		}
	}
	return words
}

// stack puts boxes below each other, and returns where the last ends.
func stack(boxes []box) (y int) {
	y = padding
	for i := range boxes {
		b := &boxes[i]
		b.Y, b.H = y, headH+len(b.Rows)*rowH+4
		for j := range b.Rows {
			b.Rows[j].Y = y + headH + j*rowH
		}
		y += b.H + gap
	}
	return y
}

// tail is the end of a pointer, which says most.
func tail(s string, n int) string {
	s = short(s, 1000)
	if r := []rune(s); len(r) > n {
		return "…" + string(r[len(r)-n+1:])
	}
	return s
}

// maxSessions bounds the rows of a page: those that were used last.
const maxSessions = 200

// sessionsPage are the registered sessions, the one that was used last first.
type sessionsPage struct {
	Words string // that the name, the id or the principal holds
	Rows  []sessionRow
	Left  int // that are not shown
}

type sessionRow struct {
	audit.Session
	Name    string
	Used    time.Time
	Records uint64
}

func (s *sessionRow) holds(words string) bool {
	return slices.ContainsFunc([]string{s.Name, s.ID, s.Principal}, func(text string) bool { return strings.Contains(strings.ToLower(text), words) })
}

func (c *Console) sessions(x *request) error {
	ctx := x.Context()
	p, names := &sessionsPage{Words: x.asked("words")}, c.o.Names(ctx)
	words := strings.ToLower(strings.TrimSpace(p.Words))
	later := func(a, b sessionRow) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID)) }
	for s, err := range c.o.Sessions(ctx) {
		if err != nil {
			return err
		}
		one := sessionRow{Session: s, Name: names[s.ID], Used: s.LastUsed}
		if one.Used.Before(s.Created) {
			one.Used = s.Created // it was never used
		}
		if !one.holds(words) {
			continue
		}
		if p.Rows = append(p.Rows, one); len(p.Rows) == 2*maxSessions {
			slices.SortFunc(p.Rows, later)
			p.Rows, p.Left = p.Rows[:maxSessions], p.Left+maxSessions
		}
	}
	slices.SortFunc(p.Rows, later)
	if n := len(p.Rows) - maxSessions; n > 0 {
		p.Rows, p.Left = p.Rows[:maxSessions], p.Left+n
	}
	for i := range p.Rows {
		row := &p.Rows[i]
		var err error
		if row.Records, err = c.o.Log.Head(ctx, row.ID); err != nil {
			return err
		}
		err = story.Each(c.o.Log.Read(ctx, row.ID, row.Records), func(_ *audit.Item, rec *audit.Record) { // the register is told now and then
			if rec.Time.After(row.Used) {
				row.Used = rec.Time
			}
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(p.Rows, later)
	return c.show(x, http.StatusOK, "sessions.html", "Sessions", p)
}
