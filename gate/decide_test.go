package gate_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

func TestZeroDecisionDenies(t *testing.T) {
	var d gate.Decision
	if d.Allowed() || (*gate.Decision)(nil).Allowed() {
		t.Fatal("a decision nobody made allows")
	}
	r, err := gate.ParseRecord(d.Record())
	if err != nil || r.Allowed || r.Status != writ.Rejected {
		t.Fatalf("record of the zero decision: %+v %v", r, err)
	}
	if d := gate.Decide(gate.Input{}); d.Allowed() || d.Outcome.Rejection.Reason != writ.PolicyAbsent {
		t.Fatalf("the empty input: %+v", d.Outcome)
	}
	s := gate.NewSession("s_x", [32]byte{}, provenance.Caps{})
	if o := s.Observe(&d, gate.Result{Evidence: 1, Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":{}}`))}); o.Admissible {
		t.Fatal("the result of a refused call is evidence")
	}
}

const smallPolicy = `
pins: optional
collections: { user: { closed: true } }
tools:
  u/list: { effect: read, outputs: [ { at: /users/*, label: system, collection: user } ] }
  u/drop: { effect: write, args: { /id: { role: target, collection: user }, /why: { role: content, from: [const: ["spam"]] } } }
  u/ping: { effect: write, no_args: allow, args: { /id: { role: target, collection: user, from: [const: ["fixed"]] } } }
`

const smallTools = `{"u":[
 {"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},
 {"name":"drop","inputSchema":{"type":"object","properties":{"id":{},"why":{}}}},
 {"name":"ping","inputSchema":{"type":"object","properties":{"id":{}}}}]}`

// office is one session of the small world.
type office struct {
	t   testing.TB
	p   *policy.Policy
	c   *gate.Catalogue
	s   *gate.Session
	now time.Time
}

func newOffice(t testing.TB, caps provenance.Caps) *office {
	p, c := newWorld(t, smallPolicy, smallTools)
	return &office{t, p, c, gate.NewSession("s_small", [32]byte{9}, caps), time.Date(2026, 1, 2, 3, 4, 5, 6789, time.FixedZone("x", 3600))}
}

func (o *office) call(tool, args string) gate.Decision {
	d := gate.Decide(gate.Input{Policy: o.p, Catalogue: o.c, Session: o.s, Time: o.now,
		Call: gate.Call{Server: "u", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
	o.s.Decided(&d)
	return d
}

func (o *office) list(users string) gate.Observation {
	d := o.call("list", "{}")
	ob := o.s.Observe(&d, gate.Result{Evidence: o.s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":{"users":` + users + `}}`))})
	o.s.Commit(ob)
	return ob
}

func (o *office) reason(d gate.Decision) writ.Reason {
	if d.Outcome.Rejection == nil {
		return ""
	}
	return d.Outcome.Rejection.Reason
}

// R23: what the contract calls not idempotent needs fresh evidence each time.
func TestRepeated(t *testing.T) {
	o := newOffice(t, provenance.Caps{})
	no := false
	o.p.Contracts["u/drop"].Idempotent = &no
	o.p.Contracts["u/ping"].Idempotent = &no
	o.list(`["bobby","carol"]`)
	for i, step := range []struct {
		tool, args string
		want       writ.Reason
	}{
		{"drop", `{"id":"bobby","why":"spam"}`, ""},
		{"drop", `{"id":"bobby","why":"spam"}`, writ.PolicyRepeated},
		{"drop", `{ "why" : "spam", "id":"\u0062obby"}`, writ.PolicyRepeated}, // the same act, spelt otherwise
		{"drop", `{"id":"bobby"}`, ""},                                        // another act
		{"drop", `{"id":"carol","why":"spam"}`, ""},
		{"ping", `{}`, ""},
		{"ping", `{}`, writ.PolicyRepeated},
		{"ping", `{"id":"fixed"}`, ""},
		{"list", ``, ""},
		{"drop", `{"id":"bobby","why":"spam"}`, ""},
		{"drop", `{"id":"bobby","why":"spam"}`, writ.PolicyRepeated},
		{"ping", `{"id":"fixed"}`, writ.PolicyRepeated}, // constants are never fresh
	} {
		if step.tool == "list" {
			o.list(`["bobby"]`)
			continue
		}
		d := o.call(step.tool, step.args)
		if got := o.reason(d); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
		if d.Allowed() {
			o.s.Commit(o.s.Observe(&d, gate.Result{Evidence: o.s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(`{"content":[]}`))}))
		}
	}
	yes := true
	o.p.Contracts["u/drop"].Idempotent = &yes
	for range 2 {
		if got := o.reason(o.call("drop", `{"id":"carol","why":"spam"}`)); got != "" {
			t.Errorf("an idempotent act: %q", got)
		}
	}
}

// D03, D04: at the cap new evidence is refused and old evidence stays.
func TestEvidenceCap(t *testing.T) {
	o := newOffice(t, provenance.Caps{Leaves: 3})
	if ob := o.list(`["bobby","carol"]`); !ob.Admissible || o.s.Facts() != 2 {
		t.Fatalf("%+v", ob)
	}
	next := o.s.Next()
	if ob := o.list(`["dave1","erin1"]`); ob.Admissible || ob.Why != "evidence_cap" || o.s.Facts() != 2 {
		t.Fatalf("%+v", ob)
	}
	if o.s.Next() != next+1 {
		t.Error("a result that is no evidence takes a number too")
	}
	if r := o.reason(o.call("drop", `{"id":"dave1"}`)); r != writ.ProvenanceFull {
		t.Error(r)
	}
	if used := o.s.Used(); used != 66 {
		t.Errorf("2 of 3 are %d %%", used)
	}
	if r := o.reason(o.call("drop", `{"id":"bobby"}`)); r != "" {
		t.Error(r)
	}
	o.s.Bound(provenance.Caps{Leaves: 5})
	if ob := o.list(`["dave1","erin1"]`); !ob.Admissible || o.s.Used() < 80 {
		t.Fatalf("with more room: %+v, %d %%", ob, o.s.Used())
	}
	if r := o.reason(o.call("drop", `{"id":"dave1"}`)); r != "" {
		t.Error(r)
	}
}

// L05, L07: the record is canonical, replays byte for byte, holds no value and
// differs when anything it rests on does.
func TestRecord(t *testing.T) {
	o := newOffice(t, provenance.Caps{})
	o.list(`["bobby-value"]`)
	d := o.call("drop", `{"id":"bobby-value","why":"spam"}`)
	raw := d.Record()
	if c, err := strictjson.Canonical(raw); err != nil || !bytes.Equal(c, raw) {
		t.Fatal("not canonical")
	}
	for _, v := range []string{"bobby-value", "spam"} {
		if bytes.Contains(raw, []byte(v)) {
			t.Errorf("the record holds %q", v)
		}
	}
	r, err := gate.ParseRecord(raw)
	if err != nil {
		t.Fatal(err)
	}
	if r.Engine != gate.Engine || r.Session != "s_small" || r.Next != 2 || r.Time != "2026-01-02T02:04:05.000Z" ||
		r.Method != "tools/call" || !slices.Equal(r.Effect, []string{"write"}) || !r.Allowed || len(r.Traces) != 2 {
		t.Errorf("%+v", r)
	}
	want := []string{
		"accepted: `drop` of server `u`, effect write",
		"/id (target) is evidence s_small/ev1, /structuredContent/users/0 of list (u), label system",
		"/why (content) is a constant of the operator, label operator",
	}
	if got := gate.Explain(r); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// Another session's key gives other digests of the same values (L08).
	other := newOffice(t, provenance.Caps{})
	other.s = gate.NewSession("s_small", [32]byte{8}, provenance.Caps{})
	other.list(`["bobby-value"]`)
	d2 := other.call("drop", `{"id":"bobby-value","why":"spam"}`)
	r2, _ := gate.ParseRecord(d2.Record())
	if r2.Arguments == r.Arguments || r2.Traces[0].Digest == r.Traces[0].Digest || r.Arguments == "" || r.Traces[0].Digest == "" {
		t.Error("digests are not keyed by the session")
	}
	for name, bad := range map[string][]byte{
		"trailing":  append(slices.Clone(raw), ' '),
		"unknown":   bytes.Replace(raw, []byte(`{"allowed"`), []byte(`{"aaa":1,"allowed"`), 1),
		"case":      bytes.Replace(raw, []byte(`"allowed"`), []byte(`"Allowed"`), 1),
		"duplicate": bytes.Replace(raw, []byte(`{"allowed":true`), []byte(`{"allowed":true,"allowed":true`), 1),
		"version":   bytes.Replace(raw, []byte(`"v":1`), []byte(`"v":2`), 1),
		"status":    bytes.Replace(raw, []byte(`"accepted"`), []byte(`"agreed"`), 1),
		"label":     bytes.Replace(raw, []byte(`"label":"system"`), []byte(`"label":"trusted"`), 1),
		"half":      raw[:len(raw)/2],
		"empty":     nil,
		"UTF-8":     bytes.Replace(raw, []byte(`"standard"`), []byte("\"standard\xff\""), 1),
		"inside":    bytes.Replace(raw, []byte(`"label":"system"`), []byte(`"label":"system","label":"system"`), 1),
		"deep":      bytes.Replace(raw, []byte(`{"allowed"`), []byte(`{"aaa":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`,"allowed"`), 1),
	} {
		if bytes.Equal(bad, raw) {
			t.Fatalf("%s: the case changes nothing", name)
		}
		if _, err := gate.ParseRecord(bad); err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "bobby") {
			t.Errorf("%s: the error quotes the text", name)
		}
	}
}

// L07, K07: what a call or a server says cannot break out of a line.
func TestExplainEscapes(t *testing.T) {
	p, c := newWorld(t, smallPolicy, smallTools)
	d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Call: gate.Call{Server: "u\n\x1b[2J", Tool: "`x`\xff\u202e", Arguments: strictjson.Of([]byte(`{}`))}})
	r, err := gate.ParseRecord(d.Record())
	if err != nil {
		t.Fatal(err)
	}
	r.Failures[0].Need = "a\x1b]8;;\u202eb\n"
	r.Traces = append(r.Traces, gate.Trace{Pointer: "/a\nb", Role: "\x00", Rule: "catalog"}, gate.Trace{Rule: "derived:uri_template", Evidence: []gate.Ref{{Evidence: 1, Tool: "a\rb", Pointer: "\n", Inner: "\u2028"}}})
	for _, line := range gate.Explain(r) {
		for _, x := range line {
			if x < ' ' || x > '~' {
				t.Errorf("%q holds %q", line, x)
			}
		}
	}
}

// What a text rests on is said as a sentence, with evidence and without.
func TestExplainText(t *testing.T) {
	p, c := newWorld(t, smallPolicy, smallTools)
	d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Call: gate.Call{Server: "s", Tool: "t", Arguments: strictjson.Of([]byte(`{}`))}})
	r, err := gate.ParseRecord(d.Record())
	if err != nil {
		t.Fatal(err)
	}
	r.Traces = []gate.Trace{{Pointer: "/a", Role: "content", Rule: "open"}, {Pointer: "/b", Role: "content", Rule: "open", Evidence: []gate.Ref{{Evidence: 1, Tool: "s/list", Pointer: "/x"}}}}
	said := strings.Join(gate.Explain(r), "\n")
	for _, want := range []string{"/a (content) is free text, which is unproven, and nothing in it needs more, label", "and nothing in it needs more than evidence "} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
}

func TestEffectNames(t *testing.T) {
	if got := fmt.Sprint((policy.Write | policy.Send).Names(), policy.Effect(0).Names()); got != "[write send] [read egress write send transfer delete auth]" {
		t.Error(got)
	}
}

// A session folded again from the same decisions and results is the same.
func TestFoldAgain(t *testing.T) {
	var first []string
	for range 2 {
		o := newOffice(t, provenance.Caps{})
		var got []string
		add := func(d gate.Decision) { got = append(got, string(d.Record())) }
		add(o.call("drop", `{"id":"bobby"}`))
		o.list(`["bobby","carol"]`)
		add(o.call("drop", `{"id":"bobby"}`))
		for range 7 {
			add(o.call("drop", `{"id":"nobody"}`))
		}
		add(o.call("drop", `{"id":"carol"}`))
		if first == nil {
			first = got
		} else if !slices.Equal(first, got) {
			t.Fatal("the second fold differs")
		}
	}
}

// FuzzDecide: no panic, never an accept on bytes that are no call, and never an
// accept of an act with a value that nothing can vouch for.
func FuzzDecide(f *testing.F) {
	p, c := newWorld(f, smallPolicy, smallTools)
	for _, s := range []string{`{"id":"bobby"}`, `{"id":["bobby"]}`, `{"id":{"a":"bobby"}}`, `{"id":"bobby","why":"spam"}`, `{`, `null`, `{"id":null}`, `{"id":"eve"}`, `{"id":1e400}`, "{\"id\":\"\xff\"}"} {
		f.Add([]byte(s), []byte(nil), uint8(1))
		f.Add([]byte(s), []byte(`{"a":"bobby"}`), uint8(2))
	}
	f.Add([]byte(`{"uri":"x://y"}`), []byte(nil), uint8(3))
	f.Add([]byte(`{"ref":{"type":"ref/prompt"},"argument":{}}`), []byte(nil), uint8(6))
	f.Fuzz(func(t *testing.T, args, answers []byte, which uint8) {
		s := gate.NewSession("s_f", [32]byte{3}, provenance.Caps{})
		see := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Call: gate.Call{Server: "u", Tool: "list"}})
		s.Decided(&see)
		s.Commit(s.Observe(&see, gate.Result{Evidence: 1, Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":{"users":["bobby"]}}`))}))
		call := gate.Call{Server: "u", Arguments: strictjson.Of(args), Answers: strictjson.Of(answers)}
		switch which % 8 {
		case 0:
			call.Tool = "list"
		case 1:
			call.Tool = "drop"
		case 2:
			call.Tool = "ping"
		case 3:
			call.Method = policy.ReadResource
		case 4:
			call.Method = policy.SubscribeResource
		case 5:
			call.Method = policy.GetPrompt
		case 6:
			call.Method = policy.Complete
		case 7:
			call.Method = policy.ListTemplates
		}
		in := gate.Input{Policy: p, Catalogue: c, Session: s, Call: call, OwnPaths: []string{"/etc/writ"}}
		d := gate.Decide(in)
		if again := gate.Decide(in); !bytes.Equal(d.Record(), again.Record()) {
			t.Fatal("two runs differ")
		}
		if _, err := gate.ParseRecord(d.Record()); err != nil {
			t.Fatal(err)
		}
		in.Shadow, in.Session = true, nil
		shadow := gate.Decide(in)
		for _, b := range [][]byte{args, answers} {
			if b != nil && strictjson.Check(b, strictjson.Request) != nil && (d.Allowed() || shadow.Allowed()) {
				t.Fatal("accepted what is no JSON")
			}
		}
		if !d.Allowed() {
			return
		}
		s.Observe(&d, gate.Result{Evidence: 2, Status: gate.OK, Value: strictjson.Of(args)})
		if call.Tool == "list" || call.Method == policy.ListTemplates {
			return
		}
		for _, b := range [][]byte{args, answers} {
			if b == nil {
				continue
			}
			strictjson.Walk(b, func(path []string, raw []byte) bool {
				v, _ := strictjson.Text(raw)
				if len(path) > 0 && v != "bobby" && v != "spam" && v != "fixed" {
					t.Fatalf("accepted %s", raw)
				}
				return true
			}, nil)
		}
	})
}

// BenchmarkDecide measures one decision of two arguments over a growing ledger.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("leaves=%d", n), func(b *testing.B) {
			o := newOffice(b, provenance.Caps{Leaves: 2_000_000, Bytes: 8 << 30})
			for at := 0; at < n; at += 50_000 {
				var sb strings.Builder
				for i := at; i < min(n, at+50_000); i++ {
					fmt.Fprintf(&sb, `,"user-%07d"`, i)
				}
				if ob := o.list("[" + sb.String()[1:] + "]"); !ob.Admissible {
					b.Fatal(ob.Why)
				}
			}
			in := gate.Input{Policy: o.p, Catalogue: o.c, Session: o.s, Time: o.now,
				Call: gate.Call{Server: "u", Tool: "drop", Arguments: strictjson.Of(fmt.Appendf(nil, `{"id":"user-%07d","why":"spam"}`, n/2))}}
			b.ReportAllocs()
			for b.Loop() {
				if d := gate.Decide(in); !d.Allowed() {
					b.Fatal(d.Outcome)
				}
			}
		})
	}
}

