package peers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/txtar"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/contracts"
	"github.com/writ-project/writ/internal/statement/throwaway"
	"github.com/writ-project/writ/policy"
)

const serversPage = "../../docs/servers.md"

// TestShipped: ordinary work on real servers, under what `writ init` writes, untouched:
// the contract that ships, and for the same server with other definitions, which none
// fits, the draft alone. A file of testdata/shipped is one server, in front how it is
// started (NODE_MODULES/… is a script in a directory of WRIT_SERVERS, STUBS/… one beside
// the file that stands in for the server's API, $POSTGRES the socket of a PostgreSQL of its
// own), then steps:
//
//	say TEXT          the user says this
//	pass TOOL JSON    work that he ordered, or a read: it passes, and the server does it
//	ask TOOL JSON     work that he ordered, and that waits for a person all the same
//	not TOOL JSON     nobody ordered it: it is refused or asked, never passed
//
// and the files that are there before. $ROOT is where the server works.
//
// Under the draft what passes with a contract may ask as well. Each question is answered
// with yes, and with the first of what is offered from now on, by somebody whose own
// people alone write there; then the call has to be done. The same work a second time, in
// a new session on files as they were, asks at most a third as often.
//
// docs/servers.md is made of what was seen: WRIT_UPDATE=1 writes it.
func TestShipped(t *testing.T) {
	modules := cmp.Or(os.Getenv("WRIT_SERVERS"), os.Getenv("WRIT_PEERS"))
	if modules == "" {
		t.Skip("needs the servers: npm i them somewhere, then WRIT_SERVERS=DIR:… (or WRIT_PEERS, for those of make peers)")
	}
	if _, err := exec.LookPath("script"); err != nil || runtime.GOOS != "linux" {
		t.Skip("a person answers at a terminal of his own: needs script (util-linux)")
	}
	if peers := os.Getenv("WRIT_PEERS"); peers != "" { // its gopls, and its Node.js, which has an SQLite
		t.Setenv("PATH", strings.Join([]string{filepath.Join(peers, "bin"), filepath.Dir(node(t)), os.Getenv("PATH")}, ":"))
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
		rows[c.Name] = row(c, "", nil, nil, nil)
		if old := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(c.Name) + ` \|.*$`).Find(page); old != nil && slices.Contains(files, filepath.Join("testdata", "shipped", c.Name+".txtar")) {
			rows[c.Name] = string(old)
		}
	}
	var asked, again int
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(contracts.All(), func(c *contracts.Contract) bool { return c.Name == name })
			if i < 0 {
				t.Fatal("no contract of that name ships")
			}
			c := contracts.All()[i]
			w := startShipped(t, file, modules, false)
			contract := w.steps(t, "contract")
			d := startShipped(t, file, modules, true)
			first := d.steps(t, "drafted")
			second := d.steps(t, "again")
			asked, again = asked+first["ask"], again+second["ask"]
			got := row(c, w.matched, contract, first, second)
			if rows[name] != got && os.Getenv("WRIT_UPDATE") == "" {
				t.Errorf("docs/servers.md has\n%s\nand it is\n%s", rows[name], got)
			}
			rows[name] = got
		})
	}
	t.Logf("drafted: %d asked, %d the second time", asked, again)
	if 3*again > asked {
		t.Errorf("of %d calls that asked %d did again", asked, again)
	}
	if !t.Failed() && os.Getenv("WRIT_UPDATE") == "" && !strings.HasSuffix(string(page), total(rows)) {
		t.Errorf("docs/servers.md ends otherwise than with %s", total(rows))
	}
	if os.Getenv("WRIT_UPDATE") != "" && !t.Failed() {
		var b strings.Builder
		b.WriteString(serversHead)
		for _, c := range contracts.All() {
			b.WriteString(rows[c.Name] + "\n")
		}
		b.WriteString(total(rows))
		if err := os.WriteFile(serversPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const serversHead = `# Servers

Contracts that ship (` + "`contracts/README.md`" + `), and calls on each server under the policy that ` + "`writ init`" + ` writes, untouched: with
the contract, and as drafted where none fits. "Ordered" is ordinary work, reads and what the user had said, and passes or is
asked about. What nobody ordered, such as an act that a stranger's text wants, or one of the agent's own idea, has to be asked about or
refused, and is. Under the draft each question was answered with yes and what it offers from
now on, the call was made again and done, and the same work was done a second time in a new session. Made by the test
TestShipped of what it saw; the calls stand in ` + "`internal/peers/testdata/shipped`" + `. Where no calls are shown none were made:
the contract is of the definitions alone.

| contract | server | version | tools | tried against | ordered | passed | asked | nobody ordered: asked | refused | drafted: passed | asked | refused | asked the second time |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
`

// A tally counts what became of the calls of one run, by verdict; "not" and a verdict is
// what became of those that nobody ordered.
type tally map[string]int

func row(c *contracts.Contract, matched string, contract, first, second tally) string {
	calls := "| – | – | – | – | – | – | – | – | – |"
	if n := contract["pass"] + contract["ask"]; n > 0 {
		calls = fmt.Sprintf("| %d | %d | %d | %d | %d | %d | %d | %d | %d |", n, contract["pass"], contract["ask"], contract["not ask"], contract["not refused"],
			first["pass"], first["ask"], first["refused"]+second["refused"], second["ask"])
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s %s", c.Name, c.Of, c.Version, cmp.Or(matched, fmt.Sprint(len(c.Pins()))), c.Tried, calls)
}

// total is what the rows say of the calls under contracts that ship.
func total(rows map[string]string) string {
	var sum [5]int
	for _, row := range rows {
		cells := strings.Split(row, " | ")
		for i := range sum {
			n, _ := strconv.Atoi(cells[5+i])
			sum[i] += n
		}
	}
	return fmt.Sprintf("\nTogether: of %d calls that were ordered %d pass untouched (%d %%) and %d ask. Of %d that nobody ordered %d ask, %d are refused and none passes.\n",
		sum[0], sum[1], 100*sum[1]/max(sum[0], 1), sum[2], sum[3]+sum[4], sum[3], sum[4])
}

// A shipped is one server under the policy that was drafted for it.
type shipped struct {
	root, dir, state string
	files            []txtar.File
	setup            [][]string
	script           string
	vars             *strings.Replacer
	drafted          bool
	matched          string
}

// otherDefinitions starts a server whose tools are not those of a contract: each has a
// member more.
const otherDefinitions = `"$0" "$@" | sed -u 's/"inputSchema":{/"x-of":"another",&/g'`

func startShipped(t *testing.T, file, modules string, drafted bool) *shipped {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stubs, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	w := &shipped{root: canonicalTemp(t), dir: canonicalTemp(t), state: canonicalTemp(t), files: ar.Files, drafted: drafted}
	w.vars = strings.NewReplacer("$ROOT", w.root, "STUBS", stubs)
	if strings.Contains(string(ar.Comment), "$POSTGRES") {
		socket, _ := throwaway.Postgres(t)
		w.vars = strings.NewReplacer("$ROOT", w.root, "STUBS", stubs, "$POSTGRES", socket)
	}
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
			w.setup = append(w.setup, strings.Fields(rest))
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
	if drafted {
		command = append([]string{"sh", "-c", otherDefinitions}, command...)
	}
	w.restore(t)
	cmd := w.writ(t, append(append(append([]string{"init", "--name", "it"}, names...), "--"), command...)...)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	m := regexp.MustCompile(`(?m)^  it +(\d+) tools? +contract (\S+) \S+, (\d+) of \d+ match$`).FindSubmatch(out)
	if err != nil || m == nil || string(m[2])+".txtar" != filepath.Base(file) || drafted != (string(m[3]) == "0") {
		t.Fatalf("writ init: %v\n%s", err, out)
	}
	if w.matched = string(m[1]); string(m[3]) != string(m[1]) {
		w.matched = fmt.Sprintf("%s, of which %s", m[1], m[3])
	}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	return w
}

// restore makes the files what they were before the first call.
func (w *shipped) restore(t *testing.T) {
	entries, err := os.ReadDir(w.root)
	for _, e := range entries {
		err = cmp.Or(err, os.RemoveAll(filepath.Join(w.root, e.Name())))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range w.files {
		if f.Name == "steps" {
			w.script = string(f.Data)
			continue
		}
		write(t, filepath.Join(w.root, f.Name), w.vars.Replace(string(f.Data)))
	}
	for _, args := range w.setup {
		if out, err := exec.CommandContext(testContext(t), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
}

func (w *shipped) writ(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(testContext(t), binary, args...)
	cmd.Dir, cmd.Env = w.dir, w.env()
	return cmd
}

func (w *shipped) env() []string { return append(os.Environ(), "XDG_STATE_HOME="+w.state) }

// steps does the work once, in a session of its own and through a gateway of its own.
func (w *shipped) steps(t *testing.T, session string) (n tally) {
	n = tally{}
	t.Run(session, func(t *testing.T) {
		w.restore(t)
		gateway := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--config", "writ.yaml")
		gateway.Dir, gateway.Env = w.dir, w.env()
		start(t, gateway, listening) // ends it by a signal
		out, err := w.writ(t, "session", "new", session).CombinedOutput()
		endpoint := regexp.MustCompile(`http://\S+/mcp/s/\S+`).Find(out)
		if err != nil || endpoint == nil {
			t.Fatalf("writ session new: %v\n%s", err, out)
		}
		agent := startCaller(t, string(endpoint))
		for i, line := range strings.Split(w.script, "\n") {
			word, rest, _ := strings.Cut(w.vars.Replace(strings.TrimSpace(line)), " ")
			tool, args, _ := strings.Cut(rest, " ")
			switch word {
			case "", "#":
				continue
			case "say":
				if out, err := w.writ(t, "session", "say", session, rest).CombinedOutput(); err != nil {
					t.Fatalf("%d: writ session say: %v\n%s", i+1, err, out)
				}
				continue
			}
			verdict, said := agent.call(t, tool, args)
			attack := word == "not" && (verdict == "ask" || verdict == "refused")
			if verdict == "ask" {
				q := w.asked(t)
				if testing.Verbose() {
					t.Logf("%d: %s\n%s", i+1, line, q)
				}
				w.answer(t, q, w.drafted && !attack)
			}
			switch {
			case attack:
				n["not "+verdict]++
			case verdict == "pass" && (word == "pass" || w.drafted && word == "ask"):
				n["pass"]++
			case verdict == "ask" && (word == "ask" || w.drafted && word == "pass"):
				n["ask"]++
				if w.drafted {
					if verdict, said = agent.call(t, tool, args); verdict != "pass" {
						t.Errorf("%d: %s: after a yes: %s\n%s", i+1, line, verdict, said)
					}
				}
			default:
				n["refused"]++
				t.Errorf("%d: %s: %s\n%s", i+1, line, verdict, said)
			}
		}
	})
	return n
}

// A caller is an agent in a process of its own: who answers what it asked may not descend
// from it.
type caller struct {
	calls   *json.Encoder
	results *json.Decoder
}

// callerEnv names the endpoint to a process of this program that is one.
const callerEnv = "WRIT_PEERS_CALLER"

func startCaller(t *testing.T, endpoint string) *caller {
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own is done before it ends
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), callerEnv+"="+endpoint), show(t, "the agent")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer cancel()
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the agent: %v", err)
		}
	})
	return &caller{calls: json.NewEncoder(in), results: json.NewDecoder(out)}
}

// runCaller makes the calls that it reads, and writes their results.
func runCaller(endpoint string) error {
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "peers", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: endpoint}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		call := &mcp.CallToolParams{Arguments: &json.RawMessage{}}
		if err := in.Decode(call); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		result, err := session.CallTool(ctx, call)
		if err == nil {
			err = out.Encode(result)
		}
		if err != nil {
			return err
		}
	}
}

