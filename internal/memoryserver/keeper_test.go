package memoryserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

func policy(tb testing.TB) *memory.Policy {
	tb.Helper()
	return memory.Builtin()
}

// ticking is a clock that is a second later each time.
func ticking() func() time.Time {
	var n atomic.Int64
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return func() time.Time { return start.Add(time.Duration(n.Add(1)) * time.Second) }
}

func open(tb testing.TB, st audit.Store) *Keeper {
	tb.Helper()
	k, err := Open(tb.Context(), Options{Store: st, Namespace: "default", Policy: policy(tb), Mode: memory.Hardened, Clock: ticking()})
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// said is a proposal that records what a tool of the session returned.
func said(principal, id, raw string) (memory.Context, writ.Proposal) {
	return memory.Context{
			Principal: principal, Session: "s_test", Task: "s_test",
			Captured: []memory.Captured{{Ref: "ev1", Evidence: "s_test/ev1", Label: writ.System, Source: "toy/" + principal, Verbatim: true}},
		}, writ.Proposal{ToolName: memory.ToolRecordObservation,
			Payload: []byte(fmt.Sprintf(`{"observation_id":%q,"raw_payload":%q}`, id, raw))}
}

func digest(tb testing.TB, k *Keeper) (d string) {
	tb.Helper()
	if err := k.Read(tb.Context(), func(s *memory.State, _ time.Time) { d = s.Digest() }); err != nil {
		tb.Fatal(err)
	}
	return d
}

// agree holds that keepers, and one that reads the log anew, have one state.
func agree(t *testing.T, st audit.Store, want int, ks ...*Keeper) {
	t.Helper()
	anew := open(t, st)
	for _, k := range append(ks, anew) {
		if got, fresh := digest(t, k), digest(t, anew); got != fresh || got == "" {
			t.Errorf("a state is %s, the log says %s", got, fresh)
		}
	}
	head, err := st.Head(t.Context(), LogOf("default"))
	if err != nil || head != uint64(want) {
		t.Errorf("%d records, want %d (%v)", head, want, err)
	}
}

// TestKeepers: whatever is proposed at the same time through several keepers
// of one log is decided one after the other, and none of it is lost.
func TestKeepers(t *testing.T) {
	signer, verifier := storetest.Key()
	for name, st := range map[string]func() audit.Store{
		"map": func() audit.Store { return mapstore.New(signer) },
		"sqlite": func() audit.Store {
			s, err := sqlite.Open(t.TempDir(), sqlite.Options{Signer: signer, Verifier: verifier})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := st()
			defer st.Close()
			const keepers, writers, each = 3, 4, 6
			var ks []*Keeper
			for range keepers {
				ks = append(ks, open(t, st))
			}
			ids := sync.Map{}
			var all sync.WaitGroup
			for i := range keepers * writers {
				all.Go(func() {
					for n := range each {
						c, p := said(fmt.Sprintf("agent-%d", i), fmt.Sprintf("o%d", n), fmt.Sprintf("value %d", n))
						o, err := ks[i%keepers].Propose(t.Context(), c, p)
						if err != nil || o.Status != writ.Accepted {
							t.Errorf("%v %+v", err, o)
							return
						}
						if _, twice := ids.LoadOrStore(o.Decision, true); twice {
							t.Errorf("two decisions are %s", o.Decision)
						}
						// A retry is no second observation.
						if o, err = ks[(i+1)%keepers].Propose(t.Context(), c, p); err != nil || o.Status != writ.Accepted {
							t.Errorf("again: %v %+v", err, o)
						}
					}
				})
			}
			all.Wait()
			agree(t, st, 1+2*keepers*writers*each, ks...)
		})
	}
}

// TestRejectedIsRecorded: a proposal that is refused is an event, and changes
// nothing but the count of events.
func TestRejectedIsRecorded(t *testing.T) {
	signer, _ := storetest.Key()
	st := mapstore.New(signer)
	k := open(t, st)
	c, p := said("agent", "o1", "value")
	p.Payload = []byte(`{"observation_id":"o1","raw_payload":"value","trust":"operator"}`)
	o, err := k.Propose(t.Context(), c, p)
	if err != nil || o.Status != writ.Rejected || o.Rejection.Code != writ.DirectWrite {
		t.Fatalf("%v %+v", err, o)
	}
	agree(t, st, 2, k)
}

// failing is a store whose appends fail on demand, before or after they were
// made.
type failing struct {
	audit.Store
	before, after atomic.Bool
}

var errDisk = errors.New("the disk is full")

func (f *failing) Append(ctx context.Context, session string, expected uint64, entries []audit.Entry) (int64, error) {
	if f.before.Load() {
		return 0, errDisk
	}
	first, err := f.Store.Append(ctx, session, expected, entries)
	if f.after.Load() {
		return 0, errDisk
	}
	return first, err
}

// TestNotRecorded: what could not be written did not happen, and when it was
// written all the same, the state is again what the log says.
func TestNotRecorded(t *testing.T) {
	signer, _ := storetest.Key()
	st := &failing{Store: mapstore.New(signer)}
	k := open(t, st)
	propose := func(id string) error {
		c, p := said("agent", id, "value "+id)
		_, err := k.Propose(t.Context(), c, p)
		return err
	}
	if err := propose("o1"); err != nil {
		t.Fatal(err)
	}
	st.before.Store(true)
	if err := propose("o2"); !errors.Is(err, errNotRecorded) {
		t.Fatalf("got %v", err)
	}
	st.before.Store(false)
	agree(t, st, 2, k)
	st.after.Store(true)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := propose(fmt.Sprintf("p%d", i)); !errors.Is(err, errNotRecorded) {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	st.after.Store(false)
	if err := propose("o3"); err != nil {
		t.Fatal(err)
	}
	agree(t, st, 11, k)
}

// TestForeignRecord: a record that is no event of this memory stops the
// reading, and is named.
func TestForeignRecord(t *testing.T) {
	signer, _ := storetest.Key()
	st := mapstore.New(signer)
	e, err := audit.Seal(audit.Record{Kind: audit.KindOpen, Session: LogOf("default"), N: 1, Time: time.Unix(1, 0), Data: []byte(`{"v":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Append(t.Context(), LogOf("default"), 0, []audit.Entry{e}); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), Options{Store: st, Namespace: "default", Policy: policy(t), Mode: memory.Local})
	if err == nil || !strings.Contains(err.Error(), "record s_memory-default/1:") {
		t.Errorf("got %v", err)
	}
}

// A decision that panics is none: who asked for it is told, and all others go on.
func TestDecisionThatFails(t *testing.T) {
	signer, _ := storetest.Key()
	k := open(t, mapstore.New(signer))
	if _, err := k.do(t.Context(), func(*memory.State, time.Time) memory.Decision { panic("as nothing should") }); !errors.Is(err, errNotRecorded) {
		t.Fatalf("%v", err)
	}
	c, p := said("agent-1", "o1", "it goes on")
	if o, err := k.Propose(t.Context(), c, p); err != nil || o.Rejection != nil {
		t.Fatalf("%v %+v", err, o)
	}
}
