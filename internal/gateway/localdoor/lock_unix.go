//go:build unix

package localdoor

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the entry for as long as the file is open.
func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }

// locked reports whether another holds the entry.
func locked(f *os.File) bool { return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil }

// drop removes an entry, then lets go of it.
func drop(f *os.File, path string) error { return errors.Join(os.Remove(path), f.Close()) }
