//go:build unix

package upstream

import (
	"os/exec"
	"syscall"
)

var systemEnv []string

const hasGroups = true

// ownGroup gives a process a group of its own, and keeps a terminal's signals away from it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(cmd *exec.Cmd, kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	syscall.Kill(-cmd.Process.Pid, sig)
}

func killGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }

// writeNow writes to the child what its pipe has room for, and returns how many bytes
// that were; 0 also where it has none or the child is gone.
func (p *process) writeNow(b []byte) (n int) {
	raw, err := p.stdin.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Write(func(fd uintptr) bool {
		n, err = syscall.Write(int(fd), b)
		return true // whatever came of it: nobody waits here
	})
	return max(n, 0)
}
