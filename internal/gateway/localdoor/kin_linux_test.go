package localdoor

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
)

// TestKinWithATerminalOfItsOwn: who cut itself loose from whom started it is no
// person for having opened a terminal afterwards. This process is the client; what
// it starts leaves its session, loses its parent, and opens a terminal.
func TestKinWithATerminalOfItsOwn(t *testing.T) {
	for _, program := range []string{"setsid", "script"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// It tells its number, and stays until the pipe is closed.
	cmd := exec.Command("setsid", "-f", "script", "-qc", "echo $$ >&3; read line <&4", os.DevNull)
	stay, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	cmd.ExtraFiles = []*os.File{w, stay}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	stay.Close()
	var told bytes.Buffer
	if _, err := io.CopyN(&told, r, 1); err != nil {
		t.Skip("script does not hand on what it was given: ", err)
	}
	for b := []byte{0}; b[0] != '\n'; told.Write(b) {
		if _, err := r.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(told.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	if line, err := ancestry(pid); err == nil && !slices.Contains(line, os.Getpid()) {
		t.Errorf("%v descends from %d and may answer for a person", line, os.Getpid())
	}
}
