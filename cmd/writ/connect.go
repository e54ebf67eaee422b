package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/text"
)

// connectReport is what writ connect and writ disconnect print.
type connectReport struct {
	Client  string          `json:"client"`
	File    string          `json:"file"`
	Link    string          `json:"link,omitempty"` // by which it was found
	Servers []connectServer `json:"servers"`
	Diff    []string        `json:"diff"`
	Written bool            `json:"written"`
	Config  string          `json:"config,omitempty"`
	Policy  string          `json:"policy,omitempty"`
	Backup  string          `json:"backup,omitempty"`
	Hooks   string          `json:"hooks,omitempty"` // the file of what the client runs at events
	Events  []string        `json:"events,omitempty"`
	Notes   []string        `json:"notes,omitempty"`
	Movable string          `json:"movable,omitempty"` // credentials that could be sealed
	Sealed  string          `json:"sealed,omitempty"`  // those that were
}

// connectServer is what became of one server of the client.
type connectServer struct {
	Name      string   `json:"name"`
	Server    string   `json:"server,omitempty"` // as the policy calls it
	Connected bool     `json:"connected"`
	Tools     *int     `json:"tools,omitempty"`
	Contract  string   `json:"contract,omitempty"`    // what holds of its tools
	Stay      []string `json:"credentials,omitempty"` // variables that stay in the client's file
	Args      []string `json:"arguments,omitempty"`   // that look like credentials, and cannot be moved
	Left      string   `json:"left,omitempty"`        // why it was left alone
	how       string   // it runs, to writ status
}

func connectCommand() *cobra.Command {
	var f flags
	var yes, move bool
	c := f.ofClient(&cobra.Command{
		Use:   "connect CLIENT | FILE",
		Short: "Put Writ in front of the servers that a client starts",
		Long: "Put Writ in front of each server that a client starts: its command and arguments go to a\n" +
			"writ.yaml of the client's, and the client starts `writ run` in their place. Names, order,\n" +
			"comments and environment stay as they are, and so do credentials in the environment, unless\n" +
			"you have them sealed there, for `writ run` alone: you are asked, and --yes says nothing to it. The\n" +
			"servers are started once, to draft a policy of their tools. What cannot be put behind Writ\n" +
			"is named and left alone. Where an entry names a Writ that is not there any more, this one takes\n" +
			"its place. Where the client has hooks that are known (claude-code), they are added\n" +
			"to its settings, of a project to those of yours there (.claude/settings.local.json): what you\n" +
			"type is on record, and its own tools are judged too.\n\n" +
			"Clients: " + clientNames() + "; or the path of a file like\n" +
			"mcp.json. The client's file is changed after a look at the change, and a copy of it is\n" +
			"kept; writ disconnect puts it back. Start the client anew afterwards.",
		Example: "  writ connect claude-code\n  writ connect cursor --dry-run\n  writ connect vscode --project .",
	}, &yes, func(c *cobra.Command, p *place) error { return f.connectClient(c, p, yes, move) })
	f.take(c, "state")
	c.Flags().BoolVar(&move, "move-credentials", false, "seal the credentials in the file, without asking for that")
	return c
}

func disconnectCommand() *cobra.Command {
	var f flags
	var yes bool
	return f.ofClient(&cobra.Command{
		Use:   "disconnect CLIENT | FILE",
		Short: "Have a client start its servers itself again",
		Long: "Undo writ connect: each entry that is still as it was written gets its own command back, to\n" +
			"the byte. What was changed since is named and left alone, and so is all else in the file.\n" +
			"writ.yaml and the policy are kept.",
	}, &yes, func(c *cobra.Command, p *place) error { return f.disconnectClient(c, p, yes) })
}

// ofClient is a command that changes the file of a client, and asks unless it is told not
// to: only where what it asks about is seen.
func (f *flags) ofClient(c *cobra.Command, yes *bool, run func(c *cobra.Command, p *place) error) *cobra.Command {
	var of scope
	c.Args = exactly(1, "a client: "+clientNames()+", or the path of its file")
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return strings.Split(clientNames(), ", "), cobra.ShellCompDirectiveDefault
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.json && !*yes && !f.dry {
			return cli.Fail(cli.ExitUsage, "the same command with --dry-run", "with --json nobody is asked: --dry-run or --yes is needed")
		}
		p, err := findPlace(args[0], of)
		if err != nil {
			return err
		}
		return run(c, p)
	}
	c.Flags().StringVar(&of.project, "project", "", "the client's file in the project `DIR`, not the user's own")
	c.Flags().StringVar(&of.local, "local", "", "the servers that the user's own file has for `DIR` alone (claude-code)")
	c.MarkFlagsMutuallyExclusive("project", "local")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "show the change, and start and write nothing")
	c.Flags().BoolVar(yes, "yes", false, "do not ask")
	return f.take(c, "json")
}

