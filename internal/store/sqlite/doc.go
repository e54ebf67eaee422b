// Package sqlite keeps a log in the state directory: a journal, audit.journal, to
// which every append goes, and one SQLite file, audit.db, into which what the journal
// holds is folded when it has grown, when the store is opened and closed, and
// before anything is erased. It is the default store.
//
// Several processes may have the same files open. Whoever appends holds the lock on
// the journal and reads what others appended first, hashes and counts it, so the
// processes take turns and continue one chain. A frame that is synced has the signed
// head that it leaves; one that is not has a code by a key that only the signer can
// make, and a signed head follows within 2 ms. Append returns once the journal is
// synced, one sync for all that wait; AppendUnsynced once it is written, and the next
// sync makes it durable. A commit to the database is synced (WAL, synchronous=FULL) before the
// journal begins anew. What is read is the database and then the journal.
//
// The package trusts the operating system to sync and to lock, and nothing in
// the files: what Read and Value hand out is proven against a head that the log's
// key signed; the register of sessions and a Snapshot are not, for those who read
// them judge them. The log's key stays outside: the signer is passed in, and what is
// held here is the key of the codes, which is made by it. A file system that several
// machines mount is not supported, because SQLite's locks do not work there.
package sqlite
