//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/story"
)

// TestTail: decisions of other processes are shown as they are made, each once, in JSON
// and in words, and of one session; it ends by Ctrl-C, and with who reads.
func TestTail(t *testing.T) {
	state := ownState(t)
	call := func(session string, arguments ...string) {
		t.Helper()
		if out, code := piped77(t, "", append([]string{"call", "--state", state, "--session", session}, arguments...)...); code != 0 && code != 77 {
			t.Fatal(out)
		}
	}
	call("one", "search_tickets", `{"query":""}`)
	call("one", "close_ticket", `{"id":"INC-9999","resolution":"fixed"}`)
	type tail struct {
		cmd  *exec.Cmd
		out  *bufio.Reader
		hang func() error
	}
	start := func(args ...string) tail {
		cmd := exec.Command("writ", append([]string{"audit", "tail", "--state", state}, args...)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return tail{cmd, bufio.NewReader(out), out.Close}
	}
	line := func(of tail) string {
		t.Helper()
		s, err := of.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	inJSON, inWords := start("--json", "-n", "1"), start("one", "-n", "1")
	next := func() (d story.Line) {
		t.Helper()
		if err := json.Unmarshal([]byte(line(inJSON)), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := next()
	if words := line(inWords); !strings.Contains(words, first.ID+"  refused   example/close_ticket  provenance.unseen\n") {
		t.Error(words)
	}
	if first.Tool != "example/close_ticket" || first.Status != "rejected" || first.Reason != "provenance.unseen" {
		t.Errorf("%+v", first)
	}
	call("two", "search_documents", `{"query":"draft"}`)
	if d := next(); d.Tool != "example/search_documents" || d.Status != "accepted" || strings.HasPrefix(d.ID, strings.TrimSuffix(first.ID, "4")) {
		t.Errorf("%+v", d)
	}
	call("one", "close_ticket", `{"id":"INC-1042","resolution":"fixed"}`)
	call("one", "search_tickets", `{"query":"a"}`)
	for _, tool := range []string{"example/close_ticket", "example/search_tickets"} {
		d, words := next(), line(inWords)
		if d.Tool != tool || !strings.Contains(words, d.ID+"  accepted  "+tool) {
			t.Errorf("%+v: %s", d, words)
		}
	}
	if err := inWords.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if rest, err := inWords.out.ReadString('\n'); rest != "" || err == nil || inWords.cmd.Wait() != nil {
		t.Errorf("ended with %s, %q", inWords.cmd.ProcessState, rest)
	}
	if err := inJSON.hang(); err != nil {
		t.Fatal(err)
	}
	call("two", "search_documents", `{"query":"draft"}`)
	inJSON.cmd.Wait() // it ends
}
