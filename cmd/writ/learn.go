package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/learn"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

// mostSessions is how many sessions are learned from, the newest.
const mostSessions = 100

// leftOut is how many sessions were not read.
type leftOut struct {
	Other    int `json:"left_out"`          // of another engine, or of a policy that is none any more
	Redacted int `json:"left_out_redacted"` // what was said in them is gone
	Older    int `json:"left_out_older"`    // than the newest that are read
}

func (l *leftOut) print(w io.Writer, elsewhere int) {
	var parts []string
	for _, p := range []struct {
		n   int
		why string
	}{
		{l.Older, "older than the newest " + strconv.Itoa(mostSessions)},
		{l.Redacted, "redacted"},
		{l.Other, "of another engine, or of a policy that is none any more"},
		{elsewhere, "of servers that the policy does not name"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.why))
		}
	}
	when(w, len(parts) > 0, "sessions left out: %s\n", strings.Join(parts, "; "))
}

func learnCommand() *cobra.Command {
	var f flags
	var since string
	c := f.take(&cobra.Command{
		Use: "learn", Short: "Propose what recorded calls would need no question for, one field at a time", Args: cli.NoArgs,
		Long: "Read what was recorded (of shadow mode too), and find which field of which tool's results the\n" +
			"agent passed on as which argument. Each field is one question: who can write there. What is\n" +
			"kept of the answers are lines that writ grown lists and takes back. Every recorded call is judged\n" +
			"again with them, and beside it calls with values that no tool returned.\n\n" +
			"Only at a terminal anything is asked and written; else, and with --json or --dry-run, what was\n" +
			"found is listed. The newest 100 sessions are read, of a log that verifies.",
		Example: "  writ learn --config writ.yaml\n  writ learn --config writ.yaml --since 72h --dry-run",
		RunE: func(c *cobra.Command, _ []string) error {
			p, at, sessions, left, err := f.past(c.Context(), since)
			if err != nil {
				return err
			}
			r := learn.From(p, sessions)
			if f.json {
				return cli.PrintJSON(c.OutOrStdout(), struct {
					*learn.Report
					leftOut
				}{r, left})
			}
			out := c.OutOrStdout()
			printTrial(out, r)
			all := 0
			for _, n := range r.Redefined {
				all += n
			}
			printRedefined(out, all)
			left.print(out, r.Elsewhere)
			when(out, r.Away > 0, "left out: %s of servers that the policy does not name\n", cli.Number(r.Away, "call", "calls"))
			asks := !f.dry && ownTerminal(c.InOrStdin(), out) != nil
			if !asks {
				for i := range r.Fields {
					fmt.Fprintln(out)
					printField(out, &r.Fields[i])
				}
			}
			printUnnamed(out, r)
			if asks {
				return f.askLearned(c, at, r)
			}
			when(out, !f.dry && len(r.Fields) > 0, "\nnothing was asked or written: only at a terminal a person says who can write there\n  try: writ learn in a terminal of your own\n")
			return nil
		},
	}, "config", "state", "json")
	c.Flags().StringVar(&f.policy, "policy", "", "policy `FILE`")
	c.Flags().StringVar(&since, "since", "", "learn of sessions that began after `WHEN`: 72h ago, or a day, 2026-11-20")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "list what would be asked, and ask and write nothing")
	return c
}

