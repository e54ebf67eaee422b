package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/otlp/standin"
)

const toldPolicy = `pins: optional
collections: { item: { closed: true } }
tools:
  busy/list_items: { effect: read, args: { /note: { role: content } }, outputs: [{ at: /items/*/id, label: system, collection: item, authoritative: true }] }
  busy/fail_item: { effect: read }
  busy/break_item: { effect: read }
  busy/drop_item: { effect: write, args: { /id: { role: selector, collection: item, type: id } } }
`

// Two tools that no contract names: one by a name that would end a line, a text and a page.
const mintedTool = "minted_tool"

const hostileTool = "hostile-\"}\n\u202e\x1b[2J{}"

// busyServer is an MCP server of which nothing that it says may be seen beside the calls.
func busyServer(t *testing.T) string {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := `"result":{}`
		switch {
		case m.Method == "initialize" && r.URL.Path == "/odd":
			answer = `"error":{"code":-32603,"message":"its own words \u001b[2J\u202e\n{}"}`
		case m.Method == "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"busy","version":"1"}}`
		case m.Method == "tools/list":
			name, _ := json.Marshal(hostileTool)
			answer = `"result":{"tools":[{"name":` + string(name) + `,"inputSchema":{"type":"object"}},{"name":"` + mintedTool + `","inputSchema":{"type":"object"}}`
			for _, name := range []string{"list_items", "fail_item", "break_item", "drop_item"} {
				answer += `,{"name":"` + name + `","inputSchema":{"type":"object","properties":{"id":{"type":"string"},"note":{"type":"string"}}},"outputSchema":{"type":"object"}}`
			}
			answer += `]}`
		case m.Params.Name == "list_items":
			answer = `"result":{"content":[{"type":"text","text":"value-4711"}],"structuredContent":{"items":[{"id":"item-17"}]}}`
		case m.Params.Name == "fail_item":
			answer = `"result":{"isError":true,"content":[{"type":"text","text":"value-5813"}]}`
		case m.Params.Name == "break_item":
			answer = `"error":{"code":6174,"message":"value-6174\u202e"}`
		case m.Params.Name == "drop_item":
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
	}))
	t.Cleanup(ts.Close)
	return ts.URL
}

