package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/console"
	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/story"
)

func consoleCommand() *cobra.Command {
	var f flags
	var code, open bool
	c := f.take(&cobra.Command{
		Use: "console", Short: "Print a link to the console of a gateway that runs", Args: cli.NoArgs,
		Long: "Print a link that opens the console of a gateway that writ serve runs, in one browser, once,\n" +
			"within a minute, and the code that the first yes said there takes. With --code only such a\n" +
			"code is printed, for a browser that is signed in. Both are printed to a terminal alone, for a\n" +
			"person at one of his own: who descends from a gateway that runs, or from a server of it, is\n" +
			"not heard.",
		RunE: func(c *cobra.Command, _ []string) error {
			const hint = "the same in a terminal window of your own"
			if !cli.Terminal(c.OutOrStdout()) {
				return cli.Fail(cli.ExitUsage, hint, "a link is printed to a terminal alone")
			}
			if err := localdoor.Aside(); err != nil {
				return cli.Fail(cli.ExitRefused, hint, "nothing is printed: %w", err)
			}
			_, doors, err := f.reach(false)
			if err != nil {
				return err
			}
			what := "POST /console"
			if code {
				what += "?code"
			}
			shown := 0
			for _, door := range doors {
				var way wayIn
				switch status, err := exchange(c.Context(), door, what, "", nil, 1<<16, &way); {
				case status == http.StatusForbidden:
					return cli.Fail(cli.ExitRefused, hint, "nothing is printed: %s", cli.OneLine(way.Error, 200))
				case status != http.StatusOK: // it serves a client over stdio, and no console
					continue
				case err != nil:
					return err
				}
				shown++
				way.print(c.OutOrStdout(), withWhere(c, "writ console"))
				if open && way.URL != "" {
					browse(way.URL)
				}
			}
			if shown == 0 {
				return cli.Fail(cli.ExitIO, "writ serve", "no gateway with a console runs on this state directory")
			}
			return nil
		},
	}, "state")
	c.Flags().BoolVar(&code, "code", false, "only the code that a yes takes")
	c.Flags().BoolVar(&open, "open", false, "open it in the browser of this account")
	c.MarkFlagsMutuallyExclusive("code", "open")
	return c
}

// wayIn is how a person gets into the console, and says yes there.
type wayIn struct {
	URL   string `json:"url,omitempty"`
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
}

func (way *wayIn) print(w io.Writer, command string) {
	when(w, way.URL != "", "console: %s\n  it opens in one browser, within a minute; %s prints another link\n", cli.OneLine(way.URL, 300), command)
	when(w, way.Code != "", "  the first yes said there takes this code: %s\n", cli.OneLine(way.Code, 40))
}

// consoleHandler is POST /console of the local door: a link to the console for whoever may
// answer there and is of no client of the state directory, or with ?code a code alone.
func (o *files) consoleHandler(apart ...int) http.HandlerFunc {
	return replies(func(_ http.ResponseWriter, r *http.Request) (int, any) {
		var way wayIn
		if err := localdoor.Apart(r.Context(), append(slices.Clone(apart), otherClients(o.state, 0)...)...); err != nil {
			return http.StatusForbidden, wayIn{Error: err.Error()}
		}
		if r.URL.Query().Has("code") {
			way.Code = o.console.Code()
		} else {
			way.URL, way.Code = o.console.Link()
		}
		return http.StatusOK, way
	})
}

// firstCalls are what a person can try with the example server of the gateway that a command
// runs.
func firstCalls(ran *cobra.Command) (try []console.Try) {
	for _, s := range example.Steps() {
		for i, call := range s.Calls {
			s.Calls[i] = withWhere(ran, "writ call --session "+example.FirstSession) + " " + call
		}
		try = append(try, console.Try{Title: s.Title, Says: s.Says, Commands: s.Calls, Ends: s.Ends, Shows: s.Shows})
	}
	return try
}

