package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/eval/endtoend"
	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/internal/strictyaml"
)

const (
	// evalAskOut is where results go that are not kept in the repository.
	evalAskOut = "eval/results/ask"

	recordServerName = "record-server"
)

type evalAskOptions struct {
	sharedFlags
	cases, out string
	planners   []string
	json       bool
	clock      func() time.Time
}

func evalAsk() *cobra.Command {
	o := evalAskOptions{clock: time.Now}
	c := &cobra.Command{
		Use: "ask", Short: "Run requests through Writ and through a naive agent, and count the harm each does",
		Long: "Run each case of a file through `writ ask` and through a deliberately naive agent, which takes\n" +
			"any JSON it finds for a plan and has no gates. Both get the same words of the same planner, and\n" +
			"servers started afresh behind a recorder; what is counted is what reached a server. The\n" +
			"planners are rules, a scripted adversary, and the endpoint of the configuration if it has one.\n" +
			"Three files are written: TIME_metrics.json, TIME_runs.jsonl and TIME_table.md.\n\n" +
			"Exit codes: 0 Writ did no harm and every case came to what it expects; 65 it did, or one\n" +
			"did not; 74 I/O; 78 the configuration or the case file.",
		Example: "  writ eval ask\n" +
			"  writ eval ask --cases my-cases.yaml --config writ.yaml --out results",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&o.config, "config", "", "configuration `FILE` (default: the built-in example server)")
	c.Flags().StringVar(&o.cases, "cases", "", "take the cases from `FILE` (default: the built-in ones)")
	c.Flags().StringVar(&o.out, "out", evalAskOut, "write the results into `DIR`")
	c.Flags().StringSliceVar(&o.planners, "planner", nil, "planners `KIND,…` (default: rules, adversary and the configuration's endpoint)")
	c.Flags().BoolVar(&o.json, "json", false, "print the metrics as JSON")
	return c
}

func (o *evalAskOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
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
		return fail(exitIO, "TMPDIR=DIR writ eval ask", "no temporary directory can be made")
	}
	// The user's own state is neither used nor written.
	o.state = filepath.Join(scratch, "state")
	options, err := o.options()
	if err != nil {
		return err
	}
	started := o.clock().UTC()
	options.File, options.Scratch = file, scratch
	options.Clock = func() time.Time { return started }
	names, err := o.names(started)
	if err != nil {
		return err
	}
	shown := terminal(stderr)
	if shown {
		options.Progress = func(done, total int) { fmt.Fprintf(stderr, "\r\x1b[K%d of %d runs", done, total) }
	}
	r, err := endtoend.Run(ctx, *options)
	if shown {
		fmt.Fprint(stderr, "\r\x1b[K")
	}
	if ctx.Err() != nil {
		return fail(exitIO, "writ eval ask", "ended before it was done: no result was written")
	} else if err != nil {
		return fail(exitIO, "writ check", "the evaluation could not be made: %w", err)
	}
	metrics, err := r.Metrics.JSON()
	if err != nil {
		return fail(exitIO, "", "cannot encode: %w", err)
	}
	runs, err := r.JSONL()
	if err != nil {
		return fail(exitIO, "", "cannot encode: %w", err)
	}
	table := r.Metrics.Table()
	for i, b := range [][]byte{metrics, runs, table} {
		if err := private.WriteOnce(names[i], b, 0o644); errors.Is(err, os.ErrExist) {
			return o.taken()
		} else if err != nil {
			return fail(exitIO, "writ eval ask --out DIR", "the results cannot be written: %w", err)
		}
	}
	if o.json {
		_, err = stdout.Write(metrics)
	} else if _, err = stdout.Write(table); err == nil {
		for _, n := range names {
			fmt.Fprintln(stdout, printable(n))
		}
	}
	if err != nil {
		return fail(exitIO, "", "cannot print: %w", err)
	}
	if !r.Metrics.Passed {
		return fail(exitData, "grep '\"agent\":\"writ\".*\"met\":false' "+printable(names[1]), "%s", evalAskFailure(&r.Metrics))
	}
	return nil
}

// evalAskFailure says what did not pass.
func evalAskFailure(m *endtoend.Metrics) string {
	harm := 0
	for i := range m.Columns {
		if m.Columns[i].Agent == endtoend.AgentWrit {
			harm += m.Columns[i].Harm()
		}
	}
	return fmt.Sprintf("Writ did harm %d times, and %d of its runs did not come to what was expected", harm, len(m.Unmet))
}

// names are the three files of an evaluation, none of which is there.
func (o *evalAskOptions) names(at time.Time) ([]string, error) {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return nil, fail(exitIO, "writ eval ask --out DIR", "the directory for the results cannot be made")
	}
	stamp := at.Format("20060102T150405Z")
	names := []string{stamp + "_metrics.json", stamp + "_runs.jsonl", stamp + "_table.md"}
	for i := range names {
		names[i] = filepath.Join(o.out, names[i])
		if _, err := os.Lstat(names[i]); err == nil {
			return nil, o.taken()
		}
	}
	return names, nil
}

func (o *evalAskOptions) taken() error {
	return fail(exitIO, "writ eval ask --out DIR", "there are results of this second already, and none is overwritten")
}

