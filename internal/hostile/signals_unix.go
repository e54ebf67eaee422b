//go:build unix

package hostile

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) }

// startGrandchild starts a process that outlives its parent and holds its
// output open; its number goes to standard error.
func startGrandchild() {
	cmd := exec.Command("sleep", "600")
	cmd.Stdout = os.Stdout
	if cmd.Start() == nil {
		fmt.Fprintf(os.Stderr, "grandchild %d\n", cmd.Process.Pid)
	}
}
