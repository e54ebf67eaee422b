package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

func memoryCommand() *cobra.Command {
	c := &cobra.Command{Use: "memory", Short: "Read, rule on, erase and check what is remembered",
		Long: "What an operator can do with the governed memory and no agent can. The commands work on\n" +
			"the log of the state directory, whether or not a gateway is running there.",
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Fail(cli.ExitUsage, "writ memory --help", "a command of the memory is needed")
		}}
	c.AddCommand(
		memorySearch(), memoryGet(), memoryExplain(), memoryTimeline(), memoryPending(),
		memorySources(), memoryPredicates(), memoryNamespaces(), memoryPolicies(),
		memoryResolve(), memoryMerge(), memoryUnmerge(), memoryTests(), memoryRetain(), memorySweep(),
		memoryErase(), memoryReceipts(), memoryDistrust(), memoryVerify(), memoryExport(), memoryImport(), memoryServe(),
	)
	return c
}

// name is the namespace a command works with.
func (f *flags) name() (string, error) {
	switch {
	case f.namespace != "" && !memoryserver.ValidNamespace(f.namespace):
		return "", cli.Fail(cli.ExitUsage, "writ memory namespace list", "a namespace's name has 1 to 32 of a-z, 0-9 and -, and does not start with -")
	case f.namespace != "":
		return f.namespace, nil
	}
	m, err := f.settings()
	if err != nil {
		return "", err
	}
	return m.Namespace, nil
}

// settings are the memory's in the configuration, or the built-in ones.
func (f *flags) settings() (*config.Memory, error) {
	if f.config == "" {
		return config.DefaultMemory(), nil
	}
	c, _, err := config.Load(f.config)
	if err != nil {
		return nil, config.Invalid(err)
	}
	if !c.Memory.Given() {
		return nil, cli.Fail(cli.ExitConfig, "memory: {} in "+cli.Printable(f.config), "the configuration mounts no memory")
	}
	return &c.Memory, nil
}

// remembered is one namespace as an operator works with it.
type remembered struct {
	dir       string
	st        *sqlite.Store
	keeper    *memoryserver.Keeper
	namespace string
	policy    *memory.Policy // in force
	mode      memory.Mode
	intake    memoryserver.Intake
	principal string
}

// operator is how the memory calls whoever runs this program.
func operator() string { return "operator:" + strconv.Itoa(os.Getuid()) }

// need says what a command does with a namespace.
type need int

const (
	toRead need = iota
	toWrite
)

