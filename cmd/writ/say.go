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

// said is the answer to POST /say.
type said struct {
	Evidence string `json:"evidence,omitempty"`
	Halted   string `json:"halted,omitempty"` // the reason: the session makes no call any more
	Reply    string `json:"reply,omitempty"`  // the operator's words to the user
	Error    string `json:"error,omitempty"`
}

// sayHandler takes the user's own words at POST /say (docs/hosts.md): for the session
// of a public id, or of the one client of a gateway over stdio. may refuses who brings
// them, with its status.
func sayHandler(g *gateway.Gateway, client *oneClient, may func(*http.Request) (status int, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		send := func(status int, reply said) { answerJSON(w, status, reply) }
		if status, err := may(r); err != nil {
			send(status, said{Error: err.Error()})
			return
		}
		session, pid, text, ok := readTurn(http.MaxBytesReader(w, r.Body, maxSay))
		if !ok {
			send(http.StatusBadRequest, said{Error: `the body is {"session":"s_…","text":"…"} or {"client":PID,"text":"…"}, the text at most 64 KiB of UTF-8`})
			return
		}
		var s downstream.Session
		var err error
		if session != "" {
			s, err = g.SessionNamed(r.Context(), session)
		} else {
			s, err = client.of(pid)
		}
		if errors.Is(err, downstream.ErrNoSession) {
			send(http.StatusNotFound, said{Error: "there is no open session of that name here"})
			return
		}
		id := ""
		if err == nil {
			id, err = g.Turn(r.Context(), s, text)
		}
		var halted *gateway.HaltedError
		switch {
		case errors.As(err, &halted):
			send(http.StatusOK, said{Evidence: id, Halted: string(halted.Rejection.Reason), Reply: halted.Reply})
		case err != nil:
			send(http.StatusInternalServerError, said{Error: "the words could not be put on record, and vouch for nothing"})
		default:
			send(http.StatusOK, said{Evidence: id})
		}
	}
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
func (f *flags) sayTo(ctx context.Context, pid int, text string) (all []said, err error) {
	doors, err := f.doors(false)
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
	b, err := json.Marshal(struct {
		Client int    `json:"client"`
		Text   string `json:"text"`
	}{pid, text})
	if err != nil {
		return nil, err
	}
	for _, door := range doors {
		reply, status, err := post(ctx, door, b)
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

// post says it at one gateway.
func post(ctx context.Context, door *http.Client, body []byte) (reply said, status int, err error) {
	switch status, err = exchange(ctx, door, "POST /say", os.Getenv(tokenVariable), body, 1<<16, &reply); {
	case err != nil && status == 0:
		err = cli.Fail(cli.ExitIO, "writ session list", "a gateway does not answer")
	case err != nil:
		err = cli.Fail(cli.ExitIO, "", "a gateway's answer cannot be read")
	}
	return reply, status, err
}
