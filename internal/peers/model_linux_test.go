package peers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A dialogue is what the stand-in for a model does: a file of testdata/agents.
type dialogue struct {
	// About says what it shows.
	About string `yaml:"about"`
	// Prompt is what the user types.
	Prompt string `yaml:"prompt"`
	// Turns are tried in order: the first that fits the transcript is the model's turn.
	Turns []turn `yaml:"turns"`
}

// A turn of the model is a call of a tool, or a sentence, which ends the loop.
type turn struct {
	// It fits where After stands in the last tool result, or there are as many Results,
	// and where it has neither, where there is none yet.
	After   string         `yaml:"after"`
	Results int            `yaml:"results"`
	Call    string         `yaml:"call"`
	Args    map[string]any `yaml:"args"`
	Say     string         `yaml:"say"`
}

// A seen is what a client sent to its model, as far as a model goes by it.
type seen struct {
	tools   []offer           // what it may call
	hidden  []string          // what it may call once it has asked for it
	results []json.RawMessage // what came of its calls, in order, as the client wrote it
	stream  bool
}

// An offer is a tool as a client names it to the model.
type offer struct{ space, name string }

// A wire is the API of a model: how a transcript is read, and a turn is written.
type wire struct {
	read  func(path string, body []byte) (seen, error)
	write func(w *reply, t turn, tool offer)
}

// A model stands in for a model's API on loopback. It keeps what its client showed it.
type model struct {
	t    testing.TB
	wire wire
	dialogue
	URL string

	mu      sync.Mutex
	results []json.RawMessage // of the longest transcript
	said    *log
}

