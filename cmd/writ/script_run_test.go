package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// conversation is a writ run that a script talks to line by line.
type conversation struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// conversations are those of each script, one at a time.
var conversations sync.Map // of *testscript.TestScript to *conversation

// converseScript starts "writ run" with the given flags; a script ends it by
// hangup, or by its own end.
func converseScript(ts *testscript.TestScript, neg bool, args []string) {
	cmd := scriptCommand(ts, append([]string{"run"}, args...))
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	conversations.Store(ts, &conversation{cmd, in, bufio.NewReader(out)})
	ts.Defer(func() { hangUp(ts) })
}

// sendScript sends the lines of a file one after another, waits for an answer to
// each, and writes the answers to the second file.
func sendScript(ts *testscript.TestScript, neg bool, args []string) {
	at, ok := conversations.Load(ts)
	if !ok || len(args) != 2 {
		ts.Fatalf("usage: converse …, then send LINES ANSWERS")
	}
	c := at.(*conversation)
	var answers []byte
	lines, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer lines.Close()
	for sc := bufio.NewScanner(lines); sc.Scan(); {
		_, err := io.WriteString(c.in, sc.Text()+"\n")
		ts.Check(err)
		answer, err := c.out.ReadBytes('\n')
		ts.Check(err)
		answers = append(answers, answer...)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), answers, 0o600))
}

func hangUpScript(ts *testscript.TestScript, neg bool, args []string) { hangUp(ts) }

func hangUp(ts *testscript.TestScript) {
	if at, ok := conversations.LoadAndDelete(ts); ok {
		c := at.(*conversation)
		c.in.Close()
		_, _ = io.Copy(io.Discard, c.out)
		_ = c.cmd.Wait()
	}
}
