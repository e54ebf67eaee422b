//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/example"
)

func init() {
	// knock asks the gateways of a state directory for a way into their consoles.
	programs["knock"] = func() {
		f := flags{state: os.Args[1]}
		_, doors, err := f.reach(false)
		must(err)
		for _, door := range doors {
			for _, what := range []string{"POST /console", "POST /console?code"} {
				var way wayIn
				status, err := exchange(context.Background(), door, what, "", nil, 1<<16, &way)
				fmt.Println(status, err, way.URL, way.Code, way.Error)
			}
		}
	}
}

func init() {
	// asking-client is a client over stdio, whose agent makes a call that needs a person. It
	// says what came of it, and stays until its input ends.
	programs["asking-client"] = func() {
		gateway := exec.Command("writ", "run", "--state", os.Args[1], "--config", os.Args[2], "--only", "example")
		in, err := gateway.StdinPipe()
		must(err)
		out, err := gateway.StdoutPipe()
		must(err)
		must(gateway.Start())
		lines := bufio.NewReader(out)
		for _, message := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"delete_document","arguments":{"id":"doc-2b8e04"}}}`,
		} {
			_, err = io.WriteString(in, message+"\n")
			must(err)
			for answer := ""; !strings.Contains(answer, `"id":`); {
				answer, err = lines.ReadString('\n')
				must(err)
				fmt.Print(answer)
			}
		}
		io.Copy(io.Discard, os.Stdin)
		in.Close()
		gateway.Wait()
	}
}

// letIn is a browser without a script that the link let in: it asks for a page, or sends a
// form, and returns what it was shown or where it was led.
func letIn(t *testing.T, link string) func(path string, form url.Values) (page, to string) {
	t.Helper()
	own := found(t, `http://([^/]+)/`, link)
	jar := ""
	ask := func(path string, form url.Values) (page, to string) {
		t.Helper()
		method := "GET"
		if form != nil {
			method = "POST"
		}
		req, err := http.NewRequest(method, "http://127.0.0.1:"+found(t, `:(\d+)/`, link)+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = own
		req.Header.Set("Cookie", jar)
		if form != nil {
			req.Header.Set("Origin", "http://"+own)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for _, c := range resp.Cookies() {
			jar = c.Name + "=" + c.Value
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b), resp.Header.Get("Location")
	}
	ask(strings.TrimPrefix(link, "http://"+own), nil)
	return ask
}

// TestConsoleElsewhere: what waits at a gateway that a client started is answered here too.
func TestConsoleElsewhere(t *testing.T) {
	config, state := approving(t, example.Policy()), ownState(t)
	_, link, code := consoled(t, "127.0.0.1:0", "--state", state)
	asking := exec.Command("asking-client", state, config)
	hold, err := asking.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := asking.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := asking.Start(); err != nil {
		t.Fatal(err)
	}
	defer asking.Wait()
	defer hold.Close()
	said := ""
	for lines := bufio.NewReader(out); !strings.Contains(said, `"id":2`); {
		if said, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(said, "approval.pending") {
		t.Fatalf("the call: %s", said)
	}
	ask := letIn(t, link)
	page, _ := ask("/approvals", nil)
	id := found(t, `action="/approvals/(\w+)"`, page)
	other := &elsewhere{flags: &flags{state: state}, own: approval.New(time.Now)} // of another console
	if open := other.Open(t.Context(), true); len(open) != 1 || open[0].ID != id {
		t.Errorf("another console sees %v", open)
	}
	form := url.Values{"form": {found(t, `name="form" value="([^"]+)"`, page)}, "say": {"yes"}, "code": {code}}
	_, to := ask("/approvals/"+id, form)
	if page, _ = ask(to, nil); !strings.Contains(page, "It is on record.") || !strings.Contains(page, "Nothing waits") {
		t.Errorf("after the answer:\n%s", page)
	}
	other.Open(t.Context(), true)
	if a, ok := other.Said(id); !ok || !a.Yes || a.By != account() {
		t.Errorf("another console knows of the answer: %+v", a)
	}
	_, to = ask("/approvals/"+id, form)
	if page, _ = ask(to, nil); !strings.Contains(page, "That question is gone") {
		t.Errorf("answered twice:\n%s", page)
	}
}

func init() {
	// moved-server has one tool, which it says of what stands in a file.
	programs["moved-server"] = func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			must(json.Unmarshal(in.Bytes(), &m))
			says, err := os.ReadFile(os.Args[1])
			must(err)
			if answer := map[string]string{
				"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"m","version":"1"}}`,
				"tools/list": `{"tools":[{"name":"act","inputSchema":{"type":"object","properties":{"id":{"type":"string"}` + string(says) + `}}}]}`,
				"tools/call": `{"content":[]}`,
			}[m.Method]; answer != "" {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, answer)
			}
		}
	}
}

