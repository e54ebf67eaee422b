package approval

import (
	"fmt"
	"io"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/text"
)

// Shown is a question as surfaces in other processes get it: docs/approvals.md.
type Shown struct {
	Question
	// Arguments are the exact bytes of the call's arguments, as a text.
	Arguments string       `json:"arguments"`
	Values    []ShownValue `json:"values"`
}

// ShownValue is one value that a person would stand for.
type ShownValue struct {
	Pointer string `json:"pointer"`         // "" for the call as a whole
	Role    string `json:"role,omitempty"`  //
	Value   string `json:"value,omitempty"` // the exact JSON literal, as a text
	Reason  string `json:"reason"`
	Need    string `json:"need"`
	Seen    []Seen `json:"seen,omitempty"`
}

// Seen is one place where it stands. The label says who can have written it there.
type Seen struct {
	Tool    string `json:"tool"` // server/tool, or user
	Pointer string `json:"pointer,omitempty"`
	Label   string `json:"label"`
}

// Show is the question for a surface.
func (q *Question) Show() Shown {
	out := Shown{Question: *q, Arguments: string(q.Arguments)}
	for _, v := range q.Values {
		s := ShownValue{v.Pointer, v.Role, string(v.Raw), string(v.Reason), v.Need, nil}
		for _, at := range v.Seen {
			s.Seen = append(s.Seen, Seen{at.Tool, at.Pointer, at.Label.String()})
		}
		out.Values = append(out.Values, s)
	}
	return out
}

// whoWrote says of a label who can have written what has it.
var whoWrote = map[string]string{
	writ.Operator.String(): "the operator's own",
	writ.User.String():     "what the user typed",
	writ.System.String():   "what the server guarantees",
	writ.Party.String():    "a sender's identity",
	writ.External.String(): "which anyone can write",
	writ.Model.String():    "which the model wrote",
}

// maxWhole bounds the arguments that Print shows.
const maxWhole = 8000

// Whole is what Print shows; ok is false where it has not all of the arguments, and
// nobody may answer by it alone.
func (q *Shown) Whole() (message string, ok bool) {
	var b strings.Builder
	q.Print(&b)
	return b.String(), len(q.Arguments) <= maxWhole && len([]rune(text.OneLine(q.Arguments, maxWhole))) <= maxWhole
}

// Print shows a question to a person: what it would do first, then each value with
// where it was seen. Everything of it is somebody else's, and escaped.
func (q *Shown) Print(w io.Writer) {
	fmt.Fprintf(w, "May the agent do this?   %s · %s   (%s, session %s)\n", text.OneLine(q.Server, 40), text.OneLine(q.Tool, 130), q.ID, text.OneLine(q.Session, 40))
	for _, v := range q.Values {
		at := v.Pointer
		if at == "" {
			at = "the call"
		}
		fmt.Fprintf(w, "  %s  %s\n", text.OneLine(at, 100), text.OneLine(v.Value, 400))
		for _, s := range v.Seen {
			place := s.Tool
			if s.Pointer != "" {
				place += " " + s.Pointer
			}
			fmt.Fprintf(w, "      seen in %s, %s\n", text.OneLine(place, 200), whoWrote[s.Label])
		}
		if len(v.Seen) == 0 && v.Value != "" {
			fmt.Fprintf(w, "      seen nowhere: the model's own\n")
		}
		fmt.Fprintf(w, "      %s\n", text.OneLine(v.Reason, 60))
	}
	fmt.Fprintf(w, "  arguments  %s\n", text.OneLine(q.Arguments, maxWhole))
	fmt.Fprintf(w, "  it waits until %s\n", q.Until.Local().Format(time.TimeOnly))
}
