package provenance_test

import (
	"os"
	"strings"
	"testing"

	"github.com/writ-project/writ/provenance"
)

// TestCalls reads testdata/elements.txt: how a turn calls what stands on a page.
func TestCalls(t *testing.T) {
	data, err := os.ReadFile("testdata/elements.txt")
	if err != nil {
		t.Fatal(err)
	}
	by := provenance.Clicks{
		Names:  []string{"<log in>", "<subscribe>", "<book>", "<add> …", "<submit> (<it>|<form>)?.", "search", "save (<it>|changes)?.", "download", "reply."},
		Orders: []string{"<click>", "<tick>", "<go to>"}, Nouns: []string{"button", "link", "box", "checkbox", "tab", "page"},
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), " | ", 4)
		if len(f) != 4 || line[0] == '#' {
			continue
		}
		n++
		f[2] = strings.NewReplacer(`\u200b`, "\u200b", `\u202e`, "\u202e", `\u043e`, "\u043e").Replace(f[2])
		at := provenance.Calls(f[3], provenance.Element{Role: f[1], Name: f[2], Plain: true}, by)
		got := "-"
		if at.Orders {
			got = "+"
		} else if at.End > at.Start {
			got = "/"
		}
		if got != f[0] {
			t.Errorf("%s %q in %q: %s, %q", f[1], f[2], f[3], got, f[3][at.Start:at.End])
		}
	}
	if n < 60 {
		t.Errorf("%d lines", n)
	}
}
