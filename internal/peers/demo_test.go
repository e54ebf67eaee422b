package peers

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write examples/filesystem/demo.txt anew")

// TestFilesystemDemo: examples/filesystem/demo.mjs, which the README tells
// people to run, prints what examples/filesystem/demo.txt says it does.
func TestFilesystemDemo(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("..", "..", "examples", "filesystem"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(binary)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testContext(t), node(t), filepath.Join(dir, "demo.mjs"))
	cmd.Env = append(os.Environ(), "WRIT_BINARY="+program)
	got, code := run(t, cmd, nil)
	golden := filepath.Join(dir, "demo.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if code != 0 || got != string(want) {
		t.Errorf("exit code %d; it prints\n%s\nand not\n%s", code, got, want)
	}
}
