package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/hook"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// hookSaid is the answer to POST /hook and POST /say (docs/hosts.md).
type hookSaid struct {
	Decision string `json:"decision,omitempty"` // of before: pass, ask or deny
	Reason   string `json:"reason,omitempty"`
	Record   string `json:"record,omitempty"`
	Evidence string `json:"evidence,omitempty"` // of after and prompt
	Halted   string `json:"halted,omitempty"`   // the reason: the session makes no call any more
	Reply    string `json:"reply,omitempty"`    // the operator's words to the user
	Error    string `json:"error,omitempty"`
	Event    string `json:"event,omitempty"` // of stdin: which one was read there; "" that nothing was
}

// hookAsked is what a host says, as it was read.
type hookAsked struct {
	Host         string
	Client       int
	Event        string // before, after or prompt; stdin, where the request is on the socket that came with it
	Conversation string // the host's name of it
	ID, Tool     string
	Arguments    strictjson.Value
	Root, Dir    string // the directory the client was opened in, and where the call begins
	Prompts      bool   // a person is asked where the answer is ask
	Interactive  bool   // a person types at the client
	Result       strictjson.Value
	Failed       string
	Text         string
	Token        string // of whoever speaks for it, in no body
}

// hookLimits bound a body: a result and what is said beside it.
var hookLimits = strictjson.Limits{Bytes: 20 << 20, Depth: 110, Leaves: 110_000, Number: 64}

// members are the texts and flags of a body, by their names there.
func (a *hookAsked) members() (texts map[string]*string, flags map[string]*bool) {
	texts = map[string]*string{"host": &a.Host, "event": &a.Event, "conversation": &a.Conversation, "id": &a.ID, "tool": &a.Tool,
		"root": &a.Root, "dir": &a.Dir, "error": &a.Failed, "text": &a.Text}
	return texts, map[string]*bool{"prompts": &a.Prompts, "interactive": &a.Interactive}
}

// readHook reads a body, exactly.
func readHook(b []byte) (a hookAsked, ok bool) {
	v, err := strictjson.Parse(b, hookLimits)
	if err != nil || v.Kind() != strictjson.Object {
		return a, false
	}
	texts, flags := a.members()
	for name, m := range v.Members() {
		ok := true
		switch {
		case texts[name] != nil:
			*texts[name], ok = m.Text()
		case flags[name] != nil:
			raw := string(m.Raw())
			*flags[name], ok = raw == "true", raw == "true" || raw == "false"
		case name == "client":
			a.Client, err = strconv.Atoi(string(m.Raw()))
			ok = err == nil
		case name == "arguments":
			a.Arguments = m
		case name == "result":
			a.Result = m
		default:
			ok = false
		}
		if !ok {
			return a, false
		}
	}
	switch a.Event {
	case "before", "after":
		ok = a.ID != "" && len(a.ID) <= 200 && a.Tool != "" && len(a.Tool) <= 200 && a.Text == ""
	case "prompt":
		ok = a.Text != "" && len(a.Text) <= screen.MaxText && utf8.ValidString(a.Text) && a.ID+a.Tool == ""
	case "stdin":
		ok = a.ID+a.Tool+a.Text == "" && a.Client == 0
	default:
		ok = false
	}
	return a, ok && a.Host != "" && len(a.Conversation) <= 200 && (a.Client > 1 || a.Event == "stdin")
}

// call is the call that is judged. own are the paths that no tool may name.
func (a *hookAsked) call(h *hook.Host, own []string) (hook.Call, gateway.HostCall) {
	c := h.Call(a.Tool, a.Arguments, a.Root != "" && filepath.Clean(a.Dir) == filepath.Clean(a.Root) && !inBare(a.Root))
	if h.Shell(a.Tool) && steered(h, a.Root) {
		c.Steered, c.Reads, c.Tool = true, false, a.Tool
		c.Why = "the project's own settings, in " + h.Settings[0] + " or beside it, say which programs run"
	}
	if c.Reads && c.Names != nil && finds(c.Names, a.Dir, c.Moved, own) {
		c.Reads, c.Why, c.Tool = false, hook.NotRead+"it may come upon Writ's own files", a.Tool
	}
	c.Judged = c.Judged && (c.Definition == nil || !trustedDefinition(*c.Definition, a.Root, a.Dir))
	return c, gateway.HostCall{ID: a.ID, Call: c.Call, Names: c.Names, Dir: absolute(a.Dir), Elsewhere: c.Moved, Conversation: a.Conversation}
}

func absolute(dir string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Clean(dir)
}

