package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/internal/strictjson"
)

// Bounds of a list of decisions: what a page shows, how many records are read at once and
// for one page at most, and how often an open page looks for what is new.
const (
	perPage   = 50
	atOnce    = 1024
	perSearch = 32 * atOnce
	ahead     = atOnce / 8 // records behind these, in which a call may have ended
	maxEnding = 1000       // records of sessions that are read for how calls ended
	maxBehind = 4 * atOnce // records that the stream still goes through
	lookEvery = 500 * time.Millisecond
)

type row struct {
	story.Line
	Index   int64
	Session string
	N       uint64
	Word    string // accepted, asked, refused or unknown
	Note    string
	By      string         // who let it pass by a yes
	Missing []writ.Failure // what would make a refused call pass
	Name    string         // that its session is kept under
	// Act is the argument that names what it acts on, and Whole that with where it stands.
	Act, Whole string

	rec    *audit.Record
	values story.Values // of that, nil where they are to be read
}

// maxAct is how many characters of that argument a row shows.
const maxAct = 40

// Called is how a row calls its session.
func (d *row) Called() string {
	if d.Name == "" {
		return d.Session
	}
	return clip(d.Name, 20)
}

// filter says which decisions are listed.
type filter struct {
	Status, Tool, Session, Reason string

	ids string // of the sessions of that name
}

func (c *Console) filter(x *request) filter {
	f := filter{Status: x.asked("status"), Tool: strings.TrimSpace(x.asked("tool")), Session: strings.TrimSpace(x.asked("session")), Reason: strings.TrimSpace(x.asked("reason"))}
	f.ids = strings.Join(c.named(x.Context(), f.Session), " ")
	return f
}

