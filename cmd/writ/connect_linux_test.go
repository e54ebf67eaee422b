package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConnectShowsWhole: who is asked whether the commands of somebody's file are to be
// started sees them whole, though a part of one looks like a credential.
func TestConnectShowsWhole(t *testing.T) {
	dir := ownState(t)
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"bait":{"command":"sh","args":["-c","AUTH=1; touch `+dir+`/baited"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := onTerminal(t, "n\n", nil, "connect", file)
	s.expect(`bait: sh -c 'AUTH=1; touch (?s:.*)/baited'`)
	s.expect(`Start these servers of the file`)
	if code := s.exits(); code != 77 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(filepath.Join(dir, "baited")); err == nil {
		t.Error("it was started")
	}
}
