package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/memory"
)

// distrustReport is what `writ memory distrust --json` prints.
type distrustReport struct {
	Applied  bool   `json:"applied"`
	Decision string `json:"decision_id,omitempty"`
	Source   string `json:"source"`
	Since    string `json:"since"`
	// Observations that are retracted, those concluded from them too.
	Observations []string `json:"observations"`
	// Transitions are claims that stand otherwise without what the source said.
	Transitions []memory.Changed `json:"transitions"`
}

func memoryDistrust() *cobra.Command {
	x := weighed{command: memory.CommandDistrust, question: "apply this?"}
	var source, since string
	c := &cobra.Command{
		Use: "distrust SOURCE --since TIME", Short: "Retract what a source said since a time, and refuse it from now on",
		Long: "Recover from a poisoned source: what it said since TIME, and what was concluded from that, no\n" +
			"longer counts, and it is refused from now on. Which claims come to stand otherwise is shown\n" +
			"first. Nothing is deleted. `writ memory source resume` takes the source back.",
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
	}
	c.Flags().StringVar(&since, "since", "", "`TIME`, RFC 3339, by when it was recorded")
	report := func(d *memory.Decision) *distrustReport {
		rep := &distrustReport{Source: source, Since: since, Observations: []string{}, Transitions: d.Outcome.Transitions}
		for i := range d.Event.Ops {
			if o := d.Event.Ops[i].Distrust; o != nil {
				rep.Observations = append(rep.Observations, o.Observations...)
			}
		}
		return rep
	}
	x.args = func(args []string) []byte {
		source = args[0]
		return object("source", source, "since", since)
	}
	x.shown = func(_ *memory.Reader, d *memory.Decision) (any, func(io.Writer), error) {
		rep := report(d)
		return rep, func(w io.Writer) {
			fmt.Fprintf(w, "%d observations no longer count", len(rep.Observations))
			when(w, len(rep.Observations) > 0, ": %s", someOf(rep.Observations))
			fmt.Fprintln(w)
			printTransitions(w, rep.Transitions)
			when(w, len(rep.Transitions) == 0, "  no claim comes to stand otherwise\n")
		}, nil
	}
	x.done = func(c *cobra.Command, _ *remembered, d *memory.Decision) error {
		if !x.json {
			return printDecision(c.OutOrStdout(), &d.Outcome, false)
		}
		rep := report(d)
		rep.Applied, rep.Decision = true, d.Outcome.Decision
		return cli.PrintJSON(c.OutOrStdout(), rep)
	}
	return x.take(c, "change")
}
