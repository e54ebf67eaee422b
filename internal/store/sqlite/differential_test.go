package sqlite

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"pgregory.net/rapid"
)

// atMost sets how often rapid.Check draws, unless the command line does, and
// returns what sets it back.
func atMost(n int) func() {
	checks := flag.Lookup("rapid.checks")
	old := checks.Value.String()
	if old == checks.DefValue {
		checks.Value.Set(fmt.Sprint(n))
	}
	return func() { checks.Value.Set(old) }
}

// TestSameAsMap runs random operations on this store, opened twice, and on the plain
// model and demands the same answers.
func TestSameAsMap(t *testing.T) {
	defer atMost(size(30, 300))()
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		sk, vk := storetest.Key()
		a := mapstore.New(sk)
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		os.Chmod(dir, 0o700)
		reopen := func() *Store {
			s, err := Open(dir, Options{Signer: sk, Verifier: vk, CheckpointEvery: 1 << 40, noSync: true})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		b, beside := reopen(), reopen()
		defer func() { b.Close(); beside.Close() }()
		heads := map[string]uint64{}
		same := func(what string, ea, eb error) bool {
			for _, kind := range []error{audit.ErrConflict, audit.ErrNotFound, audit.ErrExists, audit.ErrInvalid} {
				if errors.Is(ea, kind) && errors.Is(eb, kind) {
					return false
				}
			}
			if ea != nil || eb != nil {
				rt.Fatalf("%s: %v, %v", what, ea, eb)
			}
			return true
		}
		session := rapid.SampledFrom([]string{"s_a", "s_A", "s_b"})
		anyN := rapid.Uint64Range(0, 12)
		name := rapid.SampledFrom([]string{"arguments", "result"})
		actions := map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				id := session.Draw(rt, "session")
				expected := heads[id]
				if rapid.IntRange(0, 3).Draw(rt, "wrong") == 0 {
					expected = anyN.Draw(rt, "expected")
				}
				es := storetest.Entries(t, id, expected+1, rapid.Uint64Range(0, 4).Draw(rt, "count"))
				doA, doB := a.Append, b.Append
				if rapid.Bool().Draw(rt, "unsynced") {
					doA, doB = a.AppendUnsynced, b.AppendUnsynced
				}
				ia, ea := doA(ctx, id, expected, es)
				ib, eb := doB(ctx, id, expected, es)
				if same("append", ea, eb) {
					heads[id] = expected + uint64(len(es))
				}
				if ia != ib {
					rt.Fatalf("index %d, %d", ia, ib)
				}
			},
			"read": func(rt *rapid.T) {
				id, from := session.Draw(rt, "session"), anyN.Draw(rt, "from")
				if x, y := fmt.Sprint(storetest.Collect(t, a.Read(ctx, id, from))), fmt.Sprint(storetest.Collect(t, b.Read(ctx, id, from))); x != y {
					rt.Fatalf("%s\n%s", x, y)
				}
			},
			"head": func(rt *rapid.T) {
				id := session.Draw(rt, "session")
				na, ea := a.Head(ctx, id)
				nb, eb := b.Head(ctx, id)
				if same("head", ea, eb); na != nb || na != heads[id] {
					rt.Fatalf("head %d, %d, want %d", na, nb, heads[id])
				}
			},
			"value": func(rt *rapid.T) {
				id, n, v := session.Draw(rt, "session"), anyN.Draw(rt, "n"), name.Draw(rt, "name")
				ba, ea := a.Value(ctx, id, n, v)
				bb, eb := b.Value(ctx, id, n, v)
				if same("value", ea, eb); !bytes.Equal(ba, bb) {
					rt.Fatalf("value %q, %q", ba, bb)
				}
			},
			"erase": func(rt *rapid.T) {
				id, ns := session.Draw(rt, "session"), rapid.SliceOfN(anyN, 0, 4).Draw(rt, "ns")
				same("erase", a.Erase(ctx, id, ns...), b.Erase(ctx, id, ns...))
			},
			"blob": func(rt *rapid.T) {
				text := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(rt, "blob")
				d := audit.Sum(text)
				if rapid.Bool().Draw(rt, "put") {
					_, ea := a.PutBlob(ctx, text)
					_, eb := b.PutBlob(ctx, text)
					same("put", ea, eb)
				}
				ba, ea := a.Blob(ctx, d)
				bb, eb := b.Blob(ctx, d)
				if same("blob", ea, eb); !bytes.Equal(ba, bb) {
					rt.Fatalf("blob %q, %q", ba, bb)
				}
			},
			"checkpoint": func(rt *rapid.T) {
				ba, ea := a.Checkpoint(ctx)
				bb, eb := b.Checkpoint(ctx)
				if same("checkpoint", ea, eb); !bytes.Equal(ba, bb) {
					rt.Fatalf("checkpoint\n%s\n%s", ba, bb)
				}
			},
			"session": func(rt *rapid.T) {
				id := session.Draw(rt, "session")
				secret := audit.Sum([]byte{rapid.ByteRange(0, 3).Draw(rt, "secret")})
				at := storetest.Epoch.Add(time.Duration(rapid.Int64Range(0, 1e7).Draw(rt, "at")))
				switch rapid.IntRange(0, 3).Draw(rt, "how") {
				case 0:
					x := audit.Session{ID: id, SecretDigest: secret, Principal: "p", Created: at}
					same("add", a.AddSession(ctx, x), b.AddSession(ctx, x))
				case 1:
					same("touch", a.TouchSession(ctx, id, at), b.TouchSession(ctx, id, at))
				case 2:
					same("close", a.CloseSession(ctx, id, at), b.CloseSession(ctx, id, at))
				case 3:
					xa, ea := a.SessionBySecret(ctx, secret)
					xb, eb := b.SessionBySecret(ctx, secret)
					if same("by secret", ea, eb); xa != xb {
						rt.Fatalf("%+v, %+v", xa, xb)
					}
				}
				la, lb := storetest.Collect(t, a.ListSessions(ctx)), storetest.Collect(t, b.ListSessions(ctx))
				if fmt.Sprint(la) != fmt.Sprint(lb) {
					rt.Fatalf("%+v\n%+v", la, lb)
				}
			},
			"fold": func(rt *rapid.T) {
				if err := b.fold(ctx, ending{}); err != nil {
					rt.Fatal(err)
				}
			},
			"another process": func(rt *rapid.T) { b, beside = beside, b },
			"reopen": func(rt *rapid.T) {
				a.Checkpoint(ctx) // as closing does
				if err := b.Close(); err != nil {
					rt.Fatal(err)
				}
				b = reopen()
			},
			"": func(rt *rapid.T) {
				ra, rb := storetest.Check(t, a), storetest.Check(t, b)
				if ra.Problem != nil || rb.Problem != nil {
					rt.Fatalf("%v, %v", ra.Problem, rb.Problem)
				}
				if ra.Root != rb.Root || ra.Size != rb.Size || ra.Values != rb.Values || ra.Erased != rb.Erased || ra.Blobs != rb.Blobs {
					rt.Fatalf("%+v\n%+v", ra, rb)
				}
				if ha, hb := fmt.Sprint(storetest.Collect(t, a.Heads(ctx))), fmt.Sprint(storetest.Collect(t, b.Heads(ctx))); ha != hb {
					rt.Fatalf("%s\n%s", ha, hb)
				}
			},
		}
		rt.Repeat(actions)
	})
}
