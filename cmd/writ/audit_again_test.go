package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
)

// TestPutAway: a session that is let go for want of room, and has more records, is decided again
// from its first: what is counted, and the first record that does not follow, are the same.
func TestPutAway(t *testing.T) {
	const sessions, records = 12, 9
	verified := func(t *testing.T, bad ...[2]uint64) *verifyReport {
		signer, verifier := storetest.Key()
		st, err := sqlite.Open(t.TempDir(), sqlite.Options{Signer: signer, Verifier: verifier})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		for n := uint64(1); n <= records; n++ {
			for s := range uint64(sessions) {
				id := fmt.Sprintf("s_%d", s)
				e := storetest.Entry(t, id, n)
				if n%2 == 0 {
					data := `{"engine":"another","status":"accepted"}`
					for _, b := range bad {
						if b == [2]uint64{s, n} {
							data = `{"status":"accepted"}`
						}
					}
					e = storetest.Seal(t, audit.Record{Session: id, N: n, Kind: audit.KindDecision, Time: storetest.Epoch, Data: []byte(data)})
				}
				storetest.Append(t, st, id, n-1, e)
			}
		}
		snap, err := st.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		rep, err := decidedAgain(context.Background(), wholeLog(t.Context(), snap), st, snap.(reader), audit.VerifyOptions{Verifier: verifier}, func(int64) {})
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	had := roomForSessions
	defer func() { roomForSessions = had }()
	for _, room := range []int64{had, 40 << 10, 0} {
		roomForSessions = room
		if rep := verified(t); rep.Problem != nil || rep.Skipped != sessions*(records/2) || rep.Records != sessions*records {
			t.Errorf("room %d: %+v, %v", room, rep.Tally, rep.Problem)
		}
		// The second comes first in the log.
		if p := verified(t, [2]uint64{1, 8}, [2]uint64{7, 4}, [2]uint64{3, 6}).Problem; p == nil || p.Index != 3*sessions+7 || p.Session != "s_7" || p.Fault != audit.ReplayDiffers {
			t.Errorf("room %d: the first is %v", room, p)
		}
	}
}

// TestRedactedMeanwhile: a log that others use is read in pieces. What they redact meanwhile is not
// found missing, and what is gone by a redaction that no verified record says is.
func TestRedactedMeanwhile(t *testing.T) {
	const records = 4000 // more than is read ahead
	for name, recorded := range map[string]bool{"redacted": true, "gone": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			os.Chmod(dir, 0o700)
			signer, verifier := storetest.Key()
			st, err := sqlite.Open(dir, sqlite.Options{Signer: signer, Verifier: verifier})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			entry := func(session string, n uint64) audit.Entry {
				r := audit.Record{Session: session, N: n, Kind: audit.KindEvent, Time: storetest.Epoch}
				if n == 1 {
					r.Kind = audit.KindOpen
				}
				return storetest.Seal(t, r, storetest.Value(session, n, "key", "a value"))
			}
			var all []audit.Entry
			for n := range uint64(records) {
				all = append(all, entry("s_a", n+1))
			}
			storetest.Append(t, st, "s_a", 0, all...)
			storetest.Append(t, st, "s_b", 0, entry("s_b", 1), entry("s_b", 2))
			if _, err := st.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			runs := 0
			rep, err := verifyLog(t.Context(), dir, verifier, nil, func(i, _ int64) {
				if i != 0 {
					return
				}
				if runs++; runs > 1 {
					return
				}
				if recorded {
					storetest.Append(t, st, "s_b", 2, storetest.Seal(t, audit.Record{Session: "s_b", N: 3, Kind: audit.KindRedact, Time: storetest.Epoch}))
				}
				if err := st.Erase(t.Context(), "s_b", 1, 2); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if found := rep.Problem != nil; runs != 2 || found == recorded {
				t.Errorf("in %d runs %+v %v", runs, rep.Tally, rep.Problem)
			}
		})
	}
}
