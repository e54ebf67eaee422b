package localdoor

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

func peerOf(c *net.UnixConn) (pid int, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	var who *unix.Ucred
	cerr := raw.Control(func(fd uintptr) { who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if cerr != nil || err != nil {
		return 0, false
	}
	return int(who.Pid), true
}

// ancestry returns a process and those it descends from, and an error unless it
// has a terminal whose leader is among them (proc(5)).
func ancestry(pid int) (line []int, err error) {
	leader := 0
	for n := pid; n > 0 && len(line) < 1000; {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
		if err != nil {
			return nil, err
		}
		// The name in brackets is whatever the process called itself.
		var state string
		var parent, group, session, terminal int
		if _, err := fmt.Sscan(string(b[bytes.LastIndexByte(b, ')')+1:]), &state, &parent, &group, &session, &terminal); err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if leader = session; terminal == 0 {
				return nil, ErrKin
			}
		}
		line = append(line, n)
		n = parent
	}
	if !slices.Contains(line, leader) {
		return nil, ErrKin
	}
	return line, nil
}
