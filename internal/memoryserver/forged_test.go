package memoryserver

import (
	"errors"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

// A forge writes a log as a keeper does, of events that were altered on the way.
type forge struct {
	t   *testing.T
	k   *Keeper
	s   *memory.State
	now time.Time
	log []audit.Entry
	es  []*memory.Event
}

func (f *forge) put(e *memory.Event, v []byte) {
	f.t.Helper()
	en, err := f.k.entryOf(e, v, f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	f.log = append(f.log, en)
	f.es = append(f.es, e)
	if err := f.s.Apply(e, v); err != nil {
		f.t.Fatal(err)
	}
}

func (f *forge) c() memory.Context {
	f.now = f.now.Add(time.Second)
	return memory.Context{Policy: f.k.o.Policy, Namespace: "default", Mode: memory.Hardened, Principal: "alice", Session: "s_test", Task: "s_test", Now: f.now}
}

func (f *forge) operate(cmd, args string) memory.Decision {
	c := f.c()
	c.Session, c.Task, c.Principal = "", "", "root"
	return memory.Operate(f.s, c, cmd, []byte(args))
}

func newForge(t *testing.T) *forge {
	signer, _ := storetest.Key()
	st := mapstore.New(signer)
	k := open(t, st)
	if _, err := st.PutBlob(t.Context(), k.o.Policy.Source()); err != nil {
		t.Fatal(err)
	}
	return &forge{t: t, k: k, s: memory.New(), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
}

func (f *forge) verify() (checked, unchecked int, err error) {
	if _, err := f.k.store.Append(f.t.Context(), f.k.log, 0, f.log); err != nil {
		f.t.Fatal(err)
	}
	for _, e := range f.es {
		for _, o := range e.Ops {
			if o.Erase != nil {
				if err := f.k.store.Erase(f.t.Context(), f.k.log, o.Erase.Records...); err != nil {
					f.t.Fatal(err)
				}
			}
		}
	}
	fold := NewFold(f.k.store.(blobs))
	for it, err := range f.k.store.Read(f.t.Context(), f.k.log, 1) {
		if err != nil {
			return 0, 0, err
		}
		if err := fold.Step(f.t.Context(), &it); err != nil {
			return fold.Rechecked, fold.Unchecked, err
		}
	}
	if p := fold.End(); p != nil {
		return fold.Rechecked, fold.Unchecked, p
	}
	return fold.Rechecked, fold.Unchecked, nil
}

func (f *forge) story(alter func(n string, e *memory.Event)) {
	step := func(name string, d memory.Decision) {
		alter(name, d.Event)
		f.put(d.Event, d.Value)
	}
	step("open", f.operate("open", "{}"))
	c := f.c()
	c.Captured = []memory.Captured{{Ref: "ev1", Evidence: "s_test/ev1", Label: writ.External, Source: "web/x", Verbatim: true, Whole: true}}
	step("obs", memory.Handle(f.s, c, writ.Proposal{ToolName: memory.ToolRecordObservation, Payload: []byte(`{"observation_id":"o","raw_payload":"Alice lives in Rome"}`)}))
	c = f.c()
	c.Captured = []memory.Captured{{Ref: "ev2", Evidence: "s_test/ev2", Label: writ.External, Source: "web/y", Verbatim: true, Whole: true}}
	step("other", memory.Handle(f.s, c, writ.Proposal{ToolName: memory.ToolRecordObservation, Payload: []byte(`{"observation_id":"p","raw_payload":"Bob lives in Oslo"}`)}))
	step("refused", memory.Handle(f.s, f.c(), writ.Proposal{ToolName: memory.ToolPropose, Payload: []byte(`{"text":"x"}`)}))
	step("ent", memory.Handle(f.s, f.c(), writ.Proposal{ToolName: memory.ToolEntity, Payload: []byte(`{"name":"Alice","entity_type":"person","observation_ids":["o"]}`)}))
	step("prop", memory.Handle(f.s, f.c(), writ.Proposal{ToolName: memory.ToolPropose, Payload: []byte(`{"text":"Alice lives in Rome","observation_ids":["o"],"about":["ent_5"]}`)}))
}

func accept(e *memory.Event) {
	for i := range e.Ops {
		if ed := e.Ops[i].Edge; ed != nil {
			ed.Level = 3
		}
	}
}

// What was altered does not verify: not beside an erasure of something else, and
// not in the first event either.
func TestForged(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(n string, e *memory.Event)
		erase bool
	}{
		"a statement is altered": {func(n string, e *memory.Event) {
			if n == "prop" {
				accept(e)
			}
		}, false},
		"a statement is altered, and later something else is erased": {func(n string, e *memory.Event) {
			if n == "prop" {
				accept(e)
			}
		}, true},
		"the first event plants a source": {func(n string, e *memory.Event) {
			if n == "open" {
				e.Ops = append(e.Ops, memory.Op{Source: &memory.Source{ID: "web/x", Class: memory.ClassToolInternal}})
			}
		}, false},
	} {
		f := newForge(t)
		f.story(c.alter)
		if c.erase {
			d := f.operate("erase", `{"observation_ids":["obs_3"],"reason":"gdpr"}`)
			if d.Outcome.Status != writ.Accepted {
				t.Fatal(d.Outcome.Rejection)
			}
			f.put(d.Event, d.Value)
		}
		if _, _, err := f.verify(); !errors.Is(err, ErrReplay) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := newForge(t)
	f.story(func(string, *memory.Event) {})
	d := f.operate("erase", `{"observation_ids":["obs_3"],"reason":"gdpr"}`)
	f.put(d.Event, d.Value)
	if checked, _, err := f.verify(); err != nil || checked < 4 {
		t.Errorf("what nobody altered: %d decided again, %v", checked, err)
	}
}
