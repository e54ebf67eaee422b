package localdoor

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer asks the kernel whose process is at the other end.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var who *unix.Ucred
	cerr := raw.Control(func(fd uintptr) { who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if cerr != nil || err != nil || int(who.Uid) != os.Geteuid() {
		return ErrStranger
	}
	return nil
}
