package memory

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	writ "github.com/writ-project/writ"
)

func TestTooLarge(t *testing.T) {
	x := newScript(t)
	x.begin()
	big := `{"observation_id":"o1","raw_payload":"` + strings.Repeat("x", maxPayload) + `"}`
	d := x.propose(ToolRecordObservation, []byte(big))
	if d.Outcome.Rejection == nil || d.Outcome.Rejection.Reason != writ.PayloadTooLarge || d.Value != nil {
		t.Errorf("%+v, a value of %d bytes", d.Outcome.Rejection, len(d.Value))
	}
	d = x.propose(ToolRecordObservation, []byte(`{"observation_id":"o1","raw_payload":"`+strings.Repeat("x", maxRaw+1)+`"}`))
	if d.Outcome.Rejection == nil || d.Outcome.Rejection.Reason != writ.SchemaInvalid {
		t.Errorf("%+v", d.Outcome.Rejection)
	}
}

// A decision is made under the policy, mode and namespace in force and no other.
func TestPolicyInForce(t *testing.T) {
	x := newScript(t)
	x.begin()
	p := writ.Proposal{ToolName: ToolConsolidate, Payload: []byte(`{"reason":"task_boundary"}`)}
	for name, change := range map[string]func(*Context){
		"another policy":    func(c *Context) { c.Policy = otherPolicy(t) },
		"no policy":         func(c *Context) { c.Policy = nil },
		"another mode":      func(c *Context) { c.Mode = Local },
		"no mode":           func(c *Context) { c.Mode = "" },
		"another namespace": func(c *Context) { c.Namespace = "other" },
	} {
		c := x.c
		change(&c)
		d := Handle(x.s, c, p)
		if d.Outcome.Rejection == nil || d.Outcome.Rejection.Reason != writ.MemoryPolicy {
			t.Errorf("%s: %+v", name, d.Outcome)
		}
		before, policy := tables(t, x.s), x.s.PolicyHash()
		if err := x.s.Apply(d.Event, d.Value); err != nil || tables(t, x.s) != before || x.s.PolicyHash() != policy || x.s.Mode() != Hardened {
			t.Errorf("%s: the refusal changed the state, or could not be applied: %v", name, err)
		}
	}
	// Before its first event a namespace decides nothing and records nothing.
	if d := Handle(New(), x.c, p); d.Outcome.Status != writ.Rejected || d.Event != nil {
		t.Errorf("%+v", d)
	}
	// An operator puts another policy in force; then it decides.
	c := x.c
	c.Policy, c.Principal = otherPolicy(t), "root"
	d := Operate(x.s, c, CommandPolicy, []byte("{}"))
	if err := x.s.Apply(d.Event, d.Value); err != nil || x.s.PolicyHash() != c.Policy.Hash() {
		t.Fatalf("%v %+v", err, d.Outcome)
	}
	if d := Handle(x.s, x.c, p); d.Outcome.Rejection == nil || d.Outcome.Rejection.Reason != writ.MemoryPolicy {
		t.Errorf("the policy before is still in force: %+v", d.Outcome)
	}
}

// M09: a declared secret stands in no event, no value, no outcome and no
// state, wherever a proposal put it, refused or not.
func TestSecretsAreNotKept(t *testing.T) {
	const secret = "hunter2-hunter2"
	x := newScript(t)
	x.c.Secrets = []string{secret}
	x.evidence = []seen{{"ev1", "a/x", "the password is " + secret, writ.System, ""}}
	for _, l := range []string{
		`record_observation {"observation_id":"o1","raw_payload":"the password is ` + secret + `","source_ref":"note"}`,
		`record_observation {"observation_id":"o2","raw_payload":"ok","source_ref":"note","parsed_payload":{"` + secret + `":["` + secret + `"]}}`,
		`create_or_link_entity_candidate {"name":"` + secret + `","entity_type":"thing","observation_ids":["o1"]}`,
		`propose_proposition {"text":"it is hunter2\u002dhunter2","observation_ids":["o1"],"about":["$ent1"]}`,
		`attach_support {"proposition_id":"$prop1","observation_ids":["o1"],"quote":"` + secret + `"}`,
		`attach_support {"proposition_id":"` + secret + `"}`,
		`attach_support {"proposition_id":"` + secret,
	} {
		x.line(l)
	}
	var all bytes.Buffer
	for _, r := range x.log {
		all.Write(r.event)
		all.Write(r.value)
	}
	if err := x.s.Encode(&all); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(all.Bytes(), []byte(secret)) {
		t.Errorf("the secret is kept: %s", all.Bytes())
	}
	if !bytes.Contains(all.Bytes(), []byte("[redacted]")) {
		t.Error("nothing was redacted")
	}
}

