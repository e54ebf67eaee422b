package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/policy"
)

func runCommand() *cobra.Command {
	var f flags
	var policy, name string
	var verbose, shadow bool
	c := f.take(&cobra.Command{
		Use:   "run [--config FILE [--only SERVER] | --policy FILE -- COMMAND [ARG …]]",
		Short: "Run the gateway over stdio, for a client's configuration",
		Long: "Run the gateway over standard input and output, as a client's configuration wants it:\n" +
			"with --config the servers of writ.yaml, or with --policy one server, started by the\n" +
			"command after --.\n\n" +
			"With --only it runs one server of several that the same client starts, each by an entry\n" +
			"of its own (writ connect). They share the client's session: what one returned can vouch\n" +
			"for a call to another.",
		Example: "  writ run --config writ.yaml\n" +
			"  writ run --policy files.yaml -- npx -y @modelcontextprotocol/server-filesystem /srv",
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.loadRun(policy, name, args, shadow)
			if err != nil {
				return err
			}
			level := slog.LevelError
			if verbose {
				level = slog.LevelInfo
			}
			return o.run(c, level)
		},
	}, "state", "config")
	c.Flags().StringVar(&f.only, "only", "", "start this one `SERVER` of the configuration, in its client's session")
	c.Flags().StringVar(&policy, "policy", "", "policy `FILE` for the server after --")
	c.Flags().StringVar(&name, "name", "", "`NAME` of the server after -- (default: the one server of the policy)")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "say more on standard error")
	c.Flags().BoolVar(&shadow, "shadow", false, "judge and record, but let every call pass")
	return c
}

// run runs a gateway over standard input and output until they end: in a session of
// its own, or in the one that its client's gateways share.
func (o *files) run(c *cobra.Command, level slog.Level) error {
	g, stop, err := o.start(c.Context(), logger(c.ErrOrStderr(), level))
	if err != nil {
		return err
	}
	o.warn(c.ErrOrStderr())
	client := &oneClient{Gateway: g, pid: os.Getppid()}
	defer announce(o.state, "", o.localHandler(g, client, nil), c.ErrOrStderr())()
	if o.shadow {
		fmt.Fprintln(c.ErrOrStderr(), "SHADOW MODE: calls are judged and recorded, and every one of them passes")
	}
	ctx, cancel := o.sound(c.Context())
	defer cancel()
	o.hearReload(ctx, g, c.ErrOrStderr())
	told := make(chan struct{})
	go func() {
		defer close(told)
		if g.Settled(ctx) == nil {
			o.tell(c.ErrOrStderr(), g)
		}
	}()
	defer func() { cancel(); <-told }()
	options := downstream.StdioOptions{Principal: fmt.Sprintf("local:%d", os.Getuid()), Refused: g.Refused}
	if o.shares {
		if options.Session, err = sharedSession(ctx, o.state, g, options.Principal, client.pid); err != nil {
			return errors.Join(err, stop())
		}
		client.session = options.Session
	}
	err = downstream.ServeStdio(ctx, client, c.InOrStdin(), c.OutOrStdout(), options)
	if serr := stop(); serr != nil && (err == nil || ctx.Err() != nil) {
		return unclean(serr)
	}
	if err != nil && c.Context().Err() == nil {
		return cli.Fail(cli.ExitIO, "", "the client's streams failed: %w", err)
	}
	return nil
}

// loadRun is load, or with a command after -- the one server it names.
func (f *flags) loadRun(policy, name string, command []string, shadow bool) (*files, error) {
	read := func() (*files, error) {
		o, err := f.readRun(policy, name, command)
		if err == nil {
			o.shadow = o.shadow || shadow
		}
		return o, err
	}
	o, err := read()
	if err == nil {
		o.again = read
	}
	return o, err
}

func (f *flags) readRun(policy, name string, command []string) (*files, error) {
	if f.only != "" && (f.config == "" || len(command) > 0 || policy != "") {
		return nil, cli.Fail(cli.ExitUsage, "writ run --help", "--only belongs to --config")
	}
	if len(command) == 0 && policy == "" {
		if name != "" {
			return nil, cli.Fail(cli.ExitUsage, "writ run --help", "--name belongs to a command after --")
		}
		return f.read()
	}
	switch {
	case f.config != "":
		return nil, cli.Fail(cli.ExitUsage, "writ run --help", "either --config, or --policy and a command after --")
	case policy == "":
		return nil, cli.Fail(cli.ExitUsage, "writ init -- "+cli.OneLine(strings.Join(command, " "), 60), "a command after -- needs --policy")
	case len(command) == 0:
		return nil, cli.Fail(cli.ExitUsage, "writ run --policy FILE -- COMMAND", "--policy needs a command after --")
	}
	state, err := stateDir(f.state)
	if err != nil {
		return nil, err
	}
	p, err := config.LoadPolicy(policy)
	if err != nil {
		return nil, config.Invalid(err)
	}
	if name == "" {
		if name, err = onlyServer(p); err != nil {
			return nil, err
		}
	}
	if !config.ServerName.MatchString(name) {
		return nil, cli.Fail(cli.ExitConfig, "", "a server's name has 1 to 32 of a-z, 0-9 and -, and does not start with -")
	}
	o := newFiles(state)
	o.policy, o.file, o.servers = p, policy, []upstream.Config{{Name: name, Command: command}}
	o.own(policy)
	o.own(config.GrownFile(policy))
	return o, nil
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
