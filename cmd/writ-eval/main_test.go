package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/writ-project/writ/internal/example"
)

// Beside the program, scripts have example-server, an MCP server on its standard
// input and output.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"writ-eval": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
		"example-server": func() {
			if err := example.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
	})
}

// TestScript runs the command line as its user sees it. A script is a file in
// testdata/script; beside testscript's own commands it has
//
//	exits CODE CMD …     run a command that must exit with exactly CODE
//
// $WRIT is a writ that was built for it.
func TestScript(t *testing.T) {
	writ := filepath.Join(t.TempDir(), "writ")
	if out, err := exec.Command("go", "build", "-o", writ, "../writ").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Scripts run side by side when this function has returned, and before the
	// directory of writ is removed.
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("WRIT", writ)
			return os.WriteFile(filepath.Join(e.WorkDir, "example.yaml"), example.Policy(), 0o600)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exitsScript},
	})
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
