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
//	exits CODE CMD …     run a command that must exit with exactly CODE
//	capture VAR REGEXP   set $VAR to the first group found in the last stdout
//	model …              a model behind an endpoint: modelScript
//
// and the condition [race]: the race detector is on.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Condition: func(cond string) (bool, error) {
			if cond == "race" {
				return raceDetector, nil
			}
			return false, fmt.Errorf("there is no condition %q", cond)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			return os.WriteFile(filepath.Join(e.WorkDir, "example.yaml"), example.Policy(), 0o600)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"serve": serveScript, "stop": stopScript, "exits": exitsScript, "capture": captureScript, "model": modelScript,
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
