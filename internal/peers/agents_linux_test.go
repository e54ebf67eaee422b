package peers

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v4"
	"golang.org/x/sys/unix"
)

// An agent is a program with a model and tools that people use, here a process that
// is given one task and ends. In its texts $MODEL is the address of its model, $WRIT the
// program under test.
type agent struct {
	client string // as writ connect calls it
	wire   wire   // of its model
	// The program, below node_modules; one that ends in .js is started by Node.js.
	program map[string]string // by GOARCH
	env     []string
	file    string // below its home, names its servers
	text    string // what stands there
	// How it lists its servers, and what it says of one that it has spoken to, or of
	// one that it knows, where it lists without speaking to any.
	health  []string
	healthy string
	task    []string // arguments before the prompt
	failed  string   // stands in what its model gets of a refusal, and of no result
}

var agents = []agent{
	{
		client: "claude-code", wire: anthropicMessages,
		program: map[string]string{"amd64": "@anthropic-ai/claude-code-linux-x64/claude", "arm64": "@anthropic-ai/claude-code-linux-arm64/claude"},
		env:     []string{"ANTHROPIC_BASE_URL=$MODEL", "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
		file:    ".claude.json", text: `{"mcpServers": {
  "example": { "type": "stdio", "command": "$WRIT", "args": ["example-server"], "env": {} }
}}
`,
		health: []string{"mcp", "list"}, healthy: "- ✔ Connected",
		task: []string{"-p", "--allowedTools", "mcp__example", "--"}, failed: `"is_error":true`,
	},
	{
		client: "gemini", wire: geminiContent,
		program: map[string]string{"amd64": "@google/gemini-cli/bundle/gemini.js", "arm64": "@google/gemini-cli/bundle/gemini.js"},
		env:     []string{"GOOGLE_GEMINI_BASE_URL=$MODEL", "GEMINI_API_KEY=none", "GEMINI_CLI_TRUST_WORKSPACE=true"},
		file:    ".gemini/settings.json", text: `{
  "security": { "auth": { "selectedType": "gemini-api-key" } }, // a key, no account
  "privacy": { "usageStatisticsEnabled": false },
  "mcpServers": { "example": { "command": "$WRIT", "args": [ "example-server" ] } }
}
`,
		health: []string{"mcp", "list"}, healthy: "✓ example: ",
		task: []string{"--model", "gemini-2.5-flash", "--approval-mode", "yolo", "--prompt"}, failed: `"error":"MCP tool`,
	},
	{
		client: "codex", wire: openaiResponses,
		program: map[string]string{"amd64": "codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", "arm64": "codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex"},
		env:     []string{"MODEL_KEY=none"},
		file:    ".codex/config.toml", text: `model = "stand-in"
model_provider = "stand-in"

[mcp_servers.example] # tickets
command = "$WRIT"
args = [ "example-server" ]

[model_providers.stand-in]
name = "stand-in"
base_url = "$MODEL/v1"
env_key = "MODEL_KEY"
wire_api = "responses"
`,
		health: []string{"mcp", "list"}, healthy: "enabled",
		task: []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"},
	},
	{
		client: "opencode", wire: openaiChat,
		program: map[string]string{"amd64": "opencode-linux-x64-baseline/bin/opencode"},
		env:     []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
		file:    ".config/opencode/opencode.json", text: `{
  "$schema": "https://opencode.ai/config.json",
  "model": "stand-in/stand-in", // on loopback
  "provider": { "stand-in": { "npm": "@ai-sdk/openai-compatible",
    "options": { "baseURL": "$MODEL/v1", "apiKey": "none" }, "models": { "stand-in": {} } } },
  "mcp": { "example": { "type": "local", "command": ["$WRIT", "example-server"], "enabled": true } },
}
`,
		health: []string{"mcp", "list"}, healthy: "✓ example",
		task: []string{"run"},
	},
}

// installed is the path of a program of testdata/clients; without it the test is
// skipped by its name.
func installed(t testing.TB, name, program string) string {
	t.Helper()
	file := filepath.Join(peersDir(t), "..", "clients", "node_modules", program)
	if info, err := os.Stat(file); err != nil || info.IsDir() {
		t.Skipf("no %s for %s in testdata/clients: make clients", name, runtime.GOARCH)
	}
	return file
}

// A home is the home directory of a user of one client.
type home struct {
	dir     string
	client  string            // as writ connect takes it
	servers string            // the file that names the client's servers
	was     []byte            // what stands in it
	env     []string          // of the client
	vars    *strings.Replacer // of its texts
	proxy   string            // what it would fetch from elsewhere it asks this for
}

// newHome is a home with the files of a client, the first that has $WRIT in it first.
func newHome(t *testing.T, client, proxy string, env []string, servers, text string) *home {
	t.Helper()
	h := &home{dir: canonicalTemp(t), client: client, proxy: proxy, env: env, vars: strings.NewReplacer("$MODEL", proxy, "$WRIT", binary)}
	t.Cleanup(func() { h.empty(t) })
	h.servers, h.was = filepath.Join(h.dir, servers), []byte(h.vars.Replace(text))
	write(t, h.servers, string(h.was))
	if err := os.Mkdir(filepath.Join(h.dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

// empty waits until no process has this home any more. One that stays is ended by its
// id, and a fault.
func (h *home) empty(t *testing.T) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environs {
		b, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, b...), []byte("\x00HOME="+h.dir+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 15_000); n == 0 || err != nil {
			t.Errorf("process %d is still there 15 s after its client", pid)
			_ = unix.PidfdSendSignal(fd, syscall.SIGKILL, nil, 0)
		}
		_ = unix.Close(fd)
	}
}

// command is a program as the user of this home starts it.
func (h *home) command(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	if strings.HasSuffix(program, ".js") {
		program, args = node(t), append([]string{program}, args...)
	}
	cmd := exec.CommandContext(testContext(t), program, args...)
	cmd.Dir = filepath.Join(h.dir, "work")
	cmd.Env = []string{"HOME=" + h.dir, "PATH=" + filepath.Dir(node(t)) + ":" + os.Getenv("PATH"), "NO_COLOR=1",
		"HTTP_PROXY=" + h.proxy, "HTTPS_PROXY=" + h.proxy, "NO_PROXY=127.0.0.1,localhost"}
	for _, e := range h.env {
		cmd.Env = append(cmd.Env, h.vars.Replace(e))
	}
	return cmd
}

// says runs a program that has to succeed and returns all that it wrote.
func (h *home) says(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := h.command(t, program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// connect puts Writ in front of the client's servers, twice, with a disconnect between,
// which restores each byte. Then an operator's own contracts stand in the place of the
// drafted ones: those of the built-in server.
func (h *home) connect(t *testing.T) {
	t.Helper()
	h.says(t, binary, "connect", h.client, "--yes")
	h.says(t, binary, "disconnect", h.client, "--yes")
	if now := read(t, h.servers); !bytes.Equal(now, h.was) {
		t.Fatalf("disconnect left\n%s", now)
	}
	var rep struct {
		Policy  string
		Written bool
	}
	out, code := run(t, h.command(t, binary, "connect", h.client, "--yes", "--json"), nil)
	if err := json.Unmarshal([]byte(out), &rep); err != nil || code != 0 || !rep.Written {
		t.Fatalf("writ connect %s: exit code %d, %v: %s", h.client, code, err, out)
	}
	if now := read(t, h.servers); bytes.Contains(now, []byte(`"example-server"`)) {
		t.Fatalf("not connected: %s", now)
	}
	write(t, rep.Policy, string(read(t, filepath.Join("..", "example", "policy.yaml"))))
}

// disconnect takes Writ away. The file is as it was: to the byte, or, where the client
// wrote it anew meanwhile, in what it says of its servers.
func (h *home) disconnect(t *testing.T, connected []byte) {
	t.Helper()
	rewritten := !bytes.Equal(read(t, h.servers), connected)
	h.says(t, binary, "disconnect", h.client, "--yes")
	now := read(t, h.servers)
	if bytes.Equal(now, h.was) {
		return
	}
	var was, is struct{ McpServers map[string]any }
	if !rewritten || json.Unmarshal(h.was, &was) != nil || json.Unmarshal(now, &is) != nil || len(is.McpServers) == 0 || !reflect.DeepEqual(was, is) {
		t.Errorf("disconnect left\n%s", now)
	}
}

// dialogueOf reads a file of testdata/agents.
func dialogueOf(t *testing.T, name string) (d dialogue) {
	t.Helper()
	if err := yaml.Load(read(t, filepath.Join("testdata", "agents", name+".yaml")), &d, yaml.WithKnownFields(), yaml.WithUniqueKeys(), yaml.WithSingleDocument()); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if d.About == "" || d.Prompt == "" || len(d.Turns) == 0 {
		t.Fatalf("%s says nothing", name)
	}
	return d
}

// TestAgents: the agents people use, each connected by writ connect, refused a call,
// told why and what to read, and let through with what it read. What their model was
// told is asked of the model.
func TestAgents(t *testing.T) {
	peersDir(t)
	d := dialogueOf(t, "close-ticket")
	for _, a := range agents {
		t.Run(a.client, func(t *testing.T) {
			program := installed(t, a.client, a.program[runtime.GOARCH])
			m := standIn(t, a.wire, d)
			h := newHome(t, a.client, m.URL, a.env, a.file, a.text)
			h.connect(t)
			connected := read(t, h.servers)
			if out := h.says(t, program, a.health...); !strings.Contains(out, a.healthy) {
				t.Errorf("%v does not say %q: %s", a.health, a.healthy, out)
			}
			out, code := run(t, h.command(t, program, append(a.task, d.Prompt)...), nil)
			if last := d.Turns[len(d.Turns)-1].Say; code != 0 || !strings.Contains(out, last) {
				t.Errorf("exit code %d, and it does not end with %q: %s", code, last, out)
			}
			results := m.shown()
			if len(results) != 3 {
				t.Fatalf("%d results reached the model: %s", len(results), results)
			}
			// What made it read on is checked by the dialogue.
			refusal := readable(results[0])
			for _, part := range []string{"approval.pending", "nothing was done", "`search_tickets` of server `example`"} {
				if !strings.Contains(refusal, part) {
					t.Errorf("the model is not told %q: %s", part, results[0])
				}
			}
			for i, raw := range results {
				if strings.Contains(string(raw), a.failed) != (i == 0) && a.failed != "" {
					t.Errorf("result %d: %s", i+1, raw)
				}
			}
			h.disconnect(t, connected)
			h.empty(t)
			if out := h.says(t, binary, "audit", "verify"); !strings.Contains(out, "2 accepted, 1 refused") {
				t.Errorf("the log: %s", out)
			}
		})
	}
}

// TestOwnTools: Claude Code's own shell under the hooks that writ connect installs, in the
// mode in which it asks nobody: a command that reads is run, and one that acts is not.
func TestOwnTools(t *testing.T) {
	a := agents[0]
	program := installed(t, a.client, a.program[runtime.GOARCH])
	d := dialogueOf(t, "own-tools")
	m := standIn(t, a.wire, d)
	h := newHome(t, a.client, m.URL, append(slices.Clone(a.env), "IS_SANDBOX=1"), a.file, a.text) // else root may not
	write(t, filepath.Join(h.dir, "work", "notes.txt"), "the day's notes")
	h.says(t, binary, "connect", h.client, "--yes")
	connected := read(t, h.servers)
	out, code := run(t, h.command(t, program, "-p", "--permission-mode", "bypassPermissions", "--", d.Prompt), nil)
	if last := d.Turns[len(d.Turns)-1].Say; code != 0 || !strings.Contains(out, last) {
		t.Errorf("exit code %d, and it does not end with %q: %s", code, last, out)
	}
	if results := m.shown(); len(results) != 2 || !strings.Contains(readable(results[0]), "the day's notes") ||
		strings.Contains(string(results[0]), a.failed) || !strings.Contains(string(results[1]), a.failed) {
		t.Errorf("the model was shown %s", results)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "work", "made")); !os.IsNotExist(err) {
		t.Errorf("the command was run: %v", err)
	}
	h.disconnect(t, connected)
	h.empty(t)
	if out := h.says(t, binary, "audit", "verify"); !strings.Contains(out, "1 refused") {
		t.Errorf("the log: %s", out)
	}
}

// TestOwnWords: what is typed into Claude Code at a terminal is its user's, by the hooks:
// the command that he says to run is run, in the mode in which nobody is asked, and one
// that he did not is not.
func TestOwnWords(t *testing.T) {
	a := agents[0]
	program := installed(t, a.client, a.program[runtime.GOARCH])
	script, err := exec.LookPath("script")
	if err != nil {
		t.Fatal(err) // make peers brings it; it gives a person a terminal
	}
	d := dialogueOf(t, "own-words")
	m := standIn(t, a.wire, d)
	h := newHome(t, a.client, m.URL, append(slices.Clone(a.env), "IS_SANDBOX=1", "TERM=xterm"), a.file, a.text)
	b, err := json.Marshal(j{"hasCompletedOnboarding": true, "bypassPermissionsModeAccepted": true, "customApiKeyResponses": j{"approved": []string{"none"}},
		"projects":   j{filepath.Join(h.dir, "work"): j{"hasTrustDialogAccepted": true}},
		"mcpServers": j{"example": j{"command": binary, "args": []string{"example-server"}}}})
	if err != nil {
		t.Fatal(err)
	}
	h.was = b
	write(t, h.servers, string(b))
	h.says(t, binary, "connect", h.client, "--yes")

	cmd := h.command(t, script, "-qfec", "stty rows 40 cols 120; exec '"+program+"' --permission-mode bypassPermissions", "/dev/null")
	keys, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	screen, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shows := func(what string) { // anew
		t.Helper()
		for all, buf := []byte(nil), make([]byte, 1<<16); !bytes.Contains(all, []byte(what)); {
			n, err := screen.Read(buf)
			if all = append(all, buf[:n]...); err != nil {
				t.Fatalf("it does not show %q: %q", what, all)
			}
		}
	}
	shows("❯")
	io.WriteString(keys, d.Prompt)
	shows("made`")
	io.WriteString(keys, "\r")
	shows(d.Turns[len(d.Turns)-1].Say)
	io.WriteString(keys, "\x03")
	shows("again")
	io.WriteString(keys, "\x03")
	_, _ = io.Copy(io.Discard, screen)
	_ = cmd.Wait()
	if results := m.shown(); len(results) != 2 || !strings.Contains(string(results[0]), a.failed) || strings.Contains(string(results[1]), a.failed) {
		t.Errorf("the model was shown %s", results)
	}
	for name, want := range map[string]bool{"other": false, "made": true} {
		if _, err := os.Stat(filepath.Join(h.dir, "work", name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.empty(t)
	if out := h.says(t, binary, "audit", "verify"); !strings.Contains(out, "1 accepted, 1 refused") {
		t.Errorf("the log: %s", out)
	}
}

// TestWhatModelsAreShown: of what stands in a result, and in an error, each agent shows
// its model what docs/clients.md says. Refusals are written so that all of them reach it.
func TestWhatModelsAreShown(t *testing.T) {
	if os.Getenv("WRIT_LONG") != "1" {
		t.Skip("says what agents do, and nothing of Writ: set WRIT_LONG=1 (make test-long sets it)")
	}
	script := filepath.Join(peersDir(t), "shown.mjs")
	doc := string(read(t, filepath.Join("..", "..", "docs", "clients.md")))
	d := dialogueOf(t, "shown")
	for _, a := range agents {
		t.Run(a.client, func(t *testing.T) {
			program := installed(t, a.client, a.program[runtime.GOARCH])
			m := standIn(t, a.wire, d)
			server := strings.NewReplacer("$WRIT", node(t), "example-server", script)
			h := newHome(t, a.client, m.URL, a.env, a.file, server.Replace(a.text))
			if out, code := run(t, h.command(t, program, append(a.task, d.Prompt)...), nil); code != 0 || !strings.Contains(out, "Each was called.") {
				t.Fatalf("exit code %d: %s", code, out)
			}
			row := "| " + a.client + " |"
			for _, raw := range m.shown() {
				var parts []string
				for _, x := range [][2]string{{"WORDS", "text"}, {"MEMBERS", "`structuredContent`"}, {"ASIDE", "`_meta`"}, {a.failed, "`isError`"}} {
					if x[0] != "" && strings.Contains(string(raw), x[0]) {
						parts = append(parts, x[1])
					}
				}
				row += " " + strings.Join(parts, ", ") + " |"
			}
			if !strings.Contains(doc, "\n"+row) {
				t.Errorf("docs/clients.md has no row that begins with\n%s", row)
			}
		})
	}
}

// TestMcporter: a client without a model, which keeps its servers in a process of its
// own between calls: they are one session.
func TestMcporter(t *testing.T) {
	program := installed(t, "mcporter", filepath.Join("mcporter", "dist", "cli.js"))
	closed := "http://127.0.0.1:9" // nothing is there to be reached through it
	file := filepath.Join(".mcporter", "mcporter.json")
	h := newHome(t, "", closed, nil, file, `{ "mcpServers": { "example": { "command": "$WRIT", "args": ["example-server"], "lifecycle": "keep-alive" } } }`)
	h.client = h.servers
	h.connect(t)
	connected := read(t, h.servers)
	if out := h.says(t, program, "list"); !strings.Contains(out, "example (8 tools") {
		t.Errorf("list: %s", out)
	}
	for i, c := range []struct {
		call []string
		code int
		want string
	}{
		{[]string{"close_ticket", "id:INC-9999", "resolution:fixed"}, 1, "`search_tickets` of server `example`"},
		{[]string{"search_tickets", "query:printer"}, 0, `"INC-1042"`},
		{[]string{"close_ticket", "id:INC-1042", "resolution:fixed"}, 0, `"closed"`},
	} {
		args := append([]string{"call", "example." + c.call[0]}, c.call[1:]...)
		if out, code := run(t, h.command(t, program, args...), nil); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("call %d: exit code %d: %s", i+1, code, out)
		}
	}
	h.says(t, program, "daemon", "stop")
	h.disconnect(t, connected)
	h.empty(t)
	if out := h.says(t, binary, "audit", "verify"); !strings.Contains(out, "2 accepted, 1 refused") {
		t.Errorf("the log: %s", out)
	}
}
