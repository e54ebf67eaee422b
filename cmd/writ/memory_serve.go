package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
)

// memoryServe runs the gateway with nothing behind it but the memory: the same
// door, and no other server.
func memoryServe() *cobra.Command {
	var f flags
	var listen, mode, surface string
	c := f.take(&cobra.Command{
		Use: "serve", Short: "Run the memory alone, over stdio or HTTP", Args: cli.NoArgs,
		Long: "Run the memory alone, over standard input and output as a client's configuration wants it,\n" +
			"or with --listen over HTTP. Without servers beside it Writ sees nothing but what a person says\n" +
			"with `writ session say`, so in mode hardened little can be believed; in mode local the agent\n" +
			"may also attest what its user said.",
		Example: "  writ memory serve --mode local\n  writ memory serve --listen 127.0.0.1:8701",
		RunE: func(c *cobra.Command, _ []string) error {
			state, err := stateDir(f.state)
			if err != nil {
				return err
			}
			m, err := f.settings()
			if err != nil {
				return err
			}
			for _, w := range []struct {
				flag  string
				value string
				into  *string
				known []string
			}{{"mode", mode, &m.Mode, config.MemoryModes}, {"surface", surface, &m.Surface, config.MemorySurfaces}} {
				switch {
				case w.value == "":
				case !slices.Contains(w.known, w.value):
					return cli.Fail(cli.ExitUsage, "writ memory serve --help", "--%s is one of %s", w.flag, strings.Join(w.known, ", "))
				default:
					*w.into = w.value
				}
			}
			p, err := noTools()
			if err != nil {
				return err
			}
			o := newFiles(state)
			o.policy, o.memory = p, m
			for _, file := range append(m.Files(), f.config) {
				if file != "" {
					o.own(file)
				}
			}
			if listen != "" {
				return o.serve(c.Context(), listen, c.ErrOrStderr())
			}
			return o.run(c, slog.LevelError)
		},
	}, "state", "config", "namespace")
	c.Flags().StringVar(&listen, "listen", "", "`HOST:PORT` to serve MCP over HTTP on; loopback only")
	c.Flags().StringVar(&mode, "mode", "", "`MODE` hardened or local (default: the configuration's, or hardened)")
	c.Flags().StringVar(&surface, "surface", "", "`SET` of tools: full, everyday or read_only (default: the configuration's, or full)")
	return c
}
