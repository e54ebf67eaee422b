package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/writ-project/writ/internal/example"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"writ": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}})
}

// TestScript runs the command line as its user sees it. A script is a file in
// testdata/script; beside testscript's own commands it has
//
//	serve [ARG …]        start `writ serve`, wait until it listens; $URL is its address
//	stop                 end it and wait
//	faildisk             from now on its disk fails at each sync
//	ends CODE            wait until it ends by itself, with exactly CODE
//	exits CODE CMD …     run a command that must exit with exactly CODE
//	capture VAR REGEXP   set $VAR to the first group found in the last stdout
//	model …              a model behind an endpoint: modelScript
//
// and the conditions [race], the race detector is on, and [strace], which
// faildisk needs.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "race":
				return raceDetector, nil
			case "strace":
				scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope") // who may attach to what is no child
				return (len(scope) == 0 || scope[0] == '0' || os.Getuid() == 0) && exec.Command("strace", "-f", "-o", os.DevNull, "true").Run() == nil, nil
			}
			return false, fmt.Errorf("there is no condition %q", cond)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			return os.WriteFile(filepath.Join(e.WorkDir, "example.yaml"), example.Policy(), 0o600)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"serve": serveScript, "stop": stopScript, "faildisk": failDiskScript, "ends": endsScript, "exits": exitsScript, "capture": captureScript, "model": modelScript,
		},
	})
}

type served struct {
	cmd  *exec.Cmd
	done chan error
}

// servers are those of each script; scripts run side by side.
var servers sync.Map // of *testscript.TestScript to *served

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
	for _, k := range []string{"HOME", "XDG_STATE_HOME", "PATH", "TMPDIR", "WORK"} {
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
	s := &served{cmd, make(chan error, 1)}
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
	servers.Store(ts, s)
	ts.Defer(func() { end(ts) })
}

func end(ts *testscript.TestScript) error {
	at, ok := servers.LoadAndDelete(ts)
	if !ok {
		return nil
	}
	s := at.(*served)
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	return <-s.done
}

func stopScript(ts *testscript.TestScript, neg bool, args []string) { ts.Check(end(ts)) }

// failDiskScript attaches a tracer to the server that answers its syncs with
// EIO; it ends with it.
func failDiskScript(ts *testscript.TestScript, neg bool, args []string) {
	at, ok := servers.Load(ts)
	if !ok {
		ts.Fatalf("nothing is served")
	}
	cmd := exec.Command("strace", "-f", "-o", os.DevNull, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO",
		"-p", fmt.Sprint(at.(*served).cmd.Process.Pid))
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
	at, ok := servers.LoadAndDelete(ts)
	if !ok || len(args) != 1 {
		ts.Fatalf("usage: ends CODE, while something is served")
	}
	err := <-at.(*served).done
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
