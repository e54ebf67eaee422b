//go:build unix

package upstream

import "syscall"

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
