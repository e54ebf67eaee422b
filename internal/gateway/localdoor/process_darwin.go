package localdoor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ownerOf is the account whose process is at the other end of a socket.
func ownerOf(fd int) (uid int, err error) {
	who, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(who.Uid), nil
}

// processOf is that process.
func processOf(fd int) (pid int, err error) {
	return unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
}

// ancestry returns a process and those it descends from, and an error unless it
// has a terminal.
func ancestry(pid int) (line []int, err error) {
	for n := pid; n > 0 && len(line) < 1000; {
		p, err := unix.SysctlKinfoProc("kern.proc.pid", n)
		if err != nil {
			return nil, err
		}
		if len(line) == 0 && p.Eproc.Tdev == -1 {
			return nil, ErrKin
		}
		line = append(line, n)
		n = int(p.Eproc.Ppid)
	}
	return line, nil
}

// startedAt is when a process was started, "" where there is none.
func startedAt(pid int) string {
	start, _ := startOf(pid)
	return start
}

func startOf(pid int) (start, among string) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return "", "darwin"
	}
	return fmt.Sprintf("%d%06d", p.Proc.P_starttime.Sec, p.Proc.P_starttime.Usec), "darwin"
}

func parentOf(pid int) int {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return 0
	}
	return int(p.Eproc.Ppid)
}
