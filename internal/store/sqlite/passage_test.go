package sqlite

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
)

// TestPassage: what is read in pieces are the records of the moment when that began. Whoever uses the
// log meanwhile empties its write-ahead log, and erases: a Snapshot keeps him from that.
func TestPassage(t *testing.T) {
	const each = pieceItems + pieceItems/2
	ctx, dir := context.Background(), t.TempDir()
	s := openWith(t, dir, storetest.Every)
	defer s.Close()
	heads := map[string]uint64{}
	more := func(session string, n uint64) {
		t.Helper()
		storetest.Append(t, s, session, heads[session], storetest.Entries(t, session, heads[session]+1, n)...)
		heads[session] += n
	}
	folded := func() {
		t.Helper()
		if err := s.fold(ctx, ending{keep: true}); err != nil {
			t.Fatal(err)
		}
	}
	more("s_a", each)
	more("s_b", each)
	folded()
	if _, err := s.conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	for _, pieces := range []bool{false, true} {
		more("s_b", 5) // in the journal
		r, err := OpenReadOnly(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		take := r.Snapshot
		if pieces {
			take = r.Passage
		}
		v, err := take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		was := heads["s_b"]
		at := int64(0)
		for it, err := range v.Scan(ctx, 0) {
			if err != nil || it.Index != at {
				t.Fatalf("record %d stands at %d: %v", it.Index, at, err)
			}
			if at++; at%pieceItems != 10 {
				continue
			}
			more("s_b", 1)
			folded()
			err := s.Erase(ctx, "s_a", uint64(at/pieceItems)+1)
			if emptied := err == nil; emptied != pieces || !emptied && !errors.Is(err, errRead) {
				t.Errorf("in pieces %v, at %d: %v", pieces, at, err)
			}
		}
		if at != v.Size() || r.Disturbed() != pieces {
			t.Errorf("%d records of %d", at, v.Size())
		}
		n := uint64(0)
		for it, err := range v.(interface {
			audit.Snapshot
			Read(context.Context, string, uint64) iter.Seq2[audit.Item, error]
		}).Read(ctx, "s_b", 1) {
			if err != nil || it.N != n+1 {
				t.Fatalf("number %d stands at %d: %v", it.N, n, err)
			}
			n++
		}
		if n != was {
			t.Errorf("%d of %d", n, was)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}
