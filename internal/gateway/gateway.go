// Package gateway is where evidence, decisions and MCP meet: it holds the
// sessions, the one door every judged request goes through, and the router
// that package downstream hands requests to. It is the only package that calls
// a server's tools, and it calls them from one function.
//
// It trusts the operator's policy and configuration and what package gate
// decides. It trusts neither clients nor servers: what they send arrives here
// as strict JSON within bounds and is hashed, judged and forwarded as the bytes
// it came in.
//
// Lock order: a judgedCall's mu, a session's, sessions'. No lock is held while a
// server or a client is waited for, but for reloading, which no call takes.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/otlp"
	"github.com/writ-project/writ/internal/snapshot"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// Store is what a gateway needs of its store: the log and the register of
// sessions, kept together.
type Store interface {
	audit.Store
	audit.Sessions
}

// Options are what a gateway is made of.
type Options struct {
	Store  Store
	Policy *policy.Policy
	// PolicyFile is what refusals call the policy's file, "" where it has none.
	PolicyFile string
	Servers    []upstream.Config
	// Credential returns what signs the requests to a hosted server in; nil for none.
	Credential func(server, url string) upstream.Credential
	// Ended is told that the process of a server ended while it was in use, and what that
	// said last; nil for nobody. It must not wait.
	Ended func(server upstream.Config, died *upstream.DiedError)
	// Tools are those the program runs itself, when it calls Gateway.Call. Their
	// servers are names and nothing else, and none of Servers.
	Tools []gate.Definition
	// Inside is Writ's own server, policy.OwnServer; nil for none.
	Inside Inside
	// Shadow records and decides, but lets every call pass. A session keeps
	// the mode it was opened in.
	Shadow bool
	// Screen is the input policy for users' turns (INV-0), nil for none: a turn
	// that matches halts its session before its next call, whichever process
	// took it in and under whatever policy of its own.
	Screen *screen.Screen
	// Approvals is where calls wait for a person, nil where nobody can be asked. A
	// question is put while somebody watches, or always where ApprovalsStand says
	// that it may stand open until somebody looks.
	Approvals      *approval.Queue
	ApprovalsStand bool
	// Own asks whoever is at this process's own terminal, for a gateway that serves
	// nobody else; nil for any other. A call is held for him as long as its question
	// stands.
	Own approval.Surface
	// AnswersFor returns who answers what the client of a principal is asked, and
	// what that is worth: ok is false unless the operator registered the client as
	// his. Nil is nobody. It is asked each time, and may end a registration any time.
	AnswersFor func(principal string) (by string, label writ.Label, ok bool)
	// Grow has lines grow beside the policy and puts them in force, once record has
	// put them on record; where it fails, nothing grew. Nil where the policy has no
	// file to grow beside.
	Grow func(ctx context.Context, lines []policy.Grown, record func() error) error
	// Approve is the command by which the operator looks at a tool's definition and pins it,
	// "" where nothing does; nil is writ tools approve with the tool alone.
	Approve func(tool string) string
	// OwnPaths are cleaned absolute paths no argument may name (R34), the state
	// directory first. The programs servers are started from are added to them.
	OwnPaths []string
	Caps     provenance.Caps
	// MaxHeld bounds the memory that the evidence of all sessions takes, 1 GiB
	// if it is 0: sessions at rest are dropped from it, and where that is not
	// enough a result vouches for nothing.
	MaxHeld int64
	// Snapshots keep what long sessions come to, so that none is folded from its first
	// record; nil keeps none.
	Snapshots *snapshot.Dir
	// Namespace is whose lowered places count (R38), "default" if it is empty;
	// two namespaces of one state share none.
	Namespace string
	Version   string       // of the product, for serverInfo
	Log       *slog.Logger // nil discards
	// OTLP is told of each call and each decision; nil for nobody. It is the caller's to
	// close, after the gateway.
	OTLP *otlp.Exporter
	// Clock is the recorded time; nil is the real one.
	Clock func() time.Time
}

