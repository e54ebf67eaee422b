package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/ask"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/example"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// caller makes one MCP request in one session, through the same door as any
// client: of a running gateway, or of one started for this call.
type caller interface {
	call(ctx context.Context, method, name string, params []byte) ([]byte, *rpc.Error, error)
	close() error
}

// sessionFile is where a session kept by name has its secret.
func sessionFile(state, name string) (string, error) {
	if !statedir.SessionName.MatchString(name) {
		return "", cli.Fail(cli.ExitUsage, "writ session new demo", "a session's name has 1 to 64 of a-z, 0-9, ., _ and -")
	}
	return filepath.Join(state, statedir.SessionsDir, name), nil
}

// readSession returns the secret kept under name, "" when there is none.
func readSession(state, name string) (string, error) {
	path, err := sessionFile(state, name)
	if err != nil {
		return "", err
	}
	b, err := private.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", exposed(err, "the session's file cannot be read")
	}
	return strings.TrimSpace(string(b)), nil
}

// errKept says, without words of its own, that a name has its session already.
var errKept = errors.New("")

// keptSession returns the secret kept under a name, else one that open makes,
// which is kept there unless another process was first. Without a name nothing
// is kept.
func keptSession(state, name string, open func() (string, error)) (string, error) {
	if name == "" {
		return open()
	}
	if secret, err := readSession(state, name); secret != "" || err != nil {
		return secret, err
	}
	secret, err := open()
	if err == nil {
		err = keepSession(state, name, secret)
	}
	if errors.Is(err, errKept) {
		return readSession(state, name)
	}
	return secret, err
}

// keepSession writes a secret under a name that is free.
func keepSession(state, name, secret string) error {
	path, err := sessionFile(state, name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return cli.Fail(cli.ExitIO, "", "the session's directory cannot be made")
	}
	if err := private.WriteOnce(path, []byte(secret+"\n"), 0o600); err != nil {
		if errors.Is(err, os.ErrExist) {
			return &cli.Exit{Code: cli.ExitConfig, Err: fmt.Errorf("there is a session of that name%w", errKept), Hint: "writ session close " + name}
		}
		return cli.Fail(cli.ExitIO, "", "the session's file cannot be written")
	}
	return nil
}

// connect finds the running gateway of the state directory, else starts one.
// With a name, calls are made in the session kept under it, which is opened if
// there is none; without, each has a session of its own. A gateway that is started
// asks at own, unless that is nil.
func (f *flags) connect(ctx context.Context, name string, own *terminal, stderr io.Writer) (caller, error) {
	state, err := stateDir(f.state)
	if err != nil {
		return nil, err
	}
	if name != "" {
		if _, err := sessionFile(state, name); err != nil {
			return nil, err
		}
	}
	if f.config == "" && f.policy == "" && len(f.command) == 0 {
		all, err := gateways(state)
		if err != nil {
			return nil, err
		}
		if g, err := localdoor.Reach(ctx, slices.DeleteFunc(slices.Clone(all), func(g *localdoor.Gateway) bool { return !g.Listens() })); err != nil {
			return nil, cli.Fail(cli.ExitIO, "writ … --config FILE, to start one for this command", "%w", err)
		} else if g != nil {
			if slices.ContainsFunc(all, func(other *localdoor.Gateway) bool { return other != g && other.Listens() }) {
				fmt.Fprintf(stderr, "writ: several gateways run on this state directory; this is for the one at %s\n", g.URL)
			}
			return through(ctx, g, state, name)
		}
	}
	o, err := f.load()
	if err != nil {
		return nil, err
	}
	o.terminal = own
	return o.here(ctx, name, stderr)
}

// here starts a gateway in this process, with the session kept under a name,
// opened where there is none, or one of its own.
func (o *files) here(ctx context.Context, name string, stderr io.Writer) (*local, error) {
	o.unnamed = o.example
	g, stop, err := o.start(ctx, logger(stderr, errorLevel))
	if err != nil {
		return nil, err
	}
	when(stderr, o.unnamed, "writ: no --config, and no gateway that takes this: the built-in example server answers\n")
	secret, err := keptSession(o.state, name, func() (string, error) {
		secret, _, err := g.OpenSession(ctx, downstream.Loopback, downstream.CarrierEndpoint)
		return secret, err
	})
	if err == nil {
		l := &local{o: o, g: g, stop: stop}
		if l.session, err = g.FindSession(ctx, downstream.Loopback, secret); err == nil {
			return l, nil
		}
		err = sessionError(name, err)
	}
	return nil, errors.Join(err, stop())
}

