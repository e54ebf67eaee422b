package otlp

import (
	"encoding/json"
	"time"
)

// Attribute is a name and a text.
type Attribute struct {
	Key   string `json:"key"`
	Value text   `json:"value"`
}

type text struct {
	Text string `json:"stringValue"`
}

// Attributes makes them of names and texts in turn; of an empty text there is none.
func Attributes(pairs ...string) []Attribute {
	as := make([]Attribute, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			as = append(as, Attribute{pairs[i], text{pairs[i+1]}})
		}
	}
	return as
}

// Kind says at which end of a request a span is.
type Kind int

// The kinds, as OTLP numbers them.
const (
	Server Kind = 2
	Client Kind = 3
)

// Span is a request and how long it took, as OTLP writes it in JSON.
type Span struct {
	Trace      TraceID     `json:"traceId"`
	ID         SpanID      `json:"spanId"`
	Parent     SpanID      `json:"parentSpanId,omitzero"`
	Flags      uint32      `json:"flags"`
	Name       string      `json:"name"`
	Kind       Kind        `json:"kind"`
	Start      int64       `json:"startTimeUnixNano,string"`
	End        int64       `json:"endTimeUnixNano,string"`
	Attributes []Attribute `json:"attributes"`
	Status     status      `json:"status,omitzero"`
}

type status struct {
	Code int `json:"code"`
}

// Flags of a context: that it is sampled, that it is known whether its parent is of another
// program, and that it is.
const (
	sampled     = 0x001
	knowsRemote = 0x100
	isRemote    = 0x200
)

const failed = 2 // status code

// NewSpan is the span at a place below its parent's, from a time until now. It ended with an
// error where there is an attribute error.type.
func NewSpan(at, parent Context, kind Kind, name string, from time.Time, as []Attribute) *Span {
	s := &Span{Trace: at.Trace, ID: at.Span, Parent: parent.Span, Flags: sampled | knowsRemote, Name: name, Kind: kind,
		Start: from.UnixNano(), End: from.Add(time.Since(from)).UnixNano(), Attributes: as}
	if parent.Remote {
		s.Flags |= isRemote
	}
	for _, a := range as {
		if a.Key == "error.type" {
			s.Status.Code = failed
		}
	}
	return s
}

// Severity is how much an event asks for somebody.
type Severity int

// The severities, as OTLP numbers them.
const (
	Info Severity = 9
	Warn Severity = 13
)

// Event is a log record that has a name, as OTLP writes it in JSON.
type Event struct {
	Time       int64       `json:"timeUnixNano,string"`
	Observed   int64       `json:"observedTimeUnixNano,string"`
	Severity   Severity    `json:"severityNumber"`
	Body       text        `json:"body"`
	Attributes []Attribute `json:"attributes"`
	Flags      uint32      `json:"flags,omitzero"`
	Trace      TraceID     `json:"traceId,omitzero"`
	Span       SpanID      `json:"spanId,omitzero"`
	Name       string      `json:"eventName"`
}

// NewEvent is an event of a span's, or of none where at is zero.
func NewEvent(at Context, name string, severity Severity, when time.Time, body string, as []Attribute) *Event {
	e := &Event{Time: when.UnixNano(), Observed: time.Now().UnixNano(), Severity: severity, Body: text{body}, Attributes: as,
		Trace: at.Trace, Span: at.Span, Name: name}
	if at.Span != (SpanID{}) {
		e.Flags = sampled
	}
	return e
}

// from is the program that tells, as what it tells begins.
type from struct{ resource, scope any }

func newFrom(version string) from {
	return from{
		map[string]any{"attributes": Attributes("service.name", "writ", "service.version", version, "service.instance.id", instance())},
		map[string]any{"name": "github.com/writ-project/writ", "version": version},
	}
}

// batch is a request's body: spans, or log records.
func (f from) batch(signal string, all any) ([]byte, error) {
	resources, scopes, items := "resourceSpans", "scopeSpans", "spans"
	if signal == Logs {
		resources, scopes, items = "resourceLogs", "scopeLogs", "logRecords"
	}
	return json.Marshal(map[string]any{resources: []any{
		map[string]any{"resource": f.resource, scopes: []any{map[string]any{"scope": f.scope, items: all}}},
	}})
}
