package provenance

import (
	"regexp"
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// # Fields of a text that nobody declared
//
// Most servers answer in JSON that stands in a text, and publish no schema of it. Of a
// read that was drafted and not reviewed the contract says nothing of what comes back either.
// What stands there vouches for nothing; but a person who is asked about a value is to be
// shown which field it came from, and may say who writes that field. So each has a rule
// that calls it external, made up of where it stands.

// mostNamed bounds the fields of a result that have a name.
const mostNamed = 200

// fieldName is a name that is no data, and that nobody can be shown something by.
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// WithFields returns rules with one more for each field of the JSON object or array that
// the first text of a result is, "*" for each index. It returns them as they are where
// a rule says anything but what a person named (OutputRule.Unasked), or where there is
// structured content. No field is named that is below a name which may be data, nor one beyond
// the first 200.
func WithFields(rules []OutputRule, result strictjson.Value) []OutputRule {
	doc, ok := textJSON(result)
	if !ok || result.Get("structuredContent").Exists() || slices.ContainsFunc(rules, func(r OutputRule) bool { return !r.Unasked }) {
		return rules
	}
	known := map[string]bool{}
	for i := range rules {
		known[rules[i].Pointer.Source] = true
	}
	out := slices.Clone(rules)
	var walk func(v strictjson.Value, at []string)
	walk = func(v strictjson.Value, at []string) {
		at = at[:len(at):len(at)]
		for name, m := range v.Members() {
			if fieldName.MatchString(name) {
				walk(m, append(at, name))
			}
		}
		for _, e := range v.Elements() {
			walk(e, append(at, wildcard))
		}
		if source := strictjson.Pointer(at); v.Len() == 0 && !known[source] && len(at) > 0 && len(out)-len(rules) < mostNamed {
			known[source] = true
			out = append(out, OutputRule{InText: true, Extract: ExtractJSON, Pointer: Pattern{at, source}, Label: writ.External, Unasked: true})
		}
	}
	walk(doc, nil)
	return out
}

// textJSON is the JSON that the first text of a result is as a whole.
func textJSON(result strictjson.Value) (doc strictjson.Value, ok bool) {
	for _, b := range result.Get("content").Elements() {
		kind, _ := b.Get("type").Text()
		s, _ := b.Get("text").Text()
		if kind != "text" || s == "" || s[0] != '{' && s[0] != '[' {
			return doc, false
		}
		doc, err := strictjson.Parse([]byte(s), strictjson.Result)
		return doc, err == nil
	}
	return doc, false
}
