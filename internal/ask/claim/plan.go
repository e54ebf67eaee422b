package claim

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
)

// PlanType is the value of a plan's key type.
type PlanType string

// The two types of a plan. The zero PlanType is neither.
const (
	CallTool    PlanType = "call_tool"
	FinalAnswer PlanType = "final_answer"
)

// The bounds of a plan.
const (
	PlanBytes   = 1 << 20
	planDepth   = 64
	planValues  = 10_000
	planNumber  = 64
	nameBytes   = 256 // of server and tool each
	answerBytes = 64 << 10
)

// Plan is what a planner proposed and ParsePlan accepted. The zero Plan is no
// plan: Allowlist.Check refuses it.
type Plan struct {
	Type PlanType
	// Of a call_tool.
	Server, Tool string
	// Args is the JSON object exactly as the planner wrote it. The same bytes
	// are judged, recorded and sent.
	Args writ.RawJSON
	// Answer, of a final_answer, asks the user for what is missing.
	Answer string
}

// JSON returns the plan as ParsePlan reads it, without white space but that
// within Args. It returns nil for what is no plan.
func (p Plan) JSON() []byte {
	switch p.Type {
	case CallTool:
		out := append([]byte(`{"type":"call_tool","server":`), strictjson.Quote(p.Server)...)
		out = append(append(out, `,"tool":`...), strictjson.Quote(p.Tool)...)
		return append(append(append(out, `,"args":`...), p.Args...), '}')
	case FinalAnswer:
		return append(append([]byte(`{"type":"final_answer","needs_more_info":true,"answer":`), strictjson.Quote(p.Answer)...), '}')
	}
	return nil
}

// planNeeds says, for each reason, what a planner must write instead.
var planNeeds = map[writ.Reason]string{
	writ.PlanSyntax:     "exactly one JSON object in UTF-8, each key once, and nothing before or after it but JSON white space",
	writ.PlanNotObject:  "a JSON object",
	writ.PlanTooLarge:   "a plan of at most 1 MiB and 10000 values",
	writ.PlanTooDeep:    "a plan nested at most 64 deep",
	writ.PlanNumber:     "numbers of at most 64 characters with an exponent within 400",
	writ.PlanType:       "the key type with the value call_tool or final_answer",
	writ.PlanUnknownKey: "only the keys type, server, tool and args for call_tool, or type, needs_more_info and answer for final_answer",
	writ.PlanMissingKey: "the keys type, server, tool and args for call_tool, or type, needs_more_info and answer for final_answer",
	writ.PlanFinal:      "needs_more_info with the value true: a final_answer may only ask for more",
}

// planFaults are the reasons of what is JSON beyond the bounds of a plan.
var planFaults = map[strictjson.Fault]writ.Reason{strictjson.Size: writ.PlanTooLarge, strictjson.Deep: writ.PlanTooDeep, strictjson.Numeric: writ.PlanNumber}

func noPlan(r writ.Reason, pointer string) *Stop {
	return because(StagePlanParse, r, pointer, planNeeds[r])
}

// ParsePlan reads a planner's answer (INV-1). What it accepts is one JSON
// object with exactly the keys of its type; anything else stops at plan_parse.
// It repairs nothing and reads no fence. The bytes are not kept.
func ParsePlan(b []byte) (Plan, *Stop) {
	err := strictjson.Check(b, strictjson.Limits{Bytes: PlanBytes, Depth: planDepth, Leaves: planValues, Number: planNumber})
	if err != nil {
		r := writ.PlanSyntax
		var e *strictjson.Error
		if errors.As(err, &e) {
			r = cmp.Or(planFaults[e.Fault], r)
		}
		return Plan{}, noPlan(r, "")
	}
	members, ok := strictjson.Members(b)
	if !ok {
		return Plan{}, noPlan(writ.PlanNotObject, "")
	}
	typ, _ := strictjson.Text(strictjson.Get(b, "type"))
	var keys []string
	switch PlanType(typ) {
	case CallTool:
		keys = []string{"type", "server", "tool", "args"}
	case FinalAnswer:
		keys = []string{"type", "needs_more_info", "answer"}
	default:
		return Plan{}, noPlan(writ.PlanType, "/type")
	}
	got := make(map[string][]byte, len(keys))
	for _, m := range members {
		if !slices.Contains(keys, m.Name) {
			// The pointer would repeat the planner's word: the plan as a whole fails.
			return Plan{}, noPlan(writ.PlanUnknownKey, "")
		}
		got[m.Name] = m.Value
	}
	for _, k := range keys {
		if got[k] == nil {
			return Plan{}, noPlan(writ.PlanMissingKey, "/"+k)
		}
	}
	p := Plan{Type: PlanType(typ)}
	if p.Type == FinalAnswer {
		if string(got["needs_more_info"]) != "true" {
			return Plan{}, noPlan(writ.PlanFinal, "/needs_more_info")
		}
		p.Answer, _ = strictjson.Text(got["answer"])
	} else {
		p.Server, _ = strictjson.Text(got["server"])
		p.Tool, _ = strictjson.Text(got["tool"])
		p.Args = slices.Clone(got["args"])
	}
	if stop := p.values(StagePlanParse); stop != nil {
		return Plan{}, stop
	}
	return p, nil
}

// values judges the values of a plan whose type is known.
func (p Plan) values(stage Stage) *Stop {
	switch {
	case p.Type == FinalAnswer && !visible(p.Answer):
		return because(stage, writ.PlanValue, "/answer", "a question to the user, not empty")
	case p.Type == FinalAnswer && len(p.Answer) > answerBytes:
		return because(stage, writ.PlanTooLarge, "/answer", "an answer of at most 64 KiB")
	case p.Type == FinalAnswer:
		return nil
	case !visible(p.Server):
		return because(stage, writ.PlanValue, "/server", "the name of a server, not empty")
	case len(p.Server) > nameBytes:
		return because(stage, writ.PlanTooLarge, "/server", "a name of at most 256 bytes")
	case !visible(p.Tool):
		return because(stage, writ.PlanValue, "/tool", "the name of a tool, not empty")
	case len(p.Tool) > nameBytes:
		return because(stage, writ.PlanTooLarge, "/tool", "a name of at most 256 bytes")
	case strictjson.KindOf(p.Args) != strictjson.Object:
		return because(stage, writ.PlanValue, "/args", "a JSON object")
	}
	return nil
}

// visible reports whether s says anything: a letter, a digit or another mark
// that is printed.
func visible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.IsMark(r) && !text.Hidden(r, text.Unclear)
	})
}
