package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
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
	"github.com/writ-project/writ/internal/text"
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
		all = slices.DeleteFunc(all, func(g *localdoor.Gateway) bool { return !g.Listens() })
		if g, err := localdoor.Reach(ctx, all); err != nil {
			return nil, cli.Fail(cli.ExitIO, "writ … --config FILE, to start one for this command", "%w", err)
		} else if g != nil {
			when(stderr, len(all) > 1, "writ: several gateways run on this state directory; this is for the one at %s\n", g.URL)
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
	g, stop, err := o.start(ctx, logger(stderr, slog.LevelError))
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

func callCommand() *cobra.Command {
	var f flags
	var session, task string
	c := f.take(&cobra.Command{
		Use:   "call [--session NAME] TOOL [JSON | -]",
		Short: "Call one tool, through the same door as any client",
		Long: "Call one tool by the name `writ tools` shows, with its arguments as one JSON object\n" +
			"(- reads them from standard input). The call goes to the running gateway of the state\n" +
			"directory, else to one started for it. Calls that build on each other need --session.",
		Example: "  writ call --session demo search_documents '{\"query\":\"retention\"}'",
		Args:    between(1, 2, "a tool and at most one JSON object"),
		RunE: func(c *cobra.Command, args []string) error {
			arguments, err := readArguments(args[1:], c.InOrStdin())
			if err != nil {
				return err
			}
			own := ownTerminal(c.InOrStdin(), c.ErrOrStderr())
			cl, err := f.connect(c.Context(), session, own, c.ErrOrStderr())
			if err != nil {
				return err
			}
			params := ask.CallParams(args[0], arguments)
			if c.Flags().Changed("task") {
				params = strictjson.Set(params, "_meta", strictjson.Set([]byte("{}"), gateway.MetaTask, strictjson.Quote(task)))
			}
			result, rerr, err := cl.call(c.Context(), "tools/call", args[0], params)
			if r, elsewhere := cl.(*remote); elsewhere && own != nil && err == nil && r.allowed(c.Context(), f.state, own, result, arguments) {
				result, rerr, err = cl.call(c.Context(), "tools/call", args[0], params)
			}
			if cerr := cl.close(); err == nil && cerr != nil {
				err = unclean(cerr)
			}
			if err != nil {
				return err
			}
			if _, here := cl.(*local); here && waits(result) {
				result = bytes.ReplaceAll(result, []byte(gate.WhereAnswered), []byte(noLonger))
			}
			return printResult(c.OutOrStdout(), result, rerr, f.json, c)
		},
	}, "state", "config", "json")
	f.oneServer(c)
	c.Flags().StringVar(&session, "session", "", "`NAME` of the session to call in; opened on first use")
	c.Flags().StringVar(&task, "task", "", "`NAME` of the task within the session, for the memory")
	return c
}

// noLonger says instead of it what does work where the gateway was this command's.
const noLonger = "The gateway of this command asked, and has ended: nobody sees what it asked. In a terminal of your own the same command asks there; " +
	"while `writ serve --config FILE` runs, the same without --config goes to it, and `writ watch` shows what it asks."

// readArguments returns one strict JSON object.
func readArguments(args []string, stdin io.Reader) ([]byte, error) {
	b := []byte("{}")
	if len(args) == 1 {
		b = []byte(args[0])
		if args[0] == "-" {
			var err error
			if b, err = io.ReadAll(io.LimitReader(stdin, int64(strictjson.Request.Bytes)+1)); err != nil {
				return nil, cli.Fail(cli.ExitIO, "", "standard input cannot be read")
			}
		}
	}
	if err := strictjson.Check(b, strictjson.Request); err != nil {
		return nil, cli.Fail(cli.ExitData, "writ call TOOL '{\"key\":\"value\"}'", "the arguments are %w", err)
	}
	if strictjson.KindOf(b) != strictjson.Object {
		return nil, cli.Fail(cli.ExitData, "writ call TOOL '{\"key\":\"value\"}'", "the arguments are one JSON object")
	}
	return []byte(strings.TrimSpace(string(b))), nil
}

// printResult shows how a call ended and returns the error with its exit code:
// 77 for a refusal, 1 for an error of the server's.
// ran is the command that made the call.
func printResult(w io.Writer, result []byte, rerr *rpc.Error, asJSON bool, ran *cobra.Command) error {
	var o writ.Outcome
	meta := strictjson.Get(result, "_meta")
	failed := rerr != nil || string(strictjson.Get(result, "isError")) == "true"
	outcome := strictjson.Get(meta, gateway.MetaOutcome)
	said, _ := strictjson.Text(strictjson.At(result, "/content/0/text"))
	if rerr != nil {
		outcome, said = rerr.Data, rerr.Message
	}
	if json.Unmarshal(outcome, &o) != nil {
		o = writ.Outcome{}
	}
	refused := failed && o.Status == writ.Rejected && o.Rejection != nil
	switch {
	case asJSON && rerr != nil:
		fmt.Fprintf(w, "%s\n", cli.PlainJSON(rerr.Encode()))
	case asJSON:
		fmt.Fprintf(w, "%s\n", cli.PlainJSON(strictjson.Compact(result)))
	case refused && strictjson.Get(meta, gateway.MetaEvidence) == nil:
		printSaid(w, steps(ran, said))
	case refused: // by Writ's own server, whose words are a result
		printRefusal(w, &o, ran)
	case rerr != nil:
		next := "writ tools"
		if strings.Contains(rerr.Message, gateway.NotKnown) {
			next = "writ audit show --unsettled"
		}
		return cli.Fail(cli.ExitServer, next, "error %d: %s", rerr.Code, cli.OneLine(rerr.Message, 400))
	default:
		printContent(w, result, cli.Terminal(w))
		when(w, o.Status == writ.Transformed, "transformed: the policy normalised the call\n")
		when(w, strictjson.Get(meta, gateway.MetaShadow) != nil, "shadow: the call passed whatever was decided\n")
		if ev := strictjson.Get(meta, gateway.MetaEvidence); ev != nil {
			id, _ := strictjson.Text(strictjson.Get(ev, "id"))
			if string(strictjson.Get(ev, "admissible")) == "true" {
				fmt.Fprintf(w, "evidence %s\n", cli.Printable(id))
			} else {
				why, _ := strictjson.Text(strictjson.Get(ev, "why"))
				fmt.Fprintf(w, "%s vouches for nothing: %s\n", cli.Printable(id), cli.Printable(cmp.Or(noEvidence[why], why)))
			}
		}
	}
	switch {
	case refused:
		return cli.Ended(cli.ExitRefused)
	case failed:
		return cli.Ended(cli.ExitServer)
	}
	return nil
}

// noEvidence says to a person why a result is no evidence.
var noEvidence = map[string]string{
	"error":       "the server says that it failed",
	"unvalidated": "it is not data that a schema of the server's or a contract describes (unvalidated)",
	"no_contract": "no contract says what is in it (no_contract)",
	"no_session":  "the call had no session",
}

// steps is withWhere for the commands that a refusal names.
func steps(ran *cobra.Command, said string) string {
	return namedStep().ReplaceAllStringFunc(said, func(step string) string { return "`" + withWhere(ran, strings.Trim(step, "`")) + "`" })
}

var namedStep = text.Pattern("`writ [a-z][^`\n]*`")

// printSaid shows a refusal of the door's in the words that its client gets.
func printSaid(w io.Writer, said string) {
	for i, line := range strings.Split(said, "\n") {
		if i == 0 {
			fmt.Fprintln(w, coloured(w, "31", cli.OneLine(line, 1200)))
		} else {
			theirs(w, "", line, 1200)
		}
	}
}

// printRefusal says what was refused, why, and what would make it pass.
func printRefusal(w io.Writer, o *writ.Outcome, ran *cobra.Command) {
	r := o.Rejection
	fmt.Fprintln(w, coloured(w, "31", fmt.Sprintf("%s: %s (%s)", story.Word(string(o.Status), string(r.Reason)), r.Code, r.Reason)))
	for _, f := range r.Failures {
		need := cli.OneLine(steps(ran, f.Need), 600)
		if f.Pointer != "" && !strings.HasPrefix(f.Need, "`"+f.Pointer+"`") { // most say it themselves
			need = cli.OneLine(f.Pointer, 200) + ": " + need
		}
		theirs(w, "  ", need, 0)
	}
}

// printContent shows the text a server returned, with nothing in it unescaped;
// with a bar before each line, so that none of them passes for one of ours.
func printContent(w io.Writer, result []byte, bar bool) {
	if s := strictjson.Get(result, "structuredContent"); s != nil {
		theirs(w, "", string(strictjson.Compact(s)), 0)
		return
	}
	blocks, _ := strictjson.Elements(strictjson.Get(result, "content"))
	for _, b := range blocks {
		kind, _ := strictjson.Text(strictjson.Get(b, "type"))
		if text, ok := strictjson.Text(strictjson.Get(b, "text")); ok && bar {
			for line := range strings.Lines(text) {
				theirs(w, "| ", strings.TrimSuffix(line, "\n"), 0)
			}
		} else if ok {
			fmt.Fprintln(w, cli.Printable(text))
		} else {
			fmt.Fprintf(w, "(%s)\n", cli.OneLine(kind, 40))
		}
	}
}
