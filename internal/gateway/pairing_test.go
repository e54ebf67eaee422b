package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/downstream"
)

// serveLines runs the gateway's stdio side until its input ends.
func serveLines(tb testing.TB, r *rig, in *io.PipeReader, out *io.PipeWriter) {
	served := make(chan error, 1)
	gw := r.gw
	go func() {
		err := downstream.ServeStdio(tb.Context(), gw, in, out, downstream.StdioOptions{})
		out.Close()
		served <- err
	}()
	tb.Cleanup(func() {
		in.Close()
		<-served
	})
}

// eachPairing runs f for every wire and transport of client and server.
func eachPairing(t *testing.T, f func(t *testing.T, y *toy, r *rig, kind int)) {
	for k := range kinds {
		for _, modern := range []bool{false, true} {
			for _, http := range []bool{false, true} {
				name := fmt.Sprintf("%s to %s-%s", kinds[k].name, pick(modern, "modern", "legacy"), pick(http, "http", "stdio"))
				t.Run(name, func(t *testing.T) {
					y := newToy()
					open := onMaps
					if modern != http {
						open = onSQLite
					}
					r := newRig(t, open(t), policy(t, toyPolicy), y.config(t, modern, http))
					f(t, y, r, k)
				})
			}
		}
	}
}

// TestPairings: on every pairing of wires and transports, an invented id is
// refused, a read becomes evidence, and the same act is accepted after it, as
// the official SDK's client and server see it.
func TestPairings(t *testing.T) {
	eachPairing(t, func(t *testing.T, y *toy, r *rig, kind int) {
		ctx := testContext(t)
		c := sdkClient(t, r, kind, nil)
		tools, err := c.ListTools(ctx, nil)
		if err != nil || len(tools.Tools) != 10 {
			t.Fatalf("tools/list: %v %v", tools, err)
		}
		call := func(tool, id string) *mcp.CallToolResult {
			t.Helper()
			res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"id": id}})
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		refused := func(res *mcp.CallToolResult) {
			t.Helper()
			if !res.IsError || len(res.Content) != 1 || res.StructuredContent != nil {
				t.Fatalf("not refused: %+v", res)
			}
			raw, err := json.Marshal(res.Meta["io.github.writ-project/outcome"])
			var o writ.Outcome
			if err != nil || json.Unmarshal(raw, &o) != nil {
				t.Fatalf("no outcome: %s %v", raw, err)
			}
			rej := o.Rejection
			if o.Status != writ.Rejected || rej == nil || rej.Code != writ.MissingProvenance || rej.Reason != writ.ProvenanceUnseen ||
				len(rej.Failures) != 1 || rej.Failures[0].Pointer != "/id" || rej.Failures[0].Need == "" {
				t.Errorf("outcome %+v", o)
			}
			if said := res.Content[0].(*mcp.TextContent).Text; said != gate.Say(o, "") || said == "" {
				t.Errorf("it says %q", said)
			}
		}
		refused(call("delete_item", "item-17"))
		refused(call("mark_item", "item-17"))
		if gone := y.gone(); len(gone) != 0 {
			t.Fatalf("the server heard of a refused act: %q", gone)
		}
		res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "list_items", Arguments: map[string]any{}})
		if err != nil || res.IsError {
			t.Fatalf("the read: %+v %v", res, err)
		}
		if ev, _ := res.Meta["io.github.writ-project/evidence"].(map[string]any); ev["admissible"] != true {
			t.Errorf("the read is no evidence: %v", res.Meta)
		}
		for _, tool := range []string{"delete_item", "mark_item"} {
			if res := call(tool, "item-17"); res.IsError {
				t.Errorf("%s was refused: %+v", tool, res.Meta)
			}
		}
		refused(call("delete_item", "item-99"))
		if gone := y.gone(); !slices.Equal(gone, []string{"item-17"}) {
			t.Errorf("the server deleted %q", gone)
		}
	})
}
