package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/memory"
)

// namespaceLine is one namespace in `writ memory namespace list --json`.
type namespaceLine struct {
	Namespace string         `json:"namespace"`
	Records   uint64         `json:"records"`
	Policy    string         `json:"policy"`
	Profile   string         `json:"profile"`
	Mode      memory.Mode    `json:"mode"`
	Last      memory.Instant `json:"last"`
}

func memoryNamespaces() *cobra.Command {
	return group("namespace", "Begin and list namespaces", "", namespaceList(), namespaceNew())
}

func namespaceList() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{Use: "list", Short: "List the namespaces of the state directory", Args: cli.NoArgs,
		RunE: f.onLog(toTrust, func(c *cobra.Command, _ string, st *sqlite.Store, _ []string) error {
			lines, err := namespaces(c.Context(), st)
			if err != nil {
				return err
			}
			return f.show(c, lines, func(w io.Writer) {
				for _, l := range lines {
					fmt.Fprintf(w, "%s  %d records  policy %s %.12s  %s  last %s\n", l.Namespace, l.Records, cli.OneLine(l.Profile, 64), l.Policy, l.Mode, l.Last)
				}
			})
		})}, "state", "json")
}

func namespaces(ctx context.Context, st *sqlite.Store) ([]namespaceLine, error) {
	lines := []namespaceLine{}
	for h, err := range st.Heads(ctx) {
		if err != nil {
			return nil, unreadable(err)
		}
		if !memoryserver.IsLog(h.Session) {
			continue
		}
		name := strings.TrimPrefix(h.Session, memoryserver.LogOf(""))
		e, err := newestOf(ctx, st, name)
		if err != nil {
			return nil, err
		}
		p, err := policyNamed(ctx, st, e.Policy)
		if err != nil {
			return nil, err
		}
		lines = append(lines, namespaceLine{name, h.N, e.Policy, p.Profile, e.Mode, e.At})
	}
	return lines, nil
}

// chosen are the flags that name a policy and a mode.
type chosen struct {
	policy, mode string
}

func (x *chosen) register(c *cobra.Command) {
	c.Flags().StringVar(&x.policy, "policy", "", "policy `FILE`, or v1 or v01q for a built-in one")
	c.Flags().StringVar(&x.mode, "mode", "", "hardened or local")
}

// choose is what the flags name, else the given ones.
func (x *chosen) choose(p *memory.Policy, m memory.Mode) (*memory.Policy, memory.Mode, error) {
	if x.mode != "" {
		if m = memory.Mode(x.mode); !slices.Contains(config.MemoryModes, x.mode) {
			return nil, "", cli.Fail(cli.ExitUsage, "--mode hardened or --mode local", "a namespace's mode is hardened or local")
		}
	}
	if b, ok := memory.Builtin(x.policy); ok {
		return b, m, nil
	}
	var err error
	if x.policy != "" {
		p, err = (&config.Memory{Policy: x.policy}).ReadPolicy()
	}
	return p, m, err
}

func namespaceNew() *cobra.Command {
	var f flags
	var x chosen
	c := f.take(&cobra.Command{Use: "new [NAME]", Short: "Begin a namespace, under a policy and in a mode",
		Long: "Begin a namespace, so that sources and predicates can be registered before an agent works\n" +
			"in it. A gateway begins its own when it is first used. Policy and mode are the\n" +
			"configuration's, the built-in policy v1 and hardened without one.",
		Args: between(0, 1, "at most one name"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.namespace = args[0]
			}
			name, err := f.name()
			if err != nil {
				return err
			}
			p, mode, err := f.configured()
			if err != nil {
				return err
			}
			if p, mode, err = x.choose(p, mode); err != nil {
				return err
			}
			return f.onLog(toAppend, func(c *cobra.Command, dir string, st *sqlite.Store, _ []string) error {
				head, err := st.Head(c.Context(), memoryserver.LogOf(name))
				if err != nil {
					return unreadable(err)
				}
				if head > 0 {
					return cli.Fail(cli.ExitData, "writ memory policy show --namespace "+name, "there is a namespace %s already", name)
				}
				r := &remembered{dir: dir, st: st, namespace: name, principal: operator()}
				return r.adopt(c, p, mode, f.json)
			})(c, nil)
		}}, ofMemory...)
	x.register(c)
	return c
}

