package otlp

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

type (
	// TraceID names a trace, and is not all zero.
	TraceID [16]byte
	// SpanID names a span of a trace, and is not all zero; of a parent that is none.
	SpanID [8]byte
)

// MarshalText writes it as OTLP does in JSON: in hexadecimal.
func (t TraceID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, t[:]), nil }

// MarshalText writes it as [TraceID.MarshalText] does.
func (s SpanID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// Context is a place in a trace: a span, or the trace alone, whose first span is still to come.
type Context struct {
	Trace  TraceID
	Span   SpanID
	Remote bool // of another program
}

// Parse reads a traceparent of the W3C's form, version 00: four numbers in lowercase
// hexadecimal, of which the two ids are not all zero. What it does not accept is none. That
// the caller does not sample it is not heard: who is watched does not choose what is seen.
func Parse(s string) (c Context, ok bool) {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return c, false
	}
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'F' {
			return c, false
		}
	}
	var flags [1]byte
	for _, part := range []struct {
		into []byte
		of   string
	}{{c.Trace[:], s[3:35]}, {c.Span[:], s[36:52]}, {flags[:], s[53:]}} {
		if _, err := hex.Decode(part.into, []byte(part.of)); err != nil {
			return Context{}, false
		}
	}
	if c.Trace == (TraceID{}) || c.Span == (SpanID{}) {
		return Context{}, false
	}
	c.Remote = true
	return c, true
}

// NewTrace begins a trace of its own.
func NewTrace() (c Context) {
	binary.NativeEndian.PutUint64(c.Trace[:], rand.Uint64())
	binary.NativeEndian.PutUint64(c.Trace[8:], 1+rand.Uint64N(1<<63))
	return c
}

// Child returns a new span's place below c.
func (c Context) Child() Context {
	c.Remote = false
	binary.NativeEndian.PutUint64(c.Span[:], 1+rand.Uint64N(1<<63))
	return c
}