// P21: decisions of one session may be made side by side; each sees what was
// committed before it and changes nothing.
func TestDecideSideBySide(t *testing.T) {
	o := newOffice(t, provenance.Caps{})
	o.list(`["bobby"]`)
	in := gate.Input{Policy: o.p, Catalogue: o.c, Session: o.s, Time: o.now, Call: gate.Call{Server: "u", Tool: "drop", Arguments: strictjson.Of([]byte(`{"id":"bobby"}`))}}
	d := gate.Decide(in)
	want := d.Record()
	done := make(chan bool)
	for range 8 {
		go func() {
			ok := true
			for range 50 {
				d := gate.Decide(in)
				ok = ok && bytes.Equal(d.Record(), want)
				o.s.Observe(&d, gate.Result{Evidence: 2, Status: gate.OK, Value: strictjson.Of([]byte(`{}`))})
			}
			done <- ok
		}()
	}
	for range 8 {
		if !<-done {
			t.Error("a decision differs")
		}
	}
}

// D02: a refusal of very many values stays in proportion, and is quick.
func TestManyFailures(t *testing.T) {
	p, c := newWorld(t, smallPolicy, smallTools)
	args := []byte(`{"why":[` + strings.Repeat(`"x",`, 20_000) + `"x"]}`)
	d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: gate.NewSession("s_m", [32]byte{}, provenance.Caps{}),
		Call: gate.Call{Server: "u", Tool: "drop", Arguments: strictjson.Of(args)}})
	if d.Allowed() || d.Outcome.Rejection.Code != writ.InvalidPayload || len(d.Outcome.Rejection.Failures) != 1 {
		t.Errorf("an array of targets: %d failures", len(d.Outcome.Rejection.Failures))
	}
	if _, err := gate.ParseRecord(d.Record()); err != nil {
		t.Error(err)
	}
	// W15: more than a request may be.
	args = []byte(`{"why":"` + strings.Repeat("x", 4<<20) + `"}`)
	if d = gate.Decide(gate.Input{Policy: p, Catalogue: c, Call: gate.Call{Server: "u", Tool: "drop", Arguments: strictjson.Of(args)}}); d.Allowed() || d.Outcome.Rejection.Reason != writ.PayloadTooLarge {
		t.Errorf("%+v", d.Outcome)
	}
}

