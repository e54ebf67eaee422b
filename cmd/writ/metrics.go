package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/metrics"
	"github.com/writ-project/writ/internal/otlp"
	"github.com/writ-project/writ/internal/store/sqlite"
)

// listenForMetrics opens the listener of its own on which metrics are shown: that of the
// flag, else of the configuration; nil for none. No tool is sent there (R34).
func (o *files) listenForMetrics(flag string) (net.Listener, error) {
	at := o.metrics.Listen
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
	if flag != "" || !o.metrics.AnybodyMayRead {
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
		exported := o.exported
		if exported == nil {
			exported = (*otlp.Exporter)(nil).Counted()
		}
		failing := metrics.Gauge("writ_retention_failing", "1 where what was kept long enough could not be taken out of the log.")
		if failing.Add(0); o.retainer != nil && o.retainer.Status().Fault != "" {
			failing.Add(1)
		}
		p.Show(stored, exported, failing, o.turned)
		w.Header().Set("Content-Type", metrics.ContentType)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Write(p.Bytes())
	})
	return m
}
