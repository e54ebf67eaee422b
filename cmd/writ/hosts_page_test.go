package main

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/writ-project/writ/internal/hook"
)

// TestHostsPage: what docs/hosts.md tells a host to do works as it stands there: its
// writ.yaml, the policy it names, and each line it asks, with the answer below it.
func TestHostsPage(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("when a process was started is not known here")
	}
	page, err := os.ReadFile("../../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	var config, shell string
	for _, block := range regexp.MustCompile(`(?m)(?:^    .*\n|^\n(?:    .*\n))+`).FindAllString(string(page), -1) {
		switch text := strings.ReplaceAll("\n"+strings.TrimPrefix(block, "\n"), "\n    ", "\n"); {
		case strings.Contains(text, "\nhost: host\n"):
			config = text
		case strings.Contains(text, "\nask() "):
			shell = text
		}
	}
	asks, answers := "", ""
	for line := range strings.Lines(shell) {
		if strings.HasPrefix(line, "{") {
			answers += strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
		} else {
			asks += line
		}
	}
	if strings.Count(answers, "\n") < 5 || !strings.Contains(config, "servers:") {
		t.Fatalf("the page has %q and %q", config, shell)
	}
	dir := t.TempDir()
	script := "exec writ check --config writ.yaml\n! stderr .\n" +
		"exec writ client add mine --role person\ncapture TOKEN (.+)\nserve --config writ.yaml\nenv WRIT_TOKEN=$TOKEN\n" +
		"exec sh ask.sh\nstdout '^" + strings.ReplaceAll(strings.TrimSuffix(answers, "\n"), "\n", `\n`) + "$'\n" +
		"-- writ.yaml --" + config + "-- policy.yaml --\n" + hook.Named("host").Policy + "-- ask.sh --\n" + asks
	if err := os.WriteFile(filepath.Join(dir, "hosts.txtar"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, scriptParams(dir))
}
