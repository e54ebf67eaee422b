//go:build unix

package gateway

import (
	"os"
	"syscall"
)

// links is how many names a file has.
func links(fi os.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 2
}
