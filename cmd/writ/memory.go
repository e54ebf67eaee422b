package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/memory"
)

func memoryCommand() *cobra.Command {
	c := &cobra.Command{Use: "memory", Short: "Read, rule on, erase and check what is remembered",
		Long: "What an operator can do with the governed memory and no agent can. The commands work on\n" +
			"the log of the state directory, whether or not a gateway is running there.",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Unknown(c, args[0])
			}
			return cli.Fail(cli.ExitUsage, "writ memory --help", "a command of the memory is needed")
		}}
	c.AddCommand(
		memorySearch(), memoryGet(), memoryExplain(), memoryTimeline(), memoryPending(),
		memorySources(), memoryPredicates(), group("namespace", "Begin and list namespaces", "", namespaceList(), namespaceNew()),
		group("policy", "Show, check and adopt the policy of a namespace", "", policyShow(), policyCheck(), policyAdopt()),
		memoryResolve(), merging("merge FROM INTO", "Join one entity into another; both ids stay", "two entities' ids", memory.CommandMerge),
		merging("unmerge FROM INTO", "Undo a merge", "the two entities' ids", memory.CommandUnmerge),
		group("test", "Cancel a test nobody will run", "", testCancel()), memoryErase(),
		group("receipt", "Check the receipt of an erasure, or make it again", "", receiptVerify(), receiptIssue()),
		memoryDistrust(), memoryVerify(), memoryExport(), memoryImport(), memoryServe(),
	)
	return c
}

// settings are the memory's in the configuration, or the built-in ones, with the
// namespace a flag names.
func (f *flags) settings() (*config.Memory, error) {
	m := config.DefaultMemory()
	if f.config != "" {
		c, _, err := config.Load(f.config)
		if err != nil {
			return nil, config.Invalid(err)
		}
		if m = &c.Memory; !m.Given() {
			return nil, cli.Fail(cli.ExitConfig, "memory: {} in "+cli.Printable(f.config), "the configuration mounts no memory")
		}
	}
	if f.namespace != "" {
		m.Namespace = f.namespace
	}
	if !memoryserver.ValidNamespace(m.Namespace) {
		return nil, cli.Fail(cli.ExitUsage, "writ memory namespace list", "a namespace's name has 1 to 32 of a-z, 0-9 and -, and does not start with -")
	}
	return m, nil
}

// remembered is one namespace as an operator works with it.
type remembered struct {
	dir       string
	st        *sqlite.Store
	keeper    *memoryserver.Keeper
	namespace string
	inForce   string         // the policy's hash
	source    []byte         // its file
	policy    *memory.Policy // what this version makes of that, nil where it is of an earlier form
	mode      memory.Mode
	intake    memoryserver.Intake
	principal string
}

// operator is how the memory calls whoever runs this program.
func operator() string { return "operator:" + strconv.Itoa(os.Getuid()) }

// need says what a command does with a namespace.
type need int

const (
	toFold need = iota // from its records alone
	toRead
	toWrite  // under the policy in force
	toChange // whatever that is
)

