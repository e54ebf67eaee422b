package gate_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// TestGrows: each line that a question offers makes that very call pass from now on,
// and nothing that R9, R28 or R37 hold.
func TestGrows(t *testing.T) {
	const base = `pins: optional
collections: { channel: {}, doc: {} }
tools:
  chat/list: { effect: read, outputs: [{ at: /ids/*, label: system, collection: channel, authoritative: true }, { at: /topic, label: external }, { at: /by, label: party }, { at: /pin, label: external, secret: true }] }
  chat/doc: { effect: read, outputs: [{ in: text, extract: json, pointer: /ids/*, label: external }, { in: text, extract: json, pointer: /sys/*, label: system }] }
  chat/draft: { effect: read, arguments: plain }
  chat/unread: { effect: read }
  chat/pin: { effect: write, args: { /channel: { role: selector, collection: channel, from: [user, output: chat/own#/ids/*] } } }
  chat/name: { effect: write, args: { /channel: { role: selector, collection: channel, from: [user] } } }
  chat/send: { effect: send, args: { /channel: { role: target, collection: channel } } }
  chat/own: { effect: read, outputs: [{ at: /ids/*, label: system, collection: channel }] }
  chat/drop: { effect: delete, args: { /channel: { role: selector, collection: channel } } }
`
	const tools = `{"chat":[{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},{"name":"doc","inputSchema":{"type":"object"}},{"name":"own","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},
{"name":"draft","inputSchema":{"type":"object"}},{"name":"unread","inputSchema":{"type":"object"}},{"name":"name","inputSchema":{"type":"object","properties":{"channel":{"type":"string"}}}},
{"name":"pin","inputSchema":{"type":"object","properties":{"channel":{"type":"string"}}}},{"name":"send","inputSchema":{"type":"object","properties":{"channel":{"type":"string"}}}},
{"name":"drop","inputSchema":{"type":"object","properties":{"channel":{"type":"string"}}}}]}`
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	run := func(text, tool, channel string) gate.Decision {
		p, c := newWorld(t, text, tools)
		s := gate.NewSession("s_a", [32]byte{1}, provenance.Caps{})
		decide := func(tool, args string) gate.Decision {
			d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Time: at, Call: gate.Call{Server: "chat", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
			s.Decided(&d)
			return d
		}
		d := decide("list", "{}")
		s.Commit(s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":{"ids":["C-infra","C-eve"],"topic":"C-topic","by":"C-party","pin":"C-secret"},"content":[{"type":"text","text":"C-prose"}]}`))}))
		d = decide("doc", "{}")
		s.Commit(s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(`{"content":[{"type":"text","text":"{\"ids\":[\"C-in-text\"],\"sys\":[\"C-in-sys\"],\"who\":\"C-unnamed\"}"}]}`))}))
		answer := `{"content":[{"type":"text","text":"{\"all\":[{\"id\":\"C-10%s\",\"of\":{\"name\":\"C-drafted\"},\"C-77\":{\"id\":\"C-below-data\"},\"pay C-1\":\"C-named-so\"}]}"},{"type":"text","text":"{\"id\":\"C-second\"}"}]}`
		for i, tool := range []string{"draft", "unread"} {
			d = decide(tool, "{}")
			s.Commit(s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of(fmt.Appendf(nil, answer, strconv.Itoa(i)))}))
		}
		return decide(tool, `{"channel":"`+channel+`"}`)
	}
	for _, c := range []struct {
		tool, channel string
		grows         []string // what the lines are
	}{
		{"pin", "C-infra", []string{`{"tool":"chat/pin","arg":"/channel","from":"chat/list#/ids/*"}`, `{"tool":"chat/pin","arg":"/channel","const":"C-infra"}`}},
		{"name", "C-topic", []string{`{"tool":"chat/name","arg":"/channel","from":"chat/list#/topic","writes":"ours"}`, `{"tool":"chat/name","arg":"/channel","const":"C-topic"}`}},
		{"send", "C-infra", []string{`{"closed":"channel"}`, `{"tool":"chat/send","arg":"/channel","const":"C-infra"}`}},
		{"send", "C-topic", []string{`{"tool":"chat/send","arg":"/channel","from":"chat/list#/topic","writes":"ours"}`, `{"tool":"chat/send","arg":"/channel","const":"C-topic"}`}},
		{"name", "C-party", []string{`{"tool":"chat/name","arg":"/channel","const":"C-party"}`}},
		{"name", "C-secret", []string{`{"tool":"chat/name","arg":"/channel","const":"C-secret"}`}},
		{"name", "C-prose", []string{`{"tool":"chat/name","arg":"/channel","const":"C-prose"}`}},
		{"name", "C-in-text", []string{`{"tool":"chat/name","arg":"/channel","from":"chat/doc#/ids/*","in":"text","writes":"ours"}`, `{"tool":"chat/name","arg":"/channel","const":"C-in-text"}`}},
		{"name", "C-in-sys", []string{`{"tool":"chat/name","arg":"/channel","const":"C-in-sys"}`}},
		{"name", "C-unnamed", []string{`{"tool":"chat/name","arg":"/channel","const":"C-unnamed"}`}},
		// what a drafted read answers in a text has the names of its fields, and no more
		{"name", "C-100", []string{`{"tool":"chat/name","arg":"/channel","from":"chat/draft#/all/*/id","in":"text","writes":"server"}`,
			`{"tool":"chat/name","arg":"/channel","from":"chat/draft#/all/*/id","in":"text","writes":"ours"}`, `{"tool":"chat/name","arg":"/channel","const":"C-100"}`}},
		{"name", "C-drafted", []string{`{"tool":"chat/name","arg":"/channel","from":"chat/draft#/all/*/of/name","in":"text","writes":"ours"}`, `{"tool":"chat/name","arg":"/channel","const":"C-drafted"}`}},
		{"name", "C-below-data", []string{`{"tool":"chat/name","arg":"/channel","from":"chat/draft#/all/*/C-77/id","in":"text","writes":"ours"}`, `{"tool":"chat/name","arg":"/channel","const":"C-below-data"}`}},
		{"name", "C-named-so", []string{`{"tool":"chat/name","arg":"/channel","const":"C-named-so"}`}},
		{"name", "C-second", []string{`{"tool":"chat/name","arg":"/channel","const":"C-second"}`}},
		{"name", "C-101", []string{`{"tool":"chat/name","arg":"/channel","const":"C-101"}`}},
		{"drop", "C-infra", nil},
		{"drop", "C-topic", nil},
	} {
		d := run(base, c.tool, c.channel)
		if d.Allowed() || d.Ask() == nil || len(d.Ask().Values) != 1 {
			t.Fatalf("%s: %+v", c.tool, d.Outcome)
		}
		got := d.Ask().Values[0].Grows
		if len(got) != len(c.grows) {
			t.Fatalf("%s %s: %+v", c.tool, c.channel, got)
		}
		for i, g := range got {
			text := string(policy.GrownText([]policy.Grown{g}))
			if want := "grown:\n  - " + c.grows[i] + "\n"; text != want {
				t.Errorf("got %s want %s", text, want)
			}
			all, _ := policy.WithGrown([]byte(base), []byte(text))
			if d := run(string(all), c.tool, c.channel); !d.Allowed() {
				t.Errorf("%s: still refused: %+v", text, d.Outcome.Rejection)
			}
			if d := run(string(all), c.tool, "C-other"); d.Allowed() {
				t.Errorf("%s: lets pass what nobody saw", text)
			}
		}
	}
}

