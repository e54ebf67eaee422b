package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// sdkServer is a real server of the official SDK.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, &mcp.ServerOptions{
		Instructions: "be kind", PageSize: 2,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	type in struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "steps"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "grown"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		})
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if r.ProtocolVersion() >= "2026-07-28" {
			if len(r.Params.InputResponses) == 0 {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "sure?"}}, RequestState: "st"}, nil, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "answered " + r.Params.RequestState}}}, nil, nil
		}
		res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "sure?"})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "answered " + res.Action}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		waiting <- struct{}{}
		<-ctx.Done()
		cancelled <- struct{}{}
		return nil, nil, ctx.Err()
	})
	s.AddTool(&mcp.Tool{Name: "region", InputSchema: map[string]any{
		"type": "object", "properties": map[string]any{"where": map[string]any{"type": "string", "x-mcp-header": "Region"}},
	}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	s.AddResource(&mcp.Resource{Name: "r", URI: "mem://r/\u00e9"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mem://r/\u00e9", Text: "hi"}}}, nil
	})
	s.AddResource(&mcp.Resource{Name: "p", URI: "mem://p"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mem://p", Text: "plain"}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
	})
	return s
}

// Signals of the tool wait, for servers that run in this process.
var waiting, cancelled = make(chan struct{}, 8), make(chan struct{}, 8)

type peer struct {
	name    string
	era     upstream.Era
	wire    upstream.Era // what comes out
	process bool
	config  func(t *testing.T) upstream.Config
}

func web(stateless bool) func(t *testing.T) upstream.Config {
	return func(t *testing.T) upstream.Config {
		s := sdkServer()
		h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless})
		ts := httptest.NewServer(h)
		t.Cleanup(ts.Close)
		return upstream.Config{Name: "real", URL: ts.URL, Version: "test"}
	}
}

func stdioPeer(t *testing.T) upstream.Config {
	exe, _ := os.Executable()
	return upstream.Config{Name: "real", Command: []string{exe}, Env: map[string]string{envSDK: "1"}, Version: "test"}
}

var peers = []peer{
	{"stdio auto", upstream.Auto, upstream.Modern, true, stdioPeer},
	{"stdio modern", upstream.Modern, upstream.Modern, true, stdioPeer},
	{"stdio legacy", upstream.Legacy, upstream.Legacy, true, stdioPeer},
	{"http stateless auto", upstream.Auto, upstream.Modern, false, web(true)},
	{"http stateful auto", upstream.Auto, upstream.Legacy, false, web(false)},
	{"http stateful legacy", upstream.Legacy, upstream.Legacy, false, web(false)},
	{"http stateless legacy", upstream.Legacy, upstream.Legacy, false, web(true)},
}

// TestRealServers speaks to the official SDK's servers on both transports and
// both wires.
func TestRealServers(t *testing.T) {
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			r := newRecord()
			cfg := p.config(t)
			cfg.Era = p.era
			cfg.ClientCapabilities = []byte(`{"elicitation":{"form":{}}}`)
			s := start(t, cfg, r, nil)
			ctx := t.Context()
			info, err := s.Info(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if info.Era != p.wire || strictjson.Get(info.Capabilities, "tools") == nil {
				t.Errorf("info %+v", info)
			}
			list, err := s.List(ctx, "tools/list", "tools")
			if err != nil || len(list) != 6 {
				t.Fatalf("%d tools, %v", len(list), err)
			}
			schema := map[string][]byte{}
			for _, it := range list {
				n, _ := strictjson.Text(strictjson.Get(it, "name"))
				schema[n] = strictjson.Get(it, "inputSchema")
			}
			want := func(what string, out upstream.Response, text string) {
				t.Helper()
				if out.End != upstream.Answered || out.Err != nil || !strings.Contains(string(out.Result.Raw()), text) {
					t.Errorf("%s: %s %v %s", what, out.End, out.Err, out.Result.Raw())
				}
			}
			want("echo", call(ctx, s, callTool("echo", `{"text":"h\u0065y \u00e9"}`)), `"hey é"`)

			region := callTool("region", `{"where": "n\u00f8rd"}`)
			region.ToolSchema = strictjson.Of(schema["region"])
			want("region", call(ctx, s, region), `n`)

			res, err := s.List(ctx, "resources/list", "resources")
			if err != nil || len(res) != 2 {
				t.Errorf("resources %d %v", len(res), err)
			}
			want("resources/read", call(ctx, s, judged(policy.ReadResource, `{"uri":"mem://p"}`)), "plain")
			prompt := judged(policy.GetPrompt, `{"name":"p"}`)
			prompt.Decision.Call.Tool = "p"
			want("prompts/get", call(ctx, s, prompt), "messages")
			var mu sync.Mutex
			var got []string
			steps := callTool("steps", `{}`)
			steps.ProgressToken = []byte(`"mine"`)
			steps.OnNotify = func(m string, params []byte) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, m+string(params))
			}
			want("steps", call(ctx, s, steps), "content")
			mu.Lock()
			if len(got) != 1 || !strings.Contains(got[0], `"progressToken":"mine"`) {
				t.Errorf("progress %q", got)
			}
			mu.Unlock()

			ask := callTool("ask", `{}`)
			ask.OnRequest = func(_ context.Context, m string, _ []byte) ([]byte, *rpc.Error) {
				return []byte(`{"action":"decline"}`), nil
			}
			switch {
			case p.wire == upstream.Modern:
				out := call(ctx, s, ask)
				want("input_required", out, `"resultType":"input_required"`)
				ask.Params = strictjson.Of([]byte(`{"name":"ask","arguments":{},"requestState":"st","inputResponses":{"q":{"action":"decline"}}}`))
				ask.Decision.Call.Answers = strictjson.Of([]byte(`{"q":{"action":"decline"}}`))
				want("answered", call(ctx, s, ask), "answered st")
			case p.name != "http stateless legacy":
				want("elicit", call(ctx, s, ask), "answered decline")
			}

			if p.name != "http stateless legacy" {
				want("grow", call(ctx, s, callTool("grow", `{}`)), "content")
				r.until(t, "tools/list_changed", func() bool { return len(r.lists) > 0 && r.lists[0] == "tools" })
			}
			// Last: in go-sdk v1.8.0 the end of one subscriptions/listen on stdio
			// ends the list changes of another.
			if p.name != "http stateless legacy" {
				want("subscribe", call(ctx, s, judged(policy.SubscribeResource, `{"uri":"mem://p"}`)), "{")
				want("unsubscribe", s.Do(ctx, upstream.Request{Method: "resources/unsubscribe", Params: strictjson.Of([]byte(`{"uri":"mem://p"}`))}), "{")
			}
			for _, k := range []upstream.EventKind{upstream.StrayResponse, upstream.BadMessage, upstream.SkippedLine, upstream.StrayProgress, upstream.ConnectionLost} {
				if n := r.count(k); n != 0 {
					t.Errorf("%d %s", n, k)
				}
			}
		})
	}
}

