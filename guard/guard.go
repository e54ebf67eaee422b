// Package guard puts the gate into an agent of your own: a Go program that runs
// its tools itself, without MCP. Open names the policy, the tools and a state
// directory; a Session is the scope in which evidence counts; its Call runs a
// function of yours only if the policy allows the call, and every argument of an
// act traces to what an earlier call of that session returned, or to what its
// user said.
//
// It is a client, within the process, of the door that MCP clients come to, and
// promises what that door does:
//
//   - A decision on an act is durable before your function is called, and any
//     decision is in the log before you get a result. What cannot be recorded is
//     refused, and your function is not called.
//   - Your function is called at most once for a Call, with a copy of the very
//     bytes that were judged. What it returns is recorded before you get it, and
//     vouches for what the tool's contract and output schema say.
//   - An error of your function, and a result that is no JSON object, is recorded
//     and vouches for nothing. Where it panics, ends its goroutine or fails after
//     its context ended, the outcome is recorded as unknown; a panic goes on.
//   - A refusal is a *Refused. Of all other errors none allows anything.
//   - No argument but content names a file of the state directory: nothing is
//     known of where your functions begin their relative paths, so what ends as
//     such a file's path does is refused wherever it lies.
//   - The state directory is one of the command line's: `writ audit verify`
//     checks it, `writ audit show` explains a decision.
//
// The guard trusts your program: the policy, the tools' definitions, the
// functions, and that what Say is given are the user's own words. It does not
// trust the model: whatever of server, tool and arguments it chose may be handed
// to Call as it came. A tool that your program runs without Call is not guarded.
//
// All methods may be called at the same time, and within a function that Call
// runs, but for Close, which waits for that function. What is folded in before a
// decision counts for it: of two calls at the same time neither vouches for the
// other. The zero Guard and the zero Session are closed.
package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// Tool is the definition of a tool that the program runs itself. Policies name
// it Server/Name. Input and Output are JSON Schemas of its arguments and of its
// result: without Input it takes none, without Output nothing in its result
// vouches.
type Tool struct {
	Server, Name, Description string
	Input, Output             json.RawMessage
}

// ErrClosed says that the session or its guard is closed. Nothing was called.
var ErrClosed = errors.New("guard: it is closed; nothing was called")

// Refused says that a call was not made, or that the result of a read could not
// be recorded. Nothing in it was chosen by the model but pointers into the
// arguments.
type Refused struct {
	writ.Rejection        // code, reason, and each failing argument with what would make it pass
	Decision       string // id of the decision's record, "s_…/7", "" where none was made
}

// Error is one line that can be shown to a person or handed to the model.
func (r *Refused) Error() string {
	s := "refused: " + string(r.Code) + " (" + string(r.Reason) + ")"
	for _, f := range r.Failures {
		if s += ": "; f.Pointer != "" {
			s += strconv.QuoteToGraphic(f.Pointer) + " "
		}
		s += f.Need
	}
	return s
}

// Guard is an open policy over a state directory.
type Guard struct {
	gateway *gateway.Gateway
	store   gateway.Store
	notice  string
	open    inUse
}

// Notice is what an operator should know of the log that was opened, or "": that
// another was kept in that directory before, and is gone.
func (g *Guard) Notice() string {
	if g == nil {
		return ""
	}
	return g.notice
}

// mended says what of a file's owner, modes or place was refused, and the command
// that mends it.
func mended(what string, err error) error {
	var loose *private.Error
	if errors.As(err, &loose) && loose.Mend != "" {
		return fmt.Errorf("%s: %w; mend it with: %s", what, err, loose.Mend)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Open opens the state directory, which is made if it is not there, with a
// policy in YAML and the tools. Every fault of the policy is in the error, with
// line and column; so is every tool that could never be called and every
// contract without a tool. A log that was rolled back, copied or written to
// without its key does not open; `writ session list --state DIR
// --accept-rollback` goes on with it, and records that.
func Open(dir string, policy []byte, tools []Tool) (*Guard, error) {
	p, defs, err := join(policy, tools)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, errors.New("guard: no state directory is named")
	}
	if dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = statedir.Check(dir)
	}
	if err != nil {
		return nil, mended("guard: the state directory", err)
	}
	signer, verifier, err := statedir.Key(dir)
	if err != nil {
		return nil, mended("guard", err)
	}
	own, heads := statedir.Own(dir), statedir.HeadsDir(dir)
	if heads != "" {
		own = append(own, statedir.Named(heads)...)
	}
	store, err := sqlite.Open(dir, sqlite.Options{Signer: signer, Verifier: verifier, Elsewhere: heads})
	if err != nil {
		var oe *sqlite.OpenError
		if errors.As(err, &oe) && oe.Hint != "" {
			err = fmt.Errorf("%w: %s", err, oe.Hint)
		}
		return nil, fmt.Errorf("guard: the log: %w", err)
	}
	g, err := start(store, gateway.Options{Policy: p, Tools: defs, OwnPaths: own})
	if err == nil {
		g.notice = store.Notice()
	}
	return g, err
}

