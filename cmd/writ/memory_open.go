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

// openMemory opens a namespace in the log, with its index in the state
// directory. end closes the index.
func openMemory(ctx context.Context, state string, st *sqlite.Store, m *config.Memory) (k *memoryserver.Keeper, end func() error, err error) {
	p, err := m.ReadPolicy()
	if err != nil {
		return nil, nil, err
	}
	in, err := m.Intake()
	if err != nil {
		return nil, nil, err
	}
	index, err := sqlite.OpenIndex(state)
	if errors.Is(err, sqlite.ErrRemake) { // it holds nothing the log does not
		if err = sqlite.RemoveIndex(state); err == nil {
			index, err = sqlite.OpenIndex(state)
		}
	}
	if err != nil {
		return nil, nil, storeError(err)
	}
	k, err = memoryserver.Open(ctx, memoryserver.Options{Store: st, Index: index, Namespace: m.Namespace, Policy: p, Mode: memory.Mode(m.Mode), Intake: in})
	if err != nil {
		err = memoryBroken(err)
		if !errors.Is(err, audit.ErrAltered) {
			index.Close()
			return nil, nil, err
		}
	}
	return k, index.Close, err
}

// mountMemory is the memory as a server of the gateway. One that was altered on
// disk is mounted and answers nothing, with audit.ErrAltered: the rest goes on.
func mountMemory(ctx context.Context, state string, st *sqlite.Store, m *config.Memory) (*memoryserver.Server, func() error, error) {
	k, end, err := openMemory(ctx, state, st, m)
	if errors.Is(err, audit.ErrAltered) {
		return memoryserver.NewServer(k, memoryserver.Profile(m.Tools)), end, err
	} else if err != nil {
		return nil, nil, err
	}
	if err := k.InForce(); err != nil {
		end()
		return nil, nil, cli.Fail(cli.ExitConfig, "writ memory policy adopt", "the namespace %s is under another policy or mode than the configuration names", m.Namespace)
	}
	return memoryserver.NewServer(k, memoryserver.Profile(m.Tools)), end, nil
}
