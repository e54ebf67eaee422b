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
// Lock order: a session's mu is never taken while Gateway.mu is held, and no
// lock is held while a server or a client is waited for.
package gateway

import (
	"cmp"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/ask/screen"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

var publicEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Store is what a gateway needs of its store: the log and the register of
// sessions, kept together.
type Store interface {
	audit.Store
	audit.Sessions
}

// Options are what a gateway is made of.
type Options struct {
	Store   Store
	Policy  *policy.Policy
	Servers []upstream.Config
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
	// OwnPaths are cleaned absolute paths no argument may name (R34), the state
	// directory first. The programs servers are started from are added to them.
	OwnPaths []string
	Caps     provenance.Caps
	// MaxHeld bounds the memory that the evidence of all sessions takes, 1 GiB
	// if it is 0: sessions at rest are dropped from it, and where that is not
	// enough a result vouches for nothing.
	MaxHeld int64
	// Namespace is whose lowered places count (R38), "default" if it is empty;
	// two namespaces of one state share none.
	Namespace string
	Version   string       // of the product, for serverInfo
	Log       *slog.Logger // nil discards
	// Clock is the recorded time; nil is the real one.
	Clock func() time.Time
}

// Gateway is a running gateway. It implements downstream.Router.
type Gateway struct {
	store    Store
	sessions audit.Sessions
	policy   *policy.Policy
	inside   Inside
	tools    []gate.Definition
	servers  map[string]*server
	order    []string // server names, sorted
	shadow   bool
	disk     disk
	ownPaths []string
	programs []string // what servers are started from, and this program (R34)
	caps     provenance.Caps
	screen   *screen.Screen
	version  string
	log      *slog.Logger
	clock    func() time.Time

	absent  map[string]string // the refresher's: why a server was not there, as last told
	refresh chan struct{}     // asks the refresher for a new ruleset; holds one
	ready   chan struct{}     // closed with the first ruleset
	settled chan struct{}     // closed with the first ruleset that no server is awaited for
	stop    context.CancelFunc
	done    sync.WaitGroup

	sealKey [32]byte

	eventsMu   sync.Mutex
	events     map[peerEvent]int
	counted    chan struct{} // something was counted; holds one
	complained time.Time     // when complain last wrote a line
	unsaid     int           // how often it did not since

	places *places

	anonymousMu sync.Mutex
	anonymous   *session

	mu        sync.Mutex
	ruleset   *ruleset
	replaced  chan struct{} // closed and replaced with each ruleset
	loaded    map[string]*session
	held      int64 // bytes of their evidence
	maxHeld   int64
	listeners map[*listener]bool
	findings  []gate.Finding
	subs      map[subscription]bool // resource subscriptions
}

// server is one upstream server and what it last said of itself.
type server struct {
	name      string
	here      bool                // its absolute paths are this machine's
	bases     []string            // where its relative paths may begin, nil if not known
	elsewhere bool                // or at another directory
	env       func(string) string // a variable as it would read it
	conn      *upstream.Server
	// patience is how long a call waits for lists that changed. Once that was in
	// vain nothing waits any more, until the server has listed them.
	patience time.Duration

	again chan struct{} // a list changed; holds one

	mu     sync.Mutex
	info   upstream.Info
	err    error
	known  bool // the server has answered or failed
	listed map[string][][]byte
	roots  []string // that a client named in an answer
	at     uint64   // the conn's Changes before the lists were asked for
	vain   uint64   // waiting for lists newer than at was in vain
}

// ruleset is the policy with the catalogue it is joined to. It is immutable.
type ruleset struct {
	policy        *policy.Policy
	catalogue     *gate.Catalogue
	policyBlob    string
	catalogueBlob string
	prompts       map[string]route // by public name
	resources     map[string]string
	templates     []route
	at            map[string]uint64 // of each server that is listed: server.at
}

type route struct{ server, name string }

// New returns a gateway that is not started.
func New(o Options) (*Gateway, error) {
	g := &Gateway{
		store: o.Store, sessions: o.Store, policy: o.Policy, inside: o.Inside, tools: slices.Clone(o.Tools), servers: map[string]*server{}, shadow: o.Shadow,
		disk: thisDisk{}, ownPaths: o.OwnPaths, caps: o.Caps, screen: o.Screen, version: o.Version, log: o.Log, clock: o.Clock,
		events: map[peerEvent]int{}, counted: make(chan struct{}, 1),
		absent: map[string]string{}, refresh: make(chan struct{}, 1), ready: make(chan struct{}), settled: make(chan struct{}),
		replaced: make(chan struct{}), loaded: map[string]*session{}, listeners: map[*listener]bool{}, subs: map[subscription]bool{},
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if g.clock == nil {
		g.clock = time.Now
	}
	if o.Policy == nil || o.Store == nil {
		return nil, errors.New("gateway: a policy and a store are needed")
	}
	g.maxHeld = cmp.Or(o.MaxHeld, maxEvidence)
	g.places = newPlaces(o.Store, cmp.Or(o.Namespace, defaultNamespace))
	var err error
	if g.sealKey, err = newSealKey(); err != nil {
		return nil, fmt.Errorf("gateway: no randomness: %w", err)
	}
	for _, c := range o.Servers {
		if g.servers[c.Name] != nil || c.Name == policy.OwnServer {
			return nil, fmt.Errorf("gateway: two servers have one name")
		}
		c.Version = o.Version
		if c.ClientCapabilities == nil {
			c.ClientCapabilities = []byte(`{"elicitation":{"form":{},"url":{}},"sampling":{}}`)
		}
		dirs, programs := Given(c)
		g.programs = append(g.programs, programs...)
		if len(dirs) > 1 && slices.Contains(dirs[1:], dirs[0]) {
			dirs = dirs[1:]
		}
		s := &server{name: c.Name, here: onThisMachine(c, dirs), bases: dirs, env: environment(c), patience: c.Limits.WithDefaults().Relist, again: make(chan struct{}, 1)}
		s.conn = upstream.New(c, upstream.Callbacks{
			ListChanged: func(kind string) { g.listChanged(s, kind) },
			Notify:      func(method string, params []byte, owner string) { g.notified(s, method, params, owner) },
			Event:       func(e upstream.Event) { g.serverEvent(s.name, e) },
		}, nil)
		g.servers[c.Name] = s
		g.order = append(g.order, c.Name)
	}
	for _, t := range o.Tools {
		if g.servers[t.Server] != nil || t.Server == policy.OwnServer {
			return nil, fmt.Errorf("gateway: a tool of the program has the name of a server that is none of it")
		}
	}
	if self, err := os.Executable(); err == nil {
		g.programs = append(g.programs, self)
	}
	slices.Sort(g.programs)
	g.programs = slices.Compact(g.programs)
	slices.Sort(g.order)
	if in, is := g.inside.(InsideResources); is {
		in.Watch(g.insideChanged)
	}
	return g, nil
}

// Start connects to every server and returns; lists wait for their answers.
func (g *Gateway) Start(ctx context.Context) error {
	ctx, g.stop = context.WithCancel(ctx)
	for _, name := range g.order {
		if err := g.servers[name].conn.Start(ctx); err != nil {
			return fmt.Errorf("gateway: server %s: %w", name, err)
		}
	}
	for _, run := range []func(context.Context){g.refresher, g.recorder} {
		g.done.Add(1)
		go func() {
			defer g.done.Done()
			run(ctx)
		}()
	}
	return nil
}

// Close ends every server and waits for what was begun. The store stays open.
func (g *Gateway) Close() error {
	if g.stop != nil {
		g.stop()
	}
	var errs []error
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, s := range g.servers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := s.conn.Close(); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	g.done.Wait()
	g.recordEvents()
	g.mu.Lock()
	open := make([]*session, 0, len(g.loaded))
	for _, s := range g.loaded {
		open = append(open, s)
	}
	g.mu.Unlock()
	if g.anonymous != nil {
		open = append(open, g.anonymous)
	}
	for _, s := range open {
		s.mu.Lock()
		if len(s.queue) > 0 && !s.flushing {
			s.flushing = true
			go g.flush(s)
		}
		for s.flushing {
			s.drained.Wait()
		}
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// anonymousSession is the log's stream of requests that carry no session. It
// is opened by the first of them, and anew when it could not be written.
func (g *Gateway) anonymousSession() (*session, error) {
	g.anonymousMu.Lock()
	defer g.anonymousMu.Unlock()
	if s := g.anonymous; s != nil {
		s.mu.Lock()
		outdated := s.outdated
		s.mu.Unlock()
		if outdated == nil {
			return s, nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	s, err := g.openSession(ctx, "none", "none", "", true)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	g.anonymous = s
	return s, nil
}

// readyGrace is how long the first ruleset, once there is one server to show,
// waits for others that have neither answered nor failed. A silent one does not
// take the others' tools with it: clients are told when its own arrive.
const readyGrace = 3 * time.Second

// refresher keeps the ruleset: once when the servers have answered, and again
// whenever one of them has something new.
func (g *Gateway) refresher(ctx context.Context) {
	var watching sync.WaitGroup
	first := make(chan bool, len(g.order)) // whether the server answered
	for _, name := range g.order {
		watching.Add(1)
		go func() {
			defer watching.Done()
			g.servers[name].watch(ctx, g.log, func(answered bool) { first <- answered }, g.changed)
		}()
	}
	defer watching.Wait()
	var grace <-chan time.Time
	waiting, isReady := len(g.order), false
	for {
		if waiting == 0 {
			waiting = -1
			g.rebuild(ctx)
			close(g.settled)
			if !isReady {
				close(g.ready)
				isReady = true
			}
		}
		select {
		case <-ctx.Done():
			return
		case answered := <-first:
			waiting--
			if answered && grace == nil {
				grace = time.After(readyGrace)
			}
		case <-grace:
			if !isReady {
				g.rebuild(ctx)
				close(g.ready)
				isReady = true
			}
		case <-g.refresh:
			if isReady {
				g.rebuild(ctx)
			}
		}
	}
}

// changed asks for a new ruleset; many in a row cost one.
func (g *Gateway) changed() {
	select {
	case g.refresh <- struct{}{}:
	default: // one is waiting already
	}
}

// watch lists the server when it is there, and again whenever it says that a
// list changed. first is called once, after the first answer or failure.
func (s *server) watch(ctx context.Context, log *slog.Logger, first func(answered bool), changed func()) {
	for {
		listed, info, at, err := s.fetchLists(ctx)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		if err != nil && s.listed != nil && !errors.Is(err, upstream.ErrFaulty) {
			if s.vain != s.at {
				log.Warn("a server said that its lists changed and cannot be listed: its tools are closed until it can", "server", s.name, "error", err.Error())
			}
			s.vain = s.at // what it listed last stays in sight
		} else {
			s.info, s.err, s.known, s.listed, s.at = info, err, true, listed, at
		}
		s.mu.Unlock()
		if first != nil {
			first(err == nil)
			first = nil
		}
		changed()
		select {
		case <-ctx.Done():
			return
		case <-s.again:
		}
	}
}

// rebuild joins what the servers list with the policy.
func (g *Gateway) rebuild(ctx context.Context) {
	defs := slices.Clone(g.tools)
	prompts, resources := map[string]route{}, map[string]string{}
	var templates []route
	shared := map[string][]route{}
	at := map[string]uint64{}
	for _, name := range g.order {
		s := g.servers[name]
		s.mu.Lock()
		listed, err, known := s.listed, s.err, s.known
		at[name] = s.at
		s.mu.Unlock()
		absent := ""
		switch {
		case !known:
			absent = "it has not answered yet"
		case err != nil:
			absent = err.Error()
		}
		if absent != g.absent[name] && absent != "" {
			g.log.Warn("a server cannot be listed: its tools are closed", "server", name, "error", absent)
		}
		if g.absent[name] = absent; absent != "" {
			continue
		}
		for _, raw := range listed["tools/list"] {
			defs = append(defs, gate.Definition{Server: name, Raw: raw})
		}
		for _, raw := range listed["prompts/list"] {
			if n := textMember(raw, "name"); n != "" {
				shared[n] = append(shared[n], route{name, n})
			}
		}
		for _, raw := range listed["resources/list"] {
			if u := textMember(raw, "uri"); u != "" {
				resources[u] = name
			}
		}
		for _, raw := range listed["resources/templates/list"] {
			if u := textMember(raw, "uriTemplate"); u != "" {
				templates = append(templates, route{name, u})
			}
		}
	}
	if g.inside != nil {
		for _, raw := range g.inside.Definitions() {
			defs = append(defs, gate.Definition{Server: policy.OwnServer, Raw: raw})
		}
	}
	for n, rs := range shared {
		for _, r := range rs {
			if len(rs) == 1 {
				prompts[n] = r
			} else {
				prompts[r.server+"__"+n] = r
			}
		}
	}
	if ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	old, said := g.ruleset, g.findings
	g.mu.Unlock()
	v := &ruleset{policy: g.policy, prompts: prompts, resources: resources, templates: templates, at: at}
	raw := encodeDefinitions(defs)
	findings := said
	if old != nil && old.catalogueBlob == audit.Sum(raw).String() {
		v.catalogue, v.policyBlob, v.catalogueBlob = old.catalogue, old.policyBlob, old.catalogueBlob
	} else {
		v.catalogue, findings = gate.NewCatalogue(defs, g.policy)
		policy, err := g.store.PutBlob(ctx, g.policy.Source)
		var cat audit.Digest
		if err == nil {
			cat, err = g.store.PutBlob(ctx, raw)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			g.log.Error("the catalogue could not be written: every tool stays closed", "error", err)
			return
		}
		v.policyBlob, v.catalogueBlob = policy.String(), cat.String()
	}
	g.mu.Lock()
	g.ruleset, g.findings = v, findings
	close(g.replaced)
	g.replaced = make(chan struct{})
	g.mu.Unlock()
	for _, f := range findings {
		if slices.Contains(said, f) {
			continue
		}
		g.log.Warn("catalogue", "server", f.Server, "tool", f.Tool, "finding", f.Message, "try", f.Hint)
	}
	if old != nil && (old.catalogueBlob != v.catalogueBlob || old.policyBlob != v.policyBlob) {
		g.broadcast("notifications/tools/list_changed", nil, func(f downstream.Filter) bool { return f.All || f.Tools })
	}
}

// fetchLists asks a server for the lists its capabilities promise. at is how
// often they had changed before.
func (s *server) fetchLists(ctx context.Context) (listed map[string][][]byte, info upstream.Info, at uint64, err error) {
	info, err = s.conn.Info(ctx)
	at = s.conn.Changes()
	if err != nil {
		return nil, info, at, err
	}
	out := map[string][][]byte{}
	for _, l := range lists {
		if !hasCapability(info.Capabilities, l.capability) {
			continue
		}
		got, err := s.conn.List(ctx, l.method, l.key)
		if err != nil {
			if l.method == "tools/list" {
				return nil, info, at, err
			}
			continue // an optional list the server does not have after all
		}
		out[l.method] = got.Items
	}
	return out, info, at, nil
}

// lists are the list methods, the member that holds the items, and the
// capability that promises them.
var lists = []struct{ method, key, capability string }{
	{"tools/list", "tools", "tools"},
	{"resources/list", "resources", "resources"},
	{"resources/templates/list", "resourceTemplates", "resources"},
	{"prompts/list", "prompts", "prompts"},
}

// current waits for the first ruleset and returns the newest; nil when there is
// none.
func (g *Gateway) current(ctx context.Context) *ruleset {
	select {
	case <-g.ready:
	case <-ctx.Done():
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ruleset
}

// Ready waits until every server has answered or failed once, but no longer
// than readyGrace after the first that answered.
func (g *Gateway) Ready(ctx context.Context) error {
	if g.current(ctx) == nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("the catalogue could not be written")
	}
	return nil
}

// Settled waits until every server has answered or failed once, however long
// that takes.
func (g *Gateway) Settled(ctx context.Context) error {
	select {
	case <-g.settled:
		return g.Ready(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Catalogue returns the catalogue and what there is to say of it, after Ready or
// Settled.
func (g *Gateway) Catalogue() (*gate.Catalogue, []gate.Finding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ruleset == nil {
		return nil, nil
	}
	return g.ruleset.catalogue, slices.Clone(g.findings)
}

// Failed returns, after Settled, the servers that could not be reached, with the reason.
func (g *Gateway) Failed() map[string]error {
	out := map[string]error{}
	for name, s := range g.servers {
		s.mu.Lock()
		if s.err != nil {
			out[name] = s.err
		}
		s.mu.Unlock()
	}
	return out
}

func (g *Gateway) listChanged(s *server, kind string) {
	s.listAgain()
	switch kind {
	case "prompts":
		g.broadcast("notifications/prompts/list_changed", nil, func(f downstream.Filter) bool { return f.All || f.Prompts })
	case "resources":
		g.broadcast("notifications/resources/list_changed", nil, func(f downstream.Filter) bool { return f.All || f.Resources })
	}
}

// listAgain asks for the server's lists anew.
func (s *server) listAgain() {
	select {
	case s.again <- struct{}{}:
	default: // one is waiting already
	}
}

func (g *Gateway) after(d time.Duration, f func()) { time.AfterFunc(d, f) }

func (g *Gateway) legacyServer(ctx context.Context, name string) bool {
	s := g.servers[name]
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info.Era == upstream.Legacy
}

func hasCapability(capabilities []byte, name string) bool {
	return strictjson.KindOf(strictjson.Get(capabilities, name)) == strictjson.Object
}

func textMember(raw []byte, name string) string {
	s, _ := strictjson.Text(strictjson.Get(raw, name))
	return s
}
