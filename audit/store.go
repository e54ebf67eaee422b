package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// The errors callers branch on.
var (
	// ErrConflict says that the session's head is not the expected number:
	// somebody else appended. Nothing was written.
	ErrConflict = errors.New("audit: the session has moved on")
	// ErrNotFound says that there is no such record, value, blob or session.
	// An erased value is not found.
	ErrNotFound = errors.New("audit: not found")
	// ErrExists says that a session of that id or secret is there already.
	ErrExists = errors.New("audit: the session exists")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("audit: the store is closed")
	// ErrInvalid says that what was to be written is not well formed.
	ErrInvalid = errors.New("audit: not a well-formed entry")
	// ErrAltered says that what is stored is not what was written: it vouches
	// for nothing. The error is an *AlteredError where a record is at fault.
	ErrAltered = errors.New("audit: what is stored was altered")
)

// AlteredError is ErrAltered of one record: the first of its session that is
// not the one the log holds, or not whole.
type AlteredError struct {
	Session string
	N       uint64
	Fault   Fault
}

func (e *AlteredError) Error() string {
	return fmt.Sprintf("%v: record %s/%d: %s", ErrAltered, e.Session, e.N, e.Fault)
}

func (e *AlteredError) Unwrap() []error { return []error{ErrAltered, e.Fault} }

// Store keeps one log. All of Writ's state is a fold of what it holds.
//
// A Store is safe for concurrent use, by several goroutines and, where it is
// kept in files or a server, by several processes: all of them see one log.
//
// What it hands out was checked: Read yields every record of the session and no
// other, each proven to stand in the log whose head is signed, and values, as
// Value does, only as their record commits to them. Where anything else is
// stored the error is ErrAltered. A Snapshot is not checked: that is Verify's.
type Store interface {
	// Append adds entries to one session, all or none, and returns the log
	// index of the first. expected is the number of records the session has,
	// 0 for a new one; the entries are numbered expected+1 and on. If the
	// session has another number of records the error is ErrConflict.
	//
	// When Append returns nil the entries are durable: they survive the end
	// of the process and of the machine. When it returns an error they are
	// not part of the log that the store goes on with. A cancelled context
	// ends the wait only while nothing was begun. Appends of different
	// sessions made at the same time share one commit.
	Append(ctx context.Context, session string, expected uint64, entries []Entry) (first int64, err error)

	// AppendUnsynced is Append without waiting for the disk. When it returns
	// nil the entries stand in the log in their order, every process that has
	// the log's key sees them, one with the public key alone a moment later,
	// and they survive the end of this process, even by kill -9. They
	// survive the end of the machine (power, kernel) once a later Append, of
	// any session and by any process, or Close, has returned nil; whatever
	// is lost before that is a tail of the log, with everything that rests on
	// it, and its numbers and indexes are given out anew.
	//
	// So it is for what nobody outside Writ depends on: a read and its
	// result. An act, a refusal that counts, an approval or the opening of a
	// session is appended with Append, and makes durable what it rests on.
	AppendUnsynced(ctx context.Context, session string, expected uint64, entries []Entry) (first int64, err error)

	// Read yields the items of a session in order, from number from on.
	Read(ctx context.Context, session string, from uint64) iter.Seq2[Item, error]

	// Head returns how many records a session has; 0 if there is none.
	Head(ctx context.Context, session string) (uint64, error)

	// Heads yields every session that has records, sorted by id bytewise.
	Heads(ctx context.Context) iter.Seq2[Head, error]

	// Value returns the bytes of one value. ErrNotFound if it was erased.
	Value(ctx context.Context, session string, n uint64, name string) ([]byte, error)

	// Erase removes the salts and bytes of all values of those records of a
	// session for good, all or none. The log still verifies. What is not there
	// is erased already. With an error they may be gone for every reader and
	// not be off the disk: then it is done once more.
	Erase(ctx context.Context, session string, ns ...uint64) error

	// PutBlob stores b, durably, and returns its name. Storing it again does
	// nothing.
	PutBlob(ctx context.Context, b []byte) (Digest, error)

	// Blob returns the blob of that name, whose SHA-256 was checked.
	Blob(ctx context.Context, name Digest) ([]byte, error)

	// Checkpoint returns the signed checkpoint of the log as it is, once all of
	// it is durable, and keeps it. ErrNotFound if the log is empty or the store
	// has no signer and no checkpoint.
	Checkpoint(ctx context.Context) ([]byte, error)

	// Snapshot returns the whole log as it is at one moment, for Verify and
	// for proofs. It must be closed.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Close makes durable what AppendUnsynced wrote and releases everything.
	// Appends that were begun are finished first.
	Close() error
}

