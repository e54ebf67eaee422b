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

// TestElementsWork: what stands within what is only costs what is new there, and what a page has a thousand times is
// read once.
func TestElementsWork(t *testing.T) {
	var page strings.Builder
	page.WriteString("### Page\n- Page URL: https://a.example/\n### Snapshot\n```yaml\n")
	const deep, lines = 100, 1000
	for i := range deep {
		page.WriteString(strings.Repeat("  ", i) + "- tab \"" + strings.Repeat("ab ", 250) + "\" [ref=e1]:\n")
	}
	page.WriteString(strings.Repeat(strings.Repeat("  ", deep)+"- text: ab\n", lines) + "```")
	if n := testing.AllocsPerRun(1, func() { provenance.Elements(page.String()) }); n > 20*(deep+lines) {
		t.Errorf("%g allocations", n)
	}
	l := provenance.NewLedger([32]byte{1}, provenance.Caps{})
	p, err := l.PrepareTurn(provenance.Turn{Evidence: 1, Text: "book a table at the window on a.example"})
	if err != nil || l.CommitTurn(p) != nil {
		t.Fatal(err)
	}
	all := []provenance.Element{{Role: "button", Name: "Book", Ref: "e1", Plain: true}}
	by := provenance.Clicks{Names: []string{"<book>"}, Orders: []string{"<click>"}}
	few := testing.AllocsPerRun(1, func() { l.Calls(append(all, provenance.Element{Role: "link", Name: "window"}), all[0], by) })
	many := all
	for range 1000 {
		many = append(many, provenance.Element{Role: "link", Name: "Window"})
	}
	if n := testing.AllocsPerRun(1, func() { l.Calls(many, all[0], by) }); n > few+3000 {
		t.Errorf("%g allocations, %g for two", n, few)
	}
}
