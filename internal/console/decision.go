package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/internal/strictjson"
)

type decisionPage struct {
	*story.Explained
	Session string
	Number  uint64
	Word    string
	Note    string
	Lines   []string // what writ audit show says
	Values  []argument
	More    int // values that are not told of
	// Unsearched says that a value that nothing vouches for may stand in what was not searched.
	Unsearched bool
	Bytes      []exact
	Index      int64
	Log        audit.Checkpoint
	Unproven   string // why there is no proof
}

// argument is one value of a call, with what the decision says of it.
type argument struct {
	Pointer, Role, Label string
	Value                []byte
	Cut                  bool
	Rule                 string
	From                 []origin
	Missing              string  // what it lacks
	Stands               *origin // where it stands all the same, and nothing vouches for it
	trace                int     // which of the decision's it is, -1 for none
}

// origin is one place that a value came from, and who can have written it there, as far as
// that is known.
type origin struct{ Link, Text, Who string }

// exact are bytes that were recorded with a decision.
type exact struct {
	Name, Title, Link string
	Bytes             []byte
	Length            int
	Cut               bool
}

func (c *Console) explained(x *request) (*story.Explained, error) {
	session, n := x.PathValue("session"), x.PathValue("n")
	d, err := c.o.Explain(x.Context(), session, n, maxBehindIt)
	if no, ok := errors.AsType[*cli.Exit](err); ok && no.Code != cli.ExitIO {
		return nil, &refusal{http.StatusNotFound, "No such decision", no.Err.Error()}
	}
	return d, err
}

func (c *Console) decision(x *request) error {
	d, err := c.explained(x)
	if err != nil {
		if at, other := c.otherKind(x); other { // it stands in the timeline
			return x.leadTo(at)
		}
		return err
	}
	rec := d.Records[0]
	skip := 2 // the head, which the page has already
	if d.Session != nil {
		skip++
	}
	p := decisionPage{Explained: d, Session: rec.Record.Session, Number: rec.N, Index: rec.Index}
	brief := *d // what it says of each value stands beside that
	if len(brief.Explanation) > 0 {
		_, of, _ := strings.Cut(brief.Explanation[0], ": ")
		brief.Explanation = []string{came[story.Word(d.Status, d.Reason)] + of}
	}
	var printed strings.Builder
	brief.Print(&printed)
	p.Lines = strings.Split(strings.TrimRight(printed.String(), "\n"), "\n")[skip:]
	sent := len(d.Records) > 1
	if n := len(p.Lines); n > maxLines {
		p.Lines = append(p.Lines[:maxLines:maxLines], fmt.Sprintf("… and %d lines more; writ audit show tells them all.", n-maxLines))
	}
	p.Word, p.Note = word(&d.Line, sent && d.Result != nil && d.Result.Status == "unknown" || !sent && d.Status != string(writ.Rejected))
	switch {
	case d.UnderWay:
		p.Word, p.Note = "accepted", "it is under way"
	case d.Beyond && !sent && d.Passed():
		p.Word, p.Note = "accepted", fmt.Sprintf("how it ended does not stand in the %d records behind it: writ audit show looks at all", maxBehindIt)
	}
	if p.Values, p.More = arguments(x.Context(), d, maxValues); x.Context().Err() != nil {
		return errLong
	}
	p.search(x.Context(), c.o.Log)
	for _, v := range exactly {
		b := story.Exact(&rec, v.name)
		if b == nil {
			continue
		}
		e := exact{Name: v.name, Title: v.title, Length: len(b), Link: fmt.Sprintf("/d/%s/%d/value/%s", p.Session, p.Number, v.name)}
		e.Bytes, e.Cut = upTo(b)
		p.Bytes = append(p.Bytes, e)
	}
	if p.Log, err = c.proven(x, p.Session); err != nil {
		p.Unproven = err.Error()
	}
	return c.show(x, http.StatusOK, "decision.html", short(d.Tool, 60), p)
}

