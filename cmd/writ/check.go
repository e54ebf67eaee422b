package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/policy"
)

// checked is what writ check --json prints; docs/formats.md describes it.
type checked struct {
	OK        bool          `json:"ok"`
	Contracts int           `json:"contracts"`
	Servers   int           `json:"servers"`
	Faults    config.Faults `json:"faults"`
	Warnings  config.Faults `json:"warnings"`
}

// exposedBy warns of servers that are given directories with files of Writ's own,
// the usual state directory among them; at are the places of the servers.
func exposedBy(own []string, servers []upstream.Config, at []policy.Fault) (out config.Faults, err error) {
	state, err := statePath("")
	if err != nil {
		return nil, err
	}
	o := newFiles(state)
	for _, file := range own {
		o.own(file)
	}
	o.servers = servers
	for i, s := range servers {
		if held := o.exposed(s); held != "" {
			at[i].Message, at[i].Hint = held, moveThem
			out = append(out, at[i])
		}
	}
	return out, nil
}

func checkCommand() *cobra.Command {
	var f flags
	var live bool
	c := f.take(&cobra.Command{
		Use: "check", SuggestFor: []string{"lint"}, Short: "Check configuration and policy, without starting anything but with --live", Args: cli.NoArgs,
		Long: "Check configuration and policy, without starting anything. With --live the servers are started\n" +
			"and listed too, and what they list is held against the policy: a contract that no tool has, a rule\n" +
			"that can never match, a definition that nobody approved or that changed since. A tool by which\n" +
			"something leaves, and whose contract says that nothing does, is refused.",
		RunE: func(c *cobra.Command, _ []string) error {
			if (f.config == "") == (f.policy == "") {
				return cli.Fail(cli.ExitUsage, "writ check --config writ.yaml", "name a --config, or a --policy alone")
			}
			if live && f.config == "" && len(f.command) == 0 {
				return cli.Fail(cli.ExitUsage, "writ check --live --config writ.yaml", "--live starts servers: name a --config, or the command of one behind --")
			}
			out, err := f.check()
			if err == nil && live {
				err = f.checkLive(c, &out)
			}
			if f.json {
				return out.printJSON(c.OutOrStdout(), err)
			}
			for _, w := range out.Warnings {
				fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", cli.Printable(w.String()))
			}
			if err != nil {
				return &cli.Exit{Code: cli.ExitConfig, Err: err}
			}
			fmt.Fprintf(c.OutOrStdout(), "ok: %s", cli.Number(out.Contracts, "contract", "contracts"))
			when(c.OutOrStdout(), f.config != "" || len(f.command) > 0, ", %s", cli.Number(out.Servers, "server", "servers"))
			fmt.Fprintln(c.OutOrStdout())
			return nil
		},
	}, "json")
	c.Flags().StringVar(&f.config, "config", "", "configuration `FILE`")
	c.Flags().BoolVar(&live, "live", false, "start the servers, and hold what they list against the policy")
	return f.oneServer(c)
}

func (out *checked) printJSON(w io.Writer, found error) error {
	if fs, ok := found.(config.Faults); ok {
		out.Faults = fs
	}
	if err := cli.PrintJSON(w, out); err != nil || found == nil {
		return err
	}
	return &cli.Exit{Code: cli.ExitConfig, Err: errors.New("the configuration is not usable")}
}

// checkLive adds what the servers say now: one that is not there is a fault, and so is
// what leaves where its contract says that nothing does; what else does not fit the policy
// is a warning.
func (f *flags) checkLive(c *cobra.Command, out *checked) error {
	o, err := f.load()
	if err != nil {
		return err
	}
	g, stop, err := o.startSettled(c, slog.LevelError+4)
	if err != nil {
		return err
	}
	defer stop()
	var faults config.Faults
	for _, found := range o.findings(g) {
		w := policy.Fault{File: o.file, Line: found.Line, Column: found.Column, Message: found.Server + "/" + found.Tool + ": " + found.Message, Hint: found.Hint}
		if found.Line == 0 {
			w.File = cmp.Or(f.config, f.policy)
		}
		if found.Reason == writ.PolicyMisdeclared {
			faults = append(faults, w)
			continue
		}
		out.Warnings = append(out.Warnings, w)
	}
	for _, line := range o.failed(g) {
		faults = append(faults, policy.Fault{File: cmp.Or(f.config, f.policy), Message: line})
	}
	if len(faults) > 0 {
		out.OK = false
		return faults
	}
	return nil
}

