package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/eval/invariants"
	"github.com/writ-project/writ/internal/cli"
)

func invariantsCommand() *cobra.Command {
	var asJSON, markdown bool
	var writ string
	c := &cobra.Command{
		Use: "invariants", Short: "Show each invariant by evidence, live",
		Long: "Run the commands that INVARIANTS.md names, in a new directory that is removed again, and look\n" +
			"at each field it names. No network, no model; the server is the built-in example. writ is\n" +
			"built from the source tree this is run in, unless --writ names one. The exit code is 65 when an\n" +
			"invariant does not hold.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t, err := invariants.Load()
			if err != nil {
				return cli.Fail(cli.ExitData, "", "the table of invariants cannot be read: %w", err)
			}
			if markdown {
				if asJSON {
					return cli.Fail(cli.ExitUsage, "writ-eval invariants --help", "--json and --markdown do not go together")
				}
				if _, err := c.OutOrStdout().Write(t.Markdown()); err != nil {
					return cli.Fail(cli.ExitIO, "", "cannot print: %w", err)
				}
				return nil
			}
			return tellInvariants(c, t, writ, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	c.Flags().StringVar(&writ, "writ", "", "show them of the writ at `FILE`")
	c.Flags().BoolVar(&markdown, "markdown", false, "print INVARIANTS.md and run nothing")
	return c
}

// tellInvariants shows a table and prints what came of it.
func tellInvariants(c *cobra.Command, t *invariants.Table, writ string, asJSON bool) error {
	r, err := showInvariants(c, t, writ)
	if err != nil {
		return err
	}
	if out := c.OutOrStdout(); asJSON {
		err = cli.PrintJSON(out, r)
	} else {
		_, err = io.WriteString(out, invariantsTable(r, cli.Colour(out)))
	}
	if err != nil {
		return cli.Fail(cli.ExitIO, "", "cannot print: %w", err)
	}
	return invariantsOutcome(r)
}

// invariantsOutcome is nil only when every row was shown.
func invariantsOutcome(r *invariants.Report) error {
	if r.Holds {
		return nil
	}
	var which []string
	for _, row := range r.Rows {
		if !row.Holds {
			which = append(which, row.ID)
		}
	}
	if len(which) == 0 {
		return cli.Fail(cli.ExitData, "writ-eval invariants --json", "a command did not end as it must")
	}
	return cli.Fail(cli.ExitData, "writ-eval invariants --json", "%d of %d invariants do not hold: %s", len(which), len(r.Rows), strings.Join(which, ", "))
}

// showInvariants runs the table's commands: those of writ as processes of the
// program at writ, "" for one that is built, those of this program as a process
// would run them.
func showInvariants(c *cobra.Command, t *invariants.Table, writ string) (*invariants.Report, error) {
	ctx, errs := c.Context(), c.ErrOrStderr()
	dir, err := os.MkdirTemp("", "writ-invariants-")
	if err != nil {
		return nil, cli.Fail(cli.ExitIO, "export TMPDIR=DIR", "no temporary directory can be made")
	}
	defer os.RemoveAll(dir)
	tell, end := showProgress(c, "building writ…")
	defer end()
	if writ == "" {
		writ = filepath.Join(dir, "bin", "writ")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", writ, "github.com/writ-project/writ/cmd/writ").CombinedOutput(); err != nil {
			return nil, cli.Fail(cli.ExitIO, "writ-eval invariants --writ FILE", "writ cannot be built here: %w\n%s", err, out)
		}
	}
	said := map[string]string{}
	r := t.Show(ctx, dir, func(ctx context.Context, c invariants.Command, args []string, stdin string) ([]byte, int) {
		tell(c.String())
		var out, stderr bytes.Buffer
		code := 0
		if c.Run[0] == invariants.Writ {
			p := exec.CommandContext(ctx, writ, args...)
			p.Stdin, p.Stdout, p.Stderr = strings.NewReader(stdin), &out, &stderr
			if err := p.Run(); p.ProcessState == nil {
				fmt.Fprintln(&stderr, err)
				code = -1
			} else {
				code = p.ProcessState.ExitCode()
			}
		} else {
			code = run(ctx, args, strings.NewReader(stdin), &out, &stderr)
		}
		said[c.Name] = stderr.String()
		return out.Bytes(), code
	})
	end()
	if err := ctx.Err(); err != nil {
		return nil, cli.Fail(cli.ExitIO, "", "interrupted")
	}
	for _, c := range r.Commands {
		if c.Exit != c.Must {
			fmt.Fprintf(errs, "%s\n  ended with %d instead of %d: %s\n", cli.OneLine(c.Run, 200), c.Exit, c.Must, cli.OneLine(said[c.Name], 400))
		}
	}
	return r, nil
}

// invariantsTable is a line a row, and the fields of what does not hold.
func invariantsTable(r *invariants.Report, colour bool) string {
	var b strings.Builder
	for _, row := range r.Rows {
		verdict, code := "holds", 32
		if !row.Holds {
			verdict, code = "FAILS", 31
		}
		if colour {
			verdict = fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, verdict)
		}
		fmt.Fprintf(&b, "%-14s %s  %s\n", row.ID, verdict, row.Statement)
		if row.But != "" {
			fmt.Fprintf(&b, "%22sless: %s\n", "", row.But)
		}
		fmt.Fprintf(&b, "%22senforced by %s\n", "", strings.Join(row.Enforced, ", "))
		holding := 0
		for _, f := range row.Evidence {
			if f.Holds {
				holding++
				continue
			}
			fmt.Fprintf(&b, "%22s%s of `%s` must be: %s; found %s\n", "", f.Field, f.Command, f.Must, cli.OneLine(cmp.Or(f.Found, "nothing"), 200))
		}
		fmt.Fprintf(&b, "%22s%d of %d fields hold\n", "", holding, len(row.Evidence))
	}
	fmt.Fprintf(&b, "\n%d commands were run; INVARIANTS.md names them, and %d invariants that tests hold.\n", len(r.Commands), r.HeldByTest)
	return b.String()
}
