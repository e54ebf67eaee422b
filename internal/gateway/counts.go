package gateway

import (
	"errors"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/metrics"
	"github.com/writ-project/writ/policy"
)

// counts are what a gateway counts of itself. A label is a word of the program, a server of
// the configuration or a tool that a contract of the operator's names: never what a client
// sent, and never whose call it was.
type counts struct {
	decisions, calls, served, upstream, answers, appends, peers *metrics.Family
}

func newCounts() *counts {
	return &counts{
		decisions: metrics.Counter("writ_decisions_total", "Decisions, by outcome; in shadow mode by what it would have been.", "status", "code", "reason"),
		calls:     metrics.Counter("writ_calls_total", "Calls that were let through, by how they ended.", "server", "outcome"),
		served:    metrics.Histogram("mcp_server_operation_duration_seconds", "From a judged request to its answer, with what persons and servers took of it.", "server", "mcp_method_name", "gen_ai_tool_name"),
		upstream:  metrics.Histogram("mcp_client_operation_duration_seconds", "What the server took of a call that was let through.", "server", "mcp_method_name", "gen_ai_tool_name"),
		answers:   metrics.Counter("writ_approvals_answered_total", "Answers that persons gave, by what they said.", "answer"),
		appends:   metrics.Counter("writ_store_appends_total", "Appends of sessions to the log: ok, conflict where another process was first, failed.", "result"),
		peers:     metrics.Counter("writ_peer_events_total", "What clients and servers did that came to no call: refused, dropped or lost.", "source", "event"),
	}
}

func (cs *counts) decided(o *writ.Outcome) {
	code, reason := "", ""
	if o.Rejection != nil {
		code, reason = string(o.Rejection.Code), string(o.Rejection.Reason)
	}
	cs.decisions.Add(1, string(o.Status), code, reason)
}

func (cs *counts) answered(a approval.Answer) {
	said := "no"
	if a.Yes {
		said = "yes"
	}
	cs.answers.Add(1, said)
}

func (cs *counts) appended(err error) {
	result := "ok"
	switch {
	case errors.Is(err, audit.ErrConflict):
		result = "conflict"
	case err != nil:
		result = "failed"
	}
	cs.appends.Add(1, result)
}

func (c *judgedCall) took(f *metrics.Family, began time.Time) {
	server, tool := c.countedAs()
	f.Observe(time.Since(began), server, methodName(c.call.Method), tool)
}

// ended counts how a call ended that was let through.
func (c *judgedCall) ended(status gate.Status, resp *upstream.Response) {
	server, _ := c.countedAs()
	c.g.events.counts.calls.Add(1, server, string(status))
	c.fault(faultOf(status, resp))
}

// countedAs is what the call counts under. The tool is "" for a method that has none.
func (c *judgedCall) countedAs() (server, tool string) {
	t := c.newest().Tool
	switch {
	case t != nil:
		server = t.Server
	case c.rs.fleet.servers[c.call.Server] != nil:
		server = c.call.Server
	default:
		server = metrics.Other
	}
	switch {
	case c.call.Method != policy.CallTool:
	case t != nil && t.Contract != nil:
		tool = t.Name
	default:
		tool = metrics.Other
	}
	return server, tool
}

// toolOf names a decision's tool for the gateway's own log, as the catalogue does: a name
// that a client made up is in none.
func (c *judgedCall) toolOf(d *decision) (server, tool string) {
	if d.Tool != nil {
		return d.Tool.Server, d.Tool.Name
	}
	return c.countedAs()
}

// Metrics shows what the gateway counted and what it holds now.
func (g *Gateway) Metrics(p *metrics.Page) {
	cs := g.events.counts
	waiting := metrics.Gauge("writ_approvals_waiting", "Questions that wait for a person.")
	if g.approvals.queue != nil {
		open, _ := g.approvals.queue.Open()
		waiting.Add(uint64(len(open)))
	}
	up := metrics.Gauge("writ_upstream_up", "Whether a server is there: 1, or 0.", "server")
	running := metrics.Gauge("writ_upstream_calls_running", "Calls that run at a server.", "server")
	failed := g.Failed()
	g.rules.serving().each(func(s *server) {
		s.mu.Lock()
		defer s.mu.Unlock()
		there := uint64(0)
		if s.known && failed[s.name] == nil {
			there = 1
		}
		up.Add(there, s.name)
		running.Add(uint64(s.calls), s.name)
	})
	loaded := metrics.Gauge("writ_sessions_loaded", "Sessions that are held in memory: served since the start, and not closed.")
	held := metrics.Gauge("writ_evidence_bytes", "Memory that the evidence of all sessions takes, as estimated.")
	limit := metrics.Gauge("writ_evidence_limit_bytes", "What it may take: beyond that, sessions at rest are dropped from memory.")
	ss := g.sessions
	ss.mu.Lock()
	loaded.Add(uint64(len(ss.loaded)))
	held.Add(uint64(max(ss.held, 0)))
	limit.Add(uint64(ss.maxHeld))
	ss.mu.Unlock()
	p.Show(cs.decisions, cs.calls, cs.served, cs.upstream, waiting, cs.answers, loaded, held, limit, cs.appends, up, running, cs.peers)
}
