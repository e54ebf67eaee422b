package approval

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/policy"
)

// Shown is a question as surfaces in other processes get it: docs/approvals.md.
type Shown struct {
	Question
	// Arguments are the exact bytes that a yes lets through, as a text, and Came those
	// of the client's call where they are others; Answers are those of what was answered
	// inside the call, which it lets through with them.
	Arguments string       `json:"arguments"`
	Came      string       `json:"came,omitempty"`
	Answers   string       `json:"answers,omitempty"`
	Values    []ShownValue `json:"values"`
	// Searched says that all that the session saw was searched for what its values tell below.
	Searched bool `json:"-"`
}

// ShownValue is one value that a person would stand for.
type ShownValue struct {
	Pointer string `json:"pointer"`         // "" for the call as a whole
	Role    string `json:"role,omitempty"`  //
	Value   string `json:"value,omitempty"` // the exact JSON literal, as a text
	Reason  string `json:"reason"`
	Need    string `json:"need"`
	Placed  bool   `json:"placed,omitempty"`  // it would count once a person cleared where earlier sessions sent the agent's words
	Follows bool   `json:"follows,omitempty"` // it lacks that for what another value lacks, or the call
	Seen    []Seen `json:"seen,omitempty"`
	// Inside is where it stands though no evidence holds it, and Beside are other fields of the record
	// that it is of: as far as who shows it looked.
	Inside *Inside  `json:"-"`
	Beside []Beside `json:"-"`
}

// Beside is another field of the record in which a value was seen, and who can write that.
type Beside struct{ Name, Value, Who string }

// Inside is a result that has a value though no evidence holds it: in a text, or whole in a result
// that vouches for nothing, and why it does not.
type Inside struct {
	Seen
	Whole bool
	Void  string
}

// Unheld says whose a value is that was seen nowhere, as far as who shows it looked.
func (q *Shown) Unheld(v ShownValue) string {
	switch {
	case v.Inside != nil && v.Inside.Whole:
		return "no evidence holds it"
	case q.Searched:
		return "the model's own words: nothing in this session holds it as a whole"
	}
	return "no evidence holds it as a whole: the model's own words, or part of a text"
}

// Stands begins what is said of the place, and Whose ends it.
func (i *Inside) Stands() string {
	if i.Whole {
		return "it stands in"
	}
	return "it stands inside"
}

// Whose says what it is worth that the value stands there.
func (i *Inside) Whose() string {
	if i.Void != "" {
		return "of a result that vouches for nothing (" + text.OneLine(i.Void, 120) + ")"
	}
	return cmp.Or(i.Who(), "a text that somebody wrote")
}

// Seen is one place where it stands. The label says who can have written it there.
type Seen struct {
	Tool    string `json:"tool"` // server/tool, or user
	Pointer string `json:"pointer,omitempty"`
	// Inner is where in the JSON that the text at Pointer is, "" where that is none.
	Inner string `json:"inner,omitempty"`
	Label string `json:"label"`
	// Evidence is the number of what holds it, in its session, with the line of its text or the
	// bytes of a turn.
	Evidence uint32 `json:"evidence,omitempty"`
	Line     int    `json:"line,omitempty"`
	Start    int    `json:"start,omitempty"`
	End      int    `json:"end,omitempty"`
}

// Show is the question for a surface.
func (q *Question) Show() Shown {
	out := Shown{Question: *q, Arguments: string(q.Arguments), Answers: string(q.Answers)}
	if q.Came != nil && !bytes.Equal(q.Came, q.Arguments) {
		out.Came = string(q.Came)
	}
	for _, v := range q.Values {
		s := ShownValue{v.Pointer, v.Role, string(v.Raw), string(v.Reason), v.Need, v.Placed, v.Follows, nil, nil, nil}
		for _, at := range v.Seen {
			s.Seen = append(s.Seen, SeenAt(at))
		}
		out.Values = append(out.Values, s)
	}
	return out
}

// SeenAt is a place of recorded evidence.
func SeenAt(at gate.Ref) Seen {
	return Seen{at.Tool, at.Pointer, at.Inner, at.Label.String(), at.Evidence, at.Line, at.Start, at.End}
}

