//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConnectAsks: a person at a terminal is offered to have credentials sealed, is shown
// the change and asked for it, and nothing is written without his yes to that. A yes to
// the one is none to the other.
func TestConnectAsks(t *testing.T) {
	const was = `{ "mcpServers": { "tickets": { "command": "writ", "args": ["example-server"], "env": { "TOKEN": "k-0123" } } } }`
	for _, c := range []struct {
		seal, write string
		sealed      bool
		code        int
	}{
		{"y", "n", false, 77},
		{"n", "y", false, 0},
		{"y", "y", true, 0},
	} {
		t.Run(c.seal+c.write, func(t *testing.T) {
			home := ownState(t)
			file := filepath.Join(home, ".cursor", "mcp.json")
			must(os.Mkdir(filepath.Dir(file), 0o700))
			must(os.WriteFile(file, []byte(was), 0o600))
			read := func() string {
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			env := []string{"HOME=" + home, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME="}
			s := onTerminal(t, "", env, "connect", "cursor")
			s.expect(`TOKEN of tickets\.(?s:.*)Seal them(?s:.*)\[y/N\] $`)
			s.press(c.seal + enter)
			s.expect(`--- mcp\.json(?s:.*)"--only",\s+(?:\| )?"tickets"(?s:.*)Write this\? \[y/N\] $`)
			if read() != was {
				t.Error("it was written before anybody said yes")
			}
			s.press(c.write + enter)
			if code := s.exits(); code != c.code || strings.Contains(s.all(), "k-0123") {
				t.Fatalf("exit code %d", code)
			}
			now := read()
			if c.code != 0 {
				if now != was {
					t.Errorf("after a no it is\n%s", now)
				}
				return
			}
			if strings.Contains(now, "k-0123") == c.sealed || strings.Contains(now, "writ-sealed:") != c.sealed {
				t.Errorf("it is\n%s", now)
			}
			s = onTerminal(t, "", env, "disconnect", "cursor")
			s.expect(`"example-server"(?s:.*)Write this\? \[y/N\] $`)
			s.press("y" + enter)
			if code := s.exits(); code != 0 || read() != was {
				t.Errorf("exit code %d; put back it is\n%s", code, read())
			}
		})
	}
}

// TestConnectShowsGiven: who is asked whether a project's servers are started sees what they
// are given whole too, and no row of it without a bar.
func TestConnectShowsGiven(t *testing.T) {
	dir := ownState(t)
	must(os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{ "mcpServers": { "bait": { "command": "npx", "args": ["--token", "`+strings.Repeat("x", 250)+`"], "env": { "GOAUTH": "sh -c evil" } } } }`), 0o600))
	env := []string{"HOME=" + dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME="}
	s := onTerminal(t, "", env, "connect", "claude-code", "--project", dir)
	s.expect(`bait: npx --token x+\s*\n  \| x+   with GOAUTH='sh -c\s+(\| )?evil'(?s:.*)Start these servers of the project(?s:.*)\[y/N\] $`)
	s.press("n" + enter)
	if code := s.exits(); code != 77 {
		t.Errorf("exit code %d", code)
	}
}

// TestDisconnectMeanwhile: what the client writes to its settings while a person looks at the
// change is not lost, though nothing but the hooks was in them.
func TestDisconnectMeanwhile(t *testing.T) {
	home := ownState(t)
	must(os.WriteFile(filepath.Join(home, ".claude.json"), []byte(`{ "mcpServers": { "tickets": { "command": "writ", "args": ["example-server"] } } }`), 0o600))
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME="}
	if s := onTerminal(t, "", env, "connect", "claude-code", "--yes"); s.exits() != 0 {
		t.Fatal(s.all())
	}
	settings := filepath.Join(home, ".claude", "settings.json")
	b, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	now := strings.Replace(string(b), "{", `{ "permissions": {},`, 1)
	s := onTerminal(t, "", env, "disconnect", "claude-code")
	s.expect(`Write this\? \[y/N\] $`)
	must(os.WriteFile(settings, []byte(now), 0o600))
	s.press("y" + enter)
	if code := s.exits(); code != 65 || !strings.Contains(s.all(), "was changed meanwhile") {
		t.Errorf("exit code %d: %s", code, s.all())
	}
	if b, err := os.ReadFile(settings); err != nil || string(b) != now {
		t.Errorf("what the client wrote is %q: %v", b, err)
	}
	if s := onTerminal(t, "", env, "disconnect", "claude-code", "--yes"); s.exits() != 0 {
		t.Fatal(s.all())
	}
	if b, err := os.ReadFile(settings); err != nil || !strings.Contains(string(b), "permissions") || strings.Contains(string(b), "hook claude-code") {
		t.Errorf("in the end it is %q: %v", b, err)
	}
}
