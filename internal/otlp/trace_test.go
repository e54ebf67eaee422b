package otlp_test

import (
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/otlp"
)

const whole = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

var parents = []struct {
	text string
	ok   bool
}{
	{whole, true},
	{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true},
	{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", true},
	{"", false},
	{"00-00000000000000000000000000000000-b7ad6b7169203331-01", false},
	{"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false},
	{"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false},
	{"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false},
	{strings.ToUpper(whole), false},
	{whole + "-", false},
	{whole + "\n", false},
	{" " + whole, false},
	{whole[:54], false},
	{"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01", false},
	{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333\x00-01", false},
	{"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01", false},
	{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-\u0660", false},
}

func TestParse(t *testing.T) {
	for _, c := range parents {
		at, ok := otlp.Parse(c.text)
		if ok != c.ok || ok != at.Remote || !ok && at != (otlp.Context{}) {
			t.Errorf("%q: %v %v", c.text, at, ok)
		}
	}
}

var form = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// FuzzParse: what is accepted is of the W3C's form and comes out as it stood there; all
// else is none.
func FuzzParse(f *testing.F) {
	for _, c := range parents {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := otlp.Parse(s)
		well := form.MatchString(s) && strings.Trim(s[3:35], "0") != "" && strings.Trim(s[36:52], "0") != ""
		if ok != well {
			t.Fatalf("%q is accepted: %v", s, ok)
		}
		if ok && (hex.EncodeToString(at.Trace[:]) != s[3:35] || hex.EncodeToString(at.Span[:]) != s[36:52]) {
			t.Fatalf("%q came out as %v", s, at)
		}
	})
}

func TestIdentifiers(t *testing.T) {
	seen := map[otlp.SpanID]bool{}
	for range 1000 {
		at := otlp.NewTrace()
		below := at.Child()
		if at.Trace == (otlp.TraceID{}) || at.Span != (otlp.SpanID{}) || below.Trace != at.Trace || below.Span == (otlp.SpanID{}) || below.Remote || seen[below.Span] {
			t.Fatal(at, below)
		}
		seen[below.Span] = true
	}
}
