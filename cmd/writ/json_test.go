package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// speaking are the commands whose standard output is no report, and what it is.
var speaking = map[string]string{
	"writ run": "MCP", "writ serve": "a log", "writ memory serve": "a log", "writ example-server": "MCP", "writ hook": "a client's protocol",
	"writ watch": "a terminal's", "writ console": "a terminal's", "writ eval": "writ-eval's own", "writ man": "pages",
}

// TestEveryCommandSpeaksJSON: what a command reports is for people and for programs.
func TestEveryCommandSpeaksJSON(t *testing.T) {
	root := &cobra.Command{Use: "writ"}
	root.AddCommand(commands()...)
	met := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.HasSubCommands() {
			return
		}
		_, speaks := speaking[c.CommandPath()]
		if has := c.Flags().Lookup("json") != nil; has == speaks {
			t.Errorf("%s: --json %v", c.CommandPath(), has)
		}
		if speaks {
			met++
		}
	}
	walk(root)
	if met != len(speaking) {
		t.Errorf("%d commands that have another output, %d are listed", met, len(speaking))
	}
}

// TestCallJSON: what a server wrote reaches a terminal as JSON that shows
// everything and obeys nothing, and is the same JSON.
func TestCallJSON(t *testing.T) {
	var b strings.Builder
	result := "{\"content\":[{\"type\":\"text\",\"text\":\"a\u202eb\u200b\U000e0041 <ä>\"}]}"
	if err := printResult(&b, []byte(result), nil, true, nil); err != nil {
		t.Fatal(err)
	}
	if want := `{"content":[{"type":"text","text":"a\u202eb\u200b\udb40\udc41 <ä>"}]}` + "\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
