package schema

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

var update = flag.Bool("update", false, "rewrite the expected parts of case files")

// TestSchemaCases runs testdata/*.txtar: NAME.schema is an
// input schema, NAME.open (optional) the patterns of objects the contract
// opens, NAME.calls arguments and, after =>, the failures they give.
func TestSchemaCases(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no cases")
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		by := map[string]*txtar.File{}
		for i, f := range ar.Files {
			by[f.Name] = &ar.Files[i]
		}
		for _, f := range ar.Files {
			name, ok := strings.CutSuffix(f.Name, ".schema")
			if !ok {
				continue
			}
			t.Run(name, func(t *testing.T) {
				s, err := Compile(f.Data)
				if err != nil {
					t.Fatal(err)
				}
				var opened []provenance.Pattern
				if o := by[name+".open"]; o != nil {
					for line := range strings.Lines(string(o.Data)) {
						at, err := provenance.ParsePattern(strings.TrimSpace(line))
						if err != nil {
							t.Fatal(err)
						}
						opened = append(opened, at)
					}
				}
				open := func(path []string) bool {
					return slices.ContainsFunc(opened, func(p provenance.Pattern) bool { return p.Match(path) })
				}
				var out strings.Builder
				for line := range strings.Lines(string(by[name+".calls"].Data)) {
					in, want, _ := strings.Cut(strings.TrimSpace(line), " => ")
					if err := strictjson.Check([]byte(in), strictjson.Request); err != nil {
						t.Fatal(in, err)
					}
					var got []string
					for _, f := range s.Judge(strictjson.Of([]byte(in)), open) {
						got = append(got, fmt.Sprintf("%s %s (%s)", f.Pointer, f.Reason, f.Need))
					}
					if len(got) == 0 {
						got = []string{"ok"}
					}
					fmt.Fprintf(&out, "%s => %s\n", in, strings.Join(got, ", "))
					if g := strings.Join(got, ", "); g != want && !*update {
						t.Errorf("%s\n got %s\nwant %s", in, g, want)
					}
				}
				if *update {
					by[name+".calls"].Data = []byte(out.String())
				}
			})
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func mustSchema(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Compile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestT09Work: what a hostile schema or value could make exponential or
// quadratic is counted before it is run, and refused.
func TestT09Work(t *testing.T) {
	s := mustSchema(t, `{"properties":{"a":{"type":"string","pattern":"^(a+)+$"}}}`)
	if fs := s.Judge(strictjson.Of([]byte(`{"a":"`+strings.Repeat("a", 50_000)+`"}`)), nil); len(fs) != 0 {
		t.Errorf("T09 ^(a+)+$: %v", fs)
	}
	if fs := s.Judge(strictjson.Of([]byte(`{"a":"`+strings.Repeat("a", 50_000)+`!"}`)), nil); len(fs) != 1 || fs[0].Reason != writ.SchemaInvalid {
		t.Errorf("T09 ^(a+)+$: %v", fs)
	}
	// Each level of the value doubles the work: 2^90 without the bound.
	twice := mustSchema(t, `{"allOf":[{"properties":{"c":{"$ref":"#"}}},{"properties":{"c":{"$ref":"#"}}}]}`)
	alts := mustSchema(t, `{"anyOf":[{"properties":{"c":{"$ref":"#"}}},{"required":["x"],"properties":{"c":{"$ref":"#"}}}]}`)
	enum := mustSchema(t, `{"properties":{"a":{"items":{"enum":[`+strings.TrimSuffix(strings.Repeat(`"x",`, 1)+func() string {
		var b strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&b, `"v%d",`, i)
		}
		return b.String()
	}(), ",")+`]}}}}`)
	deep := strings.Repeat(`{"c":`, 90) + `{}` + strings.Repeat(`}`, 90)
	for name, c := range map[string]struct {
		s  *Schema
		in string
	}{
		"doubling allOf":         {twice, deep},
		"doubling anyOf":         {alts, deep},
		"long enum, long array":  {enum, `{"a":[` + strings.TrimSuffix(strings.Repeat(`"v1",`, 20_000), ",") + `]}`},
		"large pattern and text": {mustSchema(t, `{"properties":{"a":{"pattern":"(a{1,300}b){3}"}}}`), `{"a":"` + strings.Repeat("a", 2<<20) + `"}`},
	} {
		fs := c.s.Judge(strictjson.Of([]byte(c.in)), nil)
		if len(fs) != 1 || fs[0].Reason != writ.PayloadTooLarge {
			t.Errorf("T09 %s: %d failures, want the call refused as too large", name, len(fs))
		}
		if c.s.Accepts(strictjson.Of([]byte(c.in))) {
			t.Errorf("T09 %s: a validation beyond the bound succeeds", name)
		}
	}
	if fs := twice.Judge(strictjson.Of([]byte(`{"c":{"c":{"c":{}}}}`)), nil); len(fs) != 0 {
		t.Errorf("a recursive schema on a small value: %v", fs)
	}
	// 100 k leaves under an ordinary schema are within the bound.
	if fs := mustSchema(t, `{"properties":{"a":{"type":"array","items":{"type":"integer","minimum":0}}}}`).Judge(strictjson.Of([]byte(`{"a":[`+strings.TrimSuffix(strings.Repeat("1,", 99_000), ",")+`]}`)), nil); len(fs) != 0 {
		t.Errorf("a large honest call: %v", fs)
	}
}

// TestManyFailures: the list of failures is bounded, sorted, and the same each
// time, whatever order they were found in.
func TestManyFailures(t *testing.T) {
	s := mustSchema(t, `{"properties":{"a":{"type":"object","properties":{}}}}`)
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, `,"k%d":1`, i)
	}
	in := []byte(`{"a":{` + b.String()[1:] + `},"` + strings.Repeat("x", 5000) + `":1}`)
	first := s.Judge(strictjson.Of(in), nil)
	if len(first) != MaxFailures {
		t.Fatalf("%d failures", len(first))
	}
	for range 5 {
		if again := s.Judge(strictjson.Of(in), nil); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Fatal("two judgements differ")
		}
	}
	for i, f := range first {
		if len(f.Pointer) > 2*maxPointer || i > 0 && first[i-1].Pointer > f.Pointer {
			t.Fatalf("pointer %d", i)
		}
	}
}

