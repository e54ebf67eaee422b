package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/story"
)

func sessionCommand() *cobra.Command {
	return group("session", "Make, list and close sessions of a gateway, and speak in one", "",
		sessionNew(), sessionSay(), sessionReopen(), sessionList(), sessionClose())
}

type minted struct {
	Session  string `json:"session"`
	Endpoint string `json:"endpoint"`
	URL      string `json:"url"`
	Header   string `json:"header"`
}

func sessionNew() *cobra.Command {
	var f flags
	var header bool
	var client string
	c := f.take(&cobra.Command{
		Use: "new [NAME]", Short: "Mint a session and print its endpoint",
		Long: "Mint a session for the gateway of the state directory and print its endpoint, for\n" +
			"clients that keep no session of their own. With NAME the session is kept under it, for\n" +
			"writ call --session NAME.\n\n" +
			"The endpoint is the session's secret: whoever has it speaks in the session. Writ logs no\n" +
			"path, but others do: the client's own log, its history and configuration, the list of\n" +
			"processes where it is an argument, a proxy's access log. A client that can send a header\n" +
			"is better given what --header prints. Either goes to whoever listens at that address:\n" +
			"use it while the gateway runs.",
		Args: between(0, 1, "at most one name"),
		RunE: f.inState(func(c *cobra.Command, dir string, args []string) error {
			m, err := newSession(c, dir, client, args)
			if err != nil {
				return err
			}
			return f.show(c, m, func(w io.Writer) {
				if header {
					fmt.Fprintf(w, "%s\n%s\n", m.URL, m.Header)
				} else {
					fmt.Fprintln(w, m.Endpoint)
				}
			})
		}),
	}, "state", "json")
	c.Flags().StringVar(&client, "client", "", "for the registered client `NAME` alone (writ client add)")
	c.Flags().BoolVar(&header, "header", false, "print the address and the header field that carries the session, a line each")
	return c
}

// newSession mints a session for a registered client, or with a name for writ call.
func newSession(c *cobra.Command, dir, client string, name []string) (m minted, err error) {
	whose := downstream.Loopback
	switch {
	case client != "" && len(name) > 0:
		return m, cli.Fail(cli.ExitUsage, "writ session new --client NAME", "what is kept under a name is for writ call, which is no registered client")
	case client != "":
		if whose, err = registered(dir, client); err != nil {
			return m, err
		}
	case len(name) > 0:
		if s, err := readSession(dir, name[0]); err != nil {
			return m, err
		} else if s != "" {
			return m, cli.Fail(cli.ExitConfig, "writ session close "+name[0], "there is a session of that name")
		}
	}
	secret, id, err := mint(c.Context(), dir, whose)
	if err == nil && len(name) > 0 {
		err = keepSession(dir, name[0], secret)
	}
	if err != nil {
		return m, err
	}
	all, err := gateways(dir)
	if err != nil {
		return m, err
	}
	url := "http://" + defaultListen
	if i := slices.IndexFunc(all, (*localdoor.Gateway).Listens); i >= 0 {
		url = all[i].URL
	} else {
		fmt.Fprintln(c.ErrOrStderr(), "writ: no gateway is running here; this is the endpoint once `writ serve` is")
	}
	url += "/mcp"
	return minted{id, url + "/s/" + secret, url, downstream.HeaderSession + ": " + secret}, nil
}

