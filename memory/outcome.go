package memory

import (
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// Outcome is {status, proposal?, rejection?} of the tool boundary, and what
// became of it. Proposal is set when the outcome is transformed: it is what was
// applied. No text of a model or a source stands in it but that proposal.
type Outcome struct {
	writ.Outcome
	Decision    string    `json:"decision_id"`
	Policy      string    `json:"policy_version"` // the policy's hash
	Mode        Mode      `json:"mode"`
	Effects     []Effect  `json:"effects"`
	Transitions []Changed `json:"transitions"`
	Advisories  []Effect  `json:"advisories"`
	// Rule is, of a rejection, the rule of memory that asks for it: memory.r1
	// to memory.r10, "" where it is a matter of form or of the operator.
	Rule string `json:"rule_id,omitempty"`
}

// Decision is the answer to one proposal or command. Its event is to be written
// before the outcome is told to anybody, and then applied; Value stands beside
// it and is erasable. The zero Decision is no outcome and has no event.
type Decision struct {
	Outcome Outcome
	Event   *Event
	Value   []byte
}

// OutcomeSchema returns the JSON Schema of an outcome.
func OutcomeSchema() []byte {
	return []byte(strings.ReplaceAll(strings.ReplaceAll(outcomeSchema, "\n", ""), "\t", ""))
}

// The codes and states stand in it as words; a test holds that they are those
// of the code.
const outcomeSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
	"required":["status","decision_id","policy_version","mode","effects","transitions","advisories"],
	"additionalProperties":false,"properties":{
	"status":{"enum":["accepted","rejected","transformed"]},
	"proposal":{"type":"object","required":["tool_name","payload"],"additionalProperties":false,
	"properties":{"tool_name":{"type":"string"},"payload":{"type":"object"}}},
	"rejection":{"type":"object","required":["code","reason"],"additionalProperties":false,"properties":{
	"code":{"enum":["INVALID_TOOL_NAME","INVALID_PAYLOAD","MISSING_PROVENANCE","POLICY_VIOLATION","DIRECT_CANONICAL_WRITE_FORBIDDEN"]},
	"reason":{"type":"string"},"failures":{"type":"array","items":{"type":"object","required":["pointer","reason","need"],
	"additionalProperties":false,"properties":{"pointer":{"type":"string"},"reason":{"type":"string"},"need":{"type":"string"}}}}}},
	"rule_id":{"type":"string"},"decision_id":{"type":"string"},"policy_version":{"type":"string"},"mode":{"enum":["hardened","local"]},
	"effects":{"type":"array","items":{"$ref":"#/$defs/effect"}},
	"advisories":{"type":"array","items":{"$ref":"#/$defs/effect"}},
	"transitions":{"type":"array","items":{"type":"object","additionalProperties":false,
	"required":["proposition_id","prior_state","new_state","rule_id"],"properties":{
	"proposition_id":{"type":"string"},"prior_state":{"type":"string"},"new_state":{"type":"string"},"rule_id":{"type":"string"},
	"confidence":{"type":"number"},"support_score":{"type":"number"},"contradiction_score":{"type":"number"},
	"freshness":{"type":"number"},"timestamp_utc":{"type":"string"}}}}},
	"$defs":{"effect":{"type":"object","required":["effect"],"additionalProperties":false,
	"properties":{"effect":{"type":"string"},"id":{"type":"string"}}}}}`

// refusal is why a proposal does not pass. A nil refusal passes.
type refusal struct {
	at     string
	reason writ.Reason
	need   string
}

func refuse(at string, reason writ.Reason, need string) *refusal { return &refusal{at, reason, need} }

// rejection is the outside form.
func (r *refusal) rejection() *writ.Rejection {
	return &writ.Rejection{Code: writ.CodeOf(r.reason), Reason: r.reason,
		Failures: []writ.Failure{{Pointer: r.at, Reason: r.reason, Need: r.need}}}
}

func member(name string) string { return strictjson.Pointer([]string{name}) }
