// Package story tells of recorded decisions: what was decided, why, and what came of it.
// Every surface that explains one tells the same, in the same words. What it reads is
// proven by who hands it out; it checks nothing again and decides nothing.
package story

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/certificate"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/provenance"
)

// Log is what stories are read from: records as a store proves them.
type Log interface {
	// Log yields the records of all sessions from an index on, or with a negative one so
	// many of the newest, without their values.
	Log(ctx context.Context, from int64) iter.Seq2[audit.Item, error]
	// Read yields the records of a session from a number on, with their values.
	Read(ctx context.Context, session string, from uint64) iter.Seq2[audit.Item, error]
	// Head is how many records a session has.
	Head(ctx context.Context, session string) (uint64, error)
	// Value is one value of a record, and Blob what records name by its digest.
	Value(ctx context.Context, session string, n uint64, name string) ([]byte, error)
	Blob(ctx context.Context, name audit.Digest) ([]byte, error)
}

// Line is one line of the list, and the head of an explanation.
type Line struct {
	ID     string    `json:"id"`
	Time   time.Time `json:"time"`
	Tool   string    `json:"tool"`
	Effect []string  `json:"effect"`
	Status string    `json:"status"`
	Code   string    `json:"code,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Shadow bool      `json:"shadow,omitempty"`
	// UnderWay says that it has not ended in a gateway that runs.
	UnderWay bool `json:"under_way,omitempty"`
}

// Passed reports whether the call went to its server.
func (d *Line) Passed() bool { return d.Status != "rejected" || d.Shadow }

// Of is the line of a record; ok is false where it is no decision.
func Of(rec *audit.Record) (d Line, ok bool) {
	var data struct {
		Server, Tool, Method, Status, Code, Reason string
		Effect                                     []string
		Shadow                                     bool
	}
	if rec.Kind != audit.KindDecision || json.Unmarshal(rec.Data, &data) != nil {
		return d, false
	}
	name := data.Server + "/" + data.Tool
	if data.Tool == "" {
		name = data.Server + "/" + data.Method
	}
	if data.Server == "" {
		name = "(unknown tool)"
	}
	return Line{ID: fmt.Sprintf("%s/%d", rec.Session, rec.N), Time: rec.Time, Tool: name, Effect: data.Effect,
		Status: data.Status, Code: data.Code, Reason: data.Reason, Shadow: data.Shadow}, true
}

// Word says to a person what a decision came to: accepted, asked or refused.
func Word(status, reason string) string {
	switch {
	case status != string(writ.Rejected):
		return "accepted"
	case reason == string(writ.ApprovalPending):
		return "asked"
	}
	return "refused"
}

// PrintLine prints it, and escapes what others wrote.
func (d *Line) PrintLine(w io.Writer) {
	fmt.Fprintf(w, "%s  %s  %-8s  %s", d.Time.Format(time.RFC3339), d.ID, Word(d.Status, d.Reason), text.OneLine(d.Tool, 80))
	cli.When(w, d.Reason != "", "  %s", text.OneLine(d.Reason, 60))
	cli.When(w, d.Shadow, "  (shadow: it passed)")
	cli.When(w, d.UnderWay, "  (under way)")
	fmt.Fprintln(w)
}

// Newest are the newest so many decisions of the log, and how many records that has. It reads
// no more of it than it has to, or twice that.
func Newest(ctx context.Context, log Log, most int) (all []Line, size int64, err error) {
	for n := int64(4 * max(most, 64)); ; n *= 2 {
		all = []Line{}
		read := int64(0)
		err := Each(log.Log(ctx, -n), func(it *audit.Item, rec *audit.Record) {
			read, size = read+1, it.Index+1
			if d, ok := Of(rec); ok {
				all = append(all, d)
			}
		})
		if err != nil || read < n || len(all) >= most {
			return all[max(0, len(all)-most):], size, err
		}
	}
}

// Each shows the records of a store, which are proven.
func Each(src iter.Seq2[audit.Item, error], show func(*audit.Item, *audit.Record)) error {
	for it, err := range src {
		if err != nil {
			return Unreadable(err)
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return cli.Fail(cli.ExitData, "writ audit verify", "record %d cannot be read", it.Index)
		}
		show(&it, rec)
	}
	return nil
}

// Explained is a decision in words, with what came of it.
type Explained struct {
	Line
	Session     fmt.Stringer    `json:"session,omitempty"` // as who keeps it knows it; nil where nobody does
	Explanation []string        `json:"explanation"`
	Story       []string        `json:"story,omitempty"` // of an accepted act, where each value came from
	Decision    json.RawMessage `json:"decision,omitempty"`
	Result      *Result         `json:"result,omitempty"`
	// Anyway is how a refused call ended that its client's person let pass.
	Anyway string `json:"anyway,omitempty"`
	// Settled is what a person said of an act whose outcome is unknown.
	Settled *Settled `json:"settled,omitempty"`

	// Record is the parsed Decision, nil where it was erased, and Records are the record of
	// the decision and, where there is one, that of what came of its call.
	Record  *gate.Record         `json:"-"`
	Records []audit.ProvenRecord `json:"-"`
	// Beyond says that more may have come of its call than was looked for.
	Beyond bool `json:"-"`
}

// Settled is what a person said of an act.
type Settled struct {
	Happened bool      `json:"happened"`
	By       string    `json:"by"`
	Time     time.Time `json:"time"`
}

// Decided reads a decision, and what came of its call where that is recorded: how it
// ended, where that is known, and what a person said of it where it is not. That is looked for
// in so many records of its session behind it, or with 0 in all; beyond says that more follow.
func Decided(ctx context.Context, log Log, session, num string, within uint64) (all []audit.ProvenRecord, settled *Settled, beyond bool, err error) {
	n, err := strconv.ParseUint(num, 10, 64)
	if err != nil || !audit.ValidSession(session) {
		return nil, nil, false, cli.Fail(cli.ExitUsage, "writ audit show", "a decision's id looks like s_…/7")
	}
	for it, err := range log.Read(ctx, session, n) {
		if err != nil {
			return nil, nil, false, Unreadable(err)
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return nil, nil, false, cli.Fail(cli.ExitData, "writ audit verify", "record %s/%d cannot be read", session, n)
		}
		if within > 0 && rec.N > n && rec.N-n > within {
			return all, settled, true, nil
		}
		r := audit.ProvenRecord{Item: it, Record: rec}
		switch {
		case rec.N == n && rec.Kind != audit.KindDecision:
			return nil, nil, false, cli.Fail(cli.ExitUsage, "writ audit show", "record %s/%d is no decision but of kind %s", session, n, rec.Kind)
		case rec.N == n:
			all = append(all, r)
		case rec.Kind == gateway.KindSettle && audit.DecisionOf(rec) == n:
			settled = &Settled{Time: rec.Time}
			if json.Unmarshal(rec.Data, settled) != nil {
				return nil, nil, false, cli.Fail(cli.ExitData, "writ audit verify", "record %s/%d cannot be read", session, rec.N)
			}
		case len(all) > 0 && audit.DecisionOf(rec) == n:
			if all = append(all[:1], r); Ended(rec).Status != "unknown" {
				return all, settled, false, nil
			}
		}
	}
	if len(all) == 0 {
		return nil, nil, false, cli.Fail(cli.ExitData, "writ audit show", "there is no such record")
	}
	return all, settled, false, nil
}

// Explain says in words what Decided found.
func Explain(ctx context.Context, log Log, session, num string, within uint64) (*Explained, error) {
	all, settled, beyond, err := Decided(ctx, log, session, num, within)
	if err != nil {
		return nil, err
	}
	d, err := Recorded(ctx, log, all[0])
	if err != nil {
		return nil, cli.Fail(cli.ExitData, "writ audit verify", "the recorded decision cannot be read")
	}
	d.Settled, d.Records, d.Beyond = settled, all, beyond
	if len(all) > 1 {
		r := Ended(all[1].Record)
		if d.Result = r; all[1].Record.Kind == gateway.KindAnyway {
			d.Result, d.Anyway = nil, r.Status
		}
	}
	return d, nil
}

// Recorded is what the record of a decision says by itself, nil where it is of another
// kind.
func Recorded(ctx context.Context, log Log, r audit.ProvenRecord) (*Explained, error) {
	head, ok := Of(r.Record)
	if !ok {
		return nil, nil
	}
	d := &Explained{Line: head, Records: []audit.ProvenRecord{r}}
	recorded, err := gateway.NewRulesets(log).Decision(ctx, r.Record, &r.Item)
	if recorded != nil {
		d.Decision, d.Record, d.Explanation, d.Story = recorded.Bytes(), recorded, gate.Explain(recorded), certificate.Story(recorded)
	}
	return d, err
}

// Ended is how a call ended, as a record says.
func Ended(rec *audit.Record) *Result {
	r := &Result{}
	if json.Unmarshal(rec.Data, r) != nil {
		r.Status = "unknown"
	}
	return r
}

// Print tells it, and escapes what others wrote.
func (d *Explained) Print(w io.Writer) {
	fmt.Fprintf(w, "%s  %s\n", d.ID, d.Time.Format(time.RFC3339Nano))
	cli.When(w, d.Session != nil, "%s\n", d.Session)
	fmt.Fprintf(w, "%s  %s\n", text.OneLine(d.Tool, 120), strings.Join(d.Effect, ", "))
	for i, l := range d.Explanation {
		fmt.Fprintf(w, "  %s\n", text.OneLine(l, 2000))
		for _, s := range d.Story {
			cli.When(w, i == 0, "  %s\n", text.OneLine(s, 2000))
		}
	}
	cli.When(w, d.Decision == nil, "  %s %s: the details were erased\n", Word(d.Status, d.Reason), d.Reason)
	switch r := d.Result; {
	case d.Anyway != "":
		fmt.Fprintf(w, "  its person let it pass where the client asked: it ended %s, and vouches for nothing\n", text.OneLine(d.Anyway, 20))
	case r != nil && r.Admissible:
		fmt.Fprintf(w, "  the call ended %s; its result is evidence ev%d\n", r.Status, r.Evidence)
		for _, from := range r.Recalled {
			fmt.Fprintf(w, "  %s was remembered from %s, label %s\n", text.OneLine(cmp.Or(from.Inner, from.Pointer), 200), text.OneLine(from.From, 120), from.Label)
		}
	case r != nil:
		fmt.Fprintf(w, "  the call ended %s; its result vouches for nothing (%s)\n", r.Status, text.OneLine(r.void(), 120))
	case d.UnderWay:
		fmt.Fprintf(w, "  the call is under way: its result is still to come\n")
	case d.Passed() && d.Beyond:
		fmt.Fprintf(w, "  no outcome stands in the records that were looked at behind it, and more follow\n")
	case d.Passed():
		fmt.Fprintf(w, "  no outcome is recorded: whether the call took place is unknown\n")
	}
	if s := d.Settled; s != nil {
		word := "not happened"
		if s.Happened {
			word = "happened"
		}
		fmt.Fprintf(w, "  %s said on %s that it has %s\n", text.OneLine(s.By, 80), s.Time.Format(time.RFC3339), word)
	}
}

// Told is what a list tells of a decision.
type Told struct {
	gateway.Told
	Answer uint32 // the evidence number of the person's answer that the call passed by, 0 for none
}

// Values are those of records.
type Values interface {
	Value(ctx context.Context, session string, n uint64, name string) ([]byte, error)
}

// Tell is what a list tells of the record of a decision: nothing where that was erased.
func Tell(ctx context.Context, log Values, rec *audit.Record) Told {
	read := first{Values: log}
	t := Told{Told: gateway.Tell(ctx, &read, rec)}
	line, _, _ := bytes.Cut(read.bytes, []byte{'\n'})
	var found struct{ Traces []gate.Trace }
	if json.Unmarshal(line, &found) == nil {
		for _, trace := range found.Traces {
			if trace.Rule == "approval" && len(trace.Evidence) > 0 {
				t.Answer = trace.Evidence[0].Evidence
			}
		}
	}
	return t
}

// first keeps the value that is read first, which is that of the decision.
type first struct {
	Values
	bytes []byte
}

func (f *first) Value(ctx context.Context, session string, n uint64, name string) ([]byte, error) {
	b, err := f.Values.Value(ctx, session, n, name)
	if f.bytes == nil {
		f.bytes = b
	}
	return b, err
}

// Exact is one value of a record, or of a decision its arguments or answers; nil for none.
func Exact(r *audit.ProvenRecord, name string) []byte {
	arguments, answers := gateway.Exact(r.Record, &r.Item)
	switch {
	case name == "arguments" && arguments != nil:
		return arguments
	case name == "answers" && answers != nil:
		return answers
	}
	b, _ := r.Value(name)
	return b
}

// Labels says who can have written what the call of a decision returned at a place, by the
// contract that it was decided by; known is false where the record does not name its rules.
func Labels(ctx context.Context, log Log) func(call *audit.Record, pointer string) (label writ.Label, known bool) {
	rules := gateway.NewRulesets(log)
	return func(call *audit.Record, pointer string) (label writ.Label, known bool) {
		if call == nil {
			return label, false
		}
		label, err := rules.LabelAt(ctx, call, pointer)
		return label, err == nil
	}
}

// Turn is where calls came to be judged otherwise than before: by another text of the policy, by
// other pins of it, or by other definitions of the tools that servers list.
type Turn struct {
	ID      string // of the first decision
	Time    time.Time
	Was, Is string         // the SHA-256 of the policy's text
	Lines   []cli.DiffLine // of both texts
	// Pinned and Changed are tools, each with the pin that it has now: by the policy, "" for none
	// any more, and of its definition.
	Pinned, Changed []Pin
}

// Pin is a tool's.
type Pin struct{ Tool, Pin string }

// Turns are those among so many of the newest records, at most so many, the newest first; and the
// SHA-256 of the policy that the newest call was judged by, "" where there was none.
func Turns(ctx context.Context, log Log, records int64, most int) (out []Turn, now string, err error) {
	all, err := gateway.NewRulesets(log).Turns(ctx, log.Log(ctx, -records), most+1)
	listed := map[string]string{} // a server that is not there for a while changed nothing
	for i, t := range all {
		turn := Turn{ID: fmt.Sprintf("%s/%d", t.Session, t.N), Time: t.Time, Is: t.Digest}
		turn.Changed = pinsOf(t.Listed, t.Listed, func(tool string) bool { was, known := listed[tool]; return known && was != t.Listed[tool] })
		maps.Copy(listed, t.Listed)
		if now = t.Digest; i == 0 {
			continue
		}
		was := all[i-1]
		if turn.Was = was.Digest; turn.Was != turn.Is {
			turn.Lines = cli.Diff(was.Policy, t.Policy)
			both := maps.Clone(was.Pins)
			maps.Copy(both, t.Pins)
			turn.Pinned = pinsOf(both, t.Pins, func(tool string) bool { return was.Pins[tool] != t.Pins[tool] })
		}
		if turn.Was != turn.Is || len(turn.Changed) > 0 {
			out = append([]Turn{turn}, out...)
		}
	}
	return out, now, err
}

// pinsOf are the pins that those of some tools have now that are others.
func pinsOf(tools, now map[string]string, other func(tool string) bool) (all []Pin) {
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		if other(tool) {
			all = append(all, Pin{tool, now[tool]})
		}
	}
	return all
}

// EvidenceOf is the number under which a record is evidence in its session, 0 where it is
// none.
func EvidenceOf(rec *audit.Record) uint32 {
	var data struct{ Evidence uint32 }
	if json.Unmarshal(rec.Data, &data) != nil {
		return 0
	}
	return data.Evidence
}

// Evidence finds the record that is evidence of that number in a session which has head
// records, and is audit.ErrNotFound where there is none. Numbers rise with the records, so
// that few are read.
func Evidence(ctx context.Context, log Log, session string, number uint32, head uint64) (audit.ProvenRecord, error) {
	for from, to := uint64(number)+1, head; from <= to; { // each is a record of its own, after the first
		mid := from + (to-from)/2
		at, got, err := firstEvidence(ctx, log, session, mid, to)
		switch {
		case err != nil:
			return at, err
		case got == 0 || got > number:
			to = mid - 1
		case got == number:
			return at, nil
		default:
			from = at.N + 1
		}
	}
	return audit.ProvenRecord{}, audit.ErrNotFound
}

// firstEvidence is the first evidence among the records from … to of a session, numbered 0
// where there is none.
func firstEvidence(ctx context.Context, log Log, session string, from, to uint64) (at audit.ProvenRecord, number uint32, err error) {
	for it, err := range log.Read(ctx, session, from) {
		if err != nil || it.N > to {
			return at, 0, err
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return at, 0, err
		}
		if number := EvidenceOf(rec); number > 0 {
			return audit.ProvenRecord{Item: it, Record: rec}, number, nil
		}
	}
	return at, 0, nil
}

// Result is how a call ended, and what its result is worth.
type Result struct {
	Decision   uint64 `json:"decision"`
	Status     string `json:"status"`
	Evidence   uint32 `json:"evidence"`
	Admissible bool   `json:"admissible"`
	Why        string `json:"why,omitempty"`
	// Recalled are the leaves of an answer of the memory that stand in what it
	// captured, each with the evidence it came from (R35).
	Recalled []provenance.Recalled `json:"recalled,omitempty"`
}

// void says why the result vouches for nothing.
func (r *Result) void() string {
	if r.Why == "unvalidated" {
		return r.Why + ": its tool publishes no output schema, or it breaks that"
	}
	return r.Why
}

// Unreadable is the exit of a command that could not read the log.
func Unreadable(err error) error {
	code := cli.ExitIO
	if errors.Is(err, audit.ErrAltered) {
		code = cli.ExitData
	}
	return cli.Fail(code, "writ audit verify", "the log cannot be read: %w", err)
}
