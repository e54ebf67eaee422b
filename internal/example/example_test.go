package example

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-project/writ/internal/mcp/downstream"
)

var update = flag.Bool("update", false, "rewrite the pins of policy.yaml")

// eachVersion runs a test with clients of the SDK that speak each version.
func eachVersion(t *testing.T, test func(t *testing.T, connect func() *mcp.ClientSession)) {
	for _, v := range downstream.Versions {
		t.Run(v, func(t *testing.T) { test(t, func() *mcp.ClientSession { return connect(t, v) }) })
	}
}

// connect starts a server of its own and a client of the SDK in front of it.
func connect(t *testing.T, version string) *mcp.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(t.Context(), toServer, fromServer) }()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the version is %s, want %s", got, version)
	}
	t.Cleanup(func() {
		fromClient.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve at the end of its input: %v", err)
		}
		s.Close()
	})
	return s
}

// call returns the structured result, or the error text of a failed call.
func call(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) (out map[string]any, failed string) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if res.IsError {
		return nil, res.Content[0].(*mcp.TextContent).Text
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatalf("%s: structuredContent is no object: %v", tool, err)
	}
	return out, ""
}

func ids(t *testing.T, list any) (out []string) {
	t.Helper()
	for _, e := range list.([]any) {
		out = append(out, e.(map[string]any)["id"].(string))
	}
	return out
}

func TestRecords(t *testing.T) { eachVersion(t, testRecords) }

func testRecords(t *testing.T, connect func() *mcp.ClientSession) {
	s := connect()

	got, _ := call(t, s, "search_documents", map[string]any{"query": "quarterly REPORT"})
	if want := []string{"doc-7f3a91", "doc-2b8e04"}; !slices.Equal(ids(t, got["documents"]), want) {
		t.Errorf("search_documents: %v, want %v", got["documents"], want)
	}
	// P01 needs a server that echoes.
	if got, _ := call(t, s, "search_documents", map[string]any{"query": "doc-000000"}); got["query"] != "doc-000000" || len(got["documents"].([]any)) != 0 {
		t.Errorf("search_documents must repeat its query and invent nothing: %v", got)
	}
	// P02 needs an error text that echoes.
	if _, failed := call(t, s, "fetch_document", map[string]any{"id": "doc-000000"}); !strings.Contains(failed, "doc-000000") {
		t.Errorf("fetch_document of nothing: %q must name the id", failed)
	}

	all, _ := call(t, s, "search_documents", map[string]any{"query": ""})
	tickets, _ := call(t, s, "search_tickets", map[string]any{"query": ""})
	policies, _ := call(t, s, "search_policies", map[string]any{"query": ""})
	every := slices.Concat(ids(t, all["documents"]), ids(t, tickets["tickets"]), ids(t, policies["policies"]))
	for _, id := range every {
		// R8: no id is a value of small space.
		if len(id) < 6 || !strings.Contains(id, "-") {
			t.Errorf("id %q is too small to vouch for anything", id)
		}
	}
	if !slices.Contains(every, "INC-1042") {
		t.Error("INC-1042 must exist")
	}
	for _, id := range ids(t, all["documents"]) {
		if got, failed := call(t, s, "fetch_document", map[string]any{"id": id}); failed != "" || got["id"] != id || got["text"] == "" {
			t.Errorf("fetch_document %s: %v %s", id, got, failed)
		}
	}
	if got, failed := call(t, s, "fetch_policy", map[string]any{"id": "POL-014"}); failed != "" || got["id"] != "POL-014" {
		t.Errorf("fetch_policy: %v %s", got, failed)
	}

	// The attacker's text names a document that exists.
	evil, _ := call(t, s, "fetch_ticket", map[string]any{"id": "INC-1043"})
	named := regexp.MustCompile(`doc-[0-9a-f]{6}`).FindString(evil["text"].(string))
	if !slices.Contains(every, named) || !strings.Contains(evil["text"].(string), "delete_document") {
		t.Errorf("INC-1043 must tell the agent to delete a true document, it names %q", named)
	}
}

