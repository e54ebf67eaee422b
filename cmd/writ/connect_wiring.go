package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/hook"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

// wiring is what is being connected, before it is written.
type wiring struct {
	*place
	rec   *connected
	rep   *connectReport
	all   []clients.Server          // of the client
	added map[string]string         // names in the client's file to those in writ.yaml
	there map[string]*config.Server // what writ.yaml has already
	self  string                    // this program
	state []string                  // the flags by which the gateway in an entry finds the state directory
	hooks *hooksChange              // nil where nothing is added

	hosted bool // writ.yaml names the client as a host already
	hosts  bool // it is to: the client's own tools are judged

	servers map[string]*clients.Server // by their names in writ.yaml
	probes  []upstream.Config          // the same, as they are started to read their tools

	seal func(file []byte) ([]byte, error) // seals the credentials of a file, nil where they stay
}

// begin reads what writ.yaml has already.
func (w *wiring) begin() error {
	w.added, w.there, w.servers = map[string]string{}, map[string]*config.Server{}, map[string]*clients.Server{}
	if _, err := os.Lstat(w.config()); err != nil {
		return nil
	}
	cfg, err := config.ReadOnly(w.config(), "")
	if err != nil {
		return err
	}
	w.hosted = cfg.Host != ""
	for i := range cfg.Servers {
		w.there[cfg.Servers[i].Name] = &cfg.Servers[i]
	}
	return nil
}

// plan says of each server of the client what becomes of it.
func (w *wiring) plan() {
	for i := range w.all {
		s := &w.all[i]
		line := connectServer{Name: s.Name, Left: s.Left, Connected: s.Ours, Stay: unsealed(s)}
		if s.Ours && !w.rec.wrote(s) {
			line.Left = strange // whoever wrote it there says which policy it runs by
		}
		_, line.Args = s.Credentials()
		if s.Left == "" {
			if line.Server, line.Left = w.add(s); line.Left == "" {
				line.Connected = true
				w.probes = append(w.probes, probe(s, line.Server))
			}
		}
		w.rep.Servers = append(w.rep.Servers, line)
	}
}

// mayStart asks whether the servers of a file are to be started whose commands, and what they are
// given, somebody else may have chosen. Who is asked sees them whole: what looks like a credential
// may be anything.
func (w *wiring) mayStart(c *cobra.Command, yes bool) error {
	if !w.project && clients.Named(w.name) != nil {
		return nil
	}
	show := clients.Shown
	if _, typed := typist(c.InOrStdin()); typed && !yes {
		show = slices.Clone[[]string]
	}
	for _, s := range w.probes {
		fmt.Fprintf(c.ErrOrStderr(), "  %s: %s", s.Name, cli.Printable(strings.TrimSpace(strings.Join(show(append(slices.Clone(s.Command), s.URL)), " "))))
		given := given(w.servers[s.Name])
		when(c.ErrOrStderr(), len(given) > 0, "   given %s of your environment", cli.OneLine(strings.Join(given, ", "), 200))
		fmt.Fprintln(c.ErrOrStderr())
	}
	return confirm(c, yes, "Start these servers of the "+map[bool]string{true: "project", false: "file"}[w.project]+", to read their tools?")
}

// add takes one more server in. why is why it cannot be.
func (w *wiring) add(s *clients.Server) (name, why string) {
	for _, v := range moves {
		if _, moved := s.Env[v]; moved {
			return "", "its environment has " + v + ", by which Writ finds its own files"
		}
	}
	taken := func(n string) bool {
		had := w.there[n]
		return w.servers[n] != nil || had != nil && (!slices.Equal(had.Command, s.Command) || had.URL != s.URL)
	}
	base := serverName(s.Name)
	name = base
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	w.added[s.Name], w.servers[name] = name, s
	return name, ""
}

// moves are variables by which a gateway finds what is its own.
var moves = []string{"HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", tokenVariable}

// plainName is a name that needs no quotation marks.
var plainName = text.Pattern(`^[a-z][a-z0-9-]*$`)

var notInName = text.Pattern(`[^a-z0-9]+`)

// serverName is what a policy calls a server that a client calls name.
func serverName(name string) string {
	n := strings.Trim(notInName().ReplaceAllString(strings.ToLower(name), "-"), "-")
	n = strings.Trim(n[:min(len(n), 24)], "-")                                  // a number may follow
	if n = cmp.Or(n, "server"); n == policy.OwnServer || hook.Named(n) != nil { // a host's own tools are called so
		n += "-client"
	}
	return n
}

