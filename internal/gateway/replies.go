package gateway

import (
	"encoding/json"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// The members Writ adds to a result's _meta. Nothing else of a server's result
// is changed.
const (
	// MetaOutcome holds the outcome of a refused or transformed call.
	MetaOutcome = "io.github.writ-project/outcome"
	// MetaDecision holds the id of the decision's record, "s_…/7".
	MetaDecision = "io.github.writ-project/decision"
	// MetaEvidence holds what a result is worth as evidence.
	MetaEvidence = "io.github.writ-project/evidence"
	// MetaShadow says that the call passed only because the server shadows.
	MetaShadow = "io.github.writ-project/shadow"
)

// NotKnown stands in the error of an act that no answer came of.
const NotKnown = "The call was sent, and whether it happened is not known"

// codeRefused is the JSON-RPC code of a refusal where the method has no result
// that could carry it (resources, prompts, completions). It lies outside the
// range JSON-RPC reserves.
const codeRefused = 77

type evidenceMark struct {
	ID         string `json:"id,omitempty"`
	Admissible bool   `json:"admissible"`
	Why        string `json:"why,omitempty"`
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		// Only values of this package's own types come here.
		panic("gateway: cannot encode its own value: " + err.Error())
	}
	return b
}

// mark adds members to result._meta and leaves every other byte as it was. A
// result whose _meta is not an object is returned unmarked.
func mark(result strictjson.Value, members ...strictjson.Member) []byte {
	meta := result.Get("_meta")
	if !meta.Exists() {
		meta = noMembers
	}
	if result.Kind() != strictjson.Object || meta.Kind() != strictjson.Object {
		return result.Raw()
	}
	return result.With(strictjson.Member{Name: "_meta", Value: meta.With(members...)})
}

var noMembers = strictjson.Make()

func member(name string, v any) strictjson.Member {
	return strictjson.Member{Name: name, Value: mustJSON(v)}
}

// refusal is the answer to a refused call: for tools/call a result that the model can
// act on, whose text says it in words and whose _meta holds the outcome, for programs;
// else an error with those words and the outcome as data. It is the same, byte for byte,
// for the same refusal (R24), but for the decision's id, and a name that resolves to
// nothing has none: so nobody learns which names are closed.
func (g *Gateway) refusal(method policy.Method, outcome writ.Outcome, decision string) downstream.Reply {
	out, said := mustJSON(outcome), gate.Say(outcome, g.policyFile)
	if method != policy.CallTool {
		return downstream.Reply{Err: &rpc.Error{Code: codeRefused, Message: said, Data: out}}
	}
	members := []strictjson.Member{{Name: MetaOutcome, Value: out}}
	if decision != "" && outcome.Rejection.Reason != writ.NameUnknown {
		members = append(members, member(MetaDecision, decision))
	}
	b := append([]byte(`{"content":[{"type":"text","text":`), strictjson.Quote(said)...)
	return downstream.Reply{Result: mark(strictjson.Of(append(b, `}],"isError":true}`...)), members...)}
}

func failure(code int, text string) downstream.Reply {
	return downstream.Reply{Err: rpc.Errorf(code, "%s", text)}
}

// changedUnder is the end of a call that was not sent because its server said
// that its lists changed.
func changedUnder() upstream.Response {
	return upstream.Response{End: upstream.NotSent, Changed: true, Err: rpc.Errorf(rpc.CodeInternal, "the server's lists changed")}
}

// unlisted is the outcome of such a call.
func unlisted() writ.Outcome {
	return writ.Outcome{Status: writ.Rejected, Rejection: rejection(writ.NameUnlisted, "its server said that its tools changed, and this one is not listed again as it was; "+
		"list the tools and call again; if that does not help the server does not list them, and an operator must restart it")}
}

// rejection is a refusal for one reason, which no argument is to blame for.
func rejection(r writ.Reason, need string) *writ.Rejection {
	return &writ.Rejection{Code: writ.CodeOf(r), Reason: r, Failures: []writ.Failure{{Reason: r, Need: need}}}
}
