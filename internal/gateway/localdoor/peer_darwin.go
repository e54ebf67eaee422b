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
	var who *unix.Xucred
	cerr := raw.Control(func(fd uintptr) { who, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED) })
	if cerr != nil || err != nil || int(who.Uid) != os.Geteuid() {
		return ErrStranger
	}
	return nil
}
