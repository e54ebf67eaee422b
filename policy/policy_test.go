package policy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/provenance"
)

var update = flag.Bool("update", false, "rewrite the expected parts of case files")

// TestPolicyCases runs testdata/*.txtar. A case is a pair of files:
// NAME.yaml (or NAME.quoted, a Go string literal, for bytes an editor would
// not keep) and NAME.want, which holds one line for each fault, or "ok" and one
// line for each warning.
func TestPolicyCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	cases := 0
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]*txtar.File{}
		for i, f := range ar.Files {
			if name, ok := strings.CutSuffix(f.Name, ".want"); ok {
				want[name] = &ar.Files[i]
			}
		}
		for _, f := range ar.Files {
			ext := filepath.Ext(f.Name)
			name := strings.TrimSuffix(f.Name, ext)
			if ext == ".want" {
				continue
			}
			cases++
			t.Run(filepath.Base(file)+"/"+name, func(t *testing.T) {
				in := f.Data
				if ext == ".quoted" {
					s, err := strconv.Unquote(strings.TrimSpace(string(in)))
					if err != nil {
						t.Fatal(err)
					}
					in = []byte(s)
				}
				got := verdict(t, in)
				w := want[name]
				if w == nil {
					t.Fatalf("no %s.want; got\n%s", name, got)
				}
				if *update {
					w.Data = []byte(got)
				} else if got != string(w.Data) {
					t.Errorf("got\n%swant\n%s", got, w.Data)
				}
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if cases < 60 {
		t.Errorf("only %d cases were found", cases)
	}
}

func verdict(t *testing.T, in []byte) string {
	t.Helper()
	p, faults := Parse("p.yaml", in)
	if (p == nil) == (len(faults) == 0) {
		t.Fatalf("a policy and %d faults", len(faults))
	}
	var b strings.Builder
	line := func(prefix string, f Fault) {
		fmt.Fprintf(&b, "%s%d:%d: %s", prefix, f.Line, f.Column, f.Message)
		if f.Hint != "" {
			b.WriteString("; " + f.Hint)
		}
		b.WriteByte('\n')
	}
	for _, f := range faults {
		if f.File != "p.yaml" || f.Line < 1 || f.Column < 1 {
			t.Errorf("a fault without a place: %+v", f)
		}
		line("", f)
	}
	if p != nil {
		b.WriteString("ok\n")
		for _, f := range p.Warnings {
			line("warning ", f)
		}
	}
	return b.String()
}

// sectionTwo is an example with every key of a policy.
const sectionTwo = `collections: { path: { closed: true }, mail: {} }
tools:
  files/list_directory:
    effect: read
    outputs:
      - { at: /content, extract: lines, pattern: '^\[(?:FILE|DIR)\] (.+)$', join: /path, label: system, collection: path, authoritative: true }
  files/move_file:
    effect: write
    args:
      /source:      { role: selector, collection: path, from: [output] }
      /destination: { role: target, from: [derived: path_join] }
  mail/read_email:
    effect: read
    outputs: [{ at: /id, label: system, collection: mail }, { at: /from, label: party }, { at: /body, label: external }]
  mail/send_email:
    effect: [send, write]
    args:
      /to/*:    { role: target, type: email, from: [output, const: [ops@example.org]] }
      /subject: { role: content }
      /mode:    { role: enum }
      /force:   { role: control, from: [const: [false, 7]] }
  home/unlock_door: { effect: write, no_args: approval }
  repo/issue:
    args: { /method: { role: enum } }
    cases:
      - { /method: [get, list], effect: read }
      - { /method: [close], effect: write, args: { /number: { role: selector, type: id, from: [output: repo/list#/issues/*/number] } } }
  repo/list:
    effect: read
    output_schema: { type: object, properties: { issues: { type: array } } }
    outputs: [{ at: /issues/*/number, label: system, type: id, owner: /user }]
`

func TestPolicyMeaning(t *testing.T) {
	p, faults := Parse("p", []byte(sectionTwo))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if !p.Collections["path"].Closed || p.Collections["mail"].Closed || p.Profile != Standard || p.PinsOptional {
		t.Errorf("head: %+v", p)
	}
	if string(p.Source) != sectionTwo || p.Digest == [32]byte{} {
		t.Error("the source is not kept")
	}
	o := p.Contracts["files/list_directory"].Outputs[0]
	if o.Label != writ.System || !o.HasJoin || o.Join[0] != "path" || !o.Authoritative || o.Extract != provenance.ExtractLines {
		t.Errorf("output: %+v", o)
	}
	for line, want := range map[string]string{"[FILE] a": "a", "x [FILE] a": "", "[FILE] a\n[FILE] b": ""} {
		got := ""
		if m := o.Pattern.FindStringSubmatch(line); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("R33 %q: %q, want %q", line, got, want)
		}
	}
	mv := p.Contracts["files/move_file"]
	if mv.Effect != Write || mv.Args[0].Role != Selector || mv.Args[0].From[0].Kind != FromOutput || mv.Args[0].FromDefault {
		t.Errorf("move_file: %+v", mv)
	}
	if s := mv.Args[1].From[0]; s.Kind != FromDerived || s.Op != "path_join" {
		t.Errorf("derived: %+v", s)
	}
	send := p.Contracts["mail/send_email"]
	if send.Effect != Send|Write || send.Args[0].Type != provenance.Email || string(send.Args[0].From[1].Const[0]) != `"ops@example.org"` || string(bytes.Join(send.Args[3].From[0].Const, []byte(","))) != "false,7" {
		t.Errorf("send_email: %+v", send)
	}
	for i, want := range []SourceKind{FromOutput, FromUser, FromCatalog, FromConst} {
		if a := send.Args[i]; a.From[0].Kind != want || a.FromDefault != (i == 1 || i == 2) {
			t.Errorf("default sources of %s: %+v", a.At.Source, a.From)
		}
	}
	if s := DefaultSources(Control); len(s) != 2 || s[0].Kind != FromUser || s[1].Kind != FromConst || len(s[1].Const) != 0 {
		t.Error("a control without constants must accept the user alone")
	}
	for _, r := range []Role{Target, Selector, Amount, TimeRole, Content, Query, SecretRole} {
		if s := DefaultSources(r); len(s) != 2 || s[0].Kind != FromUser || s[1].Kind != FromOutput {
			t.Errorf("default sources of %s: %+v", r, s)
		}
	}
	if c := p.Contracts["home/unlock_door"]; c.NoArgs != NoArgsApproval {
		t.Errorf("unlock_door: %+v", c)
	}
	issue := p.Contracts["repo/issue"]
	if len(issue.Cases) != 2 || issue.CaseAt[0] != "method" || issue.Cases[0].Effect != Read || issue.Effect != EveryEffect {
		t.Errorf("cases: %+v", issue)
	}
	if s := issue.Cases[1].Args[0].From[0]; s.Server != "repo" || s.Tool != "list" || !s.HasAt || s.At.Source != "/issues/*/number" {
		t.Errorf("output reference: %+v", s)
	}
	if got := string(p.Contracts["repo/list"].OutputSchema); got != `{"type":"object","properties":{"issues":{"type":"array"}}}` {
		t.Errorf("output schema: %s", got)
	}
}

// TestPolicyStrict holds that profile strict knows tool output and nothing
// else, and says what it turned off.
func TestPolicyStrict(t *testing.T) {
	p, faults := Parse("p", []byte("profile: strict\n"+sectionTwo))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for key, c := range p.Contracts {
		for a := range c.everyArg {
			for _, s := range a.From {
				if s.Kind != FromOutput {
					t.Errorf("%s %s: source %d in profile strict", key, a.At.Source, s.Kind)
				}
			}
		}
		for _, o := range c.Outputs {
			if o.Extract != provenance.NoExtract || o.InText {
				t.Errorf("%s: an extractor in profile strict", key)
			}
		}
	}
	if len(p.Warnings) == 0 {
		t.Error("what is off must be said")
	}
}

// TestPolicyBounds: a policy too large to be read by a person is not read.
func TestPolicyBounds(t *testing.T) {
	rules := func(n int) []byte {
		var b strings.Builder
		b.WriteString("tools:\n  a/b:\n    effect: write\n    args:\n")
		for i := range n {
			fmt.Fprintf(&b, "      /*/%d: { type: id }\n", i)
		}
		return []byte(b.String())
	}
	for name, c := range map[string]struct {
		in   []byte
		want bool
	}{
		"at 1 MiB":      {append([]byte("tools: {}\n#"), bytes.Repeat([]byte("x"), strictyaml.MaxBytes-11)...), true},
		"over 1 MiB":    {append([]byte("tools: {}\n#"), bytes.Repeat([]byte("x"), strictyaml.MaxBytes-10)...), false},
		"10 MB":         {bytes.Repeat([]byte("a: b\n"), 2<<20), false},
		"500 rules":     {rules(maxRules), true},
		"501 rules":     {rules(maxRules + 1), false},
		"many brackets": {bytes.Repeat([]byte("["), strictyaml.MaxBytes), false},
	} {
		if _, faults := Parse("p", c.in); (len(faults) == 0) != c.want {
			t.Errorf("%s: %v", name, faults)
		}
	}
	if _, faults := Parse("p", bytes.Repeat([]byte("\t\n"), 10_000)); len(faults) != strictyaml.MaxFaults+1 {
		t.Errorf("%d faults are told", len(faults))
	}
}

// TestMethodWords: a method the gate judges can be named in a contract, and no
// other word with a slash can (R32).
func TestMethodWords(t *testing.T) {
	for w, act := range methods {
		p, faults := Parse("p", []byte("tools: { s/"+w+": {} }"))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if c := p.Contracts["s/"+w]; string(c.Method) != w || c.Tool != w || c.Effect.Gated() != act {
			t.Errorf("%s: %+v", w, c)
		}
	}
}

func TestSetPin(t *testing.T) {
	pin := "sha256:" + strings.Repeat("ab", 32)
	old := "sha256:" + strings.Repeat("00", 32)
	for _, c := range []struct{ name, in, want string }{
		{"block", "# head\ntools:\n  a/b:   # why\n    # note\n    effect: read # x\n  a/c:\n    effect: read\n", "# head\ntools:\n  a/b:   # why\n    # note\n    pin: " + pin + "\n    effect: read # x\n  a/c:\n    effect: read\n"},
		{"flow", "tools:\n  a/b: { effect: read } # y\n", "tools:\n  a/b: { pin: " + pin + ", effect: read } # y\n"},
		{"replace", "tools:\n  a/b:\n    effect: read\n    pin: " + old + " # old\n", "tools:\n  a/b:\n    effect: read\n    pin: " + pin + " # old\n"},
		{"replace quoted", "tools:\n  a/b: {pin: \"" + old + "\", effect: read}\n", "tools:\n  a/b: {pin: " + pin + ", effect: read}\n"},
		{"carriage returns", "tools:\r\n  a/b:\r\n    effect: read\r\n", "tools:\r\n  a/b:\r\n    pin: " + pin + "\r\n    effect: read\r\n"},
		{"wide characters before it", "tools: { x/y: { effect: read, no_args: allow }, \"a/b\": {effect: read} } # é漢\n", "tools: { x/y: { effect: read, no_args: allow }, \"a/b\": { pin: " + pin + ",effect: read} } # é漢\n"},
		{"all in one flow", "{tools: {a/b: {effect: read}}}", "{tools: {a/b: { pin: " + pin + ",effect: read}}}"},
	} {
		got, err := SetPin([]byte(c.in), "a/b", pin)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, got, c.want)
		}
	}
	for _, c := range []struct{ name, in, tool, pin string }{
		{"no contract", "tools: { a/b: { effect: read } }", "a/c", pin},
		{"bad pin", "tools: { a/b: { effect: read } }", "a/b", "sha256:x"},
		{"faulty policy", "tools: { a/b: { efect: read } }", "a/b", pin},
		{"method", "tools: { a/resources/read: {} }", "a/resources/read", pin},
		{"no room for a line", "tools:\n  a/b:\n    ? effect\n    : read\n", "a/b", pin},
	} {
		if got, err := SetPin([]byte(c.in), c.tool, c.pin); err == nil {
			t.Errorf("%s: accepted: %q", c.name, got)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte(sectionTwo))
	f.Add([]byte("profile: strict\ntools: {a/b: {effect: read, outputs: [{in: text, block: 1, extract: json, pointer: /a, label: party}]}}"))
	f.Add([]byte("a: &x [*x]\n--- \nb"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, faults := Parse("p", b)
		if (p == nil) == (len(faults) == 0) {
			t.Fatal("a policy and faults, or neither")
		}
		for _, x := range faults {
			if x.Line < 1 || x.Column < 1 || x.Line > bytes.Count(b, []byte("\n"))+1 {
				t.Fatalf("a fault outside the file: %+v", x)
			}
			if strings.ContainsFunc(x.Message+x.Hint, func(r rune) bool { return (r < ' ' || r > '~') && r != '…' }) {
				t.Fatalf("an unescaped character in %q", x.Message)
			}
		}
		if p == nil {
			return
		}
		again, faults := Parse("p", b)
		if len(faults) > 0 || again.Digest != p.Digest || len(again.Warnings) != len(p.Warnings) {
			t.Fatal("two readings differ")
		}
		pin := "sha256:" + strings.Repeat("cd", 32)
		for key := range p.Contracts {
			if out, err := SetPin(b, key, pin); err == nil {
				if q, faults := Parse("p", out); len(faults) > 0 || q.Contracts[key].Pin != pin {
					t.Fatalf("SetPin broke the policy: %v", faults)
				}
			}
			break
		}
	})
}