func clientNames() string {
	return joined(clients.All, ", ", func(c *clients.Client) string { return c.Name })
}

// connectClient puts Writ in front of the servers of one file.
func (f *flags) connectClient(c *cobra.Command, p *place, yes, move bool) error {
	before, err := p.read()
	if err != nil {
		return err
	}
	w, err := f.wire(p, before)
	if err != nil {
		return err
	}
	rep := w.rep
	moving := w.movable()
	move = move && len(moving) > 0
	if rep.Movable = moving.String(); len(w.probes) == 0 && w.hooks == nil && !move && bytes.Equal(w.base, before) {
		return f.unchanged(c, w, "Nothing to do.")
	}
	var cat *gate.Catalogue
	if !f.dry {
		if cat, err = w.ask(c, f.state, yes); err != nil {
			return err
		}
		if len(w.added) == 0 && (len(w.probes) > 0 || w.hooks == nil) && !move && bytes.Equal(w.base, before) {
			return f.unchanged(c, w, "Nothing was changed: none of the servers that Writ is not in front of can be reached.")
		}
	}
	moving = w.movable() // without those of servers that did not answer
	if rep.Movable = moving.String(); !f.dry && moving.wants(c, move, yes, f.json) {
		if w.base, err = w.sealIn(f, w.base, moving); err != nil {
			return err
		}
	}
	after, undo, err := p.layout.Wrap(w.base, w.entry)
	if err != nil {
		return p.unread(err)
	}
	rep.Diff = p.layout.Diff(before, after)
	if on, err := f.lookAt(c, rep, p, yes); !on {
		return err
	}
	if err := w.write(before, after, undo, cat); err != nil {
		return err
	}
	rep.Written = true
	return f.show(c, rep, func(out io.Writer) {
		fmt.Fprintf(out, "Done; start %s anew. The old file is %s; `writ disconnect %s` puts it back.\n", p.title, cli.Printable(rep.Backup), p.given)
		when(out, rep.Sealed != "", "Sealed: %s\n", rep.Sealed)
		when(out, w.hooks != nil, "What it does itself is judged too, and what you type is on record: %s\n", cli.Printable(rep.Hooks))
		fmt.Fprintf(out, "What the servers may do is in %s\n", cli.Printable(rep.Policy))
		fmt.Fprintln(out, "What waits for your yes is shown, and answered, in a terminal of your own: writ watch")
	})
}

// wire plans what becomes of the servers of one file, and of the client's hooks.
func (f *flags) wire(p *place, file []byte) (w *wiring, err error) {
	w = &wiring{place: p, rep: p.report()}
	w.rep.Notes = p.localNotes(file)
	if w.rec, err = p.record(); err != nil {
		return nil, err
	}
	if w.rec == nil {
		w.rec = &connected{Client: p.name, File: p.file, Layout: p.layout, Servers: map[string]string{}}
	}
	if err := w.begin(); err != nil {
		return nil, config.Invalid(err)
	}
	if w.self, err = os.Executable(); err != nil {
		return nil, cli.Fail(cli.ExitIO, "", "this program has no path that the client could start")
	}
	if err := w.mend(file); err != nil {
		return nil, p.unread(err)
	}
	w.plan()
	if w.state, err = f.entryState(); err == nil {
		w.hooks, w.hosts, err = p.planHooks(w.rec, w.rep, w.self, w.state)
	}
	return w, err
}

