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

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/learn"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

var update = flag.Bool("update", false, "write what was learned into the cases; read the difference")

// TestCases runs testdata/*.txtar: a policy, tools, recorded sessions, and what is learned
// of them. A session is steps: turn "…", call tool {…}, refused tool {…} for one that was
// not made, and below it result {…} or error.
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
			got := tell(learn.From(p, sessions))
			if got == parts["learned"] {
				return
			}
			if *update {
				for i := range ar.Files {
					if ar.Files[i].Name == "learned" {
						ar.Files[i].Data = []byte(got)
					}
				}
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Errorf("learned\n%s\nwant\n%s", got, parts["learned"])
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
			case "call", "refused":
				name, args, _ := strings.Cut(rest, " ")
				server, tool, _ := strings.Cut(name, "/")
				last = len(s.Steps)
				s.Steps = append(s.Steps, learn.Step{Call: &learn.Call{Definitions: defs, Made: word == "call",
					Input: gate.Input{Time: at, Call: gate.Call{Server: server, Tool: tool, Arguments: checked(t, args)}}}})
			case "result", "error":
				r := gate.Result{Status: gate.OK, Time: at}
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

// tell is a report as the cases have it.
func tell(r *learn.Report) string {
	var b strings.Builder
	count := func(n learn.Count) string {
		return fmt.Sprintf("%d pass %d ask %d refused", n.Passed, n.Asked, n.Refused)
	}
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
