package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/eval/gates"
	"github.com/writ-project/writ/internal/private"
)

// evalResult is where the result goes that stands in the repository.
const evalResult = "eval/results/offline_gate_eval.json"

func evalCommand() *cobra.Command {
	c := &cobra.Command{Use: "eval", Short: "Measure the gates and the memory", RunE: func(c *cobra.Command, args []string) error {
		return fail(exitUsage, "writ eval --help", "gates, ask, memory or stages")
	}}
	c.AddCommand(evalGates(), evalAsk(), recordServerCommand())
	c.AddCommand(evalMemory())
	c.AddCommand(evalStages())
	return c
}

func evalGates() *cobra.Command {
	var out string
	var seed uint64
	var fuzz uint32
	var asJSON bool
	c := &cobra.Command{
		Use: "gates", Short: "Run every gate over the built-in cases and generated ones, offline",
		Long: "Run every gate over the built-in cases and 10,000 generated plans and summaries each.\n" +
			"No network, no model, no server. The result is a file that is the same, byte for byte,\n" +
			"for the same seed and cases. The exit code is 65 when a case failed.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o := gates.Options{Gates: gates.Product(), Seed: seed, Fuzz: int(fuzz)}
			tell, end := evalProgress(c, "evaluating…")
			o.Progress = func(section string) { tell(section + " done") }
			r, err := gates.Run(o)
			end()
			if err != nil {
				return fail(exitData, "", "%w", err)
			}
			if err := tellResult(c, r.JSON, "--out", out, asJSON, func(w io.Writer) error { return printEval(w, r, out) }); err != nil {
				return err
			}
			return evalOutcome(r)
		},
	}
	c.Flags().StringVar(&out, "out", evalResult, "write the result to `FILE`")
	c.Flags().Uint64Var(&seed, "seed", gates.DefaultSeed, "seed `N` of the generated cases")
	c.Flags().Uint32Var(&fuzz, "fuzz", gates.DefaultFuzz, "`N` generated cases of each of the two kinds")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// evalProgress shows on a terminal what is being done, in one line that end takes
// away; elsewhere it shows nothing.
func evalProgress(c *cobra.Command, doing string) (tell func(string), end func()) {
	w := c.ErrOrStderr()
	if !terminal(w) {
		return func(string) {}, func() {}
	}
	fmt.Fprint(w, doing)
	return func(now string) { fmt.Fprintf(w, "\r\x1b[K%s", now) }, func() { fmt.Fprint(w, "\r\x1b[K") }
}

// tellResult writes the result of an evaluation to a file, if one is named, and
// prints it, as JSON or as a table. flag is the one that names the file.
func tellResult(c *cobra.Command, encode func() ([]byte, error), flag, file string, asJSON bool, table func(io.Writer) error) error {
	b, err := encode()
	if err != nil {
		return fail(exitIO, "", "cannot encode: %w", err)
	}
	if file != "" {
		if err := putFile(file, b); err != nil {
			return fail(exitIO, c.CommandPath()+" "+flag+" FILE", "the result cannot be written: %w", err)
		}
	}
	if asJSON {
		_, err = c.OutOrStdout().Write(b)
	} else {
		err = table(c.OutOrStdout())
	}
	if err != nil {
		return fail(exitIO, "", "cannot print: %w", err)
	}
	return nil
}

// evalOutcome is nil only when every case passed.
func evalOutcome(r *gates.Report) error {
	if r.Failed > 0 || r.Total == 0 {
		return fail(exitData, "", "%d of %d cases failed", r.Failed, r.Total)
	}
	return nil
}

// printEval prints one line a section, and what failed.
func printEval(w io.Writer, r *gates.Report, out string) error {
	const failedShown = 10 // of each section
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
				fmt.Fprintf(w, "%s: %d more in %s\n", s.Suite, s.Failed-i, printable(out))
				break
			}
			fmt.Fprintf(w, "failed: %s (%s): want %s, got %s\n", printable(f.ID), printable(f.Kind), printable(f.Want), printable(f.Got))
		}
	}
	_, err := fmt.Fprintf(w, "%d cases made by hand, %d generated with seed %d; %s\n", r.HandMade, r.Fuzzed, r.Seed, printable(out))
	return err
}

// putFile writes a file whole or not at all, with the directories it needs. What
// is no file, like /dev/null, is written to and stays what it is.
func putFile(path string, b []byte) error {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return os.WriteFile(path, b, 0o644)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	err := private.WriteOnce(path, b, 0o644)
	if errors.Is(err, os.ErrExist) {
		err = replaceFile(path, b)
	}
	return err
}
