package peers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/memory"
)

// A story is one file in testdata/memory_story: what an agent does with the
// governed memory over the real wire, and beside it NAME.golden, what came of
// each step. Ids in it are those the memory mints, which are the same each
// time; times, sessions and hashes are taken out.
type story struct {
	// About says what it shows, and names the attacks it is.
	About string `yaml:"about"`
	// Over are the ways to play it: http, stdio.
	Over  []string    `yaml:"over"`
	Steps []storyStep `yaml:"steps"`
}

// A storyStep is one of say, call and writ.
type storyStep struct {
	// Note is printed before the step.
	Note string `yaml:"note"`
	// Session is the one the step is in; the first one by default.
	Session string `yaml:"session"`
	// Say are the user's own words, put on record by `writ session say`.
	Say string `yaml:"say"`
	// Call is a tool, Args its arguments.
	Call string         `yaml:"call"`
	Args map[string]any `yaml:"args"`
	// Show are the parts of an answer to print, by their pointers; null prints
	// all of it.
	Show []string `yaml:"show"`
	// Writ is a command line of the operator, while the gateway runs; $DIR is a
	// directory of its own, $DECISION the gate's decision of the last call.
	Writ []string `yaml:"writ"`
	// Gone is a text the answer of this call, or command, must not hold.
	Gone string `yaml:"gone"`
}

// storyPolicy has two servers that list the same things, each its own family
// of tools: two independent sources. What a ticket says anybody can have
// written.
const storyPolicy = `
pins: optional
collections:
  ticket: { closed: true }
  document: { closed: true }
tools:
  desk/search_tickets:
    effect: read
    outputs: [{ at: /tickets/*/id, label: system, type: id, collection: ticket, authoritative: true }]
  desk/search_documents:
    effect: read
    outputs: [{ at: /documents/*/id, label: system, type: id, collection: document, authoritative: true }]
  desk/fetch_ticket:
    effect: read
    outputs: [{ at: /text, label: external }]
  desk/delete_document:
    effect: write # what is recalled is shown here, not what may be destroyed (R9)
    args: { /id: { role: selector, type: id, collection: document, from: [output] } }
  ledger/search_tickets:
    effect: read
    outputs: [{ at: /tickets/*/id, label: system, type: id, collection: ticket, authoritative: true }]
`

// conversation is a client of the TypeScript SDKs in one session, driven step
// by step over one connection.
type conversation struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// converse starts a client and returns when it has listed the tools.
func converse(t *testing.T, argv ...string) *conversation {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), node(t), append([]string{filepath.Join(peersDir(t), "client.mjs")}, argv...)...)
	cmd.Stderr = show(t, "the client")
	cmd.WaitDelay = 5 * time.Second
	c := &conversation{t: t, cmd: cmd}
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	c.out.Buffer(nil, 8<<20)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Wait() }) // the test's context has ended it, unless end did
	c.line()
	return c
}

// end closes the client's input, at which it closes its connection and ends.
func (c *conversation) end() {
	c.t.Helper()
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("the client: %v", err)
	}
}

func (c *conversation) line() []byte {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the client ended: %v", c.out.Err())
	}
	return bytes.Clone(c.out.Bytes())
}

// ask sends one line and returns the answer's result.
func (c *conversation) ask(line any) json.RawMessage {
	c.t.Helper()
	b, err := json.Marshal(line)
	if err == nil {
		_, err = c.in.Write(append(b, '\n'))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	var got struct {
		Result json.RawMessage
		Threw  *string
	}
	if err := json.Unmarshal(c.line(), &got); err != nil || got.Threw != nil {
		c.t.Fatalf("%s: %v %s", b, err, *got.Threw)
	}
	return got.Result
}

// settled waits until the gateway lists the tools.
func (c *conversation) settled(tools []string) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		var list struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal(c.ask(map[string]any{"do": "listTools"}), &list); err != nil {
			c.t.Fatal(err)
		}
		missing := slices.DeleteFunc(slices.Clone(tools), func(name string) bool {
			return slices.ContainsFunc(list.Tools, func(x struct{ Name string }) bool { return x.Name == name })
		})
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%q are not among the tools listed: %v", missing, list.Tools)
		}
	}
}

var storyClients = []struct{ sdk, version, over string }{
	{"sdk", "2025-11-25", "http"},
	{"client", "2025-11-25", "http"},
	{"client", "2026-07-28", "http"},
	{"sdk", "2025-11-25", "stdio"},
}

