package gate

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

var (
	pinOf  = regexp.MustCompile(`PIN\(([^/()]+)/([^()]+)\)`)
	pinHex = regexp.MustCompile(`sha256:([0-9a-f]{8})[0-9a-f]{56}`)
)

var update = flag.Bool("update", false, "rewrite the expected parts of case files")

// TestCatalogueCases runs testdata/catalogue/*.txtar, one catalogue each:
// policy.yaml, in which PIN(server/tool) stands for the pin of the first such
// definition; SERVER.tools, SERVER.prompts and SERVER.resources with one
// definition a line (a line that starts with " is a Go string literal); and
// want, the tools and findings as a person would list them.
func TestCatalogueCases(t *testing.T) {
	files, _ := filepath.Glob("testdata/catalogue/*.txtar")
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var defs []Definition
			var text []byte
			var want *txtar.File
			for i, f := range ar.Files {
				kinds := map[string]Kind{".tools": ToolKind, ".prompts": PromptKind, ".resources": ResourceKind}
				kind, isDefs := kinds[filepath.Ext(f.Name)]
				switch {
				case f.Name == "policy.yaml":
					text = f.Data
				case f.Name == "want":
					want = &ar.Files[i]
				case isDefs:
					for line := range strings.Lines(string(f.Data)) {
						if line = strings.TrimSpace(line); strings.HasPrefix(line, `"`) {
							if line, err = strconv.Unquote(line); err != nil {
								t.Fatal(err)
							}
						}
						defs = append(defs, Definition{strings.TrimSuffix(f.Name, filepath.Ext(f.Name)), kind, []byte(line)})
					}
				default:
					t.Fatalf("unknown file %q", f.Name)
				}
			}
			text = pinOf.ReplaceAllFunc(text, func(m []byte) []byte {
				s := pinOf.FindSubmatch(m)
				for _, d := range defs {
					if name, _ := strictjson.Text(strictjson.Get(d.Raw, "name")); d.Server == string(s[1]) && name == string(s[2]) {
						return []byte(PinOf(d.Server, d.Raw))
					}
				}
				t.Fatalf("no definition for %s", m)
				return nil
			})
			p, faults := policy.Parse("p", text)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			got := describe(NewCatalogue(defs, p))
			backwards := make([]Definition, len(defs))
			for i, d := range defs {
				backwards[len(defs)-1-i] = d
			}
			if again := describe(NewCatalogue(backwards, p)); again != got {
				t.Errorf("the order of definitions matters:\n%s\n%s", got, again)
			}
			bare, _ := NewCatalogue(defs, nil)
			renewed, findings := bare.Renewed(defs, p)
			if again := describe(renewed, findings); again != got {
				t.Errorf("renewed it is another:\n%s\n%s", got, again)
			}
			for _, tool := range renewed.Tools() {
				if had := bare.Lookup(tool.Server, tool.Name); had != nil && (tool.input != had.input || len(had.output) > 0 && tool.output[0] != had.output[0]) {
					t.Errorf("%s/%s is compiled again", tool.Server, tool.Name)
				}
			}
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want.Data) {
				t.Errorf("got\n%swant\n%s", got, want.Data)
			}
		})
	}
}

func describe(c *Catalogue, findings []Finding) string {
	var b strings.Builder
	states := map[State]string{Refused: "refused", Shut: "shut", Open: "open"}
	for _, t := range c.Tools() {
		fmt.Fprintf(&b, "%s/%s: %s", t.Server, t.Name, states[t.State])
		if t.Reason != "" {
			fmt.Fprintf(&b, " %s", t.Reason)
		}
		if t.Public != "" {
			fmt.Fprintf(&b, " as %s", t.Public)
		}
		fmt.Fprintf(&b, " effect %s\n", t.Effect(strictjson.Value{}))
	}
	for _, k := range []Kind{PromptKind, ResourceKind, TemplateKind} {
		for _, d := range c.Definitions(k) {
			fmt.Fprintf(&b, "%s %s %d bytes\n", k, d.Server, len(d.Raw))
		}
	}
	for _, f := range findings {
		name := f.Server
		if f.Tool != "" {
			name += "/" + f.Tool
		}
		fmt.Fprintf(&b, "finding %s", name)
		if f.Reason != "" {
			fmt.Fprintf(&b, " [%s]", f.Reason)
		}
		if f.Line > 0 {
			fmt.Fprintf(&b, " %d:%d", f.Line, f.Column)
		}
		fmt.Fprintf(&b, ": %s", f.Message)
		if f.Hint != "" {
			fmt.Fprintf(&b, "; %s", f.Hint)
		}
		b.WriteByte('\n')
	}
	return pinHex.ReplaceAllString(b.String(), "sha256:$1…")
}

