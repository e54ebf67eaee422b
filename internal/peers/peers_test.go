// Package peers tests the built program against MCP servers and clients that
// others wrote: the reference servers of npm and gopls behind it, the official
// SDKs and the Inspector in front of it, each in a process of its own and under
// a policy of examples/.
//
// The peers are installed by `make peers`; WRIT_PEERS names the directory. The
// agents people use are installed by `make clients` in the directory beside it. A
// case about one server is a file in testdata/<server>.
package peers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	writ "github.com/writ-project/writ"
)

// patience bounds each test. Nothing is expected to take it.
const patience = 2 * time.Minute

// binary is the program under test: WRIT_BINARY, or built once for this run.
var binary string

func TestMain(m *testing.M) {
	if endpoint := os.Getenv(callerEnv); endpoint != "" {
		if err := runCaller(endpoint); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(func() int {
		if binary = os.Getenv("WRIT_BINARY"); binary != "" || os.Getenv("WRIT_PEERS") == "" && os.Getenv("WRIT_SERVERS") == "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "writ-peers-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "writ")
		build := exec.Command("go", "build", "-o", binary, "./cmd/writ")
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build ./cmd/writ: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// testContext ends with the test, or when something hangs.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// peersDir is where `make peers` put the peers; without it the test is skipped.
func peersDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("WRIT_PEERS")
	if dir == "" {
		t.Skip("needs the peers: make peers, then WRIT_PEERS=…/testdata/peers (make test sets it)")
	}
	return dir
}

// node is the pinned Node.js.
func node(t testing.TB) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	bin := filepath.Join(peersDir(t), "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(bin); err != nil {
		t.Skipf("no pinned Node.js for %s/%s among the peers: make peers", runtime.GOOS, runtime.GOARCH)
	}
	return bin
}

// npmServer is the command of one of the reference servers.
func npmServer(t testing.TB, name string, args ...string) []string {
	t.Helper()
	js := filepath.Join(peersDir(t), "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	return append([]string{node(t), js}, args...)
}

// canonicalTemp is a new directory by its one canonical path, nobody else's.
func canonicalTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// example copies the policy of examples/<name> beside a writ.yaml into a new
// directory, and returns it. The policy is taken as it is committed.
func example(t testing.TB, name, config string) (dir string) {
	t.Helper()
	dir = canonicalTemp(t)
	exampleIn(t, dir, name, config)
	return dir
}

// exampleIn is example, into a directory that is there.
func exampleIn(t testing.TB, dir, name, config string) {
	t.Helper()
	policy, err := os.ReadFile(filepath.Join("..", "..", "examples", name, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "policy.yaml"), string(policy))
	write(t, filepath.Join(dir, "writ.yaml"), config)
}

// A log keeps the first 64 KiB of what a process said, for when a test fails.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() < 64<<10 {
		l.b.Write(p)
	}
	return len(p), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// show logs what a process said if the test fails.
func show(t testing.TB, name string) *log {
	l := &log{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s said:\n%s", name, l)
		}
	})
	return l
}

// start runs a process until the test ends; it is ended through its own handle.
// The first group of said, found in a line of its standard error, is returned.
func start(t testing.TB, cmd *exec.Cmd, said *regexp.Regexp) string {
	t.Helper()
	name := filepath.Base(cmd.Path)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	cmd.WaitDelay = 5 * time.Second
	l := show(t, name)
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	w.Close()
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		if runtime.GOOS == "windows" || cmd.Process.Signal(os.Interrupt) != nil {
			cmd.Process.Kill()
		}
		select {
		case <-ended:
		case <-time.After(15 * time.Second):
			t.Errorf("%s did not end within 15 s of an interrupt", name)
			cmd.Process.Kill()
			<-ended
		}
		r.Close()
	})
	found := make(chan string, 1)
	go func() {
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, 1<<20)
		once := false
		for sc.Scan() {
			fmt.Fprintf(l, "%s\n", sc.Bytes())
			if m := said.FindStringSubmatch(sc.Text()); m != nil && !once {
				once = true
				found <- m[1]
			}
		}
		close(found)
	}()
	ctx := testContext(t)
	select {
	case s, ok := <-found:
		if !ok {
			t.Fatalf("%s ended before it said %s", name, said)
		}
		return s
	case <-ctx.Done():
		t.Fatalf("%s does not say %s", name, said)
	}
	return ""
}