// TestConsoleChanged: how a changed definition differs is told from the one that was approved,
// where a call was judged by that.
func TestConsoleChanged(t *testing.T) {
	dir, state := ownState(t), ownState(t)
	config := filepath.Join(dir, "writ.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("says", "")
	write("policy.yaml", "tools:\n  moved/act: { effect: write, args: { /id: { role: target, from: [user] } } }\n")
	write("writ.yaml", "servers:\n  - name: moved\n    command: [moved-server, "+filepath.Join(dir, "says")+"]\npolicy: policy.yaml\n")
	command(t, "tools", "approve", "moved/act", "--yes", "--config", config)
	piped77(t, "", "call", "--state", state, "--config", config, "--session", "demo", "act", `{"id":"x-1234"}`)
	write("says", `,"bcc":{"type":"string","description":"<img src=x>"}`)
	s, link, _ := consoled(t, "127.0.0.1:0", "--state", state, "--config", config)
	s.expect(`msg=catalogue server=moved tool=act`)
	look := letIn(t, link)
	page, _ := look("/tools?tool=moved/act", nil)
	if _, says, ok := strings.Cut(page, "Unlike the one that <bdi>you approved</bdi>:"); !ok || !strings.Contains(says, "argument bcc: string") || strings.Contains(page, "<img") {
		t.Errorf("of what changed it says:\n%s", page)
	}
	for path, want := range map[string]string{"/tools": "Closed, since what the server says of it changed: ", "/health": "closed, since what their server says of them changed: moved/act"} {
		if page, _ := look(path, nil); !strings.Contains(page, want) {
			t.Errorf("%s does not say %s:\n%s", path, want, page)
		}
	}
	// What is printed works as it is printed, wherever that is.
	approve, reload := found(t, `<bdi>(writ tools approve [^<]+)</bdi>\n<bdi>writ reload`, page), found(t, `<bdi>(writ reload [^<]+)</bdi>`, page)
	if !strings.Contains(s.all(), approve) {
		t.Errorf("the log does not say %s:\n%s", approve, s.all())
	}
	if out := command(t, "tools", "--state", state, "--config", config); !strings.Contains(out, approve) {
		t.Errorf("writ tools says %s", out)
	}
	if out, err := exec.Command("sh", "-c", approve+" --yes").CombinedOutput(); err != nil || !strings.Contains(string(out), "1 pinned") {
		t.Errorf("%s: %v %s", approve, err, out)
	}
	again := onTerminal(t, "", nil, strings.Fields(reload)[1:]...)
	again.expect("in force: ")
	again.exits()
	if page, _ = look("/tools?tool=moved/act", nil); strings.Contains(page, "writ tools approve") || strings.Contains(page, "changed since you approved it") {
		t.Errorf("it was approved, and is not:\n%s", page)
	}
}

// TestConsoleLink: a way into the console is shown at a terminal, and to nobody else (K06).
func TestConsoleLink(t *testing.T) {
	config, state := approving(t, example.Policy()), ownState(t)
	at := []string{"--state", state}
	if out, code := piped77(t, "", "serve", "--listen", "127.0.0.1:0", "--open", "--state", state); code != 64 {
		t.Errorf("--open without a terminal: %d %s", code, out)
	}
	if s := onTerminal(t, "", nil, append([]string{"console"}, at...)...); s.exits() != 74 {
		t.Error("where nothing runs")
	}
	_, end := serving(t, append(at, "--config", config)...)
	if out, code := piped77(t, "", append([]string{"console"}, at...)...); code != 64 || strings.Contains(out, "/login/") {
		t.Errorf("to a pipe: %d %s", code, out)
	}
	// A process without a terminal, and one whose terminal another opened for it, are not heard.
	knock := exec.Command("knock", state)
	knock.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	out, err := knock.Output()
	if err != nil || strings.Count(string(out), "403 <nil>   ") != 2 {
		t.Errorf("without a terminal: %v %s", err, out)
	}
	s := onTerminal(t, "", nil, append([]string{"console"}, at...)...)
	s.expect(`console: \S+`)
	link := found(t, `console: (\S+)`, s.all())
	if s.exits() != 0 {
		t.Error("it did not end well")
	}
	s = onTerminal(t, "", nil, append([]string{"console", "--code"}, at...)...)
	s.expect(`takes this code: \w+`)
	if s.exits(); strings.Contains(s.all(), "/login/") {
		t.Errorf("it shows a link: %s", s.all())
	}
	// The link leads in; at the address that everybody knows it does not.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(url, host string) *http.Response {
		t.Helper()
		req, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	own := found(t, `http://([^/]+)/`, link)
	near := strings.Replace(link, own, "127.0.0.1:"+found(t, `:(\d+)/`, link), 1)
	if resp := get(near, ""); resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) > 0 {
		t.Errorf("at 127.0.0.1: %s", resp.Status)
	}
	if resp := get(near, own); resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		t.Errorf("at its own host: %s", resp.Status)
	}
	if said := end(); strings.Contains(said, "/login/") || strings.Contains(said, own) || !strings.Contains(said, "writ console --state "+state+" prints one") {
		t.Errorf("what is no terminal was told: %s", said)
	}
	// A log of JSON lines at a terminal has no link in it, and the terminal has.
	b, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, append(b, "log: { format: json }\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s = onTerminal(t, "", nil, append([]string{"serve", "--listen", "127.0.0.1:0", "--config", config}, at...)...)
	s.expect(`(?m)^console: \S+/login/`)
	if strings.Contains(s.all(), `"msg":"console: `) {
		t.Errorf("the log has it: %s", s.all())
	}
	s.press("\x03")
	s.exits()
}

