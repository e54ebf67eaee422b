package policy

import (
	"slices"
	"strings"
	"testing"
)

// TestCalled: what belies a contract by which nothing leaves is drafted as what leaves, and
// every kind that is asked for is in the table.
func TestCalled(t *testing.T) {
	for w := range kinds["leaves"] {
		if !Called(w, "send", "transfer") {
			t.Errorf("%s leaves, and is drafted as neither send nor transfer", w)
		}
	}
	for w := range kinds["thing"] {
		if !Called(w, "leaves") {
			t.Errorf("%s is a thing that leaves by no verb", w)
		}
	}
	for _, kind := range strings.Fields("read either look look-last beside write delete send transfer auth egress noun makes says text said title stop program doing access decides " +
		"leaves thing made making settling moved before behind handling later receiving by called") {
		if len(kinds[kind]) == 0 {
			t.Errorf("no word is of the kind %s", kind)
		}
	}
	for line := range strings.Lines(table) {
		_, list, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		had := []string{}
		for _, w := range strings.Fields(list) {
			if slices.Contains(had, w) || strings.ToLower(w) != w {
				t.Errorf("%q stands twice in a line, or in capitals", w)
			}
			had = append(had, w)
		}
	}
}
