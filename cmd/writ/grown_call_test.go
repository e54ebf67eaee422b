//go:build linux

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/strictjson"
)

// TestGrownCall: what nobody returned can be kept as the very call it stands in, and
// holds in the next session; a call beside it asks as before.
func TestGrownCall(t *testing.T) {
	g := newGrowth(t)
	serving(t, "--state", g.state, "--config", g.config)
	call := func(session, tool, arguments string) int {
		t.Helper()
		_, code := piped77(t, "", "call", "--state", g.state, "--session", session, tool, arguments)
		return code // 77: refused, else the server knows it or not
	}
	const act = `{"id":"POL-0815"}`
	if code := call("demo", "fetch_policy", act); code != 77 {
		t.Fatal("it passes before")
	}
	var qs []approval.Shown
	if err := json.Unmarshal([]byte(command(t, "approve", "--json", "--state", g.state)), &qs); err != nil || len(qs) != 1 {
		t.Fatal(qs, err)
	}
	if o := qs[0].FromNowOn; len(o) != 1 || o[0].Keep != approval.KeepValue || len(o[0].Lines) != 1 || string(strictjson.Compact(o[0].Lines[0].Call)) != act {
		t.Fatalf("offered %+v", o)
	}
	s := onTerminal(t, "", nil, "approve", qs[0].ID, "--yes", "--keep", "value", "--state", g.state)
	s.expect(`from now on: example/fetch_policy may be called with \{"id":"POL-0815"\}`)
	if code := s.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for session, passes := range map[string]bool{"demo": true, "next": true} {
		if (call(session, "fetch_policy", act) != 77) != passes {
			t.Errorf("in %s it asks again", session)
		}
		if call(session, "fetch_policy", `{"id":"POL-0816"}`) != 77 {
			t.Errorf("in %s another passes", session)
		}
	}
	if !strings.Contains(g.file(), `"call":{"id":"POL-0815"},"by":`) {
		t.Error(g.file())
	}
	command(t, "grown", "remove", "1", "--config", g.config)
	if g.file() != "" {
		t.Errorf("it was taken back, and stands there: %s", g.file())
	}
}

// TestGrownAlone: who does not know who writes a field is offered the call alone, and no
// line that rests on who does.
func TestGrownAlone(t *testing.T) {
	g := &growth{t, approving(t, []byte(`pins: optional
tools:
  example/search_tickets: { effect: read, outputs: [{ at: /tickets/*/id, label: external }] }
  example/close_ticket: { effect: write, args: { /id: { role: target, from: [user] }, /resolution: { role: content, content: open } } }
`)), ownState(t)}
	serving(t, "--state", g.state, "--config", g.config)
	call := func(session, tool, arguments string) int {
		t.Helper()
		_, code := piped77(t, "", "call", "--state", g.state, "--session", session, tool, arguments)
		return code
	}
	const list, act = `{"query":""}`, `{"id":"INC-1042","resolution":"fixed"}`
	if call("demo", "search_tickets", list) != 0 || call("demo", "close_ticket", act) != 77 {
		t.Fatal("it passes before, or nothing is listed")
	}
	var qs []approval.Shown
	if err := json.Unmarshal([]byte(command(t, "approve", "--json", "--state", g.state)), &qs); err != nil || len(qs) != 1 {
		t.Fatal(qs, err)
	}
	var kept []string
	for _, o := range qs[0].FromNowOn {
		for _, line := range o.Lines {
			kept = append(kept, string(o.Keep)+" "+line.Writes+string(strictjson.Compact(line.Call)))
		}
	}
	if got := strings.Join(kept, ", "); got != `server server, ours ours, value {"id":"INC-1042"}` {
		t.Fatalf("offered %s", got)
	}
	if code := onTerminal(t, "", nil, "approve", qs[0].ID, "--yes", "--keep", "value", "--state", g.state).exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, c := range []struct {
		session, id string
		passes      bool
	}{{"demo", "INC-1042", true}, {"demo", "INC-1043", false}, {"next", "INC-1042", true}, {"next", "INC-1043", false}, {"next", "INC-9999", false}} {
		if code := call(c.session, "search_tickets", list); code != 0 {
			t.Fatal(code)
		}
		if code := call(c.session, "close_ticket", `{"id":"`+c.id+`","resolution":"duplicate"}`); (code != 77) != c.passes {
			t.Errorf("in %s %s: exit code %d", c.session, c.id, code)
		}
	}
}
