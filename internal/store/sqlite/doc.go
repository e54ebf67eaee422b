// Package sqlite keeps a log in one SQLite file, audit.db, in the state
// directory. It is the default store.
//
// Several processes may have the same file open. Every write is one BEGIN
// IMMEDIATE transaction that reads the head of the log first, so the processes
// take turns and continue one chain; what others appended is hashed and counted
// before anything is put behind it. Every commit signs the head it leaves. A commit is synced
// to disk (WAL, synchronous=FULL) before Append returns. A commit of nothing but
// AppendUnsynced is written to the write-ahead log and not synced (NORMAL); the
// next synced commit syncs that log with all that stands in it.
//
// The package trusts the operating system to sync and to lock, and nothing in
// the file: what Read and Value hand out is proven against a head that the log's
// key signed; the register of sessions and a Snapshot are not, for those who read
// them judge them. It holds no key: the signer is passed in. A file system that several machines mount is not
// supported, because SQLite's locks do not work there.
package sqlite
