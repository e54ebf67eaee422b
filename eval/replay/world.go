package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/writ-project/writ/eval/measure"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// world is a suite: its tools, and the policy they are judged by.
type world struct {
	name, server string
	policy       *policy.Policy
	catalogue    *gate.Catalogue
	definitions  []gate.Definition // it is made of
	tools        map[string]tool
	defaults     bool // it has no policy of its own
}

// newWorld joins tools and policy. helpers are added for what transforms make of
// traces: tools that echo, that keep what they were sent, and one that acts without
// arguments, labelled as carelessly as the format allows.
func newWorld(suite string, tools []tool, policies fs.FS, profile policy.Profile, helpers bool) (*world, error) {
	w := &world{name: suite, server: suite[strings.LastIndex(suite, "/")+1:], tools: map[string]tool{}}
	file := strings.ReplaceAll(suite, "/", "_") + ".yaml"
	src, err := fs.ReadFile(policies, file)
	if errors.Is(err, fs.ErrNotExist) {
		// Without a policy reads vouch for nothing, and acts ask for the defaults.
		w.defaults = true
		src = []byte("pins: optional\ntools:\n")
		for _, t := range tools {
			effect := t.Effect
			if c := (&policy.Contract{Tool: t.Name, Effect: policy.Write}); effect == "write" && c.BeliedBy(t.Name) != "" {
				effect = "[write, send]"
			}
			src = fmt.Appendf(src, "  %s/%s: { effect: %s }\n", w.server, t.Name, effect)
		}
	} else if err != nil {
		return nil, err
	}
	p, faults := policy.Parse(file, src)
	if p == nil {
		return nil, fmt.Errorf("%v", faults[0])
	}
	if profile != p.Profile {
		src = append([]byte("profile: "+string(profile)+"\n"), src...)
	}
	if helpers {
		tools = append(slices.Clip(tools), helperTools(p)...)
		src = append(src, helperContracts(w.server, p)...)
	}
	if p, faults = policy.Parse(file, src); p == nil {
		return nil, fmt.Errorf("%v", faults[0])
	}
	var defs []gate.Definition
	for _, t := range tools {
		in, out := objectSchema(t.InputSchema), objectSchema(t.OutputSchema)
		def := map[string]any{"name": t.Name, "description": t.Description, "inputSchema": in}
		t.list = onlyList(out)
		if props, ok := out["properties"].(map[string]any); ok && out["type"] == "object" {
			t.bare = len(props) == 0
		}
		if out["type"] != "object" {
			t.under = "result"
		}
		if out != nil && t.under != "" {
			out = wrap(out)
		}
		if out != nil {
			def["outputSchema"] = out
		}
		w.tools[t.Name] = t
		raw, err := json.Marshal(def)
		if err != nil {
			return nil, err
		}
		defs = append(defs, gate.Definition{Server: w.server, Raw: raw})
	}
	c, findings := gate.NewCatalogue(defs, p)
	for _, f := range findings {
		if f.Reason != "" {
			return nil, fmt.Errorf("%s: %s/%s: %s: %s %s", file, f.Server, f.Tool, f.Reason, f.Message, f.Hint)
		}
	}
	w.policy, w.catalogue, w.definitions = p, c, defs
	return w, nil
}

// dialect are the words of corpora for types of JSON Schema.
var dialect = map[string]string{"dict": "object", "float": "number"}

// objectSchema reads a schema: types in the words of JSON Schema, and the root
// spelt out where it is a reference. It is nil where there is none.
func objectSchema(raw json.RawMessage) map[string]any {
	root, ok := measure.Decode(raw).(map[string]any)
	if !ok || len(root) == 0 {
		return nil
	}
	measure.Walk(root, nil, func(path []string, leaf any) any {
		if s, _ := leaf.(string); path[len(path)-1] == "type" && dialect[s] != "" {
			return dialect[s]
		}
		return leaf
	})
	defs, _ := root["$defs"].(map[string]any)
	if ref, ok := root["$ref"].(string); ok {
		if def, ok := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any); ok {
			def = maps.Clone(def)
			def["$defs"] = defs
			return def
		}
	}
	return root
}

// wrap makes a schema an object's, as MCP demands and SDKs do.
func wrap(s map[string]any) map[string]any {
	inner := maps.Clone(s)
	delete(inner, "$defs")
	out := map[string]any{"type": "object", "properties": map[string]any{"result": inner}, "required": []string{"result"}}
	if defs, ok := s["$defs"]; ok {
		out["$defs"] = defs
	}
	return out
}

