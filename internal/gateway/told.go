package gateway

import (
	"strconv"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/otlp"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

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
