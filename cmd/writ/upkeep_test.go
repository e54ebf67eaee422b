package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/principal"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
)

// TestTellOfNear: a client's gateway says what of it is nearly used up, once, and anew where
// it was not so meanwhile.
func TestTellOfNear(t *testing.T) {
	full := gateway.Near{What: "a session's evidence", Session: "s_a", Percent: 81, Then: "begin a new session"}
	ticks, near := make(chan time.Time), make(chan []gateway.Near)
	ctx, cancel := context.WithCancel(t.Context())
	var said bytes.Buffer
	ended := tellOfNear(ctx, func() []gateway.Near { return <-near }, &said, ticks)
	for _, n := range [][]gateway.Near{nil, {full}, {full}, nil, {full}} {
		ticks <- time.Time{}
		near <- n
	}
	cancel()
	<-ended
	if line := "writ: nearly used up: a session's evidence, 81 %; begin a new session\n"; said.String() != line+line {
		t.Errorf("%s", &said)
	}
}

// TestNear: what of a state directory is nearly used up is said once, and anew where it
// was not so meanwhile.
func TestNear(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	state := ownState(t)
	command(t, "call", "--state", state, "--session", "demo", "search_tickets", `{"query":""}`)
	st, err := openStore(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Store: st, Policy: newFilesForTest(t, state).policy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(); st.Close() })
	o := newFilesForTest(t, state)
	var said bytes.Buffer
	var before nearSaid
	lines := func() int {
		said.Reset()
		o.warnOfNear(g, logger(&said, slog.LevelWarn), &before)
		return strings.Count(said.String(), "nearly used up")
	}
	if n := lines(); n != 0 {
		t.Fatalf("an empty one: %s", &said)
	}
	clients := clientsOf(state)
	for n := range principal.MaxClients * 4 / 5 {
		if _, err := clients.Add(fmt.Sprintf("c%d", n), principal.Roles[0], time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if n := lines(); n != 1 || !strings.Contains(said.String(), "registered clients") {
		t.Errorf("%s", &said)
	}
	if n := lines(); n != 0 {
		t.Errorf("once more: %s", &said)
	}
	if err := clients.Remove("c7"); err != nil {
		t.Fatal(err)
	}
	if n := lines(); n != 0 {
		t.Errorf("one less: %s", &said)
	}
	if _, err := clients.Add("again", principal.Roles[0], time.Now()); err != nil || lines() != 1 {
		t.Errorf("anew: %v %s", err, &said)
	}
	// The journal is in another directory: this one is the log's.
	dir := ownState(t)
	for size, want := range map[int64]int{sqlite.MaxJournal / 100 * 79: 0, sqlite.MaxJournal / 100 * 81: 1} {
		if err := os.WriteFile(filepath.Join(dir, sqlite.JournalName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, sqlite.JournalName), size); err != nil { // sparse
			t.Fatal(err)
		}
		if near := nearIn(dir); len(near) != want {
			t.Errorf("a journal of %d: %+v", size, near)
		}
	}
}

// TestArchiveIsOwn (R34): no tool may name the directory of the archives, nor what is in it.
func TestArchiveIsOwn(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	dir := t.TempDir()
	for name, text := range map[string]string{"policy.yaml": string(example.Policy()), "writ.yaml": "servers: [{name: example, command: [x]}]\npolicy: policy.yaml\nretention: { days: 90, archive: old }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := flags{config: filepath.Join(dir, "writ.yaml"), state: ownState(t)}
	o, err := f.readConfig()
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "old"); !slices.Contains(o.ownPaths, want) || o.retain.Archive != want || o.retain.SegmentBytes != 8<<20 || o.retain.SegmentDays != 1 {
		t.Errorf("%+v, %q", o.retain, o.ownPaths)
	}
}

func newFilesForTest(t *testing.T, state string) *files {
	t.Helper()
	o := newFiles(state)
	if err := o.loadExample(); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestUpkeep: the retention is applied at the first tick, and not again for an hour; what
// runs has ended when it says so.
func TestUpkeep(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	state := ownState(t)
	command(t, "call", "--state", state, "--session", "demo", "search_tickets", `{"query":""}`)
	command(t, "session", "close", "--state", state, "demo")
	o := newFilesForTest(t, state)
	st, err := openStore(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(gateway.Options{Store: st, Policy: o.policy, Snapshots: statedir.Snapshots(state)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(); st.Close() })
	o.store, o.retain = st, gateway.Retention{Days: 2}
	ctx, cancel := context.WithCancel(t.Context())
	ticks := make(chan time.Time)
	ended, err := o.upkeep(ctx, g, slog.New(slog.DiscardHandler), ticks)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i, tick := range []struct {
		at       time.Duration
		redacted int
	}{{0, 0}, {50 * time.Minute, 0}, {48*time.Hour - time.Minute, 0}, {48*time.Hour + 30*time.Minute, 0}, {49 * time.Hour, 1}, {60 * time.Hour, 1}} {
		ticks <- start.Add(tick.at)
		ticks <- start.Add(tick.at) // taken once what the one before asked for is done
		if got := o.retainer.Status().Redacted; got != tick.redacted {
			t.Errorf("tick %d: %d redacted", i, got)
		}
	}
	cancel()
	<-ended
}
