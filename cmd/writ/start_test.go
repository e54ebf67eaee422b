package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/memory"
)

// BenchmarkStart is a start of the built program up to its first answer to
// tools/list, over stdio and over HTTP, on states of several sizes:
//
//	go test -run '^$' -bench Start -count 10 ./cmd/writ
//
// cpu-ms is what it and the processes it started took until they ended; rss-MB
// is its resident memory at that answer. The largest states are made under
// WRIT_LONG. WRIT_BINARY names a program to measure instead of building this one.
func BenchmarkStart(b *testing.B) {
	b.Setenv("XDG_DATA_HOME", b.TempDir())
	program := os.Getenv("WRIT_BINARY")
	if program == "" {
		program = filepath.Join(b.TempDir(), "writ")
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
	for _, s := range []struct {
		records, sessions, observations int
	}{{}, {10_000, 100, 0}, {1_000_000, 10_000, 0}, {0, 0, 1_000}, {0, 0, 100_000}} {
		b.Run(fmt.Sprintf("records=%d/observations=%d", s.records, s.observations), func(b *testing.B) {
			if s.records+s.observations > 20_000 && os.Getenv("WRIT_LONG") == "" {
				b.Skip("takes minutes to make: set WRIT_LONG")
			}
			full := ""
			if s.records+s.observations > 0 {
				full = grown(b, s.records, s.sessions, s.observations)
			}
			for _, wire := range []string{"stdio", "http"} {
				b.Run("wire="+wire, func(b *testing.B) { benchmarkStart(b, program, wire, full) })
			}
		})
	}
}

func benchmarkStart(b *testing.B, program, wire, state string) {
	var cpu time.Duration
	var rss float64
	for b.Loop() {
		b.StopTimer()
		dir := state
		if dir == "" {
			dir = filepath.Join(b.TempDir(), "state")
		}
		b.StartTimer()
		answered := started(b, program, wire, dir)
		b.StopTimer()
		took, mb := answered()
		cpu, rss = cpu+took, rss+mb
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/op")
	if rss > 0 {
		b.ReportMetric(rss/float64(b.N), "rss-MB")
	}
}

// started starts the program and returns at the first answer. end ends it.
func started(b *testing.B, program, wire, dir string) (end func() (cpu time.Duration, rss float64)) {
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	var c *exec.Cmd
	var stdin io.Closer
	said := ""
	if wire == "stdio" {
		c = exec.CommandContext(ctx, program, "run", "--state", dir)
		in, err := c.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		stdin = in
		lines := begin(b, c, c.StdoutPipe)
		io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`+"\n"+
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`+"\n")
		for !strings.Contains(said, `"id":2,`) && lines.Scan() {
			said = lines.Text()
		}
	} else {
		c = exec.CommandContext(ctx, program, "serve", "--listen", "127.0.0.1:0", "--state", dir)
		lines := begin(b, c, c.StderrPipe)
		url := ""
		for url == "" && lines.Scan() {
			if _, at, ok := strings.Cut(lines.Text(), "listening on "); ok {
				url = at
			}
		}
		go func() {
			for lines.Scan() {
			}
		}()
		said = posted(b, url)
	}
	if !strings.Contains(said, `"search_documents"`) {
		b.Errorf("tools/list was answered with %.200s", said)
	}
	return func() (time.Duration, float64) {
		defer cancel()
		rss := 0.0
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid)); err == nil {
			if m := regexp.MustCompile(`VmRSS:\s+([0-9]+) kB`).FindSubmatch(status); m != nil {
				fmt.Sscan(string(m[1]), &rss)
			}
		}
		if stdin != nil {
			stdin.Close()
		} else {
			c.Process.Signal(os.Interrupt)
		}
		if err := c.Wait(); err != nil {
			b.Errorf("%s: %v", wire, err)
		}
		return c.ProcessState.UserTime() + c.ProcessState.SystemTime(), rss * 1024 / 1e6
	}
}

func begin(b *testing.B, c *exec.Cmd, pipe func() (io.ReadCloser, error)) *bufio.Scanner {
	r, err := pipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	return lines
}

func posted(b *testing.B, url string) string {
	const meta = "io.modelcontextprotocol/"
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader([]byte(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"`+meta+
		`protocolVersion":"2026-07-28","`+meta+`clientInfo":{"name":"b","version":"1"},"`+meta+`clientCapabilities":{}}}}`)))
	if err != nil {
		b.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"} {
		r.Header.Set(name, value)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return string(said)
}

// grown makes a state directory with so many records of calls, evenly of the
// sessions, and so many observations in the memory. It is closed as a gateway
// closes it.
func grown(b *testing.B, records, sessions, observations int) string {
	dir := filepath.Join(b.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	st, err := openStore(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	for i := range sessions {
		id := fmt.Sprintf("s_%08x", i)
		entries := make([]audit.Entry, records/sessions)
		for n := range entries {
			entries[n] = storetest.Entry(b, id, uint64(n+1))
		}
		if _, err := st.AppendUnsynced(b.Context(), id, 0, entries); err != nil {
			b.Fatal(err)
		}
	}
	if observations == 0 {
		return dir
	}
	k, err := openMemory(b.Context(), dir, st, config.DefaultMemory())
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() { // few of one source: so many a minute are taken
			for i := next.Add(1); i <= int64(observations); i = next.Add(1) {
				o, err := k.Propose(b.Context(), memory.Context{
					Principal: "agent",
					Session:   "s_bench", Task: "s_bench",
					Captured: []memory.Captured{{Ref: "ev1", Evidence: "s_bench/ev1", Label: writ.System, Source: fmt.Sprintf("toy%d/read", i/20), Verbatim: true}},
				}, writ.Proposal{ToolName: memory.ToolRecordObservation,
					Payload: fmt.Appendf(nil, `{"observation_id":"o%d","raw_payload":"the %dth thing that was seen, in a few words of %x"}`, i, i, i*i)})
				if err != nil || o.Status != writ.Accepted {
					b.Errorf("%v %v", err, o.Rejection)
					return
				}
			}
		})
	}
	all.Wait()
	return dir
}
