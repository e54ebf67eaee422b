// Package cli is what the programs of this repository do alike on a command
// line: exit codes, errors that say what to try, and printing that a terminal
// can be trusted with whoever chose the text. It decides nothing.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
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
	if len(args) > 0 {
		return Fail(ExitUsage, c.CommandPath()+" --help", "%s takes no arguments", c.Name())
	}
	return nil
}

// Run runs a program and returns its exit code. What went wrong is told on its
// standard error, escaped, and below it what to try. hint, unless nil, completes
// that for the command that ran.
func Run(ctx context.Context, root *cobra.Command, hint func(ran *cobra.Command, hint string) string) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return Fail(ExitUsage, c.CommandPath()+" --help", "%w", err)
	})
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	var e *Exit
	if !errors.As(err, &e) {
		e = &Exit{ExitUsage, err, root.Name() + " --help"}
	}
	if e.Hint != "" && hint != nil {
		e.Hint = hint(ran, e.Hint)
	}
	e.Tell(root.ErrOrStderr(), root.Name())
	return e.Code
}
