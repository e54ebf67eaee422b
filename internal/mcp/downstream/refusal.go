package downstream

import (
	"encoding/json"
	"strings"

	"github.com/writ-project/writ/internal/mcp/rpc"
	"github.com/writ-project/writ/internal/strictjson"
)

// Why is a stable id of a reason to refuse a message before the Router sees
// it. Ids are listed in this file only.
type Why string

// The reasons. Those starting with http. never become JSON-RPC errors of a
// request: they answer the HTTP exchange.
const (
	WhyHost        Why = "http.host"         // S01
	WhyOrigin      Why = "http.origin"       // S02, S03
	WhyTarget      Why = "http.target"       // absolute form, CONNECT, OPTIONS *
	WhyPath        Why = "http.path"         // no such route
	WhyMethod      Why = "http.method"       // not a method of this route or wire
	WhyHeaders     Why = "http.headers"      // too many, or a critical one twice
	WhyContentType Why = "http.content_type" // S02, W06
	WhyEncoding    Why = "http.encoding"     // W14
	WhyAccept      Why = "http.accept"
	WhyBody        Why = "http.body" // empty, or could not be read
	WhyTooLarge    Why = "rpc.too_large"
	WhyPrincipal   Why = "http.principal"  // not authenticated
	WhyHalfLine    Why = "stdio.half_line" // the input ended within a line
	WhyBusy        Why = "limit.busy"      // D03, D05: a cap of this principal
	WhyMessage     Why = "rpc.message"     // W01–W09, W15, W16
	WhyParams      Why = "rpc.params"
	WhyIDInUse     Why = "rpc.id_in_use"
	WhyUnasked     Why = "rpc.unasked"      // P22: an answer to nothing, dropped
	WhyDropped     Why = "rpc.dropped"      // a notification over a full queue
	WhySession     Why = "session.unknown"  // S05: unknown, closed, foreign, or two that disagree
	WhyNoSession   Why = "session.missing"  // a legacy request that carries none
	WhyLifecycle   Why = "session.order"    // before initialize, or initialize twice
	WhyResume      Why = "session.resume"   // S06
	WhyState       Why = "session.state"    // N24: it could not be found out whether there is such a session
	WhyEra         Why = "version.era"      // W11
	WhyVersion     Why = "version.unknown"  // not one of Versions
	WhyMismatch    Why = "version.mismatch" // W10
)

// Hook is told of each message that was refused or dropped: why, and the public id of its session,
// "" for none. A client chose nothing of that, so it may be logged as it is.
type Hook func(why Why, session string)

// told tells it, if there is one.
func (h Hook) told(r *refused, s Session) {
	switch {
	case h == nil:
	case s == nil:
		h(r.why, "")
	default:
		h(r.why, s.PublicID())
	}
}

// refused is one way to say no: the reason, the HTTP status and the error. The
// messages are constants.
type refused struct {
	why    Why
	status int
	err    *rpc.Error
	allow  string // for 405
}

func no(why Why, status, code int, msg string) *refused {
	return &refused{why: why, status: status, err: &rpc.Error{Code: code, Message: msg}}
}

// full tells that something for a session found no room.
func (h Hook) full(s Session) func() { return func() { h.told(noQueue, s) } }

// What a refusal says where Writ's own commands have more to say.
const (
	Stopping   = "the gateway is stopping"
	Unreadable = "the session cannot be read now, and nothing of it is lost; try again"
)

