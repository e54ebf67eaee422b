package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/otlp/standin"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
)

// BenchmarkCall compares one tools/call made directly with the same through
// the gateway over SQLite, on each transport and wire, of a read and of an act:
//
//	go test -run '^$' -bench Call -count 10 ./internal/gateway | tee calls.txt
//	benchstat -col /path calls.txt
//
// Through the gateway a read waits for one durable append and an act for two. With
// path=memory the records go to maps: what it takes more is the store's share.
func BenchmarkCall(b *testing.B) {
	for _, wire := range []string{"2025-11-25", "2026-07-28"} {
		for _, transport := range []string{"http", "stdio"} {
			for _, tool := range []string{"read", "act"} {
				for _, path := range []string{"direct", "gateway", "memory"} {
					b.Run("wire="+wire+"/transport="+transport+"/tool="+tool+"/path="+path, func(b *testing.B) {
						var open func(testing.TB) gateway.Store
						switch path {
						case "gateway":
							open = onSQLite
						case "memory":
							open = onMaps
						}
						benchmark(b, wire, transport == "http", tool, open)
					})
				}
			}
		}
	}
}

// benchmark measures calls through a gateway over that store, or direct ones.
func benchmark(b *testing.B, wire string, overHTTP bool, tool string, open func(testing.TB) gateway.Store) {
	ctx := context.Background()
	modern := wire == "2026-07-28"
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	// The server: in this process over HTTP, a child over stdio.
	url := ""
	if overHTTP {
		y := newToy()
		h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return y.server }, &mcp.StreamableHTTPOptions{Stateless: modern})
		ts := httptest.NewServer(h)
		b.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
		url = ts.URL
	}
	kind := 0
	for k := range kinds {
		if kinds[k].modern == modern && kinds[k].http == overHTTP {
			kind = k
		}
	}
	var c *mcp.ClientSession
	if open != nil {
		cfg := upstream.Config{Name: "toy", URL: url, Era: upstream.Legacy}
		if modern {
			cfg.Era = upstream.Modern
		}
		if !overHTTP {
			cfg.Command, cfg.Env = []string{exe}, map[string]string{envToy: "1"}
		}
		c = sdkClient(b, newRig(b, open(b), policy(b, toyPolicy), cfg), kind, nil)
	} else {
		var tr mcp.Transport = &mcp.StreamableClientTransport{Endpoint: url}
		if !overHTTP {
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), envToy+"=1")
			tr = &mcp.CommandTransport{Command: cmd}
		}
		c, err = mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil).Connect(ctx, tr, &mcp.ClientSessionOptions{ProtocolVersion: wire})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close(); http.DefaultClient.CloseIdleConnections() })
	}
	call := func(name string, args any) {
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil || res.IsError {
			b.Fatalf("%s: %+v %v", name, res, err)
		}
	}
	call("list_items", map[string]any{})
	b.ReportAllocs()
	for b.Loop() {
		if tool == "read" {
			call("look", map[string]any{"text": "hello"})
		} else {
			call("mark_item", map[string]any{"id": "item-17"})
		}
	}
}

