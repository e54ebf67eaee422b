// Package cli is what the programs of this repository do alike on a command
// line: exit codes, errors that say what to try, and printing that a terminal
// can be trusted with whoever chose the text. It decides nothing.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/writ-project/writ/internal/text"
)

// Exit codes, after sysexits.h; 1 is an error a server itself reported, 69 a log
// without a fault of which not all could be checked, 76 a call that was sent and of which
// it is not known whether it happened.
const (
	ExitOK       = 0
	ExitServer   = 1
	ExitUsage    = 64
	ExitData     = 65
	ExitUnproven = 69
	ExitDisk     = 71 // the log's disk failed while it was written: start again once it is sound
	ExitIO       = 74
	ExitUnknown  = 76 // unlike after the others, what was asked for may have been done
	ExitRefused  = 77
	ExitConfig   = 78
)

// Exit is an error with its exit code and the next command to try, "" for none.
type Exit struct {
	Code int
	Err  error
	Hint string
}

func (e *Exit) Error() string { return e.Err.Error() }

// Unwrap returns the error without its code.
func (e *Exit) Unwrap() error { return e.Err }

// Fail returns an [Exit] whose error is formatted as fmt.Errorf does.
func Fail(code int, hint, format string, args ...any) error {
	return &Exit{code, fmt.Errorf(format, args...), hint}
}

// Ended returns the exit of a program that has said why it ends.
func Ended(code int) error { return &Exit{Code: code, Err: errors.New("")} }

// Tell says what went wrong, escaped, and below it what to try; nothing of what
// was said before.
func (e *Exit) Tell(w io.Writer, program string) {
	if e.Err.Error() != "" {
		fmt.Fprintf(w, "%s: %s\n", program, Printable(e.Err.Error()))
	}
	if e.Hint != "" {
		fmt.Fprintf(w, "  try: %s\n", e.Hint)
	}
}

// NoArgs refuses arguments, as a command's Args.
func NoArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case nearest(c, args[0]) != "":
		return Unknown(c, args[0])
	}
	return Fail(ExitUsage, c.CommandPath()+" --help", "%s takes no arguments", c.Name())
}

// Unknown refuses a word that is no command below c. What to try is the nearest that is one.
func Unknown(c *cobra.Command, word string) error {
	return Fail(ExitUsage, c.CommandPath()+" "+cmp.Or(nearest(c, word), "--help"), "%s has no command %q", c.CommandPath(), OneLine(word, 40))
}

// nearest is the command below c that a word is most like, "" for none.
func nearest(c *cobra.Command, word string) string {
	for c.SuggestionsMinimumDistance = 1; c.SuggestionsMinimumDistance <= 2; c.SuggestionsMinimumDistance++ {
		if near := c.SuggestionsFor(word); len(near) > 0 {
			return near[0]
		}
	}
	return ""
}

// helpCommand shows the help of a command, and refuses what is none.
func helpCommand() *cobra.Command {
	return &cobra.Command{Use: "help [command]", Short: "Help about any command", RunE: func(c *cobra.Command, args []string) error {
		of, rest, err := c.Root().Find(args)
		if err != nil || of.HasAvailableSubCommands() && len(rest) > 0 {
			return Unknown(of, rest[0])
		}
		of.InitDefaultHelpFlag()
		return of.Help()
	}}
}

// Run runs a program and returns its exit code. What went wrong is told on its
// standard error, escaped, and below it what to try. hint, unless nil, completes
// that for the command that ran.
func Run(ctx context.Context, root *cobra.Command, hint func(ran *cobra.Command, hint string) string) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return Fail(ExitUsage, c.CommandPath()+" --help", "%w", err)
	})
	root.SetHelpCommand(helpCommand())
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	if of, ok := strings.CutPrefix(err.Error(), "unknown command "); ok {
		quoted, _ := strconv.QuotedPrefix(of)
		word, _ := strconv.Unquote(quoted)
		err = Unknown(ran, word)
	}
	e, ok := errors.AsType[*Exit](err)
	if !ok {
		e = &Exit{ExitUsage, err, root.Name() + " --help"}
	}
	if e.Hint != "" && hint != nil {
		e.Hint = hint(ran, e.Hint)
	}
	e.Tell(root.ErrOrStderr(), root.Name())
	return e.Code
}

// What text makes of a text that others wrote, for a terminal.
var (
	Printable = text.Printable
	OneLine   = text.OneLine
)

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

// When prints a part of a line that is not always there.
func When(w io.Writer, ok bool, format string, args ...any) {
	if ok {
		fmt.Fprintf(w, format, args...)
	}
}