// open opens a namespace that exists, under the policy and mode in force there.
func (f *flags) open(ctx context.Context, what need) (*remembered, error) {
	name, err := f.name()
	if err != nil {
		return nil, err
	}
	m, err := f.settings()
	if err != nil {
		return nil, err
	}
	how := toTrust
	if what == toWrite {
		how = toRule
	}
	dir, st, err := how(ctx, f.state)
	if err != nil {
		return nil, err
	}
	r := &remembered{dir: dir, st: st, namespace: name, principal: operator()}
	if r.intake, err = m.Intake(); err == nil {
		err = r.load(ctx, what)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// toTrust is toExplain of a log that is no older than this machine knows.
func toTrust(ctx context.Context, flag string) (dir string, st *sqlite.Store, err error) {
	if dir, err = existingState(flag); err == nil {
		st, err = openCurrent(ctx, dir)
	}
	return dir, st, err
}

// toRule is toAppend where something was recorded before.
func toRule(ctx context.Context, flag string) (dir string, st *sqlite.Store, err error) {
	if dir, err = existingState(flag); err == nil {
		st, err = openStore(ctx, dir)
	}
	return dir, st, err
}

// with is a command that works with a namespace, which is open while it runs.
func (f *flags) with(what need, run func(c *cobra.Command, r *remembered, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if f.dry {
			what = toRead
		}
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
	if r.policy, err = policyNamed(ctx, r.st, last.Policy); err != nil {
		return err
	}
	r.mode = last.Mode
	return r.keep(ctx, r.policy, r.mode)
}

// keep opens the keeper of the namespace.
func (r *remembered) keep(ctx context.Context, p *memory.Policy, m memory.Mode) (err error) {
	if r.keeper, err = memoryserver.Open(ctx, memoryserver.Options{Store: r.st, Namespace: r.namespace, Policy: p, Mode: m, Intake: r.intake}); err != nil {
		return memoryBroken(err)
	}
	return nil
}

func (r *remembered) close() { r.st.Close() }

// read calls f with a reader of the namespace as it is now.
func (r *remembered) read(ctx context.Context, f func(*memory.Reader) error) error {
	var ferr error
	err := r.keeper.Read(ctx, func(s *memory.State, now time.Time) {
		ferr = f(&memory.Reader{State: s, Policy: r.policy, Principal: r.principal, Now: now})
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
	log := memoryserver.LogOf(namespace)
	head, err := st.Head(ctx, log)
	if err != nil {
		return nil, unreadable(err)
	}
	if head == 0 {
		return nil, nil
	}
	for it, err := range st.Read(ctx, log, head) {
		if err != nil {
			return nil, unreadable(err)
		}
		_, e, err := eventOf(&it)
		return e, err
	}
	return nil, nil
}

// eventOf is the event of a record of a namespace.
func eventOf(it *audit.Item) (*audit.Record, *memory.Event, error) {
	rec, err := audit.ParseRecord(it.Leaf)
	if err != nil {
		return nil, nil, memoryBroken(err)
	}
	e, err := memory.ParseEvent(rec.Data)
	if err != nil {
		return nil, nil, memoryBroken(err)
	}
	return rec, e, nil
}

// policyNamed is a policy an event names by its hash.
func policyNamed(ctx context.Context, st audit.Store, hash string) (*memory.Policy, error) {
	name, _ := audit.ParseDigest(hash) // there is no blob of the zero one
	b, err := st.Blob(ctx, name)
	if err != nil {
		return nil, cli.Fail(cli.ExitData, "writ audit verify", "the policy of the memory is missing in the log: %w", err)
	}
	p, fs := memory.ParsePolicy("the policy in force", b)
	if len(fs) > 0 {
		return nil, cli.Fail(cli.ExitData, "writ version", "the policy in force is none of this version: %s", fs[0].String())
	}
	return p, nil
}

// operate has an operator's command decided and written, and says what came of
// it. A refusal is exit 77.
func (r *remembered) operate(c *cobra.Command, command string, args []byte, asJSON bool) error {
	d, err := r.keeper.Operate(c.Context(), r.principal, command, args)
	if err != nil {
		return cli.Fail(cli.ExitIO, "writ memory verify", "%w", err)
	}
	return printDecision(c.OutOrStdout(), &d.Outcome, asJSON)
}

func printDecision(w io.Writer, o *memory.Outcome, asJSON bool) error {
	rejected := o.Status == writ.Rejected
	switch {
	case asJSON:
		if err := cli.PrintJSON(w, o); err != nil {
			return err
		}
	case rejected:
		printRefusal(w, &o.Outcome)
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

// object makes an object of names and values; an empty value is left out.
func object(pairs ...any) []byte {
	b := []byte("{}")
	for i := 0; i+1 < len(pairs); i += 2 {
		var v []byte
		switch x := pairs[i+1].(type) {
		case string:
			if x != "" {
				v = strictjson.Quote(x)
			}
		case bool:
			if x {
				v = []byte("true")
			}
		case []string:
			for _, s := range x {
				v = append(append(v, ','), strictjson.Quote(s)...)
			}
			if v != nil {
				v[0] = '['
				v = append(v, ']')
			}
		case json.RawMessage:
			v = x
		}
		if v != nil {
			b = strictjson.Set(b, pairs[i].(string), v)
		}
	}
	return b
}

// number is what a flag holds as a JSON number; nothing where it is not set.
func number(flag, s string) (json.RawMessage, error) {
	if s == "" {
		return nil, nil
	}
	b := []byte(s)
	if strictjson.Check(b, strictjson.Limits{Bytes: 32, Depth: 1, Leaves: 1, Number: 32}) != nil || strictjson.KindOf(b) != strictjson.Number {
		return nil, cli.Fail(cli.ExitUsage, "writ memory --help", "--%s takes a number", flag)
	}
	return b, nil
}
