// Command speed measures what a call costs on its way: made directly, through the least
// that a proxy can do, and through the built program, in turns in one run.
//
//	speed -writ dist/writ -out eval/results/speed.json -record eval/results/record.json -page docs/performance.md
//
// What the record takes, to go on with a long session and to verify it, is measured apart.
// It starts itself as the server that is called (tool) and as that proxy (relay), which reads
// a message, parses it and sends it on. Only ratios of one run say anything: one
// that is worse by a quarter than what -out held before ends with 1, and leaves it as it was.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	if len(os.Args) > 2 {
		switch kind, arg := os.Args[1], os.Args[2]; kind {
		case "tool":
			fail(tool(arg))
			return
		case "relay":
			fail(relay(arg, os.Args[3:]))
			return
		}
	}
	var o options
	flag.StringVar(&o.writ, "writ", "dist/writ", "the built `PROGRAM`")
	out := flag.String("out", "", "write the result to `FILE`")
	page := flag.String("page", "", "write the table to `FILE`")
	flag.IntVar(&o.calls, "calls", 2000, "calls of each kind and way")
	flag.DurationVar(&o.load, "load", 3*time.Second, "how long 64 clients call")
	record := flag.String("record", "", "measure the record too, and write that to `FILE`")
	most := flag.Int("most", 100000, "`N` calls of the longest session whose record is measured")
	flag.Parse()
	r, err := measure(&o)
	fail(err)
	fmt.Print(r.table())
	text := r.page()
	if *record != "" {
		rec, err := recorded(&o, *most)
		fail(err)
		fmt.Print("\n", rec.table())
		text += rec.page()
		fail(written(*record, rec))
	}
	if *out == "" {
		return
	}
	if worse := r.worse(*out); worse != "" {
		fail(errors.New(worse))
	}
	fail(written(*out, r))
	if *page != "" {
		fail(os.WriteFile(*page, []byte(text), 0o644))
	}
}

// written writes a result as JSON.
func written(file string, result any) error {
	b, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

type options struct {
	writ  string
	calls int
	load  time.Duration
}

// The ways of a call.
const (
	direct  = "direct"
	relayed = "relay"
	through = "writ"
)

var ways = []string{direct, relayed, through}

// Result is what one run measured.
type Result struct {
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	// SyncedAppend is the median of an append of 300 bytes to a file with its sync.
	SyncedAppend float64 `json:"synced_append_us"`
	Rows         []Row   `json:"rows"`
	// DiskPerRead is by how many bytes the state grows with a small read.
	DiskPerRead int `json:"disk_per_read_bytes"`
}

// Row is one kind of call one way: one client's, or with PerSecond that of 64 at once.
type Row struct {
	Transport string  `json:"transport"`
	Call      string  `json:"call"`
	Way       string  `json:"way"`
	P50       float64 `json:"p50_us,omitempty"`
	P99       float64 `json:"p99_us,omitempty"`
	PerSecond float64 `json:"per_second,omitempty"`
}

var calls = []struct{ name, a, params string }{
	{"read", "a read", `{"name":"look","arguments":{"text":"hello"}}`},
	{"act", "an act", `{"name":"mark","arguments":{"id":"item-17"}}`},
}

func measure(o *options) (*Result, error) {
	dir, err := os.MkdirTemp("", "speed")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &Result{CPUs: runtime.NumCPU(), Go: runtime.Version()}
	if r.SyncedAppend, err = syncedAppend(filepath.Join(dir, "appended")); err != nil {
		return nil, err
	}
	for _, transport := range []string{"stdio", "http"} {
		if err := r.latency(o, dir, transport); err != nil {
			return nil, fmt.Errorf("%s: %w", transport, err)
		}
	}
	if err := r.disk(o, dir); err != nil {
		return nil, err
	}
	return r, r.load(o, dir)
}

// disk has a client read, and looks by how much more the state of a gateway that ended is than
// that of one where nothing was read: what runs has zeros ahead, and things twice.
func (r *Result) disk(o *options, dir string) error {
	state := filepath.Join(dir, "state-disk")
	for n := 0; n <= o.calls; n += o.calls {
		before := size(state)
		c, end, err := overStdio(o, dir, state, through)
		if err != nil {
			return err
		}
		err = c.begin()
		for range n {
			if err == nil {
				err = c.call(calls[0].params)
			}
		}
		end()
		if err != nil {
			return err
		}
		r.DiskPerRead = (size(state) - before) / o.calls
	}
	return nil
}

// latency has one client make all calls, some each way in turns.
func (r *Result) latency(o *options, dir, transport string) error {
	const round = 100
	clients := map[string]client{}
	state := filepath.Join(dir, "state-"+transport)
	for _, way := range ways {
		var c client
		var end func()
		var err error
		if transport == "stdio" {
			c, end, err = overStdio(o, dir, state, way)
		} else {
			var at string
			if at, end, err = serving(o, dir, state, way); err == nil {
				c = overHTTP(at, new(string))
			}
		}
		if end != nil {
			defer end()
		}
		if err == nil {
			err = c.begin()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", way, err)
		}
		clients[way] = c
	}
	for _, call := range calls {
		took := map[string][]time.Duration{}
		for n := 0; n < o.calls+round; n += round {
			if n == round { // the first was to warm up
				clear(took)
			}
			for _, way := range ways {
				for range round {
					start := time.Now()
					if err := clients[way].call(call.params); err != nil {
						return fmt.Errorf("%s, %s: %w", call.name, way, err)
					}
					took[way] = append(took[way], time.Since(start))
				}
			}
		}
		for _, way := range ways {
			slices.Sort(took[way])
			at := func(percent int) float64 { return micros(took[way][(len(took[way])-1)*percent/100]) }
			r.Rows = append(r.Rows, Row{Transport: transport, Call: call.name, Way: way, P50: at(50), P99: at(99)})
		}
	}
	return nil
}

// load has 64 clients, each in a session of its own, call as fast as they can.
func (r *Result) load(o *options, dir string) error {
	const many = 64
	for _, way := range ways {
		at, end, err := serving(o, dir, filepath.Join(dir, "state-load"), way)
		if err != nil {
			return err
		}
		defer end()
		var clients []client
		for range many {
			c := overHTTP(at, new(string))
			if err := c.begin(); err != nil {
				return err
			}
			clients = append(clients, c)
		}
		for _, call := range calls {
			var made atomic.Int64
			start := time.Now()
			if err := together(clients, func() string {
				if time.Since(start) >= o.load {
					return ""
				}
				made.Add(1)
				return call.params
			}); err != nil {
				return err
			}
			r.Rows = append(r.Rows, Row{Transport: "http", Call: call.name, Way: way, PerSecond: float64(int(float64(made.Load()) / time.Since(start).Seconds()))})
		}
		end()
	}
	return nil
}

// together has clients call at once, each what next says until that is nothing.
func together(clients []client, next func() string) error {
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for params := next(); params != "" && failed.Load() == nil; params = next() {
				if err := c.call(params); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d.Round(100*time.Nanosecond)) / 1000 }

func syncedAppend(file string) (float64, error) {
	f, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var took []time.Duration
	for range 300 {
		start := time.Now()
		if _, err = f.Write(make([]byte, 300)); err == nil {
			err = f.Sync()
		}
		if err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return micros(took[len(took)/2]), nil
}

// size is what the files below a directory take.
func size(dir string) (n int) {
	filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if fi, err := d.Info(); err == nil {
				n += int(fi.Size())
			}
		}
		return nil
	})
	return n
}

