// Package upstream is one connection to one MCP server: a child process over
// stdio, or Streamable HTTP, on the legacy wire (up to 2025-11-25) or on
// 2026-07-28.
//
// It trusts the operator's Config and nothing the server says. Every line and
// body is bounded, every message is strict JSON, ids are ours and random, and
// what does not fit is dropped and counted, never repaired. Params and results
// are byte slices that are never decoded and encoded again.
//
// A judged request (tools/call, resources/read, resources/subscribe,
// prompts/get, completion/complete) leaves only through Server.Call, which
// refuses without an allowing decision, and only while the server's lists are
// those the decision rests on. Everything else leaves through
// Server.Do and Server.List, which know a fixed list of harmless methods.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// Era is the wire a server speaks.
type Era string

// The eras. Auto asks with server/discover and falls back to initialize when
// the server refuses, does not answer in time, or dies of the question.
const (
	Auto   Era = "auto"
	Legacy Era = "legacy" // initialize, versions up to 2025-11-25
	Modern Era = "modern" // 2026-07-28: no session, everything in each request
)

// Limits bounds what a server may take and cost. A zero field is its default.
type Limits struct {
	Line       int           // bytes of one line, body or event; 16 MiB
	Call       time.Duration // one request, not counting the time an OnRequest takes; 60 s
	Handshake  time.Duration // from start until ready; 30 s
	Probe      time.Duration // how long auto waits for server/discover; 5 s
	LineTime   time.Duration // from a line's first byte to its newline; 30 s
	Write      time.Duration // one write to a child's stdin; 10 s
	Grace      time.Duration // between EOF, SIGTERM and SIGKILL; 2 s
	RestartMin time.Duration // first wait before a restart; 1 s
	RestartMax time.Duration // longest wait; 60 s
	Refresh    time.Duration // shortest time between two ListChanged of one kind; 5 s
	Relist     time.Duration // how long a call waits for lists that changed; 10 s
}

// WithDefaults returns the limits with no field left zero.
func (l Limits) WithDefaults() Limits {
	for _, d := range []struct {
		at  *time.Duration
		def time.Duration
	}{
		{&l.Call, 60 * time.Second}, {&l.Handshake, 30 * time.Second}, {&l.Probe, 5 * time.Second},
		{&l.LineTime, 30 * time.Second}, {&l.Write, 10 * time.Second}, {&l.Grace, 2 * time.Second},
		{&l.RestartMin, time.Second}, {&l.RestartMax, time.Minute}, {&l.Refresh, 5 * time.Second},
		{&l.Relist, 10 * time.Second},
	} {
		if *d.at <= 0 {
			*d.at = d.def
		}
	}
	if l.Line <= 0 {
		l.Line = strictjson.Result.Bytes
	}
	return l
}

// Config is what the operator's file says of one server. Exactly one of
// Command and URL is set.
type Config struct {
	Name string

	// Command is argv; it is never given to a shell.
	Command []string
	Dir     string
	// Env is the child's environment. Beside it the child gets PATH and HOME of
	// this process, unless Env sets them, and nothing else (attack U03).
	Env map[string]string

	URL string
	// Header is sent with every HTTP request. With Credential it is the only source
	// of credentials: nothing of a downstream request is ever copied (attack S10).
	Header map[string]string
	// Credential, unless nil or Header has an Authorization, gives that of each request.
	Credential Credential

	Era    Era // "" is Auto
	Limits Limits

	// ClientCapabilities is the JSON object declared to the server, nil for
	// {}. A server that asks for what is not in it gets -32601.
	ClientCapabilities []byte
	// Version of the clientInfo {"name":"writ","version":…}.
	Version string
}

// EventKind is what an Event reports.
type EventKind string

// The oddities worth a record.
const (
	SkippedLine    EventKind = "skipped_line"    // U04: not a JSON-RPC message
	BadMessage     EventKind = "bad_message"     // not strict JSON, or out of bounds
	LongLine       EventKind = "long_line"       // U07: a message over the limit, discarded
	StrayResponse  EventKind = "stray_response"  // P22: nobody waits for this id
	StrayProgress  EventKind = "stray_progress"  // progress of no open request
	UndeclaredAsk  EventKind = "undeclared_ask"  // T16: asks for what was not declared
	UnroutableAsk  EventKind = "unroutable_ask"  // a request of the server that belongs to no one open call
	DroppedNotice  EventKind = "dropped_notice"  // a bounded queue was full
	StrayNotice    EventKind = "stray_notice"    // N14: a notification that could be any session's
	UnknownType    EventKind = "unknown_type"    // N19: a result of a type nobody knows
	InvalidTool    EventKind = "invalid_tool"    // T10: a tool left out for its x-mcp-header
	Noise          EventKind = "noise"           // U04: over 1,000 skipped lines in a row
	SlowLine       EventKind = "slow_line"       // U06: a line that does not end
	WriteStalled   EventKind = "write_stalled"   // the child does not read
	ConnectFailed  EventKind = "connect_failed"  // start or handshake failed
	ConnectionLost EventKind = "connection_lost" // U08: the process ended, the session is gone
	Restarted      EventKind = "restarted"       // ready again after a loss
)

// Event is a count of one oddity since it was last reported. It never holds
// text a server chose.
type Event struct {
	Kind  EventKind
	Count int
}