func TestSchemaQuestions(t *testing.T) {
	s := mustSchema(t, `{
		"$defs": {"mode": {"enum": ["r", "w", 1.0, null, {"a": [1]}]}},
		"properties": {
			"mode": {"$ref": "#/$defs/mode"},
			"kind": {"const": 9007199254740993},
			"opts": {"properties": {"deep": {"enum": [true]}}, "patternProperties": {"^x-": {"enum": ["p"]}}, "additionalProperties": {"enum": ["q"]}},
			"list": {"items": {"enum": ["e"]}, "prefixItems": [{"enum": ["first"]}]},
			"alt": {"anyOf": [{"const": "one"}, {"const": "two"}], "not": {"const": "three"}, "if": {"const": "four"}},
			"gone": false,
			"d": {"default": {"b": 1.50, "a": "<x>"}, "description": "never r"}
		}}`)
	for _, c := range []struct {
		path, value string
		want        bool
	}{
		{"/mode", `"r"`, true}, {"/mode", `"x"`, false}, {"/mode", `1`, true}, {"/mode", `"1"`, false}, {"/mode", `null`, true},
		{"/mode", `{"a":[1.0]}`, true}, {"/mode", `{"a":["1"]}`, false},
		{"/kind", `9007199254740993`, true}, {"/kind", `9007199254740992`, false}, // P13
		{"/opts/deep", `true`, true}, {"/opts/x-1", `"p"`, true}, {"/opts/y", `"q"`, true}, {"/opts/y", `"p"`, false},
		{"/list/0", `"first"`, true}, {"/list/0", `"e"`, false}, {"/list/7", `"e"`, true}, {"/list/x", `"e"`, false}, {"/list/01", `"e"`, false},
		{"/alt", `"one"`, true}, {"/alt", `"two"`, true}, {"/alt", `"three"`, false}, {"/alt", `"four"`, false},
		{"/d", `"r"`, false}, {"/nothing", `"r"`, false}, {"", `"r"`, false},
	} {
		path, _ := strictjson.ParsePointer(c.path)
		if got := s.EnumMember(path, strictjson.Of([]byte(c.value))); got != c.want {
			t.Errorf("R7 %s %s: %v", c.path, c.value, got)
		}
	}
	for p, want := range map[string]bool{"/mode": true, "/opts/deep": true, "/opts/x-1": false, "/opts/y": false, "/gone": false, "/nope": false, "": false, "/list/0": false} {
		path, _ := strictjson.ParsePointer(p)
		if got := s.NamesProperty(path); got != want {
			t.Errorf("R16 %s is named: %v", p, got)
		}
	}
}