// TestCancel: the end of the caller's context reaches the server, and the end
// is unknown.
func TestCancel(t *testing.T) {
	for _, p := range peers {
		if p.process || strings.Contains(p.name, "stateless") {
			continue // another process; a stateless SDK server does not see the end of a call
		}
		t.Run(p.name, func(t *testing.T) {
			cfg := p.config(t)
			cfg.Era = p.era
			s := start(t, cfg, newRecord(), nil)
			if _, err := s.Info(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-waiting; cancel() }()
			out := call(ctx, s, callTool("wait", `{}`))
			if out.End != upstream.Unknown {
				t.Errorf("%s %v", out.End, out.Err)
			}
			<-cancelled
		})
	}
}

// TestOneDoor: what is judged needs a decision that allows it, for that method,
// and the free methods are a fixed list.
func TestOneDoor(t *testing.T) {
	s := start(t, web(true)(t), newRecord(), nil)
	ctx := t.Context()
	if _, err := s.Info(ctx); err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"tools/call", "resources/read", "resources/subscribe", "prompts/get", "completion/complete"} {
		for name, d := range map[string]*gate.Decision{"nil": nil, "zero": {}} {
			if out := call(ctx, s, upstream.Request{Decision: d, Method: m}); out.End != upstream.NotSent {
				t.Errorf("%s with %s decision: %s", m, name, out.End)
			}
		}
		if out := s.Do(ctx, upstream.Request{Method: m, Decision: allowed("", "", "")}); out.End != upstream.NotSent {
			t.Errorf("Do %s: %s", m, out.End)
		}
		if _, err := s.List(ctx, m, "tools"); err == nil {
			t.Errorf("List %s passed", m)
		}
	}
	other := callTool("echo", `{"text":"x"}`)
	other.Decision = allowed(policy.ReadResource, "echo", `{"text":"x"}`)
	if out := call(ctx, s, other); out.End != upstream.NotSent {
		t.Errorf("a decision for another method: %s", out.End)
	}
	for _, m := range []string{"initialize", "server/discover", "tasks/cancel", "tools/List", ""} {
		if out := s.Do(ctx, upstream.Request{Method: m}); out.End != upstream.NotSent {
			t.Errorf("Do %q: %s", m, out.End)
		}
	}
	// P20: what is sent is what was decided on, byte for byte.
	for name, params := range map[string]string{
		"other tool":       `{"name":"grow","arguments":{"text":"x"}}`,
		"other bytes":      `{"name":"echo","arguments":{"text": "x"}}`,
		"no arguments":     `{"name":"echo"}`,
		"no name":          `{"arguments":{"text":"x"}}`,
		"one more member":  `{"name":"echo","arguments":{"text":"x"},"task":{}}`,
		"unjudged answers": `{"name":"echo","arguments":{"text":"x"},"inputResponses":{"q":{}}}`,
	} {
		r := callTool("echo", `{"text":"x"}`)
		r.Params = strictjson.Of([]byte(params))
		if out := call(ctx, s, r); out.End != upstream.NotSent {
			t.Errorf("%s: %s", name, out.End)
		}
	}
	if out := call(ctx, s, upstream.Request{Decision: allowed(policy.ReadResource, "", `{"uri":"mem://p"}`), Method: "resources/read",
		Params: strictjson.Of([]byte(`{"uri":"mem://other"}`))}); out.End != upstream.NotSent {
		t.Errorf("another uri: %s", out.End)
	}
	meta := callTool("echo", `{"text":"x"}`)
	meta.Params = strictjson.Of([]byte(`{"name":"echo","_meta":{"x":1}}`))
	if out := call(ctx, s, meta); out.End != upstream.NotSent {
		t.Errorf("params with _meta: %s", out.End)
	}
	s.Close()
	if out := call(ctx, s, callTool("echo", `{}`)); out.End != upstream.NotSent {
		t.Errorf("after Close: %s", out.End)
	}
	if _, err := s.Info(ctx); !errors.Is(err, upstream.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
