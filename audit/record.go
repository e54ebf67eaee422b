package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/strictjson"
)

// Kind says what a record is about.
type Kind string

// The kinds this package knows. Others are verified without being understood.
const (
	KindOpen     Kind = "open"     // first record of a session
	KindDecision Kind = "decision" // what was decided about one call
	KindResult   Kind = "result"   // how an allowed call ended
	KindEvent    Kind = "event"    // anything else worth keeping
	KindClose    Kind = "close"    // no call is allowed after it
	KindRedact   Kind = "redact"   // the last of a session: its values are taken out of the log from here on
)

// Version is the record format this package writes and reads.
const Version = 1

// SaltSize is the length of every salt. A fixed length keeps salt ‖ bytes
// unambiguous.
const SaltSize = 16

// The longest leaf, and the longest value a leaf commits to.
const (
	MaxLeaf  = 16 << 20
	MaxValue = 64 << 20
)

var leafLimits = strictjson.Limits{Bytes: MaxLeaf, Depth: 100, Leaves: 4_000_000, Number: 64}

// Digest is a SHA-256.
type Digest [sha256.Size]byte

// String returns the digest in lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ParseDigest parses what String returns and nothing else.
func ParseDigest(s string) (d Digest, err error) { return parseDigest(s) }

func parseDigest[T string | []byte](s T) (d Digest, err error) {
	if len(s) == 2*len(d) {
		wrong := byte(0)
		for i := range d {
			high, low := nibbles[s[2*i]], nibbles[s[2*i+1]]
			d[i] = high<<4 | low&0x0f
			wrong |= high | low
		}
		if wrong&0xf0 == 0 {
			return d, nil
		}
	}
	return Digest{}, errors.New("a digest is 64 lower-case hex digits")
}

// nibbles are what lower-case hex digits say, 0xff for all other bytes.
var nibbles = func() (t [256]byte) {
	for c := range t {
		t[c] = 0xff
	}
	for i, c := range []byte("0123456789abcdef") {
		t[c] = byte(i)
	}
	return t
}()

// Sum is the name of a blob: its plain SHA-256.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

// Commit returns SHA-256(salt ‖ b).
func Commit(salt [SaltSize]byte, b []byte) (d Digest) {
	h := sha256.New()
	h.Write(salt[:])
	h.Write(b)
	h.Sum(d[:0])
	return d
}

// Value is one value a record commits to, as it stands beside the log.
type Value struct {
	Name  string
	Salt  [SaltSize]byte
	Bytes []byte
}

// Commitment is one member of a record's commit object.
type Commitment struct {
	Name   string
	Digest Digest
}

// Record is one parsed leaf.
type Record struct {
	Kind    Kind
	Session string
	N       uint64
	Time    time.Time // UTC
	Data    []byte    // a JSON object
	Commit  []Commitment
}

// Commitment returns the digest the record has for name.
func (r *Record) Commitment(name string) (Digest, bool) {
	for _, c := range r.Commit {
		if c.Name == name {
			return c.Digest, true
		}
	}
	return Digest{}, false
}

// Entry is a sealed record with its values, ready to be appended. It is made
// by Seal or ParseEntry only, so an Entry is always a well-formed record whose
// values are those it commits to. The zero Entry is refused by every store.
type Entry struct {
	leaf    []byte
	session string
	n       uint64
	values  []Value
}

// Leaf returns the canonical bytes. They must not be changed.
func (e *Entry) Leaf() []byte { return e.leaf }

// Session returns the session the record belongs to.
func (e *Entry) Session() string { return e.session }

// N returns the record's number in its session.
func (e *Entry) N() uint64 { return e.n }

// Values returns the values the record commits to, sorted by name. They must
// not be changed.
func (e *Entry) Values() []Value { return e.values }

// Seal makes the leaf of r and commits to values; r.Commit is ignored. r.Data
// may be any strict JSON object and is written canonically; nil is {}. The
// salts must be fresh random bytes for each value.
func Seal(r Record, values ...Value) (Entry, error) {
	if err := checkWords(&r); err != nil {
		return Entry{}, err
	}
	data := []byte("{}")
	if r.Data != nil {
		var err error
		if data, err = strictjson.CanonicalWithin(r.Data, leafLimits); err != nil {
			return Entry{}, fmt.Errorf("audit: data: %w", err)
		}
		if strictjson.KindOf(data) != strictjson.Object {
			return Entry{}, errors.New("audit: data is not an object")
		}
	}
	vs := slices.Clone(values)
	slices.SortFunc(vs, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	b := make([]byte, 0, len(data)+160+90*len(vs))
	b = append(b, `{"commit":{`...)
	for i, v := range vs {
		if !validName(v.Name) {
			return Entry{}, errors.New("audit: a value's name is not of the form [a-z][a-z0-9_.-]*")
		}
		if len(v.Bytes) > MaxValue {
			return Entry{}, errors.New("audit: a value is too large")
		}
		if i > 0 {
			if vs[i-1].Name == v.Name {
				return Entry{}, errors.New("audit: two values have one name")
			}
			b = append(b, ',')
		}
		d := Commit(v.Salt, v.Bytes)
		b = append(append(append(b, '"'), v.Name...), `":"`...)
		b = append(hex.AppendEncode(b, d[:]), '"')
	}
	b = append(append(b, `},"data":`...), data...)
	b = append(append(b, `,"kind":"`...), r.Kind...)
	b = strconv.AppendUint(append(b, `","n":`...), r.N, 10)
	b = append(append(b, `,"session":"`...), r.Session...)
	b = r.Time.UTC().AppendFormat(append(b, `","time":"`...), time.RFC3339Nano)
	b = append(b, `","v":1}`...)
	if len(b) > MaxLeaf {
		return Entry{}, errors.New("audit: the record is too large")
	}
	return Entry{leaf: b, session: r.Session, n: r.N, values: vs}, nil
}

// ParseEntry makes an Entry of a leaf written earlier and of those of its
// values that are still there.
func ParseEntry(leaf []byte, values ...Value) (Entry, error) {
	r, err := ParseRecord(leaf)
	if err != nil {
		return Entry{}, err
	}
	vs := slices.Clone(values)
	slices.SortFunc(vs, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	for i, v := range vs {
		d, ok := r.Commitment(v.Name)
		if !ok || d != Commit(v.Salt, v.Bytes) || i > 0 && vs[i-1].Name == v.Name {
			return Entry{}, errors.New("audit: a value is not the one the record commits to")
		}
	}
	return Entry{leaf: bytes.Clone(leaf), session: r.Session, n: r.N, values: vs}, nil
}

// ValidSession reports whether s has the form of a session's public id: s_ and
// 1 to 64 of A-Z a-z 0-9 _ -.
func ValidSession(s string) bool {
	if len(s) < 3 || len(s) > 66 || s[:2] != "s_" {
		return false
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// validName holds kinds and names of values to ASCII whose JSON form is itself
// and whose order is the same in bytes and in UTF-16.
func validName(s string) bool {
	if s == "" || len(s) > 64 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}

// maxN keeps every number exact in JSON readers that use doubles.
const maxN = 1<<53 - 1

func checkWords(r *Record) error {
	switch {
	case !validName(string(r.Kind)):
		return errors.New("audit: kind is not of the form [a-z][a-z0-9_.-]*")
	case !ValidSession(r.Session):
		return errors.New("audit: session is not a public session id")
	case r.N == 0 || r.N > maxN:
		return errors.New("audit: n is out of range")
	case r.Time.UTC().Year() < 1970 || r.Time.UTC().Year() > 9999:
		return errors.New("audit: time is out of range")
	}
	return nil
}
