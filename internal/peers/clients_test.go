package peers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	writ "github.com/writ-project/writ"
)

// An inbox is a directory with a file in it, and writ in front of
// server-filesystem over it, which each client is to use in the same way.
type inbox struct {
	root, dir, state string
}

func newInbox(t *testing.T) inbox {
	t.Helper()
	root := canonicalTemp(t)
	write(t, filepath.Join(root, "notes.txt"), "notes")
	return inbox{root, example(t, "filesystem", config(filesServer(t, root))), canonicalTemp(t)}
}

// run is the gateway's command as a client's configuration has it.
func (x inbox) run(t *testing.T) []string {
	return append([]string{binary, "run", "--state", x.state}, arguments(x.dir, filesServer(t, x.root))...)
}

func (x inbox) notes() string { return filepath.Join(x.root, "notes.txt") }

// ends checks what every client of an inbox has come to: the write that was
// refused did not happen, the listing and the write after it did.
func (x inbox) ends(t *testing.T) {
	t.Helper()
	if b, err := os.ReadFile(x.notes()); err != nil || string(b) != "accepted" {
		t.Errorf("the file holds %q %v", b, err)
	}
	if out := verify(t, x.state); !strings.Contains(out, "2 accepted, 1 refused") {
		t.Errorf("the log: %s", out)
	}
}

// asRefused checks a refusal as a client hands it on, as JSON.
func asRefused(t *testing.T, raw []byte) {
	t.Helper()
	var res struct {
		IsError           bool
		Content           []struct{ Type, Text string }
		StructuredContent json.RawMessage
		Meta              map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	r := rejection(t, res.Meta)
	if !res.IsError || r == nil || r.Code != writ.MissingProvenance || len(r.Failures) != 2 || r.Failures[1].Pointer != "/path" ||
		r.Failures[1].Reason != writ.ProvenanceUnseen || !strings.Contains(r.Failures[1].Need, "`list_directory` of server `files`") {
		t.Errorf("not the refusal: %s", raw)
	}
	// The tool publishes an outputSchema, and clients hold an error against it.
	if res.StructuredContent != nil {
		t.Errorf("structuredContent under an outputSchema: %s", raw)
	}
	if len(res.Content) != 1 || !strings.HasPrefix(res.Content[0].Text, "Not done: "+r.Failures[1].Need) {
		t.Errorf("the text does not say it: %s", raw)
	}
}

// asEvidence checks a listing as a client hands it on.
func asEvidence(t *testing.T, raw []byte) {
	t.Helper()
	var res struct {
		IsError bool
		Meta    map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if is, why := admissible(res.Meta); !is || res.IsError {
		t.Errorf("no evidence, because %q: %s", why, raw)
	}
}

// TestGoSDK: go-sdk's client, over stdio and HTTP.
func TestGoSDK(t *testing.T) {
	peersDir(t)
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			x := newInbox(t)
			var tr mcp.Transport
			if transport == "stdio" {
				argv := x.run(t)
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Stderr = show(t, "writ run")
				tr = &mcp.CommandTransport{Command: cmd}
			} else {
				tr = &mcp.StreamableClientTransport{Endpoint: serve(t, x.dir, x.state)}
			}
			cs := connect(t, tr, nil)
			listed(t, cs, "write_file")
			raw := func(tool string, args map[string]any) []byte {
				b, err := json.Marshal(callTool(t, cs, tool, args))
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			asRefused(t, raw("write_file", map[string]any{"path": x.notes(), "content": "refused"}))
			asEvidence(t, raw("list_directory", map[string]any{"path": x.root}))
			if b := raw("write_file", map[string]any{"path": x.notes(), "content": "accepted"}); bytes.Contains(b, []byte(`"isError":true`)) {
				t.Errorf("not accepted: %s", b)
			}
			cs.Close()
			x.ends(t)
		})
	}
}

