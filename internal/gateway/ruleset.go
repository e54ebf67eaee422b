package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

// ruleset is the policy with the catalogue it is joined to. It is immutable.
type ruleset struct {
	fleet         *fleet
	policy        *policy.Policy
	catalogue     *gate.Catalogue
	policyBlob    string
	catalogueBlob string
	definitions   []gate.Definition // the catalogue is made of
	rulesBlob     string            // of what its calls are judged by
	own           *statedOwn        // what they are held against
	ownBlob       string

	// Of what the servers listed when the catalogue was made:
	prompts   map[string]route  // by public name
	resources map[string]string // the server of a URI
	templates []route
	at        map[string]uint64 // of each server that is listed: server.at
}

type route struct{ server, name string }

// rules keep the ruleset in force: what the servers list now, joined with the
// policy.
type rules struct {
	tools   []gate.Definition // of the program the gateway is part of
	inside  Inside
	approve func(tool string) string
	store   Store
	events  *events
	changed func() // the tools are others

	absent  map[string]string // the refresher's: why a server was not there, as last told
	refresh chan struct{}     // asks the refresher for a new ruleset; holds one
	ready   chan struct{}     // closed with the first ruleset
	settled chan struct{}     // closed with the first ruleset that no server is awaited for

	watching sync.WaitGroup // of the servers there are and were

	mu       sync.Mutex
	policy   *policy.Policy // of the next ruleset
	fleet    *fleet         // and its servers
	inForce  *ruleset
	replaced chan struct{} // closed and replaced with each ruleset
	findings []gate.Finding
}

func newRules(o Options, es *events, changed func()) *rules {
	return &rules{policy: o.Policy, tools: slices.Clone(o.Tools), inside: o.Inside, approve: o.Approve, store: o.Store, events: es, changed: changed,
		absent: map[string]string{}, refresh: make(chan struct{}, 1), ready: make(chan struct{}), settled: make(chan struct{}), replaced: make(chan struct{})}
}

// readyGrace is how long the first ruleset, once there is one server to show,
// waits for others that have neither answered nor failed. A silent one does not
// take the others' tools with it: clients are told when its own arrive.
const readyGrace = 3 * time.Second

// refresher keeps the ruleset: once when the servers have answered, and again
// whenever one of them has something new.
func (ru *rules) refresher(ctx context.Context, begin *fleet) {
	first := make(chan bool, len(begin.order)) // whether the server answered
	begin.each(func(s *server) { ru.watch(s, func(answered bool) { first <- answered }) })
	var grace <-chan time.Time
	waiting, isReady := len(begin.order), false
	for {
		if waiting == 0 && ctx.Err() == nil {
			waiting = -1
			ru.rebuild(ctx)
			close(ru.settled)
			if !isReady {
				close(ru.ready)
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
				ru.rebuild(ctx)
				close(ru.ready)
				isReady = true
			}
		case <-ru.refresh:
			if isReady {
				ru.rebuild(ctx)
			}
		}
	}
}

// watch lists a server that was started whenever its lists change, until it ends.
func (ru *rules) watch(s *server, first func(answered bool)) {
	ru.watching.Go(func() { s.watch(s.running, ru.events.log, first, func() { rpc.Wake(ru.refresh) }) })
}

func (ru *rules) serving() *fleet {
	ru.mu.Lock()
	defer ru.mu.Unlock()
	return ru.fleet
}

// rebuild puts the ruleset of what the servers list now in force.
func (ru *rules) rebuild(ctx context.Context) {
	next := ru.listedNow()
	old, said := ru.newest(), ru.findings
	if ctx.Err() != nil {
		return
	}
	findings, err := ru.join(ctx, next, old)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		ru.events.log.Error("the catalogue could not be written: every tool stays closed", "error", err)
		return
	}
	ru.mu.Lock()
	ru.inForce, ru.findings = next, findings
	close(ru.replaced)
	ru.replaced = make(chan struct{})
	ru.mu.Unlock()
	for _, f := range findings {
		if !slices.Contains(said, f) {
			ru.events.log.Warn("catalogue", "server", f.Server, "tool", f.Tool, "finding", f.Message, "try", f.Hint)
		}
	}
	if old != nil && (old.catalogueBlob != next.catalogueBlob || old.policyBlob != next.policyBlob) {
		ru.changed()
	}
}

// replace has the next ruleset made with another policy and other servers, and waits
// until it is in force; where it does not come to that, the old ones stay. What is
// judged by the old one by then is judged by it to its end.
func (ru *rules) replace(ctx context.Context, p *policy.Policy, f *fleet) error {
	ru.mu.Lock()
	oldPolicy, oldFleet := ru.policy, ru.fleet
	ru.policy, ru.fleet = p, f
	ru.mu.Unlock()
	rpc.Wake(ru.refresh)
	for {
		ru.mu.Lock()
		inForce, replaced := ru.inForce, ru.replaced
		done := inForce != nil && inForce.policy == p && inForce.fleet == f
		if !done && ctx.Err() != nil {
			ru.policy, ru.fleet = oldPolicy, oldFleet
		}
		ru.mu.Unlock()
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			rpc.Wake(ru.refresh)
			return errors.New("it could not be put in force: the catalogue is not there yet, or cannot be written")
		}
		select {
		case <-replaced:
		case <-ctx.Done():
		}
	}
}

