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
