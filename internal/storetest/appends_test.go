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

// ways are the two ways to append.
func ways(s Store) map[string]func(context.Context, string, uint64, []audit.Entry) (int64, error) {
	return map[string]func(context.Context, string, uint64, []audit.Entry) (int64, error){"synced": s.Append, "unsynced": s.AppendUnsynced}
}

// testRefused: what does not follow on is a conflict, what is no batch of the
// session is invalid, and nothing of either stays; so it is of a call that was
// cancelled.
func testRefused(t *testing.T, s Store) {
	Append(t, s, "s_a", 0, Entry(t, "s_a", 1))
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for way, do := range ways(s) {
		for name, c := range map[string]struct {
			ctx      context.Context
			session  string
			expected uint64
			entries  []audit.Entry
			err      error
		}{
			"again":             {ctx, "s_a", 0, Entries(t, "s_a", 1, 1), audit.ErrConflict},
			"ahead":             {ctx, "s_a", 2, Entries(t, "s_a", 3, 1), audit.ErrConflict},
			"far ahead":         {ctx, "s_a", 7, Entries(t, "s_a", 8, 1), audit.ErrConflict},
			"no such session":   {ctx, "s_b", 1, Entries(t, "s_b", 2, 1), audit.ErrConflict},
			"no entries":        {ctx, "s_a", 1, nil, audit.ErrInvalid},
			"zero entry":        {ctx, "s_a", 1, make([]audit.Entry, 1), audit.ErrInvalid},
			"another session's": {ctx, "s_a", 1, Entries(t, "s_b", 2, 1), audit.ErrInvalid},
			"wrong number":      {ctx, "s_a", 1, Entries(t, "s_a", 3, 1), audit.ErrInvalid},
			"a gap":             {ctx, "s_a", 1, []audit.Entry{Entry(t, "s_a", 2), Entry(t, "s_a", 4)}, audit.ErrInvalid},
			"no session":        {ctx, "", 0, Entries(t, "s_a", 1, 1), audit.ErrInvalid},
			"cancelled":         {gone, "s_a", 1, Entries(t, "s_a", 2, 1), context.Canceled},
		} {
			if _, err := do(c.ctx, c.session, c.expected, c.entries); !errors.Is(err, c.err) {
				t.Errorf("%s, %s: %v", name, way, err)
			}
		}
	}
	if n, _ := s.Head(ctx, "s_a"); n != 1 {
		t.Errorf("head %d", n)
	}
	if r := Verify(t, s); r.Records != 1 {
		t.Errorf("%d records", r.Records)
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

// testConcurrent: 64 goroutines, half of them without waiting for the disk, each
// with a session of its own and all of them with another; no index is given
// twice, and each number of what they share has one winner.
func testConcurrent(t *testing.T, s Store) {
	const clients, each = 64, 25
	var mu sync.Mutex
	seen, won := map[int64]bool{}, make([]int, each)
	var wg sync.WaitGroup
	for c := range clients {
		do := s.Append
		if c%2 == 0 {
			do = s.AppendUnsynced
		}
		wg.Go(func() {
			own := fmt.Sprintf("s_%d", c)
			for n := range uint64(each) {
				for _, id := range []string{own, "s_all"} {
					index, err := do(ctx, id, n, Entries(t, id, n+1, 1))
					if id != own && errors.Is(err, audit.ErrConflict) {
						continue
					} else if err != nil {
						t.Errorf("%s %d: %v", id, n, err)
						return
					}
					mu.Lock()
					if seen[index] {
						t.Errorf("index %d was given twice", index)
					}
					if seen[index] = true; id != own {
						won[n]++
					}
					mu.Unlock()
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
	if r := Verify(t, s); r.Records != (clients+1)*each || len(seen) != (clients+1)*each || r.Sessions != clients+1 {
		t.Errorf("%d records, %d indexes, %d sessions", r.Records, len(seen), r.Sessions)
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
