package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
)

// legDeadline bounds one leg: start, run and stop. A leg takes some seconds;
// the runner itself gives up on a scenario after 30.
const legDeadline = 4 * time.Minute

type leg struct {
	name     string
	revision string
	// stateless is how the server behind speaks; the runner drives the wire of
	// its revision.
	stateless bool
	// config is writ.yaml with %q for the server's URL, "" for no gateway.
	config string
	// session: the runner is given a session's own endpoint. The stateless
	// wire carries none, and without one there is no provenance.
	session bool
	// asks names the one thing that a person is asked, who says yes to that alone; ""
	// where nobody is.
	asks string
}

const (
	shadowConfig = policyConfig + "shadow: true\n"
	policyConfig = "servers:\n  - { name: everything, url: %q }\npolicy: policy.yaml\n"
)

var legs = []leg{
	{name: "direct-2025-11-25", revision: "2025-11-25"},
	{name: "direct-2026-07-28", revision: "2026-07-28", stateless: true},
	{name: "shadow-2025-11-25", revision: "2025-11-25", config: shadowConfig},
	{name: "shadow-2026-07-28", revision: "2026-07-28", stateless: true, config: shadowConfig},
	{name: "policy-2025-11-25", revision: "2025-11-25", config: policyConfig},
	{name: "policy-2026-07-28", revision: "2026-07-28", stateless: true, config: policyConfig, session: true, asks: "test_input_required_result_prompt"},
}

func TestConformance(t *testing.T) {
	peers, binary := os.Getenv("WRIT_PEERS"), os.Getenv("WRIT_BINARY")
	if peers == "" || binary == "" {
		t.Skip("needs the peers and the built binary: make conformance")
	}
	node := nodeDir(t, peers)
	for _, l := range legs {
		t.Run(l.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), legDeadline)
			// After the processes have been asked to end: a deadline kills.
			t.Cleanup(cancel)
			url := startServer(t, ctx, peers, l.stateless)
			said := func() (yes, no int) { return 0, 0 }
			if l.config != "" {
				state := filepath.Join(t.TempDir(), "state")
				url = startGateway(t, ctx, binary, state, fmt.Sprintf(l.config, url), l.session)
				if l.asks != "" {
					said = startPerson(t, ctx, binary, state, l.asks)
				}
			}
			results, details := runRunner(t, ctx, peers, node, url, l.revision)
			if yes, no := said(); no != 0 || (yes > 0) != (l.asks != "") {
				t.Errorf("a person said yes %d times, and was asked %d times something else", yes, no)
			}

			text, err := os.ReadFile(filepath.Join("baseline", l.name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			listed, err := ParseBaseline(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range Compare(results, listed) {
				name, _, _ := strings.Cut(line, " ")
				t.Errorf("%s%s", line, details[name])
			}
			t.Log(tally(results))
		})
	}
}

// tally is one line for a person: how far the leg is.
func tally(results map[string]Result) string {
	var required, passed int
	var open []string
	for name, r := range results {
		if r.Unscored == "" {
			required++
			if r.OK() {
				passed++
			}
		}
		if !r.OK() {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	return fmt.Sprintf("%d of %d required scenarios pass; of all %d these do not: %s",
		passed, required, len(results), strings.Join(open, " "))
}

// nodeDir is where the pinned Node.js lies: the runner needs 22 or newer.
func nodeDir(t *testing.T, peers string) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	dir := filepath.Join(peers, "node_modules", "node-"+runtime.GOOS+"-"+arch, "bin")
	if _, err := os.Stat(filepath.Join(dir, "node")); err != nil {
		t.Skipf("no pinned Node.js for %s/%s among the peers: make peers", runtime.GOOS, runtime.GOARCH)
	}
	return dir
}

// start runs a process that lives until the test ends. It is ended through its
// own handle, and its output is shown only when the test fails.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	name := filepath.Base(cmd.Path)
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() {
		if runtime.GOOS == "windows" || cmd.Process.Signal(os.Interrupt) != nil {
			cmd.Process.Kill()
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Errorf("%s did not end within 10 s of an interrupt", name)
			cmd.Process.Kill()
			<-ended
		}
	})
}

func startServer(t *testing.T, ctx context.Context, peers string, stateless bool) string {
	t.Helper()
	// The server cannot say which port it got, so one is picked that was free
	// a moment ago.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.CommandContext(ctx, filepath.Join(peers, "bin", "everything-server"),
		"-http="+addr, fmt.Sprintf("-stateless=%v", stateless))
	start(t, cmd)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			c.Close()
			tick.Stop()
			return "http://" + addr + "/"
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("everything-server does not listen: %v", err)
		}
	}
}

var (
	listening = regexp.MustCompile(`listening on (http://\S+)`)
	endpoint  = regexp.MustCompile(`http://\S+/mcp/s/\S+`)
)

