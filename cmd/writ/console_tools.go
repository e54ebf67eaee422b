package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/console"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/learn"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// inForce are the files that a gateway which runs has in force.
func (o *files) inForce(ctx context.Context) (*files, error) {
	select {
	case o.loading <- struct{}{}: // it is not reading them anew
		defer func() { <-o.loading }()
		return o.now, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// shownServers are the servers of a gateway with their tools, for the console.
func (o *files) shownServers(ctx context.Context, g *gateway.Gateway) ([]console.Server, error) {
	now, err := o.inForce(ctx)
	if err != nil {
		return nil, err
	}
	cat, _ := g.Catalogue()
	down := g.Failed()
	var out []console.Server
	at := func(name string) *console.Server {
		i := slices.IndexFunc(out, func(s console.Server) bool { return s.Name == name })
		if i < 0 {
			i = len(out)
			reached := "within Writ"
			if now.host != nil && slices.ContainsFunc(now.host.Definitions(), func(d gate.Definition) bool { return d.Server == name }) {
				reached = "the client's own tools, told of by its hooks"
			}
			out = append(out, console.Server{Name: name, Reached: reached})
		}
		return &out[i]
	}
	for i := range now.servers {
		s := at(now.servers[i].Name)
		if s.Reached = reached(&now.servers[i]); down[s.Name] != nil {
			s.Fault = cli.OneLine(down[s.Name].Error(), 200) + lastWords(down[s.Name], s.Name, now.servers)
		}
	}
	near := nearest(cat)
	for _, t := range cat.Tools() {
		if t.Method == policy.CallTool {
			s := at(t.Server)
			s.Tools = append(s.Tools, now.shownTool(t, near))
		}
	}
	for _, f := range now.findings(g) {
		// Why a tool is closed stands beside it.
		if t := cat.Lookup(f.Server, f.Tool); f.Server != "" && (t == nil || f.Reason == "" || f.Reason != t.Reason) {
			s := at(f.Server)
			s.Notes = append(s.Notes, oneFinding(f))
		}
	}
	return out, nil
}

// reached says how a server is, without what may be a secret: its arguments and where at its
// host it is.
func reached(s *upstream.Config) string {
	if u, err := url.Parse(s.URL); s.URL != "" && err == nil {
		return "over HTTP at " + u.Scheme + "://" + u.Host
	}
	if len(s.Command) == 0 {
		return "over HTTP"
	}
	out := "over stdio, started as " + filepath.Base(s.Command[0])
	if n := len(s.Command) - 1; n > 0 {
		out += " with " + cli.Number(n, "argument", "arguments")
	}
	return out
}

func (o *files) shownTool(t *gate.Tool, near unlikeShipped) console.Tool {
	line := o.toolLineOf(t, near)
	why := ""
	if t.State != gate.Open { // what opens it stands on its page
		why = shutBecause(t, near)
	}
	out := console.Tool{ID: t.Server + "/" + t.Name, Public: t.Public, State: line.State, Why: why, Effect: line.Effect, Pin: "no contract"}
	switch c := t.Contract; {
	case c == nil:
	case t.Server == policy.OwnServer: // Writ's own
		out.Pin = "its own"
	case c.Pin == "":
		out.Pin = "unpinned"
	case c.Pin != t.Pin:
		out.Pin = "changed"
	default:
		out.Pin = "pinned"
	}
	return out
}

// shownContract is all there is to say of one tool, nil where the catalogue has none of that id.
func (o *files) shownContract(ctx context.Context, g *gateway.Gateway, id string) (*console.Contract, error) {
	now, err := o.inForce(ctx)
	if err != nil {
		return nil, err
	}
	cat, _ := g.Catalogue()
	out := now.contractOf(cat, id)
	if out == nil {
		return nil, nil
	}
	// What was approved says more than what a contract that ships was made of.
	server, name, _ := strings.Cut(id, "/")
	t := cat.Lookup(server, name)
	was, err := o.wasApproved(ctx, t)
	if was != nil {
		out.Of, out.Unlike, out.Lines = "you approved", draft.Unlike(was, t.Raw), cli.Diff(indented(was, ""), out.Definition)
	}
	return out, err
}

func (o *files) contractOf(cat *gate.Catalogue, id string) *console.Contract {
	server, name, _ := strings.Cut(id, "/")
	t := cat.Lookup(server, name)
	if t == nil || t.Method != policy.CallTool {
		return nil
	}
	near := nearest(cat)
	out := &console.Contract{Tool: o.shownTool(t, near), Now: t.Pin, Definition: indented(t.Raw, ""), Unnamed: unnamed(t)}
	c := t.Contract
	if c == nil {
		out.Drafted = draftedLines(cat, t)
		return out
	}
	if o.policy.Contracts[id] == c {
		out.Line = c.Line
	}
	if out.Approved = c.Pin; out.Pin == "changed" || out.Pin == "unpinned" {
		if approve := o.approve(id); approve != "" {
			out.Approve = []string{approve, "writ reload --state " + private.Quote(o.state)}
		}
		if out.Of, out.Unlike = near(t); out.Of != "" {
			out.Of += " was made of"
		}
	}
	for i := range c.Args {
		r := argumentRule(&c.Args[i])
		if out.Line > 0 {
			r.Line = c.Args[i].Line
		}
		out.Arguments = append(out.Arguments, r)
	}
	for i := range c.Outputs {
		out.Outputs = append(out.Outputs, outputRule(&c.Outputs[i]))
	}
	for _, k := range c.Cases {
		out.More += len(k.Values)
	}
	return out
}

// lately is the policy in force, what was recorded lately, and the command by which a person
// keeps what is learned of it, "" where there is no file.
func (o *files) lately(ctx context.Context) (p *policy.Policy, sessions []*learn.Session, command string, err error) {
	now, err := o.inForce(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	sessions, _, err = recorded(ctx, o.state, o.store, time.Now().Add(-lookedAt), mostSessions)
	if o.file != "" {
		command = "writ learn" + o.meant()
	}
	return now.policy, sessions, command, err
}

// meant are the flags of a command that say which policy and state directory are those of the
// gateway; the built-in policy has none.
func (o *files) meant() string {
	where := " --state " + private.Quote(o.state)
	switch {
	case o.config != "":
		return " --config " + private.Quote(o.config) + where
	case o.file != "":
		return " --policy " + private.Quote(o.policyFile()) + where
	}
	return where
}

// keeping are the lines of an edge, and what has to be true for them.
func keeping(edge console.Edge, lines []policy.Grown) console.Edge {
	for _, g := range lines {
		edge.Keep = append(edge.Keep, approval.Line(g))
		can := approval.WhoCan([]policy.Grown{g})
		if len(can) == 0 {
			edge.Asks = []string{"From now on for this field from this source, without a question? That is all there is to say yes to."}
		}
		for _, can := range can {
			only := "Our own people alone can: else it is no line to keep."
			if g.Writes == policy.WritesServer {
				only = "Nobody can, since the server itself gives it: else it is no line to keep."
			}
			if asks := "Who can " + can + "? " + only; !slices.Contains(edge.Asks, asks) {
				edge.Asks = append(edge.Asks, asks)
			}
		}
	}
	return edge
}

// friction are the tools that would be asked about most, each with what would end that.
func (o *files) friction(ctx context.Context) (out []console.Friction, command string, err error) {
	p, sessions, command, err := o.lately(ctx)
	if err != nil {
		return nil, "", err
	}
	r := learn.From(p, sessions)
	for _, t := range r.Tools {
		if t.Asked == 0 || len(out) == mostAsked || ctx.Err() != nil {
			continue
		}
		a := wouldEnd(p, sessions, r, askedMost{Tool: t.Tool, Asked: t.Asked})
		out = append(out, console.Friction{Tool: a.Tool, Asked: a.Asked, With: a.With, Edge: keeping(console.Edge{Says: each(a.Lines, approval.Sentence)}, a.Lines)})
	}
	return out, command, ctx.Err()
}

// learned are the fields from which recorded calls of a tool took their arguments, and that
// writ learn would ask about.
func (o *files) learned(ctx context.Context, id string) (*console.Learned, error) {
	p, sessions, command, err := o.lately(ctx)
	if err != nil {
		return nil, err
	}
	r := learn.From(p, sessions)
	out := &console.Learned{Learn: command, Redefined: r.Redefined[id]}
	for i := range r.Fields {
		f := &r.Fields[i]
		if !slices.ContainsFunc(f.Feeds, func(e learn.Edge) bool { return e.Tool == id }) {
			continue
		}
		var b bytes.Buffer
		printField(&b, f)
		out.Edges = append(out.Edges, keeping(console.Edge{Says: strings.Split(strings.TrimSpace(b.String()), "\n")}, f.Lines()))
	}
	return out, nil
}

// draftedLines are those of one tool in what writ init drafts of its server.
func draftedLines(cat *gate.Catalogue, t *gate.Tool) []byte {
	d := draft.Policy(cat)
	d.Servers = slices.DeleteFunc(d.Servers, func(s draft.Server) bool { return s.Name != t.Server })
	text := d.Text()
	p, _ := policy.Parse("draft", []byte(text))
	if p == nil || p.Contracts[t.Server+"/"+t.Name] == nil {
		return nil
	}
	var out []byte
	for i, line := range strings.SplitAfter(text, "\n")[p.Contracts[t.Server+"/"+t.Name].Line-1:] {
		if i > 0 && !strings.HasPrefix(line, "   ") {
			break
		}
		out = append(out, line...)
	}
	return bytes.TrimRight(out, "\n")
}

// shownPolicy is the policy in force, with what writ check finds in it, live.
func (o *files) shownPolicy(ctx context.Context, g *gateway.Gateway) (*console.Policy, error) {
	now, err := o.inForce(ctx)
	if err != nil {
		return nil, err
	}
	p := now.policy
	out := &console.Policy{File: now.file, Digest: fmt.Sprintf("%x", p.Digest), Source: p.Source}
	for _, w := range draft.Unreviewed(p.Source, p.Warnings) {
		out.Findings = append(out.Findings, console.Finding{Line: w.Line, Text: policy.Fault{Message: w.Message, Hint: w.Hint}.String()})
	}
	for _, f := range now.findings(g) {
		if f.Line > 0 {
			out.Findings = append(out.Findings, console.Finding{Line: f.Line, Text: oneFinding(f)})
		}
	}
	u := now.differs()
	for _, k := range p.Grown {
		out.Kept = append(out.Kept, console.Kept{Words: approval.Sentence(k), By: k.By, At: k.At, Taken: u.disk != nil && !slices.ContainsFunc(u.disk.Grown, k.Same)})
	}
	out.Differs, out.Unlike = strings.ToUpper(u.says[:min(1, len(u.says))])+u.says[min(1, len(u.says)):], u.lines
	if u.disk != nil && u.says != "" {
		out.Disk = u.disk.Source
	}
	out.Takes = []string{"writ grown list" + now.meant(), "writ grown remove" + now.meant() + " NUMBER"}
	return out, nil
}

// judgedBy is writ audit replay by a policy's text, for the console: what was kept from answers
// stands behind it, where it has no such lines of its own.
func (o *files) judgedBy(ctx context.Context, text []byte, progress func(done, of int)) (*console.Replayed, error) {
	now, err := o.inForce(ctx)
	if err != nil {
		return nil, err
	}
	out := &console.Replayed{}
	p, faults := policy.Parse("", text)
	for _, f := range faults {
		out.Faults = append(out.Faults, console.Fault{Line: f.Line, Column: f.Column, Text: policy.Fault{Message: f.Message, Hint: f.Hint}.String()})
	}
	if p == nil {
		return out, nil
	}
	for _, w := range draft.Unreviewed(p.Source, p.Warnings) {
		out.Notes = append(out.Notes, fmt.Sprintf("line %d, column %d: %s", w.Line, w.Column, policy.Fault{Message: w.Message, Hint: w.Hint}))
	}
	if kept := now.policy.Grown; len(kept) > 0 && len(p.Grown) == 0 {
		if with, ok := p.With(kept); ok {
			p = with
			out.Notes = append(out.Notes, "behind it: "+cli.Number(len(kept), "line", "lines")+" kept from answers")
		} else {
			out.Notes = append(out.Notes, "what was kept from answers does not fit it, and was left out")
		}
	}
	sessions, left, err := recorded(ctx, o.state, o.store, time.Time{}, mostSessions)
	if err != nil {
		return nil, err
	}
	all := replayed{&learn.Replayed{}, left}
	for i := range sessions {
		if progress(i+1, len(sessions)); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all.Add(learn.Replay(p, sessions[i:i+1]))
	}
	verdicts := func(n learn.Count) console.Verdicts {
		return console.Verdicts{Passed: n.Passed, Asked: n.Asked, Refused: n.Refused}
	}
	out.Calls, out.Redefined, out.Sessions, out.Before, out.After = all.Calls, all.Redefined, all.Sessions, verdicts(all.Before), verdicts(all.After)
	word := map[learn.Verdict]string{learn.Passed: "accepted", learn.Waits: "asked", learn.Refused: "refused"}
	for _, d := range all.Otherwise {
		out.Otherwise = append(out.Otherwise, console.Difference{Session: d.Session, N: d.Number, Tool: cmp.Or(d.Tool, "(unknown tool)"),
			Was: word[d.Before.Verdict], Becomes: word[d.After.Verdict], WasFor: string(d.Before.Reason), IsFor: string(d.After.Reason), Follows: d.Follows})
	}
	var b bytes.Buffer
	all.Redefined = 0 // the page says it
	all.printNotes(&b)
	out.Notes = append(out.Notes, strings.FieldsFunc(b.String(), func(r rune) bool { return r == '\n' })...)
	return out, nil
}

// argumentRule says in words what a line of the policy says of an argument.
func argumentRule(a *policy.ArgRule) console.Rule {
	r := console.Rule{At: a.At.Source, Is: a.Role.String()}
	for i := range a.From {
		if from := source(&a.From[i], a.Collection); from != "" {
			r.Says = append(r.Says, from)
		}
	}
	say := func(is bool, words string, args ...any) {
		if is {
			r.Says = append(r.Says, fmt.Sprintf(words, args...))
		}
	}
	say(a.Local, "the agent's own words: they stay here")
	say(a.Composed, "the agent's own words, to whom the user named")
	say(a.Type != "", "compared as %s", a.Type)
	say(a.Max != "", "at most %s", a.Max)
	say(len(a.Owner) > 0 || a.OwnerUser, "only of a record whose owner the policy or the user named")
	return r
}

// source says in words what vouches for an argument.
func source(s *policy.Source, collection string) string {
	ordered := ""
	if len(s.Phrases) > 0 {
		ordered = ", where the user orders it"
	}
	switch s.Kind {
	case policy.FromOutput:
		return returned(s, collection) + ordered
	case policy.FromConst:
		if len(s.Const) == 0 {
			return ""
		}
		values := few(each(s.Const, func(v []byte) string { return cli.OneLine(string(v), 60) }), 6)
		if s.Grown {
			return "kept from now on: " + values
		}
		return "one of " + values + ordered
	case policy.FromDerived:
		return cmp.Or(derived[s.Op], "a path joined of what passes")
	case policy.FromSaidBy:
		return "what is of one whom the user named, by " + s.Server + "/" + s.Tool + " " + s.At.Source
	case policy.FromNamed:
		return "what is listed in the record that the user named, by " + s.Server + "/" + s.Tool + " " + s.At.Source
	}
	return map[policy.SourceKind]string{policy.FromUser: "what the user typed", policy.FromCatalog: "what its schema lists",
		policy.FromSeen: "what stood whole in any result", policy.FromApproval: "what a person says yes to"}[s.Kind]
}

// derived says of what is made of other values how.
var derived = map[string]string{
	policy.Due:       "what is due, of which the server takes no other",
	policy.Element:   "what is called by the user's words on a page that he named",
	policy.FreshName: "a new name in a directory that was listed",
}

func returned(s *policy.Source, collection string) string {
	out := "what a tool returned"
	if s.Server != "" {
		out = "what " + s.Server + "/" + s.Tool + " returned"
	}
	if s.HasAt {
		out += " at " + s.At.Source
	}
	if s.InText {
		out += ", in its text"
	}
	switch {
	case s.Minted:
		out += ", which the server alone gives"
	case s.Ours:
		out += ", where our own people alone write"
	case collection != "" && !s.HasAt:
		out += " as " + collection
	}
	return out
}

// outputRule says in words what a line of the policy says of an output.
func outputRule(p *provenance.OutputRule) console.Rule {
	r := console.Rule{At: p.At.Source, Is: p.Label.String()}
	if p.InText {
		if r.At = "its text"; p.Pointer.Source != "" {
			r.At += " " + p.Pointer.Source
		}
	}
	for _, s := range []struct {
		is    bool
		words string
	}{
		{p.Collection != "", p.Collection}, {p.Type != "", "compared as " + string(p.Type)}, {p.Authoritative, "the server's own list"}, {p.Keys, "the keys there"},
		{p.Extract == provenance.ExtractLines, "by lines"}, {p.Extract == provenance.ExtractJSON, "as JSON"}, {p.Extract == provenance.ExtractTree, "as a tree of names"},
		{p.Secret, "a secret"}, {p.Creates, "newly made"}, {p.Lifetime > 0, "for one act, within " + p.Lifetime.String()},
	} {
		if s.is {
			r.Says = append(r.Says, s.words)
		}
	}
	return r
}
