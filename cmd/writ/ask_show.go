package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/text"
)

// shownLength bounds, in characters, what is shown of one text; --json has all.
const shownLength = 2000

// theirs prints words that are not ours on one line, behind a label of ours,
// at most limit characters of them unless that is 0, in rows as text.Rows does.
func theirs(w io.Writer, label, words string, limit int) {
	if limit == 0 {
		limit = math.MaxInt
	}
	columns, _ := terminalSize(w)
	fmt.Fprintln(w, text.Rows(label, text.Gaps(cli.OneLine(words, limit)), columns))
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

// authors say whose words a text is.
var authors = map[string]string{
	ask.ByModel: "the model", ask.ByRules: "a rule", ask.ByPlan: "the plan", ask.ByServer: "the server", ask.ByPolicy: "the input policy",
}

// printItem shows a statement: its quote first, in its sentence, then what who
// says of it, and what of that the quote does not say.
func printItem(w io.Writer, who string, i ask.Item) {
	const indent = "    "
	theirs(w, "- quote checked: ", i.Quote, shownLength)
	if i.Within != "" {
		theirs(w, indent+"where it stands: ", i.Within, shownLength)
	}
	theirs(w, fmt.Sprintf("%sbytes %d-%d of %s ", indent, i.From, i.To, i.Evidence), i.Pointer, 200)
	theirs(w, indent+who+" says: ", strings.Join(strings.Fields(i.Text), " "), shownLength)
	for _, m := range []struct {
		label string
		words []string
	}{{"not in the quote: ", i.NotInQuote}, {"left out of what it quotes: ", i.LeftOut}} {
		if len(m.words) > 0 {
			theirs(w, indent+coloured(w, "33", m.label), `"`+strings.Join(m.words, `", "`)+`"`, shownLength)
		}
	}
}

func coloured(w io.Writer, code, words string) string {
	if !cli.Colour(w) {
		return words
	}
	return "\x1b[" + code + "m" + words + "\x1b[0m"
}