func sessionSay() *cobra.Command {
	var f flags
	var screenFile string
	var client int
	c := f.take(&cobra.Command{
		Use: "say NAME|s_…|--pid ID [TEXT | -]", Short: "Put the user's own words on record, as evidence in a session",
		Long: "Put the user's own words on record in the session kept under NAME, or of that public id, as\n" +
			"writ session list shows it and a refusal names it: what is typed here, or\n" +
			"read from standard input, vouches for arguments that accept `user`. It is for the person or\n" +
			"the host program, never for the agent: whoever can run this speaks as the user.\n\n" +
			"With --pid the words go to each session of the client with that process id, which are\n" +
			"those of the writ run it started, and to the gateways that have them: docs/hosts.md.",
		Args: needs("", "a session's name and at most one text, or --pid and at most one text", func(args []string) bool {
			if client == 0 {
				return len(args) == 1 || len(args) == 2
			}
			return len(args) <= 1 && client > 0
		}),
		RunE: f.inState(func(c *cobra.Command, dir string, args []string) error {
			if client != 0 {
				args = append([]string{""}, args...)
			}
			if screenFile == "default" {
				screenFile = config.BuiltInScreen
			}
			input, err := config.ReadScreen(screenFile)
			if err != nil {
				return err
			}
			text, err := typedTurn(c, args[1:])
			if err != nil {
				return err
			}
			if client != 0 {
				if screenFile != "" {
					return cli.Fail(cli.ExitUsage, "screen: in writ.yaml", "the gateway that has the session has the input policy, too")
				}
				all, err := f.sayTo(c.Context(), client, text)
				return f.showSaid(c, all, err)
			}
			return inSession(c.Context(), dir, args[0], input, func(g *gateway.Gateway, session downstream.Session) error {
				id, err := g.Turn(c.Context(), session, text)
				return f.showTurn(c, id, err)
			})
		}),
	}, "state", "json")
	c.Flags().IntVar(&client, "pid", 0, "the sessions of the client with this process `ID`")
	c.Flags().StringVar(&screenFile, "screen", "", "input policy `FILE`, or default: a turn that matches halts the session")
	return c
}

// typedTurn is the user's words: those given, or what stands on standard input.
func typedTurn(c *cobra.Command, given []string) (string, error) {
	var text []byte
	if len(given) == 1 && given[0] != "-" {
		text = []byte(given[0])
	} else {
		var err error
		if text, err = readStart("-", "turn", screen.MaxText+1, c.InOrStdin(), ""); err != nil {
			return "", err
		}
	}
	if len(text) > screen.MaxText || !utf8.Valid(text) {
		return "", cli.Fail(cli.ExitData, "writ session say NAME TEXT", "a turn is at most 64 KiB of UTF-8")
	}
	return string(text), nil
}

// showTurn is showSaid of a turn that got an id or an error.
func (f *flags) showTurn(c *cobra.Command, id string, err error) error {
	is, err := turned(id, err)
	if err != nil {
		return cli.Fail(cli.ExitIO, "writ audit verify", "the turn could not be recorded: %w", err)
	}
	if is.Halted != "" {
		is.Evidence = "" // nothing is called any more for which it would count
	}
	return f.showSaid(c, []hookSaid{is}, nil)
}

// showSaid shows what became of a turn in each session that got it.
func (f *flags) showSaid(c *cobra.Command, all []hookSaid, failed error) error {
	if failed == nil && slices.ContainsFunc(all, func(s hookSaid) bool { return s.Halted != "" }) {
		failed = cli.Ended(cli.ExitRefused)
	}
	return f.showDone(c, len(all), all, func(w io.Writer) {
		for _, s := range all {
			if s.Halted == "" {
				fmt.Fprintf(w, "evidence %s\n", cli.OneLine(s.Evidence, 80))
				continue
			}
			fmt.Fprintf(w, "halted: %s\n", cli.OneLine(s.Halted, 80))
			when(w, s.Reply != "", "%s\n", cli.Printable(s.Reply))
		}
	}, failed)
}

// inSession works in the session kept under a name, or of a public id, over the
// state directory's log and without any server: other processes of that
// directory see what is written.
func inSession(ctx context.Context, dir, name string, input *screen.Screen, work func(*gateway.Gateway, downstream.Session) error) error {
	byID := strings.HasPrefix(name, "s_")
	secret := ""
	if !byID {
		var err error
		if secret, err = readSession(dir, name); err != nil {
			return err
		}
		if secret == "" {
			return cli.Fail(cli.ExitData, "writ session new "+name, "no session is kept under that name")
		}
	}
	st, err := openStore(ctx, dir)
	if err != nil {
		return err
	}
	defer st.Close()
	g, err := gateway.New(gateway.Options{Store: st, Snapshots: statedir.Snapshots(dir), Policy: noTools(), Screen: input, Version: readBuildInfo().Version})
	if err != nil {
		return cli.Fail(cli.ExitIO, "", "%w", err)
	}
	defer g.Close()
	var s downstream.Session
	if byID {
		s, err = g.SessionNamed(ctx, name)
	} else {
		s, err = g.FindSession(ctx, downstream.Loopback, secret)
	}
	switch {
	case byID && errors.Is(err, downstream.ErrNoSession):
		return cli.Fail(cli.ExitData, "writ session list", "there is no open session of that id")
	case err != nil:
		return sessionError(name, err)
	}
	return work(g, s)
}

