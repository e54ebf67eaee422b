package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/writ-project/writ/audit"
)

func testAppend(t *testing.T, s Store) {
	if n, err := s.Head(ctx, "s_a"); n != 0 || err != nil {
		t.Fatalf("head of nothing: %d, %v", n, err)
	}
	if r := Verify(t, s); r.Records != 0 || r.Size != 0 {
		t.Fatalf("an empty log: %+v", r)
	}
	if i := Append(t, s, "s_a", 0, Entries(t, "s_a", 1, 3)...); i != 0 {
		t.Errorf("first index %d", i)
	}
	if i := Append(t, s, "s_b", 0, Entry(t, "s_b", 1)); i != 3 {
		t.Errorf("index %d, want 3", i)
	}
	if i := Append(t, s, "s_a", 3, Entries(t, "s_a", 4, 2)...); i != 4 {
		t.Errorf("index %d, want 4", i)
	}
	items := Collect(t, s.Read(ctx, "s_a", 0))
	if len(items) != 5 {
		t.Fatalf("%d items", len(items))
	}
	for i, it := range items {
		want := Entry(t, "s_a", uint64(i)+1)
		if it.N != want.N() || it.Session != "s_a" || !bytes.Equal(it.Leaf, want.Leaf()) || it.Hashes != nil {
			t.Errorf("item %d is %+v", i, it)
		}
		sameValues(t, it.Values, want.Values())
	}
	if got := Collect(t, s.Read(ctx, "s_a", 4)); len(got) != 2 || got[0].N != 4 || got[0].Index != 4 {
		t.Errorf("from 4: %+v", got)
	}
	if got := Collect(t, s.Read(ctx, "s_none", 0)); len(got) != 0 {
		t.Errorf("an unknown session has %d items", len(got))
	}
	if got := Collect(t, s.Heads(ctx)); !slices.Equal(got, []audit.Head{{Session: "s_a", N: 5, Index: 5}, {Session: "s_b", N: 1, Index: 3}}) {
		t.Errorf("heads %+v", got)
	}
	for range s.Read(ctx, "s_a", 0) {
		break // leaving early leaves nothing locked
	}
	r := Verify(t, s)
	if r.Records != 6 || r.Sessions != 2 || r.Decisions != 2 || r.Accepted != 2 || r.Results != 2 || r.Values != 4 || r.Undone != 0 {
		t.Errorf("report %+v", r)
	}
}

func sameValues(t *testing.T, got, want []audit.Value) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b audit.Value) bool {
		return a.Name == b.Name && a.Salt == b.Salt && bytes.Equal(a.Bytes, b.Bytes)
	}) {
		t.Errorf("values %+v, want %+v", got, want)
	}
}

func testConflict(t *testing.T, s Store) {
	Append(t, s, "s_a", 0, Entry(t, "s_a", 1))
	for _, expected := range []uint64{0, 2, 7} {
		if _, err := s.Append(ctx, "s_a", expected, Entries(t, "s_a", expected+1, 1)); !errors.Is(err, audit.ErrConflict) {
			t.Errorf("expected %d: %v", expected, err)
		}
	}
	if _, err := s.Append(ctx, "s_b", 1, Entries(t, "s_b", 2, 1)); !errors.Is(err, audit.ErrConflict) {
		t.Errorf("a session that is not there: %v", err)
	}
	if r := Verify(t, s); r.Records != 1 {
		t.Errorf("%d records", r.Records)
	}
}