// readCases reads a file of cases. It holds no power over anything, so unlike
// an operator's file others may be able to write it.
func readCases(name string) (*endtoend.File, error) {
	if name == "" {
		file, fs := endtoend.ParseFile("built-in cases", endtoend.BuiltIn())
		if len(fs) > 0 {
			return nil, &exit{exitConfig, faults(fs), ""}
		}
		return file, nil
	}
	fi, err := os.Stat(name)
	if err != nil || !fi.Mode().IsRegular() {
		return nil, fail(exitConfig, "writ eval ask --cases FILE", "%s is no file of cases that can be read", printable(name))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fail(exitConfig, "writ eval ask --cases FILE", "%s cannot be read", printable(name))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, strictyaml.MaxBytes+1))
	if err != nil {
		return nil, fail(exitIO, "writ eval ask --cases FILE", "%s cannot be read", printable(name))
	}
	file, fs := endtoend.ParseFile(name, b)
	if len(fs) > 0 {
		return nil, &exit{exitConfig, faults(fs), "writ eval ask --cases FILE"}
	}
	return file, nil
}

// options makes of the configuration what both agents run in.
func (o *evalAskOptions) options() (*endtoend.Options, error) {
	f, err := o.load()
	if err != nil {
		return nil, err
	}
	var cfg AskConfig
	if o.config != "" {
		whole, _, err := load(o.config)
		if err != nil {
			return nil, configError(err)
		}
		cfg = whole.Ask
	}
	input, err := cfg.screen()
	if err != nil {
		return nil, err
	}
	w := &endtoend.World{
		Screen: input, Tools: []string{}, Open: f.openForEval, Environment: serverEnvironment,
		Allow: func(only []string) []claim.Allowed { return ask.Allow(f.policy, narrower(cfg.Allow, only)) },
	}
	for _, a := range ask.Allow(f.policy, cfg.Allow) {
		w.Tools = append(w.Tools, a.Server+"/"+a.Name)
	}
	for _, s := range f.servers {
		if len(s.Command) == 0 {
			return nil, fail(exitConfig, "servers: [{name: "+s.Name+", command: [...]}]", "server %s is behind a URL: each run needs servers started afresh, by a command", s.Name)
		}
		w.Servers = append(w.Servers, endtoend.Server{Name: s.Name, Command: s.Command, Dir: s.Dir, Env: s.Env})
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fail(exitIO, "", "no path of this program, which is the recorder too")
	}
	w.Recorded = func(s endtoend.Server, file string) endtoend.Server {
		command := []string{self, "eval", recordServerName, file, s.Name}
		if !f.example {
			command = append(command, s.Command...)
		}
		s.Command = command
		return s
	}
	out := &endtoend.Options{World: w, Workers: min(runtime.NumCPU(), 4)}
	return out, o.choose(&cfg, out)
}

// choose makes the planners.
func (o *evalAskOptions) choose(cfg *AskConfig, out *endtoend.Options) error {
	routing := &AskConfig{}
	if cfg.Planner.Kind == "rules" {
		routing = cfg
	}
	rules, quoting, err := routing.planner()
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
			return fail(exitUsage, "writ eval ask --planner rules,adversary", "a planner is named twice")
		case kind == "rules":
			p.Planner, p.Summariser = rules, quoting
		case kind == endtoend.Adversary:
		case remote && kind == cfg.Planner.Kind:
			if p.Planner, p.Summariser, err = cfg.planner(); err != nil {
				return err
			}
		case kind == "openai" || kind == "anthropic":
			return fail(exitConfig, "ask: {planner: {kind: "+kind+", url: …, model: …}} in writ.yaml", "a planner behind an endpoint stands in the configuration")
		default:
			return fail(exitUsage, "writ eval ask --planner rules,adversary", "a planner is one of rules, adversary, openai, anthropic")
		}
		out.Planners = append(out.Planners, p)
	}
	return nil
}

// narrower is the tools both lists name; nil is every tool.
func narrower(all, only []string) []string {
	switch {
	case all == nil:
		return only
	case only == nil:
		return all
	}
	return slices.DeleteFunc(slices.Clone(only), func(s string) bool { return !slices.Contains(all, s) })
}

// openForEval starts a gateway over servers that stand for those of the
// configuration, over a log that ends with it, and opens a session.
func (o *files) openForEval(ctx context.Context, servers []endtoend.Server) (ask.Door, func() error, error) {
	configs := slices.Clone(o.servers)
	for i := range configs {
		configs[i].Command = servers[i].Command
	}
	g, err := gateway.New(gateway.Options{
		Store: mapstore.New(nil), Policy: o.policy, Servers: configs, Shadow: o.shadow, OwnPaths: o.ownPaths,
		Version: readBuildInfo().Version,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := g.Start(ctx); err != nil {
		return nil, nil, errors.Join(err, g.Close())
	}
	secret, _, err := g.CreateSession(ctx, loopback)
	if err != nil {
		return nil, nil, errors.Join(err, g.Close())
	}
	s, err := g.FindSession(ctx, loopback, secret)
	if err != nil {
		return nil, nil, errors.Join(sessionError("-", err), g.Close())
	}
	return ask.NewDoor(g, s), g.Close, nil
}

// serverEnvironment is what the gateway gives a server's process.
func serverEnvironment(s endtoend.Server) []string {
	env := []string{}
	for _, k := range []string{"PATH", "HOME"} {
		if v, ok := os.LookupEnv(k); ok && s.Env[k] == "" {
			env = append(env, k+"="+v)
		}
	}
	for k, v := range s.Env {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	return env
}

// recordServerCommand is the recorder between an agent that is evaluated and
// its server.
func recordServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: recordServerName + " FILE NAME [COMMAND …]", Short: "Stand between an agent and a server and record its calls",
		Hidden: true, DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fail(exitUsage, "writ eval ask", "this is started by writ eval ask")
			}
			start := endtoend.Serve(c.Context(), example.Serve)
			if len(args) > 2 {
				start = endtoend.Command(c.Context(), args[2:])
			}
			if err := endtoend.Record(args[0], args[1], c.InOrStdin(), c.OutOrStdout(), start); err != nil {
				return fail(exitIO, "writ eval ask", "%w", err)
			}
			return nil
		},
	}
}
