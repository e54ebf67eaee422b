package gateway_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
)

const notRecorded = `POLICY_VIOLATION policy.not_recorded ""`

// TestRecordFails: what cannot be recorded does not happen. An act's decision
// that cannot be written means the server hears of nothing; a read whose
// decision or result cannot be written is withheld. When the store works again
// so does the gateway, without a restart, and nothing of what failed vouches.
func TestRecordFails(t *testing.T) {
	for k := range kinds {
		t.Run(kinds[k].name, func(t *testing.T) {
			ctx := testContext(t)
			y := newToy()
			st := &brokenStore{Store: onSQLite(t)}
			r := newRig(t, st, policy(t, toyPolicy), y.config(t, k%2 == 0, k < 2))
			w := r.connect(ctx, k)
			passed(t, w.call(ctx, "list_items", `{}`))

			every := func(string, []audit.Entry) bool { return true }
			st.failWhen(every)
			for range 2 {
				a := w.call(ctx, "delete_item", `{"id":"item-17"}`)
				refusal(t, a, notRecorded)
				checkRefusal(t, a)
				refusal(t, w.call(ctx, "delete_item", `{"id":"item-99"}`), notRecorded)
				refusal(t, w.call(ctx, "list_items", `{}`), notRecorded)
				refusal(t, w.call(ctx, "no_such_tool", `{}`), notRecorded)
			}
			if gone := y.gone(); len(gone) != 0 {
				t.Fatalf("an unrecorded act reached the server: %q", gone)
			}
			st.failWhen(nil)
			refusal(t, w.call(ctx, "delete_item", `{"id":"item-99"}`), unseen)
			passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
			if gone := y.gone(); !slices.Equal(gone, []string{"item-17"}) {
				t.Errorf("deleted %q", gone)
			}
		})
	}
}

// TestResultNotRecorded: a read whose decision was written and whose result was
// not is withheld, and vouches for nothing, then and after recovery.
func TestResultNotRecorded(t *testing.T) {
	ctx := testContext(t)
	st := &brokenStore{Store: onSQLite(t)}
	r, y := toyRig(t, st)
	w := overHTTP(ctx, r, true, web{session: r.mint()})
	results := func(_ string, es []audit.Entry) bool {
		return slices.ContainsFunc(es, func(e audit.Entry) bool { return kindOf(t, e) == audit.KindResult })
	}
	st.failWhen(results)
	refusal(t, w.call(ctx, "list_items", `{}`), notRecorded)
	st.failWhen(nil)
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-17"}`), unseen)

	// An act that was made and whose result cannot be recorded: its outcome is
	// unknown, which is no refusal.
	passed(t, w.call(ctx, "list_items", `{}`))
	st.failWhen(results)
	a := w.call(ctx, "delete_item", `{"id":"item-17"}`)
	if text(a.err, "code") != "-32603" {
		t.Errorf("got %s %s", a.result, a.err)
	}
	st.failWhen(nil)
	passed(t, w.call(ctx, "delete_item", `{"id":"item-18"}`))
	if gone := y.gone(); !slices.Equal(gone, []string{"item-17", "item-18"}) {
		t.Errorf("deleted %q", gone)
	}
	rep, _ := verify(t, st)
	// The act's; and the read's, unless it shared the append that failed.
	if rep.Undone != 1 && rep.Undone != 2 {
		t.Errorf("%d decisions have no known end", rep.Undone)
	}
}

// TestOpenFails: a session that cannot be recorded is not opened, and requests
// without one are refused, until the store works again.
func TestOpenFails(t *testing.T) {
	ctx := testContext(t)
	st := &brokenStore{Store: onMaps(t)}
	r, _ := toyRig(t, st)
	st.failWhen(func(string, []audit.Entry) bool { return true })
	none := overHTTP(ctx, r, true, web{})
	refusal(t, none.call(ctx, "list_items", `{}`), notRecorded)
	if _, _, err := createSession(ctx, r.gw, "somebody"); err == nil {
		t.Error("a session was opened")
	}
	for s, err := range st.ListSessions(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("session %s is registered", s.ID)
	}
	st.failWhen(nil)
	passed(t, none.call(ctx, "list_items", `{}`))
	passed(t, overHTTP(ctx, r, false, web{}).call(ctx, "list_items", `{}`))
}

// TestRecordFirst (L05): when an act arrives at the server, its decision is
// already in the store, with the evidence it rests on.
func TestRecordFirst(t *testing.T) {
	ctx := testContext(t)
	for _, open := range []struct {
		name string
		rig  func(t *testing.T) (*rig, *toy)
	}{
		{"maps", func(t *testing.T) (*rig, *toy) { return toyRig(t, onMaps(t)) }},
		{"sqlite", func(t *testing.T) (*rig, *toy) { return toyRig(t, onSQLite(t)) }},
	} {
		t.Run(open.name, func(t *testing.T) {
			r, y := open.rig(t)
			seen := 0
			y.deleting = func(_ context.Context, id string) {
				seen++
				decisions, results := 0, 0
				eachRecord(t, r.store, func(rec *audit.Record, it *audit.Item) {
					switch rec.Kind {
					case audit.KindDecision:
						if args := argumentsIn(it); text(rec.Data, "tool") == "delete_item" && text(rec.Data, "status") == "accepted" && text(args, "id") == id {
							decisions++
						}
					case audit.KindResult:
						results++
					}
				})
				if decisions != 1 || results != 1 {
					t.Errorf("at the server: %d decisions on this act, %d results", decisions, results)
				}
			}
			w := r.connect(ctx, 1)
			passed(t, w.call(ctx, "list_items", `{}`))
			passed(t, w.call(ctx, "delete_item", `{"id":"item-17"}`))
			if seen != 1 {
				t.Errorf("the act ran %d times", seen)
			}
		})
	}
}

