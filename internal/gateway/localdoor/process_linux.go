package localdoor

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// ownerOf is the account whose process is at the other end of a socket.
func ownerOf(fd int) (uid int, err error) {
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(who.Uid), nil
}

// processOf is that process.
func processOf(fd int) (pid int, err error) {
	who, err := otherEnd(fd)
	if err != nil {
		return 0, err
	}
	return int(who.Pid), nil
}

// otherEnd is who connected a socket, or made the pair that it is of. It is an error where that
// process is gone, for its id may be another's by now, as far as the kernel can tell (Linux 6.5).
func otherEnd(fd int) (*unix.Ucred, error) {
	process, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
		return nil, err
	}
	who, werr := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err == nil {
		defer unix.Close(process)
		if err := unix.PidfdSendSignal(process, 0, nil, 0); errors.Is(err, unix.ESRCH) {
			return nil, err
		}
	}
	return who, werr
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

// loose reports whether a line of processes may have begun below another one: of one that
// is gone nothing is known.
func loose(line []int, other int) bool {
	from, err := originOf(other)
	return err != nil || strayed(line, from)
}

// strayed reports whether a line of processes may have begun below another one: its
// uppermost one of this account was left to the first process, or to a user's service
// manager, was started no earlier, and is of the same login and group of processes. Neither
// a login nor, without the account's leave, a group can be left.
func strayed(line []int, from origin) bool {
	for i, n := range line[:len(line)-1] {
		above, err := statOf(line[i+1])
		if err != nil {
			return true
		}
		if line[i+1] != 1 && above.name != "systemd" {
			continue
		}
		p, err := originOf(n)
		at, perr := strconv.ParseUint(p.started, 10, 64)
		since, serr := strconv.ParseUint(from.started, 10, 64)
		if err != nil || perr != nil || serr != nil {
			return true
		}
		return at >= since && !loggedIn(n) && !apart(p, from)
	}
	return false
}

func originOf(pid int) (origin, error) {
	s, err := statOf(pid)
	o := origin{process: process{pid, s.started}}
	if err == nil { // what cannot be read stays nil
		o.login, _ = os.ReadFile(fmt.Sprintf("/proc/%d/sessionid", pid))
		o.group, _ = os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	}
	return o, err
}

// loggedIn reports whether a process was started by root, and this one was not.
func loggedIn(pid int) bool {
	// Who owns the directory in /proc says less: a process can make that root.
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && os.Geteuid() != 0 && bytes.Contains(b, []byte("\nUid:\t0\t"))
}

// apart reports whether two processes are of different logins, or different groups. A
// login that was never told to the kernel can be told to it by anybody, once.
func apart(a, b origin) bool {
	differ := func(x, y []byte) bool {
		return x != nil && y != nil && !bytes.Equal(x, y) && string(y) != "4294967295"
	}
	return differ(a.login, b.login) || differ(a.group, b.group)
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

// startedAt is when a process was started, "" where there is none.
func startedAt(pid int) string {
	s, _ := statOf(pid)
	return s.started
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

// holders are the processes that hold the other ends of connections of this machine's, of
// those whose files this account may list. closed are those whose other end nobody holds any
// more, of this account or another's.
func holders(at []ends) (pids []int, closed []ends) {
	left := map[ends]bool{}
	for _, o := range at {
		left[o] = true
	}
	const passes = 2 // what changes while it is read may be left out
	for range passes {
		sockets, ok := socketsOf(left)
		if !ok {
			return pids, nil
		}
		if len(sockets) == 0 {
			continue
		}
		for _, pid := range numbersIn("/proc") {
			files := fmt.Sprintf("/proc/%d/fd/", pid)
			holds := false
			for _, fd := range numbersIn(files) {
				if to, err := os.Readlink(files + strconv.Itoa(fd)); err == nil {
					if o, ok := sockets[to]; ok {
						delete(left, o)
						holds = true
					}
				}
			}
			if holds && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	// Whose holder was not found is of another account, or was closed meanwhile.
	for range passes {
		sockets, ok := socketsOf(left)
		if !ok {
			return pids, nil
		}
		for _, o := range sockets {
			delete(left, o)
		}
	}
	return pids, slices.Collect(maps.Keys(left))
}

// socketsOf are the sockets at the other ends of connections, as links in /proc name them.
// One that no process holds any more is none. ok is false where that is not shown.
func socketsOf(at map[ends]bool) (sockets map[string]ends, ok bool) {
	sockets = map[string]ends{}
	if len(at) == 0 {
		return sockets, true
	}
	for _, name := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile("/proc/net/" + name)
		if errors.Is(err, fs.ErrNotExist) { // a kernel without it
			continue
		}
		if err != nil {
			return nil, false
		}
		ok = true
		for l := range bytes.Lines(b) {
			f := bytes.Fields(l)
			if len(f) < 10 || string(f[9]) == "0" {
				continue
			}
			near, one := addressOf(f[1])
			far, two := addressOf(f[2])
			if o := (ends{near: far, far: near}); one && two && at[o] {
				sockets["socket:["+string(f[9])+"]"] = o
			}
		}
	}
	return sockets, ok
}

func numbersIn(dir string) (all []int) {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// addressOf reads ADDRESS:PORT of /proc/net, both in hex: the address as words of four bytes
// in this machine's order.
func addressOf(text []byte) (at netip.AddrPort, ok bool) {
	address, port, _ := bytes.Cut(text, []byte(":"))
	b, err := hex.DecodeString(string(address))
	n, perr := strconv.ParseUint(string(port), 16, 16)
	if err != nil || perr != nil || len(b)%4 != 0 {
		return at, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	ip, ok := netip.AddrFromSlice(b)
	return bare(netip.AddrPortFrom(ip, uint16(n))), ok
}