// serverText is a server as writ.yaml has it. Of the environment it names only which
// variables there are: the client's file keeps the values.
func serverText(name string, s *clients.Server) string {
	var b strings.Builder
	if word := plainName().MatchString(name) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, name); word {
		fmt.Fprintf(&b, "  - name: %s\n", name)
	} else { // YAML reads it as something else
		fmt.Fprintf(&b, "  - name: %s\n", strictjson.Quote(name))
	}
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
	names := slices.Collect(maps.Keys(s.Env))
	for _, n := range s.Inherit {
		if _, set := os.LookupEnv(n); set && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for i, n := range names {
		when(&b, i == 0, "    env:\n")
		fmt.Fprintf(&b, "      %s: %s\n", strictjson.Quote(n), strictjson.Quote("${"+n+"}"))
	}
	return b.String()
}

// reference is a variable as clients write it in an environment.
var reference = text.Pattern(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\{env:([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`)

// given are the variables of this environment that a probe of the server gets.
func given(s *clients.Server) (names []string) {
	add := func(n string) {
		if _, set := os.LookupEnv(n); set && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	values := slices.Collect(maps.Values(s.Env))
	for _, h := range s.Headers {
		values = append(values, h.Value)
	}
	for _, v := range values {
		for _, m := range reference().FindAllStringSubmatch(v, -1) {
			add(cmp.Or(m[1], m[3], m[4]))
		}
	}
	for _, n := range s.Inherit {
		add(n)
	}
	slices.Sort(names)
	return names
}

// probe is the server as the client would start it, as far as can be known here.
func probe(s *clients.Server, name string) upstream.Config {
	filled := func(v string) string {
		return reference().ReplaceAllStringFunc(v, func(ref string) string {
			m := reference().FindStringSubmatch(ref)
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

// ask has the servers list their tools, if they may be started. One that does not is left alone.
func (w *wiring) ask(c *cobra.Command, state string, yes bool) (*gate.Catalogue, error) {
	if err := w.mayStart(c, yes); err != nil || len(w.probes) == 0 {
		return nil, err
	}
	cat, down, err := published(c, w.probes, state)
	if err != nil { // one cannot even be started: which
		good := slices.DeleteFunc(slices.Clone(w.probes), func(s upstream.Config) bool {
			_, _, err := published(c, []upstream.Config{s}, state)
			if err != nil {
				w.drop(s.Name, err)
			}
			return err != nil
		})
		if len(good) == 0 {
			return nil, nil
		}
		if cat, down, err = published(c, good, state); err != nil {
			return nil, err
		}
	}
	for name, why := range down {
		w.drop(name, why)
	}
	if cat == nil {
		return nil, nil
	}
	there, _ := config.LoadPolicy(w.policy()) // where it has faults, write says so
	drafted := draft.Policy(cat).Servers
	for i := range w.rep.Servers {
		s := &w.rep.Servers[i]
		if s.Server == "" || s.Left != "" {
			continue
		}
		s.Tools = new(int)
		if d := slices.IndexFunc(drafted, func(d draft.Server) bool { return d.Name == s.Server }); d >= 0 {
			w.found(s, drafted[d], there != nil && there.Knows(s.Server))
		}
	}
	return cat, nil
}

// found says of a server which tools it lists, and what holds of them.
func (w *wiring) found(s *connectServer, d draft.Server, known bool) {
	if *s.Tools, s.Contract = d.Tools, d.Says(); known {
		s.Contract = "as the policy that is there has it"
		return
	}
	w.rep.Notes = append(w.rep.Notes, changes(d)...)
}

// drop leaves a server alone after all.
func (w *wiring) drop(name string, why error) {
	for i := range w.rep.Servers {
		if s := &w.rep.Servers[i]; s.Server == name {
			delete(w.added, s.Name)
			delete(w.servers, name)
			said, cannot := strings.CutPrefix(why.Error(), "server "+name+" cannot be reached")
			if !cannot {
				said = ": " + said
			}
			s.Left, s.Server, s.Connected = "it cannot be reached"+cli.OneLine(said, 200), "", false
		}
	}
}
