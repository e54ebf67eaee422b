package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/hook"
	"github.com/writ-project/writ/internal/learn"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/policy"
)

type shownStatus struct {
	Clients  []clientStatus  `json:"clients"`
	Gateways []gatewayStatus `json:"gateways"`
	Asked    []askedMost     `json:"asked_most"`
	// Unsettled is how many acts there are of which no record says whether they happened,
	// and that are not under way.
	Unsettled int        `json:"unsettled"`
	State     *stateSize `json:"state,omitempty"` // nil where there is no state directory
	Notes     []string   `json:"notes,omitempty"` // what could not be looked at
	blind     bool       // the gateways could not
}

// clientStatus is one file of a client.
type clientStatus struct {
	Client  string          `json:"client"`
	File    string          `json:"file"`
	Config  string          `json:"config,omitempty"`
	Fault   string          `json:"fault,omitempty"`
	Servers []connectServer `json:"servers"`
	// Hooks says of a connected client that can have them whether it has: installed or
	// missing.
	Hooks string   `json:"hooks,omitempty"`
	Notes []string `json:"notes,omitempty"` // what settings beside its file take from that
	title string
	rank  int // as a place's
}

// gatewayStatus is what a gateway that runs says of itself over the local door.
type gatewayStatus struct {
	URL     string `json:"url,omitempty"` // where MCP clients reach it, "" for one over stdio
	PID     int    `json:"pid"`
	Version string `json:"version"`
	Config  string `json:"config,omitempty"` // its file, "" for none
	Policy  string `json:"policy,omitempty"` // its file, absolute, "" for the built-in example's
	// Differs says how that file is otherwise than what is in force, "" where it is the same.
	Differs string `json:"differs,omitempty"`
	// UnderWay are the acts that have been decided and have not ended.
	UnderWay []string `json:"under_way"`
	Faults   []string `json:"faults"` // the servers that are not there, a sentence each
	// Changed are the tools that closed since their definition is not the one that was approved.
	Changed []string `json:"changed,omitempty"`
	// Unheard is the host that was to tell of what its user types and what it does itself,
	// where its client has called tools and no hook of it has told anything.
	Unheard string `json:"unheard,omitempty"`
	// Near is what of its bounds is nearly used up, and Retention what left its log by itself.
	Near      []gateway.Near    `json:"near,omitempty"`
	Retention *gateway.Retained `json:"retention,omitempty"`
	// Witnesses are who keeps and cosigns the head of its log, and what they said last.
	Witnesses []witnessStatus `json:"witnesses,omitempty"`
	// Embeddings say how the memory's search by meaning does, where there is one.
	Embeddings *memoryserver.NearnessStatus `json:"embeddings,omitempty"`
}

// askedMost is a tool that a person is asked about, and what would end that.
type askedMost struct {
	Tool   string `json:"tool"`   // server/tool
	Config string `json:"config"` // whose policy asks
	Asked  int    `json:"asked"`
	// Lines are the field that would save most questions of it, kept from now on; With is
	// how often it would be asked then, and Trusts who would be believed: whoever can do
	// that. Without lines nothing that is kept would save one.
	Lines  []policy.Grown `json:"lines,omitempty"`
	With   int            `json:"asked_with"`
	Trusts []string       `json:"trusts,omitempty"`
}

// lookedAt is what writ status looks back, and mostAsked how many tools it names.
const (
	lookedAt  = 7 * 24 * time.Hour
	mostAsked = 2
)

func statusCommand() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "status", Short: "Show the clients, the gateways that run, and what was asked most", Args: cli.NoArgs,
		Long: "Show the clients of this account, with what they have for the current directory, which of their\n" +
			"servers run behind Writ there and whether what they do themselves is judged too; of the gateways that run on the state directory their address, process,\n" +
			"configuration file and version, the servers that are not there, with what they said last, and how\n" +
			"the memory's search by meaning does; how many acts there are of which no record says whether they\n" +
			"happened (writ audit show --unsettled); and the two tools that would be asked about most, of what\n" +
			"was recorded in the last 7 days, each with what would end that and who would be trusted then. The\n" +
			"policy is that of --config, else of each client that is connected. Nothing is changed.",
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := f.status(c.Context(), nil)
			if err != nil {
				return err
			}
			return f.show(c, all, all.print)
		},
	}, "config", "state", "json")
}

