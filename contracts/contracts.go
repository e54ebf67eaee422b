// Package contracts holds what Writ ships of other people's MCP servers: for each a
// contract that says of every tool what it can do and who can write what it returns, and
// cases that the contract accepts and refuses. A contract is for the definitions it was
// made from, told by their pins, whatever a server calls itself. One that only closes its
// schema in as many words, or leaves that out, is the same: Writ closes what is silent
// (R16), and it is a library below the server that writes those words.
package contracts

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
)

//go:embed */contract.yaml */tools.json
var files embed.FS

// A Contract is what ships for one server.
type Contract struct {
	Name    string // its folder here
	Of      string // the package it was made from
	Version string // of that
	// Tried says against what its calls were tried: Server, StandIn or Definitions.
	Tried string

	source      string
	head        string  // what is said of all of it
	collections string  // lines
	tools       []block // in the order of the file
	definitions []definition
}

// Against what the calls of a contract were tried.
const (
	Server      = "the real server"
	StandIn     = "a stand-in of its API"
	Definitions = "the definitions alone"
)

// block is one tool of a contract: its lines, with the comments before it.
type block struct{ tool, lines string }

// definition is one tool of the server, without its prose.
type definition struct {
	name, pin string
	raw       []byte
}

// Self is what contracts call the server that they are of. A pin is of a definition at
// a server, so those in the folders here are of this name.
const Self = "self"

var read = sync.OnceValue(func() (all []*Contract) {
	dirs, err := files.ReadDir(".")
	if err != nil {
		panic(err) // what is embedded can be read
	}
	for _, d := range dirs {
		source, err := files.ReadFile(d.Name() + "/contract.yaml")
		definitions, err2 := files.ReadFile(d.Name() + "/tools.json")
		c, err3 := parse(d.Name(), source, definitions)
		if err := errors.Join(err, err2, err3); err != nil {
			panic("contracts: " + d.Name() + ": " + err.Error()) // every test reads them
		}
		all = append(all, c)
	}
	return all
})

// All returns every contract that ships, by name.
func All() []*Contract { return slices.Clone(read()) }

func parse(name string, source, definitions []byte) (*Contract, error) {
	c := &Contract{Name: name, source: string(source)}
	head, rest, _ := strings.Cut(c.source, "\n\n")
	tried, said, _ := strings.Cut(head, "\n")
	c.Tried, c.head = strings.TrimPrefix(tried, "# tried: "), strings.ReplaceAll("  "+said+"\n", "\n#", "\n  #")
	if !slices.Contains([]string{Server, StandIn, Definitions}, c.Tried) {
		return nil, errors.New("its first line does not say against what it was tried")
	}
	collections, tools, ok := strings.Cut("\n"+rest, "\ntools:\n")
	if !ok {
		return nil, errors.New("after its first lines and an empty one stand collections and tools")
	}
	if collections = strings.TrimSpace(strings.TrimPrefix(collections, "\ncollections:\n")); collections != "" {
		c.collections = "  " + collections + "\n"
	}
	c.tools = blocks(tools)
	c.Of, _ = strictjson.Text(strictjson.Get(definitions, "of"))
	c.Version, _ = strictjson.Text(strictjson.Get(definitions, "version"))
	list, _ := strictjson.Elements(strictjson.Get(definitions, "tools"))
	for _, e := range list {
		d := definition{raw: strictjson.Get(e, "definition")}
		d.name, _ = strictjson.Text(strictjson.Get(d.raw, "name"))
		d.pin, _ = strictjson.Text(strictjson.Get(e, "pin"))
		c.definitions = append(c.definitions, d)
	}
	return c, nil
}

// blocks takes the tools of a contract apart.
func blocks(text string) (out []block) {
	lines, in := "", false
	for line := range strings.SplitAfterSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if in && !strings.HasPrefix(line, "   ") { // the tool before ends here
			out[len(out)-1].lines, lines, in = lines, "", false
		}
		lines += line
		if m := toolLine.FindStringSubmatch(line); m != nil {
			out, in = append(out, block{tool: m[1]}), true
		}
	}
	if in {
		out[len(out)-1].lines = lines
	}
	return out
}

var (
	toolLine = regexp.MustCompile(`^  ` + Self + `/([^:\s]+):`)
	outputOf = regexp.MustCompile(`(?:, output: |\n *- \{ output: )` + Self + `/([^#\s,\]]+)(?:#[^\s,\]]*)?(?:, phrases: \[[^\]]*\] \})?`)
	// besideOf is at the end of a line what its argument accepts too where the server of another
	// contract stands in the same policy. Here it stands alone, and accepts no such thing.
	besideOf = regexp.MustCompile(`(from: \[[^\]]*)(\].*?) # beside: ([a-z0-9-]+)/([^#\s]+)(#\S+)\n`)
	selfName = regexp.MustCompile(`(^|[\s\[{,'"])` + Self + `([/.])`)
)