// No text that a model or a source wrote comes back in a refusal.
func TestRefusalsEchoNothing(t *testing.T) {
	const marker = "zqmarkerzq"
	x := newScript(t)
	for _, l := range []string{
		marker + ` {}`, `record_observation {"` + marker + `":1}`, `record_observation {"observation_id":"` + marker + ` ","raw_payload":"x"}`,
		`attach_support {"proposition_id":"` + marker + `","observation_ids":["o"]}`, `propose_test {"kind":"` + marker + `"}`,
		`record_observation {"observation_id":"o","raw_payload":"` + marker + `","session_id":"` + marker + `"}`,
		`propose_test {"proposition_ids":["prop_1"],"kind":"ask_user","discriminates":{"` + marker + `":"x"}}`,
		`record_observation {"observation_id":"o","raw_payload":"x","source_ref":"ev7","parsed_payload":{"` + marker + `":"` + marker + `"}}`,
	} {
		tool, payload, _ := strings.Cut(l, " ")
		x.begin()
		d := x.propose(tool, []byte(payload))
		if d.Outcome.Status != writ.Rejected {
			t.Errorf("%s: %s", l, d.Outcome.Status)
		}
		if out := mustJSON(t, d.Outcome); strings.Contains(out, marker) {
			t.Errorf("%s is told: %s", l, out)
		}
		b, _ := d.Event.Bytes()
		if bytes.Contains(b, []byte(marker)) {
			t.Errorf("%s stands in the event: %s", l, b)
		}
	}
}

