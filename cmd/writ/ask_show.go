package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/cli"
)

// shownLength bounds, in characters, what is shown of one text; --json has all.
const shownLength = 2000

var gaps = regexp.MustCompile(` {9,}`)

// theirs prints words that are not ours on one line, behind a label of ours,
// at most limit characters of them unless that is 0. Where a terminal would go
// on in its next row, that row begins with a bar: whatever somebody wrote, no
// row of it looks like a line of ours.
func theirs(w io.Writer, label, text string, limit int) {
	if limit == 0 {
		limit = math.MaxInt
	}
	text = gaps.ReplaceAllStringFunc(cli.OneLine(text, limit), func(s string) string { return fmt.Sprintf(`\u0020{%d}`, len(s)) })
	fmt.Fprintln(w, rows(label, text, columns(w)))
}

// columns is how wide the terminal is that w is, 0 if it is none.
func columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return n
		}
	}
	return 0
}

// rows breaks a label and a printable text to rows of a terminal, each behind
// the first with a bar. Of a character that is not ASCII it is not known how
// wide it is shown; two columns are the most.
func rows(label, text string, columns int) string {
	const bar = "  | "
	if columns < 2*len(bar) {
		return label + text
	}
	var out strings.Builder
	out.WriteString(label)
	at := len(label) % columns
	for _, r := range text {
		n := 2
		if r < 0x80 {
			n = 1
		}
		if at+n > columns {
			out.WriteString("\n" + bar)
			at = len(bar)
		}
		out.WriteRune(r)
		at += n
	}
	return out.String()
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

func coloured(w io.Writer, code, text string) string {
	if !cli.Colour(w) {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
