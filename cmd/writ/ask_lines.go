package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/writ-project/writ/internal/cli"
)

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
