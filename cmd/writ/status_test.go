//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/approval"
)

// TestStatus: a server that died is named with what it said last, escaped; what was asked
// most is named with the lines that would end it and whom they trust, and is not once they
// are kept.
func TestStatus(t *testing.T) {
	g := newGrowth(t)
	t.Setenv("HOME", t.TempDir())
	b, err := os.ReadFile(g.config)
	if err != nil {
		t.Fatal(err)
	}
	const dead = "servers:\n  - name: dead\n    command: [/bin/sh, -c, \"printf 'starting\\\\n\\\\033[2Jno TOKEN is set\\\\n' >&2; exit 3\"]\n"
	if err := os.WriteFile(g.config, []byte(strings.Replace(string(b), "servers:\n", dead, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	serving(t, "--state", g.state, "--config", g.config)
	call := func(tool, arguments string) int {
		_, code := piped77(t, "", "call", "--state", g.state, "--session", "demo", tool, arguments)
		return code
	}
	if call("fetch_policy", `{"id":"POL-014"}`) != 77 || call("fetch_policy", `{"id":"POL-021"}`) != 77 || call("close_ticket", `{"id":"INC-1042","resolution":"fixed"}`) != 77 {
		t.Fatal("nothing was asked")
	}
	status := func() (text string, s shownStatus) {
		t.Helper()
		args := []string{"status", "--state", g.state, "--config", g.config}
		text = command(t, args...)
		if err := json.Unmarshal([]byte(command(t, append(args, "--json")...)), &s); err != nil {
			t.Fatal(err)
		}
		return text, s
	}
	text, s := status()
	for n := 0; !strings.Contains(text, "it said: ") && n < 50; n++ { // until it has been tried
		text, s = status()
	}
	for _, want := range []string{
		"Gateways that run now: 1\n",
		"  server dead cannot be reached: ", `; it said: \u001b[2Jno TOKEN is set`,
		"  example/fetch_policy: 2 calls would wait for a person\n" +
			"    from now on: example/fetch_policy /id accepts what example/search_policies#/policies/*/id returned, where our own people alone write\n" +
			"    would leave 0 of them, and trust whoever can write example/search_policies#/policies/*/id\n" +
			"    try: writ learn --config " + g.config,
		"  example/close_ticket: 1 call would wait for a person\n    from now on: example/close_ticket /id accepts what example/search_tickets#/tickets/*/id returned\n    would leave 0 of them\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if len(s.Asked) != 2 || s.Asked[0].Asked != 2 || s.Asked[0].With != 0 || len(s.Asked[0].Lines) != 1 || len(s.Asked[0].Trusts) != 1 || len(s.Asked[1].Trusts) != 0 ||
		len(s.Gateways) != 1 || len(s.Gateways[0].Faults) != 1 || s.Clients == nil {
		t.Errorf("%+v", s)
	}

	var qs []approval.Shown
	if err := json.Unmarshal([]byte(command(t, "approve", "--json", "--state", g.state)), &qs); err != nil || len(qs) != 3 {
		t.Fatal(qs, err)
	}
	on := onTerminal(t, "", nil, "approve", qs[0].ID, "--yes", "--keep", "ours", "--state", g.state)
	on.expect("from now on")
	on.exits()
	if text, s = status(); len(s.Asked) != 1 || s.Asked[0].Tool != "example/close_ticket" {
		t.Errorf("after it was kept: %s", text)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(g.config), "policy.yaml")); err != nil {
		t.Fatal(err)
	}
	if text, s = status(); len(s.Notes) != 1 || !strings.Contains(text, "what was asked most is not known: ") {
		t.Errorf("without a policy: %s", text)
	}
}

// TestSizes: a size is read without counting its digits.
func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0.0 MB", 9_999_000_000: "9999.0 MB", 10_000_000_000: "10.0 GB", 217_400_000_000: "217.4 GB"} {
		if got := sizeWords(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