// syncedStore knows which records are durable: those a waiting append has
// returned for, and all that were there before it.
type syncedStore struct {
	gateway.Store
	mu       sync.Mutex
	unsynced map[string]bool // a sequence and number, not yet durable
	synced   map[string]bool
}

func (s *syncedStore) wrote(es []audit.Entry, durable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range es {
		s.unsynced[fmt.Sprint(e.Session(), "/", e.N())] = true
	}
	if durable {
		maps.Copy(s.synced, s.unsynced)
		clear(s.unsynced)
	}
}

func (s *syncedStore) durable(session string, n uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced[fmt.Sprint(session, "/", n)]
}

func (s *syncedStore) Append(ctx context.Context, session string, expected uint64, es []audit.Entry) (int64, error) {
	first, err := s.Store.Append(ctx, session, expected, es)
	if err == nil {
		s.wrote(es, true)
	}
	return first, err
}

func (s *syncedStore) AppendUnsynced(ctx context.Context, session string, expected uint64, es []audit.Entry) (int64, error) {
	first, err := s.Store.AppendUnsynced(ctx, session, expected, es)
	if err == nil {
		s.wrote(es, false)
	}
	return first, err
}

// TestDurableFirst: when an act arrives at the server, the append that waits
// for the disk has returned for its decision and for everything before it. A
// read does not wait.
func TestDurableFirst(t *testing.T) {
	ctx := testContext(t)
	st := &syncedStore{Store: onMaps(t), unsynced: map[string]bool{}, synced: map[string]bool{}}
	r, y := toyRig(t, st)
	seen := 0
	y.deleting = func(_ context.Context, id string) {
		seen++
		eachRecord(t, r.store, func(rec *audit.Record, it *audit.Item) {
			if !st.durable(rec.Session, rec.N) {
				t.Errorf("%s: the server has it, and the %s record %s/%d is not durable", id, rec.Kind, rec.Session, rec.N)
			}
		})
	}
	w := r.connect(ctx, 1)
	for _, id := range []string{"item-17", "item-18"} {
		passed(t, w.call(ctx, "list_items", `{}`))
		passed(t, w.call(ctx, "delete_item", `{"id":"`+id+`"}`))
	}
	passed(t, w.call(ctx, "list_items", `{}`))
	if seen != 2 {
		t.Errorf("%d acts ran", seen)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.unsynced) == 0 {
		t.Error("reads wait for the disk too: the test shows nothing")
	}
}

// TestUnknownOutcome (P28, U08): a server that ends while an act runs leaves it with
// an unknown outcome, which the client is told and the log keeps; the act is
// not repeated by the gateway.
func TestUnknownOutcome(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", false)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, itemPolicy), up.config(false))
	w := r.connect(ctx, 1)
	up.reply(itemList)
	passed(t, w.call(ctx, "list_items", `{}`))
	up.take()
	up.during = func(received, func(string)) { up.hangUp() }
	a := w.call(ctx, "delete_item", `{"id":"item-17"}`)
	if a.err == nil {
		t.Errorf("answered %s", a.result)
	}
	if got := up.take(); len(got) != 1 {
		t.Errorf("the act reached the server %d times", len(got))
	}
	status := ""
	eachRecord(t, r.store, func(rec *audit.Record, _ *audit.Item) {
		if rec.Kind == audit.KindResult {
			status = text(rec.Data, "status")
		}
	})
	if status != "unknown" {
		t.Errorf("the act's end is recorded as %q", status)
	}
}

// TestLostDecision: the decision of a read is lost while the server works on it,
// and another call of the session goes on as soon as the store works again. The
// read is withheld, and no result stands in the log without its decision.
func TestLostDecision(t *testing.T) {
	ctx := testContext(t)
	st := &brokenStore{Store: onSQLite(t)}
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, st, policy(t, itemPolicy), up.config(true))
	w := overHTTP(ctx, r, false, web{})
	arrived, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	up.during = func(received, func(string)) {
		first.Do(func() {
			close(arrived)
			<-release
		})
	}
	up.reply(itemList)
	lost := make(chan struct{})
	var once sync.Once
	st.failWhen(func(string, []audit.Entry) bool {
		failed := false
		once.Do(func() { failed = true; close(lost) })
		return failed
	})
	read := make(chan answer)
	go func() { read <- w.call(ctx, "list_items", `{}`) }()
	<-arrived
	// The read's decision waits for its result, or for the next record.
	for { // until the session has seen that its record was lost
		if a := w.call(ctx, "delete_item", `{"id":"item-17"}`); refusedFor(a) == unseen {
			break
		} else if refusedFor(a) != notRecorded {
			t.Fatalf("got %s %s", a.result, a.err)
		}
	}
	<-lost
	close(release)
	refusal(t, <-read, notRecorded)
	refusal(t, w.call(ctx, "delete_item", `{"id":"item-17"}`), unseen)
}