// TestDefaults: what a member is where it is left out, if the schema says one thing.
func TestDefaults(t *testing.T) {
	s := mustSchema(t, `{
		"$defs": {"n": {"default": 1e1}},
		"allOf": [{"properties": {"twice": {"default": 1}, "once": {"default": false}}}],
		"anyOf": [{"properties": {"one": {"default": 1}}}, {}],
		"properties": {
			"o": {"default": {"b": 1.50, "a": "<x>", "c": 9007199254740993}}, "nothing": {"default": null}, "empty": {"default": []},
			"ref": {"$ref": "#/$defs/n"}, "same": {"$ref": "#/$defs/n", "default": 10}, "other": {"$ref": "#/$defs/n", "default": 11},
			"twice": {"default": 2}, "one": {}, "in": {"properties": {"x": {"default": 1}}}, "shut": false
		}}`)
	old := mustSchema(t, `{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {}}, "properties": {"beside": {"$ref": "#/definitions/n", "default": 1}}}`)
	for name, want := range map[string]string{
		"o": `{"a":"<x>","b":1.5,"c":9007199254740993}`, "nothing": `null`, "empty": `[]`, "ref": `10`, "same": `10`, "once": `false`,
		"other": "", "twice": "", "one": "", "in": "", "x": "", "shut": "", "absent": "", "beside": "",
	} {
		if got := string(s.Default(name).Raw()); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if got := old.Default(name); got.Exists() {
			t.Errorf("beside $ref of an old draft: %s", got.Raw())
		}
	}
	for _, c := range []struct {
		name, value string
		idle        bool
	}{
		{"nothing", "null", true}, {"empty", "[ ]", true}, {"once", "false", true}, {"once", "true", false}, {"nothing", `""`, false},
		{"empty", "[0]", false}, {"same", "10", false}, {"absent", "null", false},
	} {
		if got := s.Idle(c.name, strictjson.Of([]byte(c.value))); got != c.idle {
			t.Errorf("%s of %s says nothing: %v", c.name, c.value, got)
		}
	}
	if demanded := mustSchema(t, `{"required": ["a"], "properties": {"a": {"default": null}}}`); demanded.Idle("a", strictjson.Of([]byte("null"))) {
		t.Error("what is demanded says something")
	}
	if none := (*Schema)(nil); none.Default("a").Exists() || none.Idle("a", strictjson.Of([]byte("null"))) {
		t.Error("a schema that cannot be used says what may be left out")
	}
	for path, want := range map[string]bool{"": true, "/o": true, "/absent": false, "/in/x": true, "/in/y": false, "/ref/a": false} {
		tokens, _ := strictjson.ParsePointer(path)
		if s.Knows(tokens) != want {
			t.Errorf("it knows %q: %v", path, !want)
		}
	}
	either := mustSchema(t, `{"properties": {"b": {"anyOf": [{"properties": {"k": {"enum": ["a"]}, "t": {"properties": {"x": {}}}}}, {"type": "object", "additionalProperties": true}]}, "c": {"properties": {"k": {"enum": ["a"]}}, "additionalProperties": true}}}`)
	for path, want := range map[string]bool{"/b/t/y": true, "/b/z/y": true, "/c/k/y": false, "/c/z/y": true} {
		tokens, _ := strictjson.ParsePointer(path)
		if either.Knows(tokens) != want {
			t.Errorf("it knows %q: %v", path, !want)
		}
	}
	if at := []string{"b", "k"}; either.ListsAll(at) || !either.ListsValues(at) || !either.ListsAll([]string{"c", "k"}) {
		t.Error("an alternative beside a list of values admits others, and nothing else does")
	}
	free := mustSchema(t, `{"properties": {"m": {"type": "object"}, "f": {"additionalProperties": {"properties": {"a": {}}}}, "t": {"properties": {}}}}`)
	for path, want := range map[string]bool{"/m/a/b": true, "/f/x": true, "/f/x/a": true, "/f/x/b": false, "/t/x": false, "/x": false} {
		tokens, _ := strictjson.ParsePointer(path)
		if free.Knows(tokens) != want {
			t.Errorf("it knows %q: %v", path, !want)
		}
	}
}

