package gate_test

import (
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// What a program that builds on this package forgets or mixes up makes nothing
// pass.

// TestForgottenDecided: a call whose decision the session was not given (A01)
// left no trace of what the model sent with it, so its result is no evidence,
// and neither is anything that a later forgotten call returns of it.
func TestForgottenDecided(t *testing.T) {
	const policy = `
pins: optional
collections: { doc: { closed: true } }
tools:
  kb/search: { effect: read, outputs: [ { at: /hits/*, label: system, collection: doc } ] }
  kb/recent: { effect: read, outputs: [ { at: /recent/*, label: system, collection: doc } ] }
  kb/edit:   { effect: write, args: { /id: { role: target, collection: doc, from: [output] } } }
`
	const tools = `{"kb":[
 {"name":"search","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}},"outputSchema":{"type":"object"}},
 {"name":"recent","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},
 {"name":"edit","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}]}`
	for _, forget := range []bool{false, true} {
		p, c := newWorld(t, policy, tools)
		s := gate.NewSession("s_forgets", [32]byte{1}, provenance.Caps{})
		call := func(tool, args, result string) (allowed bool, o gate.Observation) {
			d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Call: gate.Call{Server: "kb", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
			if !forget {
				s.Decided(&d)
			}
			if d.Allowed() {
				o = s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(result))})
				s.Commit(o)
			}
			return d.Allowed(), o
		}
		// The model invents an id and searches for it; the server lists what was
		// searched for of late.
		call("search", `{"q":"doc-invented"}`, `{"structuredContent":{"hits":[]}}`)
		_, o := call("recent", `{}`, `{"structuredContent":{"recent":["doc-invented","doc-listed"]}}`)
		if forget && (o.Admissible || o.Why != "undecided") || !forget && !o.Admissible {
			t.Errorf("forgotten %v: the result is worth %+v", forget, o)
		}
		if allowed, _ := call("edit", `{"id":"doc-invented"}`, `{}`); allowed {
			t.Errorf("forgotten %v: an invented id is accepted", forget)
		}
		if allowed, _ := call("edit", `{"id":"doc-listed"}`, `{}`); allowed == forget {
			t.Errorf("forgotten %v: a listed id is accepted: %v", forget, allowed)
		}
	}
}

// TestNoPolicy: without a policy, a catalogue, or the one made with the other,
// every call is refused, the reads every server has among them, and in shadow
// mode too (A02).
func TestNoPolicy(t *testing.T) {
	const strict, lax = "profile: strict\n" + smallPolicy, smallPolicy
	p, c := newWorld(t, strict, smallTools)
	other, laxCatalogue := newWorld(t, lax, smallTools)
	again, _ := newWorld(t, strict, smallTools)
	none, _ := gate.NewCatalogue([]gate.Definition{{Server: "u", Raw: []byte(`{"name":"list","inputSchema":{"type":"object"}}`)}}, nil)
	pairs := []struct {
		what string
		p    *policy.Policy
		c    *gate.Catalogue
		open bool
	}{
		{"both", p, c, true},
		{"nothing", nil, nil, false},
		{"no policy", nil, c, false},
		{"no catalogue", p, nil, false},
		{"a catalogue made without a policy", nil, none, false},
		{"a policy beside a catalogue made without one", p, none, false},
		{"a policy nobody parsed", &policy.Policy{}, c, false},
		{"a catalogue nobody made", p, &gate.Catalogue{}, false},
		{"neither made", nil, &gate.Catalogue{}, false},
		{"a laxer policy than the catalogue's", other, c, false},
		{"a laxer catalogue than the policy's", p, laxCatalogue, false},
		{"the same text parsed twice", again, c, false},
	}
	for _, w := range pairs {
		for _, call := range []gate.Call{{Server: "u", Tool: "list"}, {Server: "u", Method: policy.ListResources}} {
			for _, shadow := range []bool{false, true} {
				s := gate.NewSession("s_x", [32]byte{1}, provenance.Caps{})
				for _, in := range []gate.Input{{Session: s}, {}} {
					in.Policy, in.Catalogue, in.Call, in.Shadow = w.p, w.c, call, shadow
					d := gate.Decide(in)
					if d.Allowed() != w.open {
						t.Errorf("%s: %+v is allowed %v", w.what, call, d.Allowed())
					}
					if !w.open && d.Outcome.Rejection.Reason != writ.PolicyAbsent {
						t.Errorf("%s: %s", w.what, d.Outcome.Rejection.Reason)
					}
					if r, err := gate.ParseRecord(d.Record()); err != nil || r.Allowed != w.open {
						t.Errorf("%s: the record says %+v %v", w.what, r, err)
					}
				}
			}
		}
	}
}