// mend reads the client's file, and puts this program in the place of one that an entry names and that
// is gone.
func (w *wiring) mend(file []byte) (err error) {
	if w.all, err = w.layout.Read(file); err != nil {
		return err
	}
	w.base = file
	was := slices.DeleteFunc(slices.Clone(w.rec.Undo), func(u clients.Undo) bool {
		i := slices.IndexFunc(w.all, func(s clients.Server) bool { return s.Name == u.Name && w.rec.wrote(&s) })
		return i < 0 || !gone(w.all[i].Command[0])
	})
	if len(was) == 0 {
		return nil
	}
	w.rep.Notes = append(w.rep.Notes, was[0].Ours[0]+" is not there any more; this writ takes its place")
	bare, _, err := w.layout.Unwrap(file, was)
	if err != nil {
		return err
	}
	var now []clients.Undo
	w.base, now, err = w.layout.Wrap(bare, func(name string) []string {
		if i := slices.IndexFunc(was, func(u clients.Undo) bool { return u.Name == name }); i >= 0 {
			return append([]string{w.self}, was[i].Ours[1:]...)
		}
		return nil
	})
	if err == nil {
		w.undone(now)
		w.all, err = w.layout.Read(w.base)
	}
	return err
}

// entry is the command by which the client starts a server from now on, nil where that stays.
func (w *wiring) entry(name string) []string {
	server, ok := w.added[name]
	if !ok {
		return nil
	}
	return append([]string{w.self, "run", "--config", w.config(), "--only", server}, w.state...)
}

// localNotes say which servers of the client are not meant by its name: those that it has for one
// directory alone.
func (p *place) localNotes(file []byte) (notes []string) {
	of := clients.Named(p.name)
	if of == nil || p.given != p.name {
		return nil
	}
	dirs := of.Locals(file)
	for _, dir := range dirs[:min(len(dirs), 5)] {
		notes = append(notes, "what it has for "+private.Word(dir)+" alone is not among them: writ connect "+p.name+" --local "+private.Quote(dir))
	}
	if more := len(dirs) - 5; more > 0 {
		notes = append(notes, fmt.Sprintf("and for %d more directories: writ status", more))
	}
	return notes
}

// unchanged is the end of a command that found nothing to do.
func (f *flags) unchanged(c *cobra.Command, w *wiring, why string) error {
	return f.show(c, w.rep, func(out io.Writer) {
		w.rep.print(out, w.place)
		fmt.Fprintln(out, why)
	})
}

// lookAt shows what would be written, and asks whether it is to be, but of a dry run; on says that
// it is.
func (f *flags) lookAt(c *cobra.Command, rep *connectReport, p *place, yes bool) (on bool, err error) {
	switch {
	case f.dry:
		return false, f.show(c, rep, func(out io.Writer) {
			rep.print(out, p)
			when(out, len(rep.Diff) > 0 || rep.Hooks != "", "Nothing was started or written: without --dry-run it is, once you said yes\n")
		})
	case !f.json:
		rep.print(c.OutOrStdout(), p)
	}
	err = confirm(c, yes, "Write this?")
	return err == nil, err
}

// entryState are the flags by which the gateway in an entry finds the state directory:
// none where every program of the account finds it.
func (f *flags) entryState() ([]string, error) {
	if f.state == "" && os.Getenv("XDG_STATE_HOME") == "" {
		return nil, nil
	}
	dir, err := statePath(f.state)
	return []string{"--state", dir}, err
}

func (f *flags) disconnectClient(c *cobra.Command, p *place, yes bool) error {
	rec, err := p.record()
	if err != nil {
		return err
	}
	if rec == nil {
		return cli.Fail(cli.ExitData, "writ status", "%s is not connected", p.title)
	}
	before, err := p.read()
	if err != nil {
		return err
	}
	after, left, err := p.layout.Unwrap(before, rec.Undo)
	if err != nil {
		return p.unread(err)
	}
	rep := p.report()
	for _, u := range rec.Undo {
		line := connectServer{Name: u.Name, Server: rec.Servers[u.Name]}
		if i := slices.IndexFunc(left, func(l clients.Left) bool { return l.Name == u.Name }); i >= 0 {
			line.Left = left[i].Why
		}
		rep.Servers = append(rep.Servers, line)
	}
	rep.Diff = p.layout.Diff(before, after)
	opened, err := p.opened(rec, after)
	if err != nil {
		return err
	}
	letGo, err := p.hooksGo(rec, rep)
	if err != nil {
		return err
	}
	if on, err := f.lookAt(c, rep, p, yes); !on {
		return err
	}
	if err := letGo(); err != nil {
		return err
	}
	if !bytes.Equal(before, opened) {
		if err := replaceClient(p.file, before, opened); err != nil {
			return err
		}
		rep.Written = true
	}
	rep.backUp(rec.Backup, after)
	if err := p.forget(rec, after, left); err != nil {
		return err
	}
	return f.show(c, rep, func(out io.Writer) {
		for _, n := range rep.Notes {
			fmt.Fprintf(out, "%s\n", cli.Printable(n))
		}
		if rep.Written {
			fmt.Fprintf(out, "Done; start %s anew. Its writ.yaml and policy stay in %s\n", p.title, cli.Printable(p.dir))
		} else {
			fmt.Fprintln(out, "Nothing was put back.")
		}
	})
}

