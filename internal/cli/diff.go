package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// DiffLine is a line of a text that was, of the one that is, or of both.
type DiffLine struct {
	Sign string // "+" is new, "-" is gone, "" is in both
	N    int    // in the text that it is of, from 1
	Text string
	Gap  bool // lines before it are left out
}

// Diff are the lines that differ, with three around them. There are none where the texts are the
// same, but for how they end.
func Diff(was, is []byte) (out []DiffLine) {
	end := func(b []byte) []byte { return append(bytes.TrimRight(b, "\n"), '\n') }
	before, after, gap := 0, 0, false
	for i, line := range strings.Split(string(diff.Diff("was", end(bytes.Clone(was)), "is", end(bytes.Clone(is)))), "\n") {
		switch {
		case i < 3 || line == "": // its head, and its end
		case line[0] == '@':
			var n int
			fmt.Sscanf(line, "@@ -%d,%d +%d", &before, &n, &after)
			gap = max(before, after) > 1
		default:
			l := DiffLine{strings.TrimSpace(line[:1]), after, line[1:], gap}
			if gap = false; l.Sign == "-" {
				l.N = before
			}
			if l.Sign != "+" {
				before++
			}
			if l.Sign != "-" {
				after++
			}
			out = append(out, l)
		}
	}
	return out
}

// Changed is how many lines of a diff are new, and how many are gone.
func Changed(lines []DiffLine) (more, less int) {
	for i := range lines {
		switch lines[i].Sign {
		case "+":
			more++
		case "-":
			less++
		}
	}
	return more, less
}

// PrintDiff prints lines that differ, each behind a prefix.
func PrintDiff(w io.Writer, prefix string, lines []DiffLine) {
	for _, l := range lines {
		if l.Gap {
			fmt.Fprintf(w, "%s…\n", prefix)
		}
		fmt.Fprintf(w, "%s%-1s %s\n", prefix, l.Sign, Printable(l.Text))
	}
}
