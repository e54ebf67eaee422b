package main

import (
	"fmt"
	"strings"
	"unicode"
)

// printable returns s with every control, invisible and direction-changing
// character escaped, line feeds and tabs kept: safe to show in a terminal
// whoever chose the text (attacks T05, K07).
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case hidden(r):
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

// hidden reports what a terminal obeys or shows nothing of, letters that are
// blank too.
func hidden(r rune) bool {
	return r == unicode.ReplacementChar || r == '\u2800' || !unicode.IsPrint(r) ||
		unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// oneLine is printable without line feeds and tabs, cut at limit characters.
func oneLine(s string, limit int) string {
	s = strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(printable(s))
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