// result is what a server would have answered.
func (w *world) result(s *Step) gate.Result {
	content := `{"content":[{"type":"text","text":` + string(encode(s.OutputText)) + `}]`
	switch {
	case s.failed():
		return gate.Result{Status: gate.Errored, Value: strictjson.Of([]byte(content + `,"isError":true}`))}
	case s.Unknown:
		return gate.Result{Status: gate.Unknown}
	}
	return gate.Result{Status: gate.OK, Value: strictjson.Of([]byte(content + `,"structuredContent":` + string(w.structured(s)) + `}`))}
}

// structured is what a server would have answered in structuredContent: the recorded
// value, under "result" where the schema is no object's. Where it is an object's of one
// property and the recording is a bare array of what that property holds, as some of
// BFCL's classes return, it stands under that one: a server that breaks its own schema
// has said nothing. Nothing, of a schema that is an object without properties, is one.
func (w *world) structured(s *Step) json.RawMessage {
	out := s.Output
	if len(out) == 0 {
		out = json.RawMessage("null")
	}
	t := w.tools[s.Tool]
	under := t.under
	if under == "" && string(out) == "null" && t.bare {
		return json.RawMessage("{}")
	}
	if under == "" && strictjson.KindOf(out) == strictjson.Array {
		under = t.list
	}
	if under != "" {
		out = encode(map[string]json.RawMessage{under: out})
	}
	return out
}

// onlyList is the name of a schema's one property if it is an array.
func onlyList(schema map[string]any) string {
	props, _ := schema["properties"].(map[string]any)
	for name, p := range props {
		if p, ok := p.(map[string]any); ok && len(props) == 1 && p["type"] == "array" {
			return name
		}
	}
	return ""
}

const (
	echoTool = "zz_echo"     // a read that returns what it was sent
	keepTool = "zz_note"     // an act that keeps what it was sent
	backTool = "zz_readback" // a read of what was kept
	bareTool = "zz_open"     // an act without arguments
)

// kinds are the types and collections that authority arguments of a policy accept, a
// field of a helper's result each.
func kinds(p *policy.Policy) (out []string) {
	for _, c := range p.Contracts {
		for _, a := range c.Args {
			if k := string(a.Type) + " " + a.Collection; a.Role.Authority() && !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	slices.Sort(out)
	return out
}

func helperTools(p *policy.Policy) []tool {
	fields := map[string]any{}
	for i := range kinds(p) {
		fields[fmt.Sprint("f", i)] = map[string]any{}
	}
	text := `{"type":"object","properties":{"in":{"type":"string"},"text":{}},"required":["text"]}`
	out := encode(map[string]any{"type": "object", "properties": fields})
	return []tool{
		{Name: echoTool, Description: "Returns the text.", InputSchema: json.RawMessage(text), OutputSchema: out},
		{Name: keepTool, Description: "Keeps the text.", InputSchema: json.RawMessage(text)},
		{Name: backTool, Description: "Returns what was kept.", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: out},
		{Name: bareTool, Description: "Opens the door.", InputSchema: json.RawMessage(`{"type":"object"}`)},
	}
}

func helperContracts(server string, p *policy.Policy) string {
	var fields strings.Builder
	for i, k := range kinds(p) {
		typ, collection, _ := strings.Cut(k, " ")
		fmt.Fprintf(&fields, "      - { at: /f%d, label: system", i)
		if typ != "" {
			fmt.Fprintf(&fields, ", type: %s", typ)
		}
		if collection != "" {
			fmt.Fprintf(&fields, ", collection: %s", collection)
		}
		fields.WriteString(" }\n")
	}
	outputs := ""
	if fields.Len() > 0 {
		outputs = "    outputs:\n" + fields.String()
	}
	// Text that is proven by nothing goes to a closed collection alone; where there is
	// none, the tool passes for a read.
	keeps := "read"
	for _, name := range slices.Sorted(maps.Keys(p.Collections)) {
		if p.Collections[name].Closed {
			keeps = fmt.Sprintf("write\n    args:\n      /in: { role: target, collection: %s, from: [const: [notes]] }\n      /text: { role: content, content: local }", name)
			break
		}
	}
	return fmt.Sprintf(`  %[1]s/%[2]s:
    effect: read
%[6]s  %[1]s/%[3]s:
    effect: %[7]s
  %[1]s/%[4]s:
    effect: read
%[6]s  %[1]s/%[5]s: { effect: write }
`, server, echoTool, keepTool, backTool, bareTool, outputs, keeps)
}