// listedNow is where requests go by what the servers list now, and what there is
// to make a catalogue of.
func (ru *rules) listedNow() (next *ruleset) {
	ru.mu.Lock()
	rules, f := ru.policy, ru.fleet
	ru.mu.Unlock()
	next = &ruleset{fleet: f, policy: rules, prompts: map[string]route{}, resources: map[string]string{}, at: map[string]uint64{}, definitions: slices.Clone(ru.tools)}
	byName := map[string][]string{} // the servers of a prompt
	for _, name := range f.order {
		listed, at := ru.present(f.servers[name])
		next.at[name] = at
		for _, raw := range listed["tools/list"] {
			next.definitions = append(next.definitions, gate.Definition{Server: name, Raw: raw})
		}
		for _, prompt := range namesOf(listed["prompts/list"], "name") {
			byName[prompt] = append(byName[prompt], name)
		}
		for _, uri := range namesOf(listed["resources/list"], "uri") {
			next.resources[uri] = name
		}
		for _, uri := range namesOf(listed["resources/templates/list"], "uriTemplate") {
			next.templates = append(next.templates, route{name, uri})
		}
	}
	if ru.inside != nil {
		for _, raw := range ru.inside.Definitions() {
			next.definitions = append(next.definitions, gate.Definition{Server: policy.OwnServer, Raw: raw})
		}
	}
	for prompt, servers := range byName {
		if len(servers) == 1 {
			next.prompts[prompt] = route{servers[0], prompt}
			continue
		}
		for _, s := range servers {
			next.prompts[s+"__"+prompt] = route{s, prompt}
		}
	}
	return next
}

func namesOf(items [][]byte, member string) (names []string) {
	for _, raw := range items {
		if n := textMember(strictjson.Of(raw), member); n != "" {
			names = append(names, n)
		}
	}
	return names
}

// present is what a server lists, nil where it is not there.
func (ru *rules) present(s *server) (listed map[string][][]byte, at uint64) {
	s.mu.Lock()
	listed, at = s.listed, s.at
	err, known := s.err, s.known
	s.mu.Unlock()
	absent := ""
	switch {
	case !known:
		absent = "it has not answered yet"
	case err != nil:
		absent = err.Error()
	}
	if absent != ru.absent[s.name] && absent != "" {
		ru.events.log.Warn("a server cannot be listed: its tools are closed", "server", s.name, "error", absent)
	}
	if ru.absent[s.name] = absent; absent != "" {
		return nil, at
	}
	return listed, at
}

// join makes the catalogue and puts it on record with its policy; the old one
// stays where nothing changed.
func (ru *rules) join(ctx context.Context, next, old *ruleset) ([]gate.Finding, error) {
	if old != nil && old.fleet == next.fleet {
		next.own, next.ownBlob = old.own, old.ownBlob
	} else if err := next.stateOwn(ctx, ru.store); err != nil {
		return nil, err
	}
	raw := encodeDefinitions(next.definitions)
	if old != nil && old.policy == next.policy && old.catalogueBlob == audit.Sum(raw).String() {
		next.catalogue, next.policyBlob, next.catalogueBlob, next.rulesBlob = old.catalogue, old.policyBlob, old.catalogueBlob, old.rulesBlob
		return ru.findings, nil
	}
	var findings []gate.Finding
	var known *gate.Catalogue
	if old != nil {
		known = old.catalogue
	}
	next.catalogue, findings = known.Renewed(next.definitions, next.policy)
	for i := range findings {
		f := &findings[i]
		if before, bare, ok := strings.Cut(f.Hint, "writ tools approve "); ok && ru.approve != nil {
			if f.Hint = ru.approve(bare); f.Hint != "" {
				f.Hint = before + f.Hint
			}
		}
	}
	source, err := ru.store.PutBlob(ctx, next.policy.Source)
	if err != nil {
		return nil, err
	}
	catalogue, err := ru.store.PutBlob(ctx, raw)
	if err != nil {
		return nil, err
	}
	next.policyBlob, next.catalogueBlob = source.String(), catalogue.String()
	return findings, next.stateRules(ctx, ru.store)
}

func (ru *rules) newest() *ruleset {
	ru.mu.Lock()
	defer ru.mu.Unlock()
	return ru.inForce
}

// current waits for the first ruleset and returns the newest; nil when there is
// none.
func (ru *rules) current(ctx context.Context) *ruleset {
	select {
	case <-ru.ready:
		return ru.newest()
	case <-ctx.Done():
		return nil
	}
}

// Ready waits until every server has answered or failed once, but no longer
// than readyGrace after the first that answered.
func (ru *rules) Ready(ctx context.Context) error {
	if ru.current(ctx) == nil {
		return cmp.Or(ctx.Err(), errors.New("the catalogue could not be written"))
	}
	return nil
}

