package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/eval/endtoend"
	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/policy"
)

const (
	// askOut is where results go that are not kept in the repository.
	askOut = "eval/results/ask"

	recordServerName = "record-server"

	// principal is whose sessions these are; they end with the run.
	principal = "eval"
)

type askOptions struct {
	config, cases, out string
	planners           []string
	json               bool
}

func askCommand() *cobra.Command {
	var o askOptions
	c := &cobra.Command{
		Use: "ask", Short: "Run requests through Writ and through a naive agent, and count the harm each does",
		Long: "Run each case of a file through `writ ask` and through a deliberately naive agent, which takes\n" +
			"any JSON it finds for a plan and has no gates. Both get the same words of the same planner, and\n" +
			"servers started afresh behind a recorder; what is counted is what reached a server. The\n" +
			"planners are rules, a scripted adversary, and the endpoint of the configuration if it has one.\n" +
			"Three files are written: TIME_metrics.json, TIME_runs.jsonl and TIME_table.md.\n\n" +
			"Exit codes: 0 Writ did no harm and every case came to what it expects; 65 it did, or one\n" +
			"did not; 74 I/O; 78 the configuration or the case file.",
		Example: "  writ-eval ask\n" +
			"  writ-eval ask --cases my-cases.yaml --config writ.yaml --out results",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	c.Flags().StringVar(&o.config, "config", "", "configuration `FILE` (default: the built-in example server)")
	c.Flags().StringVar(&o.cases, "cases", "", "take the cases from `FILE` (default: the built-in ones)")
	c.Flags().StringVar(&o.out, "out", askOut, "write the results into `DIR`")
	c.Flags().StringSliceVar(&o.planners, "planner", nil, "planners `KIND,…` (default: rules, adversary and the configuration's endpoint)")
	c.Flags().BoolVar(&o.json, "json", false, "print the metrics as JSON")
	return c
}

func (o *askOptions) run(c *cobra.Command) error {
	file, err := readCases(o.cases)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "writ-eval-")
	if err == nil {
		defer os.RemoveAll(scratch)
		scratch, err = filepath.Abs(scratch) // a server may have a directory of its own
	}
	if err != nil {
		return cli.Fail(cli.ExitIO, "TMPDIR=DIR writ-eval ask", "no temporary directory can be made")
	}
	options, err := o.options(scratch)
	if err != nil {
		return err
	}
	started := time.Now().UTC()
	options.File, options.Scratch, options.Time = file, scratch, started
	names, err := o.names(started)
	if err != nil {
		return err
	}
	tell, end := showProgress(c, "starting…")
	options.Progress = func(done, total int) { tell(fmt.Sprintf("%d of %d runs", done, total)) }
	r, err := endtoend.Run(c.Context(), *options)
	end()
	if c.Context().Err() != nil {
		return cli.Fail(cli.ExitIO, "writ-eval ask", "ended before it was done: no result was written")
	} else if err != nil {
		return cli.Fail(cli.ExitIO, "writ check", "the evaluation could not be made: %w", err)
	}
	metrics, err := r.Metrics.JSON()
	runs, err2 := r.JSONL()
	if err := errors.Join(err, err2); err != nil {
		return cli.Fail(cli.ExitIO, "", "cannot encode: %w", err)
	}
	table := r.Metrics.Table()
	for i, b := range [][]byte{metrics, runs, table} {
		if err := private.WriteOnce(names[i], b, 0o644); err != nil {
			return cli.Fail(cli.ExitIO, "writ-eval ask --out DIR", "the results cannot be written: %w", err)
		}
		table = append(table, cli.Printable(names[i])+"\n"...)
	}
	if o.json {
		table = metrics
	}
	if _, err := c.OutOrStdout().Write(table); err != nil {
		return cli.Fail(cli.ExitIO, "", "cannot print: %w", err)
	}
	if !r.Metrics.Passed {
		return cli.Fail(cli.ExitData, "grep '\"agent\":\"writ\".*\"met\":false' "+cli.Printable(names[1]), "%s", askFailure(&r.Metrics))
	}
	return nil
}