// onlyExample refuses the built-in example where the newest decisions were of other
// servers: whoever calls these, while their gateway is down, is not to be answered by a toy.
func (o *files) onlyExample(ctx context.Context, st *sqlite.Store) error {
	all, _, err := story.Newest(ctx, st, listed)
	for _, d := range all {
		if server, _, named := strings.Cut(d.Tool, "/"); named && server != example.Name && server != policy.OwnServer {
			return cli.Fail(cli.ExitIO, "writ serve --config FILE, or the same with --config FILE; to try the example, with a --state DIR of its own",
				"no gateway that takes this runs on %s, and the built-in example does not answer for %s, where the last calls went", cli.Printable(o.state), cli.OneLine(server, 40))
		}
	}
	return err
}

// through makes calls through a running gateway's local door.
func through(ctx context.Context, g *localdoor.Gateway, state, name string) (caller, error) {
	client, err := g.Client(10 * time.Minute)
	if err != nil {
		return nil, cli.Fail(cli.ExitIO, "", "%w", err)
	}
	// The log is the one the running gateway shares.
	secret, err := keptSession(state, name, func() (string, error) {
		secret, _, err := mint(ctx, state, downstream.Loopback)
		return secret, err
	})
	if err != nil {
		return nil, err
	}
	return &remote{client, secret}, nil
}

// sessionError says why a session could not be had. One that cannot be read is
// still there.
func sessionError(name string, err error) error {
	if !errors.Is(err, downstream.ErrNoSession) {
		return cli.Fail(cli.ExitIO, "writ audit verify", "the session cannot be read: %w", err)
	}
	return cli.Fail(cli.ExitData, "writ session close "+name+" && writ session new "+name, "the session is not open any more")
}

// mint registers a new session in the state directory's log. Every gateway of
// that directory knows it at once.
func mint(ctx context.Context, state, principal string) (secret, id string, err error) {
	st, err := openStore(ctx, state)
	if err != nil {
		return "", "", err
	}
	defer st.Close()
	secret, id, err = gateway.MintSession(ctx, st, principal, time.Now)
	if err != nil {
		return "", "", cli.Fail(cli.ExitIO, "writ audit verify", "the session cannot be registered: %w", err)
	}
	return secret, id, nil
}

// local is a gateway in this process.
type local struct {
	o       *files
	g       *gateway.Gateway
	stop    func() error
	session downstream.Session
}

func (l *local) close() error { return l.stop() }

func (l *local) call(ctx context.Context, method, _ string, params []byte) ([]byte, *rpc.Error, error) {
	if err := settled(ctx, l.g); err != nil {
		return nil, nil, err
	}
	for name, err := range l.g.Failed() {
		return nil, nil, cli.Fail(cli.ExitIO, "its command in a shell, to see what it says", "server %s cannot be reached: %w", name, err)
	}
	r := l.g.Handle(ctx, ask.Request(l.session, method, params))
	return r.Result, r.Err, nil
}

// remote is a gateway of another process, on the 2026-07-28 wire. The session's
// secret goes in a header, to nobody but who proved to be that gateway.
type remote struct {
	client *http.Client
	secret string
}

func (r *remote) close() error {
	r.client.CloseIdleConnections()
	return nil
}

func (r *remote) call(ctx context.Context, method, name string, params []byte) ([]byte, *rpc.Error, error) {
	if params == nil {
		params = []byte("{}")
	}
	meta := []byte(`{"io.modelcontextprotocol/protocolVersion":"` + downstream.Version20260728 +
		`","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"writ","version":"` + release + `"}}`)
	own, _ := strictjson.Members(strictjson.Get(params, "_meta"))
	for _, m := range own {
		meta = strictjson.Set(meta, m.Name, m.Value)
	}
	params = strictjson.Set(params, "_meta", meta)
	var sent atomic.Bool // it has a connection, and whatever fails from then on may have come after the gateway read it
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://localhost/mcp", bytes.NewReader(rpc.Request([]byte("1"), method, params)))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", downstream.Version20260728)
	req.Header.Set("Mcp-Method", method)
	req.Header.Set(downstream.HeaderSession, r.secret)
	if name != "" {
		req.Header.Set("Mcp-Name", name)
	}
	// Of a call that may have been sent nobody is told that nothing was done.
	broken := func(hint, why string) error {
		switch {
		case method != "tools/call" || !sent.Load():
			return cli.Fail(cli.ExitIO, hint, "%s", why)
		case ctx.Err() != nil:
			why = "this command was ended before the answer came"
		}
		return cli.Fail(cli.ExitUnknown, "writ audit show --unsettled", "the call was sent, and %s: "+
			"it is not known here whether it happened. Do not make it again before somebody looked", why)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, nil, broken("writ serve", "the gateway does not answer")
	}
	defer resp.Body.Close()
	body := io.LimitReader(resp.Body, int64(strictjson.Result.Bytes)+1<<20)
	var b []byte
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, err = lastEvent(body)
	} else {
		b, err = io.ReadAll(body)
	}
	if err != nil {
		return nil, nil, broken("", "the gateway's answer broke off")
	}
	result, rerr, err := response(b, resp.StatusCode)
	if errors.Is(err, errUnread) {
		err = broken("", err.Error())
	}
	return result, rerr, err
}

