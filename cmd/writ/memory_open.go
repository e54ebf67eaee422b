package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/memory"
)

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
	if err := k.InForce(); err != nil {
		next := "writ memory policy adopt --policy " + cmp.Or(cli.Printable(m.Policy), builtInPolicy) + " --mode " + m.Mode + " --namespace " + m.Namespace
		return nil, cli.Fail(cli.ExitConfig, next, "the namespace %s is under another policy or mode than the configuration names", m.Namespace)
	}
	return memoryserver.NewServer(k, memoryserver.Surface(m.Surface)), nil
}
