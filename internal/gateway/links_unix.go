//go:build unix

package gateway

import (
	"os"
	"syscall"
)

func links(fi os.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 2
}
