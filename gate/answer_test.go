package gate_test

import (
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
)

// TestSay: the first line says what, why and what next; each reason is told once, what
// is said of the call as a whole once for all of it, and what others chose is escaped.
func TestSay(t *testing.T) {
	rejected := func(fs ...writ.Failure) writ.Outcome {
		r := fs[0].Reason
		return writ.Outcome{Status: writ.Rejected, Rejection: &writ.Rejection{Code: writ.CodeOf(r), Reason: r, Failures: fs}}
	}
	pending := "a person was asked and has not answered; nothing was done, and the same call can be made again"
	there := ": `writ session say s_a TEXT` in a terminal of his own"
	for name, c := range map[string]struct {
		o    writ.Outcome
		file string
		want string
	}{
		"one": {rejected(writ.Failure{Pointer: "/id", Reason: writ.ProvenanceUnseen, Need: "`/id`: nothing that this argument accepts holds this value; `list` of server `s` returns `item`: call it first", Line: 17}), "policy.yaml",
			"Not done: `/id`: nothing that this argument accepts holds this value; `list` of server `s` returns `item`: call it first.\n" +
				"An operator would change line 17 of policy.yaml.\n(MISSING_PROVENANCE, provenance.unseen)"},
		"two, without a file": {rejected(writ.Failure{Pointer: "/a", Reason: writ.SchemaMissingField, Need: "this field"}, writ.Failure{Pointer: "/b\n`x", Reason: writ.SchemaInvalid, Need: "a number"}), "",
			"Not done: `/a` must be given.\nAlso:\n- `/b\\n\\x60x` must be as the schema says: a number\n(INVALID_PAYLOAD, schema.missing_field)"},
		"pending": {rejected(writ.Failure{Pointer: "/a", Reason: writ.ApprovalPending, Need: pending + "; `/a`: x", Line: 9}, writ.Failure{Pointer: "/b", Reason: writ.ApprovalPending, Need: pending + "; `/b`: y", Line: 7}), "p.yaml",
			"Not done: " + pending + ". The user answers in a terminal of his own: `writ watch`.\nWithout him it lacks this:\n- `/a`: x\n- `/b`: y\nAn operator would change lines 7 and 9 of p.yaml.\n(POLICY_VIOLATION, approval.pending)"},
		"a person said no": {rejected(writ.Failure{Reason: writ.ApprovalRefused, Need: "a person said no to this very call; do not make it again unless the user orders it anew"}), "p.yaml",
			"Not done: a person said no to this very call; do not make it again unless the user orders it anew.\n(POLICY_VIOLATION, approval.refused)"},
		"a person said no to what lacks something": {rejected(writ.Failure{Pointer: "/a", Reason: writ.ApprovalRefused, Need: "a person said no; `/a`: x, and the user may type it" + there, Line: 9}), "p.yaml",
			"Not done: a person said no to this very call; do not make it again unless the user orders it anew.\n(POLICY_VIOLATION, approval.refused)"},
		"made before": {rejected(writ.Failure{Reason: writ.PolicyRepeated, Need: "the same act was made before; x", Line: 4}), "p.yaml", "Not done: the same act was made before; x.\n(POLICY_VIOLATION, policy.repeated)"},
		"made before, a person asked": {rejected(writ.Failure{Reason: writ.ApprovalPending, Need: pending + "; the same act was made before, y", Line: 4}, writ.Failure{Pointer: "/b", Reason: writ.ApprovalPending, Need: pending + "; `/b`: z", Line: 7}), "p.yaml",
			"Not done: a person was asked and has not answered; this call was not made, and it asks for what a call before it may have done. The user answers in a terminal of his own: `writ watch`.\nWithout him it lacks this:\n- the same act was made before, y\n- `/b`: z\n" +
				"An operator would change line 7 of p.yaml.\n(POLICY_VIOLATION, approval.pending)"},
		"what is lacking, before a text that waits for it": {rejected(writ.Failure{Pointer: "/edits/0", Reason: writ.ProvenanceUnseen, Need: "`/edits/0` may be any text once its target is vouched for"}, writ.Failure{Pointer: "/path", Reason: writ.ProvenanceUnseen, Need: "`/path`: y"}), "",
			"Not done: `/path`: y.\nAlso:\n- `/edits/0` may be any text once its target is vouched for\n(MISSING_PROVENANCE, provenance.unseen)"},
		"where to type, once": {rejected(writ.Failure{Pointer: "/a", Reason: writ.ProvenanceUnseen, Need: "x, and the user may type it" + there}, writ.Failure{Pointer: "/b", Reason: writ.ProvenanceUnseen, Need: "y"},
			writ.Failure{Pointer: "/c", Reason: writ.ProvenanceReader, Need: "z; ask the user to type it" + there}), "",
			"Not done: `/a`: x, and the user may type it" + there + ".\nAlso:\n- `/b`: y\n- `/c`: z; ask the user to type it\n(MISSING_PROVENANCE, provenance.unseen)"},
		"an open collection": {rejected(writ.Failure{Pointer: "/repo", Reason: writ.ProvenanceOpenTarget, Need: "x", Line: 3}), "p.yaml",
			"Not done: `/repo`: x.\nAn operator would change line 3 of p.yaml, or say `closed: true` of its collection where only his own side can add to that.\n(MISSING_PROVENANCE, provenance.open_target)"},
		"a name":   {gate.UnknownTool(), "policy.yaml", "Not done: no tool of that name is listed; list the tools and call one of those, or ask the user whether another should be opened.\n(INVALID_TOOL_NAME, name.unknown)"},
		"accepted": {writ.Outcome{Status: writ.Accepted}, "p", ""},
	} {
		if got := gate.Say(c.o, c.file); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
	var many []writ.Failure
	for i := range 40 {
		many = append(many, writ.Failure{Pointer: "/" + strings.Repeat("x", i+1), Reason: writ.SchemaUnknownField, Need: "no"})
	}
	if got := gate.Say(rejected(many...), ""); strings.Count(got, "\n- ") != 11 || !strings.Contains(got, "\n- and 29 more\n") {
		t.Error(got)
	}
}