// hookHandler is POST /hook of the local door: a client's own tools, and what its person
// types. client is the one client of a gateway over stdio, nil where it has others.
func (o *files) hookHandler(g *gateway.Gateway, client *oneClient) http.HandlerFunc {
	return replies(func(w http.ResponseWriter, r *http.Request) (int, any) {
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(hookLimits.Bytes)))
		if a, ok := readHook(b); err == nil && ok {
			return o.answerHook(r, g, client, &a)
		}
		return http.StatusBadRequest, hookSaid{Error: "the body is none that docs/hosts.md has"}
	})
}

func (o *files) answerHook(r *http.Request, g *gateway.Gateway, client *oneClient, a *hookAsked) (status int, reply hookSaid) {
	if o.host == nil || o.host.Name != a.Host {
		return http.StatusNotFound, hookSaid{Error: "this gateway judges no tools of that host"}
	}
	var from *localdoor.Handed // who says it, where the kernel knows
	if a.Event == "stdin" {
		if from = localdoor.HandedBy(r.Context()); from == nil {
			return http.StatusForbidden, hookSaid{Error: "no end of a pair of sockets came with it"}
		}
		defer from.Close()
		a.Client = from.Maker
	} else if status, err := o.hookMay(r, a, false); err != nil {
		return status, hookSaid{Error: err.Error()}
	}
	s, principal, err := o.hookSession(r.Context(), g, client, a.Client)
	if errors.Is(err, downstream.ErrNoSession) {
		return http.StatusNotFound, hookSaid{Error: "this gateway has no session of that client"}
	}
	event := "" // that was read on what was handed over
	if from != nil && err == nil {
		ok := a.readHanded(from)
		event = a.Event
		if !ok {
			return http.StatusBadRequest, hookSaid{Event: event, Error: "what the client says of it cannot be read, so nothing was done"}
		} else if event == "none" {
			return http.StatusOK, hookSaid{Event: event}
		} else if status, err := o.hookMay(r, a, true); err != nil {
			return status, hookSaid{Event: event, Error: err.Error()}
		}
	}
	if err == nil {
		reply, err = o.hooked(r.Context(), g, s, principal, a)
	}
	switch {
	case errors.Is(err, gateway.ErrNotHeld):
		status, reply = http.StatusNotFound, hookSaid{Error: err.Error()}
	case errors.Is(err, gateway.ErrOtherCall):
		status, reply = http.StatusConflict, hookSaid{Error: err.Error()}
	case err != nil:
		status, reply = http.StatusInternalServerError, hookSaid{Error: "it could not be put on record: nothing may be done, and nothing vouches"}
	default:
		status = http.StatusOK
	}
	reply.Event = event
	return status, reply
}

func (o *files) hooked(ctx context.Context, g *gateway.Gateway, s downstream.Session, principal string, a *hookAsked) (reply hookSaid, err error) {
	if a.Event == "prompt" {
		return turned(g.TurnOf(ctx, s, a.Conversation, a.Text))
	}
	c, call := a.call(o.host, o.ownPaths)
	if !c.Judged { // but the call of a server's tool, which names no conversation, comes next
		return hookSaid{Decision: "pass"}, g.Converse(ctx, s, a.Conversation)
	}
	if a.Event == "after" {
		result := hook.Failed(a.Failed)
		if a.Result.Exists() {
			result = hook.Result(a.Result.Raw(), inside(a.Root, a.Result, c.File))
		}
		reply.Evidence, err = g.After(s, call, result)
		return reply, err
	}
	v, err := g.Before(ctx, s, principal, call, !a.Prompts)
	if err != nil {
		return reply, err
	}
	reply.Record = v.Record
	switch {
	case v.Allowed && !c.Steered:
		reply.Decision = "pass"
	case (v.Asks || v.Allowed) && a.Prompts:
		reply.Decision, reply.Reason = "ask", why(c, v.Rejection)+". A yes is good for this call, and vouches for nothing."
	default:
		reply.Decision, reply.Reason = "deny", "Not done: "+why(c, v.Rejection)+"."
		if !a.Prompts && c.Why != "" {
			reply.Reason += " This client asks nobody; a person may do it, or open the client where it asks."
		}
	}
	return reply, nil
}

// why says in a sentence or two why a call was refused. Nothing that the model wrote is
// in it.
func why(c hook.Call, r *writ.Rejection) string {
	own := r != nil && slices.ContainsFunc(r.Failures, func(f writ.Failure) bool { return f.Reason == writ.DirectOwnState })
	if c.Why != "" && !own {
		return c.Why
	}
	if c.Tool == hook.Other && !own {
		return "nothing is known of this tool"
	}
	if r == nil {
		return "it was refused"
	}
	needs := joined(gate.Telling(r.Failures)[:min(len(r.Failures), 3)], "; ", func(f writ.Failure) string { return f.Need })
	return cmp.Or(strings.TrimRight(cli.OneLine(needs, 800), "."), string(r.Reason))
}

