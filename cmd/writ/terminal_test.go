//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/example"
)

const asked = `May the agent do this\?(?s:.*)delete_document(?s:.*)doc-2b8e04(?s:.*)\[y\] this once`

// approving writes a configuration that asks a person, and returns its path.
func approving(t *testing.T, policy []byte) string {
	t.Helper()
	dir := ownState(t)
	for name, text := range map[string]string{
		"policy.yaml": string(policy),
		"writ.yaml":   "approvals: true\nservers:\n  - name: example\n    command: [writ, example-server]\npolicy: policy.yaml\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "writ.yaml")
}

// TestPromptCall: writ call asks who runs it, at his own terminal, where the operator
// lets a person be asked; what was typed before he could see the question, and what
// comes from no terminal, answers nothing.
func TestPromptCall(t *testing.T) {
	config, state := approving(t, example.Policy()), ownState(t)
	deletion := []string{"call", "--state", state, "--config", config, "delete_document", `{"id":"doc-2b8e04"}`}

	s := onTerminal(t, "y"+enter+"y"+enter, nil, deletion...)
	s.expect(asked)
	s.press("maybe" + enter + "b" + enter)
	s.expect(`\{"id":"doc-2b8e04"\}`)
	s.press("n" + enter)
	s.expect(`approval\.refused`)
	if code := s.exits(); code != 77 {
		t.Errorf("exit code %d", code)
	}
	s = onTerminal(t, "", nil, deletion...)
	s.expect(asked)
	s.press("y" + enter)
	s.expect(`"deleted":true`)
	if code := s.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, stdin := range []string{"", "y\n"} {
		if out, code := piped77(t, stdin, deletion...); code != 77 || !strings.Contains(out, "approval.pending") || strings.Contains(out, "May the agent") {
			t.Errorf("from a pipe: %d %s", code, out)
		}
	}
}

// piped77 runs writ without a terminal.
func piped77(t *testing.T, stdin string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.Command("writ", args...)
	cmd.Stdin = strings.NewReader(stdin)
	b, _ := cmd.CombinedOutput() // the exit code says it
	return string(b), cmd.ProcessState.ExitCode()
}

// TestApproveTooLate: a question that is answered when its gateway has ended, as one over stdio
// does with its client, says so, and that nothing came of the answer.
func TestApproveTooLate(t *testing.T) {
	config, state := approving(t, example.Policy()), ownState(t)
	_, end := serving(t, "--state", state, "--config", config)
	if out, code := piped77(t, "", "call", "--state", state, "delete_document", `{"id":"doc-2b8e04"}`); code != 77 {
		t.Fatal(code, out)
	}
	var qs []approval.Shown
	if err := json.Unmarshal([]byte(command(t, "approve", "--json", "--state", state)), &qs); err != nil || len(qs) != 1 {
		t.Fatal(qs, err)
	}
	s := onTerminal(t, "", nil, "approve", qs[0].ID, "--state", state)
	s.expect(asked)
	end()
	s.press("y" + enter)
	s.expect("the client whose call waited has ended, or its gateway: the answer counts for nothing, and nothing was done by it")
	if code := s.exits(); code != 65 {
		t.Errorf("exit code %d", code)
	}
}

// TestPromptGateway: the same of a call through a gateway that runs.
func TestPromptGateway(t *testing.T) {
	config, state := approving(t, example.Policy()), ownState(t)
	serving(t, "--state", state, "--config", config)
	deletion := []string{"call", "--state", state, "delete_document", `{"id":"doc-2b8e04"}`}
	s := onTerminal(t, "y"+enter, nil, deletion...)
	s.expect(asked)
	s.press("y" + enter)
	s.expect(`on record(?s:.*)"deleted":true`)
	if code := s.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if out, code := piped77(t, "y\n", deletion...); code != 77 || !strings.Contains(out, "approval.pending") {
		t.Errorf("from a pipe: %d %s", code, out)
	}
}

// TestPromptAsk: writ ask asks while its one call waits, and reads commands as before
// when that is over.
func TestPromptAsk(t *testing.T) {
	s := onScreen(t, nil, "--state", ownState(t), "--config", approving(t, example.Policy()))
	s.press("ask Delete document doc-2b8e04" + enter)
	s.expect(asked)
	s.press("n" + enter)
	s.expect(`stopped at provenance(?s:.*)approval\.refused(?s:.*)` + prompt)
	s.press(`call delete_document {"id":"doc-e90b42"}` + enter)
	s.expect(`\[y\] this once`)
	s.press(ctrlC)
	s.expect(`ending the request(?s:.*)` + prompt)
	s.press("ask Delete document doc-7c11fa" + enter)
	s.expect(`doc-7c11fa(?s:.*)\[y\] this once`)
	s.press("y" + enter)
	s.expect(`run [0-9a-z-]+(?s:.*)` + prompt)
	s.press("quit" + enter)
	s.exits()
}

const sayPolicy = `
pins: optional
collections: { ticket: { closed: true } }
tools:
  example/close_ticket:
    effect: write
    args:
      /id: { role: selector, collection: ticket, type: id, from: [user, output] }
      /resolution: { role: enum, from: [catalog] }
`

// A client is a shell that has started writ run, and speaks to it.
type shell struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func newShell(t *testing.T, state, config string) *shell {
	t.Helper()
	cmd := exec.Command("sh", "-c", `writ run --state "$1" --config "$2"; :`, "sh", state, config)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		io.Copy(io.Discard, out)
		cmd.Wait()
	})
	return &shell{cmd, in, bufio.NewReader(out)}
}