// TestReference: docs/policy.md has every word of the format.
func TestReference(t *testing.T) {
	b, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []any{policyFile{}, collectionFile{}, toolFile{}, argFile{}, outputFile{}, budgetFile{}} {
		for i := range reflect.TypeOf(form).NumField() {
			word := reflect.TypeOf(form).Field(i).Tag.Get("yaml")
			if word != "" && !bytes.Contains(b, []byte("`"+word)) && !bytes.Contains(b, []byte(" "+word+":")) {
				t.Errorf("%q is not in docs/policy.md", word)
			}
		}
	}
}

// TestGrew: a policy is another with lines that a person kept since, and by nothing else.
func TestGrew(t *testing.T) {
	const base = "pins: optional\ncollections: { ticket: {}, note: {} }\ntools:\n  a/b: { effect: read }\n"
	const first = "grown:\n  - {\"closed\":\"ticket\",\"by\":\"kim\",\"at\":\"2026-11-01T10:00:00Z\"}\n"
	const second = "  - {\"tool\":\"a/b\",\"arg\":\"/x\",\"const\":\"ü<1>\",\"by\":\"kim\",\"at\":\"2026-11-02T10:00:00Z\"}\n"
	for _, c := range []struct {
		name, was, is string
		want          bool
	}{
		{"a line", base, base + first, true},
		{"behind no newline", strings.TrimSuffix(base, "\n"), base + first, true},
		{"one more", base + first, base + first + second, true},
		{"nothing", base + first, base + first, false},
		{"one less", base + first + second, base + first, false},
		{"another", base + first, base + strings.Replace(first, "ticket", "note", 1) + second, false},
		{"and the policy", base, base + "  a/c: { effect: read }\n" + first, false},
		{"nobody's", base, base + strings.Replace(first, "\"by\":\"kim\",", "", 1), false},
		{"by hand", base, base + "grown:\n  - { closed: ticket, by: kim, at: \"2026-11-01T10:00:00Z\" }\n", false},
		{"by hand before", base + "grown:\n  - { closed: ticket, by: kim, at: \"2026-11-01T10:00:00Z\" }\n", base + first + second, false},
	} {
		was, faults := Parse("policy.yaml", []byte(c.was))
		is, more := Parse("policy.yaml", []byte(c.is))
		if len(faults)+len(more) > 0 {
			t.Fatal(c.name, faults, more)
		}
		if got := is.Grew(was); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := slices.Contains(is.Lineage()[1:], was.Digest); got != c.want {
			t.Errorf("%s: in its lineage: %v", c.name, got)
		}
	}
}

