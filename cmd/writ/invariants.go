package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/eval/invariants"
)

func invariantsCommand() *cobra.Command {
	var asJSON, markdown bool
	c := &cobra.Command{
		Use: "invariants", Short: "Show each invariant by evidence, live",
		Long: "Run the commands that INVARIANTS.md names, in a new directory that is removed again, and look\n" +
			"at each field it names. No network, no model; the server is the built-in example. The exit\n" +
			"code is 65 when an invariant does not hold.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t, err := invariants.Load()
			if err != nil {
				return fail(exitData, "", "the table of invariants cannot be read: %w", err)
			}
			if markdown {
				if asJSON {
					return fail(exitUsage, "writ invariants --help", "--json and --markdown do not go together")
				}
				if _, err := c.OutOrStdout().Write(t.Markdown()); err != nil {
					return fail(exitIO, "", "cannot print: %w", err)
				}
				return nil
			}
			r, err := showInvariants(c.Context(), c.ErrOrStderr(), t)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(c.OutOrStdout(), r)
			} else {
				err = printInvariants(c.OutOrStdout(), r)
			}
			if err != nil {
				return fail(exitIO, "", "cannot print: %w", err)
			}
			return invariantsOutcome(r)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	c.Flags().BoolVar(&markdown, "markdown", false, "print INVARIANTS.md and run nothing")
	return c
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
		return fail(exitData, "writ invariants --json", "a command did not end as it must")
	}
	return fail(exitData, "writ invariants --json", "%d of %d invariants do not hold: %s", len(which), len(r.Rows), strings.Join(which, ", "))
}

// showInvariants runs the table's commands as a process of its own would.
func showInvariants(ctx context.Context, errs io.Writer, t *invariants.Table) (*invariants.Report, error) {
	dir, err := os.MkdirTemp("", "writ-invariants-")
	if err != nil {
		return nil, fail(exitIO, "export TMPDIR=DIR", "no temporary directory can be made")
	}
	defer os.RemoveAll(dir)
	shown := terminal(errs)
	said := map[string]string{}
	running := ""
	r := t.Show(ctx, dir, func(ctx context.Context, args []string, stdin string) ([]byte, int) {
		var out, stderr bytes.Buffer
		code := run(ctx, args, strings.NewReader(stdin), &out, &stderr)
		said[running] = stderr.String()
		return out.Bytes(), code
	}, func(command string) {
		running = command
		if shown {
			fmt.Fprintf(errs, "\r\x1b[K%s", oneLine(command, 100))
		}
	})
	if shown {
		fmt.Fprint(errs, "\r\x1b[K")
	}
	if err := ctx.Err(); err != nil {
		return nil, fail(exitIO, "", "interrupted")
	}
	for _, c := range r.Commands {
		if c.Exit != c.Must {
			fmt.Fprintf(errs, "%s\n  ended with %d instead of %d: %s\n", oneLine(c.Run, 200), c.Exit, c.Must, oneLine(said[c.Run], 400))
		}
	}
	return r, nil
}

// printInvariants prints a line a row, and the fields of what does not hold.
func printInvariants(w io.Writer, r *invariants.Report) error {
	var b strings.Builder
	paint := func(code, text string) string {
		if !colour(w) {
			return text
		}
		return "\x1b[" + code + "m" + text + "\x1b[0m"
	}
	for _, row := range r.Rows {
		verdict := paint("32", "holds")
		if !row.Holds {
			verdict = paint("31", "FAILS")
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
			found := f.Found
			if found == "" {
				found = "nothing"
			}
			fmt.Fprintf(&b, "%22s%s of `%s` must be: %s; found %s\n", "", f.Field, f.Command, f.Must, oneLine(found, 200))
		}
		fmt.Fprintf(&b, "%22s%d of %d fields hold\n", "", holding, len(row.Evidence))
	}
	fmt.Fprintf(&b, "\n%d commands were run; INVARIANTS.md names them, and %d invariants that tests hold.\n", len(r.Commands), r.HeldByTest)
	_, err := io.WriteString(w, b.String())
	return err
}
