package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/provenance"
)

// A session that is not in memory is folded from its records, which takes some 40 µs
// for each: its decisions are made again. So now and then what it comes to is kept in a
// snapshot, from which the next process goes on. That is no evidence: nothing that
// verifies reads one.

// keptSession is what a snapshot holds: what a Replayer comes to at a record.
type keptSession struct {
	Evidence       *gate.Session
	Open           openData
	Opened, Active time.Time
	Conversation   string
	Own            string
	Screen         [sha256.Size]byte // the input policy that its turns passed
	Index          *evidenceIndex    // as far as it was read; nil where somebody reads it now
}

// leastKept is after how many records the first snapshot of a session is written.
var leastKept uint64 = 1000

// everyKept is how many records may come after a snapshot at n before the next, in a
// session of so many facts: what a start folds and what writing one costs are both bounded.
func everyKept(n uint64, facts int) uint64 { return max(leastKept, n/50, uint64(facts)/20) }

// screenID names an input policy, zero for none.
func screenID(s *screen.Screen) (id [sha256.Size]byte) {
	if s != nil {
		id = s.ID()
	}
	return id
}

// keepAt writes a snapshot where one is due, beside what goes on: behind a result, for
// the result of a call before it needs the fold of all. A failure costs the next start
// some time and nothing else. The caller holds s.mu, and nothing is queued.
func (ss *sessions) keepAt(s *session) {
	if ss.snapshots == nil || s.evidence == nil || s.next < s.kept+everyKept(s.kept, s.evidence.Facts()) || s.written.N != s.next ||
		!s.answered || s.keeping || s.unscreened || s.closed || s.halted != nil || s.outdated != nil {
		return
	}
	s.kept = s.next
	k := keptSession{Evidence: s.evidence, Open: s.open, Opened: s.opened, Active: s.active, Conversation: s.conversation, Own: s.own, Screen: s.screened}
	if s.index.mu.TryLock() { // its order is the other
		k.Index = &s.index
		defer s.index.mu.Unlock()
	}
	var body bytes.Buffer
	if err := snapshot.Encode(&body, &k); err != nil {
		ss.events.log.Error("a session's snapshot was not made", "session", s.id, "error", err)
		return
	}
	at := s.written
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.lasting.Err() != nil {
		return
	}
	s.keeping = true
	ss.folds.Go(func() {
		err := ss.snapshots.Write(s.id, at, func(w io.Writer) error { _, err := w.Write(body.Bytes()); return err })
		if err != nil || ss.isOver(s.id) {
			ss.drop(s.id)
		}
		s.mu.Lock()
		s.keeping = false
		s.mu.Unlock()
	})
}

func (ss *sessions) drop(id string) {
	if err := ss.snapshots.Drop(id); err != nil {
		ss.events.log.Error("a session's snapshot cannot be removed", "session", id)
	}
}

// sweep takes the snapshots of sessions away that have ended.
func (ss *sessions) sweep(ctx context.Context) {
	for _, id := range ss.snapshots.Sequences() {
		if !isSession(id) || ctx.Err() != nil {
			continue
		}
		reg, err := ss.store.SessionByID(ctx, id)
		over := errors.Is(err, audit.ErrNotFound)
		if err == nil {
			over, _ = HasEnded(ctx, ss.store, reg, ss.now())
		}
		if over {
			ss.drop(id)
		}
	}
}

// goOn sets a Replayer to the newest snapshot of a session, and returns where that
// stands; there may be none that counts. The caller holds s.mu or is the only one that
// knows s.
func (ss *sessions) goOn(ctx context.Context, s *session, r *Replayer) (at snapshot.At, ok bool) {
	at, body, ok := ss.snapshots.Read(s.id)
	if !ok {
		return at, false
	}
	b, err := ss.store.Value(ctx, s.id, 1, valueKey)
	var key [32]byte
	if err != nil || copy(key[:], b) < len(key) {
		return at, false
	}
	k := keptSession{Evidence: gate.NewSession(s.id, key, provenance.NoCaps)}
	if snapshot.Decode(body, &k) != nil || k.Screen != r.screenedBy {
		return at, false
	}
	r.session, r.data, r.opened, r.conversation, r.own, r.from, r.index = k.Evidence, k.Open, k.Opened, k.Conversation, k.Own, at.N, k.Index
	return at, true
}

