package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/cli"
)

const replHelp = `tools              list the tools and say which are open
ask TEXT           answer one request
call TOOL JSON     call one tool yourself, through the same door
help               this text
quit               end; so do Ctrl-D and a second Ctrl-C on an empty line
`

// repl reads commands until the input ends. What one request could not do does
// not end it; the exit code of the last is that of a script's last command.
func (a *asking) repl(root context.Context) error {
	lines := a.lines()
	defer lines.leave()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	read, done := besideSignals(lines, signals)
	defer done()
	asked := false // whether to end, by the prompt before
	var last error
	for {
		line, err := read()
		interrupted := errors.Is(err, errInterrupt)
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch {
		case errors.Is(err, errSignalled):
			return cli.Ended(cli.ExitIO)
		case interrupted && !asked:
			asked = true
			fmt.Fprintln(a.errs, "once more ends writ ask")
			continue
		case errors.Is(err, io.EOF), interrupted:
			return last
		case errors.Is(err, errLong):
			last = a.told(cli.Fail(cli.ExitUsage, "", "the line is longer than a terminal's line can be, and is not taken in part; pipe it in"))
			continue
		case err != nil && !errors.Is(err, errCleared):
			return cli.Fail(cli.ExitIO, "", "the input cannot be read: %w", err)
		}
		asked = false
		switch {
		case err != nil || word == "":
			continue
		case word == "quit" || word == "exit":
			return last
		}
		ended, over, err := a.interruptible(root, signals, lines.keyed(), func(ctx context.Context) error { return a.command(ctx, word, rest) })
		if last = a.told(err); over {
			if last == nil {
				last = cli.Ended(cli.ExitIO) // it came when the command was done
			}
			return last
		}
		if ended {
			lines.drop()
		}
	}
}

// errSignalled says that the program is to end.
var errSignalled = errors.New("signalled")

// besideSignals reads lines one at a time. A line is waited for beside the signals: a terminal that
// is read keeps Ctrl-C as a key, a pipe does not, and SIGTERM comes any time.
func besideSignals(lines lineReader, signals <-chan os.Signal) (read func() (string, error), done func()) {
	type input struct {
		line string
		err  error
	}
	wanted, typed := make(chan struct{}), make(chan input, 1)
	go func() {
		for range wanted {
			line, err := lines.next()
			typed <- input{line, err}
		}
	}()
	return func() (string, error) {
		wanted <- struct{}{}
		for {
			select {
			case in := <-typed:
				return in.line, in.err
			case s := <-signals:
				// Where Ctrl-C is a key, this one was for a request that is over.
				if s != os.Interrupt || !lines.keyed() {
					return "", errSignalled
				}
			}
		}
	}, func() { close(wanted) }
}

// told prints why a command did not succeed, and returns its exit code alone.
func (a *asking) told(err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*cli.Exit](err)
	if !ok {
		e = &cli.Exit{Code: cli.ExitIO, Err: err}
	}
	e.Tell(a.errs, "writ")
	return cli.Ended(e.Code)
}

// interruptible runs f; the first interrupt ends f, a second, or the signal to
// terminate, the program (over). Where no person types, the first ends both.
func (a *asking) interruptible(root context.Context, signals <-chan os.Signal, keyed bool, f func(context.Context) error) (ended, over bool, err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(root))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	for {
		select {
		case err := <-done:
			return ended, over, err
		case s := <-signals:
			if ended {
				return true, true, cli.Ended(cli.ExitIO)
			}
			ended = true
			cancel()
			if over = s != os.Interrupt || !keyed; !over {
				fmt.Fprintln(a.errs, "ending the request; once more ends writ ask")
			}
		}
	}
}

func (a *asking) command(ctx context.Context, word, rest string) error {
	switch word {
	case "help":
		fmt.Fprint(a.out, replHelp)
		return nil
	case "ask":
		return a.ask(ctx, rest)
	case "tools", "call":
		if _, err := a.host.Door(ctx); err != nil {
			return err
		}
		if word == "tools" {
			return a.listTools(ctx)
		}
		return a.callTool(ctx, rest)
	}
	return cli.Fail(cli.ExitUsage, "help", "there is no such command; a request begins with ask")
}

func (a *asking) listTools(ctx context.Context) error {
	lines, err := a.here.tools(ctx)
	for _, l := range lines {
		if l.State == "refused" {
			l.State = "closed"
		}
		fmt.Fprintf(a.out, "%-8s  %-32s  %s  %s\n", l.State, l.Tool, strings.Join(l.Effect, ","), l.Reason)
	}
	return err
}

// callTool is the user's own call: no planner speaks, the door judges all the
// same.
func (a *asking) callTool(ctx context.Context, rest string) error {
	tool, args, _ := strings.Cut(rest, " ")
	if tool == "" {
		return cli.Fail(cli.ExitUsage, "call TOOL {\"key\":\"value\"}", "name a tool")
	}
	var given []string
	if args = strings.TrimSpace(args); args != "" {
		given = []string{args}
		if args == "-" {
			return cli.Fail(cli.ExitUsage, "call TOOL {\"key\":\"value\"}", "the arguments stand on the line here")
		}
	}
	arguments, err := readArguments(given, nil)
	if err != nil {
		return err
	}
	if server, name, ok := strings.Cut(tool, "/"); ok { // as tools lists it
		cat, _ := a.here.g.Catalogue()
		if t := cat.Lookup(server, name); t != nil {
			tool = t.Public
		}
	}
	result, rerr, err := a.here.call(ctx, "tools/call", tool, ask.CallParams(tool, arguments))
	if err != nil {
		return err
	}
	return printResult(a.out, result, rerr, a.json, a.ran)
}

// toolNames are the tools to complete, once the gateway is there.
func (a *asking) toolNames() (out []string) {
	if a.here == nil {
		return nil
	}
	cat, _ := a.here.g.Catalogue()
	for _, t := range cat.Listed(false) {
		out = append(out, t.Public+" ")
	}
	return out
}
