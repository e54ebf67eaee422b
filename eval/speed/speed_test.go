package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWorse: what costs a quarter more than before, beside the relay of its own run, is said;
// what a slower machine takes more is not.
func TestWorse(t *testing.T) {
	made := func(machine, writ float64) *Result {
		r := &Result{SyncedAppend: 100 * machine}
		for _, transport := range []string{"stdio", "http"} {
			for _, call := range calls {
				for _, way := range ways {
					cost := machine
					if way == through {
						cost *= writ
					}
					r.Rows = append(r.Rows, Row{Transport: transport, Call: call.name, Way: way, P50: 10 * cost, P99: 90 * cost})
					if transport == "http" {
						r.Rows = append(r.Rows, Row{Transport: transport, Call: call.name, Way: way, PerSecond: 1000 / cost})
					}
				}
			}
		}
		return r
	}
	file := filepath.Join(t.TempDir(), "speed.json")
	if why := made(1, 4).worse(file); why != "" {
		t.Errorf("worse than nothing: %s", why)
	}
	b, err := json.Marshal(made(1, 4))
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		machine, writ float64
		worse         int
	}{{1, 4, 0}, {3, 4, 0}, {1, 4.9, 2}, {1, 5.1, 12}, {3, 5.1, 12}, {1, 2, 0}} {
		why := made(c.machine, c.writ).worse(file)
		if n := strings.Count(why, " before"); n != c.worse {
			t.Errorf("a machine of %v, %v times the relay: %s", c.machine, c.writ, why)
		}
	}
	if page := made(1, 4).page(); !strings.Contains(page, "| a read over stdio, median | 2 | 4.00 |") {
		t.Error(page)
	}
}

// TestMeasure measures a little: that every call passes each way, and that none is left out.
func TestMeasure(t *testing.T) {
	writ := os.Getenv("WRIT_BINARY")
	if writ == "" {
		t.Skip("WRIT_BINARY is not set: make conformance builds the program and measures it")
	}
	r, err := measure(&options{writ: writ, calls: 100, load: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.ratios() {
		if x.value <= 0 && !strings.Contains(x.name, "takes more") || x.value != x.value {
			t.Errorf("%s: %v", x.name, x.value)
		}
	}
	if r.DiskPerRead <= 0 {
		t.Errorf("a read takes %d bytes", r.DiskPerRead)
	}
}

// TestRecorded measures the record of a short session.
func TestRecorded(t *testing.T) {
	writ := os.Getenv("WRIT_BINARY")
	if writ == "" {
		t.Skip("WRIT_BINARY is not set: make conformance builds the program and measures it")
	}
	r, err := recorded(&options{writ: writ}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	l := r.Logs[0]
	for _, v := range []Verified{l.State, l.Bundle} {
		if v.Records < 2*l.Calls || v.Decisions < l.Calls || v.CPU <= 0 || v.MB <= 0 || v.Records != l.Records {
			t.Errorf("verified: %+v", v)
		}
	}
	if l.Bytes <= 0 || l.Cold <= 0 || l.Said <= 0 || l.Shown <= 0 || l.Export <= 0 || !strings.Contains(r.table(), "| first answer in the session then, ms | 100 |") {
		t.Errorf("%+v\n%s", l, r.table())
	}
}

// The test starts itself as the server and the relay.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && (os.Args[1] == "tool" || os.Args[1] == "relay") {
		main()
		return
	}
	os.Exit(m.Run())
}