// Callbacks are called one at a time, from a goroutine of the Server, and
// never after Close has returned. A nil function is skipped.
type Callbacks struct {
	// ListChanged says that a list ("tools", "prompts", "resources") may have
	// changed: at most once in Limits.Refresh for each kind (attack T14), and
	// once for each kind when the server is there again, or at last.
	ListChanged func(kind string)
	// Notify delivers a notification that came on no request's own stream, such
	// as notifications/message on stdio. owner is the only Request.Owner this
	// server was ever sent a judged request of. It is "" where there are several
	// or none; then only notifications/resources/updated comes, which says whom
	// it is for.
	Notify func(method string, params []byte, owner string)
	// Event reports oddities for the audit log, at most one of a kind a second.
	Event func(Event)
}

// Info is what the server said of itself when it was last connected.
type Info struct {
	Era          Era
	Capabilities []byte // raw object, {} when absent
}

// End says how a request ended.
type End uint8

// The ends. The zero End is Unknown: the safe assumption about an act.
const (
	Unknown  End = iota // sent, or partly sent, and no answer came
	Answered            // Result or Err is the server's answer
	NotSent             // certainly nothing reached the server
	TooLarge            // an answer came and was over the limit
)

func (e End) String() string {
	return [...]string{"unknown", "answered", "not_sent", "too_large"}[e&3]
}

// Request is one request to the server.
type Request struct {
	// Decision must allow a judged method, and its Call.Method must be the one
	// asked for. Do ignores it.
	Decision *gate.Decision

	Method string
	// Params is the params object without _meta, the zero Value for none. It is
	// sent byte for byte, with _meta put in front of its members; only line breaks
	// between its tokens become spaces on stdio, where they would end the line.
	Params strictjson.Value
	// Meta are the members to put into _meta. progressToken and the
	// io.modelcontextprotocol keys are Writ's own and are left out here.
	Meta []strictjson.Member
	// ProgressToken is the client's token, raw, nil for none: the server is
	// given another, and progress comes back with this one.
	ProgressToken []byte
	// ClientCapabilities is, on the 2026-07-28 wire, the JSON object declared
	// with this request instead of Config's: what the client behind it can do.
	// nil leaves Config's.
	ClientCapabilities []byte
	// ToolSchema is the tool's inputSchema, for Mcp-Param-* headers.
	ToolSchema strictjson.Value
	// Listed is the Server.Changes that the lists had which the decision rests
	// on. A judged request leaves only while Changes is still that, and so does
	// what OnRequest answers; who judges the request anew stores the newer one.
	// nil and 0 are no lists: nothing is sent.
	Listed *atomic.Uint64
	// Owner names the client session the request belongs to. On stdio a
	// server's own request names no call: it is delivered only while all calls
	// that could take it have one owner.
	Owner string

	// OnNotify receives, in order and before Call returns, the notifications
	// that belong to this request.
	OnNotify func(method string, params []byte)
	// OnRequest answers a request of the server (elicitation/create,
	// sampling/createMessage, roots/list) made during this one. Its context
	// ends with the request. nil refuses with -32601.
	OnRequest func(ctx context.Context, method string, params []byte) ([]byte, *rpc.Error)
}

// Response is how a request ended. With Answered exactly one of Result and Err
// is set; otherwise Err says in plain words what happened, and is ours.
type Response struct {
	End    End
	Result strictjson.Value // the result member, byte for byte
	Err    *rpc.Error
	// Changed says that the request was held back because the server's lists
	// changed since Request.Listed. End is NotSent.
	Changed bool
}

// ErrFaulty marks an error of a server that breaks the bounds of a list
// (attacks T04, T13). Its list must not be used.
var ErrFaulty = errors.New("the server's list is faulty")

// ErrClosed is returned after Close.
var ErrClosed = errors.New("the connection is closed")

func notSent(format string, args ...any) Response {
	return Response{End: NotSent, Err: rpc.Errorf(rpc.CodeInternal, format, args...)}
}

func held() Response {
	r := notSent("the server said that its lists changed")
	r.Changed = true
	return r
}

func unknown(format string, args ...any) Response {
	return Response{End: Unknown, Err: rpc.Errorf(rpc.CodeInternal, format, args...)}
}

// Credential is what a person's login at a server gives its requests.
type Credential interface {
	// Authorization returns the header's value, "" for none. The text of an error is
	// for the operator, and has nothing of the server's in it.
	Authorization(context.Context) (string, error)
	// Refused says that the server did not take a value.
	Refused(value string)
}

// Validate reports why the configuration cannot work.
func (c *Config) Validate() error {
	if (len(c.Command) == 0) == (c.URL == "") {
		return errors.New("a server has either a command or a url")
	}
	switch c.Era {
	case "", Auto, Legacy, Modern:
	default:
		return fmt.Errorf("era is one of auto, legacy, modern")
	}
	if c.ClientCapabilities != nil {
		if strictjson.Check(c.ClientCapabilities, strictjson.Request) != nil ||
			strictjson.KindOf(c.ClientCapabilities) != strictjson.Object {
			return errors.New("client capabilities must be a JSON object")
		}
	}
	if c.URL != "" {
		return c.validateHTTP()
	}
	return nil
}