// configured are the policy and mode the configuration names, or the built-in
// ones.
func (f *flags) configured() (p *memory.Policy, mode memory.Mode, err error) {
	m, err := f.settings()
	if err == nil {
		mode = memory.Mode(m.Mode)
		p, err = m.ReadPolicy()
	}
	return p, mode, err
}

// adopt puts a policy and a mode in force.
func (r *remembered) adopt(c *cobra.Command, p *memory.Policy, mode memory.Mode, asJSON bool) error {
	if err := r.keep(c.Context(), p, mode); err != nil {
		return err
	}
	return r.operate(c, memory.CommandPolicy, []byte("{}"), asJSON)
}

func memoryPolicies() *cobra.Command {
	return group("policy", "Show, compare and adopt the policy of a namespace", "", policyShow(), policyDiffCommand(), policyAdopt())
}

// policyShown is what `writ memory policy show --json` prints.
type policyShown struct {
	Namespace string      `json:"namespace"`
	Policy    string      `json:"policy"`
	Profile   string      `json:"profile"`
	Mode      memory.Mode `json:"mode"`
	Source    string      `json:"source"`
}

func policyShow() *cobra.Command {
	var f flags
	var source bool
	c := f.take(&cobra.Command{Use: "show", Short: "Show the policy and mode in force", Args: cli.NoArgs,
		RunE: f.with(toRead, func(c *cobra.Command, r *remembered, _ []string) error {
			return f.show(c, policyShown{r.namespace, r.policy.Hash(), r.policy.Profile, r.mode, string(r.policy.Source())}, func(w io.Writer) {
				if source {
					fmt.Fprint(w, cli.Printable(string(r.policy.Source())))
					return
				}
				fmt.Fprintf(w, "namespace %s: policy %s, mode %s\nSHA-256 %s\n", r.namespace, cli.OneLine(r.policy.Profile, 64), r.mode, r.policy.Hash())
			})
		})}, ofMemory...)
	c.Flags().BoolVar(&source, "source", false, "print the policy file itself")
	return c
}

func policyAdopt() *cobra.Command {
	var f flags
	var x chosen
	c := f.take(&cobra.Command{Use: "adopt [--policy FILE] [--mode MODE]", Short: "Put another policy or mode in force",
		Long: "Put another policy or mode in force. What was decided stays as it was decided; what comes is\n" +
			"decided under the new one. `writ memory policy diff` says first what would change. Without\n" +
			"flags, what the configuration names is put in force.",
		Args: cli.NoArgs,
		RunE: f.with(toWrite, func(c *cobra.Command, r *remembered, _ []string) error {
			p, mode, err := r.policy, r.mode, error(nil)
			if x.policy == "" && x.mode == "" {
				if f.config == "" {
					return cli.Fail(cli.ExitUsage, "writ memory policy adopt --policy FILE", "name a --policy, a --mode or a --config")
				}
				p, mode, err = f.configured()
			} else {
				p, mode, err = x.choose(p, mode)
			}
			if err != nil {
				return err
			}
			if p.Hash() == r.policy.Hash() && mode == r.mode {
				fmt.Fprintf(c.OutOrStdout(), "policy %s and mode %s are in force already\n", cli.OneLine(p.Profile, 64), mode)
				return nil
			}
			if _, err := r.st.PutBlob(c.Context(), p.Source()); err != nil {
				return cli.Fail(cli.ExitIO, "", "the policy cannot be stored: %w", err)
			}
			if err := r.adopt(c, p, mode, f.json); err != nil {
				return err
			}
			if all, err := gateways(r.dir); err == nil && len(all) > 0 && !f.json {
				fmt.Fprintln(c.ErrOrStderr(), "writ: a running gateway goes on under the policy it was started with, and is refused: start it anew with this one")
			}
			return nil
		})}, ofMemory...)
	x.register(c)
	return c
}
