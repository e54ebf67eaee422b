// Command writ stands between an AI agent and its tools. This package wires:
// it reads configuration, starts the gateway and prints; it decides nothing.
// It trusts the operator's files and flags, and its own state directory.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/private"
)

// acceptsRollback gives a flag to every command that works with a state
// directory; those that only read one do not look at it.
func acceptsRollback(c *cobra.Command) {
	if c.Flags().Lookup("state") != nil && c.Parent().Name() != "audit" {
		c.Flags().Bool(acceptRollbackFlag, false, "go on with a state directory that was rolled back or copied; the log says that you did")
	}
	for _, sub := range c.Commands() {
		acceptsRollback(sub)
	}
}

func main() {
	upstream.GuardMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends what the first one does not
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program but for the process: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   "writ",
		Short: "No act, no belief and no claim without evidence",
		Long: "writ stands between an AI agent and its tools. A tool call with a side effect\n" +
			"runs only if every argument traces to something writ itself saw in the same session.",
	}
	root.Version = readBuildInfo().String() // --version
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddGroup(groups()...)
	root.AddCommand(commands()...)
	acceptsRollback(root)
	root.PersistentPreRun = func(c *cobra.Command, _ []string) {
		if v, err := c.Flags().GetBool(acceptRollbackFlag); err == nil {
			c.SetContext(context.WithValue(c.Context(), acceptRollback{}, v))
		}
	}
	return cli.Run(ctx, root, withWhere)
}

// withWhere returns a hint whose commands look where the one that ran looked:
// what was given of whereFlags is given to each that takes it too.
func withWhere(ran *cobra.Command, hint string) string {
	parts := strings.Split(withFile(ran, hint), " && ")
	for i, part := range parts {
		words := strings.Fields(part)
		if len(words) < 2 || words[0] != "writ" || ran == nil {
			continue
		}
		c, rest, err := ran.Root().Find(words[1:])
		if err != nil || !c.HasParent() {
			continue
		}
		path := words[:len(words)-len(rest)]
		given := ""
		for _, name := range whereFlags {
			f := ran.Flags().Lookup(name)
			if f == nil || !f.Changed || c.Flag(name) == nil || strings.Contains(part, "--"+name) {
				continue
			}
			given += " --" + name + " " + private.Quote(f.Value.String())
		}
		if rest := strings.TrimPrefix(part, strings.Join(path, " ")); rest != part {
			parts[i] = strings.Join(path, " ") + given + rest
		}
	}
	return strings.Join(parts, " && ")
}

// withFile returns a hint that names the configuration which is meant: the one that the command was
// given, else the only one that is in use. In the stead of one it may have been given a policy.
func withFile(ran *cobra.Command, hint string) string {
	const unnamed = "--config FILE"
	if ran == nil || ran.Flags().Lookup("config") == nil || !strings.Contains(hint, unnamed) {
		return hint
	}
	given := map[string]string{}
	ran.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	is := "--config " + private.Quote(given["config"])
	switch {
	case given["config"] != "":
	case given["policy"] != "":
		is = "--policy " + private.Quote(given["policy"])
	default:
		used, err := (&flags{state: given["state"]}).inUse(ran.Context())
		if err != nil || len(used) != 1 {
			return hint
		}
		is = "--config " + private.Quote(used[0])
	}
	return strings.ReplaceAll(hint, unnamed, is)
}

// whereFlags say where a command looks.
var whereFlags = []string{"config", "state"}
