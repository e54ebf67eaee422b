package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// beyond is far behind the journal's frames: what is locked here cannot be read.
var beyond = windows.Overlapped{OffsetHigh: 1 << 20}

// tryLock takes the file for this process alone, unless another has it.
func tryLock(f *os.File) (bool, error) {
	o := beyond
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &o)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

func unlockFile(f *os.File) {
	o := beyond
	windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &o)
}
