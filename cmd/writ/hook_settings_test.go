package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/clients"
	"github.com/writ-project/writ/internal/hook"
)

// TestSettings: which settings of a client keep its tools from being judged as they are.
func TestSettings(t *testing.T) {
	project, home := ownState(t), ownState(t)
	at := filepath.Join(project, hook.Named("claude-code").Settings[0])
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(home, "settings.json")
	p := &place{name: "claude-code", hooksFile: users, events: []clients.HookEvent{{Name: "PreToolUse"}}}
	t.Chdir(project)
	for text, want := range map[string]clientSettings{
		``: {}, `{}`: {}, `{"disableAllHooks":false,"env":{}}`: {}, `{"env":{"API_URL":"x","NODE_ENV":"test","MY_PATH":"x"}}`: {},
		`{"disableAllHooks":true}`: {off: true}, `{"disableAllHooks":"yes"}`: {off: true},
		`{"env":{"PATH":"x"}}`: {steered: true}, `{"env":{"LD_PRELOAD":"x"}}`: {steered: true}, `{"env":{"GIT_EXTERNAL_DIFF":"x"}}`: {steered: true}, `{"env":{"BAT_OPTS":"x"}}`: {steered: true},
		`{"env":{"BASH_ENV":"x"}}`: {steered: true}, `{"env":{"CLAUDE_CODE_SHELL_PREFIX":"x"}}`: {steered: true}, `{"env":["PATH"]}`: {steered: true},
		`{"env":{"a":1},"env":{"PATH":"x"}}`: {steered: true}, `{ // words` + "\n}": {steered: true}, `[]`: {steered: true}, strings.Repeat(" ", maxSettings+1): {steered: true},
	} {
		for _, file := range []string{at, users} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := readSettings(file); got != want {
				t.Errorf("%.40s: %+v, want %+v", text, got, want)
			}
			notes := 0
			if want.off {
				notes++
			}
			if want.steered && file == at { // a person's own settings are his
				notes++
			}
			if got := p.settingsNotes(); len(got) != notes {
				t.Errorf("%.40s: %q", text, got)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if !steered(hook.Named("claude-code"), project) || steered(hook.Named("host"), project) || steered(hook.Named("claude-code"), home) {
		t.Error("what cannot be read, of a host that has no such settings, and where there are none")
	}
}
