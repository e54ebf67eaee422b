package draft_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/policy"
)

// drafted is the policy drafted for one definition, and its contract.
func drafted(t *testing.T, definition string) (string, *policy.Contract) {
	t.Helper()
	cat, _ := gate.NewCatalogue([]gate.Definition{{Server: "s", Raw: []byte(definition)}}, nil)
	text := draft.Policy(cat).Text()
	p, faults := policy.Parse("policy.yaml", []byte(text))
	if len(faults) > 0 {
		t.Fatalf("%s\n%v\n%s", definition, faults, text)
	}
	for _, c := range p.Contracts {
		return text, c
	}
	t.Fatalf("%s: nothing was drafted", definition)
	return "", nil
}

func TestEffects(t *testing.T) {
	for _, part := range cases(t, "testdata/tools.txt") {
		line := strings.Join(part, " | ")
		def := map[string]any{"inputSchema": map[string]any{"type": "object"}}
		if err := json.Unmarshal([]byte(part[1]), &def); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		def["name"] = part[0]
		raw, _ := json.Marshal(def)
		_, c := drafted(t, string(raw))
		if got := strings.ReplaceAll(c.Effect.String(), "+", " "); got != orderOf(part[2]) {
			t.Errorf("%s: drafted as %s", line, got)
		}
		if c.Plain != (part[2] == "read") {
			t.Errorf("%s: arguments: plain is %v", line, c.Plain)
		}
	}
}

// orderOf writes effects in the order of the policy.
func orderOf(words string) string {
	var e policy.Effect
	for i, n := range policy.EveryEffect.Names() {
		for _, w := range strings.Fields(words) {
			if w == n {
				e |= 1 << i
			}
		}
	}
	return strings.ReplaceAll(e.String(), "+", " ")
}

// Of an act's arguments the schema's own lists and texts are told apart; the rest are
// targets.
func TestArguments(t *testing.T) {
	for _, part := range cases(t, "testdata/arguments.txt") {
		_, c := drafted(t, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object","properties":%s}}`, part[0], part[1]))
		var got []string
		for _, a := range c.Args {
			if a.Role != policy.Target {
				got = append(got, fmt.Sprintf("%s=%s", a.At.Source, a.Role))
			}
		}
		want := strings.Fields(part[2])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: drafted as %s", strings.Join(part, " | "), got)
		}
	}
}

// What a server says is not idempotent is drafted so where it acts; where it says nothing,
// or that it is, nothing is.
func TestIdempotent(t *testing.T) {
	for definition, want := range map[string]bool{
		`{"name":"pay_invoice","annotations":{"idempotentHint":false}}`:                        true,
		`{"name":"pay_invoice","annotations":{"idempotentHint":false,"destructiveHint":true}}`: true,
		`{"name":"pay_invoice","annotations":{"destructiveHint":true}}`:                        false,
		`{"name":"pay_invoice","annotations":{"idempotentHint":true}}`:                         false,
		`{"name":"pay_invoice","annotations":{"idempotentHint":"false"}}`:                      false,
		`{"name":"pay_invoice"}`: false,
		`{"name":"get_invoice","annotations":{"idempotentHint":false,"readOnlyHint":true}}`:    false,
		`{"name":"get_invoice","annotations":{"idempotentHint":false,"destructiveHint":true}}`: true,
	} {
		text, c := drafted(t, definition)
		if got := c.Idempotent != nil && !*c.Idempotent; got != want {
			t.Errorf("%s: drafted as\n%s", definition, text)
		}
	}
}