// whoWrote says of a label who can have written what has it.
var whoWrote = map[string]string{
	writ.Operator.String(): "the operator's own",
	writ.User.String():     "what the user typed",
	writ.System.String():   "what the server guarantees",
	writ.Party.String():    "a sender's identity",
	writ.External.String(): "which anyone can write",
	writ.Model.String():    "where the agent's own words may have come back",
}

// Text names the place by its evidence.
func (s *Seen) Text() string { return fmt.Sprintf("ev%d %s %s", s.Evidence, s.Tool, s.Pointer) }

// Who says who can have written what stands there.
func (s *Seen) Who() string { return whoWrote[s.Label] }

// Because says why a person is asked about a value.
func (v *ShownValue) Because() string {
	why := cmp.Or(because[writ.Reason(v.Reason)], "of "+text.OneLine(v.Reason, 60))
	if v.Placed {
		why += "; an earlier session sent the agent's own words to where it stands: look at them (writ places list), and once that is cleared (writ places clear N) it counts where it is read again"
	}
	return why
}

// because says to a person what each reason of writ.Askable means for a value, or for
// the call: whoever lets it pass stands for that.
var because = map[writ.Reason]string{
	writ.ProvenanceUnseen:     "nothing that this argument accepts holds this value",
	writ.ProvenanceFull:       "nothing that still counts names this: what tools lately returned found no room in the session's evidence",
	writ.ProvenanceLabel:      "it stands only where somebody other than the tool's issuer can write it",
	writ.ProvenanceSource:     "it stands only where the policy does not take this argument from",
	writ.ProvenanceReflected:  "it stands only where the agent's own words, of this session or an earlier one, may have come back",
	writ.ProvenanceSmall:      "it is so short that it stands in many places by chance",
	writ.ProvenanceOpenTarget: "it is the name of a record that anybody can make: it exists, and may be a stranger's",
	writ.ProvenanceDerived:    "it cannot be put together of a directory and a name that were listed",
	writ.ProvenanceConst:      "the policy does not list it",
	writ.ProvenanceAnchor:     "it names what would be destroyed, and nobody typed that or what only that has",
	writ.ProvenanceOrder:      "it was named, and no order was given that is of it",
	writ.ProvenanceKey:        "the agent chose this name of a field, which the tool does not give",
	writ.ProvenanceAtom:       "this text holds an address, a link, a number or a name that nobody typed and no trusted field has",
	writ.ProvenanceReader:     "this text goes to somebody whom nobody named",
	writ.ProvenanceSecret:     "a secret was read in this session, and this text could carry it",
	writ.ProvenanceRecord:     "it was shown of another record, or in another place, than what stands beside it says",
	writ.ProvenanceSaidBy:     "nobody whom you named in your last words asked for it, or not for it alone",
	writ.FormBrings:           "it is a directory with files in it by which other programs take orders, such as .git, and the call may write to them or take them elsewhere",
	writ.PolicyNoArguments:    "nothing in the call says what it acts on",
	writ.PolicyContested:      "it stands where it may be taken from, and in a stranger's text as well",
	writ.PolicyRepeated:       "the same was done before: look whether that one happened before you say yes",
	writ.PolicyAnswer:         "the server asked for this in the middle of the call, and no tool returned what was answered",
	writ.PolicyFetches:        "it is one more link of one result to one place, and which of them are fetched can tell that place something",
}

// maxWhole bounds the arguments that Print shows, and maxFull the values of which it says
// where they were seen and why they are asked about; width and height are a screen of which
// nothing is known.
const (
	maxWhole = 8000
	maxFull  = 40
	width    = 80
	height   = 100
)

// Whole is what Print shows; ok is false where it has not all of the arguments or more
// rows than the screen, and nobody may answer by it alone.
func (q *Shown) Whole(columns, rows int) (message string, ok bool) {
	var b strings.Builder
	if columns <= 0 {
		columns = width
	}
	q.Print(&b, columns)
	if rows <= 0 {
		rows = height
	}
	fits := func(theirs string) bool {
		return len(theirs) <= maxWhole && len([]rune(text.OneLine(theirs, maxWhole))) <= maxWhole
	}
	return b.String(), fits(q.Arguments) && fits(q.Answers) && strings.Count(b.String(), "\n") < rows
}

