package peers

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write what the examples print anew")

// TestDemos: the scripts that the README tells people to run print what stands beside
// them.
func TestDemos(t *testing.T) {
	for _, script := range []string{"filesystem/demo", "first-minutes/first-minutes"} {
		t.Run(script, func(t *testing.T) {
			file, err := filepath.Abs(filepath.Join("..", "..", "examples", script))
			if err != nil {
				t.Fatal(err)
			}
			program, err := filepath.Abs(binary)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := exec.LookPath("script"); err != nil && script != "filesystem/demo" {
				t.Skip("needs script, which gives a person a terminal")
			}
			cmd := exec.CommandContext(testContext(t), node(t), file+".mjs")
			cmd.Env = append(os.Environ(), "WRIT_BINARY="+program)
			got, code := run(t, cmd, nil)
			if *update {
				if err := os.WriteFile(file+".txt", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			if code != 0 || got != string(want) {
				t.Errorf("exit code %d; it prints\n%s\nand not\n%s", code, got, want)
			}
		})
	}
}
