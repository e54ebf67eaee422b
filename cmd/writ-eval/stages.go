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
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/eval/stages"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

func stagesCommand() *cobra.Command {
	var out, result string
	var stage int
	var seeds []string
	var asJSON bool
	c := &cobra.Command{
		Use: "stages", Short: "Measure the governed memory in stages, offline",
		Long: "Measure the governed memory: its rules (stage 1), under stress (stage 2), and beside\n" +
			"its ablations and memories without governance (stage 3, on the scenarios of stage 2).\n" +
			"No network, no model, no clock: the result is the same, byte for byte, for the same\n" +
			"seeds. The exit code is 65 when a gate is not met; docs/formats.md has the form of --json.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o := stages.Options{Index: func() memory.Index { return mapstore.NewIndex() }, Stage: stage}
			if stage < 0 || stage > 3 {
				return cli.Fail(cli.ExitUsage, "writ-eval stages --stage 1", "the stages are 1, 2 and 3; 0 is all of them")
			}
			for _, s := range seeds {
				n, err := strconv.ParseUint(s, 10, 32)
				if err != nil || n == 0 || slices.Contains(o.Seeds, n) {
					return cli.Fail(cli.ExitUsage, "writ-eval stages --seeds 101,202,303,404,505", "seeds are different whole numbers from 1 on")
				}
				o.Seeds = append(o.Seeds, n)
			}
			tell, end := showProgress(c, "evaluating…")
			o.Progress = func(system string) { tell(system + " done") }
			r, err := stagesWithin(o, stages.WallClock)
			end()
			if err != nil {
				return cli.Fail(cli.ExitData, "", "%w", err)
			}
			if out != "" {
				files, err := r.Artifacts(stages.Meta{Time: time.Now(), Commit: commit()})
				if err != nil {
					return cli.Fail(cli.ExitIO, "", "cannot encode: %w", err)
				}
				if err := putNew(out, files); err != nil {
					return cli.Fail(cli.ExitIO, "writ-eval stages --out DIR", "the artifacts cannot be written: %w", err)
				}
			}
			if err := tellResult(c, r.JSON, "--result", result, asJSON, func(w io.Writer) error { _, err := w.Write(r.Table()); return err }); err != nil {
				return err
			}
			return stagesOutcome(r)
		},
	}
	c.Flags().IntVar(&stage, "stage", 0, "run no more than stage `N`")
	c.Flags().StringSliceVar(&seeds, "seeds", nil, "seeds `N,…` in place of 101,202,303,404,505")
	c.Flags().StringVar(&out, "out", "", "write manifest, transitions and results of every system to `DIR`, over nothing that is there")
	c.Flags().StringVar(&result, "result", "", "write the result to `FILE`")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// stagesWithin runs an evaluation, which is no result when it takes too long.
func stagesWithin(o stages.Options, limit time.Duration) (*stages.Result, error) {
	type outcome struct {
		r   *stages.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := stages.Run(o)
		done <- outcome{r, err}
	}()
	select {
	case d := <-done:
		return d.r, d.err
	case <-time.After(limit):
		return nil, fmt.Errorf("it took longer than %s", limit)
	}
}

// stagesOutcome is nil only when every gate that was judged is met.
func stagesOutcome(r *stages.Result) error {
	n := 0
	for _, g := range r.Gates {
		if !g.Met {
			n++
		}
	}
	if n > 0 || len(r.Gates) == 0 {
		return cli.Fail(cli.ExitData, "", "%d of %d gates are not met", n, len(r.Gates))
	}
	return nil
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
