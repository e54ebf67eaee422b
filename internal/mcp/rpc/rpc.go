// Package rpc reads and writes JSON-RPC 2.0 messages for MCP without losing or
// changing a byte of what they carry: params, results and errors stay the
// slices they arrived as. It trusts nothing: a message is strict JSON within
// bounds, is exactly one of request, notification and response, and its id is
// a string of at most 256 bytes or an integer within ±2^53.
package rpc

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-project/writ/internal/strictjson"
)

// Error codes of JSON-RPC 2.0 and of MCP.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeHeaderMismatch = -32020 // MCP 2026-07-28
	CodeMissingCap     = -32021 // MCP 2026-07-28
	CodeVersion        = -32022 // MCP 2026-07-28
)

// Error is a JSON-RPC error object. Raw, when set, is the exact object a
// server sent and is passed on as it is.
type Error struct {
	Code    int
	Message string
	Data    []byte // raw JSON, nil when absent
	Raw     []byte
}

func (e *Error) Error() string { return fmt.Sprintf("json-rpc error %d", e.Code) }

// Errorf returns an Error with a message; the message must not hold a value a
// peer chose.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Message is one parsed message. What is absent is the zero Value.
type Message struct {
	ID     []byte           // exact literal, nil when absent
	Method string           // "" for a response
	Params strictjson.Value // an object
	Result strictjson.Value
	Error  strictjson.Value
}

// IsRequest reports a method with an id.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports a method without an id.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports a result or an error.
func (m *Message) IsResponse() bool { return m.Method == "" }

// Parse reads one message. When it fails, the *Error is what to answer, and
// the returned Message still carries the ID if that could be read.
func Parse(b []byte, l strictjson.Limits) (Message, *Error) {
	v, err := strictjson.Parse(b, l)
	if err != nil {
		if e, is := errors.AsType[*strictjson.Error](err); is && e.Fault != strictjson.Syntax {
			return Message{}, Errorf(CodeInvalidRequest, "%s", e.Error())
		}
		return Message{}, Errorf(CodeParse, "%s", err.Error())
	}
	return Read(v)
}

// Read is Parse of a value that was parsed: an element of a batch.
func Read(v strictjson.Value) (m Message, err *Error) {
	switch v.Kind() {
	case strictjson.Object:
	case strictjson.Array:
		return m, Errorf(CodeInvalidRequest, "batches are not accepted: send one message at a time")
	default:
		return m, Errorf(CodeInvalidRequest, "a message is a JSON object")
	}
	var id, version, method strictjson.Value
	var fault *Error
	for name, x := range v.Members() {
		switch name {
		case "jsonrpc":
			version = x
		case "id":
			id = x
		case "method":
			method = x
		case "params":
			m.Params = x
		case "result":
			m.Result = x
		case "error":
			m.Error = x
		default:
			if n := nearMiss(name); n != "" && fault == nil {
				fault = Errorf(CodeInvalidRequest, "a member name that is not %q but looks like it", n)
			}
		}
	}
	if id.Exists() && !ValidID(id) {
		return m, Errorf(CodeInvalidRequest, "an id is a string of at most 256 bytes or an integer within ±2^53")
	}
	m.ID = id.Raw()
	says, _ := version.Text()
	name, _ := method.Text()
	answer := !method.Exists()
	switch {
	case fault != nil:
		return m, fault
	case says != "2.0":
		return m, Errorf(CodeInvalidRequest, `jsonrpc must be "2.0"`)
	case answer && m.Result.Exists() == m.Error.Exists():
		return m, Errorf(CodeInvalidRequest, "a message has a method, a result or an error")
	case answer && m.Params.Exists():
		return m, Errorf(CodeInvalidRequest, "a response has no params")
	case answer && m.ID == nil:
		return m, Errorf(CodeInvalidRequest, "a response has an id")
	case answer:
		return m, nil
	case m.Result.Exists() || m.Error.Exists():
		return m, Errorf(CodeInvalidRequest, "a message has a method or a result, not both")
	case name == "" || len(name) > 256:
		return m, Errorf(CodeInvalidRequest, "method is a string of 1 to 256 bytes")
	}
	if m.Method = name; m.Params.Exists() && m.Params.Kind() != strictjson.Object {
		return m, Errorf(CodeInvalidParams, "params is an object")
	}
	return m, nil
}

