package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/policy"
)

func reloadCommand() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "reload", Short: "Have the running gateways read their policy and configuration again", Args: cli.NoArgs,
		Long: "Have the running gateways of the state directory read their policy and configuration again,\n" +
			"as SIGHUP does: they are read whole, then swapped whole. Where something in them is broken the\n" +
			"old ones stay in force, and the faults are shown. A server that is new, or to be started\n" +
			"otherwise, has to answer before anything changes; one that is no more ends after the calls that\n" +
			"run there; the others keep running. Shadow, approvals, evidence_megabytes,\n" +
			"metrics, console, otlp, log and the memory take a restart.",
		RunE: func(c *cobra.Command, _ []string) error {
			doors, err := f.doors()
			if err != nil {
				return err
			}
			all, failed := []reloaded{}, error(nil)
			for _, door := range doors {
				r, err := reloadAt(c.Context(), door, "nothing was changed")
				if failed = err; err != nil {
					break
				}
				all = append(all, r)
			}
			return f.showDone(c, len(all), all, func(w io.Writer) {
				for _, r := range all {
					r.print(w)
				}
			}, failed)
		},
	}, "state", "json")
}

// reloaded is what a gateway says of a reload.
type reloaded struct {
	Policy    string   `json:"policy,omitempty"`  // SHA-256 of the policy in force
	Started   []string `json:"started,omitempty"` // servers
	Restarted []string `json:"restarted,omitempty"`
	Ended     []string `json:"ended,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Error     string   `json:"error,omitempty"` // why the old ones are
	Try       string   `json:"try,omitempty"`
}

func (r *reloaded) print(w io.Writer) {
	fmt.Fprintf(w, "in force: policy sha256:%s\n", cli.OneLine(r.Policy, 64))
	for _, s := range []struct {
		what  string
		names []string
	}{{"started", r.Started}, {"restarted", r.Restarted}, {"ended", r.Ended}} {
		when(w, len(s.names) > 0, "%s: %s\n", s.what, cli.OneLine(strings.Join(s.names, ", "), 1000))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "%s\n", cli.Printable(warning))
	}
}

// reloadAt has a gateway reload; so far is what holds as long as it does not.
func reloadAt(ctx context.Context, door *http.Client, soFar string) (r reloaded, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := exchange(ctx, door, "POST /reload", "", nil, 1<<20, &r); err != nil {
		return r, err
	}
	if r.Error != "" {
		return r, cli.Fail(cli.ExitConfig, cli.OneLine(r.Try, 400), "%s: %s", soFar, cli.Printable(r.Error))
	}
	return r, nil
}

// reload reads a gateway's files again and puts them in force, all or none.
func (o *files) reload(ctx context.Context, g *gateway.Gateway) (out reloaded, err error) {
	o.loading <- struct{}{}
	defer func() { <-o.loading }()
	next, err := o.again()
	if err != nil {
		return out, err
	}
	var fixed []string
	for _, f := range []struct {
		name    string
		is, was any
	}{{"shadow", next.shadow, o.shadow}, {"approvals", next.cfg.Approvals, o.cfg.Approvals}, {"evidence_megabytes", next.cfg.Caps(), o.cfg.Caps()}, {"memory", next.memory, o.memory}, {"host", next.host, o.host},
		{"metrics", next.cfg.Metrics, o.cfg.Metrics}, {"console", next.cfg.Console.Origin, o.cfg.Console.Origin}, {"otlp", next.cfg.OTLP, o.cfg.OTLP}, {"log", next.cfg.Log, o.cfg.Log},
		{"retention", next.retain, o.retain}, {"witnesses", next.cfg.Witnesses, o.cfg.Witnesses}} {
		if !strictyaml.Same(f.is, f.was) {
			fixed = append(fixed, f.name)
		}
	}
	if fixed != nil {
		return out, cli.Fail(cli.ExitConfig, "restart the gateway", "%s changed, which takes a restart", strings.Join(fixed, ", "))
	}
	next.ownPaths = append(next.ownPaths, o.addresses...)
	did, err := g.Reload(ctx, next.setup())
	if err != nil {
		return out, err
	}
	o.now = next
	out.Policy, out.Warnings = fmt.Sprintf("%x", next.policy.Digest), next.warnings()
	out.Started, out.Restarted, out.Ended = did.Started, did.Restarted, did.Ended
	return out, nil
}

// policyFile is where the policy stands, "" for the built-in one's.
func (o *files) policyFile() string {
	if abs, err := filepath.Abs(o.file); o.file != "" && err == nil {
		return abs
	}
	return o.file
}

// unlike is how a policy's file, with what was kept beside it, is otherwise than what is in force.
type unlike struct {
	says  string         // "" where it is the same
	lines []cli.DiffLine // of what is in force, and of the file
	disk  *policy.Policy // what stands there, nil where that is no policy
}

func (o *files) differs() (u unlike) {
	if o.file == "" {
		return u
	}
	disk, err := config.LoadPolicy(o.file)
	if err != nil {
		u.says = "the policy's file cannot be put in force as it stands, and what was in force before still counts: writ check --policy " + private.Quote(o.policyFile()) + " says why"
		return u
	}
	if u.disk = disk; disk.Digest != o.policy.Digest {
		u.lines = cli.Diff(o.policy.Source, disk.Source)
		more, less := cli.Changed(u.lines)
		u.says = fmt.Sprintf("the policy's file is not what is in force: it has %s more and %s less, which writ reload puts in force",
			cli.Number(more, "line", "lines"), cli.Number(less, "line", "lines"))
	}
	return u
}

// setup is what of the files a gateway that runs can be given.
func (o *files) setup() gateway.Setup {
	return gateway.Setup{Policy: o.policy, Screen: o.screen, Servers: o.servers, OwnPaths: o.ownPaths}
}

// grow has lines grow beside the policy in force, and puts them in force, with what another
// gateway has kept there meanwhile: there is one file for all that a client starts. What
// else changed in it since it was read comes in by a reload alone.
func (o *files) grow(ctx context.Context, g *gateway.Gateway, lines []policy.Grown, record func() error) error {
	o.loading <- struct{}{}
	defer func() { <-o.loading }()
	done, err := config.HoldGrown(ctx, o.now.file)
	if err != nil {
		return err
	}
	defer done()
	grown, err := config.Grow(o.now.file, lines, 0)
	if err != nil {
		return err
	}
	if was := grown.Was; was.Digest != o.now.policy.Digest && !was.Grew(o.now.policy) {
		return errors.New("the policy's file is not what is in force any more: writ reload comes first")
	}
	if err := record(); err != nil {
		return err
	}
	if err := replaceFile(config.GrownFile(o.now.file), grown.Text); err != nil {
		return errors.New("the file cannot be written")
	}
	next := *o.now
	next.policy = grown.Now
	if _, err := g.Reload(ctx, next.setup()); err != nil {
		return errors.New("it stands beside the policy, and is in force after writ reload")
	}
	o.now = &next
	return nil
}

// hearReload reloads at each SIGHUP, until the context ends.
func (o *files) hearReload(ctx context.Context, g *gateway.Gateway, stderr io.Writer) {
	if len(reloadSignals) == 0 {
		return // Notify of none is of all
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, reloadSignals...)
	go func() {
		defer signal.Stop(hup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				if did, err := o.reload(ctx, g); err != nil {
					fmt.Fprintf(stderr, "writ: nothing was changed: %s\n", cli.Printable(err.Error()))
				} else {
					fmt.Fprint(stderr, "writ: ")
					did.print(stderr)
				}
			}
		}
	}()
}

// reloadHandler is POST /reload of the local door, for whoever may answer there.
func (o *files) reloadHandler(g *gateway.Gateway, apart ...int) http.HandlerFunc {
	return replies(func(_ http.ResponseWriter, r *http.Request) (int, any) {
		var out reloaded
		status := http.StatusOK
		err := localdoor.Apart(r.Context(), apart...)
		if err != nil {
			err = cli.Fail(cli.ExitRefused, cmp.Or(ownWindow(err.Error()), "a terminal that was open before, or a new login"), "%w", err)
		} else {
			out, err = o.reload(r.Context(), g)
		}
		if err != nil {
			out.Error, out.Try, status = err.Error(), "writ check --live --config FILE", http.StatusConflict
			if e, ok := errors.AsType[*cli.Exit](err); ok {
				out.Try = e.Hint
			}
			if o.config != "" {
				out.Try = strings.ReplaceAll(out.Try, "--config FILE", "--config "+private.Quote(o.config))
			}
		}
		return status, out
	})
}

func grownCommand() *cobra.Command {
	c := grownList()
	c.Use, c.Short = "grown", "List what was allowed from now on, and take it back"
	c.Long = "What a person allowed from now on stands in a file of its own beside the policy, a line each, and\n" +
		"is read behind it. A gateway of the state directory takes back at once what remove takes back, if\n" +
		"its file was what is in force, and else at the next writ reload. Where neither\n" +
		"--config nor --policy says which policy is meant, it is those of the clients that are connected and of\n" +
		"the gateways that run, each with its own numbers."
	c.AddCommand(grownList(), grownRemove())
	return c
}

func grownList() *cobra.Command {
	var f flags
	c := f.take(&cobra.Command{
		Use: "list", Short: "List the lines, with their numbers", Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := f.grown(c.Context())
			if err != nil {
				return err
			}
			type line struct {
				policy.Grown
				Config string `json:"config,omitempty"`
			}
			lines := []line{}
			for _, p := range all {
				for _, g := range p.Grown {
					lines = append(lines, line{g, p.config})
				}
			}
			return f.show(c, lines, func(w io.Writer) {
				for _, p := range all {
					when(w, len(all) > 1 && len(p.Grown) > 0, "%s:\n", cli.Printable(p.config))
					for i, g := range p.Grown {
						theirs(w, fmt.Sprintf("%4d  ", i+1), fmt.Sprintf("%s  (%s, %s)", approval.Sentence(g), cli.OneLine(g.By, 60), cli.OneLine(g.At, 40)), 0)
					}
				}
			})
		},
	}, "config", "state", "json")
	c.Flags().StringVar(&f.policy, "policy", "", "policy `FILE`")
	return c
}

func grownRemove() *cobra.Command {
	var f flags
	c := f.take(&cobra.Command{
		Use: "remove NUMBER", Short: "Take a line back", SuggestFor: []string{"rm", "delete"},
		Args: needs("writ grown list", "the number of a line", func(args []string) bool { return len(args) == 1 }),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 {
				return cli.Fail(cli.ExitUsage, "writ grown list", "the number of a line")
			}
			all, err := f.grown(c.Context())
			if err != nil {
				return err
			}
			all = slices.DeleteFunc(all, func(p grownPolicy) bool { return len(p.Grown) < n })
			if len(all) == 0 {
				return cli.Fail(cli.ExitData, "writ grown list", "no line has that number")
			}
			p, err := meant(all)
			if err != nil {
				return err
			}
			gateways := f.having(c.Context(), p.file)
			err = regrow(c.Context(), p.file, nil, n, func(was *policy.Policy) error {
				if !was.Grown[n-1].Same(p.Grown[n-1]) {
					return cli.Fail(cli.ExitData, "writ grown list", "another line has that number by now")
				}
				return nil
			})
			if err != nil {
				return err
			}
			err = takes(c.Context(), gateways)
			return cmp.Or(f.show(c, removed{p.Grown[n-1]}, func(w io.Writer) {
				theirs(w, map[bool]string{true: "taken back: ", false: "taken back in the file: "}[err == nil], approval.Sentence(p.Grown[n-1]), 0)
				when(w, len(gateways) == 0, "it counts at a gateway of another state directory until writ reload --state DIR\n")
			}), err)
		},
	}, "config", "state", "json")
	c.Flags().StringVar(&f.policy, "policy", "", "policy `FILE`")
	return c
}

// A policyHolder is a gateway that runs by a policy.
type policyHolder struct {
	door    *http.Client
	state   string // as --state has it
	differs bool   // its file is not what is in force
}

// having are the gateways that run by a policy's file, or do not say by which: of the state
// directory, and of those that the clients were connected to whose policy it is.
func (f *flags) having(ctx context.Context, file string) (out []policyHolder) {
	abs, _ := filepath.Abs(file)
	found := map[string]bool{}
	for _, state := range append([]string{f.state}, statesBy(abs)...) {
		dir, err := existingState(state)
		if err != nil || found[dir] {
			continue
		}
		found[dir] = true
		at := flags{state: state}
		_, doors, _ := at.reach(false)
		for _, door := range doors {
			if g, err := statusAt(ctx, door); err != nil || g.Policy == abs {
				out = append(out, policyHolder{door, state, err != nil || g.Differs != ""})
			}
		}
	}
	return out
}

// statesBy are the state directories that clients were connected to whose policy that file is.
func statesBy(policy string) (states []string) {
	places, _ := foundPlaces()
	for _, p := range places {
		rec, err := p.record()
		if err != nil || rec == nil || p.policy() != policy {
			continue
		}
		for _, u := range rec.Undo {
			if i := slices.Index(u.Ours, "--state"); i >= 0 && i+1 < len(u.Ours) {
				states = append(states, u.Ours[i+1])
			}
		}
	}
	return states
}

// takes has gateways put in force what was taken from their policy's file. Where more was
// changed in one than that, nobody said that it is to be in force.
func takes(ctx context.Context, all []policyHolder) error {
	const counts = "it still counts at a gateway that runs"
	for _, g := range all {
		reload := "writ reload"
		if g.state != "" {
			reload += " --state " + private.Quote(g.state)
		}
		if g.differs {
			return cli.Fail(cli.ExitConfig, reload, counts+", whose policy was changed beside it and not put in force")
		}
		if _, err := reloadAt(ctx, g.door, counts); err != nil {
			return cli.Fail(cli.ExitConfig, reload, "%w", err)
		}
	}
	return nil
}

// A grownPolicy is a policy, its file and the configuration that has it, "" for none.
type grownPolicy struct {
	*policy.Policy
	file, config string
}

// grown reads the policies that are meant: where nobody said which, those of the
// configurations that are in use, at least one.
func (f *flags) grown(ctx context.Context) (all []grownPolicy, err error) {
	if f.policy != "" {
		p, err := config.LoadPolicy(f.policy)
		if err != nil {
			return nil, config.Invalid(err)
		}
		return []grownPolicy{{p, f.policy, ""}}, nil
	}
	used := []string{f.config}
	if f.config == "" {
		if used, err = f.inUse(ctx); err != nil {
			return nil, err
		} else if len(used) == 0 {
			return nil, cli.Fail(cli.ExitUsage, "the same command with --config writ.yaml", "no client is connected and no gateway runs by a configuration: --config or --policy is needed")
		}
	}
	for _, file := range used {
		c, p, err := config.LoadOnly(file, "")
		if err != nil {
			return nil, config.Invalid(err)
		}
		if !slices.ContainsFunc(all, func(o grownPolicy) bool { return o.file == c.Policy }) {
			all = append(all, grownPolicy{p, c.Policy, file})
		}
	}
	return all, nil
}

// meant is the one of policies that is; of several nobody said which.
func meant(all []grownPolicy) (grownPolicy, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	return grownPolicy{}, cli.Fail(cli.ExitUsage, "the same command with --config "+private.Quote(all[0].config), "several configurations are in use, and --config says which: %s",
		joined(all, ", ", func(p grownPolicy) string { return p.config }))
}

// inUse are the configuration files of the clients that are connected, and of the gateways
// that run on the state directory.
func (f *flags) inUse(ctx context.Context) (used []string, err error) {
	places, err := foundPlaces()
	if err != nil {
		return nil, err
	}
	add := func(file string) {
		if file != "" && !slices.Contains(used, file) {
			used = append(used, file)
		}
	}
	for _, p := range places {
		add(p.status().Config)
	}
	dir, err := stateThere(f.state)
	if err != nil {
		return nil, err
	}
	if dir != "" {
		running, _ := f.running(ctx)
		for _, g := range running {
			add(g.Config)
		}
	}
	return used, nil
}

// regrow gives a policy that no gateway of this process has in force lines more, or takes
// the one of a number from it (from 1; 0 for none). look is shown what it was, and may
// refuse that it changes.
func regrow(ctx context.Context, file string, more []policy.Grown, without int, look func(was *policy.Policy) error) error {
	done, err := config.HoldGrown(ctx, file)
	if err != nil {
		return cli.Fail(cli.ExitIO, "", "%w", err)
	}
	defer done()
	grown, err := config.Grow(file, more, without)
	if err != nil {
		return config.Invalid(err)
	}
	if err := look(grown.Was); err != nil {
		return err
	}
	if err := replaceFile(config.GrownFile(file), grown.Text); err != nil {
		return cli.Fail(cli.ExitIO, "", "the file cannot be written: %w", err)
	}
	return nil
}
