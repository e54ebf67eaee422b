package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

func initCommand() *cobra.Command {
	var f flags
	var name, out string
	var env []string
	c := f.take(&cobra.Command{
		Use:   "init [--config FILE | -- COMMAND [ARG …]]",
		Short: "Discover the servers' tools and draft a policy",
		Long: "Start the servers of writ.yaml (its policy need not exist yet), or the one after --, and\n" +
			"draft a commented policy with every tool in it, pinned. Where a contract ships for exactly\n" +
			"these definitions its lines are written, for you to read. Of all others a read is open and\n" +
			"vouches for nothing; an act waits for a person where the user did not type whom and what it\n" +
			"is for. After -- it writes writ.yaml too. Nothing is overwritten.",
		Example: "  writ init --name files -- npx -y @modelcontextprotocol/server-filesystem /srv",
		RunE: func(c *cobra.Command, args []string) error {
			servers, configured, err := f.initServers(name, env, args)
			if err != nil {
				return err
			}
			out = cmp.Or(out, configured, "policy.yaml")
			there := cli.Fail(cli.ExitConfig, "writ init --out OTHER.yaml", "%s is there already; nothing was written", cli.Printable(out))
			if _, err := os.Stat(out); err == nil {
				return there
			}
			cat, down, err := published(c, servers, "")
			for _, name := range slices.Sorted(maps.Keys(down)) {
				err = cmp.Or(err, down[name])
			}
			if err != nil {
				return err
			}
			drafted := draft.Policy(cat)
			text := []byte(drafted.Text())
			if _, fs := policy.Parse(out, text); len(fs) > 0 {
				return cli.Fail(cli.ExitIO, "", "the draft is not a policy: %w", config.Faults(fs))
			}
			if err := private.WriteOnce(out, text, 0o600); errors.Is(err, os.ErrExist) {
				return there
			} else if err != nil {
				return cli.Fail(cli.ExitIO, "", "the draft cannot be written")
			}
			rep := initiated{Policy: out, Servers: []initiatedServer{}}
			for _, s := range drafted.Servers {
				rep.Servers = append(rep.Servers, initiatedServer{s.Name, s.Tools, s.Says(), changes(s)})
			}
			if rep.Config, err = f.writeConfig(servers, out); err != nil {
				return err
			}
			rep.Wrote = rep.Config != f.config
			return f.show(c, rep, rep.print)
		},
	}, "json")
	c.Flags().StringVar(&f.config, "config", "", "configuration `FILE`")
	c.Flags().StringVar(&name, "name", "", "`NAME` for the server after --")
	c.Flags().StringArrayVar(&env, "env", nil, "`NAME` of an environment variable that the server after -- gets (repeated)")
	c.Flags().StringVar(&out, "out", "", "policy `FILE` to write (default: the one of --config, else policy.yaml)")
	return c
}

type initiated struct {
	Policy  string            `json:"policy"`
	Config  string            `json:"config,omitempty"` // "" where another one is there, and was left alone
	Wrote   bool              `json:"wrote_config"`
	Servers []initiatedServer `json:"servers"`
}

type initiatedServer struct {
	Name    string   `json:"name"`
	Tools   int      `json:"tools"`
	Says    string   `json:"says"`              // where its lines are from
	Changes []string `json:"changes,omitempty"` // against the nearest contract that ships
}

func (rep *initiated) print(w io.Writer) {
	for _, s := range rep.Servers {
		fmt.Fprintf(w, "  %-16s %9s   %s\n", s.Name, cli.Number(s.Tools, "tool", "tools"), s.Says)
		for _, l := range s.Changes {
			fmt.Fprintln(w, l)
		}
	}
	policy, config := cli.Printable(rep.Policy), cli.Printable(rep.Config)
	fmt.Fprintf(w, "drafted %s: reads are open, what nothing vouches for waits for a person\n", policy)
	if config == "" {
		fmt.Fprintf(w, "%s is there already and was left alone\n  writ check --policy %s\n", configFile, policy)
		return
	}
	when(w, rep.Wrote, "wrote %s\n", config)
	fmt.Fprintf(w, "  writ check --config %s\n  writ serve --config %s     # and in another terminal: writ watch\n", config, config)
}

// configFile is the configuration that init writes beside a policy.
const configFile = "writ.yaml"

// writeConfig writes the configuration beside a policy, where none is given. It returns
// the one to go on with, "" where there is another one already.
func (f *flags) writeConfig(servers []upstream.Config, policy string) (string, error) {
	if f.config != "" {
		return f.config, nil
	}
	var b strings.Builder
	b.WriteString("servers:\n")
	for _, s := range servers {
		b.WriteString(serverText(s.Name, &clients.Server{Command: s.Command, Env: s.Env}))
	}
	fmt.Fprintf(&b, "policy: %s\n\n# What only a person can let pass waits for one: writ watch, writ approve.\napprovals: true\n", strictjson.Quote(policy))
	switch err := private.WriteOnce(configFile, []byte(b.String()), 0o600); {
	case errors.Is(err, os.ErrExist):
		return "", nil
	case err != nil:
		return "", cli.Fail(cli.ExitIO, "", "%s cannot be written", configFile)
	}
	return configFile, nil
}

