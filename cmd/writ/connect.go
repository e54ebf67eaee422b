package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
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
	Notes   []string        `json:"notes,omitempty"`
}

// connectServer is what became of one server of the client.
type connectServer struct {
	Name      string   `json:"name"`
	Server    string   `json:"server,omitempty"` // as the policy calls it
	Connected bool     `json:"connected"`
	Tools     *int     `json:"tools,omitempty"`
	Contract  string   `json:"contract,omitempty"`    // what holds of its tools
	Stay      []string `json:"credentials,omitempty"` // variables that stay in the client's file
	Left      string   `json:"left,omitempty"`        // why it was left alone
}

func connectCommand() *cobra.Command {
	var f flags
	var project string
	var yes bool
	c := f.take(&cobra.Command{
		Use:   "connect CLIENT | FILE",
		Short: "Put Writ in front of the servers that a client starts",
		Long: "Put Writ in front of each server that a client starts: its command and arguments go to a\n" +
			"writ.yaml of the client's, and the client starts `writ run` in their place. Names, order,\n" +
			"comments and environment stay as they are, and so do credentials in the environment. The\n" +
			"servers are started once, to draft a policy of their tools. What cannot be put behind Writ\n" +
			"is named and left alone.\n\n" +
			"Clients: " + clientNames() + "; or the path of a file like\n" +
			"mcp.json. The client's file is changed after a look at the change, and a copy of it is\n" +
			"kept; writ disconnect puts it back. Start the client anew afterwards.",
		Example: "  writ connect claude-code\n  writ connect cursor --dry-run\n  writ connect vscode --project .",
		Args:    exactly(1, "a client: "+clientNames()+", or the path of its file"),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := f.findPlace(args[0], project, yes)
			if err != nil {
				return err
			}
			return f.connectClient(c, p, yes)
		},
	}, "state", "json")
	connectFlags(c, &f, &project, &yes)
	return c
}

func disconnectCommand() *cobra.Command {
	var f flags
	var project string
	var yes bool
	c := f.take(&cobra.Command{
		Use:   "disconnect CLIENT | FILE",
		Short: "Have a client start its servers itself again",
		Long: "Undo writ connect: each entry that is still as it was written gets its own command back, to\n" +
			"the byte. What was changed since is named and left alone, and so is all else in the file.\n" +
			"writ.yaml and the policy are kept.",
		Args: exactly(1, "a client: "+clientNames()+", or the path of its file"),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := f.findPlace(args[0], project, yes)
			if err != nil {
				return err
			}
			return f.disconnectClient(c, p, yes)
		},
	}, "json")
	connectFlags(c, &f, &project, &yes)
	return c
}

func connectFlags(c *cobra.Command, f *flags, project *string, yes *bool) {
	c.Flags().StringVar(project, "project", "", "the client's file in the project `DIR`, not the user's own")
	c.Flags().BoolVar(&f.dry, "dry-run", false, "show the change, and start and write nothing")
	c.Flags().BoolVar(yes, "yes", false, "do not ask")
}

// findPlace is findPlace of a command that asks, unless it is told not to, where what
// it asks about is seen.
func (f *flags) findPlace(arg, project string, yes bool) (*place, error) {
	if f.json && !yes && !f.dry {
		return nil, cli.Fail(cli.ExitUsage, "the same command with --dry-run", "with --json nobody is asked: --dry-run or --yes is needed")
	}
	return findPlace(arg, project)
}

