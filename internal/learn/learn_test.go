package learn_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/learn"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

var update = flag.Bool("update", false, "write what was learned into the cases; read the difference")

// TestCases runs testdata/*.txtar: a policy, tools, recorded sessions, and what is learned
// of them. A session is steps: turn "…", call tool {…}, refused tool {…} for one that was
// not made, and below it result {…} or error; lowered tool is that an act of another
// session put the agent's text where it reaches.
func TestCases(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) < 8 {
		t.Fatal("the cases were not found")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{}
			for _, f := range ar.Files {
				parts[f.Name] = string(f.Data)
			}
			p, sessions := world(t, parts)
			r := learn.From(p, sessions)
			got, later := tell(r), ""
			if _, told := parts["later"]; told {
				later = tellLater(r)
			}
			if got == parts["learned"] && later == parts["later"] {
				return
			}
			if *update {
				for i := range ar.Files {
					switch ar.Files[i].Name {
					case "learned":
						ar.Files[i].Data = []byte(got)
					case "later":
						ar.Files[i].Data = []byte(later)
					}
				}
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Errorf("learned\n%s%s\nwant\n%s%s", later, got, parts["later"], parts["learned"])
		})
	}
}

func world(t *testing.T, parts map[string]string) (*policy.Policy, []*learn.Session) {
	t.Helper()
	p, faults := policy.Parse("policy.yaml", []byte(parts["policy.yaml"]))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var byServer map[string][]json.RawMessage
	if err := json.Unmarshal([]byte(parts["tools.json"]), &byServer); err != nil {
		t.Fatal(err)
	}
	defs := &learn.Definitions{}
	for server, ds := range byServer {
		for _, d := range ds {
			defs.All = append(defs.All, gate.Definition{Server: server, Raw: d})
		}
	}
	slices.SortFunc(defs.All, func(a, b gate.Definition) int { return strings.Compare(a.Server+string(a.Raw), b.Server+string(b.Raw)) })
	var out []*learn.Session
	places, n := provenance.NewPlaces(), uint64(0)
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for i, text := range strings.Split(parts["sessions"], "session\n")[1:] {
		s := &learn.Session{ID: fmt.Sprint("s_", i), Key: [32]byte{byte(i + 1)}}
		last := -1
		for line := range strings.Lines(text) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			at = at.Add(time.Second)
			switch word {
			case "", "#":
			case "turn":
				s.Steps = append(s.Steps, learn.Step{Turn: &learn.Turn{Text: []byte(rest), At: at}})
			case "lapse":
				s.Steps = append(s.Steps, learn.Step{Lapse: true})
			case "call", "refused", "look":
				name, args, _ := strings.Cut(rest, " ")
				server, tool, _ := strings.Cut(name, "/")
				last = len(s.Steps)
				s.Steps = append(s.Steps, learn.Step{Call: &learn.Call{Definitions: defs, Made: word != "refused",
					Input: gate.Input{Time: at, Look: word == "look", Call: gate.Call{Server: server, Tool: tool, Arguments: checked(t, args)}}}})
			case "lowered":
				server, tool, _ := strings.Cut(rest, "/")
				n++
				places.Lower(n, provenance.Place{Server: server, Tool: tool, Label: writ.Model})
			case "result", "error":
				r := gate.Result{Status: gate.OK, Time: at}
				if n > 0 {
					r.Places, r.Through = places, n
				}
				if word == "error" {
					r.Status = gate.Errored
				}
				if rest != "" {
					r.Value = checked(t, rest)
				}
				s.Steps = append(s.Steps, learn.Step{Result: &learn.Result{Of: last, Gate: r}})
			default:
				t.Fatalf("no such step: %s", line)
			}
		}
		out = append(out, s)
	}
	return p, out
}

func checked(t *testing.T, text string) strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse([]byte(text), strictjson.Result)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func count(n learn.Count) string {
	return fmt.Sprintf("%d pass %d ask %d refused", n.Passed, n.Asked, n.Refused)
}

// tellLater is what a report says of the same work once more.
func tellLater(r *learn.Report) string {
	out := fmt.Sprintf("later %s, given %s\n", count(r.Later), count(r.LaterGiven))
	for _, f := range r.Fields {
		out += strings.TrimPrefix(string(policy.GrownText(f.GivenLines())), "grown:\n")
	}
	return out
}

// tell is a report as the cases have it.
func tell(r *learn.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "before %s, after %s\n", count(r.Before), count(r.After))
	fmt.Fprintf(&b, "invented %d of %d, misplaced %d of %d\n", r.Invented.Passed, r.Invented.Tried, r.Misplaced.Passed, r.Misplaced.Tried)
	fields := func(word string, fs []learn.Field) {
		for _, f := range fs {
			fmt.Fprintf(&b, "%s %s%s%s label=%s writers=%s why=%s saves=%d\n", word, f.Tool, f.Pointer, f.Collection, f.Label, f.Writers, f.Why, f.Saves)
			for _, e := range f.Feeds {
				fmt.Fprintf(&b, "  %s %s %s %d of %d, alone %d, values %d, also %v\n", e.Tool, e.Arg, e.Role, e.Seen, e.Of, e.Alone, e.Values, e.Also)
			}
			if word == "field" {
				for line := range strings.Lines(string(policy.GrownText(f.Lines()))) {
					if !strings.HasPrefix(line, "grown") {
						b.WriteString(line)
					}
				}
			}
		}
	}
	fields("field", r.Fields)
	fields("unnamed", r.Unnamed)
	for _, t := range r.Tools {
		fmt.Fprintf(&b, "tool %s %s\n", t.Tool, count(t.Count))
	}
	return b.String()
}

// TestRedefined: a call under a definition that the policy does not pin is no difference, and
// nothing to learn of: it is counted apart, and what follows it is marked.
func TestRedefined(t *testing.T) {
	p, sessions := world(t, map[string]string{
		"policy.yaml": "tools:\n  a/act: { effect: write, pin: sha256:" + strings.Repeat("0", 64) + ", args: { /id: { role: target, from: [user] } } }\n" +
			"  a/other: { effect: write, args: { /id: { role: target, from: [user] } } }\npins: optional\n",
		"tools.json": `{"a":[{"name":"act","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}},{"name":"other","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}]}`,
		"sessions":   "session\ncall a/act {\"id\":\"x-12345678\"}\nresult {\"structuredContent\":{}}\ncall a/other {\"id\":\"x-12345678\"}\nrefused a/act {\"id\":\"x-2\"}\n",
	})
	steps := sessions[0].Steps
	for _, s := range steps {
		if s.Call != nil {
			s.Call.Was = learn.Judged{Verdict: learn.Passed}
		}
	}
	steps[len(steps)-1].Call.Was = learn.Judged{Verdict: learn.Refused, Reason: writ.NameChanged} // as it is now
	r := learn.Replay(p, sessions)
	if r.Redefined != 1 || r.Calls != 2 || len(r.Otherwise) != 1 || r.Otherwise[0].Tool != "a/other" || !r.Otherwise[0].Follows {
		t.Errorf("%+v", r)
	}
	if n := learn.From(p, sessions).Redefined; len(n) != 1 || n["a/act"] != 1 {
		t.Errorf("%v", n)
	}
	if r.Add(r); r.Redefined != 2 {
		t.Errorf("%d of both", r.Redefined)
	}
}
