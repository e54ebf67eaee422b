//lint:file-ignore SA1019 sampling and logging are deprecated, and pass through unharmed as long as they exist

package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-project/writ/internal/mcp/upstream"
)

// toy is a real server of the official SDK, which these tests put behind the
// gateway: a few items, acts on them, and every other thing a server can do.
type toy struct {
	server *mcp.Server

	mu      sync.Mutex
	items   []string
	deleted []string
	closed  []string // answers to close_item's question
	headers []http.Header
	grown   int

	deleting  func(ctx context.Context, id string) // runs inside delete_item
	waiting   chan struct{}                        // a call of wait began
	cancelled chan struct{}                        // and its context ended
}

type (
	noInput struct{}
	item    struct {
		ID string `json:"id"`
	}
	listing struct {
		Items []item `json:"items"`
	}
	said struct {
		Text string `json:"text"`
	}
	change struct {
		Done string `json:"done"`
	}
)

// toyPolicy is the contract of the toy.
const toyPolicy = `
pins: optional
collections: { item: { closed: true } }
tools:
  toy/list_items:
    effect: read
    outputs: [{ at: /items/*/id, label: system, collection: item, authoritative: true }]
  toy/delete_item:
    effect: write
    args: { /id: { role: selector, collection: item, from: [output] } }
  toy/mark_item:
    effect: write
    args: { /id: { role: selector, collection: item, from: [output] } }
  toy/close_item:
    effect: write
    args: { /id: { role: selector, collection: item, from: [output] } }
  toy/look: { effect: read }
  toy/ask: { effect: read }
  toy/sample: { effect: read }
  toy/steps: { effect: read }
  toy/wait: { effect: read }
  toy/grow: { effect: read }
  toy/grown1: { effect: read, optional: true }
`

func newToy() *toy {
	y := &toy{items: []string{"item-17", "item-18"}, waiting: make(chan struct{}, 8), cancelled: make(chan struct{}, 8)}
	s := mcp.NewServer(&mcp.Implementation{Name: "toy", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{r.Params.Argument.Name + "1"}}}, nil
		},
	})
	y.server = s
	mcp.AddTool(s, &mcp.Tool{Name: "list_items"}, func(context.Context, *mcp.CallToolRequest, noInput) (*mcp.CallToolResult, listing, error) {
		y.mu.Lock()
		defer y.mu.Unlock()
		l := listing{Items: []item{}}
		for _, id := range y.items {
			l.Items = append(l.Items, item{id})
		}
		return nil, l, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "delete_item"}, func(ctx context.Context, _ *mcp.CallToolRequest, in item) (*mcp.CallToolResult, change, error) {
		y.mu.Lock()
		hook := y.deleting
		y.mu.Unlock()
		if hook != nil {
			hook(ctx, in.ID)
		}
		y.mu.Lock()
		defer y.mu.Unlock()
		y.deleted = append(y.deleted, in.ID)
		return nil, change{in.ID}, nil
	})
	// mark_item publishes no outputSchema.
	s.AddTool(&mcp.Tool{Name: "mark_item", InputSchema: map[string]any{"type": "object", "required": []string{"id"},
		"properties": map[string]any{"id": map[string]any{"type": "string"}}}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return plain("marked"), nil })
	mcp.AddTool(s, &mcp.Tool{Name: "look"}, func(_ context.Context, _ *mcp.CallToolRequest, in said) (*mcp.CallToolResult, said, error) {
		return nil, in, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ noInput) (*mcp.CallToolResult, any, error) {
		ans, pending, err := elicit(ctx, r)
		if pending != nil || err != nil {
			return pending, nil, err
		}
		return plain(fmt.Sprint(ans.Action, " ", ans.Content["id"])), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "close_item"}, func(ctx context.Context, r *mcp.CallToolRequest, _ item) (*mcp.CallToolResult, any, error) {
		ans, pending, err := elicit(ctx, r)
		if pending != nil || err != nil {
			return pending, nil, err
		}
		y.mu.Lock()
		y.closed = append(y.closed, fmt.Sprint(ans.Action, " ", ans.Content["id"]))
		y.mu.Unlock()
		return plain("closed"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "sample"}, func(ctx context.Context, r *mcp.CallToolRequest, _ noInput) (*mcp.CallToolResult, any, error) {
		ask := &mcp.CreateMessageParams{MaxTokens: 7, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "say"}}}}
		var res *mcp.CreateMessageResult
		if r.ProtocolVersion() >= "2026-07-28" {
			if len(r.Params.InputResponses) == 0 {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": ask}}, nil, nil
			}
			switch a := r.Params.InputResponses["q"].(type) {
			case *mcp.CreateMessageResult:
				res = a
			case *mcp.CreateMessageWithToolsResult:
				return plain("sampled " + a.Content[0].(*mcp.TextContent).Text), nil, nil
			default:
				return nil, nil, fmt.Errorf("answered with a %T", a)
			}
		} else {
			var err error
			if res, err = r.Session.CreateMessage(ctx, ask); err != nil {
				return nil, nil, err
			}
		}
		return plain("sampled " + res.Content.(*mcp.TextContent).Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "steps"}, func(ctx context.Context, r *mcp.CallToolRequest, _ noInput) (*mcp.CallToolResult, any, error) {
		r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "item-99"})
		r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Data: "item-98"})
		return plain("done"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ noInput) (*mcp.CallToolResult, any, error) {
		y.waiting <- struct{}{}
		<-ctx.Done()
		y.cancelled <- struct{}{}
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, noInput) (*mcp.CallToolResult, any, error) {
		y.mu.Lock()
		y.grown++
		name := fmt.Sprint("grown", y.grown)
		y.mu.Unlock()
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, noInput) (*mcp.CallToolResult, any, error) {
			return plain("grown"), nil, nil
		})
		return plain("growing"), nil, nil
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "text of " + r.Params.URI}}}, nil
	}
	s.AddResource(&mcp.Resource{Name: "one", URI: "mem://one"}, read)
	s.AddResource(&mcp.Resource{Name: "two", URI: "mem://two"}, read)
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "by item", URITemplate: "mem://items/{id}"}, read)
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who"}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hello " + r.Params.Arguments["who"]}}}}, nil
	})
	return y
}