// open opens a namespace that exists, under the policy and mode in force there.
func (f *flags) open(ctx context.Context, what need) (*remembered, error) {
	m, err := f.settings()
	if err != nil {
		return nil, err
	}
	how := toTrust
	if what > toRead && !f.dry {
		how = toRule
	}
	dir, st, err := how(ctx, f.state)
	if err != nil {
		return nil, err
	}
	r := &remembered{dir: dir, st: st, namespace: m.Namespace, principal: operator()}
	if what == toFold {
		return r, nil
	}
	if r.intake, err = m.Intake(); err == nil {
		err = r.load(ctx, what)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// with is a command that works with a namespace, which is open while it runs.
func (f *flags) with(what need, run func(c *cobra.Command, r *remembered, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		r, err := f.open(c.Context(), what)
		if err != nil {
			return err
		}
		defer r.close()
		return run(c, r, args)
	}
}

func (r *remembered) load(ctx context.Context, what need) error {
	last, err := newestOf(ctx, r.st, r.namespace)
	if err != nil {
		return err
	}
	if last == nil {
		return cli.Fail(cli.ExitData, "writ memory namespace list", "there is no namespace %s in this state directory", r.namespace)
	}
	name, _ := audit.ParseDigest(last.Policy) // there is no blob of the zero one
	if r.source, err = r.st.Blob(ctx, name); err != nil {
		return cli.Fail(cli.ExitData, "writ audit verify", "the policy of the memory is missing in the log: %w", err)
	}
	if r.policy, _ = memory.ParsePolicy("", r.source); r.policy == nil && what == toWrite {
		return cli.Fail(cli.ExitData, "writ memory policy adopt --policy "+builtInPolicy, "the policy in force is none of this version")
	}
	r.inForce, r.mode = last.Policy, last.Mode
	return r.keep(ctx, r.policy, r.mode)
}

// keep opens the keeper of the namespace.
func (r *remembered) keep(ctx context.Context, p *memory.Policy, m memory.Mode) (err error) {
	if r.keeper, err = memoryserver.Open(ctx, memoryserver.Options{Store: r.st, Namespace: r.namespace, Policy: p, Mode: m, Intake: r.intake,
		Snapshots: statedir.Snapshots(r.dir)}); err != nil {
		return memoryBroken(err)
	}
	return nil
}

func (r *remembered) close() { r.st.Close() }

// read calls f with a reader of the namespace as it is now.
func (r *remembered) read(ctx context.Context, f func(*memory.Reader) error) error {
	var ferr error
	err := r.keeper.Read(ctx, func(s *memory.State, now time.Time) {
		ferr = f(&memory.Reader{State: s, Principal: r.principal, Now: now, Operator: true})
	})
	if err != nil {
		return memoryBroken(err)
	}
	return ferr
}

func memoryBroken(err error) error {
	return cli.Fail(cli.ExitData, "writ audit verify", "the memory cannot be read: %w", err)
}

// newestOf is the newest event of a namespace, nil if it has none. It names
// the policy and the mode in force.
func newestOf(ctx context.Context, st audit.Store, namespace string) (*memory.Event, error) {
	head, err := st.Head(ctx, memoryserver.LogOf(namespace))
	if err != nil {
		return nil, unreadable(err)
	}
	return eventAt(ctx, st, namespace, head)
}

// eventAt is an event of a namespace, nil if it has none of that number.
func eventAt(ctx context.Context, st audit.Store, namespace string, n uint64) (*memory.Event, error) {
	e, _, err := memoryserver.EventAt(ctx, st, namespace, n)
	if errors.Is(err, memoryserver.ErrReplay) {
		err = memoryBroken(err)
	} else if err != nil {
		err = unreadable(err)
	}
	return e, err
}

// operate has an operator's command decided and written.
func (r *remembered) operate(ctx context.Context, command string, args []byte) (memory.Decision, error) {
	d, err := r.keeper.Operate(ctx, r.principal, command, args)
	if err != nil {
		err = cli.Fail(cli.ExitIO, "writ memory verify", "%w", err)
	}
	return d, err
}

// weighed is a command that a person confirms, on seeing what it would do.
type weighed struct {
	flags
	yes      bool // it needs no asking
	command  string
	question string
	// read looks up what the arguments mean, args are the command's, shown says what
	// it would do, as JSON and in words, and done what came of it.
	read  func(ctx context.Context, r *remembered) error
	args  func(args []string) []byte
	shown func(x *memory.Reader, would *memory.Decision) (v any, text func(io.Writer), err error)
	done  func(c *cobra.Command, r *remembered, d *memory.Decision) error
}

// take gives it the flags that all of them have.
func (x *weighed) take(c *cobra.Command, what string) *cobra.Command {
	c.RunE = x.with(toWrite, x.run)
	c.Flags().BoolVar(&x.dry, "preview", false, "show what would "+what+", and do nothing")
	c.Flags().BoolVar(&x.yes, "yes", false, "do it without asking")
	return x.flags.take(c, ofMemory...)
}

func (x *weighed) run(c *cobra.Command, r *remembered, args []string) (err error) {
	if x.read != nil {
		if err := x.read(c.Context(), r); err != nil {
			return err
		}
	}
	w, payload := c.OutOrStdout(), x.args(args)
	var would memory.Decision
	var v any
	var text func(io.Writer)
	err = r.read(c.Context(), func(now *memory.Reader) error {
		would = memory.Operate(now.State, memory.Context{Policy: r.policy, Namespace: r.namespace, Mode: r.mode, Principal: r.principal, Now: now.Now}, x.command, payload)
		v, text, err = x.shown(now, &would)
		return err
	})
	switch {
	case err != nil:
		return err
	case would.Outcome.Status == writ.Rejected: // it would be, and is not recorded
		return printDecision(w, &would.Outcome, x.json)
	case !x.json:
		text(w)
	case x.dry:
		return cli.PrintJSON(w, v)
	}
	if x.dry {
		return nil
	}
	if err := confirm(c, x.yes, x.question); err != nil {
		return err
	}
	// Decided again, on the newest state: what comes out is what is said.
	d, err := r.operate(c.Context(), x.command, payload)
	switch {
	case err != nil:
		return err
	case d.Outcome.Status == writ.Rejected:
		return printDecision(w, &d.Outcome, x.json)
	}
	return x.done(c, r, &d)
}

// printDecision says what came of a command. A refusal is exit 77.
func printDecision(w io.Writer, o *memory.Outcome, asJSON bool) error {
	rejected := o.Status == writ.Rejected
	switch {
	case asJSON:
		if err := cli.PrintJSON(w, o); err != nil {
			return err
		}
	case rejected:
		printRefusal(w, &o.Outcome, nil)
	default:
		fmt.Fprintf(w, "%s", cmp.Or(o.Decision, "done"))
		for _, e := range o.Effects {
			fmt.Fprintf(w, "  %s", strings.TrimSpace(e.Effect+" "+e.ID))
		}
		fmt.Fprintln(w)
		printTransitions(w, o.Transitions)
	}
	if rejected {
		return cli.Ended(cli.ExitRefused)
	}
	return nil
}

func printTransitions(w io.Writer, ts []memory.Changed) {
	for _, t := range ts {
		fmt.Fprintf(w, "  %s: %s -> %s, because %s\n", t.Proposition, t.Prior, t.Next, ruleWords(t.Rule))
	}
}

// object makes an object of names and values; an empty text or list is left out.
func object(pairs ...any) []byte {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := reflect.ValueOf(pairs[i+1]); v.Kind() == reflect.Bool || v.Len() > 0 {
			out[pairs[i].(string)] = pairs[i+1]
		}
	}
	b, _ := json.Marshal(out) // texts, lists of them and booleans
	return b
}
