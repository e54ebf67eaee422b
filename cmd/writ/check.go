package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func checkCommand() *cobra.Command {
	var config, policy string
	var asJSON bool
	c := &cobra.Command{
		Use: "check", Short: "Check configuration and policy, without starting anything", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if (config == "") == (policy == "") {
				return fail(exitUsage, "writ check --config writ.yaml", "name a --config, or a --policy alone")
			}
			file := policy
			var err error
			var cfg *Config
			if config != "" {
				if cfg, err = loadConfig(config); err == nil {
					file = cfg.Policy
				}
			}
			var warnings faults
			contracts := 0
			if err == nil {
				p, perr := loadPolicy(file)
				if err = perr; perr == nil {
					warnings, contracts = p.Warnings, len(p.Contracts)
				}
			}
			if asJSON {
				out := struct {
					OK        bool   `json:"ok"`
					Contracts int    `json:"contracts"`
					Faults    faults `json:"faults"`
					Warnings  faults `json:"warnings"`
				}{err == nil, contracts, faults{}, warnings}
				if fs, ok := err.(faults); ok {
					out.Faults = fs
				}
				if out.Warnings == nil {
					out.Warnings = faults{}
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
			if cfg != nil {
				fmt.Fprintf(c.OutOrStdout(), ", %d servers", len(cfg.Servers))
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
