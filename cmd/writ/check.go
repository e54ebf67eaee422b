package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
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
// the usual state directory among them.
func exposedBy(c *config.Config, file string) (out config.Faults, err error) {
	state, err := statePath("")
	if err != nil {
		return nil, err
	}
	o := newFiles(state)
	for _, own := range append(c.Files(), file) {
		o.own(own)
	}
	for i := range c.Servers {
		o.servers = append(o.servers, c.Servers[i].Upstream())
	}
	for i, s := range o.servers {
		if held := o.exposed(s); held != "" {
			n := c.Servers[i].At("command")
			out = append(out, policy.Fault{File: file, Line: n.Line, Column: n.Column, Message: held, Hint: moveThem})
		}
	}
	return out, nil
}

func checkCommand() *cobra.Command {
	var f flags
	var alone string
	c := f.take(&cobra.Command{
		Use: "check", Short: "Check configuration and policy, without starting anything", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (f.config == "") == (alone == "") {
				return cli.Fail(cli.ExitUsage, "writ check --config writ.yaml", "name a --config, or a --policy alone")
			}
			out, err := check(f.config, alone)
			if f.json {
				if fs, ok := err.(config.Faults); ok {
					out.Faults = fs
				}
				if perr := cli.PrintJSON(c.OutOrStdout(), out); perr != nil {
					return perr
				}
				if err != nil {
					return &cli.Exit{Code: cli.ExitConfig, Err: fmt.Errorf("the configuration is not usable")}
				}
				return nil
			}
			for _, w := range out.Warnings {
				fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", cli.Printable(w.String()))
			}
			if err != nil {
				return &cli.Exit{Code: cli.ExitConfig, Err: err}
			}
			fmt.Fprintf(c.OutOrStdout(), "ok: %d contracts", out.Contracts)
			when(c.OutOrStdout(), f.config != "", ", %d servers", out.Servers)
			fmt.Fprintln(c.OutOrStdout())
			return nil
		},
	}, "json")
	c.Flags().StringVar(&f.config, "config", "", "configuration `FILE`")
	c.Flags().StringVar(&alone, "policy", "", "policy `FILE` alone")
	return c
}

// check reads a configuration, or a policy alone.
func check(file, alone string) (out checked, err error) {
	out = checked{Faults: config.Faults{}, Warnings: config.Faults{}}
	var p *policy.Policy
	if file != "" {
		var cfg *config.Config
		if cfg, p, err = config.Load(file); err == nil {
			out.Servers = len(cfg.Servers)
			out.Warnings, err = exposedBy(cfg, file)
		}
	} else {
		p, err = config.LoadPolicy(alone)
	}
	if out.OK = err == nil; out.OK {
		out.Warnings, out.Contracts = append(out.Warnings, p.Warnings...), len(p.Contracts)
	}
	return out, err
}
