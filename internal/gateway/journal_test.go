package gateway

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/storetest/mapstore"
)

// TestAlteredFailsWhatIsQueued: what waits in a session's queue when the session
// turns out to be altered is answered, and nothing goes on in it.
func TestAlteredFailsWhatIsQueued(t *testing.T) {
	ctx, st := t.Context(), mapstore.New(nil)
	defer st.Close()
	ss := newSessions(Options{Store: st}, newEvents(nil))
	_, h, err := ss.OpenSession(ctx, "somebody", downstream.CarrierEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ss.get(ctx, h.PublicID())
	if err != nil {
		t.Fatal(err)
	}
	var rec *receipt
	if err := ss.with(s, func() (err error) {
		rec, err = ss.write(s, processEnd, audit.KindDecision, ss.now(), struct{}{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-rec.done:
		t.Fatal("the decision about a read was written without its result")
	default:
	}
	ss.altered(s, &audit.AlteredError{Session: s.id, N: 1, Fault: audit.ValueMissing})
	ran := false
	if err := ss.with(s, func() error { ran = true; return nil }); !errors.Is(err, audit.ErrAltered) || ran {
		t.Errorf("the session goes on: %v %v", err, ran)
	}
	if err := rec.wait(); !errors.Is(err, audit.ErrAltered) { // hangs where nobody answers
		t.Errorf("what was queued: %v", err)
	}
	if s.whyHalted() == nil {
		t.Error("the session is not halted")
	}
}

// slowStore yields no record until it is let go, and counts who reads.
type slowStore struct {
	Store
	reads atomic.Int32
	begun chan struct{}
	let   chan struct{}
}

func (st *slowStore) Read(ctx context.Context, session string, n uint64) iter.Seq2[audit.Item, error] {
	if st.reads.Add(1) == 1 {
		close(st.begun)
	}
	return func(yield func(audit.Item, error) bool) {
		select {
		case <-st.let:
		case <-ctx.Done():
			yield(audit.Item{}, ctx.Err())
			return
		}
		for it, err := range st.Store.Read(ctx, session, n) {
			if !yield(it, err) {
				return
			}
		}
	}
}

// TestFoldOutlivesItsCaller: a session that takes longer to fold than a client waits is folded
// once all the same, for all who ask, and is there when they ask again.
func TestFoldOutlivesItsCaller(t *testing.T) {
	inner := mapstore.New(nil)
	defer inner.Close()
	first := newSessions(Options{Store: inner}, newEvents(nil))
	_, h, err := first.OpenSession(t.Context(), "somebody", downstream.CarrierEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	first.end()
	for _, ends := range []bool{false, true} {
		st := &slowStore{Store: inner, begun: make(chan struct{}), let: make(chan struct{})}
		ss := newSessions(Options{Store: st}, newEvents(nil))
		hurried, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := ss.get(hurried, h.PublicID())
			left <- err
		}()
		<-st.begun
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left was answered %v", err)
		}
		waits := make(chan error, 2)
		for range 2 {
			go func() {
				s, err := ss.get(t.Context(), h.PublicID())
				if err == nil && s.evidence == nil {
					err = errors.New("no evidence")
				}
				waits <- err
			}()
		}
		if ends {
			ss.end()
		} else {
			close(st.let)
		}
		for range 2 {
			if err := <-waits; (err != nil) != ends {
				t.Errorf("the gateway ends: %v; who waited: %v", ends, err)
			}
		}
		ss.end()
		if n := st.reads.Load(); n != 1 {
			t.Errorf("folded %d times", n)
		}
	}
}
