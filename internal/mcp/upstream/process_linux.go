package upstream

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// setAttributes gives the child a group of its own, and a SIGKILL when this
// process dies in whatever way. The signal reaches the child itself; what it started is
// the guard's.
func setAttributes(cmd *exec.Cmd) {
	ownGroup(cmd)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
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
	killGroup(cmd.Process.Pid)
	cmd.Wait()
}
