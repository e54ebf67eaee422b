package gateway

import (
	"os"
	"syscall"
	"time"
)

// changedAt is when a file or what is in a directory last changed. The kernel notes
// it, and takes it from nobody. ok is false where it is not known.
func changedAt(fi os.FileInfo) (at time.Time, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return at, false
	}
	return time.Unix(st.Ctimespec.Unix()), true
}

// onDevice reports whether a file lies on a device. It is not known here.
func onDevice(os.FileInfo) bool { return false }

// DiskRoom is what this account may still write to the file system of a path, and how large
// that is, in bytes; ok is false where it is not known.
func DiskRoom(path string) (free, size uint64, ok bool) {
	var fs syscall.Statfs_t
	if syscall.Statfs(path, &fs) != nil {
		return 0, 0, false
	}
	return fs.Bavail * uint64(fs.Bsize), fs.Blocks * uint64(fs.Bsize), true
}