// TestTypeScriptHoldsErrorsAgainstSchema: the client most people have throws if
// an error's structuredContent does not satisfy the tool's outputSchema. It is
// why a refusal of such a tool has none.
func TestTypeScriptHoldsErrorsAgainstSchema(t *testing.T) {
	peers := peersDir(t)
	out, _ := run(t, exec.CommandContext(testContext(t), node(t), filepath.Join(peers, "client.mjs"), "sdk", "stdio", "2025-11-25",
		node(t), filepath.Join(peers, "strict-error.mjs")), strings.NewReader(`{"tool":"act","args":{}}`+"\n"))
	if !strings.Contains(out, `"threw":"MCP error -32602: Structured content does not match`) {
		t.Errorf("it does not throw any more: %s", out)
	}
}

// TestTypeScript: the TypeScript SDKs, over stdio and HTTP. A refusal of a tool
// with an outputSchema reaches the model: no client throws.
func TestTypeScript(t *testing.T) {
	script := filepath.Join(peersDir(t), "client.mjs")
	for _, c := range []struct{ sdk, version string }{{"sdk", "2025-11-25"}, {"client", "2025-11-25"}, {"client", "2026-07-28"}} {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(c.sdk+"-"+c.version+"/"+transport, func(t *testing.T) {
				x := newInbox(t)
				argv := []string{script, c.sdk, transport, c.version}
				if transport == "stdio" {
					argv = append(argv, x.run(t)...)
				} else {
					url := serve(t, x.dir, x.state)
					if c.version == "2026-07-28" { // it has no sessions of its own
						url = newSession(t, x.state)
					}
					argv = append(argv, url)
				}
				var in bytes.Buffer
				enc := json.NewEncoder(&in)
				for _, call := range []struct {
					Tool string         `json:"tool"`
					Args map[string]any `json:"args"`
				}{
					{"write_file", map[string]any{"path": x.notes(), "content": "refused"}},
					{"list_directory", map[string]any{"path": x.root}},
					{"write_file", map[string]any{"path": x.notes(), "content": "accepted"}},
				} {
					if err := enc.Encode(call); err != nil {
						t.Fatal(err)
					}
				}
				out, code := run(t, exec.CommandContext(testContext(t), node(t), argv...), &in)
				lines := strings.Split(strings.TrimSpace(out), "\n")
				if code != 0 || len(lines) != 4 {
					t.Fatalf("exit code %d, and %d lines: %s", code, len(lines), out)
				}
				var opened struct {
					Version *string
					Tools   []string
				}
				if err := json.Unmarshal([]byte(lines[0]), &opened); err != nil || !slices.Contains(opened.Tools, "write_file") {
					t.Errorf("%v: %s", err, lines[0])
				}
				if opened.Version != nil && *opened.Version != c.version {
					t.Errorf("the wire is %s", *opened.Version)
				}
				results := make([]json.RawMessage, 3)
				for i, line := range lines[1:] {
					var got struct {
						Schema bool
						Result json.RawMessage
						Threw  *string
					}
					if err := json.Unmarshal([]byte(line), &got); err != nil || !got.Schema || got.Threw != nil {
						t.Fatalf("call %d: %v: %s", i+1, err, line)
					}
					results[i] = got.Result
				}
				asRefused(t, results[0])
				asEvidence(t, results[1])
				if bytes.Contains(results[2], []byte(`"isError":true`)) {
					t.Errorf("not accepted: %s", results[2])
				}
				x.ends(t)
			})
		}
	}
}