// oneSession says where to find the one that is meant.
var oneSession = needs("writ session list", "one session's name or public id", func(args []string) bool { return len(args) == 1 })

func sessionReopen() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "reopen NAME|s_…", Short: "Lift what too many guesses closed in a session",
		Long: "After 5 wrong values for one argument that takes what tools returned, without news of them in\n" +
			"between, that argument is closed; after 50 every act of the session. A person who has looked at\n" +
			"them (writ audit show) lifts that; the record says so. A session is named as it is kept, or by its\n" +
			"public id (writ session list), also that of a writ run.",
		Args: oneSession,
		RunE: f.inState(func(c *cobra.Command, dir string, args []string) error {
			return inSession(c.Context(), dir, args[0], nil, func(g *gateway.Gateway, s downstream.Session) error {
				if err := g.Reopen(c.Context(), s); err != nil {
					return cli.Fail(cli.ExitIO, "writ audit verify", "it could not be recorded: %w", err)
				}
				return f.showSession(c, "reopened", s.PublicID())
			})
		}),
	}, "state", "json")
}

type sessionLine struct {
	Session   string     `json:"session"`
	Name      string     `json:"name,omitempty"` // it is kept under
	Principal string     `json:"principal"`
	Carrier   string     `json:"carrier"`
	Created   time.Time  `json:"created"`
	LastUsed  time.Time  `json:"last_used"`
	Closed    *time.Time `json:"closed,omitempty"`
	// Altered says that what it rests on was altered on disk.
	Altered bool `json:"altered,omitempty"`
	// Redacted says that what was said and returned in it is off the log.
	Redacted bool `json:"redacted,omitempty"`
	// Unsettled is how many of its acts no record says of whether they happened.
	Unsettled int `json:"unsettled,omitempty"`
}

// state is what has become of it, in a word.
func (l *sessionLine) state() string {
	switch {
	case l.Redacted:
		return "redacted"
	case l.Altered:
		return "altered"
	case l.Closed != nil:
		return "closed"
	}
	return "open"
}

// String is one line on it, where its id stands already.
func (l *sessionLine) String() string {
	s := "session " + cmp.Or(cli.OneLine(l.Name, 64), l.Session) + ", " + l.state()
	if l.Unsettled > 0 {
		s += fmt.Sprintf(", unsettled: %d", l.Unsettled)
	}
	return s
}

func sessionList() *cobra.Command {
	var f flags
	var all bool
	c := f.take(&cobra.Command{
		Use: "list", Short: "List the sessions of the state directory", Args: cli.NoArgs,
		RunE: f.onLog(toAppend, func(c *cobra.Command, dir string, st *sqlite.Store, _ []string) error {
			lines, err := sessions(c.Context(), st, dir, all)
			if err != nil {
				return cli.Fail(cli.ExitIO, "writ audit verify", "the sessions cannot be read: %w", err)
			}
			return f.show(c, lines, func(w io.Writer) {
				for _, l := range lines {
					fmt.Fprintf(w, "%s  %-8s  %-8s  %-12s  last used %s", l.Session, l.state(), l.Carrier, cli.OneLine(l.Principal, 40), l.LastUsed.Format(time.RFC3339))
					when(w, l.Name != "", "  %s", cli.OneLine(l.Name, 64))
					when(w, l.Unsettled > 0, "  unsettled: %d", l.Unsettled)
					fmt.Fprintln(w)
				}
			})
		}),
	}, "state", "json")
	c.Flags().BoolVar(&all, "all", false, "closed ones too")
	return c
}

// sessions are the open ones of a log, or all.
func sessions(ctx context.Context, st *sqlite.Store, dir string, all bool) ([]sessionLine, error) {
	lines, names := []sessionLine{}, sessionNames(ctx, st, dir)
	for s, err := range st.ListSessions(ctx) {
		if err != nil {
			return nil, err
		}
		if !s.Closed.IsZero() && !all {
			continue
		}
		l, err := lineOf(ctx, st, s, names)
		if err != nil {
			return nil, err
		}
		lines = append(lines, *l)
	}
	return lines, nil
}