// TestMemoryStories plays each story with the TypeScript clients of both
// generations: they come to the same outcomes, over one connection each.
func TestMemoryStories(t *testing.T) {
	peersDir(t)
	files, err := filepath.Glob(filepath.Join("testdata", "memory_story", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var s story
		if err := yaml.Load(b, &s, yaml.WithKnownFields(), yaml.WithUniqueKeys(), yaml.WithSingleDocument()); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := strings.TrimSuffix(file, ".yaml")
		for _, c := range storyClients {
			if slices.Contains(s.Over, c.over) {
				t.Run(fmt.Sprintf("%s/%s-%s/%s", filepath.Base(name), c.sdk, c.version, c.over), func(t *testing.T) {
					got := s.tell(t, c.sdk, c.version, c.over)
					golden := name + ".golden"
					if *update {
						if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
							t.Fatal(err)
						}
					}
					want, err := os.ReadFile(golden)
					if err != nil {
						t.Fatal(err)
					}
					if got != string(want) {
						t.Errorf("it tells\n%s\nand not %s; if the change is meant: go test ./internal/peers -run TestMemoryStories -update", differ(got, string(want)), golden)
					}
				})
			}
		}
	}
}

// differ is the first lines that differ, with what is around them.
func differ(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	from := max(0, i-4)
	return fmt.Sprintf("%s\n-- where it should be --\n%s", strings.Join(g[from:min(len(g), i+6)], "\n"), strings.Join(w[from:min(len(w), i+6)], "\n"))
}

// tell plays a story and returns what came of each step.
func (s *story) tell(t *testing.T, sdk, version, over string) string {
	dir, state := canonicalTemp(t), canonicalTemp(t)
	write(t, filepath.Join(dir, "policy.yaml"), storyPolicy)
	config := config(behind{name: "desk", command: []string{binary, "example-server"}},
		behind{name: "ledger", command: []string{binary, "example-server"}}) + "memory: {}\n"
	write(t, filepath.Join(dir, "writ.yaml"), config)
	if over == "http" {
		serve(t, dir, state)
	}
	clients := map[string]*conversation{}
	open := func(name string) *conversation {
		if c := clients[name]; c != nil {
			return c
		}
		argv := []string{sdk, over, version}
		if over == "http" {
			out, code := run(t, exec.CommandContext(testContext(t), binary, "session", "new", name, "--state", state), nil)
			if code != 0 {
				t.Fatalf("writ session new: %d %s", code, out)
			}
			argv = append(argv, strings.TrimSpace(out))
		} else {
			argv = append(argv, binary, "run", "--state", state, "--config", filepath.Join(dir, "writ.yaml"))
		}
		c := converse(t, argv...)
		c.settled([]string{memory.ToolPropose, "ledger__search_tickets", "delete_document"})
		clients[name] = c
		return c
	}
	var out strings.Builder
	decision := ""
	fmt.Fprintf(&out, "%s\n", strings.TrimSpace(s.About))
	for i, st := range s.Steps {
		name := st.Session
		if name == "" {
			name = "first"
		}
		c := open(name)
		var came string
		if st.Note != "" {
			fmt.Fprintf(&out, "\n== %s\n", st.Note)
		}
		switch {
		case st.Say != "":
			said, code := run(t, exec.CommandContext(testContext(t), binary, "session", "say", name, st.Say, "--state", state), nil)
			if code != 0 {
				t.Fatalf("step %d: writ session say: %d %s", i+1, code, said)
			}
			came = fmt.Sprintf("say %s\n  %s\n", st.Say, strings.TrimSpace(said))
		case st.Call != "":
			if st.Args == nil {
				st.Args = map[string]any{}
			}
			res := c.ask(map[string]any{"tool": st.Call, "args": st.Args})
			decision, _ = strictjson.Text(strictjson.Get(strictjson.Get(res, "_meta"), "io.github.writ-project/decision"))
			args, err := json.Marshal(st.Args)
			if err != nil {
				t.Fatal(err)
			}
			if st.Gone != "" && bytes.Contains(res, []byte(st.Gone)) {
				t.Errorf("step %d, %s: the answer holds %q: %s", i+1, st.Call, st.Gone, res)
			}
			came = fmt.Sprintf("%s %s\n%s", st.Call, args, storyOutcome(t, res, st.Show))
		default:
			argv := []string{"--state", state}
			for i := range st.Writ {
				argv = slices.Insert(argv, i, strings.NewReplacer("$DIR", dir, "$DECISION", decision).Replace(st.Writ[i]))
			}
			said, code := run(t, exec.CommandContext(testContext(t), binary, argv...), nil)
			said = strings.NewReplacer(dir, "$DIR", state, "$STATE").Replace(said)
			if st.Gone != "" && strings.Contains(said, st.Gone) {
				t.Errorf("step %d, %q: it says %q: %s", i+1, st.Writ, st.Gone, said)
			}
			came = fmt.Sprintf("writ %s\n  exit code %d\n%s", strings.Join(st.Writ, " "), code, indented(said))
		}
		if st.Session != "" {
			fmt.Fprintf(&out, "[%s] ", st.Session)
		}
		out.WriteString(normal(came))
	}
	for _, c := range clients {
		c.end()
	}
	verify(t, state)
	return out.String()
}

