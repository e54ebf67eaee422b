package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/certificate"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/provenance"
)

func auditShow() *cobra.Command {
	var f flags
	var open bool
	c := f.take(&cobra.Command{
		Use: "show [SESSION/N | SESSION]", Short: "Explain one decision, or list the newest",
		Long: "Explain one decision in words. Its id stands in each answer's _meta and in the list\n" +
			"that `writ audit show` prints without an id. Of an accepted act it tells where each value\n" +
			"came from. A session is named by its public id, or as it is kept. With --unsettled the acts\n" +
			"are listed of which no record says whether they happened, in sessions that are not closed; those\n" +
			"that a gateway is still at are marked: under way.",
		Args: needs("", "at most one name, and no decision with --unsettled", func(args []string) bool {
			return len(args) == 0 || len(args) == 1 && !(open && strings.Contains(args[0], "/"))
		}),
		RunE: f.onLog(toExplain, func(c *cobra.Command, dir string, st *sqlite.Store, args []string) error {
			of, n, one := "", "", false
			if len(args) == 1 {
				var err error
				of, n, one = strings.Cut(args[0], "/")
				if of, err = publicID(c.Context(), st, dir, of); err != nil {
					return err
				}
			}
			if one {
				d, err := explain(c.Context(), st, of, n)
				if err != nil {
					return err
				}
				if d.Result == nil && d.passed() {
					now, _ := f.running(c.Context())
					act := []shownDecision{d.shownDecision}
					markUnderWay(act, now)
					d.shownDecision = act[0]
				}
				if d.Session, err = sessionOf(c.Context(), st, dir, of); err != nil {
					return unreadable(err)
				}
				return f.show(c, d, d.print)
			}
			list := decisions
			if open {
				list = unsettled
			}
			all, err := list(c.Context(), st, of)
			if err != nil {
				return err
			}
			if open && len(all) > 0 {
				now, mute := f.running(c.Context())
				for _, m := range mute {
					fmt.Fprintf(c.ErrOrStderr(), "writ: %s: which of these are under way there is not known\n", cli.OneLine(m, 200))
				}
				left := markUnderWay(all, now)
				when(c.ErrOrStderr(), left != "", "writ: once somebody looked where it would show: writ audit settle %s --happened, or --not\n", left)
			}
			var session *sessionLine
			if of != "" {
				if session, err = sessionOf(c.Context(), st, dir, of); err != nil {
					return unreadable(err)
				}
			}
			return f.show(c, all, func(w io.Writer) {
				when(w, session != nil, "%s\n", session)
				when(w, len(all) == 0, "no decisions\n")
				for _, d := range all {
					d.printLine(w)
				}
			})
		}),
	}, "state", "json")
	c.Flags().BoolVar(&open, "unsettled", false, "list the acts whose outcome is not known")
	return c
}

