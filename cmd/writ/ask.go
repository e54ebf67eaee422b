package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/strictjson"
)

func askCommand() *cobra.Command {
	var f flags
	var opt askOptions
	c := f.take(&cobra.Command{
		Use:   "ask [REQUEST]",
		Short: "Answer one request with at most one tool call, gate by gate",
		Long: "Answer one request with at most one tool call. The request passes, in this order, the input\n" +
			"policy (before any server is started), live discovery, the allowlist, a planner, strict\n" +
			"parsing of its plan, the tool's schema, provenance, the call, and the typing of its result;\n" +
			"with --summarise a summary whose every item quotes the recorded result. Without REQUEST it\n" +
			"reads commands: a terminal gets history and completion. Each run's events are kept in the\n" +
			"state directory under runs/.\n\n" +
			"Exit codes: 0 answered, or asked for more; 77 stopped at a gate; 1 an error of the server;\n" +
			"65 data; 74 I/O; 78 configuration.",
		Example: "  writ ask \"Show me ticket INC-1042\"\n" +
			"  writ ask --summarise \"Find documents about retention\"\n" +
			"  writ ask --plan plan.json \"Close the printer ticket\"",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Fail(cli.ExitUsage, `writ ask "`+cli.OneLine(strings.Join(args, " "), 100)+`"`, "the request is one argument: put it in quotes")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			a, err := newAsking(c, &f, opt, len(args) == 0)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				err = a.repl(c.Context())
			} else {
				err = a.ask(c.Context(), args[0])
			}
			if serr := a.stop(); err == nil && serr != nil {
				err = unclean(serr)
			}
			return err
		},
	}, "state", "config", "json")
	c.Flags().StringVar(&opt.planner, "planner", "", "planner `KIND`: rules, openai, anthropic or manual (default: the configuration's)")
	c.Flags().StringVar(&opt.plan, "plan", "", "take the plan from `FILE`, or from standard input with -")
	c.Flags().BoolVar(&opt.summarise, "summarise", false, "summarise the result, each item with its quote")
	c.Flags().StringVar(&opt.session, "session", "", "`NAME` of the session to ask in; opened on first use")
	return c
}

type askOptions struct {
	planner, plan, session string
	summarise              bool
}

// asking is one invocation of writ ask. Its gateway is started by the first
// request the input policy lets pass.
type asking struct {
	opt  askOptions
	json bool
	ran  *cobra.Command
	o    *files
	host *ask.Host
	in   io.Reader
	out  io.Writer
	errs io.Writer
	here *local // nil until the gateway was started
}

func newAsking(c *cobra.Command, f *flags, opt askOptions, interactive bool) (*asking, error) {
	a := &asking{opt: opt, ran: c, json: f.json, in: c.InOrStdin(), out: c.OutOrStdout(), errs: c.ErrOrStderr()}
	var err error
	if a.o, err = f.load(); err != nil {
		return nil, err
	}
	cfg := a.o.cfg.Ask
	if opt.session != "" {
		if _, err := sessionFile(a.o.state, opt.session); err != nil {
			return nil, err
		}
	}
	if err := a.choosePlanner(&cfg, interactive); err != nil {
		return nil, err
	}
	s, err := cfg.InputPolicy()
	if err != nil {
		return nil, err
	}
	planner, summariser, err := cfg.NewPlanner()
	if err != nil {
		return nil, err
	}
	if planner == nil {
		// That a plan is too long is for the gate to say.
		b, err := readStart(a.opt.plan, "plan", claim.PlanBytes+1, a.in, "writ ask --plan FILE")
		if err != nil {
			return nil, err
		}
		planner = ask.Manual(b)
	}
	if !opt.summarise && !cfg.Summarise {
		summariser = nil
	}
	a.host, err = ask.New(ask.Options{
		Screen: s, Planner: planner, Summariser: summariser, PlannerName: cmp.Or(cfg.Planner.Kind, "rules"), Timeout: cfg.Planner.Timeout,
		Allow: ask.Allow(a.o.policy, cfg.Allow), Runs: filepath.Join(a.o.state, statedir.RunsDir), Shadow: a.o.shadow,
		Open: func(ctx context.Context) (ask.Door, error) { return a.open(ctx) },
	})
	return a, err
}

