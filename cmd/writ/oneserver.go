package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/policy"
)

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
	if !config.ServerName().MatchString(name) {
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
