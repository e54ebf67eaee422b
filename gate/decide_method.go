package gate

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// The methods that are not tools/call are tools to the gate (R32). Where the
// policy has no contract for one of a server, these hold: what a server lists
// is a closed collection of its own, what is read by it is external, and every
// value sent to it is a target.

// structured is the member of a tool's result that outputs point into. The
// results of methods are read as if they stood in it whole.
const structured = "structuredContent"

// The derivations of the built-in contracts.
const (
	opTemplate = "uri_template"
	opVariable = "template_variable"
)

// builtinCollection returns name if it is a collection of the built-in
// contracts of that server.
func builtinCollection(server, name string) string {
	for _, kind := range []string{"resources.", "templates.", "prompts.", "prompt_arguments."} {
		if name == kind+server {
			return name
		}
	}
	return ""
}

// MethodContract is the contract of a method where the policy has none, nil for
// tools/call and unknown methods.
func MethodContract(server string, m policy.Method) *policy.Contract {
	if server == "" || !m.Judged() {
		return nil
	}
	c := &policy.Contract{Server: server, Tool: string(m), Method: m, Effect: policy.Egress}
	list := func(at, collection string) {
		c.Effect = policy.Read
		// The server enumerates its own state; a cursor does not choose it.
		c.Outputs = append(c.Outputs, provenance.OutputRule{At: pattern(at), Label: writ.System, Collection: collection + server, Authoritative: true})
	}
	arg := func(at string, role policy.Role, collection string, from ...policy.Source) {
		if collection != "" {
			collection += server
		}
		if role == policy.Target {
			from = append(from, policy.Source{Kind: policy.FromUser})
		}
		c.Args = append(c.Args, policy.ArgRule{At: pattern(at), Role: role, Collection: collection, From: append(from, outputOnly...)})
	}
	switch m {
	case policy.ListResources:
		list("/resources/*/uri", "resources.")
	case policy.ListTemplates:
		list("/resourceTemplates/*/uriTemplate", "templates.")
	case policy.ListPrompts:
		list("/prompts/*/name", "prompts.")
		list("/prompts/*/arguments/*/name", "prompt_arguments.")
	case policy.ReadResource, policy.SubscribeResource:
		arg("/uri", policy.Target, "resources.", policy.Source{Kind: policy.FromDerived, Op: opTemplate})
	case policy.GetPrompt:
		arg("/name", policy.Target, "prompts.")
		arg("/arguments", policy.Selector, "prompt_arguments.")
		c.Args[1].Open = true // its keys are judged as the listed argument names
		arg("/arguments/*", policy.Target, "")
	case policy.Complete:
		arg("/ref/type", policy.Enum, "", policy.Source{Kind: policy.FromConst, Const: [][]byte{[]byte(`"ref/prompt"`), []byte(`"ref/resource"`)}})
		c.Args[0].From = c.Args[0].From[:1]
		arg("/ref/name", policy.Target, "prompts.")
		arg("/ref/uri", policy.Target, "templates.")
		arg("/argument/name", policy.Selector, "prompt_arguments.", policy.Source{Kind: policy.FromDerived, Op: opVariable})
	}
	return c
}

func pattern(s string) provenance.Pattern {
	p, _ := provenance.ParsePattern(s) // constants, all well formed
	return p
}

// methodShape is the schema of a method's members.
func methodShape(m policy.Method, args strictjson.Value) []writ.Failure {
	var fs []writ.Failure
	object := func(at string, v strictjson.Value, required, optional []string, nested ...string) {
		fail := func(p string, r writ.Reason) {
			fs = append(fs, writ.Failure{Pointer: p, Reason: r, Need: needs[r]})
		}
		if v.Kind() != strictjson.Object {
			fail(at, writ.SchemaInvalid)
			return
		}
		for _, name := range required {
			if !v.Get(name).Exists() {
				fail(at+"/"+name, writ.SchemaMissingField)
			}
		}
		for name, x := range v.Members() {
			p := at + strictjson.Pointer([]string{name})
			switch {
			case required != nil && !slices.Contains(required, name) && !slices.Contains(optional, name):
				fail(p, writ.SchemaUnknownField)
			case slices.Contains(nested, name):
			case x.Kind() != strictjson.String:
				fail(p, writ.SchemaInvalid)
			}
		}
	}
	none := []string{}
	switch m {
	case policy.ReadResource, policy.SubscribeResource:
		object("", args, []string{"uri"}, nil)
	case policy.ListResources, policy.ListTemplates, policy.ListPrompts:
		object("", args, none, []string{"cursor"})
	case policy.GetPrompt:
		object("", args, []string{"name"}, []string{"arguments"}, "arguments")
		if a := args.Get("arguments"); a.Exists() {
			object("/arguments", a, nil, nil)
		}
	case policy.Complete:
		object("", args, []string{"ref", "argument"}, []string{"context"}, "ref", "argument", "context")
		if r := args.Get("ref"); r.Exists() {
			which := "name"
			if t, _ := r.Get("type").Text(); t == "ref/resource" {
				which = "uri"
			}
			object("/ref", r, []string{"type", which}, []string{"title"})
		}
		if a := args.Get("argument"); a.Exists() {
			object("/argument", a, []string{"name", "value"}, nil)
		}
		if c := args.Get("context"); c.Exists() {
			object("/context", c, none, []string{"arguments"}, "arguments")
			if a := c.Get("arguments"); a.Exists() {
				object("/context/arguments", a, nil, nil)
			}
		}
	}
	return fs
}

