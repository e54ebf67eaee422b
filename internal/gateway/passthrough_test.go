//lint:file-ignore SA1019 sampling and logging are deprecated, and pass through unharmed as long as they exist

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// isRefused reports an error that is a refusal by that reason.
func isRefused(t testing.TB, err error, reason string) {
	t.Helper()
	var e *jsonrpc.Error
	if !errors.As(err, &e) || !strings.Contains(string(e.Data), `"reason":"`+reason+`"`) {
		t.Errorf("got %v, want a refusal by %s", err, reason)
	}
}

// within is a context for something that may have to be tried again.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 300*time.Millisecond)
}

// TestMethods: resources, templates, prompts and completions pass on every
// pairing; what is asked for must have been listed in this session (R32, P24).
func TestMethods(t *testing.T) {
	eachPairing(t, func(t *testing.T, y *toy, r *rig, kind int) {
		ctx := testContext(t)
		c := sdkClient(t, r, kind, nil)
		read := func(uri string) (string, error) {
			res, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				return "", err
			}
			return res.Contents[0].Text, nil
		}
		_, err := read("mem://one")
		isRefused(t, err, "provenance.unseen")
		_, err = read("file:///etc/passwd") // P24
		isRefused(t, err, "provenance.unseen")
		list, err := c.ListResources(ctx, nil)
		if err != nil || len(list.Resources) != 2 {
			t.Fatalf("resources/list: %v %v", list, err)
		}
		if text, err := read("mem://one"); err != nil || text != "text of mem://one" {
			t.Errorf("resources/read: %q %v", text, err)
		}
		_, err = read("file:///etc/passwd")
		isRefused(t, err, "provenance.unseen")

		templates, err := c.ListResourceTemplates(ctx, nil)
		if err != nil || len(templates.ResourceTemplates) != 1 {
			t.Fatalf("resources/templates/list: %v %v", templates, err)
		}
		if _, err = read("mem://items/item-17"); err == nil {
			t.Error("a template's variable needs no evidence")
		}
		if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "list_items", Arguments: map[string]any{}}); err != nil {
			t.Fatal(err)
		}
		if text, err := read("mem://items/item-17"); err != nil || text != "text of mem://items/item-17" {
			t.Errorf("a template's resource: %q %v", text, err)
		}

		get := func(who string) (string, error) {
			res, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": who}})
			if err != nil {
				return "", err
			}
			return res.Messages[0].Content.(*mcp.TextContent).Text, nil
		}
		_, err = get("item-17")
		isRefused(t, err, "provenance.unseen")
		if res, err := c.ListPrompts(ctx, nil); err != nil || len(res.Prompts) != 1 {
			t.Fatalf("prompts/list: %v %v", res, err)
		}
		if text, err := get("item-17"); err != nil || text != "hello item-17" {
			t.Errorf("prompts/get: %q %v", text, err)
		}
		_, err = get("eve@evil.example")
		isRefused(t, err, "provenance.unseen")

		complete := func(ref *mcp.CompleteReference, name, value string) ([]string, error) {
			res, err := c.Complete(ctx, &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: name, Value: value}})
			if err != nil {
				return nil, err
			}
			return res.Completion.Values, nil
		}
		if got, err := complete(&mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, "who", "item-17"); err != nil || !slices.Equal(got, []string{"who1"}) {
			t.Errorf("completion of a prompt: %q %v", got, err)
		}
		if got, err := complete(&mcp.CompleteReference{Type: "ref/resource", URI: "mem://items/{id}"}, "id", "item-17"); err != nil || !slices.Equal(got, []string{"id1"}) {
			t.Errorf("completion of a template: %q %v", got, err)
		}
		_, err = complete(&mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, "who", "a secret somebody typed")
		isRefused(t, err, "provenance.unseen")
	})
}