// TestTypeScriptMethods: what a legacy server answers to the other methods is
// complete on either wire, in the eyes of a client that checks each result.
func TestTypeScriptMethods(t *testing.T) {
	peers := peersDir(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			server := everything[0].behind(t, "http://127.0.0.1:9/page")
			dir, state := example(t, "everything", config(server)), canonicalTemp(t)
			argv := append([]string{filepath.Join(peers, "client.mjs"), "client", "stdio", version, binary, "run", "--state", state}, arguments(dir, server)...)
			asked := []struct{ line, want string }{
				{`{"do":"listResources"}`, `"demo://resource/static/document/features.md"`},
				{`{"do":"listResourceTemplates"}`, `"demo://resource/dynamic/text/{resourceId}"`},
				{`{"do":"listPrompts"}`, `"simple-prompt"`},
				{`{"do":"readResource","with":{"uri":"demo://resource/static/document/features.md"}}`, `"contents"`},
				{`{"do":"readResource","with":{"uri":"file:///etc/passwd"}}`, `provenance.unseen)"`},
				{`{"do":"getPrompt","with":{"name":"simple-prompt"}}`, `"messages"`},
				{`{"do":"complete","with":{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"}}}`, `"threw":"Not done: `},
				{`{"tool":"get-tiny-image","args":{}}`, `"image/png"`},
				{`{"tool":"get-resource-links","args":{"count":2}}`, `"resource_link"`},
				{`{"tool":"get-sum","args":{"a":"x","b":1}}`, `"schema.invalid"`},
			}
			var in strings.Builder
			for _, a := range asked {
				in.WriteString(a.line + "\n")
			}
			out, code := run(t, exec.CommandContext(testContext(t), node(t), argv...), strings.NewReader(in.String()))
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if code != 0 || len(lines) != len(asked)+1 {
				t.Fatalf("exit code %d: %s", code, out)
			}
			for i, a := range asked {
				if !strings.Contains(lines[i+1], a.want) {
					t.Errorf("%s: %.600s", a.line, lines[i+1])
				}
			}
			verify(t, state)
		})
	}
}

// newSession mints a session and returns its endpoint.
func newSession(t *testing.T, state string) string {
	t.Helper()
	out, code := run(t, exec.CommandContext(testContext(t), binary, "session", "new", "--state", state), nil)
	if code != 0 || !strings.Contains(out, "/mcp/s/") {
		t.Fatalf("writ session new: %d %q", code, out)
	}
	return strings.TrimSpace(out)
}

// inspector is the MCP Inspector's command line: one call in one process.
func inspector(t *testing.T, args ...string) (stdout string, code int) {
	t.Helper()
	js := filepath.Join(peersDir(t), "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	cmd := exec.CommandContext(testContext(t), node(t), append([]string{js, "--cli", "--quiet"}, args...)...)
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "MCP_INSPECTOR_SECRET_STORE=memory"}
	return run(t, cmd, nil)
}

func toolCall(tool string, args map[string]string) []string {
	out := []string{"--method", "tools/call", "--tool-name", tool, "--tool-args-json"}
	b, _ := json.Marshal(args)
	return append(out, string(b))
}

// TestInspector: the calls of several processes in one session, by its
// endpoint. Without it each process is a session of its own.
func TestInspector(t *testing.T) {
	peersDir(t)
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			x := newInbox(t)
			url := serve(t, x.dir, x.state)
			endpoint := newSession(t, x.state)
			call := func(url, tool string, args map[string]string) (string, int) {
				return inspector(t, append([]string{url, "--transport", "http", "--protocol-era", era}, toolCall(tool, args)...)...)
			}
			out, code := call(endpoint, "write_file", map[string]string{"path": x.notes(), "content": "refused"})
			if code == 0 {
				t.Error("the Inspector does not see that it was refused")
			}
			asRefused(t, []byte(out))
			out, code = call(endpoint, "list_directory", map[string]string{"path": x.root})
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, out)
			}
			asEvidence(t, []byte(out))
			// P11: what one session saw is nothing to another.
			if out, _ := call(newSession(t, x.state), "write_file", map[string]string{"path": x.notes(), "content": "elsewhere"}); !strings.Contains(out, "provenance.unseen") {
				t.Errorf("another session's evidence vouched (P11): %s", out)
			}
			if out, _ := call(url, "write_file", map[string]string{"path": x.notes(), "content": "elsewhere"}); !strings.Contains(out, string(writ.MissingProvenance)) {
				t.Errorf("another session's evidence vouched (P11): %s", out)
			}
			if out, code = call(endpoint, "write_file", map[string]string{"path": x.notes(), "content": "accepted"}); code != 0 {
				t.Errorf("exit code %d: %s", code, out)
			}
			if b, err := os.ReadFile(x.notes()); err != nil || string(b) != "accepted" {
				t.Errorf("the file holds %q %v", b, err)
			}
			verify(t, x.state)
		})
	}
}

