//go:build unix && !linux

package upstream

import (
	"os/exec"
	"syscall"
)

var systemEnv []string

// setAttributes gives the child a group of its own. There is no parent-death
// signal here: after a kill -9 of this process the guard ends it.
func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func waitAndKillGroup(cmd *exec.Cmd) {
	cmd.Wait()
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}

func signalGroup(cmd *exec.Cmd, kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	syscall.Kill(-cmd.Process.Pid, sig)
}

const hasGroups = true

// ownGroup keeps a terminal's signals away from the guard.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }
