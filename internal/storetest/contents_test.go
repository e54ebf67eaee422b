package storetest

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"golang.org/x/mod/sumdb/tlog"
)

func testErase(t *testing.T, s Store) {
	Append(t, s, "s_a", 0, Entries(t, "s_a", 1, 3)...)
	b, err := s.Value(ctx, "s_a", 2, "arguments")
	if err != nil || string(b) != `{"path":"/srv/2"}` {
		t.Fatalf("%q, %v", b, err)
	}
	// What no record has, and what is gone already, needs no erasing.
	for _, of := range []struct {
		session string
		ns      []uint64
	}{{"s_a", nil}, {"s_b", []uint64{2}}, {"s_a", []uint64{9, 2, 0, 1 << 63}}, {"s_a", []uint64{2}}} {
		before := len(Collect(t, s.Read(ctx, "s_a", 2))[0].Values)
		if err := s.Erase(ctx, of.session, of.ns...); err != nil {
			t.Fatal(err)
		}
		_, err := s.Value(ctx, "s_a", 2, "arguments")
		if erased := errors.Is(err, audit.ErrNotFound); erased != (before == 0 || len(of.ns) > 1) {
			t.Errorf("%+v: the value: %v", of, err)
		}
	}
	items := Collect(t, s.Read(ctx, "s_a", 2))
	if len(items[0].Values) != 0 || len(items[1].Values) != 1 {
		t.Errorf("%+v", items)
	}
	if r := Verify(t, s); r.Values != 1 || r.Erased != 1 {
		t.Errorf("%+v", r)
	}
	e := Seal(t, audit.Record{Kind: audit.KindEvent, Session: "s_a", N: 4, Time: Epoch},
		audit.Value{Name: "empty"}, audit.Value{Name: "b", Bytes: []byte("x\x00y")}, audit.Value{Name: "a", Bytes: []byte{}})
	Append(t, s, "s_a", 3, e)
	if b, err := s.Value(ctx, "s_a", 4, "empty"); err != nil || len(b) != 0 {
		t.Errorf("an empty value: %q, %v", b, err)
	}
	if b, err := s.Value(ctx, "s_a", 4, "b"); err != nil || string(b) != "x\x00y" {
		t.Errorf("a value with a NUL: %q, %v", b, err)
	}
	Verify(t, s)
}

func testBlobs(t *testing.T, s Store) {
	big := bytes.Repeat([]byte("policy\n"), 100_000)
	for _, b := range [][]byte{[]byte("a policy"), {}, big, []byte("a policy")} {
		d, err := s.PutBlob(ctx, b)
		if err != nil || d != audit.Sum(b) {
			t.Fatalf("put: %v", err)
		}
		got, err := s.Blob(ctx, d)
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("get: %d bytes, %v", len(got), err)
		}
	}
	if _, err := s.Blob(ctx, audit.Sum([]byte("none"))); !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("a blob that is not there: %v", err)
	}
	if r := Verify(t, s); r.Blobs != 3 {
		t.Errorf("%d blobs", r.Blobs)
	}
}

func testCheckpoints(t *testing.T, s Store) {
	_, vk := Key()
	if _, err := s.Checkpoint(ctx); !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("a checkpoint of nothing: %v", err)
	}
	var all []audit.Checkpoint
	for n := uint64(1); n <= 40; n++ {
		Append(t, s, "s_a", n-1, Entry(t, "s_a", n))
		if n%7 != 0 {
			continue
		}
		msg, err := s.Checkpoint(ctx)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Checkpoint(ctx)
		if err != nil || !bytes.Equal(msg, again) {
			t.Errorf("the log did not grow and is signed again: %v", err)
		}
		c, err := audit.OpenCheckpoint(msg, vk)
		if err != nil || c.Size != int64(n) {
			t.Fatalf("%+v, %v", c, err)
		}
		all = append(all, c)
	}
	v, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	newest := all[len(all)-1]
	for _, c := range all {
		p, err := tlog.ProveTree(newest.Size, c.Size, v)
		if err != nil {
			t.Fatal(err)
		}
		if err := audit.CheckConsistency(c, newest, p); err != nil {
			t.Errorf("size %d: %v", c.Size, err)
		}
		bad := c
		bad.Root[0] ^= 1
		if audit.CheckConsistency(bad, newest, p) == nil {
			t.Errorf("size %d: another root passes", c.Size)
		}
	}
	for n := int64(0); n < newest.Size; n++ {
		p, err := tlog.ProveRecord(newest.Size, n, v)
		if err != nil {
			t.Fatal(err)
		}
		e := Entry(t, "s_a", uint64(n)+1)
		if err := audit.CheckInclusion(newest, n, e.Leaf(), p); err != nil {
			t.Errorf("record %d: %v", n, err)
		}
		if audit.CheckInclusion(newest, n, append(slices.Clone(e.Leaf()), ' '), p) == nil {
			t.Errorf("record %d: another leaf passes", n)
		}
	}
	if r := Verify(t, s); r.Checkpoints < int64(len(all)) || r.Signed < newest.Size {
		t.Errorf("%+v", r)
	}
}

