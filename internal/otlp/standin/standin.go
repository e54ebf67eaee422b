// Package standin is a collector for tests: it takes OTLP over HTTP in JSON, and holds each
// request to the protocol's own definitions.
package standin

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Collector keeps what it was sent.
type Collector struct {
	URL string
	// Before, unless nil, is asked before a request is read; true has answered it.
	Before func(w http.ResponseWriter, r *http.Request) bool

	mu      sync.Mutex
	bodies  [][]byte
	headers []http.Header
	spans   []*traces.Span
	events  []*logs.LogRecord
}

// New returns one that runs until the test ends.
func New(tb testing.TB) *Collector {
	c := &Collector{}
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.Before != nil && c.Before(w, r) {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = c.take(r, body)
		}
		if err != nil {
			tb.Errorf("%s %s: %v\n%s", r.Method, r.URL, err, body)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "{}")
	}))
	tb.Cleanup(ts.Close)
	c.URL = ts.URL
	return c
}

func (c *Collector) take(r *http.Request, body []byte) error {
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		return fmt.Errorf("it is a %s of %q", r.Method, r.Header.Get("Content-Type"))
	}
	var ts traces.TracesData
	var ls logs.LogsData
	var err error
	switch r.URL.Path {
	case "/v1/traces":
		err = decode(body, &ts)
	case "/v1/logs":
		err = decode(body, &ls)
	default:
		err = fmt.Errorf("nothing is there")
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies, c.headers = append(c.bodies, body), append(c.headers, r.Header)
	for _, rs := range ts.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	for _, rl := range ls.ResourceLogs {
		for _, sl := range rl.ScopeLogs {
			c.events = append(c.events, sl.LogRecords...)
		}
	}
	return nil
}

// decode reads what protobuf calls JSON, but for the ids, which OTLP writes otherwise. What
// is in no definition is an error.
func decode(body []byte, into proto.Message) error {
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return err
	}
	if err := unhex(tree); err != nil {
		return err
	}
	b, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	return protojson.Unmarshal(b, into)
}

var idBytes = map[string]int{"traceId": 16, "spanId": 8, "parentSpanId": 8}

func unhex(tree any) error {
	switch v := tree.(type) {
	case []any:
		for _, e := range v {
			if err := unhex(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, e := range v {
			if n := idBytes[k]; n > 0 {
				text, _ := e.(string)
				id, err := hex.DecodeString(text)
				if err != nil || len(id) != n {
					return fmt.Errorf("%s is %q", k, text)
				}
				v[k] = base64.StdEncoding.EncodeToString(id)
			} else if err := unhex(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Spans are those it was sent.
func (c *Collector) Spans() []*traces.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Events are the log records that it was sent.
func (c *Collector) Events() []*logs.LogRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// Bodies are the requests as they came, and their headers.
func (c *Collector) Bodies() ([][]byte, []http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bodies), slices.Clone(c.headers)
}