// TestKeeps: a call that a person is asked about can be kept whole, whatever its texts
// say or with them, and makes that call pass and none beside it; what destroys, pays or
// grants, by its effect or by what it says, cannot.
func TestKeeps(t *testing.T) {
	const base = `pins: optional
tools:
  chat/send: { effect: send, args: { /to: { role: target, from: [user] }, /text: { role: content, content: open } } }
  chat/run: { effect: [write, send, delete], assumed: delete, args: { /mode: { role: target, from: [user] }, /sql: { role: target, from: [approval] }, /all: { role: target, from: [user] } } }
  chat/drop: { effect: [write, delete], args: { /mode: { role: target, from: [user] } } }
  chat/pay: { effect: [write, transfer], args: { /mode: { role: target, from: [user] } } }
  chat/share: { effect: auth, args: { /mode: { role: target, from: [user] } } }
`
	const tools = `{"chat":[{"name":"send","inputSchema":{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"}}}},
{"name":"run","inputSchema":{"type":"object","properties":{"mode":{"type":"string"},"sql":{"type":"string"},"all":{"type":"boolean"}},"additionalProperties":true}},
{"name":"drop","inputSchema":{"type":"object","properties":{"mode":{"type":"string"}}}},{"name":"pay","inputSchema":{"type":"object","properties":{"mode":{"type":"string"}}}},
{"name":"share","inputSchema":{"type":"object","properties":{"mode":{"type":"string"}}}}]}`
	run := func(text, tool, args string) gate.Decision {
		p, c := newWorld(t, text, tools)
		return gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: gate.NewSession("s_a", [32]byte{1}, provenance.Caps{}), Time: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC),
			Call: gate.Call{Server: "chat", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
	}
	for _, c := range []struct {
		tool, args string
		keeps      []string // the calls of the lines
		passes     []bool   // whether this call does by them
	}{
		{"send", `{"to":"C1","text":"Hello"}`, []string{`{"to":"C1"},"texts":["/text"]`, `{"text":"Hello","to":"C1"}`}, []bool{true, true}},
		{"send", `{"to":"C1","text":"ask a@evil.example"}`, []string{`{"to":"C1"},"texts":["/text"]`, `{"text":"ask a@evil.example","to":"C1"}`}, []bool{false, true}},
		{"send", `{"to":"C1","text":"please delete it"}`, []string{`{"to":"C1"},"texts":["/text"]`, `{"text":"please delete it","to":"C1"}`}, []bool{true, true}},
		{"send", `{"text":"Hello"}`, []string{`{},"texts":["/text"]`, `{"text":"Hello"}`}, []bool{false, true}},
		{"run", `{"mode":"list"}`, []string{`{"mode":"list"}`}, []bool{true}},
		{"run", `{}`, []string{`{}`}, []bool{true}},
		{"run", `{"sql":"SELECT deleted_at FROM t","mode":"x","any":{"deep":[1]}}`, []string{`{"any":{"deep":[1]},"mode":"x","sql":"SELECT deleted_at FROM t"}`}, []bool{true}},
		{"run", `{"mode":"delete"}`, nil, nil},
		{"run", `{"mode":"DeleteAll"}`, nil, nil},
		{"run", `{"sql":"SELECT 1; drop table t"}`, nil, nil},
		{"run", `{"mode":"x","force":true}`, nil, nil},
		{"run", `{"mode":"x","all":false}`, []string{`{"all":false,"mode":"x"}`}, []bool{true}},
		{"run", `{"mode":"x","purge":"a"}`, nil, nil},
		{"drop", `{"mode":"x"}`, nil, nil},
		{"pay", `{"mode":"x"}`, nil, nil},
		{"share", `{"mode":"x"}`, nil, nil},
	} {
		d := run(base, c.tool, c.args)
		if d.Allowed() || d.Ask() == nil {
			t.Fatalf("%s %s: %+v", c.tool, c.args, d.Outcome)
		}
		if got := d.Ask().Keeps; len(got) != len(c.keeps) {
			t.Errorf("%s %s: %+v", c.tool, c.args, got)
			continue
		}
		for i, g := range d.Ask().Keeps {
			text := string(policy.GrownText([]policy.Grown{g}))
			if want := "grown:\n  - {\"tool\":\"chat/" + c.tool + "\",\"call\":" + c.keeps[i] + "}\n"; text != want {
				t.Errorf("got %s want %s", text, want)
			}
			all, _ := policy.WithGrown([]byte(base), []byte(text))
			if d := run(string(all), c.tool, c.args); d.Allowed() != c.passes[i] {
				t.Errorf("%s %s: passes %v", c.tool, c.args, d.Allowed())
			}
			for _, other := range []string{`{"to":"C2"}`, `{"mode":"other"}`, `{"mode":"list","all":true}`, `{"text":"ask b@evil.example"}`} {
				if d := run(string(all), c.tool, other); d.Allowed() {
					t.Errorf("%s: lets %s pass", text, other)
				}
			}
		}
	}
}

