package gate_test

import (
	"bytes"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// TestReadOnce: what was read where it entered is not read again. The bytes
// between the tokens are spoilt after that, which who checks them anew would
// refuse. Of a Value that nobody checked the gate does so itself.
func TestReadOnce(t *testing.T) {
	p, c := newWorld(t, `
pins: optional
tools:
  u/list: { effect: read, outputs: [{ at: /users/*, label: system }] }
`, `{"u":[{"name":"list","inputSchema":{"type":"object","properties":{"of":{"type":"string"}}},"outputSchema":{"type":"object"}}]}`)
	decide := func(s *gate.Session, arguments strictjson.Value) gate.Decision {
		return gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Call: gate.Call{Server: "u", Tool: "list", Arguments: arguments}})
	}
	spoilt := func(text string, l strictjson.Limits) strictjson.Value {
		b := []byte(text)
		v, err := strictjson.Parse(b, l)
		if err != nil {
			t.Fatal(err)
		}
		b[bytes.IndexByte(b, ' ')] = 'x'
		return v
	}
	s := gate.NewSession("s_x", [32]byte{1}, provenance.Caps{})
	d := decide(s, spoilt(`{"of": "all"}`, strictjson.Request))
	if !d.Allowed() {
		t.Fatalf("the arguments were read again: %+v", d.Outcome)
	}
	s.Decided(&d)
	o := s.Observe(&d, gate.Result{Evidence: 1, Status: gate.OK, Value: spoilt(`{"structuredContent": {"users":["bobby"]}}`, strictjson.Result)})
	if !o.Admissible || o.Facts != 1 {
		t.Errorf("the result was read again: %+v", o)
	}
	for what, v := range map[string]strictjson.Value{
		"nobody checked":       strictjson.Of([]byte(`{"of":x"all"}`)),
		"was checked for less": spoilt(`{"of": "all"}`, strictjson.Limits{Number: 64}),
		"was refused": func() strictjson.Value {
			v, _ := strictjson.Parse([]byte(`{"of":"a","of":"b"}`), strictjson.Request)
			return v
		}(),
		"nobody checked for names": strictjson.Of([]byte(`{"of":"a","of":"b"}`)),
	} {
		if d := decide(s, v); d.Allowed() || d.Outcome.Rejection.Reason != writ.PayloadSyntax {
			t.Errorf("what %s: %+v", what, d.Outcome)
		}
	}
}
