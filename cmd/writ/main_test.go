package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/tools/txtar"

	"github.com/writ-project/writ/internal/example"
)

func TestMain(m *testing.M) {
	// What tests outside of scripts keep is not where the user's own heads are.
	if os.Getenv("XDG_DATA_HOME") == "" && filepath.Base(os.Args[0]) != "writ" {
		os.Setenv("XDG_DATA_HOME", filepath.Join(os.TempDir(), "writ-test-data"))
	}
	programs["writ"] = func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if days, err := strconv.Atoi(os.Getenv("WRIT_DAYS_AHEAD")); err == nil { // as upkeep sees it
			upkeepClock = func() time.Time { return time.Now().AddDate(0, 0, days) }
		}
		if os.Getenv("WRIT_SLOW_CLOCK") != "" { // half a second passes from one look at it to the next
			var looks atomic.Int64
			linesClock = func() time.Time { return time.Unix(0, looks.Add(1)*int64(time.Second/2)) }
		}
		os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(m, programs)
}

// programs are what the tests start, by name.
var programs = map[string]func(){}

// TestScript runs the command line as its user sees it. A script is a file in
// testdata/script; beside testscript's own commands it has
//
//	serve [ARG …]        start `writ serve`, wait until it listens; $URL is its address
//	halt [URL]           end the gateway there, or all of them, and wait
//	faildisk             from now on its disk fails at each sync
//	ends CODE            wait until it ends by itself, with exactly CODE
//	crash [URL]          the same, and it gets no chance to clean up
//	impostor URL FILE    listen there, answer as a gateway would, and keep in
//	                     FILE what is sent
//	exits CODE CMD …     run a command that must exit with exactly CODE
//	capture VAR REGEXP   set $VAR to the first group found in the last stdout
//	model …              a model behind an endpoint: modelScript
//	sql DIR STATEMENT …  change the log in a state directory, without its key
//	rehash [-sign] DIR   make all its hashes anew; with -sign, with its key
//
// and the conditions [race], the race detector is on, [strace], which faildisk
// needs, [root], and [mounts], a script may mount.
func TestScript(t *testing.T) { testscript.Run(t, scriptParams("testdata/script")) }

// TestCommandsAreOurs: no command of ours has the name of one of testscript's, which would
// be run in its place: its stop ends a script as passed.
func TestCommandsAreOurs(t *testing.T) {
	theirs := []string{"cat", "cd", "chmod", "cmp", "cmpenv", "cp", "env", "exec", "exists", "grep", "kill", "mkdir", "mv", "rm", "skip", "stderr",
		"stdin", "stdout", "stop", "symlink", "ttyin", "ttyout", "unix2dos", "unquote", "wait"}
	for name := range scriptParams("").Cmds {
		if slices.Contains(theirs, name) {
			t.Errorf("testscript has a command %q", name)
		}
	}
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, file := range scripts {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(a.Comment)) {
			if words := strings.Fields(line); slices.Contains(words, "stop") && (words[0] == "stop" || strings.HasPrefix(words[0], "[")) {
				t.Errorf("%s: %q ends the script as passed", file, strings.TrimSpace(line))
			}
		}
	}
}

// scriptParams are those of the scripts in a directory.
func scriptParams(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "race":
				return raceDetector, nil
			case "strace":
				scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope") // who may attach to what is no child
				return (len(scope) == 0 || scope[0] == '0' || os.Getuid() == 0) && exec.Command("strace", "-f", "-o", os.DevNull, "true").Run() == nil, nil
			case "root":
				return os.Getuid() == 0, nil
			case "mounts":
				return exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", os.TempDir()).Run() == nil, nil
			}
			return false, fmt.Errorf("there is no condition %q", cond)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			return os.WriteFile(filepath.Join(e.WorkDir, "example.yaml"), example.Policy(), 0o600)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"serve": serveScript, "halt": stopScript(syscall.SIGTERM), "crash": stopScript(syscall.SIGKILL), "impostor": impostorScript, "faildisk": failDiskScript, "ends": endsScript, "exits": exitsScript, "capture": captureScript, "model": modelScript,
			"converse": converseScript, "send": sendScript, "hangup": hangUpScript,
			"sql": sqlScript, "rehash": rehashScript,
		},
	}
}

