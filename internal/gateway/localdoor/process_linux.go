package localdoor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"

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
// has a terminal whose leader is among them and was itself started by somebody: one
// that hangs on the first process, or on a user's service manager, cut itself loose
// from whom it descends from (proc(5)).
func ancestry(pid int) (line []int, err error) {
	leader := 0
	for n := pid; n > 0 && len(line) < 1000; {
		p, err := statOf(n)
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if leader = p.session; p.terminal == 0 {
				return nil, ErrKin
			}
		}
		if n == leader && p.parent > 0 {
			if above, err := statOf(p.parent); err != nil || p.parent == 1 || above.name == "systemd" {
				return nil, ErrKin
			}
		}
		line = append(line, n)
		n = p.parent
	}
	if !slices.Contains(line, leader) {
		return nil, ErrKin
	}
	return line, nil
}

// loose reports whether a line of processes may have begun below another one: its
// uppermost one of this account was left to the first process, or to a user's service
// manager, was started no earlier, and is of the same login and group of processes. Neither
// a login nor, without the account's leave, a group can be left.
func loose(line []int, other int) bool {
	from, err := statOf(other)
	if err != nil {
		return true
	}
	for i, n := range line[:len(line)-1] {
		above, err := statOf(line[i+1])
		if err != nil {
			return true
		}
		if line[i+1] != 1 && above.name != "systemd" {
			continue
		}
		p, err := statOf(n)
		at, perr := strconv.ParseUint(p.started, 10, 64)
		since, serr := strconv.ParseUint(from.started, 10, 64)
		if err != nil || perr != nil || serr != nil {
			return true
		}
		return at >= since && !loggedIn(n) && !apart(n, other)
	}
	return false
}

// loggedIn reports whether a process was started by root, and this one was not.
func loggedIn(pid int) bool {
	// Who owns the directory in /proc says less: a process can make that root.
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && os.Geteuid() != 0 && bytes.Contains(b, []byte("\nUid:\t0\t"))
}

// apart reports whether two processes are of different logins, or different groups. A
// login that was never told to the kernel can be told to it by anybody, once.
func apart(a, b int) bool {
	for _, name := range []string{"sessionid", "cgroup"} {
		x, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", a, name))
		y, yerr := os.ReadFile(fmt.Sprintf("/proc/%d/%s", b, name))
		if err == nil && yerr == nil && !bytes.Equal(x, y) && string(y) != "4294967295" {
			return true
		}
	}
	return false
}

type stat struct {
	name                      string
	parent, session, terminal int
	started                   string // in ticks since the machine's start
}

func statOf(pid int) (s stat, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, err
	}
	// The name in brackets is whatever the process called itself.
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from {
		return s, ErrKin
	}
	s.name = string(b[from+1 : to])
	var state string
	var group int
	_, err = fmt.Sscan(string(b[to+1:]), &state, &s.parent, &group, &s.session, &s.terminal)
	if fields := bytes.Fields(b[to+1:]); err == nil && len(fields) > 19 {
		s.started = string(fields[19])
	}
	return s, err
}

func startOf(pid int) (start, among string) {
	s, err := statOf(pid)
	boot, berr := os.ReadFile("/proc/sys/kernel/random/boot_id")
	// Ids of one namespace mean nothing in another, which may share the directory.
	names, nerr := os.Readlink("/proc/self/ns/pid")
	if berr != nil || nerr != nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", ""
	}
	return s.started, string(boot) + names
}

func parentOf(pid int) int {
	s, err := statOf(pid)
	if err != nil {
		return 0
	}
	return s.parent
}

// sameProgram reports whether a process runs the file that this one does.
func sameProgram(pid int) bool {
	a, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	b, err := os.Stat("/proc/self/exe")
	return err == nil && os.SameFile(a, b)
}