// check reads a configuration, or a policy, alone or with the command of its server.
func (f *flags) check() (out checked, err error) {
	out = checked{Faults: config.Faults{}, Warnings: config.Faults{}}
	var p *policy.Policy
	var own []string
	var servers []upstream.Config
	var at []policy.Fault
	var more config.Faults
	if f.config != "" {
		var cfg *config.Config
		load := config.Load
		if _, cerr := readConnected(filepath.Dir(f.config)); cerr == nil { // a client starts its servers, with what they want of the environment
			load = func(file string) (*config.Config, *policy.Policy, error) { return config.LoadOnly(file, "") }
		}
		if cfg, p, err = load(f.config); err == nil {
			own, more = append(cfg.Files(), f.config), cfg.Warnings()
			for i := range cfg.Servers {
				n := cfg.Servers[i].At("command")
				servers, at = append(servers, cfg.Servers[i].Upstream()), append(at, policy.Fault{File: f.config, Line: n.Line, Column: n.Column})
			}
		}
	} else if p, err = config.LoadPolicy(f.policy); err == nil && len(f.command) > 0 {
		own, servers, at = []string{f.policy}, make([]upstream.Config, 1), []policy.Fault{{File: f.policy, Line: 1, Column: 1}}
		servers[0], err = f.started(p)
	}
	if err == nil && own != nil {
		var exposed config.Faults
		exposed, err = exposedBy(own, servers, at)
		out.Servers, out.Warnings = len(servers), append(append(out.Warnings, exposed...), more...)
	}
	if out.OK = err == nil; out.OK {
		out.Warnings, out.Contracts = append(out.Warnings, draft.Unreviewed(p.Source, p.Warnings)...), len(p.Contracts)
	}
	return out, err
}

// exposed says which of Writ's own files lie in directories a server is given,
// "" if none does. R34 keeps its tools from naming them; a search through the
// directory needs no name. The working directory counts only where the
// configuration chose it, and what a server runs may lie in it.
func (o *files) exposed(c upstream.Config) string {
	dirs, _, _ := gateway.Given(c)
	var programs []string
	for _, s := range o.servers {
		_, p, _ := gateway.Given(s)
		programs = append(programs, p...)
	}
	if self, err := os.Executable(); err == nil {
		programs = append(programs, self)
	}
	for i, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if i == 0 && c.Dir == "" || err != nil {
			continue
		}
		files := o.ownPaths
		if i > 0 {
			files = slices.Concat(files, programs)
		}
		if held := below(real, files); len(held) > 0 {
			return fmt.Sprintf("server %s is given %s, which holds files of Writ's own: %s", c.Name, dir, few(held, 3))
		}
	}
	return ""
}

// below are the files that lie in a directory, each once, by their paths in it.
func below(dir string, files []string) (held []string) {
	for _, file := range files {
		// The directory of a link is as good a place to change a file from as the file's own.
		path, err := filepath.Rel(dir, filepath.Join(leadsTo(filepath.Dir(file)), filepath.Base(file)))
		if err == nil && filepath.IsLocal(path) && !slices.Contains(held, path) {
			held = append(held, path)
		}
	}
	return held
}

// moveThem is what to do about exposed files.
const moveThem = "keep writ.yaml, the policy and programs in a directory no server is given, nor any above it, and the state with --state DIR; or give the server a directory of its own"

// warnings tell of exposed files.
func (o *files) warnings() (all []string) {
	for _, s := range o.servers {
		if held := o.exposed(s); held != "" {
			all = append(all, "warning: "+held+"; "+moveThem)
		}
	}
	return all
}

// warn tells of them at the start.
func (o *files) warn(w io.Writer) {
	for _, warning := range o.warnings() {
		fmt.Fprintln(w, cli.Printable(warning))
	}
}
