package model

import (
	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/strictjson"
)

// NewOpenAI returns a model with the wire of OpenAI's chat completions (OpenAI,
// Ollama, vLLM, llama.cpp), behind an endpoint whose URL ends before
// /chat/completions.
func NewOpenAI(e Endpoint) *Model {
	return &Model{e, kind{path: "/chat/completions", keyIn: "Authorization", keyAfter: "Bearer ",
		body: openAIBody, said: openAISaid, whole: wholeOpenAI}, modelClient()}
}

func openAIBody(model, system, user string) any {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	type format struct {
		Type string `json:"type"`
	}
	return struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
		Format   format    `json:"response_format"`
	}{model, []message{{"system", system}, {"user", user}}, format{"json_object"}}
}

func openAISaid(raw []byte) ([]byte, error) {
	choices, _ := strictjson.Elements(strictjson.Get(raw, "choices"))
	if len(choices) != 1 {
		return nil, &ask.ReplyError{Need: "an answer with exactly one choice"}
	}
	said := strictjson.Get(choices[0], "message")
	calls := strictjson.Get(said, "tool_calls")
	list, ok := strictjson.Elements(calls)
	refusal := strictjson.Get(said, "refusal")
	content := textOf(said, "content")
	switch {
	case given(calls) && !ok, len(list) > 0, given(strictjson.Get(said, "function_call")):
		return nil, errToolCall
	case given(refusal) && string(refusal) != `""`:
		return nil, errModelRefused
	case textOf(choices[0], "finish_reason") != "stop":
		return nil, errCutOff
	case content == "":
		return nil, &ask.ReplyError{Need: "a plan as text; the model wrote none"}
	}
	return []byte(content), nil
}
