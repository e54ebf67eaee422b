package peers

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/writ-project/writ/contracts"
)

const serversPage = "../../docs/servers.md"

// TestShipped: ordinary work on real servers, under the contract that ships and nothing
// else: what `writ init` writes for the server, untouched. A file of testdata/shipped is
// one server, in front how it is started (NODE_MODULES/… is a script in a directory of
// WRIT_SERVERS, STUBS/… one beside the file that stands in for the server's API), then
// steps:
//
//	say TEXT          the user says this
//	pass TOOL JSON    the call passes, and the server does it
//	ask TOOL JSON     it waits for a person
//	not TOOL JSON     an attack: it is refused or asked, never passed
//
// and the files that are there before. $ROOT is where the server works. docs/servers.md
// is made of what was seen: WRIT_UPDATE=1 writes it.
func TestShipped(t *testing.T) {
	modules := cmp.Or(os.Getenv("WRIT_SERVERS"), os.Getenv("WRIT_PEERS"))
	if modules == "" {
		t.Skip("needs the servers: npm i them somewhere, then WRIT_SERVERS=DIR:… (or WRIT_PEERS, for those of make peers)")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "shipped", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	page, err := os.ReadFile(serversPage)
	if err != nil && os.Getenv("WRIT_UPDATE") == "" {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, c := range contracts.All() {
		rows[c.Name] = row(c, "", 0, 0)
		if old := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(c.Name) + ` \|.*$`).Find(page); old != nil {
			rows[c.Name] = string(old)
		}
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(contracts.All(), func(c *contracts.Contract) bool { return c.Name == name })
			if i < 0 {
				t.Fatal("no contract of that name ships")
			}
			c := contracts.All()[i]
			w := startShipped(t, file, modules)
			w.steps()
			got := row(c, w.matched, w.passed, w.asked)
			if rows[name] != got && os.Getenv("WRIT_UPDATE") == "" {
				t.Errorf("docs/servers.md has\n%s\nand it is\n%s", rows[name], got)
			}
			rows[name] = got
		})
	}
	if os.Getenv("WRIT_UPDATE") != "" && !t.Failed() {
		var b strings.Builder
		b.WriteString(serversHead)
		for _, c := range contracts.All() {
			b.WriteString(rows[c.Name] + "\n")
		}
		if err := os.WriteFile(serversPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const serversHead = `# Servers

Contracts that ship (` + "`contracts/README.md`" + `), and ordinary calls on each server under the policy that ` + "`writ init`" + ` writes,
untouched. Made by the test TestShipped of what it saw; the calls stand in ` + "`internal/peers/testdata/shipped`" + `. Where no
calls are shown none were made: the contract is of the definitions alone.

| contract | server | version | tools | tried against | calls | passed | asked |
|---|---|---|---|---|---|---|---|
`

func row(c *contracts.Contract, matched string, passed, asked int) string {
	calls := "| – | – | – |"
	if passed+asked > 0 {
		calls = fmt.Sprintf("| %d | %d | %d |", passed+asked, passed, asked)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s %s", c.Name, c.Of, c.Version, cmp.Or(matched, fmt.Sprint(len(c.Pins()))), c.Tried, calls)
}

// A shipped is one server under the policy that was drafted for it.
type shipped struct {
	t             *testing.T
	dir, state    string
	script        string
	vars          *strings.Replacer
	matched       string
	passed, asked int
}

func startShipped(t *testing.T, file, modules string) *shipped {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root := canonicalTemp(t)
	stubs, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	w := &shipped{t: t, dir: canonicalTemp(t), state: canonicalTemp(t), vars: strings.NewReplacer("$ROOT", root, "STUBS", stubs)}
	var setup [][]string
	var command, env, names []string
	for _, line := range strings.Split(strings.TrimSpace(string(ar.Comment)), "\n") {
		word, rest, _ := strings.Cut(line, ": ")
		switch rest = w.vars.Replace(rest); word {
		case "start":
			command = strings.Fields(rest)
		case "env":
			name, _, _ := strings.Cut(rest, "=")
			env, names = append(env, rest), append(names, "--env", name)
		case "setup":
			setup = append(setup, strings.Fields(rest))
		case "needs":
			if _, err := exec.LookPath(rest); err != nil {
				t.Skipf("%s is not installed", rest)
			}
		default:
			t.Fatalf("%s: %q", file, line)
		}
	}
	if script, ok := strings.CutPrefix(command[0], "NODE_MODULES/"); ok {
		command[0] = ""
		for _, dir := range filepath.SplitList(modules) {
			if at := filepath.Join(dir, "node_modules", script); command[0] == "" {
				if _, err := os.Stat(at); err == nil {
					command[0] = at
				}
			}
		}
		node, err := exec.LookPath("node")
		if err != nil || command[0] == "" {
			t.Skipf("the server is not installed, or node is not: %s", script)
		}
		command = append([]string{node}, command...)
	} else if command[0], err = exec.LookPath(command[0]); err != nil {
		t.Skipf("the server is not installed: %v", err)
	}
	for _, f := range ar.Files {
		if f.Name == "steps" {
			w.script = string(f.Data)
			continue
		}
		write(t, filepath.Join(root, f.Name), w.vars.Replace(string(f.Data)))
	}
	for _, args := range setup {
		if out, err := exec.CommandContext(testContext(t), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	cmd := w.writ(append(append(append([]string{"init", "--name", "it"}, names...), "--"), command...)...)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	m := regexp.MustCompile(`(?m)^  it +(\d+) tools   contract (\S+) \S+, (\d+) of \d+ match$`).FindSubmatch(out)
	if err != nil || m == nil || string(m[2])+".txtar" != filepath.Base(file) {
		t.Fatalf("writ init: %v\n%s", err, out)
	}
	if w.matched = string(m[1]); string(m[3]) != string(m[1]) {
		w.matched = fmt.Sprintf("%s, of which %s", m[1], m[3])
	}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	if out, err := w.writ("session", "new", "s").CombinedOutput(); err != nil {
		t.Fatalf("writ session new: %v\n%s", err, out)
	}
	return w
}

func (w *shipped) writ(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(testContext(w.t), binary, args...)
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), "XDG_STATE_HOME="+w.state)
	return cmd
}

func (w *shipped) steps() {
	for i, line := range strings.Split(w.script, "\n") {
		word, rest, _ := strings.Cut(w.vars.Replace(strings.TrimSpace(line)), " ")
		tool, args, _ := strings.Cut(rest, " ")
		switch word {
		case "", "#":
			continue
		case "say":
			if out, err := w.writ("session", "say", "s", rest).CombinedOutput(); err != nil {
				w.t.Fatalf("%d: writ session say: %v\n%s", i+1, err, out)
			}
			continue
		}
		out, code := w.called(tool, args)
		verdict := "refused"
		switch {
		case code == 0:
			verdict = "pass"
		case bytes.Contains(out, []byte("approval.pending")):
			verdict = "ask"
		case code != 77:
			verdict = "failed"
		}
		switch {
		case word == "not" && (verdict == "ask" || verdict == "refused"):
			continue
		case word != verdict:
			w.t.Errorf("%d: %s: %s\n%s", i+1, line, verdict, out)
		}
		if verdict == "pass" {
			w.passed++
		} else {
			w.asked++
		}
	}
}

func (w *shipped) called(tool, args string) (out []byte, code int) {
	cmd := w.writ("call", "--session", "s", "--config", "writ.yaml", tool, args)
	out, _ = cmd.CombinedOutput()
	return out, cmd.ProcessState.ExitCode()
}
