// Package audit is Writ's record of what was decided: its form, its Merkle
// log, its signed checkpoints, the contract of the stores that keep it, and
// the verifier that trusts none of them.
//
// # Record
//
// One record is one leaf of the log: a single line of canonical JSON (RFC
// 8785, but integers beyond 2^53 keep their digits), with exactly these
// members:
//
//	{"commit":{"arguments":"<hex>"},"data":{…},"kind":"decision","n":7,
//	 "session":"s_…","time":"2026-11-21T15:00:00.000000001Z","v":1}
//
// n counts the records of one session from 1 without a gap. The first record
// of a session, and no other, has kind "open". data belongs to whoever writes
// the record and holds no value of a call; this package reads three of its
// members. A decision has data.status ("accepted", "rejected" or
// "transformed") and may have data.shadow true, which let a rejected call
// pass. A result has data.decision, the n of the decision that allowed it, and
// data.status, "unknown" while nobody knows whether the call took place. A
// kind this package does not know is kept and verified like any other.
//
// # Values
//
// commit holds, by name, SHA-256(salt ‖ bytes) of the values the record is
// about. The salt has [SaltSize] random bytes, and stands with the bytes beside
// the log. Erasing both leaves a log that verifies and a digest nobody can
// guess. That they were erased, and not lost, a record says. Large shared texts (a policy, a catalogue) are blobs, named in data by
// their plain SHA-256.
//
// # Log
//
// Leaves of all sessions, in the order they were appended, are one RFC 6962
// Merkle tree. A [Checkpoint] is its C2SP text, origin, size and root, signed
// as a note (golang.org/x/mod/sumdb/note); the origin is the name of the key.
// The newest covers every record, or somebody without the key wrote what it does
// not cover. Whoever keeps one checkpoint elsewhere can prove later that nothing
// up to it was changed; whoever keeps none trusts the holder of the key, and that
// the log was not rolled back to an older head. A proof ([CheckProof]) shows a
// stranger one decision of the log, or that it goes on from an older checkpoint.
//
// What is read back out of a log is proven by the same means: [Tree.Holds] says
// that records stand in it, [SignHeads] that a session has no more of them, and a
// record's commitments which values it had.
//
// # Trust
//
// The package is pure: no clock, no files, no randomness; salts, times and
// keys are passed in. [Verify] trusts SHA-256, Ed25519 and the verifier key it
// is given, and nothing it reads.
package audit
