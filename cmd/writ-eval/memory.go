package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	evalmemory "github.com/writ-project/writ/eval/memory"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/private"
)

// memoryResult is where the result goes that stands in the repository.
const memoryResult = "eval/results/memory.json"

// parts are the words of --only.
var parts = map[string]evalmemory.Part{
	"": evalmemory.Everything, "stage1": evalmemory.Rulings, "stage2": evalmemory.Stress, "stage3": evalmemory.Comparison, "measures": evalmemory.Measured,
}

func memoryCommand() *cobra.Command {
	var out, only, artifacts string
	var seeds []string
	var chains uint16
	var asJSON bool
	c := &cobra.Command{
		Use: "memory", Short: "Measure the memory offline: its rules, under stress, beside others, and under attack",
		Long: "Play scenarios of governance: the memory's rules (stage1), under stress (stage2), and beside its\n" +
			"ablations and memories without governance (stage3). And measure it on generated data: replay\n" +
			"chains of dated values, attack each of them in eight ways, beside it the same through rules\n" +
			"that other memories come down to, which are emulated and labelled so; ask its index questions\n" +
			"whose evidence is known, and have it link names.\n" +
			"No network, no model, no clock. The result is a file that is the same, byte for byte, for the\n" +
			"same seeds; docs/formats.md has its form.\n\n" +
			"Exit codes: 0 every gate is met; 65 one is not; 64 usage; 74 I/O.",
		Example: "  writ-eval memory\n  writ-eval memory --only measures --seeds 7 --chains 20 --out /dev/null",
		Args:    cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			part, ok := parts[only]
			if !ok {
				return cli.Fail(cli.ExitUsage, "writ-eval memory --only stage1", "--only is one of stage1, stage2, stage3 and measures")
			}
			if chains == 0 {
				return cli.Fail(cli.ExitUsage, "writ-eval memory --help", "--chains: at least 1")
			}
			o := evalmemory.Options{Memory: evalmemory.Product(), Only: part, Chains: int(chains)}
			for _, s := range seeds {
				n, err := strconv.ParseUint(s, 10, 64)
				if err != nil || n == 0 || slices.Contains(o.Seeds, n) {
					return cli.Fail(cli.ExitUsage, "writ-eval memory --seeds 101,202", "--seeds: different whole numbers from 1 on are expected, %s is not one", s)
				}
				o.Seeds = append(o.Seeds, n)
			}
			tell, end := showProgress(c, "measuring…")
			o.Progress = func(what string, done, of int) { tell(fmt.Sprintf("%s: %d %%", what, 100*done/of)) }
			r, err := evalmemory.Run(o)
			end()
			if err != nil {
				return cli.Fail(cli.ExitData, "", "%w", err)
			}
			if artifacts != "" && r.Stages != nil {
				files, err := r.Stages.Artifacts(evalmemory.Meta{Time: time.Now(), Commit: commit()})
				if err != nil {
					return cli.Fail(cli.ExitIO, "", "cannot encode: %w", err)
				}
				if err := putNew(artifacts, files); err != nil {
					return cli.Fail(cli.ExitIO, "writ-eval memory --artifacts DIR", "the artifacts cannot be written: %w", err)
				}
			}
			if err := tellResult(c, r.JSON, "--out", out, asJSON, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%s%s\n", r.Table(), cli.Printable(out))
				return err
			}); err != nil {
				return err
			}
			return memoryOutcome(r)
		},
	}
	c.Flags().StringVar(&only, "only", "", "run `PART` alone: stage1, stage2, stage3 or measures")
	c.Flags().StringVar(&out, "out", memoryResult, "write the result to `FILE`")
	c.Flags().StringVar(&artifacts, "artifacts", "", "write manifest, transitions and results of every system to `DIR`, over nothing that is there")
	c.Flags().StringSliceVar(&seeds, "seeds", nil, "seeds `N,…` in place of 101,202,303,404,505")
	c.Flags().Uint16Var(&chains, "chains", evalmemory.Chains, "`N` chains of values of each seed")
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

// putNew writes files into a directory, and none of them if one is there.
func putNew(dir string, files map[string][]byte) error {
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s is there already: nothing was written", cli.Printable(name)), err)
		}
	}
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := private.WriteOnce(file, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// commit is the commit the program was built from, as far as it knows.
func commit() string {
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, s := range bi.Settings {
			if s.Key == "vcs.revision" && len(s.Value) == 40 {
				return s.Value
			}
		}
	}
	return "unknown"
}
