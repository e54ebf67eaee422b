package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

func toolsCommand() *cobra.Command {
	var f flags
	c := f.take(&cobra.Command{
		Use: "tools", Short: "List the tools and say which are open", Args: cli.NoArgs,
		Long: "List the tools. Of a running gateway these are the ones its clients see, by their names;\n" +
			"with --config, or without a running gateway, the servers are started, each tool is listed with\n" +
			"its effect, and closed ones too, with the reason.",
		RunE: func(c *cobra.Command, _ []string) error {
			lines, err := f.toolLines(c.Context(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			return f.show(c, lines, func(w io.Writer) {
				for _, l := range lines {
					line := fmt.Sprintf("%-8s  %-32s  %s  %s", l.State, l.Name, strings.Join(l.Effect, ","), l.Why)
					fmt.Fprintln(w, strings.TrimRight(line, " "))
				}
			})
		},
	}, "state", "config", "json")
	c.AddCommand(toolsApprove())
	return f.oneServer(c)
}

type toolLine struct {
	Name   string   `json:"name"` // what a client calls it
	Tool   string   `json:"tool,omitempty"`
	State  string   `json:"state"` // open, closed or refused
	Effect []string `json:"effect,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Why    string   `json:"why,omitempty"` // the reason in words, and what opens it
	Pin    string   `json:"pin,omitempty"` // of the definition as it is now
}

func (f *flags) toolLines(ctx context.Context, stderr io.Writer) ([]toolLine, error) {
	cl, err := f.connect(ctx, "", nil, stderr)
	if err != nil {
		return nil, err
	}
	defer cl.close()
	if l, here := cl.(*local); here {
		lines, err := l.tools(ctx)
		for _, line := range l.o.failed(l.g) {
			fmt.Fprintf(stderr, "writ: %s\n", line)
		}
		for _, f := range l.o.findings(l.g) {
			when(stderr, f.Reason == "" || f.Reason == writ.NameUnknown, "writ: %s\n", oneFinding(f))
		}
		return lines, err
	}
	result, rerr, err := cl.call(ctx, "tools/list", "", nil)
	if err != nil {
		return nil, err
	}
	if rerr != nil {
		return nil, cli.Fail(cli.ExitServer, "writ serve", "error %d: %s", rerr.Code, cli.OneLine(rerr.Message, 200))
	}
	lines := []toolLine{}
	es, _ := strictjson.Elements(strictjson.Get(result, "tools"))
	for _, e := range es {
		name, _ := strictjson.Text(strictjson.Get(e, "name"))
		lines = append(lines, toolLine{Name: cli.Printable(name), State: "open"})
	}
	return lines, nil
}

// tools are those of the gateway's servers, closed ones too.
func (l *local) tools(ctx context.Context) ([]toolLine, error) {
	if err := settled(ctx, l.g); err != nil {
		return nil, err
	}
	lines := []toolLine{}
	cat, _ := l.g.Catalogue()
	near := nearest(cat)
	for _, t := range cat.Tools() {
		if t.Method == policy.CallTool {
			lines = append(lines, l.o.toolLineOf(t, near))
		}
	}
	return lines, nil
}

// toolLineOf says of a tool of the catalogue whether it is open, and what would open it.
func (o *files) toolLineOf(t *gate.Tool, near unlikeShipped) toolLine {
	tl := toolLine{Tool: cli.Printable(t.Server + "/" + t.Name), Reason: string(t.Reason), Pin: t.Pin, State: "closed"}
	switch t.State {
	case gate.Open:
		tl.State = "open"
	case gate.Refused:
		tl.State = "refused"
	}
	if t.Contract != nil {
		tl.Effect = t.Effects().Names()
	}
	if t.State != gate.Open {
		tl.Why = o.shut(t, near)
	}
	tl.Name = cmp.Or(cli.Printable(t.Public), tl.Tool)
	return tl
}

// settled waits until each server of a gateway has answered, or cannot be
// reached.
func settled(ctx context.Context, g *gateway.Gateway) error {
	if err := g.Settled(ctx); err != nil {
		return cli.Fail(cli.ExitIO, "writ check", "the gateway did not become ready: %w", err)
	}
	return nil
}

// startSettled is start whose servers have answered, or cannot be reached.
func (o *files) startSettled(c *cobra.Command, level slog.Level) (*gateway.Gateway, func() error, error) {
	g, stop, err := o.start(c.Context(), logger(c.ErrOrStderr(), level))
	if err != nil {
		return nil, nil, err
	}
	if err := settled(c.Context(), g); err != nil {
		stop()
		return nil, nil, err
	}
	return g, stop, nil
}

func toolsApprove() *cobra.Command {
	var f flags
	var yes bool
	c := f.take(&cobra.Command{
		Use:   "approve SERVER[/TOOL]",
		Short: "Show a tool's definition and write its pin into the policy",
		Long: "Show the definition a server publishes now and, once a person has read it, write its\n" +
			"pin into the policy file. Of one that was approved before, and that a recorded call was\n" +
			"judged by, the lines are shown that differ. Nothing else in the file changes. A running\n" +
			"gateway goes on with the policy it was started with.",
		Args: exactly(1, "name a server, or one of its tools as SERVER/TOOL"),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.load()
			if err != nil {
				return err
			}
			if o.file == "" {
				return cli.Fail(cli.ExitUsage, "writ tools approve "+private.Quote(args[0])+" --config FILE", "the built-in policy has its pins already")
			}
			return f.approve(c, o, args[0], yes)
		},
	}, "state", "config", "json")
	c.Flags().BoolVar(&yes, "yes", false, "write the pins without asking")
	return f.oneServer(c)
}

type pinned struct {
	Tool string `json:"tool"`
	Pin  string `json:"pin"`
}

func (f *flags) approve(c *cobra.Command, o *files, which string, yes bool) error {
	g, stop, err := o.startSettled(c, slog.LevelError)
	if err != nil {
		return err
	}
	defer stop()
	cat, findings := g.Catalogue()
	server, _, _ := strings.Cut(which, "/")
	tools := slices.DeleteFunc(cat.Tools(), func(t *gate.Tool) bool {
		return t.Method != policy.CallTool || t.Server != which && t.Server+"/"+t.Name != which
	})
	if err := g.Failed()[server]; err != nil {
		return cli.Fail(cli.ExitIO, "writ check --live", "server %s cannot be reached: %w%s", cli.OneLine(server, 40), err, lastWords(err, server, o.servers))
	} else if len(tools) == 0 {
		return noTool(c.ErrOrStderr(), server, findings)
	}
	source, err := config.ReadFile(o.file)
	if err != nil {
		return config.Invalid(err)
	}
	out, in, ended := f.aside(c), bufio.NewReader(c.InOrStdin()), error(nil)
	written, near := []pinned{}, nearest(cat)
	for _, t := range tools {
		if differs, err := o.toPin(c.Context(), t, near, out); err != nil {
			return err
		} else if !differs {
			continue
		}
		said, answered := yes, yes
		if !yes {
			said, answered = agreed(in, out, "approve?")
		}
		if !answered {
			ended = cli.Fail(cli.ExitUsage, "the same command with --yes", "the input ended before an answer: what was not answered was not approved")
		}
		if !said {
			fmt.Fprintln(out, "not approved")
			continue
		}
		if source, err = policy.SetPin(source, t.Server+"/"+t.Name, t.Pin); err != nil {
			return cli.Fail(cli.ExitData, "writ check --policy "+o.file, "the pin cannot be written: %w", err)
		}
		written = append(written, pinned{cli.Printable(t.Server + "/" + t.Name), t.Pin})
	}
	if len(written) == 0 {
		return f.showDone(c, 0, written, func(io.Writer) {}, ended)
	}
	if err := replaceFile(o.file, source); err != nil {
		return cli.Fail(cli.ExitIO, "", "the policy cannot be written: %w", err)
	}
	return f.showDone(c, len(written), written, func(w io.Writer) {
		fmt.Fprintf(w, "%d pinned in %s; a gateway that runs takes it at the next writ reload\n", len(written), cli.Printable(o.file))
	}, ended)
}

// noTool is the end of a command that named no tool of a server; what is wrong with those that
// it lists is said before.
func noTool(stderr io.Writer, server string, findings []gate.Finding) error {
	for _, f := range findings {
		when(stderr, f.Server == server, "writ: %s\n", cli.Printable(f.Message))
	}
	return cli.Fail(cli.ExitData, "writ tools", "there is no such tool")
}

// toPin shows a tool's definition, or how it differs from the one that was approved, where that is
// known; or says why there is nothing to approve.
func (o *files) toPin(ctx context.Context, t *gate.Tool, near unlikeShipped, out io.Writer) (bool, error) {
	was, err := o.wasApproved(ctx, t)
	if err != nil {
		return false, unreadable(err)
	}
	id, nothing := cli.Printable(t.Server+"/"+t.Name), ""
	switch {
	case t.State == gate.Refused:
		nothing = "refused (" + string(t.Reason) + "); it cannot be approved"
	case t.Contract == nil:
		nothing = "no contract; write one first"
	case t.Contract.Pin == t.Pin:
		nothing = "approved already"
	}
	if nothing != "" {
		fmt.Fprintf(out, "%s: %s\n", id, nothing)
		return false, nil
	}
	fmt.Fprintln(out, id)
	of, lines := near(t)
	if changed := cli.Diff(indented(was, ""), indented(t.Raw, "")); was != nil && len(changed) > 0 {
		cli.PrintDiff(out, "  ", changed)
		of, lines = "unlike the definition that you approved", draft.Unlike(was, t.Raw)
	} else if fmt.Fprintf(out, "  %s\n", cli.Printable(string(indented(t.Raw, "  ")))); of != "" {
		of += " was made of another definition"
	}
	if of != "" {
		fmt.Fprintf(out, "  %s:\n", of)
		for _, l := range lines {
			fmt.Fprintf(out, "    %s\n", cli.Printable(l))
		}
	}
	when(out, t.Contract.Pin != "", "  was  pin: %s\n", t.Contract.Pin)
	fmt.Fprintf(out, "  now  pin: %s\n", t.Pin)
	return true, nil
}

// wasApproved is the definition that the pin of a tool is of, nil where there is none, or where no
// call among the newest records was judged by it.
func (o *files) wasApproved(ctx context.Context, t *gate.Tool) ([]byte, error) {
	if t.Contract == nil || t.Contract.Pin == "" || t.Contract.Pin == t.Pin {
		return nil, nil
	}
	return gateway.NewRulesets(o.store).Pinned(ctx, o.store.Log(ctx, -lookedIn), t.Server, t.Contract.Pin)
}

// lookedIn is in how many of the newest records what was approved is looked for.
const lookedIn = 8192

// indented is a definition over several lines, each with a prefix but for the first.
func indented(raw []byte, prefix string) []byte {
	var pretty bytes.Buffer
	if json.Indent(&pretty, raw, prefix, "  ") != nil {
		return raw
	}
	return pretty.Bytes()
}

// replaceFile puts b in the place of a file, whole or not at all. One that was not
// there is its owner's alone.
func replaceFile(path string, b []byte) error {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return private.Replace(path, b, 0o600)
	case err != nil:
		return err
	}
	return private.ReplaceLike(path, b, fi)
}

// unlikeShipped gives, of a tool of the catalogue, the contract that ships for nearly its
// definition, and how it differs from that in lines for a person; "" where none does.
type unlikeShipped func(t *gate.Tool) (contract string, lines []string)

func nearest(cat *gate.Catalogue) unlikeShipped {
	drafted := sync.OnceValue(func() draft.Draft { return draft.Policy(cat) })
	return func(t *gate.Tool) (string, []string) {
		for _, s := range drafted().Servers {
			if s.Name != t.Server || s.Contract == nil {
				continue
			}
			for _, c := range s.Contract.Changed {
				if c.Tool == t.Name && !c.New {
					return "contract " + s.Contract.Name + " " + s.Contract.Version, c.Lines
				}
			}
		}
		return "", nil
	}
}

// shut says to an operator why a tool is closed, and what opens it.
func (o *files) shut(t *gate.Tool, near unlikeShipped) string {
	why, look := shutBecause(t, near), o.approve(t.Server+"/"+t.Name)
	switch {
	case t.Reason != writ.NameUnpinned && t.Reason != writ.NameChanged:
		return why
	case look == "":
		return why + "; the built-in policy takes no other definition"
	}
	return why + ". Closed until you look: " + look
}

// shutBecause says why a tool is closed.
func shutBecause(t *gate.Tool, near unlikeShipped) string {
	if t.Reason != writ.NameChanged {
		return cmp.Or(shutFor[t.Reason], string(t.Reason))
	}
	unlike := ""
	if of, lines := near(t); of != "" {
		unlike = ", unlike " + of + " (" + few(each(lines, func(l string) string { return cli.OneLine(l, 200) }), 6) + ")"
	}
	unruled := "" // they may be what is new
	if names := unnamed(t); len(names) > 0 {
		unruled = ", with arguments that its contract does not name: " + few(names, 6)
	}
	return "changed since you approved it" + unruled + unlike
}

// shutFor says in words for what else it is.
var shutFor = map[writ.Reason]string{
	writ.NameForbidden:     "no contract in the policy",
	writ.NameUnpinned:      "nobody has approved its definition yet",
	writ.PolicyClosed:      "the policy says closed",
	writ.PolicyMisdeclared: "its definition says that something leaves, and its contract that nothing does",
	writ.SchemaUnusable:    "its schema cannot be used",
	writ.NameAmbiguous:     "another tool has that name, or one that looks like it",
}

// unnamed are the arguments of an act that its contract has no word of.
func unnamed(t *gate.Tool) (names []string) {
	if t.Contract == nil || !t.Contract.Effect.Gated() {
		return nil
	}
	for name := range t.InputSchema().Get("properties").Members() {
		if !slices.ContainsFunc(t.Contract.Args, func(a policy.ArgRule) bool {
			return len(a.At.Tokens) == 0 || a.At.Tokens[0] == name || a.At.Tokens[0] == "*"
		}) {
			names = append(names, cli.OneLine(name, 40))
		}
	}
	return names
}

// few are names in one line, of many the first.
func few(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// failed are the servers of a gateway that are not there, a sentence each.
func (o *files) failed(g *gateway.Gateway) (lines []string) {
	down := g.Failed()
	for _, name := range slices.Sorted(maps.Keys(down)) {
		lines = append(lines, fmt.Sprintf("server %s cannot be reached: %s%s", cli.Printable(name), cli.OneLine(down[name].Error(), 200), lastWords(down[name], name, o.servers)))
	}
	return lines
}

// approve is the command that shows the definition of a tool, or of a server's, and writes its pin,
// as it can be typed; "" for the built-in policy, which nothing is written to.
func (o *files) approve(id string) string {
	switch command := "writ tools approve " + private.Quote(id) + o.meant(); {
	case o.file == "":
		return ""
	case o.config == "": // the server's arguments may be secrets
		return command + " --name " + o.servers[0].Name + " -- COMMAND"
	default:
		return command
	}
}

// findings are what the live definitions say against the policy, without the tools that
// nobody opened: the contracts that do not fit, and those that no tool has.
func (o *files) findings(g *gateway.Gateway) (out []gate.Finding) {
	cat, all := g.Catalogue()
	near := nearest(cat)
	for _, f := range all {
		t := cat.Lookup(f.Server, f.Tool)
		switch {
		case t != nil && t.Contract == nil:
		case t != nil && f.Reason != "" && f.Reason == t.Reason && f.Reason != writ.PolicyMisdeclared: // which says by what
			f.Message, f.Hint = o.shut(t, near), ""
			out = append(out, f)
		default:
			out = append(out, f)
		}
	}
	return out
}

// tell says once, when the servers of a gateway have answered, what an operator has to
// know of them: who is not there and what it said last, and what does not fit the policy.
// Of a gateway that shares its client's session with others, the policy is theirs too.
func (o *files) tell(w io.Writer, g *gateway.Gateway) {
	for _, line := range o.failed(g) {
		fmt.Fprintf(w, "writ: %s\n", line)
	}
	for _, f := range o.findings(g) {
		// That pins are optional is what the operator chose; writ check --live says it.
		if chosen := f.Reason == "" && strings.HasPrefix(f.Hint, "writ tools approve"); chosen {
			continue
		}
		if !o.shares || slices.ContainsFunc(o.servers, func(c upstream.Config) bool { return c.Name == f.Server }) {
			fmt.Fprintf(w, "writ: %s\n", oneFinding(f))
		}
	}
	cat, _ := g.Catalogue()
	shows := map[string]bool{}
	for _, t := range cat.Tools() {
		shows[t.Server] = shows[t.Server] || t.State == gate.Open
	}
	for _, server := range slices.Sorted(maps.Keys(shows)) {
		when(w, !shows[server], "writ: %s: none of its tools is open, and clients see none; %s says why\n", cli.Printable(server), cli.Printable(toolsOf(o.config)))
	}
}

// oneFinding is a finding in one line.
func oneFinding(f gate.Finding) string {
	s := cli.Printable(f.Server)
	if f.Tool != "" {
		s += "/" + cli.Printable(f.Tool)
	}
	if s += ": " + cli.Printable(f.Message); f.Hint != "" {
		s += "; " + cli.Printable(f.Hint)
	}
	return s
}