// TestAskedInBulk: a call of many values is put to a person, up to a bound.
func TestAskedInBulk(t *testing.T) {
	p, c := newWorld(t, `pins: optional
tools: { it/save: { effect: write, args: { /files/*/path: { role: target, from: [user] }, /files/*/content: { role: content, content: open } } } }
`, `{"it":[{"name":"save","inputSchema":{"type":"object","properties":{"files":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}}}}}}]}`)
	for n, asked := range map[int]bool{1: true, 11: true, 50: true, 101: false} {
		var files []string
		for i := range n {
			files = append(files, fmt.Sprintf(`{"path":"f%d.md","content":"x%d"}`, i, i))
		}
		d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: gate.NewSession("s_a", [32]byte{1}, provenance.Caps{}), Time: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC),
			Call: gate.Call{Server: "it", Tool: "save", Arguments: strictjson.Of([]byte(`{"files":[` + strings.Join(files, ",") + `]}`))}})
		if d.Allowed() || (d.Ask() != nil) != asked || asked && len(d.Ask().Values) != 2*n {
			t.Errorf("%d files: asked %v", n, d.Ask() != nil)
		}
	}
}

// TestGiven: that a server gives what stands in a field itself is offered where nothing
// that was seen there speaks against it, and holds though places were lowered (R38), of
// what no call of the session brought in.
func TestGiven(t *testing.T) {
	const base = `pins: optional
tools:
  desk/list: { effect: read, outputs: [{ at: /rows/*/id, label: external }, { at: /rows/*/key, label: external }, { at: /rows/*/who, label: external }] }
  desk/find: { effect: read, args: { /word: { role: query } }, outputs: [{ at: /id, label: external }] }
  desk/note: { effect: write, args: { /id: { role: target, from: [user] }, /text: { role: target, from: [approval] } } }
`
	const tools = `{"desk":[{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},
{"name":"find","inputSchema":{"type":"object","properties":{"word":{"type":"string"}}},"outputSchema":{"type":"object"}},
{"name":"note","inputSchema":{"type":"object","properties":{"id":{"type":"string"},"text":{"type":"string"}}}}]}`
	const line = `grown: [{ tool: desk/note, arg: /id, from: "desk/%s", writes: %s }]` + "\n"
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	// run makes calls, each with what it answered, in a session of a state in which an act
	// sent the agent's own text before, and judges the last.
	run := func(policy string, calls ...[3]string) gate.Decision {
		p, c := newWorld(t, policy, tools)
		s := gate.NewSession("s_a", [32]byte{1}, provenance.Caps{})
		places := provenance.NewPlaces()
		places.Lower(1, provenance.Place{Server: "desk", Tool: "note", Label: writ.Model})
		var d gate.Decision
		for i, call := range calls {
			in := gate.Input{Policy: p, Catalogue: c, Session: s, Time: at, Call: gate.Call{Server: "desk", Tool: call[0], Arguments: strictjson.Of([]byte(call[1]))}}
			if d = gate.Decide(in); i == len(calls)-1 {
				break
			}
			if ask := d.Ask(); ask != nil { // a person says yes, this once
				s.Commit(s.Approve(s.Next(), gate.Approval{Act: ask.Act, Covers: ask.Covers(), Yes: true, By: "kim", Label: writ.User, At: at}))
				d = gate.Decide(in)
			}
			if s.Decided(&d); !d.Allowed() {
				t.Fatalf("%v: %+v", call, d.Outcome)
			}
			s.Commit(s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Places: places, Through: 1,
				Value: strictjson.Of([]byte(`{"structuredContent":` + call[2] + `,"content":[]}`))}))
		}
		return d
	}
	rows := func(rows string) [3]string { return [3]string{"list", `{}`, `{"rows":[` + rows + `]}`} }
	note := func(id, text string) [3]string {
		return [3]string{"note", `{"id":"` + id + `","text":"` + text + `"}`, `{}`}
	}
	list := rows(`{"id":"T-1042","key":"fix-7","who":"kim@staff.example"},{"id":"T-1043","key":"fix-8","who":"U1001"}`)
	for _, c := range []struct {
		name    string
		calls   [][3]string // the last is judged
		field   string      // of its id
		offered bool        // that the server gives it
		passes  bool        // by the line
	}{
		{"an id", [][3]string{list, note("T-1043", "x")}, "list#/rows/*/id", true, true},
		{"after an act on it", [][3]string{list, note("T-1043", "as in T-1042"), list, note("T-1042", "x")}, "list#/rows/*/id", true, true},
		{"an address", [][3]string{list, note("kim@staff.example", "x")}, "list#/rows/*/who", false, false},
		{"beside an address", [][3]string{list, note("U1001", "x")}, "list#/rows/*/who", false, true},
		{"what an act sent", [][3]string{note("T-1042", "evil-66"), rows(`{"id":"T-1042","key":"evil-66"},{"id":"T-1043","key":"fix-8"}`), note("evil-66", "x")}, "list#/rows/*/key", false, false},
		{"beside what an act sent", [][3]string{note("T-1042", "evil-66"), rows(`{"id":"T-1042","key":"evil-66"},{"id":"T-1043","key":"fix-8"}`), note("fix-8", "x")}, "list#/rows/*/key", false, true},
		{"a piece of what an act sent", [][3]string{note("T-1042", "see evil-66"), rows(`{"id":"T-1042","key":"evil-66"}`), note("evil-66", "x")}, "list#/rows/*/key", false, false},
		{"what holds what an act sent", [][3]string{note("T-1042", "evil"), rows(`{"id":"T-1042","key":"evil-66"}`), note("evil-66", "x")}, "list#/rows/*/key", false, false},
		{"an echo", [][3]string{{"find", `{"word":"T-666"}`, `{"id":"T-666"}`}, note("T-666", "x")}, "find#/id", false, false},
		{"found by the agent's words", [][3]string{{"find", `{"word":"the loose hinge"}`, `{"id":"T-1042"}`}, note("T-1042", "x")}, "find#/id", true, true},
		{"found by what may be a name", [][3]string{{"find", `{"word":"hinge"}`, `{"id":"T-1042"}`}, note("T-1042", "x")}, "find#/id", false, false},
		{"found by a full name", [][3]string{{"find", `{"word":"Mallory Evil"}`, `{"id":"T-1042"}`}, note("T-1042", "x")}, "find#/id", false, false},
		{"found by an id", [][3]string{{"find", `{"word":"T-666 hinge"}`, `{"id":"T-1042"}`}, note("T-1042", "x")}, "find#/id", false, false},
		{"found by a number", [][3]string{{"find", `{"word":"25"}`, `{"id":"T-1042"}`}, note("T-1042", "x")}, "find#/id", false, false},
		{"and it holds that", [][3]string{{"find", `{"word":"1042"}`, `{"id":"T-1042"}`}, note("T-1042", "x")}, "find#/id", false, false},
		{"what nobody saw", [][3]string{list, note("T-9999", "x")}, "list#/rows/*/id", false, false},
		{"of another field", [][3]string{list, note("fix-7", "x")}, "list#/rows/*/id", false, false},
	} {
		offers := func(d gate.Decision, kind string) bool { // of that field
			for _, v := range d.Ask().Values {
				for _, g := range v.Grows {
					if v.Pointer == "/id" && g.Writes == kind && g.From == "desk/"+c.field {
						return true
					}
				}
			}
			return false
		}
		failed := func(d gate.Decision) bool { // the text is asked about each time
			return slices.ContainsFunc(d.Ask().Values, func(v gate.AskedValue) bool { return v.Pointer == "/id" })
		}
		if d := run(base, c.calls...); !failed(d) || offers(d, policy.WritesServer) != c.offered || offers(d, policy.WritesOurs) {
			t.Errorf("%s: offered %+v", c.name, d.Ask().Values)
		}
		if d := run(base+fmt.Sprintf(line, c.field, "ours"), c.calls...); !failed(d) {
			t.Errorf("%s: passes where our own people write", c.name)
		}
		if d := run(base+fmt.Sprintf(line, c.field, "server"), c.calls...); failed(d) == c.passes {
			t.Errorf("%s: %+v", c.name, d.Outcome.Rejection)
		}
	}
}

