package model

import (
	"context"
	"net/http"
	"strings"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/strictjson"
)

// OpenAI is a planner and summariser behind any endpoint with the wire of
// OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp. It asks for no
// stream, offers the model no tools and asks once.
type OpenAI struct {
	client *http.Client
	url    string
	e      Endpoint
}

// NewOpenAI returns the client of an endpoint whose URL ends before
// /chat/completions.
func NewOpenAI(e Endpoint) *OpenAI {
	return &OpenAI{modelClient(wholeOpenAI), strings.TrimRight(e.URL, "/") + "/chat/completions", e}
}

// Plan implements ask.Planner.
func (o *OpenAI) Plan(ctx context.Context, p ask.Prompt) ([]byte, error) {
	system, user, err := p.Messages()
	if err != nil {
		return nil, err
	}
	return o.ask(ctx, system, user)
}

// Summarise implements ask.Summariser.
func (o *OpenAI) Summarise(ctx context.Context, m ask.Material) ([]byte, error) {
	system, user := m.Messages()
	return o.ask(ctx, system, user)
}

func (o *OpenAI) ask(ctx context.Context, system, user string) ([]byte, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	type format struct {
		Type string `json:"type"`
	}
	header := http.Header{}
	if o.e.Key != "" {
		header.Set("Authorization", "Bearer "+o.e.Key)
	}
	raw, err := post(ctx, o.client, o.url, header, struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
		Format   format    `json:"response_format"`
	}{o.e.Model, []message{{"system", system}, {"user", user}}, format{"json_object"}})
	if err != nil {
		return nil, err
	}
	choices, _ := strictjson.Elements(strictjson.Get(raw, "choices"))
	if len(choices) != 1 {
		return nil, &ask.ReplyError{Need: "an answer with exactly one choice"}
	}
	said := strictjson.Get(choices[0], "message")
	calls := strictjson.Get(said, "tool_calls")
	list, ok := strictjson.Elements(calls)
	refusal := strictjson.Get(said, "refusal")
	finish, _ := strictjson.Text(strictjson.Get(choices[0], "finish_reason"))
	content, _ := strictjson.Text(strictjson.Get(said, "content"))
	switch {
	case given(calls) && !ok, len(list) > 0, given(strictjson.Get(said, "function_call")):
		return nil, &ask.ReplyError{Need: "a plan as text; the model made a tool call of its own, which nobody carries out"}
	case given(refusal) && string(refusal) != `""`:
		return nil, &ask.ReplyError{Need: "a plan as text; the model refused"}
	case finish != "stop":
		return nil, &ask.ReplyError{Need: "a whole answer; the model's was cut off"}
	case content == "":
		return nil, &ask.ReplyError{Need: "a plan as text; the model wrote none"}
	}
	return []byte(content), nil
}
