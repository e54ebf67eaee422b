package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/policy"
)

// flags are those that commands share. A command takes the ones it has a use
// for.
type flags struct {
	state, config, namespace string
	json                     bool
	dry                      bool   // only say what would be written
	only                     string // the one server of the configuration to start, "" for all

	policy, server string   // of the one server in the stead of a configuration
	command        []string // that starts it
	shadow         bool
}

// ofMemory are the flags of the memory's commands.
var ofMemory = []string{"state", "config", "namespace", "json"}

// take gives a command the flags of those names.
func (f *flags) take(c *cobra.Command, names ...string) *cobra.Command {
	for _, name := range names {
		switch name {
		case "state":
			c.Flags().StringVar(&f.state, name, "", "state `DIR` (default: writ under the user's state directory)")
		case "config":
			c.Flags().StringVar(&f.config, name, "", "configuration `FILE` (default: what is built in)")
		case "namespace":
			c.Flags().StringVar(&f.namespace, name, "", "`NAME` of the memory's namespace (default: the configuration's, or default)")
		case "policy":
			c.Flags().StringVar(&f.policy, name, "", "policy `FILE` of the server after --")
		case "name":
			c.Flags().StringVar(&f.server, name, "", "`NAME` of the server after -- (default: the one server of the policy)")
		case "json":
			c.Flags().BoolVar(&f.json, name, false, "print as JSON")
		}
	}
	return c
}

// show prints what a command found: as JSON where that is asked for, else by
// text.
func (f *flags) show(c *cobra.Command, v any, text func(io.Writer)) error {
	if f.json {
		return cli.PrintJSON(c.OutOrStdout(), v)
	}
	text(c.OutOrStdout())
	return nil
}

// showDone is show of what was done before something failed, n of it. Where that is
// nothing, the failure is all there is.
func (f *flags) showDone(c *cobra.Command, n int, v any, text func(io.Writer), failed error) error {
	if n == 0 && failed != nil {
		return failed
	}
	return cmp.Or(f.show(c, v, text), failed)
}

// aside is where a command says to a person what it is at: beside the JSON, where that
// is asked for, so that standard output is the JSON alone.
func (f *flags) aside(c *cobra.Command) io.Writer {
	if f.json {
		return c.ErrOrStderr()
	}
	return c.OutOrStdout()
}

var when = cli.When

// each is what f makes of each of several, nil of none.
func each[T, U any](all []T, f func(T) U) (out []U) {
	for _, one := range all {
		out = append(out, f(one))
	}
	return out
}

// joined is a word for each of several, in one line.
func joined[T any](all []T, between string, word func(T) string) string {
	return strings.Join(each(all, word), between)
}

// group is a command that has others and does nothing itself.
func group(use, short, long string, subs ...*cobra.Command) *cobra.Command {
	last := len(subs) - 1
	need := subs[last].Name()
	if last > 0 {
		need = joined(subs[:last], ", ", (*cobra.Command).Name) + " or " + need
	}
	return groupOf(use, short, long, need, subs...)
}

// groupOf is group where need says what is needed.
func groupOf(use, short, long, need string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, RunE: func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return cli.Unknown(c, args[0])
		}
		return cli.Fail(cli.ExitUsage, c.CommandPath()+" --help", "%s", need)
	}}
	c.AddCommand(subs...)
	return c
}

// between refuses another number of arguments; what says which are needed.
func between(least, most int, what string) cobra.PositionalArgs {
	return needs("", what, func(args []string) bool { return len(args) >= least && len(args) <= most })
}

// needs refuses other arguments; what says which are needed, and next what to try, "" for
// the command's help.
func needs(next, what string, are func(args []string) bool) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if !are(args) {
			return cli.Fail(cli.ExitUsage, cmp.Or(next, c.CommandPath()+" --help"), "%s", what)
		}
		return nil
	}
}

func exactly(n int, what string) cobra.PositionalArgs { return between(n, n, what) }

// inState is a command that works in the state directory, which is made if there is none.
func (f *flags) inState(run func(c *cobra.Command, dir string, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		dir, err := stateDir(f.state)
		if err != nil {
			return err
		}
		return run(c, dir, args)
	}
}

// opening is a way to open the log of the state directory that a flag names.
type opening func(ctx context.Context, flag string) (dir string, st *sqlite.Store, err error)

// opens finds the state directory and opens its log, each in its way.
func opens(find func(flag string) (string, error), open func(ctx context.Context, dir string) (*sqlite.Store, error)) opening {
	return func(ctx context.Context, flag string) (dir string, st *sqlite.Store, err error) {
		if dir, err = find(flag); err == nil {
			st, err = open(ctx, dir)
		}
		return dir, st, err
	}
}

var (
	// toAppend makes the state directory if there is none.
	toAppend = opens(stateDir, openStore)
	// toExplain makes nothing, and proves what is read.
	toExplain = opens(existingState, func(_ context.Context, dir string) (*sqlite.Store, error) { return openForReading(dir) })
	// toTrust is toExplain of a log that is no older than this machine knows.
	toTrust = opens(existingState, openCurrent)
	// toRule is toAppend where something was recorded before.
	toRule = opens(existingState, openStore)
)

// onLog is a command that works with a log, which is open while it runs.
func (f *flags) onLog(open opening, run func(c *cobra.Command, dir string, st *sqlite.Store, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		dir, st, err := open(c.Context(), f.state)
		if err != nil {
			return err
		}
		defer st.Close()
		return run(c, dir, st, args)
	}
}

