package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
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
	if f, ok := typist(in); ok && cli.Terminal(out) && canWait {
		return &terminal{in: f, out: out}
	}
	return nil
}

// ask shows a question and reads the answer, as long as the context lasts.
func (t *terminal) ask(ctx context.Context, q *approval.Shown) (a approval.Answer, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, err = newLines(ctx, t.in, t.out).answer(t.out, q)
	if ctx.Err() != nil {
		fmt.Fprintln(t.out)
		return approval.Answer{}, ctx.Err()
	}
	return a, err
}

// lines are what answers are read from.
type lines struct {
	*bufio.Reader
	typing *typing // nil where nobody types
	gone   bool    // the question before went away while it was answered
}

// Somebody may be typing his answer to a question as another one takes its place: what comes
// within tooEarly of that is not taken for an answer to what he has not read.
const tooEarly = time.Second

// linesClock is what that is measured by.
var linesClock = time.Now

// early returns what says whether what was typed now is not to be taken, of a question that
// stands from now on.
func (l *lines) early() func() bool {
	after, shown := l.gone, linesClock()
	l.gone = false
	return func() bool { return after && linesClock().Sub(shown) < tooEarly }
}

// newLines reads from in, with out where what it answers is shown.
func newLines(ctx context.Context, in io.Reader, out io.Writer) *lines {
	if t := ownTerminal(in, out); t != nil {
		typing := &typing{ctx: ctx, f: t.in}
		return &lines{Reader: bufio.NewReader(typing), typing: typing}
	}
	return &lines{Reader: bufio.NewReader(in)}
}

func (l *lines) drop() {
	if l.typing != nil {
		l.typing.drop()
		l.Reset(l.typing)
	}
}

// until has what is typed read as long as a context lasts.
func (l *lines) until(ctx context.Context) {
	if l.typing != nil {
		l.typing.ctx = ctx
	}
}

// answer shows a question and reads the answer to it: what was typed before it stood
// there answers nothing.
func (l *lines) answer(out io.Writer, q *approval.Shown) (a approval.Answer, err error) {
	l.drop()
	columns, _ := terminalSize(out)
	q.Print(out, columns)
	return readAnswer(l, out, q)
}

// apartFromClients reports whether this process descends from none of the clients that share a
// session in a state directory: the agent of one can have opened its terminal.
func apartFromClients(state string) bool {
	clients := otherClients(state, 0)
	return len(clients) == 0 || localdoor.Aside(clients...) == nil
}

// askHere is the surface of a gateway in this process: who runs it made the call.
func (o *files) askHere(ctx context.Context, q approval.Question) {
	shown := q.Show()
	tellMore(ctx, o.state, &shown)
	a, err := o.terminal.ask(ctx, &shown)
	if err == nil {
		a.By, a.Label = account(), writ.User
		var lines []policy.Grown
		if lines, err = o.queue.Answer(q.ID, a); err == nil {
			kept(o.terminal.out, lines)
		}
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(o.terminal.out, "%s\n", cli.OneLine(err.Error(), 300))
	}
}

// tellMore adds to a question what the log of the state directory tells of its values: what the
// console's card says. Of a log that cannot be read it says nothing.
func tellMore(ctx context.Context, state string, q *approval.Shown) {
	if _, st, err := toExplain(ctx, state); err == nil {
		defer st.Close()
		story.NewSearch(ctx, st).Question(ctx, q)
	}
}

// account is what the person is called whose account this is.
func account() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "the account's own person"
}

// theirs prints words that are not ours on one line, behind a label of ours,
// at most limit characters of them unless that is 0, in rows as text.Rows does.
func theirs(w io.Writer, label, words string, limit int) {
	if limit == 0 {
		limit = math.MaxInt
	}
	columns, _ := terminalSize(w)
	fmt.Fprintln(w, text.Rows(label, text.Gaps(cli.OneLine(words, limit)), columns))
}

// sentence prints a sentence of ours, broken between words to rows of the terminal.
func sentence(w io.Writer, words string) {
	columns, _ := terminalSize(w)
	fmt.Fprintln(w, brokenTo(words, columns))
}

func brokenTo(words string, columns int) string {
	if columns <= 0 {
		return words
	}
	var b strings.Builder
	at := 0
	for i, word := range strings.Split(words, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > columns:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// terminalSize is how wide and how high the terminal is that w is, 0 if it is none.
func terminalSize(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil {
			return columns, rows
		}
	}
	return 0, 0
}

func coloured(w io.Writer, code, words string) string {
	if !cli.Colour(w) {
		return words
	}
	return "\x1b[" + code + "m" + words + "\x1b[0m"
}
