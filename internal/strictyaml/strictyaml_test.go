package strictyaml

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

var update = flag.Bool("update", false, "rewrite the expected parts of case files")

// document is what the cases are read into: one key for each thing Decode can
// read.
type document struct {
	Place
	Name      String    `yaml:"name"`
	On        Truth     `yaml:"on"`
	Count     Whole     `yaml:"count"`
	Words     Words     `yaml:"words"`
	Constants Constants `yaml:"constants"`
	Any       Anything  `yaml:"any"`
	Parts     Seq[part] `yaml:"parts"`
	ByName    Map[part] `yaml:"by_name"`

	Text  string            `yaml:"text"`
	Flag  bool              `yaml:"flag"`
	Wait  time.Duration     `yaml:"wait"`
	Argv  []string          `yaml:"argv"`
	Env   map[string]string `yaml:"env"`
	Inner part              `yaml:"inner"`
}

type part struct {
	Place
	ID   String `yaml:"id"`
	Size Whole  `yaml:"size"`
}

// TestCases runs testdata/*.txtar. A case is a pair of files: NAME.yaml (or
// NAME.quoted, a Go string literal, for bytes an editor would not keep) and
// NAME.want, which holds one line for each fault, or "ok" and the document as
// JSON where it has one spelling.
func TestCases(t *testing.T) {
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
		var out []txtar.File
		want := map[string]string{}
		for _, f := range ar.Files {
			want[f.Name] = string(f.Data)
		}
		for _, f := range ar.Files {
			ext := filepath.Ext(f.Name)
			if ext == ".want" {
				continue
			}
			cases++
			name := strings.TrimSuffix(f.Name, ext)
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
				if w, ok := want[name+".want"]; !*update && (!ok || got != w) {
					t.Errorf("got\n%swant\n%s", got, w)
				}
				out = append(out, f, txtar.File{Name: name + ".want", Data: []byte(got)})
			})
		}
		if *update {
			ar.Files = out
			if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if cases < 50 {
		t.Errorf("only %d cases were found", cases)
	}
}

func verdict(t *testing.T, in []byte) string {
	t.Helper()
	r := New("f.yaml")
	root := r.Parse(in, "write something")
	if root != nil {
		r.Decode(root, &document{})
	}
	if (root == nil) != (r.Count() > 0) && root == nil {
		t.Fatal("neither a tree nor a fault")
	}
	var b strings.Builder
	for _, f := range r.Faults() {
		if f.File != "f.yaml" || f.Line < 1 || f.Column < 1 {
			t.Errorf("a fault without a place: %+v", f)
		}
		b.WriteString(strings.TrimPrefix(f.String(), "f.yaml:") + "\n")
	}
	if b.Len() > 0 {
		return b.String()
	}
	text, ok := New("").JSON(root)
	if !ok {
		return "ok\n"
	}
	return "ok\n" + string(text) + "\n"
}

// TestDecodeFills: every kind of field gets its value and knows its place.
func TestDecodeFills(t *testing.T) {
	r := New("f")
	var d document
	r.Decode(r.Parse([]byte(`name: n
on: true
count: 0
words: [a, b]
constants: [1, "x"]
any: {k: v}
parts: [{id: p, size: 3}]
by_name: {z: {id: q}, a: {}}
text: t
flag: true
wait: 90s
argv: [x, ""]
env: {K: v}
inner: {id: i}
`), ""), &d)
	if r.Count() > 0 {
		t.Fatal(r.Faults())
	}
	for what, ok := range map[string]bool{
		"name":      d.Name.S == "n" && d.Name.Node.Line == 1 && d.Name.Node.Column == 7,
		"on":        d.On.Is && d.On.Given(),
		"count":     d.Count.Valid && d.Count.N == 0,
		"words":     len(d.Words.Items) == 2 && d.Words.Items[1].S == "b" && d.Words.Items[1].Node.Column == 12,
		"constants": string(bytes.Join(d.Constants.Items, []byte(" "))) == `1 "x"`,
		"any":       d.Any.Node.Get("k").Value == "v" && d.Any.Node.Get("l") == nil,
		"parts":     d.Parts.Items[0].ID.S == "p" && d.Parts.Items[0].Size.N == 3,
		"by_name":   d.ByName.Entries[0].Key.Value == "z" && d.ByName.Entries[0].Value.ID.S == "q" && d.ByName.Entries[1].Key.Value == "a",
		"plain":     d.Text == "t" && d.Flag && d.Wait == 90*time.Second && len(d.Argv) == 2 && d.Argv[0] == "x" && d.Env["K"] == "v",
		"inner":     d.Inner.ID.S == "i" && !d.Inner.Size.Given() && !d.Inner.Size.Valid,
		"at":        d.At("inner").Line == 14 && d.At("absent") == d.Node && d.Inner.At("id").Column == 13,
	} {
		if !ok {
			t.Errorf("%s: %+v", what, d)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a type no rule reads is a mistake of the program")
		}
	}()
	r.Decode(d.Count.Node, new(float64))
}