// named are the sessions that are kept under a name, or are it.
func (c *Console) named(ctx context.Context, name string) (ids []string) {
	if audit.ValidSession(name) || name == "" {
		return []string{name}
	}
	for id, n := range c.o.Names(ctx) {
		if n == name {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// of reports whether a session is one of those that are asked for.
func (f filter) of(session string) bool {
	return f.Session == "" || slices.Contains(strings.Fields(f.ids), session)
}

// query is the filter in an address, with more behind it.
func (f filter) query(pairs ...string) string {
	return "?" + given(append([]string{"status", f.Status, "tool", f.Tool, "session", f.Session, "reason", f.Reason}, pairs...)...)
}

func (f filter) lets(d *row) bool {
	return (f.Status == "" || f.Status == d.Word) && f.of(d.Session) &&
		strings.Contains(strings.ToLower(d.Tool), strings.ToLower(f.Tool)) && strings.Contains(d.Reason, f.Reason)
}

// ends are calls and how the newest record of each says that it ended.
type ends map[string]map[uint64]end

// answers are who gave those of people that were seen on the way, by session and evidence.
type answers map[string]string

func (a answers) step(rec *audit.Record) {
	if rec.Kind != "approval" {
		return
	}
	if len(a) >= perSearch { // a page that is open for long
		clear(a)
	}
	by, _ := strictjson.Of(rec.Data).Get("by").Text()
	a[fmt.Sprint(rec.Session, "/ev", story.EvidenceOf(rec))] = short(by, 80)
}

// says is what a row says of a call that rests on an answer.
func (a answers) says(session string, answer uint32) string {
	if answer == 0 {
		return ""
	}
	return cmp.Or(a[fmt.Sprint(session, "/ev", answer)], "a person") + " said yes"
}

type end struct {
	at      uint64 // the record that says so
	unknown bool   // nobody knows
	failed  bool   // its server answered with an error
}

// word is word of a call that ended so.
func (e end) word(d *story.Line) (w, note string) {
	if w, note = word(d, e.unknown); w == "accepted" && e.failed {
		note = "the server answered with an error"
	}
	return w, note
}

// step takes a record, and returns the decision of the call that it tells the end of, or 0.
func (e ends) step(rec *audit.Record) uint64 {
	n := audit.DecisionOf(rec)
	if n == 0 || rec.Kind == audit.KindDecision || rec.N < e[rec.Session][n].at {
		return 0
	}
	if e[rec.Session] == nil {
		e[rec.Session] = map[uint64]end{}
	}
	status := story.Ended(rec).Status
	e[rec.Session][n] = end{rec.N, status == "unknown", status == "error"}
	return n
}

// word says of a decision what it came to, in the words of the console's palette.
func word(d *story.Line, unknown bool) (word, note string) {
	switch {
	case d.Shadow && d.Status == string(writ.Rejected):
		return "refused", "shadow mode let it pass"
	case d.Reason == string(writ.ApprovalPending):
		return "asked", "put to a person"
	case d.Status == string(writ.Rejected):
		return "refused", ""
	case unknown:
		return "unknown", "nobody knows whether it happened"
	}
	return "accepted", ""
}

func rowOf(it *audit.Item, rec *audit.Record) (d *row, ok bool) {
	line, ok := story.Of(rec)
	if !ok {
		return nil, false
	}
	d = &row{Line: line, Index: it.Index, Session: rec.Session, N: rec.N, rec: rec}
	d.Word, d.Note = word(&line, false)
	return d, true
}

func (c *Console) size(ctx context.Context) (n int64, err error) {
	err = story.Each(c.o.Log.Log(ctx, -1), func(it *audit.Item, _ *audit.Record) { n = it.Index + 1 })
	return n, err
}

// between are the decisions among the records from … to-1 that a filter lets through, and
// where what was read of these ends. How calls ended is looked for in so many records beyond
// them as well; seen is told of each record, and of the decision of which it says how its call
// ended, or 0.
func (c *Console) between(ctx context.Context, f filter, e ends, from, to, beyond int64, seen func(rec *audit.Record, ended uint64)) (out []*row, next int64, err error) {
	next = from
	for it, err := range c.o.Log.Log(ctx, from) {
		if err != nil {
			return nil, next, err
		}
		if it.Index >= to+beyond {
			break
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return nil, next, err
		}
		if n := e.step(rec); seen != nil {
			seen(rec, n)
		}
		if it.Index >= to {
			continue
		}
		next = it.Index + 1
		if d, ok := rowOf(&it, rec); ok {
			out = append(out, d)
		}
	}
	kept := out[:0]
	for _, d := range out {
		d.Word, d.Note = e[d.Session][d.N].word(&d.Line)
		if f.lets(d) {
			kept = append(kept, d)
		}
	}
	return kept, next, nil
}

// listing is one page of decisions, the newest first.
type listing struct {
	Filter       filter
	Rows         []*row
	Newest       int64 // the index behind which what comes is new
	Older, Newer string
	Searched     int64 // where the search stopped for its bound, 0 where it did not
	Live         bool  // it has the newest, and goes on by itself
	Fresh        bool  // nothing was decided yet
	Tail         string
}

// list reads one page: the newest before an index, or with after the oldest behind it.
func (c *Console) list(ctx context.Context, path string, f filter, before, after int64) (*listing, error) {
	size, err := c.size(ctx)
	if err != nil {
		return nil, err
	}
	p := paging{c, &listing{Filter: f}, ends{}, answers{}, size}
	l := p.l
	if before <= 0 || before > size {
		before = size
	}
	if after >= 0 {
		before, err = p.behind(ctx, after)
	} else {
		before, err = p.upTo(ctx, before)
	}
	if errors.Is(err, errNoneNewer) {
		return c.list(ctx, path, f, 0, -1)
	}
	if err == nil {
		err = c.ended(ctx, l, p.ends)
	}
	if err != nil {
		return nil, err
	}
	c.fill(ctx, l.Rows, p.said)
	if before > 0 {
		l.Older = path + f.query("before", strconv.FormatInt(before, 10))
	}
	newer := f.query("after", strconv.FormatInt(l.Newest, 10))
	tail := newer
	if l.Newest < 0 { // there is no record to be behind of
		newer, tail = f.query(), f.query("from", "start")
	}
	if l.Live = l.Newest >= size-1; !l.Live || path == "/" {
		l.Newer = path + newer
	}
	l.Fresh = l.Live && len(l.Rows) == 0 && l.Searched == 0 && f == (filter{})
	l.Tail = "/events" + tail
	return l, nil
}

type paging struct {
	c    *Console
	l    *listing
	ends ends
	said answers
	size int64
}

var errNoneNewer = errors.New("nothing is newer")

func (p *paging) between(ctx context.Context, from, to, beyond int64) ([]*row, error) {
	rows, _, err := p.c.between(ctx, p.l.Filter, p.ends, from, to, beyond, func(rec *audit.Record, _ uint64) { p.said.step(rec) })
	return rows, err
}

// behind reads the oldest behind an index, and returns the index before which the next page is.
func (p *paging) behind(ctx context.Context, after int64) (before int64, err error) {
	l, read, from := p.l, 0, min(after, p.size)+1
	for ; from < p.size && len(l.Rows) < perPage && read < perSearch; from, read = from+atOnce, read+atOnce+ahead {
		rows, err := p.between(ctx, from, min(from+atOnce, p.size), ahead)
		if err != nil {
			return 0, err
		}
		for _, d := range rows[:min(len(rows), perPage-len(l.Rows))] {
			l.Rows = append([]*row{d}, l.Rows...)
		}
	}
	if n := len(l.Rows); n > 0 {
		l.Newest = l.Rows[0].Index
		return l.Rows[n-1].Index, nil
	}
	if from >= p.size {
		return 0, errNoneNewer
	}
	l.Newest = from - 1
	return min(after, p.size) + 1, nil
}

// upTo reads the newest before an index, and returns that before which the next page is.
func (p *paging) upTo(ctx context.Context, before int64) (int64, error) {
	l, read, to, beyond := p.l, 0, before, int64(atOnce)
	for l.Newest = before - 1; to > 0 && len(l.Rows) < perPage && read < perSearch; to, read = max(0, to-atOnce), read+atOnce {
		rows, err := p.between(ctx, max(0, to-atOnce), to, beyond)
		if err != nil {
			return 0, err
		}
		beyond = 0 // they were read
		slices.Reverse(rows)
		l.Rows = append(l.Rows, rows[:min(len(rows), perPage-len(l.Rows))]...)
	}
	if len(l.Rows) == perPage {
		return l.Rows[perPage-1].Index, nil
	}
	l.Searched = to
	return to, nil
}

// ended looks for how the calls of a page ended, of which the records around it say nothing,
// each in its own session. What it has no room for it leaves, and says so.
func (c *Console) ended(ctx context.Context, l *listing, e ends) error {
	s := endings{c.o.Log, e, maxEnding, story.MaxSought, map[string]bool{}}
	for _, d := range slices.Backward(l.Rows) {
		if end, known := e[d.Session][d.N]; known {
			d.Word, d.Note = end.word(&d.Line)
		} else if d.Word == "accepted" && !s.whole[d.Session] {
			if err := s.look(ctx, d); err != nil {
				return err
			}
		}
	}
	l.Rows = slices.DeleteFunc(l.Rows, func(d *row) bool { return !l.Filter.lets(d) })
	return nil
}

// endings are looked for in so many records, and bytes of their values.
type endings struct {
	log           story.Log
	ends          ends
	records, room int
	whole         map[string]bool // sessions that were read to their end, from an older row on
}

func (s *endings) look(ctx context.Context, d *row) error {
	head, err := s.log.Head(ctx, d.Session)
	if err != nil {
		return err
	}
	if d.Note = "how it ended stands on its page"; head == d.N {
		d.Note = ""
	}
	for it, err := range s.log.Read(ctx, d.Session, d.N+1) {
		var rec *audit.Record
		if err == nil {
			rec, err = audit.ParseRecord(it.Leaf)
		}
		if err != nil {
			return err
		}
		for _, v := range it.Values {
			s.room -= len(v.Bytes)
		}
		n := s.ends.step(rec)
		s.whole[d.Session] = it.N >= head
		if s.records--; n == d.N || it.N >= head {
			d.Word, d.Note = s.ends[d.Session][d.N].word(&d.Line)
			return nil
		}
		if s.records <= 0 || s.room <= 0 {
			return nil
		}
	}
	return nil
}

// fill finds what rows tell beside what their records' data says.
func (c *Console) fill(ctx context.Context, rows []*row, said answers) {
	if len(rows) == 0 {
		return
	}
	names := c.o.Names(ctx)
	for _, d := range rows {
		values := d.values
		if values == nil {
			values = c.o.Log
		}
		t := story.Tell(ctx, bounded{values}, d.rec)
		d.Missing, d.Name, d.By = few(t.Failures), names[d.Session], said.says(d.Session, t.Answer)
		if len(t.Value) > 0 {
			d.Act, d.Whole = clip(string(t.Value), maxAct-1), short(t.Pointer+" "+string(t.Value), 2000)
		}
	}
}

// inHand are the values of a record that was read with them.
type inHand struct{ audit.Item }

func (h inHand) Value(_ context.Context, _ string, _ uint64, name string) ([]byte, error) {
	if b, kept := h.Item.Value(name); kept {
		return b, nil
	}
	return nil, audit.ErrNotFound
}

// bounded are values of which nobody reads long ones for a row of a list.
type bounded struct{ story.Values }

type reader = story.Log // to embed beside a method Log

const maxLacking = 64 << 10

var errTooLong = errors.New("too long for a list")

func (b bounded) Value(ctx context.Context, session string, n uint64, name string) ([]byte, error) {
	v, err := b.Values.Value(ctx, session, n, name)
	line, rest, _ := bytes.Cut(v, []byte{'\n'})
	if len(line) > maxLacking {
		return nil, errTooLong
	}
	if len(rest) > maxLacking {
		v = line
	}
	return v, err
}

func few(all []writ.Failure) []writ.Failure {
	const most = 10
	if len(all) <= most {
		return all
	}
	return append(all[:most:most], writ.Failure{Need: fmt.Sprintf("… and %d more", len(all)-most)})
}

// placed is an error where one of these places of the query is there and is no number.
func (x *request) placed(names []string) error {
	for _, name := range names {
		if x.asked(name) != "" && x.place(name) < 0 {
			return &refusal{http.StatusBadRequest, "No such page", "A place in a list is a number, from 0 on."}
		}
	}
	return nil
}

// place is an index of the query, which is one of its route's: -1 where there is none.
func (x *request) place(name string) int64 {
	if n, err := strconv.ParseInt(x.asked(name), 10, 64); err == nil && n >= 0 {
		return n
	}
	return -1
}

func (c *Console) listed(x *request) (*listing, error) {
	before := x.place("before")
	if before == 0 { // nothing is before the first
		return &listing{Filter: c.filter(x), Newer: x.URL.Path + c.filter(x).query("after", "0")}, nil
	}
	return c.list(x.Context(), x.URL.Path, c.filter(x), before, x.place("after"))
}

func (c *Console) live(x *request) error {
	l, err := c.listed(x)
	if err != nil {
		return err
	}
	p := struct {
		*listing
		Try []Try
	}{listing: l}
	if l.Fresh {
		p.Try = c.o.Try
	}
	return c.show(x, http.StatusOK, "live.html", "Live", p)
}
