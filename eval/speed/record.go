package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Record is what the record of one session came to, of each so many calls.
type Record struct {
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	Logs []Log  `json:"logs"`
}

// Log is a state directory in which one session made so many calls over HTTP, every eighth an
// act, and what the built program takes for it. Times are in milliseconds, of the best of three.
type Log struct {
	Calls   int     `json:"calls"`
	Records int     `json:"records"`
	Bytes   int     `json:"bytes"`           // of the state directory once its gateway ended
	Began   float64 `json:"began_ms"`        // from the start of the gateway until it listens
	Cold    float64 `json:"first_answer_ms"` // to a read in that session, from then on
	Said    float64 `json:"after_say_ms"`    // a read after writ session say of another process
	Shown   float64 `json:"show_ms"`         // writ audit show, of the newest decisions
	Export  float64 `json:"export_ms"`
	// State is writ audit verify of the directory, Bundle of the file that was exported.
	State  Verified `json:"state"`
	Bundle Verified `json:"bundle"`
}

// Verified is a run of writ audit verify.
type Verified struct {
	Records   int     `json:"records"`
	Decisions int     `json:"replayed"`
	Took      float64 `json:"took_ms"`
	CPU       float64 `json:"cpu_s"`  // of all processors together
	MB        float64 `json:"rss_mb"` // at most resident
}

// recorded measures the record after each so many calls.
func recorded(o *options, most int) (*Record, error) {
	dir, err := os.MkdirTemp("", "record")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &Record{CPUs: runtime.NumCPU(), Go: runtime.Version()}
	for n := 1000; n <= most; n *= 10 {
		l := Log{Calls: n}
		if err := l.measure(o, dir, filepath.Join(dir, fmt.Sprint(n))); err != nil {
			return nil, fmt.Errorf("%d calls: %w", n, err)
		}
		r.Logs = append(r.Logs, l)
	}
	return r, nil
}

func millis(d time.Duration) float64 { return float64(d.Round(10*time.Microsecond)) / 1e6 }

// best is the least of three times that f took, each after something was done for it, in
// milliseconds.
func best(before, f func() error) (float64, error) {
	var all []float64
	for range 3 {
		err := before()
		start := time.Now()
		if err == nil {
			err = f()
		}
		if err != nil {
			return 0, err
		}
		all = append(all, millis(time.Since(start)))
	}
	return slices.Min(all), nil
}

// run runs the built program and returns what it printed.
func (o *options) run(args ...string) ([]byte, *os.ProcessState, error) {
	cmd := exec.Command(o.writ, args...)
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %.300s", args[0], args[1], err, out)
	}
	return out, cmd.ProcessState, err
}

func (l *Log) measure(o *options, dir, state string) error {
	at, end, err := serving(o, dir, state, through)
	if err != nil {
		return err
	}
	session, err := l.fill(at)
	end()
	if err != nil {
		return err
	}
	l.Bytes = size(state)
	l.Began, l.Cold = math.Inf(1), math.Inf(1)
	for n := range 3 {
		start := time.Now()
		if at, end, err = serving(o, dir, state, through); err != nil {
			return err
		}
		l.Began, start = min(l.Began, millis(time.Since(start))), time.Now()
		c := overHTTP(at, &session)
		err = c.call(calls[0].params)
		l.Cold = min(l.Cold, millis(time.Since(start)))
		if err == nil && n == 0 {
			l.Said, err = said(o, state, c)
		}
		end()
		if err != nil {
			return err
		}
	}
	bundle := filepath.Join(dir, fmt.Sprintf("bundle-%d", l.Calls))
	cleared := func() error { return os.RemoveAll(bundle) }
	if l.Shown, err = best(cleared, func() error {
		_, _, err := o.run("audit", "show", "--state", state)
		return err
	}); err != nil {
		return err
	}
	if l.Export, err = best(cleared, func() error {
		_, _, err := o.run("audit", "export", "-o", bundle, "--state", state)
		return err
	}); err != nil {
		return err
	}
	if err := l.State.of(o, "--state", state); err != nil {
		return err
	}
	l.Records = l.State.Records
	return l.Bundle.of(o, "--bundle", bundle)
}