// backUp says what the copy of a file is now that it was put back.
func (r *connectReport) backUp(file string, now []byte) {
	switch kept, err := os.ReadFile(file); {
	case err != nil:
	case bytes.Equal(kept, now):
		_ = os.Remove(file) // it is the file now
		r.Notes = append(r.Notes, "the file is as it was, byte for byte")
	default:
		r.Backup = file
		r.Notes = append(r.Notes, "the file was changed since in other places, which stay; as it was it is in "+file)
	}
}

// forget drops what was connected, but for entries that still run through Writ: these can be put
// back once they are what was written.
func (p *place) forget(rec *connected, file []byte, left []clients.Left) (err error) {
	if rec.Undo = p.stillOurs(file, rec.Undo, left); len(rec.Undo) > 0 {
		err = p.keep(rec)
	} else {
		err = os.Remove(p.recordFile())
	}
	if err != nil {
		return cli.Fail(cli.ExitIO, "rm "+private.Quote(p.recordFile()), "what was connected cannot be forgotten")
	}
	return nil
}

// stillOurs are those of the entries left alone in a file that still run through Writ.
func (p *place) stillOurs(b []byte, undo []clients.Undo, left []clients.Left) (rest []clients.Undo) {
	all, err := p.layout.Read(b)
	if err != nil {
		return nil
	}
	for _, u := range undo {
		if slices.ContainsFunc(left, func(l clients.Left) bool { return l.Name == u.Name }) &&
			slices.ContainsFunc(all, func(s clients.Server) bool { return s.Name == u.Name && s.Ours }) {
			rest = append(rest, u)
		}
	}
	return rest
}

// print says what was found, and what would change.
func (r *connectReport) print(w io.Writer, p *place) {
	fmt.Fprintf(w, "%s: %s\n", p.title, cli.Printable(r.File))
	when(w, r.Link != "", "  found by the link %s, which stays\n", cli.Printable(r.Link))
	for _, s := range r.Servers {
		fmt.Fprintf(w, "  %-16s", cli.OneLine(s.Name, 60))
		if s.Tools != nil {
			fmt.Fprintf(w, " %s", cli.Number(*s.Tools, "tool", "tools"))
		}
		when(w, s.Server != "" && s.Server != s.Name, " as %s", s.Server)
		when(w, len(s.Stay) > 0 && s.Left == "", " %s stays in this file", cli.OneLine(strings.Join(s.Stay, ", "), 200))
		when(w, s.Left != "", " left alone: %s", cli.OneLine(s.Left, 300))
		when(w, s.Contract != "" && s.Left == "", "\n%19s%s", "", s.Contract)
		when(w, len(s.Args) > 0 && s.Left == "", "\n%19sits arguments hold %s, which any process of this account can read, here and in writ.yaml;\n%19sif it reads a variable instead, set that in its env and connect it anew", "", cli.OneLine(strings.Join(s.Args, ", "), 200), "")
		fmt.Fprintln(w)
	}
	when(w, len(r.Diff) > 0, "--- %s\n", cli.Printable(filepath.Base(r.File)))
	columns, _ := terminalSize(w)
	for _, l := range r.Diff { // no row of it looks like one of ours
		fmt.Fprintln(w, text.Rows("", cli.Printable(l), columns))
	}
	when(w, r.Hooks != "", "--- %s\n", cli.Printable(r.Hooks))
	for _, l := range slices.Concat(r.Events, r.Notes) {
		fmt.Fprintln(w, cli.Printable(l))
	}
	when(w, r.Movable != "", "Credentials stand in this file, which --move-credentials seals: %s\n", r.Movable)
}
