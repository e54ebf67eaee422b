package example

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
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

var update = flag.Bool("update", false, "rewrite testdata/definitions.txt")

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

// definitions returns each tool's definition byte for byte as it stands on the
// wire, by asking without any SDK.
func definitions(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	toClient, fromServer := io.Pipe()
	done := make(chan error, 1)
	// The input stays open after its last line, or the server may end before
	// it has answered.
	go func() { done <- Serve(ctx, io.MultiReader(in, &blocked{ctx}), fromServer) }()
	r := bufio.NewScanner(toClient)
	r.Buffer(nil, 1<<20)
	out := map[string]json.RawMessage{}
	for r.Scan() {
		var m struct {
			ID     int
			Result struct{ Tools []json.RawMessage }
		}
		if err := json.Unmarshal(r.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		if m.ID != 2 {
			continue
		}
		for _, raw := range m.Result.Tools {
			var d struct{ Name string }
			if err := json.Unmarshal(raw, &d); err != nil {
				t.Fatal(err)
			}
			out[d.Name] = raw
		}
		break
	}
	cancel()
	toClient.Close()
	if err := <-done; err != nil {
		t.Errorf("Serve when its context is done: %v", err)
	}
	return out
}

type blocked struct{ ctx context.Context }

func (b *blocked) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, io.EOF
}

// TestDefinitions holds every byte of the definitions: the pins of policy.yaml
// rest on them, and a new version of the SDK may write them differently.
func TestDefinitions(t *testing.T) {
	defs := definitions(t)
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
