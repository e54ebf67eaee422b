package gateway

import (
	"errors"
	"strconv"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/metrics"
	"github.com/writ-project/writ/internal/otlp"
	"github.com/writ-project/writ/internal/strictjson"
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

// What a collector is told of calls. A text in it is a word of the program, or what the
// call counts under (countedAs); the public id of the decision's record is there too, and
// the ids of the client's own trace: nothing else that a client or a server chose, and not
// whose call it was.

// traceParent is the place in a trace that a client says its request is made at. Its
// tracestate and baggage are free text that nobody judges, and are not read.
func traceParent(params strictjson.Value) (text string, at otlp.Context, ok bool) {
	text, ok = params.Get("_meta").Get("traceparent").Text()
	if ok {
		at, ok = otlp.Parse(text)
	}
	return text, at, ok
}

// traced gives the call its span, below the client's own where it has one.
func (c *judgedCall) traced() {
	if !c.g.events.otlp.Traces() {
		return
	}
	_, parent, ok := traceParent(c.r.Params)
	if !ok {
		parent = otlp.NewTrace()
	}
	c.parent, c.span = parent, parent.Child()
}

// fault says that the call ends with an error, in one word.
func (c *judgedCall) fault(word string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faulty = word
}

// faultOf is how a response is an error, "" where it is none.
func faultOf(status gate.Status, resp *upstream.Response) string {
	switch {
	case status == gate.OK, asksInput(resp.Result):
		return ""
	case resp.End == upstream.NotSent:
		return "not_sent"
	case status == gate.Errored && resp.Err != nil:
		return faultOfCode(resp.Err.Code)
	case status == gate.Errored:
		return "tool_error"
	}
	return string(status)
}

// faultOfCode is a code that JSON-RPC reserves; a server may choose any other.
func faultOfCode(code int) string {
	if code < -32768 || code > -32000 {
		return "_OTHER"
	}
	return strconv.Itoa(code)
}

// served counts how long the call took as a whole, and tells its span.
func (c *judgedCall) served(began time.Time, reply *downstream.Reply) {
	c.took(c.g.events.counts.served, began)
	if !c.g.events.otlp.Traces() {
		return
	}
	c.mu.Lock()
	fault := c.faulty
	c.mu.Unlock()
	if fault == "" && reply.Err != nil {
		fault = faultOfCode(reply.Err.Code)
	}
	c.tellSpan(c.span, c.parent, otlp.Server, began, append(c.decisionPairs(c.newest()), "error.type", fault))
}

// called counts how long a server took of it, and tells the span of that.
func (c *judgedCall) called(began time.Time, resp *upstream.Response) {
	c.took(c.g.events.counts.upstream, began)
	if c.g.events.otlp.Traces() {
		c.tellSpan(c.span.Child(), c.span, otlp.Client, began, []string{"error.type", faultOf(endOf(resp), resp)})
	}
}

func (c *judgedCall) tellSpan(at, parent otlp.Context, kind otlp.Kind, began time.Time, pairs []string) {
	name, what := c.what()
	c.g.events.otlp.Span(otlp.NewSpan(at, parent, kind, name, began, otlp.Attributes(append(what, pairs...)...)))
}

// what is which request it is, and of what tool and server.
func (c *judgedCall) what() (name string, pairs []string) {
	method := methodName(c.call.Method)
	server, tool := c.countedAs()
	operation := ""
	if name = method; c.call.Method == policy.CallTool {
		name, operation = method+" "+tool, "execute_tool"
	}
	return name, []string{"mcp.method.name", method, "gen_ai.tool.name", tool, "gen_ai.operation.name", operation, "writ.server", server}
}

// decided counts a decision, and tells it as an event.
func (c *judgedCall) decided(d *decision) {
	c.g.events.counts.decided(&d.Outcome)
	if !c.g.events.otlp.Logs() {
		return
	}
	body, severity := string(d.Outcome.Status), otlp.Info
	if d.Outcome.Status == writ.Rejected {
		body, severity = body+": "+string(d.Outcome.Rejection.Reason), otlp.Warn
	}
	_, pairs := c.what()
	c.g.events.otlp.Event(otlp.NewEvent(c.span, "writ.decision", severity, d.at, body, otlp.Attributes(append(pairs, c.decisionPairs(d)...)...)))
}

// tellUnknown tells as an event that no record says whether an act happened.
func (c *judgedCall) tellUnknown(d *decision) {
	if !c.g.events.otlp.Logs() {
		return
	}
	_, pairs := c.what()
	pairs = append(append(pairs, c.decisionPairs(d)...), "error.type", string(gate.Unknown))
	c.g.events.otlp.Event(otlp.NewEvent(c.span, "writ.outcome", otlp.Warn, c.g.sessions.now(), string(gate.Unknown), otlp.Attributes(pairs...)))
}

// decisionPairs are what is told of a decision: none is one that was not made.
func (c *judgedCall) decisionPairs(d *decision) []string {
	if d.record == nil {
		return nil
	}
	code, reason, shadow := "", "", ""
	if r := d.Outcome.Rejection; r != nil {
		code, reason = string(r.Code), string(r.Reason)
	}
	if d.Shadow {
		shadow = "true"
	}
	return []string{"writ.decision", c.name(d), "writ.status", string(d.Outcome.Status), "writ.code", code, "writ.reason", reason, "writ.shadow", shadow}
}
