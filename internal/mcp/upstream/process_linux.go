package upstream

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

var systemEnv []string

// setAttributes gives the child a group of its own, and a SIGKILL when this
// process dies in whatever way. The signal reaches the child itself; what it started is
// the guard's.
func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitAndKillGroup waits for the child, kills what is left of its group while
// the group's number is still the child's, and then reaps it.
func waitAndKillGroup(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	cmd.Wait()
}

func signalGroup(cmd *exec.Cmd, kill bool) {
	sig := unix.SIGTERM
	if kill {
		sig = unix.SIGKILL
	}
	unix.Kill(-cmd.Process.Pid, sig)
}

const hasGroups = true

// ownGroup keeps a terminal's signals away from the guard.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pid int) { unix.Kill(-pid, unix.SIGKILL) }
