//go:build !windows

package sqlite

const noLocks = "unix-none" // SQLite's name for access without locks
