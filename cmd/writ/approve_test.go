package main

import (
	"bufio"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/approval"
)

// TestReadAnswer: yes and no are words; what was not shown whole is looked at first.
func TestReadAnswer(t *testing.T) {
	long := `{"to":"kim@corp.example","body":"` + strings.Repeat("lunch ", 2000) + `","cc":"eve@evil.example"}`
	for _, c := range []struct {
		arguments, typed string
		yes, fails       bool
		shows            string
	}{
		{`{"to":"x"}`, "y\n", true, false, ""},
		{`{"to":"x"}`, "YES\n", true, false, ""},
		{`{"to":"x"}`, "n\n", false, false, ""},
		{`{"to":"x"}`, "\nmaybe\ny\n", true, false, ""},
		{`{"to":"x"}`, "", false, true, ""},
		{`{"to":"x"}`, "1\n2\n3\n4\n5\ny\n", false, true, ""},
		{`{ "to": "a\u001b[2J" }`, "b\ny\n", true, false, `{ "to": "a\u001b[2J" }`},
		{long, "y\n", false, true, "look at them first"},
		{long, "y\nb\ny\n", true, false, "eve@evil.example"},
		{long, "n\n", false, false, ""},
	} {
		var out strings.Builder
		yes, err := readAnswer(bufio.NewReader(strings.NewReader(c.typed)), &out, &approval.Shown{Arguments: c.arguments})
		if yes != c.yes || (err != nil) != c.fails || !strings.Contains(out.String(), c.shows) {
			t.Errorf("%q: %v %v\n%.300s", c.typed, yes, err, out.String())
		}
	}
}
