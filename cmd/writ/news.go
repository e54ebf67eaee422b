package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/policy"
)

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
	switch t.Reason {
	case writ.NameForbidden:
		return "no contract in the policy"
	case writ.NameUnpinned:
		return "nobody has approved its definition yet"
	case writ.NameChanged:
		unlike := ""
		if of, lines := near(t); of != "" {
			short := make([]string, len(lines))
			for i, l := range lines {
				short[i] = cli.OneLine(l, 200)
			}
			unlike = ", unlike " + of + " (" + few(short, 6) + ")"
		}
		return "changed since you approved it" + unruled(t) + unlike
	case writ.PolicyClosed:
		return "the policy says closed"
	case writ.PolicyMisdeclared:
		return "its definition says that something leaves, and its contract that nothing does"
	case writ.SchemaUnusable:
		return "its schema cannot be used"
	case writ.NameAmbiguous:
		return "another tool has that name, or one that looks like it"
	}
	return string(t.Reason)
}

// unruled says which arguments of an act its contract has no word of: where its definition
// changed, they may be what is new.
func unruled(t *gate.Tool) string {
	names := unnamed(t)
	if len(names) == 0 {
		return ""
	}
	return ", with arguments that its contract does not name: " + few(names, 6)
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
		when(w, !shows[server], "writ: %s: none of its tools is open, and clients see none; writ tools says why\n", cli.Printable(server))
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