// TestTold: of a busy run each line of the log is JSON and each span and log record is what
// a collector reads, all of them are there at the end, and none has a token, a session's
// secret, an argument, a value or a name that only a client or a server chose.
func TestTold(t *testing.T) {
	upstream, c := busyServer(t), standin.New(t)
	dir, state := ownState(t), ownState(t)
	t.Setenv("COLLECTOR_TOKEN", "collector-s3cret")
	token := command(t, "client", "add", "kim", "--role", "person", "--state", state)
	for name, text := range map[string]string{"policy.yaml": toldPolicy,
		"writ.yaml": "policy: policy.yaml\nmetrics: { listen: 127.0.0.1:0 }\nlog: { format: json }\n" +
			"otlp: { endpoint: \"" + c.URL + "\", headers: { Authorization: \"Bearer ${COLLECTOR_TOKEN}\" } }\n" +
			"servers: [{ name: busy, url: " + upstream + "/mcp, wire: legacy }, { name: odd, url: " + upstream + "/odd, wire: legacy }]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	stderr, said := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		code := run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--state", state, "--config", filepath.Join(dir, "writ.yaml")}, strings.NewReader(""), io.Discard, said)
		said.Close()
		exit <- code
	}()
	lines, url, page, all := bufio.NewScanner(stderr), "", "", []string{}
	for url == "" && lines.Scan() {
		all = append(all, lines.Text())
		if m := regexp.MustCompile(`"(metrics|listening) on (http:[^"]*)"`).FindStringSubmatch(lines.Text()); m != nil && m[1] == "metrics" {
			page = m[2]
		} else if m != nil {
			url = m[2]
		}
	}
	rest := make(chan []string, 1)
	go func() {
		var more []string
		for lines.Scan() {
			more = append(more, lines.Text())
		}
		rest <- more
	}()

	session := ""
	post := func(message string) (http.Header, string) {
		r, _ := http.NewRequest("POST", url, strings.NewReader(message))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer "+token)
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.Header, string(b)
	}
	call := func(tool, arguments, meta string) string {
		name, _ := json.Marshal(tool)
		_, out := post(fmt.Sprintf(`{"jsonrpc":"2.0","id":"id-of-the-request","method":"tools/call","params":{"name":%s,"arguments":%s,"_meta":{%s}}}`, name, arguments, meta))
		return out
	}
	h, out := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"name-of-the-client","version":"1"}}}`)
	if session = h.Get("Mcp-Session-Id"); session == "" {
		t.Fatal(out)
	}
	post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if out := call("list_items", `{"note":"value-2718"}`, `"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=value-8128","baggage":"k=value-8128"`); !strings.Contains(out, "item-17") {
		t.Fatal(out)
	}
	call("fail_item", `{}`, `"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 value-1618"`)
	call("break_item", `{}`, ``)
	call("drop_item", `{"id":"value-3141"}`, ``)
	call("drop_item", `{"id":"item-17"}`, ``)
	call(mintedTool, `{"value-1414":"value-1414"}`, ``)
	call(hostileTool, `{}`, ``)
	call("made-up\n\u202e\x1b[2J", `{}`, ``)
	get, err := http.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	counted, _ := io.ReadAll(get.Body)
	get.Body.Close()
	end()
	if code := <-exit; code != 0 {
		t.Error("exit code", code)
	}
	all = append(all, <-rest...)

	// What was told is whole.
	served, called := []*traces.Span{}, map[string]*traces.Span{}
	attributes := func(s *traces.Span) map[string]string {
		as := map[string]string{}
		for _, a := range s.Attributes {
			as[a.Key] = a.Value.GetStringValue()
		}
		return as
	}
	for _, s := range c.Spans() {
		if s.Kind == traces.Span_SPAN_KIND_SERVER {
			served = append(served, s)
		} else {
			called[string(s.ParentSpanId)] = s
		}
	}
	want := []struct {
		name, status, reason, fault, below string // below: the fault of its child, "-" for no child
	}{
		{"tools/call list_items", "accepted", "", "", ""},
		{"tools/call fail_item", "accepted", "", "tool_error", "tool_error"},
		{"tools/call break_item", "accepted", "", "_OTHER", "_OTHER"},
		{"tools/call drop_item", "rejected", "provenance.unseen", "provenance.unseen", "-"},
		{"tools/call drop_item", "accepted", "", "unknown", "unknown"},
		{"tools/call _OTHER", "rejected", "name.forbidden", "name.forbidden", "-"},
		{"tools/call _OTHER", "rejected", "name.unknown", "name.unknown", "-"},
		{"tools/call _OTHER", "rejected", "name.unknown", "name.unknown", "-"},
	}
	var events, unknown []*logs.LogRecord
	for _, e := range c.Events() {
		if e.EventName == "writ.outcome" {
			unknown = append(unknown, e)
		} else {
			events = append(events, e)
		}
	}
	if len(served) != len(want) || len(events) != len(want) || len(unknown) != 1 {
		t.Fatalf("%d spans, %d decisions and %d acts of unknown outcome of %d calls", len(served), len(events), len(unknown), len(want))
	}
	for i, w := range want {
		s, e := served[i], events[i]
		as, below := attributes(s), called[string(s.SpanId)]
		if s.Name != w.name || as["writ.status"] != w.status || as["writ.reason"] != w.reason || as["error.type"] != w.fault || (s.Status.GetCode() == 2) != (w.fault != "") ||
			(below == nil) != (w.below == "-") || !regexp.MustCompile(`^s_\w+/\d+$`).MatchString(as["writ.decision"]) {
			t.Errorf("call %d: %v, below it %v", i, s, below)
		}
		if below != nil && (below.Name != w.name || attributes(below)["error.type"] != w.below || string(below.TraceId) != string(s.TraceId)) {
			t.Errorf("call %d: below it %v", i, below)
		}
		if string(e.SpanId) != string(s.SpanId) || e.Body.GetStringValue() != strings.TrimSuffix(w.status+": "+w.reason, ": ") {
			t.Errorf("decision %d: %v", i, e)
		}
		if ours := fmt.Sprintf("%x %x", s.TraceId, s.ParentSpanId) == "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331"; ours != (i == 0) {
			t.Errorf("call %d is in the trace %x below %x", i, s.TraceId, s.ParentSpanId)
		}
	}

	// The act of which nobody knows whether it happened is told once more, and logged, both
	// by the id of its decision.
	at := map[string]string{}
	for _, a := range unknown[0].Attributes {
		at[a.Key] = a.Value.GetStringValue()
	}
	dropped := attributes(served[4])["writ.decision"]
	if e := unknown[0]; e.Body.GetStringValue() != "unknown" || e.SeverityNumber != 13 || string(e.SpanId) != string(served[4].SpanId) ||
		at["writ.decision"] != dropped || at["gen_ai.tool.name"] != "drop_item" || at["writ.server"] != "busy" || at["error.type"] != "unknown" || at["writ.status"] != "accepted" {
		t.Errorf("%v", e)
	}
	if said := strings.Join(all, "\n"); strings.Count(said, `"level":"WARN","msg":"whether an act happened is not known: writ audit show --unsettled","decision":"`+dropped+`","server":"busy","tool":"drop_item"`) != 1 {
		t.Errorf("it is not in the log:\n%s", said)
	}

	// And nothing else is.
	secrets := regexp.MustCompile(`value-\d|item-17|minted|hostile|its own words|made-up|id-of-the|name-of-the|kim|collector-s3|` + regexp.QuoteMeta(session) + "|" + regexp.QuoteMeta(token))
	documented := loggedAttributes(t)
	levels := map[any]int{}
	for _, line := range all {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["time"] == nil || m["level"] == nil || m["msg"] == nil {
			t.Errorf("%v: %s", err, line)
		}
		for k, v := range m {
			if text, is := v.(string); is && cli.OneLine(text, 1<<20) != text {
				t.Errorf("%s is not escaped: %s", k, line)
			}
			if !slices.Contains(documented, k) {
				t.Errorf("%s is not documented: %s", k, line)
			}
		}
		levels[m["level"]]++
		if found := secrets.FindString(strings.ReplaceAll(line, state, "")); found != "" && !(m["tool"] == mintedTool) { // what a server publishes is the operator's to read
			t.Errorf("%q stands in the log: %s", found, line)
		}
	}
	if levels["INFO"] < 3 || levels["WARN"] < 3 {
		t.Errorf("the log does not have what it could:\n%s", strings.Join(all, "\n"))
	}
	bodies, _ := c.Bodies()
	for _, b := range append(bodies, counted) {
		if found := secrets.FindString(string(b)); found != "" {
			t.Errorf("%q is told: %s", found, b)
		}
	}
	if !strings.Contains(string(counted), "# TYPE writ_otlp_items_total counter") {
		t.Errorf("%s", counted)
	}
}

// TestDeadCollector: calls go on, and so does the end, where nobody takes what is told; it
// is said.
func TestDeadCollector(t *testing.T) {
	upstream := busyServer(t)
	dir, state := ownState(t), ownState(t)
	for name, text := range map[string]string{"policy.yaml": toldPolicy,
		"writ.yaml": "policy: policy.yaml\notlp: { endpoint: http://127.0.0.1:1 }\nservers: [{ name: busy, url: " + upstream + "/mcp, wire: legacy }]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_items","arguments":{}}}` + "\n"
	var out, errs strings.Builder
	code := run(t.Context(), []string{"run", "--state", state, "--config", filepath.Join(dir, "writ.yaml"), "-v"}, strings.NewReader(in), &out, &errs)
	if code != 0 || !strings.Contains(out.String(), "item-17") {
		t.Errorf("%d %s %s", code, out.String(), errs.String())
	}
	for _, signal := range []string{"traces", "logs"} {
		if n := strings.Count(errs.String(), `msg="the collector does not take what it is sent: it is lost until it does" signal=`+signal); n != 1 {
			t.Errorf("%s: said %d times: %s", signal, n, errs.String())
		}
	}
}

