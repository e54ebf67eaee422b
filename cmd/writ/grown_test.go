//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/approval"
)

const growing = `pins: optional
collections: { ticket: { closed: true }, document: {} }
tools:
  example/search_tickets: { effect: read, outputs: [{ at: /tickets/*/id, label: system, collection: ticket, authoritative: true }] }
  example/search_documents: { effect: read, outputs: [{ at: /documents/*/id, label: system, collection: document, authoritative: true }] }
  example/search_policies: { effect: read, outputs: [{ at: /policies/*/id, label: external }, { at: /policies/*/title, label: external }] }
  example/fetch_ticket: { effect: read, outputs: [{ at: /filed_by, label: external }] }
  example/close_ticket: { effect: write, idempotent: true, args: { /id: { role: selector, collection: ticket, type: id, from: [user] }, /resolution: { role: enum, from: [catalog] } } }
  example/fetch_document: { effect: write, args: { /id: { role: target, collection: document, type: id } } }
  example/fetch_policy: { effect: send, args: { /id: { role: target, from: [user] } } }
  example/delete_document: { effect: delete, args: { /id: { role: selector, collection: document, type: id, from: [user] } } }
`

// growth is a house whose policy grows, with a session in it that has seen things.
type growth struct {
	t             *testing.T
	config, state string
}

func newGrowth(t *testing.T) *growth {
	g := &growth{t, approving(t, []byte(growing)), ownState(t)}
	for _, read := range []string{"search_tickets", "search_documents", "search_policies", "fetch_ticket"} {
		arguments := `{"query":""}`
		if read == "fetch_ticket" {
			arguments = `{"id":"INC-1043"}`
		}
		if out, code := piped77(t, "", g.call(read, arguments)...); code != 0 {
			t.Fatalf("%s: %d %s", read, code, out)
		}
	}
	return g
}

func (g *growth) call(tool, arguments string) []string {
	return []string{"call", "--state", g.state, "--config", g.config, "--session", "demo", tool, arguments}
}

// file is grown.yaml, "" where there is none.
func (g *growth) file() string {
	b, err := os.ReadFile(filepath.Join(filepath.Dir(g.config), "policy.grown.yaml"))
	if err != nil && !os.IsNotExist(err) {
		g.t.Fatal(err)
	}
	return string(b)
}

// passes says whether a call passes where nobody is asked.
func (g *growth) passes(tool, arguments string) bool {
	g.t.Helper()
	out, code := piped77(g.t, "", g.call(tool, arguments)...)
	if code != 0 && code != 77 {
		g.t.Fatalf("%s: %d %s", tool, code, out)
	}
	return code == 0
}

// TestGrownInTheNextSession: what a person said of a field from now on holds in the next
// conversation too, wherever he said it: the line is in force before the act goes where the
// field is read (R38), so that it leaves nothing there.
func TestGrownInTheNextSession(t *testing.T) {
	const act = `{"id":"POL-014"}`
	from := [][2]string{{`\[f\] from now on`, "f"}, {`I do not know`, "1"}, {`"writes":"ours"(?s:.*)\[Enter\] no`, "y"}}
	answer := func(s *terminalScreen) {
		for _, typed := range from {
			s.expect(typed[0])
			s.press(typed[1] + enter)
		}
		s.expect("from now on: ")
	}
	for _, c := range []struct {
		name string
		asks func(t *testing.T, g *growth)
	}{
		{"call", func(t *testing.T, g *growth) {
			s := onTerminal(t, "", nil, g.call("fetch_policy", act)...)
			answer(s)
			if code := s.exits(); code > 1 {
				t.Fatalf("exit code %d", code)
			}
		}},
		{"elsewhere", func(t *testing.T, g *growth) {
			serving(t, "--state", g.state, "--config", g.config)
			s := onTerminal(t, "", nil, "call", "--state", g.state, "--session", "demo", "fetch_policy", act)
			answer(s)
			if code := s.exits(); code > 1 {
				t.Fatalf("exit code %d", code)
			}
		}},
		{"watch", func(t *testing.T, g *growth) {
			serving(t, "--state", g.state, "--config", g.config)
			w := onTerminal(t, "", nil, "watch", "--state", g.state)
			w.expect("watching")
			done := make(chan string, 1)
			go func() {
				out, code := piped77(t, "", "call", "--state", g.state, "--session", "demo", "fetch_policy", act)
				if code == 0 {
					out = ""
				}
				done <- out
			}()
			answer(w)
			if refused := <-done; refused != "" {
				t.Error(refused)
			}
			w.press(ctrlC)
			w.exits()
		}},
		{"approve", func(t *testing.T, g *growth) {
			serving(t, "--state", g.state, "--config", g.config)
			again := func(want int) {
				if out, code := piped77(t, "", "call", "--state", g.state, "--session", "demo", "fetch_policy", act); code != want {
					t.Errorf("%d %s", code, out)
				}
			}
			again(77)
			var qs []approval.Shown
			if err := json.Unmarshal([]byte(command(t, "approve", "--json", "--state", g.state)), &qs); err != nil || len(qs) != 1 {
				t.Fatal(qs, err)
			}
			s := onTerminal(t, "", nil, "approve", qs[0].ID, "--state", g.state)
			answer(s)
			s.exits()
			again(0)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGrowth(t)
			c.asks(t, g)
			next := func(tool, arguments string) {
				t.Helper()
				args := g.call(tool, arguments)
				args[slices.Index(args, "demo")] = "next"
				if out, code := piped77(t, "", args...); code != 0 {
					t.Errorf("in the next session %s: %d %s", tool, code, out)
				}
			}
			next("search_policies", `{"query":""}`)
			next("fetch_policy", act)
			if out := command(t, "places", "list", "--state", g.state); strings.Contains(out, "fetch_policy") {
				t.Errorf("it lowered its place: %s", out)
			}
			if out := command(t, "audit", "verify", "--state", g.state); !strings.Contains(out, "ok") {
				t.Errorf("audit verify: %s", out)
			}
		})
	}
}

