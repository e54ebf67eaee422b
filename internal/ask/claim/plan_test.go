package claim

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/strictjson"
)

// cases reads a list of cases: a word, spaces, and a text as inside a Go string
// literal in which quotation marks need no backslash.
func cases(t testing.TB, file string) (words, texts []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(b), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		word, text, _ := strings.Cut(line, " ")
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.TrimLeft(text, " "), `"`, `\"`) + `"`)
		if err != nil {
			t.Fatalf("%s:%d: %v", file, i+1, err)
		}
		words, texts = append(words, word), append(texts, text)
	}
	return words, texts
}

// reasonOf names how a stop ended, "accept" for none.
func reasonOf(t testing.TB, stop *Stop, stage Stage) string {
	t.Helper()
	if stop == nil {
		return "accept"
	}
	if stop.Stage != stage || stop.Rejection.Code != writ.CodeOf(stop.Rejection.Reason) || len(stop.Rejection.Failures) == 0 {
		t.Errorf("not a whole stop at %s: %+v", stage, stop)
	}
	for _, f := range stop.Rejection.Failures {
		if f.Need == "" {
			t.Errorf("%s does not say what would pass", f.Reason)
		}
	}
	return string(stop.Rejection.Reason)
}

// TestPlans (INV-1; C05: what is not one step is no plan).
func TestPlans(t *testing.T) {
	want, texts := cases(t, "testdata/plans.txt")
	if len(want) < 70 {
		t.Fatalf("only %d cases", len(want))
	}
	for i, text := range texts {
		p, stop := ParsePlan([]byte(text))
		if got := reasonOf(t, stop, StagePlanParse); got != want[i] {
			t.Errorf("%q: %s, want %s", text, got, want[i])
		}
		if (stop == nil) == (p.Type == "") {
			t.Errorf("%q: plan %+v with %v", text, p, stop)
		}
	}
}

