//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/internal/config"
	"github.com/writ-project/writ/internal/learn"
)

// TestLearn: what was asked for is one question for each field, asked and kept at a
// terminal alone; then the same work waits for nobody, and a value that no tool returned
// still does. What is destroyed, and what one says no or nothing to, is not kept.
func TestLearn(t *testing.T) {
	g := newGrowth(t)
	calls := [][2]string{
		{"close_ticket", `{"id":"INC-1042","resolution":"fixed"}`},
		{"fetch_document", `{"id":"doc-7f3a91"}`},
		{"fetch_policy", `{"id":"POL-014"}`},
		{"delete_document", `{"id":"doc-c56d17"}`},
	}
	for range 2 { // made again they count once
		for _, c := range calls {
			if g.passes(c[0], c[1]) {
				t.Fatalf("%s passes before", c[0])
			}
		}
	}
	of := []string{"learn", "--state", g.state, "--config", g.config}

	out, code := piped77(t, "1\ny\n1\ny\n1\ny\n", append(of, "--json")...)
	var r learn.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	if r.Sessions != 1 || r.Before != (learn.Count{Passed: 4, Asked: 4}) || r.After != (learn.Count{Passed: 7, Asked: 1}) || len(r.Fields) != 3 ||
		r.Invented.Tried != 3 || r.Invented.Passed+r.Misplaced.Passed != 0 {
		t.Errorf("%s", out)
	}
	for _, c := range calls {
		if id := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(c[1])[1]; strings.Contains(out, id) {
			t.Errorf("it holds a value, %s", id)
		}
	}
	for _, args := range [][]string{of, append(of, "--dry-run")} {
		if out, code := piped77(t, "1\ny\n1\ny\n1\ny\n", args...); code != 0 || !strings.Contains(out, "example/close_ticket /id came from there 1 of 1 time") ||
			strings.Contains(out, "a terminal of your own") != (len(args) == len(of)) {
			t.Errorf("%d %s", code, out)
		}
	}
	// The console tells of one tool the same.
	st, err := openForReading(g.state)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	_, p, err := config.LoadOnly(g.config, "")
	if err != nil {
		t.Fatal(err)
	}
	o := &files{state: g.state, store: st, loading: make(chan struct{}, 1), now: &files{policy: p}}
	told, err := o.learned(t.Context(), "example/close_ticket")
	if err != nil || told.Learn != "" { // no file is named
		t.Fatal(told, err)
	}
	edges := told.Edges
	if err != nil || len(edges) != 1 || !slices.Contains(edges[0].Says, "  example/close_ticket /id came from there 1 of 1 time") ||
		!slices.Equal(edges[0].Keep, []string{`- {"tool":"example/close_ticket","arg":"/id","from":"example/search_tickets#/tickets/*/id"}`}) {
		t.Errorf("%+v %v", edges, err)
	}
	if told, err := o.learned(t.Context(), "example/search_tickets"); err != nil || told.Edges != nil {
		t.Errorf("%+v %v", told, err)
	}
	if most, _, err := o.friction(t.Context()); err != nil || len(most) != mostAsked || most[0].Asked == 0 || len(most[0].Keep) == 0 || most[0].With >= most[0].Asked {
		t.Errorf("%+v %v", most, err)
	}
	// And of another policy what writ audit replay says, with the place of each fault.
	other, file, steps := strings.Replace(growing, "type: id, from: [user] }, /resolution", "type: id, from: [user, output] }, /resolution", 1), filepath.Join(t.TempDir(), "policy.yaml"), 0
	if err := os.WriteFile(file, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	said, _ := piped77(t, "", "audit", "replay", "--state", g.state, "--policy", file, "--json")
	var want learn.Replayed
	if err := json.Unmarshal([]byte(said), &want); err != nil {
		t.Fatal(err, said)
	}
	got, err := o.judgedBy(t.Context(), []byte(other), func(int, int) { steps++ })
	if err != nil || got.Calls != want.Calls || got.After.Passed != want.After.Passed || got.Before.Asked != want.Before.Asked || len(got.Otherwise) != len(want.Otherwise) || len(got.Otherwise) == 0 ||
		got.Otherwise[0].Was != "asked" || got.Otherwise[0].Becomes != "accepted" || steps != want.Sessions {
		t.Errorf("%+v %v, want %s", got, err, said)
	}
	if got, err := o.judgedBy(t.Context(), []byte("tools:\n  x: 1\n"), nil); err != nil || len(got.Faults) == 0 || got.Faults[0].Line != 2 || got.Calls != 0 {
		t.Errorf("%+v %v", got, err)
	}
	doubted := "tools:\n  x/a:\n    effect: delete\n    args:\n      /id: { role: selector, collection: c, from: [output] }\n  x/b:\n    effect: read\n    outputs:\n      - { at: /id, label: system, collection: c }\ncollections:\n  c: { closed: true }\n"
	if got, err := o.judgedBy(t.Context(), []byte(doubted), func(int, int) {}); err != nil || len(got.Notes) == 0 || !strings.HasPrefix(got.Notes[0], "line 5, column 7: a deletion ") {
		t.Errorf("a doubted line has a place: %+v %v", got, err)
	}
	if out, code := piped77(t, "", append(of, "--since", time.Now().Add(24*time.Hour).Format(time.DateOnly))...); code != 0 || !strings.Contains(out, "0 calls in 0 sessions") {
		t.Errorf("%d %s", code, out)
	}
	if out, code := piped77(t, "", append(of, "--since", "soon")...); code != 64 {
		t.Errorf("%d %s", code, out)
	}
	if g.file() != "" {
		t.Fatalf("without a terminal %s grew", g.file())
	}

	s := onTerminal(t, "", nil, append(of, "--dry-run")...)
	s.expect(`came from there`)
	s.exits()
	s = onTerminal(t, "1"+enter+"y"+enter, nil, of...) // typed too early
	s.expect(`1 of 3: example/search_tickets /tickets/\*/id(?s:.*)from this source(?s:.*)\[Enter\] no`)
	s.press("y" + enter)
	s.expect(`2 of 3: example/search_policies /policies/\*/id(?s:.*)Who can write example/search_policies#/policies/\*/id\?(?s:.*)do not know`)
	s.press("1" + enter)
	s.expect(`"writes":"ours"(?s:.*)\[Enter\] no`)
	s.press("y" + enter)
	s.expect(`3 of 3: the collection document(?s:.*)make a member of document appear\?(?s:.*)do not know`)
	s.press("2" + enter)
	s.expect(`no gateway runs`)
	if code := s.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(g.file(), `"by":"`+account()+`","at":"20`); n != 2 || strings.Contains(g.file(), "const") || strings.Contains(g.file(), "closed") {
		t.Errorf("grew %s", g.file())
	}
	for _, c := range []struct {
		tool, arguments string
		passes          bool
	}{
		{"close_ticket", `{"id":"INC-1042","resolution":"fixed"}`, true},
		{"close_ticket", `{"id":"INC-9999","resolution":"fixed"}`, false},
		{"fetch_policy", `{"id":"POL-021"}`, true},
		{"fetch_policy", `{"id":"INC-1042"}`, false},
		{"fetch_document", `{"id":"doc-7f3a91"}`, false},
		{"delete_document", `{"id":"doc-c56d17"}`, false},
	} {
		out, code := piped77(t, "", g.call(c.tool, c.arguments)...)
		if (code != 77) != c.passes {
			t.Errorf("%s %s: %d %s", c.tool, c.arguments, code, out)
		}
	}
}

// TestLearnShadow: what passed in shadow mode is learned from, and a gateway that runs
// has what was kept in force at once.
func TestLearnShadow(t *testing.T) {
	g := newGrowth(t)
	enforced, err := os.ReadFile(g.config)
	if err != nil {
		t.Fatal(err)
	}
	set := func(b []byte) {
		if err := os.WriteFile(g.config, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set(append([]byte("shadow: true\n"), enforced...))
	for _, c := range [][2]string{{"search_policies", `{"query":""}`}, {"fetch_policy", `{"id":"POL-014"}`}} {
		if out, code := piped77(t, "", "call", "--state", g.state, "--config", g.config, "--session", "shadowed", c[0], c[1]); code != 0 {
			t.Fatalf("%d %s", code, out)
		}
	}
	set(enforced)
	serving(t, "--state", g.state, "--config", g.config)
	s := onTerminal(t, "", nil, "learn", "--state", g.state, "--config", g.config)
	s.expect(`1 of 1: example/search_policies(?s:.*)do not know`)
	s.press("1" + enter)
	s.expect(`"writes":"ours"(?s:.*)\[Enter\] no`)
	s.press("y" + enter)
	s.expect(`in force: policy sha256:`)
	if code := s.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for id, want := range map[string]bool{"POL-021": true, "helper@outside.example": false} {
		out, code := piped77(t, "", "call", "--state", g.state, "--session", "demo", "fetch_policy", `{"id":"`+id+`"}`)
		if (code != 77) != want {
			t.Errorf("%s: %d %s", id, code, out)
		}
	}
}