// TestGrownExactly: an exact value goes by the yes in the call that it was kept with, and
// leaves its mark where it went.
func TestGrownExactly(t *testing.T) {
	g := newGrowth(t)
	s := onTerminal(t, "", nil, g.call("fetch_policy", `{"id":"POL-014"}`)...)
	for _, typed := range [][2]string{{`\[f\] from now on`, "f"}, {`I do not know`, "2"}, {`"const":"POL-014"(?s:.*)\[Enter\] no`, "y"}} {
		s.expect(typed[0])
		s.press(typed[1] + enter)
	}
	s.expect("from now on: ")
	s.exits()
	if out := command(t, "places", "list", "--state", g.state); !strings.Contains(out, "fetch_policy") || !strings.Contains(out, "does not count while this is kept from now on: /id of ") {
		t.Errorf("it lowered no place, or not by a yes: %s", out)
	}
}

// TestGrownHere: who answers at his own terminal may say yes from now on, and nothing
// but a yes that was typed after the line was shown keeps it. Then the same
// call passes without a question, another does not, and what was kept is taken back.
func TestGrownHere(t *testing.T) {
	g := newGrowth(t)
	for _, c := range []struct {
		name, tool, arguments string
		typed                 []string // each with what is shown before it
		grows                 string
		other                 string // what still does not pass
	}{
		{"no", "close_ticket", `{"id":"INC-1042","resolution":"fixed"}`,
			[]string{`\[n\] no`, "f", `from this source(?s:.*)\{"tool":"example/close_ticket","arg":"/id","from":"example/search_tickets#/tickets/\*/id"\}(?s:.*)\[Enter\] no`, "", `\[n\] no`, "y"}, "", ""},
		{"typed too early", "close_ticket", `{"id":"INC-1042","resolution":"fixed"}`,
			[]string{`\[n\] no`, "f" + enter + "y" + enter + "y", `\[Enter\] no`, "n", `\[n\] no`, "y"}, "", ""},
		{"a source", "close_ticket", `{"id":"INC-1042","resolution":"fixed"}`,
			[]string{`\[n\] no`, "f", `\[Enter\] no`, "y"},
			`{"tool":"example/close_ticket","arg":"/id","from":"example/search_tickets#/tickets/*/id",`, `{"id":"INC-9999","resolution":"fixed"}`},
		{"nobody knows who adds to it", "fetch_document", `{"id":"doc-c56d17"}`,
			[]string{`\[n\] no`, "f", `member of document appear(?s:.*)I do not know`, "", `exact value alone(?s:.*)"const":"doc-c56d17"(?s:.*)\[Enter\] no`, "y"},
			`{"tool":"example/fetch_document","arg":"/id","const":"doc-c56d17",`, `{"id":"doc-7f3a91"}`},
		{"anyone adds to it", "fetch_document", `{"id":"doc-7f3a91"}`,
			[]string{`\[n\] no`, "f", `I do not know`, "2", `exact value alone(?s:.*)\[Enter\] no`, "", `\[n\] no`, "y"}, "", ""},
		{"our own people add to it", "fetch_document", `{"id":"doc-7f3a91"}`,
			[]string{`\[n\] no`, "f", `I do not know`, "1", `\{"closed":"document"\}(?s:.*)\[Enter\] no`, "y"},
			`{"closed":"document",`, `{"id":"doc-000000"}`},
		{"anyone writes the field", "fetch_policy", `{"id":"POL-014"}`,
			[]string{`\[n\] no`, "f", `Who can write example/search_policies#/policies/\*/id\?(?s:.*)I do not know`, "2", `exact value alone(?s:.*)\[Enter\] no`, "", `\[n\] no`, "y"}, "", ""},
		{"nobody knows who writes it", "fetch_policy", `{"id":"POL-014"}`,
			[]string{`\[n\] no`, "f", `I do not know`, "", `exact value alone(?s:.*)\[Enter\] no`, "", `\[n\] no`, "y"}, "", ""},
		{"our own people write it", "fetch_policy", `{"id":"POL-014"}`,
			[]string{`\[n\] no`, "f", `I do not know`, "1", `from this source(?s:.*)"writes":"ours"(?s:.*)\[Enter\] no`, "y"},
			`{"tool":"example/fetch_policy","arg":"/id","from":"example/search_policies#/policies/*/id","writes":"ours",`, `{"id":"Retention of documents"}`},
		{"what anyone wrote", "fetch_policy", `{"id":"helper@outside.example"}`,
			[]string{`\[n\] no`, "f", `Who can write example/fetch_ticket#/filed_by\?(?s:.*)I do not know`, "2", `exact value alone(?s:.*)\[Enter\] no`, "y"},
			`{"tool":"example/fetch_policy","arg":"/id","const":"helper@outside.example",`, `{"id":"kim@staff.example"}`},
	} {
		before := g.file()
		if g.passes(c.tool, c.arguments) {
			t.Fatalf("%s: it passes before", c.name)
		}
		s := onTerminal(t, "", nil, g.call(c.tool, c.arguments)...)
		for i := 0; i < len(c.typed); i += 2 {
			s.expect(c.typed[i])
			s.press(c.typed[i+1] + enter)
		}
		s.expect(map[bool]string{true: "from now on: (?s:.*)writ grown remove", false: `"id"`}[c.grows != ""])
		if code := s.exits(); code > 1 { // the server may not know it
			t.Fatalf("%s: exit code %d", c.name, code)
		}
		after := g.file()
		if c.grows == "" {
			if after != before {
				t.Errorf("%s: grew %s", c.name, after)
			}
			continue
		}
		line, ok := strings.CutPrefix(strings.TrimPrefix(after, "grown:\n"), strings.TrimPrefix(before, "grown:\n"))
		if !ok || !strings.HasPrefix(line, "  - "+c.grows+`"by":"`+account()+`","at":"20`) || strings.Count(line, "\n") != 1 {
			t.Errorf("%s: grew %s", c.name, after)
		}
		if out, code := piped77(t, "", g.call(c.tool, c.arguments)...); code == 77 {
			t.Errorf("%s: is asked again: %s", c.name, out)
		}
		if g.passes(c.tool, c.other) {
			t.Errorf("%s: %s passes too", c.name, c.other)
		}

	}

	// What is destroyed is never kept: it is named each time (R9).
	s := onTerminal(t, "", nil, g.call("delete_document", `{"id":"doc-c56d17"}`)...)
	s.expect(`\[n\] no`)
	s.press("y" + enter)
	s.expect(`"deleted":true`)
	if strings.Contains(s.all(), "rom now on") {
		t.Error("a deletion was offered")
	}
	s.exits()

	// Another of the same listing, which was read before, is not asked for.
	if !g.passes("fetch_policy", `{"id":"POL-021"}`) {
		t.Error("another value of the field does not pass")
	}
	for range 5 {
		command(t, "grown", "remove", "1", "--config", g.config)
	}
	if g.file() != "" || g.passes("fetch_document", `{"id":"doc-c56d17"}`) || g.passes("fetch_policy", `{"id":"POL-021"}`) {
		t.Errorf("it was taken back, and passes still: %s", g.file())
	}
	if out := command(t, "audit", "verify", "--state", g.state); !strings.Contains(out, "ok") {
		t.Errorf("audit verify: %s", out)
	}
}