// TestOneField: where a value stands in several fields, what is offered is of the one that is
// called as the argument is; who repeats it in a field of his, above it, chooses nothing.
func TestOneField(t *testing.T) {
	const base = "pins: optional\ntools:\n  tix/list: { effect: read, arguments: plain }\n  tix/other: { effect: read, arguments: plain }\n" +
		"  tix/close: { effect: write, args: { /ARG: { role: target, from: [user] } } }\n"
	const tools = `{"tix":[{"name":"list","inputSchema":{"type":"object","properties":{"state":{"type":"string"}}}},{"name":"other","inputSchema":{"type":"object"}},{"name":"close","inputSchema":{"type":"object","properties":{"ARG":{"type":"string"}}}}]}`
	for _, c := range []struct {
		arg, list, other string
		grows            string // field and word of each line
	}{
		{"id", `[{"id":"T-9","ref":"T-41"},{"id":"T-41","ref":""}]`, `{}`, "list /*/id server; list /*/id ours; const"},
		{"ticket_id", `[{"id":"T-9","title":"T-41"},{"id":"T-41","title":"x"}]`, `{}`, "list /*/id server; list /*/id ours; const"},
		{"id", `[{"ids":["T-41"],"owner":"T-41"}]`, `{}`, "list /*/ids/* server; list /*/ids/* ours; const"},
		{"id", `[{"id":"T-41"}]`, `{"of":{"id":"T-41"}}`, "list /*/id server; list /*/id ours; const"},
		{"id", `[{"ref":"T-41"}]`, `{}`, "list /*/ref server; list /*/ref ours; const"}, // the question names it
		{"ticket", `[{"ref":"T-41","id":"T-41"}]`, `{}`, "const"},                       // either of two
		{"ticket", `[{"id":"T-41"}]`, `{"id":"T-41"}`, "list /*/id server; list /*/id ours; const"},
		{"id", `[{"id":"T-41"},{"id":"two words"}]`, `{}`, "list /*/id ours; const"},
		{"id", `[{"id":"two words"},{"id":"T-41"}]`, `{}`, "list /*/id ours; const"},
	} {
		p, cat := newWorld(t, strings.ReplaceAll(base, "ARG", c.arg), strings.ReplaceAll(tools, "ARG", c.arg))
		s := gate.NewSession("s_a", [32]byte{1}, provenance.Caps{})
		decide := func(tool, args string) gate.Decision {
			d := gate.Decide(gate.Input{Policy: p, Catalogue: cat, Session: s, Time: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC), Call: gate.Call{Server: "tix", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
			s.Decided(&d)
			return d
		}
		for i, text := range []string{c.list, c.other} {
			d := decide([]string{"list", "other"}[i], `{}`)
			s.Commit(s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(`{"content":[{"type":"text","text":` + string(strictjson.Quote(text)) + `}]}`))}))
		}
		d := decide("close", `{"`+c.arg+`":"T-41"}`)
		var got []string
		for _, g := range d.Ask().Values[0].Grows {
			if g.Const != nil {
				got = append(got, "const")
			} else {
				got = append(got, strings.NewReplacer("tix/", "", "#", " ").Replace(g.From)+" "+g.Writes)
			}
		}
		if strings.Join(got, "; ") != c.grows {
			t.Errorf("%s of %s and %s: %q", c.arg, c.list, c.other, got)
		}
	}
}

