package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-project/writ/contracts"
)

// TestCheckShipped: writ check warns of no contract that ships, as long as it stands as it
// ships.
func TestCheckShipped(t *testing.T) {
	warned := 0
	for _, c := range contracts.All() {
		for changed, text := range map[bool]string{false: c.At(contracts.Self), true: strings.ReplaceAll(c.At(contracts.Self), "\n    effect: ", "\n    # mine\n    effect: ")} {
			file := filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out checked
			if err := json.Unmarshal([]byte(command(t, "check", "--json", "--policy", file)), &out); err != nil || !out.OK {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if len(out.Warnings) > 0 && !changed {
				t.Errorf("%s: %v", c.Name, out.Warnings)
			}
			warned += len(out.Warnings)
		}
	}
	if warned == 0 {
		t.Error("nor of one that was changed")
	}
}

// TestInitName: what writ init writes of a server that is called as YAML writes a number is
// a configuration.
func TestInitName(t *testing.T) {
	t.Chdir(t.TempDir())
	command(t, "init", "--name", "1e3", "--", "writ", "example-server")
	if out := command(t, "check", "--config", "writ.yaml"); !strings.HasSuffix(out, "1 server") {
		t.Error(out)
	}
}
