package claim

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// oneID is a small closed schema: exactly {"id": string}.
func oneID(args []byte) (out []writ.Failure) {
	ms, _ := strictjson.Members(args)
	for _, m := range ms {
		if m.Name != "id" {
			out = append(out, writ.Failure{Pointer: "", Reason: writ.SchemaUnknownField, Need: "only id"})
		} else if strictjson.KindOf(m.Value) != strictjson.String {
			out = append(out, writ.Failure{Pointer: "/id", Reason: writ.SchemaInvalid, Need: "a string"})
		}
	}
	if strictjson.Get(args, "id") == nil {
		out = append(out, writ.Failure{Pointer: "/id", Reason: writ.SchemaMissingField, Need: "id"})
	}
	return out
}

func world() *Allowlist {
	listed := []Tool{
		{"example", "get_ticket", "p1", oneID}, {"example", "close_ticket", "p2", oneID},
		{"example", "pinned", "p3", oneID}, {"example", "changed", "p4", oneID}, {"example", "disputed", "p5", oneID},
		{"example", "unusable", "p6", nil}, {"example", "twice", "p7", oneID}, {"example", "twice", "p7", oneID},
		{"other", "get_ticket", "p8", oneID},
	}
	operator := []Allowed{
		{"example", "get_ticket", ""}, {"example", "pinned", "p3"}, {"example", "changed", "p4-before"},
		{"example", "disputed", "p5"}, {"example", "disputed", "p5-before"},
		{"example", "unusable", ""}, {"example", "twice", ""}, {"example", "gone", "p9"},
	}
	return NewAllowlist(listed, operator)
}

// TestChecks (INV-2, INV-3, terminal plans).
func TestChecks(t *testing.T) {
	want, texts := cases(t, "testdata/checks.txt")
	w := world()
	for i, text := range texts {
		p, stop := ParsePlan([]byte(text))
		if stop != nil {
			t.Fatalf("%s: %v", text, stop)
		}
		tool, stop := w.Check(p)
		if got := reasonOf(t, stop, StagePlanGate); got != want[i] {
			t.Errorf("%s: %s, want %s", text, got, want[i])
		}
		if called := stop == nil && p.Type == CallTool; called != (tool != nil) || called && (tool.Name != p.Tool || tool.Server != p.Server) {
			t.Errorf("%s: tool %v", text, tool)
		}
	}
	var names []string
	for _, tool := range w.Tools() {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"get_ticket", "pinned"}) {
		t.Errorf("a planner is shown %v", names)
	}
}

// TestCheckHandMade: a plan that did not come from ParsePlan is judged whole.
func TestCheckHandMade(t *testing.T) {
	w := world()
	for _, c := range []struct {
		p    Plan
		want string
	}{
		{Plan{}, "plan.type"},
		{Plan{Type: "call"}, "plan.type"},
		{Plan{Type: FinalAnswer}, "plan.value"},
		{Plan{Type: CallTool, Server: "example", Tool: "get_ticket"}, "plan.value"},
		{Plan{Type: CallTool, Server: "example", Tool: "get_ticket", Args: []byte(`{"id":"x","id":"y"}`)}, "plan.syntax"},
		{Plan{Type: CallTool, Server: "example", Tool: "get_ticket", Args: []byte(`{"id":"x"} x`)}, "plan.syntax"},
		{Plan{Type: CallTool, Server: "example", Tool: "get_ticket", Args: []byte(`{"id":"x"}`)}, "accept"},
	} {
		_, stop := w.Check(c.p)
		if got := reasonOf(t, stop, StagePlanGate); got != c.want {
			t.Errorf("%+v: %s, want %s", c.p, got, c.want)
		}
	}
	call := Plan{Type: CallTool, Server: "example", Tool: "get_ticket", Args: []byte(`{"id":"x"}`)}
	for _, a := range []*Allowlist{nil, {}, NewAllowlist(nil, nil)} {
		if _, stop := a.Check(call); reasonOf(t, stop, StagePlanGate) != "name.unknown" || a.Tools() != nil {
			t.Errorf("an empty allowlist: %v", stop)
		}
	}
}