func plain(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// elicit asks a person on whichever wire the call came by; pending is the
// result that asks.
func elicit(ctx context.Context, r *mcp.CallToolRequest) (ans *mcp.ElicitResult, pending *mcp.CallToolResult, err error) {
	ask := &mcp.ElicitParams{Message: "which?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"id": map[string]any{"type": "string"}}}}
	if r.ProtocolVersion() < "2026-07-28" {
		ans, err = r.Session.Elicit(ctx, ask)
		return ans, nil, err
	}
	if len(r.Params.InputResponses) == 0 {
		return nil, &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": ask}, RequestState: "state-1"}, nil
	}
	if r.Params.RequestState != "state-1" {
		return nil, nil, fmt.Errorf("another state")
	}
	ans, ok := r.Params.InputResponses["q"].(*mcp.ElicitResult)
	if !ok {
		return nil, nil, fmt.Errorf("answered with a %T", r.Params.InputResponses["q"])
	}
	return ans, nil, nil
}

func (y *toy) gone() []string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.Clone(y.deleted)
}

// config starts the toy and returns how the gateway reaches it.
func (y *toy) config(tb testing.TB, modern, overHTTP bool) upstream.Config {
	c := upstream.Config{Name: "toy", Era: upstream.Legacy}
	if modern {
		c.Era = upstream.Modern
	}
	if overHTTP {
		h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return y.server }, &mcp.StreamableHTTPOptions{Stateless: modern, PropagateRequestCancellation: true})
		ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			y.mu.Lock()
			y.headers = append(y.headers, r.Header.Clone())
			y.mu.Unlock()
			h.ServeHTTP(w, r)
		}))
		tb.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
		c.URL = ts.URL
		return c
	}
	c.Command, c.Env = overStdio(tb, func(conn net.Conn) {
		y.server.Run(context.Background(), &mcp.IOTransport{Reader: conn, Writer: conn})
	})
	return c
}

// sdkClient is a client of the official SDK, connected to a rig.
func sdkClient(tb testing.TB, r *rig, kind int, opts *mcp.ClientOptions) *mcp.ClientSession {
	tb.Helper()
	ctx := testContext(tb)
	version := "2025-11-25"
	if kinds[kind].modern {
		version = "2026-07-28"
	}
	var tr mcp.Transport
	if kinds[kind].http {
		web := &http.Transport{}
		tb.Cleanup(web.CloseIdleConnections)
		url := r.front.URL + "/mcp"
		if kinds[kind].modern {
			url += "/s/" + r.mint()
		}
		tr = &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: web}}
	} else {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		tr = &mcp.IOTransport{Reader: outR, Writer: inW}
		serveLines(tb, r, inR, outW)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, opts).Connect(ctx, tr, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != version {
		tb.Fatalf("the wire is %s, want %s", got, version)
	}
	return cs
}
