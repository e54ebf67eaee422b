package approval

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

// choices are the words by which a client keeps something from now on. Who chooses one
// says with it what only a person knows of the lines (WhoCan), which stand in the message.
var choices = map[Keep]string{
	KeepServer: "from now on, and the server itself gives what stands there",
	KeepSource: "from now on, what this source returns",
	KeepOurs:   "from now on, and strangers cannot write there",
	KeepClosed: "from now on, and strangers cannot add to it",
	KeepValue:  "from now on, this exact value alone",
}

// thisCall are the words by which KeepValue is chosen where it is a whole call.
const thisCall = "from now on, this very call, whatever its free texts say where the line has none"

// Choice is what keeping it means, in words.
func (o *Offer) Choice() string {
	if o.Keep == KeepValue && slices.ContainsFunc(o.Lines, func(g policy.Grown) bool { return g.Call != nil }) {
		return thisCall
	}
	return choices[o.Keep]
}

// form is what a client shows: the message, and the words that may be chosen, with what
// each keeps. ok is false where the question is too long to be shown whole. What may be
// kept from now on is a choice where its lines can be shown whole as well.
func (q *Question) form() (message string, words []string, keeps map[string]Keep, ok bool) {
	shown := q.Show()
	message, ok = shown.Whole(0, 0)
	words, keeps = []string{"no", "yes"}, map[string]Keep{}
	for _, o := range q.FromNowOn {
		if more, fits := o.Explained(); fits && strings.Count(message+more, "\n") < height {
			message += more
			words = append(words, o.Choice())
			keeps[o.Choice()] = o.Keep
		}
	}
	return message, words, keeps, ok
}

// Elicitation is the question as the parameters of MCP's elicitation/create; ok is
// false where it is too long to be shown whole.
func (q *Question) Elicitation() (params []byte, ok bool) {
	message, words, _, ok := q.form()
	title := "May the agent do this, this once?"
	if len(words) > 2 {
		title = "May the agent do this? yes is this once"
	}
	members := make([][]byte, len(words))
	for i, w := range words {
		members[i] = strictjson.Quote(w)
	}
	// It has no default: who only dismisses the form has said nothing.
	return strictjson.Set(fmt.Appendf(nil, `{"requestedSchema":{"type":"object","properties":{"answer":{"type":"string","title":%s,"enum":[%s]}},"required":["answer"]}}`,
		strictjson.Quote(title), bytes.Join(members, []byte(","))), "message", strictjson.Quote(message)), ok
}

// Explained says what a choice keeps, and of what only the person knows; fits is false
// where a line of it is too long to be shown.
func (o *Offer) Explained() (rows string, fits bool) {
	var b strings.Builder
	row := func(label, theirs string) { fmt.Fprintln(&b, text.Rows(label, text.Gaps(theirs), width)) }
	fmt.Fprintf(&b, "  \"%s\" keeps\n", o.Choice())
	for _, g := range o.Lines {
		line := text.OneLine(Line(g), maxLine)
		row("      ", line)
		if fits = len([]rune(line)) <= maxLine; !fits {
			return "", false
		}
	}
	for _, can := range WhoCan(o.Lines) {
		if field, writes := strings.CutPrefix(can, canWrite); writes && o.Keep == KeepServer {
			row("      and says that nobody but the server can write ", field)
			can = canHave + field
		}
		row("      and says that only our own people can ", can)
	}
	return b.String(), fits
}

// Line is a line of a grown policy as its file has it, but for who said so and when.
func Line(g policy.Grown) string {
	_, line, _ := strings.Cut(string(policy.GrownText([]policy.Grown{g})), "\n")
	return strings.TrimSpace(line)
}

// maxLine bounds a line that a choice shows.
const maxLine = 800

// Elicited reads what a client answered to Elicitation. said is false where that is none
// of the choices that were shown: a dialogue that was closed, what was left out of the
// form, or anything else.
func (q *Question) Elicited(answer strictjson.Value) (a Answer, said bool) {
	action, _ := answer.Get("action").Text()
	content := answer.Get("content")
	switch action {
	case "decline":
		return a, true
	case "accept":
		word, _ := content.Get("answer").Text()
		_, _, keeps, _ := q.form()
		keep, kept := keeps[word]
		a = Answer{Yes: kept || word == "yes", Keep: keep}
		return a, content.Len() == 1 && (a.Yes || word == "no")
	}
	return a, false
}