// choosePlanner puts the planner the flags name in the place of the
// configuration's.
func (a *asking) choosePlanner(cfg *config.Ask, interactive bool) error {
	opt := &a.opt
	switch {
	case opt.plan != "" && opt.planner != "" && opt.planner != "manual":
		return cli.Fail(cli.ExitUsage, "writ ask --help", "--plan is for --planner manual")
	case opt.plan != "":
		cfg.Planner.Kind = "manual"
	case opt.planner == "" || opt.planner == cfg.Planner.Kind:
	case opt.planner == "rules" || opt.planner == "manual":
		cfg.Planner = config.Planner{Kind: opt.planner}
	case slices.Contains(config.PlannerKinds, opt.planner):
		return cli.Fail(cli.ExitConfig, "ask: {planner: {kind: "+opt.planner+", url: …, model: …}} in writ.yaml", "a planner behind an endpoint stands in the configuration")
	default:
		return cli.Fail(cli.ExitUsage, "writ ask --planner rules", "the planner is one of %s", strings.Join(config.PlannerKinds, ", "))
	}
	if cfg.Planner.Kind != "manual" {
		return nil
	}
	if interactive {
		return cli.Fail(cli.ExitUsage, `writ ask --plan FILE "REQUEST"`, "a manual plan belongs to one request")
	}
	opt.plan = cmp.Or(opt.plan, "-")
	return nil
}

// open starts the gateway and opens the session. The gateway outlives the
// request that started it.
func (a *asking) open(ctx context.Context) (ask.Door, error) {
	a.o.terminal = ownTerminal(a.in, a.errs)
	l, err := a.o.here(context.WithoutCancel(ctx), a.opt.session, a.errs)
	if err != nil {
		return nil, err
	}
	a.here = l
	return ask.NewDoor(l.g, l.session), nil
}

func (a *asking) stop() error {
	if a.here == nil {
		return nil
	}
	return a.here.close()
}

// ask answers one request and prints how it ended.
func (a *asking) ask(ctx context.Context, text string) error {
	if strings.TrimSpace(text) == "" {
		return cli.Fail(cli.ExitUsage, `writ ask "Show me ticket INC-1042"`, "the request is empty")
	}
	answer, err := a.host.Ask(ctx, text)
	if a.json {
		if eerr := cli.PrintLine(a.out, answer); eerr != nil {
			return cli.Fail(cli.ExitIO, "", "the answer cannot be printed")
		}
	} else {
		a.print(answer)
	}
	if err != nil {
		if e, ok := errors.AsType[*cli.Exit](err); ok {
			return e
		}
		hint := "writ check"
		if len(answer.Unreachable) > 0 {
			hint = "writ check --live"
		}
		if slices.Index(claim.Stages(), answer.Stage) >= slices.Index(claim.Stages(), claim.StageCall) {
			hint = "writ audit show"
		}
		return cli.Fail(cli.ExitIO, hint, "%w", err)
	}
	switch answer.Status {
	case ask.Answered, ask.NeedsMoreInfo:
		return nil
	case ask.Stopped:
		return cli.Ended(cli.ExitRefused)
	case ask.ServerError:
		return cli.Ended(cli.ExitServer)
	}
	return cli.Ended(cli.ExitIO)
}

// print shows an answer to a person, with nothing in it unescaped.
func (a *asking) print(x *ask.Answer) {
	if len(x.Unreachable) > 0 {
		for _, line := range a.o.failed(a.here.g) {
			fmt.Fprintf(a.errs, "writ: %s\n", line)
		}
	}
	if x.Tool != "" {
		theirs(a.out, a.colour("36", cli.OneLine(x.Tool, 200))+" ", string(x.Arguments), 400)
	}
	switch {
	case x.Summary != nil:
		a.printSummary(x.Summary)
	case x.Typed != nil:
		theirs(a.out, "", string(strictjson.Compact(x.Typed)), 0)
	case x.Result != nil:
		printContent(a.out, x.Result, true)
	}
	if x.Note != "" {
		fmt.Fprintf(a.out, "%s (%s)\n", a.colour("33", x.Note), x.Untyped.Reason)
	}
	if x.Shadow != nil {
		fmt.Fprintf(a.out, "%s %s (%s)\n", a.colour("33", "shadow: the call passed, and would be refused:"), x.Shadow.Code, x.Shadow.Reason)
	}
	when(a.out, x.Truncated, "%s\n", a.colour("33", "the result was longer than what the summary was made of"))
	if x.Message != "" {
		verb := " says: "
		if x.Status == ask.NeedsMoreInfo {
			verb = " asks: "
		}
		theirs(a.out, authors[x.MessageBy]+verb, strings.Join(strings.Fields(x.Message), " "), shownLength)
	}
	when(a.out, x.Status == ask.NeedsMoreInfo, "%s\n", a.colour("33", "asks for more; nothing was called"))
	if x.Status == ask.Stopped {
		fmt.Fprintf(a.out, "%s (%s)\n", a.colour("31", "stopped at "+string(x.Stage)), gateNames[x.Stage])
		printRefusal(a.out, &writ.Outcome{Status: writ.Rejected, Rejection: x.Rejection}, a.ran)
	}
	when(a.out, x.Evidence != "", "evidence %s\n", cli.Printable(x.Evidence))
	fmt.Fprintf(a.out, "run %s\n", x.Run)
}

