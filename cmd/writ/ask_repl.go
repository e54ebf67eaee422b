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
	"github.com/writ-project/writ/internal/strictjson"
)

const replHelp = `tools              list the tools and say which are open
ask TEXT           answer one request
call TOOL JSON     call one tool yourself, through the same door
help               this text
quit               end; so do Ctrl-D and a second Ctrl-C on an empty line
`

// maxLine bounds a line that is typed or piped in.
const maxLine = 1 << 20

// repl reads commands until the input ends. What one request could not do does
// not end it; the exit code of the last is that of a script's last command.
func (a *asking) repl(root context.Context) error {
	lines := a.lines()
	defer lines.leave()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	// A line is waited for beside the signals: a terminal that is read keeps
	// Ctrl-C as a key, a pipe does not, and SIGTERM comes any time.
	type input struct {
		line string
		err  error
	}
	wanted, typed := make(chan struct{}), make(chan input, 1)
	defer close(wanted)
	go func() {
		for range wanted {
			line, err := lines.next()
			typed <- input{line, err}
		}
	}()
	asked := false // whether to end, by the prompt before
	var last error
	for {
		wanted <- struct{}{}
		var in input
		for waiting := true; waiting; {
			select {
			case in = <-typed:
				waiting = false
			case s := <-signals:
				// Where Ctrl-C is a key, this one was for a request that is over.
				if s != os.Interrupt || !lines.keyed() {
					return &exit{code: exitIO, err: errors.New("")}
				}
			}
		}
		switch {
		case errors.Is(in.err, errCleared):
			asked = false
			continue
		case errors.Is(in.err, errInterrupt) && !asked:
			asked = true
			fmt.Fprintln(a.errs, "once more ends writ ask")
			continue
		case errors.Is(in.err, io.EOF), errors.Is(in.err, errInterrupt):
			return last
		case errors.Is(in.err, errLong):
			last = a.told(fail(exitUsage, "", "the line is longer than a terminal's line can be, and is not taken in part; pipe it in"))
			continue
		case in.err != nil:
			return fail(exitIO, "", "the input cannot be read: %w", in.err)
		}
		asked = false
		word, rest, _ := strings.Cut(strings.TrimSpace(in.line), " ")
		rest = strings.TrimSpace(rest)
		if word == "" {
			continue
		}
		if word == "quit" || word == "exit" {
			return last
		}
		err, ended, over := a.interruptible(root, signals, func(ctx context.Context) error { return a.command(ctx, word, rest) })
		if last = a.told(err); over {
			return last
		}
		if ended {
			lines.drop()
		}
	}
}

// told prints why a command did not succeed, and returns its exit code alone.
func (a *asking) told(err error) error {
	if err == nil {
		return nil
	}
	var e *exit
	if !errors.As(err, &e) {
		e = &exit{code: exitIO, err: err}
	}
	if e.err.Error() != "" {
		fmt.Fprintf(a.errs, "writ: %s\n", printable(e.err.Error()))
	}
	if e.hint != "" {
		fmt.Fprintf(a.errs, "  try: %s\n", e.hint)
	}
	return &exit{code: e.code, err: errors.New("")}
}

// interruptible runs f; the first interrupt ends f, a second, or the signal to
// terminate, the program (over).
func (a *asking) interruptible(root context.Context, signals <-chan os.Signal, f func(context.Context) error) (err error, ended, over bool) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(root))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	for {
		select {
		case err := <-done:
			return err, ended, over
		case s := <-signals:
			if ended {
				return &exit{code: exitIO, err: errors.New("")}, true, true
			}
			ended = true
			cancel()
			if over = s != os.Interrupt; !over {
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
	return fail(exitUsage, "help", "there is no such command; a request begins with ask")
}

func (a *asking) listTools(ctx context.Context) error {
	if err := a.here.g.Settled(ctx); err != nil {
		return fail(exitIO, "writ check", "the gateway did not become ready: %w", err)
	}
	cat, _ := a.here.g.Catalogue()
	for _, t := range cat.Tools() {
		if t.Method != gate.CallTool {
			continue
		}
		state, effect := "closed", ""
		if t.State == gate.Open {
			state = "open"
		}
		if t.Contract != nil {
			effect = strings.Join(t.Contract.Effect.Names(), ",")
		}
		fmt.Fprintf(a.out, "%-8s  %-32s  %s  %s\n", state, printable(t.Server+"/"+t.Name), effect, t.Reason)
	}
	return nil
}

// callTool is the user's own call: no planner speaks, the door judges all the
// same.
func (a *asking) callTool(ctx context.Context, rest string) error {
	tool, args, _ := strings.Cut(rest, " ")
	if tool == "" {
		return fail(exitUsage, "call TOOL {\"key\":\"value\"}", "name a tool")
	}
	var given []string
	if args = strings.TrimSpace(args); args != "" {
		given = []string{args}
		if args == "-" {
			return fail(exitUsage, "call TOOL {\"key\":\"value\"}", "the arguments stand on the line here")
		}
	}
	arguments, err := readArguments(given, nil)
	if err != nil {
		return err
	}
	params := strictjson.Set([]byte("{}"), "name", strictjson.Quote(tool))
	params = strictjson.Set(params, "arguments", arguments)
	result, rerr, err := a.here.call(ctx, "tools/call", tool, params)
	if err != nil {
		return err
	}
	return printResult(a.out, result, rerr, a.opt.json)
}

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
	if in, ok := a.interactive(); ok {
		if was, err := term.GetState(int(in.Fd())); err == nil {
			return newTyped(in, was, a)
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

func newTyped(in *os.File, was *term.State, a *asking) *typed {
	t := &typed{in: in, was: was, keys: &keys{r: in}, a: a}
	t.begin(nil)
	return t
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
