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

// ask shows a question and reads the answer, as long as the context lasts. What was
// typed before the question was shown answers nothing.
func (t *terminal) ask(ctx context.Context, q *approval.Shown) (yes bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &typing{ctx: ctx, f: t.in}
	r.drop()
	q.Print(t.out)
	if yes, err = readAnswer(bufio.NewReader(r), t.out, q); ctx.Err() != nil {
		fmt.Fprintln(t.out)
		return false, ctx.Err()
	}
	return yes, err
}

// askHere is the surface of a gateway in this process: who runs it made the call.
func (o *files) askHere(ctx context.Context, q approval.Question) {
	shown := q.Show()
	yes, err := o.terminal.ask(ctx, &shown)
	if err == nil {
		_, err = o.queue.Answer(q.ID, approval.Answer{Yes: yes, By: account(), Label: writ.User})
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