func clientNames() string {
	var names []string
	for _, c := range clients.All {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// connectClient puts Writ in front of the servers of one file.
func (f *flags) connectClient(c *cobra.Command, p *place, yes bool) error {
	before, err := p.read()
	if err != nil {
		return err
	}
	all, err := p.layout.Read(before)
	if err != nil {
		return p.unread(err)
	}
	rep := p.report()
	w := &wiring{place: p}
	if w.rec, err = p.record(); err != nil {
		return err
	}
	if w.rec == nil {
		w.rec = &connected{Client: p.name, File: p.file, Layout: p.layout, Servers: map[string]string{}}
	}
	var probes []upstream.Config
	for i := range all {
		s := &all[i]
		line := connectServer{Name: s.Name, Left: s.Left, Connected: s.Ours}
		line.Stay, _ = s.Credentials()
		if s.Left == "" {
			if line.Server, line.Left = w.add(s); line.Left == "" {
				line.Connected = true
				probes = append(probes, probe(s, line.Server))
			}
		}
		rep.Servers = append(rep.Servers, line)
	}
	if w.fault != nil {
		return config.Invalid(w.fault)
	}
	if len(probes) == 0 {
		return f.show(c, rep, func(out io.Writer) {
			rep.print(out, p)
			fmt.Fprintln(out, "Nothing to do.")
		})
	}
	if p.project && !f.dry {
		// Whoever wrote the project chose these commands.
		for _, s := range probes {
			fmt.Fprintf(c.ErrOrStderr(), "  %s: %s\n", s.Name, cli.Printable(cmp.Or(strings.Join(s.Command, " "), s.URL)))
		}
		if err := confirm(c, yes, "Start these servers of the project, to read their tools?"); err != nil {
			return err
		}
	}
	var cat *gate.Catalogue
	if !f.dry {
		if cat, err = w.ask(c, probes, rep); err != nil {
			return err
		}
		if len(w.added) == 0 {
			return f.show(c, rep, func(out io.Writer) {
				rep.print(out, p)
				fmt.Fprintln(out, "Nothing was changed: none of these servers can be reached.")
			})
		}
	}
	self, err := os.Executable()
	if err != nil {
		return cli.Fail(cli.ExitIO, "", "this program has no path that the client could start")
	}
	state, err := f.entryState()
	if err != nil {
		return err
	}
	after, undo, err := p.layout.Wrap(before, func(name string) []string {
		server, ok := w.added[name]
		if !ok {
			return nil
		}
		return append([]string{self, "run", "--config", p.config(), "--only", server}, state...)
	})
	if err != nil {
		return p.unread(err)
	}
	rep.Diff = p.layout.Diff(before, after)
	if f.dry {
		return f.show(c, rep, func(out io.Writer) { rep.print(out, p) })
	}
	if !f.json {
		rep.print(c.OutOrStdout(), p)
	}
	if err := confirm(c, yes, "Write this?"); err != nil {
		return err
	}
	if err := w.write(before, after, undo, cat, rep); err != nil {
		return err
	}
	rep.Written = true
	if f.json {
		return cli.PrintJSON(c.OutOrStdout(), rep)
	}
	fmt.Fprintf(c.OutOrStdout(), "Done; start %s anew. The old file is %s; `writ disconnect %s` puts it back.\n", p.title, cli.Printable(rep.Backup), p.argument())
	fmt.Fprintf(c.OutOrStdout(), "What the servers may do is in %s\n", cli.Printable(rep.Policy))
	return nil
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
		for _, l := range left {
			if l.Name == u.Name {
				line.Left = l.Why
			}
		}
		rep.Servers = append(rep.Servers, line)
	}
	rep.Diff = p.layout.Diff(before, after)
	if f.dry {
		return f.show(c, rep, func(out io.Writer) { rep.print(out, p) })
	}
	if !f.json {
		rep.print(c.OutOrStdout(), p)
	}
	if err := confirm(c, yes, "Write this?"); err != nil {
		return err
	}
	kept, err := os.ReadFile(rec.Backup)
	whole := err == nil && bytes.Equal(kept, after)
	if !bytes.Equal(before, after) {
		if err := p.replace(before, after); err != nil {
			return err
		}
		rep.Written = true
	}
	switch {
	case whole:
		_ = os.Remove(rec.Backup) // it is the file now
		rep.Notes = append(rep.Notes, "the file is as it was, byte for byte")
	case err == nil:
		rep.Backup = rec.Backup
		rep.Notes = append(rep.Notes, "the file was changed since in other places, which stay; as it was it is in "+rec.Backup)
	}
	if rest := p.stillOurs(after, rec.Undo, left); len(rest) > 0 {
		rec.Undo = rest // so that it can be put back once that is what was written
		err = p.keep(rec)
	} else {
		err = os.Remove(p.recordFile())
	}
	if err != nil {
		return cli.Fail(cli.ExitIO, "rm "+private.Quote(p.recordFile()), "what was connected cannot be forgotten")
	}
	if f.json {
		return cli.PrintJSON(c.OutOrStdout(), rep)
	}
	for _, n := range rep.Notes {
		fmt.Fprintf(c.OutOrStdout(), "%s\n", cli.Printable(n))
	}
	if !rep.Written {
		fmt.Fprintln(c.OutOrStdout(), "Nothing was put back.")
		return nil
	}
	fmt.Fprintf(c.OutOrStdout(), "Done; start %s anew. Its writ.yaml and policy stay in %s\n", p.title, cli.Printable(p.dir))
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
		when(w, s.Tools != nil, " %d tools", deref(s.Tools))
		when(w, s.Server != "" && s.Server != s.Name, " as %s", s.Server)
		when(w, len(s.Stay) > 0 && s.Left == "", " %s stays in this file", cli.OneLine(strings.Join(s.Stay, ", "), 200))
		when(w, s.Left != "", " left alone: %s", cli.OneLine(s.Left, 300))
		when(w, s.Contract != "" && s.Left == "", "\n%19s%s", "", s.Contract)
		fmt.Fprintln(w)
	}
	if len(r.Diff) > 0 {
		fmt.Fprintf(w, "--- %s\n", cli.Printable(filepath.Base(r.File)))
	}
	for _, l := range r.Diff {
		fmt.Fprintln(w, cli.Printable(l))
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, cli.Printable(n))
	}
}