// TestBounds (C01): what a person cannot read is not read, in bounded time, and
// not more faults are told than he can use, the first ones first.
func TestBounds(t *testing.T) {
	pad := func(n int) []byte { return append([]byte("text: a\n#"), bytes.Repeat([]byte("x"), n-9)...) }
	nest := func(n int) []byte {
		return []byte("any: " + strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	for name, c := range map[string]struct {
		in   []byte
		want bool
	}{
		"at 1 MiB":      {pad(MaxBytes), true},
		"over 1 MiB":    {pad(MaxBytes + 1), false},
		"10 MB":         {bytes.Repeat([]byte("a: b\n"), 2<<20), false},
		"64 deep":       {nest(MaxDepth), true},
		"65 deep":       {nest(MaxDepth + 1), false},
		"many brackets": {bytes.Repeat([]byte("["), MaxBytes), false},
		"many dashes":   {bytes.Repeat([]byte("- "), MaxBytes/2), false},
		"billion laughs": {[]byte("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"), false},
	} {
		r := New("f")
		r.Parse(c.in, "")
		if (r.Count() == 0) != c.want {
			t.Errorf("%s: %v", name, r.Faults())
		}
	}
	r := New("f")
	r.Parse(bytes.Repeat([]byte("\t\n"), 10_000), "")
	fs := r.Faults()
	if len(fs) != MaxFaults+1 || fs[0].Line != 1 || fs[MaxFaults-1].Line != MaxFaults || fs[MaxFaults].Hint != "correct these first" {
		t.Errorf("%d faults are told", len(fs))
	}
}

// TestFaultsAreOrdered: whatever the order they were noted in, each once, and
// asking does not change the answer.
func TestFaultsAreOrdered(t *testing.T) {
	r := New("f")
	for _, at := range [][2]int{{2, 1}, {1, 9}, {2, 1}, {1, 10}} {
		r.FaultAt(at[0], at[1], "m", "h")
		r.WarnAt(at[0], at[1], "w", "")
	}
	want := "[f:1:9: m; h f:1:10: m; h f:2:1: m; h]"
	if got := fmt.Sprint(r.Faults()); got != want || fmt.Sprint(r.Faults()) != want || r.Count() != 4 {
		t.Errorf("%s, want %s", got, want)
	}
	if got := fmt.Sprint(r.Warnings()); got != "[f:1:9: w f:1:10: w f:2:1: w]" {
		t.Errorf("warnings: %s", got)
	}
	for want, f := range map[string]Fault{
		"f: m":        {File: "f", Message: "m"},
		"m; h":        {Message: "m", Hint: "h"},
		"f:3:4: m; h": {"f", 3, 4, "m", "h"},
	} {
		if f.String() != want {
			t.Errorf("%q, want %q", f.String(), want)
		}
	}
}

// TestDistanceModel holds the edit distance against its definition.
func TestDistanceModel(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		if a[0] == b[0] {
			return slow(a[1:], b[1:])
		}
		return 1 + min(slow(a[1:], b), slow(a, b[1:]), slow(a[1:], b[1:]))
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`[abc]{0,6}`).Draw(t, "a"), rapid.StringMatching(`[abc]{0,6}`).Draw(t, "b")
		if got, want := distance(a, b), slow(a, b); got != want {
			t.Fatalf("distance(%q, %q) = %d, want %d", a, b, got, want)
		}
	})
}