// nearMiss returns the envelope name that n equals after Unicode case folding
// without being it (attack W03).
func nearMiss(n string) string {
	for _, k := range [...]string{"jsonrpc", "id", "method", "params", "result", "error"} {
		if n != k && strings.EqualFold(n, k) {
			return k
		}
	}
	return ""
}

// ValidID reports whether a value can be the id of a request, or a progress token.
func ValidID(v strictjson.Value) bool {
	switch v.Kind() {
	case strictjson.String:
		s, ok := v.Text()
		return ok && len(s) <= 256
	case strictjson.Number:
		n, err := strconv.ParseInt(string(v.Raw()), 10, 64)
		return err == nil && n >= -(1<<53) && n <= 1<<53
	}
	return false
}

// IDKey returns a map key that is equal for equal ids: the same JSON type and
// the same decoded value.
func IDKey(raw []byte) string {
	if s, ok := strictjson.Text(raw); ok {
		return "s" + s
	}
	return "n" + string(raw)
}

// Request encodes a request; id and params are raw JSON, params may be nil.
func Request(id []byte, method string, params []byte) []byte {
	return encode(id, method, params, nil, nil)
}

// Notification encodes a notification; params may be nil.
func Notification(method string, params []byte) []byte {
	return encode(nil, method, params, nil, nil)
}

// Cancelled encodes the notification that the request of an id is not waited for any more.
func Cancelled(id []byte) []byte {
	return Notification("notifications/cancelled", slices.Concat([]byte(`{"requestId":`), id, []byte("}")))
}

// AskCapability lists what a server may ask a client for, with the capability that the client
// must have declared. Nobody changes it.
var AskCapability = map[string]string{
	"elicitation/create":     "elicitation",
	"sampling/createMessage": "sampling",
	"roots/list":             "roots",
}

// NewID returns the id of a request of ours, which nobody can guess: 16 digits or 15.
func NewID() []byte {
	var b [8]byte
	rand.Read(b[:])
	return strconv.AppendUint(nil, binary.BigEndian.Uint64(b[:])>>11|1<<48, 10)
}

// Response encodes a successful response with the exact result bytes.
func Response(id, result []byte) []byte { return encode(id, "", nil, result, nil) }

// ErrorResponse encodes an error response; a nil id becomes null.
func ErrorResponse(id []byte, e *Error) []byte {
	if id == nil {
		id = []byte("null")
	}
	return encode(id, "", nil, nil, e)
}

func encode(id []byte, method string, params, result []byte, e *Error) []byte {
	b := make([]byte, 0, 64+len(id)+len(method)+len(params)+len(result))
	b = append(b, `{"jsonrpc":"2.0"`...)
	if id != nil {
		b = append(append(b, `,"id":`...), id...)
	}
	if method != "" {
		b = strictjson.AppendQuote(append(b, `,"method":`...), method)
	}
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	if result != nil {
		b = append(append(b, `,"result":`...), result...)
	}
	if e != nil {
		b = append(append(b, `,"error":`...), e.Encode()...)
	}
	return append(b, '}')
}

// Encode returns the error object: Raw when set.
func (e *Error) Encode() []byte {
	if e.Raw != nil {
		return e.Raw
	}
	b := append([]byte(`{"code":`), strconv.Itoa(e.Code)...)
	b = append(append(b, `,"message":`...), strictjson.Quote(e.Message)...)
	if e.Data != nil {
		b = append(append(b, `,"data":`...), e.Data...)
	}
	return append(b, '}')
}

// ParseError reads the error object of a response. What is not a proper error
// object becomes CodeInternal, with the original in Raw left nil.
func ParseError(v strictjson.Value) *Error {
	code, err := strconv.Atoi(string(v.Get("code").Raw()))
	msg, ok := v.Get("message").Text()
	if err != nil || !ok {
		return Errorf(CodeInternal, "the server answered with a malformed error")
	}
	return &Error{Code: code, Message: msg, Data: v.Get("data").Raw(), Raw: v.Raw()}
}