// A tool that is not open is refused as a name, or for what keeps it shut, in
// the order of the classes; one that is refused outright in shadow mode too
// (T04, R26).
func TestNotOpen(t *testing.T) {
	for _, x := range []struct {
		state  gate.State
		reason writ.Reason
		bare   bool // without a contract
		want   writ.Reason
		shadow bool // passes in shadow mode
	}{
		{gate.Open, "", false, "", true},
		{gate.Open, "", true, writ.NameForbidden, true},
		{gate.Shut, "", false, writ.NameForbidden, true},
		{gate.Shut, writ.NameChanged, false, writ.NameChanged, true},
		{gate.Shut, writ.PolicyClosed, false, writ.PolicyClosed, true},
		{gate.Shut, writ.PolicyClosed, true, writ.NameForbidden, true},
		{gate.Shut, writ.SchemaUnusable, false, writ.SchemaUnusable, true},
		{gate.Refused, "", false, writ.NameForbidden, false},
		{gate.Refused, writ.NameAmbiguous, false, writ.NameAmbiguous, false},
		{gate.Refused, writ.SchemaUnusable, false, writ.NameForbidden, false},
		{gate.Refused, writ.PolicyClosed, false, writ.NameForbidden, false},
	} {
		o := newOffice(t, provenance.Caps{})
		tool := o.c.Lookup("u", "ping")
		tool.State, tool.Reason = x.state, x.reason
		if x.bare {
			tool.Contract = nil
		}
		d := o.call("ping", `{"id":"fixed"}`)
		if got := o.reason(d); got != x.want || d.Allowed() != (x.want == "") {
			t.Errorf("%+v: %q", x, got)
		}
		if r := d.Outcome.Rejection; r != nil && (r.Code != writ.CodeOf(x.want) || r.Failures[0].Need == "") {
			t.Errorf("%+v: %+v", x, r)
		}
		s := gate.Decide(gate.Input{Policy: o.p, Catalogue: o.c, Shadow: true, Call: gate.Call{Server: "u", Tool: "ping", Arguments: strictjson.Of([]byte(`{"id":"fixed"}`))}})
		if s.Allowed() != x.shadow {
			t.Errorf("%+v: in shadow mode %v", x, s.Allowed())
		}
	}
}
