//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const reloading = `pins: optional
collections: { ticket: { closed: true } }
tools:
  example/search_tickets: { effect: read, outputs: [{ at: /tickets/*/id, label: system, collection: ticket, authoritative: true }] }
  example/fetch_ticket: { effect: read, outputs: [{ at: /status, label: system }] }
  example/close_ticket: { effect: write, args: { /id: { role: selector, collection: ticket, type: id }, /resolution: { role: enum, from: [catalog] } } }
  spare/search_policies: { effect: read, optional: true }
`

// TestReload: writ reload takes what the files say of the servers, whole: the
// example server, whose state is its process's, keeps it until it is to be started
// otherwise; the session keeps its evidence; what takes a restart is refused by name.
func TestReload(t *testing.T) {
	dir, state := ownState(t), ownState(t)
	config := filepath.Join(dir, "writ.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const first, changed, spare, broken = "  - { name: example, command: [writ, example-server] }\n", "  - { name: example, command: [writ, example-server], env: { HOUSE: b } }\n",
		"  - { name: spare, command: [writ, example-server] }\n", "  - { name: spare, command: [writ, no-such-command] }\n"
	servers := func(more string, all ...string) {
		t.Helper()
		write("writ.yaml", "policy: policy.yaml\n"+more+"memory: { secrets: { env: HOME } }\nservers:\n"+strings.Join(all, ""))
	}
	write("policy.yaml", reloading)
	servers("", first)
	serving(t, "--state", state, "--config", config)
	call := func(tool, arguments string) string {
		t.Helper()
		out, _ := piped77(t, "", "call", "--state", state, "--session", "demo", tool, arguments)
		return out
	}
	shows := func(tool, arguments, want string) {
		t.Helper()
		if out := call(tool, arguments); !strings.Contains(out, want) {
			t.Errorf("%s: %s, not %s", tool, out, want)
		}
	}
	reload := func(code int, want string) {
		t.Helper()
		s := onTerminal(t, "", nil, "reload", "--state", state)
		s.expect(want)
		if got := s.exits(); got != code {
			t.Errorf("exit code %d", got)
		}
	}
	const one = `{"id":"INC-1042"}`
	call("search_tickets", `{"query":""}`)
	shows("close_ticket", `{"id":"INC-1042","resolution":"fixed"}`, "closed")

	servers("# what stands elsewhere says the same\n", first, spare)
	reload(0, `in force: policy sha256:[0-9a-f]{64}\r\nstarted: spare`)
	shows("search_policies", `{"query":""}`, "POL-")
	shows("fetch_ticket", one, `"status":"closed"`)

	servers("", changed, broken)
	reload(78, `nothing was changed: (?s:.*)server spare(?s:.*)  try: writ check --live --config \S+/writ.yaml\r\n`)
	write("policy.yaml", strings.ReplaceAll(reloading, "effect: read", "effect: raed"))
	reload(78, `did you mean read(?s:.*)  try: writ check --config \S+/writ.yaml\r\n`)
	write("policy.yaml", reloading)
	servers("shadow: true\napprovals: true\nconsole: { origin: https://writ.example.org }\notlp: { endpoint: http://127.0.0.1:1 }\nlog: { format: json }\n", changed)
	reload(78, `nothing was changed: shadow, approvals, console, otlp, log changed, which takes a restart\r\n  try: restart the gateway`)
	servers("", changed, "  - { name: spare, comand: [x] }\n")
	reload(78, `writ.yaml:5:20: unknown key`)
	shows("search_policies", `{"query":""}`, "POL-")
	shows("fetch_ticket", one, `"status":"closed"`)

	servers("", changed)
	reload(0, `restarted: example\r\nended: spare`)
	shows("fetch_ticket", one, `"status":"open"`)
	shows("close_ticket", `{"id":"INC-1044","resolution":"fixed"}`, "closed") // on the evidence there was
	shows("search_policies", `{"query":""}`, "name.unknown")
	if out := command(t, "audit", "verify", "--state", state); !strings.Contains(out, "ok") {
		t.Errorf("audit verify: %s", out)
	}
}
