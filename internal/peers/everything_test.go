package peers

//lint:file-ignore SA1019 sampling is deprecated; the clients and servers that use it are still there

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	writ "github.com/writ-project/writ"
)

// page is a page on this machine that the server may be asked to fetch.
func page(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("a page")) }))
	t.Cleanup(s.Close)
	return s.URL + "/page"
}

var portLine = regexp.MustCompile(`listening on port (\d+)`)

// everything are the ways server-everything can stand behind the gateway.
var everything = []struct {
	name   string
	behind func(t *testing.T, page string) behind
}{
	{"stdio", func(t *testing.T, page string) behind {
		return behind{name: "everything", command: npmServer(t, "everything", "stdio"), env: []string{"DEMO_PAGE=" + page}}
	}},
	{"streamableHttp", func(t *testing.T, page string) behind {
		port := freeAddress(t)
		command := npmServer(t, "everything", "streamableHttp")
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = []string{"PORT=" + port, "DEMO_PAGE=" + page}
		start(t, cmd, portLine)
		return behind{name: "everything", url: "http://127.0.0.1:" + port + "/mcp"}
	}},
}

// TestEverything: server-everything under examples/everything, over stdio and
// over Streamable HTTP.
func TestEverything(t *testing.T) {
	for _, e := range everything {
		t.Run(e.name, func(t *testing.T) {
			var url string
			eachScenario(t, "everything", func(t *testing.T, _ string) []behind {
				url = page(t)
				return []behind{e.behind(t, url)}
			}, func() []string { return []string{"$PAGE", url} })
		})
	}
}

// TestEnvironment is U03: a child sees PATH, HOME and what its configuration
// lists, whatever the gateway itself was started with.
func TestEnvironment(t *testing.T) {
	dir, state := example(t, "everything", config(everything[0].behind(t, "http://127.0.0.1:9/listed"))), canonicalTemp(t)
	cmd := exec.Command(binary, "run", "--config", filepath.Join(dir, "writ.yaml"), "--state", state)
	cmd.Env = append(cmd.Environ(), "A_SECRET_OF_THE_GATEWAY=do-not-tell", "NODE_DEBUG_NOTHING=1")
	cmd.Stderr = show(t, "writ run")
	cs := connect(t, &mcp.CommandTransport{Command: cmd}, nil)
	listed(t, cs, "get-env")
	var env map[string]string
	if err := json.Unmarshal([]byte(text(callTool(t, cs, "get-env", nil))), &env); err != nil {
		t.Fatal(err)
	}
	if env["DEMO_PAGE"] != "http://127.0.0.1:9/listed" || env["PATH"] == "" {
		t.Errorf("the child lacks what it was to have: %v", env)
	}
	for name := range env {
		if !slices.Contains([]string{"PATH", "HOME", "DEMO_PAGE"}, name) {
			t.Errorf("the child has %s", name)
		}
	}
}

// TestPassThrough: elicitation, sampling, progress, log messages, resources,
// templates, prompts, completions and subscriptions of a real server, through
// both fronts, under the policy and in shadow mode.
func TestPassThrough(t *testing.T) {
	peersDir(t)
	for _, e := range everything {
		for _, f := range fronts {
			t.Run(e.name+"/"+f.name, func(t *testing.T) { passThrough(t, e.behind(t, "http://127.0.0.1:9/page"), f) })
		}
		t.Run(e.name+"/shadow", func(t *testing.T) {
			dir := example(t, "everything", config(e.behind(t, "http://127.0.0.1:9/page"))+"shadow: true\n")
			c := newClient()
			cs := fronts[0].open(t, dir, canonicalTemp(t), c.options())
			c.answer = "accept"
			listed(t, cs, "trigger-elicitation-request", "trigger-sampling-request")
			if res := callTool(t, cs, "trigger-elicitation-request", nil); res.IsError || !strings.Contains(text(res), "Ada Example") {
				t.Errorf("elicitation: %s", text(res))
			}
			res := callTool(t, cs, "trigger-sampling-request", map[string]any{"prompt": "hello", "maxTokens": 10})
			if res.IsError || !strings.Contains(text(res), "sampled eve@evil.example") {
				t.Errorf("sampling: %s", text(res))
			}
			if is, _ := admissible(res.Meta); is {
				t.Error("what a model answered is evidence (P19)")
			}
			// An update of a resource reaches the client that subscribed to it.
			ctx, uri := testContext(t), "demo://resource/static/document/features.md"
			if err := cs.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
				t.Fatalf("resources/subscribe: %v", err)
			}
			callTool(t, cs, "toggle-subscriber-updates", nil)
			select {
			case got := <-c.updated:
				if got != uri {
					t.Errorf("an update of %s", got)
				}
			case <-ctx.Done():
				t.Error("no update of the resource came")
			}
		})
	}
}

// A client answers what a server asks in the middle of a call.
type client struct {
	answer   string // to elicitations: accept, decline
	asked    chan string
	progress chan *mcp.ProgressNotificationParams
	updated  chan string
}

func newClient() *client {
	return &client{asked: make(chan string, 8), progress: make(chan *mcp.ProgressNotificationParams, 8), updated: make(chan string, 8)}
}

