package main

import (
	"context"
	"errors"
	"slices"

	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/memory"
)

// MemoryConfig mounts the governed memory behind the gateway.
type MemoryConfig struct {
	strictyaml.Place
	// Namespace is what is remembered together, default by default; two have
	// nothing in common. a-z, 0-9 and -.
	Namespace string `yaml:"namespace"`
	// Mode is hardened (default): only what Writ itself saw can be believed; or
	// local: the agent may also attest what its one user said.
	Mode string `yaml:"mode"`
	// Policy is a file of every constant, relative to the configuration; the
	// built-in profile v1 by default. A namespace keeps the one it began with.
	Policy string `yaml:"policy"`
	// Tools is full (default), minimal or read_only: which tools are published.
	Tools string `yaml:"tools"`
}

var (
	memoryModes = []string{string(memory.Hardened), string(memory.Local)}
	memoryTools = []string{string(memoryserver.Full), string(memoryserver.Minimal), string(memoryserver.ReadOnly)}
)

// check finds what the types cannot, and fills in what was left out.
func (m *MemoryConfig) check(r *strictyaml.Reader) {
	word := func(key string, value *string, known []string) {
		switch n := m.Node.Get(key); {
		case n == nil:
			*value = known[0]
		case n.Kind == strictyaml.Text && !slices.Contains(known, *value):
			r.Fault(n, "unknown word "+strictyaml.Word(*value), strictyaml.Nearest(*value, known))
		}
	}
	word("mode", &m.Mode, memoryModes)
	word("tools", &m.Tools, memoryTools)
	switch n := m.Node.Get("namespace"); {
	case n == nil:
		m.Namespace = "default"
	case n.Kind == strictyaml.Text && !memoryserver.ValidNamespace(m.Namespace):
		r.Fault(n, "a namespace's name has 1 to 32 of a-z, 0-9 and -, and does not start with -", "namespace: default")
	}
}

// builtinMemory is the memory of a gateway without a configuration.
func builtinMemory() *MemoryConfig {
	return &MemoryConfig{Namespace: "default", Mode: memoryModes[0], Tools: memoryTools[0]}
}

// policy reads the memory's policy.
func (m *MemoryConfig) policy() (*memory.Policy, error) {
	if m.Policy == "" {
		p, ok := memory.Builtin("v1")
		if !ok {
			return nil, fail(exitConfig, "", "the built-in policy of the memory is missing")
		}
		return p, nil
	}
	b, err := readOperatorFile(m.Policy)
	if err != nil {
		return nil, configError(err)
	}
	p, fs := memory.ParsePolicy(m.Policy, b)
	if len(fs) > 0 {
		return nil, configError(faults(fs))
	}
	return p, nil
}

// openMemory opens a namespace in the log, with its index in the state
// directory. end closes the index.
func openMemory(ctx context.Context, state string, st *sqlite.Store, m *MemoryConfig) (k *memoryserver.Keeper, end func() error, err error) {
	p, err := m.policy()
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
	k, err = memoryserver.Open(ctx, memoryserver.Options{Store: st, Index: index, Namespace: m.Namespace, Policy: p, Mode: memory.Mode(m.Mode)})
	if err != nil {
		index.Close()
		return nil, nil, fail(exitData, "writ audit verify", "the memory cannot be read: %w", err)
	}
	return k, index.Close, nil
}

// mountMemory is the memory as a server of the gateway.
func mountMemory(ctx context.Context, state string, st *sqlite.Store, m *MemoryConfig) (*memoryserver.Server, func() error, error) {
	k, end, err := openMemory(ctx, state, st, m)
	if err != nil {
		return nil, nil, err
	}
	if err := k.InForce(); err != nil {
		end()
		return nil, nil, fail(exitConfig, "writ memory policy adopt", "the namespace %s is under another policy or mode than the configuration names", m.Namespace)
	}
	return memoryserver.NewServer(k, memoryserver.Profile(m.Tools)), end, nil
}
