package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/memory"
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
			o := newFiles(state)
			o.policy, o.memory = noTools(), m
			for _, file := range append(m.Files(), f.config) {
				if file != "" {
					o.own(file)
				}
			}
			if listen != "" {
				return o.serve(c, listen, "")
			}
			return o.run(c, slog.LevelError)
		},
	}, "state", "config", "namespace")
	c.Flags().StringVar(&listen, "listen", "", "`HOST:PORT` to serve MCP over HTTP on; loopback only")
	c.Flags().StringVar(&mode, "mode", "", "`MODE` hardened or local (default: the configuration's, or hardened)")
	c.Flags().StringVar(&surface, "surface", "", "`SET` of tools: full, everyday or read_only (default: the configuration's, or full)")
	return c
}

// openMemory opens a namespace in the log of a state directory.
func openMemory(ctx context.Context, dir string, st *sqlite.Store, m *config.Memory) (*memoryserver.Keeper, error) {
	p, err := m.ReadPolicy()
	if err != nil {
		return nil, err
	}
	in, err := m.Intake()
	if err != nil {
		return nil, err
	}
	near, err := m.Nearness()
	if err != nil {
		return nil, err
	}
	k, err := memoryserver.Open(ctx, memoryserver.Options{Store: st, Namespace: m.Namespace, Policy: p, Mode: memory.Mode(m.Mode), Intake: in,
		Snapshots: statedir.Snapshots(dir), Nearness: near})
	if err != nil {
		err = memoryBroken(err)
	}
	return k, err
}

// mountMemory is the memory as a server of the gateway. One that was altered on
// disk is mounted and answers nothing, with audit.ErrAltered: the rest goes on.
func mountMemory(ctx context.Context, dir string, st *sqlite.Store, m *config.Memory) (*memoryserver.Server, error) {
	k, err := openMemory(ctx, dir, st, m)
	if errors.Is(err, audit.ErrAltered) {
		return memoryserver.NewServer(k, memoryserver.Surface(m.Surface)), err
	} else if err != nil {
		return nil, err
	}
	if !k.InForce() {
		next := "writ memory policy adopt --policy " + cmp.Or(cli.Printable(m.Policy), builtInPolicy) + " --mode " + m.Mode + " --namespace " + m.Namespace
		return nil, cli.Fail(cli.ExitConfig, next, "the namespace %s is under another policy or mode than the configuration names", m.Namespace)
	}
	return memoryserver.NewServer(k, memoryserver.Surface(m.Surface)), nil
}
