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
	var file, alone string
	var asJSON bool
	c := &cobra.Command{
		Use: "check", Short: "Check configuration and policy, without starting anything", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (file == "") == (alone == "") {
				return cli.Fail(cli.ExitUsage, "writ check --config writ.yaml", "name a --config, or a --policy alone")
			}
			var p *policy.Policy
			var err error
			servers, warnings, contracts := 0, config.Faults{}, 0
			if file != "" {
				var cfg *config.Config
				if cfg, p, err = config.Load(file); err == nil {
					servers = len(cfg.Servers)
					warnings, err = exposedBy(cfg, file)
				}
			} else {
				p, err = config.LoadPolicy(alone)
			}
			if err == nil {
				warnings, contracts = append(warnings, p.Warnings...), len(p.Contracts)
			}
			if asJSON {
				out := checked{OK: err == nil, Contracts: contracts, Servers: servers, Faults: config.Faults{}, Warnings: warnings}
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
			for _, w := range warnings {
				fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", cli.Printable(w.String()))
			}
			if err != nil {
				return &cli.Exit{Code: cli.ExitConfig, Err: err}
			}
			fmt.Fprintf(c.OutOrStdout(), "ok: %d contracts", contracts)
			if file != "" {
				fmt.Fprintf(c.OutOrStdout(), ", %d servers", servers)
			}
			fmt.Fprintln(c.OutOrStdout())
			return nil
		},
	}
	c.Flags().StringVar(&file, "config", "", "configuration `FILE`")
	c.Flags().StringVar(&alone, "policy", "", "policy `FILE` alone")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}