func TestPlanBounds(t *testing.T) {
	call := func(server, tool, args string) string {
		return `{"type":"call_tool","server":"` + server + `","tool":"` + tool + `","args":` + args + `}`
	}
	nest := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	final := func(n int) string {
		return `{"type":"final_answer","needs_more_info":true,"answer":"` + strings.Repeat("a", n) + `"}`
	}
	long := strings.Repeat("n", nameBytes)
	for _, c := range []struct{ name, text, want string }{
		{"names at the bound", call(long, long, "{}"), "accept"},
		{"a longer server", call(long+"n", "t", "{}"), "plan.too_large"},
		{"a longer tool", call("s", long+"n", "{}"), "plan.too_large"},
		{"as deep as may be", call("s", "t", nest(planDepth-1)), "accept"},
		{"deeper", call("s", "t", nest(planDepth)), "plan.too_deep"},
		{"very deep", call("s", "t", nest(20_000)), "plan.too_deep"},
		{"an answer at the bound", final(answerBytes), "accept"},
		{"a longer answer", final(answerBytes + 1), "plan.too_large"},
		{"1 MiB", call("s", "t", `{}`+strings.Repeat(" ", PlanBytes-len(call("s", "t", "{}")))), "accept"},
		{"more", call("s", "t", `{}`+strings.Repeat(" ", PlanBytes)), "plan.too_large"},
		{"many values", call("s", "t", `{"a":[1`+strings.Repeat(",1", planValues)+`]}`), "plan.too_large"},
	} {
		_, stop := ParsePlan([]byte(c.text))
		if got := reasonOf(t, stop, StagePlanParse); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestStopsEchoNothing: what a planner wrote does not reach an error text.
func TestStopsEchoNothing(t *testing.T) {
	const evil = "\x1b[31mEVIL"
	for _, p := range []string{
		`{"type":"EVIL"}`, `{"type":"call_tool","EVIL":1}`, `EVIL`, `{"type":"final_answer","needs_more_info":"EVIL","answer":"x"}`,
		`{"type":"call_tool","server":"EVIL","tool":"","args":{}}`, `{"type":"call_tool","server":"s","tool":"t","args":"EVIL"}`,
	} {
		if _, stop := ParsePlan([]byte(strings.ReplaceAll(p, "EVIL", evil))); stop == nil || strings.Contains(stop.String(), "EVIL") {
			t.Errorf("%s: %v", p, stop)
		}
	}
}

func TestStop(t *testing.T) {
	s := StopAt(StagePlanGate,
		writ.Failure{Pointer: "/b", Reason: writ.SchemaInvalid, Need: "x"},
		writ.Failure{Pointer: "/a", Reason: writ.SchemaUnknownField, Need: "y"})
	if r := s.Rejection; r.Reason != writ.SchemaInvalid || r.Failures[0].Pointer != "/a" {
		t.Errorf("%+v", r)
	}
	if got := (&Stop{Stage: StageCall}).String(); got != "call:  " {
		t.Errorf("%q", got)
	}
	seen := map[Stage]bool{}
	for _, st := range Stages() {
		if st == "" || seen[st] {
			t.Errorf("%q stands twice, or is none", st)
		}
		seen[st] = true
	}
	if len(seen) != 11 {
		t.Errorf("%d stages", len(seen))
	}
}

// mutants of a valid plan, each of which must stop.
var mutants = []func(string) string{
	func(s string) string { return "x" + s },
	func(s string) string { return s + "x" },
	func(s string) string { return "\ufeff" + s },
	func(s string) string { return "```json\n" + s + "\n```" },
	func(s string) string { return "[" + s + "]" },
	func(s string) string { return s + s },
	func(s string) string { return s[:len(s)-1] },
	func(s string) string { return s[1:] },
	func(s string) string { return `{"extra":1,` + s[1:] },
	func(s string) string { return strings.Replace(s, `"type"`, `"Type"`, 1) },
	func(s string) string { return strings.Replace(s, `"type":`, `"type":null,"type":`, 1) },
}

func genPlan() *rapid.Generator[Plan] {
	return rapid.Custom(func(t *rapid.T) Plan {
		word := rapid.StringMatching(`[a-zé日"\\<>& \n]{0,8}[a-z]`)
		if rapid.Bool().Draw(t, "final") {
			return Plan{Type: FinalAnswer, Answer: word.Draw(t, "answer")}
		}
		args := `{` + rapid.SampledFrom([]string{``, `"a":1`, ` "b" : [ {} , "x" ] `, `"c":{"type":"call_tool"},"d":1.50e3`}).Draw(t, "args") + `}`
		return Plan{Type: CallTool, Server: word.Draw(t, "server"), Tool: word.Draw(t, "tool"), Args: []byte(args)}
	})
}

// TestPlanProperty: each valid plan is read back as it was, in any white space,
// and none of its mutants is.
func TestPlanProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPlan().Draw(t, "plan")
		space := rapid.StringMatching(`[ \t\r\n]{0,3}`)
		text := string(p.JSON())
		got, stop := ParsePlan([]byte(space.Draw(t, "before") + text + space.Draw(t, "after")))
		if stop != nil || !bytes.Equal(got.JSON(), p.JSON()) || !bytes.Equal(got.Args, p.Args) ||
			got.Server != p.Server || got.Tool != p.Tool || got.Answer != p.Answer || got.Type != p.Type {
			t.Fatalf("%s\nwas read as %+v %v", text, got, stop)
		}
		for i, m := range mutants {
			if _, stop := ParsePlan([]byte(m(text))); stop == nil {
				t.Fatalf("mutant %d is a plan: %s", i, m(text))
			}
		}
	})
}

// FuzzParsePlan: what is accepted is strict JSON and re-encodes to itself.
func FuzzParsePlan(f *testing.F) {
	_, texts := cases(f, "testdata/plans.txt")
	for _, s := range texts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, stop := ParsePlan(b)
		if stop != nil {
			if p.Type != "" || p.JSON() != nil || stop.Stage != StagePlanParse || writ.CodeOf(stop.Rejection.Reason) != writ.InvalidPayload {
				t.Fatalf("%+v %v", p, stop)
			}
			return
		}
		if strictjson.Check(b, strictjson.Limits{}) != nil {
			t.Fatal("accepted what is not strict JSON")
		}
		again, stop := ParsePlan(p.JSON())
		if stop != nil || !bytes.Equal(again.JSON(), p.JSON()) {
			t.Fatalf("%s does not re-encode: %v", b, stop)
		}
		if ms, _ := strictjson.Members(b); p.Type == CallTool && len(ms) != 4 || p.Type == FinalAnswer && len(ms) != 3 {
			t.Fatalf("accepted with other keys: %s", b)
		}
		if (&Allowlist{}).allows(p) {
			t.Fatal("the empty allowlist allows a call")
		}
	})
}

func (a *Allowlist) allows(p Plan) bool {
	tool, stop := a.Check(p)
	return tool != nil || p.Type == CallTool && stop == nil
}