// TestGrownByTwo: two gateways have one file. What a person kept at one of them, the other
// takes up where he keeps something there, and nothing else that changed in the files.
func TestGrownByTwo(t *testing.T) {
	g := newGrowth(t)
	serving(t, "--state", g.state, "--config", g.config)
	keeps := func(tool, arguments, keep string, theirs ...string) string {
		t.Helper()
		s := onTerminal(t, "", nil, append(append([]string{"call", "--state", g.state, "--session", "demo"}, theirs...), tool, arguments)...)
		s.expect(`\[n\] no`)
		s.press("f" + enter)
		if keep == "ours" {
			s.expect(`I do not know`)
			s.press("1" + enter)
		}
		s.expect(`\[Enter\] no`)
		s.press("y" + enter)
		s.exits()
		return s.all()
	}
	if out := keeps("fetch_policy", `{"id":"POL-014"}`, "ours", "--config", g.config); !strings.Contains(out, "from now on: ") { // a gateway of its own
		t.Fatal(out)
	}
	if out := keeps("fetch_document", `{"id":"doc-c56d17"}`, "ours"); !strings.Contains(out, "from now on: ") || strings.Contains(out, "nothing was kept") {
		t.Error(out)
	}
	if n := strings.Count(g.file(), "\n"); n < 3 {
		t.Errorf("%d lines: %s", n, g.file())
	}
	if out, code := piped77(t, "", "call", "--state", g.state, "--session", "demo", "fetch_policy", `{"id":"POL-021"}`); code != 0 {
		t.Errorf("what the other kept is not in force: %d %s", code, out)
	}
	file := filepath.Join(filepath.Dir(g.config), "policy.yaml")
	kept := g.file()
	if err := os.WriteFile(file, []byte(growing+"# another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := keeps("close_ticket", `{"id":"INC-1042","resolution":"fixed"}`, ""); !strings.Contains(out, "nothing was kept") || !strings.Contains(out, "writ reload comes first") || g.file() != kept {
		t.Error(out)
	}
}

// TestGrownWhileAsked: two calls wait, told to the agent as such. What is kept with the one does not
// undo the yes to the other; a reload that changes the policy does, and the yes says so.
func TestGrownWhileAsked(t *testing.T) {
	g := newGrowth(t)
	serving(t, "--state", g.state, "--config", g.config)
	asked := func(tool, arguments string) string {
		t.Helper()
		if out, code := piped77(t, "", "call", "--state", g.state, "--session", "demo", tool, arguments); code != 77 {
			t.Fatal(code, out)
		}
		var qs []approval.Shown
		if err := json.Unmarshal([]byte(command(t, "approve", "--json", "--state", g.state)), &qs); err != nil || len(qs) == 0 {
			t.Fatal(qs, err)
		}
		return qs[len(qs)-1].ID
	}
	says := func(args ...string) string {
		s := onTerminal(t, "", nil, append(args, "--state", g.state)...)
		s.exits()
		return strings.Join(strings.Fields(s.all()), " ")
	}
	const call = `{"id":"POL-014"}`
	first, second := asked("fetch_policy", call), asked("close_ticket", `{"id":"INC-1042","resolution":"fixed"}`)
	if out := says("approve", second, "--yes", "--keep", "source"); !strings.Contains(out, "from now on: ") {
		t.Fatal(out)
	}
	if out := says("approve", first, "--yes"); !strings.Contains(out, "within ten minutes, it passes") {
		t.Error(out)
	}
	if out, code := piped77(t, "", "call", "--state", g.state, "--session", "demo", "fetch_policy", call); code != 0 {
		t.Errorf("the yes went void: %d %s", code, out)
	}

	third := asked("fetch_policy", `{"id":"POL-021"}`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(g.config), "policy.yaml"), []byte(growing+"# another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := says("reload"); !strings.Contains(out, "in force") {
		t.Fatal(out)
	}
	if out := says("approve", third, "--yes"); !strings.Contains(out, "the policy changed since the question was put") || strings.Contains(out, "it passes") {
		t.Error(out)
	}
	if out, code := piped77(t, "", "call", "--state", g.state, "--session", "demo", "fetch_policy", `{"id":"POL-021"}`); code != 77 || !strings.Contains(out, "was asked") {
		t.Errorf("%d %s", code, out)
	}
}

// TestGrownTakenBack: what is taken back counts no more at a gateway that runs, or is said to
// count still, where it was taken and where the policy is shown; what is asked about most is
// counted by what is in force.
func TestGrownTakenBack(t *testing.T) {
	g := newGrowth(t)
	t.Setenv("HOME", t.TempDir())
	beside := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(filepath.Dir(g.config), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const line = `{"tool":"example/close_ticket","arg":"/id","from":"example/search_tickets#/tickets/*/id","by":"kim","at":"2026-11-22T10:00:00Z"}`
	beside("policy.grown.yaml", "grown:\n  - "+line+"\n")
	where := []string{"--config", g.config, "--state", g.state}
	_, link, _ := consoled(t, "127.0.0.1:0", where...)
	look := letIn(t, link)
	passes := func() bool {
		t.Helper()
		_, code := piped77(t, "", "call", "--state", g.state, "--session", "demo", "close_ticket", `{"id":"INC-1042","resolution":"fixed"}`)
		return code != 77
	}
	remove := func(code int, want ...string) {
		t.Helper()
		s := onTerminal(t, "", nil, append([]string{"grown", "remove", "1"}, where...)...)
		for _, w := range want {
			s.expect(w)
		}
		if got := s.exits(); got != code {
			t.Errorf("exit code %d", got)
		}
	}
	page, _ := look("/policy", nil)
	if takes := "writ grown remove --config " + g.config + " --state " + g.state + " NUMBER"; !strings.Contains(page, takes) || strings.Contains(page, `id="differs"`) || !passes() {
		t.Errorf("it does not say %s:\n%s", takes, page)
	}

	// The text was changed beside it: nobody said that it is to be in force.
	beside("policy.yaml", growing+"# another\n")
	remove(78, "taken back in the file: ", "it still counts at a gateway that runs", "try: writ reload --state")
	page, _ = look("/policy", nil)
	for _, want := range []string{"it has 1 line more and 2 lines less, which writ reload puts in force", "Taken back in the file: it counts until", "<ins><code># another</code></ins>", "replay the file</a>"} {
		if !strings.Contains(page, want) {
			t.Errorf("it does not say %s:\n%s", want, page)
		}
	}
	if page, _ = look("/policy/replay", nil); !strings.Contains(page, "# another\n</textarea>") || !strings.Contains(page, "the file as it is now, which is not in force") {
		t.Errorf("to be replayed stands there:\n%s", page)
	}
	if page, _ = look("/health", nil); !strings.Contains(page, "not what is in force") || strings.Contains(page, "close_ticket") {
		t.Errorf("of what counts still it says:\n%s", page)
	}
	if !passes() {
		t.Error("what is in force was changed by nobody")
	}

	// A gateway that cannot read its files again: what is said is of the line, and that the file was
	// changed stands before it.
	beside("policy.grown.yaml", "grown:\n  - "+line+"\n")
	beside("policy.yaml", growing)
	config, err := os.ReadFile(g.config)
	if err != nil {
		t.Fatal(err)
	}
	beside(filepath.Base(g.config), string(config)+"shadow: true\n")
	remove(78, "taken back in the file: ", "it still counts at a gateway that runs: shadow changed, which takes a restart")
	beside(filepath.Base(g.config), string(config))

	// As it was in force, it is taken back at once.
	beside("policy.grown.yaml", "grown:\n  - "+line+"\n")
	remove(0, "taken back: ")
	if passes() {
		t.Error("it passes still")
	}
	if page, _ = look("/policy", nil); strings.Contains(page, `id="differs"`) || !strings.Contains(page, "Nothing was.") {
		t.Errorf("after that:\n%s", page)
	}
	if page, _ = look("/audit", nil); strings.Count(page, "Another policy was put in force") != 2 || !strings.Contains(page, "<del><code>") || !strings.Contains(page, "example/search_tickets#") {
		t.Errorf("of what was in force the page of the log says:\n%s", page)
	}
}

// TestGrownTakenBackAtClients: a gateway on another state directory, to which a client was connected,
// takes it back too; of one that nobody can name it is said what to run.
func TestGrownTakenBackAtClients(t *testing.T) {
	home, state := ownState(t), ownState(t)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, ".state"))
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".cursor/mcp.json", `{ "mcpServers": { "example": { "command": "writ", "args": ["example-server"] } } }`)
	command(t, "connect", "cursor", "--yes", "--state", state)
	const lines = `grown:
  - {"tool":"example/search_documents","arg":"/query","const":"C-1","by":"kim","at":"2026-11-22T10:00:00Z"}
`
	write(".config/writ/cursor/policy.grown.yaml", lines)
	config := filepath.Join(home, ".config/writ/cursor/writ.yaml")
	_, end := serving(t, "--state", state, "--config", config)
	remove := func() string {
		s := onTerminal(t, "", os.Environ(), "grown", "remove", "1")
		s.exits()
		return s.all()
	}
	if out := remove(); !strings.Contains(out, "taken back: ") || strings.Contains(out, "another state directory") {
		t.Errorf("the gateway was not found: %s", out)
	}
	end()
	write(".config/writ/cursor/policy.grown.yaml", lines)
	if out := remove(); !strings.Contains(out, "it counts at a gateway of another state directory until writ reload --state DIR") {
		t.Error(out)
	}
}

