package main

import (
	"bytes"
	"cmp"
	"errors"
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
	"github.com/writ-project/writ/internal/private"
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
	text  []byte                    // of it
	base  []byte                    // the client's file, with this program where one that is gone was named
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
	if w.text, err = config.ReadFile(w.config()); err != nil {
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
		switch had := w.there[w.rec.Servers[s.Name]]; {
		case s.Ours && !w.rec.wrote(s):
			line.Left = strange // whoever wrote it there says which policy it runs by
		case s.Ours && had != nil && had.URL == "" && otherEnv(had, s) != "":
			w.rep.Notes = append(w.rep.Notes, cli.OneLine(s.Name, 60)+": "+cli.OneLine(otherEnv(had, s), 300)+": writ disconnect "+w.given+", and connect it anew")
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
// may be anything, and a variable says to many a program what it loads.
func (w *wiring) mayStart(c *cobra.Command, yes bool) error {
	if !w.project && clients.Named(w.name) != nil {
		return nil
	}
	show, env := clients.Shown, clients.ShownEnv
	if _, typed := typist(c.InOrStdin()); typed && !yes {
		show, env = slices.Clone[[]string], maps.Clone[map[string]string]
	}
	for _, p := range w.probes {
		s := w.servers[p.Name]
		words := show(s.Command)
		if s.URL != "" {
			words = show([]string{s.URL})
		}
		says := joined(words, " ", private.Word)
		given, set := given(s), env(s.Env)
		if names := slices.Sorted(maps.Keys(set)); len(names) > 0 {
			says += "   with " + joined(names, " ", func(n string) string { return n + "=" + private.Word(set[n]) })
		}
		if len(given) > 0 {
			says += "   given " + strings.Join(given, ", ") + " of your environment"
		}
		theirs(c.ErrOrStderr(), "  "+p.Name+": ", says, 0)
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
		return w.servers[n] != nil || had != nil && (!slices.Equal(had.Command, s.Command) || had.URL != s.URL || otherEnv(had, s) != "" && w.runsFor(n, s))
	}
	base := serverName(s.Name)
	name = base
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	if had := w.there[name]; had != nil && otherEnv(had, s) != "" && bytes.Count(w.text, []byte(serverText(name, asWritten(had)))) != 1 {
		return "", otherEnv(had, s) + ", and its entry was changed: " + w.config()
	}
	w.added[s.Name], w.servers[name] = name, s
	return name, ""
}

// runsFor reports whether a server of writ.yaml is behind another entry of the client's.
func (w *wiring) runsFor(server string, but *clients.Server) bool {
	return slices.ContainsFunc(w.all, func(s clients.Server) bool {
		return s.Name != but.Name && w.rec.wrote(&s) && w.rec.Servers[s.Name] == server
	})
}

// otherEnv says which variables, or headers, a server has in the client's file and not in
// writ.yaml, or takes from the client there and has no more; "" where they are the same.
func otherEnv(had *config.Server, s *clients.Server) string {
	var has, wants []string
	was, is := asWritten(had), variables(s)
	for _, h := range was.Headers {
		has = append(has, h.Name)
	}
	for _, h := range s.Headers {
		is = append(is, h.Name)
	}
	has = append(has, slices.Collect(maps.Keys(was.Env))...)
	for _, n := range has {
		if v := cmp.Or(had.Node.Get("env").Get(n), had.Node.Get("headers").Get(n)); v.Value == "${"+n+"}" || strings.HasPrefix(v.Value, "${WRIT_HEADER_") {
			wants = append(wants, n)
		}
	}
	without := func(all, of []string) string {
		all = slices.DeleteFunc(slices.Sorted(slices.Values(all)), func(n string) bool { return slices.Contains(of, n) })
		return strings.Join(all, ", ")
	}
	switch more, less := without(is, has), without(wants, is); {
	case more != "":
		return "writ.yaml does not hand it " + more
	case less != "":
		return "writ.yaml wants " + less + " for it, which its entry has no more"
	case slices.ContainsFunc(s.Headers, func(h clients.Header) bool {
		v := had.Node.Get("headers").Get(h.Name)
		return strings.HasPrefix(v.Value, "${WRIT_HEADER_") && v.Value != "${"+h.Env+"}"
	}):
		return "writ.yaml has its headers in another order"
	}
	return ""
}

// asWritten is a server of writ.yaml as the client's file had it, as far as it was written of
// that.
func asWritten(had *config.Server) *clients.Server {
	s := &clients.Server{Command: had.Command, URL: had.URL, Env: had.Env}
	if n := had.Node.Get("headers"); n != nil {
		for i := 0; i+1 < len(n.Items); i += 2 {
			s.Headers = append(s.Headers, clients.Header{Name: n.Items[i].Value, Env: fmt.Sprintf("WRIT_HEADER_%d", i/2+1)})
		}
	}
	return s
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
		fmt.Fprintf(&b, "  - name: %s\n", yamlText(name))
	}
	if s.URL != "" {
		fmt.Fprintf(&b, "    url: %s\n", yamlText(s.URL))
		for i, h := range s.Headers {
			when(&b, i == 0, "    headers:\n")
			fmt.Fprintf(&b, "      %s: \"${%s}\"\n", yamlText(h.Name), h.Env)
		}
		return b.String()
	}
	b.WriteString("    command: [")
	for i, a := range s.Command {
		when(&b, i > 0, ", ")
		b.WriteString(yamlText(a))
	}
	b.WriteString("]\n")
	for i, n := range variables(s) {
		when(&b, i == 0, "    env:\n")
		fmt.Fprintf(&b, "      %s: %s\n", yamlText(n), yamlText("${"+n+"}"))
	}
	return b.String()
}

// yamlText is a text as YAML has it, with what a file of an operator's may not hold as it is, and
// any text can, escaped: a JSON string is one of YAML's but for two halves of a character.
func yamlText(s string) string {
	var b strings.Builder
	for _, r := range string(strictjson.Quote(s)) {
		if text.Hidden(r, text.Unclear) {
			fmt.Fprintf(&b, `\U%08x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// variables are the names of a server's environment, with those that it inherits and that are set.
func variables(s *clients.Server) []string {
	names := slices.Collect(maps.Keys(s.Env))
	for _, n := range s.Inherit {
		if _, set := os.LookupEnv(n); set && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
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
	if len(w.probes) == 0 {
		return nil, nil
	}
	if err := w.mayStart(c, yes); err != nil {
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

// write writes writ.yaml, the policy, what is to be undone and a copy of the client's
// file, and that file last. The copy has it as w.base: what is sealed stands nowhere else.
func (w *wiring) write(before, after []byte, undo []clients.Undo, cat *gate.Catalogue) error {
	w.rep.Config, w.rep.Policy = w.config(), w.policy()
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return cli.Fail(cli.ExitIO, "", "the directory of the configuration cannot be made")
	}
	// A server without contracts is closed; contracts without their server stop all.
	if err := w.writeConfig(); err != nil {
		return err
	}
	d := draft.Policy(cat)
	d.Servers = slices.DeleteFunc(d.Servers, func(s draft.Server) bool { return w.servers[s.Name] == nil }) // it listed, and ended
	if err := w.writePolicy(w.withHost(d)); err != nil {
		return err
	}
	if _, _, err := config.LoadOnly(w.config(), ""); err != nil {
		return config.Invalid(err)
	}
	if w.rec.Backup == "" && !bytes.Equal(before, after) {
		var err error
		if w.rec.Backup, err = w.backup(w.base); err != nil {
			return err
		}
	} else if w.seal != nil {
		if err := w.sealCopy(w.rec.Backup); err != nil {
			return err
		}
	}
	w.rep.Backup = w.rec.Backup
	w.undone(undo)
	maps.Copy(w.rec.Servers, w.added)
	if w.hooks != nil {
		w.rec.Hooks = &w.hooks.connectedHooks
	}
	if err := w.keep(w.rec); err != nil {
		return err
	}
	if !bytes.Equal(before, after) {
		if err := replaceClient(w.file, before, after); err != nil {
			return err
		}
	}
	if w.hooks == nil {
		return nil
	}
	// Last: without a gateway what the client does itself is refused.
	return w.hooks.write()
}

// undone takes in how entries are put back, in the place of how they were to be before.
func (w *wiring) undone(undo []clients.Undo) {
	w.rec.Undo = slices.DeleteFunc(w.rec.Undo, func(u clients.Undo) bool {
		return slices.ContainsFunc(undo, func(n clients.Undo) bool { return n.Name == u.Name })
	})
	w.rec.Undo = append(w.rec.Undo, undo...)
}

// sealCopy seals the credentials of a copy that was kept before they were to be.
func (w *wiring) sealCopy(file string) error {
	old, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		old, err = w.seal(old)
	}
	if err == nil {
		err = replaceFile(file, old)
	}
	return written(err)
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
	text, isNew := w.text, w.text == nil
	for _, n := range slices.Sorted(maps.Keys(w.servers)) {
		switch had := w.there[n]; {
		case had == nil:
			more.WriteString(serverText(n, w.servers[n]))
		case otherEnv(had, w.servers[n]) != "":
			text = bytes.Replace(text, []byte(serverText(n, asWritten(had))), []byte(serverText(n, w.servers[n])), 1)
		}
	}
	host := ""
	if w.hosts && !w.hosted {
		host = "host: " + w.name + " # its own tools are judged too\n"
	}
	if more.Len() == 0 && host == "" && bytes.Equal(text, w.text) {
		return nil
	}
	if now, err := os.ReadFile(w.config()); !bytes.Equal(now, w.text) || err != nil && !errors.Is(err, os.ErrNotExist) {
		return cli.Fail(cli.ExitData, "the same command once more", "writ.yaml was changed meanwhile; the client's file was not changed")
	}
	if isNew {
		text = []byte("# Written by writ connect: the servers that " + w.title + " starts through Writ, each with\n" +
			"# `writ run --config … --only NAME`. The values of ${…} are in the client's own file.\n" +
			"policy: policy.yaml\napprovals: true # what only a person can let pass waits for one: writ watch\nservers:\n")
	}
	text = bytes.Replace(text, []byte("\nservers:"), []byte("\n"+host+"servers:"), 1)
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
		if i < 0 || !slices.Equal(cfg.Servers[i].Command, s.Command) || cfg.Servers[i].URL != s.URL || otherEnv(&cfg.Servers[i], s) != "" {
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
