package certificate

import (
	"slices"
	"testing"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// FuzzFields: the fields of a text that nobody declared are those of the ledger, found otherwise.
func FuzzFields(f *testing.F) {
	for _, text := range []string{`{"all":[{"id":"a","of":{"name":1}},{"id":null}]}`, `[[1],{"b":2}]`, `{"a/b":{"c":1},"*":1,"d~e":2,"":3,"é":4}`, `{"1":{"x":1},"a":{}}`, `[]`, `{}`, `"x"`, ` {"a":1}`, `{"a":1,"a":2}`,
		`{"p":{"q":{"r":1}},"s":1,"pay C-1":{"t":1}}`, `[{"a":[]},{"a":{"b":1}}]`} {
		f.Add(text)
	}
	kept := []provenance.OutputRule{{InText: true, Extract: provenance.ExtractJSON, Unasked: true, Pointer: provenance.Pattern{Tokens: []string{"all", "*", "id"}, Source: "/all/*/id"}}}
	f.Fuzz(func(t *testing.T, text string) {
		for _, rules := range [][]provenance.OutputRule{nil, kept, {{Extract: provenance.NoExtract}}} {
			for _, rest := range []string{"", `,"structuredContent":{}`} {
				result, err := strictjson.Parse([]byte(`{"content":[{"type":"text","text":`+string(strictjson.Quote(text))+`}]`+rest+`}`), strictjson.Result)
				if err != nil {
					return
				}
				sources := func(os []provenance.OutputRule) (out []string) {
					for _, o := range os {
						out = append(out, o.Pointer.Source)
					}
					return out
				}
				if a, b := sources(withFields(rules, result)), sources(provenance.WithFields(rules, result)); !slices.Equal(a, b) {
					t.Errorf("%q: %q, and of the ledger %q", text, a, b)
				}
			}
		}
	})
}
