package main

import (
	"context"
	"fmt"
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
	c := &cobra.Command{Use: "namespace", Short: "Begin and list namespaces",
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Fail(cli.ExitUsage, "writ memory namespace --help", "list or new")
		}}
	c.AddCommand(namespaceList(), namespaceNew())
	return c
}

func namespaceList() *cobra.Command {
	var state string
	var asJSON bool
	c := &cobra.Command{Use: "list", Short: "List the namespaces of the state directory", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := existingState(state)
			if err != nil {
				return err
			}
			st, err := openCurrent(c.Context(), dir)
			if err != nil {
				return err
			}
			defer st.Close()
			lines, err := namespaces(c.Context(), st)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if asJSON {
				return cli.PrintJSON(w, lines)
			}
			for _, l := range lines {
				fmt.Fprintf(w, "%s  %d records  policy %s %.12s  %s  last %s\n", l.Namespace, l.Records, cli.OneLine(l.Profile, 64), l.Policy, l.Mode, l.Last)
			}
			return nil
		}}
	c.Flags().StringVar(&state, "state", "", "state `DIR`")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
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
	if x.policy != "" {
		var err error
		if p, err = (&config.Memory{Policy: x.policy}).ReadPolicy(); err != nil {
			return nil, "", err
		}
	}
	return p, m, nil
}

func namespaceNew() *cobra.Command {
	var f memoryFlags
	var x chosen
	c := &cobra.Command{Use: "new [NAME]", Short: "Begin a namespace, under a policy and in a mode",
		Long: "Begin a namespace, so that sources and predicates can be registered before an agent works\n" +
			"in it. A gateway begins its own when it is first used. Policy and mode are the\n" +
			"configuration's, the built-in policy v1 and hardened without one.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Fail(cli.ExitUsage, "writ memory namespace new --help", "at most one name")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.namespace = args[0]
			}
			name, err := f.name()
			if err != nil {
				return err
			}
			m, err := f.settings()
			if err != nil {
				return err
			}
			p, err := m.ReadPolicy()
			if err != nil {
				return err
			}
			p, mode, err := x.choose(p, memory.Mode(m.Mode))
			if err != nil {
				return err
			}
			dir, err := stateDir(f.state)
			if err != nil {
				return err
			}
			st, err := openStore(c.Context(), dir)
			if err != nil {
				return err
			}
			defer st.Close()
			head, err := st.Head(c.Context(), memoryserver.LogOf(name))
			if err != nil {
				return unreadable(err)
			}
			if head > 0 {
				return cli.Fail(cli.ExitData, "writ memory policy show --namespace "+name, "there is a namespace %s already", name)
			}
			r := &remembered{dir: dir, st: st, namespace: name, principal: operator()}
			if r.keeper, err = r.keep(c.Context(), p, mode, nil); err != nil {
				return err
			}
			return r.operate(c, memory.CommandPolicy, []byte("{}"), f.asJSON)
		}}
	f.register(c)
	x.register(c)
	return c
}

func memoryPolicies() *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Show, compare and adopt the policy of a namespace",
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Fail(cli.ExitUsage, "writ memory policy --help", "show, diff or adopt")
		}}
	c.AddCommand(policyShow(), policyDiffCommand(), policyAdopt())
	return c
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
	var f memoryFlags
	var source bool
	c := &cobra.Command{Use: "show", Short: "Show the policy and mode in force", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := f.open(c.Context(), toRead)
			if err != nil {
				return err
			}
			defer r.close()
			w := c.OutOrStdout()
			switch {
			case f.asJSON:
				return cli.PrintJSON(w, policyShown{r.namespace, r.policy.Hash(), r.policy.Profile, r.mode, string(r.policy.Source())})
			case source:
				fmt.Fprint(w, cli.Printable(string(r.policy.Source())))
			default:
				fmt.Fprintf(w, "namespace %s: policy %s, mode %s\nSHA-256 %s\n", r.namespace, cli.OneLine(r.policy.Profile, 64), r.mode, r.policy.Hash())
			}
			return nil
		}}
	f.register(c)
	c.Flags().BoolVar(&source, "source", false, "print the policy file itself")
	return c
}

func policyAdopt() *cobra.Command {
	var f memoryFlags
	var x chosen
	c := &cobra.Command{Use: "adopt [--policy FILE] [--mode MODE]", Short: "Put another policy or mode in force",
		Long: "Put another policy or mode in force. What was decided stays as it was decided; what comes is\n" +
			"decided under the new one. `writ memory policy diff` says first what would change. Without\n" +
			"flags, what the configuration names is put in force.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := f.open(c.Context(), toWrite)
			if err != nil {
				return err
			}
			defer r.close()
			p, mode := r.policy, r.mode
			if x.policy == "" && x.mode == "" {
				if f.config == "" {
					return cli.Fail(cli.ExitUsage, "writ memory policy adopt --policy FILE", "name a --policy, a --mode or a --config")
				}
				m, err := f.settings()
				if err != nil {
					return err
				}
				if p, err = m.ReadPolicy(); err != nil {
					return err
				}
				mode = memory.Mode(m.Mode)
			}
			if p, mode, err = x.choose(p, mode); err != nil {
				return err
			}
			if p.Hash() == r.policy.Hash() && mode == r.mode {
				fmt.Fprintf(c.OutOrStdout(), "policy %s and mode %s are in force already\n", cli.OneLine(p.Profile, 64), mode)
				return nil
			}
			if _, err := r.st.PutBlob(c.Context(), p.Source()); err != nil {
				return cli.Fail(cli.ExitIO, "", "the policy cannot be stored: %w", err)
			}
			if r.keeper, err = r.keep(c.Context(), p, mode, nil); err != nil {
				return err
			}
			if err := r.operate(c, memory.CommandPolicy, []byte("{}"), f.asJSON); err != nil {
				return err
			}
			if all, err := gateways(r.dir); err == nil && len(all) > 0 && !f.asJSON {
				fmt.Fprintln(c.ErrOrStderr(), "writ: a running gateway goes on under the policy it was started with, and is refused: start it anew with this one")
			}
			return nil
		}}
	f.register(c)
	x.register(c)
	return c
}
