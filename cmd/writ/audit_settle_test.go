//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/story"
)

// TestSettleElsewhere (P28): while a gateway runs, an act is settled at a terminal that
// stands apart from it, once it is no longer under way there; the gateway goes by it.
func TestSettleElsewhere(t *testing.T) {
	dir, state := t.TempDir(), ownState(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"arrived", "lose"} {
		if err := unix.Mkfifo(file(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("policy.yaml", strings.Replace(string(example.Policy()), "  example/close_ticket:\n", "  example/close_ticket:\n    idempotent: false\n", 1))
	write("lossy.sh", `cd "$(dirname "$0")"
while IFS= read -r line; do
  case "$line" in
    *tools/call*close_ticket*) if test -p lose; then : > arrived; read -r x < lose; exit; fi ;;
  esac
  printf '%s\n' "$line"
done | writ example-server
`)
	write("writ.yaml", "servers: [ { name: example, command: [sh, "+file("lossy.sh")+"] } ]\npolicy: policy.yaml\n")
	serving(t, "--state", state, "--config", file("writ.yaml"))
	call := func(tool, arguments string) (string, int) {
		return piped77(t, "", "call", "--state", state, "--session", "demo", tool, arguments)
	}
	act := func() (string, int) { return call("close_ticket", `{"id":"INC-1042","resolution":"fixed"}`) }
	if out, code := call("search_tickets", `{"query":""}`); code != 0 {
		t.Fatal(out)
	}
	lost := make(chan int)
	go func() {
		_, code := act()
		lost <- code
	}()
	if _, err := os.ReadFile(file("arrived")); err != nil {
		t.Fatal(err)
	}
	var all []story.Line
	if err := json.Unmarshal([]byte(command(t, "audit", "show", "--unsettled", "--json", "--state", state)), &all); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	settle := func(want int, says string) {
		t.Helper()
		s := onTerminal(t, "", nil, "audit", "settle", all[0].ID, "--not", "--state", state)
		s.expect(says)
		if code := s.exits(); code != want {
			t.Errorf("exit code %d, want %d", code, want)
		}
	}
	settle(65, "nothing was settled: that call is under way")
	write("lose", "\n")
	if code := <-lost; code != 1 {
		t.Errorf("the call ended with %d", code)
	}
	if err := os.Remove(file("lose")); err != nil {
		t.Fatal(err)
	}
	if out, code := act(); code != 77 || !strings.Contains(out, "policy.repeated") {
		t.Errorf("%d %s", code, out)
	}
	if out, code := piped77(t, "", "audit", "settle", all[0].ID, "--not", "--state", state); code != 77 || !strings.Contains(out, "not heard") {
		t.Errorf("from no terminal: %d %s", code, out)
	}
	settle(0, "it did not happen, and may be asked for again once")
	if out, code := act(); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	settle(65, "said already")
	if out := command(t, "audit", "verify", "--state", state); !strings.HasPrefix(out, "ok: ") {
		t.Error(out)
	}
}

// TestSettleBelowClient (P28): where no gateway runs, what descends from a client that has
// a session here is not heard, at a terminal neither; whoever else is, is told what it is.
func TestSettleBelowClient(t *testing.T) {
	state := ownState(t)
	if out, code := piped77(t, "", "call", "--state", state, "--session", "demo", "search_tickets", `{"query":""}`); code != 0 {
		t.Fatal(out)
	}
	settle := func(want int, says string) {
		t.Helper()
		s := onTerminal(t, "", nil, "audit", "settle", "demo/2", "--not", "--state", state)
		s.expect(says)
		if code := s.exits(); code != want {
			t.Errorf("exit code %d, want %d", code, want)
		}
	}
	settle(65, "that call was a read")
	if err := keepSession(state, sharedName(os.Getpid()), "of this very client, which is 32+"); err != nil {
		t.Fatal(err)
	}
	settle(77, "not heard")
}