// Gateway is a running gateway: it wires its four parts, whose exported methods
// are its own, and takes calls through the door. It implements downstream.Router.
type Gateway struct {
	*sessions  // with their journal
	*rules     // the ruleset in force
	*listeners // who is told of what
	*events    // what went on beside the calls

	places     *places
	held       held
	approvals  approvals
	inside     Inside
	shadow     bool
	disk       disk
	version    string
	credential func(server, url string) upstream.Credential
	ended      func(server upstream.Config, died *upstream.DiedError)
	policyFile string

	reloading sync.Mutex      // one reload at a time, and none once it ends
	asking    context.Context // of Start: a person is waited for until it ends
	running   context.Context // from Start to Close
	stop      context.CancelFunc
	done      sync.WaitGroup
}

// New returns a gateway that is not started.
func New(o Options) (*Gateway, error) {
	if o.Policy == nil || o.Store == nil {
		return nil, errors.New("gateway: a policy and a store are needed")
	}
	if o.AnswersFor == nil {
		o.AnswersFor = func(string) (string, writ.Label, bool) { return "", 0, false }
	}
	g := &Gateway{approvals: approvals{o.Approvals, o.ApprovalsStand, o.Own, o.AnswersFor, o.Grow}, inside: o.Inside, disk: thisDisk{}, shadow: o.Shadow, version: o.Version, credential: o.Credential, ended: o.Ended, policyFile: o.PolicyFile,
		events: newEvents(o.Log), listeners: &listeners{open: map[*listener]bool{}, subs: map[subscription]bool{}}, places: newPlaces(o.Store, cmp.Or(o.Namespace, defaultNamespace))}
	g.events.otlp = o.OTLP
	g.rules = newRules(o, g.events, func() { g.listeners.listChanged("tools") })
	g.sessions = newSessions(o, g.events)
	if g.hasTools(policy.OwnServer) {
		return nil, errors.New("gateway: a tool of the program has the name of Writ's own server")
	}
	servers, _, err := g.newFleet(o.Servers, o.OwnPaths, nil)
	if err != nil {
		return nil, err
	}
	g.rules.fleet = servers
	return g, nil
}

// Start connects to every server and returns; lists wait for their answers. Once ctx ends
// no person is waited for any more. What was begun goes on until Close: it is for the
// caller to have calls reach their outcome before.
func (g *Gateway) Start(ctx context.Context) error {
	g.asking = ctx
	ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.running = ctx
	servers := g.rules.serving()
	for _, name := range servers.order {
		if err := servers.servers[name].start(ctx); err != nil {
			return fmt.Errorf("gateway: server %s: %w", name, err)
		}
	}
	g.done.Go(func() { g.rules.refresher(ctx, servers) })
	g.done.Go(func() { g.sessions.recorder(ctx) })
	g.sessions.folds.Go(func() { g.sessions.sweep(ctx) })
	return nil
}

// Close ends every server and waits for what was begun. The store stays open.
func (g *Gateway) Close() error {
	if g.stop != nil {
		g.stop()
	}
	g.reloading.Lock() // one that runs has ended
	defer g.reloading.Unlock()
	servers := g.rules.serving()
	errs := make([]error, len(servers.order))
	servers.atOnce(func(i int, s *server) { errs[i] = s.end() })
	g.done.Wait()
	g.rules.watching.Wait()
	g.sessions.end()
	g.sessions.recordEvents()
	g.sessions.drainAll()
	return errors.Join(errs...)
}

// CloseSession ends a session for good (downstream.Router).
func (g *Gateway) CloseSession(ctx context.Context, s downstream.Session) error {
	h, ok := s.(handle)
	if !ok {
		return downstream.ErrNoSession
	}
	err := g.sessions.close(ctx, h.id)
	g.Over(ctx, h.id)
	if err == nil {
		g.listeners.forget(h.id)
	}
	return err
}
