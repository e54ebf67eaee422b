package provenance

import (
	"slices"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// # Fields of a text that nobody declared
//
// Most servers answer in JSON that stands in a text, and publish no schema of it. Of a
// read that was drafted and not reviewed the contract says nothing of what comes back either.
// What stands there vouches for nothing; but a person who is asked about a value is to be
// shown which field it came from, and may say who writes that field. So each has a rule
// that calls it external, made up of where it stands.

// mostNamed bounds the fields of a result that have a name, the least nested first, and
// mostLeaves the values of one that is looked at at all.
const mostNamed, mostLeaves = 200, 5000

// fieldName is a name that is no data, and that nobody can be shown something by.
var fieldName = text.Pattern(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// WithFields returns rules with one more for each field of the JSON object or array that
// the first text of a result is, "*" for each index. It returns them as they are where
// a rule says anything but what a person named (OutputRule.Unasked), and of a text of more than
// 5,000 values. It is of a tool without an output schema: what another one's text says its
// structured content has. No field is named that is below a
// name which may be data, and 200 are at most.
func WithFields(rules []OutputRule, result strictjson.Value) []OutputRule {
	doc, ok := textJSON(result)
	if !ok || slices.ContainsFunc(rules, func(r OutputRule) bool { return !r.Unasked }) {
		return rules
	}
	known := map[string]bool{}
	for i := range rules {
		known[rules[i].Pointer.Source] = true
	}
	var fields []OutputRule
	leaves := 0
	var walk func(v strictjson.Value, at []string, named bool)
	walk = func(v strictjson.Value, at []string, named bool) {
		at = at[:len(at):len(at)]
		for name, m := range v.Members() {
			walk(m, append(at, name), named && fieldName().MatchString(name))
		}
		for _, e := range v.Elements() {
			walk(e, append(at, wildcard), named)
		}
		if v.Len() > 0 {
			return
		}
		leaves++
		if source := strictjson.Pointer(at); named && leaves <= mostLeaves && len(at) > 0 && !known[source] {
			known[source] = true
			fields = append(fields, OutputRule{InText: true, Extract: ExtractJSON, Pointer: Pattern{at, source}, Label: writ.External, Unasked: true})
		}
	}
	if walk(doc, nil, true); leaves > mostLeaves {
		return rules
	}
	slices.SortStableFunc(fields, func(a, b OutputRule) int { return len(a.Pointer.Tokens) - len(b.Pointer.Tokens) })
	return slices.Concat(rules, fields[:min(len(fields), mostNamed)])
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