// openConsole makes the console of a gateway that listens there.
func (o *files) openConsole(g *gateway.Gateway, at net.Addr, ending <-chan struct{}, try []console.Try, log *slog.Logger) error {
	own, err := consoleHost(o.state)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return cli.Fail(cli.ExitIO, "", "the listener has no port")
	}
	if o.status == nil {
		o.status = (&flags{state: o.state}).status
	}
	hosts := []string{own, "localhost", "127.0.0.1", "[::1]"}
	o.console = console.New(console.Options{
		Log: o.store, Queue: o.queue, Elsewhere: &elsewhere{flags: &flags{state: o.state}, own: o.queue}, Host: net.JoinHostPort(own, port), By: account(), Ending: ending, Clock: time.Now, Try: try,
		Foreign: func(r *http.Request) string {
			if o.console.IsPublic(r) {
				return downstream.Foreign(r, []string{r.Host}, true)
			}
			return downstream.Foreign(r, hosts, false)
		},
		Public: o.cfg.Console.Host(), Client: o.clientOf(log),
		Worth: func(principal string) (label writ.Label, ok bool) {
			_, label, ok = o.answersFor(principal)
			return label, ok
		},
		Explain: func(ctx context.Context, session, n string, within uint64) (*story.Explained, error) {
			return (&flags{state: o.state}).explained(ctx, o.store, o.state, session, n, within)
		},
		Prove: func(ctx context.Context, session, n string, within uint64, bare bool) ([]byte, error) {
			all, err := provable(ctx, o.store, session, n, within)
			if err != nil {
				return nil, err
			}
			b, _, err := proofOf(ctx, o.state, o.store, all, bare, nil)
			return b, err
		},
		Verify: o.verified,
		Export: func(ctx context.Context, w io.Writer) error {
			_, err := writeBundle(ctx, w, o.state, o.store)
			return err
		},
		Status: func(ctx context.Context) (string, error) {
			now, err := o.inForce(ctx)
			if err != nil {
				return "", err
			}
			all, err := o.status(ctx, now)
			if err != nil {
				return "", err
			}
			var b bytes.Buffer
			all.print(&b)
			return b.String(), nil
		},
		Servers:  func(ctx context.Context) ([]console.Server, error) { return o.shownServers(ctx, g) },
		Contract: func(ctx context.Context, id string) (*console.Contract, error) { return o.shownContract(ctx, g, id) },
		Policy:   func(ctx context.Context) (*console.Policy, error) { return o.shownPolicy(ctx, g) },
		Sessions: o.store.ListSessions,
		Names:    func(ctx context.Context) map[string]string { return sessionNames(ctx, o.store, o.state) },
		Replay:   o.judgedBy,
		Learned:  o.learned,
		Friction: o.friction,
		Memory:   &consoleMemory{files: o},
	})
	return nil
}

// consoleHost is the name under which a console is reached, of one state directory and known
// to nobody who cannot read its key. Who listens on another port of a host is sent the
// cookies of all of it; what an agent started may, and does not know this one.
func consoleHost(state string) (string, error) {
	key, err := os.ReadFile(filepath.Join(state, statedir.KeyFile))
	if err != nil {
		return "", cli.Fail(cli.ExitIO, "", "the log's key cannot be read")
	}
	sum := sha256.Sum256(append([]byte("the console's host\n"), key...))
	return "writ-" + hex.EncodeToString(sum[:8]) + ".localhost", nil
}

// verified is writ audit verify, for the console.
func (o *files) verified(ctx context.Context, progress func(done, of int64)) (found string, ok bool, err error) {
	v, err := logVerifier(o.state, "")
	if err != nil {
		return "", false, err
	}
	rep, err := verifyLog(ctx, o.state, v, nil, progress)
	switch {
	case err != nil:
		return "", false, err
	case rep.Problem != nil:
		return "The first that is wrong: " + rep.Problem.Error(), false, nil
	}
	var b bytes.Buffer
	rep.print(&b)
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\n", "; "), rep.OK, nil
}

// aside leads who names the public host to the console, whatever he asks for: what else is
// served here is for this machine.
func (o *files) aside(local http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.console.IsPublic(r) {
			o.console.ServeHTTP(w, r)
			return
		}
		local.ServeHTTP(w, r)
	})
}

// clientOf finds the client of a token that lets a person in. What lets nobody in is counted,
// and logged at most once a second for each client whose it is, "" for nobody's.
func (o *files) clientOf(log *slog.Logger) func(token string) (principal string, ok bool) {
	type line struct {
		at   time.Time
		more int // that were not logged since
	}
	var mu sync.Mutex
	lines := map[string]line{} // by the client; guarded by mu
	return func(token string) (string, bool) {
		c, known := clientsOf(o.state).Bearer([]string{"Bearer " + token})
		if _, answers := c.Role.Answers(); known && answers {
			return c.Principal(), true
		}
		o.turned.Add(1)
		mu.Lock()
		defer mu.Unlock()
		last := lines[c.Name]
		if time.Since(last.at) < time.Second {
			lines[c.Name] = line{last.at, last.more + 1}
			return "", false
		}
		log.Warn("a token let nobody in at the console's public address", "client", c.Name, "more", last.more)
		lines[c.Name] = line{at: time.Now()}
		return "", false
	}
}

