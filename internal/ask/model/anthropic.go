package model

import (
	"context"
	"net/http"
	"strings"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/strictjson"
)

// Anthropic is a planner and summariser behind an endpoint with the wire of
// Anthropic's messages. It asks for no stream, offers the model no tools and
// asks once.
type Anthropic struct {
	client *http.Client
	url    string
	e      Endpoint
}

// anthropicVersion is the version of the wire that is spoken.
const anthropicVersion = "2023-06-01"

// answerTokens bounds what the model may write.
const answerTokens = 8192

// NewAnthropic returns the client of an endpoint whose URL ends before
// /v1/messages.
func NewAnthropic(e Endpoint) *Anthropic {
	return &Anthropic{modelClient(wholeAnthropic), strings.TrimRight(e.URL, "/") + "/v1/messages", e}
}

// Plan implements ask.Planner.
func (a *Anthropic) Plan(ctx context.Context, p ask.Prompt) ([]byte, error) {
	system, user, err := p.Messages()
	if err != nil {
		return nil, err
	}
	return a.ask(ctx, system, user)
}

// Summarise implements ask.Summariser.
func (a *Anthropic) Summarise(ctx context.Context, m ask.Material) ([]byte, error) {
	system, user := m.Messages()
	return a.ask(ctx, system, user)
}

func (a *Anthropic) ask(ctx context.Context, system, user string) ([]byte, error) {
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type message struct {
		Role    string `json:"role"`
		Content []text `json:"content"`
	}
	header := http.Header{"Anthropic-Version": {anthropicVersion}}
	if a.e.Key != "" {
		header.Set("X-Api-Key", a.e.Key)
	}
	raw, err := post(ctx, a.client, a.url, header, struct {
		Model     string    `json:"model"`
		MaxTokens int       `json:"max_tokens"`
		System    []text    `json:"system"`
		Messages  []message `json:"messages"`
	}{a.e.Model, answerTokens, []text{{"text", system}}, []message{{"user", []text{{"text", user}}}}})
	if err != nil {
		return nil, err
	}
	stop, _ := strictjson.Text(strictjson.Get(raw, "stop_reason"))
	switch stop {
	case "end_turn":
	case "tool_use":
		return nil, &ask.ReplyError{Need: "a plan as text; the model made a tool call of its own, which nobody carries out"}
	case "refusal":
		return nil, &ask.ReplyError{Need: "a plan as text; the model refused"}
	default:
		return nil, &ask.ReplyError{Need: "a whole answer; the model's was cut off"}
	}
	blocks, _ := strictjson.Elements(strictjson.Get(raw, "content"))
	if len(blocks) == 1 {
		kind, _ := strictjson.Text(strictjson.Get(blocks[0], "type"))
		if said, ok := strictjson.Text(strictjson.Get(blocks[0], "text")); ok && kind == "text" && said != "" {
			return []byte(said), nil
		}
	}
	return nil, &ask.ReplyError{Need: "a plan as one text, and nothing beside it"}
}