// TestGrownElsewhere: the same by writ watch and writ approve at another terminal, of
// a gateway that runs: it has the line in force at once, and takes it from nobody who
// may not answer, once, and not where the file was changed meanwhile.
func TestGrownElsewhere(t *testing.T) {
	g := newGrowth(t)
	serving(t, "--state", g.state, "--config", g.config)
	call := func(tool, arguments string) (string, int) {
		return piped77(t, "", "call", "--state", g.state, "--session", "demo", tool, arguments)
	}
	const act = `{"id":"INC-1042","resolution":"fixed"}`
	if out, code := call("close_ticket", act); code != 77 {
		t.Fatal(out)
	}
	open := func() (qs []approval.Shown) {
		if err := json.Unmarshal([]byte(command(t, "approve", "--json", "--state", g.state)), &qs); err != nil || len(qs) != 1 {
			t.Fatal(qs, err)
		}
		return qs
	}
	q := open()[0]
	if len(q.FromNowOn) != 2 || q.FromNowOn[0].Keep != approval.KeepSource || q.FromNowOn[1].Keep != approval.KeepValue || len(q.FromNowOn[0].Lines) != 1 {
		t.Fatalf("%+v", q.FromNowOn)
	}
	// Nobody keeps anything from no terminal of his own.
	for _, args := range [][]string{{"--yes", "--keep", "source"}, {"--yes"}} {
		if out, code := piped77(t, "", append([]string{"approve", q.ID, "--state", g.state}, args...)...); code != 77 || g.file() != "" {
			t.Errorf("%v: %d %s", args, code, out)
		}
	}
	s := onTerminal(t, "", nil, "approve", q.ID, "--state", g.state)
	s.expect(`\[n\] no`)
	s.press("f" + enter)
	s.expect(`\[Enter\] no`)
	s.press("y" + enter)
	s.expect(`yes: on record(?s:.*)from now on: example/close_ticket /id accepts what example/search_tickets#/tickets/\*/id returned`)
	if code := s.exits(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, id := range []string{"INC-1042", "INC-1043"} {
		if out, code := call("close_ticket", `{"id":"`+id+`","resolution":"fixed"}`); code != 0 {
			t.Errorf("%s: %d %s", id, code, out)
		}
	}
	s = onTerminal(t, "", nil, "approve", q.ID, "--yes", "--keep", "value", "--state", g.state)
	if code := s.exits(); code != 65 {
		t.Errorf("answered twice: %d", code)
	}

	// writ watch, with the file changed under it: the yes counts, nothing grows.
	removed := command(t, "grown", "remove", "1", "--config", g.config)
	if !strings.Contains(removed, "writ reload") {
		t.Error(removed)
	}
	w := onTerminal(t, "", nil, "watch", "--state", g.state)
	w.expect("watching")
	ask := func(then string) {
		w.press("n" + enter) // before there is a question, which it answers nothing of
		done := make(chan string, 1)
		go func() {
			out, code := call("fetch_document", `{"id":"doc-c56d17"}`)
			if code != 0 {
				out = "refused: " + out
			}
			done <- out
		}()
		w.expect(`\[n\] no`)
		w.press("f" + enter)
		w.expect(`I do not know`)
		w.press("1" + enter)
		w.expect(`\[Enter\] no`)
		w.press("y" + enter)
		w.expect(then)
		if out := <-done; strings.HasPrefix(out, "refused: ") {
			t.Error(out)
		}
	}
	ask(`nothing was kept(?s:.*)writ reload`)
	if g.file() != "" {
		t.Error(g.file())
	}
	re := onTerminal(t, "", nil, "reload", "--state", g.state)
	re.expect("in force")
	re.exits()
	ask(`from now on: our own people alone`)
	if out, code := call("fetch_document", `{"id":"doc-7f3a91"}`); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	w.press(ctrlC)
	w.exits()

	// In one command.
	if out, code := call("fetch_policy", `{"id":"POL-014"}`); code != 77 {
		t.Fatal(out)
	}
	s = onTerminal(t, "", nil, "approve", open()[0].ID, "--yes", "--keep", "ours", "--state", g.state)
	s.expect(`from now on: example/fetch_policy /id accepts what example/search_policies#/policies/\*/id returned, where our own people alone write`)
	s.exits()
	for _, id := range []string{"POL-014", "POL-021"} {
		if out, code := call("fetch_policy", `{"id":"`+id+`"}`); code != 0 {
			t.Errorf("%s: %d %s", id, code, out)
		}
	}
	if out, code := call("fetch_policy", `{"id":"helper@outside.example"}`); code != 77 {
		t.Fatal(out)
	}
	for _, keep := range []string{"closed", "all"} { // was not offered
		s = onTerminal(t, "", nil, "approve", open()[0].ID, "--keep", keep, "--state", g.state)
		if code := s.exits(); code != 64 {
			t.Errorf("--keep without --yes: %d", code)
		}
	}
	s = onTerminal(t, "", nil, "approve", open()[0].ID, "--yes", "--keep", "value", "--state", g.state)
	s.expect(`yes: on record\r\nfrom now on: example/fetch_policy /id accepts "helper@outside.example"`)
	s.exits()
	if out, code := call("fetch_policy", `{"id":"helper@outside.example"}`); code == 77 {
		t.Error(out)
	}
}

// TestWatchFirst: writ watch may be there before any gateway is, and goes on when one
// ends: a client starts and ends its own.
func TestWatchFirst(t *testing.T) {
	g := newGrowth(t)
	w := onTerminal(t, "", nil, "watch", "--state", g.state)
	w.expect("no gateway runs on this state directory yet")
	for i := range 2 {
		_, end := serving(t, "--state", g.state, "--config", g.config)
		done := make(chan string, 1)
		go func() {
			out, _ := piped77(t, "", "call", "--state", g.state, "--session", fmt.Sprintf("s%d", i), "close_ticket", `{"id":"INC-1042","resolution":"fixed"}`)
			done <- out
		}()
		w.expect(`\[n\] no`)
		w.press("n" + enter)
		w.expect(`no: on record`)
		<-done
		end()
	}
	w.press("\x03")
	w.exits()
}

// TestGrownGiven: the third answer, that nobody writes a field because the server gives
// what stands there. It keeps something only where strangers cannot have it do so, here and
// of what was learned.
func TestGrownGiven(t *testing.T) {
	who, and := `Who can write example/search_policies#/policies/\*/id\?(?s:.*)\[3\] nobody(?s:.*)I do not know`, `who can have the server give one(?s:.*)I do not know`
	for _, c := range []struct {
		name  string
		typed []string // each with what is shown before it
		grows string
	}{
		{"the server", []string{who, "3", and, "1", `from this source(?s:.*)which the server alone gives(?s:.*)\[Enter\] no`, "y"}, `"from":"example/search_policies#/policies/*/id","writes":"server"`},
		{"and anyone has it do so", []string{who, "3", and, "2", `exact value alone(?s:.*)\[Enter\] no`, "", `\[n\] no`, "n"}, ""},
		{"and nobody knows who", []string{who, "3", and, "", `exact value alone(?s:.*)\[Enter\] no`, "", `\[n\] no`, "n"}, ""},
		{"our own people", []string{who, "1", `from this source(?s:.*)where our own people alone write(?s:.*)\[Enter\] no`, "y"}, `"writes":"ours"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGrowth(t)
			s := onTerminal(t, "", nil, g.call("fetch_policy", `{"id":"POL-014"}`)...)
			s.expect(`\[n\] no`)
			s.press("f" + enter)
			for i := 0; i < len(c.typed); i += 2 {
				s.expect(c.typed[i])
				s.press(c.typed[i+1] + enter)
			}
			s.exits()
			if got := g.file(); !strings.Contains(got, c.grows) || (got == "") != (c.grows == "") {
				t.Errorf("grew %s", got)
			}
			if g.passes("fetch_policy", `{"id":"POL-021"}`) != (c.grows != "") {
				t.Errorf("another id of the field passes: %v", c.grows == "")
			}
		})
	}
	g := newGrowth(t)
	if g.passes("fetch_policy", `{"id":"POL-014"}`) {
		t.Fatal("it passes before")
	}
	s := onTerminal(t, "", nil, "learn", "--state", g.state, "--config", g.config)
	for _, typed := range [][2]string{{who, "3"}, {and, "1"}, {`"writes":"server"(?s:.*)\[Enter\] no`, "y"}} {
		s.expect(typed[0])
		s.press(typed[1] + enter)
	}
	s.expect("which the server alone gives")
	s.exits()
	if !g.passes("fetch_policy", `{"id":"POL-021"}`) || g.passes("fetch_policy", `{"id":"POL-999"}`) {
		t.Errorf("grew %s", g.file())
	}
}

// TestWatchDecisions: writ watch tells each decision as it is made, and none while a question
// stands at the terminal: these come behind it.
func TestWatchDecisions(t *testing.T) {
	g := newGrowth(t)
	serving(t, "--state", g.state, "--config", g.config)
	w := onTerminal(t, "", nil, "watch", "--state", g.state)
	w.expect("watching")
	decided := func(tool string) {
		if out, code := piped77(t, "", "call", "--state", g.state, "--session", "other", tool, `{"query":""}`); code != 0 {
			t.Fatalf("%d %s", code, out)
		}
	}
	decided("search_tickets")
	w.expect(`s_\w+/\d+  accepted  example/search_tickets`)
	done := make(chan struct{})
	go func() {
		defer close(done)
		piped77(t, "", "call", "--state", g.state, "--session", "demo", "fetch_policy", `{"id":"POL-014"}`)
	}()
	w.expect(`\[b\] exact bytes >`)
	decided("search_documents")
	w.press("b" + enter)
	w.expect(`\[b\] exact bytes >`)
	if strings.Contains(w.all(), "accepted  example/search_documents") {
		t.Error("a decision stands in an open question")
	}
	w.press("n" + enter)
	w.expect(`no: on record`)
	w.expect(`accepted  example/search_documents`)
	<-done
	w.press(ctrlC)
	w.exits()
}

// TestWatchGone: a question that was decided elsewhere leaves the terminal of writ watch by
// itself, and nothing that was typed at it, or as the next one came, answers that; who answers one whose call was
// not held is told that the agent had its answer already.
func TestWatchGone(t *testing.T) {
	g := newGrowth(t)
	serving(t, "--state", g.state, "--config", g.config)
	call := func(id string) (out string, code int) {
		return piped77(t, "", "call", "--state", g.state, "--session", "demo", "fetch_policy", `{"id":"`+id+`"}`)
	}
	if out, code := call("POL-014"); code != 77 || !strings.Contains(out, "approval.pending") { // nobody watches
		t.Fatalf("%d %s", code, out)
	}
	w := onTerminal(t, "", []string{"WRIT_SLOW_CLOCK=1"}, "watch", "--state", g.state)
	w.expect(`POL-014(?s:.*)the call is not held; with a yes it passes when it is made again\r\n  an answer counts until(?s:.*)\[b\] exact bytes > $`)
	w.press("y" + enter)
	w.expect(`yes: on record\r\nNo call was held for it any more: (?s:.*)Made again within ten minutes, it passes\.`)
	if out, code := call("POL-014"); code == 77 {
		t.Errorf("made again: %s", out)
	}
	asks := func(id string) (ended chan struct{}) {
		ended = make(chan struct{})
		go func() {
			defer close(ended)
			call(id)
		}()
		w.expect(id + `(?s:.*)the call is held until (?s:.*)\[b\] exact bytes > $`)
		return ended
	}
	ended := asks("POL-021")
	w.press("y") // and no more
	var qs []approval.Shown
	if err := json.Unmarshal([]byte(command(t, "approve", "--json", "--state", g.state)), &qs); err != nil || len(qs) != 1 || qs[0].Held.IsZero() {
		t.Fatal(qs, err)
	}
	s := onTerminal(t, "", nil, "approve", qs[0].ID, "--no", "--state", g.state)
	s.expect(`no: on record`)
	if s.exits(); strings.Contains(s.all(), "No call was held") {
		t.Errorf("its call was held: %s", s.all())
	}
	w.expect(`it waits no more: somebody answered it`)
	<-ended
	ended = asks("POL-099")
	w.press("y" + enter) // on its way as one question took the place of the other
	w.expect(`not taken: (?s:.*)\[b\] exact bytes > $`)
	w.press("x" + enter)
	w.expect(`that is no answer: type y(?s:.*)\[b\] exact bytes > $`)
	w.press("n" + enter)
	w.expect(`no: on record\r\n`)
	<-ended
	if strings.Contains(w.all()[strings.Index(w.all(), "POL-099"):], "yes: on record") {
		t.Error("what was typed at one question answers another")
	}
	w.press(ctrlC)
	w.exits()
}