// TestLifts: what rests on lines counts not while one of each is in force, word for word;
// what rests on none, or on a list without lines, always does.
func TestLifts(t *testing.T) {
	const base = `pins: optional
tools:
  s/list: { effect: read, outputs: [ { at: /ids/*, label: external }, { at: /names/*, label: system } ] }
  s/close: { effect: write, args: { /id: { role: target, from: [ user ] }, /to: { role: target, from: [ user ] } } }
grown:
  - { tool: s/close, arg: /id, from: "s/list#/ids/*", writes: ours }
  - { tool: s/close, arg: /to, from: "s/list#/names/*" }
  - { tool: s/close, arg: /to, const: "" }
`
	p, faults := Parse("policy.yaml", []byte(base))
	if p == nil || len(faults) > 0 {
		t.Fatal(faults)
	}
	id := provenance.Line{Tool: "s/close", Arg: "/id", From: "s/list#/ids/*", Writes: "ours"}
	to := provenance.Line{Tool: "s/close", Arg: "/to", From: "s/list#/names/*"}
	other := func(change func(*provenance.Line)) provenance.Line { l := id; change(&l); return l }
	server := other(func(l *provenance.Line) { l.Writes = "server" })
	for _, c := range []struct {
		name  string
		rests [][]provenance.Line
		lifts bool
	}{
		{"one", [][]provenance.Line{{id}}, true},
		{"two", [][]provenance.Line{{id}, {to}}, true},
		{"either", [][]provenance.Line{{server, id}}, true},
		{"nothing", nil, false},
		{"no line", [][]provenance.Line{{}}, false},
		{"no line beside one", [][]provenance.Line{{id}, {}}, false},
		{"another word", [][]provenance.Line{{server}}, false},
		{"one of two", [][]provenance.Line{{id}, {server}}, false},
		{"another argument", [][]provenance.Line{{other(func(l *provenance.Line) { l.Arg = "/to" })}}, false},
		{"another tool", [][]provenance.Line{{other(func(l *provenance.Line) { l.Tool = "s/list" })}}, false},
		{"another output", [][]provenance.Line{{other(func(l *provenance.Line) { l.From = "s/list#/ids/0" })}}, false},
		{"in a text", [][]provenance.Line{{other(func(l *provenance.Line) { l.In = "text" })}}, false},
		{"an exact value", [][]provenance.Line{{{Tool: "s/close", Arg: "/to"}}}, false},
		{"the empty line", [][]provenance.Line{{{}}}, false},
	} {
		if p.Lifts(c.rests) != c.lifts {
			t.Errorf("%s: %v", c.name, !c.lifts)
		}
	}
	if none := (*Policy)(nil); none.Lifts([][]provenance.Line{{id}}) {
		t.Error("no policy lifts")
	}
}

// TestManyNames: what of a collection is called otherwise is bounded.
func TestManyNames(t *testing.T) {
	for n, want := range map[int]int{mostNames / 2: 0, mostNames/2 + 1: 1} {
		var b strings.Builder
		b.WriteString("collections:\n  x:\n    called:\n")
		for i := range n {
			fmt.Fprintf(&b, "      m%d: [name %d]\n", i, i)
		}
		b.WriteString("tools: {}\n")
		if _, faults := Parse("policy.yaml", []byte(b.String())); len(faults) != want {
			t.Errorf("%d members: %v", n, faults)
		}
	}
}
