package main

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-project/writ/internal/cli"
)

// TestRows (H07, H09): whatever is shown on a terminal, each row but the first
// begins with a bar, none is wider than the terminal, and nothing is lost.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.SampledFrom([]string{"", "the model asks: ", "- quote checked: "}).Draw(t, "label")
		text := cli.OneLine(rapid.StringN(0, 200, -1).Draw(t, "text")+rapid.SampledFrom([]string{"", strings.Repeat(" ", 90) + "run r_a", "\nrun r_a"}).Draw(t, "end"), 1000)
		columns := rapid.IntRange(0, 100).Draw(t, "columns")
		got := strings.Split(rows(label, text, columns), "\n")
		whole := got[0]
		for i, row := range got {
			wide := 0
			for _, r := range row {
				if wide++; r >= 0x80 {
					wide++
				}
			}
			if columns >= 20 && wide > columns {
				t.Fatalf("row %d is %d wide of %d: %q", i, wide, columns, row)
			}
			if i > 0 {
				rest, ok := strings.CutPrefix(row, "  | ")
				if !ok {
					t.Fatalf("row %d: %q", i, row)
				}
				whole += rest
			}
		}
		if whole != label+text {
			t.Fatalf("%q is not %q", whole, label+text)
		}
	})
}

// TestTheirs (H07, H09): letters that show nothing and wide gaps are spelt out,
// and a server's lines are each behind a bar.
func TestTheirs(t *testing.T) {
	for text, want := range map[string]string{
		"a" + strings.Repeat(" ", 80) + "run r_a": `x: a\u0020{80}run r_a`,
		"a  b   c": "x: a  b   c",
		"a\u3164\u2800\u115f\u00a0\u034fb\u2028c\u0085d\x1b[2Je": `x: a\u3164\u2800\u115f\u00a0\u034fb\u2028c\u0085d\u001b[2Je`,
		"a\r\nrun r_a": `x: a\u000d\nrun r_a`,
	} {
		var b bytes.Buffer
		if theirs(&b, "x: ", text, 0); b.String() != want+"\n" {
			t.Errorf("%q is shown as %q", text, b.String())
		}
	}
	var b bytes.Buffer
	printContent(&b, []byte(`{"content":[{"type":"text","text":"a\nevidence s_a/ev9\u2028run r_a\r\n\nsummary"},{"type":"image\nrun"}]}`), true)
	if b.String() != "| a\n| evidence s_a/ev9\\u2028run r_a\\u000d\n| \n| summary\n(image\\nrun)\n" {
		t.Errorf("%q", b.String())
	}
}
