// Package model holds the planners, summarisers and embeddings that are models behind
// an HTTP endpoint. It trusts the address and the key the operator gave, and
// nothing the endpoint answers: one strict JSON object within bounds, or a stream
// of them to its announced end; not redirected, not compressed, asked for once.
// What the model wrote is handed on as the text it is.
package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/strictjson"
)

// Endpoint is a model's HTTP endpoint, chosen by the operator.
type Endpoint struct {
	URL   string // base URL, as the wire has it
	Model string
	Key   string // "" sends none
}

// Model is a planner and summariser behind an endpoint. It asks for no stream,
// offers the model no tools and asks once.
type Model struct {
	Endpoint
	kind
	client *http.Client
}

// kind is how an endpoint is spoken to.
type kind struct {
	path            string            // behind the endpoint's URL
	header          map[string]string // of each request
	keyIn, keyAfter string            // the header with the key, and what stands before it
	body            func(model, system, user string) any
	said            func(answer []byte) ([]byte, error)  // what the model wrote
	whole           func(stream []event) ([]byte, error) // the answer a stream stands for
}

// Plan implements ask.Planner.
func (m *Model) Plan(ctx context.Context, p ask.Prompt) ([]byte, error) {
	system, user, err := p.Messages()
	if err != nil {
		return nil, err
	}
	return m.ask(ctx, system, user)
}

// Summarise implements ask.Summariser.
func (m *Model) Summarise(ctx context.Context, x ask.Material) ([]byte, error) {
	system, user := x.Messages()
	return m.ask(ctx, system, user)
}

// ask makes one request and reads what the model wrote in the answer.
func (m *Model) ask(ctx context.Context, system, user string) ([]byte, error) {
	raw, err := m.post(ctx, m.body(m.Model, system, user))
	if err != nil {
		return nil, err
	}
	return m.said(raw)
}

// post makes one request and returns the whole answer.
func (m *Model) post(ctx context.Context, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(m.URL, "/")+m.path, bytes.NewReader(b))
	if err != nil {
		return nil, modelError(ctx, err)
	}
	for name, value := range m.header {
		req.Header.Set(name, value)
	}
	if m.Key != "" {
		req.Header.Set(m.keyIn, m.keyAfter+m.Key)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, modelError(ctx, err)
	}
	defer resp.Body.Close()
	raw, err := m.answer(resp)
	if err != nil {
		return nil, modelError(ctx, err)
	}
	return raw, nil
}

// answer returns a whole answer that is one strict JSON object, of an endpoint
// that answered itself.
func (m *Model) answer(resp *http.Response) ([]byte, error) {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, wireError("the model's endpoint redirects, which is not followed: name the final URL")
	case resp.StatusCode != http.StatusOK:
		return nil, wireError(fmt.Sprintf("the model's endpoint answered with HTTP status %d", resp.StatusCode))
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/json" && (media != "text/event-stream" || m.whole == nil) {
		return nil, wireError("the model's endpoint answered with something that is not application/json")
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, wireError("the model's endpoint compressed its answer, which nobody asked for")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, wireBytes+1))
	if err != nil {
		return nil, err
	}
	if len(body) > wireBytes {
		return nil, wireError("the model's endpoint answered with more than 4 MiB")
	}
	if media == "text/event-stream" {
		events, err := readEvents(body)
		if err != nil {
			return nil, err
		}
		if body, err = m.whole(events); err != nil {
			return nil, err
		}
	}
	if !strictObject(body) {
		return nil, wireError("the model's endpoint answered with something that is not one strict JSON object")
	}
	return body, nil
}

// textOf is a member that is a text, "" where it is none.
func textOf(raw []byte, name string) string {
	s, _ := strictjson.Text(strictjson.Get(raw, name))
	return s
}

// wireBytes bounds an endpoint's whole answer.
const wireBytes = 4 << 20

// wireError is what an endpoint did wrong. It holds nothing the endpoint sent.
type wireError string

func (e wireError) Error() string { return string(e) }

// What a model did instead of answering, on either wire.
var (
	errToolCall     = &ask.ReplyError{Need: "a plan as text; the model made a tool call of its own, which nobody carries out"}
	errModelRefused = &ask.ReplyError{Need: "a plan as text; the model refused"}
	errCutOff       = &ask.ReplyError{Need: "a whole answer; the model's was cut off"}
)

func strictObject(b []byte) bool {
	return strictjson.Check(b, strictjson.Limits{Bytes: wireBytes, Depth: 64, Leaves: 200_000, Number: 64}) == nil &&
		strictjson.KindOf(b) == strictjson.Object
}

// modelClient is an HTTP client for one endpoint. Redirects are refused, and no
// proxy is taken from the environment: they would carry the key, or the user's
// words, to somebody the operator did not name.
func modelClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.DisableCompression = true
	t.DisableKeepAlives = true // one or two requests are made: nothing is left open
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// modelError is an error of net/http in words of ours: its own may hold what the
// endpoint sent.
func modelError(ctx context.Context, err error) error {
	var w wireError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &w):
		return w
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return wireError("the model's endpoint did not answer in time")
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return wireError("the model's endpoint cannot be reached, or its answer cannot be read")
}
