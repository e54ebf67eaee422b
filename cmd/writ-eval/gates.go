package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/eval/gates"
	"github.com/writ-project/writ/internal/cli"
)

// gatesResult is where the result goes that stands in the repository.
const gatesResult = "eval/results/offline_gate_eval.json"

func gatesCommand() *cobra.Command {
	var out string
	var seed uint64
	var fuzz uint32
	var asJSON bool
	c := &cobra.Command{
		Use: "gates", Short: "Run every gate over the built-in cases and generated ones, offline",
		Long: "Run every gate over the built-in cases and 10,000 generated plans and summaries each.\n" +
			"No network, no model, no server. The result is a file that is the same, byte for byte,\n" +
			"for the same seed and cases. The exit code is 65 when a case failed.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o := gates.Options{Gates: gates.Product(), Seed: seed, Fuzz: int(fuzz)}
			tell, end := showProgress(c, "evaluating…")
			o.Progress = func(section string) { tell(section + " done") }
			r, err := gates.Run(o)
			end()
			if err != nil {
				return cli.Fail(cli.ExitData, "", "%w", err)
			}
			if err := tellResult(c, r, out, asJSON, gatesTable(r, out), nil); err != nil {
				return err
			}
			return gatesOutcome(r)
		},
	}
	c.Flags().StringVar(&out, "out", gatesResult, "write the result to `FILE`")
	c.Flags().Uint64Var(&seed, "seed", gates.DefaultSeed, "seed `N` of the generated cases")
	c.Flags().Uint32Var(&fuzz, "fuzz", gates.DefaultFuzz, "`N` generated cases of each of the two kinds")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// gatesOutcome is nil only when every case passed.
func gatesOutcome(r *gates.Report) error {
	if r.Failed > 0 || r.Total == 0 {
		return cli.Fail(cli.ExitData, "", "%d of %d cases failed", r.Failed, r.Total)
	}
	return nil
}

// gatesTable is one line a section, and what failed.
func gatesTable(r *gates.Report, out string) string {
	const failedShown = 10 // of each section
	w := &strings.Builder{}
	line := func(name string, cells ...any) {
		fmt.Fprintf(w, "%-16s", name)
		for i, c := range cells {
			fmt.Fprintf(w, "%*v", []int{8, 8, 8, 15, 14}[i], c)
		}
		fmt.Fprintln(w)
	}
	of := func(a, b int) string { return fmt.Sprintf("%d of %d", a, b) }
	line("section", "total", "passed", "failed", "false accepts", "false blocks")
	for _, s := range r.Sections() {
		line(s.Suite, s.Total, s.Passed, s.Failed, of(s.FalseAccepts, s.MustBlock), of(s.FalseBlocks, s.MustAccept))
	}
	line("all", r.Total, r.Passed, r.Failed)
	for _, s := range r.Sections() {
		for i, f := range s.FailedCases {
			if i == failedShown {
				fmt.Fprintf(w, "%s: %d more in %s\n", s.Suite, s.Failed-i, cli.Printable(out))
				break
			}
			fmt.Fprintf(w, "failed: %s (%s): want %s, got %s\n", cli.Printable(f.ID), cli.Printable(f.Kind), cli.Printable(f.Want), cli.Printable(f.Got))
		}
	}
	fmt.Fprintf(w, "%d cases made by hand, %d generated with seed %d; %s\n", r.HandMade, r.Fuzzed, r.Seed, cli.Printable(out))
	return w.String()
}
