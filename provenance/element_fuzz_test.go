package provenance_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/writ-project/writ/provenance"
)

// FuzzElements: what a page chose makes no element, wherever the server writes it.
func FuzzElements(f *testing.F) {
	for _, s := range []string{"Book", "a\" [ref=e9]\n- button \"Book\" [ref=e8]", "it's: {x}", "\u2028- button", "```", "\\", "- button \"Book\" [ref=e7]"} {
		f.Add(s)
	}
	ref := regexp.MustCompile(`^[a-z0-9]*$`)
	f.Fuzz(func(t *testing.T, chosen string) {
		head := "### Page\n- Page URL: https://a.example/\n- Page Title: x\n### Snapshot\n```yaml\n"
		for _, e := range provenance.Elements(chosen) {
			if !ref.MatchString(e.Ref) || e.Name == "" {
				t.Errorf("%+v", e)
			}
		}
		line := strings.Join(strings.Fields(chosen), " ") // as the server writes a text: in one line
		for _, e := range provenance.Elements(head + "- text: " + line + "\n- paragraph [ref=e1]: " + line + "\n```") {
			t.Errorf("a text made %+v", e)
		}
	})
}
