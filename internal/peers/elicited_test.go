package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A desk is `writ serve` with the built-in example server.
type desk struct{ state, url string }

func newDesk(t *testing.T) desk {
	t.Helper()
	d := desk{state: canonicalTemp(t)}
	d.url = start(t, exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--state", d.state), listening)
	return d
}

func (d desk) writ(t *testing.T, args ...string) string {
	t.Helper()
	out, code := run(t, exec.CommandContext(testContext(t), binary, append(args, "--state", d.state)...), nil)
	if code != 0 {
		t.Fatalf("writ %s: %d", strings.Join(args, " "), code)
	}
	return strings.TrimSpace(out)
}

// deletion is an act for which nothing vouches.
const deletion = `{"tool":"delete_document","args":{"id":"doc-2b8e04"}}` + "\n"

// asked runs a client of the TypeScript SDKs that answers what it is asked, and
// returns what its call came to and what it was asked.
func (d desk) asked(t *testing.T, sdk, version, url, token, says string) (result, questions string) {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), node(t), filepath.Join(peersDir(t), "client.mjs"), sdk, "http", version, url)
	cmd.Env = append(os.Environ(), "WRIT_TOKEN="+token, "WRIT_ELICITED="+says)
	cmd.Stdin = strings.NewReader(deletion)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 2 {
		t.Fatalf("%v: %s %s", err, out, errs.Bytes())
	}
	return lines[1], errs.String()
}

const saysYes = `{"action":"accept","content":{"answer":"yes"}}`

// TestElicited: the TypeScript SDKs ask the person of a registered client, on both
// wires, and his answer decides; what any other client answers counts for nothing, and
// it is asked nothing.
func TestElicited(t *testing.T) {
	peersDir(t)
	for _, c := range []struct{ sdk, version string }{{"sdk", "2025-11-25"}, {"client", "2025-11-25"}, {"client", "2026-07-28"}} {
		t.Run(c.sdk+"-"+c.version, func(t *testing.T) {
			d := newDesk(t)
			person, agent := d.writ(t, "client", "add", "kim", "--role", "person"), d.writ(t, "client", "add", "bot", "--role", "agent")
			url := func(client string) string {
				switch {
				case c.version != "2026-07-28":
					return d.url
				case client == "": // it has no sessions of its own
					return d.writ(t, "session", "new")
				}
				return d.writ(t, "session", "new", "--client", client)
			}
			for _, o := range []struct {
				client, token, says, want string
				asked                     bool
			}{
				{"", "", saysYes, "provenance.unseen", false},
				{"bot", agent, saysYes, "provenance.unseen", false},
				{"kim", person, `{"action":"decline"}`, "approval.refused", true},
				{"kim", person, `{"action":"cancel"}`, "approval.pending", true},
				{"kim", person, `{"action":"accept","content":{"answer":"no"}}`, "approval.refused", true},
				{"kim", person, saysYes, `\"deleted\":true`, true},
			} {
				got, asked := d.asked(t, c.sdk, c.version, url(o.client), o.token, o.says)
				if !strings.Contains(got, o.want) || strings.Contains(asked, "doc-2b8e04") != o.asked {
					t.Errorf("%q says %s: %.600s, asked %.200s", o.client, o.says, got, asked)
				}
			}
			verify(t, d.state)
		})
	}
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestElicitedGoSDK: the same by go-sdk's client.
func TestElicitedGoSDK(t *testing.T) {
	peersDir(t)
	d := newDesk(t)
	token := d.writ(t, "client", "add", "kim", "--role", "person")
	var asked []string
	opts := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked = append(asked, r.Params.Message)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "yes"}}, nil
	}}
	call := func(cs *session) string {
		b, err := json.Marshal(callTool(t, cs, "delete_document", map[string]any{"id": "doc-2b8e04"}))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	stranger := connect(t, &mcp.StreamableClientTransport{Endpoint: d.url}, opts)
	if got := call(stranger); !strings.Contains(got, "provenance.unseen") || len(asked) != 0 {
		t.Errorf("without a token: %s, asked %q", got, asked)
	}
	stranger.Close()
	kim := connect(t, &mcp.StreamableClientTransport{Endpoint: d.url, HTTPClient: &http.Client{Transport: bearer(token)}}, opts)
	if got := call(kim); !strings.Contains(got, `"deleted":true`) || len(asked) != 1 || !strings.Contains(asked[0], "doc-2b8e04") {
		t.Errorf("with a person's token: %s, asked %q", got, asked)
	}
	kim.Close()
	verify(t, d.state)
}
