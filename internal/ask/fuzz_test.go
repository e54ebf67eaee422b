package ask

import (
	"bytes"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/ask/claim"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// FuzzParseRules: rules are there or faults are, never both; what rules route is
// a plan that can be read, whatever the request.
func FuzzParseRules(f *testing.F) {
	f.Add(string(DefaultRules()), "Show me ticket INC-1042")
	for _, s := range []string{
		"version: 1\nrules:\n  - { pattern: '(?P<a>.*) (?P<b>.*)', call: a/b/c, args: { x: ['${a}', {y: '${b}${a}'}, 1.5, null, true] } }\notherwise: o\n",
		"version: 1\nrules: [{ pattern: '(?s)(?P<a>.*)', call: a/b, args: { '${a}': '$${a}' } }]\notherwise: o\n",
		"version: 1\nrules: [{ pattern: '(?P<a>x)|(?P<b>y)', call: a/b, args: { x: '${a}${b}' } }]\notherwise: o\n",
		"version: 1\nrules: [{ pattern: '((((a*)*)*)*)*', ask: b }]\notherwise: o\n",
		"version: 1\nrules: [{ pattern: 'a|b)|(?:c', ask: b }]\notherwise: o\n",
		"version: 1\nrules: [{ pattern: a, call: a/b, args: &x [*x] }]\notherwise: o\n",
		"version: 1\nrules: [{ pattern: a, ask: \"\\x00\" }]\notherwise: \"\\uD800\"\n",
	} {
		f.Add(s, "x a")
	}
	f.Fuzz(func(t *testing.T, file, request string) {
		r, faults := ParseRules("rules.yaml", []byte(file))
		if (r == nil) == (len(faults) == 0) {
			t.Fatalf("rules %v and %d faults", r != nil, len(faults))
		}
		if r == nil {
			return
		}
		raw, err := r.Plan(t.Context(), Prompt{Request: request})
		if err != nil {
			t.Fatal(err)
		}
		plan, stop := claim.ParsePlan(raw)
		if stop != nil && stop.Rejection.Reason != writ.PlanTooLarge {
			t.Errorf("%q routes %q to %q: %+v", file, request, raw, stop.Rejection)
		}
		if again, _ := r.Plan(t.Context(), Prompt{Request: request}); !bytes.Equal(raw, again) {
			t.Errorf("%q and then %q", raw, again)
		}
		_ = plan
	})
}

// FuzzReadReply: whatever a server puts into its result or its error, the
// gateway's own words are told from it, and exactly one thing is said.
func FuzzReadReply(f *testing.F) {
	for _, s := range []string{
		`{"content":[]}`, `{"content":[],"_meta":5}`, `{"_meta":null}`, `{"_meta":[]}`, `{"resultType":"input_required"}`, `{"resultType":5}`,
		`{"isError":true,"_meta":{"io.github.writ-project/outcome":{"status":"rejected","rejection":{"code":"MISSING_PROVENANCE","reason":"provenance.unseen"}}}}`,
		`{"_meta":{"io.github.writ-project/evidence":{"id":"s_x/ev9","admissible":true},"io.github.writ-project/decision":"s_x/9"}}`,
		`{"status":"rejected","rejection":{"code":"MISSING_PROVENANCE","reason":"provenance.unseen"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if strictjson.Check(b, strictjson.Result) != nil { // nothing else passes the gateway
			return
		}
		said := func(r *Reply) (n int) {
			for _, x := range []bool{r.Refused != nil, r.ServerError != "", r.Lost != "", r.Evidence.Number != 0} {
				if x {
					n++
				}
			}
			return n
		}
		// The bytes as a server's error, and as an error of the gateway's.
		if r := readReply(downstream.Reply{Err: &rpc.Error{Code: 77, Message: "m", Data: b, Raw: b}}); r.Refused != nil || said(r) != 1 {
			t.Errorf("a server's error came as %+v", r)
		}
		if r := readReply(downstream.Reply{Err: &rpc.Error{Code: 77, Message: "m", Data: b}}); said(r) != 1 {
			t.Errorf("%s came as %+v", b, r)
		}
		if strictjson.KindOf(b) != strictjson.Object {
			return
		}
		// As a server's result, with the gateway's mark where one can be put.
		meta := strictjson.Get(b, "_meta")
		if meta == nil {
			meta = []byte("{}")
		}
		marked := b
		if strictjson.KindOf(meta) == strictjson.Object {
			meta = strictjson.Set(bytes.Clone(meta), gateway.MetaEvidence, []byte(`{"id":"s_own/ev2","admissible":false}`))
			meta = strictjson.Set(meta, gateway.MetaDecision, []byte(`"s_own/7"`))
			marked = strictjson.Set(bytes.Clone(b), "_meta", meta)
		}
		r := readReply(downstream.Reply{Result: marked})
		if r.Refused != nil || r.Admissible || said(r) != 1 {
			t.Errorf("%s came as %+v", marked, r)
		}
		if r.Lost == "" && r.Decision != "s_own/7" || r.Evidence.Number != 0 && r.Evidence.String() != "s_own/ev2" {
			t.Errorf("%s came as %+v", marked, r)
		}
	})
}
