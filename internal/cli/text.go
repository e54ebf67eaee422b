package cli

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/writ-project/writ/internal/text"
)

// Printable is text.Printable.
func Printable(s string) string { return text.Printable(s) }

// OneLine is text.OneLine.
func OneLine(s string, limit int) string { return text.OneLine(s, limit) }

// Number is a number with the word for one or for several: "1 call is", "2 calls are".
func Number[T int | int64](n T, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", more)
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
