package peers

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// silent is a server that starts, reads and never answers; after start the
// gateway gives it up.
func silent(t *testing.T, name, start string) behind {
	return behind{name: name, command: []string{node(t), "-e", "process.stdin.resume()"}, start: start}
}

// TestInitializeDoesNotWait: the built program answers a client's initialize
// although the only server behind it never answers anything. How long it took
// is printed, not judged.
func TestInitializeDoesNotWait(t *testing.T) {
	peersDir(t)
	ctx := testContext(t)
	dir := example(t, "memory", config(silent(t, "memory", "1h")))
	cmd := exec.CommandContext(ctx, binary, "run", "--config", filepath.Join(dir, "writ.yaml"), "--state", canonicalTemp(t))
	cmd.Stderr = show(t, "writ run")
	cmd.WaitDelay = 5 * time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"id":1`) || !strings.Contains(lines.Text(), `"serverInfo"`) {
		t.Errorf("initialize was not answered: %q %v", lines.Text(), lines.Err())
	}
	t.Logf("initialize was answered %v after the start", time.Since(began).Round(time.Millisecond))
	stdin.Close()
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("writ run: %v", err)
	}
}

// TestOneSilentServer: a server that never answers does not take the others
// with it.
func TestOneSilentServer(t *testing.T) {
	peersDir(t)
	root := canonicalTemp(t)
	dir := example(t, "gopls", config(filesServer(t, root), silent(t, "gopls", "1h")))
	state := canonicalTemp(t)
	cs := overStdio(t, nil, "--config", filepath.Join(dir, "writ.yaml"), "--state", state)
	began := time.Now()
	listed(t, cs, "list_directory")
	t.Logf("the tools were listed %v after initialize", time.Since(began).Round(time.Millisecond))
	if res := callTool(t, cs, "list_directory", map[string]any{"path": root}); res.IsError {
		b, _ := json.Marshal(res)
		t.Errorf("list_directory: %s", b)
	}
	cs.Close()
	verify(t, state)
}