// askFailure says what did not pass.
func askFailure(m *endtoend.Metrics) string {
	harm := 0
	for i := range m.Columns {
		if m.Columns[i].Agent == endtoend.AgentWrit {
			harm += m.Columns[i].Harm()
		}
	}
	return fmt.Sprintf("Writ did harm %d times, and %d of its runs did not come to what was expected", harm, len(m.Unmet))
}

// names are the three files of an evaluation, none of which is there.
func (o *askOptions) names(at time.Time) ([]string, error) {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return nil, cli.Fail(cli.ExitIO, "writ-eval ask --out DIR", "the directory for the results cannot be made")
	}
	stamp := at.Format("20060102T150405Z")
	names := []string{stamp + "_metrics.json", stamp + "_runs.jsonl", stamp + "_table.md"}
	for i := range names {
		names[i] = filepath.Join(o.out, names[i])
		if _, err := os.Lstat(names[i]); err == nil {
			return nil, cli.Fail(cli.ExitIO, "writ-eval ask --out DIR", "there are results of this second already, and none is overwritten")
		}
	}
	return names, nil
}

// readCases reads a file of cases. It holds no power over anything, so unlike
// an operator's file others may be able to write it.
func readCases(name string) (*endtoend.File, error) {
	const hint = "writ-eval ask --cases FILE"
	b, err := endtoend.BuiltIn, error(nil)
	if name == "" {
		name = "built-in cases"
	} else if b, err = os.ReadFile(name); err != nil {
		return nil, cli.Fail(cli.ExitConfig, hint, "%s is no file of cases that can be read", cli.Printable(name))
	}
	file, fs := endtoend.ParseFile(name, b)
	if len(fs) > 0 {
		return nil, &cli.Exit{Code: cli.ExitConfig, Err: config.Faults(fs), Hint: hint}
	}
	return file, nil
}

// behind is what of a configuration both agents stand before.
type behind struct {
	servers []upstream.Config
	policy  *policy.Policy
	shadow  bool
	own     []string // paths no tool may name (R34)
	ask     config.Ask
	example bool
}

// read reads the configuration, without starting anything. Of the built-in
// example server each run gets its own, which the recorder itself is.
func (o *askOptions) read(scratch string) (*behind, error) {
	b := &behind{own: statedir.Own(scratch)}
	if o.config == "" {
		p, fs := policy.Parse("built-in policy", example.Policy())
		if len(fs) > 0 {
			return nil, config.Invalid(config.Faults(fs))
		}
		b.policy, b.example = p, true
		b.servers = []upstream.Config{{Name: example.Name, Command: []string{example.Name}, Era: upstream.Modern}}
		return b, nil
	}
	cfg, p, err := config.Load(o.config)
	if err != nil {
		return nil, config.Invalid(err)
	}
	b.policy, b.shadow, b.ask = p, cfg.Shadow, cfg.Ask
	for i := range cfg.Servers {
		b.servers = append(b.servers, cfg.Servers[i].Upstream())
	}
	for _, file := range append(cfg.Files(), o.config) {
		b.own = append(b.own, statedir.Named(file)...)
	}
	return b, nil
}

