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

// ordered is a command of the operator whose arguments need nothing but its
// own.
func ordered(use, short, long string, args cobra.PositionalArgs, command string, make func(args []string) ([]byte, error)) *cobra.Command {
	var f flags
	var payload []byte
	return f.take(&cobra.Command{Use: use, Short: short, Long: long, Args: args,
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			payload, err = make(args)
			return err
		},
		RunE: f.with(toWrite, func(c *cobra.Command, r *remembered, _ []string) error {
			d, err := r.operate(c.Context(), command, payload)
			if err != nil {
				return err
			}
			return printDecision(c.OutOrStdout(), &d.Outcome, f.json)
		})}, ofMemory...)
}

func memoryResolve() *cobra.Command {
	var uphold, refute bool
	c := ordered("resolve PROP --uphold | --refute", "Rule on a proposition",
		"Rule on a proposition that is contested, or wrong. --uphold is your word for it, of the highest\n"+
			"level and the newest, and replaces what says otherwise; --refute closes what supports it.\n"+
			"Nothing is deleted: the evidence stays, closed by this decision.",
		exactly(1, "one proposition's id"), memory.CommandRule,
		func(args []string) ([]byte, error) {
			if uphold == refute {
				return nil, cli.Fail(cli.ExitUsage, "writ memory explain "+cli.OneLine(args[0], 40), "either --uphold or --refute")
			}
			ruling := "uphold"
			if refute {
				ruling = "refute"
			}
			return object("proposition_id", args[0], "ruling", ruling), nil
		})
	c.Flags().BoolVar(&uphold, "uphold", false, "it is true")
	c.Flags().BoolVar(&refute, "refute", false, "it is not")
	return c
}

func merging(use, short, what, command string) *cobra.Command {
	return ordered(use, short, "", exactly(2, what), command, func(args []string) ([]byte, error) {
		return object("from", args[0], "into", args[1]), nil
	})
}

func testCancel() *cobra.Command {
	return ordered("cancel TEST", "End an open test", "", exactly(1, "one test's id"), memory.CommandCancelTest, func(args []string) ([]byte, error) {
		return object("test_id", args[0]), nil
	})
}

// listing lists what an operator registered, in its order.
func listing[T any](short string, of func(*memory.State) []T, line func(io.Writer, T)) *cobra.Command {
	return reading("list", short, "", cli.NoArgs, func(x *memory.Reader, _ []string) (any, func(io.Writer), error) {
		rows := of(x.State)
		return rows, func(w io.Writer) {
			for _, row := range rows {
				line(w, row)
			}
		}, nil
	})
}

func memorySources() *cobra.Command {
	list := listing("List the registered sources", (*memory.State).Sources, func(w io.Writer, s memory.Source) {
		fmt.Fprintf(w, "%s  %s", cli.OneLine(s.ID, 256), s.Class)
		when(w, s.Suspended, "  suspended")
		when(w, s.DistrustedSince != nil, "  distrusted since %s", s.DistrustedSince)
		fmt.Fprintf(w, "  by %s\n", cli.OneLine(s.RegisteredBy, 80))
	})
	suspend := func(use, short string, suspended bool) *cobra.Command {
		return ordered(use+" SOURCE", short, "", exactly(1, "one source"), memory.CommandSuspend, func(args []string) ([]byte, error) {
			return object("source_id", args[0], "suspended", suspended), nil
		})
	}
	return group("source", "Register, suspend and list sources", "", list, sourceAdd(),
		suspend("suspend", "Refuse what a source says from now on", true), suspend("resume", "Take a suspended source back", false))
}

func sourceAdd() *cobra.Command {
	var class string
	c := ordered("add SOURCE --class CLASS", "Register a source",
		"Register a source: what a tool's results come from (server/tool), or a name of your own. The\n"+
			"class bounds what its word is worth and cannot be changed later; a source nobody registered\n"+
			"has the worth of the channel it speaks through.",
		exactly(1, "one source, such as files/read_file"), memory.CommandSource,
		func(args []string) ([]byte, error) {
			if class == "" {
				return nil, cli.Fail(cli.ExitUsage, "writ memory source add SOURCE --class tool_internal", "a source has a --class")
			}
			return object("source_id", args[0], "class", class), nil
		})
	c.Flags().StringVar(&class, "class", "", "`CLASS`: operator, direct_user, tool_internal, user_attested, tool_external, document, web, peer_agent, agent_inference or import")
	return c
}

