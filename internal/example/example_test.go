package example

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var update = flag.Bool("update", false, "rewrite testdata/definitions.txt and the pins of policy.yaml")

// connect starts a server of its own and a client of the SDK in front of it.
func connect(t *testing.T) *mcp.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(t.Context(), toServer, fromServer) }()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		t.Fatal(err)
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

func TestRecords(t *testing.T) {
	s := connect(t)

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

func TestSideEffects(t *testing.T) {
	s := connect(t)
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
	fresh := connect(t)
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

// TestDefinitions holds every byte of the definitions: the pins of policy.yaml
// rest on them, and a new version of the SDK may write them differently.
func TestDefinitions(t *testing.T) {
	defs := dial(t).definitions()
	names := make([]string, 0, len(defs))
	for n := range defs {
		names = append(names, n)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, n := range names {
		var d struct {
			InputSchema  map[string]any
			OutputSchema map[string]any
		}
		if err := json.Unmarshal(defs[n], &d); err != nil {
			t.Fatal(err)
		}
		if d.OutputSchema == nil || d.InputSchema["additionalProperties"] != false {
			t.Errorf("%s needs an output schema and closed arguments", n)
		}
		b.Write(defs[n])
		b.WriteByte('\n')
	}
	file := filepath.Join("testdata", "definitions.txt")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); d != "" {
		t.Errorf("the definitions changed; look, then go test -run TestDefinitions -update (-want +got):\n%s", d)
	}
}
