package main

import (
	"context"
	"fmt"
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
