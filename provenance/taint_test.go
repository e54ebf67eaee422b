package provenance

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/strictjson"
)

func TestUnescaped(t *testing.T) {
	for in, want := range map[string]string{
		"plain 100% \\d":                     "plain 100% \\d",
		"a%2fb":                              "a/b",
		"a%252fb":                            "a/b",
		`a\/b \"c\" \\d`:                     `a/b "c" \d`,
		`\u0061\u002f`:                       "a/",
		"a&#47;b&amp;c&#x2f;":                "a/b&c/",
		"%e2%82%ac":                          "€",
		"%ff%":                               "\ufffd%",
		"%2" + strings.Repeat("52", 9) + "f": "",
	} {
		if got := unescaped(in); want != "" && got != want || !utf8.ValidString(got) {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

// What comes back plain is found where it was sent escaped, and the other way
// round; what was found before is found still.
func TestEscapedReadings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a-z/:%2f&#;\\u0-]{1,12}`).Draw(t, "text")
		v := strictjson.StringOf(s)
		texts := readings(Untyped, v)
		if len(texts) == 0 || texts[0] != fold(s) {
			t.Fatalf("%q is not read as it is: %q", s, texts)
		}
		for _, x := range texts {
			if !utf8.ValidString(x) {
				t.Fatalf("%q is read as %q", s, x)
			}
		}
		var b strings.Builder
		for _, c := range []byte(s) {
			b.WriteString("%" + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
		}
		v = strictjson.StringOf(b.String())
		found := false
		again := readings(Untyped, v)
		for _, x := range again {
			for _, y := range texts {
				found = found || x == y
			}
		}
		if !found {
			t.Fatalf("%q and %q have no reading in common: %q %q", s, b.String(), texts, again)
		}
	})
}
