package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"sync"

	"golang.org/x/term"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
)

// terminal is where the person who runs a command is asked what its call waits for.
type terminal struct {
	in  *os.File
	out io.Writer
	mu  sync.Mutex // one question at a time
}

// ownTerminal returns the command's own terminal, nil where nobody types at one and
// sees what is shown: no pipe, file or program is ever asked.
func ownTerminal(in io.Reader, out io.Writer) *terminal {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || !cli.Terminal(out) || !canWait {
		return nil
	}
	return &terminal{in: f, out: out}
}

// ask shows a question and reads the answer, and after a yes what is kept of it from
// now on, as long as the context lasts.
func (t *terminal) ask(ctx context.Context, q *approval.Shown) (yes bool, keep approval.Keep, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in := newLines(ctx, t.in, t.out)
	if yes, err = in.answer(t.out, q); err == nil && yes {
		if keep, err = readKeep(in, t.out, q); err != nil && ctx.Err() == nil {
			keep, err = "", nil // the yes stands
		}
	}
	if ctx.Err() != nil {
		fmt.Fprintln(t.out)
		return false, "", ctx.Err()
	}
	return yes, keep, err
}

// lines are what answers are read from.
type lines struct {
	*bufio.Reader
	typing *typing // nil where nobody types
}

// newLines reads from in, with out where what it answers is shown.
func newLines(ctx context.Context, in io.Reader, out io.Writer) *lines {
	if t := ownTerminal(in, out); t != nil {
		typing := &typing{ctx: ctx, f: t.in}
		return &lines{bufio.NewReader(typing), typing}
	}
	return &lines{bufio.NewReader(in), nil}
}

// drop forgets what was typed.
func (l *lines) drop() {
	if l.typing != nil {
		l.typing.drop()
		l.Reset(l.typing)
	}
}

// answer shows a question and reads the answer to it: what was typed before it stood
// there answers nothing.
func (l *lines) answer(out io.Writer, q *approval.Shown) (yes bool, err error) {
	l.drop()
	columns, _ := terminalSize(out)
	q.Print(out, columns)
	return readAnswer(l.Reader, out, q)
}

// askHere is the surface of a gateway in this process: who runs it made the call.
func (o *files) askHere(ctx context.Context, q approval.Question) {
	shown := q.Show()
	yes, keep, err := o.terminal.ask(ctx, &shown)
	own := approval.Answer{Yes: yes, By: account(), Label: writ.User}
	if err == nil {
		_, err = o.queue.Answer(q.ID, own)
	}
	if err == nil && keep != "" {
		var grown approval.Offer
		if grown, err = o.queue.Grow(q.ID, keep, own); err == nil {
			kept(o.terminal.out, grown.Lines)
		}
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(o.terminal.out, "%s\n", cli.OneLine(err.Error(), 300))
	}
}

// account is what the person is called whose account this is.
func account() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "the account's own person"
}
