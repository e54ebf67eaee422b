package memory

import (
	"bytes"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
)

// M09: a secret is found behind what is taken out of a text, in a number and in
// a name; what was redacted before says so.
func TestRedact(t *testing.T) {
	for _, c := range []struct{ in, secrets, want string }{
		{`"my key is s3cr3t-x"`, "s3cr3t-x", `"my key is [redacted]"`},
		{`"my key is s3cr\u0033t-x"`, "s3cr3t-x", `"my key is [redacted]"`},
		{`[47114711,4711,"4711"]`, "47114711", `["[redacted]",4711,"4711"]`},
		{`{"s3cr3t-x":1,"y":{"as3cr3t-xb":true}}`, "s3cr3t-x", `{"[redacted]0":1,"y":{"a[redacted]b0":true}}`},
		{`"s3cr3t-x and longer-s3cr3t-x"`, "longer-s3cr3t-x s3cr3t-x", `"[redacted] and [redacted]"`},
		{`"abc"`, "abc", `"abc"`}, // too short to be one
		{`"s3cr3t-x"`, "", `"s3cr3t-x"`},
	} {
		if got := string(Redact([]byte(c.in), strings.Fields(c.secrets))); got != c.want {
			t.Errorf("%s without %s: %s, want %s", c.in, c.secrets, got, c.want)
		}
	}
	x := newScript(t)
	x.c.Secrets = []string{"hunter2-hunter2"}
	for _, l := range []string{
		`record_observation {"observation_id":"o1","raw_payload":"a word","source_ref":"note"}`,
		`create_or_link_entity_candidate {"name":"hunter2\u200b-hunter2","entity_type":"thing","aliases":["hun\u00adter2-hunter2"],"observation_ids":["o1"]}`,
		`propose_proposition {"text":"it is hunter2-hunt\u0007er2","observation_ids":["o1"],"about":["$ent1"]}`,
	} {
		if got := x.line(l); strings.HasPrefix(got, "rejected") {
			t.Errorf("%s: %s", l, got)
		}
	}
	var all bytes.Buffer
	for _, r := range x.log {
		all.Write(r.value)
	}
	if err := x.s.Encode(&all); err != nil {
		t.Fatal(err)
	}
	if s := all.String(); strings.Contains(s, "hunter2-hunter2") || strings.Count(s, Mark) < 5 {
		t.Errorf("kept: %s", s)
	}
	x.c.Secrets, x.c.Redacted = nil, true
	if got := x.line(`record_observation {"observation_id":"o2","raw_payload":"it is [redacted]","source_ref":"note"}`); !strings.HasPrefix(got, "transformed | redacted;") {
		t.Errorf("redacted before, and not said: %s", got)
	}
}

// What the screen blocks is refused in every proposal, whatever it holds.
func TestScreenBlocks(t *testing.T) {
	x := newScript(t)
	x.line(`record_observation {"observation_id":"o1","raw_payload":"a word","source_ref":"note"}`)
	x.c.Screened = ScreenBlock
	for _, l := range []string{
		`record_observation {"observation_id":"o2","raw_payload":"a word","source_ref":"note"}`,
		`record_observation {"observation_id":"o1","raw_payload":"a word","source_ref":"note"}`,
		`create_or_link_entity_candidate {"name":"a name","entity_type":"thing","observation_ids":["o1"]}`,
	} {
		if got := x.line(l); !strings.HasPrefix(got, "rejected POLICY_VIOLATION "+string(writ.ObservationScreened)) {
			t.Errorf("%s: %s", l, got)
		}
	}
	// The order of the codes holds: it has no provenance before it is screened.
	got := x.line(`create_or_link_entity_candidate {"name":"a name","entity_type":"thing","observation_ids":["o9"]}`)
	if !strings.HasPrefix(got, "rejected "+string(writ.MissingProvenance)) {
		t.Error(got)
	}
}

// A refused proposal that is larger written out than it came is on record
// without its text: an event that could not be applied would end the namespace.
func TestRefusedLarge(t *testing.T) {
	x := newScript(t)
	x.line(`record_observation {"observation_id":"o1","raw_payload":"a word","source_ref":"note"}`)
	for _, payload := range []string{
		`{"observation_id":"o2","raw_payload":"x","parsed_payload":{"a":[1e20` + strings.Repeat(",1e20", 19000) + `]}}`,
		strings.Repeat("\x01", 200<<10),
		`{"observation_id":"o2","raw_payload":"` + strings.Repeat("s3cr3t-", 30000) + `"}`,
	} {
		c := x.c
		c.Secrets = []string{"s3cr3t"}
		d := Handle(x.s, c, writ.Proposal{ToolName: ToolRecordObservation, Payload: []byte(payload)})
		if d.Outcome.Rejection == nil || d.Value != nil {
			t.Errorf("%.40s…: %+v with %d bytes", payload, d.Outcome.Rejection, len(d.Value))
		}
		if err := x.s.Apply(d.Event, d.Value); err != nil {
			t.Errorf("%.40s…: %v", payload, err)
		}
	}
}

// M03: a test's result that was recorded before stands in one record alone, and goes
// with that.
func TestResultKeptOnce(t *testing.T) {
	x := newScript(t)
	for _, l := range []string{
		`record_observation {"observation_id":"o1","raw_payload":"Anna's city is Bern.","source_ref":"note"}`,
		`create_or_link_entity_candidate {"name":"Anna","entity_type":"person","observation_ids":["o1"]}`,
		`propose_proposition {"text":"Bern","structured_form":{"subject":"$ent1","predicate":"city","object":{"literal":"Bern"}},"observation_ids":["o1"],"about":["$ent1"]}`,
		`propose_test {"proposition_ids":["$prop1"],"kind":"ask_user","discriminates":{"$prop1":"yes"},"rationale_observation_ids":["o1"]}`,
		`record_observation {"observation_id":"o2","raw_payload":"Is it Chur, as the neighbour says?","source_ref":"note"}`,
		`execute_test_result_ingest {"test_id":"$test1","observation":{"observation_id":"o2","raw_payload":"Is it Chur, as the neighbour says?","source_ref":"note"}}`,
		`operator erase {"observation_ids":["$obs2"],"reason":"request"}`,
	} {
		if got := x.line(l); strings.HasPrefix(got, "rejected") {
			t.Fatalf("%s: %s", l, got)
		}
	}
	for i, r := range x.log {
		if !x.gone[uint64(i+1)] && bytes.Contains(r.value, []byte("neighbour")) {
			t.Errorf("record %d holds what was erased: %s", i+1, r.value)
		}
	}
}
