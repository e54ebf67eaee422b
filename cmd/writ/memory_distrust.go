package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/memory"
)

// distrustReport is what `writ memory distrust --json` prints: what the memory
// comes to without what the source said.
type distrustReport struct {
	Applied  bool   `json:"applied"`
	Decision string `json:"decision_id,omitempty"`
	Source   string `json:"source"`
	Since    string `json:"since"`
	// Observations that are retracted, those concluded from them too.
	Observations []string   `json:"observations"`
	Propositions []standing `json:"propositions"`
}

// standing is where a proposition stood and where it comes to stand.
type standing struct {
	ID             string        `json:"id"`
	Text           memory.Data   `json:"text"`
	State          memory.Status `json:"state"`
	Confidence     memory.Micro  `json:"confidence"`
	NextState      memory.Status `json:"next_state"`
	NextConfidence memory.Micro  `json:"next_confidence"`
	Rule           memory.Rule   `json:"rule_id"`
	// Reopened says that it holds again: what took its place loses its support.
	Reopened bool `json:"reopened,omitempty"`
}

func (s *standing) changed() bool { return s.State != s.NextState || s.Reopened }

func memoryDistrust() *cobra.Command {
	var f flags
	var since string
	var yes bool
	c := f.take(&cobra.Command{
		Use: "distrust SOURCE --since TIME", Short: "Retract what a source said since a time, and refuse it from now on",
		Long: "Recover from a poisoned source: what it said since TIME, and what was concluded from that, no\n" +
			"longer counts, and it is refused from now on. What every claim comes to is shown first.\n" +
			"Nothing is deleted. `writ memory source resume` takes the source back.",
		Example: "  writ memory distrust web/fetch --since 2026-11-20T00:00:00Z",
		Args:    exactly(1, "one source, as writ memory get obs_… names it"),
		PreRunE: func(*cobra.Command, []string) error {
			if _, err := time.Parse(time.DateOnly, since); err == nil {
				since += "T00:00:00Z"
			}
			if _, err := time.Parse(time.RFC3339Nano, since); err != nil {
				return cli.Fail(cli.ExitUsage, "writ memory distrust SOURCE --since 2026-11-20T00:00:00Z", "--since takes a time as in RFC 3339, or a date")
			}
			return nil
		},
		RunE: f.with(toWrite, func(c *cobra.Command, r *remembered, args []string) error {
			rep, d, err := r.distrust(c.Context(), args[0], since)
			if err != nil {
				return err
			}
			if d.Outcome.Status == writ.Rejected { // it would be, and is not recorded
				return printDecision(c.OutOrStdout(), &d.Outcome, f.json)
			}
			if !f.json {
				rep.print(c.OutOrStdout())
			}
			if !f.dry {
				if err := confirm(c, yes, "apply this?"); err != nil {
					return err
				}
				// Decided again, on the newest state: what comes out is what is said.
				d, err := r.keeper.Operate(c.Context(), r.principal, memory.CommandDistrust, object("source", args[0], "since", since))
				if err != nil {
					return cli.Fail(cli.ExitIO, "writ memory verify", "%w", err)
				}
				if d.Outcome.Status == writ.Rejected || !f.json {
					return printDecision(c.OutOrStdout(), &d.Outcome, f.json)
				}
				rep.Applied, rep.Decision = true, d.Outcome.Decision
			}
			return f.show(c, rep, func(io.Writer) {}) // in words it was said before
		}),
	}, ofMemory...)
	c.Flags().StringVar(&since, "since", "", "`TIME`, RFC 3339, by when it was recorded")
	c.Flags().BoolVar(&f.dry, "preview", false, "show what would change, and change nothing")
	c.Flags().BoolVar(&yes, "yes", false, "apply without asking")
	return c
}

// distrust decides the command on the state as it is and writes nothing.
func (r *remembered) distrust(ctx context.Context, source, since string) (rep *distrustReport, d memory.Decision, err error) {
	rep = &distrustReport{Source: source, Since: since, Observations: []string{}, Propositions: []standing{}}
	err = r.read(ctx, func(x *memory.Reader) error {
		d = memory.Operate(x.State, memory.Context{Policy: r.policy, Namespace: r.namespace, Mode: r.mode, Principal: r.principal, Now: x.Now},
			memory.CommandDistrust, object("source", source, "since", since))
		if d.Event == nil || d.Outcome.Status == writ.Rejected {
			return nil
		}
		reopened := map[string]bool{}
		for i := range d.Event.Ops {
			switch o := &d.Event.Ops[i]; {
			case o.Distrust != nil:
				rep.Observations = append(rep.Observations, o.Distrust.Observations...)
			case o.Mark != nil && o.Mark.Reopen:
				reopened[o.Mark.Proposition] = true
			case o.Belief != nil:
				v, _ := x.View(o.Belief.Proposition)
				rep.Propositions = append(rep.Propositions, standing{ID: v.ID, Text: v.Text, State: v.State, Confidence: v.Confidence,
					NextState: o.Belief.Next, NextConfidence: o.Belief.Score.Confidence, Rule: o.Belief.Rule})
			}
		}
		for i := range rep.Propositions {
			rep.Propositions[i].Reopened = reopened[rep.Propositions[i].ID]
		}
		// What changes comes first.
		slices.SortStableFunc(rep.Propositions, func(a, b standing) int {
			switch {
			case a.changed() == b.changed():
				return 0
			case a.changed():
				return -1
			}
			return 1
		})
		return nil
	})
	return rep, d, err
}

func (rep *distrustReport) print(w io.Writer) {
	fmt.Fprintf(w, "%d observations no longer count", len(rep.Observations))
	when(w, len(rep.Observations) > 0, ": %s", someOf(rep.Observations))
	fmt.Fprintln(w)
	for i := range rep.Propositions {
		s := &rep.Propositions[i]
		printMove(w, s.ID, s.Text, s.State, s.NextState, s.Confidence, s.NextConfidence)
		fmt.Fprintf(w, ", because %s\n", ruleWords(s.Rule))
		when(w, s.Reopened, "  it holds again: what took its place loses its support\n")
	}
	when(w, len(rep.Propositions) == 0, "no claim rests on them\n")
}