// TestHiddenIsUnknown: what a client may not see resolves like nothing, and a
// name that several open tools share resolves to none of them (T03).
func TestHiddenIsUnknown(t *testing.T) {
	def := func(name string) []byte {
		return []byte(`{"name":"` + name + `","inputSchema":{"type":"object"}}`)
	}
	p, _ := policy.Parse("p", []byte("pins: optional\ntools:\n  a/read: {effect: read}\n  b/read: {effect: read}\n  b/only: {effect: read}\n"))
	c, _ := NewCatalogue([]Definition{{"a", "", def("read")}, {"b", "", def("read")}, {"b", "", def("only")}, {"b", "", def("secret")}}, p)
	for _, x := range []struct {
		public string
		shadow bool
		want   string
	}{
		{"a__read", false, "a/read"}, {"b__read", false, "b/read"}, {"only", false, "b/only"},
		{"read", false, ""}, {"secret", false, ""}, {"secret", true, "b/secret"}, {"nothing", true, ""}, {"b__only", false, ""},
	} {
		tool, listed := c.Resolve(x.public, x.shadow)
		got := ""
		if listed {
			got = tool.Server + "/" + tool.Name
		}
		if got != x.want {
			t.Errorf("T03 %s (shadow %v): %q, want %q", x.public, x.shadow, got, x.want)
		}
	}
	if n := len(c.Listed(false)); n != 3 {
		t.Errorf("%d tools are listed", n)
	}
	var none *Catalogue
	if tool, listed := none.Resolve("x", true); tool != nil || listed || none.Lookup("a", "b") != nil || none.Listed(true) != nil {
		t.Error("an absent catalogue has a tool")
	}
	var noTool *Tool
	if noTool.Effect(strictjson.Value{}) != policy.EveryEffect || len(noTool.ValidateArguments(strictjson.Value{})) == 0 || noTool.ValidateOutput(strictjson.Of([]byte("{}"))) || noTool.Schema().EnumMember(nil, strictjson.Of([]byte("1"))) || noTool.Schema().NamesProperty([]string{"a"}) {
		t.Error("an absent tool is not the most closed one")
	}
}

// TestRemoteReferences is T08: a schema that points to a listener never makes
// it see a connection.
func TestRemoteReferences(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	}()
	dir := t.TempDir()
	local := filepath.Join(dir, "s.json")
	if err := os.WriteFile(local, []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String() + "/s.json"
	for _, schema := range []string{
		`{"$ref":"` + url + `"}`,
		`{"$schema":"` + url + `","type":"object"}`,
		`{"$id":"` + url + `","properties":{"a":{"$ref":"other.json"}}}`,
		`{"properties":{"a":{"$dynamicRef":"` + url + `#x"}}}`,
		`{"$ref":"file://` + local + `"}`,
		`{"allOf":[{"$ref":"` + url + `#/a/b"}]}`,
	} {
		raw := []byte(`{"name":"x","inputSchema":` + schema + `}`)
		p, _ := policy.Parse("p", []byte("pins: optional\ntools: {s/x: {effect: read}}"))
		c, _ := NewCatalogue([]Definition{{"s", "", raw}}, p)
		if tool := c.Lookup("s", "x"); tool.State == Open || tool.Reason != writ.SchemaUnusable {
			t.Errorf("T08 %s: state %d, %s", schema, tool.State, tool.Reason)
		}
	}
	l.Close()
	<-done
	select {
	case <-seen:
		t.Error("T08: a remote reference was loaded")
	default:
	}
}

// TestT13TooMany: more than 2,000 tools are a faulty list.
func TestT13TooMany(t *testing.T) {
	p, _ := policy.Parse("p", []byte("pins: optional\ntools: {s/t0: {effect: read}}"))
	for n, want := range map[int]State{2000: Open, 2001: Refused} {
		var defs []Definition
		for i := range n {
			defs = append(defs, Definition{"s", "", []byte(`{"name":"t` + strconv.Itoa(i) + `","inputSchema":{}}`)})
		}
		c, _ := NewCatalogue(defs, p)
		if got := c.Lookup("s", "t0").State; got != want {
			t.Errorf("T13 %d tools: state %d", n, got)
		}
	}
}

