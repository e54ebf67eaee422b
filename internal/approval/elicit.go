package approval

import (
	"bytes"
	"encoding/json"
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
	KeepPlace:  "from now on, every call of this tool on this site, whatever its pages say",
	KeepValue:  "from now on, this exact value alone",
}

// thisCall are the words by which KeepValue is chosen where it is a whole call.
const thisCall = "from now on, this very call, whatever its free texts say where the line has none"

// Choice is what keeping it means, in words.
func (o *Offer) Choice() string {
	if o.Keep == KeepValue && o.WholeCall() {
		return thisCall
	}
	return choices[o.Keep]
}

// WholeCall reports whether what is kept is a whole call.
func (o *Offer) WholeCall() bool {
	return slices.ContainsFunc(o.Lines, func(g policy.Grown) bool { return g.Call != nil })
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
	for _, says := range o.Says() {
		row("      and says that ", says)
	}
	return b.String(), fits
}

// Says is what who chooses it says by that, and only a person knows.
func (o *Offer) Says() (all []string) {
	for _, can := range WhoCan(o.Lines) {
		if field, writes := strings.CutPrefix(can, canWrite); writes && o.Keep == KeepServer {
			all = append(all, "nobody but the server can "+canWrite+field)
			can = canHave + field
		}
		all = append(all, "only our own people can "+can)
	}
	return all
}

// Line is a line of a grown policy as its file has it, but for who said so and when.
func Line(g policy.Grown) string {
	_, line, _ := strings.Cut(string(policy.GrownText([]policy.Grown{g})), "\n")
	return strings.TrimSpace(line)
}

// Sentences are those of the lines of a text that was made of them (policy.GrownText).
func Sentences(kept []byte) (says []string) {
	for line := range strings.Lines(string(kept)) {
		var g policy.Grown
		if _, line, ok := strings.Cut(line, "- "); ok && json.Unmarshal([]byte(line), &g) == nil {
			says = append(says, Sentence(g))
		}
	}
	return says
}

// Sentence says in words what a line allows. What others wrote in it is escaped.
func Sentence(g policy.Grown) string {
	switch {
	case g.Closed != "":
		return "our own people alone make members of the collection " + text.OneLine(g.Closed, 80)
	case g.On != "" && g.Call == nil:
		return text.OneLine(g.Tool, 200) + " may be called in any way on " + text.OneLine(g.On, 200)
	case g.Call != nil:
		words := ""
		if g.On != "" {
			words = " on " + text.OneLine(g.On, 200)
		}
		if len(g.Texts) > 0 {
			words += " and any words in " + text.OneLine(strings.Join(g.Texts, ", "), 200)
		}
		return text.OneLine(g.Tool, 200) + " may be called with " + text.OneLine(string(g.Call), 200) + words
	case g.Writes != "":
		where := ""
		if g.In == policy.InText {
			where = " in its text"
		}
		who := map[string]string{policy.WritesOurs: "where our own people alone write", policy.WritesServer: "which the server alone gives"}[g.Writes]
		return text.OneLine(g.Tool, 200) + " " + text.Name(g.Arg, 200) + " accepts what " + text.Name(g.From, 200) + " returned" + where + ", " + who
	case g.From != "":
		return text.OneLine(g.Tool, 200) + " " + text.Name(g.Arg, 200) + " accepts what " + text.Name(g.From, 200) + " returned"
	}
	return text.OneLine(g.Tool, 200) + " " + text.Name(g.Arg, 200) + " accepts " + text.OneLine(string(g.Const), 200)
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