// status looks at everything; what cannot be looked at is a note. What would be asked is by the
// files, and by what is in force where a gateway that runs looks at itself.
func (f *flags) status(ctx context.Context, now *files) (*shownStatus, error) {
	places, err := foundPlaces()
	if err != nil {
		return nil, err
	}
	out := &shownStatus{Clients: []clientStatus{}, Gateways: []gatewayStatus{}, Asked: []askedMost{}}
	var configs []string
	for _, p := range places {
		s := p.status()
		if out.Clients = append(out.Clients, s); s.Config != "" {
			configs = append(configs, s.Config)
		}
	}
	out.shadowed()
	for i := range out.Clients { // it may have several files, and its hooks stand in one
		c := &out.Clients[i]
		if c.Hooks == hooksMissing && slices.ContainsFunc(out.Clients, func(o clientStatus) bool { return o.Client == c.Client && o.Hooks == hooksInstalled }) {
			c.Hooks = hooksInstalled
		}
	}
	if f.config != "" {
		configs = []string{f.config}
	}
	dir, err := stateThere(f.state)
	if err != nil {
		note := "Which gateways run is not known: " + err.Error()
		if e, ok := errors.AsType[*cli.Exit](err); ok && e.Hint != "" {
			note += "; " + e.Hint
		}
		out.blind, out.Notes = true, append(out.Notes, note)
	} else if dir != "" {
		f.lookIn(ctx, out, dir)
	}
	if dir != "" && len(configs) > 0 {
		if out.Asked, err = mostAskedOf(ctx, dir, configs, now); err != nil {
			out.Asked = []askedMost{}
			out.Notes = append(out.Notes, "what was asked most is not known: "+err.Error())
		}
	}
	return out, nil
}

// shadowed says of a server that a client does not run in the current directory, since what it has for
// that has another one of its name.
func (all *shownStatus) shadowed() {
	for _, s := range all.Clients {
		for i, line := range s.Servers {
			for _, o := range all.Clients {
				if s.rank > 0 && o.rank > s.rank && o.Client == s.Client && slices.ContainsFunc(o.Servers, func(l connectServer) bool { return l.Name == line.Name }) {
					s.Servers[i].how, s.Servers[i].Left = "not here", o.title+" has one of its name, which is run instead: "+o.File
				}
			}
		}
	}
}

// lookIn looks at a state directory, and at the gateways that run on it.
func (f *flags) lookIn(ctx context.Context, out *shownStatus, dir string) {
	out.State = sizeOf(dir)
	var acts []story.Line
	st, err := openForReading(dir)
	if err == nil {
		acts, err = unsettled(ctx, st, "")
		st.Close()
	}
	if err != nil {
		out.Notes = append(out.Notes, "which acts have an unknown outcome is not known: "+err.Error())
	}
	// After that, so that an act that begins meanwhile is none of them.
	var mute []string
	out.Gateways, mute = f.running(ctx)
	out.Notes = append(out.Notes, mute...)
	markUnderWay(acts, out.Gateways)
	for _, a := range acts {
		if !a.UnderWay {
			out.Unsettled++
		}
	}
}

// running are the gateways that run on the state directory, as they say themselves; mute
// says of which that cannot be known.
func (f *flags) running(ctx context.Context) (all []gatewayStatus, mute []string) {
	all = []gatewayStatus{}
	at, doors, err := f.reach(false)
	if err != nil {
		mute = append(mute, err.Error())
	}
	for i, door := range doors {
		g, err := statusAt(ctx, door)
		if err != nil {
			mute = append(mute, err.Error())
			continue
		}
		g.URL = at[i].URL
		all = append(all, g)
	}
	return all, mute
}

func statusAt(ctx context.Context, door *http.Client) (g gatewayStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = exchangeOr(ctx, door, "GET /status", "", nil, 1<<20, &g, errors.New("a gateway runs and does not answer"), errors.New("a gateway's answer cannot be read"))
	return g, err
}