// TestAllowlistProperty holds Check to a plain model: a call passes if and only
// if its name is listed once, is allowed, every pin agrees and the arguments
// satisfy the schema.
func TestAllowlistProperty(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		servers := rapid.SampledFrom([]string{"s", "t"})
		pins := rapid.SampledFrom([]string{"1", "1", "2"})
		listed := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Tool {
			return Tool{servers.Draw(t, "server"), names.Draw(t, "name"), pins.Draw(t, "pin"), oneID}
		}), 0, 6).Draw(t, "listed")
		operator := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Allowed {
			return Allowed{servers.Draw(t, "server"), names.Draw(t, "name"), rapid.SampledFrom([]string{"", "1"}).Draw(t, "pin")}
		}), 0, 6).Draw(t, "operator")
		p := Plan{Type: CallTool, Server: servers.Draw(t, "server"), Tool: names.Draw(t, "tool"),
			Args: []byte(rapid.SampledFrom([]string{`{"id":"x"}`, `{"id":"x"}`, `{"id":"x"}`, `{}`, `{"id":"x","y":1}`}).Draw(t, "args"))}
		if len(listed) > 0 && rapid.Bool().Draw(t, "of the list") { // else in one run of twenty no call passes
			p.Server, p.Tool = listed[0].Server, listed[0].Name
			operator = append(operator, Allowed{p.Server, p.Tool, ""})
		}

		on, allowed, pinned := 0, false, true
		for _, l := range listed {
			if l.Server == p.Server && l.Name == p.Tool {
				on++
				for _, o := range operator {
					if o.Server == p.Server && o.Name == p.Tool {
						allowed = true
						pinned = pinned && (o.Pin == "" || o.Pin == l.Pin)
					}
				}
			}
		}
		want := on == 1 && allowed && pinned && string(p.Args) == `{"id":"x"}`
		a := NewAllowlist(listed, operator)
		tool, stop := a.Check(p)
		if got := stop == nil; got != want || got != (tool != nil) {
			t.Fatalf("%v, want %v: %v", got, want, stop)
		}
		shown := slices.ContainsFunc(a.Tools(), func(x Tool) bool { return x.Server == p.Server && x.Name == p.Tool })
		if shown != (on == 1 && allowed && pinned) {
			t.Fatalf("shown %v", shown)
		}
		if want {
			passed++
		}
	})
	if passed == 0 {
		t.Error("no call passed: the property says nothing")
	}
}

// TestTypedOutput (INV-4; T12: an untyped result is no data).
func TestTypedOutput(t *testing.T) {
	yes := func([]byte) bool { return true }
	id := func(b []byte) bool { return len(oneID(b)) == 0 }
	for _, c := range []struct {
		result   string
		validate func([]byte) bool
		want     string
	}{
		{`{"content":[],"structuredContent":{"id":"x"}}`, id, "accept"},
		{`{"content":[],"isError":false,"structuredContent": {"id":"x"} }`, id, "accept"},
		{`{"structuredContent":[1]}`, yes, "accept"},
		{`{"structuredContent":{"id":"x"}}`, nil, "typed.unregistered"},
		{`{"structuredContent":{"id":1}}`, id, "typed.schema"},
		{`{"structuredContent":{"id":"x"},"isError":true}`, yes, "typed.is_error"},
		{`{"structuredContent":{"id":"x"},"isError":"false"}`, yes, "typed.is_error"},
		{`{"structuredContent":{"id":"x"},"isError":null}`, yes, "typed.is_error"},
		{`{"content":[{"type":"text","text":"{\"id\":\"x\"}"}]}`, yes, "typed.missing"},
		{`{"structuredContent":null}`, yes, "typed.missing"},
		{`{"StructuredContent":{"id":"x"}}`, yes, "typed.missing"},
		{`{"structuredContent":{"id":"x"},"structuredContent":{"id":"y"}}`, yes, "typed.syntax"},
		{`[{"structuredContent":{"id":"x"}}]`, yes, "typed.syntax"},
		{`not json`, yes, "typed.syntax"},
		{``, yes, "typed.syntax"},
	} {
		out, stop := TypedOutput([]byte(c.result), c.validate)
		if got := reasonOf(t, stop, StageTypedOutput); got != c.want || (got == "accept") != (out != nil) {
			t.Errorf("%s: %s %q, want %s", c.result, got, out, c.want)
		}
		if stop == nil && !strings.Contains(c.result, string(out)) {
			t.Errorf("%s: %s is not of it", c.result, out)
		}
	}
}