func testSnapshot(t *testing.T, s Store) {
	Append(t, s, "s_a", 0, Entries(t, "s_a", 1, 5)...)
	v, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	root := v.Root()
	Append(t, s, "s_a", 5, Entries(t, "s_a", 6, 40)...)
	if _, err := s.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	_, vk := Key()
	r, err := audit.Verify(ctx, v, audit.VerifyOptions{Verifier: vk})
	if err != nil || r.Problem != nil || r.Size != 5 || r.Root != root {
		t.Errorf("%+v, %v", r, err)
	}
	if got := Collect(t, v.Scan(ctx, 3)); len(got) != 2 || got[0].Index != 3 {
		t.Errorf("from 3: %+v", got)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if r := Verify(t, s); r.Size != 45 || r.Signed != 45 {
		t.Errorf("%+v", r)
	}
}

func testNames(t *testing.T, s Store) {
	for _, id := range []string{"s_Alice", "s_alice", "s_ALICE", "s_-", "s__"} {
		Append(t, s, id, 0, Entry(t, id, 1))
	}
	var ids []string
	for _, h := range Collect(t, s.Heads(ctx)) {
		ids = append(ids, h.Session)
	}
	if !slices.Equal(ids, []string{"s_-", "s_ALICE", "s_Alice", "s__", "s_alice"}) {
		t.Errorf("%q", ids)
	}
	for _, id := range []string{"s_Alice\x00", "s_", "alice", "s_é", "s_a/ev1", "s_a b"} {
		if audit.ValidSession(id) {
			t.Errorf("%q is a session", id)
		}
		if err := s.AddSession(ctx, audit.Session{ID: id, SecretDigest: audit.Sum([]byte(id)), Created: Epoch}); !errors.Is(err, audit.ErrInvalid) {
			t.Errorf("%q: %v", id, err)
		}
	}
	x := audit.Session{ID: "s_p", SecretDigest: audit.Sum(nil), Created: Epoch, Principal: "a\x00b"}
	if err := s.AddSession(ctx, x); !errors.Is(err, audit.ErrInvalid) {
		t.Errorf("NUL in a principal: %v", err)
	}
}

func testSessions(t *testing.T, s Store) {
	zone := time.FixedZone("east", 3*3600)
	a := audit.Session{ID: "s_a", SecretDigest: audit.Sum([]byte("secret a")), Principal: "local:1000", Endpoint: "stdio",
		Created: Epoch.Add(time.Second).In(zone)}
	b := audit.Session{ID: "s_b", SecretDigest: audit.Sum([]byte("secret b")), Principal: "loopback", Endpoint: "path",
		Created: Epoch.Add(1234567 * time.Nanosecond), LastUsed: Epoch.Add(time.Hour)}
	for _, x := range []audit.Session{a, b} {
		if err := s.AddSession(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	for name, x := range map[string]audit.Session{
		"same id":     {ID: "s_a", SecretDigest: audit.Sum([]byte("c")), Created: Epoch},
		"same secret": {ID: "s_c", SecretDigest: a.SecretDigest, Created: Epoch},
	} {
		if err := s.AddSession(ctx, x); !errors.Is(err, audit.ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.Created, b.Created = Epoch.Add(time.Second), Epoch.Add(1234*time.Microsecond)
	if got, err := s.SessionBySecret(ctx, a.SecretDigest); err != nil || got != a {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.SessionByID(ctx, "s_b"); err != nil || got != b {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []struct {
		touch, want time.Time
	}{{Epoch.Add(2 * time.Hour), Epoch.Add(2 * time.Hour)}, {Epoch, Epoch.Add(2 * time.Hour)}} {
		if err := s.TouchSession(ctx, "s_b", c.touch); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.SessionByID(ctx, "s_b"); !got.LastUsed.Equal(c.want) {
			t.Errorf("last used %v, want %v", got.LastUsed, c.want)
		}
	}
	if err := s.TouchSession(ctx, "s_a", Epoch.In(zone)); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.SessionByID(ctx, "s_a"); got.LastUsed != Epoch {
		t.Errorf("last used %v", got.LastUsed)
	}
	for _, at := range []time.Duration{time.Hour, 2 * time.Hour} {
		if err := s.CloseSession(ctx, "s_a", Epoch.Add(at)); err != nil {
			t.Fatal(err)
		}
	}
	got := Collect(t, s.ListSessions(ctx))
	if len(got) != 2 || got[0].ID != "s_b" || !got[0].Closed.IsZero() || got[1].Closed != Epoch.Add(time.Hour) {
		t.Errorf("%+v", got)
	}
	_, err := s.SessionByID(ctx, "s_x")
	_, err2 := s.SessionBySecret(ctx, audit.Sum([]byte("x")))
	for i, err := range []error{err, err2, s.TouchSession(ctx, "s_x", Epoch), s.CloseSession(ctx, "s_x", Epoch)} {
		if !errors.Is(err, audit.ErrNotFound) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func testClosed(t *testing.T, s Store) {
	Append(t, s, "s_a", 0, Entry(t, "s_a", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err1 := s.Append(ctx, "s_a", 1, Entries(t, "s_a", 2, 1))
	_, err2 := s.Head(ctx, "s_a")
	_, err3 := s.Snapshot(ctx)
	_, err4 := s.PutBlob(ctx, nil)
	_, err5 := s.Value(ctx, "s_a", 1, "x")
	var err6 error
	for _, err6 = range s.Read(ctx, "s_a", 0) {
	}
	for i, err := range []error{err1, err2, err3, err4, err5, err6} {
		if !errors.Is(err, audit.ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func testCopies(t *testing.T, s Store) {
	v := Value("s_a", 1, "x", "hello")
	Append(t, s, "s_a", 0, Seal(t, audit.Record{Kind: audit.KindOpen, Session: "s_a", N: 1, Time: Epoch}, v))
	v.Bytes[0] = 'J'
	blob := []byte("blob")
	d, _ := s.PutBlob(ctx, blob)
	blob[0] = 'B'
	it := Collect(t, s.Read(ctx, "s_a", 0))[0]
	it.Leaf[0], it.Values[0].Bytes[0] = 'X', 'X'
	if b, err := s.Value(ctx, "s_a", 1, "x"); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := s.Blob(ctx, d); err != nil || string(b) != "blob" {
		t.Errorf("%q, %v", b, err)
	}
	Verify(t, s)
}

func testReopen(t *testing.T, open opener) {
	dir := t.TempDir()
	var want []audit.Item
	var n uint64
	for range 5 {
		s := open(t, dir)
		if h, err := s.Head(ctx, "s_a"); h != n || err != nil {
			t.Fatalf("head %d, want %d: %v", h, n, err)
		}
		got := Collect(t, s.Read(ctx, "s_a", 0))
		if len(got) != len(want) {
			t.Fatalf("%d items, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i].Index != want[i].Index || !bytes.Equal(got[i].Leaf, want[i].Leaf) {
				t.Errorf("item %d changed", i)
			}
		}
		for range 2 {
			Append(t, s, "s_a", n, Entries(t, "s_a", n+1, 7)...)
			n += 7
		}
		d, err := s.PutBlob(ctx, []byte("policy"))
		if err != nil {
			t.Fatal(err)
		}
		if n == 14 {
			if err := s.AddSession(ctx, audit.Session{ID: "s_a", SecretDigest: d, Created: Epoch}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.SessionBySecret(ctx, d); err != nil {
			t.Error(err)
		}
		unsynced(t, s, "s_a", n, Entries(t, "s_a", n+1, 7)...) // closing keeps that too
		n += 7
		want = Collect(t, s.Read(ctx, "s_a", 0))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir)
	defer s.Close()
	if r := Verify(t, s); r.Records != int64(n) || r.Signed != int64(n) {
		t.Errorf("closing signs all of it: %+v", r)
	}
}
