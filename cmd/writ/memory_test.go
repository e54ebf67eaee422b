package main

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/memory"
)

// TestMemoryRuleWords: every rule id of the memory is said in words.
func TestMemoryRuleWords(t *testing.T) {
	src, err := os.ReadFile("../../memory/rules.go")
	if err != nil {
		t.Fatal(err)
	}
	ids := regexp.MustCompile(`Rule = "([^"]+)"`).FindAllStringSubmatch(string(src), -1)
	if len(ids) < 20 {
		t.Fatalf("%d rules found", len(ids))
	}
	for _, id := range ids {
		if rules[memory.Rule(id[1])] == "" {
			t.Errorf("%s has no words", id[1])
		}
	}
	if len(ids) != len(rules) {
		t.Errorf("%d rules, %d words", len(ids), len(rules))
	}
}

// TestMemoryPrintData: what a terminal would obey is escaped in JSON, and the
// JSON stays what it is (T05).
func TestMemoryPrintData(t *testing.T) {
	var b bytes.Buffer
	if err := printData(&b, map[string]string{"a": "\u202eevil\u009b31m\x1b\U000e0041\ufe0f<ok>"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.String() {
		if r > 0x7e || r < ' ' && r != '\n' {
			t.Errorf("%U is printed", r)
		}
	}
	if !strings.Contains(b.String(), `<ok>`) || !strings.Contains(b.String(), `\udb40\udc41`) {
		t.Error(b.String())
	}
}

// TestMemoryProposedAs: what the channel said of a proposal is taken over whole
// when it is decided under another policy. It fails when a Capture gains a
// field and proposedAs does not.
func TestMemoryProposedAs(t *testing.T) {
	e := &memory.Event{Namespace: "n", Principal: "p", Session: "s", Task: "t", At: 1, Screened: memory.ScreenQuarantine, Status: writ.Accepted,
		Capture: &memory.Capture{}}
	fill(reflect.ValueOf(e.Capture).Elem())
	c, p, ok := proposedAs(e, []byte(`{"payload":{"observation_id":"o","raw_payload":"r","source_ref":"ev1"},"tool_name":"record_observation"}`))
	if !ok || len(c.Captured) != 1 || p.ToolName != memory.ToolRecordObservation {
		t.Fatal(ok, c, p)
	}
	v := reflect.ValueOf(c.Captured[0])
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("Captured.%s is lost", v.Type().Field(i).Name)
		}
	}
	if c.Session != "s" || c.Task != "t" || c.Principal != "p" || c.Namespace != "n" || c.Screened != memory.ScreenQuarantine || memory.InstantOf(c.Now) != 1 {
		t.Errorf("%+v", c)
	}
	// What was refused for what it cites cannot be tried on other evidence.
	e.Capture, e.Status = nil, writ.Rejected
	if _, _, ok := proposedAs(e, []byte(`{"payload":{"raw_payload":"r"},"tool_name":"record_observation"}`)); ok {
		t.Error("a refused citation is decided again without its evidence")
	}
	if _, _, ok := proposedAs(e, nil); ok {
		t.Error("what was erased is decided again")
	}
	// What the old policy filled in is left to the new one.
	e.Effects = []memory.Effect{{Effect: "default_class", ID: "/class"}, {Effect: "clamped", ID: "/estimated_cost"}}
	if _, p, _ := proposedAs(e, []byte(`{"payload":{"class":"causal","estimated_cost":1},"tool_name":"x"}`)); string(p.Payload) != `{"estimated_cost":1}` {
		t.Errorf("%s", p.Payload)
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
		default:
			f.Set(reflect.ValueOf(writ.System))
		}
	}
}
