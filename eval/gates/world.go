package gates

import (
	"path"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// worldForm is a file of cases/worlds.
type worldForm struct {
	// Tools are what the servers list.
	Tools []struct {
		Server     string `yaml:"server"`
		Definition string `yaml:"definition"`
	} `yaml:"tools"`
	// Allow is the operator's allowlist of a plan. Approved is the definition
	// that was pinned, "" when none was.
	Allow []struct {
		Tool     string `yaml:"tool"`
		Approved string `yaml:"approved"`
	} `yaml:"allow"`
	// Policy is a policy without its profile.
	Policy   string   `yaml:"policy"`
	OwnPaths []string `yaml:"own_paths"`
}

// world is what a case is judged in, made with the product's own catalogue and
// policy.
type world struct {
	listed   []claim.Tool
	operator []claim.Allowed
	// By profile. Without a policy there is one catalogue, under "".
	policies   map[policy.Profile]*policy.Policy
	catalogues map[policy.Profile]*gate.Catalogue
	ownPaths   []string
}

// world returns a world by its name; a fault gives an empty one.
func (l *loader) world(name string) *world {
	if w := l.worlds[name]; w != nil {
		return w
	}
	w := &world{policies: map[policy.Profile]*policy.Policy{}, catalogues: map[policy.Profile]*gate.Catalogue{}}
	l.worlds[name] = w
	file := path.Join("cases", "worlds", name+".yaml")
	var form worldForm
	if !l.decode(file, &form) {
		return w
	}
	var defs []gate.Definition
	for _, t := range form.Tools {
		defs = append(defs, gate.Definition{Server: t.Server, Raw: []byte(t.Definition)})
	}
	w.listed, w.ownPaths = listed(defs), form.OwnPaths
	for _, a := range form.Allow {
		server, tool, ok := strings.Cut(a.Tool, "/")
		if !ok {
			l.fault("%s: an allowed tool is named server/tool", file)
		}
		entry := claim.Allowed{Server: server, Name: tool}
		if a.Approved != "" {
			entry.Pin = gate.PinOf(server, []byte(a.Approved))
		}
		w.operator = append(w.operator, entry)
	}
	c, _ := gate.NewCatalogue(defs, nil)
	w.catalogues[""] = c
	if form.Policy == "" {
		return w
	}
	for _, profile := range []policy.Profile{policy.Standard, policy.Strict} {
		p, faults := policy.Parse(file, []byte("profile: "+string(profile)+"\n"+form.Policy))
		for _, f := range faults {
			l.fault("%s", f)
		}
		w.policies[profile] = p
		w.catalogues[profile], _ = gate.NewCatalogue(defs, p)
	}
	w.catalogues[""] = w.catalogues[policy.Standard]
	return w
}

// validator returns how structured results of a tool are judged, nil when no
// schema is registered for it.
func (w *world) validator(name string) func([]byte) bool {
	server, tool, _ := strings.Cut(name, "/")
	if c := w.catalogues[""]; c != nil {
		if t := c.Lookup(server, tool); t != nil && t.HasOutputSchema() {
			return func(b []byte) bool { return t.ValidateOutput(strictjson.Of(b)) }
		}
	}
	return nil
}

// has reports whether the world lists a tool, server/tool.
func (w *world) has(name string) bool {
	return slices.ContainsFunc(w.listed, func(t claim.Tool) bool { return t.Server+"/"+t.Name == name })
}

// listed makes of definitions the tools of a live list, with the product's own
// catalogue and validator; each by itself, so that a name listed twice stays so.
func listed(defs []gate.Definition) (out []claim.Tool) {
	for i := range defs {
		c, _ := gate.NewCatalogue(defs[i:i+1], nil)
		for _, t := range c.Tools() {
			tool := claim.Tool{Server: t.Server, Name: t.Name, Pin: t.Pin}
			if t.State != gate.Refused {
				tool.Validate = func(args []byte) []writ.Failure { return t.ValidateArguments(strictjson.Of(args)) }
			}
			out = append(out, tool)
		}
	}
	return out
}