func (s *shell) request(t *testing.T, line string) string {
	t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := s.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestSayTo: the user's words reach the session that the client of a writ run has, from
// a terminal of his own or by a person's token; nobody else's words do, whom the client
// started least of all.
func TestSayTo(t *testing.T) {
	config, state := approving(t, []byte(sayPolicy)), ownState(t)
	client := newShell(t, state, config)
	pid := strconv.Itoa(client.cmd.Process.Pid)
	say := func(pid string) []string {
		return []string{"session", "say", "--state", state, "--pid", pid, "please close ticket INC-1042"}
	}
	const act = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"close_ticket","arguments":{"id":"INC-1042","resolution":"fixed"}}}`
	client.request(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	if got := client.request(t, act); !strings.Contains(got, "approval.pending") {
		t.Fatalf("before the user said so: %.600s", got)
	}

	token := func(name, role string) string {
		out, err := exec.Command("writ", "client", "add", name, "--role", role, "--state", state).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	person, agent := token("kim", "person"), token("bot", "agent")
	for what, env := range map[string]string{"no terminal": "", "an agent's token": agent, "no token": "writ_", "another token": person[:len(person)-2] + "AA"} {
		t.Setenv("WRIT_TOKEN", env)
		if out, code := piped77(t, "", say(pid)...); code != 77 {
			t.Errorf("%s: %d %s", what, code, out)
		}
	}
	t.Setenv("WRIT_TOKEN", person)
	if out, code := piped77(t, "", say(strconv.Itoa(os.Getpid()))...); code != 65 {
		t.Errorf("of another process: %d %s", code, out)
	}
	t.Setenv("WRIT_TOKEN", "")
	s := onTerminal(t, "", nil, say(pid)...)
	s.expect(`evidence s_[a-z2-7]+/ev[0-9]+`)
	if code := s.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := client.request(t, strings.Replace(act, `"id":2`, `"id":3`, 1)); strings.Contains(got, `"isError":true`) {
		t.Errorf("after the user said so: %.600s", got)
	}
	t.Setenv("WRIT_TOKEN", person)
	if out, code := piped77(t, "", say(pid)...); code != 0 || !strings.HasPrefix(out, "evidence ") {
		t.Errorf("by a person's token: %d %s", code, out)
	}

	// By its public id, over the door itself.
	f := flags{state: state}
	doors, err := f.doors()
	if err != nil || len(doors) != 1 {
		t.Fatal(doors, err)
	}
	id, _, _ := strings.Cut(command(t, "session", "list", "--state", state), " ")
	for body, want := range map[string]int{
		`{"session":"` + id + `","text":"INC-1042"}`: 200, `{"session":"s_aaaaaaaaaaaaaaaa","text":"x"}`: 404, `{"text":"x"}`: 400,
	} {
		var got hookSaid
		if status, err := exchange(t.Context(), doors[0], "POST /say", person, []byte(body), 1<<16, &got); err != nil || status != want || (got.Evidence != "") != (want == 200) {
			t.Errorf("%s: %d %+v %v", body, status, got, err)
		}
	}
	var got hookSaid
	if status, err := exchange(t.Context(), doors[0], "POST /say", agent, []byte(`{"session":"`+id+`","text":"x"}`), 1<<16, &got); err != nil || status != 403 {
		t.Errorf("%d %+v %v", status, got, err)
	}
}

// TestSayFromClient: what the client of a writ run started speaks for nobody, at a
// terminal of its own too.
func TestSayFromClient(t *testing.T) {
	config, state := approving(t, []byte(sayPolicy)), ownState(t)
	run := exec.Command("writ", "run", "--state", state, "--config", config)
	in, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	run.Stdout = &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); run.Wait() })
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for {
		s := onTerminal(t, "", nil, "session", "say", "--state", state, "--pid", strconv.Itoa(os.Getpid()), "close ticket INC-1042")
		if code := s.exits(); code == 74 {
			continue // the gateway is not there yet
		} else if code != 77 || !strings.Contains(s.all(), "not heard") {
			t.Errorf("%d %s", code, s.all())
		}
		return
	}
}

// TestApproveTells: in a terminal a question says what the console's card does: in which stranger's
// text a value stands that nothing holds whole, and what else the record of one has.
func TestApproveTells(t *testing.T) {
	config, state := approving(t, example.Policy()), ownState(t)
	serving(t, "--state", state, "--config", config)
	for _, call := range [][]string{{"fetch_ticket", `{"id":"INC-1043"}`}, {"search_documents", `{"query":"draft"}`}, {"delete_document", `{"id":"doc-e90b42"}`}, {"delete_document", `{"id":"doc-2b8e04"}`}} {
		if out, code := piped77(t, "", append([]string{"call", "--state", state, "--session", "s"}, call...)...); code != 0 && call[0] != "delete_document" {
			t.Fatal(code, out)
		}
	}
	out := command(t, "approve", "--state", state)
	for _, want := range []string{
		"the model's own words: nothing in this session holds it as a whole\n      it stands inside ev1 example/fetch_ticket /structuredContent/text, which anyone can write\n",
		"its record has title \"",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
}
