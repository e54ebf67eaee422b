package peers

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-project/writ/internal/login/standin"
)

// TestLogin: a server of the SDK behind a login takes no call until a person signed in,
// takes them afterwards, from a gateway that was running before too, and none once he
// signed out.
func TestLogin(t *testing.T) {
	type nothing struct{}
	type word struct {
		Text string `json:"text"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "hosted", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "motd", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, word, error) {
		return nil, word{"the word of the day"}, nil
	})
	h := standin.New(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	dir, state := canonicalTemp(t), canonicalTemp(t)
	config := filepath.Join(dir, "writ.yaml")
	for name, text := range map[string]string{
		"writ.yaml":   "policy: policy.yaml\nservers:\n  - { name: hosted, url: '" + h.URL + "/mcp' }\n",
		"policy.yaml": "pins: optional\ntools:\n  hosted/motd: { effect: read }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writ := func(want int, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(testContext(t), binary, append(args, "--state", state)...).CombinedOutput()
		if code := exitCode(err); want >= 0 && code != want {
			t.Errorf("writ %s: %d\n%s", strings.Join(args, " "), code, out)
		}
		return string(out)
	}
	start(t, exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--state", state, "--config", config), listening)
	if out := writ(77, "call", "--session", "day", "motd", "{}"); strings.Contains(out, "word of the day") {
		t.Errorf("nobody signed in, and it came: %s", out)
	}

	login := exec.CommandContext(testContext(t), binary, "login", "hosted", "--config", config, "--state", state)
	out, err := login.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	login.Stderr = show(t, "writ login")
	if err := login.Start(); err != nil {
		t.Fatal(err)
	}
	page, said := regexp.MustCompile(`^ +(http://\S+)$`), ""
	for sc := bufio.NewScanner(out); sc.Scan(); said += sc.Text() + "\n" {
		if m := page.FindStringSubmatch(sc.Text()); m != nil {
			h.Browser(m[1], nil)
		}
	}
	if err := login.Wait(); err != nil || !strings.Contains(said, "Signed in to hosted.") {
		t.Fatalf("%v: %s", err, said)
	}
	open := ""
	for n := 0; n < 300 && !strings.Contains(open, "motd"); n++ { // the gateway that runs looks for it once a second
		open = writ(0, "tools")
	}
	if out := writ(0, "call", "--session", "day", "motd", "{}"); !strings.Contains(out, "the word of the day") {
		t.Errorf("signed in: %s", out)
	}
	writ(0, "logout", "hosted")
	if out := writ(-2, "call", "--session", "day", "motd", "{}"); strings.Contains(out, "the word of the day") || !strings.Contains(out, "login") {
		t.Errorf("signed out: %s", out)
	}
}

func exitCode(err error) int {
	switch e, is := err.(*exec.ExitError); {
	case err == nil:
		return 0
	case is:
		return e.ExitCode()
	}
	return -1
}
