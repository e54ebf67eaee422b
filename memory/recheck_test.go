package memory

import (
	"errors"
	"maps"
	"reflect"
	"testing"

	writ "github.com/writ-project/writ"
)

// TestWhatWasProposed: what the channel said of a proposal is taken over whole
// when it is decided under another policy, but for its texts.
func TestWhatWasProposed(t *testing.T) {
	full := Captured{}
	fill(reflect.ValueOf(&full).Elem())
	e := &Event{Kind: KindProposal, Namespace: "n", Principal: "p", Session: "s", Task: "t", At: 1, Screened: ScreenQuarantine, Status: writ.Accepted,
		Capture: full.kept(true)}
	lost := map[string]int{}
	var c Context
	for tool, payload := range map[string]string{
		ToolRecordObservation: `{"observation_id":"o","raw_payload":"r","source_ref":"ev1"}`,
		ToolRemember:          `{"text":"r","raw_payload":"a sentence with r","value":"r"}`,
	} {
		var p writ.Proposal
		var ok bool
		if c, p, ok = Proposed(e, []byte(`{"payload":`+payload+`,"tool_name":"`+tool+`"}`)); !ok || len(c.Captured) != 1 || p.ToolName != tool {
			t.Fatal(ok, c, p)
		}
		v := reflect.ValueOf(c.Captured[0])
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				lost[v.Type().Field(i).Name]++
			}
		}
	}
	// A proposal names its evidence, or has Writ find it.
	if want := map[string]int{"Ref": 1, "Text": 1, "Value": 1}; !maps.Equal(lost, want) {
		t.Errorf("of Captured is lost %v, want %v", lost, want)
	}
	if c.Session != "s" || c.Task != "t" || c.Principal != "p" || c.Namespace != "n" || c.Screened != ScreenQuarantine || InstantOf(c.Now) != 1 {
		t.Errorf("%+v", c)
	}
	// What was refused for what it cites cannot be tried on other evidence.
	e.Capture, e.Status = nil, writ.Rejected
	if _, _, ok := Proposed(e, []byte(`{"payload":{"raw_payload":"r"},"tool_name":"record_observation"}`)); ok {
		t.Error("a refused citation is decided again without its evidence")
	}
	if _, _, ok := Proposed(e, nil); ok {
		t.Error("what was erased is decided again")
	}
}

// fill sets every field of a struct to something.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int:
			f.SetInt(7)
		case reflect.Uint64:
			f.SetUint(7)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		default:
			f.Set(reflect.ValueOf(writ.System))
		}
	}
}

// A refusal is decided again on the evidence it was held against, and on no
// other.
func TestRefusedIsDecidedAgain(t *testing.T) {
	for name, captured := range map[string][]Captured{
		"words that do not stand in it": {{Ref: "ev1", Evidence: "s_1/ev1", Label: writ.System, Source: "a/x"}},
		"no evidence":                   nil,
	} {
		x := newScript(t)
		x.begin()
		c := x.c
		c.Captured = captured
		d := Handle(x.s, c, writ.Proposal{ToolName: ToolRecordObservation, Payload: []byte(`{"observation_id":"o","raw_payload":"r","source_ref":"ev1"}`)})
		if d.Outcome.Status != writ.Rejected {
			t.Fatalf("%s: %+v", name, d.Outcome)
		}
		if checked, err := Recheck(x.s, c.Policy, d.Event, d.Value); !checked || err != nil {
			t.Errorf("%s: checked %v, %v", name, checked, err)
		}
		e := *d.Event
		e.Capture = &Capture{Captured: Captured{Evidence: "s_1/ev1", Label: writ.System, Source: "a/x", Verbatim: true}, ByRef: true}
		if _, err := Recheck(x.s, c.Policy, &e, d.Value); !errors.Is(err, ErrRecheck) {
			t.Errorf("%s: on evidence that holds it, it is refused again: %v", name, err)
		}
		// What an earlier version of the rules decided is left as it stands.
		e.V = EventVersion - 1
		if checked, err := Recheck(x.s, c.Policy, &e, d.Value); checked || err != nil {
			t.Errorf("%s: an event of version %d: checked %v, %v", name, e.V, checked, err)
		}
	}
}
