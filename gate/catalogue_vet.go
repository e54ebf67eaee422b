package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/schema"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

// The bounds of what a server may publish (T09, T13).
const (
	definitionBytes = 256 << 10
	serverTools     = 2_000
	publicName      = 128 // characters of a public name, as MCP advises
)

var definitionLimits = strictjson.Limits{Bytes: definitionBytes, Depth: schema.Nesting + 8, Leaves: definitionBytes, Number: 64}

// PinOf returns the pin of a tool's definition: "sha256:" and, in lower-case
// hexadecimal, the SHA-256 of the RFC 8785 canonical form of
//
//	{"definition": <the definition as the server sent it>, "server": "<name>"}
//
// so that any change of any member, known or unknown, is another pin, and the
// same definition at another server too (R26). Integers beyond 2^53 keep their
// digits. It is "" for what is not a strict JSON object.
func PinOf(server string, definition []byte) string {
	if strictjson.Check(definition, definitionLimits) != nil || strictjson.KindOf(definition) != strictjson.Object {
		return ""
	}
	var b bytes.Buffer
	b.WriteString(`{"definition":`)
	b.Write(definition)
	b.WriteString(`,"server":`)
	b.Write(strictjson.Quote(server))
	b.WriteByte('}')
	canonical, err := strictjson.Canonical(b.Bytes())
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// making is a catalogue under way.
type making struct {
	policy   *policy.Policy
	tools    map[string]*Tool
	servers  map[string][]*Tool // every definition that has a proper name
	listed   []string           // servers, in order of appearance
	broken   map[string]Finding // servers whose whole list is refused
	others   []Definition
	hashes   []string
	findings []Finding
	compiled map[string]compiled // by text: servers repeat themselves
}

// sortedDefinitions makes the answer independent of the order of arrival.
func sortedDefinitions(defs []Definition) []Definition {
	out := slices.Clone(defs)
	slices.SortStableFunc(out, func(a, b Definition) int {
		if c := strings.Compare(a.Server, b.Server); c != 0 {
			return c
		}
		if c := strings.Compare(string(a.Kind), string(b.Kind)); c != 0 {
			return c
		}
		return bytes.Compare(a.Raw, b.Raw)
	})
	return out
}

func (m *making) find(server, tool string, r writ.Reason, message, hint string) {
	m.findings = append(m.findings, Finding{Server: server, Tool: tool, Reason: r, Message: message, Hint: hint})
}

// refuseServer takes away a server's whole list.
func (m *making) refuseServer(server string, r writ.Reason, message string) {
	if m.broken == nil {
		m.broken = map[string]Finding{}
	}
	if _, ok := m.broken[server]; !ok {
		m.broken[server] = Finding{Server: server, Reason: r, Message: message}
	}
}

// add vets one definition. A definition without a proper name has no entry.
func (m *making) add(d Definition) {
	pin := PinOf(d.Server, d.Raw)
	h := pin
	if h == "" {
		sum := sha256.Sum256(d.Raw)
		h = "raw:" + hex.EncodeToString(sum[:])
	}
	m.hashes = append(m.hashes, string(strictjson.Quote(d.Server))+" "+string(strictjson.Quote(string(d.Kind)))+" "+h)
	if !policy.ServerName(d.Server) {
		m.find("", "", writ.NameUnknown, "a definition of a server whose name is not allowed was left out", "server names match "+policy.ServerNames)
		return
	}
	isTool := d.Kind == ToolKind || d.Kind == HostKind
	if isTool && !slices.Contains(m.listed, d.Server) {
		m.listed = append(m.listed, d.Server)
	}
	if pin == "" {
		m.find(d.Server, "", writ.NameUnknown, "a definition is not a strict JSON object within its limits, and was left out", "")
		return
	}
	if !isTool {
		if hiddenIn(d.Raw) {
			m.find(d.Server, "", writ.NameUnknown, "a definition of a "+kindWord(d.Kind)+" holds invisible characters, and was left out (T06)", "")
			return
		}
		d.Raw = bytes.Clone(d.Raw)
		m.others = append(m.others, d)
		return
	}
	name, ok := strictjson.Text(strictjson.Get(d.Raw, "name"))
	if !ok || !policy.ToolName(name) {
		m.find(d.Server, "", writ.NameUnknown, "a tool's name is not allowed, and the tool was left out (T05)", "names match "+policy.ToolNames)
		return
	}
	t := &Tool{Server: d.Server, Name: name, Pin: pin, Raw: bytes.Clone(d.Raw), State: Shut, host: d.Kind == HostKind}
	t.definition = strictjson.Of(t.Raw)
	m.servers[d.Server] = append(m.servers[d.Server], t)
	m.tools[d.Server+"/"+name] = t
	if hiddenIn(d.Raw) {
		t.State, t.Reason = Refused, writ.NameForbidden
		m.find(d.Server, name, t.Reason, "the definition holds invisible or control characters (T05, T06)", "ask the server's author; it cannot be approved")
	}
}

func kindWord(k Kind) string {
	switch k {
	case PromptKind, ResourceKind, TemplateKind:
		return string(k)
	}
	return "thing of another kind"
}

// hidden reports whether a text holds what a person who approves it does not
// see (T05, T06).
func hidden(s string) bool { return text.HidesIn(s, text.Unclear, "\n\r\t") }

// hiddenIn looks at every string and member name of checked JSON.
func hiddenIn(raw []byte) bool {
	found := false
	strictjson.Walk(raw, func(_ []string, leaf []byte) bool {
		s, ok := strictjson.Text(leaf)
		found = found || ok && hidden(s)
		return !found
	}, func(_ []string, name string) bool {
		found = found || hidden(name)
		return !found
	})
	return found
}

// compile makes the tool's schemas, or shuts the tool for good.
func (m *making) compile(t *Tool) {
	if t.State == Refused {
		return
	}
	unusable := func(which, why string) {
		t.Reason, t.input, t.output = writ.SchemaUnusable, nil, nil
		m.find(t.Server, t.Name, t.Reason, "the "+which+" is unusable: "+why, "")
	}
	in := t.InputSchema()
	if in.Kind() != strictjson.Object {
		unusable("input schema", "it is missing or not an object")
		return
	}
	s, err := m.schema(in.Raw())
	if err != nil {
		unusable("input schema", err.Error())
		return
	}
	t.input = s
	if out := t.definition.Get("outputSchema"); out.Exists() {
		s, err := m.schema(out.Raw())
		if err != nil {
			unusable("output schema", err.Error())
			return
		}
		t.output = append(t.output, s)
	}
}

// schema compiles a schema, each text once.
func (m *making) schema(raw []byte) (*schema.Schema, error) {
	c, ok := m.compiled[string(raw)]
	if !ok {
		c.schema, c.err = schema.Compile(raw)
		m.compiled[string(raw)] = c
	}
	return c.schema, c.err
}

// compiled are the schemas of the tools, by their text.
func (c *Catalogue) compiled() map[string]compiled {
	out := map[string]compiled{}
	if c == nil {
		return out
	}
	for _, t := range c.order {
		if t.input == nil {
			continue
		}
		out[string(t.InputSchema().Raw())] = compiled{schema: t.input}
		if raw := t.definition.Get("outputSchema"); raw.Exists() {
			out[string(raw.Raw())] = compiled{schema: t.output[0]} // the contract's own come behind it
		}
	}
	return out
}

type compiled struct {
	schema *schema.Schema
	err    error
}

// refuseLists takes away the list of every server that publishes a name twice
// or too many tools. Names that differ in case alone count as the same: a
// client may fold them.
func (m *making) refuseLists() {
	for _, server := range m.listed {
		seen := map[string]bool{}
		for _, t := range m.servers[server] {
			k := strings.ToLower(t.Name)
			if seen[k] {
				m.refuseServer(server, writ.NameAmbiguous, "the server publishes two tools of one name; its whole list is refused (T04)")
			}
			seen[k] = true
		}
		if len(m.servers[server]) > serverTools {
			m.refuseServer(server, writ.NameUnknown, "the server publishes more than 2000 tools; its whole list is refused (T13)")
		}
	}
	for _, server := range slices.Sorted(maps.Keys(m.broken)) {
		f := m.broken[server]
		m.findings = append(m.findings, f)
		for _, t := range m.servers[server] {
			t.State, t.Reason, t.input, t.output = Refused, f.Reason, nil, nil
		}
	}
}

func (m *making) digest() [32]byte {
	slices.Sort(m.hashes)
	return sha256.Sum256([]byte(strings.Join(m.hashes, "\n")))
}
