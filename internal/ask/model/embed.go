package model

import (
	"context"
	"encoding/json"
)

// Embedder gives texts vectors of what they mean.
type Embedder struct{ m *Model }

// mostDimensions is how long a vector may be: 32 of them are within wireBytes.
const mostDimensions = 4096

// NewEmbedder returns a model with the wire of OpenAI's embeddings (OpenAI, Ollama,
// vLLM, llama.cpp), behind an endpoint whose URL ends before /embeddings.
func NewEmbedder(e Endpoint) *Embedder {
	return &Embedder{&Model{e, kind{path: "/embeddings", keyIn: "Authorization", keyAfter: "Bearer "}, modelClient()}}
}

// Embed makes one request. The vectors are those of the texts, in their order and of
// one length; what is in them nobody has judged.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	raw, err := e.m.post(ctx, struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}{e.m.Model, texts})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if json.Unmarshal(raw, &answer) != nil {
		return nil, errNoVectors
	}
	out := make([][]float32, len(texts))
	for _, d := range answer.Data {
		if d.Index == nil || *d.Index < 0 || *d.Index >= len(out) || out[*d.Index] != nil || len(d.Embedding) == 0 || len(d.Embedding) > mostDimensions ||
			len(d.Embedding) != len(answer.Data[0].Embedding) {
			return nil, errNoVectors
		}
		out[*d.Index] = d.Embedding
	}
	if len(answer.Data) != len(texts) {
		return nil, errNoVectors
	}
	return out, nil
}

const errNoVectors = wireError("the model's endpoint answered with something that is not one vector of numbers for each text")
