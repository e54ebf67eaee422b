//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