// waits reports whether a call was refused because a person has not answered.
func waits(refusal []byte) bool {
	outcome := strictjson.Get(strictjson.Get(refusal, "_meta"), gateway.MetaOutcome)
	reason, _ := strictjson.Text(strictjson.At(outcome, "/rejection/reason"))
	return reason == string(writ.ApprovalPending)
}

// allowed puts a call of this command that waits for a person to who made it, at his
// own terminal, and reports whether it is to be made again.
func (r *remote) allowed(ctx context.Context, state string, own *terminal, refusal, arguments []byte) bool {
	decision, _ := strictjson.Text(strictjson.Get(strictjson.Get(refusal, "_meta"), gateway.MetaDecision))
	session, _, _ := strings.Cut(decision, "/")
	if !waits(refusal) {
		return false
	}
	said := false
	err := questions(ctx, r.client, "", func(qs []approval.Shown, _ string) {
		for _, q := range qs {
			if said || q.Session != session || q.Answers != "" || q.Arguments != string(arguments) && q.Came != string(arguments) {
				continue
			}
			tellMore(ctx, state, &q)
			w := &waiting{q, r.client}
			a, err := own.ask(ctx, &q)
			if err == nil {
				var r *approval.Reply
				r, err = w.answer(ctx, own.out, a) // its call is made again here
				said = r != nil
			}
			if err != nil {
				fmt.Fprintf(own.out, "%s\n", cli.OneLine(err.Error(), 300))
			}
		}
	})
	return err == nil && said
}

// lastEvent reads an event stream up to the response; what comes before it are
// notifications.
func lastEvent(body io.Reader) ([]byte, error) {
	sc := bufio.NewScanner(body)
	sc.Buffer(nil, strictjson.Result.Bytes+1<<20)
	for sc.Scan() {
		data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if m, perr := rpc.Parse(bytes.Clone(data), strictjson.Result); perr == nil && m.IsResponse() {
			return bytes.Clone(data), nil
		}
	}
	return nil, io.ErrUnexpectedEOF
}

// errUnread says, without words of its own, that an answer tells nothing.
var errUnread = errors.New("")

func response(b []byte, status int) ([]byte, *rpc.Error, error) {
	m, perr := rpc.Parse(b, strictjson.Limits{Depth: 110, Number: 64})
	if perr != nil || !m.IsResponse() {
		// Refused before it was read whose request it is: an error without an id.
		said, _ := m.Error.Get("message").Text()
		switch {
		case status == http.StatusNotFound:
			return nil, nil, cli.Fail(cli.ExitData, "writ session new NAME", "the session is not open any more")
		case said == downstream.Stopping:
			return nil, nil, cli.Fail(cli.ExitIO, "the same once writ serve runs again", "the gateway is stopping: it ends what is under way and takes no new call; nothing was done")
		case said == downstream.Unreadable: // a client is told no more; the state directory says which it is
			return nil, nil, cli.Fail(cli.ExitIO, "writ session close NAME && writ session new NAME, or writ audit verify", "the session cannot be read now: it is of another engine of Writ, whose evidence vouches for nothing any more, or it was altered")
		case said != "":
			return nil, nil, cli.Fail(cli.ExitIO, "the same again", "the gateway does not take it: %s", cli.OneLine(said, 400))
		}
		return nil, nil, fmt.Errorf("the gateway's answer cannot be read (HTTP %d)%w", status, errUnread)
	}
	if m.Error.Exists() {
		return nil, rpc.ParseError(m.Error), nil
	}
	return m.Result.Raw(), nil, nil
}