func memoryPredicates() *cobra.Command {
	var aliases []string
	var single, many bool
	add := ordered("add NAME --single | --many", "Declare a predicate, or change what is declared of it",
		"Declare a predicate. --many says that it has several values at a time, so that a new value\n"+
			"takes no other's place; of one that nobody declared a new value replaces the old.",
		exactly(1, "one predicate: a lower-case word"), memory.CommandPredicate,
		func(args []string) ([]byte, error) {
			if single == many {
				return nil, cli.Fail(cli.ExitUsage, "writ memory predicate add NAME --many", "either --single or --many")
			}
			return object("name", args[0], "aliases", aliases, "single", single), nil
		})
	add.Flags().StringSliceVar(&aliases, "alias", nil, "another `NAME` of it; may be repeated")
	add.Flags().BoolVar(&single, "single", false, "it has one value at a time")
	add.Flags().BoolVar(&many, "many", false, "it has several")
	list := listing("List the declared predicates", (*memory.State).Predicates, func(w io.Writer, p memory.Predicate) {
		values := "many values"
		if p.Single {
			values = "one value"
		}
		fmt.Fprintf(w, "%s  %s", p.Name, values)
		when(w, len(p.Aliases) > 0, "  also %s", strings.Join(p.Aliases, ","))
		fmt.Fprintf(w, "  by %s\n", cli.OneLine(p.RegisteredBy, 80))
	})
	return group("predicate", "Declare and list predicates", "", list, add)
}

// builtInPolicy names the policy that comes with the program.
const builtInPolicy = "built-in"

// policyName says which policy has a hash.
func policyName(hash string) string {
	if hash == memory.Builtin().Hash() {
		return builtInPolicy
	}
	return fmt.Sprintf("%.12s", hash)
}

// namespaceLine is one namespace in `writ memory namespace list --json`.
type namespaceLine struct {
	Namespace string         `json:"namespace"`
	Records   uint64         `json:"records"`
	Policy    string         `json:"policy"`
	Mode      memory.Mode    `json:"mode"`
	Last      memory.Instant `json:"last"`
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
					fmt.Fprintf(w, "%s  %d records  policy %s  %s  last %s\n", l.Namespace, l.Records, policyName(l.Policy), l.Mode, l.Last)
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
		lines = append(lines, namespaceLine{name, h.N, e.Policy, e.Mode, e.At})
	}
	return lines, nil
}

// chosen are the flags that name a policy and a mode.
type chosen struct {
	policy, mode string
}

func (x *chosen) register(c *cobra.Command) {
	c.Flags().StringVar(&x.policy, "policy", "", "policy `FILE`, or "+builtInPolicy)
	c.Flags().StringVar(&x.mode, "mode", "", "hardened or local")
}

// choose is what the flags name, else the given ones.
func (x *chosen) choose(p *memory.Policy, m memory.Mode) (*memory.Policy, memory.Mode, error) {
	if x.mode != "" {
		if m = memory.Mode(x.mode); !slices.Contains(config.MemoryModes, x.mode) {
			return nil, "", cli.Fail(cli.ExitUsage, "--mode hardened or --mode local", "a namespace's mode is hardened or local")
		}
	}
	var err error
	switch x.policy {
	case "":
	case builtInPolicy:
		p = memory.Builtin()
	default:
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
			"configuration's, the built-in policy and hardened without one.",
		Args: between(0, 1, "at most one name"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.namespace = args[0]
			}
			m, err := f.settings()
			if err != nil {
				return err
			}
			p, mode, err := x.configured(m)
			if err != nil {
				return err
			}
			return f.onLog(toAppend, func(c *cobra.Command, dir string, st *sqlite.Store, _ []string) error {
				head, err := st.Head(c.Context(), memoryserver.LogOf(m.Namespace))
				if err != nil {
					return unreadable(err)
				}
				if head > 0 {
					return cli.Fail(cli.ExitData, "writ memory policy show --namespace "+m.Namespace, "there is a namespace %s already", m.Namespace)
				}
				r := &remembered{dir: dir, st: st, namespace: m.Namespace, principal: operator()}
				return r.adopt(c, p, mode, f.json)
			})(c, nil)
		}}, ofMemory...)
	x.register(c)
	return c
}