// storyOutcome prints what a client was given: of a proposal its outcome in
// lines, of everything else the parts that were asked for.
func storyOutcome(t *testing.T, result []byte, show []string) string {
	t.Helper()
	content := strictjson.Get(result, "structuredContent")
	if content == nil { // an everyday tool's
		said, _ := strictjson.Text(strictjson.At(result, "/content/0/text"))
		content = []byte(said)
	}
	var b strings.Builder
	if refusal := strictjson.Get(strictjson.Get(result, "_meta"), "io.github.writ-project/outcome"); refusal != nil {
		if content = refusal; strictjson.Get(refusal, "decision_id") == nil {
			b.WriteString("  by the gate:\n")
		}
	}
	var o memory.Outcome
	if strictjson.Get(content, "status") != nil && json.Unmarshal(content, &o) == nil {
		fmt.Fprintf(&b, "  %s %s", o.Status, o.Decision)
		if r := o.Rejection; r != nil {
			fmt.Fprintf(&b, " %s %s", r.Code, r.Reason)
			for _, f := range r.Failures {
				fmt.Fprintf(&b, "\n    %s %s: %s", f.Pointer, f.Reason, f.Need)
			}
		}
		b.WriteByte('\n')
		for _, e := range o.Effects {
			fmt.Fprintf(&b, "    %s %s\n", e.Effect, e.ID)
		}
		for _, c := range o.Transitions {
			fmt.Fprintf(&b, "    %s: %s -> %s by %s\n", c.Proposition, c.Prior, c.Next, c.Rule)
		}
		for _, a := range o.Advisories {
			fmt.Fprintf(&b, "    advice: %s %s\n", a.Effect, a.ID)
		}
		return b.String()
	}
	var kept memory.Kept
	if strictjson.Get(content, "why") != nil && json.Unmarshal(content, &kept) == nil {
		fmt.Fprintf(&b, "  %s %s: %s\n", kept.Trust, kept.ID, kept.Why)
		if kept.Quote != "" {
			fmt.Fprintf(&b, "    %q\n", kept.Quote)
		}
		return b.String()
	}
	if ev := strictjson.Get(strictjson.Get(result, "_meta"), "io.github.writ-project/evidence"); ev != nil {
		id, _ := strictjson.Text(strictjson.Get(ev, "id"))
		fmt.Fprintf(&b, "  evidence %s\n", id)
	}
	if show == nil {
		show = []string{""}
	}
	for _, at := range show {
		v := content
		for _, name := range strings.Split(at, "/")[1:] {
			if items, ok := strictjson.Elements(v); ok {
				var i int
				if _, err := fmt.Sscan(name, &i); err != nil {
					t.Fatalf("%s: %v", at, err)
				}
				if v = nil; i < len(items) {
					v = items[i]
				}
				continue
			}
			v = strictjson.Get(v, name)
		}
		if v == nil {
			fmt.Fprintf(&b, "  %s not there\n", at)
			continue
		}
		if at != "" {
			at += " "
		}
		if items, ok := strictjson.Elements(v); ok && at == "/items " {
			fmt.Fprintf(&b, "  %d found\n", len(items))
			for _, raw := range items {
				var it memory.Item
				if err := json.Unmarshal(raw, &it); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "    %s %s, %s, %s: %q\n", it.Trust, it.ID, it.From, it.On, it.Text)
				for _, more := range []string{strings.TrimSuffix(it.About+" = "+it.Value, " = "), it.Note} {
					if more != "" {
						fmt.Fprintf(&b, "      %s\n", more)
					}
				}
			}
			continue
		}
		var flat, pretty bytes.Buffer
		if err := errors.Join(json.Compact(&flat, v), json.Indent(&pretty, v, "  ", "  ")); err != nil {
			t.Fatal(err)
		}
		if flat.Len() > 120 {
			flat = pretty
		}
		fmt.Fprintf(&b, "  %s%s\n", at, &flat)
	}
	return b.String()
}

func indented(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

var normals = []struct {
	found *regexp.Regexp
	with  string
}{
	{regexp.MustCompile(`s_[a-z2-7]{8,}`), "s_…"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`), "DAY"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "HASH"},
	{regexp.MustCompile(`local:\d+`), "local:UID"},
}

// normal takes out of a text what differs from run to run.
func normal(s string) string {
	for _, n := range normals {
		s = n.found.ReplaceAllString(s, n.with)
	}
	return s
}
