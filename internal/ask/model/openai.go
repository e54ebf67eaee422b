package model

import (
	"context"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/writ-project/writ/internal/ask"
)

// OpenAI is a planner and summariser behind any endpoint with the wire of
// OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp. It asks for no
// stream, offers the model no tools and asks once.
type OpenAI struct {
	client *openai.Client
	model  string
}

// NewOpenAI returns the client of an endpoint whose URL ends before
// /chat/completions.
func NewOpenAI(e Endpoint) *OpenAI {
	c := openai.DefaultConfig(e.Key)
	c.BaseURL = strings.TrimRight(e.URL, "/")
	c.HTTPClient = modelClient(wholeOpenAI)
	return &OpenAI{openai.NewClientWithConfig(c), e.Model}
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
	resp, err := o.client.CreateChatCompletion(ctx, openai.ChatCompletionRequest{
		Model: o.model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: system},
			{Role: openai.ChatMessageRoleUser, Content: user},
		},
		ResponseFormat: &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject},
	})
	if err != nil {
		return nil, modelError(ctx, err)
	}
	if len(resp.Choices) != 1 {
		return nil, &ask.ReplyError{Need: "an answer with exactly one choice"}
	}
	c := resp.Choices[0]
	switch {
	case len(c.Message.ToolCalls) > 0 || c.Message.FunctionCall != nil:
		return nil, &ask.ReplyError{Need: "a plan as text; the model made a tool call of its own, which nobody carries out"}
	case c.Message.Refusal != "":
		return nil, &ask.ReplyError{Need: "a plan as text; the model refused"}
	case c.FinishReason != openai.FinishReasonStop:
		return nil, &ask.ReplyError{Need: "a whole answer; the model's was cut off"}
	case c.Message.Content == "":
		return nil, &ask.ReplyError{Need: "a plan as text; the model wrote none"}
	}
	return []byte(c.Message.Content), nil
}