var listening = regexp.MustCompile(`listening on (http://\S+)$`)

// serve starts `writ serve` and returns its endpoint.
func serve(t testing.TB, dir, state string, env ...string) string {
	t.Helper()
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--config", filepath.Join(dir, "writ.yaml"), "--state", state)
	cmd.Env = append(os.Environ(), env...)
	return start(t, cmd, listening)
}

// freeAddress is a loopback address nobody listened on a moment ago, for
// servers that cannot say which port they got.
func freeAddress(t testing.TB) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// overStdio connects go-sdk's client to `writ run`.
func overStdio(t testing.TB, opts *mcp.ClientOptions, args ...string) *session {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"run"}, args...)...)
	cmd.Stderr = show(t, "writ run")
	return connect(t, &mcp.CommandTransport{Command: cmd, TerminateDuration: 15 * time.Second}, opts)
}

// A session is go-sdk's client with what it was told of the list of tools.
type session struct {
	*mcp.ClientSession
	changed chan struct{}
}

func connect(t testing.TB, tr mcp.Transport, opts *mcp.ClientOptions) *session {
	t.Helper()
	s := &session{changed: make(chan struct{}, 1)}
	if opts == nil {
		opts = &mcp.ClientOptions{}
	}
	opts.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "peers", Version: "1"}, opts)
	cs, err := c.Connect(testContext(t), tr, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	s.ClientSession = cs
	return s
}

// listed waits until the gateway lists the tools: on a slow machine it answers
// before all of its servers do, and says so when there is more.
func listed(t testing.TB, cs *session, tools ...string) {
	t.Helper()
	ctx := testContext(t)
	for {
		res, err := cs.ListTools(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		missing := slices.DeleteFunc(slices.Clone(tools), func(name string) bool {
			return slices.ContainsFunc(res.Tools, func(x *mcp.Tool) bool { return x.Name == name })
		})
		if len(missing) == 0 {
			return
		}
		select {
		case <-cs.changed:
		case <-ctx.Done():
			t.Fatalf("%q are not among the %d tools listed", missing, len(res.Tools))
		}
	}
}

func callTool(t testing.TB, cs *session, tool string, args any) *mcp.CallToolResult {
	t.Helper()
	res, err := cs.CallTool(testContext(t), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res
}

func text(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if x, ok := c.(*mcp.TextContent); ok {
			b.WriteString(x.Text)
		}
	}
	return b.String()
}

// rejection is why a result is a refusal; nil if it is none.
func rejection(t testing.TB, meta map[string]any) *writ.Rejection {
	t.Helper()
	raw, ok := meta["io.github.writ-project/outcome"]
	if !ok {
		return nil
	}
	b, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	var o writ.Outcome
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	return o.Rejection
}

// admissible says what a result's mark says of it as evidence.
func admissible(meta map[string]any) (is bool, why string) {
	m, _ := meta["io.github.writ-project/evidence"].(map[string]any)
	is, _ = m["admissible"].(bool)
	why, _ = m["why"].(string)
	return is, why
}

// verify is `writ audit verify` over a state directory no gateway uses.
func verify(t testing.TB, state string) string {
	t.Helper()
	out, err := exec.CommandContext(testContext(t), binary, "audit", "verify", "--state", state).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("ok")) {
		t.Errorf("writ audit verify: %v\n%s", err, out)
	}
	return string(out)
}

// run runs a program to its end and returns what it wrote.
func run(t testing.TB, cmd *exec.Cmd, stdin io.Reader) (stdout string, code int) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, show(t, filepath.Base(cmd.Path))
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ee, ok := err.(*exec.ExitError); ok {
		return out.String(), ee.ExitCode()
	} else if err != nil {
		t.Fatalf("%s: %v", cmd.Path, err)
	}
	return out.String(), 0
}