// isOver reports whether a session ended, after which nobody drops what is written
// of it. Of one that cannot be read it may have.
func (ss *sessions) isOver(id string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	n, err := ss.store.Head(ctx, id)
	if err != nil {
		return true
	}
	_, closed, err := closedBy(ctx, ss.store, id, n)
	return closed || err != nil
}

// refold folds an outdated session anew, once all that was queued is written or
// has failed. The caller holds s.mu.
func (ss *sessions) refold(s *session) bool {
	ss.drain(s)
	if s.evidence == nil {
		return false // the next request opens the stream anew
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	if err := ss.restore(ctx, s); err != nil {
		ss.events.log.Error("a session could not be restored", "session", s.id, "error", err)
		return false
	}
	return true
}

// restore makes the session of its records, and closes it if they are not what
// was written. The caller holds s.mu or is the only one that knows s.
func (ss *sessions) restore(ctx context.Context, s *session) error {
	r, err := ss.replay(ctx, s)
	if errors.Is(err, audit.ErrAltered) {
		ss.alter(s, err)
	}
	if err != nil {
		return err
	}
	s.evidence, s.outdated, s.halted, s.open, s.opened, s.conversation, s.own = r.session, nil, r.halted, r.data, r.opened, r.conversation, r.own
	if s.evidence != nil {
		s.evidence.Bound(ss.caps)
	}
	if r.index != nil && s.index.mu.TryLock() { // whoever has it reads it himself
		if s.index.read < r.index.read {
			s.index.read, s.index.lapse, s.index.calls, s.index.all = r.index.read, r.index.lapse, r.index.calls, r.index.all
		}
		s.index.mu.Unlock()
	}
	s.generation++
	s.screened, s.unscreened = r.screenedBy, false
	return nil
}

// replay folds the session's records, from its snapshot on where that counts.
func (ss *sessions) replay(ctx context.Context, s *session) (*Replayer, error) {
	r := ss.newReplayer()
	if at, ok := ss.goOn(ctx, s, r); ok {
		err := ss.steps(ctx, s, r, at)
		if !errors.Is(err, errFromStart) {
			s.kept = at.N
			return r, err
		}
		r = ss.newReplayer()
	}
	s.kept = 0
	return r, ss.steps(ctx, s, r, snapshot.At{})
}

func (ss *sessions) newReplayer() *Replayer {
	r := ss.recorded.Replayer()
	r.screen = ss.screen.Load()
	r.screenedBy = screenID(r.screen)
	return r
}

// errFromStart says that a snapshot is not enough to go on from.
var errFromStart = errors.New("the session has to be folded from its first record")

// steps folds the records of a session behind those that r has folded, the last of which
// is from.
func (ss *sessions) steps(ctx context.Context, s *session, r *Replayer, from snapshot.At) error {
	s.next = 0
	for rec, err := range recordsFrom(ctx, ss.store, s.id, max(from.N, 1)) {
		if err != nil {
			return err
		}
		s.next, s.active, s.answered = rec.N, rec.Time, rec.Kind == audit.KindResult
		s.written = snapshot.At{N: rec.N, Leaf: sha256.Sum256(rec.item.Leaf)}
		if rec.N == from.N {
			if s.written.Leaf != from.Leaf {
				return errFromStart
			}
			continue
		}
		if rec.Kind == audit.KindClose {
			return downstream.ErrNoSession
		}
		if err := r.Step(ctx, rec.Record, &rec.item); err != nil {
			return err
		}
		if r.redacted {
			return downstream.ErrNoSession
		}
	}
	switch {
	case s.next == 0 && from.N > 0:
		return errFromStart
	case s.next == 0:
		return errors.New("the session has no records")
	case r.Blind():
		return errors.New("the session is of another engine: what it saw vouches for nothing any more. `writ session close` ends it")
	}
	return nil
}