// fromTemplate accepts a URI that expands a listed template with every
// variable vouched for (R32, R15).
func (j *judge) fromTemplate(l *leaf) writ.Reason {
	s := j.session()
	if s == nil || j.strict {
		return writ.ProvenanceDerived
	}
	server := j.in.Call.Server
	vouched := func(text, collection string) (provenance.Fact, bool) {
		a := s.ledger.Find(provenance.Query{Value: strictjson.StringOf(text), Collection: collection,
			Authority: true, Target: true, Closed: j.closedCollection, Strict: collection == ""})
		if len(a.Vouched) == 0 {
			return provenance.Fact{}, false
		}
		return a.Vouched[0], true
	}
	for _, t := range s.templates[server] {
		values, ok := expands(t, l.text)
		if !ok {
			continue
		}
		f, ok := vouched(t, "templates."+server)
		found := founded{rule_: "derived:" + opTemplate, label: f.Label, refs: []Ref{refOf(f)}}
		for _, v := range values {
			if !ok {
				break
			}
			f, ok = vouched(v, "")
			found.label = min(found.label, f.Label)
			found.refs = append(found.refs, refOf(f))
		}
		if ok {
			l.founded = found
			return ""
		}
	}
	return writ.ProvenanceDerived
}

// fromVariable accepts the name of a variable of a listed template, which is
// what completion/complete asks about.
func (j *judge) fromVariable(l *leaf) writ.Reason {
	if s := j.session(); s != nil && !j.strict {
		for _, t := range s.templates[j.in.Call.Server] {
			if c, ok := compileTemplate(t); ok && slices.Contains(c.names, l.text) {
				l.founded = founded{rule_: "derived:" + opVariable, label: writ.System}
				return ""
			}
		}
	}
	return writ.ProvenanceDerived
}

// reserved are the characters that RFC 6570 calls so: between two variables one
// of them says where the first ends.
const reserved = ":/?#[]@!$&'()*+,;="

var expression = text.Pattern(`\{(\+?)([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)\}`)

// template is a URI template that has one reading.
type template struct {
	uri    *regexp.Regexp // one group for each variable
	names  []string
	inside string // the reserved characters between the variables
}

// compileTemplate reads the part of RFC 6570 that has one reading: {var}
// between literals that hold a reserved character, or a single {+var}.
func compileTemplate(t string) (c template, ok bool) {
	at := expression().FindAllStringSubmatchIndex(t, -1)
	if len(at) == 0 || len(t) > 2048 {
		return c, false
	}
	var b strings.Builder
	b.WriteString(`\A`)
	end := 0
	for i, m := range at {
		literal := t[end:m[0]]
		plus := m[3] > m[2]
		if strings.ContainsAny(literal, "{}%") || i > 0 && !strings.ContainsAny(literal, reserved) || plus && len(at) > 1 {
			return c, false
		}
		if i > 0 {
			c.inside += strings.Map(func(r rune) rune {
				if strings.ContainsRune(reserved, r) {
					return r
				}
				return -1
			}, literal)
		}
		b.WriteString(regexp.QuoteMeta(literal))
		if plus {
			b.WriteString(`((?:[^%?#\\\s]|%[0-9A-Fa-f]{2})+)`)
		} else {
			b.WriteString(`((?:[A-Za-z0-9\-._~]|%[0-9A-Fa-f]{2})+)`)
		}
		c.names = append(c.names, t[m[4]:m[5]])
		end = m[1]
	}
	if strings.ContainsAny(t[end:], "{}%") {
		return c, false
	}
	b.WriteString(regexp.QuoteMeta(t[end:]) + `\z`)
	var err error
	c.uri, err = regexp.Compile(b.String())
	return c, err == nil
}

// expands returns the values of a template's variables in a URI, as a server
// decodes them: once, and to these bytes. A URI of which servers could make
// another value is no expansion: one decoded twice, one whose path has dot
// segments for whoever decodes before it splits, a value that holds what ends
// its variable, two values of one name (N20–N23).
func expands(t, uri string) (values []string, ok bool) {
	c, ok := compileTemplate(t)
	if !ok {
		return nil, false
	}
	m := c.uri.FindStringSubmatch(uri)
	if m == nil {
		return nil, false
	}
	byName := map[string]string{}
	for i, v := range m[1:] {
		v = percentDecode(v)
		if before, again := byName[c.names[i]]; again && before != v ||
			percentDecode(v) != v || !utf8.ValidString(v) || strings.ContainsAny(v, c.inside) {
			return nil, false
		}
		byName[c.names[i]] = v
		values = append(values, v)
	}
	for _, part := range strings.FieldsFunc(percentDecode(uri), func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return nil, false
		}
	}
	return values, true
}