// inside is the file that a result names, where it lies below root, behind links too, and
// says nothing of which programs run; else "".
func inside(root string, result strictjson.Value, at string) string {
	if at == "" || !filepath.IsAbs(root) {
		return ""
	}
	v := result
	for _, name := range strings.Split(at, "/")[1:] {
		v = v.Get(name)
	}
	file, ok := v.Text()
	if !ok || !filepath.IsAbs(file) || filepath.Clean(file) != file {
		return ""
	}
	real, err := filepath.EvalSymlinks(file)
	top, rerr := filepath.EvalSymlinks(root)
	if err != nil || rerr != nil {
		return ""
	}
	if rel, err := filepath.Rel(top, real); err != nil || !filepath.IsLocal(rel) || rel == "." || hook.Steers(file) || hook.Steers(real) {
		return ""
	}
	return file
}

// readHanded reads the request that stands on the socket of a client: there is nothing of
// whoever brought it in what counts as the client's. Its event is "none" for one that is
// none of ours, and "before" for one that cannot be read and may be that.
func (a *hookAsked) readHanded(from *localdoor.Handed) (ok bool) {
	outer := *a
	a.Event = "before"
	conn, err := from.Conn()
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(hookReads))
	b, err := io.ReadAll(io.LimitReader(conn, int64(hookLimits.Bytes)+1))
	if err != nil {
		return false
	}
	if outer.Host != "claude-code" {
		if v, err := strictjson.Parse(bytes.TrimSpace(b), hookLimits); err == nil && v.Kind() == strictjson.Object && !v.Get("client").Exists() {
			b = strictjson.Set(v.Raw(), "client", fmt.Append(nil, outer.Client))
		}
		said, ok := readHook(b)
		if ok = ok && said.Event != "stdin" && said.Host == outer.Host && said.Client == outer.Client; ok {
			*a = said
		}
		return ok
	}
	e, ok := readClaude(b)
	*a = *e.hookAsked
	a.Client, a.Root = outer.Client, outer.Root
	a.Interactive = outer.Interactive && !printing(a.Client)
	a.Prompts = a.Interactive && slices.Contains(prompting, e.mode)
	if ok && (a.Event == "" || a.Event == "prompt" && noticed(a.Text)) {
		a.Event = "none"
	} else if a.Event == "" {
		a.Event = "none"
		if e.name == "" || e.name == "PreToolUse" {
			a.Event = "before"
		}
	}
	return ok
}

// hookReads is how long a gateway waits for what a client writes to its hook.
const hookReads = 10 * time.Second

// hookMay says who may speak for a client: it itself, by its own connection or on a socket
// that it made (proven), and whoever shows the token of a person. Of this program alone a
// question is taken, which says nothing of what was done or typed. What a person typed is
// taken from a client alone that has a terminal and that no other client's agent can have
// started.
func (o *files) hookMay(r *http.Request, a *hookAsked, proven bool) (int, error) {
	if header, stated := r.Header["Authorization"]; stated {
		return o.saysBy(header)
	}
	switch {
	case proven || localdoor.Is(r.Context(), a.Client):
	case a.Event != "before":
		return http.StatusForbidden, errors.New("it does not come from that client by a pair of sockets that it made")
	case runtime.GOOS != "linux": // who asks before he acts learns what he may do, wherever he comes from
	case localdoor.Below(r.Context(), a.Client) != nil:
		return http.StatusForbidden, errors.New("it does not come from that client")
	}
	if a.Event != "prompt" {
		return 0, nil
	}
	if !a.Interactive {
		return http.StatusForbidden, errors.New("nobody types at this client")
	}
	if err := localdoor.ByHand(a.Client, append(otherClients(o.state, a.Client), os.Getpid())...); err != nil {
		return http.StatusForbidden, err
	}
	return 0, nil
}

// otherClients are the processes of the clients whose gateways share a session.
func otherClients(state string, but int) (pids []int) {
	for _, s := range sharedIn(state) {
		if s.pid != but && s.runs && s.here {
			pids = append(pids, s.pid)
		}
	}
	return pids
}

// hookSession is the session of a client, the one that its gateways share.
func (o *files) hookSession(ctx context.Context, g *gateway.Gateway, client *oneClient, pid int) (s downstream.Session, principal string, err error) {
	principal = fmt.Sprintf("local:%d", os.Getuid())
	if client != nil {
		s, err = client.of(pid)
		return s, principal, err
	}
	if s, err = sharedSession(ctx, o.state, g, principal, pid); err == nil && s == nil {
		err = downstream.ErrNoSession
	}
	return s, principal, err
}
