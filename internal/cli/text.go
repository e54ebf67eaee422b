package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/writ-project/writ/internal/text"
)

// Printable is text.Printable.
func Printable(s string) string { return text.Printable(s) }

// OneLine is text.OneLine.
func OneLine(s string, limit int) string { return text.OneLine(s, limit) }

// Terminal reports whether what is written there is read by a person at once.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colour reports whether it is a terminal whose user has not declined colours.
func Colour(w io.Writer) bool {
	return Terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
