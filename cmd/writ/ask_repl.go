package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
)

const replHelp = `tools              list the tools and say which are open
ask TEXT           answer one request
call TOOL JSON     call one tool yourself, through the same door
help               this text
quit               end; so do Ctrl-D and a second Ctrl-C
`

// maxLine bounds a line that is typed or piped in.
const maxLine = 1 << 20

// repl reads commands until the input ends. What one request could not do does
// not end it; the exit code of the last is that of a script's last command.
func (a *asking) repl(root context.Context) error {
	lines := a.lines()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	interrupted := false // by the prompt before
	var last error
	for {
		line, err := lines.next()
		switch {
		case errors.Is(err, errInterrupt) && !interrupted:
			interrupted = true
			fmt.Fprintln(a.errs, "once more ends writ ask")
			continue
		case errors.Is(err, io.EOF), errors.Is(err, errInterrupt):
			return last
		case err != nil:
			return fail(exitIO, "", "the input cannot be read: %w", err)
		}
		interrupted = false
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		if word == "" {
			continue
		}
		if word == "quit" || word == "exit" {
			return last
		}
		var over bool
		last, over = a.interruptible(root, signals, func(ctx context.Context) error { return a.command(ctx, word, rest) })
		if e := (*exit)(nil); errors.As(last, &e) {
			if e.err.Error() != "" {
				fmt.Fprintf(a.errs, "writ: %s\n", printable(e.err.Error()))
			}
			if e.hint != "" {
				fmt.Fprintf(a.errs, "  try: %s\n", e.hint)
			}
			last = &exit{code: e.code, err: errors.New("")}
		}
		if over {
			return last
		}
	}
}

// interruptible runs f; the first interrupt ends f, a second, or the signal to
// terminate, the program.
func (a *asking) interruptible(root context.Context, signals <-chan os.Signal, f func(context.Context) error) (err error, over bool) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(root))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	for n := 0; ; {
		select {
		case err := <-done:
			return err, over
		case s := <-signals:
			if n++; n > 1 {
				return &exit{code: exitIO, err: errors.New("")}, true
			}
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
	if err := a.here.g.Ready(ctx); err != nil {
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
type lineReader interface{ next() (string, error) }

var errInterrupt = errors.New("interrupted")

func (a *asking) lines() lineReader {
	if in, ok := a.interactive(); ok {
		return newTyped(in, a)
	}
	return &piped{r: bufio.NewReaderSize(a.in, 64<<10)}
}

// piped reads lines that no person types.
type piped struct{ r *bufio.Reader }

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
	keys *keys
	term *term.Terminal
}

func newTyped(in *os.File, a *asking) *typed {
	k := &keys{r: in}
	t := &typed{in: in, keys: k}
	t.term = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{k, a.out}, "writ> ")
	t.term.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' || pos != len(line) {
			return "", 0, false
		}
		full, ok := complete(line, a.toolNames())
		return full, len(full), ok
	}
	return t
}

func (t *typed) next() (string, error) {
	fd := int(t.in.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer term.Restore(fd, old)
	if w, h, err := term.GetSize(fd); err == nil && w > 0 {
		_ = t.term.SetSize(w, h)
	}
	line, err := t.term.ReadLine()
	if err == io.EOF && t.keys.interrupted {
		t.keys.interrupted = false
		fmt.Fprint(t.term, "\n")
		return "", errInterrupt
	}
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil // pasted text is text
	}
	return line, err
}

// keys tells Ctrl-C from the end of the input, which package term does not.
type keys struct {
	r           io.Reader
	interrupted bool
}

func (k *keys) Read(b []byte) (int, error) {
	n, err := k.r.Read(b)
	for _, c := range b[:n] {
		if c == 3 {
			k.interrupted = true
		}
	}
	return n, err
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