// Match is what ships for one server: the contract of the definitions that most of its
// tools have.
type Match struct {
	*Contract
	// Changed are the server's tools whose definition is another than the contract's,
	// and those the contract knows nothing of.
	Changed []Change

	server string
	pins   map[string][2]string // of the tools whose definition is the contract's: there, here
}

// Find returns the contract that fits a server's tools best: one that has tools of
// exactly these definitions, else most of them by name; nil where none ships.
func Find(server string, tools []*gate.Tool) *Match { return find(read(), server, tools) }

func find(all []*Contract, server string, tools []*gate.Tool) *Match {
	var best *Match
	named := 0
	for _, c := range all {
		m, n := &Match{Contract: c, server: server, pins: map[string][2]string{}}, 0
		for _, t := range tools {
			i := slices.IndexFunc(c.definitions, func(d definition) bool { return d.name == t.Name })
			if i < 0 {
				m.Changed = append(m.Changed, Change{Tool: t.Name, New: true})
				continue
			}
			n++
			if d := c.definitions[i]; d.pin != gate.PinOf(Self, t.Raw) && !same(d.raw, Skeleton(t.Raw)) {
				m.Changed = append(m.Changed, Change{Tool: t.Name, Lines: Differences(d.raw, Skeleton(t.Raw))})
			} else {
				m.pins[t.Name] = [2]string{d.pin, t.Pin}
			}
		}
		if best == nil && (len(m.pins) > 0 || 2*n > len(tools)) ||
			best != nil && (len(m.pins) > len(best.pins) || len(m.pins) == len(best.pins) && n > named) {
			best, named = m, n
		}
	}
	return best
}

// Matched is how many of the server's tools have exactly the contract's definition.
func (m *Match) Matched() int { return len(m.pins) }

// Has reports whether a tool has exactly the contract's definition.
func (m *Match) Has(tool string) bool { _, ok := m.pins[tool]; return ok }

// Collections are the lines of the policy's collections, under the server's name, ""
// where it has none.
func (m *Match) Collections() string {
	if m.Matched() == 0 {
		return ""
	}
	return under(m.collections, m.server)
}

// Tools are the lines of the policy for the tools whose definitions match, in the
// contract's own order, pinned as at this server.
func (m *Match) Tools() string {
	var out strings.Builder
	if m.Matched() > 0 {
		fmt.Fprintf(&out, "  # %s: the contract %s that ships, made from %s %s\n  # and tried against %s.\n%s", m.server, m.Name, m.Of, m.Version, m.Tried, m.head)
	}
	for _, b := range m.tools {
		if pins, ok := m.pins[b.tool]; ok {
			out.WriteString(strings.ReplaceAll(under(m.sourced(b.lines), m.server), pins[0], pins[1]))
		}
	}
	return out.String()
}

// Near are the lines of the contract for a tool that has another definition now, pinned to
// that, with the collections they need where no other lines of it are written; "" where it
// has none. They are for a person who has looked at what changed.
func (m *Match) Near(t *gate.Tool) string {
	i := slices.IndexFunc(m.tools, func(b block) bool { return b.tool == t.Name })
	d := slices.IndexFunc(m.definitions, func(d definition) bool { return d.name == t.Name })
	if i < 0 || d < 0 {
		return ""
	}
	lines := strings.ReplaceAll(under(m.sourced(m.tools[i].lines), m.server), m.definitions[d].pin, t.Pin)
	if m.Matched() == 0 && m.collections != "" {
		return "collections:\n" + under(m.collections, m.server) + "tools:\n" + lines
	}
	return lines
}

// sourced are lines of a tool without the outputs they accept by name of tools that have
// another definition at this server, or are not there: the policy has no such output.
func (m *Match) sourced(lines string) string {
	return outputOf.ReplaceAllStringFunc(lines, func(s string) string {
		if m.Has(outputOf.FindStringSubmatch(s)[1]) {
			return s
		}
		return ""
	})
}

// Beside are lines of contracts with the outputs that they accept of servers of other
// contracts in the same policy: of those whose tool has the definition that is meant, and may.
func Beside(lines string, all []*Match, may func(server, tool string) bool) string {
	return besideOf.ReplaceAllStringFunc(lines, func(s string) string {
		m := besideOf.FindStringSubmatch(s)
		for _, o := range all {
			if o.Name == m[3] && o.Has(m[4]) && may(o.server, m[4]) {
				m[1] += ", output: " + o.server + "/" + m[4] + m[5]
			}
		}
		return m[1] + m[2] + "\n"
	})
}

func under(text, server string) string {
	return selfName.ReplaceAllString(text, "${1}"+server+"${2}")
}

// At is the contract as it stands in its folder, of a server called so; the pins are those
// at one called [Self], as the folder has it.
func (c *Contract) At(server string) string { return under(c.source, server) }

// Pins are those of the definitions it was made from, at a server called self.
func (c *Contract) Pins() map[string]string {
	out := map[string]string{}
	for _, d := range c.definitions {
		out[Self+"/"+d.name] = d.pin
	}
	return out
}