// fill makes the calls, eight at a time, in one session.
func (l *Log) fill(at string) (session string, err error) {
	if err := overHTTP(at, &session).begin(); err != nil {
		return "", err
	}
	var clients []client
	for range 8 {
		own := session
		clients = append(clients, overHTTP(at, &own))
	}
	var made atomic.Int64
	return session, together(clients, func() string {
		switch n := made.Add(1); {
		case n > int64(l.Calls):
			return ""
		case n%8 == 0:
			return calls[1].params
		}
		return calls[0].params
	})
}

// said is what a read takes after another process said something in its session.
func said(o *options, state string, c client) (float64, error) {
	out, _, err := o.run("session", "list", "--json", "--state", state)
	var all []struct{ Session string }
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err == nil && len(all) != 1 {
		err = errors.New("the session is not listed")
	}
	if err != nil {
		return 0, err
	}
	return best(func() error {
		_, _, err := o.run("session", "say", "--state", state, all[0].Session, "Go on, please.")
		return err
	}, func() error { return c.call(calls[0].params) })
}

// of is the best of three runs.
func (v *Verified) of(o *options, args ...string) error {
	var all []Verified
	for range 3 {
		var one Verified
		start := time.Now()
		out, ended, err := o.run(append([]string{"audit", "verify", "--json"}, args...)...)
		took := millis(time.Since(start))
		if err == nil {
			err = json.Unmarshal(out, &one)
		}
		if err != nil {
			return err
		}
		one.Took, one.CPU, one.MB = took, (ended.UserTime() + ended.SystemTime()).Seconds(), maxRSS(ended)
		all = append(all, one)
	}
	*v = slices.MinFunc(all, func(a, b Verified) int { return int((a.CPU - b.CPU) * 1e3) })
	return nil
}

func (r *Record) table() string {
	var b strings.Builder
	row := func(what, aim string, of func(l *Log) string) {
		fmt.Fprintf(&b, "| %s | %s |", what, aim)
		for i := range r.Logs {
			fmt.Fprintf(&b, " %s |", of(&r.Logs[i]))
		}
		b.WriteByte('\n')
	}
	ms := func(of func(l *Log) float64) func(l *Log) string {
		return func(l *Log) string {
			if x := of(l); x >= 100 {
				return fmt.Sprintf("%.0f", x)
			}
			return fmt.Sprintf("%.3g", of(l))
		}
	}
	row("calls of one session, every eighth an act", "aim", func(l *Log) string { return fmt.Sprint(l.Calls) })
	fmt.Fprintf(&b, "|---|---|%s\n", strings.Repeat("---|", len(r.Logs)))
	row("records", "", func(l *Log) string { return fmt.Sprint(l.Records) })
	row("bytes of the state directory, a call", "", func(l *Log) string { return fmt.Sprint(l.Bytes / l.Calls) })
	row("the gateway starts, its server too, ms", "", ms(func(l *Log) float64 { return l.Began }))
	row("first answer in the session then, ms", "100", ms(func(l *Log) float64 { return l.Cold }))
	row("a call after `writ session say` beside it, ms", "10", ms(func(l *Log) float64 { return l.Said }))
	row("`writ audit show`, ms", "", ms(func(l *Log) float64 { return l.Shown }))
	row("`writ audit export`, ms", "", ms(func(l *Log) float64 { return l.Export }))
	for _, v := range []struct {
		of   string
		what func(l *Log) *Verified
	}{{"`writ audit verify`", func(l *Log) *Verified { return &l.State }}, {"the same of a bundle", func(l *Log) *Verified { return &l.Bundle }}} {
		row(v.of+", ms", "", ms(func(l *Log) float64 { return v.what(l).Took }))
		row("records a second of one processor", "100,000", func(l *Log) string { return fmt.Sprintf("%.0f", float64(l.Records)/v.what(l).CPU) })
		row("decisions made again, a second of one", "25,000", func(l *Log) string { return fmt.Sprintf("%.0f", float64(v.what(l).Decisions)/v.what(l).CPU) })
		row("MB resident at most", "100", ms(func(l *Log) float64 { return v.what(l).MB }))
	}
	return b.String()
}

func (r *Record) page() string {
	return `
## The record

By the same command, of state directories in each of which one session made all calls over HTTP; the best of three. Aims are
those of a second of one processor.

` + r.table()
}
