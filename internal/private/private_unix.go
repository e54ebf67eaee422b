//go:build unix

package private

import (
	"io/fs"
	"syscall"
)

// openFlags follow no link and wait for nothing, not for a FIFO.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// ReadOnly reports that nobody can write what is at path: it lies on a medium
// or a mount that takes no writes.
func ReadOnly(path string) bool { return syscall.Access(path, 2) == syscall.EROFS }

func owner(fi fs.FileInfo) (uid int, known bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, true // nobody's
	}
	return int(st.Uid), true
}

// group is that of a file, -1 where it is not known: then nothing is given to it.
func group(fi fs.FileInfo) int {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(st.Gid)
}