// statusHandler is GET /status of the local door. client is the one client of a gateway
// over stdio, nil where it has others.
func (o *files) statusHandler(g *gateway.Gateway, client *oneClient) http.HandlerFunc {
	return replies(func(_ http.ResponseWriter, r *http.Request) (int, any) {
		s := gatewayStatus{PID: os.Getpid(), Version: readBuildInfo().String(), Config: o.config, UnderWay: g.Acting(), Near: g.Near()}
		now, err := o.inForce(r.Context())
		if err != nil {
			now = o
		}
		if s.Faults = append([]string{}, now.failed(g)...); err == nil {
			s.Policy = now.policyFile()
			s.Differs = now.differs().says
		}
		cat, _ := g.Catalogue()
		for _, t := range cat.Tools() {
			if t.Reason == writ.NameChanged {
				s.Changed = append(s.Changed, cli.Printable(t.Server+"/"+t.Name))
			}
		}
		s.Witnesses = o.witnesses.status()
		if o.retainer != nil {
			s.Retention = new(o.retainer.Status())
		}
		if o.keeps != nil && o.keeps.Nearness() != nil {
			s.Embeddings = new(o.keeps.Nearness().Status())
		}
		if o.host != nil && client.unheard(r.Context()) {
			s.Unheard = o.host.Name
		}
		return http.StatusOK, s
	})
}

// toolsOf is the command that lists the closed tools of a gateway too.
func toolsOf(config string) string {
	if config == "" {
		return "writ tools"
	}
	return "writ tools --config " + private.Quote(config)
}

