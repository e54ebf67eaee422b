package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/console"
	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/metrics"
	"github.com/writ-project/writ/internal/store/sqlite"
)

const (
	defaultListen     = "127.0.0.1:8700"
	exampleServerName = "example-server"
)

func exampleServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: exampleServerName, Short: "Speak MCP as the built-in example server", Hidden: true, Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return example.Serve(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
}

func serveCommand() *cobra.Command {
	var f flags
	var listen, counted string
	var open bool
	c := f.take(&cobra.Command{
		Use: "serve", Short: "Run the gateway over HTTP, MCP at /mcp, and the console", Args: cli.NoArgs,
		Long: "Run the gateway over Streamable HTTP, MCP at /mcp. Without --config it mounts the\n" +
			"built-in example server, with a contract for each of its tools. At a terminal it prints a\n" +
			"link to the console, which opens it in one browser within a minute; writ console prints\n" +
			"another one.",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := f.load()
			if err != nil {
				return err
			}
			o.status, o.opens = f.status, open
			return o.serve(c, listen, counted)
		},
	}, "state", "config")
	c.Flags().StringVar(&listen, "listen", defaultListen, "`HOST:PORT` to listen on; loopback only")
	c.Flags().BoolVar(&open, "open", false, "open the console in the browser of this account")
	c.Flags().StringVar(&counted, "metrics", "", "`HOST:PORT` to show metrics on, at /metrics, instead of that of the configuration; loopback only")
	return c
}

// drainWithin bounds how long calls under way may take to reach their outcome once the
// gateway is to end.
const drainWithin = 25 * time.Second

// serve runs a gateway over HTTP until the context ends, and what it counts over another
// listener, where it has one. Then the calls under way reach their outcome, each of which
// is on record, and whoever comes meanwhile is told that the gateway is stopping.
func (o *files) serve(c *cobra.Command, listen, counted string) error {
	ctx := c.Context()
	person := c.ErrOrStderr()
	log, stderr := o.logs(c, slog.LevelWarn)
	if o.opens && !cli.Terminal(person) {
		return cli.Fail(cli.ExitUsage, "writ serve", "--open is for a terminal: the code that a yes needs is shown there")
	}
	ln, counting, err := o.listen(listen, counted)
	if err != nil {
		return err
	}
	defer ln.Close()
	url := "http://" + ln.Addr().String()
	at := []string{url}
	if o.cfg.Console.Origin != "" {
		at = append(at, o.cfg.Console.Origin)
	}
	o.addresses = append(o.addresses, at...)
	o.ownPaths = append(o.ownPaths, at...) // R34: no tool is sent to this gateway
	if o.witnesses, err = o.callWitnesses(log); err != nil {
		return err
	}
	if dir := o.retain.Archive; dir != "" && os.MkdirAll(dir, 0o700) == nil {
		o.own(dir) // where it leads is known now
	}
	g, stop, err := o.start(ctx, log)
	if err != nil {
		return err
	}
	ctx, cancel := o.sound(ctx)
	defer cancel()
	h := downstream.NewHTTP(g, downstream.Options{Principal: o.callerOf, Refused: g.Refused})
	var try []console.Try
	if o.example {
		try = firstCalls(c)
	}
	if err := o.openConsole(g, ln.Addr(), ctx.Done(), try, log); err != nil {
		return errors.Join(err, stop())
	}
	settled := make(chan struct{})
	o.callers = new(localdoor.Callers)
	srv := downstream.NewServer(o.aside(health(o.besides(h), o.broken, settled, ctx.Done())))
	o.callers.Watch(srv)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	defer o.showMetrics(counting, counted, g, h, stderr)()
	ended, err := o.upkeep(ctx, g, log, everyMinute(ctx))
	if err != nil {
		return errors.Join(err, stop())
	}
	o.hearReload(ctx, g, stderr)

	forget := announce(o.state, url, o.localHandler(g, nil, h), stderr)
	fmt.Fprintf(stderr, "listening on %s/mcp\n", url)
	fmt.Fprintf(stderr, "state in %s\n", cli.Printable(o.state))
	o.showConsole(person, stderr, withWhere(c, "writ console"))
	when(stderr, o.cfg.Console.Origin != "", "the console is at %s too, for whoever has the token of a client that is a person's (writ client add)\n", o.cfg.Console.Origin)
	o.warn(stderr)
	o.warnOfShadow(stderr)
	if o.example {
		fmt.Fprintf(stderr, "no --config: the built-in example server is mounted. The console says what to try; it begins so, in another terminal:\n  %s\n",
			try[0].Commands[0])
	}
	go func() {
		if g.Settled(ctx) == nil {
			close(settled)
			tellFailed(stderr, g)
		}
	}()

	select {
	case <-ctx.Done():
	case err = <-done:
	}
	o.drain(h, stderr)
	forget()
	cancel()
	<-ended // what it takes out of the log
	// Their answers are written.
	endServer(srv)
	if cerr := stop(); cerr != nil {
		return unclean(cerr)
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return cli.Fail(cli.ExitIO, "", "the listener failed: %w", err)
	}
	return nil
}