// TestOtherSessions: what one session decided or observed is nothing to another
// (A03), also where both were given one name.
func TestOtherSessions(t *testing.T) {
	for _, id := range []string{"s_small", "s_other"} {
		a := newOffice(t, provenance.Caps{})
		b := gate.NewSession(id, [32]byte{7}, provenance.Caps{})
		result := gate.Result{Evidence: 1, Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":{"users":["bobby"]}}`))}
		d := a.call("list", `{}`)
		if o := b.Observe(&d, result); o.Admissible || o.Why != "undecided" {
			t.Errorf("%s: another session observes %+v", id, o)
		}
		b.Decided(&d)
		if o := b.Observe(&d, result); o.Admissible || o.Why != "undecided" {
			t.Errorf("%s: another session takes the decision and observes %+v", id, o)
		}
		o := a.s.Observe(&d, result)
		b.Commit(o)
		b.Commit(a.s.Turn(2, []byte("delete bobby"), a.now))
		if b.Facts() != 0 || b.Turns() != 0 || b.Next() != 1 {
			t.Errorf("%s: another session's observation counts", id)
		}
		for range 60 { // R24: neither do the refusals of one close the other
			r := a.call("drop", `{"id":"nobody"}`)
			b.Decided(&r)
		}
		in := gate.Input{Policy: a.p, Catalogue: a.c, Session: b, Time: a.now, Call: gate.Call{Server: "u", Tool: "ping", Arguments: strictjson.Of([]byte(`{"id":"fixed"}`))}}
		if d := gate.Decide(in); !d.Allowed() {
			t.Errorf("%s: refusals elsewhere close this session: %+v", id, d.Outcome.Rejection)
		}
		if a.s.Commit(o); a.s.Facts() == 0 {
			t.Errorf("%s: the session's own observation does not count", id)
		}
	}
}

// TestOneResult: a decision has one result (A04), and it is that of the call
// that was decided: a decision nobody made, or one changed since, has none.
func TestOneResult(t *testing.T) {
	o := newOffice(t, provenance.Caps{})
	result := func(user string) gate.Result {
		return gate.Result{Evidence: o.s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":{"users":["` + user + `"]}}`))}
	}
	d := o.call("list", `{}`)
	first, second := o.s.Observe(&d, result("bobby")), o.s.Observe(&d, result("eve"))
	o.s.Commit(first)
	facts := o.s.Facts()
	o.s.Commit(first)
	o.s.Commit(second)
	third := o.s.Observe(&d, result("eve"))
	o.s.Commit(third)
	if facts == 0 || o.s.Facts() != facts || third.Admissible || third.Why != "undecided" {
		t.Errorf("a second result counts: %d facts, then %d; %+v", facts, o.s.Facts(), third)
	}
	if d := o.call("drop", `{"id":"eve"}`); d.Allowed() {
		t.Error("what stands in a second result is accepted")
	}

	failed := o.call("list", `{}`)
	o.s.Commit(o.s.Observe(&failed, gate.Result{Evidence: o.s.Next(), Status: gate.Unknown}))
	if late := o.s.Observe(&failed, result("eve")); late.Admissible {
		t.Error("a call that ended has a result after all")
	}

	var none *gate.Decision
	o.s.Decided(none)
	forged := gate.Decision{Call: gate.Call{Server: "u", Tool: "list"}, Effect: policy.Read, Shadow: true, Arguments: strictjson.Of([]byte(`{}`))}
	o.s.Decided(&forged)
	moved := o.call("list", `{}`)
	moved.Call.Tool = "drop"
	act := o.call("ping", `{"id":"fixed"}`)
	act.Effect = policy.Read // then its result would be worth more than an act's
	for what, d := range map[string]*gate.Decision{"no decision": nil, "one written by hand": &forged, "one of another tool": &moved, "one of another effect": &act} {
		if ob := o.s.Observe(d, result("eve")); ob.Admissible || ob.Why != "undecided" {
			t.Errorf("%s: %+v", what, ob)
		}
	}
	if o.s.Commit(gate.Observation{}); o.s.Facts() != facts {
		t.Error("an observation nobody made counts")
	}

	// Two calls that are the same to the microsecond have a result each.
	a, b := o.call("list", `{}`), o.call("list", `{}`)
	for _, d := range []*gate.Decision{&a, &b} {
		ob := o.s.Observe(d, result("bobby"))
		if o.s.Commit(ob); !ob.Admissible {
			t.Errorf("one of two like calls: %+v", ob)
		}
	}
}

// TestMethodIsNoTool: the name under which a method of R32 has its contract is
// no tool's, and a tool's is no method's (A05).
func TestMethodIsNoTool(t *testing.T) {
	p, c := newWorld(t, `
pins: optional
tools:
  u/list: { effect: read }
  u/resources/read: { effect: egress, args: { /uri: { role: target, from: [{const: ["file:///a"]}] } } }
`, `{"u":[{"name":"list","inputSchema":{"type":"object"}}]}`)
	s := gate.NewSession("s_x", [32]byte{1}, provenance.Caps{})
	uri := strictjson.Of([]byte(`{"uri":"file:///a"}`))
	for call, want := range map[*gate.Call]writ.Reason{
		{Server: "u", Tool: "list"}:                                                     "",
		{Server: "u", Method: policy.ReadResource, Arguments: uri}:                      "",
		{Server: "u", Tool: "resources/read", Arguments: uri}:                           writ.NameUnknown,
		{Server: "u", Method: "list"}:                                                   writ.NameUnknown,
		{Server: "u", Tool: "resources/read", Method: policy.GetPrompt, Arguments: uri}: "payload",
	} {
		d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Call: *call})
		switch r := d.Outcome.Rejection; {
		case want == "" && r != nil, want == writ.NameUnknown && (r == nil || r.Reason != want), want == "payload" && d.Allowed():
			t.Errorf("%+v: %+v", *call, r)
		}
	}
}