// BenchmarkHall measures what a call over stdio takes in Writ alone, but for the log, which
// goes to maps: its client writes the same bytes each time and reads a line, so all that
// is allocated is the gateway's. Its arguments are looked at as paths, as in a program
// that has files of its own. With told a collector takes spans and log records of it.
func BenchmarkHall(b *testing.B) {
	for _, x := range [][3]string{{"look", `{"text":"hello"}`}, {"mark_item", `{"id":"item-17"}`}, {"look", `{"text":"hello"}`, "/told"}, {"mark_item", `{"id":"item-17"}`, "/told"}} {
		tool, args, told := x[0], x[1], x[2]
		b.Run("tool="+tool+told, func(b *testing.B) {
			exe, err := os.Executable()
			if err != nil {
				b.Fatal(err)
			}
			st := onMaps(b)
			r := &rig{tb: b, store: st, opts: gateway.Options{Store: st, Policy: policy(b, toyPolicy), Version: "test", OwnPaths: []string{b.TempDir()},
				Servers: []upstream.Config{{Name: "toy", Era: upstream.Legacy, Command: []string{exe}, Env: map[string]string{envToy: "1"}}}}}
			if told != "" {
				ts := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
				b.Cleanup(ts.Close)
				r.told = &standin.Collector{URL: ts.URL}
			}
			r.start()
			b.Cleanup(r.stop)
			inR, in := io.Pipe()
			outR, outW := io.Pipe()
			served := make(chan error, 1)
			go func() {
				served <- downstream.ServeStdio(context.Background(), r.gw, inR, outW, downstream.StdioOptions{})
			}()
			b.Cleanup(func() {
				in.Close()
				if err := <-served; err != nil {
					b.Error(err)
				}
			})
			out := bufio.NewReaderSize(outR, 64<<10)
			call := func(message []byte) {
				in.Write(message) // a closed pipe is seen as a missing answer
				for {
					line, err := out.ReadSlice('\n')
					if err != nil || bytes.Contains(line, []byte(`"error":{`)) || bytes.Contains(line, []byte(`"isError":true`)) {
						b.Fatalf("%s: %v", line, err)
					}
					if bytes.Contains(line, []byte(`"id":1`)) {
						return
					}
				}
			}
			tools := func(name, args string) []byte {
				return []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args + "}}\n")
			}
			call([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}` + "\n"))
			call(tools("list_items", `{}`))
			message := tools(tool, args)
			b.ReportAllocs()
			for b.Loop() {
				call(message)
			}
		})
	}
}

// BenchmarkQuiet measures what 64 clients that call without pause, each in a session of its
// own, cost one beside them that makes a call each 20 ms: 99 of 100 of its calls alone and
// beside them, and how many times as long that is. All share the processors of one machine.
func BenchmarkQuiet(b *testing.B) {
	ctx, stop := context.WithCancel(context.Background())
	r := newRig(b, onSQLite(b), policy(b, toyPolicy), newToy().config(b, false, true))
	quiet := overHTTP(ctx, r, false, web{})
	p99 := func() time.Duration {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		took := make([]time.Duration, 250)
		for i := range took {
			<-tick.C
			begun := time.Now()
			passed(b, quiet.call(ctx, "look", `{"text":"hello"}`))
			took[i] = time.Since(begun)
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	var alone, beside time.Duration
	for b.Loop() {
		alone += p99()
		var noisy sync.WaitGroup
		loud, hush := context.WithCancel(ctx)
		for range 64 {
			w := overHTTP(ctx, r, false, web{})
			noisy.Go(func() {
				for loud.Err() == nil {
					w.call(ctx, "look", `{"text":"hello"}`)
				}
			})
		}
		beside += p99()
		hush()
		noisy.Wait()
	}
	b.ReportMetric(float64(alone.Microseconds())/float64(b.N), "µs-alone")
	b.ReportMetric(float64(beside.Microseconds())/float64(b.N), "µs-beside")
	b.ReportMetric(float64(beside)/float64(alone), "times")
	b.Cleanup(stop)
}

// BenchmarkResume measures what a restart costs a session of 10,000 records: it
// is read from a file, checked, and every decision in it made again, or of it what
// its snapshot leaves. Between two of its records stand as many of other sessions as
// beside says.
func BenchmarkResume(b *testing.B) {
	for _, c := range []struct {
		beside int
		kept   bool
	}{{0, false}, {9, false}, {0, true}, {9, true}} {
		beside := c.beside
		b.Run(fmt.Sprintf("beside=%d,kept=%v", beside, c.kept), func(b *testing.B) {
			ctx := context.Background()
			y := newToy()
			signer, verifier := storetest.Key()
			st, err := sqlite.Open(b.TempDir(), sqlite.Options{Signer: signer, Verifier: verifier})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { st.Close() })
			r := newRig(b, st, policy(b, toyPolicy), y.config(b, false, true))
			if c.kept {
				if r.opts.Snapshots, err = snapshot.Open(b.TempDir(), []byte("key")); err != nil {
					b.Fatal(err)
				}
				r.restart()
			}
			secret := r.mint()
			w := overHTTP(ctx, r, true, web{session: secret})
			passed(b, w.call(ctx, "list_items", `{}`))
			for n := 3; n < 10_000; n += 2 {
				w.call(ctx, "look", `{"text":"hello"}`)
				if beside > 0 {
					id := fmt.Sprintf("s_beside%d", n)
					storetest.Append(b, r.store, id, 0, storetest.Entries(b, id, 1, uint64(2*beside))...)
				}
			}
			b.ResetTimer()
			b.ReportAllocs()
			for b.Loop() {
				g, err := gateway.New(r.opts)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := g.FindSession(ctx, downstream.Loopback, secret); err != nil {
					b.Fatal("the session is not there")
				}
			}
		})
	}
}
