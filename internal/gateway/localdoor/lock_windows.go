package localdoor

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// at is far behind the entry's text: what is locked here cannot be read.
var at = windows.Overlapped{OffsetHigh: 1}

// lock takes the entry for as long as the file is open.
func lock(f *os.File) error {
	o := at
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &o)
}

// locked reports whether another holds the entry.
func locked(f *os.File) bool {
	o := at
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &o) != nil
}

// drop lets go of an entry and removes it: no file can be removed here while
// anybody has it open, and a gateway has its own from the start.
func drop(f *os.File, path string) error { return errors.Join(f.Close(), os.Remove(path)) }