// shownDecision is one line of the list, and the head of an explanation.
type shownDecision struct {
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

func shown(rec *audit.Record) (d shownDecision, ok bool) {
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
	return shownDecision{ID: fmt.Sprintf("%s/%d", rec.Session, rec.N), Time: rec.Time, Tool: name, Effect: data.Effect,
		Status: data.Status, Code: data.Code, Reason: data.Reason, Shadow: data.Shadow}, true
}

// passed reports whether the call went to its server.
func (d *shownDecision) passed() bool { return d.Status != "rejected" || d.Shadow }

const listed = 50

func (d *shownDecision) printLine(w io.Writer) {
	fmt.Fprintf(w, "%s  %s  %-11s  %s", d.Time.Format(time.RFC3339), d.ID, d.Status, cli.OneLine(d.Tool, 80))
	when(w, d.Reason != "", "  %s", cli.OneLine(d.Reason, 60))
	when(w, d.Shadow, "  (shadow: it passed)")
	when(w, d.UnderWay, "  (under way)")
	fmt.Fprintln(w)
}

// decisions are those of a session, or the newest of all.
func decisions(ctx context.Context, st *sqlite.Store, session string) ([]shownDecision, error) {
	if session == "" {
		all, _, err := newest(ctx, st, listed)
		return all, err
	}
	all := []shownDecision{}
	err := eachRecord(st.Records(ctx, session), func(_ *audit.Item, rec *audit.Record) {
		if d, ok := shown(rec); ok {
			all = append(all, d)
		}
	})
	return all, err
}

// newest are the newest so many decisions of the log, and how many records that has. It reads
// no more of it than it has to, or twice that.
func newest(ctx context.Context, st *sqlite.Store, most int) (all []shownDecision, size int64, err error) {
	for n := int64(4 * max(most, 64)); ; n *= 2 {
		all = []shownDecision{}
		read := int64(0)
		err := eachRecord(st.Log(ctx, -n), func(it *audit.Item, rec *audit.Record) {
			read, size = read+1, it.Index+1
			if d, ok := shown(rec); ok {
				all = append(all, d)
			}
		})
		if err != nil || read < n || len(all) >= most {
			return all[max(0, len(all)-most):], size, err
		}
	}
}

// eachRecord shows the records of a store, which are proven.
func eachRecord(src iter.Seq2[audit.Item, error], show func(*audit.Item, *audit.Record)) error {
	for it, err := range src {
		if err != nil {
			return unreadable(err)
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return cli.Fail(cli.ExitData, "writ audit verify", "record %d cannot be read", it.Index)
		}
		show(&it, rec)
	}
	return nil
}

type explained struct {
	shownDecision
	Session     *sessionLine    `json:"session,omitempty"` // nil for requests that carry none
	Explanation []string        `json:"explanation"`
	Story       []string        `json:"story,omitempty"` // of an accepted act, where each value came from
	Decision    json.RawMessage `json:"decision,omitempty"`
	Result      *shownResult    `json:"result,omitempty"`
	// Anyway is how a refused call ended that its client's person let pass.
	Anyway string `json:"anyway,omitempty"`
	// Settled is what a person said of an act whose outcome is unknown.
	Settled *shownSettled `json:"settled,omitempty"`
}

type shownSettled struct {
	Happened bool      `json:"happened"`
	By       string    `json:"by"`
	Time     time.Time `json:"time"`
}

// decided reads a decision, and what came of its call where that is recorded: how it
// ended, where that is known, and what a person said of it where it is not.
func decided(ctx context.Context, st *sqlite.Store, session, num string) (all []audit.ProvenRecord, settled *shownSettled, err error) {
	n, err := strconv.ParseUint(num, 10, 64)
	if err != nil || !audit.ValidSession(session) {
		return nil, nil, cli.Fail(cli.ExitUsage, "writ audit show", "a decision's id looks like s_…/7")
	}
	for it, err := range st.Read(ctx, session, n) {
		if err != nil {
			return nil, nil, unreadable(err)
		}
		rec, err := audit.ParseRecord(it.Leaf)
		if err != nil {
			return nil, nil, cli.Fail(cli.ExitData, "writ audit verify", "record %s/%d cannot be read", session, n)
		}
		r := audit.ProvenRecord{Item: it, Record: rec}
		switch {
		case rec.N == n && rec.Kind != audit.KindDecision:
			return nil, nil, cli.Fail(cli.ExitUsage, "writ audit show", "record %s/%d is no decision but of kind %s", session, n, rec.Kind)
		case rec.N == n:
			all = append(all, r)
		case rec.Kind == gateway.KindSettle && audit.DecisionOf(rec) == n:
			settled = &shownSettled{Time: rec.Time}
			if json.Unmarshal(rec.Data, settled) != nil {
				return nil, nil, cli.Fail(cli.ExitData, "writ audit verify", "record %s/%d cannot be read", session, rec.N)
			}
		case len(all) > 0 && audit.DecisionOf(rec) == n:
			if all = append(all[:1], r); ended(rec).Status != "unknown" {
				return all, settled, nil
			}
		}
	}
	if len(all) == 0 {
		return nil, nil, cli.Fail(cli.ExitData, "writ audit show", "there is no such record")
	}
	return all, settled, nil
}

// explain says in words what decided found.
func explain(ctx context.Context, st *sqlite.Store, session, num string) (*explained, error) {
	all, settled, err := decided(ctx, st, session, num)
	if err != nil {
		return nil, err
	}
	head, _ := shown(all[0].Record)
	d := &explained{shownDecision: head, Settled: settled}
	if raw, kept := all[0].Value("decision"); kept {
		parsed, err := gate.ParseRecord(raw)
		if err != nil {
			return nil, cli.Fail(cli.ExitData, "writ audit verify", "the recorded decision cannot be read")
		}
		d.Decision, d.Explanation, d.Story = raw, gate.Explain(parsed), certificate.Story(parsed)
	}
	if len(all) > 1 {
		r := ended(all[1].Record)
		if d.Result = r; all[1].Record.Kind == gateway.KindAnyway {
			d.Result, d.Anyway = nil, r.Status
		}
	}
	return d, nil
}

// ended is how a call ended, as a record says.
func ended(rec *audit.Record) *shownResult {
	r := &shownResult{}
	if json.Unmarshal(rec.Data, r) != nil {
		r.Status = "unknown"
	}
	return r
}

func (d *explained) print(w io.Writer) {
	fmt.Fprintf(w, "%s  %s\n", d.ID, d.Time.Format(time.RFC3339Nano))
	when(w, d.Session != nil, "%s\n", d.Session)
	fmt.Fprintf(w, "%s  %s\n", cli.OneLine(d.Tool, 120), strings.Join(d.Effect, ", "))
	for i, l := range d.Explanation {
		fmt.Fprintf(w, "  %s\n", cli.OneLine(l, 2000))
		for _, s := range d.Story {
			when(w, i == 0, "  %s\n", cli.OneLine(s, 2000))
		}
	}
	when(w, d.Decision == nil, "  %s %s: the details were erased\n", d.Status, d.Reason)
	switch r := d.Result; {
	case d.Anyway != "":
		fmt.Fprintf(w, "  its person let it pass where the client asked: it ended %s, and vouches for nothing\n", cli.OneLine(d.Anyway, 20))
	case r != nil && r.Admissible:
		fmt.Fprintf(w, "  the call ended %s; its result is evidence ev%d\n", r.Status, r.Evidence)
		for _, from := range r.Recalled {
			fmt.Fprintf(w, "  %s was remembered from %s, label %s\n", cli.OneLine(from.Pointer, 200), cli.OneLine(from.From, 120), from.Label)
		}
	case r != nil:
		fmt.Fprintf(w, "  the call ended %s; its result vouches for nothing (%s)\n", r.Status, cli.OneLine(r.Why, 60))
	case d.UnderWay:
		fmt.Fprintf(w, "  the call is under way: its result is still to come\n")
	case d.passed():
		fmt.Fprintf(w, "  no outcome is recorded: whether the call took place is unknown\n")
	}
	if s := d.Settled; s != nil {
		word := "not happened"
		if s.Happened {
			word = "happened"
		}
		fmt.Fprintf(w, "  %s said on %s that it has %s\n", cli.OneLine(s.By, 80), s.Time.Format(time.RFC3339), word)
	}
}

type shownResult struct {
	Decision   uint64 `json:"decision"`
	Status     string `json:"status"`
	Evidence   uint32 `json:"evidence"`
	Admissible bool   `json:"admissible"`
	Why        string `json:"why,omitempty"`
	// Recalled are the leaves of an answer of the memory that stand in what it
	// captured, each with the evidence it came from (R35).
	Recalled []provenance.Recalled `json:"recalled,omitempty"`
}