func TestPin(t *testing.T) {
	a := PinOf("s", []byte(`{"name":"x","inputSchema":{"type":"object"},"n":1.0}`))
	if b := PinOf("s", []byte("{ \"n\":1 ,\"inputSchema\":{\"type\":\"obj\\u0065ct\"}, \"name\":\"x\"}")); a != b || a == "" {
		t.Errorf("the same definition, spelt otherwise, has another pin: %s %s", a, b)
	}
	for name, other := range map[string]string{
		"T01 description":  `{"name":"x","inputSchema":{"type":"object"},"n":1,"description":"<IMPORTANT>"}`,
		"T02 new argument": `{"name":"x","inputSchema":{"type":"object","properties":{"a":{}}},"n":1}`,
		"unknown member":   `{"name":"x","inputSchema":{"type":"object"},"n":1,"zz":0}`,
		"large integer":    `{"name":"x","inputSchema":{"type":"object"},"n":9007199254740993}`,
	} {
		if PinOf("s", []byte(other)) == a {
			t.Errorf("%s: same pin", name)
		}
	}
	if PinOf("t", []byte(`{"name":"x","inputSchema":{"type":"object"},"n":1}`)) == a {
		t.Error("R26: another server, same pin")
	}
	if PinOf("s", []byte(`{"n":9007199254740993}`)) == PinOf("s", []byte(`{"n":9007199254740992}`)) {
		t.Error("P13: integers beyond 2^53 are one pin")
	}
	// Documented: what anybody can compute.
	if got := PinOf("s", []byte(`{}`)); got != "sha256:"+fmt.Sprintf("%x", sum(`{"definition":{},"server":"s"}`)) {
		t.Errorf("pin of the empty definition: %s", got)
	}
}

// TestDigest: the catalogue's digest says what was listed, not in which order.
func TestDigest(t *testing.T) {
	x := Definition{"a", "", []byte(`{"name":"x","inputSchema":{}}`)}
	y := Definition{"b", "", []byte(`{"name":"y","inputSchema":{}}`)}
	z := Definition{"b", PromptKind, []byte(`{"name":"y","inputSchema":{}}`)}
	bad := Definition{"b", "", []byte(`{`)}
	of := func(ds ...Definition) [32]byte { c, _ := NewCatalogue(ds, nil); return c.Digest() }
	if of(x, y) != of(y, x) {
		t.Error("order matters")
	}
	all := map[[32]byte]bool{of(): true, of(x): true, of(x, y): true, of(x, z): true, of(x, bad): true}
	if len(all) != 5 {
		t.Error("two lists have one digest")
	}
}