// TestConsoleStranger: of a value that nothing vouches for, the page of its decision says where it
// stands all the same, who can write there, and leads to the bytes.
func TestConsoleStranger(t *testing.T) {
	state := ownState(t)
	_, link, _ := consoled(t, "127.0.0.1:0", "--state", state)
	piped77(t, "", "call", "--state", state, "--session", "demo", "fetch_ticket", `{"id":"INC-1043"}`)
	out, _ := piped77(t, "", "call", "--state", state, "--session", "demo", "delete_document", `{"id":"doc-e90b42"}`)
	ask := letIn(t, link)
	page, _ := ask("/?status=refused", nil)
	page, _ = ask(found(t, `class="call"><a href="(/d/[^"]+)"`, page), nil)
	at := found(t, `it stands in <a href="(/e/[^"#]+)#hit"><bdi>ev1 example/fetch_ticket /structuredContent/text</bdi></a>, which anyone can write`, page)
	if page, _ = ask(strings.ReplaceAll(at, "&amp;", "&"), nil); !strings.Contains(page, ">doc-e90b42</mark>") {
		t.Errorf("%s, after %s:\n%s", at, out, page)
	}
	// What stands in a field of the server's own is not called a stranger's.
	piped77(t, "", "call", "--state", state, "--session", "demo", "search_documents", `{"query":""}`)
	piped77(t, "", "call", "--state", state, "--session", "demo", "delete_document", `{"id":"doc-2b8e04"}`)
	page, _ = ask("/?session=demo", nil)
	if page, _ = ask(found(t, `class="call"><a href="(/d/[^"]+)"`, page), nil); !strings.Contains(page, `ev2 example/search_documents /structuredContent/documents/1/id</bdi></a>, what the server guarantees`) {
		t.Errorf("of an id that was listed it says:\n%s", page)
	}
}
