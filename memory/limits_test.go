package memory

import (
	"fmt"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
)

// What is decided can be read again: a payload as large as may be is refused or
// applied, and an event is written only if it can be parsed.
func TestWhatIsWrittenCanBeRead(t *testing.T) {
	accepted := 0
	for n := 19_995; n <= 20_001; n++ {
		x := newScript(t)
		x.begin()
		d := Handle(x.s, x.c, writ.Proposal{ToolName: ToolRecordObservation, Payload: []byte(fmt.Sprintf(
			`{"observation_id":"o","raw_payload":"r","source_ref":"note","parsed_payload":{"a":[%s]}}`, strings.TrimSuffix(strings.Repeat("1,", n), ",")))})
		if d.Outcome.Status != writ.Rejected {
			accepted++
		}
		if err := x.s.Apply(d.Event, d.Value); err != nil {
			t.Errorf("%d values: %s, and cannot be applied: %v", n, d.Outcome.Status, err)
		}
	}
	if accepted == 0 {
		t.Error("none was accepted")
	}
	for _, c := range []struct{ n, long int }{{999, 10}, {20_000, 10}, {4_000, 5_000}} {
		e := &Event{V: EventVersion, N: 2, Kind: KindCommand, Mode: Hardened, Status: writ.Accepted}
		for i := range c.n {
			e.Ops = append(e.Ops, Op{Close: &CloseOp{Edge: fmt.Sprintf("edge_%d", i+1), Resolution: strings.Repeat("x", c.long), By: "dec_2"}})
		}
		b, err := e.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseEvent(b)
		if e.fits() != (err == nil) {
			t.Errorf("an event of %d operations and %d bytes fits %v, and is read with %v", c.n, len(b), e.fits(), err)
		}
		if large := c.long > 1000; large == (err == nil) {
			t.Errorf("an event of %d operations and %d bytes: %v", c.n, len(b), err)
		}
	}
}

// One proposal looks through so much and no more, and finds nothing beyond it.
func TestLookingIsBounded(t *testing.T) {
	ob := &Observation{Raw: "the value is 300, said the tool"}
	left := 2 * len(ob.Raw) // two looks
	w := newWitness(ob, &left)
	for range 2 {
		if !w.holds("300") {
			t.Error("what stands in the text is not found")
		}
	}
	if w.holds("300") {
		t.Error("it is found beyond the bound")
	}
}

// TestOthersThen: as of a time the newest of the other values of that time are told, however many
// came later.
func TestOthersThen(t *testing.T) {
	const n = 3 * mostListed
	s, _ := asked(t, "corrections", n)
	all := s.slots.get(s.slots.keys()[0]).Propositions
	then := all[n/2]
	r := Reader{State: s, Principal: "alice", AsOf: s.decided.get(s.propositions.get(then).Decision).At.Time()}
	x, ok := r.Explain(all[0])
	if !ok || len(x.Values) != mostListed || x.Values[mostListed-1].Proposition != then {
		t.Errorf("of %d values of that time %d are told", n/2, len(x.Values))
	}
}