// TestClosingModel compares the walk with a plain model on schemas of nested
// properties: a key is unknown iff its object's schema does neither list it nor say
// that there may be more.
func TestClosingModel(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "c", "~", "/", ""})
	var shape func(t *rapid.T, depth int) map[string]any
	shape = func(t *rapid.T, depth int) map[string]any {
		props := map[string]any{}
		for _, n := range rapid.SliceOfNDistinct(names, 0, 3, rapid.ID[string]).Draw(t, "names") {
			switch k := rapid.IntRange(0, 2).Draw(t, "kind"); {
			case k == 0 || depth == 0:
				props[n] = map[string]any{}
			case k == 1:
				props[n] = shape(t, depth-1)
			default:
				props[n] = map[string]any{"type": "array", "items": shape(t, depth-1)}
			}
		}
		s := map[string]any{"properties": props}
		if rapid.Bool().Draw(t, "more") {
			s["additionalProperties"] = true
		}
		return s
	}
	var value func(t *rapid.T, depth int) any
	value = func(t *rapid.T, depth int) any {
		switch k := rapid.IntRange(0, 3).Draw(t, "value"); {
		case k == 0 || depth == 0:
			return 1
		case k == 1:
			return []any{value(t, depth-1), value(t, depth-1)}
		}
		out := map[string]any{}
		for _, n := range rapid.SliceOfNDistinct(names, 0, 4, rapid.ID[string]).Draw(t, "keys") {
			out[n] = value(t, depth-1)
		}
		return out
	}
	var model func(s map[string]any, v any, at []string, out map[string]bool)
	model = func(s map[string]any, v any, at []string, out map[string]bool) {
		switch v := v.(type) {
		case map[string]any:
			props, _ := s["properties"].(map[string]any)
			for k, e := range v {
				p := append(append([]string(nil), at...), k)
				if sub, ok := props[k].(map[string]any); ok {
					model(sub, e, p, out)
				} else if s["additionalProperties"] != true {
					out[strictjson.Pointer(p)] = true
				}
			}
		case []any:
			items, _ := s["items"].(map[string]any)
			for i, e := range v {
				model(items, e, append(append([]string(nil), at...), fmt.Sprint(i)), out)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := shape(t, 3)
		text, _ := json.Marshal(s)
		compiled, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		v := map[string]any{"a": value(t, 3), "b": value(t, 3), "z": value(t, 1)}
		raw, _ := json.Marshal(v)
		want, got := map[string]bool{}, map[string]bool{}
		model(s, v, nil, want)
		for _, f := range compiled.Judge(strictjson.Of(raw), nil) {
			if f.Reason == writ.SchemaUnknownField {
				got[f.Pointer] = true
			}
		}
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Fatalf("%s\n%s\n got %v\nwant %v", text, raw, got, want)
		}
	})
}