// changes says in lines for a person how the tools of a server differ from those that
// the nearest contract was made for. They are drafted as if none shipped.
func changes(s draft.Server) (lines []string) {
	if s.Contract == nil {
		return nil
	}
	for _, ch := range s.Contract.Changed {
		what := "is another than that of"
		if ch.New {
			what = "is not in"
		}
		lines = append(lines, fmt.Sprintf("    %s: %s %s contract %s %s, so it is drafted without it", s.Name, cli.OneLine(ch.Tool, 60), what, s.Contract.Name, s.Contract.Version))
		for _, l := range ch.Lines {
			lines = append(lines, "      "+cli.Printable(l))
		}
	}
	return lines
}

// published is what servers list, in a state that is thrown away; who signed in to one
// of them did so in his own.
func published(c *cobra.Command, servers []upstream.Config, theirs string) (_ *gate.Catalogue, down map[string]error, _ error) {
	state, err := os.MkdirTemp("", "writ-init-")
	if err != nil {
		return nil, nil, cli.Fail(cli.ExitIO, "", "no temporary directory")
	}
	defer os.RemoveAll(state)
	o := newFiles(state)
	o.servers = servers
	if dir, err := statePath(theirs); err == nil {
		o.logins = logins(dir)
	}
	o.policy = noTools()
	g, stop, err := o.start(c.Context(), logger(c.ErrOrStderr(), slog.LevelError+4))
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	fmt.Fprintf(c.ErrOrStderr(), "asking %s for their tools; one that does not answer is waited for half a minute …\n",
		joined(servers, ", ", func(s upstream.Config) string { return cli.OneLine(s.Name, 40) }))
	if err := g.Settled(c.Context()); err != nil {
		return nil, nil, cli.Fail(cli.ExitIO, "", "the servers did not answer: %w", err)
	}
	down = map[string]error{}
	for n, err := range g.Failed() {
		down[n] = cli.Fail(cli.ExitIO, "", "server %s cannot be reached: %w%s", n, err, lastWords(err, n, servers))
	}
	cat, findings := g.Catalogue()
	for _, fd := range findings {
		if fd.Reason != "" && fd.Tool == "" || strings.HasPrefix(string(fd.Reason), "payload") {
			fmt.Fprintf(c.ErrOrStderr(), "writ: %s: %s\n", cli.Printable(fd.Server), cli.Printable(fd.Message))
		}
	}
	return cat, down, nil
}

// lastWords is what a server of that name that ended said last, or answers in the stead of a
// result, in one line for a person, without its credentials: where it is shown may be kept.
func lastWords(err error, name string, servers []upstream.Config) string {
	var d *upstream.DiedError
	var e *rpc.Error
	last := ""
	switch {
	case errors.As(err, &d):
		last = cause(strings.Split(strings.TrimSpace(string(d.Said)), "\n"))
	case errors.As(err, &e):
		last = e.Message
	}
	for _, s := range servers {
		if s.Name == name {
			last = clients.Without(s.Env, s.Command, last)
		}
	}
	if last = cli.OneLine(last, 200); last != "" {
		return "; it said: " + last
	}
	return ""
}

// cause is the line by which a program that ended most likely says why: the last that calls
// itself an error, for runtimes tell of themselves and of their stack behind it; else the last.
func cause(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if errorLine().MatchString(line) {
			return line
		}
	}
	return lines[len(lines)-1]
}

var errorLine = text.Pattern(`^\W*(?i:\w*error|panic|fatal)\b.*: *\S`)

func (f *flags) initServers(name string, env, command []string) (servers []upstream.Config, file string, err error) {
	if (f.config == "") == (len(command) == 0) {
		return nil, "", cli.Fail(cli.ExitUsage, "writ init --help", "either --config or a command after --")
	}
	if f.config == "" {
		name = cmp.Or(name, "server")
		if !policy.ServerName(name) {
			return nil, "", cli.Fail(cli.ExitUsage, "", "a server's name has 1 to 32 of a-z, 0-9 and -, and does not start with -")
		}
		s := upstream.Config{Name: name, Command: command, Env: map[string]string{}}
		for _, n := range env {
			v, ok := os.LookupEnv(n)
			if !ok {
				return nil, "", cli.Fail(cli.ExitUsage, "export "+cli.Printable(n)+"=…", "the environment has no %s", cli.Printable(n))
			}
			s.Env[n] = v
		}
		return []upstream.Config{s}, "", nil
	}
	cfg, err := config.Read(f.config)
	if err != nil {
		return nil, "", config.Invalid(err)
	}
	for _, s := range cfg.Servers {
		servers = append(servers, s.Upstream())
	}
	return servers, filepath.Clean(cfg.Policy), nil
}