// options makes of the configuration what both agents run in.
func (o *askOptions) options(scratch string) (*endtoend.Options, error) {
	b, err := o.read(scratch)
	if err != nil {
		return nil, err
	}
	input, err := b.ask.InputPolicy()
	if err != nil {
		return nil, err
	}
	w := &endtoend.World{Servers: b.servers, Screen: input, Open: b.open, Allow: b.allow}
	for _, s := range b.servers {
		if len(s.Command) == 0 {
			return nil, cli.Fail(cli.ExitConfig, "servers: [{name: "+s.Name+", command: [...]}]", "server %s is behind a URL: each run needs servers started afresh, by a command", s.Name)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, cli.Fail(cli.ExitIO, "", "no path of this program, which is the recorder too")
	}
	w.Recorded = func(s upstream.Config, file string) upstream.Config {
		command := []string{self, recordServerName, file, s.Name}
		if !b.example {
			command = append(command, s.Command...)
		}
		s.Command = command
		return s
	}
	out := &endtoend.Options{World: w}
	return out, o.choose(&b.ask, out)
}

// choose makes the planners.
func (o *askOptions) choose(cfg *config.Ask, out *endtoend.Options) error {
	routing := &config.Ask{}
	if cfg.Planner.Kind == "rules" {
		routing = cfg
	}
	rules, quoting, err := routing.NewPlanner()
	if err != nil {
		return err
	}
	out.Rules = rules
	remote := cfg.Planner.Kind == "openai" || cfg.Planner.Kind == "anthropic"
	kinds := o.planners
	if len(kinds) == 0 {
		kinds = []string{"rules", endtoend.Adversary}
		if remote {
			kinds = append(kinds, cfg.Planner.Kind)
		}
	}
	for i, kind := range kinds {
		p := endtoend.Planner{Name: kind}
		switch {
		case slices.Contains(kinds[:i], kind):
			return cli.Fail(cli.ExitUsage, "writ-eval ask --planner rules,adversary", "a planner is named twice")
		case kind == "rules":
			p.Planner, p.Summariser = rules, quoting
		case kind == endtoend.Adversary:
		case remote && kind == cfg.Planner.Kind:
			if p.Planner, p.Summariser, err = cfg.NewPlanner(); err != nil {
				return err
			}
		case kind == "openai" || kind == "anthropic":
			return cli.Fail(cli.ExitConfig, "ask: {planner: {kind: "+kind+", url: …, model: …}} in writ.yaml", "a planner behind an endpoint stands in the configuration")
		default:
			return cli.Fail(cli.ExitUsage, "writ-eval ask --planner rules,adversary", "a planner is one of rules, adversary, openai, anthropic")
		}
		out.Planners = append(out.Planners, p)
	}
	return nil
}

// allow is the operator's list of tools, of which a case may leave some.
func (b *behind) allow(only []string) []claim.Allowed {
	return slices.DeleteFunc(ask.Allow(b.policy, b.ask.Allow), func(a claim.Allowed) bool {
		return only != nil && !slices.Contains(only, a.Server+"/"+a.Name)
	})
}

// open starts a gateway over servers that stand for those of the
// configuration, over a log that ends with it, and opens a session.
func (b *behind) open(ctx context.Context, servers []upstream.Config) (ask.Door, func() error, error) {
	g, err := gateway.New(gateway.Options{
		Store: mapstore.New(nil), Policy: b.policy, Servers: servers, Shadow: b.shadow, OwnPaths: b.own,
		Version: "eval",
	})
	if err != nil {
		return nil, nil, err
	}
	if err := g.Start(ctx); err != nil {
		return nil, nil, errors.Join(err, g.Close())
	}
	_, s, err := g.OpenSession(ctx, principal, downstream.CarrierEndpoint)
	if err != nil {
		return nil, nil, errors.Join(err, g.Close())
	}
	return ask.NewDoor(g, s), g.Close, nil
}

// recordServerCommand is the recorder between an agent that is evaluated and
// its server.
func recordServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: recordServerName + " FILE NAME [COMMAND …]", Short: "Stand between an agent and a server and record its calls",
		Hidden: true, DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Fail(cli.ExitUsage, "writ-eval ask", "this is started by writ-eval ask")
			}
			serve := func(in io.Reader, out io.Writer) error { return example.Serve(c.Context(), in, out) }
			if len(args) > 2 {
				serve = endtoend.Command(c.Context(), args[2:])
			}
			if err := endtoend.Record(args[0], args[1], c.InOrStdin(), c.OutOrStdout(), serve); err != nil {
				return cli.Fail(cli.ExitIO, "writ-eval ask", "%w", err)
			}
			return nil
		},
	}
}