func deref(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// wiring is what is being connected, before it is written.
type wiring struct {
	*place
	rec   *connected
	added map[string]string         // names in the client's file to those in writ.yaml
	texts map[string]string         // what writ.yaml says of each of these, by its name there
	there map[string]*config.Server // what it says already, once it was read
	fault error

	servers map[string]*clients.Server // by their names in writ.yaml
}

// add takes one more server in. why is why it cannot be.
func (w *wiring) add(s *clients.Server) (name, why string) {
	if w.added == nil {
		w.added, w.texts, w.there, w.servers = map[string]string{}, map[string]string{}, map[string]*config.Server{}, map[string]*clients.Server{}
		if _, err := os.Lstat(w.config()); err == nil {
			cfg, err := config.ReadOnly(w.config(), "")
			if err != nil {
				w.fault = err
			} else {
				for i := range cfg.Servers {
					w.there[cfg.Servers[i].Name] = &cfg.Servers[i]
				}
			}
		}
	}
	for _, v := range moves {
		if _, moved := s.Env[v]; moved {
			return "", "its environment has " + v + ", by which Writ finds its own files"
		}
	}
	taken := func(n string) bool {
		if _, has := w.texts[n]; has {
			return true
		}
		had, has := w.there[n]
		return has && (!slices.Equal(had.Command, s.Command) || had.URL != s.URL)
	}
	base := serverName(s.Name)
	name = base
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	w.added[s.Name], w.texts[name], w.servers[name] = name, "", s
	if w.there[name] == nil {
		w.texts[name] = serverText(name, s)
	}
	return name, ""
}

// moves are variables by which a gateway finds what is its own.
var moves = []string{"HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", tokenVariable}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// serverName is what a policy calls a server that a client calls name.
func serverName(name string) string {
	n := strings.Trim(notInName.ReplaceAllString(strings.ToLower(name), "-"), "-")
	n = strings.Trim(n[:min(len(n), 24)], "-") // a number may follow
	if n = cmp.Or(n, "server"); n == policy.OwnServer {
		n += "-client"
	}
	return n
}

// serverText is a server as writ.yaml has it. Of the environment it names only which
// variables there are: the client's file keeps the values.
func serverText(name string, s *clients.Server) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  - name: %s\n", name)
	if s.URL != "" {
		fmt.Fprintf(&b, "    url: %s\n", strictjson.Quote(s.URL)) // a JSON string is a YAML one
		for i, h := range s.Headers {
			when(&b, i == 0, "    headers:\n")
			fmt.Fprintf(&b, "      %s: \"${%s}\"\n", strictjson.Quote(h.Name), h.Env)
		}
		return b.String()
	}
	b.WriteString("    command: [")
	for i, a := range s.Command {
		when(&b, i > 0, ", ")
		b.Write(strictjson.Quote(a))
	}
	b.WriteString("]\n")
	var names []string
	for n := range s.Env {
		names = append(names, n)
	}
	for _, n := range s.Inherit {
		if _, set := os.LookupEnv(n); set && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for i, n := range names {
		when(&b, i == 0, "    env:\n")
		fmt.Fprintf(&b, "      %s: \"${%s}\"\n", strictjson.Quote(n), n)
	}
	return b.String()
}

// reference is a variable as clients write it in an environment.
var reference = regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\{env:([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`)

// probe is the server as the client would start it, as far as can be known here.
func probe(s *clients.Server, name string) upstream.Config {
	filled := func(v string) string {
		return reference.ReplaceAllStringFunc(v, func(ref string) string {
			m := reference.FindStringSubmatch(ref)
			return cmp.Or(os.Getenv(cmp.Or(m[1], m[3], m[4])), m[2], ref)
		})
	}
	if s.URL != "" {
		headers := map[string]string{}
		for _, h := range s.Headers {
			headers[h.Name] = filled(h.Value)
		}
		return upstream.Config{Name: name, URL: s.URL, Header: headers}
	}
	env := map[string]string{}
	for n, v := range s.Env {
		env[n] = filled(v)
	}
	for _, n := range s.Inherit {
		if v, set := os.LookupEnv(n); set {
			env[n] = v
		}
	}
	return upstream.Config{Name: name, Command: s.Command, Env: env}
}

// ask has the servers list their tools. One that does not is left alone.
func (w *wiring) ask(c *cobra.Command, probes []upstream.Config, rep *connectReport) (*gate.Catalogue, error) {
	cat, err := published(c, probes)
	if err != nil && len(probes) > 1 {
		// Which of them it is, one after another.
		var good []upstream.Config
		for _, s := range probes {
			if _, err := published(c, []upstream.Config{s}); err != nil {
				w.drop(rep, s.Name, err)
			} else {
				good = append(good, s)
			}
		}
		if probes, err = good, nil; len(good) > 0 {
			cat, err = published(c, good)
		}
	} else if err != nil {
		w.drop(rep, probes[0].Name, err)
		return nil, nil
	}
	if err != nil || cat == nil {
		return nil, err
	}
	there, _ := config.LoadPolicy(w.policy()) // where it has faults, write says so
	drafted := draft.Policy(cat).Servers
	for i := range rep.Servers {
		s := &rep.Servers[i]
		if s.Server == "" || s.Left != "" {
			continue
		}
		s.Tools = new(int)
		if d := slices.IndexFunc(drafted, func(d draft.Server) bool { return d.Name == s.Server }); d >= 0 {
			if *s.Tools, s.Contract = drafted[d].Tools, drafted[d].Says(); there != nil && there.Knows(s.Server) {
				s.Contract = "as the policy that is there has it"
			} else {
				rep.Notes = append(rep.Notes, changes(drafted[d])...)
			}
		}
	}
	return cat, nil
}

// drop leaves a server alone after all.
func (w *wiring) drop(rep *connectReport, name string, why error) {
	for i := range rep.Servers {
		if s := &rep.Servers[i]; s.Server == name {
			delete(w.added, s.Name)
			delete(w.texts, name)
			delete(w.servers, name)
			s.Left, s.Server, s.Connected = "it cannot be reached: "+cli.OneLine(why.Error(), 200), "", false
		}
	}
}

// write writes writ.yaml, the policy, what is to be undone and a copy of the client's
// file, and that file last.
func (w *wiring) write(before, after []byte, undo []clients.Undo, cat *gate.Catalogue, rep *connectReport) error {
	rep.Config, rep.Policy = w.config(), w.policy()
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return cli.Fail(cli.ExitIO, "", "the directory of the configuration cannot be made")
	}
	// A server without contracts is closed; contracts without their server stop all.
	if err := w.writeConfig(); err != nil {
		return err
	}
	if err := w.writePolicy(draft.Policy(cat)); err != nil {
		return err
	}
	if _, _, err := config.LoadOnly(w.config(), ""); err != nil {
		return config.Invalid(err)
	}
	if w.rec.Backup == "" {
		var err error
		if w.rec.Backup, err = w.backup(before); err != nil {
			return err
		}
	}
	rep.Backup = w.rec.Backup
	w.rec.Undo = slices.DeleteFunc(w.rec.Undo, func(u clients.Undo) bool {
		return slices.ContainsFunc(undo, func(n clients.Undo) bool { return n.Name == u.Name })
	})
	w.rec.Undo = append(w.rec.Undo, undo...)
	for name, server := range w.added {
		w.rec.Servers[name] = server
	}
	if err := w.keep(w.rec); err != nil {
		return err
	}
	return w.replace(before, after)
}

// writePolicy writes the draft, or adds what it has of servers the policy that is
// there says nothing of.
func (w *wiring) writePolicy(d draft.Draft) error {
	old, err := os.ReadFile(w.policy())
	if errors.Is(err, os.ErrNotExist) {
		text := []byte(d.Text())
		if _, fs := policy.Parse(w.policy(), text); len(fs) > 0 {
			return cli.Fail(cli.ExitIO, "", "the draft is not a policy: %w", config.Faults(fs))
		}
		return written(private.WriteOnce(w.policy(), text, 0o600))
	}
	if _, err := config.LoadPolicy(w.policy()); err != nil {
		return config.Invalid(err)
	}
	sum, ok := d.Add(old)
	switch {
	case !ok:
		return cli.Fail(cli.ExitConfig, "mv "+private.Quote(w.policy())+" "+private.Quote(w.policy()+".old"),
			"the policy is not of a shape that contracts can be added to; the client's file was not changed")
	case bytes.Equal(sum, old):
		return nil
	}
	return written(replaceFile(w.policy(), sum))
}

// writeConfig writes writ.yaml, or adds servers to the one that is there.
func (w *wiring) writeConfig() error {
	var more strings.Builder
	var names []string
	for n, text := range w.texts {
		if text != "" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		more.WriteString(w.texts[n])
	}
	if len(names) == 0 {
		return nil
	}
	text, err := os.ReadFile(w.config())
	isNew := errors.Is(err, os.ErrNotExist)
	switch {
	case isNew:
		text = []byte("# Written by writ connect: the servers that " + w.title + " starts through Writ, each with\n" +
			"# `writ run --config … --only NAME`. The values of ${…} are in the client's own file.\n" +
			"policy: policy.yaml\napprovals: true # what only a person can let pass waits for one: writ watch\nservers:\n")
	case err != nil:
		return cli.Fail(cli.ExitIO, "", "writ.yaml cannot be read")
	}
	text = append(append(bytes.TrimRight(text, " \t\r\n"), '\n'), more.String()...)
	if err := readsAs(w.dir, text, w.servers); err != nil {
		return err
	}
	if isNew {
		return written(private.WriteOnce(w.config(), text, 0o600))
	}
	return written(replaceFile(w.config(), text))
}

// readsAs is an error unless a configuration has these servers, as they were meant.
func readsAs(dir string, text []byte, servers map[string]*clients.Server) error {
	tmp, err := os.CreateTemp(dir, "check-*.yaml")
	if err != nil {
		return written(err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return written(err)
	}
	cfg, err := config.ReadOnly(tmp.Name(), "")
	if err != nil {
		return cli.Fail(cli.ExitConfig, "", "writ.yaml would not be one with these servers; the client's file was not changed: %w", err)
	}
	for name, s := range servers {
		i := slices.IndexFunc(cfg.Servers, func(c config.Server) bool { return c.Name == name })
		if i < 0 || !slices.Equal(cfg.Servers[i].Command, s.Command) || cfg.Servers[i].URL != s.URL {
			return cli.Fail(cli.ExitConfig, "", "writ.yaml is not of a shape that servers can be added to; the client's file was not changed")
		}
	}
	return nil
}

func written(err error) error {
	if err != nil {
		return cli.Fail(cli.ExitIO, "", "a file cannot be written: %w", err)
	}
	return nil
}