// loggedAttributes are those that docs/operations.md says a line of the log can have.
func loggedAttributes(t *testing.T) (names []string) {
	t.Helper()
	_, table, ok := strings.Cut(repositoryFile(t, "docs", "operations.md"), "| in a line of the log |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		names = append(names, row[1])
	}
	if !ok || len(names) < 5 {
		t.Fatalf("docs/operations.md does not say what a line of the log has: %v", names)
	}
	return names
}

// TestLogIsDocumented: the program's lines have no other attributes than those, and all of
// them.
func TestLogIsDocumented(t *testing.T) {
	documented, used := loggedAttributes(t), map[string]bool{"time": true, "level": true, "msg": true}
	line, key := regexp.MustCompile(`(?i)log\.(?:Info|Warn|Error)\(("[^"]*"|what), (.*)\)\n`), regexp.MustCompile(`(?:^|, )"(\w+)", `)
	for _, pattern := range []string{"../../internal/gateway/*.go", "../../internal/otlp/*.go", "*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range line.FindAllStringSubmatch(string(text), -1) {
				for _, k := range key.FindAllStringSubmatch(m[2], -1) {
					used[k[1]] = true
					if !slices.Contains(documented, k[1]) {
						t.Errorf("%s: %s is not documented", file, k[1])
					}
				}
			}
		}
	}
	for _, k := range documented {
		if !used[k] {
			t.Errorf("%s is documented and in no line", k)
		}
	}
}