var (
	noHost        = no(WhyHost, 403, rpc.CodeInvalidRequest, "this host name is not served here")
	noOrigin      = no(WhyOrigin, 403, rpc.CodeInvalidRequest, "requests from this origin are not accepted")
	noTarget      = no(WhyTarget, 400, rpc.CodeInvalidRequest, "the request target must be a path")
	noPath        = no(WhyPath, 404, rpc.CodeInvalidRequest, "nothing is served here; MCP is at /mcp")
	noHeaders     = no(WhyHeaders, 431, rpc.CodeInvalidRequest, "too many header fields")
	noTwice       = no(WhyHeaders, 400, rpc.CodeInvalidRequest, "a header field that must stand once stands more than once")
	noMirrorTwice = no(WhyMismatch, 400, rpc.CodeHeaderMismatch, "a header field that repeats the body stands more than once")
	noContentType = no(WhyContentType, 415, rpc.CodeInvalidRequest, "the content type must be application/json in UTF-8")
	noEncoding    = no(WhyEncoding, 415, rpc.CodeInvalidRequest, "a content encoding is not accepted")
	noAccept      = no(WhyAccept, 406, rpc.CodeInvalidRequest, "accept must name application/json and text/event-stream")
	noStreamType  = no(WhyAccept, 406, rpc.CodeInvalidRequest, "accept must name text/event-stream")
	noEmptyBody   = no(WhyBody, 400, rpc.CodeInvalidRequest, "the body is empty")
	noBody        = no(WhyBody, 400, rpc.CodeInvalidRequest, "the body could not be read")
	noSlowBody    = no(WhyBody, 408, rpc.CodeInvalidRequest, "the body did not arrive in time")
	noTooLarge    = no(WhyTooLarge, 413, rpc.CodeInvalidRequest, "the message is larger than accepted")
	noPrincipal   = no(WhyPrincipal, 401, rpc.CodeInvalidRequest, "not authenticated")
	noRoom        = no(WhyBusy, 429, rpc.CodeInternal, "too many open requests, streams or sessions; close some or try later")
	noRequests    = no(WhyBusy, 429, rpc.CodeInternal, "too many requests of all sessions together are open; try again later")
	noStreams     = no(WhyBusy, 429, rpc.CodeInternal, "too many streams of all sessions together are open; try again later")
	noConns       = no(WhyBusy, 429, rpc.CodeInternal, "too many sessions have something open; try again later")
	noBodies      = no(WhyBusy, 503, rpc.CodeInternal, "too many requests were being sent at once, and this one had been for longest; send it again, whole")
	noSockets     = no(WhyBusy, 503, rpc.CodeInternal, "too many connections have a request under way; try again later")

	noRequestsHere = no(WhyBusy, 429, rpc.CodeInternal, "too many requests of this session are open; try again when one of them has ended")
	noStreamsHere  = no(WhyBusy, 429, rpc.CodeInternal, "too many streams of this session are open; try again when one of them has ended")

	noClosing     = no(WhyBusy, 503, rpc.CodeInternal, Stopping)
	noHalfLine    = &refused{why: WhyHalfLine}
	noQuestion    = &refused{why: WhyUnasked}
	noQueue       = &refused{why: WhyDropped}
	noAnswer      = no(WhyUnasked, 400, rpc.CodeInvalidRequest, "this protocol version has no responses from clients")
	noNoteID      = no(WhyMessage, 400, rpc.CodeInvalidRequest, "a notification has no id")
	noNoteKnown   = no(WhyMessage, 400, rpc.CodeInvalidRequest, "a request needs an id")
	noIDInUse     = no(WhyIDInUse, 400, rpc.CodeInvalidRequest, "this request id is still in use")
	noBatch       = no(WhyMessage, 400, rpc.CodeInvalidRequest, "batches are not accepted: send one message at a time")
	noBigBatch    = no(WhyMessage, 400, rpc.CodeInvalidRequest, "a batch holds 1 to 50 messages, and no initialize")
	noSession     = no(WhySession, 404, rpc.CodeInvalidRequest, "no such session")
	noSessionSent = no(WhyNoSession, 400, rpc.CodeInvalidRequest, "a session is needed: send initialize first, then its Mcp-Session-Id")
	noInit        = no(WhyLifecycle, 400, rpc.CodeInvalidRequest, "send initialize first")
	noReinit      = no(WhyLifecycle, 400, rpc.CodeInvalidRequest, "initialize was already sent")
	noReplay      = no(WhyResume, 400, rpc.CodeInvalidRequest, "this stream can no longer be resumed")
	noState       = no(WhyState, 503, rpc.CodeInternal, Unreadable)
	noOpen        = no(WhyState, 503, rpc.CodeInternal, "a session cannot be opened now; try again")

	noMeta         = no(WhyParams, 400, rpc.CodeInvalidParams, "params._meta is an object with io.modelcontextprotocol/protocolVersion and an object io.modelcontextprotocol/clientCapabilities")
	noMetaObject   = no(WhyParams, 400, rpc.CodeInvalidParams, "params._meta is an object")
	noToken        = no(WhyParams, 400, rpc.CodeInvalidParams, "progressToken is a string of at most 256 bytes or an integer within ±2^53")
	noInitParams   = no(WhyParams, 400, rpc.CodeInvalidParams, "initialize needs protocolVersion, a string, and capabilities, an object, of at most 64 KiB with clientInfo")
	noListenParams = no(WhyParams, 400, rpc.CodeInvalidParams, "subscriptions/listen needs notifications, an object of booleans and at most 1000 resourceSubscriptions")

	noVersionHeader = no(WhyMismatch, 400, rpc.CodeHeaderMismatch, "the MCP-Protocol-Version header is missing")
	noVersionEqual  = no(WhyMismatch, 400, rpc.CodeHeaderMismatch, "the MCP-Protocol-Version header does not equal the version in params._meta")
	noMethodHeader  = no(WhyMismatch, 400, rpc.CodeHeaderMismatch, "the Mcp-Method header is missing")
	noMethodEqual   = no(WhyMismatch, 400, rpc.CodeHeaderMismatch, "the Mcp-Method header does not equal the method in the body")
	noNameHeader    = no(WhyMismatch, 400, rpc.CodeHeaderMismatch, "the Mcp-Name header is missing")
	noNameEqual     = no(WhyMismatch, 400, rpc.CodeHeaderMismatch, "the Mcp-Name header does not equal the name or uri in the body")
	noParamHeader   = no(WhyMismatch, 400, rpc.CodeHeaderMismatch, "an Mcp-Param header is not valid base64 where it says it is")

	noMethodKnown = no(WhyMessage, 404, rpc.CodeMethodNotFound, "this method does not exist on this protocol version")
)