func (r *Result) row(transport, call, way string, load bool) Row {
	for _, row := range r.Rows {
		if row.Transport == transport && row.Call == call && row.Way == way && row.PerSecond > 0 == load {
			return row
		}
	}
	return Row{}
}

// ratio is a figure of the built program to that of the relay.
type ratio struct {
	name, aim string
	value     float64
	more      bool // more is better
}

func (r *Result) ratios() (out []ratio) {
	for _, c := range []struct{ transport, call, a, p50, p99 string }{{"stdio", "read", "a read", "2", "3"}, {"stdio", "act", "an act", "", ""}, {"http", "read", "a read", "1.5", "3"}, {"http", "act", "an act", "", ""}} {
		w, l := r.row(c.transport, c.call, through, false), r.row(c.transport, c.call, relayed, false)
		out = append(out, ratio{c.a + " over " + c.transport + ", median", c.p50, w.P50 / l.P50, false}, ratio{c.a + " over " + c.transport + ", 99 of 100", c.p99, w.P99 / l.P99, false})
		if c.call == "act" {
			out = append(out, ratio{"what an act over " + c.transport + " takes more, in synced appends", "1.3", (w.P50 - l.P50) / r.SyncedAppend, false})
		}
	}
	for _, c := range calls {
		out = append(out, ratio{c.name + "s a second of 64 clients", "0.7", r.row("http", c.name, through, true).PerSecond / r.row("http", c.name, relayed, true).PerSecond, true})
	}
	return out
}

// worse says what became worse by a quarter since a file was written.
func (r *Result) worse(file string) string {
	b, err := os.ReadFile(file)
	var was Result
	if err != nil || json.Unmarshal(b, &was) != nil {
		return ""
	}
	var said []string
	old := was.ratios()
	for i, now := range r.ratios() {
		if now.more && now.value*1.25 < old[i].value || !now.more && now.value > old[i].value*1.25 {
			said = append(said, fmt.Sprintf("%s: %.2f of the relay, %.2f before", now.name, now.value, old[i].value))
		}
	}
	return strings.Join(said, "; ")
}

func (r *Result) table() string {
	var b strings.Builder
	fmt.Fprint(&b, "| call | direct | relay | writ |\n|---|---|---|---|\n")
	for _, transport := range []string{"stdio", "http"} {
		for _, call := range calls {
			fmt.Fprintf(&b, "| %s over %s, µs: median, 99 of 100 |", call.a, transport)
			for _, way := range ways {
				row := r.row(transport, call.name, way, false)
				fmt.Fprintf(&b, " %.0f, %.0f |", row.P50, row.P99)
			}
			b.WriteByte('\n')
		}
	}
	for _, call := range calls {
		fmt.Fprintf(&b, "| %ss a second, 64 clients over http |", call.name)
		for _, way := range ways {
			fmt.Fprintf(&b, " %.0f |", r.row("http", call.name, way, true).PerSecond)
		}
		b.WriteByte('\n')
	}
	fmt.Fprint(&b, "\n| writ to relay | aim | measured |\n|---|---|---|\n")
	for _, x := range r.ratios() {
		fmt.Fprintf(&b, "| %s | %s | %.2f |\n", x.name, x.aim, x.value)
	}
	fmt.Fprintf(&b, "| the state grows with a small read, bytes | 1,200 | %d |\n", r.DiskPerRead)
	return b.String()
}

func (r *Result) page() string {
	return fmt.Sprintf(`# Performance

Made by `+"`make speed`"+` (`+"`eval/speed`"+`): the same calls made directly, through a relay, which reads a message,
parses it and sends it on, and through the built program, in turns in one run; %d CPUs, %s. A synced append of 300
bytes took %.0f µs. Only ratios of one run say anything: another machine has other figures.

%s`, r.CPUs, r.Go, r.SyncedAppend, r.table())
}
