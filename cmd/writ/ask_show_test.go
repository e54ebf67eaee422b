package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestTheirs (H07, H09): letters that show nothing and wide gaps are spelt out,
// and a server's lines are each behind a bar.
func TestTheirs(t *testing.T) {
	for text, want := range map[string]string{
		"a" + strings.Repeat(" ", 80) + "run r_a": `x: a␠×80␠run r_a`,
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
