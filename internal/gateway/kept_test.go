package gateway

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/writ-project/writ/internal/snapshot"
)

// In these tests a snapshot is due after every result.
func init() {
	if !raced {
		leastKept = 1
	}
}

// KeepAlways has snapshots due so in one test, with the race detector too.
func KeepAlways(t *testing.T) {
	was := leastKept
	leastKept = 1
	t.Cleanup(func() { leastKept = was })
}

// Kept compares every session that has a snapshot, folded from that on, with what it comes
// to from its first record, and returns how many there are.
func (g *Gateway) Kept(ctx context.Context) (n int, err error) {
	ss := g.sessions
	if ss.snapshots == nil {
		return 0, nil
	}
	ss.folds.Wait() // one is written beside what goes on
	for _, id := range ss.snapshots.Sequences() {
		from, whole := newSession(id, ss.now()), newSession(id, ss.now())
		r := ss.newReplayer()
		at, ok := ss.goOn(ctx, from, r)
		if !ok || ss.steps(ctx, from, r, at) != nil {
			continue // it is over, or has to be folded from its first record
		}
		all := ss.newReplayer()
		if err := ss.steps(ctx, whole, all, snapshot.At{}); err != nil {
			return n, fmt.Errorf("%s: %w", id, err)
		}
		r.session.Bound(ss.caps)
		all.session.Bound(ss.caps)
		if !reflect.DeepEqual(r.session, all.session) {
			return n, fmt.Errorf("%s from record %d on: %+v\nfrom its first: %+v", id, at.N, r.session, all.session)
		}
		if r.data != all.data || !r.opened.Equal(all.opened) || r.conversation != all.conversation || from.written != whole.written || from.active != whole.active || from.answered != whole.answered {
			return n, fmt.Errorf("%s from record %d on: %+v %+v\nfrom its first: %+v %+v", id, at.N, r, from, all, whole)
		}
		if r.index != nil {
			index := evidenceIndex{}
			for rec, err := range recordsFrom(ctx, ss.store, id, 1) {
				if err != nil || rec.N > r.index.read {
					break
				}
				index.add(id, rec.Record, &rec.item)
			}
			if index.lapse != r.index.lapse || len(index.calls)+len(r.index.calls) > 0 && !reflect.DeepEqual(index.calls, r.index.calls) || !reflect.DeepEqual(index.all, r.index.all) {
				return n, fmt.Errorf("%s, what may be captured, from record %d on: %+v\nfrom its first: %+v", id, at.N, r.index, &index)
			}
		}
		n++
	}
	return n, nil
}