func compiled(t *testing.T, b []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemas: what the tools publish and what the code accepts are one. Whatever
// a case has accepted fits the schema, and the schema of each tool names what is
// in its table and nothing that only Writ sets.
func TestSchemas(t *testing.T) {
	input := map[string]*jsonschema.Schema{}
	var names []string
	for _, tool := range append(Tools(), Remember()) {
		input[tool.Name] = compiled(t, tool.InputSchema)
		names = append(names, tool.Name)
		var s struct {
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(tool.InputSchema, &s); err != nil {
			t.Fatal(err)
		}
		for _, f := range toolOf(tool.Name).all() {
			if _, named := s.Properties[f.name]; named == f.hidden {
				t.Errorf("%s: %s stands in the schema %v, and is hidden %v", tool.Name, f.name, named, f.hidden)
			}
			if f.required != slices.Contains(s.Required, f.name) {
				t.Errorf("%s: %s is required %v", tool.Name, f.name, f.required)
			}
		}
		for _, n := range forbiddenNames {
			if _, named := s.Properties[n]; named {
				t.Errorf("%s: the schema has %s, which no payload may name", tool.Name, n)
			}
		}
	}
	want := []string{"record_observation", "create_or_link_entity_candidate", "propose_proposition", "attach_support", "attach_contradiction",
		"propose_test", "execute_test_result_ingest", "request_consolidation", "archive_episode", "remember"}
	if !slices.Equal(names, want) {
		t.Fatalf("the tools that write are %v", names)
	}
	valid := func(s *jsonschema.Schema, text string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
	judged := map[string]int{}
	files, _ := filepath.Glob("testdata/cases/*.txt")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		x := newScript(t)
		for l := range strings.Lines(string(b)) {
			if l = strings.TrimSpace(l); l == "" || l[0] == '#' || strings.HasPrefix(l, "->") || strings.HasPrefix(l, "repeat 1000") {
				continue
			}
			word, rest, _ := strings.Cut(x.filled(l), " ")
			if input[word] == nil {
				x.line(l)
				continue
			}
			x.begin()
			if d := x.propose(word, []byte(rest)); d.Outcome.Status == writ.Accepted {
				judged[word]++
				if err := valid(input[word], rest); err != nil {
					t.Errorf("%s: %s: accepted, and none of the schema: %v", file, l, err)
				}
			}
		}
	}
	for _, n := range names {
		if judged[n] == 0 {
			t.Errorf("no accepted %s was held to its schema", n)
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	x := newScript(f)
	x.line("seen ev1 user user red")
	x.line(`record_observation {"observation_id":"o1","raw_payload":"red"}`)
	x.line(`create_or_link_entity_candidate {"name":"X","entity_type":"thing","observation_ids":["o1"]}`)
	x.line(`propose_proposition {"text":"x","observation_ids":["o1"],"about":["$ent1"]}`)
	x.line(`operator erase {"observation_ids":["$obs1"],"reason":"request"}`)
	for _, r := range x.log {
		f.Add(r.event, r.value)
	}
	f.Fuzz(func(t *testing.T, b, value []byte) {
		e, err := ParseEvent(b)
		if err != nil {
			return
		}
		again, err := e.Bytes()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("read and written: %s, %v", again, err)
		}
		s := replay(t, x.log[:1], nil)
		before := s.Digest()
		if err := s.Apply(e, value); err != nil && s.Digest() != before {
			t.Fatal("a refused event changed the state")
		}
	})
}

func FuzzHandle(f *testing.F) {
	for _, file := range []string{"refused", "basic", "remember", "tests"} {
		b, err := os.ReadFile("testdata/cases/" + file + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		for l := range strings.Lines(string(b)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(l), " ")
			if toolOf(word) != nil {
				f.Add(word, []byte(rest))
			}
		}
	}
	x := newScript(f)
	x.line("seen ev1 system a/x X is on.")
	x.line("seen ev2 system b/x X is off.")
	for _, l := range []string{
		`record_observation {"observation_id":"o1","raw_payload":"X is on.","source_ref":"ev1"}`,
		`record_observation {"observation_id":"o2","raw_payload":"X is off.","source_ref":"ev2"}`,
		`create_or_link_entity_candidate {"name":"X","entity_type":"thing","observation_ids":["o1"]}`,
		`propose_proposition {"text":"on","structured_form":{"subject":"$ent1","predicate":"is","object":{"literal":"on"}},"observation_ids":["o1"],"about":["$ent1"]}`,
		`propose_proposition {"text":"off","observation_ids":["o2"],"about":["$ent1"]}`,
		`propose_test {"proposition_ids":["$prop1"],"kind":"ask_user","discriminates":{"$prop1":"lit"},"rationale_observation_ids":["o1"]}`,
	} {
		if got := x.line(l); !strings.HasPrefix(got, "accepted") {
			f.Fatalf("%s: %s", l, got)
		}
	}
	f.Fuzz(func(t *testing.T, tool string, payload []byte) {
		s := replay(t, x.log, nil)
		before := s.Digest()
		c := x.c
		p := writ.Proposal{ToolName: tool, Payload: payload}
		if cite, ok := Cites(p); ok {
			c.Captured = []Captured{{Ref: "ev1", Evidence: "s_1/ev1", Label: writ.System, Source: "a/x", Verbatim: len(cite.Raw)%2 == 0}}
			if tool == ToolRemember && len(cite.Raw)%2 == 0 {
				c.Captured[0].Text, c.Captured[0].Value = "It is said: "+cite.Raw, []byte(mustJSON(t, cite.Raw))
			}
		}
		d := Handle(s, c, p)
		if s.Digest() != before {
			t.Fatal("Handle changed the state")
		}
		switch d.Outcome.Status {
		case writ.Rejected:
			if len(d.Event.Ops) != 0 || d.Outcome.Rejection == nil || d.Outcome.Rejection.Code == "" {
				t.Fatalf("a rejection that is none: %+v", d.Outcome)
			}
		case writ.Accepted, writ.Transformed:
			if toolOf(tool) == nil {
				t.Fatalf("%q was accepted", tool)
			}
		default:
			t.Fatalf("status %q", d.Outcome.Status)
		}
		b, err := d.Event.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		e, err := ParseEvent(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if _, err := Recheck(s, c.Policy, e, d.Value); err != nil {
			t.Fatalf("%s %s: %v", b, d.Value, err)
		}
		if err := s.Apply(e, d.Value); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if !json.Valid([]byte(mustJSON(t, d.Outcome))) {
			t.Fatal("an outcome that is no JSON")
		}
	})
}

// Where not everything was looked at nobody is told that nothing says so.
func TestNotLookedAt(t *testing.T) {
	x := newScript(t)
	x.begin()
	for _, unlooked := range []bool{false, true} {
		c := x.c
		c.Unlooked = unlooked
		d := Handle(x.s, c, writ.Proposal{ToolName: ToolRemember, Payload: []byte(`{"text":"Anna likes tea"}`)})
		if got := strings.Contains(d.Outcome.Kept.Why, "not all that this session saw"); got != unlooked {
			t.Errorf("unlooked %v: %q", unlooked, d.Outcome.Kept.Why)
		}
		d = Handle(x.s, c, writ.Proposal{ToolName: ToolRecordObservation, Payload: []byte(`{"observation_id":"o","raw_payload":"Anna likes tea"}`)})
		if got := strings.Contains(d.Outcome.Rejection.Failures[0].Need, "not all of it was looked at"); got != unlooked {
			t.Errorf("unlooked %v: %+v", unlooked, d.Outcome.Rejection)
		}
	}
}