// start starts a guard over a store, which it closes in the end.
func start(store gateway.Store, o gateway.Options) (*Guard, error) {
	o.Store = store
	g, err := gateway.New(o)
	if err == nil {
		if err = g.Start(context.Background()); err == nil {
			err = g.Ready(context.Background())
		}
	}
	if err == nil {
		return &Guard{gateway: g, store: store, open: inUse{open: true}}, nil
	}
	if g != nil {
		g.Close()
	}
	store.Close()
	return nil, fmt.Errorf("guard: %w", err)
}

// join reads the policy and joins it with the tools.
func join(text []byte, tools []Tool) (*policy.Policy, []gate.Definition, error) {
	var wrong []error
	fault := func(line, column int, message, hint string) {
		wrong = append(wrong, errors.New(policy.Fault{File: "policy", Line: line, Column: column, Message: message, Hint: hint}.String()))
	}
	p, faults := policy.Parse("policy", text)
	for _, f := range faults {
		fault(f.Line, f.Column, f.Message, f.Hint)
	}
	var defs []gate.Definition
	for i, t := range tools {
		raw := strictjson.Set([]byte("{}"), "name", strictjson.Quote(t.Name))
		raw = strictjson.Set(raw, "description", strictjson.Quote(t.Description))
		if t.Input == nil {
			t.Input = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		for name, schema := range map[string]json.RawMessage{"inputSchema": t.Input, "outputSchema": t.Output} {
			switch {
			case schema == nil:
			case strictjson.Check(schema, strictjson.Request) != nil || strictjson.KindOf(schema) != strictjson.Object:
				wrong = append(wrong, fmt.Errorf("tool %d: its %s is not one JSON object", i, name))
			default:
				raw = strictjson.Set(raw, name, schema)
			}
		}
		if !policy.ServerName(t.Server) || t.Server == policy.OwnServer {
			wrong = append(wrong, fmt.Errorf("tool %d: no server may have its server's name", i))
		}
		defs = append(defs, gate.Definition{Server: t.Server, Raw: raw})
	}
	if wrong == nil {
		c, findings := gate.NewCatalogue(defs, p)
		for _, f := range findings {
			switch {
			case f.Reason == writ.NameUnpinned || f.Reason == writ.NameChanged:
				fault(f.Line, f.Column, f.Server+"/"+f.Tool+": "+f.Message, "look at it and write `pin: "+c.Lookup(f.Server, f.Tool).Pin+
					"` into its contract, or `pins: optional` for tools that cannot change without the program")
			case f.Reason != "":
				fault(f.Line, f.Column, f.Server+"/"+f.Tool+": "+f.Message, f.Hint)
			}
		}
		for i, t := range tools {
			if found := c.Lookup(t.Server, t.Name); found == nil || found.Contract == nil {
				fault(0, 0, fmt.Sprintf("tool %d has no contract", i), "declare it under `tools:` as its server's name, / and its own")
			}
		}
	}
	if wrong != nil {
		return nil, nil, fmt.Errorf("guard: %w", errors.Join(wrong...))
	}
	return p, defs, nil
}

// Close waits for the calls that are under way, and closes the log. Sessions
// that were not closed are closed to this process.
func (g *Guard) Close() error {
	if g == nil || !g.open.close() {
		return nil
	}
	return errors.Join(g.gateway.Close(), g.store.Close())
}

// principal is whose the sessions are: the user's who started the program.
func principal() string { return "local:" + strconv.Itoa(os.Getuid()) }

// Session opens a session: one conversation of one user with the agent.
func (g *Guard) Session(ctx context.Context) (*Session, error) {
	if g == nil || !g.open.enter() {
		return nil, ErrClosed
	}
	defer g.open.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	_, at, err := g.gateway.OpenSession(ctx, principal(), downstream.CarrierProgram)
	if err != nil {
		return nil, fmt.Errorf("guard: the session cannot be opened: %w", err)
	}
	return &Session{guard: g, at: at, open: inUse{open: true}}, nil
}

// Session is the scope of evidence: what was seen in one session vouches in no
// other.
type Session struct {
	guard *Guard
	at    downstream.Session
	open  inUse
}

// enter keeps the session and its guard open until leave.
func (s *Session) enter() error {
	switch {
	case s == nil || s.guard == nil || !s.guard.open.enter():
		return ErrClosed
	case !s.open.enter():
		s.guard.open.leave()
		return ErrClosed
	}
	return nil
}

func (s *Session) leave() {
	s.open.leave()
	s.guard.open.leave()
}

// ID returns the session's name in the log, "s_…".
func (s *Session) ID() string {
	if s == nil || s.at == nil {
		return ""
	}
	return s.at.PublicID()
}

// Say records what the user said to the agent, whole and as he typed it: where a
// contract says `from: [user]`, his words vouch. Nothing that a model wrote, or
// that was read from elsewhere, may be given to it.
func (s *Session) Say(ctx context.Context, text string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(text) > strictjson.Request.Bytes {
		return errors.New("guard: what the user said is too long to be recorded")
	}
	if _, err := s.guard.gateway.Turn(ctx, s.at, text); err != nil {
		return fmt.Errorf("guard: what the user said is not recorded: %w", err)
	}
	return nil
}

// Close ends the session for good, once the calls in it are over.
func (s *Session) Close() error {
	if s == nil || !s.open.close() || s.guard == nil || !s.guard.open.enter() {
		return nil
	}
	defer s.guard.open.leave()
	return s.guard.gateway.CloseSession(context.Background(), s.at)
}

// Call runs fn, if the tool may be called with these arguments: one JSON object,
// or nil for none. fn gets a copy of them and returns one JSON object; Call
// returns its bytes, once they are recorded. Only a tool that there is not may
// come without an fn: it is refused, and on record, like any other.
//
// The error is a *Refused if the call was refused, fn's own error as it is, the
// context's if it had ended before fn was called, and else says what went wrong.
func (s *Session) Call(ctx context.Context, server, tool string, args json.RawMessage, fn func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if c, _ := s.guard.gateway.Catalogue(); fn == nil && c.Lookup(server, tool) != nil {
		return nil, errors.New("guard: there is no function to call")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(server)+len(tool)+len(args) > strictjson.Request.Bytes {
		return nil, &Refused{Rejection: writ.Rejection{Code: writ.CodeOf(writ.PayloadTooLarge), Reason: writ.PayloadTooLarge,
			Failures: []writ.Failure{{Reason: writ.PayloadTooLarge, Need: "must be smaller"}}}}
	}
	var called bool
	var failed error
	call := gate.Call{Server: server, Tool: tool}
	if args != nil {
		call.Arguments, _ = strictjson.Parse(slices.Clone(args), strictjson.Request) // what is none, the gate refuses
	}
	reply := s.guard.gateway.Call(ctx, s.at, principal(), call,
		func(ctx context.Context, args []byte) (out []byte, err error) {
			called = true
			out, failed = fn(ctx, args)
			return out, failed
		})
	meta := strictjson.Get(reply.Result, "_meta")
	outcome := strictjson.Get(meta, gateway.MetaOutcome)
	if reply.Err != nil {
		outcome = reply.Err.Data
	}
	var o writ.Outcome
	content := strictjson.Get(reply.Result, "structuredContent")
	switch {
	case failed != nil:
		return nil, failed
	case json.Unmarshal(outcome, &o) == nil && o.Rejection != nil:
		decision, _ := strictjson.Text(strictjson.Get(meta, gateway.MetaDecision))
		return nil, &Refused{*o.Rejection, decision}
	case !called && ctx.Err() != nil:
		return nil, ctx.Err()
	case reply.Err != nil:
		return nil, errors.New("guard: " + strings.ToValidUTF8(reply.Err.Message, "\uFFFD"))
	case content == nil:
		return nil, errors.New("guard: the function did not return a JSON object; that is recorded as its error")
	}
	return slices.Clone(content), nil
}

// inUse is what may be used until it is closed, which waits for its users. The
// zero value is closed.
type inUse struct {
	mu    sync.Mutex
	open  bool
	users sync.WaitGroup
}

func (u *inUse) enter() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open {
		u.users.Add(1)
	}
	return u.open
}

func (u *inUse) leave() { u.users.Done() }

// close reports whether it was open, and returns once nobody uses it.
func (u *inUse) close() bool {
	u.mu.Lock()
	was := u.open
	u.open = false
	u.mu.Unlock()
	u.users.Wait()
	return was
}