// TestInspectorConfiguration: `writ run` from a client's configuration,
// examples/filesystem/mcp.json with the paths of this machine: an `mcpServers`
// object as desktop and terminal clients keep it.
func TestInspectorConfiguration(t *testing.T) {
	peersDir(t)
	x := newInbox(t)
	var clients struct {
		Servers map[string]struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(read(t, filepath.Join("..", "..", "examples", "filesystem", "mcp.json")), &clients); err != nil {
		t.Fatal(err)
	}
	files := clients.Servers["files"]
	at := slices.Index(files.Args, "--")
	policy := slices.Index(files.Args, "/home/me/policy.yaml")
	if files.Command != "writ" || policy < 0 || at < 0 || len(files.Args) != at+5 || files.Args[at+1] != "npx" {
		t.Fatalf("mcp.json has changed: %+v", files)
	}
	files.Command, files.Args[policy] = binary, filepath.Join(x.dir, "policy.yaml")
	files.Args = slices.Concat(files.Args[:at], []string{"--state", x.state, "--"}, npmServer(t, "filesystem", x.root))
	clients.Servers["files"] = files
	config := filepath.Join(x.dir, "mcp.json")
	b, err := json.Marshal(clients)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, string(b))
	call := func(args ...string) (string, int) {
		return inspector(t, append([]string{"--config", config, "--server", "files"}, args...)...)
	}
	out, code := call("--method", "tools/list")
	if code != 0 || !strings.Contains(out, `"write_file"`) || strings.Contains(out, `"create_directory"`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	out, _ = call(toolCall("write_file", map[string]string{"path": x.notes(), "content": "refused"})...)
	asRefused(t, []byte(out))
	if out, code = call(toolCall("list_directory", map[string]string{"path": x.root})...); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	asEvidence(t, []byte(out))
	// The next process is another session: nothing was seen in it.
	out, _ = call(toolCall("write_file", map[string]string{"path": x.notes(), "content": "refused"})...)
	asRefused(t, []byte(out))
	if b, err := os.ReadFile(x.notes()); err != nil || string(b) != "notes" {
		t.Errorf("the file holds %q %v", b, err)
	}
	verify(t, x.state)
}

// TestVersions: a client that opens with a version Writ knows gets exactly that
// one back (Gemini's stops at any other), and one Writ does not know gets the
// newest of that wire.
func TestVersions(t *testing.T) {
	peersDir(t)
	x := newInbox(t)
	url := serve(t, x.dir, x.state)
	opening := func(version string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"gemini-like","version":"1"}}}`, version)
	}
	overHTTP := func(version string) []byte {
		req, err := http.NewRequestWithContext(testContext(t), "POST", url, strings.NewReader(opening(version)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v %s", res.Status, err, b)
		}
		return b
	}
	overStdio := func(version string) []byte {
		argv := x.run(t)
		out, code := run(t, exec.CommandContext(testContext(t), argv[0], argv[1:]...), strings.NewReader(opening(version)+"\n"))
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		return []byte(out)
	}
	echoed := regexp.MustCompile(`"protocolVersion":"([^"]*)"`)
	for _, c := range []struct {
		asked, want string
		open        func(string) []byte
	}{
		{"2025-06-18", "2025-06-18", overStdio},
		{"2024-11-05", "2024-11-05", overHTTP},
		{"2025-03-26", "2025-03-26", overHTTP},
		{"2025-06-18", "2025-06-18", overHTTP},
		{"2025-11-25", "2025-11-25", overHTTP},
		{"1999-01-01", "2025-11-25", overHTTP},
	} {
		if out := c.open(c.asked); !bytes.Contains(out, []byte(`"id":1`)) || len(echoed.FindSubmatch(out)) != 2 || string(echoed.FindSubmatch(out)[1]) != c.want {
			t.Errorf("asked for %s, got %s", c.asked, out)
		}
	}
}
