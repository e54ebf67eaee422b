package main

import (
	"context"
	"errors"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/memory"
)

// openMemory opens a namespace in the log.
func openMemory(ctx context.Context, st *sqlite.Store, m *config.Memory) (*memoryserver.Keeper, error) {
	p, err := m.ReadPolicy()
	if err != nil {
		return nil, err
	}
	in, err := m.Intake()
	if err != nil {
		return nil, err
	}
	k, err := memoryserver.Open(ctx, memoryserver.Options{Store: st, Namespace: m.Namespace, Policy: p, Mode: memory.Mode(m.Mode), Intake: in})
	if err != nil {
		err = memoryBroken(err)
	}
	return k, err
}

// mountMemory is the memory as a server of the gateway. One that was altered on
// disk is mounted and answers nothing, with audit.ErrAltered: the rest goes on.
func mountMemory(ctx context.Context, st *sqlite.Store, m *config.Memory) (*memoryserver.Server, error) {
	k, err := openMemory(ctx, st, m)
	if errors.Is(err, audit.ErrAltered) {
		return memoryserver.NewServer(k, memoryserver.Profile(m.Tools)), err
	} else if err != nil {
		return nil, err
	}
	if err := k.InForce(); err != nil {
		return nil, cli.Fail(cli.ExitConfig, "writ memory policy adopt", "the namespace %s is under another policy or mode than the configuration names", m.Namespace)
	}
	return memoryserver.NewServer(k, memoryserver.Profile(m.Tools)), nil
}
