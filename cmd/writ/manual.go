package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/writ-project/writ/internal/cli"
)

// manualCommand is for who packs the program: a page of the manual of all commands.
func manualCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "Print the manual page, in roff", Hidden: true, Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			writeManual(c.OutOrStdout(), c.Root())
			return nil
		},
	}
}

// writeManual writes one page about a program and all its commands that help shows.
func writeManual(w io.Writer, root *cobra.Command) {
	fmt.Fprintf(w, ".TH %s 1 \"\" %q\n", strings.ToUpper(root.Name()), root.Name()+" "+release)
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", root.Name(), roff(root.Short))
	fmt.Fprintf(w, ".SH SYNOPSIS\n.B %s\n.I command\n[\\fIoption\\fR ...] [\\fIargument\\fR ...]\n", root.Name())
	fmt.Fprintf(w, ".SH DESCRIPTION\n%s\n.SH COMMANDS\n", filled(root.Long))
	var commands func(c *cobra.Command)
	commands = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if !sub.IsAvailableCommand() {
				continue
			}
			text := sub.Long
			if text == "" {
				text = sub.Short + "."
			}
			fmt.Fprintf(w, ".SS %s\n%s\n", roff(sub.UseLine()), filled(text))
			sub.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if f.Hidden || f.Name == "help" {
					return
				}
				name, usage := pflag.UnquoteUsage(f)
				short := ""
				if f.Shorthand != "" {
					short = "-" + f.Shorthand + ", "
				}
				fmt.Fprintf(w, ".TP\n\\fB%s\\fR \\fI%s\\fR\n%s\n", roff(short+"--"+f.Name), roff(name), filled(usage))
			})
			if sub.Example != "" {
				fmt.Fprintf(w, ".PP\n.nf\n%s\n.fi\n", filled(sub.Example))
			}
			commands(sub)
		}
	}
	commands(root)
}

// filled is text of several lines, none of which roff takes for a request.
func filled(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		switch l = roff(l); {
		case strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'"):
			l = `\&` + l
		case l == "":
			l = ".PP"
		}
		lines[i] = l
	}
	return strings.Join(lines, "\n")
}

// roff is text with nothing in it that roff obeys.
func roff(text string) string { return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text) }

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
