package gateway_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A supervised process has every system call that changes a file answered by the test
// (seccomp's user notification): one at a time, in one order, over all its threads. So
// any one of them can fail, and what the disk was told, and when, is known exactly.
// strace counts the calls of each thread for itself, and a Go program has many.

// supervisedCalls are those. What opens a file to read it is none.
var supervisedCalls = map[uint32]string{
	unix.SYS_OPENAT: "openat", unix.SYS_PWRITE64: "pwrite", unix.SYS_WRITE: "write", unix.SYS_FTRUNCATE: "ftruncate",
	unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync", unix.SYS_LINKAT: "linkat", unix.SYS_RENAMEAT: "renameat",
	unix.SYS_RENAMEAT2: "renameat", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_MKDIRAT: "mkdirat", unix.SYS_FALLOCATE: unexpected,
}

// unexpected is a call of which this test does not know what it does to a disk.
const unexpected = "unexpected"

// envSupervised names the job of a process, which hands its calls over on file descriptor 3.
const envSupervised = "WRIT_TEST_SUPERVISED"

// superviseMe installs the filter for all threads of this process.
func superviseMe() error {
	nr := func(n uint32) unix.SockFilter { // the next instruction but one is for any other
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: n}
	}
	ret := func(k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
	}
	prog := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for n := range supervisedCalls {
		prog = append(prog, nr(n), ret(unix.SECCOMP_RET_USER_NOTIF))
	}
	prog = append(prog, ret(unix.SECCOMP_RET_ALLOW))
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// Before, for what is sent behind it would wait for who gets it.
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(fd))
	return unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(fd)), nil, 0)
}

// told is one change that a disk was told of, or one sync.
type told struct {
	phase string // what the process was at
	call  string
	path  string // of the file; of a link and a rename, the new one
	old   string // of a link and a rename
	data  []byte // of a write
	at    int64  // where it stands, or the size
	fails error  // it was told so, and nothing was done but what is in half
	cuts  bool   // it opens a file and leaves nothing in it
	half  bool   // of the bytes the first half was written before
	line  string // of a write to standard output; no other member counts
	act   string // what a server was told at this moment; no other member counts
}

// kind says which calls are alike.
func (c *told) kind() string {
	name := filepath.Base(c.path)
	if strings.HasPrefix(name, ".new-") {
		_, end, _ := strings.Cut(strings.TrimPrefix(name, ".new-"), "-")
		name = ".new-" + end
	}
	if filepath.Ext(name) == ".json" {
		name = "heads"
	}
	return c.phase + " " + c.call + " " + name
}

// How a call fails.
const (
	failEIO    = "EIO"
	failENOSPC = "ENOSPC"
	failKILL   = "KILL" // the process is, before the call; of a write, in the middle
)

// fault is one call that fails.
type fault struct {
	kind string
	nth  int // of that kind
	how  string
}

func (f fault) String() string { return fmt.Sprintf("%s of %s, %d", f.how, f.kind, f.nth) }

// supervised is a process and what it told the disk of the files below a directory.
type supervised struct {
	dir   string
	fault *fault

	mu     sync.Mutex
	all    []told
	phase  string
	seen   map[string]int
	struck int // index of what failed, -1 before

	cmd    *exec.Cmd
	stderr bytes.Buffer
	fd     int
	err    error // of the supervisor
}

// notification and response are those of seccomp(2).
type notification struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type response struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// superviseable is why there is nothing that supervises here, nil where there is.
var superviseable = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "writ-supervised-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := supervise(dir, nil, "touch", filepath.Join(dir, "x"))
	if err != nil {
		return err
	}
	if err := s.wait(time.Minute); err != nil {
		return err
	}
	if len(s.all) == 0 || s.all[0].call != "openat" {
		return fmt.Errorf("nothing is seen: %s", &s.stderr)
	}
	return nil
})

// jobs are what a supervised process may do, by name; they return its exit code.
var jobs = map[string]func(arg string) int{
	"touch": func(path string) int {
		if os.WriteFile(path, nil, 0o600) != nil {
			return 1
		}
		return 0
	},
}

func init() {
	roles = append(roles, func() {
		name, arg, ok := strings.Cut(os.Getenv(envSupervised), "|")
		if !ok {
			return
		}
		if err := superviseMe(); err != nil {
			fmt.Fprintln(os.Stderr, "not supervised:", err)
			os.Exit(3)
		}
		os.Exit(jobs[name](arg))
	})
}

