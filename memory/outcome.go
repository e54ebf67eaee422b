package memory

import (
	"slices"
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
	// Kept says what remember kept.
	Kept *Kept `json:"kept,omitempty"`
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

// Changed is one claim that stands otherwise than before.
type Changed struct {
	Proposition string `json:"proposition_id"`
	Prior       Status `json:"prior_state"`
	Next        Status `json:"new_state"`
	Rule        Rule   `json:"rule_id"`
}

// Kept is what remember answers: the id of what was kept, what it is worth in
// one word, and what stands behind that in one line.
type Kept struct {
	ID    string `json:"id"`
	Trust Status `json:"trust"`
	// Quote is what is kept as evidence: words of the user or of a tool.
	Quote string `json:"quote,omitempty"`
	Why   string `json:"why"`

	own bool // nobody else said it
}

// became is what remember answers, with what it changed and what stands against it
// in its line: what it replaced, what it disputes, or what would establish it.
func (j *judge) became(changed []Changed) *Kept {
	if j.kept == nil {
		return nil
	}
	r := &Reader{State: j.d.State, Principal: j.c.Principal}
	add := func(what, id string) { j.kept.Why += "; " + what + " " + r.named(id) }
	told := 0
	for _, c := range changed {
		if c.Proposition == j.kept.ID || c.Next != Replaced && c.Next != Contested {
			continue
		}
		if told++; told > mostToldOf {
			j.kept.Why += " and others"
			break
		}
		if c.Next == Replaced {
			add("it replaces", c.Proposition)
		} else {
			add("it disputes", c.Proposition)
		}
	}
	if isID("prop", j.kept.ID) {
		switch st := j.d.standing(j.kept.ID, 0); {
		case len(st.Rivals) > 0 && told == 0:
			add("against it stands", st.Rivals[0])
		case st.ReplacedBy != "":
			add("in its place stands", st.ReplacedBy)
		}
	}
	if j.kept.Trust == Unverified && j.kept.own {
		j.kept.Why += "; the user's or a trusted tool's own words would establish it"
	}
	return j.kept
}

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

// ruled are the rules of memory (the package comment lists them) that rejections come
// from. A matter of form, of the context, or of an operator's command comes from none.
var ruled = map[writ.Reason]string{
	writ.MemoryMissing: "memory.r3", writ.MemoryUnknown: "memory.r3", writ.MemoryErased: "memory.r3",
	writ.MemoryQuarantined: "memory.r3", writ.MemoryQuote: "memory.r3", writ.MemoryEmpty: "memory.r3",
	writ.ObservationConflict: "memory.r1", writ.DirectCanonical: "memory.r4", writ.MemoryUnborne: "memory.r4",
	writ.ObservationRate: "memory.r5", writ.SourceSuspended: "memory.r5", writ.PropositionClosed: "memory.r6",
	writ.TestSpawnCap: "memory.r9", writ.TestClosed: "memory.r9", writ.EpisodePending: "memory.r10",
}

// ruleOf names the rule of memory a rejection comes from, "" where it comes from none.
func ruleOf(tool string, r *refusal) string {
	rule, name := ruled[r.reason], r.at[strings.LastIndexByte(r.at, '/')+1:]
	switch {
	case rule == "memory.r3" && slices.Contains([]string{ToolRecordObservation, ToolTestResult, ToolConsolidate, ToolRemember}, tool):
		return "memory.r1"
	case r.reason != writ.DirectCanonical:
	case slices.Contains([]string{"merge", "merge_into"}, name):
		return "memory.r8"
	case slices.Contains([]string{"direct_write", "canonical", "is_canonical", "promote", "promoted"}, name):
		return "memory.r10"
	}
	return rule
}