func tellFailed(w io.Writer, g *gateway.Gateway) {
	for name, err := range g.Failed() {
		fmt.Fprintf(w, "server %s cannot be reached: %s\n", name, cli.OneLine(err.Error(), 200))
	}
}

// listen opens the listener for MCP, and the one of its own for metrics, nil for none.
func (o *files) listen(at, counted string) (ln, counting net.Listener, err error) {
	if err := loopbackOnly(at); err != nil {
		return nil, nil, err
	}
	if counting, err = o.listenForMetrics(counted); err != nil {
		return nil, nil, err
	}
	if _, err := clientsOf(o.state).All(); err != nil {
		return nil, nil, exposed(err, "the registered clients cannot be read")
	}
	if ln, err = net.Listen("tcp", at); err != nil {
		return nil, nil, cli.Fail(cli.ExitConfig, "writ serve --listen 127.0.0.1:0", "cannot listen on that address: %w", err)
	}
	return ln, counting, nil
}

// drain waits for the calls under way, and takes no more.
func (o *files) drain(h *downstream.HTTP, stderr io.Writer) {
	patience := drainWithin
	select {
	case <-o.broken: // no outcome can be put on record; refusals are still told
		patience = 5 * time.Second
	default:
	}
	drained, late := context.WithTimeout(context.Background(), patience)
	defer late()
	if h.Shutdown(drained) != nil {
		fmt.Fprintf(stderr, "writ: calls under way took longer than %s and were given up: the outcome of an act among them is unknown (writ audit show)\n", patience)
	}
}

// endServer ends a server, whoever is still served after some seconds.
func endServer(srv *http.Server) {
	end, expired := context.WithTimeout(context.Background(), 5*time.Second)
	defer expired()
	if srv.Shutdown(end) != nil {
		srv.Close()
	}
}

// warnOfShadow says that nothing is refused, where that is so.
func (o *files) warnOfShadow(w io.Writer) {
	when(w, o.shadow, "SHADOW MODE: calls are judged and recorded, and every one of them passes\n")
}

// loopbackOnly refuses an address other machines could reach: there is no TLS yet,
// and who shows no token is let in (attack S18).
func loopbackOnly(listen string) error {
	near, err := config.Loopback(listen)
	if err != nil {
		return cli.Fail(cli.ExitUsage, "writ serve --listen "+defaultListen, "--listen takes HOST:PORT")
	}
	if near {
		return nil
	}
	return cli.Fail(cli.ExitConfig, "writ serve --listen "+defaultListen,
		"not a loopback address: without TLS, which this version does not have, others could read the tokens and use the gateway")
}

// localHandler is what Writ's own commands reach over the local door: MCP where
// there is a handler for it, what waits for a person, and his words. He descends
// neither from this process nor from its one client, where it has one, nor from those that
// speak MCP to it over HTTP.
func (o *files) localHandler(g *gateway.Gateway, client *oneClient, mcp http.Handler) http.Handler {
	apart := []int{os.Getpid()}
	if client != nil {
		apart = append(apart, client.pid)
	}
	m := http.NewServeMux()
	m.Handle("POST /say", sayHandler(g, client, o.saying(apart...)))
	m.Handle("POST /hook", o.hookHandler(g, client))
	if mcp != nil {
		m.Handle("/", mcp)
	}
	m.Handle("GET /status", o.statusHandler(g, client))
	if o.console != nil {
		m.Handle("POST /console", o.consoleHandler(apart...))
	}
	m.Handle("POST /settle", settleHandler(g, apart...))
	m.Handle("POST /closed", closedHandler(g))
	m.Handle("POST /reload", o.reloadHandler(g, apart...))
	m.Handle("/approvals", approval.Handler(o.queue, answering(apart...)))
	m.Handle("/approvals/", approval.Handler(o.queue, answering(apart...)))
	return o.callers.Keep(m)
}