// ownState is an empty directory that is nobody else's, as the program makes it.
func ownState(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

type served struct {
	url  string
	cmd  *exec.Cmd
	done chan error
}

// servers are those of each script; scripts run side by side.
var servers sync.Map // of *testscript.TestScript to []*served

func scriptCommand(ts *testscript.TestScript, args []string) *exec.Cmd {
	exe, err := exec.LookPath("writ")
	if p := ts.Getenv("PATH"); err != nil || p != "" {
		for _, dir := range filepath.SplitList(p) {
			if c := filepath.Join(dir, "writ"); fileExists(c) {
				exe = c
				break
			}
		}
	}
	ts.Check(err)
	cmd := exec.Command(exe, args...)
	cmd.Dir = ts.MkAbs(".")
	for _, k := range []string{"HOME", "XDG_STATE_HOME", "PATH", "TMPDIR", "WORK", "WRIT_DAYS_AHEAD"} {
		cmd.Env = append(cmd.Env, k+"="+ts.Getenv(k))
	}
	return cmd
}

func fileExists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

func serveScript(ts *testscript.TestScript, neg bool, args []string) {
	cmd := scriptCommand(ts, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	s := &served{cmd: cmd, done: make(chan error, 1)}
	listening := make(chan string, 1)
	go func() {
		sc := bufio.NewScanner(stderr)
		for sc.Scan() {
			if u, ok := strings.CutPrefix(sc.Text(), "listening on "); ok {
				listening <- strings.TrimSuffix(u, "/mcp")
			}
		}
		close(listening)
		s.done <- cmd.Wait()
	}()
	url, ok := <-listening
	if !ok {
		ts.Fatalf("writ serve did not listen: %v", <-s.done)
	}
	ts.Setenv("URL", url)
	s.url = url
	running, any := servers.Load(ts)
	if !any {
		running = []*served(nil)
		ts.Defer(func() { end(ts, syscall.SIGTERM, "") })
	}
	servers.Store(ts, append(running.([]*served), s))
}

// end signals the gateway at url, every one for "", and waits.
func end(ts *testscript.TestScript, sig syscall.Signal, url string) (err error) {
	at, _ := servers.Load(ts)
	running, _ := at.([]*served)
	var left []*served
	for _, s := range running {
		if url != "" && s.url != url {
			left = append(left, s)
			continue
		}
		_ = s.cmd.Process.Signal(sig)
		err = errors.Join(err, <-s.done)
	}
	servers.Store(ts, left)
	return err
}

func stopScript(sig syscall.Signal) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		url := ""
		if len(args) > 0 {
			url = args[0]
		}
		if err := end(ts, sig, url); sig != syscall.SIGKILL {
			ts.Check(err)
		}
	}
}

// impostorScript stands where a gateway was: it agrees to all it is asked.
func impostorScript(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: impostor URL FILE")
	}
	file := ts.MkAbs(args[1])
	ts.Check(os.WriteFile(file, nil, 0o600))
	ln, err := net.Listen("tcp", strings.TrimPrefix(args[0], "http://"))
	ts.Check(err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct{ ID, Method json.RawMessage }
		_ = json.Unmarshal(body, &m)
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			fmt.Fprintf(f, "%s %v %s\n", r.URL, r.Header, body)
			f.Close()
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},`+
			`"serverInfo":{"name":"writ","version":"1"},"content":[{"type":"text","text":"the impostor's"}],"tools":[]}}`, m.ID)
	})}
	go srv.Serve(ln)
	ts.Defer(func() { srv.Close() })
	// It is one: who speaks to it is answered and heard.
	resp, err := http.Post(args[0]+"/mcp/s/rehearsal", "application/json", strings.NewReader(`{"id":1}`))
	ts.Check(err)
	resp.Body.Close()
}

// failDiskScript attaches a tracer to the server that answers its syncs with
// EIO; it ends with it.
func failDiskScript(ts *testscript.TestScript, neg bool, args []string) {
	at, _ := servers.Load(ts)
	running, _ := at.([]*served)
	if len(running) != 1 {
		ts.Fatalf("one gateway is served")
	}
	cmd := exec.Command("strace", "-f", "-o", os.DevNull, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO",
		"-p", fmt.Sprint(running[0].cmd.Process.Pid))
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	attached := make(chan bool, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for sc := bufio.NewScanner(stderr); sc.Scan(); {
			if strings.Contains(sc.Text(), "attached") {
				select {
				case attached <- true:
				default:
				}
			}
		}
		cmd.Wait()
		close(attached)
	}()
	ts.Defer(func() { cmd.Process.Kill(); <-ended })
	if !<-attached {
		ts.Fatalf("strace could not attach")
	}
}

func endsScript(ts *testscript.TestScript, neg bool, args []string) {
	at, _ := servers.Swap(ts, []*served(nil))
	running, _ := at.([]*served)
	if len(running) != 1 || len(args) != 1 {
		ts.Fatalf("usage: ends CODE, while one gateway is served")
	}
	err := <-running[0].done
	code := 0
	if ee, ok := err.(*exec.ExitError); ok {
		code = ee.ExitCode()
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("it ended with %v, want exit code %s", err, args[0])
	}
}

func exitsScript(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND …")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if ee, ok := err.(*exec.ExitError); ok {
		code = ee.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func captureScript(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: capture VAR REGEXP")
	}
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) < 2 {
		ts.Fatalf("%s does not match", args[1])
	}
	ts.Setenv(args[0], m[1])
}
