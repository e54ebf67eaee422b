package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestSDKClient connects the official client over both transports with every
// version, and holds what a person would try first.
func TestSDKClient(t *testing.T) {
	transports := map[string]func(t *testing.T, f *fake) mcp.Transport{
		"http": func(t *testing.T, f *fake) mcp.Transport {
			addr := serveHTTP(t, f, Options{})
			tr := &http.Transport{}
			t.Cleanup(tr.CloseIdleConnections)
			return &mcp.StreamableClientTransport{Endpoint: "http://" + addr + "/mcp", HTTPClient: &http.Client{Transport: tr}}
		},
		"endpoint": func(t *testing.T, f *fake) mcp.Transport {
			f.mint("run", Loopback)
			addr := serveHTTP(t, f, Options{})
			tr := &http.Transport{}
			t.Cleanup(tr.CloseIdleConnections)
			return &mcp.StreamableClientTransport{Endpoint: "http://" + addr + "/mcp/s/run", HTTPClient: &http.Client{Transport: tr}}
		},
		"stdio": func(t *testing.T, f *fake) mcp.Transport {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			done := make(chan error, 1)
			go func() {
				err := ServeStdio(context.Background(), f, inR, outW, StdioOptions{})
				outW.Close()
				done <- err
			}()
			t.Cleanup(func() {
				inW.Close()
				outR.Close()
				if err := <-done; err != nil && !errors.Is(err, errOutput) {
					t.Errorf("ServeStdio: %v", err)
				}
			})
			return &mcp.IOTransport{Reader: outR, Writer: inW}
		},
	}
	for name, connect := range transports {
		for _, version := range Versions {
			t.Run(name+" "+version, func(t *testing.T) { trySDK(t, connect, name, version) })
		}
	}
}

func trySDK(t *testing.T, connect func(*testing.T, *fake) mcp.Transport, name, version string) {
	ctx := t.Context()
	f := newFake()
	f.subbed = make(chan Listener, 10)
	progress := make(chan float64, 10)
	changed := make(chan bool, 10)
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Bob"}}, nil
		},
	})
	transport := connect(t, f)
	s, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.InitializeResult(); got == nil || got.ProtocolVersion != version || got.Instructions != "Read me." {
		t.Fatalf("negotiated %+v", got)
	}
	tools, err := s.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 2 {
		t.Fatalf("tools: %v %v", tools, err)
	}
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": "é"}})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := json.Marshal(r.StructuredContent); string(b) != `{"a":"é"}` {
		t.Errorf("echo: %s", b)
	}
	r, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "who"})
	if err != nil {
		t.Fatal(err)
	}
	who := map[string]string{"http": "loopback s_1 ", "endpoint": "loopback s_run ", "stdio": "local s_1 "}[name]
	if name == "http" && version == Version20260728 {
		who = "loopback none "
	}
	if got := r.Content[0].(*mcp.TextContent).Text; got != who+version+" " {
		t.Errorf("who: %q", got)
	}
	if _, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "progress", Meta: mcp.Meta{"progressToken": 1}}); err != nil {
		t.Fatal(err)
	}
	if a, b := <-progress, <-progress; a != 0 || b != 1 {
		t.Errorf("progress %v %v", a, b)
	}
	if _, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "nobody"}); err == nil {
		t.Error("an unknown tool was called")
	}
	r, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "ask"})
	switch {
	case version == Version20260728 || version < Version20250618:
		if err == nil {
			t.Error("a client of this version was asked")
		}
	case err != nil:
		t.Fatal(err)
	default:
		if b, _ := json.Marshal(r.StructuredContent); string(b) != `{"answer":{"action":"accept","content":{"name":"Bob"}}}` {
			t.Errorf("ask: %s", b)
		}
	}
	// The client listens in its own way: GET, subscriptions/listen, or the pipe.
	<-f.subbed
	f.tell("notifications/tools/list_changed", "")
	<-changed

	// A cancelled call ends, here and there.
	short, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := s.CallTool(short, &mcp.CallToolParams{Name: "wait"})
		done <- err
	}()
	<-f.started
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: %v", err)
	}
	if err := <-f.ended; err == nil {
		t.Error("the call was not cancelled here")
	}
}
