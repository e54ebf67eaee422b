package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/policy"
)

var update = flag.Bool("update", false, "rewrite the pins of testdata/policy.yaml")

// TestPins: the committed policy has a contract for each tool of the server,
// pinned to the definition it publishes, or the policy legs would test a gate
// that shut everything.
func TestPins(t *testing.T) {
	peers := os.Getenv("WRIT_PEERS")
	if peers == "" {
		t.Skip("needs the peers: make race")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	file := filepath.Join("testdata", "policy.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var defs []gate.Definition
	for _, raw := range toolsOf(t, ctx, peers) {
		defs = append(defs, gate.Definition{Server: "everything", Raw: raw})
		if *update {
			var d struct{ Name string }
			if err := json.Unmarshal(raw, &d); err != nil {
				t.Fatal(err)
			}
			if text, err = policy.SetPin(text, "everything/"+d.Name, gate.PinOf("everything", raw)); err != nil {
				t.Fatalf("%s: %v", d.Name, err)
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, faults := policy.Parse(file, text)
	for _, f := range faults {
		t.Errorf("%s:%d:%d: %s (%s)", f.File, f.Line, f.Column, f.Message, f.Hint)
	}
	if p == nil {
		t.FailNow()
	}
	c, findings := gate.NewCatalogue(defs, p)
	for _, f := range findings {
		t.Logf("%s/%s: %s", f.Server, f.Tool, f.Message)
	}
	if len(defs) < 20 {
		t.Errorf("only %d tools", len(defs))
	}
	for _, tool := range c.Tools() {
		if tool.State != gate.Open {
			t.Errorf("%s/%s is not open: %s", tool.Server, tool.Name, tool.Reason)
		}
	}
}

// toolsOf asks the server over stdio, byte for byte.
func toolsOf(t *testing.T, ctx context.Context, peers string) []json.RawMessage {
	t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(peers, "bin", "everything-server"))
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
	defer cmd.Wait()
	defer in.Close()
	fmt.Fprint(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
	for d := json.NewDecoder(out); ; {
		var m struct {
			ID     json.RawMessage
			Result struct{ Tools []json.RawMessage }
		}
		if err := d.Decode(&m); err != nil {
			t.Fatalf("everything-server: %v", err)
		}
		if bytes.Equal(m.ID, []byte("2")) {
			return m.Result.Tools
		}
	}
}