func lineOf(ctx context.Context, st *sqlite.Store, s audit.Session, names map[string]string) (*sessionLine, error) {
	l := &sessionLine{Session: s.ID, Name: names[s.ID], Principal: s.Principal, Carrier: s.Endpoint, Created: s.Created, LastUsed: s.LastUsed}
	if !s.Closed.IsZero() {
		l.Closed = &s.Closed
	}
	var err error
	if l.Altered, err = gateway.Altered(ctx, st, s.ID); err != nil || l.Altered {
		return l, err
	}
	acts, last, err := unsettledOf(ctx, st, s.ID)
	if errors.Is(err, audit.ErrAltered) { // found just now
		l.Altered, err = true, nil
	}
	l.Unsettled, l.Redacted = len(acts), last == audit.KindRedact
	return l, err
}

// sessionOf is the line of one session, nil for requests that carry none.
func sessionOf(ctx context.Context, st *sqlite.Store, dir, id string) (*sessionLine, error) {
	s, err := st.SessionByID(ctx, id)
	if errors.Is(err, audit.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return lineOf(ctx, st, s, sessionNames(ctx, st, dir))
}

func sessionClose() *cobra.Command {
	var f flags
	var anyway bool
	c := f.take(&cobra.Command{
		Use: "close NAME | s_…", Short: "Close a session for good",
		Long: "Close a session for good: nothing that was seen in it vouches for anything any more, and nobody\n" +
			"can say of an act in it whether it happened. So one with such an act is closed with --anyway alone.\n" +
			"The name is free then; `writ session list --all` still shows which session had it.",
		Args: oneSession,
		RunE: f.onLog(toAppend, func(c *cobra.Command, dir string, st *sqlite.Store, args []string) error {
			id, err := openID(c.Context(), st, dir, args[0])
			if errors.Is(err, errNoSession) {
				if err := freeName(dir, args[0]); err != nil {
					return err
				}
				return f.show(c, sessionDone{}, func(w io.Writer) { fmt.Fprintln(w, "the log has no such session: its name is free") })
			} else if err != nil {
				return err
			}
			acts, err := f.leaves(c, st, id, anyway)
			if err == nil && id != args[0] {
				if err = keepName(dir, id, args[0]); err == nil {
					err = freeName(dir, args[0])
				}
			}
			if err != nil {
				return err
			}
			if err := gateway.EndSession(c.Context(), st, id, time.Now()); err != nil {
				return notFound(err)
			}
			f.tellClosed(c.Context(), id)
			when(c.ErrOrStderr(), len(acts) > 0, "writ: no record will say whether this happened: %s\n", named(acts))
			return f.showSession(c, "closed", id)
		}),
	}, "state", "json")
	c.Flags().BoolVar(&anyway, "anyway", false, "though it has acts of which no record says whether they happened")
	return c
}

// leaves are the acts of a session of which nobody can say whether they happened once it is closed;
// with such ones it is closed anyway or not at all.
func (f *flags) leaves(c *cobra.Command, st *sqlite.Store, id string, anyway bool) ([]story.Line, error) {
	acts, err := unsettled(c.Context(), st, id)
	if err != nil { // it is no reason to let it go on
		fmt.Fprintf(c.ErrOrStderr(), "writ: whether all acts of it have an outcome cannot be read: %s\n", cli.OneLine(err.Error(), 300))
	}
	now, _ := f.running(c.Context())
	left := markUnderWay(acts, now)
	if len(acts) == 0 || anyway {
		return acts, nil
	}
	next := "the same once it has ended, or with --anyway"
	if left != "" {
		next = "writ audit settle " + left + " --happened, or --not; or the same with --anyway"
	}
	return nil, cli.Fail(cli.ExitData, next, "nothing was closed: of %s, and once it is closed nobody can say so: %s",
		cli.Number(len(acts), "act no record says whether it happened", "acts no record says whether they happened"), named(acts))
}

// freeName takes away what a name is kept by.
func freeName(dir, name string) error {
	if err := os.Remove(filepath.Join(dir, statedir.SessionsDir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return cli.Fail(cli.ExitIO, "", "the session's file cannot be removed")
	}
	return nil
}

// tellClosed tells the gateways that run, so that nothing of the session waits for a person
// any more. One that does not hear it says so to whoever answers.
func (f *flags) tellClosed(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, doors, _ := f.reach(false)
	for _, door := range doors {
		_, _ = exchange(ctx, door, "POST /closed?session="+url.QueryEscape(id), "", nil, 16, new(struct{}))
		door.CloseIdleConnections()
	}
}

// closedHandler is POST /closed of the local door. Whether the session is closed, the
// gateway looks up itself.
func closedHandler(g *gateway.Gateway) http.HandlerFunc {
	return replies(func(_ http.ResponseWriter, r *http.Request) (int, any) {
		g.Over(r.Context(), r.URL.Query().Get("session"))
		return http.StatusOK, struct{}{}
	})
}

// named are acts in a line.
func named(acts []story.Line) string {
	return cli.OneLine(joined(acts, ", ", func(a story.Line) string {
		if a.UnderWay {
			return a.ID + " " + a.Tool + " (under way)"
		}
		return a.ID + " " + a.Tool
	}), 600)
}

// sessionDone is what became of a session; of one that the log does not have, nothing.
type sessionDone struct {
	Session string `json:"session,omitempty"`
	Done    string `json:"done,omitempty"` // closed or reopened
}

func (f *flags) showSession(c *cobra.Command, done, id string) error {
	return f.show(c, sessionDone{id, done}, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", done, cli.OneLine(id, 80)) })
}

// publicID is the public id of a session, given by it, by the name it is kept under, or by
// the name of one that is closed.
func publicID(ctx context.Context, st audit.Sessions, dir, session string) (string, error) {
	id, err := openID(ctx, st, dir, session)
	if !errors.Is(err, errNoName) {
		return id, err
	}
	for closed, name := range closedNames(dir) {
		switch {
		case name != session:
		case id != "":
			return "", cli.Fail(cli.ExitData, "writ session list --all", "several sessions that are closed had that name")
		default:
			id, err = closed, nil
		}
	}
	return id, err
}

// openID is publicID of a session that is not closed, where it is given by a name.
func openID(ctx context.Context, st audit.Sessions, dir, session string) (string, error) {
	if strings.HasPrefix(session, "s_") {
		return session, nil
	}
	secret, err := readSession(dir, session)
	if err != nil {
		return "", err
	}
	if secret == "" {
		return "", &cli.Exit{Code: cli.ExitData, Err: errNoName, Hint: "writ session list --all"}
	}
	id, err := gateway.SessionID(ctx, st, secret)
	if err != nil {
		return "", notFound(err)
	}
	return id, nil
}

// closedDir has, in the directory of the names, which closed session had which. No name
// begins with a dot.
const closedDir = ".closed"

// keepName keeps the name of a session that is closed now.
func keepName(dir, id, name string) error {
	path := filepath.Join(dir, statedir.SessionsDir, closedDir, id)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = private.WriteOnce(path, []byte(name+"\n"), 0o600)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return cli.Fail(cli.ExitIO, "", "which session had that name cannot be written")
	}
	return nil
}

// closedNames are the names that closed sessions had, by public id.
func closedNames(dir string) map[string]string {
	names := map[string]string{}
	at := filepath.Join(dir, statedir.SessionsDir, closedDir)
	files, _ := os.ReadDir(at)
	for _, f := range files {
		b, err := private.ReadFile(filepath.Join(at, f.Name()))
		if name := strings.TrimSpace(string(b)); err == nil && statedir.SessionName.MatchString(name) {
			names[f.Name()] = name
		}
	}
	return names
}

// sessionNames are the names that sessions are kept under, or were, by public id.
func sessionNames(ctx context.Context, st audit.Sessions, dir string) map[string]string {
	names := closedNames(dir)
	files, _ := os.ReadDir(filepath.Join(dir, statedir.SessionsDir)) // none is kept, or none can be read
	for _, f := range files {
		if id, err := openID(ctx, st, dir, f.Name()); err == nil && id != f.Name() {
			names[id] = f.Name()
		}
	}
	return names
}

var (
	errNoSession = errors.New("no such session")
	errNoName    = errors.New("no session is kept under that name")
)

// notFound is the end of a command whose session the store did not give: it is
// not there, or cannot be read.
func notFound(err error) error {
	if errors.Is(err, audit.ErrNotFound) {
		return &cli.Exit{Code: cli.ExitData, Err: errNoSession, Hint: "writ session list"}
	}
	return cli.Fail(cli.ExitIO, "writ audit verify", "the session cannot be read: %w", err)
}
