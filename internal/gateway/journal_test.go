package gateway

import (
	"errors"
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
		rec, err = ss.write(s, withNext, audit.KindDecision, ss.now(), struct{}{})
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
