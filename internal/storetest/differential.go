package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"pgregory.net/rapid"
)

// Differential runs random operations on two stores and demands the same
// answers. reopen closes the second store and opens it again in the same
// place; nil if it does not persist.
func Differential(t *testing.T, model func() Store, subject func() (s Store, reopen func() Store)) {
	rapid.Check(t, func(rt *rapid.T) {
		a := model()
		b, reopen := subject()
		defer func() { b.Close() }()
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
				es := Entries(t, id, expected+1, rapid.Uint64Range(0, 4).Draw(rt, "count"))
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
				sameItems(rt, Collect(t, a.Read(ctx, id, from)), Collect(t, b.Read(ctx, id, from)))
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
				id, n, v := session.Draw(rt, "session"), anyN.Draw(rt, "n"), name.Draw(rt, "name")
				same("erase", a.Erase(ctx, id, n, v), b.Erase(ctx, id, n, v))
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
				at := Epoch.Add(time.Duration(rapid.Int64Range(0, 1e7).Draw(rt, "at")))
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
				la, lb := Collect(t, a.ListSessions(ctx)), Collect(t, b.ListSessions(ctx))
				if fmt.Sprint(la) != fmt.Sprint(lb) {
					rt.Fatalf("%+v\n%+v", la, lb)
				}
			},
			"": func(rt *rapid.T) {
				ra, rb := report(rt, a), report(rt, b)
				if ra.Problem != nil || rb.Problem != nil {
					rt.Fatalf("%v, %v", ra.Problem, rb.Problem)
				}
				if ra.Root != rb.Root || ra.Size != rb.Size || ra.Values != rb.Values || ra.Erased != rb.Erased || ra.Blobs != rb.Blobs {
					rt.Fatalf("%+v\n%+v", ra, rb)
				}
				if ha, hb := fmt.Sprint(Collect(t, a.Heads(ctx))), fmt.Sprint(Collect(t, b.Heads(ctx))); ha != hb {
					rt.Fatalf("%s\n%s", ha, hb)
				}
			},
		}
		if reopen != nil {
			actions["reopen"] = func(rt *rapid.T) {
				a.Checkpoint(ctx) // as closing does
				if err := b.Close(); err != nil {
					rt.Fatal(err)
				}
				b = reopen()
			}
		}
		rt.Repeat(actions)
	})
}

func report(rt *rapid.T, s audit.Store) *audit.Report {
	v, err := s.Snapshot(ctx)
	if err != nil {
		rt.Fatal(err)
	}
	defer v.Close()
	_, vk := Key()
	r, err := audit.Verify(context.Background(), v, audit.VerifyOptions{Verifier: vk})
	if err != nil {
		rt.Fatal(err)
	}
	return r
}

func sameItems(rt *rapid.T, a, b []audit.Item) {
	if fmt.Sprint(a) != fmt.Sprint(b) {
		rt.Fatalf("%+v\n%+v", a, b)
	}
}