func TestSideEffects(t *testing.T) { eachVersion(t, testSideEffects) }

func testSideEffects(t *testing.T, connect func() *mcp.ClientSession) {
	s := connect()
	if got, failed := call(t, s, "delete_document", map[string]any{"id": "doc-2b8e04"}); failed != "" || got["deleted"] != true {
		t.Fatalf("delete_document: %v %s", got, failed)
	}
	if _, failed := call(t, s, "delete_document", map[string]any{"id": "doc-2b8e04"}); failed == "" {
		t.Error("a document was deleted twice")
	}
	got, _ := call(t, s, "search_documents", map[string]any{"query": "quarterly"})
	if want := []string{"doc-7f3a91"}; !slices.Equal(ids(t, got["documents"]), want) {
		t.Errorf("after the deletion: %v, want %v", got["documents"], want)
	}

	if _, failed := call(t, s, "close_ticket", map[string]any{"id": "INC-1042", "resolution": "because"}); failed == "" {
		t.Error("close_ticket took a resolution that is not in its enum")
	}
	if got, failed := call(t, s, "close_ticket", map[string]any{"id": "INC-1042", "resolution": "fixed"}); failed != "" || got["status"] != "closed" {
		t.Fatalf("close_ticket: %v %s", got, failed)
	}
	if _, failed := call(t, s, "close_ticket", map[string]any{"id": "INC-1042", "resolution": "fixed"}); failed == "" {
		t.Error("a ticket was closed twice")
	}
	if got, _ := call(t, s, "fetch_ticket", map[string]any{"id": "INC-1042"}); got["resolution"] != "fixed" {
		t.Errorf("fetch_ticket after close_ticket: %v", got)
	}

	// Another server starts from the beginning.
	fresh := connect()
	got, _ = call(t, fresh, "search_documents", map[string]any{"query": "draft second"})
	if want := []string{"doc-7f3a91", "doc-2b8e04"}; !slices.Equal(ids(t, got["documents"]), want) {
		t.Errorf("a fresh server: %v, want %v", got["documents"], want)
	}
}

// wire asks without any SDK, so that the bytes are those the server sent.
type wire struct {
	t    *testing.T
	to   io.Writer
	from *bufio.Scanner
	n    int
}

func dial(t *testing.T) *wire {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, toServer, fromServer) }()
	t.Cleanup(func() {
		cancel()
		fromClient.Close()
		toClient.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve when its context is done: %v", err)
		}
	})
	w := &wire{t: t, to: fromClient, from: bufio.NewScanner(toClient)}
	w.from.Buffer(nil, 1<<20)
	w.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	io.WriteString(w.to, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return w
}

// ask returns the exact bytes of the result member.
func (w *wire) ask(method, params string) json.RawMessage {
	w.t.Helper()
	w.n++
	fmt.Fprintf(w.to, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", w.n, method, params)
	for w.from.Scan() {
		var m struct {
			ID     int
			Result json.RawMessage
		}
		if err := json.Unmarshal(w.from.Bytes(), &m); err != nil {
			w.t.Fatal(err)
		}
		if m.ID == w.n {
			return m.Result
		}
	}
	w.t.Fatalf("%s: no answer: %v", method, w.from.Err())
	return nil
}

// definitions returns each tool's definition by name.
func (w *wire) definitions() map[string]json.RawMessage {
	w.t.Helper()
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(w.ask("tools/list", "{}"), &list); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]json.RawMessage{}
	for _, raw := range list.Tools {
		var d struct{ Name string }
		if err := json.Unmarshal(raw, &d); err != nil {
			w.t.Fatal(err)
		}
		out[d.Name] = raw
	}
	return out
}

