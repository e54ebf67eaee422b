package ask

import (
	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
)

// AnswerVersion is the version of the form of Answer. Fields are added to it,
// never removed, and keep their meaning.
const AnswerVersion = 1

// Status says how a request ended. The zero Status is none of them.
type Status string

// The ends of a request.
const (
	Answered      Status = "answered"        // the call was made; its result is in the answer
	NeedsMoreInfo Status = "needs_more_info" // the planner asks the user; nothing was called
	Stopped       Status = "stopped"         // a gate stopped it: Stage and Rejection say which and why
	ServerError   Status = "server_error"    // the server reported an error of its own
	Failed        Status = "failed"          // something broke that is no gate's decision
)

// Answer is what `writ ask --json` prints; docs/formats.md describes it.
type Answer struct {
	Version int    `json:"v"`
	Run     string `json:"run"`
	Session string `json:"session,omitempty"`
	Status  Status `json:"status"`
	// Stage is the last gate the request reached.
	Stage     claim.Stage     `json:"stage"`
	Rejection *writ.Rejection `json:"rejection,omitempty"`
	// Message is for the user: the planner's question, the input policy's
	// reply, or the server's error text. A question is one line. MessageBy says
	// whose words it is: one of the constants below.
	Message   string `json:"message,omitempty"`
	MessageBy string `json:"message_by,omitempty"`
	// Failure says what broke, of a request that failed.
	Failure string `json:"failure,omitempty"`

	Tool      string       `json:"tool,omitempty"`
	Arguments writ.RawJSON `json:"arguments,omitempty"`
	Decision  string       `json:"decision,omitempty"`
	Evidence  string       `json:"evidence,omitempty"`
	// Admissible says that the result may vouch for later acts of the session.
	Admissible bool `json:"admissible,omitempty"`
	// Shadow is why the door would have refused the call, did it not shadow.
	Shadow *writ.Rejection `json:"shadow,omitempty"`
	// Result is what the server returned, as it was recorded.
	Result writ.RawJSON `json:"result,omitempty"`
	// Typed is the structured part of Result that satisfied its schema. Where
	// there is none, Note and Untyped say so, and there is no summary.
	Typed   writ.RawJSON    `json:"typed,omitempty"`
	Note    string          `json:"note,omitempty"`
	Untyped *writ.Rejection `json:"untyped,omitempty"`

	Summary *Summary `json:"summary,omitempty"`
	// Truncated says that the text a summary was made of ends before the result.
	Truncated bool `json:"truncated,omitempty"`
	// Unreachable are the servers that could not be asked.
	Unreachable []string `json:"unreachable,omitempty"`
}

// Whose words something is. Of the first three the planner and the summariser
// are made.
const (
	ByModel  = "model"
	ByRules  = "rules" // the operator's
	ByPlan   = "plan"  // what was handed over with --plan
	ByPolicy = "input_policy"
	ByServer = "server"
)

// author says whose words a planner or a summariser gives.
func author(x any) string {
	switch x.(type) {
	case *Rules:
		return ByRules
	case Manual:
		return ByPlan
	}
	return ByModel
}

// Summary is an evidence-locked summary.
type Summary struct {
	// By is whose words the texts of the items are: ByModel or ByRules.
	By string `json:"by"`
	// Record is the id of its record, which `writ audit verify` checks again.
	Record          string `json:"record"`
	Bullets         []Item `json:"bullets"`
	Risks           []Item `json:"risks"`
	Recommendations []Item `json:"recommendations"`
}

// Item is one statement. Text is the author's own; Quote stands verbatim in the
// source text, and bytes From to To of the recorded result are what it stands
// for. Within, NotInQuote and LeftOut are those of claim.Item.
type Item struct {
	Text       string   `json:"text"`
	Quote      string   `json:"quote"`
	Evidence   string   `json:"evidence"`
	From       int      `json:"from"`
	To         int      `json:"to"`
	Pointer    string   `json:"pointer"`
	Within     string   `json:"within,omitempty"`
	NotInQuote []string `json:"not_in_quote,omitempty"`
	LeftOut    []string `json:"left_out,omitempty"`
}

// NewItem returns a grounded item in this form; evidence names its record.
func NewItem(x claim.Item, evidence string) Item {
	return Item{Text: x.Text, Quote: x.Evidence, Evidence: evidence,
		From: x.Quote.From, To: x.Quote.To, Pointer: x.Quote.Pointer,
		Within: x.Within, NotInQuote: x.NotInQuote, LeftOut: x.LeftOut}
}

func newSummary(by string, s claim.Summary, evidence writ.EvidenceID, record string) *Summary {
	items := func(in []claim.Item) []Item {
		out := make([]Item, len(in))
		for i, x := range in {
			out[i] = NewItem(x, evidence.String())
		}
		return out
	}
	return &Summary{By: by, Record: record, Bullets: items(s.Bullets), Risks: items(s.Risks), Recommendations: items(s.Recommendations)}
}
