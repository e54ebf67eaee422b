package ask

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/strictyaml"
	"github.com/writ-project/writ/internal/text"
)

//go:embed rules.yaml
var defaultRules []byte

// DefaultRules returns the text of the built-in rules, for an operator to start
// from. They route to the built-in example server.
func DefaultRules() []byte { return bytes.Clone(defaultRules) }

// Rules is a planner that routes by pattern: the first rule whose pattern is
// the whole request gives the plan. Equal requests get equal plans. It is also
// a summariser: it quotes the values of a result and adds no words.
type Rules struct {
	rules     []rule
	otherwise string
}

type rule struct {
	pattern      *regexp.Regexp
	server, tool string
	args         []byte // JSON, with ${group} in its strings
	ask          string // instead of a call
}

// The form of the file. Its description for operators stands in rules.yaml.
type (
	rulesForm struct {
		strictyaml.Place
		Version   strictyaml.Whole         `yaml:"version"`
		Rules     strictyaml.Seq[ruleForm] `yaml:"rules"`
		Otherwise strictyaml.String        `yaml:"otherwise"`
	}
	ruleForm struct {
		strictyaml.Place
		Pattern strictyaml.String   `yaml:"pattern"`
		Call    strictyaml.String   `yaml:"call"`
		Args    strictyaml.Anything `yaml:"args"`
		Ask     strictyaml.String   `yaml:"ask"`
	}
)

const (
	maxRules   = 1000
	maxPattern = 4 << 10
)

