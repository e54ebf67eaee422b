package text

import (
	"fmt"
	"strings"
	"unicode"
)

// Printable returns s with every control, invisible and direction-changing
// character escaped, line feeds and tabs kept: safe to show to a person whoever
// chose the text (attacks T05, K07).
func Printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == unicode.ReplacementChar || Hidden(r, Unprinted): // what a terminal obeys or shows nothing of
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// OneLine is Printable without line feeds and tabs, cut at limit characters.
func OneLine(s string, limit int) string {
	s = strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Printable(s))
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

// Name is OneLine of what somebody called a thing, between quotation marks where it could
// read as more than that.
func Name(s string, limit int) string {
	if s = OneLine(s, limit); plainName().MatchString(s) {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
}

var plainName = Pattern(`^[A-Za-z0-9_./*~$@:#+-]*…?$`)

var gaps = Pattern(` {9,}`)

// Gaps is a text whose long runs of spaces are told by their length: they leave no room
// on a screen that something else could seem to stand in.
func Gaps(s string) string {
	return gaps().ReplaceAllStringFunc(s, func(run string) string { return fmt.Sprintf("␠×%d␠", len(run)) })
}

// Rows breaks a label of ours and a printable text that is not ours to rows of a
// terminal, each behind the first with a bar: whatever somebody wrote, no row of it looks
// like a line of ours. A row ends between words, but within one that is longer than a
// row. Of a character that is not ASCII it is not known how wide it is shown; two columns
// are the most. It breaks nothing where so few columns are given that there is no terminal.
func Rows(label, text string, columns int) string {
	const bar = "  | "
	if columns < 2*len(bar) {
		return label + text
	}
	var out strings.Builder
	out.WriteString(label)
	at := len(label) % columns
	for word := range strings.SplitAfterSeq(text, " ") {
		if n := wide(strings.TrimSuffix(word, " ")); at+n > columns && len(bar)+n <= columns {
			out.WriteString("\n" + bar)
			at = len(bar)
		}
		for _, r := range word {
			n := wide(string(r))
			if at+n > columns {
				out.WriteString("\n" + bar)
				at = len(bar)
			}
			out.WriteRune(r)
			at += n
		}
	}
	return out.String()
}

// wide is how many columns a text takes at most.
func wide(s string) (n int) {
	for _, r := range s {
		if n++; r >= 0x80 {
			n++
		}
	}
	return n
}
