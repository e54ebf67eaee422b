package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/cli"
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
	if err := cli.PrintJSON(&b, map[string]string{"a": "\u202eevil\u009b31m\x1b\U000e0041\ufe0f<ok>"}); err != nil {
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

// TestWithoutDefaults: what the old policy filled in is left to the new one.
func TestWithoutDefaults(t *testing.T) {
	e := &memory.Event{Effects: []memory.Effect{{Effect: "default_class", ID: "/class"}, {Effect: "clamped", ID: "/estimated_cost"}}}
	if got := withoutDefaults(e, []byte(`{"class":"causal","estimated_cost":1}`)); string(got) != `{"estimated_cost":1}` {
		t.Errorf("%s", got)
	}
}