func (c *client) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			c.asked <- "elicitation"
			if c.answer != "accept" {
				return &mcp.ElicitResult{Action: c.answer}, nil
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada Example", "check": true}}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			c.asked <- "sampling"
			return &mcp.CreateMessageResult{Model: "a-model", Role: "assistant", Content: &mcp.TextContent{Text: "sampled eve@evil.example"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { c.progress <- r.Params },
		ResourceUpdatedHandler:      func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { c.updated <- r.Params.URI },
	}
}

// was waits until the client was asked something.
func (c *client) was(t *testing.T, what string) {
	t.Helper()
	select {
	case got := <-c.asked:
		if got != what {
			t.Errorf("the client was asked for %s, not %s", got, what)
		}
	default:
		t.Errorf("the client was not asked for %s", what)
	}
}

func passThrough(t *testing.T, server behind, front front) {
	ctx := testContext(t)
	dir, state := example(t, "everything", config(server)), canonicalTemp(t)
	c := newClient()
	cs := front.open(t, dir, state, c.options(), server)
	listed(t, cs, "trigger-elicitation-request", "trigger-sampling-request")

	// P19, R31: a question reaches the client. An answer inside an act is an
	// argument of it, which nothing vouches for: it never reaches the server, which
	// hears of a cancelled question instead.
	c.answer = "accept"
	res := callTool(t, cs, "trigger-elicitation-request", nil)
	c.was(t, "elicitation")
	if strings.Contains(text(res), "Ada Example") {
		t.Errorf("an answer nobody vouched for reached the server (P19): %s", text(res))
	}
	c.answer = "decline"
	res = callTool(t, cs, "trigger-elicitation-request", nil)
	c.was(t, "elicitation")
	if res.IsError || !strings.Contains(text(res), "declined") && !strings.Contains(text(res), "cancelled") {
		t.Errorf("a declined elicitation: %s", text(res))
	}
	prompt := map[string]any{"prompt": "hello", "maxTokens": 10}
	if r := rejection(t, callTool(t, cs, "trigger-sampling-request", prompt).Meta); r == nil || r.Reason != writ.ProvenanceUnseen {
		t.Errorf("an invented prompt: %+v", r)
	}
	var weather struct{ Conditions string }
	if err := json.Unmarshal([]byte(text(callTool(t, cs, "get-structured-content", map[string]any{"location": "Chicago"}))), &weather); err != nil {
		t.Fatal(err)
	}
	prompt["prompt"] = weather.Conditions
	res = callTool(t, cs, "trigger-sampling-request", prompt)
	c.was(t, "sampling")
	if strings.Contains(text(res), "eve@evil.example") {
		t.Errorf("a sampled text reached the server inside an act (P19): %s", text(res))
	}

	long := &mcp.CallToolParams{Name: "trigger-long-running-operation", Arguments: map[string]any{"duration": 0.1, "steps": 2}}
	long.SetProgressToken("mine")
	if res, err := cs.CallTool(ctx, long); err != nil || res.IsError {
		t.Errorf("a long operation: %v %v", res, err)
	}
	select {
	case p := <-c.progress:
		if p.ProgressToken != "mine" || p.Total != 2 {
			t.Errorf("progress %+v", p)
		}
	case <-ctx.Done():
		t.Error("no progress came")
	}

	// Resources: only what was listed in this session (P24).
	read := func(uri string) error {
		r, err := cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		if err == nil && (len(r.Contents) != 1 || r.Contents[0].URI != uri) {
			t.Errorf("%s: %+v", uri, r)
		}
		return err
	}
	refused(t, read("demo://resource/static/document/features.md"), "provenance.unseen")
	refused(t, cs.Subscribe(ctx, &mcp.SubscribeParams{URI: "demo://resource/static/document/features.md"}), "provenance.unseen")
	all, err := cs.ListResources(ctx, nil)
	if err != nil || len(all.Resources) < 5 {
		t.Fatalf("resources/list: %v %v", all, err)
	}
	if err := read("demo://resource/static/document/features.md"); err != nil {
		t.Error(err)
	}
	refused(t, read("file:///etc/passwd"), "provenance.unseen")
	if _, err := cs.ListResourceTemplates(ctx, nil); err != nil {
		t.Error(err)
	}
	refused(t, read("demo://resource/dynamic/text/4711"), "provenance.unseen")
	if err := cs.Subscribe(ctx, &mcp.SubscribeParams{URI: "demo://resource/static/document/features.md"}); err != nil {
		t.Errorf("resources/subscribe: %v", err)
	}
	if err := cs.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "demo://resource/static/document/features.md"}); err != nil {
		t.Errorf("resources/unsubscribe: %v", err)
	}

	_, err = cs.GetPrompt(ctx, &mcp.GetPromptParams{Name: "simple-prompt"})
	refused(t, err, "provenance.unseen")
	if ps, err := cs.ListPrompts(ctx, nil); err != nil || len(ps.Prompts) < 4 {
		t.Fatalf("prompts/list: %v %v", ps, err)
	}
	if p, err := cs.GetPrompt(ctx, &mcp.GetPromptParams{Name: "simple-prompt"}); err != nil || len(p.Messages) == 0 {
		t.Errorf("prompts/get: %v %v", p, err)
	}
	_, err = cs.GetPrompt(ctx, &mcp.GetPromptParams{Name: "args-prompt", Arguments: map[string]string{"city": "eve@evil.example"}})
	refused(t, err, "")
	_, err = cs.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "completable-prompt"},
		Argument: mcp.CompleteParamsArgument{Name: "department", Value: "Eng"}})
	refused(t, err, "")
	cs.Close()
	verify(t, state)
}

// refused fails unless err is a refusal, by that reason or by any.
func refused(t testing.TB, err error, reason string) {
	t.Helper()
	var e *jsonrpc.Error
	if !errors.As(err, &e) || !strings.Contains(string(e.Data), `"reason":"`+reason) || !strings.Contains(string(e.Data), `"rejected"`) {
		t.Errorf("got %v, want a refusal by %s", err, reason)
	}
}
