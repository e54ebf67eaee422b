// Package storetest is the one suite every store passes, in its tests, and what the tests
// of a store need besides. Whoever writes a store adds it to TestStore, and has tests of his
// own only of what that store alone can do.
package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"golang.org/x/mod/sumdb/note"
)

// Every is how often a store under test signs at least, if it signs by itself.
const Every = 16

// zeros is a source of keys and salts for tests; a log under test has no
// secrets.
type zeros struct{ n byte }

func (z *zeros) Read(b []byte) (int, error) {
	for i := range b {
		z.n++
		b[i] = z.n
	}
	return len(b), nil
}

// Key returns the suite's own key pair.
func Key() (note.Signer, note.Verifier) { return KeyNamed("writ.test/log") }

// PublicKey returns the public half of Key as it is written.
func PublicKey() string {
	_, vk := textOf("writ.test/log")
	return vk
}

func textOf(name string) (sk, vk string) {
	sk, vk, err := audit.GenerateKey(&zeros{byte(len(name))}, name)
	if err != nil {
		panic(err)
	}
	return sk, vk
}

// KeyNamed returns another, fixed key pair.
func KeyNamed(name string) (note.Signer, note.Verifier) {
	sk, vk := textOf(name)
	s, err := note.NewSigner(sk)
	if err != nil {
		panic(err)
	}
	v, err := note.NewVerifier(vk)
	if err != nil {
		panic(err)
	}
	return s, v
}

// Epoch is the time of record 1 of every test session.
var Epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Entry makes record n of a session: an open, then decisions and results in
// turn, each with one value of its own.
func Entry(tb testing.TB, session string, n uint64) audit.Entry {
	tb.Helper()
	r := audit.Record{Session: session, N: n, Time: Epoch.Add(time.Duration(n))}
	var vs []audit.Value
	switch {
	case n == 1:
		r.Kind = audit.KindOpen
	case n%2 == 0:
		r.Kind, r.Data = audit.KindDecision, []byte(`{"tool":"files/list","status":"accepted"}`)
		vs = []audit.Value{Value(session, n, "arguments", fmt.Sprintf(`{"path":"/srv/%d"}`, n))}
	default:
		r.Kind, r.Data = audit.KindResult, fmt.Appendf(nil, `{"decision":%d,"status":"ok"}`, n-1)
		vs = []audit.Value{Value(session, n, "result", strings.Repeat("a listing, ", 8))}
	}
	return Seal(tb, r, vs...)
}

// Seal is audit.Seal for tests.
func Seal(tb testing.TB, r audit.Record, vs ...audit.Value) audit.Entry {
	tb.Helper()
	e, err := audit.Seal(r, vs...)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// Value makes a value whose salt follows from where it stands.
func Value(session string, n uint64, name, text string) audit.Value {
	h := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(session+name), n))
	return audit.Value{Name: name, Salt: [audit.SaltSize]byte(h[:audit.SaltSize]), Bytes: []byte(text)}
}

// Entries makes records from … from+count-1 of a session.
func Entries(tb testing.TB, session string, from, count uint64) (es []audit.Entry) {
	tb.Helper()
	for n := from; n < from+count; n++ {
		es = append(es, Entry(tb, session, n))
	}
	return es
}

// Append appends and must succeed.
func Append(tb testing.TB, s audit.Store, session string, expected uint64, es ...audit.Entry) int64 {
	tb.Helper()
	first, err := s.Append(context.Background(), session, expected, es)
	if err != nil {
		tb.Fatal(err)
	}
	return first
}

// Verify verifies the whole log and must find no problem.
func Verify(tb testing.TB, s audit.Store) *audit.Report {
	tb.Helper()
	r := Check(tb, s)
	if r.Problem != nil {
		tb.Fatalf("verify: %v", r.Problem)
	}
	return r
}

// Check verifies the whole log and returns what was found.
func Check(tb testing.TB, s audit.Store) *audit.Report {
	tb.Helper()
	ctx := context.Background()
	v, err := s.Snapshot(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	defer v.Close()
	_, vk := Key()
	r, err := audit.Verify(ctx, v, audit.VerifyOptions{Verifier: vk})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// Collect drains a sequence, which must not fail.
func Collect[T any](tb testing.TB, seq iter.Seq2[T, error]) (out []T) {
	tb.Helper()
	for t, err := range seq {
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, t)
	}
	return out
}