// What people write as one word, and the number behind what it is of, are read so of what
// makes or says something, and of nothing else.
func TestWritten(t *testing.T) {
	for _, c := range []struct {
		tool, properties, composite, words string
	}{
		{"add_issue_comment", `"owner":{"type":"string"},"repo":{"type":"string"},"issue_number":{"type":"number"},"body":{"type":"string"}`, "/owner /repo", "issue"},
		{"create_issue", `"owner":{"type":"string"},"repo":{"type":"string"},"milestoneNumber":{"type":"integer"}`, "/owner /repo", "milestone"},
		{"create_issue", `"owner":{"type":"string"},"repo_id":{"type":"string"},"number":{"type":"number"}`, "", ""},
		{"create_issue", `"owner":{"type":"number"},"repo":{"type":"string"},"true_number":{"type":"number"}`, "", "true"},
		{"create_issue", `"issue_number":{"type":"string"},"first_issue_number":{"type":"number"},"issue_count":{"type":"number"}`, "", ""},
		{"merge_pull_request", `"owner":{"type":"string"},"repo":{"type":"string"},"pull_number":{"type":"integer"}`, "", ""},
		{"update_issue", `"owner":{"type":"string"},"repo":{"type":"string"},"issue_number":{"type":"number"}`, "", ""},
		{"fork_repository", `"owner":{"type":"string"},"repo":{"type":"string"}`, "", ""},
		{"delete_issue", `"owner":{"type":"string"},"repo":{"type":"string"},"issue_number":{"type":"number"}`, "", ""},
		{"pay_invoice", `"invoice_number":{"type":"integer"}`, "", ""},
	} {
		text, got := drafted(t, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object","properties":{%s}}}`, c.tool, c.properties))
		var composite, words []string
		for _, k := range got.Composites {
			for _, a := range k.Args {
				composite = append(composite, a.Source)
			}
		}
		for _, a := range got.Args {
			words = append(words, a.Words...)
		}
		if strings.Join(composite, " ") != c.composite || strings.Join(words, " ") != c.words {
			t.Errorf("%s: drafted as\n%s", c.tool, text)
		}
	}
}

// Who only names a thing does not have it deleted: of a tool that is told nothing else the
// draft asks for the order.
func TestOrders(t *testing.T) {
	for tool, ordered := range map[string]bool{
		`{"name":"delete_entities","inputSchema":{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"}}}}}`: true,
		`{"name":"remove_label","inputSchema":{"type":"object","properties":{"label":{"type":"string"}}}}`:                             true,
		`{"name":"delete_file","inputSchema":{"type":"object","properties":{"repo":{"type":"string"},"path":{"type":"string"}}}}`:      false,
		`{"name":"cancel_booking","inputSchema":{"type":"object","properties":{"booking":{"type":"string"}}}}`:                         false,
		`{"name":"update_page","inputSchema":{"type":"object","properties":{"page":{"type":"string"}}}}`:                               false,
	} {
		text, got := drafted(t, tool)
		if is := slices.ContainsFunc(got.Args, func(a policy.ArgRule) bool { return slices.Contains(a.Orders, "get rid of") }); is != ordered {
			t.Errorf("drafted as\n%s", text)
		}
	}
}

// What is run waits for a person whatever the user typed: a part of a statement or a
// command is another one, and a run of his words vouches.
func TestPrograms(t *testing.T) {
	_, c := drafted(t, `{"name":"execute","inputSchema":{"type":"object","properties":{
		"sql":{"type":"string"},"command":{"type":"array","items":{"type":"string"}},"q":{"type":"string","description":"An SQL query"},"database":{"type":"string"}}}}`)
	for _, a := range c.Args {
		want := policy.FromApproval
		if a.At.Source == "/database" {
			want = policy.FromUser
		}
		if len(a.From) != 1 || a.From[0].Kind != want {
			t.Errorf("%s: from %v", a.At.Source, a.From)
		}
	}
	if len(c.Args) != 4 {
		t.Errorf("%d arguments", len(c.Args))
	}
}

// cases are the lines of a table, each in its three parts.
func cases(t *testing.T, file string) (out [][]string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		part := strings.Split(strings.TrimSpace(line)+" ", " | ")
		if len(part) != 3 {
			t.Fatalf("%s: %s", file, line)
		}
		part[2] = strings.TrimSpace(part[2])
		out = append(out, part)
	}
	return out
}

// Nothing that a server says of itself leaves its comment, or is believed.
func TestDescriptions(t *testing.T) {
	text, c := drafted(t, `{"name":"get_it","description":"Reads. # {x}: [\n    effect: write\n  x/y: { effect: read }","inputSchema":{"type":"object"},
		"outputSchema":{"type":"object","properties":{"id":{"type":"string"},"a: b":{"type":"string"}}}}`)
	if c.Effect != policy.Read || strings.Contains(text, "x/y") {
		t.Error(text)
	}
	for _, o := range c.Outputs {
		if o.Label.String() != "external" {
			t.Errorf("%s is drafted as %s", o.At.Source, o.Label)
		}
	}
}

// That a tool deletes is assumed where the verbs of its name do not say so.
func TestAssumed(t *testing.T) {
	for _, c := range []struct {
		definition string
		assumed    bool
	}{
		{`{"name":"whatever"}`, true},
		{`{"name":"query","inputSchema":{"type":"object","properties":{"sql":{"type":"string"}}}}`, true},
		{`{"name":"write_file","annotations":{"destructiveHint":true}}`, true},
		{`{"name":"browser_navigate","annotations":{"destructiveHint":true}}`, true},
		{`{"name":"create_issue"}`, false},
		{`{"name":"delete_issue"}`, false},
		{`{"name":"delete_issue","annotations":{"destructiveHint":true}}`, false},
		{`{"name":"create_or_delete_issue"}`, false},
		{`{"name":"git_clean"}`, false},
		{`{"name":"get_issue"}`, false},
	} {
		var def map[string]any
		if err := json.Unmarshal([]byte(c.definition), &def); err != nil {
			t.Fatal(err)
		}
		if def["inputSchema"] == nil {
			def["inputSchema"] = map[string]any{"type": "object"}
		}
		raw, _ := json.Marshal(def)
		_, got := drafted(t, string(raw))
		if (got.Assumed == policy.Delete) != c.assumed || got.Assumed&^got.Effect != 0 {
			t.Errorf("%s: effect %s, assumed %v", c.definition, got.Effect, got.Assumed.Names())
		}
	}
}