// shownLength bounds, in characters, what is shown of one text; --json has all.
const shownLength = 2000

// authors say whose words a text is.
var authors = map[string]string{
	ask.ByModel: "the model", ask.ByRules: "a rule", ask.ByPlan: "the plan", ask.ByServer: "the server", ask.ByPolicy: "the input policy",
}

// printItem shows a statement: its quote first, in its sentence, then what who
// says of it, and what of that the quote does not say.
func printItem(w io.Writer, who string, i ask.Item) {
	const indent = "    "
	theirs(w, "- quote checked: ", i.Quote, shownLength)
	if i.Within != "" {
		theirs(w, indent+"where it stands: ", i.Within, shownLength)
	}
	theirs(w, fmt.Sprintf("%sbytes %d-%d of %s ", indent, i.From, i.To, i.Evidence), i.Pointer, 200)
	theirs(w, indent+who+" says: ", strings.Join(strings.Fields(i.Text), " "), shownLength)
	for _, m := range []struct {
		label string
		words []string
	}{{"not in the quote: ", i.NotInQuote}, {"left out of what it quotes: ", i.LeftOut}} {
		if len(m.words) > 0 {
			theirs(w, indent+coloured(w, "33", m.label), `"`+strings.Join(m.words, `", "`)+`"`, shownLength)
		}
	}
}

// gateNames say what a gate is to somebody who has not read the documents.
var gateNames = map[claim.Stage]string{
	claim.StagePolicyGate: "the input policy; no server was started or asked", claim.StageDiscovery: "live discovery",
	claim.StageAllowlist: "the allowlist", claim.StagePlanner: "the planner", claim.StagePlanParse: "reading the plan",
	claim.StagePlanGate: "the plan against the live tools", claim.StageProvenance: "provenance; nothing was called",
	claim.StageCall: "the call", claim.StageTypedOutput: "typing the result", claim.StageGrounding: "grounding the summary",
}

func (a *asking) printSummary(s *ask.Summary) {
	for _, l := range []struct {
		head  string
		items []ask.Item
	}{{"", s.Bullets}, {"risks", s.Risks}, {"recommendations", s.Recommendations}} {
		if l.head != "" && len(l.items) > 0 {
			fmt.Fprintln(a.out, l.head+":")
		}
		for _, i := range l.items {
			printItem(a.out, authors[s.By], i)
		}
	}
	fmt.Fprintf(a.out, "summary %s\n", s.Record)
}

func (a *asking) colour(code, text string) string { return coloured(a.out, code, text) }

// grounding is what writ ground --json prints; docs/formats.md describes it.
type grounding struct {
	OK        bool            `json:"ok"`
	Truncated bool            `json:"truncated"`
	Rejection *writ.Rejection `json:"rejection,omitempty"`
	Summary   *claim.Summary  `json:"summary,omitempty"`
}

const groundUsage = "writ ground --source FILE --summary FILE"