// TestShare: results of which no contract says anything have their share of a session's evidence,
// and leave the rest to what was reviewed.
func TestShare(t *testing.T) {
	p, cat := newWorld(t, "pins: optional\ncollections: { doc: { closed: true } }\ntools:\n  d/raw: { effect: read, arguments: plain }\n  d/list: { effect: read, outputs: [{ at: /ids/*, label: system, collection: doc }] }\n  d/drop: { effect: write, args: { /id: { role: selector, collection: doc } } }\n",
		`{"d":[{"name":"raw","inputSchema":{"type":"object"}},{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},{"name":"drop","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}]}`)
	s := gate.NewSession("s_a", [32]byte{1}, provenance.Caps{Leaves: 100})
	call := func(tool, args, result string) (gate.Decision, gate.Observation) {
		d := gate.Decide(gate.Input{Policy: p, Catalogue: cat, Session: s, Time: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC), Call: gate.Call{Server: "d", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
		s.Decided(&d)
		o := s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(result))})
		s.Commit(o)
		return d, o
	}
	taken := 0
	for range 40 {
		if _, o := call("raw", `{}`, `{"content":[{"type":"text","text":"{\"a\":[1,2,3]}"}]}`); o.Admissible {
			taken += o.Facts
		} else if o.Why != gate.WhyCrowded {
			t.Fatalf("%+v", o)
		}
	}
	if taken == 0 || taken > 25 {
		t.Errorf("%d of 100 values", taken)
	}
	if _, o := call("list", `{}`, `{"structuredContent":{"ids":["doc-17"]}}`); !o.Admissible {
		t.Errorf("%+v", o)
	}
	if d, _ := call("drop", `{"id":"doc-17"}`, `{}`); !d.Allowed() {
		t.Errorf("%+v", d.Outcome)
	}
}