// supervise starts a job in a process of this test binary. f may be nil.
func supervise(dir string, f *fault, job, arg string) (*supervised, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "theirs")
	ours := os.NewFile(uintptr(pair[0]), "ours")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, err
	}
	defer conn.Close()
	s := &supervised{dir: dir, fault: f, seen: map[string]int{}, struck: -1}
	s.cmd = exec.Command(exe)
	s.cmd.Env = append(os.Environ(), envSupervised+"="+job+"|"+arg)
	s.cmd.ExtraFiles = []*os.File{theirs}
	s.cmd.Stderr = &s.stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	s.cmd.Stdout = null // what goes there is taken on the way
	err = s.cmd.Start()
	theirs.Close()
	if err != nil {
		return nil, err
	}
	oob := make([]byte, 64)
	_, n, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), oob)
	var fds []int
	if err == nil {
		var msgs []unix.SocketControlMessage
		if msgs, err = unix.ParseSocketControlMessage(oob[:n]); err == nil && len(msgs) == 1 {
			fds, err = unix.ParseUnixRights(&msgs[0])
		}
	}
	if len(fds) != 1 {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		return nil, fmt.Errorf("no supervision here: %v: %s", err, &s.stderr)
	}
	s.fd = fds[0]
	return s, nil
}

// wait answers all calls until the process has ended.
func (s *supervised) wait(patience time.Duration) error {
	defer unix.Close(s.fd)
	late := time.AfterFunc(patience, func() { s.cmd.Process.Kill() })
	for s.next() {
	}
	err := s.cmd.Wait()
	if !late.Stop() {
		return errors.New("it hangs")
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil // how it ended is in its state
	}
	return cmp.Or(s.err, err)
}

// exit is the code it ended with, -1 where it was killed.
func (s *supervised) exit() int { return s.cmd.ProcessState.ExitCode() }

// next answers one call; false is that the process ended.
func (s *supervised) next() bool {
	p := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(p, -1); err != nil && err != unix.EINTR {
		s.err = err
		return false
	}
	if p[0].Revents&unix.POLLIN == 0 {
		return p[0].Revents&(unix.POLLHUP|unix.POLLERR) == 0
	}
	var n notification
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return true // it was killed meanwhile, or a signal came
	}
	r := s.answer(&n)
	r.id = n.id
	unix.Syscall(unix.SYS_IOCTL, uintptr(s.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
	return true
}

var goesOn = response{flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}

// answer does what the call asks, or lets the process do it.
func (s *supervised) answer(n *notification) response {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := told{call: supervisedCalls[uint32(n.nr)], phase: s.phase}
	fd := func(i int) string {
		name, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[i])))
		return name
	}
	at := func(dirfd, name int) string {
		b, _ := s.memory(n.pid, n.args[name], 4096)
		b, _, _ = bytes.Cut(b, []byte{0})
		if path := string(b); filepath.IsAbs(path) {
			return filepath.Clean(path)
		}
		return filepath.Join(fd(dirfd), string(b))
	}
	length := 0
	switch c.call {
	case "write", "pwrite":
		c.path, length = fd(0), int(n.args[2])
		if c.call == "write" && int32(n.args[0]) == 1 {
			b, err := s.memory(n.pid, n.args[1], length)
			s.err = cmp.Or(s.err, err)
			for line := range strings.Lines(string(b)) {
				line = strings.TrimSpace(line)
				if phase, ok := strings.CutPrefix(line, "phase "); ok {
					s.phase = phase
				} else {
					s.all = append(s.all, told{line: line})
				}
			}
			return response{val: int64(length)}
		}
		if c.at = int64(n.args[3]); c.call == "write" {
			c.at = s.offset(n)
		}
	case "ftruncate":
		c.path, c.at = fd(0), int64(n.args[1])
	case "fsync", "fdatasync":
		c.path = fd(0)
	case "open", "unlink": // the name is one further to the front
		n.args = [6]uint64{0, n.args[0], n.args[1], n.args[2]}
		c.call += "at"
		fallthrough
	case "openat", "unlinkat", "mkdirat":
		if flags := n.args[2]; c.call == "openat" && flags&(unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_RDWR) == 0 {
			return goesOn
		} else {
			c.cuts = flags&unix.O_TRUNC != 0
		}
		c.path = at(0, 1)
	case "linkat", "renameat":
		c.old, c.path = at(0, 1), at(2, 3)
	case unexpected:
		if name := fd(0); strings.HasPrefix(name, s.dir+"/") {
			s.err = cmp.Or(s.err, fmt.Errorf("nobody expects call %d of %s", n.nr, name))
		}
		return goesOn
	}
	if !strings.HasPrefix(c.path, s.dir+"/") || strings.HasSuffix(c.path, " (deleted)") || strings.HasSuffix(c.path, "-shm") && c.call != "openat" {
		return goesOn
	}
	if length > 0 {
		var err error
		c.data, err = s.memory(n.pid, n.args[1], length)
		s.err = cmp.Or(s.err, err)
	}
	s.seen[c.kind()]++
	if f := s.fault; f != nil && s.struck < 0 && f.kind == c.kind() && f.nth == s.seen[c.kind()] {
		s.struck = len(s.all)
		return s.fail(n, c, f.how)
	}
	s.all = append(s.all, c)
	switch c.call {
	case "pwrite", "ftruncate":
		// Done here it is done before anything else is, also by another thread.
		w, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[0])), os.O_WRONLY, 0)
		if err == nil && c.call == "pwrite" {
			_, err = w.WriteAt(c.data, c.at)
		} else if err == nil {
			err = w.Truncate(c.at)
		}
		if w != nil {
			w.Close()
		}
		if err != nil {
			s.err = cmp.Or(s.err, err)
		}
		return response{val: int64(length)}
	case "fsync", "fdatasync":
		return response{} // no power is cut that this test does not cut itself
	}
	return goesOn
}

