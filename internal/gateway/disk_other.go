//go:build !linux && !darwin

package gateway

import (
	"os"
	"time"
)

// changedAt is when what is in a directory last changed. It is not known here, so
// each is read anew.
func changedAt(os.FileInfo) (at time.Time, ok bool) { return at, false }

// onDevice reports whether a file lies on a device. It is not known here.
func onDevice(os.FileInfo) bool { return false }

// DiskRoom is what may still be written where a path lies. It is not known here.
func DiskRoom(string) (free, size uint64, ok bool) { return 0, 0, false }