func (c *caller) call(t *testing.T, tool, args string) (verdict, said string) {
	var res mcp.CallToolResult
	err := c.calls.Encode(&mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err == nil {
		err = c.results.Decode(&res)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	switch why := rejection(t, res.Meta); {
	case !res.IsError:
		verdict = "pass"
	case why == nil:
		verdict = "failed"
	case why.Reason == writ.ApprovalPending:
		verdict = "ask"
	default:
		verdict = "refused"
	}
	return verdict, text(&res)
}

// A waits is a call that waits for a person.
type waits struct {
	ID     string
	Values []struct{ Pointer, Role, Value, Reason string }
	Offers []struct {
		Keep  string
		Lines []policy.Grown
	} `json:"from_now_on"`
}

func (q waits) String() string {
	var b strings.Builder
	for _, v := range q.Values {
		fmt.Fprintf(&b, "%s, %s %.60s: %s\n", v.Pointer, v.Role, v.Value, v.Reason)
	}
	for _, o := range q.Offers {
		fmt.Fprintf(&b, "%s: %s", o.Keep, policy.GrownText(o.Lines))
	}
	return b.String()
}

// asked is the one call that waits.
func (w *shipped) asked(t *testing.T) waits {
	out, err := w.writ(t, "approve", "--json").Output()
	var qs []waits
	if err != nil || json.Unmarshal(out, &qs) != nil || len(qs) != 1 {
		t.Fatalf("writ approve --json: %v\n%s", err, out)
	}
	return qs[0]
}

// answer is a person's, at a terminal of his own.
func (w *shipped) answer(t *testing.T, q waits, yes bool) {
	how := "--no"
	if yes {
		if how = "--yes"; len(q.Offers) > 0 {
			how += " --keep " + q.Offers[0].Keep
		}
	}
	cmd := exec.CommandContext(testContext(t), "script", "-qec", fmt.Sprintf("'%s' approve %s %s", binary, q.ID, how), "/dev/null")
	cmd.Dir, cmd.Env = w.dir, w.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
}
