package sqlite

const noLocks = "win32-none" // SQLite's name for access without locks