// Settled waits until every server has answered or failed once, however long
// that takes.
func (ru *rules) Settled(ctx context.Context) error {
	select {
	case <-ru.settled:
		return ru.Ready(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Catalogue returns the catalogue and what there is to say of it, after Ready or
// Settled.
func (ru *rules) Catalogue() (*gate.Catalogue, []gate.Finding) {
	ru.mu.Lock()
	defer ru.mu.Unlock()
	if ru.inForce == nil {
		return nil, nil
	}
	return ru.inForce.catalogue, slices.Clone(ru.findings)
}

// Failed returns, after Settled, the servers that could not be reached, with the reason.
func (ru *rules) Failed() map[string]error {
	out := map[string]error{}
	ru.serving().each(func(s *server) {
		s.mu.Lock()
		err := s.err
		s.mu.Unlock()
		if err = cmp.Or(err, s.conn.Down()); err != nil {
			out[s.name] = err
		}
	})
	return out
}

// A decision rests on the definitions a server listed. From the reading of its
// list_changed on they may be others, so the server's tools are closed until it
// has listed them again (R26): a call waits for that, because most changes come
// in bursts and change nothing that is called. Package upstream holds back what
// was judged before; a result that comes after vouches only if the definition
// stayed the same.

// listed returns the newest ruleset, and whether it holds all that the server said
// of its lists. It waits for the server to list them anew where that is needed.
func (ru *rules) listed(ctx context.Context, name string) (rs *ruleset, ok bool) {
	var late <-chan time.Time
	for {
		ru.mu.Lock()
		rs, replaced := ru.inForce, ru.replaced
		ru.mu.Unlock()
		s := rs.fleet.servers[name]
		if s == nil || rs.at[name] == s.conn.Changes() {
			return rs, true // what is none never changes: Writ's own
		}
		rpc.Wake(s.again)
		if s.waitedInVain(rs.at[name]) {
			return rs, false
		}
		if late == nil {
			late = time.After(s.patience)
		}
		select {
		case <-replaced:
		case <-late:
			s.mu.Lock()
			s.vain = rs.at[name]
			s.mu.Unlock()
			ru.events.log.Warn("a server said that its lists changed and does not list them: its tools are closed until it does", "server", name)
			return rs, false
		case <-ctx.Done():
			return rs, false
		}
	}
}

// same reports whether the ruleset has the definition a decision was made on.
func (rs *ruleset) same(d *decision) bool {
	name := d.Call.Tool
	if d.Call.Method != policy.CallTool {
		name = string(d.Call.Method)
	}
	t := rs.catalogue.Lookup(d.Call.Server, name)
	if t == nil || d.Tool == nil {
		return t == d.Tool
	}
	return t.Pin == d.Tool.Pin && t.State == d.Tool.State
}

// server is the one that the call was judged for, nil where it is none.
func (c *judgedCall) server(d *decision) *server { return c.rs.fleet.servers[d.Call.Server] }

// stillListed waits until no change of the server's lists is pending, and
// reports whether the call's definition and server are those it was judged by. The call
// then rests on the lists as they are, which rs holds.
func (c *judgedCall) stillListed(ctx context.Context, d *decision) (rs *ruleset, ok bool) {
	rs, ok = c.g.rules.listed(ctx, d.Call.Server)
	if d.Shadow { // every call passes
		if s := c.server(d); s != nil {
			c.lists.Store(s.conn.Changes())
		}
		return rs, true
	}
	if ok = ok && rs.same(d) && rs.fleet.servers[d.Call.Server] == c.server(d); ok {
		c.lists.Store(rs.at[d.Call.Server])
	}
	return rs, ok
}

// unmoved is stillListed for a call that was answered: it waits only if its
// server's lists changed meanwhile.
func (c *judgedCall) unmoved(d *decision) bool {
	s := c.server(d)
	if _, isList := listOf(string(d.Call.Method)); s == nil || isList || s.conn.Changes() == c.lists.Load() {
		return true
	}
	_, ok := c.stillListed(context.Background(), d)
	return ok
}

// resourceServer is the server a URI is asked for: the one that listed it, else
// the one whose template it fits, else the only one that has any.
func (rs *ruleset) resourceServer(uri string) string {
	if name := rs.resources[uri]; name != "" {
		return name
	}
	// Which server is asked is no question of trust: the gate judges the URI
	// against that server's own templates.
	best, longest := "", 0
	for _, t := range rs.templates {
		prefix, _, _ := strings.Cut(t.name, "{")
		if len(prefix) > longest && strings.HasPrefix(uri, prefix) {
			best, longest = t.server, len(prefix)
		}
	}
	if best != "" {
		return best
	}
	cannot := func(name string) bool { return !rs.fleet.servers[name].can("resources") }
	if can := slices.DeleteFunc(slices.Clone(rs.fleet.order), cannot); len(can) == 1 {
		return can[0]
	}
	return ""
}

// publicPrompt returns the prompt's definition under its public name.
func (rs *ruleset) publicPrompt(server string, raw []byte) []byte {
	name := textMember(strictjson.Of(raw), "name")
	if rs.prompts[name] == (route{server, name}) {
		return raw
	}
	return strictjson.Set(raw, "name", strictjson.Quote(server+"__"+name))
}
