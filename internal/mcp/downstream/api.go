// Package downstream speaks MCP to clients, over stdio and over Streamable
// HTTP, on both wires (2024-11-05 to 2025-11-25, which open with initialize,
// and 2026-07-28, which carries everything in each request), and hands clean
// requests to one Router.
//
// It trusts nothing a client sends. What reaches the Router is strict JSON
// within bounds, of one era, of a known version, from an allowed host and
// origin, with headers that equal the body, and in a session that the Router
// itself found for that principal. Params and results are never decoded and
// encoded again: the bytes judged are the bytes that arrived, and the bytes
// answered are the bytes the Router gave.
//
// No text a client chose is repeated in an error or a log line, but for a
// request's own id in its own answer.
package downstream

import (
	"context"
	"errors"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// Era is the wire a request came by.
type Era uint8

// The two wires. The zero Era is the legacy one, which needs a session.
const (
	Legacy Era = iota // initialize, sessions, server-to-client requests
	Modern            // 2026-07-28: no session, version and capabilities in _meta
)

// The protocol versions, newest first.
const (
	Version20260728 = "2026-07-28"
	Version20251125 = "2025-11-25"
	Version20250618 = "2025-06-18"
	Version20250326 = "2025-03-26"
	Version20241105 = "2024-11-05"
)

// Versions lists the supported versions, newest first. Callers do not change it.
var Versions = []string{Version20260728, Version20251125, Version20250618, Version20250326, Version20241105}

// Carrier says how a session reached Writ. It stands in records.
type Carrier string

// The carriers of a session.
const (
	CarrierStdio    Carrier = "stdio"    // the process is the session
	CarrierHeader   Carrier = "header"   // legacy Mcp-Session-Id, or Writ-Session on the stateless wire
	CarrierEndpoint Carrier = "endpoint" // the path /mcp/s/<secret>
	CarrierProgram  Carrier = "program"  // the program that calls Gateway.Call
)

// Session is the Router's handle of one open session. Handles of one session
// are equal (==). The secret is not part of it.
type Session interface {
	// PublicID is the name that may stand in records and logs, "s_…".
	PublicID() string
}

// ErrNoSession says that there is no such session of that principal.
var ErrNoSession = errors.New("no such session")

// Request is one client request. Values and slices are the
// exact bytes that arrived and are not changed by anyone.
type Request struct {
	Method string
	Params strictjson.Value // an object, the zero Value when absent
	ID     []byte           // raw string or integer

	Era     Era
	Version string // one of Versions

	// Principal is who the transport authenticated; over loopback a constant.
	Principal string
	// Session is the session the request is carried by; nil for a modern
	// request that carries none, which has no evidence.
	Session Session

	ClientCapabilities strictjson.Value // an object, the zero Value when not stated
	ProgressToken      []byte           // raw string or integer, nil when none
	LogLevel           []byte           // raw string of the modern _meta logLevel, nil when none

	// ParamHeaders are the Mcp-Param-* headers of a modern HTTP request, by
	// lower-case name without the prefix, decoded; nil on stdio. The Router
	// knows the schema, so it calls CheckParamHeaders when HTTP is set.
	ParamHeaders map[string]string
	// HTTP reports that the request came over HTTP.
	HTTP bool

	// Peer reaches back to the client, within this request. It is never nil,
	// and useless once Handle has returned.
	Peer Peer
}

// Peer sends to the client in the stream of the request it belongs to.
type Peer interface {
	// Notify sends a notification, such as notifications/progress. It blocks
	// while the client is slow, until ctx ends; after the request is over, or
	// when the client is gone, it reports an error and does nothing.
	Notify(ctx context.Context, method string, params []byte) error
	// Request asks the client (elicitation/create, sampling/createMessage,
	// roots/list, ping) and waits for its answer, ctx, or the end of the
	// request. It is refused on the modern wire, on a version without such a
	// method, and when the client did not declare the capability.
	Request(ctx context.Context, method string, params []byte) ([]byte, *rpc.Error)
}

// Reply is the answer to a request: Err when set, else Result, a raw object.
type Reply struct {
	Result []byte
	Err    *rpc.Error
}

// Filter names the notifications a listener wants, or is granted.
type Filter struct {
	// All is a legacy stream: whatever its session subscribed to, list
	// changes and log messages.
	All bool
	// Tools, Prompts and Resources are the list_changed notifications.
	Tools, Prompts, Resources bool
	// URIs are the resources whose updates are wanted.
	URIs []string
}

// Listener is who listens to what.
type Listener struct {
	Principal string
	Session   Session // nil on the modern wire without a session
	Era       Era
	Version   string
	Filter    Filter
}

// Router is what answers. All methods are called concurrently.
type Router interface {
	// Describe answers initialize and server/discover: raw capabilities and
	// serverInfo objects, and the instructions ("" for none).
	Describe(ctx context.Context) (capabilities, serverInfo []byte, instructions string)

	// Handle answers every request but initialize, server/discover, ping and
	// subscriptions/listen. A method it does not know is rpc.CodeMethodNotFound.
	// On the legacy wire over HTTP ctx outlives the client's connection, so
	// that an act reaches its outcome; elsewhere it ends with it. It ends, in
	// any case, with the client's notifications/cancelled.
	Handle(ctx context.Context, r *Request) Reply

	// OpenSession mints a session: secret has at least 128 random bits, is
	// URL-safe, and is the only way to find the session again. An error is not
	// shown to the client.
	OpenSession(ctx context.Context, principal string, by Carrier) (secret string, s Session, err error)
	// FindSession finds an open session of that principal. Unknown, closed,
	// expired and foreign are all the same ErrNoSession; any other error means
	// that it could not be found out, and is not shown to the client.
	FindSession(ctx context.Context, principal, secret string) (Session, error)
	// CloseSession ends a session for good. An error says that it may go on.
	CloseSession(ctx context.Context, s Session) error

	// Subscribe calls deliver for notifications l asks for, until cancel; it
	// says what of l.Filter it grants. deliver never blocks and may still be
	// called shortly after cancel. params may be nil.
	Subscribe(ctx context.Context, l Listener, deliver func(method string, params []byte)) (granted Filter, cancel func())
}