// fail has a call fail.
func (s *supervised) fail(n *notification, c told, how string) response {
	c.fails = map[string]error{failEIO: unix.EIO, failENOSPC: unix.ENOSPC, failKILL: unix.EINTR}[how]
	if c.half = how == failKILL && len(c.data) > 1; c.half {
		if w, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[0])), os.O_WRONLY, 0); err == nil {
			w.WriteAt(c.data[:len(c.data)/2], c.at)
			w.Close()
		}
	}
	s.all = append(s.all, c)
	if how == failKILL {
		s.cmd.Process.Kill()
	}
	return response{errno: -int32(c.fails.(unix.Errno))}
}

func (s *supervised) memory(pid uint32, at uint64, n int) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, n)
	got, err := f.ReadAt(b, int64(at))
	if got > 0 && n == 4096 { // a name may stand at the end of what is mapped
		err = nil
	}
	return b[:got], err
}

// offset is where a file stands that is written at its offset.
func (s *supervised) offset(n *notification) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", n.pid, int32(n.args[0])))
	for line := range strings.Lines(string(b)) {
		if pos, ok := strings.CutPrefix(line, "pos:"); ok {
			at, _ := strconv.ParseInt(strings.TrimSpace(pos), 10, 64)
			return at
		}
	}
	return 0
}

// acts notes what a server is told, in the order of all else.
func (s *supervised) acts(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, told{act: what})
}

// A platter is what a disk was told, and what of it a power cut must leave.
type platter struct {
	names map[string]*inode // as a process sees them
	safe  map[string]*inode // as the last sync of their directory left them
}

type inode struct{ changes []kept }

// kept is one change of a file, and whether it is on the disk: a sync that failed says of
// what came before it that nobody knows, and no later one makes that good.
type kept struct {
	told
	durable, lost bool
}

// platterOf is the disk as it is below a directory.
func platterOf(t testing.TB, dir string) *platter {
	t.Helper()
	p := &platter{map[string]*inode{}, map[string]*inode{}}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		i := &inode{changes: []kept{{told: told{call: "write", data: b}, durable: true}}}
		p.names[path], p.safe[path] = i, i
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told replays what the disk was told.
func (p *platter) told(all []told) *platter {
	for _, c := range all {
		switch i := p.names[c.path]; {
		case c.line != "" || c.act != "":
		case c.fails != nil && (c.call == "fsync" || c.call == "fdatasync") && i != nil:
			for k := range i.changes {
				i.changes[k].lost = !i.changes[k].durable
			}
		case c.fails != nil && c.half:
			c.data = c.data[:len(c.data)/2]
			i.changes = append(i.changes, kept{told: c})
		case c.fails != nil:
		case c.call == "openat" && i == nil:
			p.names[c.path] = &inode{}
		case c.call == "openat" && c.cuts:
			c.call = "ftruncate"
			i.changes = append(i.changes, kept{told: c})
		case c.call == "linkat", c.call == "renameat":
			if p.names[c.path] = p.names[c.old]; c.call == "renameat" {
				delete(p.names, c.old)
			}
		case c.call == "unlinkat":
			delete(p.names, c.path)
		case i != nil && (c.call == "write" || c.call == "pwrite" || c.call == "ftruncate"):
			i.changes = append(i.changes, kept{told: c})
		case c.call == "fsync" || c.call == "fdatasync":
			if i == nil { // a directory
				p.entries(c.path)
				break
			}
			for k := range i.changes {
				i.changes[k].durable = !i.changes[k].lost
			}
		}
	}
	return p
}

// entries makes the names in a directory durable.
func (p *platter) entries(dir string) {
	for name := range p.safe {
		if filepath.Dir(name) == dir {
			delete(p.safe, name)
		}
	}
	for name, i := range p.names {
		if filepath.Dir(name) == dir {
			p.safe[name] = i
		}
	}
}

// cut writes below a directory what a power cut may leave of the one that was written:
// with r nil only what it must leave, else any of the rest too.
func (p *platter) cut(t testing.TB, from, to string, r *rand.Rand) {
	t.Helper()
	names := p.safe
	if r != nil && r.IntN(2) == 0 {
		names = p.names
	}
	likely := 0
	if r != nil {
		likely = r.IntN(5)
	}
	for name, i := range names {
		if strings.HasSuffix(name, "-shm") {
			continue // what is in it says nothing after a restart
		}
		var b []byte
		for _, c := range i.changes {
			if c.durable || r != nil && r.IntN(4) < likely {
				b = c.on(b)
			}
		}
		path := filepath.Join(to, strings.TrimPrefix(name, from))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// on is what a change makes of a file.
func (c *kept) on(b []byte) []byte {
	end := c.at + int64(len(c.data))
	if c.call == "ftruncate" && end <= int64(len(b)) {
		return b[:end]
	}
	if end > int64(len(b)) {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	copy(b[c.at:], c.data)
	return b
}