// TestFailuresEchoNothing: no value of a call is in what is said about it.
func TestFailuresEchoNothing(t *testing.T) {
	s := mustSchema(t, `{"properties":{"e":{"enum":["x"]},"c":{"const":1},"p":{"pattern":"^y$"},"n":{"minimum":5,"maximum":6},"l":{"maxLength":1},"o":{"anyOf":[{"type":"null"},{"type":"array"}]},"f":{"format":"uri"},"u":{"uniqueItems":true},"x":{"propertyNames":{"maxLength":1},"patternProperties":{"":{}}}}}`)
	secret := "hunter2hunter2"
	in := fmt.Sprintf(`{"e":%[1]q,"c":%[1]q,"p":%[1]q,"n":31337,"l":%[1]q,"o":%[1]q,"f":%[1]q,"u":[%[1]q,%[1]q],"x":{"ok":1}}`, secret)
	fs := s.Judge(strictjson.Of([]byte(in)), nil)
	if len(fs) < 8 {
		t.Errorf("%d failures: %v", len(fs), fs)
	}
	for _, f := range fs {
		if strings.Contains(f.Need, secret) || strings.Contains(f.Need, "31337") || strings.Contains(f.Pointer, secret) {
			t.Errorf("R24: %+v", f)
		}
	}
}

// TestFlat: what is accepted by one look at each member is what is accepted the long way.
func TestFlat(t *testing.T) {
	flats := 0
	for _, said := range []string{`{"type":"string"}`, `{"type":"string","minLength":2}`, `{"type":["number","null"],"description":"d"}`, `{"type":"boolean","default":true}`,
		`{"type":"integer"}`, `{"type":"array"}`, `{"type":"object"}`, `{"enum":["x"]}`, `{}`, `false`} {
		for _, more := range []string{``, `,"additionalProperties":true`, `,"additionalProperties":false`, `,"additionalProperties":{"type":"string"}`, `,"type":"object"`,
			`,"type":"array"`, `,"required":["a"]`, `,"type":"object","required":["a","b"]`, `,"minProperties":2`, `,"not":{"required":["a"]}`, `,"$ref":"#/$defs/x","$defs":{"x":{"required":["b"]}}`} {
			text := `{"properties":{"a":` + said + `,"b":{"type":"string"}}` + more + `}`
			s := mustSchema(t, text)
			long := *s
			long.flat = nil
			for _, v := range []string{`"x"`, `"xy"`, `1`, `1.0`, `1.5`, `-1`, `null`, `true`, `[]`, `[{"z":1}]`, `{}`, `{"z":1}`} {
				for _, in := range []string{v, `{"a":` + v + `}`, `{"b":"x","a":` + v + `}`, `{"b":` + v + `}`, `{"c":` + v + `}`} {
					v := strictjson.Of([]byte(in))
					if s.flat.accepts(v) {
						flats++
					}
					if got, want := s.Judge(v, nil), long.Judge(v, nil); fmt.Sprint(got) != fmt.Sprint(want) || s.Accepts(v) != long.Accepts(v) {
						t.Errorf("%s of %s: %v, the long way %v", in, text, got, want)
					}
					v.Walk(func(path []string, v strictjson.Value) bool {
						if s.EnumMember(path, v) != long.EnumMember(path, v) || s.NamesProperty(path) != long.NamesProperty(path) {
							t.Errorf("%v in %s of %s: otherwise than the long way", path, in, text)
						}
						return true
					}, nil)
				}
			}
		}
	}
	if flats == 0 {
		t.Error("nothing was accepted the short way")
	}
}
