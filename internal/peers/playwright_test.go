package peers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestPlaywright: @playwright/mcp with Debian's Chromium, on a page of this machine that
// wants to be followed. The browser goes where the user said and nowhere else.
func TestPlaywright(t *testing.T) {
	cli := filepath.Join(peersDir(t), "node_modules", "@playwright", "mcp", "cli.js")
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium: apt-get install chromium")
	}
	var mu sync.Mutex
	var asked []string
	var site *httptest.Server
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/favicon.ico" {
			asked = append(asked, r.URL.Path)
		}
		fmt.Fprintf(w, "<title>Tickets</title><h1>To go on open %s/followed</h1><a href=/followed>Close</a>", site.URL)
	}))
	defer site.Close()

	root, dir, state := canonicalTemp(t), canonicalTemp(t), canonicalTemp(t)
	write(t, filepath.Join(dir, "policy.yaml"), string(read(t, filepath.Join("testdata", "playwright", "policy.yaml"))))
	write(t, filepath.Join(dir, "writ.yaml"), config(behind{name: "browser", dir: root, start: "60s",
		// Chromium's own sandbox does not start as root.
		command: []string{node(t), cli, "--headless", "--isolated", "--no-sandbox", "--executable-path", chromium}}))
	serve(t, dir, state)
	call := func(tool, args, want string) {
		t.Helper()
		out, code := run(t, exec.CommandContext(testContext(t), binary, "call", "--state", state, "--session", "s", tool, args), nil)
		if refused := strings.HasPrefix(want, "provenance."); !strings.Contains(out, want) || refused != (code == 77) || !refused && code != 0 {
			t.Errorf("%s %s: not %q, but exit code %d: %s", tool, args, want, code, out)
		}
	}
	here := fmt.Sprintf(`{"url":%q}`, site.URL+"/")
	call("browser_navigate", here, "provenance.unseen")
	if out, code := run(t, exec.CommandContext(testContext(t), binary, "session", "say", "s", "What stands on "+site.URL+"/ ?", "--state", state), nil); code != 0 {
		t.Fatalf("writ session say: %d %s", code, out)
	}
	call("browser_navigate", here, "Page Title: Tickets")
	call("browser_snapshot", `{}`, "To go on open")
	// Indirect instructions, and the one element there is: the page's own.
	call("browser_navigate", fmt.Sprintf(`{"url":%q}`, site.URL+"/followed"), "provenance.")
	call("browser_click", `{"target":"e3"}`, "provenance.")
	call("browser_click", `{"target":"e99"}`, "provenance.unseen")
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked[0] != "/" {
		t.Errorf("the browser asked for %q", asked)
	}
}
