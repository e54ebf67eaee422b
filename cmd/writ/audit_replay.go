package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/learn"
)

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
