package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"github.com/writ-project/writ/internal/text"
)

// Printable returns s with every control, invisible and direction-changing
// character escaped, line feeds and tabs kept: safe to show in a terminal
// whoever chose the text (attacks T05, K07).
func Printable(s string) string {
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

// hidden reports what a terminal obeys or shows nothing of.
func hidden(r rune) bool {
	return r == unicode.ReplacementChar || text.Hidden(r, text.Unprinted)
}

// OneLine is Printable without line feeds and tabs, cut at limit characters.
func OneLine(s string, limit int) string {
	s = strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Printable(s))
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

// Terminal reports whether what is written there is read by a person at once.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colour reports whether it is a terminal whose user has not declined colours.
func Colour(w io.Writer) bool {
	return Terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
