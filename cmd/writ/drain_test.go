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
	"strings"
	"sync"
	"testing"

	"github.com/writ-project/writ/internal/cli"
)

const slowPolicy = `pins: optional
collections: { item: { closed: true } }
tools:
  slow/list_items: { effect: read, outputs: [{ at: /items/*/id, label: system, collection: item, authoritative: true }] }
  slow/move_item: { effect: write, args: { /id: { role: selector, collection: item, type: id } } }
`

// slowServer is an MCP server whose move_item tells that it has begun and waits for goOn.
func slowServer(t *testing.T) (url string, begun chan struct{}, goOn func()) {
	begun = make(chan struct{})
	wait := make(chan struct{})
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
		result := "{}"
		switch {
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}`
		case m.Method == "tools/list":
			result = `{"tools":[{"name":"list_items","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},` +
				`{"name":"move_item","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}}}]}`
		case m.Params.Name == "list_items":
			result = `{"content":[],"structuredContent":{"items":[{"id":"item-17"}]}}`
		case m.Params.Name == "move_item":
			close(begun)
			<-wait
			result = `{"content":[{"type":"text","text":"moved"}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(ts.Close)
	goOn = sync.OnceFunc(func() { close(wait) })
	t.Cleanup(goOn)
	return ts.URL + "/mcp", begun, goOn
}

// TestDrain: told to end, a gateway says so, refuses in words what comes from then on, and
// lets an act under way reach its outcome, which is on record.
func TestDrain(t *testing.T) {
	upstream, begun, goOn := slowServer(t)
	dir, state := ownState(t), ownState(t)
	for name, text := range map[string]string{"policy.yaml": slowPolicy,
		"writ.yaml": "policy: policy.yaml\nmetrics: { listen: 127.0.0.1:0 }\nservers: [{ name: slow, url: " + upstream + ", wire: legacy }]\n"} {
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
	lines, url, page := bufio.NewScanner(stderr), "", ""
	for url == "" && lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "metrics on "); ok {
			page = at
		}
		url, _ = strings.CutPrefix(lines.Text(), "listening on ")
		if url == lines.Text() {
			url = ""
		}
	}
	rest := make(chan string, 1)
	go func() {
		all := ""
		for lines.Scan() {
			all += lines.Text() + "\n"
		}
		rest <- all
	}()
	base := strings.TrimSuffix(url, "/mcp")
	get := func(url string) string {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	session := ""
	post := func(message string) (*http.Response, string) {
		r, _ := http.NewRequest("POST", url, strings.NewReader(message))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return &http.Response{Header: http.Header{}}, ""
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp, string(b)
	}
	call := func(tool, arguments string) (*http.Response, string) {
		return post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, tool, arguments))
	}
	resp, _ := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	session = resp.Header.Get("Mcp-Session-Id")
	post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if _, out := call("list_items", "{}"); !strings.Contains(out, "item-17") {
		t.Fatal(out)
	}
	moved := make(chan string, 1)
	go func() {
		_, out := call("move_item", `{"id":"item-17"}`)
		moved <- out
	}()
	<-begun
	if p := get(page); !strings.Contains(p, `writ_upstream_calls_running{server="slow"} 1`) || !strings.Contains(p, `writ_store_bytes{file="audit.db"}`) {
		t.Error(p)
	}
	end()
	if word := get(base + "/readyz"); word != "ending\n" {
		t.Errorf("/readyz says %q", word)
	}
	for status := 0; status != http.StatusServiceUnavailable && !t.Failed(); { // until the listener has heard of it too
		resp, out := call("list_items", "{}")
		if status = resp.StatusCode; status == http.StatusServiceUnavailable && (!strings.Contains(out, "the gateway is stopping") || resp.Header.Get("Retry-After") == "") {
			t.Errorf("refused with %v %s", resp.Header, out)
		}
	}
	if word := get(base + "/healthz"); word != "ok\n" {
		t.Errorf("/healthz says %q", word)
	}
	var told strings.Builder
	if code := run(t.Context(), []string{"call", "--state", state, "list_items"}, strings.NewReader(""), io.Discard, &told); code != cli.ExitIO ||
		!strings.HasPrefix(told.String(), "writ: the gateway is stopping") || !strings.Contains(told.String(), "try: the same once writ serve runs again") {
		t.Errorf("writ call ended with %d: %s", code, told.String())
	}
	goOn()
	if out := <-moved; !strings.Contains(out, "moved") {
		t.Errorf("the act was answered %s", out)
	}
	if code, all := <-exit, <-rest; code != 0 || strings.Contains(all, "given up") {
		t.Errorf("exit code %d: %s", code, all)
	}
	show := func(into any, id ...string) {
		var out strings.Builder
		if code := run(t.Context(), append([]string{"audit", "show", "--json", "--state", state}, id...), strings.NewReader(""), &out, io.Discard); code != 0 {
			t.Fatal(code)
		}
		if err := json.Unmarshal([]byte(out.String()), into); err != nil {
			t.Fatal(err)
		}
	}
	var all []struct{ ID, Tool string }
	show(&all)
	for _, d := range all {
		var of struct{ Result struct{ Status string } }
		if show(&of, d.ID); d.Tool == "slow/move_item" && of.Result.Status != "ok" {
			t.Errorf("on record is the result %q", of.Result.Status)
		}
	}
	if len(all) < 2 {
		t.Errorf("on record is %v", all)
	}
}
