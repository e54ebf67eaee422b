package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
)

// release is set by the Makefile for a tagged build.
var release = "dev"

type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	CGO      bool   `json:"cgo"`
}

func readBuildInfo() buildInfo {
	b := buildInfo{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, s := range bi.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			case "vcs.time":
				b.Time = s.Value
			case "CGO_ENABLED":
				b.CGO = s.Value == "1"
			}
		}
	}
	return b
}

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print build information", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := readBuildInfo()
			if asJSON {
				return cli.PrintJSON(c.OutOrStdout(), b)
			}
			fmt.Fprintf(c.OutOrStdout(), "writ %s", b.Version)
			if b.Revision != "" {
				fmt.Fprintf(c.OutOrStdout(), " (%s", b.Revision)
				if b.Modified {
					fmt.Fprint(c.OutOrStdout(), ", modified")
				}
				fmt.Fprint(c.OutOrStdout(), ")")
			}
			fmt.Fprintf(c.OutOrStdout(), " %s %s\n", b.Go, b.Platform)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}

// evaluationCommand stands where evaluation was: it is a program of its own, of
// which nothing is in this one.
func evaluationCommand() *cobra.Command {
	return &cobra.Command{
		Use: "eval", Aliases: []string{"invariants"}, Short: "Say how to measure writ, which another program does",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			how := []string{"go run ./cmd/writ-eval"}
			if c.CalledAs() == "invariants" {
				how = append(how, "invariants")
			}
			return cli.Fail(cli.ExitUsage, "", "evaluation is a program of its own: in the source tree, %s", strings.Join(append(how, args...), " "))
		},
	}
}