func groundCommand() *cobra.Command {
	var source, summary, pointer, kind string
	var f flags
	var limit int
	c := f.take(&cobra.Command{
		Use: "ground --source FILE --summary FILE", Short: "Check that a summary quotes its source", Args: cli.NoArgs,
		Long: "Check a summary against the source it was made of: every item's evidence stands in the\n" +
			"source character for character, between words, and reaches into a value. It is the check\n" +
			"writ ask makes, for anybody's summaries. A source that begins as a JSON object or list is\n" +
			"read as strict JSON, and refused where it is none; any other is plain text, and so is every\n" +
			"one with --as text. - reads one of the two from standard input. Of a longer source only the\n" +
			"first bytes count, as many as --limit says: what a model is shown of it.\n\n" +
			"Exit codes: 0 grounded, 77 not, 65 a source that cannot be read as text or JSON, 74 I/O.",
		Example: `  writ ground --source result.json --pointer /structuredContent --summary summary.json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if source == "" || summary == "" {
				return cli.Fail(cli.ExitUsage, groundUsage, "a source and a summary are needed")
			}
			if source == "-" && summary == "-" {
				return cli.Fail(cli.ExitUsage, "writ ground --source FILE --summary -", "only one of them can come from standard input")
			}
			record, err := readInput(source, "source", strictjson.Result.Bytes, c.InOrStdin(), groundUsage)
			if err != nil {
				return err
			}
			text, err := readInput(summary, "summary", claim.SummaryBytes, c.InOrStdin(), groundUsage)
			if err != nil {
				return err
			}
			src, err := makeSource(record, kind, pointer, limit)
			if err != nil {
				return err
			}
			s, stop := claim.Ground(src, text)
			out := grounding{OK: stop == nil, Truncated: src.Truncated()}
			if stop != nil {
				out.Rejection = &stop.Rejection
			} else {
				out.Summary = &s
			}
			if !f.json {
				out.print(c.OutOrStdout(), limit)
			} else if err := cli.PrintLine(c.OutOrStdout(), out); err != nil {
				return cli.Fail(cli.ExitIO, "", "the answer cannot be printed")
			}
			if stop != nil {
				return cli.Ended(cli.ExitRefused)
			}
			return nil
		},
	}, "json")
	c.Flags().StringVar(&source, "source", "", "source `FILE`")
	c.Flags().StringVar(&summary, "summary", "", "summary `FILE`")
	c.Flags().StringVar(&kind, "as", "auto", "read the source as auto, json or text")
	c.Flags().StringVar(&pointer, "pointer", "", "the part of a JSON source that was summarised, RFC 6901")
	c.Flags().IntVar(&limit, "limit", claim.SourceLimit, "length in bytes the source text was cut to")
	return c
}

// print tells what was found; limit is how much of the source counted.
func (g *grounding) print(w io.Writer, limit int) {
	if r := g.Rejection; r != nil {
		fmt.Fprintf(w, "not grounded: %s (%s)\n", r.Code, r.Reason)
		for _, f := range r.Failures {
			fmt.Fprintf(w, "  %s %s: %s\n", cmp.Or(cli.OneLine(f.Pointer, 200), "/"), f.Reason, f.Need)
		}
		when(w, g.Truncated, "  the source is longer than the %d bytes that count: --limit N\n", limit)
		return
	}
	s := g.Summary
	fmt.Fprintf(w, "grounded: %d bullets, %d risks, %d recommendations\n", len(s.Bullets), len(s.Risks), len(s.Recommendations))
	for _, i := range slices.Concat(s.Bullets, s.Risks, s.Recommendations) {
		printItem(w, "the summary", ask.NewItem(i, "the source"))
	}
}

// makeSource reads the source as what it is said to be. What was left to it and
// looks like JSON is never taken for text: a text may be quoted across what JSON
// keeps apart.
func makeSource(record []byte, kind, pointer string, limit int) (src *claim.Source, err error) {
	refuse := func(next, need string) error { return cli.Fail(cli.ExitData, next, "the source: %s", need) }
	const help = "writ ground --help"
	isJSON := kind == "json" || pointer != ""
	switch {
	case kind != "auto" && kind != "json" && kind != "text":
		return nil, refuse(help, "--as is auto, json or text")
	case kind == "text" && pointer != "":
		return nil, refuse(help, "--pointer belongs to a JSON source")
	case kind == "auto" && !isJSON && looksLikeJSON(record):
		if strictjson.Check(record, strictjson.Result) != nil {
			return nil, refuse("writ ground --as text --source FILE --summary FILE", "it begins as JSON does and is no strict JSON; --as text reads it as plain text")
		}
		isJSON = true
	}
	var stop *claim.Stop
	if isJSON {
		src, stop = claim.NewSource(record, pointer, limit)
	} else {
		src, stop = claim.TextSource(record, limit)
	}
	if stop != nil {
		return nil, refuse(help, stop.Rejection.Failures[0].Need)
	}
	return src, nil
}

// looksLikeJSON reports whether somebody may take a text for a JSON object or
// list: it begins with one, whatever white space or mark stands before it.
func looksLikeJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n\ufeff")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[')
}