// sinceWhen reads --since; without it that is the beginning.
func sinceWhen(text string, now time.Time) (t time.Time, err error) {
	if text == "" {
		return t, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	if t, err = time.ParseInLocation(time.DateOnly, text, time.Local); err != nil {
		return t, cli.Fail(cli.ExitUsage, "writ learn --since 72h", "--since is a duration or a day")
	}
	return t, nil
}

// past is the policy that grew, its file, and the sessions since then that it is tried on.
func (f *flags) past(ctx context.Context, since string) (p *policy.Policy, at string, sessions []*learn.Session, left leftOut, err error) {
	all, err := f.grown(ctx)
	if err != nil {
		return nil, "", nil, left, err
	}
	grown, err := meant(all)
	if err != nil {
		return nil, "", nil, left, err
	}
	from, err := sinceWhen(since, time.Now())
	if err != nil {
		return nil, "", nil, left, err
	}
	dir, st, err := toExplain(ctx, f.state)
	if err != nil {
		return nil, "", nil, left, err
	}
	defer st.Close()
	sessions, left, err = recorded(ctx, dir, st, from, mostSessions)
	return grown.Policy, grown.file, sessions, left, err
}

// recorded reads the newest so many sessions of a log that can be learned from, and says how
// many were left out. Where the log does not verify, nothing is read.
func recorded(ctx context.Context, dir string, st *sqlite.Store, since time.Time, most int) (out []*learn.Session, left leftOut, err error) {
	verifier, err := logVerifier(dir, "")
	if err != nil {
		return nil, left, err
	}
	snap, err := st.Snapshot(ctx)
	if err != nil {
		return nil, left, unreadable(err)
	}
	defer snap.Close()
	all := readSessions{rules: gateway.NewRulesets(st), since: since, most: most, open: map[string]*gateway.Replayer{}}
	rep, err := audit.Verify(ctx, snap, audit.VerifyOptions{Verifier: verifier, Replay: func(rec *audit.Record, it *audit.Item) error {
		return all.step(ctx, rec, it)
	}})
	if err != nil {
		return nil, all.left, unreadable(err)
	}
	if rep.Problem != nil {
		return nil, all.left, cli.Fail(cli.ExitData, "writ audit verify", "the log does not verify, and nothing is learned from it")
	}
	for _, id := range all.order {
		all.end(id)
	}
	return all.out, all.left, nil
}

// readSessions are the sessions of a log as far as its records were read.
type readSessions struct {
	rules *gateway.Rulesets
	since time.Time
	most  int
	open  map[string]*gateway.Replayer // nil: nothing is learned of it
	order []string
	out   []*learn.Session
	left  leftOut
}

func (all *readSessions) step(ctx context.Context, rec *audit.Record, it *audit.Item) error {
	if memoryserver.IsLog(rec.Session) {
		return nil
	}
	r, known := all.open[rec.Session]
	if !known {
		if !rec.Time.Before(all.since) {
			r = all.rules.Replayer()
			r.Learn()
		}
		all.open[rec.Session], all.order = r, append(all.order, rec.Session)
	}
	if r == nil {
		return nil
	}
	err := r.Step(ctx, rec, it)
	switch {
	case errors.Is(err, gateway.ErrReplay) || errors.Is(err, audit.ErrAltered):
		return err
	case err != nil: // its policy is none any more
		all.open[rec.Session] = nil
		all.left.Other++
	case rec.Kind == audit.KindClose:
		all.end(rec.Session)
	}
	return nil
}

// end takes what is learned of a session, and lets the oldest go where there are too many.
func (all *readSessions) end(id string) {
	r := all.open[id]
	if r == nil {
		return
	}
	all.open[id] = nil
	if s := r.Learned(); s != nil {
		all.out = append(all.out, s)
	} else if r.Blind() {
		all.left.Other++
	} else if r.Redacted > 0 {
		all.left.Redacted++
	}
	if older := len(all.out) - all.most; older > 0 {
		all.out = all.out[older:]
		all.left.Older += older
	}
}

// printTrial says what becomes of the recorded calls.
func printTrial(w io.Writer, r *learn.Report) {
	count := func(n learn.Count) string {
		return fmt.Sprintf("%d pass, %d wait for a person, %d refused for good", n.Passed, n.Asked, n.Refused)
	}
	fmt.Fprintf(w, "%s in %s, judged again by the policy as it is: %s\n", cli.Number(r.Calls, "call", "calls"), cli.Number(r.Sessions, "session", "sessions"), count(r.Before))
	for _, t := range r.Tools[:min(len(r.Tools), 5)] {
		fmt.Fprintf(w, "  %s: %d wait, %d refused\n", cli.OneLine(t.Tool, 100), t.Asked, t.Refused)
	}
	if len(r.Fields) == 0 {
		fmt.Fprintln(w, "there is no field to ask about")
		return
	}
	fmt.Fprintf(w, "with %s kept from now on: %s\n", cli.Number(len(r.Fields), "field", "fields"), count(r.After))
	if r.Later != r.After {
		fmt.Fprintf(w, "the same once more, in later sessions, which trust a server less that was sent words of the agent's: %s\n", count(r.Later))
		when(w, r.LaterGiven != r.Later, "  where the server alone gives what stands in these fields: %s\n", count(r.LaterGiven))
	}
	when(w, r.Invented.Tried+r.Misplaced.Tried > 0, "of these with a value that no tool returned %d of %d would pass, with one of another field %d of %d\n",
		r.Invented.Passed, r.Invented.Tried, r.Misplaced.Passed, r.Misplaced.Tried)
}

// printUnnamed lists what arguments came from and no line can say. Names of fields were
// chosen by servers, and their keys by anybody.
func printUnnamed(w io.Writer, r *learn.Report) {
	for i := range r.Unnamed {
		when(w, i == 0, "\nno line can be kept of these before the contract names them otherwise:\n")
		f := &r.Unnamed[i]
		fed := joined(f.Feeds, "; ", func(e learn.Edge) string {
			return fmt.Sprintf("%s %s, %d of %s", e.Tool, e.Arg, e.Seen, cli.Number(e.Of, "time", "times"))
		})
		fmt.Fprintf(w, "  %s %s (%s): %s\n", cli.OneLine(f.Tool, 100), text.Name(f.Pointer, 200), whyUnnamed[f.Why], cli.OneLine(fed, 300))
	}
}

// whyUnnamed says why a field is no question.
var whyUnnamed = map[string]string{
	"text":    "in a text; the contract has to take it apart",
	"unnamed": "the contract does not name it",
	"party":   "a stranger's identity, whoever he is",
	"model":   "a model's words",
	"secret":  "a secret",
	"prose":   "it is called as prose is",
}

// guessed says what the name of a field tells of who writes there.
var guessed = map[learn.Writers]string{
	learn.WritersStrangers: "by its name people write it: strangers too?",
	learn.WritersServer:    "by its name the server gives it",
	learn.WritersUnknown:   "its name does not say who writes it",
}

// printField says what one question rests on.
func printField(w io.Writer, f *learn.Field) {
	if f.Collection != "" {
		fmt.Fprintf(w, "the collection %s, which the policy leaves open: it would pass with closed: true, which is for what strangers cannot add to\n", cli.OneLine(f.Collection, 80))
	} else {
		fmt.Fprintf(w, "%s %s, which is %s as far as the policy says (%s)\n", cli.OneLine(f.Tool, 100), text.Name(f.Pointer, 200), f.Label, guessed[f.Writers])
		when(w, f.InText, "  it stands in a text: who can have the whole text be his, as the content of a file or a page is, writes it too\n")
	}
	for _, e := range f.Feeds {
		fmt.Fprintf(w, "  %s %s came from there %d of %s", cli.OneLine(e.Tool, 100), text.Name(e.Arg, 200), e.Seen, cli.Number(e.Of, "time", "times"))
		when(w, e.Values > 1, ", with %d different values", e.Values)
		when(w, len(e.Also) > 0, "; some stood in %s as well", cli.OneLine(strings.Join(e.Also, ", "), 300))
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "  by it %s fewer would wait\n", cli.Number(f.Saves, "call", "calls"))
}

// askLearned asks of each field, and keeps what a person says yes to: the lines stand
// beside the policy before the next question.
func (f *flags) askLearned(c *cobra.Command, file string, r *learn.Report) error {
	out := c.OutOrStdout()
	in := newLines(c.Context(), c.InOrStdin(), out)
	grew := false
	for i := range r.Fields {
		field := &r.Fields[i]
		fmt.Fprintf(out, "\n%d of %d: ", i+1, len(r.Fields))
		printField(out, field)
		offers := []approval.Offer{{Keep: keepOf(field), Lines: field.Lines()}}
		if given := field.GivenLines(); given != nil {
			offers = slices.Insert(offers, 0, approval.Offer{Keep: approval.KeepServer, Lines: given})
		}
		keep, err := readKeep(in, out, &approval.Shown{Question: approval.Question{FromNowOn: offers}})
		if err != nil && c.Context().Err() != nil {
			return c.Context().Err()
		}
		if err != nil || keep == "" {
			continue
		}
		lines := slices.Clone(offers[slices.IndexFunc(offers, func(o approval.Offer) bool { return o.Keep == keep })].Lines)
		for i := range lines {
			lines[i].By, lines[i].At = account(), time.Now().UTC().Format(time.RFC3339)
		}
		if err := regrow(c.Context(), file, lines, 0, func(*policy.Policy) error { return nil }); err != nil {
			return err
		}
		kept(out, lines)
		grew = true
	}
	if !grew {
		return nil
	}
	doors, err := f.doors()
	if err != nil {
		fmt.Fprintln(out, "no gateway runs on this state directory: the next one has it in force")
		return nil
	}
	for _, door := range doors {
		r, err := reloadAt(c.Context(), door, "it is kept, and does not count yet at a gateway that runs")
		if err != nil {
			return err
		}
		r.print(out)
	}
	return nil
}

// keepOf is what a person is asked of a field.
func keepOf(f *learn.Field) approval.Keep {
	switch {
	case f.Collection != "":
		return approval.KeepClosed
	case slices.ContainsFunc(f.Feeds, func(e learn.Edge) bool { return e.Line.Writes == policy.WritesServer }):
		return approval.KeepServer
	case slices.ContainsFunc(f.Feeds, func(e learn.Edge) bool { return e.Line.Writes != "" }):
		return approval.KeepOurs
	}
	return approval.KeepSource
}

// replayed is what another policy would have decided.
type replayed struct {
	*learn.Replayed
	leftOut
}

func auditReplay() *cobra.Command {
	var f flags
	var since string
	c := f.take(&cobra.Command{
		Use: "replay --policy FILE|DIR", Short: "Show what another policy would have decided on the recorded sessions", Args: cli.NoArgs,
		Long: "Judge every recorded call again by another policy, and list each decision that comes out\n" +
			"otherwise, as it was and as it would be. A session is folded by that policy from what its calls\n" +
			"answered when it was recorded; where nobody can know what would have come, it says so:\n\n" +
			"  a call that was made and would be refused: its answer counts for nothing in what follows\n" +
			"  a call that was made and would wait for a person: his yes is assumed\n" +
			"  a call that was not made and would pass: what it would have answered is not there\n\n" +
			"What follows another difference in its session may come of it, and is marked. Calls under another definition\n" +
			"of their tool than the policy pins are left out, and counted. Nobody is asked,\n" +
			"nothing is written and nothing is sent. Of a directory its policy.yaml is read, with what grew\n" +
			"beside it. The newest 100 sessions are read, of a log that verifies; a line says how many were\n" +
			"not: older ones, redacted ones, those of another engine. Calls without a session are left out.",
		Example: "  writ audit replay --policy policy.yaml\n  writ audit replay --policy policy.yaml --since 72h --json",
		RunE: func(c *cobra.Command, _ []string) error {
			if fi, err := os.Stat(f.policy); err == nil && fi.IsDir() {
				f.policy = filepath.Join(f.policy, "policy.yaml")
			}
			p, _, sessions, left, err := f.past(c.Context(), since)
			if err != nil {
				return err
			}
			r := replayed{learn.Replay(p, sessions), left}
			return f.show(c, r, r.print)
		},
	}, "config", "state", "json")
	c.Flags().StringVar(&f.policy, "policy", "", "policy `FILE`, or a directory with one")
	c.Flags().StringVar(&since, "since", "", "judge sessions that began after `WHEN`: 72h ago, or a day, 2026-11-20")
	return c
}

func (r *replayed) print(w io.Writer) {
	fmt.Fprintf(w, "%s in %s: %s\n", cli.Number(r.Calls, "call", "calls"), cli.Number(r.Sessions, "session", "sessions"), fates(r.Before))
	fmt.Fprintf(w, "by that policy: %s; %s otherwise\n", fates(r.After), cli.Number(len(r.Otherwise), "decision", "decisions"))
	for _, d := range r.Otherwise {
		fmt.Fprintf(w, "  %s/%d  %s  %s -> %s", cli.OneLine(d.Session, 80), d.Number, cli.OneLine(cmp.Or(d.Tool, "(unknown tool)"), 80), fate(d.Before), fate(d.After))
		when(w, d.Follows, "  (after another)")
		fmt.Fprintln(w)
	}
	r.printNotes(w)
}

// printNotes says what of it nobody can know, and what was left out.
func (r *replayed) printNotes(w io.Writer) {
	when(w, r.Undone > 0, "%s made and would be refused: what came of it counts for nothing in what follows\n", cli.Number(r.Undone, "call was", "calls were"))
	when(w, r.Assumed > 0, "%s made and would wait for a person: his yes is assumed in what follows\n", cli.Number(r.Assumed, "call was", "calls were"))
	when(w, r.Untried > 0, "%s not made and would pass: what would have come of it is not known\n", cli.Number(r.Untried, "call was", "calls were"))
	printRedefined(w, r.Redefined)
	r.leftOut.print(w, r.Elsewhere)
}

// printRedefined says how many calls a policy has nothing to say of.
func printRedefined(w io.Writer, n int) {
	when(w, n > 0, "%s made under another definition of the tool than the policy pins: left out, with what was answered\n", cli.Number(n, "call was", "calls were"))
}

func fates(n learn.Count) string {
	return fmt.Sprintf("%d passed, %d for a person, %d refused", n.Passed, n.Asked, n.Refused)
}

func fate(j learn.Judged) string {
	if j.Reason == "" {
		return string(j.Verdict)
	}
	return string(j.Verdict) + " (" + cli.OneLine(string(j.Reason), 60) + ")"
}