// Print shows a question to a person on so many columns, in whole lines where that is 0,
// as in a pipe: the call, then each value that he would stand for, with where it was seen, as what he sees last.
// Everything of it is somebody else's: escaped, and behind a bar wherever it goes on in
// another row, so that nobody draws a question of his own.
func (q *Shown) Print(w io.Writer, columns int) {
	theirs := func(label, words string) { fmt.Fprintln(w, text.Rows(label, text.Gaps(words), columns)) }
	theirs("May the agent do this?   ", fmt.Sprintf("%s · %s   (%s, session %s)", text.OneLine(q.Server, 40), text.OneLine(q.Tool, 130), q.ID, text.OneLine(q.Session, 40)))
	theirs("  arguments  ", text.OneLine(q.Arguments, maxWhole))
	if q.Answers != "" {
		theirs("  answered inside the call  ", text.OneLine(q.Answers, maxWhole))
	}
	for i, v := range q.Values {
		at := text.Name(v.Pointer, 100)
		if at == "" {
			at = "the call as a whole"
		}
		theirs("  ", strings.TrimRight(at+"  "+text.OneLine(v.Value, 400), " "))
		if i < maxFull { // of more what each is, in the arguments too; the rest in the JSON
			q.printSeen(v, theirs)
		}
	}
	left := func(until time.Time) string {
		return fmt.Sprintf("until %s, %d s from now", until.Local().Format(time.TimeOnly), max(0, time.Until(until).Round(time.Second)/time.Second))
	}
	held := "not held; with a yes it passes when it is made again"
	if !q.Held.IsZero() {
		held = "held " + left(q.Held)
	}
	fmt.Fprintf(w, "  the call is %s\n  an answer counts %s\n", held, left(q.Until))
}

// printSeen says of a value where it was seen, and why it is asked about.
func (q *Shown) printSeen(v ShownValue, theirs func(label, words string)) {
	for _, s := range v.Seen {
		place := s.Tool
		if s.Pointer != "" {
			place += " " + text.Name(cmp.Or(s.Inner, s.Pointer), 200)
		}
		if s.Inner != "" {
			place += " in its text"
		}
		theirs("      seen in ", text.OneLine(place, 400)+", "+s.Who())
	}
	if len(v.Seen) == 0 && v.Value != "" {
		theirs("      ", q.Unheld(v))
	}
	if v.Inside != nil {
		theirs("      "+v.Inside.Stands()+" ", text.OneLine(v.Inside.Text(), 400)+", "+v.Inside.Whose())
	}
	for _, b := range v.Beside {
		theirs("      its record has ", text.Name(b.Name, 100)+" "+strconv.Quote(b.Value)+", "+b.Who)
	}
	if v.Follows {
		return // what it follows from says why
	}
	theirs("      asked because ", v.Because())
	if v.Reason == string(writ.PolicyRepeated) {
		theirs("      what was done: ", "writ audit show "+text.OneLine(q.Session, 40)+" lists it; where no answer came of it, writ audit settle takes what you find")
	}
}

// canWrite and canHave begin what only a person knows of a field: who can write what
// stands there, and where that is the server alone, who can have it do so.
const canWrite, canHave = "write ", "have it give one, as by opening a ticket, wherever the agent may look, in "

// WhoCan is what only a person knows of lines that rest on it: who can do it. The names
// in it are others', escaped.
func WhoCan(lines []policy.Grown) (can []string) {
	var members []string
	for _, g := range lines {
		switch field := canWrite + text.Name(g.From, 200); {
		case g.Closed != "":
			members = append(members, text.OneLine(g.Closed, 80))
		case g.Writes != "" && !slices.Contains(can, field):
			can = append(can, field)
		}
	}
	if len(members) > 0 {
		can = append(can, "make a member of "+strings.Join(members, ", ")+" appear")
	}
	return can
}
