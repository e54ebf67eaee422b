package model

import (
	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/strictjson"
)

// anthropicVersion is the version of the wire that is spoken.
const anthropicVersion = "2023-06-01"

// answerTokens bounds what the model may write.
const answerTokens = 8192

// NewAnthropic returns a model with the wire of Anthropic's messages, behind an
// endpoint whose URL ends before /v1/messages.
func NewAnthropic(e Endpoint) *Model {
	return &Model{e, kind{path: "/v1/messages", header: map[string]string{"Anthropic-Version": anthropicVersion}, keyIn: "X-Api-Key",
		body: anthropicBody, said: anthropicSaid, whole: wholeAnthropic}, modelClient()}
}

func anthropicBody(model, system, user string) any {
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type message struct {
		Role    string `json:"role"`
		Content []text `json:"content"`
	}
	return struct {
		Model     string    `json:"model"`
		MaxTokens int       `json:"max_tokens"`
		System    []text    `json:"system"`
		Messages  []message `json:"messages"`
	}{model, answerTokens, []text{{"text", system}}, []message{{"user", []text{{"text", user}}}}}
}

func anthropicSaid(raw []byte) ([]byte, error) {
	switch textOf(raw, "stop_reason") {
	case "end_turn":
	case "tool_use":
		return nil, errToolCall
	case "refusal":
		return nil, errModelRefused
	default:
		return nil, errCutOff
	}
	blocks, _ := strictjson.Elements(strictjson.Get(raw, "content"))
	if len(blocks) == 1 && textOf(blocks[0], "type") == "text" {
		if said := textOf(blocks[0], "text"); said != "" {
			return []byte(said), nil
		}
	}
	return nil, &ask.ReplyError{Need: "a plan as one text, and nothing beside it"}
}