// TestNotices: progress, log messages, list changes, resource updates and
// cancellation pass on every pairing, and nothing in them vouches (P23).
func TestNotices(t *testing.T) {
	eachPairing(t, func(t *testing.T, y *toy, r *rig, kind int) {
		ctx := testContext(t)
		progress, updates, changes := make(chan *mcp.ProgressNotificationParams, 8), make(chan string, 8), make(chan struct{}, 8)
		c := sdkClient(t, r, kind, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params },
			ResourceUpdatedHandler:      func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updates <- r.Params.URI },
			ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { changes <- struct{}{} },
		})
		call := func(tool string, args any) *mcp.CallToolResult {
			t.Helper()
			p := &mcp.CallToolParams{Name: tool, Arguments: args}
			p.SetProgressToken("mine")
			res, err := c.CallTool(ctx, p)
			if err != nil {
				t.Fatalf("%s: %v", tool, err)
			}
			return res
		}
		call("steps", map[string]any{})
		select {
		case p := <-progress:
			if p.ProgressToken != "mine" || p.Progress != 1 || p.Total != 2 || p.Message != "item-99" {
				t.Errorf("progress %+v", p)
			}
		case <-ctx.Done():
			t.Error("no progress came")
		}
		for _, id := range []string{"item-99", "item-98"} {
			if res := call("delete_item", map[string]any{"id": id}); !res.IsError {
				t.Errorf("%s, seen in a notification alone, vouched (P23)", id)
			}
		}

		// Before the subscription: with go-sdk v1.8.0 on stdio the end of one
		// subscriptions/listen ends the list changes of another.
		changed := false
		for try := 0; try < 50 && !changed; try++ {
			call("grow", map[string]any{})
			short, cancel := within(ctx)
			select {
			case <-changes:
				changed = true
			case <-short.Done():
			}
			cancel()
		}
		if !changed {
			t.Error("no tools/list_changed came")
		}
		if res := call("grown1", map[string]any{}); res.IsError {
			t.Errorf("a tool that came later cannot be called: %+v", res)
		}

		if _, err := c.ListResources(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Subscribe(ctx, &mcp.SubscribeParams{URI: "mem://one"}); err != nil {
			t.Fatalf("subscribe: %v", err)
		}
		updated := false
		for try := 0; try < 50 && !updated; try++ {
			y.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "mem://one"})
			short, cancel := within(ctx)
			select {
			case uri := <-updates:
				if updated = true; uri != "mem://one" {
					t.Errorf("an update of %s", uri)
				}
			case <-short.Done():
			}
			cancel()
		}
		if !updated {
			t.Error("no resource update came")
		}
		if err := c.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "mem://one"}); err != nil {
			t.Errorf("unsubscribe: %v", err)
		}

		waits, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			_, err := c.CallTool(waits, &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{}})
			ended <- err
		}()
		select {
		case <-y.waiting:
		case <-ctx.Done():
			t.Fatal("the call did not begin")
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("a cancelled call succeeded")
		}
		select {
		case <-y.cancelled:
		case <-ctx.Done():
			t.Error("the server was not told of the cancellation")
		}
	})
}

// TestQuestions: what a server asks inside a call reaches the client and the
// answer the server, whichever wires the two speak: a request of the server on
// 2025-11-25, input_required and a retry on 2026-07-28. Inside an act the
// answer is an argument of it, and nothing vouches for one (R31).
func TestQuestions(t *testing.T) {
	eachPairing(t, func(t *testing.T, y *toy, r *rig, kind int) {
		ctx := testContext(t)
		asked := 0
		c := sdkClient(t, r, kind, &mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked++
				if r.Params.Message != "which?" {
					return nil, fmt.Errorf("asked %q", r.Params.Message)
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"id": "item-666"}}, nil
			},
			CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: fmt.Sprint("item-667 ", r.Params.MaxTokens)}}, nil
			},
		})
		call := func(tool string, args any) *mcp.CallToolResult {
			t.Helper()
			res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
			if err != nil {
				t.Fatalf("%s: %v", tool, err)
			}
			return res
		}
		said := func(res *mcp.CallToolResult) string {
			if len(res.Content) == 0 {
				return ""
			}
			text, _ := res.Content[0].(*mcp.TextContent)
			return text.Text
		}
		if got := said(call("ask", map[string]any{})); got != "accept item-666" || asked != 1 {
			t.Errorf("the elicitation came back as %q, asked %d times", got, asked)
		}
		if got := said(call("sample", map[string]any{})); got != "sampled item-667 7" {
			t.Errorf("the sampling came back as %q", got)
		}
		call("list_items", map[string]any{})
		for _, id := range []string{"item-666", "item-667"} { // P19
			if res := call("delete_item", map[string]any{"id": id}); !res.IsError {
				t.Errorf("%s, an answer, vouched", id)
			}
		}

		// An act: the question reaches the person, the answer not the server.
		res := call("close_item", map[string]any{"id": "item-17"})
		y.mu.Lock()
		closed := slices.Clone(y.closed)
		y.mu.Unlock()
		// On 2025-11-25 the act has begun: its question counts as cancelled. On
		// 2026-07-28 the retry is refused.
		if res.IsError {
			if len(closed) != 0 || !strings.Contains(said(res), "policy.answer)") || !strings.Contains(said(res), "`answers:/q/") {
				t.Errorf("refused as %q, closed %q (R31)", said(res), closed)
			}
		} else if !slices.Equal(closed, []string{"cancel <nil>"}) {
			t.Errorf("the answer reached the server inside an act as %q (R31)", closed)
		}
		if asked != 2 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// TestNobodyToAsk: a client that declared nothing is asked nothing.
func TestNobodyToAsk(t *testing.T) {
	eachPairing(t, func(t *testing.T, y *toy, r *rig, kind int) {
		ctx := testContext(t)
		c := sdkClient(t, r, kind, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
		for _, tool := range []string{"ask", "sample"} {
			res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}})
			if err == nil && !res.IsError {
				t.Errorf("%s: %+v", tool, res)
			}
		}
	})
}