// TestDefinitions: what is published is what the wire carries, and each tool's
// arguments are what the server reads: a closed object of required strings. The
// bytes are held by the pins of policy.yaml.
func TestDefinitions(t *testing.T) {
	defs := dial(t).definitions()
	for line := range strings.Lines(string(published)) {
		var d struct {
			Name        string
			InputSchema struct {
				Properties           map[string]struct{ Type string }
				Required             []string
				AdditionalProperties *bool
			}
			OutputSchema map[string]any
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		if got := string(defs[d.Name]) + "\n"; got != line {
			t.Errorf("%s: the wire carries %s", d.Name, got)
		}
		delete(defs, d.Name)
		in := d.InputSchema
		if d.OutputSchema == nil || in.AdditionalProperties == nil || *in.AdditionalProperties || len(in.Required) != len(in.Properties) {
			t.Errorf("%s needs an output schema and closed arguments, all required", d.Name)
		}
		for name, p := range in.Properties {
			if p.Type != "string" || !slices.Contains(in.Required, name) {
				t.Errorf("%s: argument %s is no required string", d.Name, name)
			}
		}
	}
	if len(defs) > 0 {
		t.Errorf("the wire carries more: %v", defs)
	}
}

// TestWire: what a client does wrong is answered with its own code, and the
// connection goes on.
func TestWire(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	old := func(line string) []string {
		return []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2099-01-01","capabilities":{}}}`, line}
	}
	call := func(args string) string {
		return `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"close_ticket","arguments":` + args + `}}`
	}
	for name, c := range map[string]struct {
		say  []string
		want string
	}{
		"an unknown version gets the newest that opens so": {old(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), `"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{"listChanged":true}}`},
		"initialize twice":          {old(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`), `"id":2,"error":{"code":-32600`},
		"tools before initialize":   {[]string{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`}, `"id":2,"error":{"code":-32600`},
		"no such method":            {old(`{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`), `"id":2,"error":{"code":-32601`},
		"no such page":              {old(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}`), `"id":2,"error":{"code":-32602`},
		"no such tool":              {old(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`), `"id":2,"error":{"code":-32602`},
		"a level":                   {old(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"info"}}`), `"id":2,"result":{}`},
		"discover without its meta": {old(`{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{}}`), `"id":2,"error":{"code":-32601`},
		"half a message":            {old(`{"jsonrpc":"2.0","id":2,`), `"id":null,"error":{"code":-32700`},
		"a batch":                   {old(`[]`), `"id":null,"error":{"code":-32600`},
		"a message too long":        {old(`"` + strings.Repeat("x", 5<<20) + `"`), `"id":null,"error":{"code":-32600`},
		"a name twice":              {old(call(`{"id":"INC-1042","id":"INC-1043"}`)), `"id":null,"error":{"code":-32700`},
		"arguments that are none":   {old(call(`[]`)), `an object`},
		"an argument too many":      {old(call(`{"id":"INC-1042","resolution":"fixed","x":""}`)), `no argument \"x\""}],"isError":true`},
		"an argument missing":       {old(call(`{"id":"INC-1042"}`)), `argument \"resolution\" is missing`},
		"an argument of a type":     {old(call(`{"id":7}`)), `argument \"id\" is a string`},
		"an argument of an enum":    {old(call(`{"id":"INC-1042","resolution":"because"}`)), `one of \"fixed\", \"duplicate\"`},

		"of a version nobody knows": {[]string{`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}`},
			`"error":{"code":-32022,"message":"this protocol version is not supported","data":{"supported":["2026-07-28",`},
		"of no capabilities": {[]string{`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`}, `"id":2,"error":{"code":-32602`},
		"gone in 2026-07-28": {[]string{`{"jsonrpc":"2.0","id":2,"method":"ping","params":{` + meta + `}}`}, `"id":2,"error":{"code":-32601`},
		"discover":           {[]string{`{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{` + meta + `}}`}, `"id":2,"result":{"resultType":"complete","supportedVersions":["2026-07-28",`},
		"listen": {[]string{`{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{` + meta + `,"notifications":{"toolsListChanged":true,"x":true}}}`},
			`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{"toolsListChanged":true}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := Serve(t.Context(), strings.NewReader(strings.Join(c.say, "\n")+"\n"), &out); err != nil {
				t.Fatal(err)
			}
			if said := out.String(); !strings.Contains(said, c.want) {
				t.Errorf("answered %s\nwant %s", said, c.want)
			}
		})
	}
}