func startGateway(t *testing.T, ctx context.Context, binary, state, config string, session bool) string {
	t.Helper()
	dir := t.TempDir()
	policy, err := os.ReadFile(filepath.Join("testdata", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"writ.yaml": []byte(config), "policy.yaml": policy} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(ctx, binary, "serve", "--listen", "127.0.0.1:0",
		"--config", filepath.Join(dir, "writ.yaml"), "--state", state)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	start(t, cmd)
	w.Close()
	found := make(chan string, 1)
	ended := make(chan []byte, 1)
	go func() {
		defer r.Close()
		var log bytes.Buffer // everything it said, for when it fails to start
		said := false
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			if log.Len() < 64<<10 {
				log.Write(sc.Bytes())
				log.WriteByte('\n')
			}
			if m := listening.FindSubmatch(sc.Bytes()); m != nil && !said {
				said = true
				found <- string(m[1])
			}
		}
		ended <- log.Bytes()
	}()
	t.Cleanup(func() {
		if t.Failed() {
			cmd.Process.Signal(os.Interrupt)
			select {
			case log := <-ended:
				t.Logf("the gateway said:\n%s", log)
			case <-time.After(10 * time.Second):
			}
		}
	})
	select {
	case url := <-found:
		if !session {
			return url
		}
		out, err := exec.CommandContext(ctx, binary, "session", "new", "--state", state).Output()
		m := endpoint.Find(out)
		if err != nil || m == nil {
			t.Fatalf("writ session new: %v: no endpoint in %q", err, out)
		}
		return string(m)
	case log := <-ended:
		ended <- log
		t.Fatal("the gateway ended before it listened")
	case <-ctx.Done():
		t.Fatal("the gateway does not say where it listens")
	}
	return ""
}

// startPerson has somebody watch at a terminal of his own, who says yes to questions that
// hold these words and no to others. said counts what he said.
func startPerson(t *testing.T, ctx context.Context, binary, state, words string) (said func() (yes, no int)) {
	t.Helper()
	script, err := exec.LookPath("script")
	if runtime.GOOS != "linux" || err != nil {
		t.Skip("needs script of util-linux: nobody answers over the local door without a terminal")
	}
	cmd := exec.CommandContext(ctx, script, "-qfc", fmt.Sprintf("exec '%s' watch --state '%s'", binary, state), "/dev/null")
	keys, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	screen, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	var mu sync.Mutex
	yes, no := 0, 0
	watching := make(chan struct{})
	go func() {
		lines := bufio.NewReader(screen)
		if _, err := lines.ReadString('\n'); err != nil {
			return
		}
		close(watching)
		for question := ""; ; {
			part, err := lines.ReadString('>') // the prompt's end, or a row's within
			if question += part; err != nil {
				return
			}
			if !strings.HasSuffix(question, "[b] exact bytes >") {
				continue
			}
			mu.Lock()
			if strings.Contains(question, words) {
				yes++
				io.WriteString(keys, "y\n")
			} else {
				no++
				io.WriteString(keys, "n\n")
			}
			mu.Unlock()
			question = ""
		}
	}()
	select {
	case <-watching:
	case <-ctx.Done():
		t.Fatal("nobody watches")
	}
	return func() (int, int) {
		mu.Lock()
		defer mu.Unlock()
		return yes, no
	}
}

// runRunner returns each scenario's result and, for those with failures, what
// the runner had to say.
func runRunner(t *testing.T, ctx context.Context, peers, node, url, revision string) (map[string]Result, map[string]string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, filepath.Join(node, "node"),
		filepath.Join(peers, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
		"server", "--url", url, "--requirements", revision, "--output-dir", dir)
	cmd.Env = append(os.Environ(), "PATH="+node+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.WaitDelay = 5 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var code *exec.ExitError
	if err != nil && !errors.As(err, &code) || ctx.Err() != nil {
		t.Fatalf("runner: %v %v\n%s", err, ctx.Err(), errs.Bytes())
	}
	// It exits with 1 when a required scenario fails, which Compare judges.
	results, err := ParseSummary(string(out))
	if err != nil {
		t.Fatalf("runner: %v\n%s\n%s", err, tail(out), tail(errs.Bytes()))
	}
	details := map[string]string{}
	for name, r := range results {
		if !r.OK() {
			details[name] = failures(dir, name)
		}
	}
	return results, details
}

func tail(b []byte) []byte { return b[max(0, len(b)-4096):] }

// failures reads the failed checks of one scenario from the runner's files.
func failures(dir, scenario string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "server-"+scenario+"-????-??-??T*", "checks.json"))
	var b strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if json.Unmarshal(text, &checks) != nil {
			continue
		}
		for _, c := range checks {
			if c.Status == "FAILURE" {
				fmt.Fprintf(&b, "\n    %s: %.400q", c.ID, c.ErrorMessage)
			}
		}
	}
	return b.String()
}
