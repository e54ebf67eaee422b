package model

import (
	"context"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/writ-project/writ/internal/host"
)

// Anthropic is a planner and summariser behind an endpoint with the wire of
// Anthropic's messages. It never streams, offers the model no tools and asks
// once.
type Anthropic struct {
	messages anthropic.MessageService
	model    string
}

// answerTokens bounds what the model may write.
const answerTokens = 8192

// NewAnthropic returns the client of an endpoint whose URL ends before
// /v1/messages. The library's own client would read credentials and addresses
// of the environment that nobody named; only the service is made here.
func NewAnthropic(e Endpoint) *Anthropic {
	opts := []option.RequestOption{
		option.WithHTTPClient(modelClient(nil)),
		option.WithBaseURL(strings.TrimRight(e.URL, "/") + "/"),
		option.WithMaxRetries(0),
	}
	if e.Key != "" {
		opts = append(opts, option.WithAPIKey(e.Key))
	}
	return &Anthropic{anthropic.NewMessageService(opts...), e.Model}
}

// Plan implements host.Planner.
func (a *Anthropic) Plan(ctx context.Context, p host.Prompt) ([]byte, error) {
	system, user, err := p.Messages()
	if err != nil {
		return nil, err
	}
	return a.ask(ctx, system, user)
}

// Summarise implements host.Summariser.
func (a *Anthropic) Summarise(ctx context.Context, m host.Material) ([]byte, error) {
	system, user := m.Messages()
	return a.ask(ctx, system, user)
}

func (a *Anthropic) ask(ctx context.Context, system, user string) ([]byte, error) {
	msg, err := a.messages.New(ctx, anthropic.MessageNewParams{
		Model:     a.model,
		MaxTokens: answerTokens,
		System:    []anthropic.TextBlockParam{{Text: system}},
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(user))},
	})
	if err != nil {
		return nil, modelError(ctx, err)
	}
	switch {
	case msg.StopReason == anthropic.StopReasonToolUse:
		return nil, &host.ReplyError{Need: "a plan as text; the model made a tool call of its own, which nobody carries out"}
	case msg.StopReason == anthropic.StopReasonRefusal:
		return nil, &host.ReplyError{Need: "a plan as text; the model refused"}
	case msg.StopReason != anthropic.StopReasonEndTurn:
		return nil, &host.ReplyError{Need: "a whole answer; the model's was cut off"}
	case len(msg.Content) != 1 || msg.Content[0].Type != "text" || msg.Content[0].Text == "":
		return nil, &host.ReplyError{Need: "a plan as one text, and nothing beside it"}
	}
	return []byte(msg.Content[0].Text), nil
}
