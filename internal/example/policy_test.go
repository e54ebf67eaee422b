package example

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// TestPins: every tool has a contract, and its pin is that of the definition
// the server publishes today.
func TestPins(t *testing.T) {
	defs := dial(t).definitions()
	if *update {
		text := Policy()
		for name, raw := range defs {
			var err error
			if text, err = policy.SetPin(text, Name+"/"+name, gate.PinOf(Name, raw)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := os.WriteFile("policy.yaml", text, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Skip("policy.yaml rewritten: run the test again")
	}
	p, faults := policy.Parse("policy.yaml", Policy())
	for _, f := range append(faults, warnings(p)...) {
		t.Errorf("policy.yaml:%d:%d: %s", f.Line, f.Column, f.Message)
	}
	if p == nil {
		t.FailNow()
	}
	if len(p.Contracts) != len(defs) {
		t.Errorf("%d contracts for %d tools", len(p.Contracts), len(defs))
	}
	c, findings := gate.NewCatalogue(definitions(defs), p)
	for _, f := range findings {
		t.Errorf("%s/%s: %s", f.Server, f.Tool, f.Message)
	}
	for name := range defs {
		if tool := c.Lookup(Name, name); tool == nil || tool.State != gate.Open {
			t.Errorf("%s is not open; if the change is meant: go test ./internal/example -update", name)
		}
	}
}

func warnings(p *policy.Policy) []policy.Fault {
	if p == nil {
		return nil
	}
	return p.Warnings
}

func definitions(defs map[string]json.RawMessage) (out []gate.Definition) {
	for _, raw := range defs {
		out = append(out, gate.Definition{Server: Name, Raw: raw})
	}
	return out
}

// TestStories plays testdata/*.story against the server and the gate, without
// a gateway between them. A line is a tool, its arguments and what must come of
// it: "ok", "error" (the server's own), or the reason and pointer of a refusal;
// or "say" and what the user types.
func TestStories(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.story"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { play(t, file) })
	}
}

func play(t *testing.T, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, faults := policy.Parse("policy.yaml", Policy())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	w := dial(t)
	c, _ := gate.NewCatalogue(definitions(w.definitions()), p)
	s := gate.NewSession("s_story", [32]byte{1}, provenance.Caps{})
	steps := 0
	for sc, line := bufio.NewScanner(f), 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		if text == "new session" {
			s = gate.NewSession("s_other", [32]byte{2}, provenance.Caps{})
			continue
		}
		tool, rest, ok1 := strings.Cut(text, " ")
		if tool == "say" {
			s.Commit(s.Turn(s.Next(), []byte(rest), time.Unix(0, 0)))
			continue
		}
		args, want, ok2 := strings.Cut(rest, " => ")
		if !ok1 || !ok2 {
			t.Fatalf("%s:%d: want: TOOL {ARGUMENTS} => OUTCOME", file, line)
		}
		steps++
		d := gate.Decide(gate.Input{
			Policy: p, Catalogue: c, Session: s, Time: time.Unix(0, 0),
			Call: gate.Call{Server: Name, Tool: tool, Arguments: strictjson.Of([]byte(args))},
		})
		s.Decided(&d)
		got := "ok"
		if d.Allowed() {
			result := w.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, d.Arguments.Raw()))
			r := gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of(result)}
			var m struct{ IsError bool }
			if err := json.Unmarshal(result, &m); err != nil {
				t.Fatal(err)
			}
			if m.IsError {
				got, r.Status = "error", gate.Errored
			}
			s.Commit(s.Observe(&d, r))
		} else {
			got = string(d.Outcome.Rejection.Reason)
			if len(d.Outcome.Rejection.Failures) > 0 {
				got += " " + d.Outcome.Rejection.Failures[0].Pointer
			}
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s:%d: %s %s => %s, want %s", file, line, tool, args, got, want)
		}
	}
	if steps == 0 {
		t.Fatal("an empty story")
	}
}
