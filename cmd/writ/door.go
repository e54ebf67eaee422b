package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway/localdoor"
)

// reach finds the gateways that run on the state directory, and their local doors. handing
// has standard input handed over there.
func (f *flags) reach(handing bool) (at []*localdoor.Gateway, out []*http.Client, err error) {
	state, err := stateDir(f.state)
	if err != nil {
		return nil, nil, err
	}
	all, err := gateways(state)
	if err != nil {
		return nil, nil, err
	}
	for _, g := range all {
		reach := func() (*http.Client, error) { return g.Client(0) }
		if handing {
			reach = g.Handing
		}
		if c, err := reach(); err == nil {
			at, out = append(at, g), append(out, c)
		}
	}
	return at, out, nil
}

// doors are those doors, of which there has to be one.
func (f *flags) doors(handing bool) ([]*http.Client, error) {
	_, out, err := f.reach(handing)
	if err == nil && len(out) == 0 {
		err = cli.Fail(cli.ExitIO, f.starts(), "no gateway runs on this state directory")
	}
	return out, err
}

// starts is what starts a gateway on the state directory: a client that is connected to the one
// that it is where nothing else is said, or writ serve.
func (f *flags) starts() string {
	places, err := foundPlaces()
	if err != nil || f.state != "" {
		return "writ serve"
	}
	for _, p := range places {
		if s := p.status(); s.Config != "" {
			return "open " + s.title + ", which starts one"
		}
	}
	return "writ serve"
}

// gateways are those that run on the state directory, the one started last first.
func gateways(state string) ([]*localdoor.Gateway, error) {
	all, err := localdoor.Find(state)
	if err != nil {
		return nil, exposed(err, "the running gateways cannot be read")
	}
	return all, nil
}

// knock makes a request at a door, with a token unless that is "". What is a method and a
// path, as a handler's pattern.
func knock(ctx context.Context, door *http.Client, what, token string, body []byte) (*http.Response, error) {
	method, path, _ := strings.Cut(what, " ")
	req, err := http.NewRequestWithContext(ctx, method, "https://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := door.Do(req)
	if err != nil {
		return nil, &cli.Exit{Code: cli.ExitIO, Err: silent{err}, Hint: "writ serve"}
	}
	return resp, nil
}

// silent is why a gateway does not answer, which is for programs.
type silent struct{ error }

func (silent) Error() string   { return "the gateway does not answer" }
func (s silent) Unwrap() error { return s.error }

// exchange is knock that reads the JSON of the answer, of at most limit bytes. The status
// is 0 where there is no answer.
func exchange(ctx context.Context, door *http.Client, what, token string, body []byte, limit int64, into any) (status int, err error) {
	resp, err := knock(ctx, door, what, token, body)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if json.NewDecoder(io.LimitReader(resp.Body, limit)).Decode(into) != nil {
		return resp.StatusCode, cli.Fail(cli.ExitIO, "", "the gateway's answer cannot be read")
	}
	return resp.StatusCode, nil
}

// answerJSON answers a request at the local door.
func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}
