package main

import (
	"fmt"
	"io"
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

func (b buildInfo) String() string {
	of := ""
	if b.Revision != "" {
		of = " (" + b.Revision + ")"
		if b.Modified {
			of = " (" + b.Revision + ", modified)"
		}
	}
	return "writ " + b.Version + of + " " + b.Go + " " + b.Platform
}

func versionCommand() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "version", Short: "Print build information", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := readBuildInfo()
			return f.show(c, b, func(w io.Writer) { fmt.Fprintln(w, b) })
		},
	}, "json")
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