// Item is one record as a store holds it.
type Item struct {
	Index   int64 // in the log, from 0
	Session string
	N       uint64
	Leaf    []byte
	Hashes  []Hash  // the stored hashes of the leaf; Read leaves them out
	Values  []Value // those still there, sorted by name
}

// Value returns the bytes of the item's value of that name; ok is false if it
// was erased or never was.
func (it *Item) Value(name string) (b []byte, ok bool) {
	for i := range it.Values {
		if it.Values[i].Name == name {
			return it.Values[i].Bytes, true
		}
	}
	return nil, false
}

// Head is the state of one session in the log.
type Head struct {
	Session string
	N       uint64 // records so far
	Index   int64  // log index of the newest
}

// Snapshot is an unchanging view of a store. It is used by one goroutine at a
// time.
type Snapshot interface {
	// Size and Root are what the store believes its log to be.
	Size() int64
	Root() Hash
	// Scan yields all items in log order from index from on.
	Scan(ctx context.Context, from int64) iter.Seq2[Item, error]
	// Checkpoints yields the signed checkpoints that are kept, in the order of
	// their size, and last that of the head, where it is signed.
	Checkpoints(ctx context.Context) iter.Seq2[[]byte, error]
	// Blobs yields every blob under the name it is stored by.
	Blobs(ctx context.Context) iter.Seq2[Blob, error]
	// ReadHashes makes a Snapshot a tlog.HashReader, for proofs.
	ReadHashes(indexes []int64) ([]Hash, error)
	Close() error
}

// Blob is one content-addressed text.
type Blob struct {
	Name  Digest
	Bytes []byte
}

// Session is what is known of a session beside its records, to find it by its
// secret, which is stored nowhere. None of it is proven: who may carry a session
// is in its first record.
type Session struct {
	ID           string // public id, s_…
	SecretDigest Digest // SHA-256 of the secret the client carries
	Principal    string // who it is bound to
	Endpoint     string // how it is carried: stdio, http, path, …
	Created      time.Time
	LastUsed     time.Time
	Closed       time.Time // zero while open
}

// Sessions is the register of sessions, kept by the same store. Times are kept
// to the microsecond, in UTC.
type Sessions interface {
	// AddSession registers a session. ErrExists if its id or its secret is
	// taken.
	AddSession(ctx context.Context, s Session) error
	// SessionBySecret finds a session by the digest of its secret. A closed
	// session is found too; the caller judges.
	SessionBySecret(ctx context.Context, secret Digest) (Session, error)
	// SessionByID finds a session by its public id.
	SessionByID(ctx context.Context, id string) (Session, error)
	// TouchSession sets when a session was last used; it never goes back.
	TouchSession(ctx context.Context, id string, at time.Time) error
	// CloseSession marks a session closed. Closing it again does nothing.
	CloseSession(ctx context.Context, id string, at time.Time) error
	// ListSessions yields all sessions, oldest first.
	ListSessions(ctx context.Context) iter.Seq2[Session, error]
}

// CheckAppend is what every store demands of an append before it looks at the
// head: sealed entries of that session, numbered expected+1 and on, at least
// one. Otherwise the error is ErrInvalid.
func CheckAppend(session string, expected uint64, entries []Entry) error {
	if !ValidSession(session) || len(entries) == 0 {
		return ErrInvalid
	}
	for i := range entries {
		e := &entries[i]
		if e.leaf == nil || e.session != session || e.n != expected+uint64(i)+1 {
			return ErrInvalid
		}
	}
	return nil
}

// CheckSession is what every register demands of a new session, and returns it
// with its times as they are kept. The error is ErrInvalid.
func CheckSession(s Session) (Session, error) {
	if !ValidSession(s.ID) || s.SecretDigest == (Digest{}) || len(s.Principal) > 1024 || len(s.Endpoint) > 1024 ||
		!utf8.ValidString(s.Principal) || !utf8.ValidString(s.Endpoint) ||
		strings.ContainsRune(s.Principal, 0) || strings.ContainsRune(s.Endpoint, 0) || s.Created.IsZero() {
		return Session{}, ErrInvalid
	}
	for _, t := range []*time.Time{&s.Created, &s.LastUsed, &s.Closed} {
		if !t.IsZero() {
			*t = t.UTC().Truncate(time.Microsecond)
		}
	}
	return s, nil
}