// noAllowed is a 405 with its Allow field.
func noAllowed(allow string) *refused {
	r := no(WhyMethod, 405, rpc.CodeInvalidRequest, "this HTTP method is not served here")
	r.allow = allow
	return r
}

// noVersion lists the supported versions; requested is what the client asked
// for, repeated (as the protocol demands) only as an escaped JSON string of a
// plain short word.
func noVersion(requested string) *refused {
	r := no(WhyVersion, 400, rpc.CodeVersion, "this protocol version is not supported")
	r.err.Data = versionData(requested)
	return r
}

// noEra refuses a message that belongs to both wires, or to the other one than
// its connection (W11).
func noEra(requested string) *refused {
	r := no(WhyEra, 400, rpc.CodeVersion, "this message mixes two protocol versions, or is not of this connection's")
	r.err.Data = versionData(requested)
	return r
}

func versionData(requested string) []byte {
	if !plain(requested, 64, ".-_") {
		requested = ""
	}
	b := append([]byte(`{"supported":`), versionList...)
	b = append(append(b, `,"requested":`...), strictjson.Quote(requested)...)
	return append(b, '}')
}

// plain reports whether a text is of at most so many letters, digits and signs.
func plain(s string, most int, signs string) bool {
	return len(s) <= most && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"+signs) == ""
}

// noMessage wraps what rpc.Parse says.
func noMessage(err *rpc.Error) *refused {
	return &refused{why: WhyMessage, status: 400, err: err}
}

// statusOf is the HTTP status of a modern answer that is an error.
func statusOf(e *rpc.Error) int {
	if e == nil {
		return 200
	}
	switch e.Code {
	case rpc.CodeMethodNotFound:
		return 404
	case rpc.CodeInvalidParams, rpc.CodeInvalidRequest, rpc.CodeParse,
		rpc.CodeHeaderMismatch, rpc.CodeMissingCap, rpc.CodeVersion:
		return 400
	}
	return 200
}

var versionList, _ = json.Marshal(Versions)