// readInput reads a file, or standard input for -, of at most limit bytes. next
// is what to try where it cannot.
func readInput(file, what string, limit int, stdin io.Reader, next string) ([]byte, error) {
	b, err := readStart(file, what, limit+1, stdin, next)
	if err == nil && len(b) > limit {
		err = cli.Fail(cli.ExitData, next, "the %s is larger than %d bytes", what, limit)
	}
	return b, err
}

// readStart is readInput of what may be longer, and is cut off there.
func readStart(file, what string, limit int, stdin io.Reader, next string) ([]byte, error) {
	unread := cli.Fail(cli.ExitIO, next, "the %s cannot be read", what)
	r := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, unread
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)))
	if err != nil {
		return nil, unread
	}
	return b, nil
}

// confirm asks a person at a terminal. Where there is none, nothing is done.
func confirm(c *cobra.Command, yes bool, question string) error {
	if yes {
		return nil
	}
	if _, typed := typist(c.InOrStdin()); !typed {
		return cli.Fail(cli.ExitUsage, "the same command with --yes", "nothing was done: there is no terminal to confirm it at")
	}
	if said, _ := agreed(bufio.NewReader(c.InOrStdin()), c.ErrOrStderr(), question); !said {
		return cli.Fail(cli.ExitRefused, "", "nothing was done")
	}
	return nil
}

// typist is the terminal that is read from, if a person types at one.
func typist(in io.Reader) (*os.File, bool) {
	f, ok := in.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// agreed asks a question. It is not answered where the input ends at it.
func agreed(in *bufio.Reader, out io.Writer, question string) (yes, answered bool) {
	fmt.Fprintf(out, "%s [y/N] ", question)
	answer, err := in.ReadString('\n')
	a := strings.ToLower(strings.TrimSpace(answer))
	return a == "y" || a == "yes", err == nil || answer != ""
}

// noTools is a policy without contracts, for a gateway that has no server to
// judge calls to.
func noTools() *policy.Policy {
	p, _ := policy.Parse("built-in policy", []byte("tools: {}\n"))
	return p
}

// oneServer has a command take what stands after -- as the command of the one server
// that --policy FILE is of, in the stead of a configuration. What stands before it are
// its own arguments.
func (f *flags) oneServer(c *cobra.Command) *cobra.Command {
	f.take(c, "policy", "name")
	c.Use += " [--policy FILE -- COMMAND [ARG …]]"
	count, run := c.Args, c.RunE
	own := func(c *cobra.Command, args []string) []string {
		if n := c.ArgsLenAtDash(); n >= 0 {
			args, f.command = args[:n], args[n:]
		}
		return args
	}
	c.Args = func(c *cobra.Command, args []string) error { return count(c, own(c, args)) }
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, own(c, args)) }
	return c
}

// read reads what a command works with: a configuration, or the policy of the one server
// that is started by the command after --.
func (f *flags) read() (*files, error) {
	if f.only != "" && (f.config == "" || len(f.command) > 0 || f.policy != "") {
		return nil, cli.Fail(cli.ExitUsage, "writ run --help", "--only belongs to --config")
	}
	if len(f.command) == 0 && f.policy == "" {
		if f.server != "" {
			return nil, cli.Fail(cli.ExitUsage, "writ run --help", "--name belongs to a command after --")
		}
		return f.readConfig()
	}
	switch {
	case f.config != "":
		return nil, cli.Fail(cli.ExitUsage, "writ run --help", "either --config, or --policy and a command after --")
	case f.policy == "":
		return nil, cli.Fail(cli.ExitUsage, "writ init -- "+cli.OneLine(strings.Join(f.command, " "), 60), "a command after -- needs --policy")
	case len(f.command) == 0:
		return nil, cli.Fail(cli.ExitUsage, "writ run --policy FILE -- COMMAND", "--policy needs a command after --")
	}
	state, err := stateDir(f.state)
	if err != nil {
		return nil, err
	}
	p, err := config.LoadPolicy(f.policy)
	if err != nil {
		return nil, config.Invalid(err)
	}
	one, err := f.started(p)
	if err != nil {
		return nil, err
	}
	o := newFiles(state)
	o.policy, o.file, o.servers = p, f.policy, []upstream.Config{one}
	o.shadow = f.shadow
	o.own(f.policy)
	o.own(config.GrownFile(f.policy))
	o.own(config.GrownLock(f.policy))
	return o, nil
}

// started is the server that the command after -- starts.
func (f *flags) started(p *policy.Policy) (upstream.Config, error) {
	name := f.server
	if name == "" {
		var err error
		if name, err = onlyServer(p); err != nil {
			return upstream.Config{}, err
		}
	}
	if !policy.ServerName(name) {
		return upstream.Config{}, cli.Fail(cli.ExitConfig, "", "a server's name has 1 to 32 of a-z, 0-9 and -, and does not start with -")
	}
	return upstream.Config{Name: name, Command: f.command}, nil
}

// onlyServer returns the one server the policy has contracts for.
func onlyServer(p *policy.Policy) (string, error) {
	name := ""
	for _, c := range p.Contracts {
		if name != "" && c.Server != name {
			return "", cli.Fail(cli.ExitConfig, "writ run --name NAME --policy FILE -- COMMAND", "the policy speaks of several servers: say with --name which one this is")
		}
		name = c.Server
	}
	if name == "" {
		return "", cli.Fail(cli.ExitConfig, "writ run --name NAME --policy FILE -- COMMAND", "the policy speaks of no server: say with --name how to call this one")
	}
	return name, nil
}
