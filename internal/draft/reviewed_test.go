package draft

import (
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/contracts"
	"github.com/writ-project/writ/policy"
)

// TestUnreviewed: a contract that ships is warned of nothing where it stands as it ships,
// and of everything again where a tool's lines were changed; what others in the policy
// bring about is told.
func TestUnreviewed(t *testing.T) {
	told := 0
	for _, c := range contracts.All() {
		text := c.At("x-9")
		p, faults := policy.Parse("p", []byte(text))
		if len(faults) > 0 {
			t.Fatalf("%s: %v", c.Name, faults)
		}
		if left := Unreviewed(p.Source, p.Warnings); len(left) > 0 {
			t.Errorf("%s: %v", c.Name, left)
		}
		for _, w := range p.Warnings {
			told++
			lines := strings.SplitAfter(text, "\n")
			in := toolAt(lines, w.Line)
			for i, l := range lines {
				if strings.HasPrefix(l, "  x-9/"+in.tool+":") {
					lines[i] = strings.TrimSuffix(l, "\n") + " # mine\n"
				}
			}
			p, _ := policy.Parse("p", []byte(strings.Join(lines, "")))
			if left := Unreviewed(p.Source, p.Warnings); !slices.ContainsFunc(left, func(l policy.Fault) bool { return l.Message == w.Message }) {
				t.Errorf("%s, changed: %v, want %s", c.Name, left, w.Message)
			}
		}
	}
	if told < 4 {
		t.Errorf("only %d warnings", told)
	}
	// Of what another tool does to a field that ships it is warned.
	all := contracts.All()
	c := all[slices.IndexFunc(all, func(c *contracts.Contract) bool { return c.Name == "slack" })]
	text := "stores: { all: [self, disk/write] }\n" + strings.NewReplacer(
		"\ncollections:\n", "\ncollections:\n  disk.path: { closed: true }\n",
		"\ntools:\n", "\ntools:\n  disk/list: { effect: read, outputs: [{ at: /all/*, label: system, type: path, collection: disk.path, authoritative: true }] }\n"+
			"  disk/write: { effect: write, args: { /at: { role: target, type: path, collection: disk.path }, /text: { role: content, content: local } } }\n").Replace(c.At(contracts.Self))
	p, faults := policy.Parse("p", []byte(text))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if !slices.ContainsFunc(Unreviewed(p.Source, p.Warnings), func(w policy.Fault) bool {
		return strings.Contains(w.Message, `"disk/write" can write`)
	}) {
		t.Errorf("what another tool does to it is not told: %v", p.Warnings)
	}
}
