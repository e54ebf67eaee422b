package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	evalmemory "github.com/writ-project/writ/eval/memory"
	"github.com/writ-project/writ/internal/cli"
)

// memoryResult is where the result goes that stands in the repository, with the
// charts beside it.
const memoryResult = "eval/results/memory.json"

func memoryCommand() *cobra.Command {
	var out, locomo string
	var o evalmemory.Options
	var seeds []string
	var chains, walks uint16
	var asJSON bool
	parts := []string{evalmemory.RevisionPart, evalmemory.AttackPart, evalmemory.RecallPart}
	c := &cobra.Command{
		Use: "memory", Short: "Measure the memory offline: values that change, an attacker who drives all tools, and what is found",
		Long: "Measure the memory on generated data. revision: values change within hours, days and months, and\n" +
			"every change is followed by a read. attack: an agent that drives every tool searches for calls\n" +
			"after which a falsehood is established or a truth is not. recall: conversations are asked what\n" +
			"was said, alone and with claims beside them. Beside it the same through rules that other\n" +
			"memories come down to, which are emulated and labelled so.\n" +
			"No network, no model, no clock. The result is a file that is the same, byte for byte, for the\n" +
			"same seeds; docs/formats.md has its form. LoCoMo is asked where you have its file: its licence\n" +
			"keeps it out of this repository.\n\n" +
			"Exit codes: 0 every gate is met; 65 one is not; 64 usage; 74 I/O.",
		Example: "  writ-eval memory\n  writ-eval memory --only recall --locomo locomo10.json --out /dev/null",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Only != "" && !slices.Contains(parts, o.Only) {
				return cli.Fail(cli.ExitUsage, "writ-eval memory --only attack", "--only is one of %s", strings.Join(parts, ", "))
			}
			if chains == 0 || walks == 0 {
				return cli.Fail(cli.ExitUsage, "writ-eval memory --help", "--chains and --walks: at least 1")
			}
			o.Chains, o.Walks, o.Seeds = int(chains), int(walks), nil
			for _, s := range seeds {
				n, err := strconv.ParseUint(s, 10, 64)
				if err != nil || n == 0 || slices.Contains(o.Seeds, n) {
					return cli.Fail(cli.ExitUsage, "writ-eval memory --seeds 101,202", "--seeds: different whole numbers from 1 on are expected, %s is not one", s)
				}
				o.Seeds = append(o.Seeds, n)
			}
			if locomo != "" {
				var err error
				if o.LoCoMo, err = os.ReadFile(locomo); err != nil {
					return cli.Fail(cli.ExitIO, "writ-eval memory --locomo FILE", "the file cannot be read: %w", err)
				}
				if !c.Flags().Changed("out") {
					out = "" // the result that stands in the repository is without it
				}
			}
			tell, end := showProgress(c, "measuring…")
			o.Progress = func(done, of int) { tell(fmt.Sprintf("%d %%", 100*done/of)) }
			r, err := evalmemory.Run(o)
			end()
			if err != nil {
				return cli.Fail(cli.ExitData, "", "%w", err)
			}
			text := fmt.Sprintf("%s%s\n", r.Table(), cli.Printable(out))
			if err := tellResult(c, r, out, asJSON, text, map[string]string{".svg": r.SVG()}); err != nil {
				return err
			}
			return memoryOutcome(r)
		},
	}
	c.Flags().StringVar(&o.Only, "only", "", "run `PART` alone: revision, attack or recall")
	c.Flags().StringVar(&out, "out", memoryResult, "write the result to `FILE`, and the charts to .svg beside it")
	c.Flags().StringVar(&locomo, "locomo", "", "ask the conversations of a LoCoMo `FILE` as well")
	c.Flags().StringSliceVar(&seeds, "seeds", nil, "seeds `N,…` in place of 101,202,303,404,505")
	c.Flags().Uint16Var(&chains, "chains", evalmemory.Chains, "`N` chains of values of each seed")
	c.Flags().Uint16Var(&walks, "walks", evalmemory.Walks, "`N` random sequences in each world of the attacker")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// memoryOutcome is nil only when every gate is met.
func memoryOutcome(r *evalmemory.Report) error {
	if r.Passed {
		return nil
	}
	var missed []string
	for _, g := range r.Gates {
		if !g.Met {
			missed = append(missed, g.ID)
		}
	}
	return cli.Fail(cli.ExitData, "", "%d of %d gates are not met: %s", len(missed), len(r.Gates), strings.Join(missed, ", "))
}
