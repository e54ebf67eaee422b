// Package model holds the planners and summarisers that are models behind an
// HTTP endpoint. It trusts the address and the key the operator gave, and
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

	"github.com/writ-project/writ/internal/strictjson"
)

// Endpoint is a model's HTTP endpoint, chosen by the operator.
type Endpoint struct {
	URL   string // base URL, as the wire has it
	Model string
	Key   string // "" sends none
}

// wireBytes bounds an endpoint's whole answer.
const wireBytes = 4 << 20

// wireError is what an endpoint did wrong. It holds nothing the endpoint sent.
type wireError string

func (e wireError) Error() string { return string(e) }

// post makes one request and returns the answer, one strict JSON object: see
// strictTransport.
func post(ctx context.Context, client *http.Client, url string, header http.Header, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return nil, modelError(ctx, err)
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, modelError(ctx, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return raw, modelError(ctx, err)
}

// strictTransport lets a client see only whole answers that are one strict JSON
// object, of an endpoint that answered itself; whole makes one of a stream. A
// request is made once.
type strictTransport struct {
	base  http.RoundTripper
	whole func([]event) ([]byte, error)
}

func (t strictTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, wireError("the model's endpoint redirects, which is not followed: name the final URL")
	case resp.StatusCode != http.StatusOK:
		return nil, wireError(fmt.Sprintf("the model's endpoint answered with HTTP status %d", resp.StatusCode))
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/json" && media != "text/event-stream" {
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
		if err == nil {
			body, err = t.whole(events)
		}
		if err != nil {
			return nil, err
		}
	}
	if !strictObject(body) {
		return nil, wireError("the model's endpoint answered with something that is not one strict JSON object")
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	return resp, nil
}

func strictObject(b []byte) bool {
	return strictjson.Check(b, strictjson.Limits{Bytes: wireBytes, Depth: 64, Leaves: 200_000, Number: 64}) == nil &&
		strictjson.KindOf(b) == strictjson.Object
}

// modelClient is an HTTP client for one endpoint. Redirects are refused, and no
// proxy is taken from the environment: they would carry the key, or the user's
// words, to somebody the operator did not name.
func modelClient(whole func([]event) ([]byte, error)) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.DisableCompression = true
	t.DisableKeepAlives = true // one or two requests are made: nothing is left open
	return &http.Client{
		Transport:     strictTransport{t, whole},
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
