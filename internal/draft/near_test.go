package draft_test

import (
	"fmt"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/contracts"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/policy"
)

// TestNear: a tool that changed since its contract was made is drafted as any other. What
// changed and the contract's lines stand beside it, and hold once a person takes them.
func TestNear(t *testing.T) {
	for _, c := range contracts.All() {
		var defs []gate.Definition
		for name := range c.Pins() {
			defs = append(defs, gate.Definition{Server: "files", Raw: []byte(fmt.Sprintf(
				`{"name":%q,"inputSchema":{"type":"object","properties":{"as_user":{"type":"string"},"b":{"enum":["x","# y: {"]}}}}`, name[len("self/"):]))})
		}
		cat, _ := gate.NewCatalogue(defs, nil)
		d := draft.Policy(cat)
		text := d.Text()
		p, faults := policy.Parse("policy.yaml", []byte(text))
		if len(faults) > 0 || len(p.Contracts) != len(defs) || len(p.Collections) > 0 || d.Servers[0].Contract == nil || d.Servers[0].Contract.Name != c.Name {
			t.Fatalf("%s: %v\n%s", c.Name, faults, text)
		}
		for name, k := range p.Contracts {
			for _, o := range k.Outputs {
				if o.Label != writ.External {
					t.Errorf("%s: %s of a changed definition has an output that vouches", c.Name, name)
				}
			}
		}
		if n := strings.Count(text, "# The contract "+c.Name+" is of another definition"); n != len(defs) || !strings.Contains(text, "+ argument as_user: string") {
			t.Errorf("%s: said of %d of %d\n%s", c.Name, n, len(defs), text)
		}
		// A person takes the lines of all of them.
		var collections, tools, into = "", "", (*string)(nil)
		for line := range strings.Lines(text) {
			l, isComment := strings.CutPrefix(line, "    #")
			switch {
			case strings.HasPrefix(l, " If its lines"):
				into = &tools
			case !isComment || into == nil:
				into = nil
			case l == "collections:\n":
				collections, into = "", &collections
			case l == "tools:\n":
				into = &tools
			default:
				*into += l
			}
		}
		taken, faults := policy.Parse("policy.yaml", []byte("collections:\n  x: {}\n"+collections+"tools:\n"+tools))
		if len(faults) > 0 || len(taken.Contracts) != len(defs) {
			t.Fatalf("%s: %v\n%s", c.Name, faults, tools)
		}
		for name, k := range taken.Contracts {
			if k.Pin != p.Contracts[name].Pin {
				t.Errorf("%s: %s is pinned to another definition", c.Name, name)
			}
		}
	}
}
