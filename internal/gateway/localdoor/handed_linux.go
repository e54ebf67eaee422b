package localdoor

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Handed is one end of a pair of sockets that came over the door, open.
type Handed struct {
	Maker int // the process that made the pair
	file  *os.File
}

// HandedBy returns what the process at the other end of a request handed over, once; nil
// is nothing, or no end of a pair that a process of this account made. What is read from
// it was written at the other end, which nobody has but its maker and whom he gave it to:
// it does not count who brought it.
func HandedBy(ctx context.Context) *Handed {
	p, ok := ctx.Value(peerKey{}).(peer)
	if !ok {
		return nil
	}
	p.conn.mu.Lock()
	file := p.conn.handed
	p.conn.handed = nil
	p.conn.mu.Unlock()
	if file == nil {
		return nil
	}
	if maker, ok := makerOf(int(file.Fd())); ok {
		return &Handed{maker, file}
	}
	file.Close()
	return nil
}

// Conn is what is read from. Nothing is read, and no mode of it changed, before. The
// caller closes it.
func (h *Handed) Conn() (net.Conn, error) { return net.FileConn(h.file) }

// Close gives the end back as it is.
func (h *Handed) Close() error { return h.file.Close() }

// Stdin is the process that made the pair of sockets whose one end is this one's standard
// input, as the kernel knows it. ok is false where it is no such end.
func Stdin() (pid int, ok bool) { return makerOf(0) }

// Peek is what stands on standard input and was not read yet, as far as it has come.
func Peek() []byte {
	b := make([]byte, 1<<18)
	n, _, err := unix.Recvfrom(0, b, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if err != nil {
		return nil
	}
	return b[:n]
}

// makerOf is the process of this account that made a pair of sockets. Neither end of one
// has a name; a socket that was connected to another's has, at one end, and its
// credentials are of whoever listened or connected there.
func makerOf(fd int) (pid int, ok bool) {
	if !unnamed(fd, unix.SYS_GETSOCKNAME) || !unnamed(fd, unix.SYS_GETPEERNAME) {
		return 0, false
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM {
		return 0, false
	}
	who, err := otherEnd(fd)
	if err != nil || who.Pid <= 0 || int(who.Uid) != os.Geteuid() {
		return 0, false
	}
	return int(who.Pid), true
}

// unnamed reports whether an end of a Unix socket has no name. What package unix makes of
// the name is the same for none and for an abstract one that begins with two zeros.
func unnamed(fd int, which uintptr) bool {
	var at unix.RawSockaddrAny
	size := uint32(unix.SizeofSockaddrAny)
	_, _, err := unix.Syscall(which, uintptr(fd), uintptr(unsafe.Pointer(&at)), uintptr(unsafe.Pointer(&size)))
	return err == 0 && at.Addr.Family == unix.AF_UNIX && uintptr(size) == unsafe.Sizeof(at.Addr.Family)
}

// peerConn is a connection of the door: what is handed over comes with its first bytes.
type peerConn struct {
	*net.UnixConn
	begun  bool // by the one who reads
	mu     sync.Mutex
	closed bool
	handed *os.File
}

func accepted(c *net.UnixConn) net.Conn { return &peerConn{UnixConn: c} }

func (c *peerConn) Read(b []byte) (int, error) {
	if c.begun {
		return c.UnixConn.Read(b)
	}
	c.begun = true
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := c.ReadMsgUnix(b, oob)
	for _, f := range files(oob[:oobn]) {
		c.mu.Lock()
		if kept := c.handed == nil && !c.closed; kept {
			c.handed = f
		} else {
			f.Close()
		}
		c.mu.Unlock()
	}
	return n, err
}

func (c *peerConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handed != nil {
		c.handed.Close()
		c.handed = nil
	}
	c.closed = true
	return c.UnixConn.Close()
}

func files(oob []byte) (all []*os.File) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			all = append(all, os.NewFile(uintptr(fd), "handed"))
		}
	}
	return all
}

// handing is a connection whose first bytes bring standard input along.
type handing struct {
	*net.UnixConn
	begun bool
}

func (c *handing) Write(b []byte) (int, error) {
	if c.begun {
		return c.UnixConn.Write(b)
	}
	c.begun = true
	n, _, err := c.WriteMsgUnix(b, unix.UnixRights(0), nil)
	if err == nil && n < len(b) {
		var more int
		more, err = c.UnixConn.Write(b[n:])
		n += more
	}
	return n, err
}

func handsStdin(c net.Conn) (net.Conn, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("the door is no socket that a file can be handed over")
	}
	return &handing{UnixConn: u}, nil
}

func peerIn(c *tls.Conn) (p peer, ok bool) {
	if p.conn, ok = c.NetConn().(*peerConn); ok {
		p.process, ok = connectedBy(p.conn.UnixConn)
	}
	return p, ok
}

type peer struct {
	process
	conn *peerConn
}
