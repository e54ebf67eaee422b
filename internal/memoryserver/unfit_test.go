package memoryserver

import (
	"bytes"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/storetest"
	"github.com/writ-project/writ/internal/storetest/mapstore"
	"github.com/writ-project/writ/memory"
)

// TestUnfitIsNotWritten: a decision whose event could not be applied, or not be
// read back, fails alone. The namespace goes on, here and for who opens it.
func TestUnfitIsNotWritten(t *testing.T) {
	signer, _ := storetest.Key()
	st := mapstore.New(signer)
	p := memory.Builtin()
	open := func() *Keeper {
		k, err := Open(t.Context(), Options{Store: st, Namespace: "default", Policy: p, Mode: memory.Hardened})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := open()
	c := memory.Context{Principal: "alice", Session: "s_a", Task: "t"}
	propose := func(k *Keeper, id string) {
		t.Helper()
		o, err := k.Propose(t.Context(), c, writ.Proposal{ToolName: memory.ToolRecordObservation, Payload: []byte(`{"observation_id":"` + id + `","raw_payload":"x","source_ref":"a page"}`)})
		if err != nil || o.Status != writ.Accepted {
			t.Fatalf("%v %+v", err, o)
		}
	}
	propose(k, "o1")
	for name, spoil := range map[string]func(d *memory.Decision){
		"a value nobody reads":   func(d *memory.Decision) { d.Value = bytes.Repeat([]byte("x"), 1<<20) },
		"the number of another":  func(d *memory.Decision) { d.Event.N++ },
		"an event nobody reads":  func(d *memory.Decision) { d.Event.Principal = strings.Repeat("x", 16<<20) },
		"what does not fit here": func(d *memory.Decision) { d.Event.Ops = []memory.Op{{Alias: &memory.AliasOp{Entity: "ent_99"}}} },
	} {
		_, err := k.do(t.Context(), func(s *memory.State, now time.Time) memory.Decision {
			c := c
			c.Policy, c.Namespace, c.Mode, c.Now = p, "default", memory.Hardened, now
			d := memory.Handle(s, c, writ.Proposal{ToolName: memory.ToolRecordObservation, Payload: []byte(`{"observation_id":"o2"}`)})
			if name == "what does not fit here" {
				d.Event.Status, d.Event.Reason = writ.Accepted, ""
			}
			spoil(&d)
			return d
		})
		if err == nil {
			t.Errorf("%s was written", name)
		}
		if head, err := st.Head(t.Context(), LogOf("default")); err != nil || head != 2 {
			t.Fatalf("%s: %d records, %v", name, head, err)
		}
	}
	propose(k, "o3")
	propose(open(), "o4")
}
