package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/strictjson"
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
func (f *flags) doors() ([]*http.Client, error) {
	_, out, err := f.reach(false)
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
		switch s := p.status(); {
		case s.Config == "":
		case s.Client == "file":
			return "start the client of " + cli.Printable(s.File) + ", which starts one"
		default:
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

// exchangeOr is exchange whose error is one of two: that there is no answer, or that it cannot be
// read.
func exchangeOr(ctx context.Context, door *http.Client, what, token string, body []byte, limit int64, into any, silent, unread error) (status int, err error) {
	status, err = exchange(ctx, door, what, token, body, limit, into)
	switch {
	case err != nil && status == 0:
		err = silent
	case err != nil:
		err = unread
	}
	return status, err
}

// replies is a handler of the local door: f says the status, and what is answered as JSON.
func replies(f func(w http.ResponseWriter, r *http.Request) (status int, v any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, v := f(w, r)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v)
	}
}

// oneClient is a gateway over stdio: the process that started it has one session in it.
type oneClient struct {
	*gateway.Gateway
	pid int // of that process

	mu      sync.Mutex
	session downstream.Session // nil until the client said something
}

func (c *oneClient) OpenSession(ctx context.Context, principal string, by downstream.Carrier) (string, downstream.Session, error) {
	secret, s, err := c.Gateway.OpenSession(ctx, principal, by)
	if err == nil {
		c.has(s)
	}
	return secret, s, err
}

func (c *oneClient) has(s downstream.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
}

// of returns the session of the client with that process id.
func (c *oneClient) of(pid int) (downstream.Session, error) {
	if c == nil || pid != c.pid {
		return nil, downstream.ErrNoSession
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return nil, downstream.ErrNoSession
	}
	return c.session, nil
}

// unheard reports whether the client has called tools and no hook of it has told anything.
func (c *oneClient) unheard(ctx context.Context) bool {
	if c == nil {
		return false
	}
	s, err := c.of(c.pid)
	if err != nil {
		return false
	}
	unheard, err := c.Unheard(ctx, s)
	return err == nil && unheard
}

// sayHandler takes the user's own words at POST /say (docs/hosts.md): for the session
// of a public id, or of the one client of a gateway over stdio. may refuses who brings
// them, with its status.
func sayHandler(g *gateway.Gateway, client *oneClient, may func(*http.Request) (status int, err error)) http.HandlerFunc {
	return replies(func(w http.ResponseWriter, r *http.Request) (int, any) {
		if status, err := may(r); err != nil {
			return status, hookSaid{Error: err.Error()}
		}
		session, pid, text, ok := readTurn(http.MaxBytesReader(w, r.Body, maxSay))
		if !ok {
			return http.StatusBadRequest, hookSaid{Error: `the body is {"session":"s_…","text":"…"} or {"client":PID,"text":"…"}, the text at most 64 KiB of UTF-8`}
		}
		var s downstream.Session
		var err error
		if session != "" {
			s, err = g.SessionNamed(r.Context(), session)
		} else {
			s, err = client.of(pid)
		}
		if errors.Is(err, downstream.ErrNoSession) {
			return http.StatusNotFound, hookSaid{Error: "there is no open session of that name here"}
		}
		var reply hookSaid
		if err == nil {
			reply, err = turned(g.Turn(r.Context(), s, text))
		}
		if err != nil {
			return http.StatusInternalServerError, hookSaid{Error: "the words could not be put on record, and vouch for nothing"}
		}
		return http.StatusOK, reply
	})
}

// turned is what is said of a turn that got an id, or an error.
func turned(id string, err error) (hookSaid, error) {
	if halted, ok := errors.AsType[*gateway.HaltedError](err); ok {
		return hookSaid{Evidence: id, Halted: string(halted.Rejection.Reason), Reply: halted.Reply}, nil
	}
	return hookSaid{Evidence: id}, err
}

// maxSay bounds the body: each byte of the text may be escaped.
const maxSay = 6*screen.MaxText + 1024

// readTurn reads the user's words and whose session they are for, by exactly one name.
func readTurn(body io.Reader) (session string, pid int, text string, ok bool) {
	b, err := io.ReadAll(body)
	if err != nil {
		return "", 0, "", false
	}
	v, err := strictjson.Parse(bytes.TrimSpace(b), strictjson.Limits{Bytes: maxSay, Depth: 2, Leaves: 2, Number: 12})
	if err != nil || v.Kind() != strictjson.Object || v.Len() != 2 {
		return "", 0, "", false
	}
	text, ok = v.Get("text").Text()
	session, named := v.Get("session").Text()
	if !named {
		pid, err = strconv.Atoi(string(v.Get("client").Raw()))
		named = err == nil && pid > 0
	}
	return session, pid, text, ok && named && (session != "" || pid > 0) && len(text) <= screen.MaxText && utf8.ValidString(text)
}

// saying says who may bring the user's words over the local door: who shows the token
// of a client whose role says so; who shows none by the rule for answers.
func (o *files) saying(from ...int) func(*http.Request) (int, error) {
	return func(r *http.Request) (int, error) {
		header, stated := r.Header["Authorization"]
		if !stated {
			return http.StatusForbidden, localdoor.Apart(r.Context(), from...)
		}
		return o.saysBy(header)
	}
}

// saysBy refuses who shows a token that is not of a client whose role says so.
func (o *files) saysBy(header []string) (int, error) {
	switch c, ok := clientsOf(o.state).Bearer(header); {
	case !ok:
		return http.StatusUnauthorized, errors.New("not authenticated")
	case !c.Role.Says():
		return http.StatusForbidden, errors.New("the token is an agent's")
	}
	return 0, nil
}

// tokenVariable names the environment variable in which a host gives the commands it
// runs its token.
const tokenVariable = "WRIT_TOKEN"

// sayTo brings the user's words to each session of the client with that process id: it
// has one in each gateway that it started, or one that those share.
func (f *flags) sayTo(ctx context.Context, pid int, text string) (all []hookSaid, err error) {
	doors, err := f.doors()
	if err != nil {
		return nil, err
	}
	state, err := stateDir(f.state)
	if err != nil {
		return nil, err
	}
	shared, err := sharedBy(ctx, state, pid)
	if err != nil {
		return nil, err
	}
	b, _ := json.Marshal(struct { // a number and a text
		Client int    `json:"client"`
		Text   string `json:"text"`
	}{pid, text})
	for _, door := range doors {
		var reply hookSaid
		status, err := exchangeOr(ctx, door, "POST /say", os.Getenv(tokenVariable), b, 1<<16, &reply,
			cli.Fail(cli.ExitIO, "writ session list", "a gateway does not answer"), cli.Fail(cli.ExitIO, "", "a gateway's answer cannot be read"))
		switch {
		case err != nil:
			return all, err
		case status == http.StatusOK:
			all = append(all, reply)
			if shared != "" && strings.HasPrefix(reply.Evidence, shared+"/") {
				return all, nil // the others would hear it in the same session
			}
		case status == http.StatusForbidden, status == http.StatusUnauthorized:
			return all, cli.Fail(cli.ExitRefused, ownWindow(reply.Error), "the words are not heard: %s", cli.OneLine(reply.Error, 200))
		case status != http.StatusNotFound:
			return all, cli.Fail(cli.ExitIO, "writ audit verify", "%s", cli.OneLine(reply.Error, 200))
		}
	}
	if all == nil {
		return nil, cli.Fail(cli.ExitData, "writ session list", "no gateway has a session of a client with that process id")
	}
	return all, nil
}
