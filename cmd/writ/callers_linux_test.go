package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/example"
)

// http-client URL … is a client that speaks MCP over HTTP and runs a command of its agent's
// for each line that it reads, as a shell does. What is shown goes to descriptor 3.
func init() {
	programs["http-client"] = func() {
		out := os.NewFile(3, "out")
		req, err := http.NewRequest(http.MethodPost, os.Args[1], strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
		must(err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		must(err)
		_, err = io.Copy(io.Discard, resp.Body)
		must(err)
		fmt.Fprintln(out, "client: spoke", resp.StatusCode)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			cmd := exec.Command("sh", "-c", lines.Text())
			cmd.ExtraFiles = []*os.File{out}
			shown, err := cmd.CombinedOutput()
			fmt.Fprintf(out, "%s\nclient: ran %v\n", shown, err)
		}
	}
}

// TestCallerAnswers (K06): a client over HTTP is no child of the gateway. What its agent
// starts, with a session and a terminal of its own, says yes to nothing all the same; a
// person at a terminal that it has not started does.
func TestCallerAnswers(t *testing.T) {
	config, state := approving(t, example.Policy()), ownState(t)
	url, _ := serving(t, "--state", state, "--config", config)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	client := exec.Command("http-client", url)
	client.ExtraFiles = []*os.File{w}
	in, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer client.Wait()
	defer in.Close()
	w.Close()
	out := bufio.NewReader(r)
	until := func(end string) (all string) {
		t.Helper()
		for {
			line, err := out.ReadString('\n')
			if all += line; err != nil || strings.HasPrefix(line, end) {
				return all
			}
		}
	}
	if said := until("client: spoke"); said != "client: spoke 200\n" {
		t.Fatalf("the client: %s", said)
	}
	if said, _ := piped77(t, "", "call", "--state", state, "--session", "demo", "delete_document", `{"id":"doc-2b8e04"}`); !strings.Contains(said, "approval.pending") {
		t.Fatalf("the call: %s", said)
	}
	listed, _ := piped77(t, "", "approve", "--state", state, "--json")
	id := found(t, `"id": *"(\w+)"`, listed)
	at := " --state " + state
	for _, args := range []string{"console" + at, "console --code" + at, "approve --yes " + id + at, "audit settle demo/2 --not" + at} {
		for _, how := range []string{"script -qec 'writ " + args + "' /dev/null", "setsid -w script -qec 'writ " + args + "' /dev/null"} {
			io.WriteString(in, how+"\n")
			if said := until("client: ran"); !strings.Contains(said, "ran exit status 77") || !strings.Contains(said, "not started by a person") {
				t.Errorf("%s: %s", how, said)
			}
		}
	}
	// Who is not heard is told that no call is held for him.
	io.WriteString(in, "writ watch"+at+" >&3 2>&1 & echo pid $!\n")
	watch := until("a gateway does not hear this terminal")
	if !strings.Contains(watch, "watching") || strings.Contains(watch, "are held") {
		t.Errorf("writ watch: %s", watch)
	}
	watch += until("try: ")
	if !strings.Contains(watch, "client: ran") {
		watch += until("client: ran")
	}
	io.WriteString(in, "kill "+found(t, `pid (\d+)`, watch)+"\n")
	until("client: ran")
	// What it left to the first process counts as its own, also when it is gone itself.
	stray := "stray writ approve --yes " + id + at
	loose := func(said string) {
		t.Helper()
		if strings.Contains(said, "adopted by ") {
			t.Logf("what is left here is %s, which is neither the first process nor systemd", said)
		} else if !strings.Contains(said, "exit status 77") || !strings.Contains(said, "after the agent's client was started") {
			t.Errorf("%s: %s", stray, said)
		}
	}
	io.WriteString(in, stray+"\n")
	in.Close()
	client.Wait()
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	loose(string(rest))
	if r, w, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	again := exec.Command("sh", "-c", stray)
	again.ExtraFiles = []*os.File{w}
	if err := again.Run(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	rest, _ = io.ReadAll(r)
	loose(string(rest))

	s := onTerminal(t, "", nil, "console", "--state", state)
	s.expect(`takes this code: \w+\s`)
	if code := s.exits(); code != 0 {
		t.Errorf("the person's link: %d", code)
	}
	s = onTerminal(t, "", nil, "approve", "--yes", id, "--state", state)
	if code := s.exits(); code != 0 {
		t.Errorf("the person's yes: %d %s", code, s.all())
	}
}

// TestPromptBelowClient (K06): who makes a call by a gateway of his own says yes to nothing
// there, at a terminal neither, where he descends from a client that has a session here.
func TestPromptBelowClient(t *testing.T) {
	config, state := approving(t, example.Policy()), ownState(t)
	deletion := []string{"call", "--state", state, "--config", config, "--session", "demo", "delete_document", `{"id":"doc-2b8e04"}`}
	s := onTerminal(t, "", nil, deletion...)
	s.expect(asked)
	s.press("n" + enter)
	if code := s.exits(); code != 77 {
		t.Errorf("a person's: exit code %d", code)
	}
	if err := keepSession(state, sharedName(os.Getpid()), "of this very client, which is 32+"); err != nil {
		t.Fatal(err)
	}
	s = onTerminal(t, "", nil, append(deletion[:len(deletion)-1], `{"id":"doc-c56d17"}`)...)
	if code := s.exits(); code != 77 || strings.Contains(s.all(), "[y] this once") || !strings.Contains(s.all(), "approval.pending") {
		t.Errorf("exit code %d: %s", code, s.all())
	}
}
