package cli

import (
	"strings"
	"testing"
)

// TestDiff: what is new and what is gone, with three lines around it, each by its number in the text
// that it is of; a text may hold what looks like a diff.
func TestDiff(t *testing.T) {
	text := func(lines ...string) []byte { return []byte(strings.Join(lines, "\n")) }
	for _, c := range []struct {
		was, is []byte
		want    string
	}{
		{text("a", "b"), text("a", "b", ""), ""},
		{text("a", "b", "c", "d", "e", "f", "g"), text("a", "b", "c", "d", "E", "f", "g"), "…\n  b\n  c\n  d\n- e\n+ E\n  f\n  g\n"},
		{text("a"), text("@@ -9,9 +9,9 @@", "--- b", "a"), "+ @@ -9,9 +9,9 @@\n+ --- b\n  a\n"},
		{text("1", "a", "b", "c", "d", "e", "f", "g", "2"), text("a", "b", "c", "d", "e", "f", "g", "2", "3"), "- 1\n  a\n  b\n  c\n…\n  f\n  g\n  2\n+ 3\n"},
		{nil, text("a\u202e"), "- \n+ a\\u202e\n"},
	} {
		var b strings.Builder
		lines := Diff(c.was, c.is)
		if PrintDiff(&b, "", lines); b.String() != c.want {
			t.Errorf("%q and %q: %q, want %q", c.was, c.is, b.String(), c.want)
		}
		texts := map[bool][]string{false: strings.Split(string(c.was), "\n"), true: strings.Split(string(c.is), "\n")}
		for _, l := range lines {
			if got := texts[l.Sign != "-"][l.N-1]; got != l.Text {
				t.Errorf("line %d of %q is %q, and not %q", l.N, c.is, got, l.Text)
			}
		}
	}
}
