package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/gate"
)

// checked is what writ check --json prints; docs/formats.md describes it.
type checked struct {
	OK        bool   `json:"ok"`
	Contracts int    `json:"contracts"`
	Servers   int    `json:"servers"`
	Faults    faults `json:"faults"`
	Warnings  faults `json:"warnings"`
}

// exposed warns of servers that are given directories with files of Writ's own,
// the usual state directory among them.
func (c *Config) exposed(config string) (out faults, err error) {
	state, err := statePath("")
	if err != nil {
		return nil, err
	}
	o := newFiles(state)
	for _, file := range append(c.files(), config) {
		o.own(file)
	}
	for i := range c.Servers {
		o.servers = append(o.servers, c.Servers[i].upstream())
	}
	for i, s := range o.servers {
		if held := o.exposed(s); held != "" {
			n := c.Servers[i].At("command")
			out = append(out, gate.Fault{File: config, Line: n.Line, Column: n.Column, Message: held, Hint: moveThem})
		}
	}
	return out, nil
}

func checkCommand() *cobra.Command {
	var config, policy string
	var asJSON bool
	c := &cobra.Command{
		Use: "check", Short: "Check configuration and policy, without starting anything", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (config == "") == (policy == "") {
				return fail(exitUsage, "writ check --config writ.yaml", "name a --config, or a --policy alone")
			}
			var p *gate.Policy
			var err error
			servers, warnings, contracts := 0, faults{}, 0
			if config != "" {
				var cfg *Config
				if cfg, p, err = load(config); err == nil {
					servers = len(cfg.Servers)
					warnings, err = cfg.exposed(config)
				}
			} else {
				p, err = loadPolicy(policy)
			}
			if err == nil {
				warnings, contracts = append(warnings, p.Warnings...), len(p.Contracts)
			}
			if asJSON {
				out := checked{OK: err == nil, Contracts: contracts, Servers: servers, Faults: faults{}, Warnings: warnings}
				if fs, ok := err.(faults); ok {
					out.Faults = fs
				}
				if perr := printJSON(c.OutOrStdout(), out); perr != nil {
					return perr
				}
				if err != nil {
					return &exit{code: exitConfig, err: fmt.Errorf("the configuration is not usable")}
				}
				return nil
			}
			for _, w := range warnings {
				fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", printable(w.String()))
			}
			if err != nil {
				return &exit{exitConfig, err, ""}
			}
			fmt.Fprintf(c.OutOrStdout(), "ok: %d contracts", contracts)
			if config != "" {
				fmt.Fprintf(c.OutOrStdout(), ", %d servers", servers)
			}
			fmt.Fprintln(c.OutOrStdout())
			return nil
		},
	}
	c.Flags().StringVar(&config, "config", "", "configuration `FILE`")
	c.Flags().StringVar(&policy, "policy", "", "policy `FILE` alone")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}
