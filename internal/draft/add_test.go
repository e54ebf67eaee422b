package draft

import (
	"strings"
	"testing"

	"github.com/writ-project/writ/policy"
)

// A draft is added to what a person has, which stays as it is, or not at all.
func TestAdd(t *testing.T) {
	pin := "sha256:" + strings.Repeat("0", 64)
	tool := func(name, rest string) string { return "  " + name + ": { effect: read, pin: " + pin + rest + " }\n" }
	d := Draft{Servers: []Server{
		{Name: "a", Tools: 1, collections: "  # who\n  a.x: {}\n", tools: "  # a: a contract\n" + tool("a/t", ", outputs: [{ at: /id, label: system, collection: a.x }]")},
		{Name: "b", Tools: 1, tools: tool("b/t", "")},
	}}
	for _, c := range []struct {
		name, is string
		want     int // contracts afterwards, 0: it cannot be added to
	}{
		{"empty", "tools: {}\n", 2},
		{"empty below a comment", "# mine\ntools: {}\n", 2},
		{"one more server", "tools:\n" + tool("c/t", "") + "\n\n", 3},
		{"collections", "# mine\n\ncollections:\n  c.y: { closed: true }\n\ntools:\n" + tool("c/t", ""), 3},
		{"known", "tools:\n" + tool("a/t", "") + tool("b/u", ""), 2},
		{"half known", "tools:\n" + tool("a/u", ""), 2},
		{"a collection of that name", "collections:\n  a.x: { closed: true }\ntools:\n" + tool("c/t", ""), 0},
		{"collections in one line", "collections: { c.y: {} }\ntools:\n" + tool("c/t", ""), 0},
		{"tools first", "tools:\n" + tool("c/t", "") + "collections:\n  c.y: {}\n", 0},
		{"tools in one line", "tools: { c/t: { effect: read } }\n", 0},
		{"no policy", "tools: [\n", 0},
	} {
		got, ok := d.Add([]byte("# first\n" + c.is))
		if ok != (c.want > 0) {
			t.Errorf("%s: %v\n%s", c.name, ok, got)
			continue
		}
		if !ok {
			continue
		}
		p, faults := policy.Parse("p", got)
		if len(faults) > 0 || len(p.Contracts) != c.want {
			t.Errorf("%s: %v\n%s", c.name, faults, got)
		}
		for _, line := range strings.Split(strings.TrimSpace(c.is), "\n") {
			if line != "tools: {}" && !strings.Contains(string(got), line+"\n") && !strings.HasSuffix(string(got), line) {
				t.Errorf("%s: the line %q is gone", c.name, line)
			}
		}
		if again, ok := d.Add(got); !ok || string(again) != string(got) {
			t.Errorf("%s: added twice", c.name)
		}
	}
}