// configured are the policy and mode the flags name, else the configuration.
func (x *chosen) configured(m *config.Memory) (*memory.Policy, memory.Mode, error) {
	p, err := m.ReadPolicy()
	if err != nil {
		return nil, "", err
	}
	return x.choose(p, memory.Mode(m.Mode))
}

// adopt puts a policy and a mode in force.
func (r *remembered) adopt(c *cobra.Command, p *memory.Policy, mode memory.Mode, asJSON bool) error {
	if err := r.keep(c.Context(), p, mode); err != nil {
		return err
	}
	d, err := r.operate(c.Context(), memory.CommandPolicy, []byte("{}"))
	if err != nil {
		return err
	}
	return printDecision(c.OutOrStdout(), &d.Outcome, asJSON)
}

// policyShown is what `writ memory policy show --json` prints, and check without
// a namespace and mode.
type policyShown struct {
	Namespace string      `json:"namespace,omitempty"`
	Policy    string      `json:"policy"`
	Mode      memory.Mode `json:"mode,omitempty"`
	Source    string      `json:"source"`
}

func policyShow() *cobra.Command {
	var f flags
	var source bool
	c := f.take(&cobra.Command{Use: "show", Short: "Show the policy and mode in force", Args: cli.NoArgs,
		RunE: f.with(toRead, func(c *cobra.Command, r *remembered, _ []string) error {
			return f.show(c, policyShown{r.namespace, r.inForce, r.mode, string(r.source)}, func(w io.Writer) {
				if source {
					fmt.Fprint(w, cli.Printable(string(r.source)))
					return
				}
				fmt.Fprintf(w, "namespace %s: policy %s, mode %s\nSHA-256 %s\n", r.namespace, policyName(r.inForce), r.mode, r.inForce)
				when(w, r.policy == nil, "it is none of this version: nothing more is recorded under it\n")
			})
		})}, ofMemory...)
	c.Flags().BoolVar(&source, "source", false, "print the policy file itself")
	return c
}

func policyCheck() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{Use: "check FILE", Short: "Check a policy file", Args: exactly(1, "one policy file, or "+builtInPolicy),
		RunE: func(c *cobra.Command, args []string) error {
			p, _, err := (&chosen{policy: args[0]}).choose(nil, "")
			if err != nil {
				return err
			}
			return f.show(c, policyShown{Policy: p.Hash(), Source: string(p.Source())}, func(w io.Writer) {
				fmt.Fprintf(w, "ok: policy %s\nSHA-256 %s\n", policyName(p.Hash()), p.Hash())
			})
		}}, "json")
}

func policyAdopt() *cobra.Command {
	var f flags
	var x chosen
	c := f.take(&cobra.Command{Use: "adopt [--policy FILE] [--mode MODE]", Short: "Put another policy or mode in force",
		Long: "Put another policy or mode in force. What was recorded keeps the level it was recorded at;\n" +
			"what comes is judged under the new one. Without flags, what the configuration names is put\n" +
			"in force.",
		Args: cli.NoArgs,
		RunE: f.with(toChange, func(c *cobra.Command, r *remembered, _ []string) error {
			p, mode, err := x.choose(r.policy, r.mode)
			if x == (chosen{}) {
				if f.config == "" {
					return cli.Fail(cli.ExitUsage, "writ memory policy adopt --policy FILE", "name a --policy, a --mode or a --config")
				}
				m, serr := f.settings()
				if serr != nil {
					return serr
				}
				p, mode, err = x.configured(m)
			}
			switch {
			case err != nil:
				return err
			case p == nil:
				return cli.Fail(cli.ExitUsage, "writ memory policy adopt --policy "+builtInPolicy, "the policy in force is none of this version: name another with the mode")
			case p.Hash() == r.inForce && mode == r.mode:
				return f.show(c, policyShown{r.namespace, r.inForce, mode, string(r.source)}, func(w io.Writer) {
					fmt.Fprintf(w, "policy %s and mode %s are in force already\n", policyName(r.inForce), mode)
				})
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