// BenchmarkUnasked: what the fields of a text cost that nobody declared, of the most that is
// looked at.
func BenchmarkUnasked(b *testing.B) {
	var doc strings.Builder
	for i := range 49 {
		doc.WriteString(map[bool]string{true: "[{", false: ",{"}[i == 0])
		for k := range 100 {
			fmt.Fprintf(&doc, `%s"f%d":"v%d-%d"`, map[bool]string{true: "", false: ","}[k == 0], k, i, k)
		}
		doc.WriteString("}")
	}
	doc.WriteString("]")
	value := strictjson.Of([]byte(`{"content":[{"type":"text","text":` + string(strictjson.Quote(doc.String())) + `}]}`))
	for b.Loop() {
		x := provenance.Extraction(provenance.WithFields(nil, value), value, strictjson.Value{})
		if len(x.Leaves) < 4900 {
			b.Fatal(len(x.Leaves))
		}
	}
}

// TestANoOutlivesThePolicy: what a person said no to stays refused when another thing is
// allowed from now on, or the operator's file is read anew.
func TestANoOutlivesThePolicy(t *testing.T) {
	const base = `pins: optional
collections: { doc: {} }
tools:
  d/list: { effect: read, outputs: [{ at: /docs/*/id, label: system, collection: doc, authoritative: true }, { at: /docs/*/title, label: external }] }
  d/drop: { effect: delete, args: { /id: { role: selector, collection: doc } } }
  d/note: { effect: write, args: { /id: { role: selector, collection: doc, from: [user] } } }
`
	const tools = `{"d":[{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},{"name":"drop","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}},
{"name":"note","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}]}`
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	s := gate.NewSession("s_a", [32]byte{1}, provenance.Caps{})
	text := base
	decide := func(tool, args string) gate.Decision {
		p, c := newWorld(t, text, tools)
		d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Time: at, Call: gate.Call{Server: "d", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
		s.Decided(&d)
		return d
	}
	s.Commit(s.Turn(s.Next(), []byte("delete the document Blue plan"), at))
	d := decide("drop", `{"id":"doc-100002"}`)
	if d.Ask() == nil {
		t.Fatalf("nobody is asked: %+v", d.Outcome)
	}
	s.Commit(s.Approve(s.Next(), gate.Approval{Act: d.Ask().Act, Covers: d.Ask().Covers(), By: "kim", Label: writ.User, At: at}))
	d = decide("list", "{}")
	s.Commit(s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":{"docs":[{"id":"doc-100002","title":"Blue plan"}]}}`))}))
	grown, _ := policy.WithGrown([]byte(base), []byte("grown:\n  - "+`{"tool":"d/note","arg":"/id","const":"doc-100003"}`+"\n"))
	for _, text = range []string{base, string(grown)} {
		// It is what the user named, and what was said no to.
		if d = decide("drop", `{"id":"doc-100002"}`); d.Allowed() || d.Outcome.Rejection.Reason != writ.ApprovalRefused {
			t.Errorf("%+v", d.Outcome)
		}
	}
}