// besides serves the console where MCP is not. Where there is a public host, what a proxy passes
// on by another name reaches neither: it is to name that one.
func (o *files) besides(mcp http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.cfg.Console.Origin != "" && downstream.Proxied(r) {
			http.Error(w, "This came through a proxy, which has to name the host of console.origin to this gateway and no other (docs/configuration.md).", http.StatusForbidden)
			return
		}
		if r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/mcp/") {
			if !o.callers.Heard(r.Context()) {
				panic(http.ErrAbortHandler) // there is nobody to answer
			}
			mcp.ServeHTTP(w, r)
			return
		}
		o.console.ServeHTTP(w, r)
	})
}

// showConsole prints a link to the console to a terminal, and to nothing else: what stands in
// a log file is read by others. In a log it stands neither where that is shown at a terminal.
// command prints another one.
func (o *files) showConsole(person, log io.Writer, command string) {
	if !cli.Terminal(person) {
		fmt.Fprintf(log, "the console is opened by a link: %s prints one\n", command)
		return
	}
	var way wayIn
	way.URL, way.Code = o.console.Link()
	way.print(person, command)
	if o.opens {
		browse(way.URL)
	}
}

// elsewhere is what waits at the other gateways of a state directory, such as those that
// clients start. They hear an answer from here as they hear one of writ approve: from this
// process, if a person started it.
type elsewhere struct {
	flags *flags
	own   *approval.Queue

	mu     sync.Mutex // guards the rest
	looked time.Time
	busy   bool
	open   []waiting
	said   map[string]approval.Answer // to those that waited lately
	there  int
	leave  context.CancelFunc
}

// lookEvery is how old what is known of other gateways may be.
const lookEvery = time.Second

func (e *elsewhere) Open(ctx context.Context, fresh bool) []approval.Shown {
	e.mu.Lock()
	old := !e.busy && time.Since(e.looked) > lookEvery
	if e.busy = e.busy || old && !fresh; old && !fresh {
		go e.look(context.Background())
	}
	e.mu.Unlock()
	if fresh {
		e.look(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return each(e.open, func(w waiting) approval.Shown { return w.Shown })
}

// look asks all gateways. One that does not answer has no question then.
func (e *elsewhere) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var open []waiting
	_, doors, _ := e.flags.reach(false)
	for _, door := range doors {
		defer door.CloseIdleConnections() // the next look has others
		_ = questions(ctx, door, "", func(qs []approval.Shown, _ string) {
			for _, q := range qs {
				if mine, _ := e.own.Asked(q.ID); mine.ID == "" {
					open = append(open, waiting{q, door})
				}
			}
		})
	}
	e.mu.Lock()
	was := e.open
	e.mu.Unlock()
	said := map[string]approval.Answer{}
	for _, w := range was {
		if slices.ContainsFunc(open, func(o waiting) bool { return o.ID == w.ID }) {
			continue
		}
		defer w.client.CloseIdleConnections()
		var r approval.Reply
		if status, err := exchange(ctx, w.client, "GET /approvals/"+w.ID, "", nil, 1<<16, &r); status == http.StatusOK && err == nil {
			said[w.ID] = approval.Answer{Yes: r.Yes, By: r.By}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open, e.looked, e.busy = open, time.Now(), false
	if e.said == nil || len(e.said) > approval.MaxOpen {
		e.said = map[string]approval.Answer{}
	}
	maps.Copy(e.said, said)
}

func (e *elsewhere) Said(id string) (approval.Answer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a, ok := e.said[id]
	return a, ok
}

// There holds the stream of each gateway open, and of each that is started meanwhile.
func (e *elsewhere) There() (leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.there++; e.there == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		e.leave = cancel
		go e.watch(ctx)
	}
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.there--; e.there == 0 {
			e.leave()
		}
	})
}

func (e *elsewhere) watch(ctx context.Context) {
	held := map[string]chan struct{}{}
	for {
		at, doors, _ := e.flags.reach(false)
		for i := range at {
			id := at[i].ID()
			select {
			case <-held[id]: // it ended
			default:
				if held[id] != nil {
					continue
				}
			}
			ended := make(chan struct{})
			held[id] = ended
			go func() {
				defer close(ended)
				defer doors[i].CloseIdleConnections()
				_ = questions(ctx, doors[i], "?watch", func([]approval.Shown, string) {})
			}()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
	}
}

func (e *elsewhere) Reply(ctx context.Context, id string, a approval.Answer) (status int, said approval.Reply) {
	e.mu.Lock()
	i := slices.IndexFunc(e.open, func(w waiting) bool { return w.ID == id })
	var w waiting
	if i >= 0 {
		w = e.open[i]
	}
	e.mu.Unlock()
	if i < 0 {
		return http.StatusNotFound, said
	}
	status, said, err := w.reply(ctx, a)
	if err != nil {
		said.Error = err.Error()
	}
	return status, said
}
