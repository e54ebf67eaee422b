package claim_test

import (
	"fmt"

	"github.com/writ-project/writ/internal/ask/claim"
)

func ExampleGround() {
	record := []byte(`{"content":[], "structuredContent": {"id": "INC-1042", "status": "open", "paid": false}}`)
	source, _ := claim.NewSource(record, "/structuredContent", claim.SourceLimit)
	fmt.Println(source.Text())

	summary, stop := claim.Ground(source, []byte(`{"type":"summary",
		"bullets":[{"text":"The ticket is still open.","evidence":"\"status\":\"open\""}],
		"risks":[], "recommendations":[]}`))
	q := summary.Bullets[0].Quote
	fmt.Println(stop == nil, q.Pointer, string(record[q.From:q.To]))

	_, stop = claim.Ground(source, []byte(`{"type":"summary",
		"bullets":[{"text":"It is paid.","evidence":"\"paid\":true"}],
		"risks":[], "recommendations":[]}`))
	fmt.Println(stop)
	// Output:
	// {"id":"INC-1042","status":"open","paid":false}
	// true /structuredContent/status "status": "open"
	// grounding: MISSING_PROVENANCE ground.unquoted at "/bullets/0/evidence": a verbatim quote of the source text, every character as it stands there
}

func ExampleParsePlan() {
	plan, stop := claim.ParsePlan([]byte(`{"type":"call_tool","server":"example","tool":"get_ticket","args":{"id":"INC-1042"}}`))
	fmt.Println(stop == nil, plan.Server, plan.Tool, string(plan.Args))

	_, stop = claim.ParsePlan([]byte("Sure! ```json\n{}\n```"))
	fmt.Println(stop)
	// Output:
	// true example get_ticket {"id":"INC-1042"}
	// plan_parse: INVALID_PAYLOAD plan.syntax: exactly one JSON object in UTF-8, each key once, and nothing before or after it but JSON white space
}