// announce makes a gateway known to the commands of its state directory, and opens
// the local door over which they reach it. Without an entry nothing else is lost, so
// that is a warning.
func announce(state, url string, h http.Handler, stderr io.Writer) (forget func()) {
	srv := downstream.NewServer(h)
	localdoor.Know(srv)
	watched, leave := context.WithCancel(context.Background())
	srv.BaseContext = func(net.Listener) context.Context { return watched }
	door, err := localdoor.Open(state)
	if err == nil {
		var ln net.Listener
		if ln, err = door.Listen(); err == nil {
			go srv.Serve(ln)
		}
	}
	if err == nil {
		err = door.Publish(url, time.Now())
	}
	if err != nil {
		fmt.Fprintf(stderr, "writ: this gateway could not be announced in the state directory, and `writ call` will not find it: %s\n", cli.OneLine(err.Error(), 200))
	}
	return func() {
		if door != nil {
			door.Close()
		}
		leave() // who watches for what comes would wait for good
		endServer(srv)
	}
}

// listenForMetrics opens the listener of its own on which metrics are shown: that of the
// flag, else of the configuration; nil for none. No tool is sent there (R34).
func (o *files) listenForMetrics(flag string) (net.Listener, error) {
	at := o.cfg.Metrics.Listen
	if flag != "" {
		if near, err := config.Loopback(flag); err != nil || !near {
			return nil, cli.Fail(cli.ExitUsage, "writ serve --metrics 127.0.0.1:9464", "--metrics takes a HOST:PORT that this machine alone reaches; for another, writ.yaml has metrics with anybody_may_read: true")
		}
		at = flag
	}
	if at == "" {
		return nil, nil
	}
	ln, err := net.Listen("tcp", at)
	if err != nil {
		return nil, cli.Fail(cli.ExitConfig, "writ serve --metrics 127.0.0.1:0", "cannot listen for metrics on that address: %w", err)
	}
	url := "http://" + ln.Addr().String()
	o.addresses, o.ownPaths = append(o.addresses, url), append(o.ownPaths, url)
	return ln, nil
}

// showMetrics serves them until end is called. On loopback, as at an address of the flag, h's
// checks of host and origin keep pages of the web from reading them.
func (o *files) showMetrics(ln net.Listener, flag string, g *gateway.Gateway, h *downstream.HTTP, stderr io.Writer) (end func()) {
	if ln == nil {
		return func() {}
	}
	page := o.metricsPage(g)
	if flag != "" || !o.cfg.Metrics.AnybodyMayRead {
		page = h.Guard(page)
	}
	srv := downstream.NewServer(page)
	go srv.Serve(ln)
	fmt.Fprintf(stderr, "metrics on http://%s/metrics\n", ln.Addr())
	return func() { srv.Close() }
}

// metricsPage is GET /metrics: what the gateway counts, and what its log takes on disk.
func (o *files) metricsPage(g *gateway.Gateway) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		build := metrics.Gauge("writ_build_info", "1, of the version that runs.", "version")
		build.Add(1, readBuildInfo().Version)
		stored := metrics.Gauge("writ_store_bytes", "What the log takes on disk.", "file")
		for _, name := range []string{sqlite.FileName, sqlite.FileName + "-wal", sqlite.JournalName} {
			if fi, err := os.Stat(filepath.Join(o.state, name)); err == nil {
				stored.Add(uint64(fi.Size()), name)
			}
		}
		var p metrics.Page
		p.Show(build)
		g.Metrics(&p)
		failing := metrics.Gauge("writ_retention_failing", "1 where what was kept long enough could not be taken out of the log.")
		if failing.Add(0); o.retainer != nil && o.retainer.Status().Fault != "" {
			failing.Add(1)
		}
		p.Show(stored, o.told.Counted(), failing, o.turned)
		w.Header().Set("Content-Type", metrics.ContentType)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Write(p.Bytes())
	})
	return m
}

// health answers what a supervisor asks, with one word and to anybody, for the word says
// nothing of who uses the gateway; every other request is next's. GET /healthz is "ok" until
// the log's disk failed, then 503 and "failed". GET /readyz is "ready" once every server
// answered or was given up, and "starting" before that, "ending" once the gateway ends,
// both with 503.
func health(next http.Handler, broken, settled, ending <-chan struct{}) http.Handler {
	over := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		word := ""
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
		case r.URL.Path == "/healthz" && !over(broken):
			word = "ok"
		case r.URL.Path == "/healthz", r.URL.Path == "/readyz" && over(broken):
			word = "failed"
		case r.URL.Path != "/readyz":
		case over(ending):
			word = "ending"
		case !over(settled):
			word = "starting"
		default:
			word = "ready"
		}
		if word == "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if word != "ok" && word != "ready" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		io.WriteString(w, word+"\n")
	})
}
