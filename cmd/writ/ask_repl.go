package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/writ-project/writ/gate"
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
func (a *asking) toolNames() []string {
	if a.here == nil {
		return nil
	}
	cat, _ := a.here.g.Catalogue()
	return each(cat.Listed(false), func(t *gate.Tool) string { return t.Public + " " })
}

// maxLine bounds a line that is piped in.
const maxLine = 1 << 20

// lineReader yields lines without their end.
type lineReader interface {
	next() (string, error)
	// keyed reports whether Ctrl-C is a key of a line, and no signal.
	keyed() bool
	// drop forgets what was typed ahead.
	drop()
	// leave gives the terminal back as it was, while a line is read too, which
	// is then the last one.
	leave()
}

var (
	errInterrupt = errors.New("interrupted")  // Ctrl-C on an empty line
	errCleared   = errors.New("line cleared") // Ctrl-C on another one
	errLong      = errors.New("line too long")
)

func (a *asking) lines() lineReader {
	if in, ok := typist(a.in); ok && cli.Terminal(a.out) {
		if was, err := term.GetState(int(in.Fd())); err == nil {
			t := &typed{in: in, was: was, keys: &keys{r: in}, a: a}
			t.begin(nil)
			return t
		}
	}
	return &piped{r: bufio.NewReaderSize(a.in, 64<<10)}
}

// piped reads lines that no person types.
type piped struct{ r *bufio.Reader }

func (*piped) keyed() bool { return false }
func (*piped) drop()       {} // a script is not typed ahead
func (*piped) leave()      {}

func (p *piped) next() (string, error) {
	var b strings.Builder
	for {
		part, err := p.r.ReadSlice('\n')
		if b.Write(part); b.Len() > maxLine {
			return "", errors.New("a line is longer than 1 MiB")
		}
		switch {
		case err == nil, err == io.EOF && b.Len() > 0:
			return strings.TrimRight(b.String(), "\r\n"), nil
		case err != bufio.ErrBufferFull:
			return "", err
		}
	}
}

// typed reads lines a person types, with history and completion. The terminal
// is raw only while a line is read, so that Ctrl-C reaches a running request as
// the signal it is.
type typed struct {
	in   *os.File
	was  *term.State
	keys *keys
	a    *asking
	term *term.Terminal

	mu   sync.Mutex // over the state of the terminal
	left bool
}

// begin starts an empty line, with the history so far.
func (t *typed) begin(history term.History) {
	t.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{t.keys, t.a.out}, "writ> ")
	if history != nil {
		t.term.History = history
	}
	t.term.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' || pos != len(line) {
			return "", 0, false
		}
		full, ok := complete(line, t.a.toolNames())
		return full, len(full), ok
	}
}

// editedLine is how many characters package term takes into a line. It drops the
// ones after them without a word, so a line of that many may not be whole.
const editedLine = 4096

func (t *typed) next() (string, error) {
	if err := t.raw(); err != nil {
		return "", err
	}
	defer t.cook()
	if w, h, err := term.GetSize(int(t.in.Fd())); err == nil && w > 0 {
		_ = t.term.SetSize(w, h)
	}
	t.keys.begin()
	line, err := t.term.ReadLine()
	if err == io.EOF {
		if t.keys.interrupted {
			// Package term keeps the line, and the key itself, for the next one.
			t.begin(t.term.History)
			if fmt.Fprint(t.a.out, "^C\r\n"); t.keys.typed {
				return "", errCleared
			}
			return "", errInterrupt
		}
		fmt.Fprint(t.a.out, "\r\n")
	}
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil // pasted text is text
	}
	if err == nil && utf8.RuneCountInString(line) >= editedLine {
		return "", errLong
	}
	return line, err
}

func (t *typed) raw() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left {
		return io.EOF
	}
	_, err := term.MakeRaw(int(t.in.Fd()))
	return err
}

func (t *typed) cook() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = term.Restore(int(t.in.Fd()), t.was)
}

func (*typed) keyed() bool { return true }

func (t *typed) drop() { t.keys.ahead = nil }

func (t *typed) leave() {
	t.mu.Lock()
	t.left = true
	t.mu.Unlock()
	t.cook()
}

// keys hands on what is typed, at most to the end of one line at a time: what
// ended a line is then known, where package term says the same of Ctrl-C and of
// the end of the input.
type keys struct {
	r           io.Reader
	buf         [4096]byte
	ahead       []byte // read and not handed on
	interrupted bool   // by the last key
	typed       bool   // something before it
}

func (k *keys) begin() { k.interrupted, k.typed = false, false }

func (k *keys) Read(b []byte) (int, error) {
	if len(k.ahead) == 0 {
		n, err := k.r.Read(k.buf[:])
		if k.ahead = k.buf[:n]; n == 0 {
			return 0, err
		}
	}
	n := min(len(b), len(k.ahead))
	if i := bytes.IndexAny(k.ahead[:n], "\x03\x04\r\n"); i >= 0 {
		n = i + 1
		k.interrupted = k.ahead[i] == 3
	}
	k.typed = k.typed || n > 1 || n == 1 && !k.interrupted
	copy(b, k.ahead[:n])
	k.ahead = k.ahead[n:]
	return n, nil
}

var replCommands = []string{"ask ", "call ", "help", "quit", "tools"}

// complete extends a line by what all continuations share.
func complete(line string, tools []string) (string, bool) {
	prefix, words, part := "", replCommands, line
	if rest, ok := strings.CutPrefix(line, "call "); ok && !strings.Contains(rest, " ") {
		prefix, words, part = "call ", tools, rest
	}
	var common string
	found := false
	for _, w := range words {
		if !strings.HasPrefix(w, part) {
			continue
		}
		if !found {
			common, found = w, true
			continue
		}
		for !strings.HasPrefix(w, common) {
			common = common[:len(common)-1]
		}
	}
	return prefix + common, found && len(common) > len(part)
}