var groupRef = text.Pattern(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// ParseRules reads an operator's routing rules. The name of the file is only
// repeated in the faults; with a fault there are no rules.
func ParseRules(file string, b []byte) (*Rules, []strictyaml.Fault) {
	r := strictyaml.New(file)
	var form rulesForm
	if !r.Read(b, "rules have at least the keys version, rules and otherwise", &form) {
		return nil, r.Faults()
	}
	r.FaultIf(form.Version.N != 1, form.At("version"), "version must be 1", "write version: 1")
	r.FaultIf(strings.TrimSpace(form.Otherwise.S) == "", form.At("otherwise"), "what to ask a user whose request fits no rule is missing", "otherwise: I can …")
	if n := len(form.Rules.Items); n == 0 || n > maxRules {
		r.Fault(form.At("rules"), "1 to 1000 rules are needed", "")
	}
	out := &Rules{otherwise: form.Otherwise.S}
	for i := range form.Rules.Items {
		out.rules = append(out.rules, parseRule(r, &form.Rules.Items[i]))
	}
	if r.Count() > 0 {
		return nil, r.Faults()
	}
	return out, nil
}

func parseRule(r *strictyaml.Reader, f *ruleForm) (out rule) {
	var err error
	if len(f.Pattern.S) == 0 || len(f.Pattern.S) > maxPattern {
		r.Fault(f.At("pattern"), "a pattern of 1 to 4096 bytes is needed", "")
	} else if out.pattern, err = regexp.Compile(`^(?:` + f.Pattern.S + `)$`); err != nil {
		r.Fault(f.At("pattern"), "not a pattern RE2 can read", "see https://github.com/google/re2/wiki/Syntax")
	}
	if f.Call.Given() == f.Ask.Given() {
		r.Fault(f.At("call"), "a rule has either a call or a question to ask", "call: server/tool")
		return out
	}
	if f.Ask.Given() {
		out.ask = f.Ask.S
		r.FaultIf(strings.TrimSpace(out.ask) == "", f.At("ask"), "the question is empty", "")
		r.FaultIf(f.Args.Given(), f.At("args"), "args belong to a call", "remove them")
		return out
	}
	var ok bool
	if out.server, out.tool, ok = strings.Cut(f.Call.S, "/"); !ok || out.server == "" || out.tool == "" {
		r.Fault(f.At("call"), "a call names server/tool", "call: example/fetch_ticket")
	}
	out.args = []byte("{}")
	if f.Args.Given() {
		if f.Args.Node.Kind != strictyaml.Mapping {
			r.Fault(f.At("args"), "a mapping is expected here", "args: {id: '${id}'}")
			return out
		}
		if b, ok := r.JSON(f.Args.Node); ok {
			out.args = b
		}
	}
	if out.pattern == nil {
		return out
	}
	for _, m := range groupRef().FindAllSubmatch(out.args, -1) {
		r.FaultIf(out.pattern.SubexpIndex(string(m[1])) < 0, f.At("args"), "the pattern has no group named "+strictyaml.Word(string(m[1])), "(?P<name>…) in the pattern, ${name} in args")
	}
	return out
}

// Plan implements Planner.
func (r *Rules) Plan(_ context.Context, p Prompt) ([]byte, error) {
	text := strings.Join(strings.Fields(p.Request), " ")
	for _, x := range r.rules {
		m := x.pattern.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if x.ask != "" {
			return claim.Plan{Type: claim.FinalAnswer, Answer: x.ask}.JSON(), nil
		}
		args := fill(x.args, func(group string) string { return m[x.pattern.SubexpIndex(group)] })
		return claim.Plan{Type: claim.CallTool, Server: x.server, Tool: x.tool, Args: args}.JSON(), nil
	}
	return claim.Plan{Type: claim.FinalAnswer, Answer: r.otherwise}.JSON(), nil
}

// fill replaces ${group} in the strings of a JSON value. What was matched never
// becomes anything but part of a string.
func fill(raw []byte, group func(string) string) []byte {
	switch strictjson.KindOf(raw) {
	case strictjson.Object:
		out := []byte("{}")
		members, _ := strictjson.Members(raw)
		for _, m := range members {
			out = strictjson.Set(out, m.Name, fill(m.Value, group))
		}
		return out
	case strictjson.Array:
		elements, _ := strictjson.Elements(raw)
		parts := make([][]byte, len(elements))
		for i, e := range elements {
			parts[i] = fill(e, group)
		}
		return append(append([]byte("["), bytes.Join(parts, []byte(","))...), ']')
	case strictjson.String:
		s, _ := strictjson.Text(raw)
		return strictjson.Quote(groupRef().ReplaceAllStringFunc(s, func(ref string) string { return group(ref[2 : len(ref)-1]) }))
	}
	return raw
}

// The bounds of a summary by rules.
const (
	quotedItems = 20
	quotedBytes = 1 << 10
)

var errNothingToQuote = errors.New("the result has no value that can be quoted whole")

// Summarise implements Summariser: one bullet for each member of the result,
// or for each element of a list in it, that is short enough to stand whole. Its
// text is the name and the value.
func (*Rules) Summarise(_ context.Context, m Material) ([]byte, error) {
	var s claim.Summary
	add := func(name string, value []byte, quote string) {
		if len(s.Bullets) < quotedItems && len(quote) <= quotedBytes && len(name) <= quotedBytes {
			text := string(value)
			if t, ok := strictjson.Text(value); ok {
				text = t
			}
			s.Bullets = append(s.Bullets, claim.Item{Text: name + ": " + text, Evidence: quote})
		}
	}
	source := []byte(m.Source.Text())
	if !m.Source.Truncated() {
		members, _ := strictjson.Members(source)
		for _, x := range members {
			elements, isList := strictjson.Elements(x.Value)
			for _, e := range elements {
				add(x.Name, e, string(e))
			}
			if !isList {
				add(x.Name, x.Value, string(strictjson.Quote(x.Name))+":"+string(x.Value))
			}
		}
	}
	// What cannot be shown by a quote is left out: an empty value, a mark.
	s.Bullets = slices.DeleteFunc(s.Bullets, func(b claim.Item) bool {
		_, why := m.Source.Find(b.Evidence)
		return why != "" || strings.TrimSpace(b.Text) == ""
	})
	if len(s.Bullets) == 0 {
		return nil, errNothingToQuote
	}
	return s.JSON(), nil
}