// TestCases: a value no case names has every effect, and so has none at all.
func TestCases(t *testing.T) {
	p, faults := policy.Parse("p", []byte(`pins: optional
tools:
  s/t:
    args: { /method: { role: enum }, /x: { role: query } }
    cases:
      - { /method: [get, 1], effect: read }
      - { /method: [put], effect: write, args: { /id: { role: selector } } }
`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	c, _ := NewCatalogue([]Definition{{"s", "", []byte(`{"name":"t","annotations":{"destructiveHint":true},"inputSchema":{"properties":{"method":{},"id":{},"x":{}}}}`)}}, p)
	tool := c.Lookup("s", "t")
	for args, want := range map[string]policy.Effect{
		`{"method":"get"}`: policy.Read, `{"method":1.0}`: policy.Read, `{"method":"put"}`: policy.Write, `{"method":"1"}`: policy.EveryEffect,
		`{"method":"GET"}`: policy.EveryEffect, `{}`: policy.EveryEffect, `{"method":null}`: policy.EveryEffect, `{"method":["get"]}`: policy.EveryEffect,
	} {
		if got := tool.Effect(strictjson.Of([]byte(args))); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	if rs := tool.rules(strictjson.Of([]byte(`{"method":"put"}`))); len(rs) != 3 || rs[2].At.Source != "/id" || rs[2].Role != policy.Selector {
		t.Errorf("the case's own rules are missing: %+v", rs)
	}
	if rs := tool.rules(strictjson.Of([]byte(`{"method":"get"}`))); len(rs) != 2 {
		t.Errorf("a rule of another case applies: %+v", rs)
	}
}

// TestT12OutputSchema: an answer that does not hold its schema is not one.
func TestT12OutputSchema(t *testing.T) {
	p, faults := policy.Parse("p", []byte("pins: optional\ntools:\n  s/both: {effect: read, output_schema: {properties: {n: {maximum: 5}}}}\n  s/server: {effect: read}\n  s/none: {effect: read}\n  s/own: {effect: read, output_schema: {type: object, required: [id]}}\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	out := `,"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`
	c, _ := NewCatalogue([]Definition{
		{"s", "", []byte(`{"name":"both","inputSchema":{}` + out)}, {"s", "", []byte(`{"name":"server","inputSchema":{}` + out)},
		{"s", "", []byte(`{"name":"none","inputSchema":{}}`)}, {"s", "", []byte(`{"name":"own","inputSchema":{}}`)},
	}, p)
	for _, x := range []struct {
		tool, out string
		want      bool
	}{
		{"server", `{"n":1}`, true}, {"server", `{"n":1,"more":2}`, true}, {"server", `{}`, false}, {"server", `{"n":"1"}`, false}, {"server", `[]`, false},
		{"server", `{"n":9007199254740993}`, true}, {"both", `{"n":5}`, true}, {"both", `{"n":6}`, false}, {"both", `{}`, false},
		{"none", `{}`, false}, {"own", `{"id":1}`, true}, {"own", `{}`, false},
	} {
		tool := c.Lookup("s", x.tool)
		if got := tool.ValidateOutput(strictjson.Of([]byte(x.out))); got != x.want {
			t.Errorf("T12 %s %s: %v", x.tool, x.out, got)
		}
		if tool.HasOutputSchema() != (x.tool != "none") {
			t.Errorf("%s: HasOutputSchema", x.tool)
		}
	}
	if c.Lookup("s", "server").ValidateOutput(strictjson.Value{}) {
		t.Error("T12: no output is a valid one")
	}
}

// TestFindingsEchoNothing: no text a server chose reaches a finding.
func TestFindingsEchoNothing(t *testing.T) {
	p, _ := policy.Parse("p", []byte("tools: {s/x: {effect: read}}"))
	rapid.Check(t, func(t *rapid.T) {
		evil := "\x1b[2J" + rapid.StringN(1, 20, 80).Draw(t, "text")
		var defs []Definition
		for _, shape := range []string{`{"name":%s}`, `{"name":"x","description":%s}`, `{"name":"y","inputSchema":{"pattern":%s}}`, `{"name":"z","inputSchema":{"$ref":%s}}`, `{%s:1}`} {
			defs = append(defs, Definition{"s", "", []byte(fmt.Sprintf(shape, strictjson.Quote(evil)))})
		}
		defs = append(defs, Definition{evil, "", []byte(`{"name":"x"}`)})
		_, findings := NewCatalogue(defs, p)
		if len(findings) == 0 {
			t.Fatal("no findings")
		}
		for _, f := range findings {
			if s := fmt.Sprint(f); strings.Contains(s, "\x1b") || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
				t.Fatalf("T05: %q", s)
			}
		}
	})
}

func FuzzDefinition(f *testing.F) {
	f.Add([]byte(`{"name":"x","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"enum":[1]}}}}`), []byte(`{"a":1,"b":{"c":[2]}}`))
	f.Add([]byte(`{"name":"x","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]},"items":[{}],"oneOf":[{},{"not":{}}]},"outputSchema":true}`), []byte(`{"a":[]}`))
	f.Add([]byte(`{"name":"x","inputSchema":{"if":{"required":["a"]},"then":{"properties":{"a":true}},"unevaluatedProperties":false}}`), []byte(`{"a":{"b":null}}`))
	p, faults := policy.Parse("p", []byte("pins: optional\ntools: {s/x: {effect: read, args: {/a/*: {role: enum}}}}"))
	if len(faults) > 0 {
		f.Fatal(faults)
	}
	f.Fuzz(func(t *testing.T, def, args []byte) {
		c, findings := NewCatalogue([]Definition{{"s", ToolKind, def}, {"s", PromptKind, def}}, p)
		for _, x := range findings {
			if hidden(x.Message) || hidden(x.Hint) || hidden(x.Tool) {
				t.Fatalf("a finding repeats a hidden character: %+v", x)
			}
		}
		tool := c.Lookup("s", "x")
		if tool == nil {
			return
		}
		if tool.State == Open && (tool.input == nil || tool.Pin == "" || tool.Public != "x") {
			t.Fatalf("an open tool without schema, pin or name: %+v", tool)
		}
		if strictjson.Check(args, strictjson.Limits{Bytes: 4096, Depth: 20, Leaves: 500, Number: 64}) != nil {
			return
		}
		one, two := tool.ValidateArguments(strictjson.Of(args)), tool.ValidateArguments(strictjson.Of(args))
		if fmt.Sprint(one) != fmt.Sprint(two) {
			t.Fatalf("two judgements differ: %v %v", one, two)
		}
		tool.ValidateOutput(strictjson.Of(args))
		strictjson.Walk(args, func(path []string, raw []byte) bool {
			tool.Schema().EnumMember(path, strictjson.Of(raw))
			tool.Schema().NamesProperty(path)
			return true
		}, nil)
	})
}

func sum(s string) [32]byte { return sha256.Sum256([]byte(s)) }