// search looks for where values stand that nothing vouches for.
func (p *decisionPage) search(ctx context.Context, log story.Log) {
	lost := map[string][]byte{}
	for _, a := range p.Values {
		if a.Missing != "" && len(a.From) == 0 && !a.Cut && len(a.Value) > 0 {
			lost[a.Pointer] = a.Value
		}
	}
	if len(lost) == 0 {
		return
	}
	stands, all := story.NewSearch(ctx, log).Standing(ctx, p.Session, p.Number, lost)
	for i := range p.Values {
		if at := stands[p.Values[i].Pointer]; at != nil {
			p.Values[i].Stands = insideOf(p.Session, at, p.Values[i].Value)
		}
	}
	p.Unsearched = !all
}

// proven is the checkpoint by which a decision can be proven.
func (c *Console) proven(x *request, session string) (of audit.Checkpoint, err error) {
	proof, err := c.o.Prove(x.Context(), session, x.PathValue("n"), maxBehindIt, true)
	if err != nil {
		return of, err
	}
	shown, err := audit.CheckProof(proof, nil)
	if err != nil {
		return of, err
	}
	return shown.Checkpoint, nil
}

// came says in a sentence what a call came to; its codes stand below that.
var came = map[string]string{"accepted": "It was accepted: ", "asked": "It was put to a person: ", "refused": "It was refused: "}

// otherKind is where a record that a request names as a decision is told of, if it is another.
func (c *Console) otherKind(x *request) (at string, other bool) {
	session := x.PathValue("session")
	n, err := strconv.ParseUint(x.PathValue("n"), 10, 64)
	if err != nil || !audit.ValidSession(session) {
		return "", false
	}
	r, err := c.record(x.Context(), session, n)
	return fmt.Sprintf("/s/%s?at=%d#n%d", session, n, n), err == nil && r.Record.Kind != audit.KindDecision
}

// exactly are the values of a decision that its page shows as they were.
var exactly = []struct{ name, title string }{
	{"arguments", "Arguments"}, {"answers", "Answered inside the call"}, {"input", "What else it was decided on"}, {"call", "All that its record keeps beside its data"},
}

// maxBehindIt bounds the records of a session in which is looked for how a call ended: of what
// was refused, or cut off, nothing comes, and the session may go on for long.
const maxBehindIt = 4 * atOnce

// maxValues bounds the values of one call that its page tells of, and maxPlaces the places
// of one: an agent chooses how many there are.
const maxValues, maxPlaces, maxLines = 200, 20, 500

// arguments are the first values of a call, in the order in which the decision tells of them,
// and how many there are beside them.
func arguments(ctx context.Context, d *story.Explained, most int) (out []argument, more int) {
	if d.Record == nil {
		return nil, 0
	}
	r := recordedCall{raw: map[string]strictjson.Value{}, room: maxDrawn}
	for _, name := range []string{"arguments", "answers"} {
		if b := story.Exact(&d.Records[0], name); b != nil {
			r.raw[name] = strictjson.Of(b)
		}
	}
	lacks := map[string]string{}
	for _, f := range d.Record.Failures {
		lacks[f.Pointer] = f.Need
	}
	full := func() bool { return len(out) >= most || ctx.Err() != nil }
	told := map[string]bool{}
	for i, t := range d.Record.Traces {
		if told[t.Pointer] = true; full() {
			more++
			continue
		}
		a := argument{Pointer: t.Pointer, Role: t.Role, Label: t.Label.String(), Rule: t.Rule, Missing: lacks[t.Pointer], trace: i}
		a.Value, a.Cut = r.valueAt(t.Pointer)
		for _, e := range t.Evidence[:min(len(t.Evidence), maxPlaces)] {
			a.From = append(a.From, originOf(d.Records[0].Record.Session, approval.SeenAt(e)))
		}
		out = append(out, a)
	}
	for _, f := range d.Record.Failures {
		switch {
		case told[f.Pointer]:
		case full():
			more++
		default:
			a := argument{Pointer: f.Pointer, Missing: f.Need, trace: -1}
			if f.Pointer != "" {
				a.Value, a.Cut = r.valueAt(f.Pointer)
			}
			out = append(out, a)
		}
	}
	return out, more
}

// recordedCall is what was recorded of a call, and how much of it may still be drawn.
type recordedCall struct {
	raw  map[string]strictjson.Value
	room int
}

