package certificate

import (
	"cmp"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/provenance"
)

// The fields of a text that is JSON, of a tool without an output schema, of which no contract says anything but what a person
// named, are outputs that anybody can write (decision 0032): those with a name that is no data,
// the least nested first, of a text with no more than so many values.
const mostFields, mostValues = 200, 5000

var fieldOf = text.Pattern(`^(/(\*|[A-Za-z_][A-Za-z0-9_-]{0,63}))+$`)

// withFields adds them to the outputs of a contract.
func withFields(outputs []provenance.OutputRule, result strictjson.Value) []provenance.OutputRule {
	kind, _ := result.Get("content").Find([]string{"0", "type"}).Text()
	text, _ := result.Get("content").Find([]string{"0", "text"}).Text()
	declared := slices.ContainsFunc(outputs, func(o provenance.OutputRule) bool { return !o.Unasked })
	doc, err := strictjson.Parse([]byte(text), strictjson.Result)
	if declared || kind != "text" || err != nil || text[0] != '{' && text[0] != '[' {
		return outputs
	}
	var pointers []string // of each value, with * for an index
	var walk func(v strictjson.Value, at string)
	walk = func(v strictjson.Value, at string) {
		for name, m := range v.Members() {
			if strings.ContainsAny(name, "*/") || name == "" {
				name = "\x00" // no field
			}
			walk(m, at+"/"+name)
		}
		for _, e := range v.Elements() {
			walk(e, at+"/*")
		}
		if v.Len() == 0 {
			pointers = append(pointers, at)
		}
	}
	if walk(doc, ""); len(pointers) > mostValues {
		return outputs
	}
	slices.SortStableFunc(pointers, func(a, b string) int { return cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")) })
	out := slices.Clone(outputs)
	for _, p := range pointers {
		known := slices.ContainsFunc(out, func(o provenance.OutputRule) bool { return o.Pointer.Source == p })
		if !known && fieldOf().MatchString(p) && len(out)-len(outputs) < mostFields {
			out = append(out, provenance.OutputRule{InText: true, Extract: provenance.ExtractJSON, Label: writ.External, Unasked: true,
				Pointer: provenance.Pattern{Tokens: strings.Split(p[1:], "/"), Source: p}})
		}
	}
	return out
}