// standIn serves until the test ends. It is its client's proxy as well, and lets
// nothing through.
func standIn(t testing.TB, w wire, d dialogue) *model {
	m := &model{t: t, wire: w, dialogue: d, said: show(t, "the model")}
	s := httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(s.Close)
	m.URL = s.URL
	return m
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect || r.URL.IsAbs() {
		http.Error(w, "no network here", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
	if err != nil {
		http.Error(w, "too long", http.StatusRequestEntityTooLarge)
		return
	}
	in, err := m.wire.read(r.URL.Path, body)
	fmt.Fprintf(m.said, "%s %s with %d tools and the results %s\n", r.Method, r.URL.Path, len(in.tools), in.results)
	if err != nil {
		http.Error(w, `{"error":{"message":"not here"}}`, http.StatusNotFound)
		return
	}
	m.mu.Lock()
	if len(in.results) > len(m.results) {
		m.results = in.results
	}
	m.mu.Unlock()
	out := &reply{stream: in.stream, number: len(in.results)}
	next, tool := m.next(in)
	m.wire.write(out, next, tool)
	fmt.Fprintf(m.said, "-> %s\n", out.Bytes())
	w.Header().Set("Content-Type", "application/json")
	if in.stream {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.Write(out.Bytes())
}

// next is the model's turn. A request without the tool, such as for a title, gets a word.
func (m *model) next(in seen) (turn, offer) {
	last := ""
	if n := len(in.results); n > 0 {
		last = readable(in.results[n-1])
	}
	for _, t := range m.Turns {
		if fits := t.After != "" && strings.Contains(last, t.After); !fits && (t.After != "" || t.Results != len(in.results)) {
			continue
		}
		if t.Args == nil {
			t.Args = j{}
		}
		if t.Call == "" {
			return t, offer{}
		}
		is := func(name string) func(o offer) bool {
			return func(o offer) bool { return strings.HasSuffix(o.name, name) }
		}
		if i := slices.IndexFunc(in.tools, is(t.Call)); i >= 0 {
			return t, in.tools[i]
		}
		if i := slices.IndexFunc(in.tools, is(toolSearch)); i >= 0 && len(in.hidden) > 0 {
			return turn{Call: toolSearch, Args: j{"query": "select:" + strings.Join(in.hidden, ",")}}, in.tools[i]
		}
		return turn{Say: "nothing to call"}, offer{}
	}
	return turn{Say: "nothing to do"}, offer{}
}

// shown are the results that reached the model.
func (m *model) shown() []json.RawMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.results
}

// readable is a result as the model reads it: each string in it, a line of its own.
func readable(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
	return b.String()
}

// A reply is a body of JSON, or of server-sent events.
type reply struct {
	bytes.Buffer
	stream bool
	number int // of results before it: its ids are of it
}

func (r *reply) id(prefix string) string { return fmt.Sprintf("%s_%d", prefix, r.number+1) }

// event writes one event, named by its type where it has one.
func (r *reply) event(v map[string]any) {
	if name, ok := v["type"]; ok {
		fmt.Fprintf(r, "event: %s\n", name)
	}
	r.WriteString("data: ")
	r.json(v)
	r.WriteString("\n")
}

func (r *reply) json(v any) {
	if err := json.NewEncoder(r).Encode(v); err != nil {
		panic(err)
	}
}

// j is short for an object.
type j = map[string]any

// compact is JSON as a text, for arguments that are written as one.
func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// toolSearch is the tool by which Claude Code's model asks for the definitions of
// tools that it knows by name alone. What comes of it is no result of a server's.
const toolSearch = "ToolSearch"

var named = regexp.MustCompile(`mcp__[a-zA-Z0-9_-]+`)

// anthropicMessages is Anthropic's Messages API.
var anthropicMessages = wire{
	read: func(path string, body []byte) (seen, error) {
		var in struct {
			Stream   bool
			Tools    []struct{ Name string }
			Messages []struct {
				Content json.RawMessage
			}
		}
		if path != "/v1/messages" {
			return seen{}, fmt.Errorf("%s", path)
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return seen{}, err
		}
		out, searched := seen{stream: in.Stream}, ""
		for _, t := range in.Tools {
			out.tools = append(out.tools, offer{name: t.Name})
		}
		for _, m := range in.Messages {
			var parts []json.RawMessage
			if json.Unmarshal(m.Content, &parts) != nil {
				continue // a plain text
			}
			for _, p := range parts {
				var is struct {
					Type string
					Name string
					ID   string
					Of   string `json:"tool_use_id"`
				}
				switch json.Unmarshal(p, &is); {
				case is.Type == "tool_use" && is.Name == toolSearch:
					searched = is.ID
				case is.Type == "tool_result" && is.Of != searched:
					out.results = append(out.results, p)
				}
			}
		}
		for _, name := range named.FindAllString(string(body), -1) {
			if !slices.Contains(out.hidden, name) {
				out.hidden = append(out.hidden, name)
			}
		}
		return out, nil
	},
	write: func(w *reply, t turn, tool offer) {
		block, stop := j{"type": "text", "text": t.Say}, "end_turn"
		if t.Call != "" {
			block, stop = j{"type": "tool_use", "id": w.id("toolu_" + t.Call), "name": tool.name, "input": t.Args}, "tool_use"
		}
		message := j{"id": w.id("msg"), "type": "message", "role": "assistant", "model": "stand-in", "content": []any{block},
			"stop_reason": stop, "stop_sequence": nil, "usage": j{"input_tokens": 1, "output_tokens": 1}}
		if !w.stream {
			w.json(message)
			return
		}
		first, delta := j{"type": "text", "text": ""}, j{"type": "text_delta", "text": t.Say}
		if t.Call != "" {
			first = j{"type": "tool_use", "id": block["id"], "name": tool.name, "input": j{}}
			delta = j{"type": "input_json_delta", "partial_json": compact(t.Args)}
		}
		message["content"], message["stop_reason"] = []any{}, nil
		w.event(j{"type": "message_start", "message": message})
		w.event(j{"type": "content_block_start", "index": 0, "content_block": first})
		w.event(j{"type": "content_block_delta", "index": 0, "delta": delta})
		w.event(j{"type": "content_block_stop", "index": 0})
		w.event(j{"type": "message_delta", "delta": j{"stop_reason": stop, "stop_sequence": nil}, "usage": j{"output_tokens": 1}})
		w.event(j{"type": "message_stop"})
	},
}

// geminiContent is Gemini's generateContent.
var geminiContent = wire{
	read: func(path string, body []byte) (seen, error) {
		var in struct {
			Tools []struct {
				FunctionDeclarations []struct{ Name string }
			}
			Contents []struct {
				Parts []struct {
					FunctionResponse json.RawMessage
				}
			}
		}
		_, method, _ := strings.Cut(path, ":")
		if method != "generateContent" && method != "streamGenerateContent" {
			return seen{}, fmt.Errorf("%s", path)
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return seen{}, err
		}
		out := seen{stream: method == "streamGenerateContent"}
		for _, t := range in.Tools {
			for _, f := range t.FunctionDeclarations {
				out.tools = append(out.tools, offer{name: f.Name})
			}
		}
		for _, c := range in.Contents {
			for _, p := range c.Parts {
				if p.FunctionResponse != nil {
					out.results = append(out.results, p.FunctionResponse)
				}
			}
		}
		return out, nil
	},
	write: func(w *reply, t turn, tool offer) {
		part := j{"text": t.Say}
		if t.Call != "" {
			part = j{"functionCall": j{"name": tool.name, "args": t.Args}}
		}
		v := j{"candidates": []any{j{"index": 0, "content": j{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
			"usageMetadata": j{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}, "modelVersion": "stand-in"}
		if w.stream {
			w.event(v)
		} else {
			w.json(v)
		}
	},
}

// openaiResponses is OpenAI's Responses API.
var openaiResponses = wire{
	read: func(path string, body []byte) (seen, error) {
		type tool struct {
			Type, Name string
			Tools      []struct{ Name string }
		}
		var in struct {
			Stream bool
			Tools  []tool
			Input  []json.RawMessage
		}
		if path != "/v1/responses" {
			return seen{}, fmt.Errorf("%s", path)
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return seen{}, err
		}
		out := seen{stream: in.Stream}
		for _, t := range in.Tools {
			if t.Type == "function" {
				out.tools = append(out.tools, offer{name: t.Name})
			}
			for _, f := range t.Tools {
				out.tools = append(out.tools, offer{t.Name, f.Name})
			}
		}
		for _, p := range in.Input {
			var is struct{ Type string }
			if json.Unmarshal(p, &is) == nil && is.Type == "function_call_output" {
				out.results = append(out.results, p)
			}
		}
		return out, nil
	},
	write: func(w *reply, t turn, tool offer) {
		item := j{"type": "message", "id": w.id("msg"), "role": "assistant", "status": "completed", "content": []any{j{"type": "output_text", "text": t.Say, "annotations": []any{}}}}
		if t.Call != "" {
			item = j{"type": "function_call", "id": w.id("fc"), "call_id": w.id("call"), "name": tool.name, "arguments": compact(t.Args), "status": "completed"}
			if tool.space != "" {
				item["namespace"] = tool.space
			}
		}
		response := j{"id": w.id("resp"), "object": "response", "status": "completed", "output": []any{item},
			"usage": j{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
		if !w.stream {
			w.json(response)
			return
		}
		w.event(j{"type": "response.created", "response": j{"id": response["id"]}})
		w.event(j{"type": "response.output_item.added", "output_index": 0, "item": item})
		w.event(j{"type": "response.output_item.done", "output_index": 0, "item": item})
		w.event(j{"type": "response.completed", "response": response})
	},
}

// openaiChat is OpenAI's chat completions.
var openaiChat = wire{
	read: func(path string, body []byte) (seen, error) {
		var in struct {
			Stream bool
			Tools  []struct {
				Function struct{ Name string }
			}
			Messages []json.RawMessage
		}
		if path != "/v1/chat/completions" {
			return seen{}, fmt.Errorf("%s", path)
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return seen{}, err
		}
		out := seen{stream: in.Stream}
		for _, t := range in.Tools {
			out.tools = append(out.tools, offer{name: t.Function.Name})
		}
		for _, m := range in.Messages {
			var is struct{ Role string }
			if json.Unmarshal(m, &is) == nil && is.Role == "tool" {
				out.results = append(out.results, m)
			}
		}
		return out, nil
	},
	write: func(w *reply, t turn, tool offer) {
		message, stop := j{"role": "assistant", "content": t.Say}, "stop"
		if t.Call != "" {
			stop = "tool_calls"
			message = j{"role": "assistant", "content": nil, "tool_calls": []any{j{"index": 0, "id": w.id("call"), "type": "function",
				"function": j{"name": tool.name, "arguments": compact(t.Args)}}}}
		}
		v := j{"id": w.id("chat"), "object": "chat.completion", "created": 1, "model": "stand-in",
			"choices": []any{j{"index": 0, "message": message, "finish_reason": stop}}, "usage": j{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
		if !w.stream {
			w.json(v)
			return
		}
		chunk := func(delta j, stop any) {
			v["object"], v["choices"] = "chat.completion.chunk", []any{j{"index": 0, "delta": delta, "finish_reason": stop}}
			w.event(v)
		}
		chunk(message, nil)
		chunk(j{}, stop)
		w.WriteString("data: [DONE]\n\n")
	},
}
