package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
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
	return groupOf("memory", "Read, rule on, erase and check what is remembered",
		"What an operator can do with the governed memory and no agent can. The commands work on\n"+
			"the log of the state directory, whether or not a gateway is running there.",
		"a command of the memory is needed",
		memorySearch(), memoryGet(), memoryExplain(), memoryTimeline(), memoryPending(),
		memorySources(), memoryPredicates(), group("namespace", "Begin and list namespaces", "", namespaceList(), namespaceNew()),
		group("policy", "Show, check and adopt the policy of a namespace", "", policyShow(), policyCheck(), policyAdopt()),
		memoryResolve(), merging("merge FROM INTO", "Join one entity into another; both ids stay", "two entities' ids", memory.CommandMerge),
		merging("unmerge FROM INTO", "Undo a merge", "the two entities' ids", memory.CommandUnmerge),
		group("test", "Cancel a test nobody will run", "", testCancel()), memoryErase(),
		group("receipt", "Check the receipt of an erasure, or make it again", "", receiptVerify(), receiptIssue()),
		memoryDistrust(), memoryVerify(), memoryExport(), memoryImport(), memoryServe())
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

// memoryReport is what `writ memory verify --json` prints.
type memoryReport struct {
	OK        bool   `json:"ok"`
	Namespace string `json:"namespace"`
	// Events were read from the log: Rechecked of them decided again with the
	// same answer, Unchecked not, because what was proposed was erased or never
	// kept.
	Events    uint64      `json:"events"`
	Rechecked int         `json:"rechecked"`
	Unchecked int         `json:"unchecked"`
	Policy    string      `json:"policy"`
	Mode      memory.Mode `json:"mode"`
	State     string      `json:"state"` // SHA-256 of the state's encoding
	// Unfinished are erasures whose texts are still in the log.
	Unfinished []string `json:"unfinished_erasures"`
	Problem    string   `json:"problem,omitempty"`
}

func memoryVerify() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{Use: "verify", Short: "Decide the namespace's whole history again", Args: cli.NoArgs,
		Long: "Fold the namespace from its log and decide every event again under the policy it names.\n" +
			"`writ audit verify` checks the log itself.",
		RunE: f.with(toFold, func(c *cobra.Command, r *remembered, _ []string) error {
			rep, err := r.verify(c.Context())
			if err != nil {
				return err
			}
			if err := f.show(c, rep, rep.print); err != nil {
				return err
			}
			switch {
			case rep.Problem != "":
				return cli.Fail(cli.ExitData, "writ audit verify; keep a copy of the state directory", "the memory does not verify: %s", rep.Problem)
			case len(rep.Unfinished) > 0:
				return cli.Fail(cli.ExitData, "writ memory receipt issue "+rep.Unfinished[0], "an erasure was cut off")
			}
			return nil
		})}, ofMemory...)
}

func (rep *memoryReport) print(w io.Writer) {
	printIDs(w, "erasures whose texts are still in the log:", rep.Unfinished)
	if !rep.OK {
		return
	}
	fmt.Fprintf(w, "ok: %d events of namespace %s decided again, same states", rep.Rechecked, rep.Namespace)
	when(w, rep.Unchecked > 0, "; %d not (erased or never kept)", rep.Unchecked)
	fmt.Fprintf(w, "\nstate %s\n", rep.State)
}

func (r *remembered) verify(ctx context.Context) (*memoryReport, error) {
	rep := &memoryReport{Namespace: r.namespace, Unfinished: []string{}}
	fold := memoryserver.NewFold(r.st)
	defer func() {
		for _, n := range fold.Unfinished {
			rep.Unfinished = append(rep.Unfinished, fmt.Sprintf("dec_%d", n))
		}
		rep.OK = rep.OK && len(rep.Unfinished) == 0
	}()
	for it, err := range r.st.Read(ctx, memoryserver.LogOf(r.namespace), 1) {
		if err != nil {
			return nil, unreadable(err)
		}
		if err := fold.Step(ctx, &it); err != nil {
			rep.Problem = err.Error()
			return rep, nil
		}
	}
	if p := fold.End(); p != nil {
		rep.Problem = p.Error()
		return rep, nil
	}
	s := fold.State()
	if s.Head() == 0 {
		return nil, cli.Fail(cli.ExitData, "writ memory namespace list", "there is no namespace %s in this state directory", r.namespace)
	}
	rep.Events, rep.Rechecked, rep.Unchecked = s.Head(), fold.Rechecked, fold.Unchecked
	rep.Policy, rep.Mode, rep.State = s.PolicyHash(), s.Mode(), s.Digest()
	rep.OK = true
	return rep, nil
}

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