func (r *recordedCall) valueAt(pointer string) (part []byte, cut bool) {
	of := "arguments"
	if at, inside := strings.CutPrefix(pointer, "answers:"); inside {
		of, pointer = "answers", at
	}
	if part, cut = upTo(r.raw[of].At(pointer).Literal()); len(part) > r.room {
		part, cut = part[:0], true
	}
	r.room -= len(part)
	return part, cut
}

// originOf is a place in evidence that a value came from.
func originOf(session string, e approval.Seen) origin {
	_, tool, _ := strings.Cut(e.Tool, "/")
	o := origin{Text: fmt.Sprintf("ev%d %s %s", e.Evidence, cmp.Or(tool, e.Tool), cmp.Or(e.Inner, e.Pointer)), Link: seenAt(session, e)}
	if e.Line > 0 {
		o.Text += " line " + strconv.Itoa(e.Line)
	}
	return o
}

func seenAt(session string, e approval.Seen) string {
	return fmt.Sprintf("/e/%s/%d?%s#hit", session, e.Evidence, given("at", e.Pointer, "in", e.Inner, "line", number(e.Line), "from", number(e.Start), "to", number(e.End)))
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (c *Console) decisionJSON(x *request) error {
	d, err := c.explained(x)
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return x.file(fmt.Sprintf("%s-%d.json", d.Records[0].Record.Session, d.Records[0].N), "application/json", append(b, '\n'))
}

func (c *Console) proof(x *request) error {
	b, err := c.o.Prove(x.Context(), x.PathValue("session"), x.PathValue("n"), maxBehindIt, x.URL.Query().Has("bare"))
	if err != nil {
		return &refusal{http.StatusNotFound, "No proof", err.Error()}
	}
	return x.file(fmt.Sprintf("%s-%s.proof", x.PathValue("session"), x.PathValue("n")), "text/plain; charset=utf-8", b)
}

// recorded are the names of values that can be taken whole. None of them is a key.
var recorded = []string{"arguments", "answers", "input", "decision", "call", "result", "error", "turn"}

func (c *Console) value(x *request) error {
	n, err := strconv.ParseUint(x.PathValue("n"), 10, 64)
	session, name := x.PathValue("session"), x.PathValue("name")
	if err != nil || !audit.ValidSession(session) || !slices.Contains(recorded, name) {
		return errNoRecord
	}
	r, err := c.record(x.Context(), session, n)
	if err != nil {
		return err
	}
	b := story.Exact(&r, name)
	if b == nil {
		return errNoRecord
	}
	return x.file(fmt.Sprintf("%s-%d-%s", session, n, name), "application/octet-stream", b)
}

// evidencePage is one piece of evidence, with the bytes marked that somebody came for.
type evidencePage struct {
	Session  string
	Number   uint32
	N        uint64
	Kind     audit.Kind
	Time     time.Time
	Decision uint64 // of the call whose result it is
	Tool     string
	Name     string
	At       string
	Bytes    []byte
	From, To int
	Length   int
	Cut      string // what is left out, in words
	// Inner is the text at At, where what is marked stands in it.
	Inner              []byte
	InnerAt            string
	InnerFrom, InnerTo int
	Fault              string
	Piece              bool // marked is a piece of what stands at At
}

func (c *Console) evidence(x *request) error {
	ctx, session := x.Context(), x.PathValue("session")
	of, err := strconv.ParseUint(x.PathValue("number"), 10, 32)
	if err != nil || of == 0 || !audit.ValidSession(session) {
		return errNoRecord
	}
	head, err := c.o.Log.Head(ctx, session)
	if err != nil {
		return err
	}
	rec, err := story.Evidence(ctx, &upToSome{c.o.Log, perSearch}, session, uint32(of), head)
	if err != nil {
		return err
	}
	p := evidencePage{Session: session, Number: uint32(of), N: rec.N, Kind: rec.Record.Kind, Time: rec.Record.Time, Decision: audit.DecisionOf(rec.Record), At: x.asked("at")}
	if p.Decision > 0 {
		called, err := c.record(ctx, session, p.Decision)
		if err != nil {
			return err
		}
		line, _ := story.Of(called.Record)
		p.Tool = line.Tool
	}
	for _, name := range []string{"result", "error", "turn"} {
		if b, kept := rec.Value(name); kept {
			p.Name, p.Bytes = name, b
			break
		}
	}
	if p.Name == "" && len(rec.Record.Commit) == 0 {
		p.Bytes = rec.Record.Data // an answer, say: the record is all there is of it
	} else if p.Name == "" {
		p.Fault = "Its bytes were erased, or never kept."
	}
	p.Length = len(p.Bytes)
	p.mark(x)
	return c.show(x, http.StatusOK, "evidence.html", fmt.Sprintf("Evidence %d", of), p)
}

// upToSome is a log of whose sessions one page reads so many records: where hardly any is
// evidence, halves are long.
type upToSome struct {
	reader
	left int
}

func (u *upToSome) Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error] {
	return func(yield func(audit.Item, error) bool) {
		for it, err := range u.reader.Read(ctx, session, from) {
			if u.left--; u.left < 0 {
				yield(audit.Item{}, errLong)
				return
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

// mark finds what was asked for in the bytes, and leaves out what is far from it where they
// are too many.
func (p *evidencePage) mark(x *request) {
	from, _ := strconv.Atoi(x.asked("from"))
	to, _ := strconv.Atoi(x.asked("to"))
	line, _ := strconv.Atoi(x.asked("line"))
	asked := x.URL.Query().Has("at") || to > 0 || line > 0
	switch {
	case p.Name == "turn":
		p.From, p.To = from, to
	case p.Name == "result" && x.URL.Query().Has("at"):
		p.markIn(x, line)
	}
	if p.From < 0 || p.To > len(p.Bytes) || p.From > p.To {
		p.From, p.To = 0, 0
	}
	if asked && p.From == p.To && p.Fault == "" {
		p.Fault = "The place that was asked for is not in these bytes."
		if strings.HasPrefix(p.At, "/arguments/") && p.Decision > 0 { // what an act made (R13)
			p.Fault = "It is no part of what was returned: the act was called with it, and made it. Its arguments stand with its decision."
		}
	}
	p.Bytes, p.From, p.To, p.Cut = around(p.Bytes, p.From, p.To)
	if p.Inner != nil {
		var cut string
		p.Inner, p.InnerFrom, p.InnerTo, cut = around(p.Inner, p.InnerFrom, p.InnerTo)
		p.Cut = cmp.Or(p.Cut, cut)
	}
}

// markIn finds in a result what stands at a place, or a piece of it; in a text there it finds a line
// or a place of the JSON that it is.
func (p *evidencePage) markIn(x *request, line int) {
	v := strictjson.Of(p.Bytes).At(p.At)
	p.From, p.To = v.Span()
	has := strictjson.Quote(x.asked("has"))
	if has = has[1 : len(has)-1]; len(has) > 0 { // a piece of it
		if i := bytes.Index(p.Bytes[p.From:p.To], has); i >= 0 {
			p.From, p.To, p.Piece = p.From+i, p.From+i+len(has), true
		}
	}
	words, ok := v.Text()
	if !ok || x.asked("in") == "" && line <= 0 {
		return
	}
	p.Inner, p.InnerAt = []byte(words), x.asked("in")
	if line > 0 {
		p.InnerFrom, p.InnerTo = nthLine(p.Inner, line)
	} else if strictjson.Check(p.Inner, strictjson.Limits{Depth: 200}) == nil {
		p.InnerFrom, p.InnerTo = strictjson.Of(p.Inner).At(p.InnerAt).Span()
	}
}

// around is what a page has room for of bytes with a mark in them.
func around(b []byte, from, to int) (part []byte, pfrom, pto int, cut string) {
	if len(b) <= maxDrawn {
		return b, from, to, ""
	}
	first := max(0, min(from-maxDrawn/4, len(b)-maxDrawn))
	last := min(len(b), first+maxDrawn)
	return b[first:last], from - first, min(to, last) - first, fmt.Sprintf("Shown are the bytes %d to %d of %d; the download has them all.", first, last, len(b))
}

// nthLine is where a line stands, counted from 1; both are 0 where there is none.
func nthLine(b []byte, n int) (from, to int) {
	for ; n > 1; n-- {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0, 0
		}
		from += i + 1
	}
	if i := bytes.IndexByte(b[from:], '\n'); i >= 0 {
		return from, from + i
	}
	return from, len(b)
}