func testInvalid(t *testing.T, s Store) {
	for name, f := range map[string]func() (int64, error){
		"no entries":        func() (int64, error) { return s.Append(ctx, "s_a", 0, nil) },
		"zero entry":        func() (int64, error) { return s.Append(ctx, "s_a", 0, make([]audit.Entry, 1)) },
		"another session's": func() (int64, error) { return s.Append(ctx, "s_a", 0, Entries(t, "s_b", 1, 1)) },
		"wrong number":      func() (int64, error) { return s.Append(ctx, "s_a", 0, Entries(t, "s_a", 2, 1)) },
		"a gap": func() (int64, error) {
			return s.Append(ctx, "s_a", 0, []audit.Entry{Entry(t, "s_a", 1), Entry(t, "s_a", 3)})
		},
		"no session": func() (int64, error) { return s.Append(ctx, "", 0, Entries(t, "s_a", 1, 1)) },
	} {
		if _, err := f(); !errors.Is(err, audit.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := Verify(t, s); r.Records != 0 {
		t.Errorf("%d records", r.Records)
	}
}

func testBatch(t *testing.T, s Store) {
	Append(t, s, "s_a", 0, Entries(t, "s_a", 1, 4)...)
	if _, err := s.Append(ctx, "s_a", 3, Entries(t, "s_a", 4, 50)); !errors.Is(err, audit.ErrConflict) {
		t.Fatal(err)
	}
	if n, _ := s.Head(ctx, "s_a"); n != 4 {
		t.Errorf("head %d", n)
	}
	Append(t, s, "s_a", 4, Entries(t, "s_a", 5, 500)...)
	if r := Verify(t, s); r.Records != 504 {
		t.Errorf("%d records", r.Records)
	}
}

func testConcurrent(t *testing.T, s Store) {
	const clients, each = 64, 25
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[int64]bool{}
	for c := range clients {
		wg.Go(func() {
			id := fmt.Sprintf("s_%d", c)
			for n := uint64(1); n <= each; n++ {
				first, err := s.Append(ctx, id, n-1, Entries(t, id, n, 1))
				if err != nil {
					t.Errorf("%s %d: %v", id, n, err)
					return
				}
				mu.Lock()
				if seen[first] {
					t.Errorf("index %d was given twice", first)
				}
				seen[first] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if r := Verify(t, s); r.Records != clients*each || len(seen) != clients*each || r.Sessions != clients {
		t.Errorf("%d records, %d indexes", r.Records, len(seen))
	}
}

func testRace(t *testing.T, s Store) {
	const clients, rounds = 16, 20
	won := make([]int, rounds)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for n := uint64(0); n < rounds; n++ {
				_, err := s.Append(ctx, "s_a", n, Entries(t, "s_a", n+1, 1))
				switch {
				case err == nil:
					mu.Lock()
					won[n]++
					mu.Unlock()
				case !errors.Is(err, audit.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for n, w := range won {
		if w != 1 {
			t.Errorf("number %d was written %d times", n+1, w)
		}
	}
	if r := Verify(t, s); r.Records != rounds {
		t.Errorf("%d records", r.Records)
	}
}

func testCancelled(t *testing.T, s Store) {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Append(gone, "s_a", 0, Entries(t, "s_a", 1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	if n, _ := s.Head(ctx, "s_a"); n != 0 {
		t.Errorf("head %d", n)
	}
	v, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	_, vk := Key()
	if _, err := audit.Verify(gone, v, audit.VerifyOptions{Verifier: vk}); !errors.Is(err, context.Canceled) {
		t.Errorf("verify: %v", err)
	}
}

func unsynced(tb testing.TB, s audit.Store, session string, expected uint64, es ...audit.Entry) int64 {
	tb.Helper()
	first, err := s.AppendUnsynced(ctx, session, expected, es)
	if err != nil {
		tb.Fatal(err)
	}
	return first
}

func testUnsynced(t *testing.T, s Store) {
	if i := unsynced(t, s, "s_a", 0, Entries(t, "s_a", 1, 2)...); i != 0 {
		t.Errorf("first index %d", i)
	}
	if i := Append(t, s, "s_b", 0, Entry(t, "s_b", 1)); i != 2 {
		t.Errorf("index %d, want 2", i)
	}
	if i := unsynced(t, s, "s_b", 1, Entry(t, "s_b", 2)); i != 3 {
		t.Errorf("index %d, want 3", i)
	}
	if i := Append(t, s, "s_a", 2, Entries(t, "s_a", 3, 2)...); i != 4 {
		t.Errorf("index %d, want 4", i)
	}
	for _, expected := range []uint64{0, 3, 5} {
		if _, err := s.AppendUnsynced(ctx, "s_a", expected, Entries(t, "s_a", expected+1, 1)); !errors.Is(err, audit.ErrConflict) {
			t.Errorf("expected %d: %v", expected, err)
		}
	}
	if _, err := s.AppendUnsynced(ctx, "s_a", 4, nil); !errors.Is(err, audit.ErrInvalid) {
		t.Errorf("no entries: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.AppendUnsynced(gone, "s_a", 4, Entries(t, "s_a", 5, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
	for i, it := range Collect(t, s.Read(ctx, "s_a", 0)) {
		want := Entry(t, "s_a", uint64(i)+1)
		if it.N != want.N() || !bytes.Equal(it.Leaf, want.Leaf()) {
			t.Errorf("item %d is %+v", i, it)
		}
		sameValues(t, it.Values, want.Values())
	}
	if got := Collect(t, s.Heads(ctx)); !slices.Equal(got, []audit.Head{{Session: "s_a", N: 4, Index: 5}, {Session: "s_b", N: 2, Index: 3}}) {
		t.Errorf("heads %+v", got)
	}
	if r := Verify(t, s); r.Records != 6 || r.Values != 4 {
		t.Errorf("%+v", r)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendUnsynced(ctx, "s_a", 4, Entries(t, "s_a", 5, 1)); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func testUnsyncedRace(t *testing.T, s Store) {
	const clients, rounds = 8, 20
	won := make([]int, rounds)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for c := range clients {
		do := s.Append
		if c%2 == 0 {
			do = s.AppendUnsynced
		}
		wg.Go(func() {
			own := fmt.Sprintf("s_%d", c)
			for n := uint64(0); n < rounds; n++ {
				if _, err := do(ctx, own, n, Entries(t, own, n+1, 1)); err != nil {
					t.Error(err)
					return
				}
				_, err := do(ctx, "s_all", n, Entries(t, "s_all", n+1, 1))
				switch {
				case err == nil:
					mu.Lock()
					won[n]++
					mu.Unlock()
				case !errors.Is(err, audit.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for n, w := range won {
		if w != 1 {
			t.Errorf("number %d was written %d times", n+1, w)
		}
	}
	if r := Verify(t, s); r.Records != (clients+1)*rounds || r.Sessions != clients+1 {
		t.Errorf("%+v", r)
	}
}

func testUnsyncedSigned(t *testing.T, s Store) {
	for n := range uint64(3 * Every) {
		unsynced(t, s, "s_a", n, Entry(t, "s_a", n+1))
	}
	if r := Verify(t, s); r.Signed != r.Size {
		t.Errorf("%d of %d signed", r.Signed, r.Size)
	}
	msg, err := s.Checkpoint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, vk := Key()
	if c, err := audit.OpenCheckpoint(msg, vk); err != nil || c.Size != 3*Every {
		t.Errorf("%+v, %v", c, err)
	}
}

func testReopenUnsynced(t *testing.T, open Opener) {
	dir := t.TempDir()
	for round := range uint64(3) {
		s := open(t, dir)
		if n, err := s.Head(ctx, "s_a"); n != 2*round || err != nil {
			t.Fatalf("head %d, %v", n, err)
		}
		unsynced(t, s, "s_a", 2*round, Entries(t, "s_a", 2*round+1, 2)...)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir)
	defer s.Close()
	if r := Verify(t, s); r.Records != 6 || r.Signed != 6 {
		t.Errorf("%+v", r)
	}
}
