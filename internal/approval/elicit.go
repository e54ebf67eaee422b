package approval

import (
	"github.com/writ-project/writ/internal/strictjson"
)

// Elicitation is the question as the parameters of MCP's elicitation/create; ok is
// false where it is too long to be shown whole.
func (q *Question) Elicitation() (params []byte, ok bool) {
	shown := q.Show()
	message, ok := shown.Whole(0, 0)
	return strictjson.Set([]byte(`{"requestedSchema":`+elicited+`}`), "message", strictjson.Quote(message)), ok
}

// elicited has no default: who only dismisses the form has said nothing.
const elicited = `{"type":"object","properties":{"answer":{"type":"string","title":"May the agent do this, this once?","enum":["no","yes"]}},"required":["answer"]}`

// Elicited reads what a client answered to Elicitation. said is false where that is
// neither a yes nor a no: a dialogue that was closed, or anything else.
func Elicited(answer strictjson.Value) (yes, said bool) {
	action, _ := answer.Get("action").Text()
	content := answer.Get("content")
	switch action {
	case "decline":
		return false, true
	case "accept":
		word, _ := content.Get("answer").Text()
		said = content.Len() == 1 && (word == "yes" || word == "no")
		return said && word == "yes", said
	}
	return false, false
}