// same compares a tree with what the library alone reads: what was accepted
// means to everybody what it means to us.
func same(n *Node, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if n.Kind != Mapping || len(n.Items) != 2*len(v) {
			return false
		}
		for k, e := range v {
			if n.Get(k) == nil || !same(n.Get(k), e) {
				return false
			}
		}
		return true
	case map[any]any: // keys that are no text to the library: 1 and 01 are one
		return n.Kind == Mapping && len(n.Items) >= 2*len(v)
	case []any:
		if n.Kind != List || len(n.Items) != len(v) {
			return false
		}
		for i, e := range v {
			if !same(n.Items[i], e) {
				return false
			}
		}
		return true
	case string:
		return n.Kind == Text && n.Value == v
	case bool:
		return n.Kind == Bool
	case nil:
		return n.Kind == Null
	}
	return n.Kind == Number || n.Kind == Other
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"name: a\nparts: [{id: x}]\n", "a: &x [*x]\n---\nb", "any: {1: 2, \"1\": 3}", "any: !!str x", "any: |\n  a\n  b\n", "{<<: {}, ? [a] : b}", "any: [010, 2026-11-21, .5, ~, \"\\u202e\"]", "\ufefftext: a"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := New("f")
		root := r.Parse(b, "")
		if root == nil && r.Count() == 0 {
			t.Fatal("neither a tree nor a fault")
		}
		clean := r.Count() == 0
		if root != nil {
			r.Decode(root, &document{})
		}
		for _, x := range r.Faults() {
			if x.Line < 1 || x.Column < 1 || x.Line > bytes.Count(b, []byte("\n"))+1 {
				t.Fatalf("a fault outside the file: %+v", x)
			}
			if strings.ContainsFunc(x.Message+x.Hint, func(c rune) bool { return c < ' ' || text.Hidden(c, text.Unclear) }) {
				t.Fatalf("an unescaped character in %q", x.Message)
			}
		}
		if !clean {
			return
		}
		var v any
		if err := yaml.Load(b, &v); err == nil && !same(root, v) {
			t.Fatalf("the library reads %#v", v)
		}
		text, ok := New("").JSON(root)
		if !ok {
			return
		}
		if err := strictjson.Check(text, strictjson.Limits{}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again := New("f")
		if tree := again.Parse(text, ""); again.Count() == 0 {
			if back, _ := again.JSON(tree); !bytes.Equal(back, text) {
				t.Fatalf("%s read again is %s", text, back)
			}
		}
	})
}

// TestSame: what stands elsewhere in its file is the same, and any other word is not.
func TestSame(t *testing.T) {
	const text = "name: a\non: true\ncount: 3\nwords: [x, y]\nconstants: [1]\nparts: [{ id: p, size: 2 }]\nby_name: { n: { id: q } }\ntext: t\nflag: true\nwait: 3s\nargv: [c]\nenv: { K: v }\ninner: { id: r }\n"
	decoded := func(text string) (d document) {
		r := New("a.yaml")
		r.Decode(r.Parse([]byte(text), ""), &d)
		if faults := r.Faults(); len(faults) > 0 {
			t.Fatal(text, faults)
		}
		return d
	}
	d := decoded(text)
	if lines := strings.SplitAfter(text, "\n"); !Same(d, decoded("# moved\n"+strings.Join(append(lines[6:], lines[:6]...), ""))) {
		t.Error("the same, elsewhere, is not the same")
	}
	for _, other := range [][2]string{{"name: a", "name: b"}, {"on: true", "on: false"}, {"count: 3", "count: 4"}, {"[x, y]", "[x]"}, {"[x, y]", "[x, z]"}, {"[1]", "[2]"}, {"size: 2", "size: 3"},
		{"id: p", "id: s"}, {"{ n:", "{ m:"}, {"id: q", "id: s"}, {"text: t", "text: u"}, {"flag: true", "flag: false"}, {"3s", "4s"}, {"[c]", "[c, d]"}, {"K: v", "K: w"}, {"K: v", "L: v"}, {"K: v", "K: v, L: v"}, {"id: r", "id: s"}} {
		if Same(d, decoded(strings.Replace(text, other[0], other[1], 1))) {
			t.Errorf("%s is the same as %s", other[1], other[0])
		}
	}
}
