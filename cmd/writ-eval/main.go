// Command writ-eval measures Writ: its gates, its memory, the single-step host
// beside an agent without gates, and each invariant by what shows it. It is a
// program of its own, and nothing of it is part of writ. Like writ it wires and
// decides nothing.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/mcp/upstream"
)

func main() {
	upstream.GuardMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program but for the process: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use: "writ-eval", Short: "Measure Writ", Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return cli.Fail(cli.ExitUsage, "writ-eval --help", "gates, replay, ask, memory or invariants")
		},
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(gatesCommand(), replayCommand(), askCommand(), memoryCommand(), invariantsCommand(), recordServerCommand())
	return cli.Run(ctx, root, nil)
}

// showProgress shows on a terminal what is being done, in one line that end
// takes away; elsewhere it shows nothing.
func showProgress(c *cobra.Command, doing string) (tell func(string), end func()) {
	w := c.ErrOrStderr()
	if !cli.Terminal(w) {
		return func(string) {}, func() {}
	}
	fmt.Fprint(w, doing)
	return func(now string) { fmt.Fprintf(w, "\r\x1b[K%s", cli.OneLine(now, 100)) }, func() { fmt.Fprint(w, "\r\x1b[K") }
}

// tellResult writes the result of an evaluation to a file, if one is named, and what is
// beside it under the same name with another end, and prints it, as JSON or as text.
func tellResult(c *cobra.Command, r interface{ JSON() ([]byte, error) }, file string, asJSON bool, text string, beside map[string]string) error {
	b, err := r.JSON()
	if err != nil {
		return cli.Fail(cli.ExitIO, "", "cannot encode: %w", err)
	}
	if file != "" {
		ext := filepath.Ext(file)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			err = os.WriteFile(file, b, 0o644)
		}
		for end, text := range beside {
			if err == nil && text != "" && ext != "" {
				err = os.WriteFile(strings.TrimSuffix(file, ext)+end, []byte(text), 0o644)
			}
		}
		if err != nil {
			return cli.Fail(cli.ExitIO, c.CommandPath()+" --out FILE", "the result cannot be written: %w", err)
		}
	}
	if !asJSON {
		b = []byte(text)
	}
	if _, err := c.OutOrStdout().Write(b); err != nil {
		return cli.Fail(cli.ExitIO, "", "cannot print: %w", err)
	}
	return nil
}