// mostAskedOf has what was recorded lately judged again by the policies.
func mostAskedOf(ctx context.Context, dir string, configs []string, now *files) (out []askedMost, err error) {
	st, err := openForReading(dir)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	sessions, _, err := recorded(ctx, dir, st, time.Now().Add(-lookedAt), mostSessions)
	if err != nil {
		return nil, err
	}
	type asked struct {
		askedMost
		p *policy.Policy
		r *learn.Report
	}
	var all []asked
	for _, file := range configs {
		var p *policy.Policy
		if abs, err := filepath.Abs(file); now != nil && err == nil && abs == now.config {
			p = now.policy
		} else if _, p, err = config.LoadOnly(file, ""); err != nil {
			return nil, fmt.Errorf("%s cannot be used: writ check --config %s", file, file)
		}
		r := learn.From(p, sessions)
		for _, t := range r.Tools {
			if t.Asked > 0 {
				all = append(all, asked{askedMost{Tool: t.Tool, Config: file, Asked: t.Asked}, p, r})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b asked) int { return b.Asked - a.Asked })
	out = []askedMost{}
	for _, a := range all { // a server that several clients have has a policy in each
		if len(out) < mostAsked && !slices.ContainsFunc(out, func(o askedMost) bool { return o.Tool == a.Tool }) {
			out = append(out, wouldEnd(a.p, sessions, a.r, a.askedMost))
		}
	}
	return out, nil
}

// wouldEnd finds the field that saves most of the questions of a tool: the first that
// feeds it, as they are sorted by that. How many it saves is tried.
func wouldEnd(p *policy.Policy, sessions []*learn.Session, r *learn.Report, a askedMost) askedMost {
	a.With = a.Asked
	for i := range r.Fields {
		f := &r.Fields[i]
		if !slices.ContainsFunc(f.Feeds, func(e learn.Edge) bool { return e.Tool == a.Tool }) {
			continue
		}
		with, ok := p.With(f.Lines())
		if !ok {
			continue
		}
		then := learn.From(with, sessions).Tools
		n := 0
		if j := slices.IndexFunc(then, func(t learn.Tool) bool { return t.Tool == a.Tool }); j >= 0 {
			n = then[j].Asked
		}
		if n < a.With {
			a.Lines, a.With, a.Trusts = f.Lines(), n, approval.WhoCan(f.Lines())
			break
		}
	}
	return a
}

func (all *shownStatus) print(w io.Writer) {
	for _, s := range all.Clients {
		fmt.Fprintf(w, "%s: %s\n", s.title, cli.Printable(s.File))
		when(w, s.Fault != "", "  %s\n", cli.OneLine(s.Fault, 300))
		for _, line := range s.Servers {
			fmt.Fprintf(w, "  %-16s %-12s", cli.OneLine(line.Name, 60), line.how)
			when(w, line.Left != "", "  %s", cli.OneLine(line.Left, 400))
			fmt.Fprintln(w)
		}
		when(w, s.Hooks == hooksInstalled, "  what it does itself is judged too, and what you type is on record\n")
		when(w, s.Hooks == hooksMissing, "  what it does itself is not judged, and what you type is not on record: writ connect %s adds the hooks\n", cli.Printable(s.Client))
		for _, note := range s.Notes {
			fmt.Fprintf(w, "  %s\n", note)
		}
	}
	when(w, !all.blind, "Gateways that run now: %d\n", len(all.Gateways))
	said := map[string]bool{} // a client has a gateway for each server
	for _, g := range all.Gateways {
		at, by := "over stdio", cmp.Or(g.Config, g.Policy, "the built-in example")
		if g.URL != "" {
			at = g.URL + "/mcp"
		}
		fmt.Fprintf(w, "  %s, pid %d, %s, %s\n", cli.OneLine(at, 200), g.PID, cli.OneLine(by, 300), cli.OneLine(g.Version, 200))
		when(w, g.Differs != "", "    %s\n", cli.OneLine(g.Differs, 300))
		when(w, len(g.UnderWay) > 0, "    under way: %s\n", cli.OneLine(strings.Join(g.UnderWay, ", "), 600))
		when(w, g.Unheard != "" && !said[g.Unheard], "  %s calls tools here and its hooks tell nothing: what it does itself is not judged, and what you type vouches for nothing. Start it anew; if that does not help, writ connect %[1]s\n", cli.OneLine(g.Unheard, 60))
		said[g.Unheard] = true
		for _, fault := range g.Faults {
			fmt.Fprintf(w, "  %s\n", cli.OneLine(fault, 600))
		}
		when(w, len(g.Changed) > 0, "  closed, since what their server says of them changed: %s: %s says more\n", cli.OneLine(few(g.Changed, 6), 600), cli.Printable(toolsOf(g.Config)))
		printNear(w, g.Near)
		printRetained(w, g.Retention)
		printWitnesses(w, g.Witnesses)
		if e := g.Embeddings; e != nil {
			fmt.Fprintf(w, "  the memory is searched by meaning: %d texts have a vector, %d wait; of %s %d found by words alone\n", e.Texts, e.Waiting, cli.Number(e.Queries, "query", "queries"), e.Alone)
			when(w, e.Fault != "", "    it failed last: %s\n", cli.OneLine(e.Fault, 300))
		}
	}
	all.State.print(w)
	when(w, all.Unsettled > 0, "%s of which no result says whether they happened: writ audit show --unsettled\n", cli.Number(all.Unsettled, "act", "acts"))
	for i, a := range all.Asked {
		when(w, i == 0, "Asked about most, of what was recorded in the last 7 days:\n")
		fmt.Fprintf(w, "  %s: %s would wait for a person\n", cli.OneLine(a.Tool, 130), cli.Number(a.Asked, "call", "calls"))
		for _, g := range a.Lines {
			theirs(w, "    from now on: ", approval.Sentence(g), 0)
		}
		when(w, len(a.Lines) > 0, "    would leave %d of them", a.With)
		when(w, len(a.Trusts) > 0, ", and trust whoever can %s", strings.Join(a.Trusts, ", or "))
		when(w, len(a.Lines) > 0, "\n    try: writ learn --config %s\n", cli.Printable(a.Config))
		when(w, len(a.Lines) == 0, "    no field of a tool's results would save one of these questions; what else may be kept stands in the question\n")
	}
	for _, n := range all.Notes {
		fmt.Fprintln(w, cli.OneLine(n, 400))
	}
	when(w, len(all.Clients) == 0, "No MCP client was found whose file Writ can change by itself: writ connect --help says how one is connected\n")
}

// foundPlaces are the files of clients that are there: their users' own, those of the project in
// the current directory, and what was connected besides.
func foundPlaces() (out []*place, err error) {
	for _, c := range clients.All {
		out = append(out, placesOf(c)...)
	}
	base, err := keptIn()
	if err != nil {
		return nil, err
	}
	dirs, _ := os.ReadDir(base)
	for _, d := range dirs {
		rec, err := readConnected(filepath.Join(base, d.Name()))
		if err != nil || slices.ContainsFunc(out, func(p *place) bool { return p.dir == filepath.Join(base, d.Name()) }) {
			continue
		}
		p := &place{name: rec.Client, title: "A file", layout: rec.Layout, file: rec.File, dir: filepath.Join(base, d.Name()), given: private.Quote(rec.File)}
		if c := clients.Named(rec.Client); c != nil {
			p.title, p.project = c.Title, true // its own file was found by its name
			if dir, ok := strings.CutSuffix(rec.File, c.Project(string(filepath.Separator))); ok && dir != rec.File {
				p.given = c.Name + " --project " + private.Quote(dir)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// placesOf are the user's own file of a client, with what that has for directories alone, and the
// current project's.
func placesOf(c *clients.Client) (out []*place) {
	here, _ := os.Getwd()
	p, err := findPlace(c.Name, scope{})
	if err == nil {
		p.rank = 1
		out = append(out, p)
		b, _ := p.read()
		for _, dir := range c.Locals(b) {
			if p, err := findPlace(c.Name, scope{local: dir}); err == nil && filepath.IsAbs(dir) {
				if dir == here {
					p.rank = 3
				}
				out = append(out, p)
			}
		}
	}
	if own, err := findPlace(c.Name, scope{project: cmp.Or(here, ".")}); err == nil && (p == nil || p.file != own.file) {
		own.title, own.rank = c.Title+" in "+private.Word(here), 2
		out = append(out, own)
	}
	return out
}

func (p *place) status() clientStatus {
	s := clientStatus{Client: p.name, File: p.file, Servers: []connectServer{}, title: p.title, rank: p.rank}
	rec, err := p.record()
	if err != nil {
		s.Fault = err.Error()
		return s
	}
	if rec != nil {
		s.Config = p.config()
		s.Notes = p.settingsNotes()
		s.Hooks = p.hooksThere(rec)
	}
	var all []clients.Server
	b, err := p.read()
	if err == nil {
		all, err = p.layout.Read(b)
	}
	if err != nil {
		s.Fault = err.Error()
		return s
	}
	for _, v := range all {
		line := connectServer{Name: v.Name, Connected: v.Ours && rec.wrote(&v), Left: v.Left, how: "by itself"}
		connected := false
		if rec != nil {
			line.Server = rec.Servers[v.Name]
			connected = slices.ContainsFunc(rec.Undo, func(u clients.Undo) bool { return u.Name == v.Name })
		}
		switch {
		case line.Connected && gone(v.Command[0]):
			line.Connected, line.how, line.Left = false, "not started", v.Command[0]+" is not there: writ connect "+p.given+" puts this writ in its place"
		case line.Connected:
			line.how, line.Left = "through Writ", ""
		case v.Ours:
			line.how, line.Left = "unknown", strange
		case connected:
			line.Left = "it was connected, and its command was changed since"
		}
		s.Servers = append(s.Servers, line)
	}
	if past := slices.ContainsFunc(s.Servers, func(l connectServer) bool { return l.how == "by itself" }); past && p.rank == 2 {
		s.Notes = append(s.Notes, "these go past Writ: writ connect "+p.given+" puts it in front of them")
	}
	return s
}

// What is said of a client's hooks.
const (
	hooksInstalled = "installed"
	hooksMissing   = "missing"
)

// hooksThere says whether a connected client still has all the hooks that it was given,
// "" for one that can have none.
func (p *place) hooksThere(rec *connected) string {
	if rec.Hooks == nil {
		if p.events == nil || hook.Named(p.name) == nil {
			return ""
		}
		return hooksMissing
	}
	b, err := readClient(rec.Hooks.File)
	if err != nil {
		return hooksMissing
	}
	given := rec.Hooks.Hooks
	if all, err := given.Add(b); err != nil || !bytes.Equal(all, b) {
		return hooksMissing
	}
	return hooksInstalled
}
